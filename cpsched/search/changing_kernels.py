"""Ruin and recreate where jobs change while they run, compiled: evolving jobs, and malleable ones that shrink for
others and expand again.

The place of a job is a list of *parts*, each with the number of a step or of a mode and its entries: one part of a
rigid job, one for each step of an evolving job (`step_kernels` finds its place), one for each change of share of a
malleable job, which has all its parts on the same nodes. A malleable job counts its work in units, of which it does a
whole number in a second in each of its modes.

Rows of the tables are the waiting jobs and, behind these, the running jobs that a plan may change. A running job keeps
its start, its nodes, and what it takes of them in each mode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.metrics import SLOWDOWN_TAU
from cpsched.rusv import FOREVER, NOWHERE, inner_kernel, kernel, kernels, part_kernels, room_kernels, step_kernels
from cpsched.search.kernels import (
    below,
    bring_forward,
    choose_any,
    choose_linked,
    choose_near,
    choose_order,
    cost_of,
    earliest_place,
    latest_for,
    uniform,
)

#: The most jobs that one step removes, and those that most steps remove at the most.
MOST_REMOVED, FEW = 16, 8
#: The most nodes that are cleared for a job.
MOST_CLEARED = 8
#: The most parts of a malleable job.
MOST_PARTS = 16
#: The most schedules with held steps that are tried for an evolving job.
MOST_HELD = 3
#: The shares of the steps in which evolving jobs may be held, and in which a job is shrunk for others.
HELD, LENT = 0.15, 0.25

# columns of `modes`: demand, last start, units of work in a second, seconds from start to end
M_DEMAND, M_LATEST, M_RATE, M_DURATION = 0, 1, 2, 3
# columns of `parts`: start, end, step or mode, and the entries: the first one in the job's space, and their number
P_START, P_END, P_NUMBER, P_FIRST, P_COUNT = 0, 1, 2, 3, 4
# columns of `firsts`: node columns and system columns in `Held`
H_COLUMN, H_SYSTEM = 0, 1
# columns of `slow`: the cost of a second, times the seconds that the job takes; the second of its submission
S_WEIGHT, S_SUBMIT = 0, 1
# places in `figures`: the cost of the plan, steps done and steps kept, and the cost of the place that was found
VALUE, STEPS, KEPT, COST = 0, 1, 2, 3

# styles of `find_in_modes`: the planner's nodes, and expanded; other nodes, expanded or not
LISTED, EXPANDED, SHRUNK = 0, 1, 2

#: The result for a list in which a job has no place, or that costs too much.
FAILED = 3


class Work(NamedTuple):
    """What the jobs are."""

    #: int64 (rows,): the step sequence of an evolving job; -1 for the others.
    sequence: NDArray[Any]
    #: int64 (rows + 1,): where the modes of each job begin; an evolving job has one.
    first_mode: NDArray[Any]
    #: int64 (modes, 4): see ``M_*``.
    modes: NDArray[Any]
    #: int64 (modes,): a job's modes, counted from its first one, the fastest first.
    by_speed: NDArray[Any]
    #: int64 (rows,): units of work.
    units: NDArray[Any]
    #: int64 (rows,): seconds from start to end that cost nothing; the last end.
    durations: NDArray[Any]
    last_ends: NDArray[Any]
    #: int64 (kinds,): which kind of chunks of its request a kind of a demand is.
    chunk_of: NDArray[Any]
    #: int64 (modes, ·): the kind of the mode's demand for each kind of chunks.
    kinds_in: NDArray[Any]
    #: float64 (rows,): the prices of a second more from start to end, and of a core second that is held in vain.
    late: NDArray[Any]
    waste: NDArray[Any]
    #: float64 (rows, 2): the slowdown of evolving jobs, see ``S_*``.
    slow: NDArray[Any]
    #: int64 (steps,): the cores of each step of all sequences.
    cores: NDArray[Any]
    #: int64 (·,): the rows of the jobs with several modes.
    lenders: NDArray[Any]
    #: int64 (modes + 1, 2): what running jobs take in each of their modes, see ``H_*``; int64 (·,): columns, amounts.
    firsts: NDArray[Any]
    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]


class Costs(NamedTuple):
    """What starts cost (of the waiting jobs)."""

    #: float64 (jobs, ·): see `cost_of`; the least cost of each job; and the order of insertion, smallest first.
    costs: NDArray[Any]
    least: NDArray[Any]
    ranks: NDArray[Any]


class Plan(NamedTuple):
    """The places of the jobs."""

    #: int64 (rows,): start (`NOWHERE`: none), end, and number of parts.
    starts: NDArray[Any]
    ends: NDArray[Any]
    counts: NDArray[Any]
    #: int64 (rows, ·, 5): see ``P_*``.
    parts: NDArray[Any]
    #: int64 (rows + 1,): where the space of each job begins; int32 (·, 3): entries.
    firsts: NDArray[Any]
    pool: NDArray[Any]
    #: float64 (rows,): what the place costs.
    paid: NDArray[Any]
    #: uint64 (rows, ·): a bit for each node that a job has.
    nodes_of: NDArray[Any]


class Ground(NamedTuple):
    """What only the search for places needs."""

    #: The links between jobs, and their own times; `starts` are those of the plan.
    j: kernels.Jobs
    #: The step sequences of evolving jobs, and the scratch of the search for their places.
    q: step_kernels.Sequences
    y: step_kernels.Trial


class Draft(NamedTuple):
    """What a step writes down."""

    #: float64 (4,): see ``VALUE``.
    figures: NDArray[Any]
    #: uint64 (1,): the state of the random numbers.
    random: NDArray[Any]
    #: int64 (jobs + 1,): the step in which a job was last removed; the last one is the present step.
    marks: NDArray[Any]
    #: int64 (MOST_REMOVED,): the removed jobs; float64 and int64: their keys, and their order of insertion.
    chosen: NDArray[Any]
    keys: NDArray[Any]
    sequence: NDArray[Any]
    #: int64 (nodes, 2): see `search.kernels`.
    fitting: NDArray[Any]
    #: The old places of the removed jobs, and of one that is shrunk for them: int64 (·, 3): start, end and number of
    #: parts; float64 (·,): the cost; and parts and entries as in `Plan`.
    old_figures: NDArray[Any]
    old_paid: NDArray[Any]
    old_parts: NDArray[Any]
    old_pool: NDArray[Any]
    #: int64 (·, 5) and int32 (·, 3): the parts and entries of the place that was found; and of one that is tried.
    parts: NDArray[Any]
    entries: NDArray[Any]
    tried: NDArray[Any]
    #: int32 (·, 3): entries in another mode.
    turned: NDArray[Any]
    #: What a job takes in its parts.
    taken: part_kernels.Parts
    #: The place of a sequence.
    place: step_kernels.Place
    #: int64 (modes, 2): how many columns a job takes in each of its modes; int64 (modes, ·): which, and how much.
    sizes: NDArray[Any]
    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]


# --- what a job takes ------------------------------------------------------------------------------------------------


@kernel
def demand_of(job, number, a, q):
    """Return the demand of a step or mode of a waiting job."""
    if a.sequence[job] >= 0:
        return q.steps[q.heads[a.sequence[job], step_kernels.C_STEP] + number, step_kernels.P_DEMAND]
    return a.modes[a.first_mode[job] + number, M_DEMAND]


@kernel
def turn(job, number, entries, count, a, d):
    """Write the entries of a waiting job in one of its modes to `turned`."""
    mode = a.first_mode[job] + number
    for e in range(count):
        d.turned[e, 0], d.turned[e, 2] = entries[e, 0], entries[e, 2]
        d.turned[e, 1] = a.kinds_in[mode, a.chunk_of[entries[e, 1]]]


@kernel
def load(job, number, entries, count, a, d, q, w):
    """Write what a job takes in one of its steps or modes to the scratch; return the numbers of node columns and of
    system columns.
    """
    mode = a.first_mode[job] + number
    if a.sequence[job] >= 0 or a.first_mode[job + 1] - a.first_mode[job] == 1:
        return kernels.placement_columns(demand_of(job, number, a, q), entries, count, w.t, w.x)
    first, behind = a.firsts[mode, H_COLUMN], a.firsts[mode + 1, H_COLUMN]
    if behind == first:  # it waits
        turn(job, number, entries, count, a, d)
        return kernels.placement_columns(a.modes[mode, M_DEMAND], d.turned, count, w.t, w.x)
    for k in range(first, behind):
        w.x.columns[k - first], w.x.amounts[k - first] = a.columns[k], a.amounts[k]
    sfirst, sbehind = a.firsts[mode, H_SYSTEM], a.firsts[mode + 1, H_SYSTEM]
    for k in range(sfirst, sbehind):
        w.x.scolumns[k - sfirst], w.x.samounts[k - sfirst] = a.scolumns[k], a.samounts[k]
    return behind - first, sbehind - sfirst


@inner_kernel
def load_parts(job, a, d, p, q, w):
    """Write what a job takes in all its parts to `taken`."""
    part_kernels.start_parts(d.taken)
    for k in range(p.counts[job]):
        first, count = p.firsts[job] + p.parts[job, k, P_FIRST], p.parts[job, k, P_COUNT]
        filled, systems = load(job, p.parts[job, k, P_NUMBER], p.pool[first : first + count], count, a, d, q, w)
        part_kernels.add_part(p.parts[job, k, P_START], p.parts[job, k, P_END], filled, systems, w.x, d.taken)


@kernel
def hold(job, a, d, p, q, w):
    """Book all parts of a job."""
    load_parts(job, a, d, p, q, w)
    part_kernels.book_parts(w.s, d.taken)


@kernel
def give_back(job, a, d, p, q, w):
    """Release all parts of a job: the exact inverse of `hold`."""
    load_parts(job, a, d, p, q, w)
    part_kernels.release_parts(w.s, d.taken)


@inner_kernel
def copy_rows(target, source, count):
    """Copy some rows."""
    for k in range(count):
        kernels.copy(target[k], source[k])


@kernel
def take_out(job, a, d, p, q, w):
    """Remove a waiting job; its parts stay written down."""
    give_back(job, a, d, p, q, w)
    p.starts[job] = NOWHERE


@kernel
def put_in(job, count, entries, cost, a, d, p, q, w):
    """Book a waiting job on the `count` parts that were found, whose entries come with them."""
    p.counts[job] = count
    copy_rows(p.parts[job], d.parts, count)
    rows = np.int64(0)
    for k in range(count):
        rows = max(rows, d.parts[k, P_FIRST] + d.parts[k, P_COUNT])
    copy_rows(p.pool[p.firsts[job] : p.firsts[job] + rows], entries, rows)
    p.starts[job], p.ends[job], p.paid[job] = d.parts[0, P_START], d.parts[count - 1, P_END], cost
    hold(job, a, d, p, q, w)


@kernel
def note_nodes(job, p):
    """Set the bits of the nodes that a job has."""
    for word in range(p.nodes_of.shape[1]):
        p.nodes_of[job, word] = np.uint64(0)
    for k in range(p.counts[job]):
        first = p.firsts[job] + p.parts[job, k, P_FIRST]
        for e in range(first, first + p.parts[job, k, P_COUNT]):
            node = p.pool[e, 0]
            p.nodes_of[job, node >> 6] |= np.uint64(1) << np.uint64(node & 63)


# --- what places cost ------------------------------------------------------------------------------------------------


@inner_kernel
def slowdown_from(job, start, duration, a):
    """Return what an evolving job's slowdown costs."""
    least = max(np.int64(SLOWDOWN_TAU), duration)
    return a.slow[job, S_WEIGHT] / least * max(0.0, start - a.slow[job, S_SUBMIT] - least + duration)


