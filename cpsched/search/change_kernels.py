"""Changes of jobs while they run, compiled: what a job takes in its parts, what changes cost, and shares over time.

An evolving job changes from step to step (`rusv.step_kernels` finds its place). A malleable one shrinks for others and
expands again, on the same nodes.
"""

from cpsched.metrics import SLOWDOWN_TAU
from cpsched.rusv import FOREVER, Array, inner_kernel, kernel, kernels, step_kernels
from cpsched.search.arrays import MOST_PARTS, Changes, Jobs, Places, Timeline

# --- what changes cost -----------------------------------------------------------------------------------------------


@inner_kernel
def slowdown_from(job: int, start: int, duration: int, changes: Changes) -> float:
    """Return what an evolving job's slowdown costs."""
    least = max(SLOWDOWN_TAU, duration)
    return changes.slow[job] / least * max(0.0, start - changes.submits[job] - least + duration)


@inner_kernel
def cost_of_changes(job: int, places: Places, row: int, changes: Changes) -> float:
    """Return the cost of each second that a place takes longer, and of steps that are held."""
    start, end = places.starts[row], places.ends[row]
    extra = end - start - changes.durations[job]
    cost = changes.late[job] * extra
    if changes.sequence[job] >= 0 and extra > 0:
        first = changes.sequences.heads[changes.sequence[job], step_kernels.C_STEP]
        for k in range(places.counts[row]):
            held = places.until[row, k] - places.begins[row, k]
            held -= changes.sequences.steps[first + k, step_kernels.P_NEEDED]
            cost += changes.waste[job] * held * changes.cores[first + k]
        if changes.slow[job] > 0.0:
            cost += slowdown_from(job, start, end - start, changes)
            cost -= slowdown_from(job, start, changes.durations[job], changes)
    return cost


# --- what a job takes ------------------------------------------------------------------------------------------------


@inner_kernel
def turn(mode: int, entries: Array, count: int, changes: Changes) -> None:
    """Write the entries of a waiting job in one of its modes to `turned`."""
    for e in range(count):
        changes.turned[e, 0], changes.turned[e, 2] = entries[e, 0], entries[e, 2]
        changes.turned[e, 1] = changes.kinds_in[mode, changes.chunk_of[entries[e, 1]]]


@kernel
def load(
    job: int, number: int, entries: Array, count: int, jobs: Jobs, timeline: Timeline, changes: Changes
) -> tuple[int, int]:
    """Write what a job takes in a step or mode to the scratch; return the numbers of node and system columns."""
    tables, scratch, mode = timeline.tables, timeline.scratch, jobs.first_mode[job] + number
    if changes.sequence[job] >= 0:
        step = changes.sequences.heads[changes.sequence[job], step_kernels.C_STEP] + number
        demand = changes.sequences.steps[step, step_kernels.P_DEMAND]
        return kernels.placement_columns(demand, entries, count, tables, scratch)
    if job < jobs.least.shape[0]:  # it waits
        turn(mode, entries, count, changes)
        return kernels.placement_columns(jobs.demands[mode], changes.turned, count, tables, scratch)
    first, behind = changes.first_column[mode], changes.first_column[mode + 1]
    for k in range(first, behind):
        scratch.columns[k - first], scratch.amounts[k - first] = changes.running.columns[k], changes.running.amounts[k]
    first_system, behind_system = changes.first_system[mode], changes.first_system[mode + 1]
    for k in range(first_system, behind_system):
        scratch.scolumns[k - first_system] = changes.running.scolumns[k]
        scratch.samounts[k - first_system] = changes.running.samounts[k]
    return behind - first, behind_system - first_system


