"""Intervals hold what they say, whatever the futures said."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.forecast import Calibration, Quantiles


def shares_within(draw: Callable[[random.Random], int], *, told: int = 2000) -> tuple[float, float]:
    """Forecast waits of 1,000 s, from 900 to 1,100; jobs start when `draw` says, hundreds later than they are told.
    Return the shares of starts of the second half before the interval, and beyond it.
    """
    calibration, chance = Calibration(), random.Random(1)
    early = late = 0
    waiting: list[tuple[int, str]] = []
    for number in range(told):
        now = 100 * number
        for start, job in [one for one in waiting if one[0] <= now]:
            calibration.started(job, start)
            waiting.remove((start, job))
        played = Quantiles(now + 900, now + 1000, now + 1100, 0)
        earliest, latest = calibration.levels(now, played, (0.1, 0.9))
        start = now + max(0, draw(chance))
        calibration.told(f"j{number}", played)
        waiting.append((start, f"j{number}"))
        if number >= told // 2:
            early += start < earliest
            late += start > latest
    return early / (told // 2), late / (told // 2)


@pytest.mark.parametrize("spread", [30, 100, 1000])
def test_a_tenth_of_the_starts_is_on_either_side(spread: int) -> None:
    """Futures that are too narrow, right, or too wide: the interval holds 80 % of the starts, a tenth on each side."""
    early, late = shares_within(lambda chance: 1000 + round(chance.uniform(-1.25, 1.25) * spread))
    assert early == pytest.approx(0.1, abs=0.04)
    assert late == pytest.approx(0.1, abs=0.04)


def test_jobs_that_still_wait_count() -> None:
    """Half of the jobs start after 1,000 s, half after 100,000 s: while these wait, they are known to be late."""
    _, late = shares_within(lambda chance: 1000 if chance.random() < 0.5 else 100_000)
    assert late < 0.15


def test_the_median_stays() -> None:
    """Without a past the ends are those of the futures, wider by 1.3 but for steps of the prior; what the past says
    moves them, never across the median. A forecast that is certain stays.
    """
    calibration, played = Calibration(), Quantiles(900, 1000, 1200, 0)
    low, high = calibration.levels(0, played, (0.1, 0.9))
    assert low == pytest.approx(870, abs=20)
    assert high == pytest.approx(1260, abs=40)
    for number in range(100):
        calibration.told(f"j{number}", played)
        calibration.started(f"j{number}", 1150)
    low, high = calibration.levels(0, played, (0.1, 0.9))
    assert low == 1000
    assert high == pytest.approx(1150, abs=30)
    assert calibration.levels(7, Quantiles(7, 7, 7, 0), (0.1, 0.5, 0.9)) == (7, 7, 7)


def test_new_jobs_are_judged_apart() -> None:
    """What became of forecasts of new jobs says nothing of those that have waited for a quarter of an hour."""
    calibration, new, old = Calibration(), Quantiles(900, 1000, 1200, 899), Quantiles(900, 1000, 1200, 900)
    before = calibration.levels(0, old, (0.1, 0.9))
    for number in range(100):
        calibration.told(f"j{number}", new)
        calibration.started(f"j{number}", 5000)
    assert calibration.levels(0, old, (0.1, 0.9)) == before
    assert calibration.levels(0, new, (0.9,))[0] > 4000


def test_a_job_that_never_starts_says_nothing() -> None:
    """A cancelled job is forgotten: the interval is that of before."""
    calibration, played = Calibration(), Quantiles(900, 1000, 1200, 0)
    before = calibration.levels(5000, played, (0.1, 0.9))
    calibration.told("a", played)
    calibration.started("a", None)
    calibration.started("b", 3)
    assert calibration.levels(5000, played, (0.1, 0.9)) == before


@given(
    scores=st.lists(st.tuples(st.integers(0, 3000), st.booleans()), max_size=50),
    low=st.integers(0, 1000),
    up=st.integers(0, 1000),
    now=st.integers(0, 3000),
)
def test_levels_ascend_and_are_not_before_now(scores: list[tuple[int, bool]], low: int, up: int, now: int) -> None:
    """Whatever became of the others: the times of higher chances are no earlier, and none is over."""
    calibration = Calibration()
    for number, (start, has_started) in enumerate(scores):
        calibration.told(f"j{number}", Quantiles(900, 1000, 1200, 0))
        if has_started:
            calibration.started(f"j{number}", start)
    found = calibration.levels(now, Quantiles(1000 - low, 1000, 1000 + up, 0), (0.1, 0.5, 0.8, 0.9))
    assert list(found) == sorted(found)
    assert found[0] >= now
