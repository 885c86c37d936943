"""Text for people: safe, and easy to read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpsched.cli.text import printable


@given(st.text())
def test_printable_text_has_no_power_over_the_terminal(text: str) -> None:
    """No control, format or surrogate character is left, and every character keeps its place."""
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert shown.encode().decode() == shown
    assert all(new == old for new, old in zip(shown, text, strict=True) if old.isprintable())


def test_lines_are_kept_on_demand() -> None:
    """A message of several lines stays so, and only then."""
    assert printable("a\nb\r\x1b", keep_lines=True) == "a\nb\ufffd\ufffd"
    assert printable("a\nb") == "a\ufffdb"
