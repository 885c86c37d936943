"""Jobs that change while they run: evolving jobs (steps) and malleable jobs (shares of their cores)."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import floor

from cpsched.verify.case import Case, Violation, count_of
from cpsched.verify.model import Booking, Request, Resizable, Segment
from cpsched.verify.shares import is_done, rate_of, work_of


def check_evolving(case: Case) -> Iterator[Violation]:
    """Check that an evolving job has one segment per step, held no longer than allowed, and does not migrate."""
    for booking in case.runs:
        if not booking.job.is_evolving:
            continue
        steps = case.steps_of(booking)
        if len(booking.segments) != len(steps):
            message = f"expected one segment for each of {len(steps)} steps, got {len(booking.segments)}"
            yield Violation("evolving", booking.id, message)
            continue
        yield from _check_lengths(case, booking)
        for index in range(1, len(steps)):
            before, after = booking.segments[index - 1], booking.segments[index]
            yield from _check_kept(booking.id, index, before, after, steps[index - 1].request, steps[index].request)


def _check_lengths(case: Case, booking: Booking) -> Iterator[Violation]:
    """Check that a step lasts its walltime, or up to `expand_limit` times that while the next waits (EVO-6).

    What was cut short was so at any time of a step, but before the end of the last one.
    """
    steps, num_steps = case.steps_of(booking), len(case.steps_of(replace(booking, is_cut=False)))
    for index, (segment, step) in enumerate(zip(booking.segments, steps, strict=True)):
        length = segment.end - segment.start
        limit = Fraction(1) if index == num_steps - 1 else booking.job.expand_limit
        most = None if limit is None else floor(limit * step.walltime)
        least = step.walltime
        if booking.is_cut and index == len(steps) - 1:
            least, most = 1, step.walltime - 1 if index == num_steps - 1 else most
        if length < least or (most is not None and length > most):
            message = f"step {index} lasts {length} s, expected {least}{'' if most is None else f' to {most}'} s"
            yield Violation("evolving", booking.id, message)


def _check_kept(
    name: str, index: int, before: Segment, after: Segment, smaller: Request, larger: Request
) -> Iterator[Violation]:
    """Check that a growing job keeps the nodes it has, a shrinking job keeps some of those it had (EVO-4b)."""
    had = {placement.node for placement in before.allocation}
    has = {placement.node for placement in after.allocation}
    old, new = smaller.totals(), larger.totals()
    names = {*old, *new}
    grows = any(new.get(one, 0) > old.get(one, 0) for one in names)
    shrinks = any(new.get(one, 0) < old.get(one, 0) for one in names)
    if grows and not shrinks and not had <= has:
        message = f"step {index} grows, expected it to keep {_some(had - has)}"
    elif shrinks and not grows and not has <= had:
        message = f"step {index} shrinks, expected only nodes that it had, got {_some(has - had)}"
    elif grows == shrinks and not (had <= has or has <= had):
        message = f"step {index} expected to keep {_some(had - has)} or to take no new node, got {_some(has - had)}"
    else:
        return
    yield Violation("evolving", name, message)


def _some(nodes: set[str]) -> str:
    """Name the first of some nodes."""
    first = min(nodes)
    return first if len(nodes) == 1 else f"{first} and {len(nodes) - 1} more nodes"


def check_malleable(case: Case) -> Iterator[Violation]:
    """Check that a malleable job runs on allowed shares of its cores, changes nothing else, and does its work."""
    for booking in case.runs:
        job = booking.job
        if case.is_resizable(job) and job.resizable is not None:
            yield from _check_sizes(booking, job.resizable)
        if job.malleable is None or job.is_evolving:
            continue
        request = job.steps[0].request
        shapes = [_shape(segment) for segment in booking.segments]
        if any(shape != shapes[0] for shape in shapes):
            yield Violation("malleable", booking.id, "expected the same chunks on the same nodes in all segments")
        for index in range(1, len(booking.segments)):
            if booking.segments[index].allocation == booking.segments[index - 1].allocation:
                message = f"segment {index} repeats the one before, expected one segment per change of share"
                yield Violation("malleable", booking.id, message)
        rates: list[Fraction] = []
        for segment in booking.segments:
            rate = rate_of(segment.allocation, request, job.malleable)
            if isinstance(rate, str):
                yield Violation("malleable", booking.id, rate)
            else:
                rates.append(rate)
        if len(rates) == len(booking.segments):
            yield from _check_work(case, booking, rates)


def _check_sizes(booking: Booking, resizable: Resizable) -> Iterator[Violation]:
    """Check that each segment has one of the sizes of the job, the first that which it started by, each other another
    one, not too soon; that it keeps what it had, or some of it; and that its work is done in its last second: on each
    size as fast as the walltimes say, and nothing for some seconds after a change.
    """
    walltime, name = booking.job.usual or booking.job.walltime, booking.id
    seconds = walltime if resizable.runtime is None else min(walltime, resizable.runtime)
    counts = [count_of(segment) for segment in booking.segments]
    if any(count not in resizable.sizes for count in counts):
        yield Violation("malleable", name, f"has {counts} chunks, expected sizes of {sorted(resizable.sizes)}")
        return
    if resizable.sizes[counts[0]].request != booking.job.steps[0].request:
        yield Violation(
            "malleable", name, f"starts with {counts[0]} chunks, which is not the alternative that it names"
        )
    work, last = Fraction(0), Fraction(0)
    for index, segment in enumerate(booking.segments):
        rate, length = Fraction(walltime, resizable.sizes[counts[index]].walltime), segment.end - segment.start
        useful = max(0, length - (resizable.cost if index else 0))
        work, last = work + rate * useful, rate * min(1, useful)
        if index + 1 < len(counts) and length < resizable.interval:
            yield Violation("malleable", name, f"changes after {length} s, expected {resizable.interval} s or more")
        if index:
            had, has = _shape(booking.segments[index - 1]), _shape(segment)
            if counts[index] == counts[index - 1]:
                yield Violation("malleable", name, f"segment {index} has as many chunks as the one before")
            small, large = (had, has) if counts[index] > counts[index - 1] else (has, had)
            if any(count > large.get(place, 0) for place, count in small.items()):
                yield Violation("malleable", name, f"segment {index} moves chunks, expected more or fewer of them only")
    if work >= seconds if booking.is_cut else not seconds <= work < seconds + last:
        expected = f"expected {'less than ' if booking.is_cut else ''}{seconds} s of work by its own request"
        yield Violation("malleable", name, f"{expected}, its segments do {float(work):.6g} s")


def _shape(segment: Segment) -> dict[tuple[str, int | None], int]:
    """Return the number of chunks of each kind on each node."""
    shape: dict[tuple[str, int | None], int] = {}
    for placement in segment.allocation:
        key = (placement.node, placement.chunk)
        shape[key] = shape.get(key, 0) + (placement.count or 0)
    return shape


def _check_work(case: Case, booking: Booking, rates: list[Fraction]) -> Iterator[Violation]:
    """Check that the work of all segments is the walltime at full share: done in the last second, not before.

    In a record it is the runtime if that is less; what was cut short has not done it all.
    """
    work = work_of(booking.segments, rates)
    seconds = case.seconds_of(booking.job)
    if work >= seconds if booking.is_cut else not is_done(work, seconds, rates[-1]):
        expected = f"expected {'less than ' if booking.is_cut else ''}{seconds} s of work at full share"
        yield Violation("malleable", booking.id, f"{expected}, its segments do {float(work):.6g} s")
