"""Ruin and recreate on the planner's timeline, compiled: remove a few jobs, insert them again, keep what is better.

The insertion is the planner's own (`earliest_fit` of the timeline's kernels), so that every state of the search is a
plan. Its cost is a sum over the jobs of a function of the start that never falls (`cost_of`), plus a price on
the last end. A step that makes the plan worse is kept with the probability of simulated annealing; the
temperature is given, in units of the mean cost of a job.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.planner import FIRST_KINK, LEVEL, RATE
from cpsched.rusv import FOREVER, NOWHERE, allocating_kernel, inner_kernel, kernel, kernels

#: The most jobs that one step removes.
MOST_REMOVED = 30
#: The most nodes that are cleared for a job, and the most chunks whose nodes are chosen one by one.
MOST_CLEARED = 8

# columns of `modes`: the part of a job's row in the job table that depends on the mode
F_DEMAND, F_LATEST, F_DURATION = 0, 1, 2
# columns of `fitting`: the number of chunks that fit on a node, and how many of them are taken
FITS, TAKEN = 0, 1
# places in `figures`
VALUE, STEPS, KEPT, FINES = 0, 1, 2, 3

#: The demand of a job in the mode in which the plan leaves it out.
NO_DEMAND = -1

#: The result for a list in which a job has no place, or that costs too much.
FAILED = 3
#: Where jobs are left out, such a part of the steps makes room for one of them.
_RESCUED = 0.3


class Costs(NamedTuple):
    """What starts cost, in each mode of a job, and where the jobs are now."""

    #: float64 (jobs, ·): costs of starts in the present modes, see `cost_of`.
    costs: NDArray[Any]
    #: int64 (jobs,): earliest starts that the jobs and their dependencies allow.
    least_starts: NDArray[Any]
    #: float64 (jobs,): jobs with small ranks are inserted first.
    ranks: NDArray[Any]
    #: uint64 (jobs, ·): a bit for each node that a job holds.
    nodes_of: NDArray[Any]
    #: int64 (jobs + 1,): where the modes of each job begin.
    first_mode: NDArray[Any]
    #: int64 (modes, 3): see ``F_*``.
    modes: NDArray[Any]
    #: float64 (modes, ·): costs of starts.
    mode_costs: NDArray[Any]
    #: int64 (jobs,): the present mode.
    taken: NDArray[Any]


class Draft(NamedTuple):
    """What a step writes down: the removed jobs, their old places, and the places found."""

    #: float64 (4,): see ``VALUE``; carried from call to call. `FINES` is the part of the value that is paid for jobs
    #: that the plan leaves out.
    figures: NDArray[Any]
    #: uint64 (1,): the state of the random numbers.
    random: NDArray[Any]
    #: int64 (jobs + 1,): the step in which a job was last removed; the last one is the present step.
    marks: NDArray[Any]
    #: int64 (MOST_REMOVED,): the removed jobs.
    chosen: NDArray[Any]
    #: float64 and int64 (MOST_REMOVED,): their keys, and their order of insertion.
    keys: NDArray[Any]
    sequence: NDArray[Any]
    #: int64 (MOST_REMOVED, 3): their old starts, numbers of entries, and modes.
    old: NDArray[Any]
    #: int32 (MOST_REMOVED, ·, 3): their old entries.
    old_pool: NDArray[Any]
    #: int32 (·, 3): the entries in the best mode so far of a job.
    best_entries: NDArray[Any]
    #: int64 (nodes, 2): see ``FITS``.
    fitting: NDArray[Any]


# --- random numbers and costs --------------------------------------------------------------------------------------


@kernel
def uniform(random):
    """Return the next number of ``[0, 1)`` (xorshift64, Marsaglia 2003)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


@kernel
def below(random, count):
    """Return a random integer of ``[0, count)``."""
    return np.int64(uniform(random) * count)


@kernel
def cost_of(job, start, costs):
    """Return the cost of a start: a constant, a price per second, and a further price per second beyond each kink."""
    cost = costs[job, LEVEL] + costs[job, RATE] * start
    for k in range(FIRST_KINK, costs.shape[1], 2):
        cost += costs[job, k] * max(0.0, start - costs[job, k + 1])
    return cost


