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

from cpsched.lab.sim.arrays import C, J, R, V
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
from cpsched.rusv import FOREVER, inner_kernel, instant_kernels, kernels

copy, lower_by_two, D_SYS = kernels.copy, kernels.lower_by_two, kernels.D.SYS
has_sums = instant_kernels.has_sums
map_late, map_now, spell_out = instant_kernels.map_late, instant_kernels.map_now, instant_kernels.spell_out


# --- the steps of the sums -------------------------------------------------------------------------------------------


@inner_kernel
def add_held(a, s, t):
    """Add what is held of a column that is set aside now to the first step."""
    column = s.aside_columns[a]
    if column < 0:
        s.step_sums[0, -1 - column] += s.aside_held[a]
        return
    for part in range(2):
        if t.colsys[column, part] >= 0:
            s.step_sums[0, t.colsys[column, part]] += s.aside_held[a]


@inner_kernel
def begin_steps(now, s, m, t):
    """Make the steps of this second: what is free now, and after each end that is expected; tell whether they have
    room, beside those of one reservation. Nothing is set aside in them.
    """
    if s.step_times.shape[0] < s.clock[C.RUNNING] + 3:
        s.clock[C.LACKS] = 1
        return False
    count = 1
    s.step_times[0] = now
    copy(s.step_sums[0], m.sfree)
    for a in range(s.aside_columns.shape[0]):
        add_held(a, s, t)
    for i in range(s.clock[C.RUNNING]):
        if s.ends[i, 0] > s.step_times[count - 1]:
            s.step_times[count] = s.ends[i, 0]
            copy(s.step_sums[count], s.step_sums[count - 1])
            count += 1
        for q in range(m.sfree.shape[0]):
            s.step_sums[count - 1, q] += s.sums[s.ends[i, 1], q]
    s.clock[C.STEPS] = count
    return True


@inner_kernel
def first_step(time, s):
    """Return the index of the first step at `time` or later."""
    low, high = 0, s.clock[C.STEPS]
    while low < high:
        middle = (low + high) // 2
        if s.step_times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def step_at(time, s):
    """Return the index of a step that begins at `time`, which is not before the first one; it is made if need be."""
    found, count = first_step(time, s), s.clock[C.STEPS]
    if found < count and s.step_times[found] == time:
        return found
    for k in range(count, found, -1):
        s.step_times[k] = s.step_times[k - 1]
        copy(s.step_sums[k], s.step_sums[k - 1])
    s.step_times[found] = time
    copy(s.step_sums[found], s.step_sums[found - 1])
    s.clock[C.STEPS] += 1
    return found


@inner_kernel
def take_sums(start, end, s, x):
    """Lower the steps in ``[start, end)`` by the sums in the scratch; there have to be two free places."""
    first = step_at(start, s)
    for k in range(first, step_at(end, s)):
        for q in range(x.samounts.shape[0]):
            s.step_sums[k, q] -= x.samounts[q]


@inner_kernel
def has_sums_until(demand, end, s, t):
    """Tell whether the sums suffice for a demand from now to `end`."""
    k = 0
    while k < s.clock[C.STEPS] and s.step_times[k] < end:
        if not has_sums(demand, s.step_sums[k], t.demands, t.sysreq):
            return False
        k += 1
    return True


@inner_kernel
def fitting_step(demand, seconds, k, last, s, t):
    """Return the first step from k to the second `last` from which the sums suffice for so many seconds; -1: none."""
    count = s.clock[C.STEPS]
    while k < count and s.step_times[k] <= last:
        end, i = s.step_times[k] + seconds, k
        while i < count and s.step_times[i] < end and has_sums(demand, s.step_sums[i], t.demands, t.sysreq):
            i += 1
        if i == count or s.step_times[i] >= end:
            return k
        k = i + 1
    return -1


# --- reservations on nodes -------------------------------------------------------------------------------------------


@inner_kernel
def take_ahead(filled, start, end, s, x):
    """Lower what is free at starts of reservations and changes of asides in ``[start, end)`` by the scratch."""
    for v in range(s.clock[C.BLOCKED]):
        if start <= s.reserved[v, V.START] < end:
            for k in range(filled):
                s.beside[v, x.columns[k]] -= x.amounts[k]
    for k in range(s.clock[C.LEVEL] + 1, s.aside_times.shape[0]):
        if start <= s.aside_times[k] < end:
            shift_row(s.ahead[k], filled, -1, s, x)


