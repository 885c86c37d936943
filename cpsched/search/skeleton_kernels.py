"""Schedules of wide jobs that share one sum, compiled: a search of all of them that end in time.

At each moment of choice a job begins, or time passes until the next job has arrived or ended: some best schedule has no
other starts. A branch is left where the work that remains takes too long by some measure, where the last jobs cannot be
shared out over two rows, and where the same jobs had begun in a state without success, and none of them ended later
(the cutset rule of Demeulemeester and Herroelen 1992).

*Proof* of that rule: what follows in a schedule that goes on from the branch could follow that state as well, at the
same seconds, and end in time. Moved to the left as far as others end or jobs arrive, it would have been found there.

A job is *alone* if it fits beside none of the others. *Proof* that no job need begin alone once all have arrived, as
long as others are left: take a schedule in which one does, cut out its seconds, in which nothing else runs, and append
them to the end.
"""

from typing import NamedTuple

import numpy as np

from cpsched.rusv import FOREVER, Array, inner_kernel, kernel

#: How a search ended: there is no such schedule; it has one; it is not over.
NONE, FOUND, OPEN = 0, 1, 2
#: The fields of a moment of choice: its second; what is free of the sum; the number of running jobs; the job that began
#: last in that second (-1: none); the next job to be tried; the one that was begun (-1: none).
TIME, FREE, COUNT, FIRST, NEXT, BEGUN = range(6)
#: The fields of the state: the number of moments; whether the last one is new; the second by which all must have ended;
#: of the jobs that have not begun: the number of those that are not alone, and the seconds of those that are.
DEPTH, IS_NEW, TARGET, LEFT, ALONE = range(5)
#: The fields of a state without success: whether all jobs had arrived (-1: there is no state); the number of its
#: running jobs; its second; then each running job, and its end. To both are added the seconds of the jobs that are left
#: and alone.
HAD_ALL, RUNNING, SECOND, JOBS = range(4)
#: The words that hold a bit for each job.
WORDS = 2
#: The number of rules by which places for states are found.
RULES = 3
#: The most jobs that are left when they are shared out over two rows.
FEW = 11


class Wide(NamedTuple):
    """The jobs, in the order in which they are tried."""

    #: int64 (jobs,): what each takes of the sum; seconds that it runs; its earliest start.
    needs: Array
    durations: Array
    earliest: Array
    #: bool (jobs,): whether it is alone.
    alone: Array
    #: int64 (measures, jobs) and (measures,): sizes of the jobs, and the most that those that run together have.
    measures: Array
    most: Array
    #: int64 (2,): what there is of the sum, and the second in which all jobs have arrived.
    limits: Array


class Tree(NamedTuple):
    """Where a search is."""

    #: int64 (5,) and (moments, 6): see `DEPTH` and `TIME`.
    state: Array
    moments: Array
    #: int64 (moments, places): the running jobs of each moment.
    running: Array
    #: bool (jobs,) and uint64 (words,): which jobs have begun; and the bits of those that are not alone.
    begun: Array
    bits: Array
    paired: Array
    #: int64 (measures,): the durations of the jobs that have not begun, each times its size.
    rest: Array
    #: int64 (jobs,): starts of those that have begun.
    starts: Array
    #: int64 (states, `JOBS` + 2 places) and uint64 (states, words): see `HAD_ALL`, and which jobs had begun.
    seen: Array
    seen_bits: Array
    #: int64 (2 ** `FEW`,): the seconds of sets of jobs that are left.
    sums: Array


@kernel
def start_anew(target: int, wide: Wide, tree: Tree) -> None:
    """Begin to look for a schedule that has ended by `target`."""
    tree.state[IS_NEW], tree.state[TARGET], tree.state[LEFT], tree.state[ALONE] = 1, target, 0, 0
    tree.seen[:, HAD_ALL] = -1
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
    first = tree.moments[0]
    first[TIME], first[FREE], first[COUNT], first[FIRST], first[NEXT], first[BEGUN] = 0, wide.limits[0], 0, -1, 0, -1
    tree.state[DEPTH] = 1


