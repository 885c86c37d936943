"""Kernels of rules that keep reservations for several jobs at a time: a pass through the queue.

In the order of the queue a job starts if all that it takes is free until its walltime is over, beside what is reserved.
If not, it gets a reservation, at its earliest start beside the earlier ones; there are at most as many as the rule has.
They are made anew in each pass: nothing is promised to jobs that no rule of the site binds. A reservation matters only
to jobs behind it, so that a pass ends as soon as the system has not enough for any of these.

What is free in a later second is least when reservations begin, or other amounts are set aside: between these seconds
jobs only end. So the amounts that are free at the start of each reservation, beside it (`beside`), tell with those that
are free at the changes of what is set aside (`ahead`) what a job can have that begins before and ends after.

Where jobs are counted on equal nodes (`is_counted`), the sums over the system say all that: a reservation is of mere
sums, and a job that has enough at each second of its walltime has nodes, too, when it starts.
"""

from __future__ import annotations

from cpsched.lab.sim.arrays import (
    C_BLOCKED,
    C_HEAD,
    C_LACKS,
    C_LEVEL,
    C_OVERTAKING,
    C_QUEUED,
    C_RUNNING,
    C_STAMP,
    J_WALLTIME,
    R_START,
    V_COUNT,
    V_END,
    V_FIRST,
    V_JOB,
    V_START,
)
from cpsched.lab.sim.hold_kernels import has_asides, lower_at, lower_until, next_change, shift_row
from cpsched.lab.sim.queue_kernels import has_promise, is_old, rest_after
from cpsched.lab.sim.run_kernels import begin_run, move_until, spell_job
from cpsched.rusv import FOREVER, inner_kernel, instant_kernels, kernels

copy, lower_by_two, D_SYS = kernels.copy, kernels.lower_by_two, kernels.D_SYS
change, has_sums = instant_kernels.change, instant_kernels.has_sums
map_late, map_now, spell_out = instant_kernels.map_late, instant_kernels.map_now, instant_kernels.spell_out


@inner_kernel
def take_ahead(filled, start, end, s, x):
    """Lower what is free at the starts of reservations, and at the changes of what is set aside, in ``[start, end)`` by
    the amounts in the scratch.
    """
    for v in range(s.clock[C_BLOCKED]):
        if start <= s.reserved[v, V_START] < end:
            change(s.beside[v], s.sbeside[v], filled, -1, x)
    for k in range(s.clock[C_LEVEL] + 1, s.aside_times.shape[0]):
        if start <= s.aside_times[k] < end:
            shift_row(s.ahead[k], filled, -1, s, x)


@inner_kernel
def take_reserved(time, s, m):
    """Lower the room by what is reserved at a second."""
    for v in range(s.clock[C_BLOCKED]):
        if s.reserved[v, V_START] <= time < s.reserved[v, V_END]:
            first = s.reserved[v, V_FIRST]
            for k in range(first, first + s.reserved[v, V_COUNT]):
                m.room[s.reserved_columns[k]] -= s.reserved_amounts[k]
            for q in range(m.sroom.shape[0]):
                m.sroom[q] -= s.reserved_sums[v, q]


@inner_kernel
def lower_between(start, end, s, m, t):
    """Lower the room to what is free at each second of ``(start, end)``."""
    for v in range(s.clock[C_BLOCKED]):
        if start < s.reserved[v, V_START] < end:
            lower_by_two(m.room, m.room, s.beside[v])
            lower_by_two(m.sroom, m.sroom, s.sbeside[v])
    if has_asides(s):
        lower_until(end, start + 1, s.ahead, s, m, t)


@inner_kernel
def has_sums_between(demand, start, end, s, t):
    """Tell whether the sums over the system suffice at the start of each reservation in ``(start, end)``."""
    for v in range(s.clock[C_BLOCKED]):
        if start < s.reserved[v, V_START] < end and not has_sums(demand, s.sbeside[v], t.demands, t.sysreq):
            return False
    return True


