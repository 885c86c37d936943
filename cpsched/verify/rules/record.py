"""Records of what happened: outages, and the jobs that they cut short."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping

from cpsched.verify.case import Case, Violation
from cpsched.verify.model import Booking, Job, Preemption
from cpsched.verify.shares import held_by


def check_record(case: Case) -> Iterator[Violation]:
    """Check that only a record has attempts, that it proves no bound, and that all in it can be judged."""
    if not case.plan.is_record:
        for attempt in case.plan.attempts:
            if case.instance.preemption is None or not attempt.is_running:
                yield Violation("record", "attempts", "expected in a plan running jobs only, which are stopped")
                return
        return
    if case.plan.score.get("bound") is not None:
        yield Violation("record", "objective.bound", "expected null, for a record proves nothing")
    cut = {attempt.id for attempt in case.plan.attempts if attempt.is_running}
    for name, job in case.instance.jobs.items():
        if job.running and job.runtime is not None and (job.is_evolving or (job.malleable and name in cut)):
            kind = "evolving" if job.is_evolving else "malleable, cut short"
            yield Violation("record", name, f"cannot be judged: a running job with a runtime that is {kind}")


def check_outages(case: Case) -> Iterator[Violation]:
    """Check that from now on nothing in a record runs on a node that is down."""
    if not case.plan.is_record:
        return
    for outage in case.instance.outages:
        begin = max(outage.start, case.instance.now)
        for node in outage.nodes:
            for use in case.job_uses.get(node, ()):
                if use.start < outage.end and use.end > begin:
                    message = (
                        f"{use.owner} runs from {use.start} to {use.end}, but the node is down from {outage.start}"
                    )
                    yield Violation("outage", node, f"{message} to {outage.end}")


def check_attempts(case: Case) -> Iterator[Violation]:
    """Check that an attempt ends when its node fails or it is rightly stopped (`check_stops`), before the next."""
    yield from check_stops(case)
    failures: dict[str, set[int]] = {}
    for outage in case.instance.outages:
        for node in outage.nodes:
            failures.setdefault(node, set()).add(outage.start)
    starts: dict[str, list[int]] = {}
    for booking in sorted((*case.plan.attempts, *case.planned), key=lambda booking: booking.start):
        starts.setdefault(booking.id, []).append(booking.start)
    for attempt in case.plan.attempts:
        yield from _check_attempt(case, attempt, failures, starts[attempt.id])
        if attempt.is_running:
            yield from _check_first(case, attempt)


def _check_attempt(
    case: Case, attempt: Booking, failures: Mapping[str, set[int]], starts: list[int]
) -> Iterator[Violation]:
    """Check when an attempt ends."""
    nodes = (placement.node for placement in attempt.segments[-1].allocation)
    is_outage = case.cause_of(attempt) == "outage"
    is_failure = any(attempt.end in failures.get(node, ()) for node in nodes)
    if is_outage and not is_failure and not _is_stuck(case, attempt):
        yield Violation("attempt", attempt.id, f"ends at {attempt.end}, when none of its nodes fails")
    following = bisect_right(starts, attempt.start)
    if starts[following - 2 : following] == [attempt.start] * 2:
        yield Violation("attempt", attempt.id, f"is started twice at {attempt.start}")
    if following < len(starts) and starts[following] < attempt.end:
        message = f"ends at {attempt.end}, but is started again at {starts[following]}"
        yield Violation("attempt", attempt.id, message)


def _is_stuck(case: Case, attempt: Booking) -> bool:
    """Return whether an evolving job has done a step, before a larger one, and nodes were out while it ran."""
    done, steps = len(attempt.segments), attempt.job.steps
    if not attempt.job.is_evolving or done >= len(steps):
        return False
    had, wanted = steps[done - 1].request.totals(), steps[done].request.totals()
    is_larger = any(amount > had.get(name, 0) for name, amount in wanted.items())
    was_out = any(one.start <= attempt.end and attempt.start < one.end for one in case.instance.outages)
    return is_larger and was_out and attempt.end - attempt.segments[-1].start >= steps[done - 1].walltime


def _check_first(case: Case, attempt: Booking) -> Iterator[Violation]:
    """Check that the first attempt of a running job is what the instance states, until it is cut short after now."""
    stated = case.stated(attempt.job)
    before = [one._replace(end=min(one.end, attempt.end)) for one in stated if one.start < attempt.end]
    said = [(one.start, one.end, held_by(one)) for one in attempt.segments]
    if said != [(one.start, one.end, held_by(one)) for one in before]:
        yield Violation("attempt", attempt.id, "expected its segments as the instance states them, up to its end")
    first = case.instance.now + (case.cause_of(attempt) == "outage")
    if not first <= attempt.end < stated[-1].end:
        message = f"ends at {attempt.end}, expected an end from {first} on and before {stated[-1].end}, when it is done"
        yield Violation("attempt", attempt.id, message)


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
        if case.is_suspended(attempt) and case.failure_after(attempt) is None:
            following, had = case.next_run(attempt), held_by(attempt.segments[-1])
            if following is None or any(held_by(one) != had for one in following.segments):
                message = f"is suspended at {attempt.end}, but does not continue with what it had"
                yield Violation("stop", attempt.id, message)
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