@inner_kernel
def cost_of_parts(job, parts, count, costs, a, q):
    """Return the cost of a place: of its start, of each second that it takes longer, and of steps that are held."""
    start, end = parts[0, P_START], parts[count - 1, P_END]
    cost = cost_of(job, start, costs) if job < costs.shape[0] else 0.0
    extra = end - start - a.durations[job]
    cost += a.late[job] * extra
    if a.sequence[job] >= 0 and extra > 0:
        first = q.heads[a.sequence[job], step_kernels.C_STEP]
        for k in range(count):
            held = parts[k, P_END] - parts[k, P_START] - q.steps[first + k, step_kernels.P_NEEDED]
            cost += a.waste[job] * held * a.cores[first + k]
        if a.slow[job, S_WEIGHT] > 0.0:
            cost += slowdown_from(job, start, end - start, a) - slowdown_from(job, start, a.durations[job], a)
    return cost


@kernel
def cost_of_plan(costs, end_price, a, p, q):
    """Set what each job's place costs; return the cost of the plan."""
    total, end = 0.0, np.int64(0)
    for job in range(p.starts.shape[0]):
        if p.counts[job] > 0 and p.starts[job] != NOWHERE:
            p.paid[job] = cost_of_parts(job, p.parts[job], p.counts[job], costs, a, q)
            total += p.paid[job]
            if job < costs.shape[0]:
                end = max(end, p.ends[job])
    return total + end_price * end


