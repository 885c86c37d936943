"""`lower_bound`: what no plan can undercut, and how that is known."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from cpsched.cp.bounds.ascent import climb, smith
from cpsched.cp.bounds.costs import least_cost, round_down, sum_down
from cpsched.cp.bounds.surrogates import Ints, Profile
from cpsched.cp.bounds.tasks import Relaxation, earliest_starts, relax, with_least_running
from cpsched.cp.bounds.together import longest_together
from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.engine import Budget
from cpsched.metrics import least_running_cost
from cpsched.problem import opened

#: Approximate seconds to build a relaxation: a constant, and a part per job; with less time it is not begun.
_SETUP = 0.1
_SETUP_PER_JOB = 0.00015
#: Vectors of sizes for a second of budget.
_VECTORS_PER_SECOND = 30
#: The time of an evaluation with proof, as a multiple of one without.
_PROOF = 8
#: The part of a budget that is left when time is short.
_LATE = 0.3
#: The part of the time for the sets of jobs that fit together, if the last end alone counts, and if starts do too.
_SETS, _SETS_BESIDE = 0.8, 0.3
#: Prices prove a little less than they are worth: so much of a plan's value is all of it.
_ENOUGH = 1 - 1e-9
#: Areas and costs beyond this do not fit into whole numbers of 64 bits.
_MOST = 2.0**62


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven lower bound on the objective."""

    #: In the objective's unit, with what is already suffered; rounded down.
    value: float
    #: The method that proves it, in words.
    how: str


def lower_bound(
    instance: Instance,
    jobs: Collection[str],
    *,
    seconds: float,
    seed: int = 0,
    evaluations: int | None = None,
    enough: float = inf,
    clock: Callable[[], float] = time.monotonic,
) -> Bound | None:
    """Return a value that no plan of these jobs can undercut, or None for an objective that pays for delay.

    The largest of: each job at its own earliest start; Smith's rule on one aggregated resource; a Lagrangian on many.
    The last end has bounds of its own: by the area of the jobs, and by the sets of jobs that fit together.
    The constraints that the relaxation leaves out (limits, free pools, reservations, dependencies but in earliest
    starts, amounts that nodes keep free, the steps of an evolving job after its first, the cores of malleable jobs) can
    only make plans more expensive. Running jobs whose share a plan may change count with the least that they can hold,
    and with the most that they can gain.
    The slowdown of a waiting job counts as if it took as long as is cheapest, where a plan chooses that. A job with
    alternatives counts by its earliest start and its shortest duration alone.

    Raises `ValueError` if a job is not a waiting job of the instance.

    `jobs`: ids of waiting jobs, array elements by their own; a plan that the bound is compared with plans all of them.
    `seconds`: the time limit; the bound by the jobs' own earliest starts is always computed. `seed`: chooses the begin
    of the search for prices. `evaluations`: stop after this many evaluations of the dual function, for answers that do
    not depend on the clock. `enough`: the value of a plan, which no bound exceeds: it stops where that is met. `clock`:
    counts the seconds.
    """
    if any(weight < 0 for weight in instance.objective.weights.values()):
        return None
    budget = Budget(max(0.0, seconds), clock)
    # a job without alternatives stays as it is: what it consumes is no capacity
    chosen = [whole if (whole := opened(job)).alternatives else job for job in waiting_jobs(instance, jobs)]
    eased = with_least_running(instance)
    starts = earliest_starts(eased, chosen, budget)
    base = sum_down(least_cost(instance, job, start).value for job, start in zip(chosen, starts, strict=True))
    ends = [start + job.shortest - instance.now for job, start in zip(chosen, starts, strict=True)]
    running = least_running_cost(instance)
    factor = Fraction(instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0))
    makespan, gain, how = max(ends, default=0), Fraction(0), "each job at its own earliest start"
    relaxed = [place for place, job in enumerate(chosen) if job.malleability is None and not job.alternatives]
    if relaxed and (budget.remaining > least_seconds(len(relaxed)) or evaluations is not None):
        relaxation = relax(
            eased,
            [chosen[place] for place in relaxed],
            [starts[place] for place in relaxed],
            most_vectors=max(16, min(300, int(_VECTORS_PER_SECOND * seconds))),
        )
        if fits(relaxation):
            if factor:
                makespan, how = _last_end(relaxation, makespan, budget, evaluations, how)
            if any(map(any, relaxation.tasks.rates)):
                rest = float(base + factor * makespan + running)
                gain, how = _gain(relaxation, budget, seed, evaluations, enough - rest, how)
    return Bound(round_down(base + gain + factor * makespan + running), how)


def least_seconds(jobs: int) -> float:
    """Return the approximate seconds of a core in which more is proven of so many jobs than their own starts say."""
    return _SETUP + _SETUP_PER_JOB * jobs


