"""Kernels of running jobs that are stopped: by outages, by their walltimes, or for jobs that may stop them.

Jobs that may stop others come first, by their levels, then in the order of the queue. One starts where it fits; if it
fits nowhere, the cheapest jobs that make room for it are stopped. Where jobs are to have notice, they are told, and
nothing starts until that is over. A job that cannot start leaves its level to the scheduler.

A job that is suspended lends its cores, and keeps all else that it has. What is free of these cores is left to it, but
for jobs that may stop it. It continues when it has them all: nobody knows when, so that until then they are expected
to be free for no other job. Suspended jobs continue after urgent ones have started, before any other job does.
"""

from cpsched.lab.sim.arrays import (
    COMPLETED,
    KILLED,
    REFUSED,
    C,
    J,
    Machine,
    P,
    R,
    RuleNumbers,
    S,
    SimState,
    enqueue,
    sort_by_key,
)
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
from cpsched.rusv import FOREVER, Scratch, Tables, inner_kernel, instant_kernels, kernel, kernels

copy = kernels.copy
change = instant_kernels.change


@inner_kernel
def kept_of(job: int, seconds: int, is_told: bool, state: SimState) -> int:
    """Return by how many seconds the next run is shorter after one of some seconds, of whose end the job was told
    before, or was not (`Preemptible.kept`).
    """
    interval, cost = state.stops[job, S.INTERVAL], state.stops[job, S.COST]
    if interval <= 0:
        return seconds if interval < 0 and is_told else 0
    saved = seconds - seconds % interval
    if is_told and state.stop_rules[P.NOTICE] >= cost:
        saved = max(saved, seconds - cost)
    return max(0, saved - cost)


@inner_kernel
def lose_all(job: int, state: SimState) -> None:
    """Take from a job what it has kept of the runs before it was suspended."""
    for k in range(state.clock[C.ATTEMPTS]):
        if state.attempts[k, 0] == job:
            state.stops[job, S.LEFT] += state.attempts[k, 6]
            state.attempts[k, 6] = 0


@inner_kernel
def keep_work(job: int, is_told: bool, now: int, state: SimState) -> int:
    """Shorten the next run of a job that is cut short by what it keeps of this one; return that."""
    if state.stops.shape[0] == 0:
        return 0
    state.stops[job, S.TOLD] = -1
    if state.stops[job, S.INTERVAL] == 0:
        return 0
    if state.stops[job, S.INTERVAL] < 0 and not is_told:
        lose_all(job, state)
    seconds, walltime = now - state.runs[job, R.START], state.jobs[job, J.WALLTIME]
    kept = kept_of(job, seconds, is_told, state)
    is_whole = seconds == walltime or (state.stops[job, S.INTERVAL] < 0 and not is_told)
    next_walltime = state.stops[job, S.WALLTIME] if is_whole else walltime - kept
    left = state.stops[job, S.LEFT] = max(1, state.stops[job, S.LEFT] - kept)
    state.jobs[job, J.WALLTIME], state.jobs[job, J.LENGTH] = next_walltime, min(left, next_walltime)
    state.jobs[job, J.ENDING] = COMPLETED if left <= next_walltime else KILLED
    state.estimate[job] = next_walltime if state.estimate[job] == walltime else min(state.estimate[job], next_walltime)
    return kept


@kernel
def cut_short(
    job: int,
    is_told: bool,
    now: int,
    rule: RuleNumbers,
    state: SimState,
    machine: Machine,
    tables: Tables,
    scratch: Scratch,
) -> None:
    """End the run of a job before its work is done; the job waits again, with its old place in the queue.

    `is_told`: whether the job was told so before. One that ran before the beginning gets its place only now, and may be
    one that can never start here.
    """
    leave(job, state, machine, tables, scratch)
    note_attempt(job, is_told, now, state)
    wait_again(job, now, rule, state)


