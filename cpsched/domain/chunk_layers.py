"""The chunk layers of evolving jobs: which chunks a job gains together and gives back together (EVO-4b).

Nothing migrates: a chunk that a job has in one step and in the next stays on its node. The chunk that was gained last
is given back first. So the chunks of one kind form layers, and the job has each layer for some steps in a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cpsched.domain.job import Job, Step
from cpsched.domain.request import Arrangement, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLayer:
    """Units that a job has together, each on one node, from the begin of one step to the end of another."""

    #: Index in the requests of the steps; None: a unit is the whole request (a packed job).
    kind: int | None
    count: int
    #: The first and the last step in which the job has them.
    first: int
    last: int


def chunk_layers(job: Job) -> tuple[ChunkLayer, ...]:
    """Return the layers of all units of a job, longest first; in each step they add up to its request.

    A job of one step has one layer for each kind of its chunks. Steps may ask for different amounts in chunks of one
    kind: a unit then takes more or less of its node from step to step.
    """
    if job.steps[0].request.place.arrangement is Arrangement.PACK:
        return (ChunkLayer(kind=None, count=1, first=0, last=len(job.steps) - 1),)
    kinds = max(len(step.request.chunks) for step in job.steps)
    found = [
        layer for kind in range(kinds) for layer in _layers(kind, [_count(step.request, kind) for step in job.steps])
    ]
    return tuple(sorted(found, key=lambda layer: (layer.first - layer.last, layer.first, layer.kind)))


def _count(request: Request, kind: int) -> int:
    return request.chunks[kind].count if kind < len(request.chunks) else 0


def _layers(kind: int, counts: Sequence[int]) -> Iterator[ChunkLayer]:
    """Yield the layers of the chunks of one kind; `counts` has their number in each step."""
    below = 0
    for level in sorted({count for count in counts if count}):
        first = None
        for step, count in enumerate((*counts, 0)):
            if count >= level and first is None:
                first = step
            elif count < level and first is not None:
                yield ChunkLayer(kind=kind, count=level - below, first=first, last=step - 1)
                first = None
        below = level


def needs_migration(steps: Sequence[Step]) -> str | None:
    """Return why a job with these steps cannot keep its nodes by layers, or None if it can.

    A step that asks for more in total keeps the nodes of the step before; a step that asks for less takes no new node.
    Layers can do that if no kind has fewer chunks in a larger step, or more of them in a smaller one.
    """
    if steps[0].request.place.arrangement is Arrangement.PACK:
        return None
    for number, (before, after) in enumerate(pairwise(steps), start=1):
        kinds = range(max(len(before.request.chunks), len(after.request.chunks)))
        more = any(_count(after.request, kind) > _count(before.request, kind) for kind in kinds)
        fewer = any(_count(after.request, kind) < _count(before.request, kind) for kind in kinds)
        old, new = before.request.totals, after.request.totals
        grows = any(new.get(name, 0) > old.get(name, 0) for name in {*old, *new})
        shrinks = any(new.get(name, 0) < old.get(name, 0) for name in {*old, *new})
        if more and fewer:
            return f"step {number} asks for more chunks of one kind and for fewer of another"
        if grows and not shrinks and fewer:
            return f"step {number} asks for more in fewer chunks"
        if shrinks and not grows and more:
            return f"step {number} asks for less in more chunks"
    return None