@kernel
def explore(most: int, wide: Wide, tree: Tree) -> int:
    """Go on for at most so many moments; return how the search ended, and leave the starts of the jobs if it found a
    schedule.
    """
    state, count = tree.state, int(wide.needs.shape[0])
    while state[DEPTH] > 0:
        moment = tree.moments[state[DEPTH] - 1]
        if state[IS_NEW]:
            if most == 0:
                return OPEN
            most -= 1
            state[IS_NEW] = 0
            last = last_end(wide, tree)
            is_in_vain = last + state[ALONE] > state[TARGET]
            # what is left to do does not depend on what has just begun
            if not is_in_vain and moment[FIRST] < 0:
                is_in_vain = is_too_long(wide, tree) or was_seen(wide, tree) or not fit_in_two(wide, tree)
            if is_in_vain:
                leave(wide, tree)
                continue
            if state[LEFT] == 0 and moment[TIME] >= wide.limits[1]:
                end_alone(last, wide, tree)
                return FOUND
        job = next_job(moment, wide, tree)
        moment[NEXT] = job + 1
        if job < count:
            begin(job, wide, tree)
        elif job > count or not wait(wide, tree):
            if moment[FIRST] < 0:
                note(wide, tree)
            leave(wide, tree)
    return NONE


@inner_kernel
def begin(job: int, wide: Wide, tree: Tree) -> None:
    """Go on to the moment after a job has begun, in the same second."""
    depth = tree.state[DEPTH]
    before, moment = tree.moments[depth - 1], tree.moments[depth]
    before[BEGUN] = job
    moment[TIME], moment[FREE], moment[COUNT] = before[TIME], before[FREE] - wide.needs[job], before[COUNT] + 1
    moment[FIRST], moment[NEXT], moment[BEGUN] = job, job + 1, -1
    for place in range(before[COUNT]):
        tree.running[depth, place] = tree.running[depth - 1, place]
    tree.running[depth, before[COUNT]] = job
    tree.starts[job] = moment[TIME]
    set_begun(job, True, wide, tree)
    tree.state[DEPTH] += 1
    tree.state[IS_NEW] = 1


@inner_kernel
def wait(wide: Wide, tree: Tree) -> bool:
    """Go on to the second when a running job has ended, or another one has arrived; return whether there is one."""
    depth = tree.state[DEPTH]
    before, moment = tree.moments[depth - 1], tree.moments[depth]
    time, event = before[TIME], FOREVER
    for place in range(before[COUNT]):
        job = tree.running[depth - 1, place]
        event = min(event, tree.starts[job] + wide.durations[job])
    if time < wide.limits[1]:
        for job in range(wide.needs.shape[0]):
            if not tree.begun[job] and wide.earliest[job] > time:
                event = min(event, wide.earliest[job])
    if event == FOREVER:
        return False
    moment[TIME], moment[FREE], moment[COUNT] = event, before[FREE], 0
    moment[FIRST], moment[NEXT], moment[BEGUN] = -1, 0, -1
    for place in range(before[COUNT]):
        job = tree.running[depth - 1, place]
        if tree.starts[job] + wide.durations[job] > event:
            tree.running[depth, moment[COUNT]] = job
            moment[COUNT] += 1
        else:
            moment[FREE] += wide.needs[job]
    tree.state[DEPTH] += 1
    tree.state[IS_NEW] = 1
    return True


