"""Jobs that are stopped for others: by whom, how often, and what is left of their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cpsched.verify.case import Case
from cpsched.verify.model import Booking, Job, Preemption
from cpsched.verify.violation import Violation


def check_stops(case: Case) -> Iterator[Violation]:
    """Check that what no outage and no walltime has cut short was stopped for a job that may do so, which starts then
    on one of its nodes or licences; not too early, not too often, and after the notice.
    """
    preemption, number = case.instance.preemption, Counter[str]()
    starts: dict[int, list[Booking]] = {}
    for booking in case.runs:
        starts.setdefault(booking.start, []).append(booking)
    for attempt in case.plan.attempts:
        if case.cause_of(attempt) != "stop":
            continue
        number[attempt.id] += 1
        if preemption is None or attempt.job.preemptible is None:
            yield Violation("stop", attempt.id, f"is stopped at {attempt.end}, but may not be stopped")
            continue
        ran = attempt.end - attempt.start
        if ran < preemption.exempt:
            yield Violation("stop", attempt.id, f"is stopped after {ran} s, expected {preemption.exempt} s or more")
        if preemption.stops is not None and number[attempt.id] == preemption.stops + 1:
            yield Violation("stop", attempt.id, f"is stopped more often than {preemption.stops} times")
        if not any(_stops(case, preemption, one, attempt) for one in starts.get(attempt.end, ())):
            message = f"is stopped at {attempt.end}, when no job starts in its place that may stop it"
            yield Violation("stop", attempt.id, message)
        if preemption.notice and not any(
            _has_told(case, preemption, name, job, attempt) for name, job in case.instance.jobs.items()
        ):
            message = f"is stopped at {attempt.end}, but no job that may stop it waited {preemption.notice} s before"
            yield Violation("stop", attempt.id, message)


def _is_above(case: Case, preemption: Preemption, job: Job, other: Job) -> bool:
    """Tell whether a job may stop another one, by their queues or priorities."""
    if preemption.queues:
        return other.queue in preemption.queues.get(job.queue or "", ())
    return case.instance.priority(job) > case.instance.priority(other)


def _has_told(case: Case, preemption: Preemption, name: str, job: Job, attempt: Booking) -> bool:
    """Tell whether a job waited when another one had to be told of its stop, and has not started before that."""
    waits = max(job.submit, case.instance.now) <= attempt.end - preemption.notice
    start = case.by_id[name].start if name in case.by_id else attempt.end
    return waits and start >= attempt.end and not job.running and _is_above(case, preemption, job, attempt.job)


def _stops(case: Case, preemption: Preemption, booking: Booking, attempt: Booking) -> bool:
    """Tell whether a job that starts can be the one for which another one was stopped."""
    job, other = booking.job, attempt.job
    held = {placement.node for placement in attempt.segments[-1].allocation}
    takes = {placement.node for placement in booking.segments[0].allocation}
    is_in_place = not (held.isdisjoint(takes) and job.licenses.keys().isdisjoint(other.licenses))
    return is_in_place and _is_above(case, preemption, job, other)
