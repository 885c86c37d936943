"""Kernels of the queue's order: keys of jobs, and their expected runtimes."""

from __future__ import annotations

import numpy as np

from cpsched.lab.sim.arrays import (
    BY_AREA,
    BY_F1,
    BY_KEY,
    BY_SMITH,
    BY_UNICEF,
    BY_WALLTIME,
    BY_WFP3,
    BY_WSPT,
    C_OLD,
    C_QUEUED,
    EXPECTS_CLASSES,
    J_SUBMIT,
    J_WALLTIME,
    PREDICTS_NOTHING,
    sort_by_key,
)
from cpsched.rusv import FOREVER, allocating_kernel, inner_kernel, kernel

#: The parts of the keys by which jobs with promises, and an old job, are before all others.
_PROMISED, _OLD = -4e15, -2e15
#: What a runtime counts at the next one of its class; in the last, narrow classes, and in the first, wide ones.
_DECAY, _SLOW_DECAY = 0.9, 0.995
#: The number of wide classes: all jobs; those of a queue with walltimes of the same magnitude.
_WIDE = 2
#: What is expected in the wider class counts as so many jobs of the narrower one. With 1 a few failures of a user
#: mislead: 26 % more weighted queue time on one part of SDSC's log, 12 % on one of CTC's.
_PRIOR = 4.0
#: The share of the machine that old jobs take because they come first. With all of it a long queue becomes first come,
#: first served: half as much weighted queue time again on one part of KTH's log, with 5 % as without old jobs.
_OLD_SHARE = 0.05

# --- expected runtimes -----------------------------------------------------------------------------------------------


@kernel
def predict(job, s):
    """Return the mean runtime of the last two jobs of the same user, at most the walltime (Tsafrir, Etsion and
    Feitelson, TPDS 2007); the walltime where the user has no ended job yet.
    """
    walltime = s.jobs[job, J_WALLTIME]
    if s.user[job] < 0 or s.history[s.user[job], 0] == 0:
        return walltime
    last, before = s.history[s.user[job], 0], s.history[s.user[job], 1]
    mean = last if before == 0 else (last + before + 1) // 2
    return max(1, min(mean, walltime))


@kernel
def expected_by_classes(job, s):
    """Return the runtime of a job that ended jobs like it lead to expect (s), at least 1 and at most its walltime.

    It is the walltime times a mean of the ratios of runtime to walltime: in each of the job's classes, from the widest
    to the narrowest, the decayed mean of the ended jobs and of four more that had the ratio expected in the class
    before. In the widest class these took their whole walltime.
    """
    ratio = 1.0
    for level in range(s.classes.shape[1]):
        known = s.classes[job, level]
        ratio = (s.learnt[known, 0] + _PRIOR * ratio) / (s.learnt[known, 1] + _PRIOR)
    walltime = s.jobs[job, J_WALLTIME]
    return max(1, min(int(np.ceil(ratio * walltime)), walltime))


@kernel
def learn(job, runtime, s):
    """Note how long a job ran: for its classes, and as the last runtime of its user."""
    ratio = min(1.0, runtime / s.jobs[job, J_WALLTIME])
    for level in range(s.classes.shape[1]):
        known = s.classes[job, level]
        decay = _SLOW_DECAY if level < _WIDE else _DECAY
        s.learnt[known, 0] = s.learnt[known, 0] * decay + ratio
        s.learnt[known, 1] = s.learnt[known, 1] * decay + 1.0
    if s.user[job] >= 0:
        s.history[s.user[job], 1] = s.history[s.user[job], 0]
        s.history[s.user[job], 0] = runtime


@inner_kernel
def expect(job, rule, s):
    """Write how long a job is expected to run, if the rule expects anything."""
    if rule.predicts != PREDICTS_NOTHING:
        by_classes = rule.expects == EXPECTS_CLASSES
        s.predicted[job] = expected_by_classes(job, s) if by_classes else predict(job, s)