@inner_kernel
def next_time(time, i, s):
    """Return the next second after `time` at which more may be free: a job ends (the next one is the i-th), a
    reservation ends, or other amounts are set aside.
    """
    found = s.ends[i, 0] if i < s.clock[C_RUNNING] else FOREVER
    for v in range(s.clock[C_BLOCKED]):
        if time < s.reserved[v, V_END] < found:
            found = s.reserved[v, V_END]
    for k in range(s.clock[C_LEVEL] + 1, s.aside_times.shape[0]):
        if s.aside_times[k] > time:
            return min(found, s.aside_times[k])
    return found


@inner_kernel
def spell_sums(demand, t, x):
    """Write what a counted demand takes of the system to the scratch; return the number of node columns, none."""
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = 0
    for k in range(t.demands[demand, D_SYS], t.demands[demand + 1, D_SYS]):
        x.samounts[t.sysreq[k, 0]] = t.sysreq[k, 1]
    return 0


@inner_kernel
def reserve_sums(job, time, s, m, t, x):
    """Reserve the sums that a counted job takes from `time` on, if the system has them beside what is reserved; tell
    whether it has. `slow` has what is free then beside running jobs.
    """
    v = s.clock[C_BLOCKED]
    copy(s.sbeside[v], m.slow)
    for w in range(v):
        if s.reserved[w, V_START] <= time < s.reserved[w, V_END]:
            for q in range(m.slow.shape[0]):
                s.sbeside[v, q] -= s.reserved_sums[w, q]
    if not has_sums(s.demand[job], s.sbeside[v], t.demands, t.sysreq):
        return False
    note_reservation(job, time, spell_sums(s.demand[job], t, x), s, x)
    return True


@inner_kernel
def reserve_next(job, now, is_counted, s, m, t, x):
    """Reserve nodes for a job at its earliest start, on what is not free now rather than on what is. No reservation is
    made where it could start only after the last second at which it may, or never.
    """
    demand, seconds, is_plain = s.demand[job], s.jobs[job, J_WALLTIME], not has_asides(s)
    copy(m.slow, m.sfree)
    time, i = now, 0
    while True:
        time = next_time(time, i, s)
        if time == FOREVER or time > s.latest[job]:
            return
        while i < s.clock[C_RUNNING] and s.ends[i, 0] == time:
            for q in range(m.slow.shape[0]):
                m.slow[q] += s.sums[s.ends[i, 1], q]
            i += 1
        if is_plain and not has_sums(demand, m.slow, t.demands, t.sysreq):
            continue
        if not has_sums_between(demand, time, time + seconds, s, t):
            continue
        if is_counted:
            if reserve_sums(job, time, s, m, t, x):
                return
            continue
        move_until(time, s, m, t, x)
        copy(m.room, m.future)
        copy(m.sroom, m.sfuture)
        if not is_plain:
            lower_at(time, m.future, m.sfuture, s, m, t)
        take_reserved(time, s, m)
        if not has_sums(demand, m.sroom, t.demands, t.sysreq):
            continue
        v = s.clock[C_BLOCKED]
        copy(s.beside[v], m.room)
        copy(s.sbeside[v], m.sroom)
        lower_between(time, time + seconds, s, m, t)
        if not has_sums(demand, m.sroom, t.demands, t.sysreq):
            continue
        count = map_late(demand, m.free, m.room, m.low, t, x)
        if count > 0:
            note_reservation(job, time, spell_out(demand, x.entries, count, t, x), s, x)
            return


@inner_kernel
def note_reservation(job, start, filled, s, x):
    """Add a reservation of the amounts in the scratch; what is free at its start without it is known."""
    v = s.clock[C_BLOCKED]
    first = s.reserved[v - 1, V_FIRST] + s.reserved[v - 1, V_COUNT] if v > 0 else 0
    end = start + s.jobs[job, J_WALLTIME]
    s.reserved[v, V_JOB], s.reserved[v, V_START], s.reserved[v, V_END] = job, start, end
    s.reserved[v, V_FIRST], s.reserved[v, V_COUNT] = first, filled
    for k in range(filled):
        s.reserved_columns[first + k], s.reserved_amounts[first + k] = x.columns[k], x.amounts[k]
    for q in range(x.samounts.shape[0]):
        s.reserved_sums[v, q] = x.samounts[q]
    s.clock[C_BLOCKED] += 1
    take_ahead(filled, start, end, s, x)


@inner_kernel
def first_reserved(s):
    """Return the second at which the first reservation begins, FOREVER if there is none."""
    found = FOREVER
    for v in range(s.clock[C_BLOCKED]):
        found = min(found, s.reserved[v, V_START])
    return found