@kernel
def latest_for(job, room, costs):
    """Return the latest start that costs no more than `room` (-1 if there is none)."""
    room -= costs[job, LEVEL]
    if room < 0.0:
        return np.int64(-1)
    rate, at = costs[job, RATE], 0.0
    for k in range(FIRST_KINK, costs.shape[1], 2):
        until = max(at, costs[job, k + 1])
        if rate * (until - at) > room:
            break
        room -= rate * (until - at)
        rate += costs[job, k]
        at = until
    return np.int64(min(at + room / rate + 1e-6, 1e17)) if rate > 0.0 else np.int64(FOREVER)


# --- which jobs to remove ------------------------------------------------------------------------------------------


@inner_kernel
def choose_near(wanted, starts, chosen, marks, random):
    """Choose a job, and others that start at about the same time: each the nearest of a few drawn."""
    count = starts.shape[0]
    chosen[0] = below(random, count)
    marks[chosen[0]] = marks[count]
    for place in range(1, wanted):
        nearest, distance = -1, FOREVER
        for _ in range(24):
            job = below(random, count)
            apart = abs(starts[job] - starts[chosen[0]])
            if marks[job] != marks[count] and apart < distance:
                nearest, distance = job, apart
        if nearest < 0:
            return place
        chosen[place] = nearest
        marks[nearest] = marks[count]
    return wanted


@inner_kernel
def choose_any(wanted, starts, chosen, marks, random):
    """Choose jobs at random."""
    count = starts.shape[0]
    found = 0
    for _ in range(wanted):
        job = below(random, count)
        if marks[job] != marks[count]:
            marks[job] = marks[count]
            chosen[found] = job
            found += 1
    return found


@inner_kernel
def one_of(firsts, jobs, milestone, random):
    """Choose one of the jobs of a milestone at random."""
    first, count = firsts[milestone], firsts[milestone + 1] - firsts[milestone]
    return jobs[first + (below(random, count) if count > 1 else 0), 0]


@inner_kernel
def choose_linked(wanted, d, j):
    """Choose a job, and others that wait for those chosen already or for which these wait, in a random walk."""
    count, links = j.starts.shape[0], j.links
    d.chosen[0] = below(d.random, count)
    d.marks[d.chosen[0]] = d.marks[count]
    found = 1
    for _ in range(3 * wanted):
        job = d.chosen[below(d.random, found)]
        before = links.waits_of[job + 1] - links.waits_of[job]
        after = links.leads_of[job + 1] - links.leads_of[job]
        if before + after == 0:
            continue
        link = below(d.random, before + after)
        if link < before:
            job = one_of(links.before_of, links.before, links.waits[links.waits_of[job] + link, 0], d.random)
        else:
            job = one_of(links.after_of, links.after, links.leads[links.leads_of[job] + link - before, 0], d.random)
        if d.marks[job] != d.marks[count]:
            d.marks[job] = d.marks[count]
            d.chosen[found] = job
            found += 1
            if found == wanted:
                break
    return found


@inner_kernel
def left_out_from(first, j):
    """Return the first job from `first` on, in a circle, that the plan leaves out; -1 if there is none."""
    count = j.starts.shape[0]
    for place in range(count):
        job = (first + place) % count
        if j.jobs[job, 0] == NO_DEMAND:
            return job
    return -1