@inner_kernel
def take_reserved(time, s, m):
    """Lower the room on nodes by what is reserved at a second."""
    for v in range(s.clock[C.BLOCKED]):
        if s.reserved[v, V.START] <= time < s.reserved[v, V.END]:
            first = s.reserved[v, V.FIRST]
            for k in range(first, first + s.reserved[v, V.COUNT]):
                m.room[s.reserved_columns[k]] -= s.reserved_amounts[k]


@inner_kernel
def lower_licences(k, s, m, t):
    """Lower the room to what a step leaves of licences that are set aside then."""
    for a in range(s.aside_columns.shape[0]):
        if s.aside_columns[a] < 0:
            aside = s.aside_levels[level_at(s.step_times[k], s), a]
            lower_room(a, s.step_sums[k, -1 - s.aside_columns[a]] - aside, s, m, t)


@inner_kernel
def lower_between(start, end, s, m, t):
    """Lower the room to what is free at each second of ``(start, end)``."""
    for v in range(s.clock[C.BLOCKED]):
        if start < s.reserved[v, V.START] < end:
            lower_by_two(m.room, m.room, s.beside[v])
    for k in range(first_step(start + 1, s), s.clock[C.STEPS]):
        if s.step_times[k] >= end:
            break
        lower_by_two(m.sroom, m.sroom, s.step_sums[k])
        lower_licences(k, s, m, t)
    if has_asides(s):
        lower_until(end, start + 1, s.ahead, s, m, t)


@inner_kernel
def spell_sums(demand, t, x):
    """Write what a counted demand takes of the system to the scratch; return the number of node columns, none."""
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = 0
    for k in range(t.demands[demand, D_SYS], t.demands[demand + 1, D_SYS]):
        x.samounts[t.sysreq[k, 0]] = t.sysreq[k, 1]
    return 0


@inner_kernel
def spell_late(demand, time, end, s, m, t, x):
    """Choose nodes for a demand from `time` to `end`, those that are not free now before those that are, and write what
    it takes to the scratch; return the number of node columns, 0 if there are none.
    """
    move_until(time, s, m, t, x)
    copy(m.room, m.future)
    copy(m.sroom, s.step_sums[first_step(time + 1, s) - 1])
    take_reserved(time, s, m)
    if has_asides(s):
        lower_at(time, m.room, m.sroom, s, m, t)
    copy(s.beside[s.clock[C.BLOCKED]], m.room)
    lower_between(time, end, s, m, t)
    if not has_sums(demand, m.sroom, t.demands, t.sysreq):
        return 0
    count = map_late(demand, m.free, m.room, m.low, t, x)
    return spell_out(demand, x.entries, count, t, x) if count > 0 else 0


@inner_kernel
def note_reservation(job, start, end, filled, s, x):
    """Add a reservation on the node columns in the scratch; what is free at its start without it is known."""
    v = s.clock[C.BLOCKED]
    first = s.reserved[v - 1, V.FIRST] + s.reserved[v - 1, V.COUNT] if v > 0 else 0
    s.reserved[v, V.JOB], s.reserved[v, V.START], s.reserved[v, V.END] = job, start, end
    s.reserved[v, V.FIRST], s.reserved[v, V.COUNT] = first, filled
    for k in range(filled):
        s.reserved_columns[first + k], s.reserved_amounts[first + k] = x.columns[k], x.amounts[k]
    s.clock[C.BLOCKED] += 1
    take_ahead(filled, start, end, s, x)


@inner_kernel
def has_places(s):
    """Tell whether there is room for the steps of one more reservation or start."""
    if s.clock[C.STEPS] + 2 <= s.step_times.shape[0]:
        return True
    s.clock[C.LACKS] = 1
    return False


