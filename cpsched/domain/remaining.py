"""What a malleable job that runs has still to do, and on which cores it can go on (D'Amico et al.; SD-1, SD-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from cpsched.domain.frozen import Amounts
from cpsched.domain.job import Job, Malleability, Placement, RuntimeModel, Segment
from cpsched.domain.modes import Mode, modes
from cpsched.domain.plan import PlannedJob, repeated
from cpsched.domain.request import Request

__all__ = [
    "Remaining",
    "changed_from",
    "counted",
    "held_by_node",
    "rate_on",
    "resumable",
    "resumed_plan",
    "share_of",
    "time_on",
]

_CORES = "cores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What is left of a running malleable job whose share a plan may change from now on."""

    #: Seconds at full share, more than 0.
    work: Fraction
    #: The modes in which it can continue, the full share first; at least two.
    modes: tuple[Mode, ...]
    #: What the job holds on each of the modes: the same nodes, and the same of all but cores.
    allocations: tuple[tuple[Placement, ...], ...]
    #: The mode on which it runs at now; None: its chunks have shares that differ, or that are rounded up.
    current: Mode | None


def resumable(job: Job, now: int) -> Remaining | None:
    """Return how a running job can go on from `now` on other shares of its cores, or None if it is a fact.

    A plan may change a malleable job if it is known which chunks stand on each of its nodes, and if the segments that
    the instance gives it do its work: it then ends because that is done, and not because somebody said so.
    """
    if job.running is None or job.malleability is None:
        return None
    stated = [counted(job.request, segment.allocation) for segment in job.running.segments]
    known = [allocation for allocation in stated if allocation is not None]
    job_modes = modes(job)
    if len(known) < len(stated) or len(job_modes) < 2 or any(_fixed(one) != _fixed(known[0]) for one in known):
        return None
    rates = [rate_on(job.request, job.malleability, allocation) for allocation in known]
    speeds = [rate for rate in rates if rate is not None]
    segments = job.running.segments
    if len(speeds) < len(rates) or not job.walltime <= _work(segments, speeds) < job.walltime + speeds[-1]:
        return None
    allocations = tuple(tuple(_placed(placement, mode) for placement in known[0]) for mode in job_modes)
    present = next(segment for segment in segments if segment.end > now)
    held = held_by_node(present.allocation)
    return Remaining(
        work=job.walltime - _work(segments, speeds, until=now),
        modes=job_modes,
        allocations=allocations,
        current=next((mode for mode, on in zip(job_modes, allocations, strict=True) if held_by_node(on) == held), None),
    )


def resumed_plan(job: Job, remaining: Remaining, now: int, mode: int, until: int | None) -> PlannedJob:
    """Return a running job that goes on with less from now on, and with all its cores again later.

    Parameters
    ----------
    job, remaining, now
        The job, and what `resumable` says of it.
    mode
        The mode in which it continues, counted as in `Remaining.modes`.
    until
        When it gets its cores back (on the instance's clock, after `now`); None: never.
    """
    slow, full = remaining.modes[mode], remaining.modes[0]
    end = now + slow.time_for(remaining.work)
    pieces = [(now, end, mode)]
    if mode and until is not None and until < end:
        left = remaining.work - slow.rate * (until - now)
        pieces = [(now, until, mode), (until, until + full.time_for(left), 0)]
    coming = [Segment(start=a, end=b, allocation=remaining.allocations[way]) for a, b, way in pieces]
    return changed_from(job, now, coming)


def changed_from(job: Job, now: int, coming: Sequence[Segment]) -> PlannedJob:
    """Return a running job as a plan has it that changes it: as it ran until `now`, and then with other segments.

    Where nothing changes at `now`, the segments before and after it are one.
    """
    past = [replace(segment, end=min(segment.end, now)) for segment in repeated(job).segments if segment.start < now]
    first, *others = coming
    if past and held_by_node(past[-1].allocation) == held_by_node(first.allocation):
        first = replace(past.pop(), end=first.end)
    segments = (*past, first, *others)
    return PlannedJob(id=job.id, start=segments[0].start, end=segments[-1].end, segments=segments)


