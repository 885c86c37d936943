"""The best plan of a tiny window whose jobs change while they run, found by trying all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, pairwise, product
from math import ceil, floor

from cpsched.domain import (
    Amounts,
    Arrangement,
    ChunkLayer,
    Instance,
    Job,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Request,
    Segment,
    chunk_layers,
    modes,
    repeated,
    resumable,
)
from cpsched.domain import FrozenMap as Frozen
from cpsched.metrics import objective_value

__all__ = ["add_job", "best_plan", "choices_of", "remove_job"]


def best_plan(instance: Instance, *, keeps_share: bool = False) -> list[PlannedJob]:
    """Return a plan of all jobs that has the least value; units live by layers, and malleable jobs run on one share
    after the other (`_all_courses`), or keep one as in the models of MiniZinc.
    """
    jobs = instance.elements()
    horizon = sum(_slowest(job) for job in jobs)
    makespan = instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0)
    others: dict[ObjectiveTerm, float] = dict(instance.objective.weights)
    others.pop(ObjectiveTerm.MAKESPAN, None)
    alone = replace(instance, objective=Objective(weights=Frozen(others)))
    choices = [
        sorted(
            ((objective_value(alone, [p]), p) for p in choices_of(instance, job, horizon, keeps_share=keeps_share)),
            key=lambda pair: pair[0],
        )
        for job in jobs
    ]
    least = [sum(of_job[0][0] for of_job in choices[place:]) for place in range(len(jobs) + 1)]
    best: tuple[float, list[PlannedJob]] = (float("inf"), [])
    used: Counter[tuple[str, str, int]] = Counter()
    owner: dict[tuple[str, int], str] = {}
    holders: Counter[tuple[str, int]] = Counter()

    def extend(chosen: list[PlannedJob], cost: float) -> None:
        nonlocal best
        late = [one.end - instance.now for one, job in zip(chosen, jobs, strict=False) if job.running is None]
        value = cost + makespan * max(late, default=0)
        if value + least[len(chosen)] >= best[0] - 1e-9:
            return
        if len(chosen) == len(jobs):
            best = value, list(chosen)
            return
        job = jobs[len(chosen)]
        for more, planned in choices[len(chosen)]:
            if value + more + least[len(chosen) + 1] >= best[0] - 1e-9:
                break
            if add_job(instance, job, planned, used, owner, holders):
                extend([*chosen, planned], cost + more)
                remove_job(instance, job, planned, used, owner, holders)

    extend([], 0.0)
    return best[1]


def _slowest(job: Job) -> int:
    if job.alternatives:
        return max(one.walltime for one in job.choices)
    return job.walltime if job.is_evolving else modes(job)[-1].time_for(job.walltime)


def choices_of(instance: Instance, job: Job, horizon: int, *, keeps_share: bool = False) -> Iterator[PlannedJob]:
    """Yield all that a job can do."""
    if job.running is not None:
        yield repeated(job)
        yield from _continuations(instance, job, keeps_share=keeps_share)
        return
    if job.alternatives:
        for number, one in enumerate(job.choices):
            for planned in choices_of(instance, one, horizon):
                yield replace(planned, alternative=number)
        return
    for start in range(max(instance.now, job.submit), instance.now + horizon + 1):
        for lengths, requests in _modes(job, horizon, keeps_share=keeps_share):
            times = [*accumulate(lengths, initial=start)]
            if job.deadline is None or times[-1] <= job.deadline:
                for allocations in _allocations(instance, job, requests):
                    yield PlannedJob(id=job.id, start=start, end=times[-1], segments=_segments(times, allocations))


def _modes(job: Job, horizon: int, *, keeps_share: bool) -> Iterator[tuple[Sequence[int], Sequence[Request]]]:
    """Yield the lengths of all segments, and what they ask for."""
    if not job.is_evolving:
        job_modes = modes(job)
        rates, work = [mode.rate for mode in job_modes], Fraction(job.walltime)
        steady = (course for share in range(len(rates)) for course in _courses(work, rates, [share]))
        for course in steady if keeps_share else _all_courses(work, rates):
            yield [seconds for _, seconds in course], [job_modes[share].request for share, _ in course]
        return
    limit = job.expand_limit
    most = [horizon if limit is None else floor(limit * step.walltime) for step in job.steps[:-1]]
    held = [range(step.walltime, longest + 1) for step, longest in zip(job.steps, most, strict=False)]
    for lengths in product(*held):
        yield [*lengths, job.steps[-1].walltime], [step.request for step in job.steps]


def _allocations(instance: Instance, job: Job, requests: Sequence[Request]) -> Iterator[list[tuple[Placement, ...]]]:
    """Yield what a job can hold in its segments: each unit stands on one node for its whole life."""
    names = instance.cluster.node_names
    units = chunk_layers(job)
    for nodes in product(*(combinations_with_replacement(names, layer.count) for layer in units)):
        held: list[Counter[tuple[str, int]]] = [Counter() for _ in requests]
        for layer, of_layer in zip(units, nodes, strict=True):
            for segment in range(layer.first, layer.last + 1) if job.is_evolving else range(len(requests)):
                held[segment].update(_chunks(requests[segment], layer, of_layer))
        if requests[0].place.arrangement is Arrangement.SCATTER and any(
            sum(n for (at, _), n in of.items() if at == node) > 1 for of in held for node, _ in of
        ):
            continue
        yield [
            tuple(
                Placement(node=node, chunk=kind, count=count, resources=request.chunks[kind].taken(count))
                for (node, kind), count in of_segment.items()
            )
            for of_segment, request in zip(held, requests, strict=True)
        ]


def _chunks(request: Request, layer: ChunkLayer, nodes: Sequence[str]) -> Counter[tuple[str, int]]:
    """Return the chunks of a layer's units."""
    if layer.kind is not None:
        return Counter((node, layer.kind) for node in nodes)
    return Counter({(nodes[0], kind): chunk.count for kind, chunk in enumerate(request.chunks)})


