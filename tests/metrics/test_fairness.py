"""Jain's index and the jobs that are overtaken, against examples and a literal twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.metrics import Ending, jain_index, overtaken
from tests.metrics.made_runs import Row, many_rows, runs_of


def is_overtaken(row: Row, others: list[Row]) -> bool:
    """Say of one job whether a later one, at least as large, started before it and while it waited."""
    if row.ending is Ending.REFUSED:
        return False
    start = math.inf if row.ending is Ending.WAITING else row.start
    return any(
        other.is_over and other.submit > row.submit and other.cores >= row.cores and other.start < start
        for other in others
    )


@given(many_rows)
def test_overtaken_jobs_are_those_of_the_definition(rows: list[Row]) -> None:
    """What is found by sorting for each bit is what is found by comparing each job with each."""
    assert overtaken(runs_of(*rows)).tolist() == [is_overtaken(row, rows) for row in rows]


def test_overtaken_jobs_among_hundreds() -> None:
    """The same with so many jobs that all bits of their places in the order are used."""
    drawn = np.random.Generator(np.random.PCG64(7)).integers(0, (200, 200, 9), size=(300, 3)).tolist()
    rows = [Row(submit, submit + wait, 999, cores=1 + cores) for submit, wait, cores in drawn]
    found = overtaken(runs_of(*rows))
    assert found.tolist() == [is_overtaken(row, rows) for row in rows]
    assert 0 < found.sum() < len(rows)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (Row(1, 5, 9, cores=4), True),
        (Row(1, 5, 9, cores=3), False),  # slips into a gap
        (Row(0, 5, 9, cores=4), False),  # came in the same second
        (Row(1, 10, 19, cores=4), False),  # started in the same second
    ],
)
def test_who_overtakes(later: Row, expected: bool) -> None:
    """A job of 4 cores that waits from 0 to 10 is overtaken by a later, no smaller job that starts before."""
    assert overtaken(runs_of(Row(0, 10, 20, cores=4), later)).tolist() == [expected, False]


def test_a_job_that_never_starts_is_overtaken() -> None:
    """Starving is being overtaken; a refused job is not, and overtakes nobody."""
    rows = (
        Row(0, cores=4, ending=Ending.WAITING),
        Row(0, cores=4, ending=Ending.REFUSED),
        Row(1, 5, 9, cores=4),
        Row(2, cores=9, ending=Ending.REFUSED),
    )
    assert overtaken(runs_of(*rows)).tolist() == [True, False, False, False]


def test_nobody_is_overtaken_where_nobody_is() -> None:
    """No jobs, no overtaken ones."""
    assert overtaken(runs_of()).tolist() == []


def test_jain_by_hand() -> None:
    """All alike are 1, one with everything is 1/n, 1 and 3 give 16/20; all 0 are alike, and nobody has no index."""
    assert jain_index([7.0, 7.0, 7.0]) == pytest.approx(1.0)
    assert jain_index([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain_index([1.0, 3.0]) == pytest.approx(0.8)
    assert jain_index([0.0, 0.0]) == 1.0
    assert jain_index([]) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any), st.floats(1e-3, 1e3))
def test_jain_lies_between_one_in_n_and_one_in_any_unit(values: list[float], factor: float) -> None:
    """The index is between 1/n and 1, and the unit does not matter."""
    index = jain_index(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index([value * factor for value in values]) == pytest.approx(index)
