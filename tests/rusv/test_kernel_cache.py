"""Where compiled kernels are kept: they are code, so only the user's own private folder will do."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cpsched.rusv import kernel_cache
from tests.limited import with_small_files

ROOT = Path(__file__).parents[2]

#: Prints the folder that a module would get, in a process of its own.
_ASK = """
from cpsched.rusv.kernel_cache import folder_of_module
print(folder_of_module({"__name__": "cpsched.asking", "__file__": __import__("cpsched").__file__}))
"""


#: Ends a copy of the process, and asks in another one.
_FORK = """
import os, subprocess, sys
sys.stdout.flush()
if os.fork() == 0:
    sys.exit()
os.wait()
subprocess.run([sys.executable, "-c", os.environ["ASK"]])
"""


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the folders that this process knows already, and remove the temporary one that a test makes."""
    for name in ("_folders", "_digests", "_owned"):
        monkeypatch.setattr(kernel_cache, name, {})
    monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(atexit, "register", lambda _: None)
    monkeypatch.setitem(os.environ, kernel_cache._INHERITED, "")
    monkeypatch.delenv(kernel_cache._INHERITED)
    kernel_cache._temporary_folder.cache_clear()
    yield
    kernel_cache.remove_temporary_kernels()
    kernel_cache._temporary_folder.cache_clear()


def module(folder: Path, name: str, text: str, **others: Any) -> dict[str, object]:
    """Make the globals of a module whose file has `text`."""
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    return {"__name__": name, "__file__": str(file), **others}


