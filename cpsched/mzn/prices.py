"""The objective in integers: the models' prices of a second of delay."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.metrics import delay_rates

#: The largest number of a model: solvers have integers of 32 bits (Gecode), and sums must fit too.
MOST_INTEGER = 1 << 30


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a job (by its index) for each second that it starts after a given second (s from now)."""

    job: int
    from_: int
    rate: Fraction


@dataclass(frozen=True)
class Prices:
    """The part of the objective that depends on the starts: prices of seconds, of jobs and of the last end."""

    prices: tuple[Price, ...]
    end_rate: Fraction
    #: The integer price of a rate of 1. Rates are rounded down, so that a bound on their sum is one on the objective.
    scale: Fraction

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """The integer price of each of `prices`."""
        return tuple(math.floor(price.rate * self.scale) for price in self.prices)

    @cached_property
    def end_integer(self) -> int:
        """The integer price of a second until the last end."""
        return math.floor(self.end_rate * self.scale)

    @property
    def is_exact(self) -> bool:
        """Whether rounding has changed nothing."""
        rates = sum((price.rate for price in self.prices), self.end_rate)
        return rates * self.scale == sum(self.integers, self.end_integer)

    def cost(self, starts: Sequence[int], last_end: int) -> Fraction:
        """Return the cost of a plan (times in seconds from now)."""
        late = (price.rate * max(0, starts[price.job] - price.from_) for price in self.prices)
        return sum(late, self.end_rate * last_end)

    def integer_cost(self, starts: Sequence[int], last_end: int) -> int:
        """Return the same in integer prices, as the models compute it."""
        delays = (max(0, starts[price.job] - price.from_) for price in self.prices)
        late = (price * delay for price, delay in zip(self.integers, delays, strict=True))
        return sum(late, self.end_integer * last_end)


def prices_of(instance: Instance, jobs: Sequence[Job], earliest: Sequence[int], horizon: int) -> Prices:
    """Return the prices of some rigid jobs, in the smallest integers that are exact or else the largest that fit.

    `earliest`: the first start of each job, in seconds from now: no plan can change its cost until then. `horizon`: the
    latest end of the last job, in seconds from now.
    """
    prices = start_prices(instance, jobs, earliest, [job.walltime for job in jobs])
    end_rate = Fraction(instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0))
    return Prices(prices, end_rate, scale_of([end_rate, *(price.rate for price in prices)], horizon))


def start_prices(
    instance: Instance, jobs: Sequence[Job], earliest: Sequence[int], runtimes: Sequence[int | None]
) -> tuple[Price, ...]:
    """Return the rates of jobs for the seconds after their earliest starts; without slowdown if no runtime is known."""
    rates: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for place, (job, first, runtime) in enumerate(zip(jobs, earliest, runtimes, strict=True)):
        for kink, rate in delay_rates(instance, job, runtime):
            rates[place, max(first, kink - instance.now)] += rate
    return tuple(Price(place, from_, rate) for (place, from_), rate in rates.items() if rate)


def scale_of(rates: Iterable[Fraction], seconds: int) -> Fraction:
    """Return the integer price of a rate of 1, if each rate may be paid for this many seconds."""
    paid = [rate for rate in rates if rate]
    if not paid:
        return Fraction(1)
    exact = Fraction(math.lcm(*(rate.denominator for rate in paid)), math.gcd(*(rate.numerator for rate in paid)))
    return min(exact, MOST_INTEGER / (max(1, seconds) * sum(paid, Fraction(0))))
