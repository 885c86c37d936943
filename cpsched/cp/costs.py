"""The objective in whole numbers: exact where they stay small, else rounded down, so that bounds stay bounds.

The bounds are imported where they are needed: the worker, which needs none of this, loads them only to prove some.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cpsched.domain import Instance, Job, ObjectiveTerm

__all__ = ["Costs", "Rate", "costs_of"]

#: The largest value of an objective in whole numbers; CP-SAT has 64 bits, and is slow with the last of them.
_MOST = 1 << 50
#: A rate becomes the simplest quotient that differs from it by less than this part of it: a weight of 0.001 in a
#: document is meant as 1/1000, and not as the double next to it.
_TOLERANCE = Fraction(1, 1 << 48)
_MOST_DENOMINATOR = 1 << 24


@dataclass(frozen=True, slots=True)
class Rate:
    """What each second of delay beyond `kink` (s from now) costs, in whole numbers."""

    kink: int
    weight: int


@dataclass(frozen=True, slots=True)
class Costs:
    """The objective, without what each job costs at its earliest start, times `scale`."""

    #: By task.
    rates: tuple[tuple[Rate, ...], ...]
    #: What a second of makespan costs.
    makespan: int
    #: What all tasks cost at their earliest starts, rounded down.
    base: Fraction
    #: Whole numbers for one unit of the objective.
    scale: Fraction
    #: Such a part of a bound in whole numbers is given up, since rates were simplified.
    slack: Fraction

    def value_of(self, starts: Sequence[int], durations: Sequence[int]) -> int:
        """Return what starts (s from now, one for each task) cost in whole numbers."""
        total = sum(
            rate.weight * max(0, start - rate.kink)
            for start, rates in zip(starts, self.rates, strict=True)
            for rate in rates
        )
        return total + self.makespan * self.makespan_of(starts, durations)

    def makespan_of(self, starts: Sequence[int], durations: Sequence[int]) -> int:
        """Return the second by which all planned jobs have ended."""
        return max((s + d for s, d in zip(starts, durations, strict=True)), default=0)

    def bound(self, least: float) -> float:
        """Return the bound on the objective that follows from one in whole numbers; rounded down.

        It speaks of these tasks alone, and of the makespan.
        """
        from cpsched.cp.bounds.costs import round_down

        whole = math.ceil(least - 1e-6)
        return round_down(self.base + Fraction(whole) / self.scale * (1 - self.slack))


def costs_of(instance: Instance, tasks: Sequence[tuple[Job, int, int]], *, horizon: int) -> Costs:
    """Return the objective over some tasks, each with its earliest and latest start.

    Parameters
    ----------
    horizon
        No makespan is larger.
    """
    from cpsched.cp.bounds.costs import job_cost, sum_down

    now = instance.now
    priced = [job_cost(instance, job, now + earliest, job.walltime) for job, earliest, _ in tasks]
    meant_factor = Fraction(instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0))
    meant = [
        [(kink - now, rate) for kink, rate in cost.rates if kink - now < latest]
        for cost, (_, _, latest) in zip(priced, tasks, strict=True)
    ]
    factor, rates = _simplest(meant_factor), [[(kink, _simplest(rate)) for kink, rate in of] for of in meant]
    exact = math.lcm(factor.denominator, *(rate.denominator for of_task in rates for _, rate in of_task))
    largest = factor * horizon + sum(
        (rate * (latest - kink) for of, (_, _, latest) in zip(rates, tasks, strict=True) for kink, rate in of),
        Fraction(0),
    )
    scale = Fraction(exact) if exact * largest <= _MOST else _MOST / largest
    return Costs(
        rates=tuple(tuple(_rates(of_task, scale)) for of_task in rates),
        makespan=math.floor(factor * scale),
        base=sum_down(cost.value for cost in priced),
        scale=scale,
        slack=Fraction(0) if (factor, rates) == (meant_factor, meant) else 2 * _TOLERANCE,
    )


def _rates(rates: Iterable[tuple[int, Fraction]], scale: Fraction) -> Iterable[Rate]:
    return (Rate(kink, weight) for kink, rate in rates if (weight := math.floor(rate * scale)))


def _simplest(rate: Fraction) -> Fraction:
    """Return the quotient that is meant by a rate that was computed from doubles."""
    simple = rate.limit_denominator(_MOST_DENOMINATOR)
    return simple if abs(simple - rate) <= rate * _TOLERANCE else rate
