"""Kernels of running jobs that are stopped: by outages, by their walltimes, or for jobs that may stop them.

Jobs that may stop others come first, by their levels, then in the order of the queue. One starts where it fits; if it
fits nowhere, the cheapest jobs that make room for it are stopped. Where jobs are to have notice, they are told, and
nothing starts until that is over. A job that cannot start leaves its level to the scheduler.

A job that is suspended lends its cores, and keeps all else that it has. What is free of these cores is left to it, but
for jobs that may stop it. It continues when it has them all: nobody knows when, so that until then they are expected
to be free for no other job. Suspended jobs continue after urgent ones have started, before any other job does.
"""

from cpsched.lab.sim.arrays import COMPLETED, KILLED, REFUSED, C, J, P, R, S, enqueue, sort_by_key
from cpsched.lab.sim.hold_kernels import shift_column
from cpsched.lab.sim.queue_kernels import key_of
from cpsched.lab.sim.run_kernels import (
    begin_run,
    book_run,
    change_later,
    close_gaps,
    leave,
    map_beside,
    map_first,
    map_from_now,
    spell_job,
    take_choice,
)
from cpsched.rusv import FOREVER, inner_kernel, instant_kernels, kernel, kernels

copy = kernels.copy
change = instant_kernels.change


@inner_kernel
def kept_of(job, seconds, is_told, s):
    """Return by how many seconds the next run is shorter after one of some seconds, of whose end the job was told
    before, or was not (`Preemptible.kept`).
    """
    interval, cost = s.stops[job, S.INTERVAL], s.stops[job, S.COST]
    if interval <= 0:
        return seconds if interval < 0 and is_told else 0
    saved = seconds - seconds % interval
    if is_told and s.stop_rules[P.NOTICE] >= cost:
        saved = max(saved, seconds - cost)
    return max(0, saved - cost)


@inner_kernel
def lose_all(job, s):
    """Take from a job what it has kept of the runs before it was suspended."""
    for k in range(s.clock[C.ATTEMPTS]):
        if s.attempts[k, 0] == job:
            s.stops[job, S.LEFT] += s.attempts[k, 6]
            s.attempts[k, 6] = 0


@inner_kernel
def keep_work(job, is_told, now, s):
    """Shorten the next run of a job that is cut short by what it keeps of this one; return that."""
    if s.stops.shape[0] == 0:
        return 0
    s.stops[job, S.TOLD] = -1
    if s.stops[job, S.INTERVAL] == 0:
        return 0
    if s.stops[job, S.INTERVAL] < 0 and not is_told:
        lose_all(job, s)
    seconds, walltime = now - s.runs[job, R.START], s.jobs[job, J.WALLTIME]
    kept = kept_of(job, seconds, is_told, s)
    is_whole = seconds == walltime or (s.stops[job, S.INTERVAL] < 0 and not is_told)
    next_walltime = s.stops[job, S.WALLTIME] if is_whole else walltime - kept
    left = s.stops[job, S.LEFT] = max(1, s.stops[job, S.LEFT] - kept)
    s.jobs[job, J.WALLTIME], s.jobs[job, J.LENGTH] = next_walltime, min(left, next_walltime)
    s.jobs[job, J.ENDING] = COMPLETED if left <= next_walltime else KILLED
    s.estimate[job] = next_walltime if s.estimate[job] == walltime else min(s.estimate[job], next_walltime)
    return kept


@inner_kernel
def cut_short(job, is_told, now, rule, s, m, t, x):
    """End the run of a job before its work is done; the job waits again, with its old place in the queue.

    `is_told`: whether the job was told so before. One that ran before the beginning gets its place only now, and may be
    one that can never start here.
    """
    leave(job, s, m, t, x)
    note_attempt(job, is_told, now, s)
    wait_again(job, now, rule, s)


@inner_kernel
def note_attempt(job, is_told, now, s):
    """Note a run that ends before its work is done, and what the job keeps of it."""
    attempt = s.clock[C.ATTEMPTS]
    s.clock[C.ATTEMPTS] += 1
    s.attempts[attempt, 0], s.attempts[attempt, 1], s.attempts[attempt, 2] = job, s.runs[job, R.START], now
    s.attempts[attempt, 3], s.attempts[attempt, 4] = s.runs[job, R.FIRST], s.runs[job, R.COUNT]
    s.attempts[attempt, 5] = s.choice[job]
    s.attempts[attempt, 6] = 0
    s.attempts[attempt, 6] = keep_work(job, is_told, now, s)