@kernel
def last_end(jobs, p):
    """Return the end of the last of the waiting jobs."""
    end = np.int64(0)
    for job in range(jobs):
        if p.starts[job] != NOWHERE:
            end = max(end, p.ends[job])
    return end


# --- changes of share ------------------------------------------------------------------------------------------------


@inner_kernel
def note_columns(job, entries, count, a, d, q, w):
    """Set which columns a job takes in each of its modes on its nodes, and how much; no number of columns (-1) for a
    mode in which it may not have them.
    """
    first_mode = a.first_mode[job]
    for mode in range(a.first_mode[job + 1] - first_mode):
        at = first_mode + mode
        if a.firsts[at + 1, H_COLUMN] == a.firsts[at, H_COLUMN]:  # it waits
            turn(job, mode, entries, count, a, d)
            if not room_kernels.may_have(d.turned, count, w.x.free[0], w.t):
                d.sizes[mode, H_COLUMN] = -1
                continue
        filled, systems = load(job, mode, entries, count, a, d, q, w)
        size = np.int64(0)
        for k in range(filled):  # a node may have chunks of several kinds
            same = size
            if count > 0 and w.t.demands[a.modes[at, M_DEMAND], kernels.D_FLAGS] & kernels.JOINT:
                same = 0
                while same < size and d.columns[mode, same] != w.x.columns[k]:
                    same += 1
            if same == size:
                d.columns[mode, same], d.amounts[mode, same] = w.x.columns[k], 0
                size += 1
            d.amounts[mode, same] += w.x.amounts[k]
        for k in range(systems):
            d.scolumns[mode, k], d.samounts[mode, k] = w.x.scolumns[k], w.x.samounts[k]
        d.sizes[mode, H_COLUMN], d.sizes[mode, H_SYSTEM] = size, systems


