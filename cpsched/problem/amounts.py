"""The amounts of resources that jobs ask for and hold, as the rules of a site count them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from cpsched.domain import Instance, Job, NodeState, Segment

__all__ = ["JOBS", "Amount", "Measures", "Supply"]

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


class Measures:
    """The amounts that the jobs of a window ask for and hold, by resource; each is added up once.

    Parameters
    ----------
    now
        The second from which on running jobs count.
    """

    def __init__(self, now: int) -> None:
        self._now = now
        self._totals: dict[str, Sequence[tuple[int, int, Mapping[str, int]]]] = {}
        self._parts: dict[str, dict[str, Sequence[Amount]]] = {}
        self._most: dict[str, dict[str, int]] = {}

    def forget(self, job_id: str) -> None:
        """Give the id to another job from now on."""
        self._totals.pop(job_id, None)
        self._parts.pop(job_id, None)
        self._most.pop(job_id, None)

    def most_of(self, job: Job, resource: str) -> int:
        """Return the most of a resource that a waiting job has at a time, or a running one from `now` on."""
        known = self._most.setdefault(job.id, {})
        if resource not in known:
            parts, is_waiting = self._parts_of(job, resource), job.running is None
            known[resource] = max((amount for _, end, amount in parts if is_waiting or end > self._now), default=0)
        return known[resource]

    def seconds_of(self, job: Job, resource: str) -> int:
        """Return for how long a job has something of a resource."""
        return sum(end - start for start, end, _ in self._parts_of(job, resource))

    def area_of(self, job: Job, resource: str) -> int:
        """Return how much of a resource a job has, times for how long."""
        return sum(amount * (end - start) for start, end, amount in self._parts_of(job, resource))

    def _parts_of(self, job: Job, resource: str) -> Sequence[Amount]:
        """Return the times at which a running job has something of a resource, or in seconds from its start of a
        waiting job the steps that ask for it.
        """
        known = self._parts.setdefault(job.id, {})
        if resource not in known:
            whole = _whole(job, resource)
            held = (
                (start, end, totals.get(resource, 0) if whole is None else whole)
                for start, end, totals in self._totals_of(job)
            )
            known[resource] = [part for part in held if part[2]]
        return known[resource]

    def _totals_of(self, job: Job) -> Sequence[tuple[int, int, Mapping[str, int]]]:
        """Add up the resources of nodes of a running job in each segment, or of a waiting one in each step."""
        if job.id not in self._totals:
            if job.running is not None:
                self._totals[job.id] = [(one.start, one.end, _summed(one)) for one in job.running.segments]
            else:
                ends = list(accumulate(step.walltime for step in job.steps))
                self._totals[job.id] = [
                    (end - step.walltime, end, step.request.totals) for step, end in zip(job.steps, ends, strict=True)
                ]
        return self._totals[job.id]


def _whole(job: Job, resource: str) -> int | None:
    """Return the amount that a job has from its start to its end; None if that is said by its steps."""
    if resource == JOBS:
        return 1
    if resource == ARRAY_JOBS:
        return int(job.array is not None)
    return job.licenses.get(resource)


def _summed(segment: Segment) -> Mapping[str, int]:
    """Add up the amounts of a segment on all nodes."""
    totals: dict[str, int] = {}
    for held in segment.allocation:
        for name, amount in held.resources.items():
            totals[name] = totals.get(name, 0) + amount
    return totals
