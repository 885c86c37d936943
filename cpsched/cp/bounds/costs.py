"""The cost of delays: the terms of the objective that are sums over jobs, as functions of the start."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.metrics import delay_rates, end_rate, stretched_slowdown

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
    """Return the cost of one job that can start at `start`: the terms other than the makespan, and the prices of being
    overdue or postponed.

    `start`: the earliest start, on the instance's clock. `shortest`: the least seconds that the job runs.
    """
    return _cost(instance, job, start, shortest, delay_rates(instance, job))


def least_cost(instance: Instance, job: Job, start: int) -> JobCost:
    """Return the least cost of one job that can start at `start`, for any duration that a plan may choose: that of
    `job_cost`, and the least cost of its slowdown; of a job with alternatives, by the shortest of them.

    `start`: the earliest start, on the instance's clock.
    """
    if job.alternatives:
        cost = _cost(instance, job, start, job.own_walltime, delay_rates(instance, job))
        return replace(cost, value=cost.value - end_rate(instance, job) * (job.own_walltime - job.shortest))
    stretched = stretched_slowdown(instance, job, start)
    if stretched is None:
        return _cost(instance, job, start, job.walltime, delay_rates(instance, job, job.walltime))
    known = _cost(instance, job, start, job.walltime, delay_rates(instance, job))
    beyond = stretched.value - instance.term_weight(ObjectiveTerm.SLOWDOWN, job)
    rates = defaultdict[int, Fraction](Fraction, known.rates)
    if stretched.rate:
        rates[max(start, stretched.kink)] += stretched.rate
    return JobCost(start, known.value + beyond, tuple(sorted(rates.items())))


def _cost(instance: Instance, job: Job, start: int, shortest: int, delays: Iterable[tuple[int, Fraction]]) -> JobCost:
    """Return the cost of a job from its delays, each a second and the cost of every later second of start."""
    value = instance.term_weight(ObjectiveTerm.COMPLETION, job) * shortest
    value += instance.term_weight(ObjectiveTerm.SLOWDOWN, job)  # 1 at least, also of a step that is held
    rates = defaultdict[int, Fraction](Fraction)
    for since, rate in delays:
        value += rate * max(0, start - since)
        rates[max(start, since)] += rate
    return JobCost(start, value, tuple(sorted((kink, rate) for kink, rate in rates.items() if rate)))


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
