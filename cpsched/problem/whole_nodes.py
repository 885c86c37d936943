"""An instance as numbers of nodes: like nodes, each of which a job has as a whole, and which nodes (EVO-4); or as
numbers of equal chunks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import floor

from cpsched.domain import Amounts, Chunk, Instance, Job, Place, Placement, PlannedJob, Request, Segment
from cpsched.problem.holds import free_over_time, held_until
from cpsched.problem.rule import is_optional

#: More seconds than any plan has.
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The request of an application."""

    #: ``(duration, amount)`` of each, at least one, durations positive.
    steps: tuple[tuple[int, int], ...]
    #: The most time that a step may be held, as a multiple of its duration, if the variant allows it; None: no limit.
    limit: float | None = None
    #: Its earliest begin.
    earliest: int = 0

    def longest(self, limit: int | None) -> tuple[int, ...]:
        """Return for how many seconds each step may be held, by the smaller one of its own limit and another one."""
        limits = [Fraction(one) for one in (self.limit, limit) if one is not None]
        return tuple(floor(min(limits) * duration) if limits else NO_LIMIT for duration, _ in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The nodes that are up, or places for equal chunks on them."""

    #: The node of each, the cheaper ones first, then as in the document.
    names: tuple[str, ...]
    #: The time at which running jobs leave it, in seconds from now, at least 0.
    free_from: tuple[int, ...]

    @classmethod
    def of(cls, instance: Instance) -> "Machine":
        """Return the nodes of an instance."""
        classes = sorted(instance.cluster.classes, key=lambda node_class: node_class.priority)
        names = tuple(name for one in classes if one.is_up for name in one.names)
        left = dict.fromkeys(names, 0)
        for job in instance.jobs:
            for segment in job.running.segments if job.running is not None else ():
                for placement in segment.allocation:
                    if placement.node in left:
                        left[placement.node] = max(left[placement.node], segment.end - instance.now)
        return cls(names=names, free_from=tuple(left.values()))

    @classmethod
    def of_chunks(cls, instance: Instance, chunk: Chunk) -> "Machine":
        """Return the places for such chunks, where no running job takes more of a node later on."""
        busy, found = held_until(instance), list[tuple[str, int]]()
        for one in sorted(instance.cluster.classes, key=lambda node_class: node_class.priority):
            has_all = all(one.properties.get(name) == value for name, value in chunk.where.items())
            for node in one.names if one.is_up and has_all else ():
                places = 0
                for time, free in free_over_time(one.resources, busy.get(node, ())):
                    room = min(free.get(name, 0) // amount for name, amount in chunk.resources.items())
                    found += [(node, time)] * (room - places)
                    places = max(places, room)
        names, free_from = zip(*found, strict=True) if found else ((), ())
        return cls(names=names, free_from=free_from)


def places_of(instance: Instance) -> Machine | None:
    """Return the places for chunks, if their number is all that the waiting jobs ask for: of whole nodes of one kind,
    or, where none evolves, of one kind of chunks on any nodes; None if more matters.
    """
    if not beyond_whole_nodes(instance):
        return Machine.of(instance)
    asked = {_only_chunk(job) for job in instance.jobs if job.running is None}
    is_rising = any(job.running is not None and len(job.running.segments) > 1 for job in instance.jobs)
    if len(asked) != 1 or is_rising or any(_beyond_capacity(instance)) or any(_beyond_starts(instance)):
        return None
    chunk = asked.pop()
    return None if chunk is None else Machine.of_chunks(instance, chunk)


def _only_chunk(job: Job) -> Chunk | None:
    """Return one of the chunks of a rigid job that are alike and may be anywhere; None if it asks for more."""
    request, is_rigid = job.steps[0].request, not (job.is_evolving or job.malleability or job.alternatives)
    if not is_rigid or len(request.chunks) != 1 or request.place != Place():
        return None
    (chunk,) = request.chunks
    return None if any(map(is_optional, chunk.resources)) else replace(chunk, count=1)


def application_of(instance: Instance, job: Job) -> Application:
    """Return the request of a waiting job, in seconds from now."""
    steps = tuple((step.walltime, sum(chunk.count for chunk in step.request.chunks)) for step in job.steps)
    return Application(steps=steps, limit=job.expand_limit, earliest=instance.earliest_start(job) - instance.now)


def beyond_whole_nodes(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that numbers of nodes cannot honour, each with its path.

    Nodes have to be alike, every waiting job has to have them as a whole, and may start at any time.
    """
    return (*beyond_equal_nodes(instance), *_beyond_starts(instance))


def _beyond_starts(instance: Instance) -> Iterator[str]:
    """Yield what waiting jobs ask for beside nodes, and why they may not start at any time."""
    for job in instance.jobs:
        asked = {
            "depends on other jobs": bool(job.after),
            "asks for licences": any(job.licenses.values()),
            "has a start that is fixed": job.start_at is not None,
            "has a deadline": job.deadline is not None,
            "has to start by the hard max_wait of its queue": instance.must_start_by(job) is not None,
        }
        if job.running is None:
            yield from (f"job {job.id}: {what}" for what, is_asked in asked.items() if is_asked)


def beyond_equal_nodes(instance: Instance) -> tuple[str, ...]:
    """Return the features that make it matter which nodes a job has, each with its path.

    Nodes have to be alike, and every waiting job has to have them as a whole. Each schedule of numbers of nodes then is
    one of nodes: the times for which a job has one of them are intervals, those of running jobs begin now, and
    intervals of which no more overlap than there are nodes can always share so many.
    """
    features = [*_beyond_capacity(instance)]
    if len({(one.resources, one.properties) for one in instance.cluster.classes}) > 1:
        features.append("cluster: nodes of several kinds")
    for job in instance.jobs:
        found = _of_running(instance, job) if job.running is not None else _of_waiting(instance, job)
        features.extend(f"job {job.id}: {what}" for what in found)
    return tuple(features)


def _beyond_capacity(instance: Instance) -> Iterator[str]:
    """Yield why nodes do not always admit all that has room on them."""
    classes = instance.cluster.classes
    asked = (
        ("cluster", "nodes with guards", any(node_class.admits for node_class in classes)),
        ("cluster", "nodes that keep resources free", any(node_class.keep_free for node_class in classes)),
        ("reservations", "nodes or licences that are set aside for a time", bool(instance.set_aside)),
    )
    yield from (f"{key}: {what}" for key, what, present in asked if present)


def _of_waiting(instance: Instance, job: Job) -> Iterator[str]:
    """Yield the unsupported features of what a waiting job asks for."""
    if job.malleability is not None:
        yield "malleable"
    if job.alternatives:
        yield "has alternatives"
    if any(not _has_whole_nodes(instance, step.request) for step in job.steps):
        yield "its chunks do not each take a whole node"
    elif len({(step.request.chunks[0].resources, step.request.chunks[0].where) for step in job.steps}) > 1:
        yield "its steps ask for different chunks"


def _has_whole_nodes(instance: Instance, request: Request) -> bool:
    """Return whether a request is for equal chunks each of which shuts others out of its node.

    So it is with chunks scattered over nodes of their own, and with those that take all cores of a node.
    """
    if len(request.chunks) != 1:
        return False
    (chunk,) = request.chunks
    cores = instance.cluster.classes[0].resources.get("cores", 0)
    if 0 < cores <= chunk.resources.get("cores", 0):
        return not request.place.is_packed or chunk.count == 1
    return request.place.is_scattered and request.place.exclusive


def _of_running(instance: Instance, job: Job) -> Iterator[str]:
    """Yield the unsupported features of a running job: future nodes that another job may have by then."""
    coming = [segment for segment in job.running.segments if segment.end > instance.now] if job.running else []
    held = [{placement.node for placement in segment.allocation} for segment in coming]
    if any(not later <= earlier for earlier, later in pairwise(held)):
        yield "it runs, and will take more nodes"


@dataclass(frozen=True, slots=True)
class Hold:
    """An amount over ``[start, end)``: of nodes, or of what a pool has."""

    start: int
    end: int
    amount: int


def map_to_nodes(holds: Sequence[Sequence[Hold]], free_from: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """Return the nodes of each hold, ascending: a growing job keeps its nodes, a shrinking one keeps some of them.

    At each second, first shrinking and ending jobs release nodes; then growing and beginning jobs take the first
    free nodes. All nodes are equal, so there are always enough if the numbers never exceed the capacity.

    `holds`: of each application, in time order without holes. `free_from`: when each node becomes free for good.
    """
    nodes: list[list[tuple[int, ...]]] = [[] for _ in holds]
    free: list[int] = []
    # (second, whether it takes more nodes, which application, which hold): within one second nodes are given back first
    events = [(time, False, -1, node) for node, time in enumerate(free_from)]
    for who, held in enumerate(holds):
        before = 0
        for place, hold in enumerate(held):
            events.append((hold.start, hold.amount > before, who, place))
            before = hold.amount
        events.append((held[-1].end, False, who, len(held)))
    heapify(events)
    while events:
        _, takes, who, place = heappop(events)
        if who < 0:
            heappush(free, place)
            continue
        had = nodes[who][place - 1] if place else ()
        amount = holds[who][place].amount if place < len(holds[who]) else 0
        if takes:
            has = tuple(sorted((*had, *(heappop(free) for _ in range(amount - len(had))))))
        else:
            for node in had[amount:]:
                heappush(free, node)
            has = had[:amount]
        if place < len(holds[who]):
            nodes[who].append(has)
    return nodes


def planned_on_nodes(
    instance: Instance, job: Job, machine: Machine, steps: Sequence[Hold], nodes: Sequence[tuple[int, ...]]
) -> PlannedJob:
    """Return a planned job.

    `steps`: when its steps are, in seconds from now, each until the next one begins. `nodes`: what it may have in each
    of them: it takes the first of these.
    """
    (chunk, *_) = job.steps[0].request.chunks
    segments = (
        Segment(
            start=instance.now + step.start,
            end=instance.now + step.end,
            allocation=placements([chunk], ((machine.names[node], 0, 1) for node in held[: step.amount])),
        )
        for step, held in zip(steps, nodes, strict=True)
    )
    return in_segments(job.id, segments)


def placements(
    chunks: Sequence[Chunk] | Mapping[int, Chunk], units: Iterable[tuple[str, int, int]]
) -> tuple[Placement, ...]:
    """Return an allocation, which has one entry for each node and kind of chunks.

    `chunks`: the chunks by kind. `units`: (node, kind, how many chunks of it).
    """
    counts: dict[tuple[str, int], int] = {}
    for node, kind, count in units:
        counts[node, kind] = counts.get((node, kind), 0) + count
    taken: dict[tuple[int, int], Amounts] = {}  # most nodes hold the same: one value serves them all
    found = []
    for (node, kind), count in counts.items():
        if (kind, count) not in taken:
            taken[kind, count] = chunks[kind].taken(count)
        found.append(Placement(node=node, chunk=kind, count=count, resources=taken[kind, count]))
    return tuple(found)


def in_segments(job_id: str, segments: Iterable[Segment], alternative: int = 0) -> PlannedJob:
    """Return the planned job of some segments, one after the other, by one of the job's alternatives."""
    held = tuple(segments)
    return PlannedJob(id=job_id, start=held[0].start, end=held[-1].end, segments=held, alternative=alternative)
