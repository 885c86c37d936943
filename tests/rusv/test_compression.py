"""Compression against a naive pass through the whole queue: nobody is passed over who would move."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, Compression, Demands, JobTable, KindDemand, Layout, Run, Timeline
from tests.rusv.timeline_cases import JobRow, Pair, job_rows, pairs

pytestmark = pytest.mark.kernels

EXAMPLES = 150 if not numba.config.DISABLE_JIT else 30


@settings(max_examples=EXAMPLES)
@given(
    pairs(),
    st.lists(job_rows, min_size=2, max_size=14),
    st.permutations(range(14)),
    st.lists(st.tuples(st.sets(st.integers(0, 13), max_size=2), st.sampled_from([99, 99, 0, 1, 3])), min_size=3),
)
def test_compression_moves_whom_a_whole_pass_moves(
    pair: Pair, drawn: list[JobRow], shuffled: list[int], rounds: list[tuple[set[int], int]]
) -> None:
    """Jobs leave, and the others move up, to any start or to the first second only: who does so, and where to, is what
    comes out if each is taken out and planned again.

    All ask for chunks of one kind: several kinds may fit where they did not, after somebody else has moved.
    """
    single = [demand for demand in pair.numbers if len(pair.timeline.demands.kinds_of(demand)) == 1]
    assume(single)
    rows = [(single[number % len(single)], 0, FOREVER, duration) for number, _, _, duration in drawn]
    table = JobTable(rows)
    pair.timeline.plan(table, np.arange(len(rows)))
    placed = pair.plan_twin(rows)
    compression = Compression(pair.timeline, table)
    for leaving, depth in rounds:
        for job in leaving:
            if job < len(rows) and placed[job][0] != NOWHERE:
                compression.give_back(release(pair, table, job))
                placed[job] = (NOWHERE, ())
        queue = [job for job in shuffled if job < len(rows) and placed[job][0] != NOWHERE]
        compression.compress(np.array(queue, dtype=np.int64), depth)
        move_up(pair, rows, placed, queue, depth)
        assert pair.placed(table) == placed
        pair.assert_same()


def release(pair: Pair, table: JobTable, job: int) -> int:
    """Take a planned job out of both; return on how many nodes it stood, at the most."""
    demand, _, _, duration = table.jobs[job].tolist()
    start, entries = int(table.starts[job]), table.entries(job)
    pair.timeline.release(pair.timeline.booking_of(demand, entries, start, start + duration))
    pair.twin.release(pair.twin.booking_of(demand, entries.tolist(), start, start + duration))
    table.starts[job] = NOWHERE
    return len(entries)


def move_up(pair: Pair, rows: Sequence[JobRow], placed: list, queue: Sequence[int], depth: int) -> None:
    """Take one job after the other out of the twin, and put it where it fits first, or back."""
    for place, job in enumerate(queue):
        demand, earliest, _, duration = rows[job]
        start, entries = placed[job]
        if start == earliest:
            continue
        pair.twin.release(pair.twin.booking_of(demand, entries, start, start + duration))
        latest = start - 1 if place < depth else earliest
        found = pair.twin.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration)
        placed[job] = start, entries = found or placed[job]
        pair.twin.book(pair.twin.booking_of(demand, entries, start, start + duration))


def test_a_job_moves_within_its_own_booking() -> None:
    """One node; a job that stands in [5, 15) starts at 0 when [0, 5) gets free: its own booking is no obstacle."""
    layout = Layout(runs=(Run(length=1, resources=(0,), capacity=(4,), system=((0,),)),), system_capacity=(4,))
    demands = Demands(layout)
    demand = demands.add((KindDemand(need=2, most=2, takes=((0, ((0, 2),)),)),), system=((0, 4),))
    for depth in (0, 1):
        timeline = Timeline(demands)
        table = JobTable([(demand, 0, FOREVER, 5), (demand, 0, FOREVER, 10)])
        timeline.plan(table, np.arange(2))
        assert table.starts.tolist() == [0, 5]
        compression = Compression(timeline, table)
        timeline.release(timeline.booking_of(demand, table.entries(0), 0, 5))
        compression.give_back(1)
        compression.compress(np.array([1]), depth)
        assert table.starts[1] == 0
