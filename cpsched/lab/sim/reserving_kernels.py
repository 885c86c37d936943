"""Kernels of rules that keep reservations for all blocked jobs: a pass through the queue.

In the order of the queue a job starts if all that it takes is free until its walltime is over, beside what is reserved.
If not, it gets a reservation, at its earliest start beside the earlier ones, if that is before the horizon: the second
by which every job of the queue would end if it started now. Where it matters which nodes are reserved, there are at
most as many as `reserved` has rows. They are made anew in each pass: nothing is promised to
jobs that no rule of the site binds. A reservation matters only to jobs behind it, so that a pass ends as soon as the
system has not enough for any of these.

The sums over the system that are free, from now to the last end, are a list of steps (`step_times`, `step_sums`). It is
made for the first blocked job of a pass, and each start and reservation lowers it. Where jobs are counted on equal
nodes (`is_counted`) it says all: a job that has enough at each second of its walltime has nodes, too, when it starts.

Elsewhere it says where a search can begin. What is free in a later second is least when reservations begin, or other
amounts are set aside: between these seconds jobs only end. So the amounts that are free at the start of each
reservation, beside it (`beside`), tell with those that are free at the changes of what is set aside (`ahead`) what a
job can have that begins before and ends after.
"""

from cpsched.lab.sim.arrays import C, J, Machine, R, RuleNumbers, SimState, V
from cpsched.lab.sim.hold_kernels import has_asides, level_at, lower_at, lower_room, lower_until, next_change, shift_row
from cpsched.lab.sim.queue_kernels import DUE, index_of
from cpsched.lab.sim.run_kernels import (
    asked_by,
    begin_run,
    move_until,
    num_choices,
    open_choice,
    spell_job,
    take_choice,
)
from cpsched.rusv import FOREVER, Scratch, Tables, inner_kernel, instant_kernels, kernels

copy, lower_by_two, D_SYS = kernels.copy, kernels.lower_by_two, kernels.D.SYS
has_sums = instant_kernels.has_sums
map_late, map_now, spell_out = instant_kernels.map_late, instant_kernels.map_now, instant_kernels.spell_out


# --- the steps of the sums -------------------------------------------------------------------------------------------


@inner_kernel
def add_held(aside: int, state: SimState, tables: Tables) -> None:
    """Add what is held of a column that is set aside now to the first step."""
    column = state.aside_columns[aside]
    if column < 0:
        state.step_sums[0, -1 - column] += state.aside_held[aside]
        return
    for part in range(2):
        if tables.colsys[column, part] >= 0:
            state.step_sums[0, tables.colsys[column, part]] += state.aside_held[aside]


@inner_kernel
def begin_steps(now: int, state: SimState, machine: Machine, tables: Tables) -> bool:
    """Make the steps of this second: what is free now, and after each end that is expected; tell whether they have
    room, beside those of one reservation. Nothing is set aside in them.
    """
    if state.step_times.shape[0] < state.clock[C.RUNNING] + 3:
        state.clock[C.LACKS] = 1
        return False
    count = 1
    state.step_times[0] = now
    copy(state.step_sums[0], machine.sfree)
    for a in range(state.aside_columns.shape[0]):
        add_held(a, state, tables)
    for i in range(state.clock[C.RUNNING]):
        if state.ends[i, 0] > state.step_times[count - 1]:
            state.step_times[count] = state.ends[i, 0]
            copy(state.step_sums[count], state.step_sums[count - 1])
            count += 1
        for q in range(machine.sfree.shape[0]):
            state.step_sums[count - 1, q] += state.sums[state.ends[i, 1], q]
    state.clock[C.STEPS] = count
    return True


