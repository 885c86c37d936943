"""Ruin and recreate of jobs that evolve over whole nodes of one kind, compiled: nodes are only counted.

A job is given by its `pieces`, without holes and in time order. No piece is held longer than it asks for (the noX of
Klein and Pérez, EVO-11), so that the start of a job determines its place.

The nodes in use form a profile, a step function: ``times[i]`` ascends from 0 on, and ``used[i]`` nodes are held in
``[times[i], times[i + 1])``. The last entry of `used` is 0 and has no end. ``size[0]`` counts the breakpoints: 0, the
ends of running jobs, and the times at which a piece begins or ends. The arrays have room for all of these.
"""

from __future__ import annotations

import numpy as np

from cpsched.rusv import NOWHERE, kernel
from cpsched.search.kernels import (
    below,
    choose_any,
    choose_near,
    cost_of,
    insertion_key,
    latest_for,
    sort_in,
    uniform,
)

#: The most jobs that one step removes; most steps remove up to `FEW`.
MOST_REMOVED, FEW = 30, 8

# columns of `pieces`: begin and end, counted from the start of the job, and the number of nodes
SINCE, UNTIL, AMOUNT = 0, 1, 2
# columns of `jobs`: the first piece, and the one after the last
FIRST, BEHIND = 0, 1


# --- the profile -----------------------------------------------------------------------------------------------------