@inner_kernel
def is_free_in(mode, block, row, d, s):
    """Tell whether a slot has all that a job takes in a mode (see `note_columns`)."""
    for k in range(d.sizes[mode, H_COLUMN]):
        column = d.columns[mode, k]
        if s.rows[row, column] + s.blk[block, kernels.LAZY, column] < d.amounts[mode, k]:
            return False
    for k in range(d.sizes[mode, H_SYSTEM]):
        column = d.scolumns[mode, k]
        if s.srows[row, column] + s.sblk[block, kernels.LAZY, column] < d.samounts[mode, k]:
            return False
    return True


@inner_kernel
def fastest(job, start, entries, count, parts, a, d, q, w):
    """Set `parts` to those with which a malleable job that has no place ends earliest, from a start and on nodes that
    are given: in each second the fastest of its modes that is free then. Returns how many there are; 0 if in some
    second no mode is free, or if there are more than `MOST_PARTS`.
    """
    note_columns(job, entries, count, a, d, q, w)
    first_mode = a.first_mode[job]
    left, time, found = a.units[job], start, 0
    place, index = kernels.locate(start, w.s)
    while True:
        block = w.s.order[place]
        row, mode = w.s.members[block, index], -1
        for k in range(first_mode, a.first_mode[job + 1]):
            if d.sizes[a.by_speed[k], H_COLUMN] >= 0 and is_free_in(a.by_speed[k], block, row, d, w.s):
                mode = a.by_speed[k]
                break
        if mode < 0:
            return 0
        place, index = kernels.following(place, index, w.s)
        until = np.int64(FOREVER)
        if place < w.s.head[kernels.H_BLOCKS]:
            until = w.s.slots[w.s.members[w.s.order[place], index], 0]
        rate = a.modes[first_mode + mode, M_RATE]
        done = time + (left + rate - 1) // rate
        end = min(until, done)
        if found > 0 and parts[found - 1, P_NUMBER] == mode:
            parts[found - 1, P_END] = end
        elif found == MOST_PARTS:
            return 0
        else:
            parts[found, P_START], parts[found, P_END], parts[found, P_NUMBER] = time, end, mode
            parts[found, P_FIRST], parts[found, P_COUNT] = 0, count
            found += 1
        if done <= until:
            return found
        left -= rate * (until - time)
        time = until


@kernel
def slowest(job, mode, parts, count, a, p):
    """Set `parts` to those of a malleable job that has a mode from its start for as long as possible: to its end, or
    until it needs its full share to end in time. Returns how many there are, 0 if it cannot have the mode at all.
    """
    first_mode, start, units = a.first_mode[job], p.starts[job], a.units[job]
    rate, full = a.modes[first_mode + mode, M_RATE], a.modes[first_mode, M_RATE]
    until = start + (units + rate - 1) // rate
    end = until
    if until > a.last_ends[job]:
        if rate >= full:
            return 0
        until = start + ((a.last_ends[job] - start) * full - units) // (full - rate)
        if until <= start:
            return 0
        end = until + (units - rate * (until - start) + full - 1) // full
        parts[1, P_START], parts[1, P_END], parts[1, P_NUMBER] = until, end, 0
        parts[1, P_FIRST], parts[1, P_COUNT] = 0, count
    parts[0, P_START], parts[0, P_END], parts[0, P_NUMBER] = start, until, mode
    parts[0, P_FIRST], parts[0, P_COUNT] = 0, count
    return 1 + (end > until)


@inner_kernel
def are_free(job, parts, count, a, d, s):
    """Tell whether all parts of a malleable job without a place are free (see `note_columns`)."""
    for k in range(count):
        if d.sizes[parts[k, P_NUMBER], H_COLUMN] < 0:
            return False
        place, index = kernels.locate(parts[k, P_START], s)
        while place < s.head[kernels.H_BLOCKS]:
            block = s.order[place]
            row = s.members[block, index]
            if s.slots[row, 0] >= parts[k, P_END]:
                break
            if not is_free_in(parts[k, P_NUMBER], block, row, d, s):
                return False
            place, index = kernels.following(place, index, s)
    return True


