"""A window as data of ``models/window_data.mzn``, and a model's solution as a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cpsched.domain import Instance, Job, PlannedJob, Segment
from cpsched.metrics import objective_value
from cpsched.mzn.data import kept_data, kinds_of, license_data, machine_data, request_data, running_data
from cpsched.mzn.prices import Prices, prices_of
from cpsched.mzn.times import Times
from cpsched.problem import in_segments, placements


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An instance as a model's data; `data` has a value for each name that the model declares."""

    instance: Instance
    #: The jobs that are planned, by their starts in the known plan.
    jobs: tuple[Job, ...]
    data: Mapping[str, Any]
    prices: Prices
    #: The part of the objective's value that is not in the model's cost.
    base: Fraction

    model = "window"

    @classmethod
    def of(cls, instance: Instance, known: Sequence[PlannedJob]) -> Window:
        """Return the window of the waiting jobs that a known plan has starts for.

        `instance`: an instance without unsupported features. `known`: the jobs of any plan. The model is asked for a
        plan that is no worse.
        """
        starts = {planned.id: planned.start - instance.now for planned in known}
        waiting = [job for job in instance.elements() if job.running is None and job.id in starts]
        jobs = tuple(sorted(waiting, key=lambda job: starts[job.id]))
        times = Times.of(instance, jobs)
        prices = prices_of(instance, jobs, times.earliest, times.horizon)
        known_starts = [starts[job.id] for job in jobs]
        last_end = max((start + job.walltime for start, job in zip(known_starts, jobs, strict=True)), default=0)
        data = {
            **machine_data(instance),
            **request_data(instance, jobs),
            **running_data(instance),
            **kept_data(instance),
            **license_data(instance, jobs),
            **times.data,
            "num_prices": len(prices.prices),
            "price_job": [price.job + 1 for price in prices.prices],
            "price_from": [price.from_ for price in prices.prices],
            "price": list(prices.integers),
            "end_price": prices.end_integer,
            "most_cost": prices.integer_cost(known_starts, last_end),
        }
        value = math.nextafter(objective_value(instance, known), -math.inf)  # the value was rounded, possibly up
        base = Fraction(value) - prices.cost(known_starts, last_end)
        return cls(instance=instance, jobs=jobs, data=data, prices=prices, base=base)

    def bound_of(self, cost: int) -> float:
        """Return the bound on the objective's value that a lower bound on the model's cost gives."""
        return max(0.0, math.nextafter(float(self.base + cost / self.prices.scale), -math.inf))

    def planned(self, solution: Any) -> Iterator[PlannedJob]:
        """Yield the jobs of a solution: from their starts, and the number of chunks of each kind on each node."""
        names = self.instance.cluster.node_names
        units: list[list[tuple[str, int, int]]] = [[] for _ in self.jobs]
        for kind, row in zip(kinds_of(self.jobs), solution.count, strict=True):
            units[kind.job] += ((name, kind.number, count) for name, count in zip(names, row, strict=True) if count)
        for job, start, held in zip(self.jobs, solution.start, units, strict=True):
            begin, allocation = self.instance.now + start, placements(job.request.chunks, held)
            yield in_segments(job.id, [Segment(start=begin, end=begin + job.walltime, allocation=allocation)])