@inner_kernel
def first_step(time: int, state: SimState) -> int:
    """Return the index of the first step at `time` or later."""
    low, high = 0, state.clock[C.STEPS]
    while low < high:
        middle = (low + high) // 2
        if state.step_times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def step_at(time: int, state: SimState) -> int:
    """Return the index of a step that begins at `time`, which is not before the first one; it is made if need be."""
    found, count = first_step(time, state), state.clock[C.STEPS]
    if found < count and state.step_times[found] == time:
        return found
    for k in range(count, found, -1):
        state.step_times[k] = state.step_times[k - 1]
        copy(state.step_sums[k], state.step_sums[k - 1])
    state.step_times[found] = time
    copy(state.step_sums[found], state.step_sums[found - 1])
    state.clock[C.STEPS] += 1
    return found


@inner_kernel
def take_sums(start: int, end: int, state: SimState, scratch: Scratch) -> None:
    """Lower the steps in ``[start, end)`` by the sums in the scratch; there have to be two free places."""
    first = step_at(start, state)
    for k in range(first, step_at(end, state)):
        for q in range(scratch.samounts.shape[0]):
            state.step_sums[k, q] -= scratch.samounts[q]


@inner_kernel
def has_sums_until(demand: int, end: int, state: SimState, tables: Tables) -> bool:
    """Tell whether the sums suffice for a demand from now to `end`."""
    k = 0
    while k < state.clock[C.STEPS] and state.step_times[k] < end:
        if not has_sums(demand, state.step_sums[k], tables.demands, tables.sysreq):
            return False
        k += 1
    return True


@inner_kernel
def fitting_step(demand: int, seconds: int, step: int, last: int, state: SimState, tables: Tables) -> int:
    """Return the first step from one to the second `last` from which the sums suffice for so many seconds; -1: none."""
    count = state.clock[C.STEPS]
    while step < count and state.step_times[step] <= last:
        end, i = state.step_times[step] + seconds, step
        while (
            i < count
            and state.step_times[i] < end
            and has_sums(demand, state.step_sums[i], tables.demands, tables.sysreq)
        ):
            i += 1
        if i == count or state.step_times[i] >= end:
            return step
        step = i + 1
    return -1


# --- reservations on nodes -------------------------------------------------------------------------------------------


@inner_kernel
def take_ahead(filled: int, start: int, end: int, state: SimState, scratch: Scratch) -> None:
    """Lower what is free at starts of reservations and changes of asides in ``[start, end)`` by the scratch."""
    for v in range(state.clock[C.BLOCKED]):
        if start <= state.reserved[v, V.START] < end:
            for k in range(filled):
                state.beside[v, scratch.columns[k]] -= scratch.amounts[k]
    for k in range(state.clock[C.LEVEL] + 1, state.aside_times.shape[0]):
        if start <= state.aside_times[k] < end:
            shift_row(state.ahead[k], filled, -1, state, scratch)


@inner_kernel
def take_reserved(time: int, state: SimState, machine: Machine) -> None:
    """Lower the room on nodes by what is reserved at a second."""
    for v in range(state.clock[C.BLOCKED]):
        if state.reserved[v, V.START] <= time < state.reserved[v, V.END]:
            first = state.reserved[v, V.FIRST]
            for k in range(first, first + state.reserved[v, V.COUNT]):
                machine.room[state.reserved_columns[k]] -= state.reserved_amounts[k]