@inner_kernel
def leave(wide: Wide, tree: Tree) -> None:
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

    Of jobs that begin together the first one in order is begun first.
    """
    job, count, has_all = int(moment[NEXT]), int(wide.needs.shape[0]), moment[TIME] >= wide.limits[1]
    while job < count:
        fits = wide.needs[job] <= moment[FREE] and wide.earliest[job] <= moment[TIME]
        if fits and not tree.begun[job] and not (wide.alone[job] and has_all):
            return job
        job += 1
    return job


@inner_kernel
def last_end(wide: Wide, tree: Tree) -> int:
    """Return when the last running job ends, or the second of the moment."""
    depth = tree.state[DEPTH] - 1
    last = tree.moments[depth, TIME]
    for place in range(tree.moments[depth, COUNT]):
        job = tree.running[depth, place]
        last = max(last, tree.starts[job] + wide.durations[job])
    return int(last)


@inner_kernel
def end_alone(end: int, wide: Wide, tree: Tree) -> None:
    """Start the jobs that have not begun, which are alone, one after the other."""
    for job in range(wide.needs.shape[0]):
        if not tree.begun[job]:
            tree.starts[job] = end
            end += wide.durations[job]


@inner_kernel
def is_too_long(wide: Wide, tree: Tree) -> bool:
    """Return whether the jobs cannot have ended in time, by some measure."""
    depth, target = tree.state[DEPTH] - 1, tree.state[TARGET]
    time, count = tree.moments[depth, TIME], tree.moments[depth, COUNT]
    for row in range(tree.rest.shape[0]):
        work = tree.rest[row]
        for place in range(count):
            job = tree.running[depth, place]
            work += wide.measures[row, job] * (tree.starts[job] + wide.durations[job] - time)
        if work > wide.most[row] * (target - time):
            return True
    return False


@inner_kernel
def fit_in_two(wide: Wide, tree: Tree) -> bool:
    """Return whether the last jobs can be shared out over two rows so that both end in time.

    Where no three jobs run together, each is in one of two rows: one goes on from each running job. True where that is
    not so, or not all have arrived, or more than `FEW` jobs are left.
    """
    depth = tree.state[DEPTH] - 1
    time, count = tree.moments[depth, TIME], tree.moments[depth, COUNT]
    if tree.running.shape[1] > 2 or time < wide.limits[1] or tree.state[LEFT] > FEW:
        return True
    # what the first row has left, and what it must take lest the second has too much
    room = tree.state[TARGET] - tree.state[ALONE] - time
    work = -room
    for place in range(count):
        job = tree.running[depth, place]
        rest = tree.starts[job] + wide.durations[job] - time
        if place == 0:
            room -= rest
        else:
            work += rest
    for job in range(wide.needs.shape[0]):
        if not tree.begun[job] and not wide.alone[job]:
            work += wide.durations[job]
    if work <= 0:
        return True
    tree.sums[0], sets = 0, 1
    for job in range(wide.needs.shape[0]):
        if not tree.begun[job] and not wide.alone[job]:
            for row in range(sets):
                seconds = tree.sums[row] + wide.durations[job]
                if work <= seconds <= room:
                    return True
                tree.sums[sets + row] = seconds
            sets *= 2
    return False


@inner_kernel
def was_seen(wide: Wide, tree: Tree) -> bool:
    """Return whether the same jobs had begun in a state without success, and none of them ended later."""
    for rule in range(RULES):
        if is_no_better(place_of(rule, wide, tree), wide, tree):
            return True
    return False


@inner_kernel
def is_no_better(row: np.int64, wide: Wide, tree: Tree) -> bool:
    """Return whether the same jobs had begun in a state without success, and none of them ended later."""
    time, seen, alone = tree.moments[tree.state[DEPTH] - 1, TIME], tree.seen[row], tree.state[ALONE]
    has_all, second = time >= wide.limits[1], time + alone
    if seen[HAD_ALL] != has_all or seen[SECOND] > second:
        return False
    for word in range(WORDS):
        if tree.seen_bits[row, word] != bits_of(word, has_all, tree):
            return False
    for place in range(seen[RUNNING]):
        job, end = seen[JOBS + 2 * place], seen[JOBS + 2 * place + 1]
        if end > second and not (tree.begun[job] and tree.starts[job] + wide.durations[job] + alone >= end):
            return False
    return True


@inner_kernel
def note(wide: Wide, tree: Tree) -> None:
    """Note the state of the last moment, which has no success."""
    depth, alone = tree.state[DEPTH] - 1, tree.state[ALONE]
    time, count = tree.moments[depth, TIME], tree.moments[depth, COUNT]
    has_all = time >= wide.limits[1]
    for rule in range(RULES):
        row = place_of(rule, wide, tree)
        seen = tree.seen[row]
        seen[HAD_ALL], seen[RUNNING], seen[SECOND] = has_all, count, time + alone
        for word in range(WORDS):
            tree.seen_bits[row, word] = bits_of(word, has_all, tree)
        for place in range(count):
            job = tree.running[depth, place]
            seen[JOBS + 2 * place], seen[JOBS + 2 * place + 1] = job, tree.starts[job] + wide.durations[job] + alone


@inner_kernel
def place_of(rule: int, wide: Wide, tree: Tree) -> np.int64:
    """Return the row of states in which the same jobs have begun; by rule 1 the same jobs run, too, and by rule 2 they
    run for as long.
    """
    depth = tree.state[DEPTH] - 1
    time, among = tree.moments[depth, TIME], np.uint64(rule)
    for place in range(tree.moments[depth, COUNT] if rule else 0):
        job = tree.running[depth, place]
        rest = tree.starts[job] + wide.durations[job] - time if rule == 2 else 0
        among ^= mixed(mixed(np.uint64(job + 1)) ^ np.uint64(rest))
    has_all = time >= wide.limits[1]
    among = mixed(among) ^ np.uint64(has_all)
    for word in range(WORDS):
        among = mixed(among) ^ bits_of(word, has_all, tree)
    return np.int64(mixed(mixed(among)) & np.uint64(tree.seen.shape[0] - 1))


@inner_kernel
def bits_of(word: int, has_all: bool, tree: Tree) -> np.uint64:
    """Return the bits by which states are compared: those of jobs that are alone do not count once all have arrived."""
    return np.uint64(tree.bits[word] & tree.paired[word] if has_all else tree.bits[word])


@inner_kernel
def mixed(word: np.uint64) -> np.uint64:
    """Return a word whose bits are mixed (xorshift64, Marsaglia 2003)."""
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    return word ^ (word << np.uint64(17))