@kernel
def expand(job, costs, a, d, p, q, w):
    """Let a malleable job run on the fastest of its shares that is free in each second, if it ends earlier then."""
    count, first = p.parts[job, 0, P_COUNT], p.firsts[job]
    give_back(job, a, d, p, q, w)
    found = fastest(job, p.starts[job], p.pool[first : first + count], count, d.tried, a, d, q, w)
    if found > 0 and d.tried[found - 1, P_END] < p.ends[job]:
        p.counts[job], p.ends[job] = found, d.tried[found - 1, P_END]
        copy_rows(p.parts[job], d.tried, found)
    p.paid[job] = cost_of_parts(job, p.parts[job], p.counts[job], costs, a, q)
    hold(job, a, d, p, q, w)


# --- places ----------------------------------------------------------------------------------------------------------


@inner_kernel
def find_evolving(job, earliest, latest, room, is_held, costs, a, d, g, w):
    """Find a place for an evolving job that costs no more than `room`; return how many parts it has, 0 if there is
    none. Its entries are written to `found`.
    """
    q, end_by = g.q, a.last_ends[job]
    if is_held and room < np.inf and a.late[job] > 0.0:
        # a second of holding costs no more than a second of a later start: the job that starts first may end last
        spare = max(0.0, room - cost_of(job, earliest, costs)) / a.late[job] + 1.0
        end_by = min(end_by, earliest + a.durations[job] + np.int64(min(spare, 1e15)))
    sequence, place = a.sequence[job], d.place
    if not step_kernels.find_sequence(
        sequence, earliest, latest, end_by, MOST_HELD if is_held else 0, place, q, w, g.y
    ):
        return 0
    first = q.heads[sequence, step_kernels.C_STEP]
    count = q.heads[sequence + 1, step_kernels.C_STEP] - first
    for k in range(count):
        end = d.place.begins[k] + q.steps[first + k, step_kernels.P_NEEDED]
        if k + 1 < count:
            end = d.place.begins[k + 1]
        d.parts[k, P_START], d.parts[k, P_END], d.parts[k, P_NUMBER] = d.place.begins[k], end, k
        d.parts[k, P_FIRST], d.parts[k, P_COUNT] = d.place.spans[k], d.place.spans[k + 1] - d.place.spans[k]
    return count


@inner_kernel
def find_in_modes(job, only, earliest, room, style, c, a, d, g, w):
    """Find the cheapest place of a job that costs no more than `room`, in one of its modes (-1: in any); return how
    many parts it has, 0 if there is none. Its entries are written to `entries`.

    Unless the style is `SHRUNK`, a job on a smaller share expands as soon as it can. Between places of equal costs the
    earlier end decides, then the larger share. Where the style is `LISTED`, it gets the planner's nodes.
    """
    count, cheapest, first, behind = 0, room, only, only + 1
    if only < 0:
        first, behind = 0, a.first_mode[job + 1] - a.first_mode[job]
    for mode in range(first, behind):
        at = a.first_mode[job] + mode
        demand, duration = a.modes[at, M_DEMAND], a.modes[at, M_DURATION]
        latest = min(a.modes[at, M_LATEST], latest_for(job, cheapest, c.costs))
        latest = kernels.latest_before(job, latest, g.j)
        if latest < earliest:
            continue
        if style == LISTED:
            start, held = kernels.earliest_fit(demand, earliest, duration, latest, w.s, w.t, w.x)
        else:
            start, held = earliest_place(demand, earliest, duration, latest, d, w.s, w.t, w.x)
        if start < 0:
            continue
        copy_rows(d.place.found, w.x.entries, held)
        found = 0
        if mode > 0 and style != SHRUNK:
            found = fastest(job, start, d.place.found, held, d.tried, a, d, g.q, w)
            if found > 0 and d.tried[found - 1, P_END] >= start + duration:
                found = 0
        if found == 0:
            d.tried[0, P_START], d.tried[0, P_END], d.tried[0, P_NUMBER] = start, start + duration, mode
            d.tried[0, P_FIRST], d.tried[0, P_COUNT] = 0, held
            found = 1
        cost = cost_of_parts(job, d.tried, found, c.costs, a, g.q)
        is_better = cost < cheapest or (cost == cheapest and d.tried[found - 1, P_END] < d.parts[count - 1, P_END])
        if (count == 0 and cost <= room) or (count > 0 and is_better):
            count, cheapest = found, cost
            copy_rows(d.parts, d.tried, found)
            copy_rows(d.entries, d.place.found, held)
    d.figures[COST] = cheapest
    return count


