"""A window as data of ``models/window.mzn``, or of ``models/evolving.mzn`` where jobs evolve; and a solution as a plan.

A job runs in stages, one for each of its steps; the stages of all jobs are numbered from 0 (EVO-17).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from cpsched.domain import Chunk, Instance, Job, ObjectiveTerm, PlannedJob, Segment, chunk_layers
from cpsched.metrics import objective_value
from cpsched.mzn.data import Prices, Times, most_on_nodes, resource_numbers, start_prices, window_data
from cpsched.planner import end_price
from cpsched.problem import awaited_ends, in_segments, placements


class _Kind(NamedTuple):
    """Chunks of one stage."""

    job: int
    stage: int
    #: Their kind in the job's request of that stage.
    number: int
    chunk: Chunk
    #: Where the same chunks are in the stage before, among all kinds; None: they are new.
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An instance as a model's data; `data` has a value for each name that the model declares."""

    instance: Instance
    #: The jobs that are planned, by their starts in the known plan.
    jobs: tuple[Job, ...]
    kinds: tuple[_Kind, ...]
    data: Mapping[str, Any]
    prices: Prices
    #: The part of the objective's value that is not in the model's cost.
    base: Fraction
    #: Which model it is for.
    is_evolving: bool

    @classmethod
    def of(cls, instance: Instance, known: Sequence[PlannedJob]) -> "Window":
        """Return the window of the waiting jobs that a known plan has starts for.

        `instance`: an instance without unsupported features. `known`: the jobs of any plan. The plan is to be no worse.
        """
        now, plans, is_evolving = instance.now, {planned.id: planned for planned in known}, has_evolving(instance)
        waiting = [job for job in instance.elements() if job.running is None and job.id in plans]
        jobs = tuple(sorted(waiting, key=lambda job: plans[job.id].start))
        awaited = awaited_ends(instance)
        longest = [_longest_of(job, is_awaited=job.id in awaited) for job in jobs]
        held = sum(
            most - step.walltime
            for of_job, job in zip(longest, jobs, strict=True)
            for most, step in zip(of_job, job.steps, strict=True)
            if most is not None
        )
        last_end = max((plans[job.id].end - now for job in jobs), default=0)
        times = Times.of(instance, jobs, longer=max(held, last_end) if is_evolving else 0)
        prices = _prices(instance, jobs, times, awaited, is_evolving=is_evolving)
        starts = [plans[job.id].start - now for job in jobs]
        walltimes = [step.walltime for job in jobs for step in job.steps]
        runs = [plans[job.id].end - plans[job.id].start - job.walltime for job in jobs]
        lengths = [one.end - one.start for job in jobs for one in plans[job.id].segments]
        holds = [length - walltime for length, walltime in zip(lengths, walltimes, strict=True)]
        kinds = _kinds(jobs)
        values: dict[str, Any] = {
            **window_data(instance, jobs),
            **_request_data(instance, jobs, kinds),
            **times.data,
            **prices.data,
            "most_cost": prices.integer_cost(
                starts, last_end, runs if is_evolving else (), holds if is_evolving else ()
            ),
        }
        if is_evolving:
            ends = [times.horizon if one.deadline is None else one.deadline - now for one in jobs]
            values |= {
                "num_stages": len(walltimes),
                "stage_job": [place for place, job in enumerate(jobs, 1) for _ in job.steps],
                "stage_of": [kind.stage + 1 for kind in kinds],
                "were": [0 if kind.before is None else kind.before + 1 for kind in kinds],
                "step_walltime": walltimes,
                "longest": [times.horizon if most is None else most for of_job in longest for most in of_job],
                "end_by": [min(end, times.horizon) for end in ends],
                "run_price": prices.integers(prices.runs),
                "hold_price": prices.integers(prices.holds),
            }
        value = math.nextafter(objective_value(instance, known), -math.inf)  # the value was rounded, possibly up
        base = Fraction(value) - prices.cost(starts, last_end)
        return cls(
            instance=instance,
            jobs=jobs,
            kinds=tuple(kinds),
            data=values,
            prices=prices,
            base=base,
            is_evolving=is_evolving,
        )

    @property
    def model(self) -> str:
        """The name of the model that has its kinds of jobs."""
        return "evolving" if self.is_evolving else "window"

    def bound_of(self, cost: int) -> float:
        """Return the bound on the value of plans without evolving jobs that a lower bound on the model's cost gives."""
        return max(0.0, math.nextafter(float(self.base + cost / self.prices.scale), -math.inf))

    def planned(self, solution: Any) -> Iterator[PlannedJob]:
        """Yield the jobs of a solution."""
        names, now = self.instance.cluster.node_names, self.instance.now
        begins = solution.begin if self.is_evolving else solution.start
        units: list[list[tuple[str, int, int]]] = [[] for _ in begins]
        for kind, row in zip(self.kinds, solution.count, strict=True):
            units[kind.stage] += ((name, kind.number, count) for name, count in zip(names, row, strict=True) if count)
        stage = 0
        for job in self.jobs:
            behind = stage + len(job.steps)
            last = solution.length[behind - 1] if self.is_evolving else job.walltime
            times = pairwise([*begins[stage:behind], begins[behind - 1] + last])
            segments = [
                Segment(start=now + start, end=now + end, allocation=placements(step.request.chunks, held))
                for (start, end), step, held in zip(times, job.steps, units[stage:behind], strict=True)
            ]
            yield in_segments(job.id, segments)
            stage = behind


