"""Kernels of Slurm's backfill cycle: reservations for waiting jobs, up to one that can start now."""

from __future__ import annotations

from cpsched.rusv import FOREVER, kernel, kernels

BLOCK, DONE, GROW_STATE, JOINT, LAZY, LOW = (
    kernels.BLOCK, kernels.DONE, kernels.GROW_STATE, kernels.JOINT, kernels.LAZY, kernels.LOW,
)  # fmt: skip
D_FLAGS, H_BLOCKS, H_SPARE_BLOCKS, H_SPARE_ROWS = (
    kernels.D_FLAGS, kernels.H_BLOCKS, kernels.H_SPARE_BLOCKS, kernels.H_SPARE_ROWS,
)  # fmt: skip
add_break, earliest_fit, is_good, locate = kernels.add_break, kernels.earliest_fit, kernels.is_good, kernels.locate
remember_start, remembered_start = kernels.remember_start, kernels.remembered_start
summarise_system, take_placement = kernels.summarise_system, kernels.take_placement

#: The next job of the queue can start now.
STARTS = -1


@kernel
def last_that_fits(
    queue, now, demand_of,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Return the last index of the queue whose job fits at this moment, -1 if there is none."""
    place, index = locate(head, slots, order, members, now)
    for k in range(queue.shape[0] - 1, -1, -1):
        demand = demand_of[queue[k]]
        if is_good(order[place], index, demand, members, srows, sblk, demands, sysreq):
            start, _ = earliest_fit(
                demand, now, 1, now, head, slots, order, members, rows, blk, srows, sblk,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, run_of,
                free, buffer, entries,
            )  # fmt: skip
            if start >= 0:
                return k
    return -1


@kernel
def reserve(
    queue, begin, now, latest, resolution, by_nodes, demand_of, estimates, memory,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Reserve for each job of ``queue[begin:]`` its earliest start, if that is not later than `latest`. Stop at the
    first job that can start now; nothing is booked for it.

    `memory` has the results for equal demands since resources were last given back.

    Returns (DONE, GROW_STATE or STARTS, index in the queue that was reached, number of `entries`).
    """
    for k in range(begin, queue.shape[0]):
        if head[H_SPARE_ROWS] < 2 or head[H_SPARE_BLOCKS] < 2:
            return GROW_STATE, k, 0
        demand, duration = demand_of[queue[k]], estimates[queue[k]]
        earliest = now
        if demands[demand, D_FLAGS] & JOINT == 0:
            earliest = remembered_start(memory[demand], now, duration, FOREVER)
        start, count = -1, 0
        if earliest <= latest:
            start, count = earliest_fit(
                demand, earliest, duration, latest, head, slots, order, members, rows, blk, srows, sblk,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, run_of,
                free, buffer, entries,
            )  # fmt: skip
            remember_start(memory[demand], now, duration, start if start >= 0 else latest + 1)
        if start == now:
            return STARTS, k, count
        if start < 0:
            continue
        end = start + duration
        if by_nodes:
            start = max(now, start - start % resolution)
            end += -end % resolution
        add_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
        add_break(end, head, slots, order, members, rows, blk, srows, sblk, spare)
        if by_nodes:
            occupy(
                entries, count, start, end, head, slots, order, members, rows, blk, srows, sblk, runs, runcols, colsys,
                run_of,
            )  # fmt: skip
        else:
            take_placement(
                demand, entries, count, start, end, -1, head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
    return DONE, queue.shape[0], 0


@kernel
def occupy(
    entries, count, start, end, head, slots, order, members, rows, blk, srows, sblk, runs, runcols, colsys, run_of
):  # fmt: skip
    """Take all free resources of the nodes of `entries` in ``[start, end)``; both must be breakpoints."""
    place, index = locate(head, slots, order, members, start)
    while place < head[H_BLOCKS]:
        block = order[place]
        stop = index
        while stop < members[block, BLOCK] and slots[members[block, stop], 0] < end:
            stop += 1
        for e in range(count):
            run = run_of[entries[e, 0]]
            for k in range(runs[run, 2], runs[run + 1, 2]):
                column = runcols[k] + entries[e, 0] - runs[run, 0]
                empty(column, block, index, stop, members, rows, blk, srows, colsys)
        for q in range(srows.shape[1]):
            summarise_system(block, q, members, srows, sblk)
        if stop < members[block, BLOCK]:
            return
        place, index = place + 1, 0


@kernel
def empty(column, block, index, stop, members, rows, blk, srows, colsys):
    """Take the free amount of a node column in some slots of a block."""
    lazy = blk[block, LAZY, column]
    for m in range(index, stop):
        row = members[block, m]
        left = rows[row, column] + lazy
        if left > 0:
            rows[row, column] -= left
            for part in range(2):
                if colsys[column, part] >= 0:
                    srows[row, colsys[column, part]] -= left
    if stop > index:
        blk[block, LOW, column] = min(blk[block, LOW, column], 0)
