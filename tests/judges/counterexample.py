"""Looks for a plan that is worth less than a bound, by trying all starts, holds, shares and nodes of a tiny window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations_with_replacement, pairwise, product
from math import ceil
from random import Random

from cpsched.domain import (
    Arrangement,
    FrozenMap,
    Instance,
    Job,
    NodeState,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Request,
    Segment,
    chunk_layers,
    modes,
    repeated,
)
from cpsched.metrics import objective_value
from tests.cp.trying_everything import add_job, choices_of, remove_job

__all__ = ["Answer", "plan_below"]

#: Of so many ways to run a job (lengths of its segments, allocations, starts of all of these) all are tried, of more of
#: them some.
MOST_SHAPES, MOST_ALLOCATIONS, MOST_CHOICES = 300, 60, 3000
#: Jobs that are added to a plan, in all; beyond that the search ends.
MOST_STEPS = 600
#: What is below a bound by less is below it by rounding.
NEAR = 1e-9

Judge = Callable[[Sequence[PlannedJob]], Sequence[str]]
Shape = tuple[tuple[int, ...], tuple[Request, ...]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan below the bound, if one was found, and whether all plans have been tried."""

    jobs: tuple[PlannedJob, ...] | None
    is_complete: bool


def plan_below(instance: Instance, jobs: Sequence[Job], bound: float, judge: Judge) -> Answer:
    """Look for a plan of some jobs (running ones among them) that is worth less than `bound`, and that a judge passes.

    A waiting malleable job is tried on each share, and on two shares one after the other.
    """
    return _Search(instance, jobs, bound, judge).run()


