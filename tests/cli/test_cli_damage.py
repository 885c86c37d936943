"""Files of the installation that are damaged: a message that names them and the command that mends them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path

import pytest

from cpsched.cli.damage import damage_of
from cpsched.cli.exits import ExitCode

ROOT = Path(__file__).parents[2]


def _halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _scrambled(content: bytes) -> bytes:
    return content[:16] + b"\xff" * 100


@pytest.mark.slow
@pytest.mark.parametrize(("module", "damaged"), [("cli/group", _halved), ("cli/schema", _scrambled)])
def test_bytecode_that_is_damaged(tmp_path: Path, module: str, damaged: Callable[[bytes], bytes]) -> None:
    """Damaged bytecode ends a command with an exit code of its own; after the command that it names all is well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603

    called = (sys.executable, "-m", "cpsched", "schema", "plan")
    assert run(*called).returncode == 0
    (bytecode,) = tmp_path.rglob(f"cpsched/{module}.*.pyc")
    bytecode.write_bytes(damaged(bytecode.read_bytes()))
    said = run(*called)
    assert (said.returncode, said.stdout) == (ExitCode.DAMAGED, "")
    first, _, second = said.stderr.partition("\n")
    assert first.startswith(f"cpsched: {bytecode} is damaged")
    assert run(*second.strip().removeprefix("mend it with: ").split()).returncode == 0
    assert run(*called).returncode == 0


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a package in it, as pip installs it."""
    folder = tmp_path / "sites" / "broken"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(folder.parent))
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {"broken": ["broken-things"]})
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [("__init__.py", "import broken.lost"), ("lost.py", ""), ("lost.py", "def f(:"), ("lost.so", "\x7fELF")],
)
def test_source_and_libraries_that_are_damaged(installed: Path, name: str, content: str) -> None:
    """A package of which a file is missing, empty or truncated is to be installed anew."""
    (installed / "__init__.py").write_text("from broken.lost import something")
    path = installed / name
    path.write_text(content)
    for forgotten in [each for each in sys.modules if each.partition(".")[0] == "broken"]:
        del sys.modules[forgotten]
    importlib.invalidate_caches()

    def load() -> None:
        if name.endswith("so"):
            spec = importlib.machinery.ModuleSpec("broken.lost", None, origin=str(path))
            ExtensionFileLoader("broken.lost", str(path)).create_module(spec)
        importlib.import_module("broken")

    with pytest.raises((ImportError, SyntaxError)) as caught:
        load()
    said = damage_of(caught.value)
    assert said is not None
    assert said.startswith(str(path))
    assert said.endswith(f"{sys.executable} -m pip install --force-reinstall broken-things")


def test_errors_of_whole_files_are_none_of_damage(tmp_path: Path) -> None:
    """An input that ends early, and a fault in a module of the user's own, are what they were."""
    mine = str(tmp_path / "mine.py")
    for code in ("raise EOFError", f"compile('def f(:', {mine!r}, 'exec')"):
        with pytest.raises((EOFError, SyntaxError)) as caught:
            exec(code)  # noqa: S102  # the text above
        assert damage_of(caught.value) is None
