"""Every job occurs once, and running jobs are repeated unchanged or changed as allowed."""

from collections.abc import Iterator

from cpsched.verify.case import Case, Violation
from cpsched.verify.model import Segment


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
    """Check that a running job does not wait, and that it repeats its times and allocation, or continues from now on
    another share of its cores as a malleable one may.
    """
    for waiting in case.plan.waiting:
        if waiting.job.running:
            yield Violation("running", waiting.id, "the job is running; expected it in jobs, not in the waiting room")
    for entry, faults in case.changes.values():
        for fault in faults:
            yield Violation("running", entry.id, fault)
    for entry in (*case.plan.entries, *case.plan.attempts):
        if (
            entry.is_running
            and entry.id not in case.changes
            and not all(map(_is_as_stated, entry.segments, entry.job.running))
        ):
            message = "expected chunk and count as the instance states them for this running job, or to be left out"
            yield Violation("running", entry.id, message)


def _is_as_stated(said: Segment, stated: Segment) -> bool:
    """Return whether a plan repeats which chunks stand where in a segment of a running job, or leaves that out."""
    if all(one.chunk is None and one.count is None for one in said.allocation):
        return True
    said_of, stated_of = (
        {(one.node, one.chunk): (one.count, dict(one.resources)) for one in segment.allocation}
        for segment in (said, stated)
    )
    return said_of == stated_of and len(said_of) == len(said.allocation)
