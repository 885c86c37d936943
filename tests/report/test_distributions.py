"""Distributions and step functions beside the naive computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.charts import Axis, Box, Unit
from cpsched.report.distributions import MOST_POINTS, binned, box_chart, ecdf_chart, ecdf_points, step_points

AXIS = Axis(label="wait", unit=Unit.SECONDS)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3 * MOST_POINTS))
def test_each_point_of_a_curve_is_exact(values: list[int]) -> None:
    """The share at each point is that of the values which are not above it; the least and the largest are there."""
    x, y = ecdf_points(np.array(values, dtype=np.float64))
    assert len(x) <= MOST_POINTS + 2
    assert (x[0], x[-1], y[-1]) == (min(values), max(values), 1.0)
    for at, share in zip(x, y, strict=True):
        assert share == pytest.approx(sum(value <= at for value in values) / len(values))


STEPS = st.lists(
    st.tuples(st.integers(-500, 2000), st.integers(0, 9)), min_size=1, max_size=40, unique_by=lambda s: s[0]
)


@given(STEPS, st.integers(-600, 1500), st.integers(1, 3000))
def test_bins_have_the_means_of_the_function(steps: list[tuple[int, int]], begin: int, length: int) -> None:
    """Second by second: the mean and the largest value in each bin."""
    times, amounts = (np.array(column) for column in zip(*sorted(steps), strict=True))
    edges, means, largest = binned(times, amounts.astype(np.float64), begin, begin + length)
    assert (edges[0], edges[-1]) == (begin, begin + length)
    assert len(means) == len(largest) == len(edges) - 1 <= MOST_POINTS + 1

    def value(second: int) -> int:
        before = [amount for time, amount in sorted(steps) if time <= second]
        return before[-1] if before else 0

    for place in range(len(means)):
        inside = [value(second) for second in range(int(edges[place]), int(edges[place + 1]))]
        assert means[place] == pytest.approx(sum(inside) / len(inside))
        assert largest[place] == max(inside)


def test_few_steps_are_drawn_as_they_are() -> None:
    """No bins: the value at the beginning, each change, and the end."""
    assert step_points((0, 10, 50), (1, 2, 0), 5, 40) == ((5.0, 10.0, 40.0), (1.0, 2.0, 2.0), 0)
    assert step_points((), (), 5, 40) == ((5.0, 40.0), (0.0, 0.0), 0)
    many = range(10 * MOST_POINTS)
    x, _, width = step_points(list(many), [k % 2 for k in many], 0, 10 * MOST_POINTS)
    assert (len(x), width) == (MOST_POINTS + 1, 10)


def test_boxes_and_curves_leave_out_groups_without_jobs() -> None:
    """A box has the quantiles of its group, and so has the table beside it."""
    groups = {"a": np.arange(101.0), "b": np.empty(0), "c": np.array([7.0])}
    boxes = box_chart("t", "wait", AXIS, groups, by="queue")
    assert boxes.y.names == ("a", "c")
    assert [layer.quantiles for layer in boxes.layers if isinstance(layer, Box)] == [(5, 25, 50, 75, 95), (7,) * 5]
    assert boxes.tables[0].rows[0][:4] == ("a", "101", "5 s", "25 s")
    curves = ecdf_chart("t", AXIS, groups, by="queue", what="jobs")
    assert [row[0] for row in curves.tables[0].rows] == ["a", "c"]
    assert ecdf_chart("t", AXIS, {}, by="queue", what="jobs").layers == ()