# --- the order of the queue ------------------------------------------------------------------------------------------


@inner_kernel
def has_promise(job, s):
    """Tell whether a job of a queue by Smith's index is before the old one: it has a promise."""
    return s.keys[job] < _PROMISED / 2 + _OLD / 2


@inner_kernel
def is_old(job, s):
    """Tell whether a job of a queue by Smith's index comes first because it is old."""
    return not has_promise(job, s) and s.keys[job] < _OLD / 2


@inner_kernel
def rest_after(job, now, s):
    """Note that an old job starts now: the next one comes first only when this one's area, if it takes its walltime, is
    no more than the share of the machine that old jobs have from now to then.
    """
    s.clock[C_OLD] = now + int(s.share[job] * s.jobs[job, J_WALLTIME] / _OLD_SHARE)


@inner_kernel
def key_of(rule, job, now, s):
    """Return a job's key in the queue; the smallest key is served first.

    F1, WFP3 and UNICEF as in Carastan-Santos and de Camargo (SC'17), negated where the highest score is served first;
    WSPT is Smith's rule (1956). SMITH is the same with the geometric mean of expected runtime and walltime, after jobs
    with promises, by the last second that was promised; for an old job see `prefer_oldest`. KEY is a key of the rule's
    own, which is not computed here.
    """
    order = rule.order
    submit, length, cores = s.jobs[job, J_SUBMIT], float(max(s.predicted[job], 1)), s.cores[job]
    wait = float(now - submit)
    if order == BY_WALLTIME:
        return length
    if order == BY_AREA:
        return length * cores
    if order == BY_F1:
        return np.log10(length) * cores + 870.0 * np.log10(max(float(submit), 1.0))
    if order == BY_WSPT:
        return length * s.smith[job]
    if order == BY_KEY:
        return s.smith[job]
    if order == BY_SMITH:
        if s.promised[job] < FOREVER:
            return _PROMISED + s.promised[job]
        return np.sqrt(length * s.jobs[job, J_WALLTIME]) * s.smith[job]
    if order == BY_WFP3:
        ratio = wait / length
        return -(ratio * ratio * ratio) * cores
    if order == BY_UNICEF:
        return -wait / (max(np.log2(cores), 1e-15) * length)
    return float(submit)


@inner_kernel
def is_submitted_before(job, other, s):
    """Tell whether a job was submitted before another one; at the same second, whether its number is lower."""
    submit, other_submit = s.jobs[job, J_SUBMIT], s.jobs[other, J_SUBMIT]
    return submit < other_submit or (submit == other_submit and job < other)


@inner_kernel
def prefer_oldest(rule, now, s):
    """Let the job of the queue that was submitted first come before all without promises, if it has waited for as long
    as the rule is patient, and old jobs have had no more than their share of the machine.
    """
    oldest = -1
    for i in range(s.clock[C_QUEUED]):
        job = s.queue[i]
        if s.promised[job] == FOREVER and (oldest < 0 or is_submitted_before(job, oldest, s)):
            oldest = job
    if oldest >= 0 and s.jobs[oldest, J_SUBMIT] + rule.patience <= now and s.clock[C_OLD] <= now:
        s.keys[oldest] = _OLD + s.jobs[oldest, J_SUBMIT]


@allocating_kernel
def sort_queue(rule, now, s):
    """Sort the queue by the keys of this second; equal keys by submission. Expected runtimes are those of now."""
    count = s.clock[C_QUEUED]
    for i in range(count):
        if rule.expects == EXPECTS_CLASSES:
            expect(s.queue[i], rule, s)
        s.keys[s.queue[i]] = key_of(rule, s.queue[i], now, s)
    if rule.order == BY_SMITH and rule.patience >= 0:
        prefer_oldest(rule, now, s)
    sort_by_key(s.queue, count, s.keys, np.empty(count, dtype=np.int64))
