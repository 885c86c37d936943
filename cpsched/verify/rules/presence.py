"""Every job stands once, and running jobs stand as they are."""

from __future__ import annotations

from collections.abc import Iterator

from cpsched.verify.case import Case
from cpsched.verify.model import Segment
from cpsched.verify.violation import Violation

__all__ = ["check_presence", "check_running"]


def check_presence(case: Case) -> Iterator[Violation]:
    """Every job of the instance stands exactly once, in ``jobs`` or in the ``waiting_room``, and no other job does."""
    mentions = case.plan.mentions
    for name in case.instance.jobs:
        times = mentions.get(name, 0)
        if times != 1:
            got = "it is missing" if times == 0 else f"it stands {times} times"
            yield Violation("presence", name, f"expected the job once, in jobs or in the waiting room, but {got}")
    for name in mentions:
        if name not in case.instance.jobs:
            hint = "; an array stands by its elements" if name in case.instance.members else ""
            yield Violation("presence", name, f"the instance has no such job{hint}")


def check_running(case: Case) -> Iterator[Violation]:
    """Check that a running job repeats its times and allocation, without ``chunk`` and ``count``, and does not wait."""
    for waiting in case.plan.waiting:
        if waiting.job.running:
            yield Violation("running", waiting.id, "the job is running; expected it in jobs, not in the waiting room")
    facts = {booking.id: booking for booking in case.running}
    for entry in case.plan.entries:
        if not entry.is_running:
            continue
        fact = facts[entry.id]
        if (entry.start, entry.end) != (fact.start, fact.end):
            message = f"the job runs from {fact.start} to {fact.end}, the plan says {entry.start} to {entry.end}"
            yield Violation("running", entry.id, message)
        if [_content(segment) for segment in entry.segments] != [_content(segment) for segment in fact.segments]:
            yield Violation("running", entry.id, "expected the segments and allocation that the instance states")
        placements = (placement for segment in entry.segments for placement in segment.allocation)
        if any(placement.chunk is not None or placement.count is not None for placement in placements):
            yield Violation("running", entry.id, "expected chunk and count to be left out of a running allocation")


def _content(segment: Segment) -> tuple[int, int, dict[tuple[str, str], int]]:
    """Return a segment's times and what it holds by node and resource, whatever the order it is written in."""
    held: dict[tuple[str, str], int] = {}
    for placement in segment.allocation:
        for resource, amount in placement.resources.items():
            held[placement.node, resource] = held.get((placement.node, resource), 0) + amount
    return segment.start, segment.end, held
