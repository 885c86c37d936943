"""Kernels that let planned jobs move up when something was given back: `Timeline.compress`."""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import DONE, H_BLOCKS, following, is_good, last_bad, locate, next_good, place_jobs


@kernel
def may_gain(
    demand, earliest, duration, start, until, head, slots, order, members, srows, sblk, demands, sysreq
):  # fmt: skip
    """Tell whether the sums over the system let a job, booked from `start` on, begin before that, and before `until`.

    What it has booked itself is no obstacle: so what lies in its own booking need not be looked at.
    """
    place, index = locate(head, slots, order, members, earliest)
    if until == earliest + 1 and not is_good(order[place], index, demand, members, srows, sblk, demands, sysreq):
        return False
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
    queue, begin, depth, unseen, jobs, starts, spans, pool, used, bounds, waits_of, waits, followers_of, followers,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Give each of ``queue[begin:]`` an earlier start that can gain from what was given back before ``unseen[job]``;
    from the place `depth` on, only if that is its earliest possible start.

    Returns (DONE or what must grow, place in the queue that was reached).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        demand, earliest, latest, duration, start = jobs[job, 0], jobs[job, 1], jobs[job, 2], jobs[job, 3], starts[job]
        until = unseen[job] if k < depth else min(unseen[job], earliest + 1)
        if start < 0 or until <= earliest:
            continue
        if may_gain(
            demand, earliest, duration, start, until, head, slots, order, members, srows, sblk, demands, sysreq
        ):
            jobs[job, 2] = min(latest, until - 1)
            code, _, moved = place_jobs(
                queue, k, k + 1, jobs, starts, spans, pool, used, bounds, waits_of, waits, followers_of, followers,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
                free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
            jobs[job, 2] = latest
            if code != DONE:
                return code, k
            if moved:
                for other in queue:
                    unseen[other] = max(unseen[other], start + duration)
        if k < depth:
            unseen[job] = 0
    return DONE, queue.shape[0]
