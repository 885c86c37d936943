"""Kernels that replay what has happened under EASY backfilling: how long jobs would have waited.

The replay has one machine without nodes that has as much as all of them. It takes jobs as they come, for as long as
they really run, and so it lags: where it depends on the end of a job that nobody knows yet, it waits until that
job has ended. Nothing in it is expected, so no wrong expectation stays in its longest wait.

A rule that makes jobs wait longer than they did there starts them as EASY does, until what it has lost is little. One
that has gained nothing yet does so sooner, and also where it holds the replay up.
"""

from cpsched.lab.sim.arrays import COMPLETED, REFUSED, WAITING, C, J, R, RuleNumbers, SimState
from cpsched.rusv import FOREVER, Array, inner_kernel, kernel

#: What a rule may lose of the weighted queue time of the replay, and the seconds between two looks at that.
_MOST_LOSS, _DAY = 0.05, 86_400
#: What it must have gained of that in all: else it may lose half as much, and hold the replay up for so many seconds.
_LEAST_GAIN, _LONGEST_HOLD = 0.1, 2 * _DAY


@inner_kernel
def take(job: int, sign: int, room: Array, state: SimState) -> None:
    """Lower what is free by what a job asks for, times `sign`."""
    for q in range(room.shape[0]):
        room[q] -= sign * state.asked[job, q]


@inner_kernel
def has_enough(job: int, room: Array, state: SimState) -> bool:
    """Tell whether enough is free for a job."""
    for q in range(room.shape[0]):
        if state.asked[job, q] > room[q]:
            return False
    return True


@inner_kernel
def walltime_of(job: int, state: SimState) -> int:
    """Return the walltime of a job, by its own request if it has a choice."""
    row = state.choices_of[job]
    return state.choices[row, 1] if row < state.choices_of[job + 1] else state.jobs[job, J.WALLTIME]


@inner_kernel
def runtime_of(job: int, state: SimState) -> int:
    """Return how long an ended job ran, or would have run by its own request; 0 if it was refused."""
    if state.runs[job, R.ENDING] < COMPLETED:
        return 0
    row = state.choices_of[job]
    return (
        state.choices[row, 2] if row < state.choices_of[job + 1] else state.runs[job, R.END] - state.runs[job, R.START]
    )


@inner_kernel
def replayed_start(row: int, state: SimState) -> int:
    """Return when a job of the replay has started there."""
    return state.replay_ends[row, 0] - walltime_of(state.replay_ends[row, 1], state)


@inner_kernel
def next_replayed(now: int, state: SimState) -> int:
    """Return the second of the next event of the replay, -1 if it is not known yet: somebody may end before.

    Where nothing happens until now it is now.
    """
    at, unknown = now, FOREVER
    if state.clock[C.TURN] < state.clock[C.COME]:
        at = min(now, state.release[state.turns[state.clock[C.TURN]]])
    for i in range(state.clock[C.REPLAY_RUNNING]):
        job = state.replay_ends[i, 1]
        start = replayed_start(i, state)
        if state.runs[job, R.ENDING] != WAITING:
            at = min(at, start + runtime_of(job, state))
        else:
            unknown = min(unknown, start + (now - state.runs[job, R.START] if state.runs[job, R.START] >= 0 else 0))
    at = max(at, state.clock[C.REPLAYED])
    return at if at <= unknown else -1


@inner_kernel
def end_replayed(at: int, state: SimState) -> bool:
    """End the jobs of the replay that end by a second; tell whether there were any."""
    kept = 0
    for i in range(state.clock[C.REPLAY_RUNNING]):
        job = state.replay_ends[i, 1]
        if state.runs[job, R.ENDING] != WAITING and replayed_start(i, state) + runtime_of(job, state) <= at:
            take(job, -1, state.replay_free, state)
        else:
            state.replay_ends[kept, 0], state.replay_ends[kept, 1] = state.replay_ends[i, 0], job
            kept += 1
    has_ended = kept < state.clock[C.REPLAY_RUNNING]
    state.clock[C.REPLAY_RUNNING] = kept
    return has_ended


@inner_kernel
def start_replayed(job: int, at: int, state: SimState) -> None:
    """Start a job of the replay."""
    take(job, 1, state.replay_free, state)
    end, i = at + walltime_of(job, state), state.clock[C.REPLAY_RUNNING]
    state.clock[C.REPLAY_RUNNING] += 1
    while i > 0 and state.replay_ends[i - 1, 0] > end:
        state.replay_ends[i, 0], state.replay_ends[i, 1] = state.replay_ends[i - 1, 0], state.replay_ends[i - 1, 1]
        i -= 1
    state.replay_ends[i, 0], state.replay_ends[i, 1] = end, job


@inner_kernel
def reserve_replayed(job: int, state: SimState) -> int:
    """Return when the first blocked job of the replay can start, by walltimes; note what is free beside it then."""
    room, start, i = state.replay_beside, 0, 0
    for q in range(room.shape[0]):
        room[q] = state.replay_free[q]
    while i < state.clock[C.REPLAY_RUNNING] and (not has_enough(job, room, state) or state.replay_ends[i, 0] == start):
        start = state.replay_ends[i, 0]
        take(state.replay_ends[i, 1], -1, room, state)
        i += 1
    take(job, 1, room, state)
    return start


