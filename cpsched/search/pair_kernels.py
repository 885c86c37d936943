"""Wide jobs of which no three run together, compiled: a search of all their schedules that end in time.

A job that is *alone* runs beside none of the others; these run in pairs. At each moment of choice a job begins, or time
passes until the next job has arrived or ended: some best schedule has no other starts. A branch is left where the work
that remains takes too long by some measure, and where the same jobs were left before, at a time no later.

*Proof* that no job need begin alone once all have arrived, as long as others are left: take a schedule in which one
does, cut out its seconds, in which nothing else runs, and append them to the end.
"""

from typing import NamedTuple

import numpy as np

from cpsched.rusv import FOREVER, inner_kernel, kernel
from cpsched.search.arrays import Array

#: How a search ended: there is no such schedule; it has one; it is not over.
NONE, FOUND, OPEN = 0, 1, 2
#: The fields of a moment of choice: its second; the running job (-1: none), and its end; the job that began in that
#: second beside none (-1: none); the next job to be tried; the one that was begun (-1: none).
TIME, RUNNING, UNTIL, FIRST, NEXT, BEGUN = range(6)
#: The fields of the state: the number of moments; whether the last one is new; the second by which all must have ended;
#: of the jobs that have not begun: the number of those that are not alone, and the seconds of those that are.
DEPTH, IS_NEW, TARGET, LEFT, ALONE = range(5)
#: The fields of a state that was seen: the running job (-2: there is no state), its rest, the second while some jobs
#: have not arrived (-1: all have), and the second without the jobs that are alone.
OF_RUNNING, REST, SECOND, REACHED = range(4)
#: The words that hold a bit for each job.
WORDS = 2


class Wide(NamedTuple):
    """The jobs, in the order in which they are tried."""

    #: int64 (jobs,): what each takes of the sum; seconds that it runs; its earliest start.
    needs: Array
    durations: Array
    earliest: Array
    #: bool (jobs,): whether it is alone.
    alone: Array
    #: int64 (measures, jobs): 0, 1 or 2, so that jobs that run together measure 2 at the most.
    measures: Array
    #: int64 (2,): what there is of the sum, and the second in which all jobs have arrived.
    limits: Array


class Tree(NamedTuple):
    """Where a search is."""

    #: int64 (5,) and (moments, 6): see `DEPTH` and `TIME`.
    state: Array
    moments: Array
    #: bool (jobs,) and uint64 (words,): which jobs have begun; and the bits of those that are not alone.
    begun: Array
    bits: Array
    paired: Array
    #: int64 (measures,): the durations of the jobs that have not begun, each times what it measures.
    rest: Array
    #: int64 (jobs,): starts of those that have begun.
    starts: Array
    #: int64 (places, 4) and uint64 (places, words): states that were seen, see `OF_RUNNING`, and which jobs had begun.
    seen: Array
    seen_bits: Array


@kernel
def start_anew(target: int, wide: Wide, tree: Tree) -> None:
    """Begin to look for a schedule that has ended by `target`."""
    tree.state[IS_NEW], tree.state[TARGET], tree.state[LEFT], tree.state[ALONE] = 1, target, 0, 0
    tree.seen[:, OF_RUNNING] = -2
    tree.rest[:] = 0
    for word in range(WORDS):
        tree.bits[word] = np.uint64(0)
        tree.paired[word] = np.uint64(0)
    for job in range(wide.needs.shape[0]):
        tree.begun[job] = False
        if wide.alone[job]:
            tree.state[ALONE] += wide.durations[job]
        else:
            tree.state[LEFT] += 1
            tree.paired[job >> 6] |= np.uint64(1) << np.uint64(job & 63)
        for row in range(wide.measures.shape[0]):
            tree.rest[row] += wide.measures[row, job] * wide.durations[job]
    tree.state[DEPTH] = 0
    push(0, -1, 0, -1, tree)


@kernel
def explore(most: int, wide: Wide, tree: Tree) -> int:
    """Go on for at most so many moments; return how the search ended, and leave the starts of the jobs if it found a
    schedule.
    """
    state = tree.state
    while state[DEPTH] > 0:
        moment = tree.moments[state[DEPTH] - 1]
        time, running, until = moment[TIME], moment[RUNNING], moment[UNTIL]
        if state[IS_NEW]:
            if most == 0:
                return OPEN
            most -= 1
            state[IS_NEW] = 0
            if is_in_vain(moment, wide, tree):
                moment[NEXT] = wide.needs.shape[0] + 1
            elif state[LEFT] == 0 and time >= wide.limits[1]:
                end_alone(max(time, until), wide, tree)
                return FOUND
        job = next_job(moment, wide, tree)
        moment[NEXT] = job + 1
        if job < wide.needs.shape[0]:
            moment[BEGUN] = job
            tree.starts[job] = time
            set_begun(job, True, wide, tree)
            end = time + wide.durations[job]
            if wide.alone[job] or (running >= 0 and end == until):
                push(end, -1, 0, -1, tree)
            elif running < 0:
                push(time, job, end, job, tree)
            elif end < until:
                push(end, running, until, -1, tree)
            else:
                push(until, job, end, -1, tree)
        elif job == wide.needs.shape[0]:
            wait(moment, wide, tree)
        else:
            pop(wide, tree)
    return NONE


