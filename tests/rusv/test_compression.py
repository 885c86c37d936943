"""Compression against a naive pass through the whole queue: no job is passed over that would move."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, Compression, Demands, JobTable, KindDemand, Layout, Run, Timeline
from tests.rusv.timeline_cases import DrawnDemand, JobRow, Pair, job_rows, pairs
from tests.sizes import examples

pytestmark = pytest.mark.kernels

#: The most jobs, and seconds in which they all end one after the other, each in 7 s.
MOST = 14
SECONDS = MOST * 7 + 1

EXAMPLES = 150 if not os.environ.get("NUMBA_DISABLE_JIT") else 30


#: A demand for the only core.
WHOLE = DrawnDemand(
    kinds=(KindDemand(need=1, most=1, takes=((0, ((0, 1),)),)),), system=(), licenses=(), exclusive=False, scatter=False
)
ONE_CORE = Layout(runs=(Run(length=1, resources=(0,), capacity=(1,), system=((),)),), system_capacity=())


@examples(EXAMPLES)
@given(
    pairs(SECONDS),
    st.lists(job_rows, min_size=2, max_size=MOST),
    st.permutations(range(MOST)),
    st.lists(st.tuples(st.sets(st.integers(0, 13), max_size=2), st.sampled_from([99, 99, 0, 1, 3])), min_size=3),
)
@example(  # as late as a job can end
    Pair(ONE_CORE, [WHOLE], SECONDS), [(0, 0, FOREVER, 7)] * MOST, list(range(MOST)), [({0}, 99), ({5}, 1), (set(), 99)]
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


def move_up(pair: Pair, rows: Sequence[JobRow], placed: list[Any], queue: Sequence[int], depth: int) -> None:
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


def test_a_job_moves_from_between_two_others() -> None:
    """One node; the third of four jobs in a row moves to the place of the first, and parts what the others hold, which
    asks for more steps than there were.
    """
    layout = Layout(runs=(Run(length=1, resources=(0,), capacity=(1,), system=((0,),)),), system_capacity=(1,))
    demands = Demands(layout)
    demand = demands.add((KindDemand(need=1, most=1, takes=((0, ((0, 1),)),)),), system=((0, 1),))
    timeline = Timeline(demands)
    table = JobTable([(demand, 0, FOREVER, 5)] * 4)
    timeline.plan(table, np.arange(4))
    assert table.starts.tolist() == [0, 5, 10, 15]
    compression = Compression(timeline, table)
    timeline.release(timeline.booking_of(demand, table.entries(0), 0, 5))
    table.starts[0] = NOWHERE
    compression.give_back(1)
    compression.compress(np.array([2]), 1)
    assert table.starts[2] == 0


@pytest.mark.parametrize("portion", [1, 3, 12])
def test_a_job_moves_when_as_many_nodes_were_given_back_as_it_lacks(portion: int) -> None:
    """Twelve nodes with a job each until 100, so that the job for all of them has its place then: it moves to 0 when
    the last one is gone, however many go at a time, and no sooner.
    """
    timeline, one, wide = twelve_nodes()
    table = JobTable([*[(one, 0, FOREVER, 100)] * 12, (wide, 0, FOREVER, 10)])
    timeline.plan(table, np.arange(13))
    compression = Compression(timeline, table)
    for first in range(0, 12, portion):
        assert table.starts[12] == 100
        for job in range(first, first + portion):
            timeline.release(timeline.booking_of(one, table.entries(job), 0, 100))
        compression.give_back(portion)
        compression.compress(np.array([12]), 1)
    assert table.starts[12] == 0


def test_a_license_given_back_with_one_node_is_enough_for_many() -> None:
    """The job for eleven nodes waits for the license that a job on one node has, not for nodes."""
    timeline, one, wide = twelve_nodes(licensed=True)
    table = JobTable([(one, 0, FOREVER, 100), (wide, 0, FOREVER, 10)])
    timeline.plan(table, np.arange(2))
    assert table.starts.tolist() == [0, 100]
    compression = Compression(timeline, table)
    compression.compress(np.array([1]), 1)
    timeline.release(timeline.booking_of(one, table.entries(0), 0, 100))
    compression.give_back(1)
    compression.compress(np.array([1]), 1)
    assert table.starts[1] == 0


def test_who_comes_among_the_first_is_looked_at_though_nothing_was_given_back() -> None:
    """One node, taken until 5; what was given back from 5 on lets the job move up, but not start at once: it does so
    when it is among the first.
    """
    layout = Layout(runs=(Run(length=1, resources=(0,), capacity=(1,), system=((0,),)),), system_capacity=(1,))
    demands = Demands(layout)
    demand = demands.add((KindDemand(need=1, most=1, takes=((0, ((0, 1),)),)),), system=((0, 1),))
    timeline = Timeline(demands)
    table = JobTable([(demand, 0, FOREVER, 5), (demand, 0, FOREVER, 15), (demand, 0, FOREVER, 20)])
    timeline.plan(table, np.arange(3))
    assert table.starts.tolist() == [0, 5, 20]
    compression = Compression(timeline, table)
    timeline.release(timeline.booking_of(demand, table.entries(1), 5, 20))
    compression.give_back(1)
    for depth, start in ((0, 20), (1, 5)):
        compression.compress(np.array([2]), depth)
        assert table.starts[2] == start


def twelve_nodes(*, licensed: bool = False) -> tuple[Timeline, int, int]:
    """Return a timeline of twelve nodes, a demand for one, and one for twelve; or for eleven, each with the license."""
    layout = Layout(runs=(Run(length=12, resources=(0,), capacity=(4,), system=((0,),)),), system_capacity=(48, 1))
    demands = Demands(layout)
    licenses = ((1, 1),) if licensed else ()
    one, wide = (
        demands.add(
            (KindDemand(need=need, most=need, takes=((0, ((0, 4),)),)),), system=((0, 4 * need),), licenses=licenses
        )
        for need in (1, 11 if licensed else 12)
    )
    return Timeline(demands), one, wide