@inner_kernel
def take_parts(job: int, sign: int, jobs: Jobs, plan: Places, timeline: Timeline, changes: Changes) -> None:
    """Take (sign -1) what a job holds in each of its parts from what is free, or give it back (sign 1)."""
    state, scratch = timeline.state, timeline.scratch
    for k in range(plan.counts[job]):
        begin, until = plan.begins[job, k], plan.until[job, k]
        entries = plan.pool[plan.spaces[job] + plan.first_entry[job, k] :]
        columns, systems = load(job, plan.numbers[job, k], entries, plan.entries[job, k], jobs, timeline, changes)
        of_nodes, of_system = scratch.columns[:columns], scratch.scolumns[:systems]
        if sign < 0:
            kernels.add_break(begin, state)
            kernels.add_break(until, state)
        kernels.shift(begin, until, sign, of_nodes, scratch.amounts, of_system, scratch.samounts, state)
        if sign > 0:
            kernels.drop_break(begin, state)
            kernels.drop_break(until, state)


@inner_kernel
def note_columns(job: int, entries: Array, count: int, jobs: Jobs, timeline: Timeline, changes: Changes) -> None:
    """Set what a job takes in each of its modes on its nodes, `in_modes`."""
    tables, scratch, taken = timeline.tables, timeline.scratch, changes.in_modes
    for number in range(jobs.first_mode[job + 1] - jobs.first_mode[job]):
        mode = jobs.first_mode[job] + number
        if job < jobs.least.shape[0]:
            turn(mode, entries, count, changes)
            if not kernels.may_have(changes.turned, count, scratch.free[0], tables):
                changes.num_columns[number] = -1
                continue
        columns, systems = load(job, number, entries, count, jobs, timeline, changes)
        size = 0
        for k in range(columns):  # a node may have chunks of several kinds
            same = size
            if count > 0 and tables.demands[jobs.demands[mode], kernels.D.FLAGS] & kernels.F.JOINT:
                same = 0
                while same < size and taken.columns[number, same] != scratch.columns[k]:
                    same += 1
            if same == size:
                taken.columns[number, same], taken.amounts[number, same] = scratch.columns[k], 0
                size += 1
            taken.amounts[number, same] += scratch.amounts[k]
        for k in range(systems):
            taken.scolumns[number, k], taken.samounts[number, k] = scratch.scolumns[k], scratch.samounts[k]
        changes.num_columns[number], changes.num_systems[number] = size, systems


@inner_kernel
def is_free_in(number: int, block: int, row: int, state: kernels.TimelineState, changes: Changes) -> bool:
    """Tell whether a slot has all that a job takes in a mode (see `note_columns`)."""
    taken = changes.in_modes
    for k in range(changes.num_columns[number]):
        column = taken.columns[number, k]
        if state.rows[row, column] + state.blk[block, kernels.LAZY, column] < taken.amounts[number, k]:
            return False
    for k in range(changes.num_systems[number]):
        column = taken.scolumns[number, k]
        if state.srows[row, column] + state.sblk[block, kernels.LAZY, column] < taken.samounts[number, k]:
            return False
    return True


# --- changes of share ------------------------------------------------------------------------------------------------


@inner_kernel
def set_part(places: Places, row: int, part: int, begin: int, until: int, number: int, entries: int) -> None:
    """Set a part of a malleable job."""
    places.begins[row, part], places.until[row, part], places.numbers[row, part] = begin, until, number
    places.first_entry[row, part], places.entries[row, part] = 0, entries


@inner_kernel
def copy_parts(target: Places, to: int, source: Places, row: int) -> int:
    """Copy the parts of a place; return how many entries it has."""
    entries = 0
    target.starts[to], target.ends[to], target.counts[to] = source.starts[row], source.ends[row], source.counts[row]
    for k in range(source.counts[row]):
        target.begins[to, k], target.until[to, k] = source.begins[row, k], source.until[row, k]
        target.numbers[to, k] = source.numbers[row, k]
        target.first_entry[to, k], target.entries[to, k] = source.first_entry[row, k], source.entries[row, k]
        entries = max(entries, source.first_entry[row, k] + source.entries[row, k])
    return entries


