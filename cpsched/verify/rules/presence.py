"""Every job occurs once, and running jobs are repeated unchanged or changed as allowed."""

from __future__ import annotations

from collections.abc import Iterator

from cpsched.verify.case import Case
from cpsched.verify.violation import Violation

__all__ = ["check_presence", "check_running"]


def check_presence(case: Case) -> Iterator[Violation]:
    """Every job of the instance occurs exactly once, in ``jobs`` or in the ``waiting_room``, and no other job does."""
    mentions = case.plan.mentions
    for name in case.instance.jobs:
        times = mentions.get(name, 0)
        if times != 1:
            got = "it is missing" if times == 0 else f"it occurs {times} times"
            yield Violation("presence", name, f"expected the job once, in jobs or in the waiting room, but {got}")
    for name in mentions:
        if name not in case.instance.jobs:
            hint = "; the plan must have the elements of an array" if name in case.instance.members else ""
            yield Violation("presence", name or "''", f"the instance has no such job{hint}")


def check_running(case: Case) -> Iterator[Violation]:
    """Check that a running job does not wait, and that it repeats its times and allocation without ``chunk`` and
    ``count``, or goes on from now on another share of its cores as a malleable one may.
    """
    for waiting in case.plan.waiting:
        if waiting.job.running:
            yield Violation("running", waiting.id, "the job is running; expected it in jobs, not in the waiting room")
    for entry, faults in case.changes.values():
        for fault in faults:
            yield Violation("running", entry.id, fault)
    for entry in (*case.plan.entries, *case.plan.attempts):
        placements = (placement for segment in entry.segments for placement in segment.allocation)
        if entry.is_running and any(one.chunk is not None or one.count is not None for one in placements):
            yield Violation("running", entry.id, "expected chunk and count to be left out of a running allocation")
