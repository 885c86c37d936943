"""The rest of a running malleable job: its work, and the modes in which it continues (D'Amico et al.; SD-1, SD-3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from cpsched.domain.frozen import Amounts
from cpsched.domain.job import Job, Malleability, Placement, RuntimeModel, Segment
from cpsched.domain.modes import Mode, modes, stretches_of
from cpsched.domain.plan import PlannedJob, repeated
from cpsched.domain.request import Request

_CORES = "cores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The rest of a running malleable job whose share a plan may change from now on."""

    #: Seconds at full share, more than 0.
    work: Fraction
    #: The modes in which it can continue, the full share first; at least two.
    modes: tuple[Mode, ...]
    #: What the job holds on each of the modes: the same nodes, and the same of all but cores. It says which chunks
    #: stand where if the instance does.
    allocations: tuple[tuple[Placement, ...], ...]
    #: The mode in which it runs at now; None: its chunks have different shares, or shares that are rounded up.
    current: Mode | None


def resumable(job: Job, now: int) -> Remaining | None:
    """Return how a running job can continue from `now` on other shares of its cores; None: no plan may change it.

    A plan may change a malleable job if the chunks on each of its nodes are known, and if the segments in the instance
    do the job's work. Otherwise its end is not the end of its work, but a fact that the instance states.
    """
    speeds = _stated_rates(job)
    if job.running is None or speeds is None:
        return None
    job_modes = modes(job)
    if len(job_modes) < 2:
        return None
    segments = job.running.segments
    known = counted(job.request, segments[0].allocation) or ()
    placed = list(zip(known, segments[0].allocation, strict=True))
    allocations = tuple(
        tuple(replace(as_said, resources=_held(one, mode)) for one, as_said in placed) for mode in job_modes
    )
    present = next(segment for segment in segments if segment.end > now)
    held = set(present.allocation)
    return Remaining(
        work=job.walltime - _work(segments, speeds, until=now),
        modes=job_modes,
        allocations=allocations,
        current=next((mode for mode, on in zip(job_modes, allocations, strict=True) if set(on) == held), None),
    )


def end_of_work(job: Job, now: int, seconds: int) -> int | None:
    """Return when a running malleable job has done its work if it continues as the instance states; None: its chunks
    or its work are not known, and its end is a fact.

    `seconds`: its work, at full share: at most its walltime. If it is done by `now`, the job ends in the next second.
    """
    rates, done = _stated_rates(job), Fraction(0)
    if job.running is None or rates is None:
        return None
    for segment, rate in zip(job.running.segments, rates, strict=True):
        end = segment.start + ceil((seconds - done) / rate)
        if end <= segment.end:
            return max(now + 1, end)
        done += rate * (segment.end - segment.start)
    return job.running.segments[-1].end


def _stated_rates(job: Job) -> list[Fraction] | None:
    """Return the work per second of a running malleable job in its segments; None if its chunks are not known or not
    the same in all of them, or if the segments do not do its work.
    """
    if job.running is None or job.malleability is None:
        return None
    segments = job.running.segments
    rates: list[Fraction] = []
    fixed = []
    for segment in segments:
        known = counted(job.request, segment.allocation)
        rate = None if known is None else rate_on(job.request, job.malleability, known)
        if known is None or rate is None:
            return None
        fixed.append(_fixed(known))
        rates.append(rate)
    is_done = job.walltime <= _work(segments, rates) < job.walltime + rates[-1]
    return rates if is_done and all(one == fixed[0] for one in fixed) else None


def resumed_plan(job: Job, remaining: Remaining, now: int, changes: Sequence[tuple[int, int]]) -> PlannedJob:
    """Return the plan of a running job that continues with other shares of its cores from now on.

    `job`, `remaining`, `now`: the job, and what `resumable` says of it. `changes`: (second on the instance's clock,
    mode from then on, counted as in `Remaining.modes`); the first one is at `now`.
    """
    coming = [
        Segment(start=start, end=end, allocation=remaining.allocations[mode])
        for start, end, mode in stretches_of(remaining.work, remaining.modes, changes)
    ]
    return changed_from(job, now, coming)


def changed_from(job: Job, now: int, coming: Sequence[Segment]) -> PlannedJob:
    """Return the plan of a running job that is changed: its own segments until `now`, and then the segments `coming`.

    Where nothing changes at `now`, the segments before and after it are one.
    """
    past = [replace(segment, end=min(segment.end, now)) for segment in repeated(job).segments if segment.start < now]
    first, *others = coming
    if past and set(past[-1].allocation) == set(first.allocation):
        first = replace(past.pop(), end=first.end)
    segments = (*past, first, *others)
    return PlannedJob(id=job.id, start=segments[0].start, end=segments[-1].end, segments=segments)


def rate_on(request: Request, malleability: Malleability, allocation: Sequence[Placement]) -> Fraction | None:
    """Return the work per second (s at full share) of a job whose chunks have the cores of `allocation`.

    The shares of the chunks may differ: ``ideal`` is the share of all cores, ``worst`` the share of the placement that
    has the least (eq. 5 and 6). A `stretch` that is given for the least share overrides both.

    `allocation`: each placement names the kind and the number of its chunks; a placement without them has no cores.
    None: the cores of a placement match none of the job's shares.
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
    """Return the seconds that a job takes on an allocation: its walltime, unless the allocation's chunks are shrunk."""
    if any(placement.chunk is None for placement in allocation):
        return walltime
    rate = rate_on(request, malleability, allocation)
    return walltime if rate is None else ceil(walltime / rate)


def share_of(malleability: Malleability, cores: int, asked: int, count: int) -> float | None:
    """Return the share on which `count` chunks that ask for `asked` cores each have `cores` in total, or None.

    A share is rounded up or down in each chunk, to at least one core. Where several shares come to the same number of
    cores, the largest is returned.
    """
    if cores == asked * count:
        return 1.0
    for share in malleability.shares:
        exact = Fraction(str(share)) * asked
        if count * max(1, floor(exact)) <= cores <= count * ceil(exact):
            return share
    return None


def counted(request: Request, allocation: Sequence[Placement]) -> tuple[Placement, ...] | None:
    """Return an allocation with the kind and number of chunks of each placement, or None if they are unknown.

    They are the document's own. Where it names none, they are computed by division, if one kind of chunks has all
    cores and the allocation has all cores of the request.
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


def _fixed(allocation: Sequence[Placement]) -> dict[tuple[str, int | None], tuple[int | None, dict[str, int]]]:
    """Return the parts that no share changes, by node and kind of chunks: their number, and all resources but cores."""
    return {
        (placement.node, placement.chunk): (
            placement.count,
            {name: amount for name, amount in placement.resources.items() if name != _CORES},
        )
        for placement in allocation
    }


def _held(placement: Placement, mode: Mode) -> Amounts:
    """Return the amounts that the chunks of a placement hold in a mode."""
    resources = placement.resources
    if placement.chunk is None or not placement.count or _CORES not in resources:
        return resources
    cores = placement.count * mode.request.chunks[placement.chunk].resources[_CORES]
    return Amounts({**resources, _CORES: cores})


def _work(segments: Sequence[Segment], rates: Sequence[Fraction], until: int | None = None) -> Fraction:
    """Return the work (s at full share) that segments do, up to the second `until` if it is given."""
    return sum(
        (
            rate * max(0, (segment.end if until is None else min(segment.end, until)) - segment.start)
            for segment, rate in zip(segments, rates, strict=True)
        ),
        Fraction(0),
    )