@inner_kernel
def push(time: int, running: int, until: int, first: int, tree: Tree) -> None:
    """Go on to another moment of choice."""
    moment = tree.moments[tree.state[DEPTH]]
    moment[TIME], moment[RUNNING], moment[UNTIL], moment[FIRST] = time, running, until, first
    moment[NEXT], moment[BEGUN] = 0, -1
    tree.state[DEPTH] += 1
    tree.state[IS_NEW] = 1


@inner_kernel
def pop(wide: Wide, tree: Tree) -> None:
    """Go back to the moment before, and take back what was begun there."""
    tree.state[DEPTH] -= 1
    if tree.state[DEPTH] > 0:
        before = tree.moments[tree.state[DEPTH] - 1]
        if before[BEGUN] >= 0:
            set_begun(before[BEGUN], False, wide, tree)
            before[BEGUN] = -1


@inner_kernel
def set_begun(job: int, is_begun: bool, wide: Wide, tree: Tree) -> None:
    """Note that a job has begun, or that it has not."""
    sign = -1 if is_begun else 1
    tree.begun[job] = is_begun
    tree.bits[job >> 6] ^= np.uint64(1) << np.uint64(job & 63)
    if wide.alone[job]:
        tree.state[ALONE] += sign * wide.durations[job]
    else:
        tree.state[LEFT] += sign
    for row in range(tree.rest.shape[0]):
        tree.rest[row] += sign * wide.measures[row, job] * wide.durations[job]


@inner_kernel
def next_job(moment: Array, wide: Wide, tree: Tree) -> int:
    """Return the next job to be tried at a moment, or the number of jobs: then time passes; or more: that was tried.

    Of two jobs that begin together the first one in order is begun first.
    """
    job, count, running = int(max(moment[NEXT], moment[FIRST] + 1)), int(wide.needs.shape[0]), moment[RUNNING]
    if moment[NEXT] > count:
        return count + 1
    while job < count:
        if not tree.begun[job] and wide.earliest[job] <= moment[TIME]:
            if running >= 0:
                if wide.needs[job] + wide.needs[running] <= wide.limits[0]:
                    return job
            elif not wide.alone[job] or moment[TIME] < wide.limits[1]:
                return job
        job += 1
    return count


@inner_kernel
def wait(moment: Array, wide: Wide, tree: Tree) -> None:
    """Let time pass until the running job has ended, or another one has arrived."""
    until = moment[UNTIL] if moment[RUNNING] >= 0 else FOREVER
    event = until
    for job in range(wide.needs.shape[0]):
        if not tree.begun[job] and wide.earliest[job] > moment[TIME]:
            event = min(event, wide.earliest[job])
    if event < FOREVER:
        if event < until and moment[RUNNING] >= 0:
            push(event, moment[RUNNING], until, -1, tree)
        else:
            push(event, -1, 0, -1, tree)


@inner_kernel
def end_alone(end: int, wide: Wide, tree: Tree) -> None:
    """Let the jobs that have not begun, which are alone, follow one after the other."""
    for job in range(wide.needs.shape[0]):
        if not tree.begun[job]:
            tree.starts[job] = end
            end += wide.durations[job]


@inner_kernel
def is_in_vain(moment: Array, wide: Wide, tree: Tree) -> bool:
    """Return whether no schedule goes on from a moment, or none that goes on from one that was seen is longer."""
    time, running = moment[TIME], moment[RUNNING]
    rest = moment[UNTIL] - time if running >= 0 else 0
    for row in range(tree.rest.shape[0]):
        taken = wide.measures[row, running] * rest if running >= 0 else 0
        if tree.rest[row] + taken > 2 * (tree.state[TARGET] - time):
            return True
    if time + rest + tree.state[ALONE] > tree.state[TARGET]:
        return True
    # what may begin beside one that has just begun depends on which one that is
    return bool(moment[FIRST] < 0 and was_seen(time, running, rest, wide, tree))


@inner_kernel
def was_seen(time: int, running: int, rest: int, wide: Wide, tree: Tree) -> bool:
    """Return whether the same jobs were left before, at a time no later; else note it."""
    has_all, second = time >= wide.limits[1], time
    if has_all:
        second = -1
    place = np.uint64(running + 1)
    for word in range(WORDS):
        place = mixed(place) ^ bits_left(word, has_all, tree)
    place = mixed(mixed(mixed(place) ^ np.uint64(rest)) ^ np.uint64(second + 1))
    row = np.int64(place & np.uint64(tree.seen.shape[0] - 1))
    seen, reached = tree.seen[row], time + tree.state[ALONE]
    is_same = seen[OF_RUNNING] == running and seen[REST] == rest and seen[SECOND] == second
    for word in range(WORDS):
        bits = bits_left(word, has_all, tree)
        is_same = is_same and tree.seen_bits[row, word] == bits
        tree.seen_bits[row, word] = bits
    if is_same and seen[REACHED] <= reached:
        return True
    seen[OF_RUNNING], seen[REST], seen[SECOND], seen[REACHED] = running, rest, second, reached
    return False


@inner_kernel
def bits_left(word: int, has_all: bool, tree: Tree) -> np.uint64:
    """Return the bits by which states are compared: those of jobs that are alone do not count once all have arrived."""
    return np.uint64(tree.bits[word] & tree.paired[word] if has_all else tree.bits[word])


@inner_kernel
def mixed(word: np.uint64) -> np.uint64:
    """Return a word whose bits are mixed (xorshift64, Marsaglia 2003)."""
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    return word ^ (word << np.uint64(17))
