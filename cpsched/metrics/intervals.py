"""Confidence intervals of means over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

#: A sum has ended when its terms are smaller than this part of it.
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """A mean with its confidence interval of 95 %, ``mean ± half_width``."""

    mean: float
    #: None where there is only one value.
    half_width: float | None
    count: int


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Return the mean of independent values (one per seed) and Student's confidence interval of 95 %, t · s / √n.

    Raises `ValueError` if there are no values.
    """
    if not values:
        raise ValueError("expected at least one value, got none")
    count = len(values)
    half_width = None
    if count > 1:
        half_width = student_quantile(0.975, count - 1) * stdev(values) / math.sqrt(count)
    return MeanInterval(mean=fmean(values), half_width=half_width, count=count)


def student_quantile(share: float, freedom: int) -> float:
    """Return the value below which Student's t is with a probability, to 8 digits.

    `share`: the probability, from 0.5 to less than 1. `freedom`: the degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while _student_tail(high, freedom) > 1 - share:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_tail(middle, freedom) > 1 - share else (low, middle)
    return high


def _student_tail(value: float, freedom: int) -> float:
    """Return the probability that Student's t is above a value >= 0 (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(value, math.sqrt(freedom))
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        term *= squared * (2 * step + 1 + is_odd) / (2 * step + 2 + is_odd)
        if term < _NEGLIGIBLE * total:
            break
    inside = math.sin(angle) * total
    return 0.5 - (angle + inside) / math.pi if is_odd else 0.5 - inside / 2
