"""Time passes on a timeline: it is then the one on which the same was booked from the new second 0 on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, JobTable, Timeline
from tests.rusv.linked_pairs import linked_pairs
from tests.rusv.timeline_cases import JobRow, Pair, assert_summaries, job_rows, pairs
from tests.sizes import examples

pytestmark = pytest.mark.kernels


@examples(150)
@given(pairs(), st.lists(job_rows, max_size=70), st.sets(st.integers(0, 69)), st.integers(0, 20))
def test_after_some_time_all_is_as_if_booked_then(
    pair: Pair, drawn: list[JobRow], gone: set[int], seconds: int
) -> None:
    """Some jobs are booked, and others gone by then; the rest is booked on a second timeline on its clock."""
    timeline = pair.timeline
    rows = [pair.row((number, earliest, FOREVER, duration)) for number, earliest, _, duration in drawn]
    table = JobTable(rows)
    timeline.plan(table, np.arange(len(rows)))
    other = Timeline(timeline.demands)
    for job, (demand, _, _, duration) in enumerate(rows):
        start = int(table.starts[job])
        if start == NOWHERE:
            continue
        booking = timeline.booking_of(demand, table.entries(job), start, start + duration)
        if job in gone or booking.end <= seconds:
            timeline.release(booking)
        else:
            other.book(replace(booking, start=max(0, start - seconds), end=booking.end - seconds))
    timeline.pass_time(seconds)
    assert timeline.breakpoints().tolist() == other.breakpoints().tolist()
    for time in timeline.breakpoints().tolist():
        for free, expected in zip(timeline.free_at(time), other.free_at(time), strict=True):
            assert np.array_equal(free, expected)
    assert_summaries(timeline)
    for booking in [timeline.booking_of(rows[0][0], table.entries(0), 0, 1)] if rows else []:
        assert timeline.is_free(booking) == other.is_free(booking)
    later = [(demand, max(0, earliest - seconds), FOREVER, duration) for demand, earliest, _, duration in rows]
    tables = [JobTable(later), JobTable(later)]
    for line, of_line in zip((timeline, other), tables, strict=True):
        line.plan(of_line, np.arange(len(later)))
    assert tables[0].starts.tolist() == tables[1].starts.tolist()


def test_the_times_of_a_table_pass_too() -> None:
    """Starts, earliest and latest starts are so many seconds nearer; what is over for a job is so, and what has no end
    still has none.
    """
    table = JobTable([(0, 0, FOREVER, 5), (0, 7, 12, 5), (0, FOREVER, FOREVER, 5), (0, 30, 40, 5)])
    table.starts[:] = 10, NOWHERE, NOWHERE, 30
    table.pass_time(9)
    assert table.starts.tolist() == [1, NOWHERE, NOWHERE, 21]
    assert table.jobs[:, 1].tolist() == [0, 0, FOREVER, 21]
    assert table.jobs[:, 2].tolist() == [FOREVER, 3, FOREVER, 31]


def test_rows_come_and_go() -> None:
    """The last job of a table gets the row of one that is gone, with its place; new ones come behind, without any."""
    table = JobTable([(0, 0, FOREVER, 5), (1, 0, FOREVER, 6), (2, 0, FOREVER, 7)])
    for job in (1, 2):
        table.keep(job, 10 * job, np.array([[job, 0, 1]], dtype=np.int32))
    table.drop(0)
    table.append([(3, 1, 2, 8)])
    table.link(linked_pairs(3, [(2, 0, 4)]))
    assert table.jobs[:, 0].tolist() == [2, 1, 3]
    assert table.starts.tolist() == [20, 10, NOWHERE]
    assert [table.entries(job).tolist() for job in range(3)] == [[[2, 0, 1]], [[1, 0, 1]], []]
    assert table.window(2) == (24, 2)


def test_the_entries_of_jobs_that_are_gone_are_forgotten() -> None:
    """However many jobs come and go, what a table keeps of them stays bounded, and those that stay keep theirs."""
    table = JobTable([(0, 0, FOREVER, 5)])
    table.keep(0, 3, np.array([[7, 0, 1]], dtype=np.int32))
    held = np.tile(np.array([[1, 0, 1]], dtype=np.int32), (30_000, 1))
    for _ in range(9):
        table.append([(1, 0, FOREVER, 5)])
        table.keep(1, 0, held)
        table.drop(1)
    assert table.used[0] < 150_000
    assert table.entries(0).tolist() == [[7, 0, 1]]
