"""The check of the pages' prose, ``scripts/prose``: it finds our phrases and proselint's, and reads no code."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def prose(repository: Path) -> ModuleType:
    """Return the script as a module."""
    pytest.importorskip("proselint")
    loader = SourceFileLoader("prose", str(repository / "scripts" / "prose"))
    spec = spec_from_loader("prose", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_phrases_are_found_with_their_lines(
    prose: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A phrase of ours and one of proselint's are named with their lines; the exit code is 1."""
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nA plan is\nhad quickly.\n\nThis is very unique.\n")
    assert prose.main([str(page)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert any(":3: Write 'is available' instead of 'is had'." in line for line in lines)
    assert any(":6: " in line and "very unique" in line for line in lines)


def test_code_is_no_prose(prose: ModuleType, tmp_path: Path) -> None:
    """Blocks, indented lines, pieces of code, comments and the targets of links may have any words."""
    page = tmp_path / "page.md"
    text = '`told` and [a link](who-plans-told.md)\n\n```json\n{"told": 1}\n```\n\n    what stands\n\n<!-- told -->\n'
    page.write_text(text)
    assert prose.main([str(page)]) == 0
    page.write_text(text.replace("`told`", "told"))
    assert prose.main([str(page)]) == 1