def waiting_jobs(instance: Instance, jobs: Collection[str]) -> list[Job]:
    """Return the chosen jobs in document order."""
    wanted = set(jobs)
    chosen = [job for job in instance.elements() if job.id in wanted and job.running is None]
    if len(chosen) != len(wanted):
        missing = sorted(wanted - {job.id for job in chosen})
        raise ValueError(f"not among the waiting jobs of {instance.name!r}: {', '.join(missing[:5])}")
    return chosen


def fits(relaxation: Relaxation) -> bool:
    """Return whether whole numbers of 64 bits hold all areas."""
    tasks = relaxation.tasks
    longest = float(tasks.earliest.max() + (tasks.durations * tasks.counts.astype(np.float64)).sum())
    largest = max((float(profile.amounts[-1]) for profile in relaxation.profiles), default=0.0)
    return 2.0 * longest * max(largest, float(tasks.usage.max(initial=0)) * float(tasks.counts.sum())) < _MOST


def _last_end(
    relaxation: Relaxation, makespan: int, budget: Budget, evaluations: int | None, how: str
) -> tuple[int, str]:
    """Return a second before which not all jobs can have ended, as `makespan` is one, and the method."""
    has_costs = any(map(any, relaxation.tasks.rates))
    until = budget.elapsed + (_SETS_BESIDE if has_costs else _SETS) * budget.remaining

    def is_over(rounds: int) -> bool:
        return budget.elapsed >= until if evaluations is None else rounds >= evaluations

    by_area = shortest_makespan(relaxation)
    by_sets = longest_together(relaxation, max(makespan, by_area), is_over=is_over)
    if by_sets > max(makespan, by_area):
        return by_sets, "sets of jobs that fit together"
    return (by_area, "the area of the jobs") if by_area > makespan else (makespan, how)


def _gain(
    relaxation: Relaxation, budget: Budget, seed: int, evaluations: int | None, enough: float, how: str
) -> tuple[Fraction, str]:
    """Return the bound that prices prove beyond the earliest starts, and the method."""
    clock = _Clock(budget, evaluations)
    begin = smith(relaxation, seed, is_late=clock.is_late)
    if begin is None:
        return Fraction(0), how
    best, done = climb(begin, relaxation, seed, enough=_ENOUGH * enough, is_over=clock.is_over)
    gain = best.dual.proven(best.prices)
    if gain <= 0:
        return Fraction(0), how
    if not done:
        return gain, "Smith's rule on an aggregated resource"
    shape = f"{len(best.dual.profiles)} aggregated resources, {len(best.dual.widths)} intervals, {done} evaluations"
    return gain, f"Lagrangian ({shape})"


class _Clock:
    """Decides when to stop, with time left for the proof; mutable."""

    def __init__(self, budget: Budget, evaluations: int | None) -> None:
        self._budget = budget
        self._evaluations = evaluations
        self._last = 0, budget.elapsed
        self._slowest = 0.0

    def is_late(self) -> bool:
        """Return whether hardly any of the budget is left; never if evaluations are counted instead."""
        return self._evaluations is None and self._budget.remaining < _LATE * self._budget.seconds

    def is_over(self, evaluations: int) -> bool:
        """Return whether the limit is reached, or the budget will be before the proof is done."""
        if self._evaluations is not None:
            return evaluations >= self._evaluations
        before, now = self._last, (evaluations, self._budget.elapsed)
        if evaluations == before[0] + 1:
            self._slowest = max(now[1] - before[1], 0.9 * self._slowest)
        self._last = now
        return self._budget.remaining < 0.05 + 0.02 * self._budget.seconds + _PROOF * self._slowest


#: Earliest starts from which on the area of what is left is looked at.
_MOST_HEADS = 32


def shortest_makespan(relaxation: Relaxation) -> int:
    """Return seconds from now before which not all tasks can have ended, by area.

    What starts at `head` or later has its whole area after it, for each of some heads: the capacity from there on must
    hold it.
    """
    tasks = relaxation.tasks
    heads = np.unique(tasks.earliest)
    heads = heads[:: max(1, -(-len(heads) // _MOST_HEADS))]
    longest = 0
    for row, profile in enumerate(relaxation.profiles):
        areas = tasks.usage[tasks.kinds, row] * tasks.durations * tasks.counts
        for head in heads:
            area = int(areas[tasks.earliest >= head].sum())
            if area:
                longest = max(longest, _first_second(profile, area + int(profile.area(np.array([head]))[0])))
    return longest


def _first_second(profile: Profile, area: int) -> int:
    """Return the first whole second until which the capacity times time is at least `area`; 0 if it never is."""
    reached: Ints = profile.area(profile.times)
    piece = int(np.searchsorted(reached, area, side="left")) - 1
    amount = int(profile.amounts[piece])
    if not amount:
        return 0
    return int(profile.times[piece]) + -(-(area - int(reached[piece])) // amount)
