"""Text for people: safe, and easy to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.cli.text import duration, percent, printable


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


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "00:00:00"), (59.6, "00:01:00"), (3661, "01:01:01"), (86399, "23:59:59"), (93784, "1d 02:03:04"),
     (-61, "-00:01:01")],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    """Seconds are shown as a clock, with days in front where there are any."""
    assert duration(seconds) == shown


def test_percent() -> None:
    """A share is shown with one digit behind the point."""
    assert percent(0.4215) == "42.1 %"
