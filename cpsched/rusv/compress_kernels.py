"""Kernels that let planned jobs move up when something was given back: `Timeline.compress`."""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import DONE, H_BLOCKS, following, last_bad, locate, next_good, place_jobs


@kernel
def may_gain(
    demand, earliest, duration, start, until, head, slots, order, members, srows, sblk, demands, sysreq
):  # fmt: skip
    """Tell whether the sums over the system let a job, booked from `start` on, begin before that, and before `until`.

    What it has booked itself is no obstacle: so what lies in its own booking need not be looked at.
    """
    place, index = locate(head, slots, order, members, earliest)
    while True:
        place, index = next_good(demand, place, index, head, order, members, srows, sblk, demands, sysreq)
        if place < 0:
            return False
        begin = max(earliest, slots[members[order[place], index], 0])
        if begin >= start or begin >= until:
            return False
        last_place, last_index = locate(head, slots, order, members, min(begin + duration, start) - 1)
        bad_place, bad_index = last_bad(
            demand, last_place, last_index, place, index, order, members, srows, sblk, demands, sysreq
        )
        if bad_place < 0:
            return True
        place, index = following(bad_place, bad_index, order, members)
        if place == head[H_BLOCKS]:
            return False


@kernel
def compress_jobs(
    queue, begin, until, jobs, starts, spans, pool, used, bounds, waits_of, waits, followers_of, followers,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Give each of ``queue[begin:]`` that may gain from what was given back before `until` an earlier start, if it
    finds one. What those give back who move counts too.

    Returns (DONE or what must grow, place in the queue that was reached, before which second those have given something
    back who moved).
    """
    left = 0
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        start, duration = starts[job], jobs[job, 3]
        if start < 0 or not may_gain(
            jobs[job, 0], jobs[job, 1], duration, start, max(until, left),
            head, slots, order, members, srows, sblk, demands, sysreq,
        ):  # fmt: skip
            continue
        code, _, more = place_jobs(
            queue, k, k + 1, jobs, starts, spans, pool, used, bounds, waits_of, waits, followers_of, followers,
            head, slots, order, members, rows, blk, srows, sblk, spare,
            demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
            free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
        )  # fmt: skip
        if code != DONE:
            return code, k, left
        if more:
            left = max(left, start + duration)
    return DONE, queue.shape[0], left
