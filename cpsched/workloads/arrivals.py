"""When jobs arrive: points in time, spread over days that are busy in the afternoon and quiet at night."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["HALF_HOUR", "arrivals_within", "daily_cycle", "on_the_clock", "points_until", "poisson_arrivals"]

HALF_HOUR = 1800
_BUCKETS = 48
#: The cycle begins with the half hour of this number, in which fewest jobs arrive, and goes around the clock.
_FIRST = 11


def daily_cycle(shape: float, scale: float) -> NDArray[np.float64]:
    """Return how many jobs arrive in each half hour from midnight on, as multiples of their mean.

    They follow a gamma distribution over the numbers 11 to 58 of the half hours (Lublin and Feitelson, JPDC 63, 2003:
    ``anum``, ``bnum``).
    """
    from scipy.special import gammainc

    numbers = np.arange(_FIRST, _FIRST + _BUCKETS)
    inside = gammainc(shape, (numbers + 0.5) / scale) - gammainc(shape, (numbers - 0.5) / scale)
    weights = np.empty(_BUCKETS)
    weights[(numbers - 1) % _BUCKETS] = inside
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def on_the_clock(points: NDArray[np.float64], cycle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the seconds after midnight at which ascending points are paid for.

    Each half hour pays as many points as its weight, evenly; what a job leaves of a half hour is there for the next
    one. A mean half hour pays one point.
    """
    paid = np.concatenate(([0.0], np.cumsum(cycle)))
    days, rest = np.divmod(points, paid[-1])
    return np.asarray((days * _BUCKETS + np.interp(rest, paid, np.arange(_BUCKETS + 1.0))) * HALF_HOUR)


def points_until(second: float, cycle: NDArray[np.float64]) -> float:
    """Return how many points are paid until a second after midnight: the inverse of `on_the_clock`."""
    paid = np.concatenate(([0.0], np.cumsum(cycle)))
    days, rest = divmod(second / HALF_HOUR, _BUCKETS)
    return float(days * paid[-1] + np.interp(rest, np.arange(_BUCKETS + 1.0), paid))


def poisson_arrivals(
    draw: np.random.Generator, count: int, gap: float, cycle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when jobs arrive independently of each other (s after midnight), `gap` seconds apart in the mean."""
    return on_the_clock(np.cumsum(draw.exponential(gap / HALF_HOUR, count)), cycle)


def arrivals_within(
    draw: np.random.Generator, count: int, span: float, cycle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when jobs arrive independently of each other: one at midnight, one `span` seconds later, all else between.

    Of two jobs at least.
    """
    parts = np.concatenate(([0.0], np.sort(draw.random(count - 2)), [1.0]))
    return on_the_clock(parts * points_until(span, cycle), cycle)