@kernel
def piece_at(times, size, time):
    """Return the last breakpoint that is not after `time`."""
    low, high = 0, size[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def earliest_start(job, earliest, latest, jobs, pieces, times, used, size, capacity):
    """Return the first start from `earliest` on at which all pieces fit; `NOWHERE` if it is after `latest`.

    Where a piece does not fit, no start fits before the piece begins after the last breakpoint with too few free nodes:
    the start jumps there. The start is found when all pieces in turn fit.
    """
    first, behind = jobs[job, FIRST], jobs[job, BEHIND]
    start, piece, content = earliest, first, 0
    while content < behind - first:
        if start > latest:
            return NOWHERE
        since, room = start + pieces[piece, SINCE], capacity - pieces[piece, AMOUNT]
        at = piece_at(times, size, start + pieces[piece, UNTIL] - 1)
        while used[at] <= room and times[at] > since:
            at -= 1
        if used[at] > room:
            start = times[at + 1] - pieces[piece, SINCE]
            content = 0
        else:
            content += 1
            piece = piece + 1 if piece + 1 < behind else first
    return start


@kernel
def hold(job, start, sign, jobs, pieces, times, used, size):
    """Add the nodes of a job that begins at `start` (`sign` 1), or subtract them (-1); return the index of
    the breakpoint at `start`.

    Breakpoints that are no longer needed stay.
    """
    first, behind = jobs[job, FIRST], jobs[job, BEHIND]
    new = 0
    for place in range(first, behind + 1):
        border = start + (pieces[place, SINCE] if place < behind else pieces[behind - 1, UNTIL])
        if times[piece_at(times, size, border)] != border:
            new += 1
    at, to, place = size[0] - 1, size[0] - 1 + new, behind
    size[0] += new
    while at < to:  # an entry moves by the number of new breakpoints before it
        border = start + (pieces[place, SINCE] if place < behind else pieces[behind - 1, UNTIL])
        while times[at] > border:
            times[to], used[to] = times[at], used[at]
            at -= 1
            to -= 1
        if times[at] < border:
            times[to], used[to] = border, used[at]
            to -= 1
        place -= 1
    begin = piece_at(times, size, start)
    at = begin
    for place in range(first, behind):
        while times[at] < start + pieces[place, UNTIL]:
            used[at] += sign * pieces[place, AMOUNT]
            at += 1
    return begin


@kernel
def put_in(job, start, jobs, pieces, starts, times, used, size):
    """Insert a job with its begin at `start`."""
    hold(job, start, 1, jobs, pieces, times, used, size)
    starts[job] = start


@kernel
def take_out(job, jobs, pieces, starts, times, used, size):
    """Remove a job from the profile, with the breakpoints that only it needs."""
    at = hold(job, starts[job], -1, jobs, pieces, times, used, size)
    end = starts[job] + pieces[jobs[job, BEHIND] - 1, UNTIL]
    to = at
    while at < size[0] and (times[at] <= end or to < at):
        if to == 0 or used[to - 1] != used[at]:
            times[to], used[to] = times[at], used[at]
            to += 1
        at += 1
    if to < at:
        size[0] = to
    starts[job] = NOWHERE


# --- whole plans -----------------------------------------------------------------------------------------------------


@kernel
def settle(order, least, limit, jobs, pieces, starts, costs, times, used, size, capacity):
    """Insert jobs in turn, each as early as it fits, none before its `least` start.

    Returns whether their starts cost no more than `limit`; if not, some jobs have no start.
    """
    for place in range(order.shape[0]):
        job = order[place]
        latest = latest_for(job, limit, costs)
        start = earliest_start(job, least[job], latest, jobs, pieces, times, used, size, capacity)
        if start == NOWHERE:
            return False
        put_in(job, start, jobs, pieces, starts, times, used, size)
        limit -= cost_of(job, start, costs)
    return True


@kernel
def cost_of_all(jobs, pieces, starts, costs, end_price):
    """Return the cost of the jobs that have starts: that of the starts, and that of the last end."""
    cost, end = 0.0, np.int64(0)
    for job in range(starts.shape[0]):
        if starts[job] != NOWHERE:
            cost += cost_of(job, starts[job], costs)
            end = max(end, starts[job] + pieces[jobs[job, BEHIND] - 1, UNTIL])
    return cost + end_price * end


# --- the search ------------------------------------------------------------------------------------------------------


@kernel
def choose_order(found, jobs, pieces, starts, ranks, chosen, keys, random):
    """Sort the removed jobs into the order in which they are inserted: at random, by rank with noise, or by old
    start.
    """
    style = uniform(random)
    for place in range(found):
        job = chosen[place]
        duration = pieces[jobs[job, BEHIND] - 1, UNTIL]
        sort_in(insertion_key(style, ranks[job], starts[job], duration, random), job, place, keys, chosen)


@kernel
def ruin_and_recreate(
    steps, random, temperature, end_price, best_value, jobs, pieces, earliest, costs, guide, ranks, marks, chosen, keys,
    starts, times, used, size, kept_starts, kept_times, kept_used, kept_size, best_starts, capacity,
):  # fmt: skip
    """Do a number of steps of simulated annealing at a `temperature` in mean costs of a job.

    Steps are accepted by the costs of `guide`; the best plan is chosen by `costs`. The current plan is stored twice,
    the second time in the kept arrays, so that steps can be undone. Returns the cost of the best plan.
    """
    count = starts.shape[0]
    value = cost_of_all(jobs, pieces, starts, guide, end_price)
    for _ in range(steps):
        marks[count] += 1
        most = MOST_REMOVED if uniform(random) < 0.05 else FEW
        wanted = 2 + below(random, min(most, count) - 1)
        if uniform(random) < 0.5:
            found = choose_near(wanted, starts, chosen, marks, random)
        else:
            found = choose_any(wanted, starts, chosen, marks, random)
        choose_order(found, jobs, pieces, starts, ranks, chosen, keys, random)
        limit = value - temperature * value / count * np.log(max(uniform(random), 1e-300))
        for place in range(found):
            take_out(chosen[place], jobs, pieces, starts, times, used, size)
        room = limit - cost_of_all(jobs, pieces, starts, guide, end_price)
        found_value = np.inf
        if settle(chosen[:found], earliest, room, jobs, pieces, starts, guide, times, used, size, capacity):
            found_value = cost_of_all(jobs, pieces, starts, guide, end_price)
        if found_value > limit:
            copy(kept_starts, kept_times, kept_used, kept_size, starts, times, used, size)
            continue
        value = found_value
        copy(starts, times, used, size, kept_starts, kept_times, kept_used, kept_size)
        true_value = cost_of_all(jobs, pieces, starts, costs, end_price)
        if true_value < best_value:
            best_value = true_value
            best_starts[:] = starts
    return best_value


@kernel
def copy(starts, times, used, size, other_starts, other_times, other_used, other_size):
    """Copy the first plan to the other one."""
    other_starts[:] = starts
    other_size[0] = size[0]
    other_times[: size[0]] = times[: size[0]]
    other_used[: size[0]] = used[: size[0]]
