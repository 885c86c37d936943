"""From a window to integers: where chunks may stand, what is taken already, when each job may start.

All times are seconds from ``now``. A *site* is a node on which new work may start. A *part* of a task is a number of
equal units, each of which stands on one site: the chunks of one kind, or the whole of a packed request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.cp.costs import Costs, costs_of
from cpsched.domain import Arrangement, Chunk, Instance, Job, NodeClass, NodeState
from cpsched.domain import PlannedJob as Planned

__all__ = ["Column", "Encoding", "Hold", "Lag", "Part", "Pool", "Room", "Site", "Task", "added_up", "encode"]

#: A resource of a node; with a beneficiary, the part of it that chunks which do not ask for the beneficiary may have
#: together (``keep_free``).
Column = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Hold:
    """An amount that is taken in ``[start, end)``, whatever is planned."""

    start: int
    end: int
    amount: int


@dataclass(frozen=True, slots=True)
class Pool:
    """An amount that tasks share, and what of it is taken already: holds in time order without overlap."""

    capacity: int
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A node on which new work may start."""

    name: str
    #: The number of its class: sites of a class differ in their names and in what is taken.
    group: int
    #: By column: what it has, and what of it is taken already.
    pools: Mapping[Column, Pool]


@dataclass(frozen=True, slots=True)
class Room:
    """A site for the units of a part."""

    site: int
    #: How many units an empty node holds, at the most as many as are asked for (P of BRIDI-6).
    most: int
    #: What one unit takes of each column.
    takes: Mapping[Column, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Equal units of a task."""

    #: (kind of chunk, how many chunks of it make a unit).
    unit: tuple[tuple[int, int], ...]
    need: int
    rooms: tuple[Room, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A job that waits for a start and a place."""

    job: Job
    earliest: int
    latest: int
    duration: int
    parts: tuple[Part, ...]

    @property
    def is_exclusive(self) -> bool:
        """Whether it takes its nodes whole."""
        return self.job.request.place.exclusive

    @property
    def is_scattered(self) -> bool:
        """Whether at most one of its chunks may stand on a node."""
        return self.job.request.place.arrangement is Arrangement.SCATTER

    @property
    def is_packed(self) -> bool:
        """Whether all its chunks stand on one node."""
        return self.job.request.place.arrangement is Arrangement.PACK


@dataclass(frozen=True, slots=True)
class Lag:
    """One task starts at least `seconds` after the start of another (both are indices)."""

    before: int
    after: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Encoding:
    """A window as whole numbers."""

    #: Second 0, on the instance's clock.
    now: int
    tasks: tuple[Task, ...]
    sites: tuple[Site, ...]
    licenses: Mapping[str, Pool]
    lags: tuple[Lag, ...]
    costs: Costs
    #: By then some optimal plan has ended.
    horizon: int

    @property
    def num_rooms(self) -> int:
        """How many pairs of a part and a site there are: the size of the model."""
        return sum(len(part.rooms) for task in self.tasks for part in task.parts)


def encode(instance: Instance, plan: Sequence[Planned]) -> Encoding:
    """Encode a window, in which all jobs of a plan are planned anew but those that run.

    Parameters
    ----------
    plan
        All jobs that run or are planned; the latter are rigid.
    """
    now = instance.now
    waiting = {job.id: job for job in instance.elements() if job.running is None}
    jobs = [waiting[planned.id] for planned in plan if planned.id in waiting]
    running = [planned for planned in plan if planned.id not in waiting]
    sites, licenses = _sites(instance, running), _licenses(instance, running)
    earliest, lags = _times(instance, jobs, {planned.id: planned for planned in running})
    # some optimal plan is idle only until a running job ends, or for a delay: the jobs fit one after another
    longest = sum(job.walltime + sum(max(0, dependency.delay) for dependency in job.after) for job in jobs)
    horizon = max([*(planned.end - now for planned in plan), *earliest], default=0) + longest
    last = [instance.latest_start(job) for job in jobs]
    latest = [
        horizon - job.walltime if bound is None else min(bound - now, horizon - job.walltime)
        for job, bound in zip(jobs, last, strict=True)
    ]
    tasks = tuple(
        _task(instance, job, first, until, sites) for job, first, until in zip(jobs, earliest, latest, strict=True)
    )
    costs = costs_of(instance, [(task.job, task.earliest, task.latest) for task in tasks], horizon=horizon)
    return Encoding(now, tasks, sites, licenses, lags, costs, horizon)


# --- what there is, and what is taken --------------------------------------------------------------------------------


def _sites(instance: Instance, running: Sequence[Planned]) -> tuple[Site, ...]:
    """Return the nodes that are up."""
    holds = _holds_by_node(instance, running)
    return tuple(
        Site(
            name,
            group,
            {
                column: _pool(amount, holds.get((name, column), ()))
                for column, amount in _columns_of(node_class).items()
            },
        )
        for group, node_class in enumerate(instance.cluster.classes)
        if node_class.state is NodeState.UP
        for name in node_class.names
    )


def _columns_of(node_class: NodeClass) -> dict[Column, int]:
    """Return the capacity of each column of a node."""
    columns: dict[Column, int] = {(name, None): amount for name, amount in node_class.resources.items()}
    for rule in node_class.keep_free:
        key = (rule.resource, rule.beneficiary)
        left = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
        columns[key] = min(left, columns.get(key, left))
    return columns


def _holds_by_node(instance: Instance, running: Sequence[Planned]) -> Mapping[tuple[str, Column], list[Hold]]:
    """Return what running jobs take of each column of each node; an exclusive one takes all of its nodes."""
    exclusive = {
        element: job.request.place.exclusive
        for job in instance.jobs
        if not job.is_evolving
        for element in job.element_ids
    }
    holds: defaultdict[tuple[str, Column], list[Hold]] = defaultdict(list)
    columns = {name: of_class for c in instance.cluster.classes for of_class in [_columns_of(c)] for name in c.names}
    for planned in running:
        for segment in planned.segments:
            start, end = max(0, segment.start - instance.now), segment.end - instance.now
            for held in segment.allocation if end > 0 else ():
                for (name, kept_for), capacity in columns[held.node].items():
                    amount = 0 if kept_for in held.resources else held.resources.get(name, 0)
                    if exclusive.get(planned.id, False):
                        amount = capacity
                    if amount:
                        holds[held.node, (name, kept_for)].append(Hold(start, end, amount))
    return holds


def _licenses(instance: Instance, running: Sequence[Planned]) -> dict[str, Pool]:
    """Return the licences of the cluster, and what of them is taken by running jobs."""
    asked = {element: job.licenses for job in instance.jobs for element in job.element_ids}
    return {
        name: _pool(
            amount,
            [
                Hold(max(0, planned.start - instance.now), planned.end - instance.now, asked[planned.id][name])
                for planned in running
                if asked[planned.id].get(name, 0)
            ],
        )
        for name, amount in instance.cluster.licenses.items()
    }


def _pool(capacity: int, holds: Iterable[Hold]) -> Pool:
    """Return a pool of which something is taken.

    Running work is a fact, even where it breaks a rule: what it takes counts up to the capacity.
    """
    return Pool(capacity, tuple(replace(hold, amount=min(hold.amount, capacity)) for hold in added_up(holds)))


def added_up(holds: Iterable[Hold]) -> Iterator[Hold]:
    """Yield holds that do not overlap, in time order, and take together what the given ones take."""
    changes: defaultdict[int, int] = defaultdict(int)
    for hold in holds:
        changes[hold.start] += hold.amount
        changes[hold.end] -= hold.amount
    level, since = 0, 0
    for time, change in sorted(changes.items()):
        if change:
            if level:
                yield Hold(since, time, level)
            level, since = level + change, time


# --- jobs ------------------------------------------------------------------------------------------------------------


def _times(
    instance: Instance, jobs: Sequence[Job], running: Mapping[str, Planned]
) -> tuple[list[int], tuple[Lag, ...]]:
    """Return the earliest start of each job, as its own times and running jobs leave it, and the lags between jobs."""
    number = {job.id: place for place, job in enumerate(jobs)}
    members = instance.members()
    lags = []
    earliest = [instance.earliest_start(job) for job in jobs]
    for place, job in enumerate(jobs):
        if job.start_at is not None:
            earliest[place] = max(earliest[place], job.start_at)
        for dependency in job.after:
            for awaited in members[dependency.job]:
                if awaited in number:
                    lags.append(Lag(number[awaited], place, dependency.lag(jobs[number[awaited]].walltime)))
                elif awaited in running:
                    planned = running[awaited]
                    lag = dependency.lag(planned.end - planned.start)
                    earliest[place] = max(earliest[place], planned.start + lag)
    return [start - instance.now for start in earliest], tuple(lags)


def _task(instance: Instance, job: Job, earliest: int, latest: int, sites: Sequence[Site]) -> Task:
    """Return a job as a task."""
    from cpsched.booking import chunks_on_empty_node, packs  # loads a compiler, which the worker does not need

    classes = instance.cluster.classes
    if job.request.place.arrangement is Arrangement.PACK:
        whole = [(chunk, chunk.count) for chunk in job.request.chunks]
        fitting = [int(packs(node_class, job.request, job.walltime)) for node_class in classes]
        unit = tuple((kind, chunk.count) for kind, (chunk, _) in enumerate(whole))
        return Task(job, earliest, latest, job.walltime, (Part(unit, 1, _rooms(classes, sites, fitting, whole)),))
    parts = []
    for kind, chunk in enumerate(job.request.chunks):
        most = 1 if job.request.place.arrangement is Arrangement.SCATTER else chunk.count
        fitting = [
            min(most, chunks_on_empty_node(c, chunk, job.walltime, exclusive=job.request.place.exclusive))
            for c in classes
        ]
        parts.append(Part(((kind, 1),), chunk.count, _rooms(classes, sites, fitting, [(chunk, 1)])))
    return Task(job, earliest, latest, job.walltime, tuple(parts))


def _rooms(
    classes: Sequence[NodeClass], sites: Sequence[Site], fitting: Sequence[int], unit: Sequence[tuple[Chunk, int]]
) -> tuple[Room, ...]:
    """Return the sites for a unit of some chunks, of which so many fit on a node of each class."""
    takes = [_takes(node_class, unit) for node_class in classes]
    return tuple(
        Room(number, fitting[site.group], takes[site.group]) for number, site in enumerate(sites) if fitting[site.group]
    )


def _takes(node_class: NodeClass, chunks: Sequence[tuple[Chunk, int]]) -> dict[Column, int]:
    """Return what some chunks take together of each column of a node."""
    takes = {}
    for name, kept_for in _columns_of(node_class):
        amount = sum(count * c.resources.get(name, 0) for c, count in chunks if kept_for not in c.resources)
        if amount:
            takes[name, kept_for] = amount
    return takes