def ask(before: str = "", after: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask a fresh process for a folder, with nothing in its environment but `environment`."""
    return subprocess.run(  # noqa: S603  # the interpreter that runs the tests
        [sys.executable, "-c", before + _ASK + after],
        env={"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_folder_is_private(tmp_path: Path) -> None:
    """Both folders that are made are for the user alone, whatever the umask."""
    answer = ask("import os; os.umask(0)", XDG_CACHE_HOME=str(tmp_path / "cache"))
    folder = Path(answer.stdout.strip())
    assert folder.parent == tmp_path / "cache" / "cpsched"
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("who", ["folder", "parent"])
def test_a_folder_that_others_may_write_to_is_refused(
    who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning says so, and the kernels go to a temporary folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = kernel_cache.folder_of_module(module(tmp_path, "one", "a = 1"))
    (first if who == "folder" else first.parent).chmod(0o770)
    kernel_cache._folders.clear()
    with pytest.warns(RuntimeWarning, match="other users may write to it"):
        folder = kernel_cache.folder_of_module(module(tmp_path, "one", "a = 1"))
    assert tmp_path not in folder.parents


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of another user may contain code of that user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="not a folder of this user"):
        folder = kernel_cache.folder_of_module(module(tmp_path, "one", "a = 1"))
    assert tmp_path not in folder.parents


def test_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link could lead anywhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cpsched").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="not a folder of this user"):
        folder = kernel_cache.folder_of_module(module(tmp_path, "one", "a = 1"))
    assert tmp_path not in folder.parents


def test_a_relative_cache_home_is_ignored(tmp_path: Path) -> None:
    """A relative path would scatter folders over wherever cpsched is called from."""
    answer = ask(XDG_CACHE_HOME="here", HOME=str(tmp_path))
    assert Path(answer.stdout.strip()).parent == tmp_path / ".cache" / "cpsched"


@pytest.fixture
def homeless(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the home is a file, and a folder for temporary files is empty."""
    home = tmp_path / "home"
    home.write_text("a file", encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    return {"HOME": str(home), "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": f"{tmp_path}:{ROOT}"}


def test_temporary_folders_are_removed(tmp_path: Path, homeless: dict[str, str]) -> None:
    """Without a usable home a process leaves nothing behind, and says in one line that it compiles in each run."""
    answer = ask(**homeless)
    assert Path(answer.stdout.strip()).parents[1] == tmp_path / "temporary"
    assert answer.stderr.count("\n") == 1
    assert "compiled kernels are not kept" in answer.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_processes_share_a_temporary_folder(tmp_path: Path, homeless: dict[str, str]) -> None:
    """A process that another one starts has its folder, and says nothing; nor does a fork of it remove the folder."""
    answer = ask(after=_FORK, ASK=_ASK, **homeless)
    mine, theirs = answer.stdout.split()
    assert mine == theirs
    assert answer.stderr.count("\n") == 1
    assert not list((tmp_path / "temporary").iterdir())


def test_folders_of_killed_processes_are_removed(tmp_path: Path, homeless: dict[str, str]) -> None:
    """The next process without a home removes what a killed one left, and no folder of one that runs."""
    command = [sys.executable, "-c", f"{_ASK}\nimport sys, time; sys.stdout.flush(); time.sleep(600)"]
    with subprocess.Popen(command, env=homeless, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as killed:  # noqa: S603
        assert killed.stdout is not None
        killed.stdout.readline()
        (folder,) = (tmp_path / "temporary").iterdir()
        ask(**homeless)
        assert folder.exists()
        killed.kill()
    ask(**homeless)
    assert not list((tmp_path / "temporary").iterdir())


def test_kernels_of_imported_modules_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's folder is another one as soon as a kernel or a constant that it imports is another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def imported() -> None: ...

    imported.__module__ = "cpsched.low"

    def folder_of_high(low: str, constant: int) -> Path:
        kernel_cache._folders.clear()
        kernel_cache._digests.clear()
        kernel_cache.folder_of_module(module(tmp_path, "cpsched.low", low))
        return kernel_cache.folder_of_module(module(tmp_path, "cpsched.high", "b", imported=imported, LIMIT=constant))

    first = folder_of_high("a = 1", 7)
    assert folder_of_high("a = 1", 7) == first
    assert folder_of_high("a = 2", 7) != first
    assert folder_of_high("a = 1", 8) != first


def test_kernels_behind_a_door_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that only gathers the kernels of others, or arrays, makes another folder as soon as one of them is
    another.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    door = ModuleType("cpsched.door")

    def folder_of_high(low: str) -> Path:
        kernel_cache._folders.clear()
        kernel_cache._digests.clear()
        kernel_cache.folder_of_module(module(tmp_path, "cpsched.low", low))
        imported = SimpleNamespace(__module__="cpsched.low")
        vars(door).update(module(tmp_path, "cpsched.door", "from cpsched.low import imported", imported=imported))
        monkeypatch.setitem(sys.modules, "cpsched.door", door)
        return kernel_cache.folder_of_module(module(tmp_path, "cpsched.high", "b", door=door))

    first = folder_of_high("a = 1")
    assert folder_of_high("a = 1") == first
    assert folder_of_high("a = 2") != first


def test_folders_of_old_versions_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no process has used for a month is removed when a new folder is made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old = kernel_cache.folder_of_module(module(tmp_path, "one", "a = 1"))
    young = kernel_cache.folder_of_module(module(tmp_path, "two", "a = 1"))
    os.utime(old, (0, 0))
    kernel_cache.folder_of_module(module(tmp_path, "three", "a = 1"))
    assert not old.exists()
    assert young.exists()


_KERNEL = """
from cpsched.rusv.jit import kernel

@kernel
def doubled(value):
    return 2 * value
"""

#: Calls the kernel with a number of one kind, and prints what it found in the cache.
_CALL = """
import sys, numpy, doubling
print(doubling.doubled(getattr(numpy, sys.argv[1])(21)), doubling.doubled.stats.cache_hits)
"""


def hits(folder: Path, text: str = _KERNEL) -> int:
    """Call the kernel of a file as a new process would; return how much of it was found in the cache."""
    kernel_cache._folders.clear()
    kernel_cache._digests.clear()
    folder.mkdir(exist_ok=True)
    made = module(folder, "doubling", text)
    exec(compile(text, str(made["__file__"]), "exec"), made)  # noqa: S102  # the text above
    doubled: Any = made["doubled"]
    assert doubled(21) == 42
    return len(doubled.stats.cache_hits)


def test_checkouts_with_the_same_source_share_compiled_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled from a file is loaded for a file of the same text elsewhere, and not for one of another text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hits(tmp_path / "here") == 0
    assert hits(tmp_path / "there") == 1
    assert hits(tmp_path / "beyond", _KERNEL + "\nMORE = 1\n") == 0


def _emptied(content: bytes) -> bytes:
    return b""


def _halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _zeroed(content: bytes) -> bytes:
    return bytes(len(content))


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damaged", [_emptied, _halved, _zeroed])
def test_damaged_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, damaged: Callable[[bytes], bytes]
) -> None:
    """A kernel whose index or code cannot be read is compiled anew, and found the next time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hits(tmp_path) == 0
    (file,) = (tmp_path / "cache").rglob(f"*.{suffix}")
    file.write_bytes(damaged(file.read_bytes()))
    assert hits(tmp_path) == 0
    assert hits(tmp_path) == 1


def test_kernels_that_nobody_can_keep_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home and without a folder for temporary files a kernel is compiled, and its result is right."""
    (tmp_path / "home").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.warns(RuntimeWarning, match="are not kept"):
        assert hits(tmp_path) == 0


def test_a_full_disk_costs_no_answer(tmp_path: Path) -> None:
    """Where compiled code does not fit on the disk, one line says so, and nothing of it is left to be loaded."""
    (tmp_path / "doubling.py").write_text(_KERNEL, encoding="utf-8")
    places = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for size, kept in ((100, False), (10**7, True)):
        answer = with_small_files(_CALL, "float64", size=size, **places)
        assert answer.stdout == "42.0 Counter()\n"
        assert ("are not kept for the next run" in answer.stderr) is not kept
        assert answer.stderr.count("\n") == (not kept)
        assert bool(list((tmp_path / "cache").rglob("*.nb*"))) is kept


@pytest.mark.slow
def test_processes_that_compile_at_a_time_keep_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processes that compile a kernel for different types leave each of them loadable, and right."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "doubling.py").write_text(_KERNEL, encoding="utf-8")
    kinds = ["int8", "int32", "float32", "float64"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    def started(kind: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603  # the interpreter that runs the tests
            [sys.executable, "-c", _CALL, kind], env=environment, stdout=subprocess.PIPE, text=True
        )

    for expected in ("Counter()", "Counter({"):
        for kind, process in [(kind, started(kind)) for kind in kinds]:
            answer, _ = process.communicate()
            assert answer.split(maxsplit=1)[0] == ("42.0" if "float" in kind else "42")
            assert expected in answer
