"""The page about the models: its example does what it says."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.mzn.modelled import needs_minizinc


@needs_minizinc
def test_the_example_of_the_page(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of Python write a window, and the command prints the plan that the page shows."""
    page = (repository / "docs" / "minizinc.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^    (minizinc --solver .*)$", page, re.MULTILINE)
    (shown,) = re.findall(r"^    cost .*?==========\n", page, re.MULTILINE | re.DOTALL)
    for name in ("instances", "models"):
        (tmp_path / name).symlink_to(repository / name)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/minizinc.md", "exec"), {})  # noqa: S102
    done = subprocess.run(command.split(), capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == textwrap.dedent(shown)
