"""The naive twin of placing one evolving job beside running ones: every start, and every node for every chunk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from cpsched.domain import Arrangement, Chunk, Instance, Job, NodeState, chunk_layers
from cpsched.problem import chunks_on_empty_node

__all__ = ["first_start"]

#: A unit: its kind (None: all chunks together), and the first and last step in which it is there.
_Unit = tuple[int | None, int, int]


def first_start(instance: Instance, job: Job, horizon: int) -> int | None:
    """Return the first start before `horizon` at which a job fits if no step is held, None if there is none.

    Others are the running jobs. The nodes of the cluster keep nothing free.
    """
    last = instance.latest_start(job)
    for start in range(instance.earliest_start(job), horizon if last is None else last + 1):
        if (job.start_at is None or start == job.start_at) and _fits(instance, job, start):
            return start
    return None


def _fits(instance: Instance, job: Job, start: int) -> bool:
    """Return whether a job that starts then finds nodes for all of its units."""
    begins = list(accumulate((step.walltime for step in job.steps), initial=start))
    times = list(pairwise(begins))
    for name, amount in job.licenses.items():
        for second in range(start, begins[-1]):
            held = sum(other.licenses.get(name, 0) for other in instance.jobs if _runs(other, second))
            if held + amount > instance.cluster.licenses[name]:
                return False
    room = [{node: _free(instance, job, node, *window) for node in instance.cluster.node_names} for window in times]
    units: list[_Unit] = [
        (layer.kind, layer.first, layer.last) for layer in chunk_layers(job) for _ in range(layer.count)
    ]
    return _place(instance, job, units, room, [[] for _ in times])


def _runs(other: Job, second: int) -> bool:
    return other.running is not None and second < other.running.segments[-1].end


def _free(instance: Instance, job: Job, node: str, begin: int, end: int) -> dict[str, int]:
    """Return what is free on a node in all of some time: nothing if somebody is there, and one of them wants it for
    himself.
    """
    free = dict(instance.cluster.class_of[node].resources)
    lowest = dict(free)
    for second in range(begin, end):
        now = dict(free)
        for other in instance.jobs:
            for segment in other.running.segments if other.running is not None else ():
                for held in segment.allocation:
                    if segment.start <= second < segment.end and held.node == node:
                        is_alone = job.steps[0].request.place.exclusive or other.steps[0].request.place.exclusive
                        now = {
                            name: 0 if is_alone else amount - held.resources.get(name, 0)
                            for name, amount in now.items()
                        }
        lowest = {name: min(lowest[name], amount) for name, amount in now.items()}
    return lowest


def _place(
    instance: Instance, job: Job, units: Sequence[_Unit], room: list[dict[str, dict[str, int]]], used: list[list[str]]
) -> bool:
    """Try all nodes for the first unit, and so on; `used` are the nodes that chunks stand on in each step."""
    if not units:
        return True
    (kind, first, last), *rest = units
    scatter = job.steps[0].request.place.arrangement is Arrangement.SCATTER
    for node in instance.cluster.node_names:
        taken = [_taken(job, kind, step) for step in range(len(job.steps))]
        if all(
            _may_stand(instance, job, kind, step, node)
            and all(room[step][node].get(name, 0) >= amount for name, amount in taken[step].items())
            and not (scatter and node in used[step])
            for step in range(first, last + 1)
        ):
            for step in range(first, last + 1):
                used[step].append(node)
                for name, amount in taken[step].items():
                    room[step][node][name] -= amount
            if _place(instance, job, rest, room, used):
                return True
            for step in range(first, last + 1):
                used[step].pop()
                for name, amount in taken[step].items():
                    room[step][node][name] += amount
    return False


def _chunks(job: Job, kind: int | None, step: int) -> list[tuple[Chunk, int]]:
    """Return the chunks that a unit is in a step, with how many of each."""
    chunks = job.steps[step].request.chunks
    if kind is None:
        return [(chunk, chunk.count) for chunk in chunks]
    return [(chunks[kind], 1)] if kind < len(chunks) else []


def _taken(job: Job, kind: int | None, step: int) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for chunk, count in _chunks(job, kind, step):
        for name, amount in chunk.taken(count).items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def _may_stand(instance: Instance, job: Job, kind: int | None, step: int, node: str) -> bool:
    node_class, exclusive = instance.cluster.class_of[node], job.steps[step].request.place.exclusive
    return node_class.state is NodeState.UP and all(
        chunks_on_empty_node(node_class, chunk, job.walltime, exclusive=exclusive) > 0
        for chunk, _ in _chunks(job, kind, step)
    )
