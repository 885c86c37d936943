"""What CI runs is all that there is to check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_script_in_python_is_linted(repository: Path) -> None:
    """The linter goes by suffix; the scripts that have none are named in ``pyproject.toml``."""
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    shown = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout  # noqa: S603
    linted = {Path(line) for line in shown.splitlines()}
    scripts = [path for path in (repository / "scripts").iterdir() if path.is_file()]
    in_python = {path for path in scripts if "python" in path.read_text(encoding="utf-8").partition("\n")[0]}
    assert in_python
    assert in_python <= linted


def test_types_are_for_those_who_import_the_package(repository: Path) -> None:
    """Type checkers use the annotations of an installed package only where it has this marker (PEP 561)."""
    assert (repository / "cpsched" / "py.typed").is_file()