@inner_kernel
def start_beside_reserved(job, now, is_counted, s, m, t, x):
    """Start a job if it fits beside what is reserved; tell whether it has started.

    Within a pass nothing becomes free: a demand that did not fit for some seconds does not fit for more later on.
    """
    demand, seconds = s.demand[job], s.jobs[job, J_WALLTIME]
    stamp, end = s.clock[C_STAMP], now + seconds
    if s.bounded[demand, 0] == stamp and seconds >= s.bounded[demand, 2]:
        return False
    shortest = seconds
    if first_reserved(s) >= end and next_change(s) >= end:
        count, shortest = map_now(demand, m.free, m.sfree, t, x), 0
    elif has_sums(demand, m.sfree, t.demands, t.sysreq) and has_sums_between(demand, now, end, s, t):
        if is_counted:
            count = map_now(demand, m.free, m.sfree, t, x)
        else:
            copy(m.room, m.free)
            copy(m.sroom, m.sfree)
            lower_between(now, end, s, m, t)
            count = map_now(demand, m.room, m.sroom, t, x)
    else:
        count = 0
    if count == 0:
        s.bounded[demand, 0], s.bounded[demand, 2] = stamp, shortest
        return False
    if not begin_run(job, count, now, s, m, t, x):
        return False
    if is_old(job, s):
        rest_after(job, now, s)
    filled = spell_sums(demand, t, x) if is_counted else spell_job(job, s, t, x)
    take_ahead(filled, now + 1, end, s, x)
    return True


@inner_kernel
def is_let_in(job, rule, s):
    """Tell whether the gate lets a job in: its key is at most so many times that of the first blocked job. Keys of jobs
    that have promises, and of an old one, are negative.
    """
    return rule.gate < 0 or s.clock[C_HEAD] < 0 or s.keys[job] <= rule.gate * s.keys[s.clock[C_HEAD]]


@inner_kernel
def may_start(job, now, s, m, t):
    """Tell whether a job waits, and the system has enough for it now and at the start of each reservation until its
    walltime is over: else it does not start in this pass.
    """
    if s.runs[job, R_START] >= 0 or not has_sums(s.demand[job], m.sfree, t.demands, t.sysreq):
        return False
    return has_sums_between(s.demand[job], now, now + s.jobs[job, J_WALLTIME], s, t)


@inner_kernel
def can_any_start(s, m, t):
    """Tell whether the system has enough for any job of the queue now: else a pass changes nothing."""
    for i in range(s.clock[C_QUEUED]):
        if has_sums(s.demand[s.queue[i]], m.sfree, t.demands, t.sysreq):
            return True
    return False


@inner_kernel
def pass_reserving(now, rule, s, m, t, x):
    """Go through the queue: start jobs, and make reservations anew.

    The first blocked job that has no promise and is not old is noted as the head. The pass ends before the last job if
    none that follows may start.
    """
    s.clock[C_STAMP] += 1
    s.clock[C_BLOCKED], s.clock[C_HEAD] = 0, -1
    for k in range(s.ahead.shape[0]):
        for a in range(s.ahead.shape[1]):
            s.ahead[k, a] = s.aside_ahead[k, a]
    left, last = rule.reservations, s.clock[C_QUEUED] - 1
    for i in range(s.clock[C_QUEUED]):
        job = s.queue[i]
        if s.runs[job, R_START] >= 0:
            continue  # it has started before the arrays had to grow
        if not is_let_in(job, rule, s):
            return
        if start_beside_reserved(job, now, rule.is_counted, s, m, t, x):
            s.clock[C_OVERTAKING] += 1
            continue
        if s.clock[C_LACKS]:
            return
        if s.keys[job] >= 0 and s.clock[C_HEAD] < 0:
            s.clock[C_HEAD] = job
        while last > i and not may_start(s.queue[last], now, s, m, t):
            last -= 1
        if last <= i:
            return
        is_bound = has_promise(job, s)
        if (left > 0 or is_bound) and s.clock[C_BLOCKED] < s.reserved.shape[0]:
            left -= not is_bound
            reserve_next(job, now, rule.is_counted, s, m, t, x)
