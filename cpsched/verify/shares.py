"""Malleable jobs: on which share of their cores they run, how fast that is, and whether a running one may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor

from cpsched.verify.model import Booking, Job, Malleable, Placement, Request, Segment

__all__ = ["counted", "faults_of_change", "held_by", "is_done", "rate_of", "share_of", "work_of"]


def share_of(cores: int, asked: int, count: int, malleable: Malleable) -> Fraction | None:
    """Return on which share `count` chunks that ask for `asked` cores each have `cores` together, or None.

    A share is rounded up or down in each chunk, to one core at least; of several that fit it is the largest.
    """
    if cores == asked * count:
        return Fraction(1)
    for share in malleable.shares:
        if count * max(1, floor(share * asked)) <= cores <= count * ceil(share * asked):
            return share
    return None


def rate_of(allocation: Sequence[Placement], request: Request, malleable: Malleable) -> Fraction | str:
    """Return the work done per second, in parts of full speed, or what is wrong with the shares.

    `ideal` is the share of all cores, `worst` that of the chunks (of one kind on one node) that have least; a `stretch`
    that is given for the smallest share overrides both (D'Amico et al., eq. 5 and 6; SD-3).
    """
    used: list[int] = []
    full: list[int] = []
    smallest = Fraction(1)
    for placement in allocation:
        if placement.chunk is None or placement.count is None or placement.chunk >= len(request.chunks):
            return f"the chunk on {placement.node} is not one that the job asks for"
        asked = request.chunks[placement.chunk].resources.get("cores", 0)
        cores = placement.resources.get("cores", 0)
        share = share_of(cores, asked, placement.count, malleable)
        if share is None:
            return f"has {cores} of {asked * placement.count} cores on {placement.node}, which is none of its shares"
        smallest = min(smallest, share)
        if asked * placement.count:
            used.append(cores)
            full.append(asked * placement.count)
    if smallest in malleable.stretch:
        return 1 / malleable.stretch[smallest]
    if not full:
        return Fraction(1)
    if malleable.model == "worst":
        return min(Fraction(cores, all_of_it) for cores, all_of_it in zip(used, full, strict=True))
    return Fraction(sum(used), sum(full))


def work_of(segments: Sequence[Segment], rates: Sequence[Fraction]) -> Fraction:
    """Return the seconds at full share that are done in the segments."""
    return sum(
        (rate * (segment.end - segment.start) for rate, segment in zip(rates, segments, strict=True)), Fraction(0)
    )


def is_done(work: Fraction, walltime: int, last: Fraction) -> bool:
    """Return whether the work of a job is done in the last second of its last segment, not before and not after."""
    return walltime <= work < walltime + last


def held_by(segment: Segment) -> dict[tuple[str, str], int]:
    """Return the amounts of a segment by node and resource, in any order of its entries."""
    held: dict[tuple[str, str], int] = {}
    for placement in segment.allocation:
        for resource, amount in placement.resources.items():
            held[placement.node, resource] = held.get((placement.node, resource), 0) + amount
    return held


def counted(allocation: Sequence[Placement], request: Request) -> tuple[Placement, ...] | None:
    """Return a running allocation with the chunks on each node, or None if they are unknown.

    Where the document does not say, all cores of the request must be there, and one kind of chunks have them all.
    """
    if all(placement.chunk is not None for placement in allocation):
        return tuple(allocation)
    kinds = [
        (kind, chunk.resources["cores"]) for kind, chunk in enumerate(request.chunks) if "cores" in chunk.resources
    ]
    cores = [placement.resources.get("cores", 0) for placement in allocation]
    if len(kinds) != 1 or sum(cores) != request.totals()["cores"] or any(on % kinds[0][1] for on in cores):
        return None
    # an entry without cores has no chunks
    return tuple(
        Placement(placement.node, kinds[0][0], on // kinds[0][1], placement.resources)
        for placement, on in zip(allocation, cores, strict=True)
    )


def faults_of_change(seconds: int, fact: Booking, entry: Booking, now: int) -> Iterator[str]:
    """Yield the faults of a plan's change of the share of a running job from `now` on.

    Its work is `seconds` at full share; one that has done more by `now` ends in the next second.
    """
    job = entry.job
    chunks = _changeable(job)
    if chunks is None or job.malleable is None:
        yield "expected the segments and allocation that the instance states, for no plan may change this job"
        return
    if entry.start != fact.start or _until(entry, now) != _until(fact, now):
        yield f"expected the segments up to now, {now}, as the instance states them"
    time = entry.start
    for index, segment in enumerate(entry.segments):
        if segment.start != time:
            yield f"segment {index} starts at {segment.start}, expected {time}, without hole or overlap"
        before = entry.segments[index - 1]
        if index and segment.start >= now and held_by(segment) == held_by(before):
            yield f"segment {index} repeats the one before, expected one segment per change of share"
        time = segment.end
    if time != entry.end:
        yield f"the last segment ends at {time}, the job at {entry.end}"
    rates = []
    for index, segment in enumerate(entry.segments):
        rate = _rate_of_running(segment, chunks, job.steps[0].request, job.malleable)
        if isinstance(rate, str):
            yield f"segment {index} {rate}"
        else:
            rates.append(rate)
    if len(rates) == len(entry.segments):
        work = work_of(entry.segments, rates)
        if not is_done(work, seconds, rates[-1]) and not (work > seconds and entry.end == now + 1):
            yield f"expected {seconds} s of work at full share, its segments do {float(work):.6g} s"


def _changeable(job: Job) -> tuple[Placement, ...] | None:
    """Return the chunks of a running malleable job on its nodes, or None if it is a fact: if its chunks are not known,
    or change, or if the segments that the instance states do not do its work.
    """
    if job.malleable is None or job.is_evolving:
        return None
    request = job.steps[0].request
    allocations = [counted(segment.allocation, request) for segment in job.running]
    first = allocations[0]
    if first is None or any(one is None or _fixed(one) != _fixed(first) for one in allocations):
        return None
    rates = [rate_of(one or (), request, job.malleable) for one in allocations]
    known = [rate for rate in rates if isinstance(rate, Fraction)]
    if len(known) < len(rates) or not is_done(work_of(job.running, known), job.walltime, known[-1]):
        return None
    return first


def _fixed(allocation: Sequence[Placement]) -> dict[str, tuple[int | None, int | None, dict[str, int]]]:
    """Return the parts of an allocation that no share changes, by node: the chunks, and all resources but cores."""
    return {
        placement.node: (
            placement.chunk,
            placement.count,
            {name: amount for name, amount in placement.resources.items() if name != "cores"},
        )
        for placement in allocation
    }


def _until(booking: Booking, now: int) -> list[tuple[int, int, dict[tuple[str, str], int]]]:
    """Return the segments of a job as far as they have passed."""
    return [
        (segment.start, min(segment.end, now), held_by(segment)) for segment in booking.segments if segment.start < now
    ]


def _rate_of_running(
    segment: Segment, chunks: Sequence[Placement], request: Request, malleable: Malleable
) -> Fraction | str:
    """Return the work per second of the known chunks in a segment of a running job, or what is wrong with it."""
    here = {placement.node: dict(placement.resources) for placement in segment.allocation}
    if len(here) != len(segment.allocation) or here.keys() != {placement.node for placement in chunks}:
        return "expected each of its nodes once and no other, for only its share may change"
    for placement in chunks:
        for name in {*here[placement.node], *placement.resources} - {"cores"}:
            has, had = here[placement.node].get(name, 0), placement.resources.get(name, 0)
            if has != had:
                return f"has {has} {name} on {placement.node}, expected {had}, for only cores may change"
    return rate_of([Placement(one.node, one.chunk, one.count, here[one.node]) for one in chunks], request, malleable)
