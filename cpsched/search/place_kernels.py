"""Places of jobs, compiled: what they cost, how they are booked, and where a job finds one.

Where no job changes while it runs, `changes` is None, and what would be done for those that do is not compiled.
"""

import numpy as np

from cpsched.rusv import FOREVER, NOWHERE, Array, inner_kernel, kernel, kernels, step_kernels
from cpsched.search.arrays import NO_DEMAND, Changes, Jobs, Places, Step, Timeline
from cpsched.search.change_kernels import copy_parts, cost_of_changes, expand, set_part, take_parts
from cpsched.search.count_kernels import count_in, count_out, earliest_start

#: The most chunks whose nodes are chosen one by one.
_MOST_CHOSEN = 8
#: The most schedules with held steps that are tried for an evolving job.
MOST_HELD = 3

# styles of `find_in_modes`: the planner's nodes, and expanded; other nodes, expanded or not
LISTED, EXPANDED, SHRUNK = 0, 1, 2


# --- random numbers and costs ----------------------------------------------------------------------------------------


@inner_kernel
def uniform(random: Array) -> float:
    """Return the next number of ``[0, 1)`` (xorshift64, Marsaglia 2003)."""
    state = random[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    random[0] = state
    return np.float64(state >> np.uint64(11)) / 9007199254740992.0


@kernel
def below(random: Array, count: int) -> int:
    """Return a random integer of ``[0, count)``."""
    return int(uniform(random) * count)


@inner_kernel
def cost_of_place(job: int, places: Places, row: int, jobs: Jobs, changes: Changes | None) -> float:
    """Return the cost of a job at the place in a row: of its start, and of each change."""
    if changes is None:
        return kernels.cost_of(jobs.first_mode[job] + places.numbers[row, 0], places.starts[row], jobs.costs)
    return kernels.cost_of(jobs.first_mode[job], places.starts[row], jobs.costs) + cost_of_changes(
        job, places, row, changes
    )


@kernel
def cost_of_plan(end_price: float, jobs: Jobs, plan: Places, changes: Changes | None) -> float:
    """Set what each job's place costs; return the cost of the plan."""
    total = 0.0
    for job in range(plan.starts.shape[0]):
        if plan.counts[job] > 0 and plan.starts[job] != NOWHERE:
            plan.paid[job] = cost_of_place(job, plan, job, jobs, changes)
            total += plan.paid[job]
    return total + end_price * last_end(jobs, plan)


@inner_kernel
def last_end(jobs: Jobs, plan: Places) -> int:
    """Return the end of the last of the waiting jobs."""
    end = 0
    for job in range(jobs.least.shape[0]):
        if plan.starts[job] != NOWHERE:
            end = max(end, plan.ends[job])
    return end


# --- booking ---------------------------------------------------------------------------------------------------------


@inner_kernel
def copy_place(target: Places, to: int, source: Places, row: int) -> None:
    """Copy a place with its entries."""
    target.paid[to] = source.paid[row]
    entries = copy_parts(target, to, source, row)
    kernels.keep_entries(target.pool, target.spaces[to], source.pool[source.spaces[row] :], entries)


@inner_kernel
def set_whole(places: Places, row: int, start: int, duration: int, number: int, entries: int) -> None:
    """Set a place to one part in one mode; its entries are the first in the space of the row."""
    places.starts[row], places.ends[row], places.counts[row] = start, start + duration, 1
    set_part(places, row, 0, start, start + duration, number, entries)


@inner_kernel
def demand_of(job: int, jobs: Jobs, plan: Places) -> int:
    """Return the demand of a job in the mode of its first part."""
    return jobs.demands[jobs.first_mode[job] + plan.numbers[job, 0]]


@inner_kernel
def is_in_parts(job: int, jobs: Jobs, plan: Places) -> bool:
    """Tell whether a job changes while it runs, or could: its entries may be those of another mode than it has."""
    modes = jobs.first_mode[job + 1] - jobs.first_mode[job]
    return plan.counts[job] > 1 or modes > 1 or job >= jobs.least.shape[0]


@kernel
def book(job: int, jobs: Jobs, plan: Places, timeline: Timeline | None, changes: Changes | None) -> None:
    """Book a job at its place; nothing for one that is left out."""
    if timeline is None:
        count_in(job, plan.starts[job], 1, jobs.counted)
        return
    if changes is not None and is_in_parts(job, jobs, plan):
        take_parts(job, -1, jobs, plan, timeline, changes)
        return
    if demand_of(job, jobs, plan) != NO_DEMAND:
        kernels.add_break(plan.starts[job], timeline.state)
        kernels.add_break(plan.ends[job], timeline.state)
        take_whole(job, -1, jobs, plan, timeline)


@kernel
def release(job: int, jobs: Jobs, plan: Places, timeline: Timeline | None, changes: Changes | None) -> None:
    """Release what a job holds at its place, which stays written down: the exact inverse of `book`."""
    if timeline is None:
        count_out(job, plan.starts[job], jobs.counted)
        return
    if changes is not None and is_in_parts(job, jobs, plan):
        take_parts(job, 1, jobs, plan, timeline, changes)
        return
    if demand_of(job, jobs, plan) != NO_DEMAND:
        take_whole(job, 1, jobs, plan, timeline)
        kernels.drop_break(plan.starts[job], timeline.state)
        kernels.drop_break(plan.ends[job], timeline.state)


@inner_kernel
def take_whole(job: int, sign: int, jobs: Jobs, plan: Places, timeline: Timeline) -> None:
    """Take (sign -1) what a waiting job of one part holds from what is free, or give it back (sign 1)."""
    demand, entries, count = demand_of(job, jobs, plan), plan.pool[plan.spaces[job] :], plan.entries[job, 0]
    start, end, state = plan.starts[job], plan.ends[job], timeline.state
    kernels.take_placement(demand, entries, count, start, end, sign, state, timeline.tables, timeline.scratch)


@inner_kernel
def take_out(job: int, jobs: Jobs, plan: Places, timeline: Timeline | None, changes: Changes | None) -> None:
    """Remove a waiting job from the plan."""
    release(job, jobs, plan, timeline, changes)
    plan.starts[job] = NOWHERE


@inner_kernel
def note_nodes(job: int, plan: Places, nodes_of: Array) -> None:
    """Set the bits of the nodes that a job has."""
    for word in range(nodes_of.shape[1]):
        nodes_of[job, word] = np.uint64(0)
    for k in range(plan.counts[job]):
        first = plan.spaces[job] + plan.first_entry[job, k]
        for e in range(first, first + plan.entries[job, k]):
            node = plan.pool[e, 0]
            nodes_of[job, node >> 6] |= np.uint64(1) << np.uint64(node & 63)


# --- nodes -----------------------------------------------------------------------------------------------------------


@inner_kernel
def earliest_place(
    demand: int, start: int, duration: int, latest: int, step: Step, timeline: Timeline
) -> tuple[int, int]:
    """Find the earliest start as `kernels.earliest_fit` does, and nodes for it. Half of the time the cheap nodes do not
    come first, but those with the least left over, or those from a random one on.

    Demands of several kinds, or within one group of nodes, are left to the planner's mapping.
    """
    state, tables, scratch = timeline.state, timeline.tables, timeline.scratch
    is_joint = tables.demands[demand, kernels.D.FLAGS] & (kernels.F.JOINT | kernels.F.WITHIN)
    if is_joint or uniform(step.random) < 0.5:
        return kernels.earliest_fit(demand, start, duration, latest, state, tables, scratch)
    start, side = kernels.first_window(demand, start, duration, latest, state, tables, scratch)
    if start < 0:
        return start, 0
    kind = tables.demands[demand, kernels.D.KIND]
    note_fitting(kind, scratch.free[side], step, tables)
    if tables.kinds[kind, kernels.K.NEED] <= _MOST_CHOSEN and uniform(step.random) < 0.5:
        map_tightly(kind, scratch.free[side], step, tables)
    else:
        map_from(tables.kinds[kind, kernels.K.NEED], below(step.random, step.fits.shape[0]), step)
    count = 0
    for node in range(step.fits.shape[0]):
        if step.taken[node] > 0:
            scratch.entries[count, 0], scratch.entries[count, 1], scratch.entries[count, 2] = (
                node,
                kind,
                step.taken[node],
            )
            count += 1
    return start, count


@inner_kernel
def note_fitting(kind: int, free: Array, step: Step, tables: kernels.Tables) -> None:
    """Set how many chunks of a kind fit on each node, and that none is taken."""
    for node in range(step.fits.shape[0]):
        step.fits[node] = step.taken[node] = 0
    for segment in range(tables.kinds[kind, kernels.K.SEG], tables.kinds[kind, kernels.K.BEHIND]):
        node = tables.segments[segment, kernels.S.FIRST]
        for n in range(tables.segments[segment, kernels.S.LENGTH]):
            fit = tables.kinds[kind, kernels.K.MOST]
            for k in range(tables.segments[segment, kernels.S.TERM], tables.segments[segment + 1, kernels.S.TERM]):
                if free[tables.terms[k, 0] + n] < fit * tables.terms[k, 1]:
                    fit = free[tables.terms[k, 0] + n] // tables.terms[k, 1]
            step.fits[node + n] = fit


@inner_kernel
def map_tightly(kind: int, free: Array, step: Step, tables: kernels.Tables) -> None:
    """Take chunks, node by node, where about the least room is left for more of them."""
    left = tables.kinds[kind, kernels.K.NEED]
    while left > 0:
        least, at = np.inf, -1
        for segment in range(tables.kinds[kind, kernels.K.SEG], tables.kinds[kind, kernels.K.BEHIND]):
            node = tables.segments[segment, kernels.S.FIRST]
            for n in range(tables.segments[segment, kernels.S.LENGTH]):
                if step.fits[node + n] == 0 or step.taken[node + n] > 0:
                    continue
                rest = uniform(step.random)
                for k in range(tables.segments[segment, kernels.S.TERM], tables.segments[segment + 1, kernels.S.TERM]):
                    rest += free[tables.terms[k, 0] + n] / tables.terms[k, 1] - min(left, step.fits[node + n])
                if rest < least:
                    least, at = rest, node + n
        step.taken[at] = min(left, step.fits[at])
        left -= step.taken[at]


@inner_kernel
def map_from(left: int, first: int, step: Step) -> None:
    """Take chunks on each node on which they fit, from node `first` on."""
    nodes = step.fits.shape[0]
    for k in range(nodes):
        at = (first + k) % nodes
        step.taken[at] = min(left, step.fits[at])
        left -= step.taken[at]


# --- finding a place -------------------------------------------------------------------------------------------------
# The place of a job that has none is written to the plan; it is not booked by that.


@inner_kernel
def find_evolving(
    job: int, earliest: int, room: float, tries: int, jobs: Jobs, plan: Places, timeline: Timeline, changes: Changes
) -> bool:
    """Find a place for an evolving job of at most `room`; `tries` schedules with held steps are tried."""
    place, sequences, end_by = changes.sequence_place, changes.sequences, changes.last_ends[job]
    mode, sequence = jobs.first_mode[job], changes.sequence[job]
    latest = kernels.latest_before(job, min(jobs.latest[mode], kernels.latest_for(mode, room, jobs.costs)), jobs.linked)
    if tries > 0 and room < np.inf and changes.late[job] > 0.0:
        # a second of holding costs no more than a second of a later start: the job that starts first may end last
        spare = max(0.0, room - kernels.cost_of(mode, earliest, jobs.costs)) / changes.late[job] + 1.0
        end_by = min(end_by, earliest + changes.durations[job] + int(min(spare, 1e15)))
    if latest < earliest or not step_kernels.find_sequence(
        sequence, earliest, latest, end_by, tries, place, sequences, timeline, changes.sequence_trial
    ):
        return False
    first = sequences.heads[sequence, step_kernels.C_STEP]
    count = sequences.heads[sequence + 1, step_kernels.C_STEP] - first
    for k in range(count):
        plan.begins[job, k], plan.numbers[job, k], plan.first_entry[job, k] = place.begins[k], k, place.spans[k]
        plan.entries[job, k] = place.spans[k + 1] - place.spans[k]
        plan.until[job, k] = place.begins[k] + sequences.steps[first + k, step_kernels.P_NEEDED]
        if k > 0:
            plan.until[job, k - 1] = place.begins[k]
    plan.starts[job], plan.ends[job], plan.counts[job] = place.begins[0], plan.until[job, count - 1], count
    kernels.keep_entries(plan.pool, plan.spaces[job], place.found, place.spans[count])
    plan.paid[job] = cost_of_place(job, plan, job, jobs, changes)
    return True


@inner_kernel
def num_modes(job: int, jobs: Jobs) -> int:
    """Return how many modes a waiting job has, without that in which it is left out."""
    behind = jobs.first_mode[job + 1]
    return behind - jobs.first_mode[job] - (jobs.demands[behind - 1] == NO_DEMAND)


@inner_kernel
def find_in_modes(
    job: int,
    only: int,
    earliest: int,
    room: float,
    style: int,
    jobs: Jobs,
    plan: Places,
    step: Step,
    timeline: Timeline,
    changes: Changes | None,
) -> bool:
    """Find the cheapest place of a job that costs no more than `room`, in one of its modes, or, with ``~mode``, in all
    from that one on, in a circle; tell whether there is one.

    Unless the style is `SHRUNK`, a job on a smaller share expands as soon as it can. Between places of equal costs the
    earlier end decides, then the larger share. Where the style is `LISTED`, it gets the planner's nodes.
    """
    state, tables, scratch = timeline.state, timeline.tables, timeline.scratch
    end, is_found, modes = FOREVER, False, num_modes(job, jobs)
    tried = 1 if only >= 0 else modes
    trial, row = plan if tried == 1 else step.trial, job if tried == 1 else 0
    for turn in range(tried):
        number = only if only >= 0 else (~only + turn) % modes
        mode = jobs.first_mode[job] + number
        demand, duration = jobs.demands[mode], jobs.durations[mode]
        priced = mode if changes is None else jobs.first_mode[job]
        latest = min(jobs.latest[mode], kernels.latest_for(priced, room, jobs.costs))
        latest = kernels.latest_before(job, latest, jobs.linked)
        if latest < earliest:
            continue
        if style == LISTED:
            start, held = kernels.earliest_fit(demand, earliest, duration, latest, state, tables, scratch)
        else:
            start, held = earliest_place(demand, earliest, duration, latest, step, timeline)
        if start < 0:
            continue
        kernels.keep_entries(trial.pool, trial.spaces[row], scratch.entries, held)
        set_whole(trial, row, start, duration, number, held)
        if changes is not None and number > 0 and style != SHRUNK:
            expand(job, trial, row, jobs, timeline, changes)
        cost = cost_of_place(job, trial, row, jobs, changes)
        if cost < room or (cost == room and (not is_found or trial.ends[row] < end)):
            room, end, is_found = cost, trial.ends[row], True
            trial.paid[row] = cost
            if tried > 1:
                copy_place(plan, job, trial, row)
    if not is_found:
        plan.starts[job] = NOWHERE
    return is_found


@inner_kernel
def find_counted(job: int, earliest: int, room: float, jobs: Jobs, plan: Places) -> bool:
    """Find the earliest place on counted nodes that costs no more than `room`; tell whether there is one."""
    mode = jobs.first_mode[job]
    start = earliest_start(job, earliest, kernels.latest_for(mode, room, jobs.costs), jobs.counted)
    if start == NOWHERE:
        return False
    set_whole(plan, job, start, jobs.durations[mode], 0, 0)
    plan.paid[job] = kernels.cost_of(mode, start, jobs.costs)
    return True


@inner_kernel
def leave_out(job: int, start: int, room: float, jobs: Jobs, plan: Places) -> bool:
    """Leave a job out, as if it started at `start`, if it may be and costs at most `room`; tell whether it was."""
    mode = jobs.first_mode[job + 1] - 1
    cost = kernels.cost_of(mode, start, jobs.costs)
    if jobs.demands[mode] != NO_DEMAND or cost > room:
        return False
    set_whole(plan, job, start, 0, mode - jobs.first_mode[job], 0)
    plan.paid[job] = cost
    return True