@inner_kernel
def lower_licences(step: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Lower the room to what a step leaves of licences that are set aside then."""
    for a in range(state.aside_columns.shape[0]):
        if state.aside_columns[a] < 0:
            aside = state.aside_levels[level_at(state.step_times[step], state), a]
            lower_room(a, state.step_sums[step, -1 - state.aside_columns[a]] - aside, state, machine, tables)


@inner_kernel
def lower_between(start: int, end: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Lower the room to what is free at each second of ``(start, end)``."""
    for v in range(state.clock[C.BLOCKED]):
        if start < state.reserved[v, V.START] < end:
            lower_by_two(machine.room, machine.room, state.beside[v])
    for k in range(first_step(start + 1, state), state.clock[C.STEPS]):
        if state.step_times[k] >= end:
            break
        lower_by_two(machine.sroom, machine.sroom, state.step_sums[k])
        lower_licences(k, state, machine, tables)
    if has_asides(state):
        lower_until(end, start + 1, state.ahead, state, machine, tables)


@inner_kernel
def spell_sums(demand: int, tables: Tables, scratch: Scratch) -> int:
    """Write what a counted demand takes of the system to the scratch; return the number of node columns, none."""
    for q in range(scratch.samounts.shape[0]):
        scratch.samounts[q] = 0
    for k in range(tables.demands[demand, D_SYS], tables.demands[demand + 1, D_SYS]):
        scratch.samounts[tables.sysreq[k, 0]] = tables.sysreq[k, 1]
    return 0


@inner_kernel
def spell_late(
    demand: int, time: int, end: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> int:
    """Choose nodes for a demand from `time` to `end`, those that are not free now before those that are, and write what
    it takes to the scratch; return the number of node columns, 0 if there are none.
    """
    move_until(time, state, machine, tables, scratch)
    copy(machine.room, machine.future)
    copy(machine.sroom, state.step_sums[first_step(time + 1, state) - 1])
    take_reserved(time, state, machine)
    if has_asides(state):
        lower_at(time, machine.room, machine.sroom, state, machine, tables)
    copy(state.beside[state.clock[C.BLOCKED]], machine.room)
    lower_between(time, end, state, machine, tables)
    if not has_sums(demand, machine.sroom, tables.demands, tables.sysreq):
        return 0
    count = map_late(demand, machine.free, machine.room, machine.low, tables, scratch)
    return spell_out(demand, scratch.entries, count, tables, scratch) if count > 0 else 0


@inner_kernel
def note_reservation(job: int, start: int, end: int, filled: int, state: SimState, scratch: Scratch) -> None:
    """Add a reservation on the node columns in the scratch; what is free at its start without it is known."""
    v = state.clock[C.BLOCKED]
    first = state.reserved[v - 1, V.FIRST] + state.reserved[v - 1, V.COUNT] if v > 0 else 0
    state.reserved[v, V.JOB], state.reserved[v, V.START], state.reserved[v, V.END] = job, start, end
    state.reserved[v, V.FIRST], state.reserved[v, V.COUNT] = first, filled
    for k in range(filled):
        state.reserved_columns[first + k], state.reserved_amounts[first + k] = scratch.columns[k], scratch.amounts[k]
    state.clock[C.BLOCKED] += 1
    take_ahead(filled, start, end, state, scratch)


@inner_kernel
def has_places(state: SimState) -> bool:
    """Tell whether there is room for the steps of one more reservation or start."""
    if state.clock[C.STEPS] + 2 <= state.step_times.shape[0]:
        return True
    state.clock[C.LACKS] = 1
    return False


@inner_kernel
def first_start(
    demand: int,
    seconds: int,
    last: int,
    is_counted: bool,
    state: SimState,
    machine: Machine,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int]:
    """Return the first second after now, to `last`, from which on a demand finds room for so many seconds, FOREVER if
    there is none, and the number of node columns; what it takes is in the scratch.
    """
    k, changes = 1, state.clock[C.LEVEL] + 1
    while True:
        k = fitting_step(demand, seconds, k, last, state, tables)
        time = state.step_times[k] if k >= 0 else FOREVER
        if changes < state.aside_times.shape[0] and state.aside_times[changes] <= min(time, last):
            time = state.aside_times[changes]
        if time == FOREVER:
            return FOREVER, 0
        while changes < state.aside_times.shape[0] and state.aside_times[changes] <= time:
            changes += 1
        filled = (
            spell_sums(demand, tables, scratch)
            if is_counted
            else spell_late(demand, time, time + seconds, state, machine, tables, scratch)
        )
        if is_counted or filled > 0:
            return time, filled
        k = first_step(time + 1, state)


@inner_kernel
def reserve_next(
    job: int, now: int, is_counted: bool, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Reserve nodes for a job at its earliest start, by that of its open choices which starts first, on what is not
    free now rather than on what is. No reservation is made where it could start only after the last second at which it
    may, or after the horizon.

    Within a pass nothing becomes free: a demand that had no start for some seconds has none for more later on.
    """
    stamp, last, found, filled, by, tried = state.clock[C.STAMP], state.clock[C.HORIZON] - 1, FOREVER, 0, -1, -1
    if state.clock[C.BLOCKED] == state.reserved.shape[0]:
        return  # each reservation on nodes is compared with all others
    for k in range(max(1, num_choices(job, state))):
        demand, seconds, is_open = asked_by(job, k, state)
        until = min(state.latest[job], last, found - 1)
        if not is_open or (state.bounded[demand, 1] == stamp and seconds >= state.bounded[demand, 3]):
            continue
        if (state.clock[C.STEPS] == 0 and not begin_steps(now, state, machine, tables)) or not has_places(state):
            return
        time, columns = first_start(demand, seconds, until, is_counted, state, machine, tables, scratch)
        tried = k
        if time < FOREVER:
            found, filled, by = time, columns, k
        elif last == until and last < state.latest[job]:
            state.bounded[demand, 1], state.bounded[demand, 3] = stamp, seconds
    if by < 0:
        return
    demand, seconds, _ = asked_by(job, by, state)
    if tried != by:  # the scratch is that of a choice which does not start sooner
        filled = (
            spell_sums(demand, tables, scratch)
            if is_counted
            else spell_late(demand, found, found + seconds, state, machine, tables, scratch)
        )
    if not is_counted:
        note_reservation(job, found, found + seconds, filled, state, scratch)
    take_sums(found, found + seconds, state, scratch)


@inner_kernel
def start_beside_reserved(
    job: int, now: int, is_counted: bool, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job if it fits beside what is reserved; tell whether it has started.

    Within a pass nothing becomes free: a demand that did not fit for some seconds does not fit for more later on.
    """
    demand, seconds = state.demand[job], state.jobs[job, J.WALLTIME]
    stamp, end = state.clock[C.STAMP], now + seconds
    if state.bounded[demand, 0] == stamp and seconds >= state.bounded[demand, 2]:
        return False
    shortest, count = seconds, 0
    if state.clock[C.STEPS] == 0 and next_change(state) >= end:
        count, shortest = map_now(demand, machine.free, machine.sfree, tables, scratch), 0
    elif has_sums(demand, machine.sfree, tables.demands, tables.sysreq) and has_sums_until(demand, end, state, tables):
        if is_counted:
            count = map_now(demand, machine.free, machine.sfree, tables, scratch)
        else:
            copy(machine.room, machine.free)
            copy(machine.sroom, machine.sfree)
            lower_between(now, end, state, machine, tables)
            count = map_now(demand, machine.room, machine.sroom, tables, scratch)
    if count == 0:
        state.bounded[demand, 0], state.bounded[demand, 2] = stamp, shortest
        return False
    if state.clock[C.STEPS] > 0 and not has_places(state):
        return False
    if not begin_run(job, count, now, state, machine, tables, scratch):
        return False
    if state.clock[C.STEPS] > 0 or has_asides(state):
        filled = spell_sums(demand, tables, scratch) if is_counted else spell_job(job, state, tables, scratch)
        take_ahead(filled, now + 1, end, state, scratch)
        if state.clock[C.STEPS] > 0:
            take_sums(now, state.runs[job, R.END], state, scratch)
    return True


@inner_kernel
def start_first_beside(
    job: int, now: int, is_counted: bool, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job by the first of its open choices that fits beside what is reserved; tell whether it has started."""
    k = 0
    while not start_beside_reserved(job, now, is_counted, state, machine, tables, scratch):
        k = open_choice(job, k + 1, state)
        if state.clock[C.LACKS] or k >= num_choices(job, state):
            take_choice(job, 0, state)
            return False
        take_choice(job, k, state)
    return True


@inner_kernel
def is_let_in(job: int, rule: RuleNumbers, now: int, state: SimState) -> bool:
    """Tell whether the gate lets a job in: its index is at most so many times that of the first blocked job. Keys of
    jobs that have promises, or are due, are negative: it is open for them.
    """
    if rule.gate < 0 or state.clock[C.HEAD] < 0 or state.keys[job] < 0:
        return True
    return index_of(rule, job, now, state) <= rule.gate * index_of(rule, state.clock[C.HEAD], now, state)


@inner_kernel
def may_start(job: int, now: int, state: SimState, machine: Machine, tables: Tables) -> bool:
    """Tell whether a job waits, and the system has enough for it from now until its walltime is over, beside what is
    reserved: else it does not start in this pass.
    """
    if state.runs[job, R.START] >= 0:
        return False
    demand, end = state.demand[job], now + state.jobs[job, J.WALLTIME]
    if has_sums(demand, machine.sfree, tables.demands, tables.sysreq) and has_sums_until(demand, end, state, tables):
        return True
    for row in range(state.choices_of[job], state.choices_of[job + 1]):
        demand, end = state.choices[row, 0], now + state.choices[row, 1]
        if has_sums(demand, machine.sfree, tables.demands, tables.sysreq) and has_sums_until(
            demand, end, state, tables
        ):
            return True
    return False


@inner_kernel
def can_any_start(state: SimState, machine: Machine, tables: Tables) -> bool:
    """Tell whether the system has enough for any job of the queue now: else a pass changes nothing."""
    for i in range(state.clock[C.QUEUED]):
        job = state.queue[i]
        if has_sums(state.demand[job], machine.sfree, tables.demands, tables.sysreq):
            return True
        for row in range(state.choices_of[job], state.choices_of[job + 1]):
            if has_sums(state.choices[row, 0], machine.sfree, tables.demands, tables.sysreq):
                return True
    return False


@inner_kernel
def note_horizon(now: int, state: SimState) -> None:
    """Note the horizon of this second, unless the pass is repeated because an array had to grow."""
    if state.clock[C.HORIZON] < 0:
        state.clock[C.HORIZON] = now
        for i in range(state.clock[C.QUEUED]):
            job = state.queue[i]
            state.clock[C.HORIZON] = max(state.clock[C.HORIZON], now + state.jobs[job, J.WALLTIME])
            for row in range(state.choices_of[job], state.choices_of[job + 1]):
                state.clock[C.HORIZON] = max(state.clock[C.HORIZON], now + state.choices[row, 1])


@inner_kernel
def pass_reserving(
    now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Go through the queue: start jobs, and make reservations anew.

    The first blocked job that has no promise and is not due is noted as the head. As under EASY it is the first one
    without a promise, and those behind it have no reservations. The pass ends before the last job if none that follows
    may start.
    """
    state.clock[C.STAMP] += 1
    state.clock[C.BLOCKED], state.clock[C.STEPS], state.clock[C.HEAD] = 0, 0, -1
    note_horizon(now, state)
    for k in range(state.ahead.shape[0]):
        for a in range(state.ahead.shape[1]):
            state.ahead[k, a] = state.aside_ahead[k, a]
    last = state.clock[C.QUEUED] - 1
    for i in range(state.clock[C.QUEUED]):
        job = state.queue[i]
        if state.runs[job, R.START] >= 0:
            continue  # it has started before the arrays had to grow
        if not is_let_in(job, rule, now, state):
            continue
        if start_first_beside(job, now, rule.is_counted, state, machine, tables, scratch):
            state.clock[C.OVERTAKING] += 1
            continue
        if state.clock[C.LACKS]:
            return
        as_easy = state.clock[C.AS_EASY] == 1
        if state.clock[C.HEAD] < 0 and state.keys[job] >= (DUE if as_easy else 0.0):
            state.clock[C.HEAD] = job
        while last > i and not may_start(state.queue[last], now, state, machine, tables):
            last -= 1
        if last <= i:
            return
        if not as_easy or state.clock[C.HEAD] < 0 or state.clock[C.HEAD] == job:
            reserve_next(job, now, rule.is_counted, state, machine, tables, scratch)
        if state.clock[C.LACKS]:
            return
