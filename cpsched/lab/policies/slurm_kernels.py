"""Kernels of Slurm's backfill cycle: reservations for waiting jobs, up to one that can start now."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv import FOREVER, Array, Scratch, Tables, TimelineState, inner_kernel, kernel, kernels

BLOCK, DONE, GROW_STATE, JOINT = kernels.BLOCK, kernels.R.DONE, kernels.R.GROW_STATE, kernels.F.JOINT
D_FLAGS, LAZY, LOW = kernels.D.FLAGS, kernels.LAZY, kernels.LOW
H_BLOCKS, H_SPARE_BLOCKS, H_SPARE_ROWS = kernels.H.BLOCKS, kernels.H.SPARE_BLOCKS, kernels.H.SPARE_ROWS
add_break, earliest_fit, is_good, locate = kernels.add_break, kernels.earliest_fit, kernels.is_good, kernels.locate
remember_start, remembered_start = kernels.remember_start, kernels.remembered_start
summarise_system, take_placement = kernels.summarise_system, kernels.take_placement

#: The next job of the queue can start now.
STARTS = -1


class Requests(NamedTuple):
    """What jobs ask for, and what is known of it."""

    #: int64 (jobs,)
    demand_of: NDArray[Any]
    #: int64 (jobs,): estimated durations.
    estimates: NDArray[Any]
    #: The results for equal demands since resources were last given back (`kernels.remembered_start`).
    memory: NDArray[Any]


@kernel
def last_that_fits(
    queue: Array, now: int, demand_of: Array, timeline: TimelineState, tables: Tables, scratch: Scratch
) -> int:
    """Return the last index of the queue whose job fits at this moment, -1 if there is none."""
    place, index = locate(now, timeline)
    for k in range(queue.shape[0] - 1, -1, -1):
        demand = demand_of[queue[k]]
        if is_good(timeline.order[place], index, demand, timeline, tables):
            start, _ = earliest_fit(demand, now, 1, now, timeline, tables, scratch)
            if start >= 0:
                return k
    return -1


@kernel
def reserve(
    queue: Array,
    begin: int,
    now: int,
    latest: int,
    resolution: int,
    by_nodes: bool,
    requests: Requests,
    timeline: TimelineState,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Reserve for each job of ``queue[begin:]`` its earliest start, if that is not later than `latest`. Stop at the
    first job that can start now; nothing is booked for it.

    Returns (DONE, GROW_STATE or STARTS, index in the queue that was reached, number of `entries`).
    """
    for k in range(begin, queue.shape[0]):
        if timeline.head[H_SPARE_ROWS] < 2 or timeline.head[H_SPARE_BLOCKS] < 2:
            return GROW_STATE, k, 0
        demand, duration = requests.demand_of[queue[k]], requests.estimates[queue[k]]
        earliest = now
        if tables.demands[demand, D_FLAGS] & JOINT == 0:
            earliest = remembered_start(requests.memory[demand], now, duration, FOREVER)
        start, count = -1, 0
        if earliest <= latest:
            start, count = earliest_fit(demand, earliest, duration, latest, timeline, tables, scratch)
            remember_start(requests.memory[demand], now, duration, start if start >= 0 else latest + 1)
        if start == now:
            return STARTS, k, count
        if start < 0:
            continue
        end = start + duration
        if by_nodes:
            start = max(now, start - start % resolution)
            end += -end % resolution
        add_break(start, timeline)
        add_break(end, timeline)
        if by_nodes:
            occupy(scratch.entries, count, start, end, timeline, tables)
        else:
            take_placement(demand, scratch.entries, count, start, end, -1, timeline, tables, scratch)
    return DONE, queue.shape[0], 0


@inner_kernel
def occupy(entries: Array, count: int, start: int, end: int, timeline: TimelineState, tables: Tables) -> None:
    """Take all free resources of the nodes of `entries` in ``[start, end)``; both must be breakpoints."""
    place, index = locate(start, timeline)
    while place < timeline.head[H_BLOCKS]:
        block = timeline.order[place]
        stop = index
        while stop < timeline.members[block, BLOCK] and timeline.slots[timeline.members[block, stop], 0] < end:
            stop += 1
        for e in range(count):
            run = tables.run_of[entries[e, 0]]
            for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
                column = tables.runcols[k] + entries[e, 0] - tables.runs[run, 0]
                empty(column, block, index, stop, timeline, tables)
        for q in range(timeline.srows.shape[1]):
            summarise_system(block, q, timeline)
        if stop < timeline.members[block, BLOCK]:
            return
        place, index = place + 1, 0


@kernel
def empty(column: int, block: int, index: int, stop: int, timeline: TimelineState, tables: Tables) -> None:
    """Take the free amount of a node column in some slots of a block."""
    lazy = timeline.blk[block, LAZY, column]
    for m in range(index, stop):
        row = timeline.members[block, m]
        left = timeline.rows[row, column] + lazy
        if left > 0:
            timeline.rows[row, column] -= left
            for part in range(2):
                if tables.colsys[column, part] >= 0:
                    timeline.srows[row, tables.colsys[column, part]] -= left
    if stop > index:
        timeline.blk[block, LOW, column] = min(timeline.blk[block, LOW, column], 0)
