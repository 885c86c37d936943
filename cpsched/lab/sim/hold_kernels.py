"""Kernels of what rules set aside for a time: amounts of node columns and of licences that no job can have then.

What jobs have already of it when that time begins stays theirs: the amounts held (`aside_held`) are what they leave. A
job starts only if nothing that it takes is set aside before its walltime is over.
"""

from cpsched.lab.sim.arrays import C
from cpsched.rusv import FOREVER, inner_kernel, kernel, kernels

copy = kernels.copy


@kernel
def has_asides(s):
    """Tell whether anything is set aside, now or later."""
    return s.clock[C.LEVEL] + 1 < s.aside_times.shape[0]


@kernel
def next_change(s):
    """Return the next second at which other amounts are set aside, FOREVER if there is none."""
    following = s.clock[C.LEVEL] + 1
    return s.aside_times[following] if following < s.aside_times.shape[0] else FOREVER


@inner_kernel
def shift_column(column, amount, free, sfree, t):
    """Add an amount to what is free of a node column, and to the sums that it counts for."""
    free[column] += amount
    for part in range(2):
        if t.colsys[column, part] >= 0:
            sfree[t.colsys[column, part]] += amount


@kernel
def hold(a, s, m, t):
    """Hold as much of a column as is set aside now, as far as jobs leave it."""
    column, level, old = s.aside_columns[a], s.aside_levels[s.clock[C.LEVEL], a], s.aside_held[a]
    if column >= 0:
        s.aside_held[a] = min(level, m.free[column] + old)
        shift_column(column, old - s.aside_held[a], m.free, m.sfree, t)
    else:
        s.aside_held[a] = min(level, m.sfree[-1 - column] + old)
        m.sfree[-1 - column] += old - s.aside_held[a]


@kernel
def hold_all(s, m, t):
    """Hold what is set aside now."""
    for a in range(s.aside_columns.shape[0]):
        hold(a, s, m, t)


@inner_kernel
def hold_columns(filled, s, m, t, x):
    """Hold what is set aside now of the columns in the scratch, of which more or less is free than before."""
    for k in range(filled):
        if s.aside_of[x.columns[k]] >= 0:
            hold(s.aside_of[x.columns[k]], s, m, t)
    for q in range(x.samounts.shape[0]):
        if s.aside_of_sums[q] >= 0:
            hold(s.aside_of_sums[q], s, m, t)


@inner_kernel
def follow_asides(filled, sign, end, s, m, t, x):
    """Note that a job takes (`sign` -1) or gives back (1) the amounts in the scratch, which it has until `end`."""
    hold_columns(filled, s, m, t, x)
    k = s.clock[C.LEVEL] + 1
    while k < s.aside_times.shape[0] and s.aside_times[k] < end:
        shift_row(s.aside_ahead[k], filled, sign, s, x)
        k += 1


@inner_kernel
def shift_row(row, filled, sign, s, x):
    """Add the amounts in the scratch (times `sign`) to a row of columns that are set aside."""
    for k in range(filled):
        if s.aside_of[x.columns[k]] >= 0:
            row[s.aside_of[x.columns[k]]] += sign * x.amounts[k]
    for q in range(x.samounts.shape[0]):
        if s.aside_of_sums[q] >= 0:
            row[s.aside_of_sums[q]] += sign * x.samounts[q]


@kernel
def set_aside(filled, sign, start, end, s, x):
    """Set the amounts in the scratch aside (`sign` 1), or no longer (-1), in ``[start, end)``: times of changes."""
    for k in range(s.clock[C.LEVEL], s.aside_times.shape[0]):
        if start <= s.aside_times[k] < end:
            shift_row(s.aside_levels[k], filled, sign, s, x)
            shift_row(s.aside_ahead[k], filled, -sign, s, x)