def _courses(
    work: Fraction, rates: Sequence[Fraction], coming: Sequence[int], course: Sequence[tuple[int, int]] = ()
) -> Iterator[list[tuple[int, int]]]:
    """Yield the ways in which a job does its work: (share, seconds), on some of the `coming` shares in their order, for
    any time each.
    """
    for place, share in enumerate(coming):
        if course and course[-1][0] == share:
            continue
        longest = ceil(work / rates[share])
        yield [*course, (share, longest)]
        for seconds in range(1, longest if place + 1 < len(coming) else 1):
            left = work - rates[share] * seconds
            yield from _courses(left, rates, coming[place + 1 :], [*course, (share, seconds)])


def _all_courses(work: Fraction, rates: Sequence[Fraction]) -> Iterator[list[tuple[int, int]]]:
    """Yield those first on all of its cores, and then from the smallest share up."""
    return _courses(work, rates, [0, *range(len(rates) - 1, -1, -1)] if len(rates) > 1 else [0])


def _continuations(instance: Instance, job: Job, *, keeps_share: bool) -> Iterator[PlannedJob]:
    """Yield all that a running job can do from now on; of those that keep their share, one share till the end, or until
    it takes all of its cores.
    """
    left = resumable(job, instance.now)
    if left is None:
        return
    gone = [replace(one, end=min(one.end, instance.now)) for one in repeated(job).segments if one.start < instance.now]
    rates = [mode.rate for mode in left.modes]
    ending = (course for share in range(len(rates)) for course in _courses(left.work, rates, [share, 0]))
    for course in ending if keeps_share else _all_courses(left.work, rates):
        times = [*accumulate((seconds for _, seconds in course), initial=instance.now)]
        segments = [*gone, *_segments(times, [left.allocations[share] for share, _ in course])]
        merged = segments[:1]
        for segment in segments[1:]:
            if segment.allocation == merged[-1].allocation:
                merged[-1] = replace(merged[-1], end=segment.end)
            else:
                merged.append(segment)
        yield PlannedJob(id=job.id, start=merged[0].start, end=times[-1], segments=tuple(merged))


def _segments(times: Sequence[int], allocations: Sequence[tuple[Placement, ...]]) -> tuple[Segment, ...]:
    return tuple(
        Segment(start=start, end=end, allocation=allocation)
        for (start, end), allocation in zip(pairwise(times), allocations, strict=False)
    )


def _held(instance: Instance, planned: PlannedJob) -> Iterator[tuple[str, int, Amounts]]:
    """Yield what a job holds, second by second from now on."""
    for segment in planned.segments:
        for second in range(max(segment.start, instance.now), segment.end):
            for placement in segment.allocation:
                yield placement.node, second, placement.resources


def add_job(
    instance: Instance,
    job: Job,
    planned: PlannedJob,
    used: Counter[tuple[str, str, int]],
    owner: dict[tuple[str, int], str],
    holders: Counter[tuple[str, int]],
) -> bool:
    """Book a job, if all that it needs is free."""
    held = list(_held(instance, planned))
    needs: Counter[tuple[str, str, int]] = Counter()
    for node, second, resources in held:
        needs.update({(node, name, second): amount for name, amount in resources.items()})
    is_exclusive = job.choices[planned.alternative].steps[0].request.place.exclusive
    for (node, name, second), amount in needs.items():
        if used[node, name, second] + amount > instance.cluster.class_of[node].resources.get(name, 0):
            return False
        if (node, second) in owner or (is_exclusive and holders[node, second]):
            return False
    used.update(needs)
    for node, second in {(node, second) for node, second, _ in held}:
        holders[node, second] += 1
        if is_exclusive:
            owner[node, second] = job.id
    return True


def remove_job(
    instance: Instance,
    job: Job,
    planned: PlannedJob,
    used: Counter[tuple[str, str, int]],
    owner: dict[tuple[str, int], str],
    holders: Counter[tuple[str, int]],
) -> None:
    """Take back what was booked."""
    held = list(_held(instance, planned))
    for node, second, resources in held:
        used.subtract({(node, name, second): amount for name, amount in resources.items()})
    for node, second in {(node, second) for node, second, _ in held}:
        holders[node, second] -= 1
        if job.choices[planned.alternative].steps[0].request.place.exclusive:
            owner.pop((node, second))