@inner_kernel
def wait_again(job, now, rule, s):
    """Put a job that has been cut short into the queue, or refuse it where it can never start."""
    if s.slowdown.shape[0] > 0 and s.base[job, 0] >= 0:
        s.jobs[job, J.LENGTH], s.jobs[job, J.ENDING] = s.base[job, 0], s.base[job, 1]
    take_choice(job, 0, s)
    s.runs[job, R.START], s.runs[job, R.END], s.runs[job, R.COUNT] = -1, -1, 0
    if s.fixed[job, 1] > 0:
        s.fixed[job, 1] = 0
        s.keys[job] = key_of(rule, job, now, s)
    if s.demand[job] < 0 or now > s.latest[job]:
        s.runs[job, R.ENDING] = REFUSED
    else:
        enqueue(job, s.keys, s.queue, s.clock)


@kernel
def spell_part(job, is_lent, s, t, x):
    """Write the amounts to the scratch that a suspended job lends, or else those that it keeps; return the number of
    node columns. One that ran at the beginning has no sums of these.
    """
    filled = spell_job(job, s, t, x)
    leave_part(job, is_lent, filled, s, t, x)
    return filled


@inner_kernel
def leave_part(job, is_lent, filled, s, t, x):
    """Leave in the scratch, of the amounts of a job, what it lends when it is suspended, or else what it keeps."""
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = 0 if is_lent else x.samounts[q]
    for k in range(filled):
        column = x.columns[k]
        for part in range(2):
            q = t.colsys[column, part]
            if s.lends[column] and q >= 0 and s.fixed[job, 1] == 0:
                x.samounts[q] += x.amounts[k] if is_lent else -x.amounts[k]
        if s.lends[column] != is_lent:
            x.amounts[k] = 0


@inner_kernel
def shift_kept(job, sign, s, m, t, x):
    """Add what a suspended job keeps (times `sign`) to the free amounts, now and later."""
    filled = spell_part(job, False, s, t, x)
    change(m.free, m.sfree, filled, sign, x)
    change_later(filled, sign, s, m, x)
    s.clock[C.DOZES] += 1


@inner_kernel
def shift_withheld(column, amount, s, m, t):
    """Withhold so much more of a column."""
    s.withheld[column] += amount
    shift_column(column, -amount, m.free, m.sfree, t)
    shift_column(column, -amount, m.future, m.sfuture, t)
    shift_column(column, -amount, m.after, m.safter, t)
    s.clock[C.DOZES] += 1


@inner_kernel
def suspend(job, now, s, m, t, x):
    """Suspend a running job."""
    leave(job, s, m, t, x)
    note_attempt(job, True, now, s)
    s.runs[job, R.END] = -1
    shift_kept(job, -1, s, m, t, x)
    place = s.clock[C.ASLEEP]
    while place > 0 and s.stops[s.asleep[place - 1], S.LEVEL] < s.stops[job, S.LEVEL]:
        s.asleep[place] = s.asleep[place - 1]
        place -= 1
    s.asleep[place] = job
    s.clock[C.ASLEEP] += 1


@inner_kernel
def wake(place, s, m, t, x):
    """Take a job from the suspended ones, with what it keeps, and return it."""
    job = s.asleep[place]
    s.clock[C.ASLEEP] -= 1
    for i in range(place, s.clock[C.ASLEEP]):
        s.asleep[i] = s.asleep[i + 1]
    shift_kept(job, 1, s, m, t, x)
    return job


@inner_kernel
def lose_suspended(place, now, rule, s, m, t, x):
    """Put a suspended job whose node has failed back into the queue."""
    job = wake(place, s, m, t, x)
    for k in range(spell_part(job, True, s, t, x)):
        if x.amounts[k] > 0:
            shift_withheld(x.columns[k], -s.withheld[x.columns[k]], s, m, t)
    keep_work(job, False, now, s)
    wait_again(job, now, rule, s)


@inner_kernel
def withhold(by, s, m, t, x):
    """Withhold what is free of the cores that jobs have lent, of all, or of those that the class `by` may not stop."""
    for i in range(s.clock[C.ASLEEP]):
        for k in range(spell_part(s.asleep[i], True, s, t, x)):
            s.owed[x.columns[k]] = 0
    for i in range(s.clock[C.ASLEEP]):
        filled = spell_part(s.asleep[i], True, s, t, x)
        if by < 0 or not s.may_stop[by, s.stops[s.asleep[i], S.CLASS]]:
            for k in range(filled):
                s.owed[x.columns[k]] += x.amounts[k]
    for i in range(s.clock[C.ASLEEP]):
        for k in range(spell_part(s.asleep[i], True, s, t, x)):
            column = x.columns[k]
            more = min(s.owed[column] - s.withheld[column], max(0, m.free[column]))
            if s.lends[column] and more != 0:
                shift_withheld(column, more, s, m, t)


