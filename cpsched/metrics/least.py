"""A lower bound of the value of all plans of some jobs that ignores the machine: each job starts as soon as it may.

The slowdown of an evolving job divides its wait by its duration. Where a plan holds its steps for longer, the slowdown
can be lower: `stretched_slowdown` says how much. Every second for which a plan stretches a malleable job costs as much
as one of waiting, or nothing: its least cost is that of the full share.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from cpsched.domain import Instance, Job, ObjectiveTerm, PlannedJob, duration_range
from cpsched.metrics.plans import SLOWDOWN_TAU, jobs_by_id, least_running_cost, suffered_exactly


@dataclass(frozen=True, slots=True)
class StretchedSlowdown:
    """The least that an evolving job's slowdown costs where a plan chooses its duration: for each start s from `start`
    on ``value + rate * (max(s, kink) - max(start, kink))``.
    """

    #: At `start`, with what the longer duration costs in other terms (completion, waste).
    value: Fraction
    #: Second of the start (on the instance's clock) from which on a later start costs more, and how much each second.
    kink: int
    rate: Fraction
    #: The cost of the slowdown at `start` and the least duration, less `value`.
    saved: Fraction


def least_value(instance: Instance, jobs: Iterable[PlannedJob]) -> float:
    """Return a lower bound of the value of every plan of the same jobs.

    Each waiting job starts at ``max(now, submit)``; a malleable one has all its cores, one with alternatives takes the
    shortest of them, and an evolving one takes as long as is cheapest (`stretched_slowdown`). Each running one whose
    share a plan may change has all its cores from now on. Where no step can be held, nothing that runs can change and
    no job has a shorter alternative, that is `suffered`.

    Raises `ValueError` if a job is not in the instance.
    """
    listed = tuple(jobs)
    entries = jobs_by_id(instance)
    value = suffered_exactly(instance, listed, shortest=True) + least_running_cost(instance)
    for planned in listed:
        job = entries[planned.id]
        if job.running is None:
            stretched = stretched_slowdown(instance, job, max(instance.now, job.submit))
            value -= stretched.saved if stretched is not None else 0
    return float(value)


def stretched_slowdown(instance: Instance, job: Job, start: int) -> StretchedSlowdown | None:
    """Return a lower bound of a waiting job's cost of slowdown if it starts at `start` or later. None where the least
    cost follows from the start, since the job does not evolve or its steps cannot be held, or where slowdown is not in
    the objective.

    *Proof.* After a wait of w seconds a duration of d seconds costs W max(1, (w + d) / max(10, d)) in slowdown, with
    the weight W of the term for the job; beyond the least duration m, a second costs c = the weight of completion, plus
    that of waste times the cores of the narrowest step that can be held. Up to d = 10 all of this does not fall with d,
    so that only m and durations of 10 s or more matter. There it is W + W w / d + c (d - m), convex in d: over whole
    seconds the least is beside the square root of W w / c, or at the end M of the range (at M if c = 0; with no M it
    comes as near to W as one likes). M is the most that `duration_range` says, and no more than the job's deadline
    leaves from `start` on.

    Each of these functions of the start (one for each d) is flat until ``submit + max(10, m) - m`` at the latest, the
    `kink`, and then rises by W / max(10, d) a second, which is W / max(10, M) or more. So each, and therefore their
    least, gains from `start` to any later start s at least ``rate * (max(s, kink) - max(start, kink))``.
    """
    weight = instance.term_weight(ObjectiveTerm.SLOWDOWN, job)
    if not weight or not job.is_evolving:
        return None
    least, most = duration_range(job)
    if job.deadline is not None:
        left = max(least, job.deadline - start)
        most = left if most is None else min(most, left)
    if most == least:
        return None
    narrowest = min(step.request.totals.get("cores", 0) for step in job.steps[:-1])
    second = instance.term_weight(ObjectiveTerm.COMPLETION, job)
    second += instance.term_weight(ObjectiveTerm.WASTE, job) * narrowest
    waited = max(0, start - job.submit)
    shortest = max(SLOWDOWN_TAU, least)
    usual = weight * max(Fraction(1), Fraction(waited + least, shortest))
    cheapest = usual
    for duration in _candidates(weight * waited, second, shortest, most):
        cheapest = min(cheapest, weight + weight * waited / duration + second * (duration - least))
    if most is None and not second:
        cheapest = weight
    return StretchedSlowdown(
        value=cheapest,
        kink=job.submit + shortest - least,
        rate=weight / max(SLOWDOWN_TAU, most) if most is not None else Fraction(0),
        saved=usual - cheapest,
    )


def _candidates(waited: Fraction, second: Fraction, shortest: int, most: int | None) -> set[int]:
    """Return the durations (s) from `shortest` to `most` of which one minimizes ``waited / d + second * d``."""
    if most is not None and most < shortest:
        return set()
    found = {shortest} if most is None else {shortest, most}
    if second:
        root = isqrt(int(waited / second))
        found |= {d for d in (root, root + 1) if shortest < d and (most is None or d < most)}
    return found