@inner_kernel
def backfill_replayed(at: int, state: SimState) -> None:
    """Start the jobs of the replay that EASY starts at a second."""
    kept, head_start = 0, -1
    for i in range(state.clock[C.REPLAY_QUEUED]):
        job = state.replay_queue[i]
        is_short = head_start < 0 or at + walltime_of(job, state) <= head_start
        if has_enough(job, state.replay_free, state) and (is_short or has_enough(job, state.replay_beside, state)):
            start_replayed(job, at, state)
            state.replay_waits[job] = at - state.release[job]
            state.clock[C.LONGEST] = max(state.clock[C.LONGEST], state.replay_waits[job])
            if not is_short:
                take(job, 1, state.replay_beside, state)
            continue
        if head_start < 0:
            head_start = reserve_replayed(job, state)
        state.replay_queue[kept] = job
        kept += 1
    state.clock[C.REPLAY_QUEUED] = kept


@kernel
def replay_easy(now: int, state: SimState) -> None:
    """Replay what is known by now, and note the longest wait (s), also of those that still wait there."""
    while True:
        at = next_replayed(now, state)
        if at < 0:
            return
        state.clock[C.REPLAYED] = at
        is_new = end_replayed(at, state)
        while state.clock[C.TURN] < state.clock[C.COME] and state.release[state.turns[state.clock[C.TURN]]] <= at:
            state.replay_queue[state.clock[C.REPLAY_QUEUED]] = state.turns[state.clock[C.TURN]]
            state.clock[C.REPLAY_QUEUED], state.clock[C.TURN] = (
                state.clock[C.REPLAY_QUEUED] + 1,
                state.clock[C.TURN] + 1,
            )
            is_new = True
        if is_new:
            backfill_replayed(at, state)
        if state.clock[C.REPLAY_QUEUED] > 0:
            state.clock[C.LONGEST] = max(state.clock[C.LONGEST], at - state.release[state.replay_queue[0]])
        if not is_new:
            return


@inner_kernel
def weight_of(job: int, state: SimState) -> float:
    """Return the weight of a second of a job's wait; 0 if it was refused or cut short: the replay knows no failures."""
    has_started = 1 if state.runs[job, R.START] >= 0 else 0
    if state.smith[job] <= 0.0 or state.runs[job, R.ENDING] == REFUSED or state.runs[job, R.STARTS] != has_started:
        return 0.0
    return state.share[job] / state.smith[job]


@inner_kernel
def is_held_up(now: int, state: SimState) -> bool:
    """Tell whether the replay waits for the end of a job that it has started long ago, and that still waits here."""
    for i in range(state.clock[C.REPLAY_RUNNING]):
        job = state.replay_ends[i, 1]
        is_waiting = state.runs[job, R.START] < 0 and state.runs[job, R.ENDING] == WAITING
        if is_waiting and now - replayed_start(i, state) > _LONGEST_HOLD:
            return True
    return False


@inner_kernel
def has_gained(there: float, here: float) -> bool:
    """Tell whether the weighted queue time is so much less than that of the replay that the rule is trusted."""
    return here < (1.0 - _LEAST_GAIN) * there


@kernel
def compare_waits(now: int, rule: RuleNumbers, state: SimState) -> None:
    """Note once a day whether jobs start as under EASY from now on, and since and until when they have: where they have
    lost more than a share of the weighted queue time of the replay. If they have gained little in all, half of that is
    enough, and so it is that they hold the replay up. Of few jobs it takes a loss in all.

    Lost is what those since some job have waited longer than there, that job for which it is most: what was won before
    does not count. If they have gained in all, it is one from the first on that has not ended. Jobs that still wait
    there count until the second of the replay, here too, and others that wait here, until now. Nothing is noted while
    the machine is empty and no job waits.
    """
    if state.clock[C.RUNNING] == 0 and state.clock[C.QUEUED] == 0:
        return
    count = state.clock[C.TURN] - state.clock[C.REPLAY_QUEUED]
    if now < state.clock[C.NEXT_DAY] or count < rule.few:
        return
    state.clock[C.NEXT_DAY] = now + _DAY
    there, here, is_over = state.compared[1], state.compared[2], True
    lost = 0.0 if has_gained(there, here) else state.compared[0]
    for i in range(state.clock[C.COMPARED], state.clock[C.COME]):
        job = state.turns[i]
        has_started = state.replay_waits[job] >= 0
        is_over = is_over and has_started and state.runs[job, R.ENDING] != WAITING
        until = now if has_started else state.clock[C.REPLAYED]
        if state.runs[job, R.START] >= 0:
            until = min(until, state.runs[job, R.START])
        wait = state.replay_waits[job] if has_started else max(0, state.clock[C.REPLAYED] - state.release[job])
        waited, own = weight_of(job, state) * wait, weight_of(job, state) * max(0, until - state.release[job])
        lost, there, here = max(0.0, lost + own - waited), there + waited, here + own
        if is_over:
            state.compared[0], state.compared[1], state.compared[2] = lost, there, here
            state.clock[C.COMPARED] = i + 1
    if state.clock[C.AS_EASY] == 1:
        state.clock[C.EASY_SECONDS] += now - state.clock[C.EASY_UNTIL]
        state.clock[C.EASY_UNTIL] = now
    if count < rule.trusted:
        loses = here > there
    elif has_gained(there, here):
        loses = lost > _MOST_LOSS * there
    else:
        loses = lost > 0.5 * _MOST_LOSS * there or is_held_up(now, state)
    state.clock[C.AS_EASY] = 1 if loses else 0
    if state.clock[C.AS_EASY] == 1:
        state.clock[C.EASY_FROM] = now if state.clock[C.EASY_FROM] < 0 else state.clock[C.EASY_FROM]
        state.clock[C.EASY_UNTIL] = now