@kernel
def settle(order, begin, limit, c, a, d, p, g, w):
    """Insert the jobs of ``order[begin:]`` in turn, each in the mode and at the place that cost it least.

    Returns (`kernels.DONE`, `kernels.GROW_STATE`, or `FAILED` if a job has no place or the list costs more than
    `limit`; index in the order that was reached; the rest of `limit`).
    """
    j, q, room = g.j, g.q, 2 * d.parts.shape[0]
    for k in range(begin, order.shape[0]):
        if w.s.head[kernels.H_SPARE_ROWS] < room or w.s.head[kernels.H_SPARE_BLOCKS] < room:
            return kernels.GROW_STATE, k, limit
        job = order[k]
        earliest = kernels.earliest_after(job, j.jobs[job, 1], j)
        count = 0
        if earliest < FOREVER and a.sequence[job] >= 0:
            latest = kernels.latest_before(job, j.jobs[job, 2], j)
            if earliest <= latest:
                count = find_evolving(job, earliest, latest, np.inf, True, c.costs, a, d, g, w)
            if count > 0:
                d.figures[COST] = cost_of_parts(job, d.parts, count, c.costs, a, q)
                put_in(job, count, d.place.found, d.figures[COST], a, d, p, q, w)
        elif earliest < FOREVER:
            count = find_in_modes(job, -1, earliest, np.inf, LISTED, c, a, d, g, w)
            if count > 0:
                put_in(job, count, d.entries, d.figures[COST], a, d, p, q, w)
        if count == 0:
            return FAILED, k, limit
        limit -= d.figures[COST]
        if limit < 0.0:
            return FAILED, k, limit
    return kernels.DONE, order.shape[0], limit


@kernel
def hold_all(rows, a, d, p, q, w):
    """Book some jobs at the places that are written down; `kernels.GROW_STATE` if there is too little space."""
    room = 2 * d.parts.shape[0]
    for k in range(rows.shape[0]):
        if w.s.head[kernels.H_SPARE_ROWS] < room or w.s.head[kernels.H_SPARE_BLOCKS] < room:
            return kernels.GROW_STATE, k
        hold(rows[k], a, d, p, q, w)
        if p.parts[rows[k], 0, P_COUNT] > 0:  # running jobs keep their nodes
            note_nodes(rows[k], p)
    return kernels.DONE, rows.shape[0]


@kernel
def clear(jobs, a, d, p, q, w):
    """Remove the first `jobs` jobs."""
    for job in range(jobs):
        if p.starts[job] != NOWHERE:
            take_out(job, a, d, p, q, w)


# --- which jobs to remove --------------------------------------------------------------------------------------------


@inner_kernel
def dearest_wait(c, d, p):
    """Choose the job that pays most for its wait, out of three drawn; -1 if none waits."""
    waiting, dearest = -1, 0.0
    for _ in range(3):
        job = below(d.random, c.least.shape[0])
        if d.marks[job] != d.marks[c.least.shape[0]] and p.paid[job] - c.least[job] > dearest:
            waiting, dearest = job, p.paid[job] - c.least[job]
    return waiting


@inner_kernel
def choose_in_the_way(c, d, p, j):
    """Choose a job whose wait costs much, an earlier start for it, and the jobs that run then on some consecutive
    nodes, as many as it has. Returns how many were chosen, 0 if no job waits; the first one is that job.
    """
    count, num_nodes = c.least.shape[0], d.fitting.shape[0]
    waiting = dearest_wait(c, d, p)
    if waiting < 0:
        return 0
    nearness, earliest = uniform(d.random), j.jobs[waiting, 1]
    begin = max(earliest, p.starts[waiting] - 1 - np.int64(nearness * nearness * (p.starts[waiting] - earliest)))
    end = begin + duration_of(waiting, p)
    width = np.int64(1)
    for k in range(p.counts[waiting]):
        width = max(width, p.parts[waiting, k, P_COUNT])
    width = min(num_nodes, min(width, MOST_CLEARED))
    d.chosen[0] = waiting
    d.marks[waiting] = d.marks[count]
    found = 1
    node, offset = below(d.random, num_nodes), below(d.random, count)
    for place in range(count):
        job = place + offset
        if job >= count:
            job -= count
        if p.starts[job] >= end or p.ends[job] <= begin or d.marks[job] == d.marks[count]:
            continue
        for k in range(width):
            at = (node + k) % num_nodes
            if p.nodes_of[job, at >> 6] & (np.uint64(1) << np.uint64(at & 63)) != np.uint64(0):
                d.chosen[found] = job
                d.marks[job] = d.marks[count]
                found += 1
                break
        if found == MOST_REMOVED:
            break
    return found


@inner_kernel
def duration_of(job, p):
    """Return the seconds from the start of a job to its end."""
    return p.ends[job] - p.starts[job]


