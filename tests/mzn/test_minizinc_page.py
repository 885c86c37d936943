"""The page about the models: its example does what it says."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.mzn.modelled import needs_minizinc


@needs_minizinc
def test_the_examples_of_the_page(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of Python write windows, and the commands print the plans that the page shows."""
    page = (repository / "docs" / "minizinc.md").read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    commands = re.findall(r"^    (minizinc --solver .*)$", page, re.MULTILINE)
    shown = re.findall(r"^    cost .*?==========\n", page, re.MULTILINE | re.DOTALL)
    for name in ("instances", "models"):
        (tmp_path / name).symlink_to(repository / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, command, plan in zip(codes, commands, shown, strict=True):
        exec(compile(code, "docs/minizinc.md", "exec"), names)  # noqa: S102
        done = subprocess.run(command.split(), capture_output=True, text=True, check=True)  # noqa: S603
        assert done.stdout == textwrap.dedent(plan)
    assert len(shown) == 1


def test_the_page_names_every_model(repository: Path) -> None:
    """Each model stands in the first table."""
    page = (repository / "docs" / "minizinc.md").read_text(encoding="utf-8")
    models = {path.name for path in (repository / "models").glob("*.mzn")}
    assert set(re.findall(r"^\| `models/(\w+\.mzn)` ", page, re.MULTILINE)) == models