@inner_kernel
def set_node_aside(node, sign, s, m, t):
    """Note that a node, which no job has, breaks (`sign` -1) or has returned (1): nothing is held while it is down."""
    run = t.run_of[node]
    for c in range(t.runs[run, 2], t.runs[run + 1, 2]):
        column = t.runcols[c] + node - t.runs[run, 0]
        a = s.aside_of[column]
        if a < 0:
            continue
        for k in range(s.clock[C.LEVEL] + 1, s.aside_times.shape[0]):
            s.aside_ahead[k, a] += sign * t.capacity[column]
        if sign > 0:
            hold(a, s, m, t)
        else:
            shift_column(column, s.aside_held[a], m.free, m.sfree, t)
            s.aside_held[a] = 0


@inner_kernel
def lower_room(a, most, s, m, t):
    """Lower the room to an amount of a column; nothing is less than 0."""
    column = s.aside_columns[a]
    if column >= 0:
        less = m.room[column] - max(most, 0)
        if less > 0:
            shift_column(column, -less, m.room, m.sroom, t)
    else:
        m.sroom[-1 - column] = min(m.sroom[-1 - column], max(most, 0))


@inner_kernel
def lower_until(end, start, ahead, s, m, t):
    """Lower the room to what is free (`ahead`) at each change in ``[start, end)``, except at those that have passed."""
    k = s.clock[C.LEVEL] + 1
    while k < s.aside_times.shape[0] and s.aside_times[k] < end:
        if s.aside_times[k] >= start:
            for a in range(s.aside_columns.shape[0]):
                lower_room(a, ahead[k, a], s, m, t)
        k += 1


@inner_kernel
def level_at(time, s):
    """Return the index of the amounts that are set aside at a second from now on."""
    k = s.clock[C.LEVEL]
    while k + 1 < s.aside_times.shape[0] and s.aside_times[k + 1] <= time:
        k += 1
    return k


@kernel
def room_until(end, free, sfree, s, m, t):
    """Set the room to what is free now and at each change before `end`."""
    copy(m.room, free)
    copy(m.sroom, sfree)
    lower_until(end, 0, s.aside_ahead, s, m, t)


@inner_kernel
def lower_at(time, free, sfree, s, m, t):
    """Lower the room to amounts that are free at a second, less what is set aside then."""
    level = level_at(time, s)
    for a in range(s.aside_columns.shape[0]):
        column = s.aside_columns[a]
        most = free[column] if column >= 0 else sfree[-1 - column]
        lower_room(a, most - s.aside_levels[level, a], s, m, t)


@inner_kernel
def room_from(start, end, s, m, t):
    """Set the room to what is free at `start`, for which `future` is made, and at each change from then to `end`."""
    copy(m.room, m.future)
    copy(m.sroom, m.sfuture)
    lower_at(start, m.future, m.sfuture, s, m, t)
    lower_until(end, start, s.aside_ahead, s, m, t)


@inner_kernel
def room_between(start, end, s, m, t):
    """Set the room to what is free from one change to another one, where something of all columns is set aside."""
    copy(m.room, t.capacity)
    copy(m.sroom, s.whole)
    lower_until(end, start, s.aside_ahead, s, m, t)


@inner_kernel
def note_head(filled, s, x):
    """Note what the head of the queue takes: the amounts in the scratch."""
    for a in range(s.aside_head.shape[0]):
        s.aside_head[a] = 0
    shift_row(s.aside_head, filled, 1, s, x)


@inner_kernel
def room_beside(head_end, end, s, m, t):
    """Set the room to what is free for a job that runs from now on to `end`, beyond the start of the head of the queue:
    at each change less what the head has then, until `head_end`.
    """
    copy(m.room, m.low)
    copy(m.sroom, m.slow)
    shadow = s.clock[C.SHADOW]
    lower_at(shadow, m.after, m.safter, s, m, t)
    k = s.clock[C.LEVEL] + 1
    while k < s.aside_times.shape[0] and s.aside_times[k] < end:
        is_beside = shadow <= s.aside_times[k] < head_end
        for a in range(s.aside_columns.shape[0]):
            lower_room(a, s.aside_ahead[k, a] - (s.aside_head[a] if is_beside else 0), s, m, t)
        k += 1
