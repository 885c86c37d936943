"""The examples of `Model` and of the page about Python are run."""

from __future__ import annotations

import doctest
from pathlib import Path

from cpsched.modelling import model

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_page_is_right() -> None:
    """What docs/python.md shows is what happens."""
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 15
    assert failed == 0


def test_the_docstring_is_right() -> None:
    """What the docstring of `Model` shows is what happens."""
    failed, tried = doctest.testmod(model)
    assert tried > 4
    assert failed == 0
