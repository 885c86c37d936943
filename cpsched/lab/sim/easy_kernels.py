"""Kernels that replay what has happened under EASY backfilling: how long jobs would have waited.

The replay has one machine without nodes that has as much as all of them. It takes jobs as they come, for as long as
they really run, and so it lags: where it depends on the end of a job that nobody knows yet, it waits until that
job has ended. Nothing in it is expected, so no wrong expectation stays in its longest wait.

A rule that makes jobs wait longer than they did there starts them as EASY does, until what it has lost is little. One
that has gained nothing yet does so sooner, and also where it holds the replay up.
"""

from cpsched.lab.sim.arrays import COMPLETED, REFUSED, WAITING, C, J, R
from cpsched.rusv import FOREVER, inner_kernel, kernel

#: What a rule may lose of the weighted queue time of the replay, and the seconds between two looks at that.
_MOST_LOSS, _DAY = 0.05, 86_400
#: What it must have gained of that in all: else it may lose half as much, and hold the replay up for so many seconds.
_LEAST_GAIN, _LONGEST_HOLD = 0.1, 2 * _DAY


@inner_kernel
def take(job, sign, room, s):
    """Lower what is free by what a job asks for, times `sign`."""
    for q in range(room.shape[0]):
        room[q] -= sign * s.asked[job, q]


@inner_kernel
def has_enough(job, room, s):
    """Tell whether enough is free for a job."""
    for q in range(room.shape[0]):
        if s.asked[job, q] > room[q]:
            return False
    return True


@inner_kernel
def walltime_of(job, s):
    """Return the walltime of a job, by its own request if it has a choice."""
    row = s.choices_of[job]
    return s.choices[row, 1] if row < s.choices_of[job + 1] else s.jobs[job, J.WALLTIME]


@inner_kernel
def runtime_of(job, s):
    """Return how long an ended job ran, or would have run by its own request; 0 if it was refused."""
    if s.runs[job, R.ENDING] < COMPLETED:
        return 0
    row = s.choices_of[job]
    return s.choices[row, 2] if row < s.choices_of[job + 1] else s.runs[job, R.END] - s.runs[job, R.START]


@inner_kernel
def replayed_start(i, s):
    """Return when a job of the replay has started there."""
    return s.replay_ends[i, 0] - walltime_of(s.replay_ends[i, 1], s)


@inner_kernel
def next_replayed(now, s):
    """Return the second of the next event of the replay, -1 if it is not known yet: somebody may end before.

    Where nothing happens until now it is now.
    """
    at, unknown = now, FOREVER
    if s.clock[C.TURN] < s.clock[C.COME]:
        at = min(now, s.release[s.turns[s.clock[C.TURN]]])
    for i in range(s.clock[C.REPLAY_RUNNING]):
        job = s.replay_ends[i, 1]
        start = replayed_start(i, s)
        if s.runs[job, R.ENDING] != WAITING:
            at = min(at, start + runtime_of(job, s))
        else:
            unknown = min(unknown, start + (now - s.runs[job, R.START] if s.runs[job, R.START] >= 0 else 0))
    at = max(at, s.clock[C.REPLAYED])
    return at if at <= unknown else -1


@inner_kernel
def end_replayed(at, s):
    """End the jobs of the replay that end by a second; tell whether there were any."""
    kept = 0
    for i in range(s.clock[C.REPLAY_RUNNING]):
        job = s.replay_ends[i, 1]
        if s.runs[job, R.ENDING] != WAITING and replayed_start(i, s) + runtime_of(job, s) <= at:
            take(job, -1, s.replay_free, s)
        else:
            s.replay_ends[kept, 0], s.replay_ends[kept, 1] = s.replay_ends[i, 0], job
            kept += 1
    has_ended = kept < s.clock[C.REPLAY_RUNNING]
    s.clock[C.REPLAY_RUNNING] = kept
    return has_ended


@inner_kernel
def start_replayed(job, at, s):
    """Start a job of the replay."""
    take(job, 1, s.replay_free, s)
    end, i = at + walltime_of(job, s), s.clock[C.REPLAY_RUNNING]
    s.clock[C.REPLAY_RUNNING] += 1
    while i > 0 and s.replay_ends[i - 1, 0] > end:
        s.replay_ends[i, 0], s.replay_ends[i, 1] = s.replay_ends[i - 1, 0], s.replay_ends[i - 1, 1]
        i -= 1
    s.replay_ends[i, 0], s.replay_ends[i, 1] = end, job


@inner_kernel
def reserve_replayed(job, s):
    """Return when the first blocked job of the replay can start, by walltimes; note what is free beside it then."""
    room, start, i = s.replay_beside, 0, 0
    for q in range(room.shape[0]):
        room[q] = s.replay_free[q]
    while i < s.clock[C.REPLAY_RUNNING] and (not has_enough(job, room, s) or s.replay_ends[i, 0] == start):
        start = s.replay_ends[i, 0]
        take(s.replay_ends[i, 1], -1, room, s)
        i += 1
    take(job, 1, room, s)
    return start


