"""The jobs that may be guests, and those that may be mates: malleable jobs with whole nodes (SD-1, SD-9), and such a
job that changes its cores as it runs (SD-3, SD-10).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Job,
    Malleability,
    NodeClass,
    Placement,
    PlannedJob,
    RuntimeModel,
    Segment,
    modes,
    rate_on,
    repeated,
    resumable,
)
from cpsched.problem import chunks_on_empty_node
from cpsched.rules.sd.rule import SdRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Work per second, in seconds at full share; in (0, 1]."""

    #: By the job's own model.
    real: Fraction
    #: The policy's runtime model: the worst case, or the job's own model if that is even slower.
    cautious: Fraction


FULL_PACE = Pace(real=Fraction(1), cautious=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job on its present cores; a change of them gives another one."""

    job: Job
    #: The segments that are over.
    past: tuple[Segment, ...] = ()
    #: The begin of the current segment.
    begin: int
    allocation: tuple[Placement, ...]
    #: Up to when its work is accounted for, and how much is left to do then (s at full share).
    since: int
    work: Fraction
    pace: Pace = FULL_PACE

    @property
    def end(self) -> int:
        """When it ends if nothing changes any more."""
        return self.since + ceil(self.work / self.pace.real)

    @property
    def planned(self) -> PlannedJob:
        """The planned job if nothing changes any more."""
        segments = (*self.past, Segment(start=self.begin, end=self.end, allocation=self.allocation))
        return PlannedJob(id=self.job.id, start=segments[0].start, end=self.end, segments=segments)

    def work_at(self, time: int) -> Fraction:
        """Return how much is left to do at a later time."""
        return self.work - self.pace.real * (time - self.since)

    def on(self, allocation: tuple[Placement, ...], pace: Pace, time: int) -> "Run":
        """Return the job on other cores from `time` on, before its end: a segment for each change."""
        changed = replace(self, allocation=allocation, pace=pace, since=time, work=self.work_at(time))
        past = self.past
        if self.begin < time:
            past = (*past, Segment(start=self.begin, end=time, allocation=self.allocation))
        if past and set(past[-1].allocation) == set(allocation):
            return replace(changed, past=past[:-1], begin=past[-1].start)
        return replace(changed, past=past, begin=time)

    def predicted_end(self, time: int, until: int | None = None) -> int:
        """Return when the job ends at its cautious pace from `time` on, and at full share from `until` on (SD-11)."""
        work = self.work_at(time)
        end = time + ceil(work / self.pace.cautious)
        if until is None or end <= until:
            return end
        return until + ceil(work - self.pace.cautious * (until - time))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A waiting job that may run on the nodes of others: each of its chunks takes a whole node."""

    job: Job
    #: Its amounts on a node of its own.
    chunk: Chunk
    #: Its amounts on a mate's node: fewer cores, the same of everything else.
    borrowed: Amounts
    pace: Pace
    #: Its predicted duration as a guest, and the same in whole seconds.
    time: Fraction
    seconds: int

    def allocation(self, shared: Sequence[str], own: Sequence[str]) -> tuple[Placement, ...]:
        """Return its allocation on nodes of others and on nodes of its own, in the order of their names."""
        held = dict.fromkeys(shared, self.borrowed) | dict.fromkeys(own, self.chunk.resources)
        return tuple(Placement(node=node, resources=held[node], chunk=0, count=1) for node in sorted(held))

    def pace_on(self, allocation: Sequence[Placement]) -> Pace:
        """Return how fast it is on an allocation."""
        malleability = _malleability(self.job)
        worst = replace(malleability, model=RuntimeModel.WORST, stretch=FrozenMap())
        rates = [rate_on(self.job.request, model, allocation) for model in (malleability, worst)]
        real, slowest = (Fraction(1) if rate is None else rate for rate in rates)
        return Pace(real=real, cautious=min(real, slowest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lender:
    """A running malleable job that has all cores of all its nodes."""

    #: Its amounts, and those that it keeps beside a guest: fewer cores, the same of everything else.
    full: tuple[Placement, ...]
    kept: tuple[Placement, ...]
    #: Its speed on the cores that it keeps.
    pace: Pace
    #: Its nodes seen as kinds: a class of nodes, and what is kept of each node by chunks of each kind.
    kinds: tuple[tuple[NodeClass, tuple[Amounts, ...]], ...]
    #: The names of its nodes, each once.
    nodes: tuple[str, ...]

    def has_room_for(self, guest: Guest) -> bool:
        """Return whether each of its nodes is one that the guest would take as a whole, and holds both of them.

        Its chunks keep a core each, and nothing else of what it has is lent (SD-9).
        """
        return all(
            node_class.is_up
            and node_class.resources.get("cores", 0) == guest.chunk.resources["cores"]
            and chunks_on_empty_node(node_class, guest.chunk, guest.job.walltime, exclusive=False) > 0
            and _holds(node_class, (*kept, guest.borrowed))
            for node_class, kept in self.kinds
        )


def guest_of(job: Job, rule: SdRule) -> Guest | None:
    """Return a waiting job as a guest, or None if it can be none.

    It is malleable and runs on the share that guests get; it asks for one kind of chunks with cores, of which each can
    have a node to itself without forbidding it to others; and it holds no licences.
    """
    if not _may_share(job) or len(job.request.chunks) != 1:
        return None
    (chunk,) = job.request.chunks
    if "cores" not in chunk.resources or (job.request.place.is_packed and chunk.count > 1):
        return None
    found = _at_share(job, rule.guest_share)
    if found is None:
        return None
    chunks, pace = found
    time = job.walltime / pace.cautious
    return Guest(job=job, chunk=chunk, borrowed=chunks[0].resources, pace=pace, time=time, seconds=ceil(time))


def lender_of(job: Job, allocation: Sequence[Placement], cluster: Cluster, rule: SdRule) -> Lender | None:
    """Return a job that starts in the plan as one that can lend of its `allocation` at full share, or None."""
    found = _at_share(job, rule.mate_share) if _may_share(job) else None
    if found is None:
        return None
    chunks, pace = found
    kept = tuple(
        replace(placement, resources=chunks[placement.chunk or 0].taken(placement.count or 0))
        for placement in allocation
    )
    return _lender(tuple(allocation), kept, pace, cluster)


def runs_already(job: Job, cluster: Cluster, rule: SdRule) -> tuple[Run, Lender] | None:
    """Return a running job as one that can lend from its last segment on, at full share then, or None."""
    found = _at_share(job, rule.mate_share) if _may_share(job) else None
    if found is None or job.running is None or job.deadline is not None:
        return None
    *past, last = repeated(job).segments
    left = resumable(job, last.start)
    if left is None or left.current != left.modes[0]:
        return None
    kept = next(on for mode, on in zip(left.modes, left.allocations, strict=True) if mode.share == rule.mate_share)
    lender = _lender(left.allocations[0], kept, found[1], cluster)
    run = Run(job=job, past=tuple(past), begin=last.start, allocation=last.allocation, since=last.start, work=left.work)
    return None if lender is None else (run, lender)


def _may_share(job: Job) -> bool:
    """Return whether a job may have cores on the same nodes as another one, and end later for it."""
    if job.is_evolving or job.malleability is None:
        return False
    return not job.request.place.exclusive and not any(job.licenses.values())


def _malleability(job: Job) -> Malleability:
    assert job.malleability is not None  # noqa: S101 - guests are malleable
    return job.malleability


def _at_share(job: Job, share: float) -> tuple[tuple[Chunk, ...], Pace] | None:
    """Return a malleable job's chunks on a share, and its speed; None if that is none, or no fewer cores."""
    worst = replace(_malleability(job), model=RuntimeModel.WORST, stretch=FrozenMap())
    for mode, slowest in zip(modes(job), modes(replace(job, malleability=worst)), strict=True):
        if mode.share == share:
            return mode.request.chunks, Pace(real=mode.rate, cautious=min(mode.rate, slowest.rate))
    return None


def _lender(full: tuple[Placement, ...], kept: tuple[Placement, ...], pace: Pace, cluster: Cluster) -> Lender | None:
    """Return a job as one that can lend if it has all cores of all its nodes."""
    on_node: dict[str, tuple[int, tuple[Amounts, ...]]] = {}
    for had, left in zip(full, kept, strict=True):
        cores, parts = on_node.get(had.node, (0, ()))
        on_node[had.node] = cores + had.resources.get("cores", 0), (*parts, left.resources)
    kinds: dict[tuple[str, tuple[Amounts, ...]], tuple[NodeClass, tuple[Amounts, ...]]] = {}
    for node, (cores, parts) in on_node.items():
        node_class = cluster.class_of[node]
        if cores != node_class.resources.get("cores", 0) or not cores:
            return None
        kinds[node_class.names[0], parts] = node_class, parts
    return Lender(full=full, kept=kept, pace=pace, kinds=tuple(kinds.values()), nodes=tuple(on_node))


def _holds(node_class: NodeClass, parts: Sequence[Amounts]) -> bool:
    """Return whether a node holds all of these at a time, and keeps free what it has to (OCCS-40)."""
    for name in {name for part in parts for name in part}:
        if sum(part.get(name, 0) for part in parts) > node_class.resources.get(name, 0):
            return False
    for rule in node_class.keep_free:
        others = sum(part.get(rule.resource, 0) for part in parts if rule.beneficiary not in part)
        if others > max(0, node_class.resources.get(rule.resource, 0) - rule.items):
            return False
    return True
