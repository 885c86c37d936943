"""Means over seeds with their confidence intervals."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from cpsched.metrics import mean_interval
from cpsched.metrics.intervals import student_quantile


@pytest.mark.parametrize(
    ("count", "quantile"),
    # the table of Student's t that stands in every textbook, two-sided, 95 %
    [(2, 12.706), (5, 2.776), (10, 2.262), (31, 2.042)],
)
def test_half_widths_are_those_of_the_table(count: int, quantile: float) -> None:
    """The half width is t · s / √n with the quantiles of the printed table."""
    values = [float(value) for value in range(count)]
    mean = (count - 1) / 2
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    found = mean_interval(values)
    assert (found.mean, found.count) == (mean, count)
    assert found.half_width == pytest.approx(quantile * deviation / math.sqrt(count), rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.6, 0.9, 0.975, 0.9999])
def test_quantiles_are_right_where_they_have_a_closed_form(share: float) -> None:
    """With 1, 2 and 4 degrees of freedom; with very many they are those of the normal distribution."""
    tail = 4 * share * (1 - share)
    assert student_quantile(share, 1) == pytest.approx(math.tan(math.pi * (share - 0.5)), rel=1e-8)
    assert student_quantile(share, 2) == pytest.approx(2 * (share - 0.5) * math.sqrt(2 / tail), rel=1e-8)
    of_four = 2 * math.sqrt(math.cos(math.acos(math.sqrt(tail)) / 3) / math.sqrt(tail) - 1)
    assert student_quantile(share, 4) == pytest.approx(of_four, rel=1e-7)
    assert student_quantile(share, 10**5) == pytest.approx(NormalDist().inv_cdf(share), rel=1e-4)


def test_one_value_has_no_interval() -> None:
    """One value has a mean and does not say how it varies; equal ones say that they do not."""
    assert mean_interval([3.0]).half_width is None
    assert mean_interval([3.0, 3.0]).half_width == 0.0


def test_bad_arguments_are_refused() -> None:
    """No values have no mean."""
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])
