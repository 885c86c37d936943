"""Numbers in words, and ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.charts import Unit, duration, shortened, unit_text
from cpsched.charts.units import date_ticks, duration_ticks


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.SECONDS, 7980, "2 h 13 min"),
        (Unit.SECONDS, 0, "0 s"),
        (Unit.SECONDS, 3.14159, "3.14 s"),
        (Unit.SECONDS, 0.0123, "12.3 ms"),
        (Unit.SECONDS, 2.2e-6, "2.2 µs"),
        (Unit.SECONDS, -90, "-1 min 30 s"),
        (Unit.SHARE, 0.7114, "71.1%"),
        (Unit.DATE, 1396288800, "2014-03-31 18:00"),
        (Unit.DATE, 1e15, "9999-12-31 23:59"),
        (Unit.NUMBER, 12345, "12,345"),
        (Unit.NUMBER, 0.012345, "0.0123"),
        (Unit.NUMBER, 12345.6, "12,346"),
        (Unit.NUMBER, None, "-"),
        (Unit.NUMBER, float("nan"), "-"),
    ],
)
def test_numbers_are_written_by_their_unit(unit: Unit, value: float | None, text: str) -> None:
    """Durations have their two largest units, small ones a fraction; a missing number is a hyphen."""
    assert unit_text(unit, value) == text


def test_durations_and_names_are_short() -> None:
    """Two units of a duration, and names without their end."""
    assert duration(86400 * 3 + 3600 * 2 + 59) == "3 d 2 h"
    assert (shortened("abcdef", 6), shortened("abcdefg", 6)) == ("abcdef", "abcde…")


@given(st.floats(-1e8, 1e8), st.floats(1e-3, 1e8), st.integers(2, 10))
def test_ticks_of_durations_are_inside_and_few(low: float, length: float, most: int) -> None:
    """All are in the interval, at equal distances, and hardly more than asked for."""
    ticks = duration_ticks(low, low + length, most=most, is_log=False)
    slack = 1e-6 * max(1.0, abs(low), length)
    assert all(low - slack <= tick <= low + length + slack for tick in ticks)
    assert len(ticks) <= most + 1
    gaps = [after - before for before, after in pairwise(ticks)]
    assert all(gap == pytest.approx(gaps[0], rel=1e-3) for gap in gaps)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1, 1e5, [1, 60, 3600, 86400]),
        (2e-6, 9e-6, [2e-6, 5e-6]),
        (1e-6, 1e-2, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]),
        (4.1, 4.4, [4.1, 4.2, 4.3, 4.4]),
    ],
)
def test_ticks_of_logarithmic_durations(low: float, high: float, ticks: list[float]) -> None:
    """Seconds, minutes, hours and days; closer ones where too few of them are in the interval."""
    assert duration_ticks(low, high, most=6, is_log=True) == pytest.approx(ticks)


def test_ticks_of_dates() -> None:
    """Hours within days, days within months, months within years, and years."""
    day = 86400.0
    assert [label for _, label in date_ticks(0, day, most=4)] == ["01-01", "06:00", "12:00", "18:00", "01-02"]
    assert [label for _, label in date_ticks(0, 4 * day, most=4)] == [f"1970-01-0{k}" for k in range(1, 6)]
    assert [label for _, label in date_ticks(0, 200 * day, most=4)][:3] == ["1970-01", "1970-03", "1970-05"]
    assert [label for _, label in date_ticks(0, 4000 * day, most=4)] == ["1970", "1975", "1980"]
    assert len(date_ticks(-62135596800, 253402300799, most=6)) <= 7