@inner_kernel
def choose_in_the_way(num_nodes, c, d, j):
    """Choose a job whose wait costs much, an earlier start for it, and the jobs that run then on some consecutive
    nodes, as many as it holds. Or, where the plan leaves out jobs, one of them, a start in time, and some nodes.

    Returns how many were chosen, 0 if no job waits; the job for which room is made is the first.
    """
    count = j.starts.shape[0]
    waiting, dearest = -1, 0.0
    if d.figures[FINES] > 0.0 and uniform(d.random) < _RESCUED:
        waiting = left_out_from(below(d.random, count), j)
    if waiting >= 0:
        full = c.first_mode[waiting]
        earliest = kernels.earliest_after(waiting, j.jobs[waiting, 1], j)
        latest = kernels.latest_before(waiting, c.modes[full, F_LATEST], j)
        if latest < earliest:
            return 0
        latest = min(latest, max(earliest, last_end(j.jobs, j.starts)))
        begin = earliest + below(d.random, latest - earliest + 1)
        end, width = begin + c.modes[full, F_DURATION], 1 + below(d.random, min(num_nodes, MOST_CLEARED))
    else:
        for _ in range(3):
            job = below(d.random, count)
            cost = cost_of(job, j.starts[job], c.costs) - cost_of(job, c.least_starts[job], c.costs)
            if cost > dearest:
                waiting, dearest = job, cost
        if waiting < 0:
            return 0
        nearness = uniform(d.random)
        earliest = c.least_starts[waiting]
        begin = max(earliest, j.starts[waiting] - 1 - np.int64(nearness * nearness * (j.starts[waiting] - earliest)))
        end, width = begin + j.jobs[waiting, 3], min(num_nodes, min(j.spans[waiting, 1], MOST_CLEARED))
    d.chosen[0] = waiting
    d.marks[waiting] = d.marks[count]
    found = 1
    node, offset = below(d.random, num_nodes), below(d.random, count)
    for place in range(count):
        job = place + offset
        if job >= count:
            job -= count
        if j.starts[job] >= end or j.starts[job] + j.jobs[job, 3] <= begin or d.marks[job] == d.marks[count]:
            continue
        for k in range(width):
            at = (node + k) % num_nodes
            if c.nodes_of[job, at >> 6] & (np.uint64(1) << np.uint64(at & 63)) != np.uint64(0):
                d.chosen[found] = job
                d.marks[job] = d.marks[count]
                found += 1
                break
        if found == MOST_REMOVED:
            break
    return found


# --- order of insertion ----------------------------------------------------------------------------------------------


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
def sort_in(key, item, place, keys, items):
    """Insert an item into the first `place` items, which ascend by key."""
    while place > 0 and keys[place - 1] > key:
        keys[place], items[place] = keys[place - 1], items[place - 1]
        place -= 1
    keys[place], items[place] = key, item


@inner_kernel
def choose_order(found, is_way_made, c, d, j):
    """Set `sequence` to the order in which the removed jobs are inserted: by rank with noise, by old start, or at
    random.
    """
    style = uniform(d.random)
    for place in range(found):
        job = d.chosen[place]
        key = insertion_key(style, c.ranks[job], j.starts[job], j.jobs[job, 3], d.random)
        if place == 0 and is_way_made and uniform(d.random) < 0.9:
            key = -np.inf
        sort_in(key, place, place, d.keys, d.sequence)


@inner_kernel
def bring_forward(turn, found, d, j):
    """Make the first removed job that waits for none of the others the next one to be inserted."""
    at = turn
    while at < found - 1 and kernels.earliest_after(d.chosen[d.sequence[at]], 0, j) >= FOREVER:
        at += 1
    place = d.sequence[at]
    for k in range(at, turn, -1):
        d.sequence[k] = d.sequence[k - 1]
    d.sequence[turn] = place


# --- single jobs -----------------------------------------------------------------------------------------------------


