"""The amounts of resources that jobs ask for and hold, as the rules of a site count them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from cpsched.domain import Instance, Job, NodeState

__all__ = ["JOBS", "Amount", "Supply", "area_of", "most_of", "seconds_of"]

#: The resources of limits that count jobs, and elements of arrays.
JOBS, ARRAY_JOBS = "jobs", "arrayjobs"

#: ``(start, end, amount)`` on the instance's clock.
Amount = tuple[int, int, int]


class Supply:
    """The amounts of resources and licences that are up now.

    Parameters
    ----------
    instance
        Has the cluster.
    """

    def __init__(self, instance: Instance) -> None:
        self._cluster = instance.cluster

    @cached_property
    def _up(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for node_class in self._cluster.classes:
            if node_class.state is NodeState.UP:
                for name, amount in node_class.resources.items():
                    found[name] = found.get(name, 0) + amount * len(node_class.names)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that nodes which are up have, and the licences: those that ``*`` means."""
        return (*self._up, *self._cluster.licenses)

    def of(self, resource: str, nodes: tuple[str, ...] | None = None) -> int:
        """Return the amount of a resource on the nodes that are up (of `nodes`, if given), or of a licence."""
        if resource in self._cluster.licenses:
            return self._cluster.licenses[resource]
        if nodes is None:
            return self._up.get(resource, 0)
        classes = (self._cluster.class_of[node] for node in nodes)
        return sum(one.resources.get(resource, 0) for one in classes if one.state is NodeState.UP)


def _whole(job: Job, resource: str) -> int | None:
    """Return the amount that a job has from its start to its end; None if that is said by its steps."""
    if resource == JOBS:
        return 1
    if resource == ARRAY_JOBS:
        return int(job.array is not None)
    return job.licenses.get(resource)


def parts_of(job: Job, resource: str) -> Iterator[Amount]:
    """Yield the times at which a running job has something of a resource, or in seconds from its start of a waiting job
    the steps that ask for it.
    """
    whole = _whole(job, resource)
    if job.running is not None:
        for segment in job.running.segments:
            held = sum(one.resources.get(resource, 0) for one in segment.allocation) if whole is None else whole
            if held:
                yield segment.start, segment.end, held
        return
    start = 0
    for step in job.steps:
        asked = step.request.totals.get(resource, 0) if whole is None else whole
        if asked:
            yield start, start + step.walltime, asked
        start += step.walltime


def most_of(job: Job, resource: str, now: int) -> int:
    """Return the most of a resource that a waiting job has at a time, or a running one from `now` on."""
    parts = parts_of(job, resource)
    return max((amount for _, end, amount in parts if job.running is None or end > now), default=0)


def seconds_of(job: Job, resource: str) -> int:
    """Return for how long a job has something of a resource."""
    return sum(end - start for start, end, _ in parts_of(job, resource))


def area_of(job: Job, resource: str) -> int:
    """Return how much of a resource a job has, times for how long."""
    return sum(amount * (end - start) for start, end, amount in parts_of(job, resource))
