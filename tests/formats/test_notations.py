"""The small notations: array indices, item bounds, and the epoch."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import ItemBound
from cpsched.errors import SyntaxFault
from cpsched.formats.notations import check_cron, format_indices, format_items, parse_indices, parse_items


@pytest.mark.parametrize(
    ("text", "indices"),
    [("0-9", tuple(range(10))), ("1,3,5-9", (1, 3, 5, 6, 7, 8, 9)), ("0-20:5", (0, 5, 10, 15, 20)), ("7,2", (2, 7))],
)
def test_indices_come_out_ascending(text: str, indices: tuple[int, ...]) -> None:
    """The three forms of formats.md, and a list out of order."""
    assert parse_indices(text) == indices


@given(st.sets(st.integers(0, 2**31 - 1) | st.integers(0, 30), min_size=1))
def test_indices_survive_being_written(indices: set[int]) -> None:
    """Writing ascending indices and reading them gives the same."""
    ordered = tuple(sorted(indices))
    assert parse_indices(format_indices(ordered)) == ordered


def test_neighbouring_indices_are_joined() -> None:
    """Runs become ranges, single ones stay alone."""
    assert format_indices((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"


@pytest.mark.parametrize("text", ["", "a", "1,", "1-", "5-1", "1-5:0", "0-2147483648", "1 ,2", "1,1", "0-1000000"])
def test_what_is_no_list_of_indices_is_refused(text: str) -> None:
    """Broken lists, doubled and too many indices are faults."""
    with pytest.raises(SyntaxFault):
        parse_indices(text)


@pytest.mark.parametrize(
    ("text", "bound", "of_50"),
    [
        ("30", ItemBound(least=30), 30),
        ("45%", ItemBound(percent=Fraction(45)), 22),
        ("30/45%", ItemBound(least=30, percent=Fraction(45)), 30),
        ("12/33.3%", ItemBound(least=12, percent=Fraction(333, 10)), 16),
    ],
)
def test_item_bounds(text: str, bound: ItemBound, of_50: int) -> None:
    """``min/max%`` is the larger of the two, rounded down, and is written as it was read."""
    assert parse_items(text) == bound
    assert parse_items(text).of(50) == of_50
    assert format_items(bound) == text


@pytest.mark.parametrize("text", ["", "/", "%", "30/", "/45%", "30/45", "-1", "101%", "2147483648", "1.5", "30%/45%"])
def test_what_is_no_item_bound_is_refused(text: str) -> None:
    """Broken bounds, more than everything, and amounts beyond all are faults."""
    with pytest.raises(SyntaxFault):
        parse_items(text)


@given(st.text(st.sampled_from("0159*/-,L#W monfri"), max_size=20) | st.text(max_size=20))
def test_any_text_is_a_cron_expression_or_a_fault(text: str) -> None:
    """No other error leaves the check of five fields."""
    try:
        check_cron(f"* * {text} * *")
    except SyntaxFault as fault:
        assert "cron" in fault.message  # noqa: PT017 -- both outcomes are right


@pytest.mark.parametrize("text", ["* 8-17 * * mon-fri", "*/5 0,12 1-15/2 JAN,jun *", "0 0 31 4,6 1"])
def test_cron_expressions(text: str) -> None:
    """Lists, ranges and steps of numbers and names; where both days are given, one of them may never come."""
    check_cron(text)


@pytest.mark.parametrize(
    "text", ["* * L * *", "* * * * 5#2", "* * * * 5L", "5-5/2 * * * *", "* * * * mon-1/2", "0 0 30 2 *"]
)
def test_what_is_no_cron_expression_of_the_format(text: str) -> None:
    """What only the library knows, a step through one value, and a day that never comes are faults."""
    with pytest.raises(SyntaxFault):
        check_cron(text)