def has_evolving(instance: Instance) -> bool:
    """Return whether any waiting job evolves: the model for such windows is another one."""
    return any(job.is_evolving for job in instance.jobs if job.running is None)


def can_be_held(job: Job, *, is_awaited: bool) -> bool:
    """Return whether a plan may hold a step of a job for longer than the job asks for."""
    return _longest_of(job, is_awaited=is_awaited) != tuple(step.walltime for step in job.steps)


def _longest_of(job: Job, *, is_awaited: bool) -> tuple[int | None, ...]:
    """Return the seconds that each step may be held; None: no limit. A job for which others wait holds no step."""
    return tuple(step.walltime for step in job.steps) if is_awaited else job.longest_steps


def _kinds(jobs: Sequence[Job]) -> list[_Kind]:
    """Return the kinds of chunks of all jobs, in their order."""
    kinds: list[_Kind] = []
    stage = 0
    for place, job in enumerate(jobs):
        if job.steps[0].request.place.is_packed:  # all on one node: nothing else has to stay
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
            kinds.append(_Kind(place, stage + step, number, chunk, None if comes else len(kinds) - 1))
        stage += len(job.steps)
    return kinds


def _prices(
    instance: Instance, jobs: Sequence[Job], times: Times, awaited: frozenset[str], *, is_evolving: bool
) -> Prices:
    """Return the costs of the jobs; a runtime that is not known beforehand has no slowdown (see `unsupported`)."""
    held = [can_be_held(job, is_awaited=job.id in awaited) for job in jobs]
    runtimes = [None if is_held else job.walltime for is_held, job in zip(held, jobs, strict=True)]
    starts = start_prices(instance, jobs, times.earliest, runtimes)
    prices = Prices(starts, Fraction(end_price(instance)), times.horizon)
    if not is_evolving:
        return prices
    holds = [
        instance.term_weight(ObjectiveTerm.WASTE, job) * step.request.totals.get("cores", 0) * job.is_evolving
        for job in jobs
        for step in job.steps
    ]
    return replace(prices, runs=[instance.term_weight(ObjectiveTerm.COMPLETION, job) for job in jobs], holds=holds)


def _request_data(instance: Instance, jobs: Sequence[Job], kinds: Sequence[_Kind]) -> dict[str, Any]:
    """Return the requests of jobs, the arrangement of their chunks, and how many of these each node holds."""
    resources, places = resource_numbers(instance), [job.steps[0].request.place for job in jobs]
    return {
        "num_jobs": len(jobs),
        "job_name": [job.id for job in jobs],
        "walltime": [job.walltime for job in jobs],
        "packed": [place.is_packed for place in places],
        "scattered": [place.is_scattered for place in places],
        "exclusive": [place.exclusive for place in places],
        "num_kinds": len(kinds),
        "asked_by": [kind.job + 1 for kind in kinds],
        "chunks": [kind.chunk.count for kind in kinds],
        "size": [[kind.chunk.resources.get(name, 0) for name in resources] for kind in kinds],
        "most": [most_on_nodes(instance, jobs[kind.job], kind.chunk) for kind in kinds],
    }