@inner_kernel
def let_continue(now, s, m, t, x):
    """Resume the suspended jobs that have all their cores beside what is withheld for those before them."""
    for i in range(s.clock[C.ASLEEP]):
        for k in range(spell_part(s.asleep[i], True, s, t, x)):
            s.owed[x.columns[k]] = 0
    i = 0
    while i < s.clock[C.ASLEEP]:
        filled, is_free = spell_part(s.asleep[i], True, s, t, x), True
        for k in range(filled):
            s.owed[x.columns[k]] += x.amounts[k]
        for k in range(filled):
            is_free &= x.amounts[k] == 0 or s.owed[x.columns[k]] <= s.withheld[x.columns[k]]
        if not is_free:
            i += 1
            continue
        for k in range(filled):
            s.owed[x.columns[k]] -= x.amounts[k]
            shift_withheld(x.columns[k], -x.amounts[k], s, m, t)
        job = wake(i, s, m, t, x)
        s.runs[job, R.START] = now
        s.runs[job, R.STARTS] += 1
        book_run(job, now, s, m, t, x)


@inner_kernel
def resumes(job, s):
    """Tell whether a job whose walltime is over comes again and continues from a checkpoint."""
    if s.stops.shape[0] == 0 or not s.stop_rules[P.RESUMES] or s.fixed[job, 1] > 0 or s.stops[job, S.INTERVAL] < 0:
        return False
    return s.jobs[job, J.ENDING] == KILLED and kept_of(job, s.jobs[job, J.WALLTIME], True, s) > 0


@inner_kernel
def can_stop(job, other, now, s, t, x):
    """Tell whether a job may stop a running one now; what that has of amounts that are set aside would not be free.
    One that may be stopped when it has run for longer is looked at again then.
    """
    if not s.may_stop[s.stops[job, S.CLASS], s.stops[other, S.CLASS]] or s.demand[other] < 0:
        return False
    if s.stops[other, S.COUNT] >= s.stop_rules[P.STOPS]:
        return False
    if now - s.runs[other, R.START] >= s.jobs[other, J.WALLTIME]:
        return False  # it ran at the beginning, and ends in the next second
    first = s.runs[other, R.START] + max(1, s.stop_rules[P.EXEMPT])
    if now < first:
        s.clock[C.EXEMPT] = min(s.clock[C.EXEMPT], first)
        return False
    if s.aside_columns.shape[0] > 0:
        level = s.clock[C.LEVEL]
        for k in range(spell_job(other, s, t, x)):
            a = s.aside_of[x.columns[k]]
            if a >= 0 and s.aside_levels[level, a] > 0:
                return False
        for q in range(x.samounts.shape[0]):
            a = s.aside_of_sums[q]
            if x.samounts[q] > 0 and a >= 0 and s.aside_levels[level, a] > 0:
                return False
    return True


@inner_kernel
def price_of(job, now, is_whole, s):
    """Return what it costs to stop a job now: the seconds of its work that are lost, times its weight, if `is_whole`
    times its cores; where jobs are stopped by size its cores. What has been told is stopped first.
    """
    if s.stops[job, S.TOLD] >= 0:
        return -1.0
    if s.stop_rules[P.BY_SIZE]:
        return s.cores[job]
    seconds = now - s.runs[job, R.START]
    lost = seconds - kept_of(job, seconds, True, s)
    return (1 + lost) * s.stop_weights[job] * (s.cores[job] if is_whole else 1.0)


@inner_kernel
def spell_freed(job, s, t, x):
    """Write the amounts to the scratch that are free when a job is stopped; return the number of node columns."""
    filled = spell_job(job, s, t, x)
    if s.stops[job, S.INTERVAL] < 0:
        leave_part(job, True, filled, s, t, x)
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = 0 if s.of_rules[q] else x.samounts[q]
    return filled


@inner_kernel
def choose_stops(job, count, now, is_whole, s, m, t, x):
    """Choose of the first `count` stoppable jobs those to stop for a job, cheapest first, then without those that are
    not needed, the dearest first. Put them first; return how many they are, 0 if all are not enough.
    """
    for i in range(count):
        s.stop_prices[s.stoppable[0, i]] = price_of(s.stoppable[0, i], now, is_whole, s)
    sort_by_key(s.stoppable[0], count, s.stop_prices, s.stoppable[1])
    copy(m.low, m.free)
    copy(m.slow, m.sfree)
    taken = 0
    while map_beside(job, m.low, m.slow, now, s, m, t, x) == 0:
        if taken == count:
            return 0
        change(m.low, m.slow, spell_freed(s.stoppable[0, taken], s, t, x), 1, x)
        taken += 1
    i = taken - 2
    while i >= 0:
        other = s.stoppable[0, i]
        change(m.low, m.slow, spell_freed(other, s, t, x), -1, x)
        if map_beside(job, m.low, m.slow, now, s, m, t, x) > 0:
            for k in range(i, taken - 1):
                s.stoppable[0, k] = s.stoppable[0, k + 1]
            s.stoppable[0, taken - 1] = other
            taken -= 1
        else:
            change(m.low, m.slow, spell_freed(other, s, t, x), 1, x)
        i -= 1
    return taken