@inner_kernel
def first_start(demand, seconds, last, is_counted, s, m, t, x):
    """Return the first second after now, to `last`, from which on a demand finds room for so many seconds, FOREVER if
    there is none, and the number of node columns; what it takes is in the scratch.
    """
    k, changes = 1, s.clock[C.LEVEL] + 1
    while True:
        k = fitting_step(demand, seconds, k, last, s, t)
        time = s.step_times[k] if k >= 0 else FOREVER
        if changes < s.aside_times.shape[0] and s.aside_times[changes] <= min(time, last):
            time = s.aside_times[changes]
        if time == FOREVER:
            return FOREVER, 0
        while changes < s.aside_times.shape[0] and s.aside_times[changes] <= time:
            changes += 1
        filled = spell_sums(demand, t, x) if is_counted else spell_late(demand, time, time + seconds, s, m, t, x)
        if is_counted or filled > 0:
            return time, filled
        k = first_step(time + 1, s)


@inner_kernel
def reserve_next(job, now, is_counted, s, m, t, x):
    """Reserve nodes for a job at its earliest start, by that of its open choices which starts first, on what is not
    free now rather than on what is. No reservation is made where it could start only after the last second at which it
    may, or after the horizon.

    Within a pass nothing becomes free: a demand that had no start for some seconds has none for more later on.
    """
    stamp, last, found, filled, by, tried = s.clock[C.STAMP], s.clock[C.HORIZON] - 1, FOREVER, 0, -1, -1
    if s.clock[C.BLOCKED] == s.reserved.shape[0]:
        return  # each reservation on nodes is compared with all others
    for k in range(max(1, num_choices(job, s))):
        demand, seconds, is_open = asked_by(job, k, s)
        until = min(s.latest[job], last, found - 1)
        if not is_open or (s.bounded[demand, 1] == stamp and seconds >= s.bounded[demand, 3]):
            continue
        if (s.clock[C.STEPS] == 0 and not begin_steps(now, s, m, t)) or not has_places(s):
            return
        time, columns = first_start(demand, seconds, until, is_counted, s, m, t, x)
        tried = k
        if time < FOREVER:
            found, filled, by = time, columns, k
        elif last == until and last < s.latest[job]:
            s.bounded[demand, 1], s.bounded[demand, 3] = stamp, seconds
    if by < 0:
        return
    demand, seconds, _ = asked_by(job, by, s)
    if tried != by:  # the scratch is that of a choice which does not start sooner
        filled = spell_sums(demand, t, x) if is_counted else spell_late(demand, found, found + seconds, s, m, t, x)
    if not is_counted:
        note_reservation(job, found, found + seconds, filled, s, x)
    take_sums(found, found + seconds, s, x)


@inner_kernel
def start_beside_reserved(job, now, is_counted, s, m, t, x):
    """Start a job if it fits beside what is reserved; tell whether it has started.

    Within a pass nothing becomes free: a demand that did not fit for some seconds does not fit for more later on.
    """
    demand, seconds = s.demand[job], s.jobs[job, J.WALLTIME]
    stamp, end = s.clock[C.STAMP], now + seconds
    if s.bounded[demand, 0] == stamp and seconds >= s.bounded[demand, 2]:
        return False
    shortest, count = seconds, 0
    if s.clock[C.STEPS] == 0 and next_change(s) >= end:
        count, shortest = map_now(demand, m.free, m.sfree, t, x), 0
    elif has_sums(demand, m.sfree, t.demands, t.sysreq) and has_sums_until(demand, end, s, t):
        if is_counted:
            count = map_now(demand, m.free, m.sfree, t, x)
        else:
            copy(m.room, m.free)
            copy(m.sroom, m.sfree)
            lower_between(now, end, s, m, t)
            count = map_now(demand, m.room, m.sroom, t, x)
    if count == 0:
        s.bounded[demand, 0], s.bounded[demand, 2] = stamp, shortest
        return False
    if s.clock[C.STEPS] > 0 and not has_places(s):
        return False
    if not begin_run(job, count, now, s, m, t, x):
        return False
    if s.clock[C.STEPS] > 0 or has_asides(s):
        filled = spell_sums(demand, t, x) if is_counted else spell_job(job, s, t, x)
        take_ahead(filled, now + 1, end, s, x)
        if s.clock[C.STEPS] > 0:
            take_sums(now, s.runs[job, R.END], s, x)
    return True