@inner_kernel
def backfill_replayed(at, s):
    """Start the jobs of the replay that EASY starts at a second."""
    kept, head_start = 0, -1
    for i in range(s.clock[C.REPLAY_QUEUED]):
        job = s.replay_queue[i]
        is_short = head_start < 0 or at + walltime_of(job, s) <= head_start
        if has_enough(job, s.replay_free, s) and (is_short or has_enough(job, s.replay_beside, s)):
            start_replayed(job, at, s)
            s.replay_waits[job] = at - s.release[job]
            s.clock[C.LONGEST] = max(s.clock[C.LONGEST], s.replay_waits[job])
            if not is_short:
                take(job, 1, s.replay_beside, s)
            continue
        if head_start < 0:
            head_start = reserve_replayed(job, s)
        s.replay_queue[kept] = job
        kept += 1
    s.clock[C.REPLAY_QUEUED] = kept


@kernel
def replay_easy(now, s):
    """Replay what is known by now, and note the longest wait (s), also of those that still wait there."""
    while True:
        at = next_replayed(now, s)
        if at < 0:
            return
        s.clock[C.REPLAYED] = at
        is_new = end_replayed(at, s)
        while s.clock[C.TURN] < s.clock[C.COME] and s.release[s.turns[s.clock[C.TURN]]] <= at:
            s.replay_queue[s.clock[C.REPLAY_QUEUED]] = s.turns[s.clock[C.TURN]]
            s.clock[C.REPLAY_QUEUED], s.clock[C.TURN] = s.clock[C.REPLAY_QUEUED] + 1, s.clock[C.TURN] + 1
            is_new = True
        if is_new:
            backfill_replayed(at, s)
        if s.clock[C.REPLAY_QUEUED] > 0:
            s.clock[C.LONGEST] = max(s.clock[C.LONGEST], at - s.release[s.replay_queue[0]])
        if not is_new:
            return


@inner_kernel
def weight_of(job, s):
    """Return the weight of a second of a job's wait; 0 if it was refused or cut short: the replay knows no failures."""
    has_started = 1 if s.runs[job, R.START] >= 0 else 0
    if s.smith[job] <= 0.0 or s.runs[job, R.ENDING] == REFUSED or s.runs[job, R.STARTS] != has_started:
        return 0.0
    return s.share[job] / s.smith[job]


@inner_kernel
def is_held_up(now, s):
    """Tell whether the replay waits for the end of a job that it has started long ago, and that still waits here."""
    for i in range(s.clock[C.REPLAY_RUNNING]):
        job = s.replay_ends[i, 1]
        is_waiting = s.runs[job, R.START] < 0 and s.runs[job, R.ENDING] == WAITING
        if is_waiting and now - replayed_start(i, s) > _LONGEST_HOLD:
            return True
    return False


@inner_kernel
def has_gained(there, here):
    """Tell whether the weighted queue time is so much less than that of the replay that the rule is trusted."""
    return here < (1.0 - _LEAST_GAIN) * there


@kernel
def compare_waits(now, rule, s):
    """Note once a day whether jobs start as under EASY from now on, and since and until when they have: where they have
    lost more than a share of the weighted queue time of the replay. If they have gained little in all, half of that is
    enough, and so it is that they hold the replay up. Of few jobs it takes a loss in all.

    Lost is what those since some job have waited longer than there, that job for which it is most: what was won before
    does not count. If they have gained in all, it is one from the first on that has not ended. Jobs that still wait
    there count until the second of the replay, here too, and others that wait here, until now. Nothing is noted while
    the machine is empty and no job waits.
    """
    if s.clock[C.RUNNING] == 0 and s.clock[C.QUEUED] == 0:
        return
    count = s.clock[C.TURN] - s.clock[C.REPLAY_QUEUED]
    if now < s.clock[C.NEXT_DAY] or count < rule.few:
        return
    s.clock[C.NEXT_DAY] = now + _DAY
    there, here, is_over = s.compared[1], s.compared[2], True
    lost = 0.0 if has_gained(there, here) else s.compared[0]
    for i in range(s.clock[C.COMPARED], s.clock[C.COME]):
        job = s.turns[i]
        has_started = s.replay_waits[job] >= 0
        is_over = is_over and has_started and s.runs[job, R.ENDING] != WAITING
        until = now if has_started else s.clock[C.REPLAYED]
        if s.runs[job, R.START] >= 0:
            until = min(until, s.runs[job, R.START])
        wait = s.replay_waits[job] if has_started else max(0, s.clock[C.REPLAYED] - s.release[job])
        waited, own = weight_of(job, s) * wait, weight_of(job, s) * max(0, until - s.release[job])
        lost, there, here = max(0.0, lost + own - waited), there + waited, here + own
        if is_over:
            s.compared[0], s.compared[1], s.compared[2] = lost, there, here
            s.clock[C.COMPARED] = i + 1
    if s.clock[C.AS_EASY] == 1:
        s.clock[C.EASY_SECONDS] += now - s.clock[C.EASY_UNTIL]
        s.clock[C.EASY_UNTIL] = now
    if count < rule.trusted:
        loses = here > there
    elif has_gained(there, here):
        loses = lost > _MOST_LOSS * there
    else:
        loses = lost > 0.5 * _MOST_LOSS * there or is_held_up(now, s)
    s.clock[C.AS_EASY] = 1 if loses else 0
    if s.clock[C.AS_EASY] == 1:
        s.clock[C.EASY_FROM] = now if s.clock[C.EASY_FROM] < 0 else s.clock[C.EASY_FROM]
        s.clock[C.EASY_UNTIL] = now
