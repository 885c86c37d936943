"""List scheduling of evolving applications as an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from cpsched import problem
from cpsched.domain import Instance, Job, PlannedJob, Step, WaitingJob, repeated
from cpsched.engine import Engine, Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner import uncompiled
from cpsched.problem import Machine
from cpsched.rules.evolving.lists import Track, Variant, schedule
from cpsched.rusv import Profile


class EvolvingEngine(Engine):
    """Plans jobs that evolve over whole nodes as a variant of Klein and Pérez does, in queue order. Deterministic.

    A step is held no longer than both the variant and the job's own ``expand_limit`` allow. Taken as rigid, a job has
    its widest step's nodes to itself all the time; its plan shows those of them that each step asks for.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.name = variant.name

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance other than whole nodes of one kind."""
        return (*uncompiled(instance), *problem.beyond_whole_nodes(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the variant. Raises `UnsupportedError` if it cannot honour something."""
        if features := self.unsupported(instance):
            raise UnsupportedError(self.name, features)
        jobs = instance.elements()
        refused = {job.id: found for job in jobs if job.running is None and (found := _refusal(instance, job))}
        queue = problem.planning_order(instance, [job for job in jobs if job.running is None and job.id not in refused])
        machine = Machine.of(instance)
        tracks: list[Track] = []
        for track in schedule(
            [problem.application_of(instance, job) for job in queue],
            self.variant,
            busy=_busy(machine.free_from),
            capacity=len(machine.names),
        ):
            tracks.append(track)
            if progress is not None:
                progress(len(tracks), len(queue))
        nodes = problem.map_to_nodes([track.holds for track in tracks], machine.free_from)
        planned = {
            job.id: _planned(instance, job, machine, track, held)
            for job, track, held in zip(queue, tracks, nodes, strict=True)
        }
        return Outcome(
            jobs=tuple(
                planned[job.id] if job.running is None else repeated(job) for job in jobs if job.id not in refused
            ),
            waiting_room=tuple(refused[job.id] for job in jobs if job.id in refused),
        )


def _refusal(instance: Instance, job: Job) -> WaitingJob | None:
    """Return why a waiting job can never start, None if it can: what holds its widest step holds the others too."""
    widest = max((step.request for step in job.steps), key=lambda request: request.chunks[0].count)
    found = problem.refusal(instance, replace(job, steps=(Step(walltime=job.walltime, request=widest),)))
    return None if found is None else WaitingJob(id=job.id, reason=found[0], detail=found[1])


def _busy(free_from: Iterable[int]) -> Profile:
    """Return the number of nodes that running jobs hold, from now on."""
    ends = Counter(free_from)
    busy, last = ends.total(), 0
    steps = []
    for end in sorted(ends):
        steps.append((end - last, busy))
        busy, last = busy - ends[end], end
    return Profile(tuple(steps))


def _planned(instance: Instance, job: Job, machine: Machine, track: Track, nodes: list[tuple[int, ...]]) -> PlannedJob:
    """Return a planned job; `nodes` are its nodes in each of the track's holds."""
    of_steps = nodes if len(nodes) == len(track.steps) else nodes * len(track.steps)
    return problem.planned_on_nodes(instance, job, machine, track.steps, of_steps)
