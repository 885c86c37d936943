"""The jobs that may be guests, and those that may be mates: malleable jobs with whole nodes (SD-1, SD-9), and how
fast they run (SD-3).
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
    RuntimeModel,
    modes,
    rate_on,
)
from cpsched.lab.policies.sd.mates import SdRule
from cpsched.problem import chunks_on_empty_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Work per second, in seconds at full share; in (0, 1]."""

    #: By the job's own model.
    real: Fraction
    #: The policy's runtime model: the worst case, or the job's own model if that is even slower.
    cautious: Fraction


def predicted_end(work: Fraction, pace: Pace, now: int, until: int | None = None) -> int:
    """Return when a job ends at its cautious pace from `now` on, and at full share from `until` on (SD-11).

    `work`: how much is left to do, in seconds at full share.
    """
    end = now + ceil(work / pace.cautious)
    if until is None or end <= until:
        return end
    return until + ceil(work - pace.cautious * (until - now))


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

    #: Its speed on the cores that it keeps.
    pace: Pace
    #: Its nodes seen as kinds: a class of nodes, and what is kept of each node by chunks of each kind.
    kinds: tuple[tuple[NodeClass, tuple[Amounts, ...]], ...]

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
    """Return a running job as one that can lend of its `allocation` at full share, or None."""
    found = _at_share(job, rule.mate_share) if _may_share(job) else None
    if found is None:
        return None
    chunks, pace = found
    on_node: dict[str, tuple[int, tuple[Amounts, ...]]] = {}
    for held in allocation:
        cores, parts = on_node.get(held.node, (0, ()))
        kept = chunks[held.chunk or 0].taken(held.count or 0)
        on_node[held.node] = cores + held.resources.get("cores", 0), (*parts, kept)
    kinds: dict[tuple[str, tuple[Amounts, ...]], tuple[NodeClass, tuple[Amounts, ...]]] = {}
    for node, (cores, parts) in on_node.items():
        node_class = cluster.class_of[node]
        if cores != node_class.resources.get("cores", 0) or not cores:
            return None
        kinds[node_class.names[0], parts] = node_class, parts
    return Lender(pace=pace, kinds=tuple(kinds.values()))


def _may_share(job: Job) -> bool:
    """Return whether a job may have cores on the same nodes as another one, and end later for it."""
    if job.is_evolving or job.malleability is None or job.deadline is not None:
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
