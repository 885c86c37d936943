"""Jobs in reservations that want their nodes for themselves: nobody may be on the rest of a node meanwhile."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cpsched.domain import Amounts, Cluster, Job, Placement, ReservedSlice, SetAside
from cpsched.problem.calendar import Intervals, minus, union
from cpsched.problem.choices import at_most
from cpsched.problem.holds import beside, held_by


class Alone(NamedTuple):
    """The nodes of a reservation that its jobs can have for themselves."""

    #: When others are on each of these nodes, so that none of its jobs has it for itself.
    shared: Mapping[str, Intervals]
    #: What is set aside of these nodes: what the reservation leaves to others there.
    rests: tuple[SetAside, ...]
    #: Whether plans are lost: a rest is left to nobody also while no such job is there.
    is_strict: bool


def alone_in(
    slice_: ReservedSlice,
    closed: Mapping[str, Amounts],
    jobs: Sequence[Job],
    others: Iterable[SetAside],
    cluster: Cluster,
    now: int,
) -> Alone:
    """Return which nodes of a reservation its jobs can have for themselves.

    They are those of which it leaves nothing to others. Of further nodes the rest is set aside, until there are as many
    as such jobs have chunks: first of those on which others are for the shortest time.

    `slice_`: what the reservation got. `closed`: what it leaves to nobody else, by node. `jobs`: its jobs. `others`:
    what other running jobs and reservations have. `cluster`: the stated one. `now`: the second at which plans begin.
    """
    alone = [job for job in jobs if job.running is None and job.steps[0].request.place.exclusive]
    if not alone:
        return Alone({}, (), is_strict=False)
    times = ((max(slice_.start, now), slice_.end),)
    on_nodes: dict[str, list[tuple[int, int]]] = {node: [] for node in closed}
    for one in others:
        for node in {placement.node for placement in one.allocation} & closed.keys():
            on_nodes[node] += [(max(one.start, start), min(one.end, end)) for start, end in times]
    shared = {node: union(found) for node, found in on_nodes.items()}
    rests = {
        node: Amounts(
            (name, left)
            for name, has in cluster.class_of[node].resources.items()
            if (left := has - amounts.get(name, 0)) > 0
        )
        for node, amounts in closed.items()
    }
    lacking, shortest = at_most(alone, _num_chunks), min(job.walltime for job in alone)
    found: dict[str, Intervals] = {}
    asides: list[SetAside] = []
    for node in sorted(closed, key=lambda node: (bool(rests[node]), sum(end - start for start, end in shared[node]))):
        free = [one for one in minus(times, shared[node]) if one[1] - one[0] >= shortest]
        if free and (lacking > 0 or not rests[node]):
            lacking -= 1
            found[node] = shared[node]
            rest = (Placement(node=node, resources=rests[node]),)
            asides += [SetAside(start=start, end=end, allocation=rest) for start, end in free if rests[node]]
    return Alone(found, tuple(asides), is_strict=any(rests.values()))


def rests_of_running(jobs: Sequence[Job], held: Sequence[SetAside], cluster: Cluster) -> Iterator[SetAside]:
    """Yield what is left of the nodes that running jobs of reservations have for themselves, beside what is held."""
    for one in held_by([job for job in jobs if job.steps[0].request.place.exclusive]):
        nodes = dict.fromkeys(placement.node for placement in one.allocation)
        whole = tuple(Placement(node=node, resources=cluster.class_of[node].resources) for node in nodes)
        yield from beside(SetAside(start=one.start, end=one.end, allocation=whole), held, cluster)


def _num_chunks(job: Job) -> int:
    """Return the most chunks that a job, or all elements of an array, have at a time."""
    return len(job.element_ids) * max(sum(chunk.count for chunk in step.request.chunks) for step in job.steps)