@inner_kernel
def stops_for(job, now, s, m, t, x):
    """Choose the jobs to stop for a job, the cheaper of two choices: put them first, and return how many they are."""
    count = 0
    for i in range(s.clock[C.RUNNING]):
        if can_stop(job, s.ends[i, 1], now, s, t, x):
            s.stoppable[0, count] = s.ends[i, 1]
            count += 1
    if count == 0:
        return 0
    best, least, taken = 0, 0.0, 0
    for is_whole in range(2):
        taken, price = choose_stops(job, count, now, is_whole == 1, s, m, t, x), 0.0
        if taken == 0:
            return 0
        for i in range(taken):
            price += price_of(s.stoppable[0, i], now, True, s)
        if is_whole == 0:
            best, least = taken, price
            for i in range(taken):
                s.stoppable[2, i] = s.stoppable[0, i]
    if price < least:
        return taken
    for i in range(best):
        s.stoppable[0, i] = s.stoppable[2, i]
    return best


@inner_kernel
def start_by_stops(job, now, rule, s, m, t, x):
    """Start a job where it fits, or where it does once others are stopped; tell whether it has started."""
    count = map_first(job, now, s, m, t, x)
    if count == 0 and s.clock[C.ASLEEP] > 0:
        withhold(s.stops[job, S.CLASS], s, m, t, x)
        count = map_first(job, now, s, m, t, x)
    if count > 0:
        return begin_run(job, count, now, s, m, t, x)
    taken, notice = stops_for(job, now, s, m, t, x), s.stop_rules[P.NOTICE]
    if taken == 0:
        return False
    is_told = True
    for i in range(taken):
        other = s.stoppable[0, i]
        if notice > 0 and s.stops[other, S.TOLD] < 0:
            is_told = False
            s.stops[other, S.TOLD] = now
            s.clock[C.NOTICE] = now + notice
    if not is_told:
        return False
    for i in range(taken):
        s.stops[s.stoppable[0, i], S.COUNT] += 1
        if s.stops[s.stoppable[0, i], S.INTERVAL] < 0:
            suspend(s.stoppable[0, i], now, s, m, t, x)
        else:
            cut_short(s.stoppable[0, i], True, now, rule, s, m, t, x)
    # where the pool is full the pass is repeated, and the job fits
    count = map_from_now(job, now, s, m, t, x)
    return count > 0 and begin_run(job, count, now, s, m, t, x)


@kernel
def serve_urgent(now, rule, s, m, t, x):
    """Start waiting jobs that may stop others, highest level first; tell whether no job has notice."""
    if s.may_stop.shape[0] == 0:
        return True
    s.clock[C.EXEMPT] = FOREVER
    if now < s.clock[C.NOTICE]:
        return False
    if s.clock[C.ASLEEP] > 0:
        withhold(-1, s, m, t, x)
    if s.clock[C.NOTICE] >= 0:
        s.clock[C.NOTICE], s.clock[C.IS_FULL] = -1, 1
    level = FOREVER
    while level > 0 and s.clock[C.NOTICE] < 0 and not s.clock[C.LACKS]:
        below = 0
        for i in range(s.clock[C.QUEUED]):
            own = s.stops[s.queue[i], S.LEVEL]
            if own < level and s.runs[s.queue[i], R.START] < 0:
                below = max(below, own)
        level = below
        i = 0
        while level > 0 and i < s.clock[C.QUEUED]:
            job = s.queue[i]
            if s.stops[job, S.LEVEL] == level and s.runs[job, R.START] < 0:
                has_started = start_by_stops(job, now, rule, s, m, t, x)
                if s.clock[C.ASLEEP] > 0:
                    withhold(-1, s, m, t, x)
                if not has_started:
                    break
                s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
            i += 1
    close_gaps(s)
    if s.clock[C.LACKS] or s.clock[C.NOTICE] >= 0:
        return False
    for i in range(s.clock[C.RUNNING]):
        s.stops[s.ends[i, 1], S.TOLD] = -1  # its place is not needed any more
    if s.clock[C.ASLEEP] > 0:
        let_continue(now, s, m, t, x)
        s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
    return True