@inner_kernel
def note_attempt(job: int, is_told: bool, now: int, state: SimState) -> None:
    """Note a run that ends before its work is done, and what the job keeps of it."""
    attempt = state.clock[C.ATTEMPTS]
    state.clock[C.ATTEMPTS] += 1
    state.attempts[attempt, 0], state.attempts[attempt, 1], state.attempts[attempt, 2] = (
        job,
        state.runs[job, R.START],
        now,
    )
    state.attempts[attempt, 3], state.attempts[attempt, 4] = state.runs[job, R.FIRST], state.runs[job, R.COUNT]
    state.attempts[attempt, 5] = state.choice[job]
    state.attempts[attempt, 6] = 0
    state.attempts[attempt, 6] = keep_work(job, is_told, now, state)


@inner_kernel
def wait_again(job: int, now: int, rule: RuleNumbers, state: SimState) -> None:
    """Put a job that has been cut short into the queue, or refuse it where it can never start."""
    if state.slowdown.shape[0] > 0 and state.base[job, 0] >= 0:
        state.jobs[job, J.LENGTH], state.jobs[job, J.ENDING] = state.base[job, 0], state.base[job, 1]
    take_choice(job, 0, state)
    state.runs[job, R.START], state.runs[job, R.END], state.runs[job, R.COUNT] = -1, -1, 0
    if state.fixed[job, 1] > 0:
        state.fixed[job, 1] = 0
        state.keys[job] = key_of(rule, job, now, state)
    if state.demand[job] < 0 or now > state.latest[job]:
        state.runs[job, R.ENDING] = REFUSED
    else:
        enqueue(job, state.keys, state.queue, state.clock)


@kernel
def spell_part(job: int, is_lent: bool, state: SimState, tables: Tables, scratch: Scratch) -> int:
    """Write the amounts to the scratch that a suspended job lends, or else those that it keeps; return the number of
    node columns. One that ran at the beginning has no sums of these.
    """
    filled = spell_job(job, state, tables, scratch)
    leave_part(job, is_lent, filled, state, tables, scratch)
    return filled


@inner_kernel
def leave_part(job: int, is_lent: bool, filled: int, state: SimState, tables: Tables, scratch: Scratch) -> None:
    """Leave in the scratch, of the amounts of a job, what it lends when it is suspended, or else what it keeps."""
    for q in range(scratch.samounts.shape[0]):
        scratch.samounts[q] = 0 if is_lent else scratch.samounts[q]
    for k in range(filled):
        column = scratch.columns[k]
        for part in range(2):
            q = tables.colsys[column, part]
            if state.lends[column] and q >= 0 and state.fixed[job, 1] == 0:
                scratch.samounts[q] += scratch.amounts[k] if is_lent else -scratch.amounts[k]
        if state.lends[column] != is_lent:
            scratch.amounts[k] = 0