class _Search:
    """Depth first, by job; a branch ends where what is left costs too much even at its best. Mutable."""

    def __init__(self, instance: Instance, jobs: Sequence[Job], bound: float, judge: Judge) -> None:
        weights = instance.objective.weights
        self.makespan = weights.get(ObjectiveTerm.MAKESPAN, 0.0)
        others: dict[ObjectiveTerm, float] = {}
        for term, weight in weights.items():
            if term is not ObjectiveTerm.MAKESPAN:
                others[term] = weight
        #: Without the makespan, all of the objective is a sum over jobs.
        self.alone = replace(instance, objective=Objective(weights=FrozenMap(others)))
        self.instance, self.jobs, self.judge = instance, jobs, judge
        self.bound = bound - NEAR * max(1.0, abs(bound))
        self.is_complete, self.steps = True, 0
        self.found: tuple[PlannedJob, ...] | None = None
        self.used: Counter[tuple[str, str, int]] = Counter()
        self.owner: dict[tuple[str, int], str] = {}
        self.holders: Counter[tuple[str, int]] = Counter()

    def run(self) -> Answer:
        """Try everything."""
        running = {job.id: list(choices_of(self.instance, job, 0)) for job in self.jobs if job.running is not None}
        shapes = {job.id: self._shapes(job) for job in self.jobs if job.running is None}
        least = [
            min(
                (self._cost(planned) for planned in running[job.id])
                if job.id in running
                else (self._cost(_planned(job, self._first(job), lengths)) for lengths, _ in shapes[job.id])
            )
            for job in self.jobs
        ]
        self.rest = [sum(least[place:]) for place in range(len(self.jobs) + 1)]
        self.choices = []
        for place, job in enumerate(self.jobs):
            left = self.bound - self.rest[0] + least[place]
            if job.id in running:
                of_job = [(cost, one) for one in running[job.id] if (cost := self._cost(one)) < left]
            else:
                of_job = list(self._waiting(job, shapes[job.id], left))
            self.choices.append(sorted(of_job, key=lambda pair: pair[0]))
        self._extend([], 0.0, 0)
        return Answer(self.found, self.is_complete)

    def _cost(self, planned: PlannedJob) -> float:
        return objective_value(self.alone, [planned])

    def _first(self, job: Job) -> int:
        """Return the earliest start that the job's own times allow."""
        return max(self.instance.earliest_start(job), self.instance.now if job.start_at is None else job.start_at)

    def _shapes(self, job: Job) -> list[Shape]:
        """Return how long the segments of a waiting job can be, and what they ask for."""
        found = list(_held(job) if job.is_evolving else _shared(job))
        if len(found) > MOST_SHAPES:
            self.is_complete = False
            found = found[:3] + Random(0).sample(found, MOST_SHAPES)
        if job.is_evolving and job.expand_limit is None:
            self.is_complete = False
        return found

    def _waiting(self, job: Job, shapes: Sequence[Shape], left: float) -> Iterator[tuple[float, PlannedJob]]:
        """Yield all that a waiting job can do which costs less than `left`."""
        first = self._first(job)
        ends = [repeated(other).end for other in self.jobs if other.running is not None]
        lags = sum(dependency.delay for other in self.jobs for dependency in other.after)
        horizon = max([first, *ends]) + lags
        horizon += sum(2 * modes(other)[-1].time_for(other.walltime) for other in self.jobs if not other.is_evolving)
        horizon += sum(2 * other.walltime for other in self.jobs if other.is_evolving)
        last = first if job.start_at is not None else horizon
        choices = 0
        for lengths, requests in shapes:
            allocations = None
            for start in range(first, last + 1):
                choices += 1 if allocations is None else len(allocations)
                if choices > MOST_CHOICES:
                    self.is_complete = False
                    return
                cost = self._cost(_planned(job, start, lengths))
                if cost >= left or (job.deadline is not None and start + sum(lengths) > job.deadline):
                    break
                if allocations is None:
                    allocations = self._allocations(job, requests)
                for allocation in allocations:
                    yield cost, _planned(job, start, lengths, allocation)

    def _allocations(self, job: Job, requests: Sequence[Request]) -> list[list[tuple[Placement, ...]]]:
        """Return all allocations of a job by segment; each chunk is on one node from its first segment to its last."""
        classes = self.instance.cluster.class_of
        names = [name for name in self.instance.cluster.node_names if classes[name].state is NodeState.UP]
        layers = chunk_layers(job)
        found = []
        for nodes in product(*(combinations_with_replacement(names, layer.count) for layer in layers)):
            held: list[Counter[tuple[str, int]]] = [Counter() for _ in requests]
            for layer, of_layer in zip(layers, nodes, strict=True):
                last = layer.last if job.is_evolving else len(requests) - 1
                for segment in range(layer.first, last + 1):
                    if layer.kind is not None:
                        held[segment].update((node, layer.kind) for node in of_layer)
                    else:
                        kinds = enumerate(requests[segment].chunks)
                        held[segment].update({(of_layer[0], kind): chunk.count for kind, chunk in kinds})
            if all(self._is_admitted(job, of, place) for place, of in enumerate(held)):
                found.append(
                    [
                        tuple(
                            Placement(node=node, chunk=kind, count=count, resources=request.chunks[kind].taken(count))
                            for (node, kind), count in sorted(of.items())
                        )
                        for of, request in zip(held, requests, strict=True)
                    ]
                )
        if len(found) > MOST_ALLOCATIONS:
            self.is_complete = False
            found = Random(0).sample(found, MOST_ALLOCATIONS)
        return found

    def _is_admitted(self, job: Job, held: Counter[tuple[str, int]], segment: int) -> bool:
        """Return whether chunks may stand on their nodes, and not too many on one; guards look at the full share."""
        full = job.steps[segment].request if job.is_evolving else job.request
        if full.place.arrangement is Arrangement.SCATTER:
            per_node = Counter[str]()
            for (node, _), count in held.items():
                per_node[node] += count
            if max(per_node.values(), default=0) > 1:
                return False
        for node, kind in held:
            of_node, chunk = self.instance.cluster.class_of[node], full.chunks[kind]
            if any(of_node.properties.get(name) != value for name, value in chunk.where.items()):
                return False
            if not of_node.is_admitted(chunk.resources, job.walltime):
                return False
        return True

    def _extend(self, chosen: list[PlannedJob], cost: float, last: int) -> None:
        """Add the next job in all ways that can still lead below the bound."""
        if self.found is not None or self.steps > MOST_STEPS:
            self.is_complete = self.is_complete and self.steps <= MOST_STEPS
            return
        if len(chosen) == len(self.jobs):
            if not self.judge(chosen):
                self.found = tuple(chosen)
            self.steps += 20  # a judge takes its time
            return
        job = self.jobs[len(chosen)]
        for more, planned in self.choices[len(chosen)]:
            end = last if job.running is not None else max(last, planned.end - self.instance.now)
            if cost + more + self.rest[len(chosen) + 1] >= self.bound:
                break
            if cost + more + self.rest[len(chosen) + 1] + self.makespan * end >= self.bound:
                continue
            self.steps += 1
            if add_job(self.instance, job, planned, self.used, self.owner, self.holders):
                self._extend([*chosen, planned], cost + more, end)
                remove_job(self.instance, job, planned, self.used, self.owner, self.holders)
            if self.found is not None or self.steps > MOST_STEPS:
                self.is_complete = self.is_complete and self.steps <= MOST_STEPS
                return


def _held(job: Job) -> Iterator[Shape]:
    """Yield the lengths of an evolving job's steps, each held as long as it may be, or three times its walltime."""
    most = [
        3 * step.walltime if most is None else most for step, most in zip(job.steps, job.longest_steps, strict=True)
    ]
    ranges = [range(step.walltime, longest + 1) for step, longest in zip(job.steps[:-1], most, strict=False)]
    for lengths in product(*ranges):
        yield (*lengths, job.steps[-1].walltime), tuple(step.request for step in job.steps)


def _shared(job: Job) -> Iterator[Shape]:
    """Yield the shares on which a job of one step runs: one, or two after each other."""
    ways = modes(job)
    for mode in ways:
        yield (mode.time_for(job.walltime),), (mode.request,)
    for first, then in product(ways, ways):
        for seconds in range(1, first.time_for(job.walltime)) if first is not then else ():
            rest = ceil((job.walltime - first.rate * seconds) / then.rate)
            yield (seconds, rest), (first.request, then.request)


def _planned(
    job: Job, start: int, lengths: Sequence[int], allocations: Sequence[tuple[Placement, ...]] | None = None
) -> PlannedJob:
    """Return a job with its segments."""
    times = [*accumulate(lengths, initial=start)]
    held = [()] * len(lengths) if allocations is None else allocations
    segments = tuple(Segment(start=a, end=b, allocation=of) for (a, b), of in zip(pairwise(times), held, strict=True))
    return PlannedJob(id=job.id, start=start, end=times[-1], segments=segments)