@inner_kernel
def start_first_beside(job, now, is_counted, s, m, t, x):
    """Start a job by the first of its open choices that fits beside what is reserved; tell whether it has started."""
    k = 0
    while not start_beside_reserved(job, now, is_counted, s, m, t, x):
        k = open_choice(job, k + 1, s)
        if s.clock[C.LACKS] or k >= num_choices(job, s):
            take_choice(job, 0, s)
            return False
        take_choice(job, k, s)
    return True


@inner_kernel
def is_let_in(job, rule, now, s):
    """Tell whether the gate lets a job in: its index is at most so many times that of the first blocked job. Keys of
    jobs that have promises, or are due, are negative: it is open for them.
    """
    if rule.gate < 0 or s.clock[C.HEAD] < 0 or s.keys[job] < 0:
        return True
    return index_of(rule, job, now, s) <= rule.gate * index_of(rule, s.clock[C.HEAD], now, s)


@inner_kernel
def may_start(job, now, s, m, t):
    """Tell whether a job waits, and the system has enough for it from now until its walltime is over, beside what is
    reserved: else it does not start in this pass.
    """
    if s.runs[job, R.START] >= 0:
        return False
    demand, end = s.demand[job], now + s.jobs[job, J.WALLTIME]
    if has_sums(demand, m.sfree, t.demands, t.sysreq) and has_sums_until(demand, end, s, t):
        return True
    for row in range(s.choices_of[job], s.choices_of[job + 1]):
        demand, end = s.choices[row, 0], now + s.choices[row, 1]
        if has_sums(demand, m.sfree, t.demands, t.sysreq) and has_sums_until(demand, end, s, t):
            return True
    return False


@inner_kernel
def can_any_start(s, m, t):
    """Tell whether the system has enough for any job of the queue now: else a pass changes nothing."""
    for i in range(s.clock[C.QUEUED]):
        job = s.queue[i]
        if has_sums(s.demand[job], m.sfree, t.demands, t.sysreq):
            return True
        for row in range(s.choices_of[job], s.choices_of[job + 1]):
            if has_sums(s.choices[row, 0], m.sfree, t.demands, t.sysreq):
                return True
    return False


@inner_kernel
def note_horizon(now, s):
    """Note the horizon of this second, unless the pass is repeated because an array had to grow."""
    if s.clock[C.HORIZON] < 0:
        s.clock[C.HORIZON] = now
        for i in range(s.clock[C.QUEUED]):
            job = s.queue[i]
            s.clock[C.HORIZON] = max(s.clock[C.HORIZON], now + s.jobs[job, J.WALLTIME])
            for row in range(s.choices_of[job], s.choices_of[job + 1]):
                s.clock[C.HORIZON] = max(s.clock[C.HORIZON], now + s.choices[row, 1])


@inner_kernel
def pass_reserving(now, rule, s, m, t, x):
    """Go through the queue: start jobs, and make reservations anew.

    The first blocked job that has no promise and is not due is noted as the head. As under EASY it is the first one
    without a promise, and those behind it have no reservations. The pass ends before the last job if none that follows
    may start.
    """
    s.clock[C.STAMP] += 1
    s.clock[C.BLOCKED], s.clock[C.STEPS], s.clock[C.HEAD] = 0, 0, -1
    note_horizon(now, s)
    for k in range(s.ahead.shape[0]):
        for a in range(s.ahead.shape[1]):
            s.ahead[k, a] = s.aside_ahead[k, a]
    last = s.clock[C.QUEUED] - 1
    for i in range(s.clock[C.QUEUED]):
        job = s.queue[i]
        if s.runs[job, R.START] >= 0:
            continue  # it has started before the arrays had to grow
        if not is_let_in(job, rule, now, s):
            continue
        if start_first_beside(job, now, rule.is_counted, s, m, t, x):
            s.clock[C.OVERTAKING] += 1
            continue
        if s.clock[C.LACKS]:
            return
        as_easy = s.clock[C.AS_EASY] == 1
        if s.clock[C.HEAD] < 0 and s.keys[job] >= (DUE if as_easy else 0.0):
            s.clock[C.HEAD] = job
        while last > i and not may_start(s.queue[last], now, s, m, t):
            last -= 1
        if last <= i:
            return
        if not as_easy or s.clock[C.HEAD] < 0 or s.clock[C.HEAD] == job:
            reserve_next(job, now, rule.is_counted, s, m, t, x)
        if s.clock[C.LACKS]:
            return