@inner_kernel
def choose_to_lend(wanted, a, c, d, p):
    """Choose a malleable job, a mode for it, the jobs that are in the way of its running longer, and some others that
    start later than it does.

    Returns (how many were chosen, the malleable job, how many parts of it in the mode were written to `parts`); 0 if
    nothing was found.
    """
    count = c.least.shape[0]
    lender = a.lenders[below(d.random, a.lenders.shape[0])]
    if p.counts[lender] == 0:
        return 0, 0, 0
    mode = 1 + below(d.random, a.first_mode[lender + 1] - a.first_mode[lender] - 1)
    parts = slowest(lender, mode, d.parts, p.parts[lender, 0, P_COUNT], a, p)
    if parts == 0:
        return 0, 0, 0
    end, found = d.parts[parts - 1, P_END], 0
    for job in range(count):
        if job != lender and p.starts[job] < end and p.ends[job] > p.ends[lender]:
            is_there = False
            for word in range(p.nodes_of.shape[1]):
                is_there |= p.nodes_of[job, word] & p.nodes_of[lender, word] != np.uint64(0)
            if is_there:
                if found == MOST_REMOVED:
                    return 0, 0, 0
                d.chosen[found] = job
                d.marks[job] = d.marks[count]
                found += 1
    most = min(found + wanted, MOST_REMOVED)
    for _ in range(3 * wanted):
        if found == most:
            break
        job = dearest_wait(c, d, p)
        if job >= 0 and job != lender and p.starts[job] > p.starts[lender]:
            d.chosen[found] = job
            d.marks[job] = d.marks[count]
            found += 1
    return found, lender, parts


# --- the search ------------------------------------------------------------------------------------------------------


@inner_kernel
def keep_old(job, slot, d, p):
    """Write down the place of a job."""
    d.old_figures[slot, 0], d.old_figures[slot, 1], d.old_figures[slot, 2] = p.starts[job], p.ends[job], p.counts[job]
    d.old_paid[slot] = p.paid[job]
    copy_rows(d.old_parts[slot], p.parts[job], p.counts[job])
    rows = np.int64(0)
    for k in range(p.counts[job]):
        rows = max(rows, p.parts[job, k, P_FIRST] + p.parts[job, k, P_COUNT])
    copy_rows(d.old_pool[slot], p.pool[p.firsts[job] : p.firsts[job] + rows], rows)


@kernel
def put_back(job, slot, a, d, p, q, w):
    """Book a job without a place at the place that was written down."""
    p.starts[job], p.ends[job], p.counts[job] = d.old_figures[slot, 0], d.old_figures[slot, 1], d.old_figures[slot, 2]
    p.paid[job] = d.old_paid[slot]
    copy_rows(p.parts[job], d.old_parts[slot], p.counts[job])
    rows = np.int64(0)
    for k in range(p.counts[job]):
        rows = max(rows, p.parts[job, k, P_FIRST] + p.parts[job, k, P_COUNT])
    copy_rows(p.pool[p.firsts[job] : p.firsts[job] + rows], d.old_pool[slot], rows)
    hold(job, a, d, p, q, w)


@kernel
def insert(job, slot, limit, is_held, c, a, d, p, g, w):
    """Insert a removed job where it costs no more than `limit`; tell whether there is such a place.

    Of malleable jobs some take the mode that costs least, some a random one, and the others keep theirs; only the
    first expand at once, the others when all jobs have a place. Until then their longer time is not counted.
    """
    j, q = g.j, g.q
    earliest = kernels.earliest_after(job, j.jobs[job, 1], j)
    if earliest >= FOREVER:
        return False
    if a.sequence[job] >= 0:
        latest = min(j.jobs[job, 2], latest_for(job, limit, c.costs))
        latest = kernels.latest_before(job, latest, j)
        if latest < earliest:
            return False
        count = find_evolving(job, earliest, latest, limit, is_held, c.costs, a, d, g, w)
        if count == 0:
            return False
        put_in(job, count, d.place.found, cost_of_parts(job, d.parts, count, c.costs, a, q), a, d, p, q, w)
        return True
    modes = a.first_mode[job + 1] - a.first_mode[job]
    mode, style, room = 0, EXPANDED, limit
    if modes > 1:
        flip = uniform(d.random)
        if flip < 0.3:
            mode = -1
        elif flip < 0.5:
            mode, style = below(d.random, modes), SHRUNK
        else:
            mode, style = d.old_parts[slot, 0, P_NUMBER], SHRUNK
    if style == SHRUNK and mode > 0:
        room += a.late[job] * (a.modes[a.first_mode[job] + mode, M_DURATION] - a.durations[job])
    count = find_in_modes(job, mode, earliest, room, style, c, a, d, g, w)
    if count == 0:
        return False
    put_in(job, count, d.entries, d.figures[COST], a, d, p, q, w)
    return True


@kernel
def lend(job, count, a, d, p, q, w):
    """Give a malleable job the `count` parts that were written to `parts`, if they are free; tell whether they are."""
    give_back(job, a, d, p, q, w)
    first, entries = p.firsts[job], p.parts[job, 0, P_COUNT]
    note_columns(job, p.pool[first : first + entries], entries, a, d, q, w)
    is_free = are_free(job, d.parts, count, a, d, w.s)
    if is_free:
        p.counts[job], p.ends[job] = count, d.parts[count - 1, P_END]
        copy_rows(p.parts[job], d.parts, count)
    hold(job, a, d, p, q, w)
    return is_free