@kernel
def note_nodes(job, spans, pool, nodes_of):
    """Set the bits of the nodes that a job holds."""
    for word in range(nodes_of.shape[1]):
        nodes_of[job, word] = np.uint64(0)
    for e in range(spans[job, 0], spans[job, 0] + spans[job, 1]):
        node = pool[e, 0]
        nodes_of[job, node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@kernel
def last_end(jobs, starts):
    """Return the end of the last job."""
    latest = np.int64(0)
    for job in range(starts.shape[0]):
        latest = max(latest, starts[job] + jobs[job, 3])
    return latest


@kernel
def take_out(job, j, s, t, x):
    """Release the resources of a job; its entries stay in the pool."""
    if j.jobs[job, 0] == NO_DEMAND:
        j.starts[job] = NOWHERE
        return
    start, end, first, count = j.starts[job], j.starts[job] + j.jobs[job, 3], j.spans[job, 0], j.spans[job, 1]
    kernels.take_placement(j.jobs[job, 0], j.pool[first : first + count], count, start, end, 1, s, t, x)
    kernels.drop_break(start, s)
    kernels.drop_break(end, s)
    j.starts[job] = NOWHERE


@kernel
def put_in(job, start, entries, count, j, s, t, x):
    """Book a job on these entries from `start` on; nothing is booked for one that is left out."""
    if j.jobs[job, 0] == NO_DEMAND:
        j.starts[job], j.spans[job, 1] = start, 0
        return
    kernels.keep_entries(j.pool, j.spans[job, 0], entries, count)
    j.starts[job], j.spans[job, 1] = start, count
    kernels.add_break(start, s)
    kernels.add_break(start + j.jobs[job, 3], s)
    kernels.take_placement(j.jobs[job, 0], entries, count, start, start + j.jobs[job, 3], -1, s, t, x)


# --- modes of a job --------------------------------------------------------------------------------------------------


@kernel
def take_mode(job, mode, c, j):
    """Set a job that has no place to one of its modes."""
    c.taken[job] = mode
    j.jobs[job, 0], j.jobs[job, 2] = c.modes[mode, F_DEMAND], c.modes[mode, F_LATEST]
    j.jobs[job, 3] = c.modes[mode, F_DURATION]
    for k in range(c.costs.shape[1]):
        c.costs[job, k] = c.mode_costs[mode, k]


@inner_kernel
def leaving_mode(job, c):
    """Return the mode in which a job is left out: its last one; -1 if no plan may leave it out."""
    last = c.first_mode[job + 1] - 1
    return last if c.modes[last, F_DEMAND] == NO_DEMAND else -1


@kernel
def least_cost(job, start, first_mode, mode_costs):
    """Return the cost of a start of a job in its cheapest mode."""
    least = np.inf
    for mode in range(first_mode[job], first_mode[job + 1]):
        least = min(least, cost_of(mode, start, mode_costs))
    return least


# --- places of jobs --------------------------------------------------------------------------------------------------


@inner_kernel
def earliest_place(demand, start, duration, latest, d, s, t, x):
    """Find the earliest start as `kernels.earliest_fit` does, and nodes for it. Half of the time the cheap nodes do not
    come first, but those with the least left over, or those from a random one on.

    Demands of several kinds are left to the planner's mapping.
    """
    if t.demands[demand, kernels.D_FLAGS] & kernels.JOINT or uniform(d.random) < 0.5:
        return kernels.earliest_fit(demand, start, duration, latest, s, t, x)
    start, side = earliest_window(demand, start, duration, latest, s, t, x)
    if start < 0:
        return start, 0
    kind = t.demands[demand, kernels.D_KIND]
    note_fitting(kind, x.free[side], d.fitting, t)
    if t.kinds[kind, kernels.K_NEED] <= MOST_CLEARED and uniform(d.random) < 0.5:
        map_tightly(kind, x.free[side], d.fitting, d.random, t)
    else:
        map_from(kind, below(d.random, d.fitting.shape[0]), d.fitting, t)
    count = 0
    for node in range(d.fitting.shape[0]):
        if d.fitting[node, TAKEN] > 0:
            x.entries[count, 0], x.entries[count, 1], x.entries[count, 2] = node, kind, d.fitting[node, TAKEN]
            count += 1
    return start, count


@inner_kernel
def earliest_window(demand, start, duration, latest, s, t, x):
    """Find the earliest start for a demand of one kind, for which no mapping is needed to prove it (see
    `kernels.earliest_fit`). Returns (start or -1, the half of `free` with the amounts free all the time).
    """
    place, index = kernels.locate(start, s)
    known_place, known_index = place, index
    while True:
        start, place, index, last_place, last_index = kernels.next_window(
            demand, start, duration, latest, place, index, known_place, known_index, s, t
        )
        if start < 0:
            return np.int64(-1), 0
        side, at, blocked = kernels.scan_window(demand, place, index, last_place, last_index, t.capacity, s, t, x)
        if at < 0:
            return start, side
        place, index = kernels.following(at, blocked, s)
        if place == s.head[kernels.H_BLOCKS]:
            return np.int64(-1), 0
        start = s.slots[s.members[s.order[place], index], 0]
        known_place, known_index = kernels.following(last_place, last_index, s)


@inner_kernel
def note_fitting(kind, free, fitting, t):
    """Set how many chunks of a kind fit on each node, and that none is taken."""
    fitting[:, :] = 0
    for segment in range(t.kinds[kind, kernels.K_SEG], t.kinds[kind + 1, kernels.K_SEG]):
        node = t.segments[segment, kernels.S_FIRST]
        for n in range(t.segments[segment, kernels.S_LENGTH]):
            fit = t.kinds[kind, kernels.K_MOST]
            for k in range(t.segments[segment, kernels.S_TERM], t.segments[segment + 1, kernels.S_TERM]):
                if free[t.terms[k, 0] + n] < fit * t.terms[k, 1]:
                    fit = free[t.terms[k, 0] + n] // t.terms[k, 1]
            fitting[node + n, FITS] = fit


@inner_kernel
def map_tightly(kind, free, fitting, random, t):
    """Take chunks, node by node, where about the least room is left for more of them."""
    left = t.kinds[kind, kernels.K_NEED]
    while left > 0:
        least, at = np.inf, -1
        for segment in range(t.kinds[kind, kernels.K_SEG], t.kinds[kind + 1, kernels.K_SEG]):
            node = t.segments[segment, kernels.S_FIRST]
            for n in range(t.segments[segment, kernels.S_LENGTH]):
                if fitting[node + n, FITS] == 0 or fitting[node + n, TAKEN] > 0:
                    continue
                take = min(left, fitting[node + n, FITS])
                rest = uniform(random)
                for k in range(t.segments[segment, kernels.S_TERM], t.segments[segment + 1, kernels.S_TERM]):
                    rest += free[t.terms[k, 0] + n] / t.terms[k, 1] - take
                if rest < least:
                    least, at = rest, node + n
        fitting[at, TAKEN] = min(left, fitting[at, FITS])
        left -= fitting[at, TAKEN]


@inner_kernel
def map_from(kind, first, fitting, t):
    """Take chunks on each node on which they fit, from node `first` on."""
    left, nodes = t.kinds[kind, kernels.K_NEED], fitting.shape[0]
    for k in range(nodes):
        at = (first + k) % nodes
        fitting[at, TAKEN] = min(left, fitting[at, FITS])
        left -= fitting[at, TAKEN]


# --- whole plans -----------------------------------------------------------------------------------------------------


@kernel
def clear(j, s, t, x):
    """Take all jobs out."""
    for job in range(j.starts.shape[0]):
        if j.starts[job] >= 0:
            take_out(job, j, s, t, x)


@kernel
def settle(queue, begin, limit, bounds, costs, c, j, s, t, x):
    """Place the jobs of ``queue[begin:]`` in turn, each as early as it fits beside the jobs already placed.

    `bounds` remembers the starts found for equal demands, as in `kernels.place_jobs`. `costs` has what starts cost in
    all modes. A job without a place is left out, if it may be.

    Returns (`kernels.DONE`, `kernels.GROW_STATE`, or `FAILED` if a job has no place or the list costs more than
    `limit`; index in the queue that was reached; the rest of `limit`).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        if s.head[kernels.H_SPARE_ROWS] < 2 or s.head[kernels.H_SPARE_BLOCKS] < 2:
            return kernels.GROW_STATE, k, limit
        demand, duration = j.jobs[job, 0], j.jobs[job, 3]
        released = kernels.earliest_after(job, j.jobs[job, 1], j)
        earliest, latest = released, kernels.latest_before(job, j.jobs[job, 2], j)
        is_noted = t.demands[demand, kernels.D_FLAGS] & kernels.JOINT == 0
        if is_noted:
            earliest = kernels.remembered_start(bounds[demand], released, duration, FOREVER)
        start, held = np.int64(-1), 0
        if earliest <= latest and earliest < FOREVER:
            start, held = kernels.earliest_fit(demand, earliest, duration, latest, s, t, x)
        if start < 0:
            leaving = leaving_mode(job, c)
            if leaving < 0 or released >= FOREVER:
                return FAILED, k, limit
            take_mode(job, leaving, c, j)
            start, held, is_noted = released, 0, False
        put_in(job, start, x.entries, held, j, s, t, x)
        if is_noted:
            kernels.remember_start(bounds[demand], released, duration, start)
        limit -= cost_of(c.taken[job], start, costs)
        if limit < 0.0:
            return FAILED, k, limit
    return kernels.DONE, queue.shape[0], limit


# --- the search ------------------------------------------------------------------------------------------------------


@kernel
def ruin_and_recreate(steps, temperature, end_price, c, d, j, s, t, x):
    """Do a number of steps of simulated annealing at a `temperature` in mean costs of a job.

    Half of the removed jobs with several modes keep their mode; the others take the one that costs least at their new
    place, or a random one: a job's loss in a smaller mode may be less than the gain of others. A job that fits nowhere
    is left out if it may be and if what that costs was saved elsewhere. Returns `kernels.DONE`,
    or `kernels.GROW_STATE` before a step for which an array is too small.
    """
    count, is_linked = j.starts.shape[0], j.links.waits.shape[0] > 0
    room = 2 * MOST_REMOVED + 2
    for _ in range(steps):
        if s.head[kernels.H_SPARE_ROWS] < room or s.head[kernels.H_SPARE_BLOCKS] < room:
            return kernels.GROW_STATE
        d.figures[STEPS] += 1
        d.marks[count] += 1
        style = uniform(d.random)
        most = MOST_REMOVED if uniform(d.random) < 0.05 else 8
        wanted = 2 + below(d.random, min(most, count) - 1)
        is_way_made = 0.35 <= style < 0.8
        if style < 0.35:
            found = choose_near(wanted, j.starts, d.chosen, d.marks, d.random)
        elif is_way_made:
            found = choose_in_the_way(t.run_of.shape[0], c, d, j)
        elif is_linked:
            found = choose_linked(wanted, d, j)
        else:
            found = choose_any(wanted, j.starts, d.chosen, d.marks, d.random)
        if found < 2:
            continue
        choose_order(found, is_way_made, c, d, j)
        before, least = 0.0, 0.0
        end_before = last_end(j.jobs, j.starts) if end_price > 0.0 else 0
        for place in range(found):
            job = d.chosen[place]
            before += cost_of(job, j.starts[job], c.costs)
            d.old[place, 0], d.old[place, 1], d.old[place, 2] = j.starts[job], j.spans[job, 1], c.taken[job]
            for e in range(j.spans[job, 1]):
                for part in range(3):
                    d.old_pool[place, e, part] = j.pool[j.spans[job, 0] + e, part]
            take_out(job, j, s, t, x)
            least += least_cost(job, c.least_starts[job], c.first_mode, c.mode_costs)
        mean = max(d.figures[VALUE] - d.figures[FINES], 0.0) / count
        limit = before - temperature * mean * np.log(max(uniform(d.random), 1e-300))
        after, inserted = 0.0, 0
        for turn in range(found):  # as long as the limit can still be kept
            if is_linked:
                bring_forward(turn, found, d, j)
            job = d.chosen[d.sequence[turn]]
            least -= least_cost(job, c.least_starts[job], c.first_mode, c.mode_costs)
            earliest = kernels.earliest_after(job, j.jobs[job, 1], j)
            first, last, leaving = c.taken[job], c.taken[job] + 1, leaving_mode(job, c)
            modes = c.first_mode[job + 1] - c.first_mode[job] - (1 if leaving >= 0 else 0)
            if c.taken[job] == leaving:
                first, last = c.first_mode[job], c.first_mode[job] + modes
            elif modes > 1:
                flip = uniform(d.random)
                if flip < 0.3:
                    first, last = c.first_mode[job], c.first_mode[job] + modes
                elif flip < 0.5:
                    first = c.first_mode[job] + below(d.random, modes)
                    last = first + 1
            start, held, mode, cheapest = np.int64(-1), 0, first, limit - after - least
            for other in range(first, last):
                latest = min(c.modes[other, F_LATEST], latest_for(other, cheapest, c.mode_costs))
                latest = kernels.latest_before(job, latest, j)
                if latest < earliest:
                    continue
                found_start, count_there = earliest_place(
                    c.modes[other, F_DEMAND], earliest, c.modes[other, F_DURATION], latest, d, s, t, x
                )
                if found_start < 0:
                    continue
                cost = cost_of(other, found_start, c.mode_costs)
                if start >= 0 and cost >= cheapest:
                    continue  # no job is shrunk in vain
                start, held, mode, cheapest = found_start, count_there, other, cost
                for e in range(held):
                    for part in range(3):
                        d.best_entries[e, part] = x.entries[e, part]
            if start < 0 and leaving >= 0 and earliest <= kernels.latest_before(job, FOREVER, j):
                cost = cost_of(leaving, earliest, c.mode_costs)
                if cost <= cheapest:
                    start, held, mode, cheapest = earliest, 0, leaving, cost
            if start < 0:
                break
            if mode != c.taken[job]:
                take_mode(job, mode, c, j)
            after += cheapest
            put_in(job, start, d.best_entries, held, j, s, t, x)
            inserted += 1
        if inserted == found:
            if end_price > 0.0:
                after += end_price * (last_end(j.jobs, j.starts) - end_before)
            if after <= limit:
                d.figures[VALUE] += after - before
                d.figures[KEPT] += 1
                for place in range(found):
                    note_nodes(d.chosen[place], j.spans, j.pool, c.nodes_of)
                continue
        for turn in range(inserted):  # not kept: all jobs return to their old places
            take_out(d.chosen[d.sequence[turn]], j, s, t, x)
        for place in range(found):  # in any order: their distances held before
            if c.taken[d.chosen[place]] != d.old[place, 2]:
                take_mode(d.chosen[place], d.old[place, 2], c, j)
            put_in(d.chosen[place], d.old[place, 0], d.old_pool[place], d.old[place, 1], j, s, t, x)
    return kernels.DONE


# --- prices ----------------------------------------------------------------------------------------------------------


@allocating_kernel
def best_starts_at_prices(needs, durations, costs, places, shares, times, paid, starts, used):
    """Set the start of each job to the time of the axis at which its cost and its payments are least in sum.

    Parameters
    ----------
    needs, durations, costs
        float64 (jobs, sums), (jobs,), and (jobs, times): the cost of each start.
    places, shares
        (jobs, times): the piece of the axis in which a job ends that starts at a time, and how far in it.
    times, paid
        (times,), and (sums, times): the axis, and the price of all of a sum from the axis's beginning to each time.
    starts, used
        Outputs: (jobs,), and (sums, pieces): the seconds of all of a sum that are used.

    Returns the costs and payments of all jobs in sum.
    """
    total = 0.0
    bill = np.zeros(times.shape[0])
    used[:, :] = 0.0
    for job in range(needs.shape[0]):
        bill[:] = 0.0
        for q in range(needs.shape[1]):
            need = needs[job, q]
            if need > 0.0:
                for k in range(times.shape[0]):
                    bill[k] += need * paid[q, k]
        least, at = np.inf, 0
        for k in range(times.shape[0]):
            place = places[job, k]
            cost = costs[job, k] + bill[place] + shares[job, k] * (bill[place + 1] - bill[place]) - bill[k]
            if cost < least:
                least, at = cost, k
        total += least
        starts[job] = times[at]
        end = times[at] + durations[job]
        for k in range(at, used.shape[1]):
            part = min(end, times[k + 1]) - times[k]
            if part <= 0.0:
                break
            for q in range(needs.shape[1]):
                used[q, k] += needs[job, q] * part
    return total
