"""The clock on which jobs arrive: the daily cycle, and what is left of a half hour."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.lab.workloads.assembly import (
    HALF_HOUR,
    arrivals_within,
    daily_cycle,
    gamma_share,
    on_the_clock,
    points_until,
    poisson_arrivals,
    random_numbers,
)
from cpsched.lab.workloads.lublin import STREAMS


def by_power_series(shape: float, most: float) -> float:
    """Return the gamma distribution function (scale 1) by its power series."""
    term = total = 1 / math.gamma(shape + 1)
    for number in range(1, 400):
        term *= most / (shape + number)
        total += term
    return total * most**shape * math.exp(-most)


@pytest.mark.parametrize("limit", [1e-3, 0.3, 1.0, 7.5, 60.0])
def test_the_gamma_distribution_is_right_where_it_has_a_closed_form(limit: float) -> None:
    """Of whole shapes it is one less a part of the exponential series, of 1/2 the error function."""
    for shape in (1, 2, 10):
        rest = sum(limit**k / math.factorial(k) for k in range(shape)) * math.exp(-limit)
        assert gamma_share(shape, limit) == pytest.approx(1 - rest, abs=1e-13)
    assert gamma_share(0.5, limit) == pytest.approx(math.erf(math.sqrt(limit)), abs=1e-13)


@pytest.mark.parametrize("stream", STREAMS)
def test_daily_cycle_is_the_published_distribution(stream: str) -> None:
    """Each half hour has its share of the gamma distribution, the one before 5:30 o'clock the first."""
    shape, scale = STREAMS[stream].cycle
    shares = [
        by_power_series(shape, (number + 0.5) / scale) - by_power_series(shape, (number - 0.5) / scale)
        for number in range(11, 59)
    ]
    mean = sum(shares) / 48
    expected = [shares[(bucket + 1 - 11) % 48] / mean for bucket in range(48)]
    assert daily_cycle(shape, scale).tolist() == pytest.approx(expected, rel=1e-9)


def test_afternoons_are_busy() -> None:
    """Jobs of all kinds are most between 13 and 15 o'clock, nine times as many as before 5:30."""
    cycle = daily_cycle(*STREAMS["whole"].cycle)
    assert 26 <= cycle.argmax() <= 29
    assert cycle.argmin() == 10
    assert cycle.max() / cycle.min() > 9


def by_walking(gaps: list[float], cycle: list[float]) -> list[float]:
    """Return when points are paid for, half hour by half hour, as the authors' program does it: the naive twin."""
    bucket, points, reminder, clock = 0, 0.0, 0.0, 0.0
    times = []
    for gap in gaps:
        points += gap
        while points > cycle[bucket]:
            points -= cycle[bucket]
            bucket = (bucket + 1) % len(cycle)
            clock += HALF_HOUR
        part = points / cycle[bucket]
        clock += HALF_HOUR * (part - reminder)
        reminder = part
        times.append(clock)
    return times


@given(st.lists(st.floats(1e-3, 100), min_size=1, max_size=30))
def test_the_clock_is_that_of_the_program(gaps: list[float]) -> None:
    """What a job leaves of a half hour is kept for the next one, as by walking through the half hours."""
    cycle = daily_cycle(*STREAMS["batch"].cycle)
    times = on_the_clock(np.cumsum(gaps), cycle)
    assert times.tolist() == pytest.approx(by_walking(gaps, cycle.tolist()), abs=1e-3)
    assert (np.diff(times) > 0).all()


def test_an_even_cycle_is_the_plain_clock() -> None:
    """Worked: where all half hours are alike, a point is half an hour."""
    assert on_the_clock(np.array([0.5, 1.0, 48.0, 49.5]), np.ones(48)).tolist() == [900, 1800, 86400, 89100]


def test_gaps_have_their_mean() -> None:
    """20,000 independent arrivals 60 s apart take their time, within four standard deviations and a cycle."""
    arrivals = poisson_arrivals(random_numbers(1), 20000, 60, daily_cycle(*STREAMS["whole"].cycle))
    assert abs(arrivals[-1] - 1.2e6) < 4 * 60 * math.sqrt(20000) + 86400 / 2


@given(st.integers(2, 50), st.floats(1, 1e7), st.integers(0, 2**64))
def test_arrivals_within_a_span(count: int, span: float, seed: int) -> None:
    """The first one is at midnight, the last one at the end, all others between them, in order."""
    arrivals = arrivals_within(random_numbers(seed), count, span, daily_cycle(*STREAMS["whole"].cycle))
    assert len(arrivals) == count
    assert arrivals[0] == 0
    assert arrivals[-1] == pytest.approx(span)
    assert (np.diff(arrivals) >= 0).all()


@given(st.floats(0, 1e7))
def test_points_and_seconds_are_inverse(second: float) -> None:
    """When the points are paid that are paid until a second, it is that second."""
    cycle = daily_cycle(*STREAMS["whole"].cycle)
    assert on_the_clock(np.array([points_until(second, cycle)]), cycle)[0] == pytest.approx(second, abs=1e-3)
