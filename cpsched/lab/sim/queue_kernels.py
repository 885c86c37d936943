"""Kernels of the queue's order: keys of jobs, and their expected runtimes."""

import numpy as np

from cpsched.lab.sim.arrays import BY, EXPECTS_CLASSES, PREDICTS_NOTHING, C, J, RuleNumbers, SimState, sort_by_key
from cpsched.rusv import FOREVER, allocating_kernel, inner_kernel, kernel

#: The parts of the keys by which jobs with promises, and those that are due, are before all others.
_PROMISED, DUE = -4e15, -2e15
#: What a runtime counts at the next one of its class; in the last, narrow classes, and in the first, wide ones.
_DECAY, _SLOW_DECAY = 0.9, 0.995
#: The number of wide classes: all jobs; those of a queue with walltimes of the same magnitude.
_WIDE = 2
#: What is expected in the wider class counts as so many jobs of the narrower one. With 1 a few failures of a user
#: mislead: 26 % more weighted queue time on one part of SDSC's log, 12 % on one of CTC's.
_PRIOR = 4.0


@kernel
def predict(job: int, state: SimState) -> int:
    """Return the mean runtime of the last two jobs of the same user, at most the walltime (Tsafrir, Etsion and
    Feitelson, TPDS 2007); the walltime where the user has no ended job yet.
    """
    walltime = state.jobs[job, J.WALLTIME]
    if state.user[job] < 0 or state.history[state.user[job], 0] == 0:
        return walltime
    last, before = state.history[state.user[job], 0], state.history[state.user[job], 1]
    mean = last if before == 0 else (last + before + 1) // 2
    return max(1, min(mean, walltime))


@kernel
def expected_by_classes(job: int, state: SimState) -> int:
    """Return the runtime of a job that ended jobs like it lead to expect (s), at least 1 and at most its walltime.

    It is the walltime times a mean of the ratios of runtime to walltime: in each of the job's classes, from the widest
    to the narrowest, the decayed mean of the ended jobs and of four more that had the ratio expected in the class
    before. In the widest class these took their whole walltime.
    """
    ratio = 1.0
    for level in range(state.classes.shape[1]):
        known = state.classes[job, level]
        ratio = (state.learnt[known, 0] + _PRIOR * ratio) / (state.learnt[known, 1] + _PRIOR)
    walltime = state.jobs[job, J.WALLTIME]
    return max(1, min(int(np.ceil(ratio * walltime)), walltime))


@kernel
def learn(job: int, runtime: int, state: SimState) -> None:
    """Note how long a job ran: for its classes, and as the last runtime of its user."""
    ratio = min(1.0, runtime / state.jobs[job, J.WALLTIME])
    for level in range(state.classes.shape[1]):
        known = state.classes[job, level]
        decay = _SLOW_DECAY if level < _WIDE else _DECAY
        state.learnt[known, 0] = state.learnt[known, 0] * decay + ratio
        state.learnt[known, 1] = state.learnt[known, 1] * decay + 1.0
    if state.user[job] >= 0:
        state.history[state.user[job], 1] = state.history[state.user[job], 0]
        state.history[state.user[job], 0] = runtime


@inner_kernel
def expect(job: int, rule: RuleNumbers, state: SimState) -> None:
    """Write how long a job is expected to run, if the rule expects anything."""
    if rule.predicts != PREDICTS_NOTHING:
        by_classes = rule.expects == EXPECTS_CLASSES
        state.predicted[job] = expected_by_classes(job, state) if by_classes else predict(job, state)


# What a job may wait is measured by the longest wait that EASY would have made so far, and by the time that the machine
# needs for all others of the queue, whichever is longer: on a new site, and in a crowd as there was none before, that
# says more. What a job itself needs is no reason for it to wait. A forecast noted for ever would do harm: a hundred
# jobs that are expected to take days, and fail at once, would let others wait for weeks from then on.
#
# The limit of a job that takes the whole machine is half of a narrow job's. It waits for empty nodes, too, and while
# there are short jobs to fill the holes, that costs least: rules that leave the wide jobs until last have a growing
# backlog where EASY has none.