@inner_kernel
def shift_kept(job: int, sign: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Add what a suspended job keeps (times `sign`) to the free amounts, now and later."""
    filled = spell_part(job, False, state, tables, scratch)
    change(machine.free, machine.sfree, filled, sign, scratch)
    change_later(filled, sign, state, machine, scratch)
    state.clock[C.DOZES] += 1


@inner_kernel
def shift_withheld(column: int, amount: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Withhold so much more of a column."""
    state.withheld[column] += amount
    shift_column(column, -amount, machine.free, machine.sfree, tables)
    shift_column(column, -amount, machine.future, machine.sfuture, tables)
    shift_column(column, -amount, machine.after, machine.safter, tables)
    state.clock[C.DOZES] += 1


@inner_kernel
def suspend(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Suspend a running job."""
    leave(job, state, machine, tables, scratch)
    note_attempt(job, True, now, state)
    state.runs[job, R.END] = -1
    shift_kept(job, -1, state, machine, tables, scratch)
    place = state.clock[C.ASLEEP]
    while place > 0 and state.stops[state.asleep[place - 1], S.LEVEL] < state.stops[job, S.LEVEL]:
        state.asleep[place] = state.asleep[place - 1]
        place -= 1
    state.asleep[place] = job
    state.clock[C.ASLEEP] += 1


@inner_kernel
def wake(place: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Take a job from the suspended ones, with what it keeps, and return it."""
    job = state.asleep[place]
    state.clock[C.ASLEEP] -= 1
    for i in range(place, state.clock[C.ASLEEP]):
        state.asleep[i] = state.asleep[i + 1]
    shift_kept(job, 1, state, machine, tables, scratch)
    return job


@inner_kernel
def lose_suspended(
    place: int, now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Put a suspended job whose node has failed back into the queue."""
    job = wake(place, state, machine, tables, scratch)
    for k in range(spell_part(job, True, state, tables, scratch)):
        if scratch.amounts[k] > 0:
            shift_withheld(scratch.columns[k], -state.withheld[scratch.columns[k]], state, machine, tables)
    keep_work(job, False, now, state)
    wait_again(job, now, rule, state)


@inner_kernel
def withhold(by: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Withhold what is free of the cores that jobs have lent, of all, or of those that the class `by` may not stop."""
    for i in range(state.clock[C.ASLEEP]):
        for k in range(spell_part(state.asleep[i], True, state, tables, scratch)):
            state.owed[scratch.columns[k]] = 0
    for i in range(state.clock[C.ASLEEP]):
        filled = spell_part(state.asleep[i], True, state, tables, scratch)
        if by < 0 or not state.may_stop[by, state.stops[state.asleep[i], S.CLASS]]:
            for k in range(filled):
                state.owed[scratch.columns[k]] += scratch.amounts[k]
    for i in range(state.clock[C.ASLEEP]):
        for k in range(spell_part(state.asleep[i], True, state, tables, scratch)):
            column = scratch.columns[k]
            more = min(state.owed[column] - state.withheld[column], max(0, machine.free[column]))
            if state.lends[column] and more != 0:
                shift_withheld(column, more, state, machine, tables)


@inner_kernel
def let_continue(now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Resume the suspended jobs that have all their cores beside what is withheld for those before them."""
    for i in range(state.clock[C.ASLEEP]):
        for k in range(spell_part(state.asleep[i], True, state, tables, scratch)):
            state.owed[scratch.columns[k]] = 0
    i = 0
    while i < state.clock[C.ASLEEP]:
        filled, is_free = spell_part(state.asleep[i], True, state, tables, scratch), True
        for k in range(filled):
            state.owed[scratch.columns[k]] += scratch.amounts[k]
        for k in range(filled):
            is_free &= scratch.amounts[k] == 0 or state.owed[scratch.columns[k]] <= state.withheld[scratch.columns[k]]
        if not is_free:
            i += 1
            continue
        for k in range(filled):
            state.owed[scratch.columns[k]] -= scratch.amounts[k]
            shift_withheld(scratch.columns[k], -scratch.amounts[k], state, machine, tables)
        job = wake(i, state, machine, tables, scratch)
        state.runs[job, R.START] = now
        state.runs[job, R.STARTS] += 1
        book_run(job, now, state, machine, tables, scratch)


@inner_kernel
def resumes(job: int, state: SimState) -> bool:
    """Tell whether a job whose walltime is over comes again and continues from a checkpoint."""
    if (
        state.stops.shape[0] == 0
        or not state.stop_rules[P.RESUMES]
        or state.fixed[job, 1] > 0
        or state.stops[job, S.INTERVAL] < 0
    ):
        return False
    return state.jobs[job, J.ENDING] == KILLED and kept_of(job, state.jobs[job, J.WALLTIME], True, state) > 0


@inner_kernel
def can_stop(job: int, other: int, now: int, state: SimState, tables: Tables, scratch: Scratch) -> bool:
    """Tell whether a job may stop a running one now; what that has of amounts that are set aside would not be free.
    One that may be stopped when it has run for longer is looked at again then.
    """
    if not state.may_stop[state.stops[job, S.CLASS], state.stops[other, S.CLASS]] or state.demand[other] < 0:
        return False
    if state.stops[other, S.COUNT] >= state.stop_rules[P.STOPS]:
        return False
    if now - state.runs[other, R.START] >= state.jobs[other, J.WALLTIME]:
        return False  # it ran at the beginning, and ends in the next second
    first = state.runs[other, R.START] + max(1, state.stop_rules[P.EXEMPT])
    if now < first:
        state.clock[C.EXEMPT] = min(state.clock[C.EXEMPT], first)
        return False
    if state.aside_columns.shape[0] > 0:
        level = state.clock[C.LEVEL]
        for k in range(spell_job(other, state, tables, scratch)):
            a = state.aside_of[scratch.columns[k]]
            if a >= 0 and state.aside_levels[level, a] > 0:
                return False
        for q in range(scratch.samounts.shape[0]):
            a = state.aside_of_sums[q]
            if scratch.samounts[q] > 0 and a >= 0 and state.aside_levels[level, a] > 0:
                return False
    return True


@inner_kernel
def price_of(job: int, now: int, is_whole: bool, state: SimState) -> float:
    """Return what it costs to stop a job now: the seconds of its work that are lost, times its weight, if `is_whole`
    times its cores; where jobs are stopped by size its cores. What has been told is stopped first.
    """
    if state.stops[job, S.TOLD] >= 0:
        return -1.0
    if state.stop_rules[P.BY_SIZE]:
        return state.cores[job]
    seconds = now - state.runs[job, R.START]
    lost = seconds - kept_of(job, seconds, True, state)
    return (1 + lost) * state.stop_weights[job] * (state.cores[job] if is_whole else 1.0)


@inner_kernel
def spell_freed(job: int, state: SimState, tables: Tables, scratch: Scratch) -> int:
    """Write the amounts to the scratch that are free when a job is stopped; return the number of node columns."""
    filled = spell_job(job, state, tables, scratch)
    if state.stops[job, S.INTERVAL] < 0:
        leave_part(job, True, filled, state, tables, scratch)
    for q in range(scratch.samounts.shape[0]):
        scratch.samounts[q] = 0 if state.of_rules[q] else scratch.samounts[q]
    return filled


@inner_kernel
def choose_stops(
    job: int, count: int, now: int, is_whole: bool, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> int:
    """Choose of the first `count` stoppable jobs those to stop for a job, cheapest first, then without those that are
    not needed, the dearest first. Put them first; return how many they are, 0 if all are not enough.
    """
    for i in range(count):
        state.stop_prices[state.stoppable[0, i]] = price_of(state.stoppable[0, i], now, is_whole, state)
    sort_by_key(state.stoppable[0], count, state.stop_prices, state.stoppable[1])
    copy(machine.low, machine.free)
    copy(machine.slow, machine.sfree)
    taken = 0
    while map_beside(job, machine.low, machine.slow, now, state, machine, tables, scratch) == 0:
        if taken == count:
            return 0
        change(machine.low, machine.slow, spell_freed(state.stoppable[0, taken], state, tables, scratch), 1, scratch)
        taken += 1
    i = taken - 2
    while i >= 0:
        other = state.stoppable[0, i]
        change(machine.low, machine.slow, spell_freed(other, state, tables, scratch), -1, scratch)
        if map_beside(job, machine.low, machine.slow, now, state, machine, tables, scratch) > 0:
            for k in range(i, taken - 1):
                state.stoppable[0, k] = state.stoppable[0, k + 1]
            state.stoppable[0, taken - 1] = other
            taken -= 1
        else:
            change(machine.low, machine.slow, spell_freed(other, state, tables, scratch), 1, scratch)
        i -= 1
    return taken


@inner_kernel
def stops_for(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Choose the jobs to stop for a job, the cheaper of two choices: put them first, and return how many they are."""
    count = 0
    for i in range(state.clock[C.RUNNING]):
        if can_stop(job, state.ends[i, 1], now, state, tables, scratch):
            state.stoppable[0, count] = state.ends[i, 1]
            count += 1
    if count == 0:
        return 0
    best, least, taken = 0, 0.0, 0
    for is_whole in range(2):
        taken, price = choose_stops(job, count, now, is_whole == 1, state, machine, tables, scratch), 0.0
        if taken == 0:
            return 0
        for i in range(taken):
            price += price_of(state.stoppable[0, i], now, True, state)
        if is_whole == 0:
            best, least = taken, price
            for i in range(taken):
                state.stoppable[2, i] = state.stoppable[0, i]
    if price < least:
        return taken
    for i in range(best):
        state.stoppable[0, i] = state.stoppable[2, i]
    return best


@inner_kernel
def start_by_stops(
    job: int, now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job where it fits, or where it does once others are stopped; tell whether it has started."""
    count = map_first(job, now, state, machine, tables, scratch)
    if count == 0 and state.clock[C.ASLEEP] > 0:
        withhold(state.stops[job, S.CLASS], state, machine, tables, scratch)
        count = map_first(job, now, state, machine, tables, scratch)
    if count > 0:
        return begin_run(job, count, now, state, machine, tables, scratch)
    taken, notice = stops_for(job, now, state, machine, tables, scratch), state.stop_rules[P.NOTICE]
    if taken == 0:
        return False
    is_told = True
    for i in range(taken):
        other = state.stoppable[0, i]
        if notice > 0 and state.stops[other, S.TOLD] < 0:
            is_told = False
            state.stops[other, S.TOLD] = now
            state.clock[C.NOTICE] = now + notice
    if not is_told:
        return False
    for i in range(taken):
        state.stops[state.stoppable[0, i], S.COUNT] += 1
        if state.stops[state.stoppable[0, i], S.INTERVAL] < 0:
            suspend(state.stoppable[0, i], now, state, machine, tables, scratch)
        else:
            cut_short(state.stoppable[0, i], True, now, rule, state, machine, tables, scratch)
    # where the pool is full the pass is repeated, and the job fits
    count = map_from_now(job, now, state, machine, tables, scratch)
    return count > 0 and begin_run(job, count, now, state, machine, tables, scratch)


@kernel
def serve_urgent(
    now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start waiting jobs that may stop others, highest level first; tell whether no job has notice."""
    if state.may_stop.shape[0] == 0:
        return True
    state.clock[C.EXEMPT] = FOREVER
    if now < state.clock[C.NOTICE]:
        return False
    if state.clock[C.ASLEEP] > 0:
        withhold(-1, state, machine, tables, scratch)
    if state.clock[C.NOTICE] >= 0:
        state.clock[C.NOTICE], state.clock[C.IS_FULL] = -1, 1
    level = FOREVER
    while level > 0 and state.clock[C.NOTICE] < 0 and not state.clock[C.LACKS]:
        below = 0
        for i in range(state.clock[C.QUEUED]):
            own = state.stops[state.queue[i], S.LEVEL]
            if own < level and state.runs[state.queue[i], R.START] < 0:
                below = max(below, own)
        level = below
        i = 0
        while level > 0 and i < state.clock[C.QUEUED]:
            job = state.queue[i]
            if state.stops[job, S.LEVEL] == level and state.runs[job, R.START] < 0:
                has_started = start_by_stops(job, now, rule, state, machine, tables, scratch)
                if state.clock[C.ASLEEP] > 0:
                    withhold(-1, state, machine, tables, scratch)
                if not has_started:
                    break
                state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
            i += 1
    close_gaps(state)
    if state.clock[C.LACKS] or state.clock[C.NOTICE] >= 0:
        return False
    for i in range(state.clock[C.RUNNING]):
        state.stops[state.ends[i, 1], S.TOLD] = -1  # its place is not needed any more
    if state.clock[C.ASLEEP] > 0:
        let_continue(now, state, machine, tables, scratch)
        state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
    return True
