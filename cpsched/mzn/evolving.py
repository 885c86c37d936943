"""A window with evolving jobs as data of ``models/evolving.mzn``, and its solution as a plan (EVO-17)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from cpsched.domain import Chunk, Instance, Job, ObjectiveTerm, Placement, PlannedJob, Segment, chunk_layers
from cpsched.mzn import data
from cpsched.planner import end_price
from cpsched.problem import awaited_ends, in_segments


class _Staged(NamedTuple):
    """Chunks of one stage (the stages of all jobs are numbered from 0)."""

    job: int
    stage: int
    #: Their kind in the job's request of that stage.
    number: int
    chunk: Chunk
    #: The number of them that each empty node holds.
    most: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingWindow:
    """An instance as the model's data; `data` has a value for each name that the model declares."""

    instance: Instance
    #: The jobs that are planned, by their starts in the known plan.
    jobs: tuple[Job, ...]
    kinds: tuple[_Staged, ...]
    data: Mapping[str, Any]

    model = "evolving"

    @classmethod
    def of(cls, instance: Instance, known: Sequence[PlannedJob]) -> "EvolvingWindow":
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
        times = data.Times.of(instance, jobs, longer=max(sum(held), last_end))
        stages = [place for place, job in enumerate(jobs) for _ in job.steps]
        kinds, were = _kinds(instance, jobs)
        costs = _costs(instance, jobs, times, awaited)
        lengths = [one.end - one.start for job in jobs for one in plans[job.id].segments]
        walltimes = [step.walltime for job in jobs for step in job.steps]
        most_cost = costs.integer_cost(
            [plans[job.id].start - instance.now for job in jobs],
            last_end,
            [plans[job.id].end - plans[job.id].start - job.walltime for job in jobs],
            [length - walltime for length, walltime in zip(lengths, walltimes, strict=True)],
        )
        values = {
            **data.window_data(instance, jobs),
            **data.place_data(jobs),
            **times.data,
            **costs.data,
            "run_price": costs.integers(costs.runs),
            "end_by": [
                times.horizon if one.deadline is None else min(one.deadline - instance.now, times.horizon)
                for one in jobs
            ],
            "num_stages": len(stages),
            "stage_job": [job + 1 for job in stages],
            **_kinds_data(instance, kinds),
            "walltime": [job.walltime for job in jobs],
            "step_walltime": walltimes,
            "longest": [times.horizon if most is None else most for of_job in longest for most in of_job],
            "hold_price": costs.integers(costs.holds),
            "were": [0 if before is None else before + 1 for before in were],
            "most_cost": most_cost,
        }
        return cls(instance=instance, jobs=jobs, kinds=tuple(kinds), data=values)

    def planned(self, solution: Any) -> Iterator[PlannedJob]:
        """Yield the jobs of a solution."""
        allocations = _allocations_of(self.instance, self.kinds, solution.count)
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


def _kinds(instance: Instance, jobs: Sequence[Job]) -> tuple[list[_Staged], list[int | None]]:
    """Return the kinds of all jobs, and for each that of the same chunks in the step before (None: they are new)."""
    kinds: list[_Staged] = []
    were: list[int | None] = []
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
            were.append(None if comes else len(kinds) - 1)
            kinds.append(_Staged(place, stage + step, number, chunk, data.most_on_nodes(instance, job, chunk)))
        stage += len(job.steps)
    return kinds, were


def _costs(instance: Instance, jobs: Sequence[Job], times: data.Times, awaited: frozenset[str]) -> data.Prices:
    """Return the costs of the jobs; a runtime that is not known beforehand has no slowdown (see `unsupported`)."""
    held = [can_be_held(job, is_awaited=job.id in awaited) for job in jobs]
    runtimes = [None if is_held else job.walltime for is_held, job in zip(held, jobs, strict=True)]
    wastes = [instance.term_weight(ObjectiveTerm.WASTE, job) for job in jobs]
    return data.Prices(
        data.start_prices(instance, jobs, times.earliest, runtimes),
        Fraction(end_price(instance)),
        times.horizon,
        runs=[instance.term_weight(ObjectiveTerm.COMPLETION, job) for job in jobs],
        holds=[
            waste * step.request.totals.get("cores", 0) if job.is_evolving else Fraction(0)
            for job, waste in zip(jobs, wastes, strict=True)
            for step in job.steps
        ],
    )


def _kinds_data(instance: Instance, kinds: Sequence[_Staged]) -> dict[str, Any]:
    resources = data.resource_numbers(instance)
    return {
        "num_kinds": len(kinds),
        "asked_by": [kind.job + 1 for kind in kinds],
        "stage_of": [kind.stage + 1 for kind in kinds],
        "chunks": [kind.chunk.count for kind in kinds],
        "size": [[kind.chunk.resources.get(name, 0) for name in resources] for kind in kinds],
        "most": [list(kind.most) for kind in kinds],
    }


def _allocations_of(
    instance: Instance, kinds: Sequence[_Staged], counts: Sequence[Sequence[int]]
) -> Mapping[int, tuple[Placement, ...]]:
    """Return the allocation of each stage, from the number of chunks of each kind on each node."""
    held: dict[int, Counter[tuple[str, int]]] = {}
    chunks: dict[tuple[int, int], Chunk] = {}
    for kind, row in zip(kinds, counts, strict=True):
        for node, count in zip(instance.cluster.node_names, row, strict=True):
            if count:
                held.setdefault(kind.stage, Counter())[node, kind.number] += count
                chunks[kind.stage, kind.number] = kind.chunk
    return {
        stage: tuple(
            Placement(node=node, chunk=number, count=count, resources=chunks[stage, number].taken(count))
            for (node, number), count in of_stage.items()
        )
        for stage, of_stage in held.items()
    }
