"""The data of ``models/changing.mzn``: stages, the kinds of chunks in each stage, and prices."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from cpsched.domain import Chunk, Instance, Job, Placement
from cpsched.mzn.data import (
    kept_data,
    license_data,
    machine_data,
    place_data,
    resource_numbers,
    running_data,
)
from cpsched.mzn.prices import Price, scale_of
from cpsched.mzn.times import Times
from cpsched.problem import placements

__all__ = ["Costs", "Staged", "allocations_of", "changing_data", "times_data"]


class Staged(NamedTuple):
    """Chunks of one stage (the stages of all jobs are numbered from 0)."""

    job: int
    stage: int
    #: Their kind in the job's request of that stage.
    number: int
    chunk: Chunk
    #: The number of them that each empty node holds.
    most: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of a plan as rates per second, and how they become integers (rounded down)."""

    #: By job: the rate of its start, and of each second that it runs longer than its shortest duration.
    starts: Sequence[Price]
    runs: Sequence[Fraction]
    #: By stage: the rate of each second that it is held.
    holds: Sequence[Fraction]
    end: Fraction
    horizon: int

    def integer(self, rate: Fraction) -> int:
        """Return a rate as an integer price."""
        return math.floor(rate * self._scale)

    @property
    def _scale(self) -> Fraction:
        rates = [self.end, *self.runs, *self.holds, *(price.rate for price in self.starts)]
        return scale_of(rates, self.horizon)

    def price_of(self, starts: Sequence[int], runs: Sequence[int], last_end: int) -> int:
        """Return the total cost of starts (s from now), seconds of longer runs, and the makespan."""
        late = sum(self.integer(one.rate) * max(0, starts[one.job] - one.from_) for one in self.starts)
        longer = sum(self.integer(rate) * seconds for rate, seconds in zip(self.runs, runs, strict=True))
        return late + longer + self.integer(self.end) * last_end

    @property
    def data(self) -> dict[str, Any]:
        """The model's data for the costs that both variants have."""
        return {
            "num_prices": len(self.starts),
            "price_job": [price.job + 1 for price in self.starts],
            "price_from": [price.from_ for price in self.starts],
            "price": [self.integer(price.rate) for price in self.starts],
            "run_price": [self.integer(rate) for rate in self.runs],
            "end_price": self.integer(self.end),
        }


def changing_data(
    instance: Instance,
    jobs: Sequence[Job],
    stages: Sequence[int],
    kinds: Sequence[Staged],
    changed: Collection[str] = (),
) -> dict[str, Any]:
    """Return the data, except times and prices.

    Parameters
    ----------
    stages
        The job of each stage.
    changed
        The running jobs among `jobs`.
    """
    resources = resource_numbers(instance)
    return {
        **machine_data(instance),
        **place_data(jobs),
        **running_data(instance, changed),
        **kept_data(instance, changed),
        **license_data(instance, jobs, changed),
        "num_stages": len(stages),
        "stage_job": [job + 1 for job in stages],
        "num_kinds": len(kinds),
        "asked_by": [kind.job + 1 for kind in kinds],
        "stage_of": [kind.stage + 1 for kind in kinds],
        "chunks": [kind.chunk.count for kind in kinds],
        "size": [[kind.chunk.resources.get(name, 0) for name in resources] for kind in kinds],
        "most": [list(kind.most) for kind in kinds],
    }


def times_data(instance: Instance, jobs: Sequence[Job], times: Times) -> dict[str, Any]:
    """Return the limits of starts and ends of waiting jobs; jobs that are not in `times` run, and begin now."""
    others = [0] * (len(jobs) - len(times.earliest))
    ends = []
    for job in jobs:
        stated = instance.now if job.running is None else job.running.segments[-1].end
        ends.append(times.horizon if job.deadline is None else max(job.deadline, stated) - instance.now)
    return {
        **times.data,
        "earliest": [*times.earliest, *others],
        "latest": [*times.latest, *others],
        "end_by": [min(end, times.horizon) for end in ends],
    }


def allocations_of(
    instance: Instance, kinds: Sequence[Staged], counts: Sequence[Sequence[int]]
) -> Mapping[int, tuple[Placement, ...]]:
    """Return the allocation of each stage, from the number of chunks of each kind on each node."""
    units = defaultdict[int, list[tuple[str, int, int]]](list)
    chunks = defaultdict[int, dict[int, Chunk]](dict)
    names = instance.cluster.node_names
    for kind, row in zip(kinds, counts, strict=True):
        held = [(node, kind.number, count) for node, count in zip(names, row, strict=True) if count]
        if held:
            units[kind.stage] += held
            chunks[kind.stage][kind.number] = kind.chunk
    return {stage: placements(chunks[stage], of_stage) for stage, of_stage in units.items()}
