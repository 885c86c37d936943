"""Kernels of what rules set aside for a time: amounts of node columns and of licences that no job can have then.

What jobs have already of it when that time begins stays theirs: the amounts held (`aside_held`) are what they leave. A
job starts only if nothing that it takes is set aside before its walltime is over.
"""

from cpsched.lab.sim.arrays import C, Machine, SimState
from cpsched.rusv import FOREVER, Array, Scratch, Tables, inner_kernel, kernel, kernels

copy = kernels.copy


@kernel
def has_asides(state: SimState) -> bool:
    """Tell whether anything is set aside, now or later."""
    return state.clock[C.LEVEL] + 1 < state.aside_times.shape[0]


@kernel
def next_change(state: SimState) -> int:
    """Return the next second at which other amounts are set aside, FOREVER if there is none."""
    following = state.clock[C.LEVEL] + 1
    return state.aside_times[following] if following < state.aside_times.shape[0] else FOREVER


@inner_kernel
def shift_column(column: int, amount: int, free: Array, sfree: Array, tables: Tables) -> None:
    """Add an amount to what is free of a node column, and to the sums that it counts for."""
    free[column] += amount
    for part in range(2):
        if tables.colsys[column, part] >= 0:
            sfree[tables.colsys[column, part]] += amount


@kernel
def hold(aside: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Hold as much of a column as is set aside now, as far as jobs leave it."""
    column, level, old = (
        state.aside_columns[aside],
        state.aside_levels[state.clock[C.LEVEL], aside],
        state.aside_held[aside],
    )
    if column >= 0:
        state.aside_held[aside] = min(level, machine.free[column] + old)
        shift_column(column, old - state.aside_held[aside], machine.free, machine.sfree, tables)
    else:
        state.aside_held[aside] = min(level, machine.sfree[-1 - column] + old)
        machine.sfree[-1 - column] += old - state.aside_held[aside]


@kernel
def hold_all(state: SimState, machine: Machine, tables: Tables) -> None:
    """Hold what is set aside now."""
    for a in range(state.aside_columns.shape[0]):
        hold(a, state, machine, tables)


@inner_kernel
def hold_columns(filled: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Hold what is set aside now of the columns in the scratch, of which more or less is free than before."""
    for k in range(filled):
        if state.aside_of[scratch.columns[k]] >= 0:
            hold(state.aside_of[scratch.columns[k]], state, machine, tables)
    for q in range(scratch.samounts.shape[0]):
        if state.aside_of_sums[q] >= 0:
            hold(state.aside_of_sums[q], state, machine, tables)


@inner_kernel
def follow_asides(
    filled: int, sign: int, end: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Note that a job takes (`sign` -1) or gives back (1) the amounts in the scratch, which it has until `end`."""
    hold_columns(filled, state, machine, tables, scratch)
    k = state.clock[C.LEVEL] + 1
    while k < state.aside_times.shape[0] and state.aside_times[k] < end:
        shift_row(state.aside_ahead[k], filled, sign, state, scratch)
        k += 1


@inner_kernel
def shift_row(row: Array, filled: int, sign: int, state: SimState, scratch: Scratch) -> None:
    """Add the amounts in the scratch (times `sign`) to a row of columns that are set aside."""
    for k in range(filled):
        if state.aside_of[scratch.columns[k]] >= 0:
            row[state.aside_of[scratch.columns[k]]] += sign * scratch.amounts[k]
    for q in range(scratch.samounts.shape[0]):
        if state.aside_of_sums[q] >= 0:
            row[state.aside_of_sums[q]] += sign * scratch.samounts[q]


@kernel
def set_aside(filled: int, sign: int, start: int, end: int, state: SimState, scratch: Scratch) -> None:
    """Set the amounts in the scratch aside (`sign` 1), or no longer (-1), in ``[start, end)``: times of changes."""
    for k in range(state.clock[C.LEVEL], state.aside_times.shape[0]):
        if start <= state.aside_times[k] < end:
            shift_row(state.aside_levels[k], filled, sign, state, scratch)
            shift_row(state.aside_ahead[k], filled, -sign, state, scratch)


@inner_kernel
def set_node_aside(node: int, sign: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Note that a node, which no job has, breaks (`sign` -1) or has returned (1): nothing is held while it is down."""
    run = tables.run_of[node]
    for c in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
        column = tables.runcols[c] + node - tables.runs[run, 0]
        a = state.aside_of[column]
        if a < 0:
            continue
        for k in range(state.clock[C.LEVEL] + 1, state.aside_times.shape[0]):
            state.aside_ahead[k, a] += sign * tables.capacity[column]
        if sign > 0:
            hold(a, state, machine, tables)
        else:
            shift_column(column, state.aside_held[a], machine.free, machine.sfree, tables)
            state.aside_held[a] = 0


@inner_kernel
def lower_room(aside: int, most: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Lower the room to an amount of a column; nothing is less than 0."""
    column = state.aside_columns[aside]
    if column >= 0:
        less = machine.room[column] - max(most, 0)
        if less > 0:
            shift_column(column, -less, machine.room, machine.sroom, tables)
    else:
        machine.sroom[-1 - column] = min(machine.sroom[-1 - column], max(most, 0))


@inner_kernel
def lower_until(end: int, start: int, ahead: Array, state: SimState, machine: Machine, tables: Tables) -> None:
    """Lower the room to what is free (`ahead`) at each change in ``[start, end)``, except at those that have passed."""
    k = state.clock[C.LEVEL] + 1
    while k < state.aside_times.shape[0] and state.aside_times[k] < end:
        if state.aside_times[k] >= start:
            for a in range(state.aside_columns.shape[0]):
                lower_room(a, ahead[k, a], state, machine, tables)
        k += 1


@inner_kernel
def level_at(time: int, state: SimState) -> int:
    """Return the index of the amounts that are set aside at a second from now on."""
    k = state.clock[C.LEVEL]
    while k + 1 < state.aside_times.shape[0] and state.aside_times[k + 1] <= time:
        k += 1
    return k


@kernel
def room_until(end: int, free: Array, sfree: Array, state: SimState, machine: Machine, tables: Tables) -> None:
    """Set the room to what is free now and at each change before `end`."""
    copy(machine.room, free)
    copy(machine.sroom, sfree)
    lower_until(end, 0, state.aside_ahead, state, machine, tables)


@inner_kernel
def lower_at(time: int, free: Array, sfree: Array, state: SimState, machine: Machine, tables: Tables) -> None:
    """Lower the room to amounts that are free at a second, less what is set aside then."""
    level = level_at(time, state)
    for a in range(state.aside_columns.shape[0]):
        column = state.aside_columns[a]
        most = free[column] if column >= 0 else sfree[-1 - column]
        lower_room(a, most - state.aside_levels[level, a], state, machine, tables)


@inner_kernel
def room_from(start: int, end: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Set the room to what is free at `start`, for which `future` is made, and at each change from then to `end`."""
    copy(machine.room, machine.future)
    copy(machine.sroom, machine.sfuture)
    lower_at(start, machine.future, machine.sfuture, state, machine, tables)
    lower_until(end, start, state.aside_ahead, state, machine, tables)


@inner_kernel
def room_between(start: int, end: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Set the room to what is free from one change to another one, where something of all columns is set aside."""
    copy(machine.room, tables.capacity)
    copy(machine.sroom, state.whole)
    lower_until(end, start, state.aside_ahead, state, machine, tables)


@inner_kernel
def note_head(filled: int, state: SimState, scratch: Scratch) -> None:
    """Note what the head of the queue takes: the amounts in the scratch."""
    for a in range(state.aside_head.shape[0]):
        state.aside_head[a] = 0
    shift_row(state.aside_head, filled, 1, state, scratch)


@inner_kernel
def room_beside(head_end: int, end: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Set the room to what is free for a job that runs from now on to `end`, beyond the start of the head of the queue:
    at each change less what the head has then, until `head_end`.
    """
    copy(machine.room, machine.low)
    copy(machine.sroom, machine.slow)
    shadow = state.clock[C.SHADOW]
    lower_at(shadow, machine.after, machine.safter, state, machine, tables)
    k = state.clock[C.LEVEL] + 1
    while k < state.aside_times.shape[0] and state.aside_times[k] < end:
        is_beside = shadow <= state.aside_times[k] < head_end
        for a in range(state.aside_columns.shape[0]):
            lower_room(a, state.aside_ahead[k, a] - (state.aside_head[a] if is_beside else 0), state, machine, tables)
        k += 1
