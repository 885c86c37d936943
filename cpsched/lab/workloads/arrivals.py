"""When jobs arrive: points in time, spread over days that are busy in the afternoon and quiet at night."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

HALF_HOUR = 1800
#: A sum has ended when its terms are smaller than this part of it.
_NEGLIGIBLE = 1e-17
_BUCKETS = 48
#: The cycle begins with the half hour of this number, in which fewest jobs arrive, and goes around the clock.
_FIRST = 11


def daily_cycle(shape: float, scale: float) -> NDArray[np.float64]:
    """Return how many jobs arrive in each half hour from midnight on, as multiples of their mean.

    They follow a gamma distribution over the numbers 11 to 58 of the half hours (Lublin and Feitelson, JPDC 63, 2003:
    ``anum``, ``bnum``).
    """
    numbers = np.arange(_FIRST, _FIRST + _BUCKETS)
    until = np.array([gamma_share(shape, (number - 0.5) / scale) for number in range(_FIRST, _FIRST + _BUCKETS + 1)])
    inside = np.diff(until)
    weights = np.empty(_BUCKETS)
    weights[(numbers - 1) % _BUCKETS] = inside
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def gamma_share(shape: float, limit: float) -> float:
    """Return the probability that a gamma distribution of scale 1 is below a limit > 0 (Abramowitz 6.5.29)."""
    term = math.exp(shape * math.log(limit) - limit - math.lgamma(shape + 1))
    total, step = 0.0, 0
    while term > _NEGLIGIBLE * total:
        total += term
        step += 1
        term *= limit / (shape + step)
    return min(1.0, total)


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
    """Return when two jobs or more arrive by themselves: one at midnight, one `span` s later, all else between."""
    parts = np.concatenate(([0.0], np.sort(draw.random(count - 2)), [1.0]))
    return on_the_clock(parts * points_until(span, cycle), cycle)
