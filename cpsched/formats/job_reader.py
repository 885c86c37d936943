"""Jobs of an instance document: from models to domain values, and what one job alone can have wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from cpsched.domain import (
    Amounts,
    Dependency,
    DependencyType,
    FrozenMap,
    Job,
    Malleability,
    Place,
    PromisedStart,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
    share_of,
    time_on,
)
from cpsched.errors import SyntaxFault
from cpsched.formats.faults import Location, shown
from cpsched.formats.instance_model import JobModel, MalleableModel, PlacementModel, RunningModel
from cpsched.formats.notations import MAX_NAME, parse_indices
from cpsched.formats.reading import Reading, read_allocation

__all__ = ["read_job"]

#: A share as a key: a number as JSON or Python writes it.
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")


def read_job(reading: Reading, location: Location, model: JobModel) -> Job | None:
    """Return the job at `location`, or None if its faults leave none."""
    work = _read_steps(reading, location, model)
    if work is None:
        return None
    steps, licenses = work
    if model.expected is not None and model.expected > steps[0].walltime:
        message = f"Expected at most the walltime, {steps[0].walltime}, got {model.expected}"
        reading.faults.add((*location, "expected"), message)
    malleability = _read_malleable(reading, (*location, "malleable"), model.malleable)
    return Job(
        id=model.id,
        user=model.user,
        group=model.group,
        queue=model.queue,
        project=model.project,
        submit=model.submit,
        steps=steps,
        licenses=licenses,
        priority=model.priority,
        weight=model.weight,
        not_before=model.not_before,
        start_at=model.start_at,
        deadline=model.deadline,
        after=tuple(Dependency(job=d.job, type=DependencyType(d.type), delay=d.delay) for d in model.after),
        told=None if model.told is None else PromisedStart(start=model.told.start, price=model.told.price),
        array=_read_array(reading, location, model),
        expand_limit=model.expand_limit,
        malleability=malleability,
        running=_read_running(reading, location, model, steps, malleability),
        expected=model.expected,
        runtime=model.runtime,
        reservation=model.reservation,
    )


def _read_steps(reading: Reading, location: Location, model: JobModel) -> tuple[tuple[Step, ...], Amounts] | None:
    """Return the steps, one for a rigid job, and the licences, on which all steps agree."""
    if model.steps is None:
        if model.walltime is None or model.request is None:
            raise ValueError("a job model without steps has walltime and request")
        works = [((*location, "request"), model.walltime, model.request)]
    else:
        works = [
            ((*location, "steps", index, "request"), step.walltime, step.request)
            for index, step in enumerate(model.steps)
        ]
    steps: list[Step] = []
    agreed: tuple[Place, Amounts] | None = None
    for where, walltime, written in works:
        read = reading.request(where, written, model.place, model.licenses)
        if read is None:
            continue
        request, licenses = read
        if agreed is not None and agreed != (request.place, licenses):
            reading.faults.add(where, "Expected the same place and licences in every step")
        agreed = agreed or (request.place, licenses)
        steps.append(Step(walltime=walltime, request=request))
    return (tuple(steps), agreed[1]) if agreed is not None and len(steps) == len(works) else None


def _read_array(reading: Reading, location: Location, model: JobModel) -> tuple[int, ...] | None:
    if model.array is None:
        return None
    try:
        indices = parse_indices(model.array.indices, limit=reading.elements_left)
    except SyntaxFault as error:
        reading.faults.add_syntax((*location, "array", "indices"), error)
        return None
    reading.elements_left -= len(indices)
    if len(f"{model.id}[{indices[-1]}]") > MAX_NAME:
        reading.faults.add((*location, "id"), f"Expected an id whose elements have at most {MAX_NAME} characters")
    return indices


def _read_malleable(reading: Reading, location: Location, model: MalleableModel | None) -> Malleability | None:
    if model is None:
        return None
    shares = set(model.shares)
    if len(shares) < len(model.shares):
        reading.faults.add((*location, "shares"), "Expected every share once")
    stretch: dict[float, float] = {}
    for key, factor in model.stretch.items():
        share = _number(key)
        if share not in shares:
            listed = ", ".join(map(str, model.shares[:10]))
            reading.faults.add((*location, "stretch", key), f"Expected one of the shares {listed}; got {shown(key)}")
        elif share in stretch:
            reading.faults.add((*location, "stretch", key), "Expected every share once")
        else:
            stretch[share] = factor
    descending = tuple(sorted(model.shares, reverse=True))
    return Malleability(shares=descending, model=RuntimeModel(model.model), stretch=FrozenMap(stretch))


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _read_running(
    reading: Reading,
    location: Location,
    model: JobModel,
    steps: Sequence[Step],
    malleability: Malleability | None,
) -> Running | None:
    """Return the segments of a running job.

    A job that should have ended by `now` ends one second from now, with a warning (BRIDI-11).
    """
    running = model.running
    if running is None:
        return None
    where = (*location, "running")
    if running.start > reading.now:
        reading.faults.add((*where, "start"), f"Expected a start not after now = {reading.now}, got {running.start}")
        return None
    if not _check_chunks(reading, where, running, steps, malleability):
        return None
    segments = _read_segments(reading, where, running, steps, malleability)
    if segments and segments[-1].end <= reading.now:
        ended, last = segments[-1].end, segments[-1]
        segments[-1] = Segment(start=last.start, end=reading.now + 1, allocation=last.allocation)
        message = f"should have ended at {ended}, now is {reading.now}: taken to end at {reading.now + 1}"
        reading.on_warning(reading.faults.fault(where, message))
    return Running(start=running.start, segments=tuple(segments))


def _check_chunks(
    reading: Reading, where: Location, running: RunningModel, steps: Sequence[Step], malleability: Malleability | None
) -> bool:
    """Note what a running job states wrongly of its chunks; return whether all is right.

    Of a malleable job all chunks are stated, each on a share of its cores: that is what a plan changes. What another
    job holds is a fact, which need not be what it asked for; but the kinds of its chunks are those of its request.
    """
    allocations = [((*where, "allocation"), running.allocation)] if running.allocation is not None else []
    for index, segment in enumerate(running.segments or ()):
        allocations.append(((*where, "segments", index, "allocation"), segment.allocation))
    is_right = True

    def refuse(at: Location, message: str) -> None:
        nonlocal is_right
        reading.faults.add(at, message)
        is_right = False

    stands: dict[tuple[str, int], int | None] | None = None
    for place, (at, models) in enumerate(allocations):
        stated = {(held.node, held.chunk): held.count for held in models if held.chunk is not None}
        among = steps[place : place + 1] if len(allocations) == len(steps) else steps
        num_kinds = max(len(step.request.chunks) for step in among)
        for index, held in enumerate(models if stated else ()):
            if held.chunk is None:
                refuse((*at, index), "Expected chunk and count as on its other nodes, or on none of them")
            elif held.chunk >= num_kinds:
                refuse((*at, index, "chunk"), f"Expected a kind of chunks from 0 to {num_kinds - 1}, got {held.chunk}")
            elif malleability is not None:
                _check_share((*at, index), held, steps[0].request, malleability, refuse)
        if malleability is None:
            continue
        for kind, chunk in enumerate(steps[0].request.chunks if stated and is_right else ()):
            placed = sum(held.count or 0 for held in models if held.chunk == kind)
            if placed != chunk.count:
                refuse(at, f"Expected {chunk.count} chunks of kind {kind} in all, got {placed}")
        if stands is not None and stated != stands and is_right:
            refuse(at, "Expected the same chunks on the same nodes in all segments: only the share may change")
        stands = stated if stands is None else stands
    return is_right


def _check_share(
    at: Location,
    held: PlacementModel,
    request: Request,
    malleability: Malleability,
    refuse: Callable[[Location, str], None],
) -> None:
    """Refuse chunks of a malleable job that run on none of its shares."""
    chunk, count = held.chunk or 0, held.count or 0
    asked, cores = request.chunks[chunk].resources.get("cores", 0), held.resources.get("cores", 0)
    if share_of(malleability, cores, asked, count) is None:
        shares = ", ".join(map(str, malleability.shares[:10]))
        expected = f"Expected all {asked * count} cores or a share of them ({shares}), at least one per chunk"
        refuse((*at, "resources"), f"{expected}; got {cores}")


def _read_segments(
    reading: Reading, where: Location, running: RunningModel, steps: Sequence[Step], malleability: Malleability | None
) -> list[Segment]:
    if running.allocation is not None:
        allocation = read_allocation(reading, (*where, "allocation"), running.allocation)
        seconds = sum(step.walltime for step in steps)
        if malleability is not None:
            seconds = time_on(seconds, steps[0].request, malleability, allocation)
        return [Segment(start=running.start, end=running.start + seconds, allocation=allocation)]
    segments: list[Segment] = []
    before = running.start
    for index, segment in enumerate(running.segments or ()):
        at = (*where, "segments", index)
        if segment.start != before:
            reading.faults.add((*at, "start"), f"Expected {before}, where the one before ends, got {segment.start}")
        if segment.end <= segment.start:
            reading.faults.add((*at, "end"), f"Expected an end > {segment.start}, got {segment.end}")
        allocation = read_allocation(reading, (*at, "allocation"), segment.allocation)
        segments.append(Segment(start=segment.start, end=segment.end, allocation=allocation))
        before = segment.end
    return segments
