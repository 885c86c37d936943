"""Ruin and recreate of jobs that evolve over whole nodes of one kind, compiled: nodes are only counted.

A job is given by its `pieces`, without holes and in time order. No piece is held longer than it asks for (the noX of
Klein and Pérez, EVO-11), so that the start of a job determines its place.

The nodes in use form a profile, a step function: ``times[i]`` ascends from 0 on, and ``used[i]`` nodes are held in
``[times[i], times[i + 1])``. The last entry of `used` is 0 and has no end. ``size[0]`` counts the breakpoints: 0, the
ends of running jobs, and the times at which a piece begins or ends. The arrays have room for all of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import NOWHERE, inner_kernel, kernel, kernels
from cpsched.search.place_kernels import below, cost_of, latest_for, uniform
from cpsched.search.ruin_kernels import choose_any, choose_near, sort_in

#: The most jobs that one step removes; most steps remove up to `FEW`.
MOST_REMOVED, FEW = 30, 8

# columns of `pieces`: begin and end, counted from the start of the job, and the number of nodes
SINCE, UNTIL, AMOUNT = 0, 1, 2
# columns of `jobs`: the first piece, and the one after the last
FIRST, BEHIND = 0, 1


class Shapes(NamedTuple):
    """The jobs, and the machine."""

    #: int64 (jobs, 2): see ``FIRST``.
    jobs: NDArray[Any]
    #: int64 (pieces, 3): see ``SINCE``.
    pieces: NDArray[Any]
    #: The number of nodes.
    capacity: int


class Costs(NamedTuple):
    """What starts cost."""

    #: int64 (jobs,): earliest starts.
    earliest: NDArray[Any]
    #: float64 (jobs, ·): true costs, and those by which steps are accepted, see `cost_of`.
    costs: NDArray[Any]
    guide: NDArray[Any]
    #: float64 (jobs,): jobs with small ranks are inserted first.
    ranks: NDArray[Any]
    #: The price of a second of the last end.
    end_price: float


class Draft(NamedTuple):
    """What a step writes down."""

    #: uint64 (1,): the state of the random numbers.
    random: NDArray[Any]
    #: int64 (jobs + 1,): the step in which a job was last removed; the last one is the present step.
    marks: NDArray[Any]
    #: int64 and float64 (MOST_REMOVED,): the removed jobs, and their keys.
    chosen: NDArray[Any]
    keys: NDArray[Any]


class Plan(NamedTuple):
    """The starts of the jobs, `NOWHERE` for none, and the profile of the nodes in use."""

    starts: NDArray[Any]
    times: NDArray[Any]
    used: NDArray[Any]
    size: NDArray[Any]


# --- the profile -----------------------------------------------------------------------------------------------------


@inner_kernel
def piece_at(time, p):
    """Return the last breakpoint that is not after `time`."""
    low, high = 0, p.size[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if p.times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def earliest_start(job, earliest, latest, a, p):
    """Return the first start from `earliest` on at which all pieces fit; `NOWHERE` if it is after `latest`.

    Where a piece does not fit, no start fits before the piece begins after the last breakpoint with too few free nodes:
    the start jumps there. The start is found when all pieces in turn fit.
    """
    first, behind = a.jobs[job, FIRST], a.jobs[job, BEHIND]
    start, piece, content = earliest, first, 0
    while content < behind - first:
        if start > latest:
            return NOWHERE
        since, room = start + a.pieces[piece, SINCE], a.capacity - a.pieces[piece, AMOUNT]
        at = piece_at(start + a.pieces[piece, UNTIL] - 1, p)
        while p.used[at] <= room and p.times[at] > since:
            at -= 1
        if p.used[at] > room:
            start = p.times[at + 1] - a.pieces[piece, SINCE]
            content = 0
        else:
            content += 1
            piece = piece + 1 if piece + 1 < behind else first
    return start


@kernel
def hold(job, start, sign, a, p):
    """Add the nodes of a job that begins at `start` (`sign` 1), or subtract them (-1); return the index of
    the breakpoint at `start`.

    Breakpoints that are no longer needed stay.
    """
    first, behind = a.jobs[job, FIRST], a.jobs[job, BEHIND]
    new = 0
    for place in range(first, behind + 1):
        border = start + (a.pieces[place, SINCE] if place < behind else a.pieces[behind - 1, UNTIL])
        if p.times[piece_at(border, p)] != border:
            new += 1
    at, to, place = p.size[0] - 1, p.size[0] - 1 + new, behind
    p.size[0] += new
    while at < to:  # an entry moves by the number of new breakpoints before it
        border = start + (a.pieces[place, SINCE] if place < behind else a.pieces[behind - 1, UNTIL])
        while p.times[at] > border:
            p.times[to], p.used[to] = p.times[at], p.used[at]
            at -= 1
            to -= 1
        if p.times[at] < border:
            p.times[to], p.used[to] = border, p.used[at]
            to -= 1
        place -= 1
    begin = piece_at(start, p)
    at = begin
    for place in range(first, behind):
        while p.times[at] < start + a.pieces[place, UNTIL]:
            p.used[at] += sign * a.pieces[place, AMOUNT]
            at += 1
    return begin


@kernel
def put_in(job, start, a, p):
    """Insert a job with its begin at `start`."""
    hold(job, start, 1, a, p)
    p.starts[job] = start


@kernel
def take_out(job, a, p):
    """Remove a job from the profile, with the breakpoints that only it needs."""
    at = hold(job, p.starts[job], -1, a, p)
    end = p.starts[job] + a.pieces[a.jobs[job, BEHIND] - 1, UNTIL]
    to = at
    while at < p.size[0] and (p.times[at] <= end or to < at):
        if to == 0 or p.used[to - 1] != p.used[at]:
            p.times[to], p.used[to] = p.times[at], p.used[at]
            to += 1
        at += 1
    if to < at:
        p.size[0] = to
    p.starts[job] = NOWHERE


# --- whole plans -----------------------------------------------------------------------------------------------------


@kernel
def settle(order, least, limit, costs, a, p):
    """Insert jobs in turn, each as early as it fits, none before its `least` start.

    Returns whether their starts cost no more than `limit`; if not, some jobs have no start.
    """
    for place in range(order.shape[0]):
        job = order[place]
        latest = latest_for(job, limit, costs)
        start = earliest_start(job, least[job], latest, a, p)
        if start == NOWHERE:
            return False
        put_in(job, start, a, p)
        limit -= cost_of(job, start, costs)
    return True


@inner_kernel
def cost_of_all(costs, end_price, a, p):
    """Return the cost of the jobs that have starts: that of the starts, and that of the last end."""
    cost, end = 0.0, np.int64(0)
    for job in range(p.starts.shape[0]):
        if p.starts[job] != NOWHERE:
            cost += cost_of(job, p.starts[job], costs)
            end = max(end, p.starts[job] + a.pieces[a.jobs[job, BEHIND] - 1, UNTIL])
    return cost + end_price * end


# --- the search ------------------------------------------------------------------------------------------------------


@inner_kernel
def insertion_key(style, rank, start, duration, random):
    """Return the key of a removed job in the order of insertion: random, its rank with noise, or its old start. `style`
    of ``[0, 1)`` chooses between these for all jobs that are removed together.
    """
    if style < 0.15:
        return uniform(random)
    if style < 0.6:
        noise = 0.3 if style < 0.4 else 1.5
        return rank * (1.0 + noise * (2.0 * uniform(random) - 1.0))
    return start * (1.0 + 0.3 * uniform(random)) + 0.3 * uniform(random) * duration


@inner_kernel
def choose_order(found, ranks, a, d, p):
    """Sort the removed jobs into the order in which they are inserted: at random, by rank with noise, or by old
    start.
    """
    style = uniform(d.random)
    for place in range(found):
        job = d.chosen[place]
        duration = a.pieces[a.jobs[job, BEHIND] - 1, UNTIL]
        sort_in(insertion_key(style, ranks[job], p.starts[job], duration, d.random), job, place, d.keys, d.chosen)


@kernel
def ruin_and_recreate(steps, temperature, best_value, best_starts, a, c, d, p, kept):
    """Do a number of steps of simulated annealing at a `temperature` in mean costs of a job.

    Steps are accepted by the costs of `guide`; the best plan is chosen by `costs`. The current plan is stored twice,
    the second time in the kept arrays, so that steps can be undone. Returns the cost of the best plan.
    """
    count = p.starts.shape[0]
    value = cost_of_all(c.guide, c.end_price, a, p)
    for _ in range(steps):
        d.marks[count] += 1
        most = MOST_REMOVED if uniform(d.random) < 0.05 else FEW
        wanted = 2 + below(d.random, min(most, count) - 1)
        if uniform(d.random) < 0.5:
            found = choose_near(wanted, p.starts, d)
        else:
            found = choose_any(wanted, d)
        choose_order(found, c.ranks, a, d, p)
        limit = value - temperature * value / count * np.log(max(uniform(d.random), 1e-300))
        for place in range(found):
            take_out(d.chosen[place], a, p)
        room = limit - cost_of_all(c.guide, c.end_price, a, p)
        found_value = np.inf
        if settle(d.chosen[:found], c.earliest, room, c.guide, a, p):
            found_value = cost_of_all(c.guide, c.end_price, a, p)
        if found_value > limit:
            copy_plan(kept, p)
            continue
        value = found_value
        copy_plan(p, kept)
        true_value = cost_of_all(c.costs, c.end_price, a, p)
        if true_value < best_value:
            best_value = true_value
            kernels.copy(best_starts, p.starts)
    return best_value


@inner_kernel
def copy_plan(plan, other):
    """Copy a plan to another one."""
    count = plan.size[0]
    other.size[0] = count
    kernels.copy(other.starts, plan.starts)
    kernels.copy(other.times[:count], plan.times)
    kernels.copy(other.used[:count], plan.used)
