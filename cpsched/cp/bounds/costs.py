"""What a second of delay costs: the terms of the objective that are sums over jobs, as functions of the start."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from cpsched.domain import Instance, Job, ObjectiveTerm

__all__ = ["JobCost", "job_cost", "round_down", "sum_down"]

#: A job's runtime counts as at least this many seconds in its slowdown (``docs/formats.md``: bounded, tau 10 s).
_SLOWDOWN_TAU = 10
#: Binary digits behind the point that are kept of a sum of many different quotients.
_FRACTION_BITS = 128


@dataclass(frozen=True, slots=True)
class JobCost:
    """A convex, nondecreasing, piecewise linear function of the start s, for s >= `start`.

    ``value + sum over (kink, rate) of rate * (max(s, kink) - max(start, kink))``
    """

    start: int
    #: The cost of the earliest start.
    value: Fraction
    #: (second from which on it counts, cost of a second), by ascending second.
    rates: tuple[tuple[int, Fraction], ...]


def job_cost(instance: Instance, job: Job, start: int, shortest: int) -> JobCost:
    """Return what one job that starts at `start` at the earliest costs: the terms other than the makespan, and what is
    added where it is overdue or postponed.

    Parameters
    ----------
    start
        On the instance's clock.
    shortest
        Seconds that the job runs at least, on whatever share of its cores.
    """
    wait = start - job.submit
    expected = instance.expected_wait(job)
    value, rates = Fraction(0), dict[int, Fraction]()
    for term, factor in instance.objective.weights.items():
        weight = Fraction(factor)
        base, kink, rate = Fraction(0), start, Fraction(1)
        if term is ObjectiveTerm.WEIGHTED_WAIT:
            base, rate = Fraction(wait, expected), Fraction(1, expected)
        elif term is ObjectiveTerm.WAIT:
            base = Fraction(wait)
        elif term is ObjectiveTerm.COMPLETION:
            base = Fraction(wait + shortest)
        elif term is ObjectiveTerm.SLOWDOWN:
            base, kink, rate = _slowdown(job, start, shortest)
        elif term is ObjectiveTerm.TARDINESS:
            base, kink = Fraction(max(0, wait - expected)), max(start, job.submit + expected)
        else:
            continue
        value += weight * base
        rates[kink] = rates.get(kink, Fraction(0)) + weight * rate
    for price, since in _surcharges(instance, job):
        rate = Fraction(price) / expected
        value += rate * max(0, start - since)
        rates[max(start, since)] = rates.get(max(start, since), Fraction(0)) + rate
    return JobCost(start, value, tuple(sorted((kink, rate) for kink, rate in rates.items() if rate)))


def _surcharges(instance: Instance, job: Job) -> Iterator[tuple[float, int]]:
    """Yield (price of an expected wait of delay, second from which on it is delay)."""
    due = instance.due(job)
    if due is not None and job.queue is not None and (max_wait := instance.queues[job.queue].max_wait) is not None:
        yield max_wait.price, due
    if job.told is not None:
        yield job.told.price, job.told.start


def _slowdown(job: Job, start: int, shortest: int) -> tuple[Fraction, int, Fraction]:
    """Return (cost of the earliest start, second from which on it grows, growth) of the bounded slowdown.

    A job that can be stretched has its slowdown relative to the stretched runtime: it costs 1 at least.
    """
    if job.is_evolving or job.malleability is not None:
        return Fraction(1), start, Fraction(0)
    runtime = max(_SLOWDOWN_TAU, shortest)
    value = Fraction(max(runtime, start - job.submit + shortest), runtime)
    return value, max(start, job.submit + runtime - shortest), Fraction(1, runtime)


def sum_down(values: Iterable[Fraction]) -> Fraction:
    """Add up; exactly, as long as the denominators have a small common multiple, else slightly less.

    Over thousands of different denominators the exact sum would have thousands of digits: each denominator's part is
    then cut off at `_FRACTION_BITS` binary digits.
    """
    numerators: defaultdict[int, int] = defaultdict(int)
    for value in values:
        numerators[value.denominator] += value.numerator
    common = 1
    for denominator in numerators:
        common = math.lcm(common, denominator)
        if common.bit_length() > _FRACTION_BITS:
            common = 1 << _FRACTION_BITS
            break
    return Fraction(sum(numerator * common // denominator for denominator, numerator in numerators.items()), common)


def round_down(value: Fraction) -> float:
    """Return the largest float that is not above `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
