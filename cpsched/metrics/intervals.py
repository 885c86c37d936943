"""Confidence intervals of means over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

__all__ = ["MeanInterval", "mean_interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """A mean with its confidence interval, ``mean ± half_width``."""

    mean: float
    #: None where there is only one value.
    half_width: float | None
    count: int
    level: float


def mean_interval(values: Sequence[float], level: float = 0.95) -> MeanInterval:
    """Return the mean of independent values (one per seed) and Student's confidence interval, t · s / √n.

    Raises
    ------
    ValueError
        If there are no values, or the level is not between 0 and 1.
    """
    if not values:
        raise ValueError("expected at least one value, got none")
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, got {level}")
    count = len(values)
    half_width = None
    if count > 1:
        from scipy.special import stdtrit  # the quantile of Student's t; slow to load, and seldom needed

        half_width = float(stdtrit(count - 1, (1 + level) / 2)) * stdev(values) / math.sqrt(count)
    return MeanInterval(mean=fmean(values), half_width=half_width, count=count, level=level)
