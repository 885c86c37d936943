"""The examples of `Model` are run; `tests/test_pages.py` runs those of the page about Python."""

from __future__ import annotations

import doctest

from cpsched.modelling import model


def test_the_docstring_is_right() -> None:
    """What the docstring of `Model` shows is what happens."""
    failed, tried = doctest.testmod(model)
    assert tried > 4
    assert failed == 0