def rate_on(request: Request, malleability: Malleability, allocation: Sequence[Placement]) -> Fraction | None:
    """Return the work per second (s at full share) of a job whose chunks have the cores of `allocation`.

    The shares of the chunks may differ: ``ideal`` is the share of all cores, ``worst`` that of the placement that has
    least, and a `stretch` that is given for the least share is more than either (eq. 5 and 6).

    Parameters
    ----------
    allocation
        Says of each placement which chunks stand there, and how many; those without stand for no cores.

    Returns
    -------
    Fraction or None
        None: the cores of a placement are none of its shares.
    """
    shares: list[float] = []
    parts: list[tuple[int, int]] = []
    for placement in allocation:
        cores = placement.resources.get(_CORES, 0)
        asked = 0 if placement.chunk is None else request.chunks[placement.chunk].resources.get(_CORES, 0)
        share = share_of(malleability, cores, asked, placement.count or 0)
        if share is None:
            return None
        shares.append(share)
        if cores:
            parts.append((cores, asked * (placement.count or 0)))
    least = min(shares)
    if least in malleability.stretch:
        return 1 / Fraction(str(malleability.stretch[least]))
    if not parts:
        return Fraction(1)
    if malleability.model is RuntimeModel.WORST:
        return min(Fraction(cores, full) for cores, full in parts)
    return Fraction(sum(cores for cores, _ in parts), sum(full for _, full in parts))


def time_on(walltime: int, request: Request, malleability: Malleability, allocation: Sequence[Placement]) -> int:
    """Return the seconds that a job takes on an allocation: its walltime, unless that says which chunks have less."""
    if any(placement.chunk is None for placement in allocation):
        return walltime
    rate = rate_on(request, malleability, allocation)
    return walltime if rate is None else ceil(walltime / rate)


def share_of(malleability: Malleability, cores: int, asked: int, count: int) -> float | None:
    """Return on which share `count` chunks that ask for `asked` cores each run with `cores` in all, or None.

    A share is rounded up or down in each chunk, to at least one core. Where several shares come to the same cores, it
    is the largest of them.
    """
    if cores == asked * count:
        return 1.0
    for share in malleability.shares:
        exact = Fraction(str(share)) * asked
        if count * max(1, floor(exact)) <= cores <= count * ceil(exact):
            return share
    return None


def counted(request: Request, allocation: Sequence[Placement]) -> tuple[Placement, ...] | None:
    """Return an allocation that says which chunks stand where: as the document does or, where all cores are there and
    one kind of chunks has them, by dividing; None if that cannot be told.
    """
    if all(placement.chunk is not None for placement in allocation):
        return tuple(allocation)
    kinds = [kind for kind, chunk in enumerate(request.chunks) if _CORES in chunk.resources]
    if len(kinds) != 1 or sum(one.resources.get(_CORES, 0) for one in allocation) != request.totals[_CORES]:
        return None
    asked = request.chunks[kinds[0]].resources[_CORES]
    found: list[Placement] = []
    for placement in allocation:
        count, rest = divmod(placement.resources.get(_CORES, 0), asked)
        if rest:
            return None
        found.append(replace(placement, chunk=kinds[0], count=count) if count else placement)
    return tuple(found)


def _fixed(allocation: Sequence[Placement]) -> dict[str, tuple[int | None, int | None, dict[str, int]]]:
    """Return what no share changes, by node: the chunks, and all that they have but cores."""
    return {
        placement.node: (
            placement.chunk,
            placement.count,
            {name: amount for name, amount in placement.resources.items() if name != _CORES},
        )
        for placement in allocation
    }


def held_by_node(allocation: Sequence[Placement]) -> dict[str, Amounts]:
    """Return what is held on each node, whichever chunks have it."""
    return {placement.node: placement.resources for placement in allocation}


def _placed(placement: Placement, mode: Mode) -> Placement:
    """Return what a placement holds on a mode, as plans say it: without its chunks."""
    resources = placement.resources
    if placement.chunk is not None and placement.count and _CORES in resources:
        cores = placement.count * mode.request.chunks[placement.chunk].resources[_CORES]
        resources = Amounts({**resources, _CORES: cores})
    return Placement(node=placement.node, resources=resources)


def _work(segments: Sequence[Segment], rates: Sequence[Fraction], until: int | None = None) -> Fraction:
    """Return the work done in segments, up to some second."""
    return sum(
        (
            rate * max(0, (segment.end if until is None else min(segment.end, until)) - segment.start)
            for segment, rate in zip(segments, rates, strict=True)
        ),
        Fraction(0),
    )