@inner_kernel
def least_paid(job, a, p):
    """Return what a malleable job pays at its start if it is never shrunk."""
    full = a.modes[a.first_mode[job], M_RATE]
    return p.paid[job] - a.late[job] * (duration_of(job, p) - (a.units[job] + full - 1) // full)


@kernel
def is_shrunk(job, a, p):
    """Tell whether a waiting job has one part on a smaller share."""
    return a.sequence[job] < 0 and p.counts[job] == 1 and p.parts[job, 0, P_NUMBER] > 0


@kernel
def ruin_and_recreate(steps, temperature, end_price, c, a, d, p, g, w):
    """Do a number of steps of simulated annealing at a `temperature` in mean costs of a job.

    In some steps a malleable job is shrunk first, for those that are removed. At the end of a step it expands again as
    soon as it can, and so do those that were inserted on a smaller share. Returns `kernels.DONE`, or
    `kernels.GROW_STATE` before a step for which an array is too small.
    """
    j, q = g.j, g.q
    count, is_linked = j.starts.shape[0], j.links.waits.shape[0] > 0
    room = 2 * (MOST_REMOVED + 2) * d.parts.shape[0]
    for _ in range(steps):
        if w.s.head[kernels.H_SPARE_ROWS] < room or w.s.head[kernels.H_SPARE_BLOCKS] < room:
            return kernels.GROW_STATE
        d.figures[STEPS] += 1
        d.marks[count] += 1
        is_held = uniform(d.random) < HELD
        wanted = 2 + below(d.random, min(MOST_REMOVED if uniform(d.random) < 0.05 else FEW, count) - 1)
        is_lent = a.lenders.shape[0] > 0 and uniform(d.random) < LENT
        style, lender, parts = uniform(d.random), np.int64(-1), np.int64(0)
        is_way_made = not is_lent and 0.35 <= style < 0.8
        if is_lent:
            found, lender, parts = choose_to_lend(wanted, a, c, d, p)
        elif style < 0.35:
            found = choose_near(wanted, j.starts, d.chosen, d.marks, d.random)
        elif is_way_made:
            found = choose_in_the_way(c, d, p, j)
        elif is_linked:
            found = choose_linked(wanted, d, j)
        else:
            found = choose_any(wanted, j.starts, d.chosen, d.marks, d.random)
        if found < 2 - is_lent:
            continue
        choose_order(found, is_way_made, c, d, j)
        end_before = last_end(count, p) if end_price > 0.0 else 0
        before, least = 0.0, 0.0
        for slot in range(found):
            job = d.chosen[slot]
            before += p.paid[job]
            least += c.least[job]
            keep_old(job, slot, d, p)
            take_out(job, a, d, p, q, w)
        after, inserted, is_possible = 0.0, 0, True
        if is_lent:
            before += p.paid[lender]
            after = least_paid(lender, a, p)
            keep_old(lender, found, d, p)
            is_possible = lend(lender, parts, a, d, p, q, w)
        limit = before - temperature * max(d.figures[VALUE], 0.0) / count * np.log(max(uniform(d.random), 1e-300))
        while is_possible and inserted < found:  # as long as the limit can still be kept
            if is_linked:
                bring_forward(inserted, found, d, j)
            slot = d.sequence[inserted]
            job = d.chosen[slot]
            least -= c.least[job]
            is_possible = insert(job, slot, limit - after - least, is_held, c, a, d, p, g, w)
            if is_possible:
                after += least_paid(job, a, p) if is_shrunk(job, a, p) else p.paid[job]
                inserted += 1
        if is_possible:
            after = 0.0
            if is_lent:
                expand(lender, c.costs, a, d, p, q, w)
                after += p.paid[lender]
            for turn in range(found):
                job = d.chosen[d.sequence[turn]]
                if is_shrunk(job, a, p):
                    expand(job, c.costs, a, d, p, q, w)
                after += p.paid[job]
            if end_price > 0.0:
                after += end_price * (last_end(count, p) - end_before)
            if after <= limit:
                d.figures[VALUE] += after - before
                d.figures[KEPT] += 1
                for slot in range(found):
                    note_nodes(d.chosen[slot], p)
                continue
        for turn in range(inserted):  # not kept: all jobs return to their old places
            take_out(d.chosen[d.sequence[turn]], a, d, p, q, w)
        if is_lent:
            give_back(lender, a, d, p, q, w)
            put_back(lender, found, a, d, p, q, w)
        for slot in range(found):  # in any order: their distances held before
            put_back(d.chosen[slot], slot, a, d, p, q, w)
    return kernels.DONE
