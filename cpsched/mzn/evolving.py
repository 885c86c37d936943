"""A window with evolving jobs as data of ``models/evolving.mzn``, and its solution as a plan (EVO-17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cpsched.domain import Arrangement, Instance, Job, ObjectiveTerm, PlannedJob, Segment, chunk_layers
from cpsched.mzn.changing import Costs, Staged, allocations_of, changing_data, times_data
from cpsched.mzn.data import most_on_nodes
from cpsched.mzn.prices import start_prices
from cpsched.mzn.times import Times
from cpsched.planner import end_price
from cpsched.problem import awaited_ends, in_segments

__all__ = ["EvolvingWindow", "can_be_held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingWindow:
    """An instance as the model's data; `data` has a value for each name that the model declares."""

    instance: Instance
    #: The jobs that are planned, by their starts in the known plan.
    jobs: tuple[Job, ...]
    kinds: tuple[Staged, ...]
    data: Mapping[str, Any]

    model = "evolving"

    @classmethod
    def of(cls, instance: Instance, known: Sequence[PlannedJob]) -> EvolvingWindow:
        """Return the window of the waiting jobs that a known plan has starts for."""
        plans = {planned.id: planned for planned in known}
        waiting = [job for job in instance.elements() if job.running is None and job.id in plans]
        jobs = tuple(sorted(waiting, key=lambda job: plans[job.id].start))
        awaited = awaited_ends(instance)
        longest = [_longest_of(job, is_awaited=job.id in awaited) for job in jobs]
        held = [
            sum(most - step.walltime for most, step in zip(of_job, job.steps, strict=True) if most is not None)
            for of_job, job in zip(longest, jobs, strict=True)
        ]
        last_end = max((plans[job.id].end - instance.now for job in jobs), default=0)
        times = Times.of(instance, jobs, longer=max(sum(held), last_end))
        stages = [place for place, job in enumerate(jobs) for _ in job.steps]
        kinds, were = _kinds(instance, jobs)
        costs = _costs(instance, jobs, times, awaited)
        lengths = [one.end - one.start for job in jobs for one in plans[job.id].segments]
        walltimes = [step.walltime for job in jobs for step in job.steps]
        wasted = zip(costs.holds, lengths, walltimes, strict=True)
        most_cost = costs.price_of(
            [plans[job.id].start - instance.now for job in jobs],
            [plans[job.id].end - plans[job.id].start - job.walltime for job in jobs],
            last_end,
        ) + sum(costs.integer(rate) * (length - walltime) for rate, length, walltime in wasted)
        data = {
            **changing_data(instance, jobs, stages, kinds),
            **times_data(instance, jobs, times),
            **costs.data,
            "walltime": [job.walltime for job in jobs],
            "step_walltime": walltimes,
            "longest": [times.horizon if most is None else most for of_job in longest for most in of_job],
            "hold_price": [costs.integer(rate) for rate in costs.holds],
            "were": [0 if before is None else before + 1 for before in were],
            "most_cost": most_cost,
        }
        return cls(instance=instance, jobs=jobs, kinds=tuple(kinds), data=data)

    def planned(self, solution: Any) -> Iterator[PlannedJob]:
        """Yield the jobs of a solution."""
        allocations = allocations_of(self.instance, self.kinds, solution.count)
        stage = 0
        for job in self.jobs:
            number = len(job.steps)
            begins = [self.instance.now + begin for begin in solution.begin[stage : stage + number]]
            times = [*begins, begins[-1] + solution.length[stage + number - 1]]
            segments = (
                Segment(start=start, end=end, allocation=allocations[step])
                for step, (start, end) in enumerate(pairwise(times), start=stage)
            )
            yield in_segments(job.id, segments)
            stage += number


def can_be_held(job: Job, *, is_awaited: bool) -> bool:
    """Return whether a plan may hold a step of a job for longer than the job asks for."""
    return _longest_of(job, is_awaited=is_awaited) != tuple(step.walltime for step in job.steps)


def _longest_of(job: Job, *, is_awaited: bool) -> tuple[int | None, ...]:
    """Return the seconds that each step may be held; None: no limit. A job for which others wait holds no step."""
    return tuple(step.walltime for step in job.steps) if is_awaited else job.longest_steps


def _kinds(instance: Instance, jobs: Sequence[Job]) -> tuple[list[Staged], list[int | None]]:
    """Return the kinds of all jobs, and for each the kind of the same chunks in the step before (None: they are
    new).
    """
    kinds: list[Staged] = []
    were: list[int | None] = []
    stage = 0
    for place, job in enumerate(jobs):
        if job.steps[0].request.place.arrangement is Arrangement.PACK:  # all on one node: nothing else has to stay
            units = [
                (step, number, chunk.count, True)
                for step, one in enumerate(job.steps)
                for number, chunk in enumerate(one.request.chunks)
            ]
        else:
            units = [
                (step, layer.kind, layer.count, step == layer.first)
                for layer in chunk_layers(job)
                if layer.kind is not None
                for step in range(layer.first, layer.last + 1)
            ]
        for step, number, count, comes in units:
            chunk = replace(job.steps[step].request.chunks[number], count=count)
            were.append(None if comes else len(kinds) - 1)
            kinds.append(Staged(place, stage + step, number, chunk, most_on_nodes(instance, job, chunk)))
        stage += len(job.steps)
    return kinds, were


def _costs(instance: Instance, jobs: Sequence[Job], times: Times, awaited: frozenset[str]) -> Costs:
    """Return the costs of the jobs; a runtime that is not known beforehand has no slowdown (`unsupported` refuses
    it).
    """
    held = [can_be_held(job, is_awaited=job.id in awaited) for job in jobs]
    runtimes = [None if is_held else job.walltime for is_held, job in zip(held, jobs, strict=True)]
    wastes = [instance.term_weight(ObjectiveTerm.WASTE, job) for job in jobs]
    return Costs(
        starts=start_prices(instance, jobs, times.earliest, runtimes),
        runs=[instance.term_weight(ObjectiveTerm.COMPLETION, job) for job in jobs],
        holds=[
            waste * step.request.totals.get("cores", 0) if job.is_evolving else Fraction(0)
            for job, waste in zip(jobs, wastes, strict=True)
            for step in job.steps
        ],
        end=Fraction(end_price(instance)),
        horizon=times.horizon,
    )