@inner_kernel
def work_of(job: int, rule: RuleNumbers, state: SimState) -> int:
    """Return for how long the machine needs all its parts for a job of the queue (ms)."""
    is_known = rule.expects == EXPECTS_CLASSES and rule.predicts != PREDICTS_NOTHING
    return int(
        np.ceil(1000.0 * state.share[job] * (state.predicted[job] if is_known else expected_by_classes(job, state)))
    )


@inner_kernel
def note_work(rule: RuleNumbers, state: SimState) -> None:
    """Note for how long the machine needs all its parts for the whole queue (ms)."""
    state.clock[C.WORK] = 0
    for i in range(state.clock[C.QUEUED]):
        state.clock[C.WORK] += work_of(state.queue[i], rule, state)


@inner_kernel
def aged(key: float, job: int, rule: RuleNumbers, now: int, state: SimState) -> float:
    """Return the key of a job by Smith's index that has waited: key^(1 - (wait / limit)^2), and when it has waited for
    the limit one by which it is before all that are not due, in the order of submission. As under EASY all are due.

    The power 2 hardly helps a job in the first third of the limit, and spreads over the others what would else all be
    due at the end of a crowd.
    """
    others = max(0, state.clock[C.WORK] - work_of(job, rule, state))
    times = rule.due_after * (1.0 - 0.5 * state.share[job])
    limit = int(times * max(others, 1000 * state.clock[C.LONGEST]))
    part = 1000.0 * (now - state.release[job]) / max(limit, 1)
    if part >= 1.0 or state.clock[C.AS_EASY]:
        return DUE + state.release[job]
    if key <= 1.0:
        return key
    return np.exp(np.log(key) * (1.0 - part * part))


@inner_kernel
def key_of(rule: RuleNumbers, job: int, now: int, state: SimState) -> float:
    """Return a job's key in the queue; the smallest key is served first.

    Under a rule by Smith's index, or where jobs are due, promises come first, by the last promised second; see `aged`.
    """
    if (rule.order == BY.SMITH or rule.due_after >= 0) and state.promised[job] < FOREVER:
        return _PROMISED + state.promised[job]
    key = index_of(rule, job, now, state)
    return key if rule.due_after < 0 else aged(key, job, rule, now, state)


@inner_kernel
def index_of(rule: RuleNumbers, job: int, now: int, state: SimState) -> float:
    """Return the key of a job as long as no job is due or has a promise.

    F1, WFP3 and UNICEF as in Carastan-Santos and de Camargo (SC'17), negated where the highest score is served first;
    WSPT is Smith's rule (1956). SMITH is the same with the geometric mean of expected runtime and walltime. KEY is a
    key of the rule's own, which is not computed here.
    """
    order = rule.order
    submit, length, cores = state.jobs[job, J.SUBMIT], float(max(state.predicted[job], 1)), state.cores[job]
    wait = float(now - submit)
    if order == BY.WALLTIME:
        return length
    if order == BY.AREA:
        return length * cores
    if order == BY.F1:
        return np.log10(length) * cores + 870.0 * np.log10(max(float(submit), 1.0))
    if order == BY.WSPT:
        return length * state.smith[job]
    if order == BY.KEY:
        return state.smith[job]
    if order == BY.SMITH:
        return np.sqrt(length * state.jobs[job, J.WALLTIME]) * state.smith[job]
    if order == BY.WFP3:
        ratio = wait / length
        return -(ratio * ratio * ratio) * cores
    if order == BY.UNICEF:
        return -wait / (max(np.log2(cores), 1e-15) * length)
    return float(submit)


@allocating_kernel
def sort_queue(rule: RuleNumbers, now: int, state: SimState) -> None:
    """Sort the queue by the keys of this second; equal keys by submission. Expected runtimes are those of now."""
    count = state.clock[C.QUEUED]
    for i in range(count):
        if rule.expects == EXPECTS_CLASSES:
            expect(state.queue[i], rule, state)
    if rule.due_after >= 0:
        note_work(rule, state)
    for i in range(count):
        state.keys[state.queue[i]] = key_of(rule, state.queue[i], now, state)
    sort_by_key(state.queue, count, state.keys, np.empty(count, dtype=np.int64))
