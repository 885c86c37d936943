"""Text for people: safe, and easy to read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpsched.text import csv_cell, printable


@given(st.text())
def test_printable_text_has_no_power_over_the_terminal(text: str) -> None:
    """No control, format or surrogate character is left; what is printable stays as it is."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert len(shown.splitlines()) <= 1
    assert (shown == text) == text.isprintable()


def test_lines_are_kept_on_demand() -> None:
    """A message of several lines stays so, and only then."""
    assert printable("a\nb\r\x1b", keep_lines=True) == "a\nb\\r\\x1b"
    assert printable("a\nb\u2028c\u202ed") == r"a\nb\u2028c\u202ed"


def test_cells_are_no_formulas() -> None:
    """What a spreadsheet would take for a formula begins with an apostrophe."""
    assert [csv_cell(text) for text in ("=1+1", "+1", "-1", "@a", "a=1", "\t=1", "")] == [
        "'=1+1", "'+1", "'-1", "'@a", "a=1", r"'\t=1", "",
    ]  # fmt: skip
