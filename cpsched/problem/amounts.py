"""The amounts of resources that jobs ask for and hold, as the rules of a site count them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from cpsched.domain import Amounts, Cluster, Instance, Job, Placement
from cpsched.problem.rule import is_optional

#: The resources of limits that count jobs, and elements of arrays.
JOBS, ARRAY_JOBS = "jobs", "arrayjobs"

#: ``(start, end, amount)`` on the instance's clock.
Amount = tuple[int, int, int]


class Supply:
    """The amounts of resources and licences that are up now. `instance`: has the cluster."""

    def __init__(self, instance: Instance) -> None:
        self._cluster = instance.cluster

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that nodes which are up have, and the licences that come back: those that ``*`` means."""
        cluster = self._cluster
        return (*cluster.up_totals, *(name for name in cluster.licenses if name not in cluster.consumed))

    def of(self, resource: str, nodes: tuple[str, ...] | None = None) -> int:
        """Return the amount of a resource on the nodes that are up (of `nodes`, if given), or of a licence."""
        if resource in self._cluster.licenses:
            return self._cluster.licenses[resource]
        if nodes is None:
            return self._cluster.up_totals.get(resource, 0)
        classes = (self._cluster.class_of[node] for node in nodes)
        return sum(one.resources.get(resource, 0) for one in classes if one.is_up)


def dominant_share(cluster: Cluster, job: Job) -> Fraction:
    """Return the largest share of a cluster's total that a job takes of anything that there is."""
    of_nodes = {name: amount for name, amount in job.request.totals.items() if not is_optional(name)}
    asked = [(amount, cluster.totals.get(name, 0)) for name, amount in of_nodes.items()]
    asked += [(amount, cluster.licenses[name]) for name, amount in job.licenses.items()]
    return max((Fraction(amount, total) for amount, total in asked if total), default=Fraction(0))


class Size(NamedTuple):
    """How much of a resource a job has."""

    #: The most at a time: of a waiting job, or of a running one from now on.
    most: int
    #: For how many seconds it has something of it, and how much, times for how long.
    seconds: int
    area: int


#: The size of a job that has nothing of a resource.
_NOTHING = Size(0, 0, 0)


class Measures:
    """The amounts that the jobs of a window ask for and hold from `now` on, by resource, each added up once."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._held: dict[str, Sequence[tuple[int, int, Mapping[str, int]]]] = {}
        self._sizes: dict[str, dict[str, Size]] = {}

    def forget(self, ids: Iterable[str]) -> None:
        """Give ids to other jobs from now on."""
        for job_id in ids:
            self._held.pop(job_id, None)
            for known in self._sizes.values():
                known.pop(job_id, None)

    def of(self, job: Job, resource: str) -> Size:
        """Return how much of a resource a job has."""
        return self.of_all([job], resource).get(job.id, _NOTHING)

    def of_all(self, jobs: Iterable[Job], resource: str) -> dict[str, Size]:
        """Return how much of a resource each of some jobs has that has something of it, by id."""
        known = self._sizes.setdefault(resource, {})
        found: dict[str, Size] = {}
        for job in jobs:
            size = known.get(job.id)
            if size is None:
                size = known[job.id] = self._size(job, resource)
            if size.area:
                found[job.id] = size
        return found

    def _size(self, job: Job, resource: str) -> Size:
        whole = _whole(job, resource)
        if job.running is None and len(job.steps) == 1:
            step = job.steps[0]
            amount = step.request.totals.get(resource, 0) if whole is None else whole
            return Size(amount, step.walltime, amount * step.walltime) if amount else _NOTHING
        held = (
            (start, end, totals.get(resource, 0) if whole is None else whole) for start, end, totals in self._parts(job)
        )
        parts, is_waiting = [part for part in held if part[2]], job.running is None
        return Size(
            max((amount for _, end, amount in parts if is_waiting or end > self._now), default=0),
            sum(end - start for start, end, _ in parts),
            sum(amount * (end - start) for start, end, amount in parts),
        )

    def _parts(self, job: Job) -> Sequence[tuple[int, int, Mapping[str, int]]]:
        """Add up what a running job has in each segment, or a waiting one in each step, in seconds from its start."""
        if job.id not in self._held:
            if job.running is not None:
                self._held[job.id] = [
                    (one.start, one.end, added(held.resources for held in one.allocation))
                    for one in job.running.segments
                ]
            else:
                ends = list(accumulate(step.walltime for step in job.steps))
                self._held[job.id] = [
                    (end - step.walltime, end, step.request.totals) for step, end in zip(job.steps, ends, strict=True)
                ]
        return self._held[job.id]


def _whole(job: Job, resource: str) -> int | None:
    """Return the amount that a job has from its start to its end; None if that is said by its steps."""
    if resource == JOBS:
        return 1
    if resource == ARRAY_JOBS:
        return int(job.array is not None)
    return job.licenses.get(resource)


def added(amounts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Return the sum of some amounts."""
    total = Counter[str]()
    for one in amounts:
        total.update(one)
    return total


def by_node(allocation: Iterable[Placement]) -> dict[str, Amounts]:
    """Return the sum of what an allocation has on each node."""
    held: dict[str, list[Amounts]] = {}
    for placement in allocation:
        held.setdefault(placement.node, []).append(placement.resources)
    return {node: here[0] if len(here) == 1 else Amounts(added(here)) for node, here in held.items()}
