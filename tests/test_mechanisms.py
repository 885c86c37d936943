"""The page of mechanisms: complete, and each is marked by its number in the code and in a test, or says why not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

#: How many mechanisms each source has.
COUNTS = {"OCCS": 53, "BRIDI": 24, "SD": 14, "EVO": 18, "PBS": 6, "MAUI": 10, "MIX": 5}


@pytest.fixture(scope="module")
def rows(repository: Path) -> list[tuple[str, str]]:
    """Return the number and the words of each mechanism."""
    page = (repository / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    return re.findall(r"^- (\w+-\d+): (.*)$", page, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def files(repository: Path) -> Mapping[str, Sequence[str]]:
    """Return the files that name each number, as the site shows them."""
    spec = spec_from_file_location("documentation", repository / "scripts" / "documentation.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Mapping[str, Sequence[str]] = module.files_by_mechanism()
    return found


def test_every_number_stands_once(rows: list[tuple[str, str]]) -> None:
    """Each mechanism of each source has one row, in order, and no row has another number."""
    expected = [f"{source}-{number}" for source, count in COUNTS.items() for number in range(1, count + 1)]
    assert [number for number, _ in rows] == expected


def test_every_mechanism_is_marked(rows: list[tuple[str, str]], files: Mapping[str, Sequence[str]]) -> None:
    """The code names the number of each mechanism, and so does a test; else the row says what was decided instead."""
    for number, words in rows:
        named = files.get(number, ())
        tests = [name for name in named if name.startswith("tests/") and not name.startswith("tests/oracle/")]
        is_shown = 0 < len(tests) < len(named)
        assert is_shown or "*Decided otherwise: " in words, f"{number}: {named}"


def test_no_other_number_is_named(rows: list[tuple[str, str]], files: Mapping[str, Sequence[str]]) -> None:
    """A number in the code is one of the page."""
    assert set(files) <= {number for number, _ in rows}
