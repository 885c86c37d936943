"""Malleable jobs: on which share of their cores they run, how fast that is, and whether a running one may change."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from cpsched.verify.model import Booking, Job, Malleable, Placement, Request, Segment

#: What chunks have, by node and kind.
_Held = dict[tuple[str, int | None], Mapping[str, int]]


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


def faults_of_change(seconds: int, entry: Booking, now: int) -> Iterator[str]:
    """Yield what is wrong with the way in which a plan changes the share of a running job from `now` on.

    Its work is `seconds` at full share; one that has done more by `now` ends in the next second.
    """
    job = entry.job
    stated = changeable(job)
    if stated is None or job.malleable is None:
        yield "expected the segments and allocation that the instance states, for no plan may change this job"
        return
    segments: list[Segment] = []
    is_stated = job.running[0].allocation[0].chunk is not None
    for index, segment in enumerate(entry.segments):
        allocation = _with_chunks(segment, stated[0].allocation, is_stated=is_stated)
        if isinstance(allocation, str):
            yield f"segment {index} {allocation}"
        else:
            segments.append(segment._replace(allocation=allocation))
    if len(segments) < len(entry.segments):
        return
    if entry.start != stated[0].start or _until(segments, now) != _until(stated, now):
        yield f"expected the segments up to now, {now}, as the instance states them"
    time = entry.start
    for index, segment in enumerate(segments):
        if segment.start != time:
            yield f"segment {index} starts at {segment.start}, expected {time}, without hole or overlap"
        if index and segment.start >= now and _chunks(segment) == _chunks(segments[index - 1]):
            yield f"segment {index} repeats the one before, expected one segment per change of share"
        time = segment.end
    if time != entry.end:
        yield f"the last segment ends at {time}, the job at {entry.end}"
    rates = []
    for index, segment in enumerate(segments):
        rate = rate_of(segment.allocation, job.steps[0].request, job.malleable)
        if isinstance(rate, str):
            yield f"segment {index} {rate}"
        else:
            rates.append(rate)
    if len(rates) == len(segments):
        work = work_of(segments, rates)
        if not is_done(work, seconds, rates[-1]) and not (work > seconds and entry.end == now + 1):
            yield f"expected {seconds} s of work at full share, its segments do {float(work):.6g} s"


def changeable(job: Job) -> list[Segment] | None:
    """Return the segments of a running malleable job with its chunks, or None if it is a fact: if its chunks are not
    known, or change, or if the segments that the instance states do not do its work.
    """
    if job.malleable is None or job.is_evolving:
        return None
    request = job.steps[0].request
    segments: list[Segment] = []
    rates: list[Fraction] = []
    for segment in job.running:
        allocation = counted(segment.allocation, request)
        rate = None if allocation is None else rate_of(allocation, request, job.malleable)
        if allocation is None or not isinstance(rate, Fraction):
            return None
        segments.append(segment._replace(allocation=allocation))
        rates.append(rate)
    if any(_fixed(one.allocation) != _fixed(segments[0].allocation) for one in segments):
        return None
    return segments if is_done(work_of(segments, rates), job.walltime, rates[-1]) else None


def _fixed(allocation: Sequence[Placement]) -> dict[tuple[str, int | None], tuple[int | None, dict[str, int]]]:
    """Return the parts that no share changes, by node and kind of chunks: their number, and all resources but cores."""
    return {
        (placement.node, placement.chunk): (
            placement.count,
            {name: amount for name, amount in placement.resources.items() if name != "cores"},
        )
        for placement in allocation
    }


def _chunks(segment: Segment) -> _Held:
    """Return the amounts that the chunks of each kind have on each node."""
    return {(placement.node, placement.chunk): placement.resources for placement in segment.allocation}


def _until(segments: Sequence[Segment], now: int) -> list[tuple[int, int, _Held]]:
    """Return segments of a job as far as they have passed."""
    return [(one.start, min(one.end, now), _chunks(one)) for one in segments if one.start < now]


def _with_chunks(segment: Segment, chunks: Sequence[Placement], *, is_stated: bool) -> tuple[Placement, ...] | str:
    """Return the amounts of the known chunks of a running job in a segment of a plan, or the fault of the segment.

    The plan states which chunks these are only where the instance does, and may leave that out where each node has
    chunks of one kind only.
    """
    said = segment.allocation
    if not all(one.chunk is None and one.count is None for one in said):
        if not is_stated:
            return "expected chunk and count to be left out, as in the instance"
    else:
        kinds = Counter(one.node for one in chunks)
        if max(kinds.values()) > 1:
            return "expected chunk and count, for the job has chunks of several kinds on a node"
        known = {one.node: one for one in chunks}
        said = tuple(replace(known.get(one.node, one), resources=one.resources) for one in said)
    here, there = _fixed(said), _fixed(chunks)
    if len(here) != len(said) or here.keys() != there.keys():
        return "expected its nodes and chunks, each once and no others, for only its share may change"
    for (node, kind), (count, others) in there.items():
        has_count, has_others = here[node, kind]
        if has_count != count:
            return f"has {has_count} chunks of kind {kind} on {node}, expected {count}, for only its share may change"
        for name in sorted({*has_others, *others}):
            has, had = has_others.get(name, 0), others.get(name, 0)
            if has != had:
                return f"has {has} {name} on {node}, expected {had}, for only cores may change"
    return said
