"""The page of mechanisms: complete, and every name on it exists."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

#: How many mechanisms each source has.
COUNTS = {"OCCS": 53, "BRIDI": 24, "SD": 14, "EVO": 18, "PBS": 6, "MAUI": 10, "MIX": 5}

ROW = re.compile(r"\| ([A-Z]+-[0-9]+) \|")
CODE = re.compile(r"`((?:cpsched|tests)\.[\w.]+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


class Row(NamedTuple):
    """One mechanism: its number, what it is, where it is built, and the test that shows it."""

    number: str
    mechanism: str
    where: str
    test: str


@pytest.fixture
def page(repository: Path) -> str:
    """Return the text of the page."""
    return (repository / "docs" / "mechanisms.md").read_text(encoding="utf-8")


@pytest.fixture
def rows(page: str) -> list[Row]:
    """Return all rows that begin with a number."""
    lines = (line for line in page.splitlines() if ROW.match(line))
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def resolve(name: str) -> object:
    """Return the module, or what is found by names inside of one.

    Raises
    ------
    AttributeError, ImportError
        If there is none.
    """
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            # a field of a slotted or plain dataclass is no attribute of the class where it has no default
            found = getattr(found, "__dataclass_fields__", {}).get(part) or getattr(found, part)
        return found
    raise ImportError(name)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Return the names of the functions on the top level of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_number_stands_once(rows: list[Row]) -> None:
    """Each mechanism of each source has one row, in order, and no row has another number."""
    expected = [f"{source}-{number}" for source, count in COUNTS.items() for number in range(1, count + 1)]
    assert [row.number for row in rows] == expected


def test_every_name_exists(page: str) -> None:
    """Modules, classes, functions and constants that the page names can be imported."""
    names = CODE.findall(page)
    assert len(names) > 50
    for name in names:
        resolve(name)


def test_a_name_that_does_not_exist_is_found() -> None:
    """A function, a method and a module that are not there are told."""
    for name in ("cpsched.metrics.nothing", "tests.oracle.vector.UsedVector.nothing", "cpsched.nothing"):
        with pytest.raises((AttributeError, ImportError)):
            resolve(name)


def test_every_test_exists(rows: list[Row], repository: Path) -> None:
    """A row names a test that is there, or says that there is none."""
    for row in rows:
        found = TEST.fullmatch(row.test)
        if found is None:
            assert row.test in ("none", "none yet"), row.number
        else:
            assert found[2] in functions_of(repository / found[1]), row.number


def test_every_row_says_where_or_why_not(rows: list[Row]) -> None:
    """A mechanism is built somewhere, not built yet, or decided otherwise for a reason; what is built has names."""
    for row in rows:
        has_reason = row.where == "not yet" or row.where.startswith("decided otherwise: ")
        assert has_reason or CODE.search(row.where), row.number
        if row.where.startswith("not yet") and not CODE.search(row.where):
            assert row.test == "none yet", row.number