@inner_kernel
def find_fastest(job: int, start: int, count: int, jobs: Jobs, state: kernels.TimelineState, changes: Changes) -> bool:
    """Set `faster` to the parts with which a malleable job that is not booked ends earliest, from its start on and on
    the nodes of `note_columns`: in each second the fastest of its modes that is free then. Tell whether there are any:
    there are none if in some second no mode is free, or if they are more than `MOST_PARTS`.
    """
    first_mode, faster = jobs.first_mode[job], changes.faster
    left, time, found = changes.units[job], start, 0
    place, index = kernels.locate(start, state)
    while True:
        block = state.order[place]
        row, number = state.members[block, index], -1
        for k in range(first_mode, jobs.first_mode[job + 1]):
            if changes.num_columns[changes.by_speed[k]] >= 0 and is_free_in(
                changes.by_speed[k], block, row, state, changes
            ):
                number = changes.by_speed[k]
                break
        if number < 0:
            return False
        place, index = kernels.following(place, index, state)
        until = FOREVER
        if place < state.head[kernels.H.BLOCKS]:
            until = state.slots[state.members[state.order[place], index], 0]
        rate = changes.rates[first_mode + number]
        done = time + (left + rate - 1) // rate
        if found > 0 and faster.numbers[0, found - 1] == number:
            faster.until[0, found - 1] = min(until, done)
        elif found == MOST_PARTS:
            return False
        else:
            set_part(faster, 0, found, time, min(until, done), number, count)
            found += 1
        if done <= until:
            faster.starts[0], faster.ends[0], faster.counts[0] = start, done, found
            return True
        left -= rate * (until - time)
        time = until


@inner_kernel
def expand(job: int, places: Places, row: int, jobs: Jobs, timeline: Timeline, changes: Changes) -> None:
    """Let an unbooked malleable job run on the fastest share free in each second, if it ends earlier then."""
    entries = places.entries[row, 0]
    note_columns(job, places.pool[places.spaces[row] :], entries, jobs, timeline, changes)
    is_found = find_fastest(job, places.starts[row], entries, jobs, timeline.state, changes)
    if is_found and changes.faster.ends[0] < places.ends[row]:
        copy_parts(places, row, changes.faster, 0)


@inner_kernel
def find_slowest(job: int, number: int, jobs: Jobs, plan: Places, changes: Changes) -> bool:
    """Set `slower` to the parts of a malleable job that has a mode from its start for as long as possible: to its end,
    or until it needs its full share to end in time. Tell whether it can have the mode at all.
    """
    slower, first_mode, start, units = changes.slower, jobs.first_mode[job], plan.starts[job], changes.units[job]
    rate, full, entries = changes.rates[first_mode + number], changes.rates[first_mode], plan.entries[job, 0]
    until = start + (units + rate - 1) // rate
    end = until
    if until > changes.last_ends[job]:
        if rate >= full:
            return False
        until = start + ((changes.last_ends[job] - start) * full - units) // (full - rate)
        if until <= start:
            return False
        end = until + (units - rate * (until - start) + full - 1) // full
        set_part(slower, 0, 1, until, end, 0, entries)
    set_part(slower, 0, 0, start, until, number, entries)
    slower.starts[0], slower.ends[0], slower.counts[0] = start, end, 1 + (end > until)
    return True


@inner_kernel
def is_slower_free(state: kernels.TimelineState, changes: Changes) -> bool:
    """Tell whether all parts of `slower`, of a malleable job that is not booked, are free (see `note_columns`)."""
    slower = changes.slower
    for k in range(slower.counts[0]):
        if changes.num_columns[slower.numbers[0, k]] < 0:
            return False
        place, index = kernels.locate(slower.begins[0, k], state)
        while place < state.head[kernels.H.BLOCKS]:
            block = state.order[place]
            row = state.members[block, index]
            if state.slots[row, 0] >= slower.until[0, k]:
                break
            if not is_free_in(slower.numbers[0, k], block, row, state, changes):
                return False
            place, index = kernels.following(place, index, state)
    return True
