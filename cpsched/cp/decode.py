"""From solutions to plans, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.solution import Placed
from cpsched.cp.variables import rooms_of
from cpsched.domain import Placement, PlannedJob, Segment
from cpsched.errors import EngineError

__all__ = ["decode", "placed_as_in"]


def decode(encoding: Encoding, solution: Sequence[Placed]) -> dict[str, PlannedJob]:
    """Return the planned jobs, by id, that a solution (one entry for each task) stands for.

    Raises
    ------
    EngineError
        If it is no solution of this window.
    """
    rooms = {(number, part, site) for (number, part, site), _ in rooms_of(encoding)}
    counts = {(number, part, site) for number, one in enumerate(solution) for part, site, _ in one.counts}
    if len(solution) != len(encoding.tasks) or not counts <= rooms:
        raise EngineError("CP-SAT found what is no plan of this window")
    return {
        task.job.id: _planned(encoding, task, placed) for task, placed in zip(encoding.tasks, solution, strict=True)
    }


def _planned(encoding: Encoding, task: Task, placed: Placed) -> PlannedJob:
    """Return a job with the nodes of its chunks."""
    chunks = task.job.request.chunks
    allocation = []
    for part, site, units in sorted(placed.counts):
        for kind, per_unit in task.parts[part].unit:
            count = units * per_unit
            allocation.append(
                Placement(node=encoding.sites[site].name, chunk=kind, count=count, resources=chunks[kind].taken(count))
            )
    start = encoding.now + placed.start
    segment = Segment(start=start, end=start + task.duration, allocation=tuple(allocation))
    return PlannedJob(id=task.job.id, start=start, end=segment.end, segments=(segment,))


def placed_as_in(encoding: Encoding, planned: Mapping[str, PlannedJob]) -> tuple[Placed, ...]:
    """Return where a plan has each task."""
    site_of = {site.name: number for number, site in enumerate(encoding.sites)}
    found = []
    for task in encoding.tasks:
        job = planned[task.job.id]
        part_of = {kind: (number, n) for number, part in enumerate(task.parts) for kind, n in part.unit}
        counts = {
            (part, site_of[held.node], (held.count or 0) // per_unit)
            for segment in job.segments
            for held in segment.allocation
            for part, per_unit in [part_of[held.chunk or 0]]
        }
        found.append(Placed(job.start - encoding.now, tuple(sorted(counts))))
    return tuple(found)
