"""When jobs may run: segments, walltime, starts, ends and dependencies."""

from collections.abc import Iterator

from cpsched.verify.case import Case, Violation
from cpsched.verify.model import Dependency, Job


def check_segments(case: Case) -> Iterator[Violation]:
    """Check that the segments fill the job's time in order and without holes; a rigid job has one."""
    for booking in case.runs:
        time = booking.start
        for index, segment in enumerate(booking.segments):
            if segment.start != time:
                message = f"segment {index} starts at {segment.start}, expected {time}, without hole or overlap"
                yield Violation("segments", booking.id, message)
            time = segment.end
        if time != booking.end:
            yield Violation("segments", booking.id, f"the last segment ends at {time}, the job at {booking.end}")
        job = booking.job
        is_rigid = not job.is_evolving and job.malleable is None and not case.is_resizable(job)
        if is_rigid and len(booking.segments) != 1:
            message = f"expected one segment of a rigid job, got {len(booking.segments)}"
            yield Violation("segments", booking.id, message)


def check_walltime(case: Case) -> Iterator[Violation]:
    """Check that a rigid job is booked for its walltime; in a record its runtime if less, slowed down, or cut short."""
    for booking in case.runs:
        job = booking.job
        if job.is_evolving or job.malleable is not None or case.is_resizable(job):
            continue
        length, seconds = booking.end - booking.start, case.seconds_left(booking)
        reason = "its walltime" if seconds == job.walltime else "its runtime"
        if booking.is_cut and case.cause_of(booking) == "walltime":
            continue
        if booking.is_cut and length >= seconds:
            yield Violation("walltime", booking.id, f"expected less than {seconds} s, {reason}, got {length} s")
        if not booking.is_cut and length != seconds:
            yield Violation("walltime", booking.id, f"expected {seconds} s, {reason}, got {length} s")


def check_queue(case: Case) -> Iterator[Violation]:
    """Check that a job whose walltime exceeds its queue's ``max_walltime`` is not planned."""
    for booking in case.runs:
        if case.instance.is_beyond_queue(booking.job):
            message = f"its walltime of {booking.job.walltime} s is more than its queue {booking.job.queue} accepts"
            yield Violation("queue", booking.id, message)


def check_earliest_start(case: Case) -> Iterator[Violation]:
    """Check that a waiting job starts at ``max(now, submit, not_before)`` or later."""
    now = case.instance.now
    for booking in case.runs:
        not_before = now if booking.job.not_before is None else booking.job.not_before
        earliest = max(now, booking.job.submit, not_before)
        if booking.start < earliest:
            message = f"starts at {booking.start}, expected {earliest} or later (now, submit, not_before)"
            yield Violation("earliest_start", booking.id, message)


def check_start_at(case: Case) -> Iterator[Violation]:
    """Check that a job with ``start_at`` starts exactly there."""
    for booking in case.runs:
        if booking.job.start_at is not None and booking.start != booking.job.start_at:
            message = f"starts at {booking.start}, expected exactly {booking.job.start_at}"
            yield Violation("start_at", booking.id, message)


def check_deadline(case: Case) -> Iterator[Violation]:
    """Check that a job with a ``deadline`` ends by then; a running one is not changed so that it ends after it."""
    for booking in (*case.runs, *case.changed):
        if booking.job.deadline is None:
            continue
        latest = max(booking.job.deadline, case.facts[booking.id].end if booking.is_running else booking.start)
        if booking.end > latest:
            yield Violation("deadline", booking.id, f"ends at {booking.end}, expected {latest} or earlier")


def check_max_wait(case: Case) -> Iterator[Violation]:
    """Check that a job of a queue with a hard ``max_wait`` starts before it is overdue, if it is not already."""
    for booking in case.runs:
        latest = case.instance.must_start_by(booking.job)
        is_first = booking.start == case.started[booking.id]
        if latest is not None and is_first and booking.start > latest:
            message = f"starts at {booking.start}, expected {latest} or earlier (max_wait of its queue)"
            yield Violation("max_wait", booking.id, message)


def check_dependencies(case: Case) -> Iterator[Violation]:
    """Check that a job starts `delay` seconds after those it awaits have started (``after``) or ended (all others), and
    at most `max_delay` seconds after that.
    """
    earliest: dict[Dependency, tuple[int, str] | None] = {}
    for booking in case.runs:
        for dependency in booking.job.after:
            if dependency not in earliest:
                earliest[dependency] = _earliest(case, dependency)
            bound = earliest[dependency]
            if bound is None:
                message = f"waits for {dependency.job} ({dependency.type}), which has no start in this plan"
                yield Violation("dependency", booking.id, message)
            elif booking.start < bound[0]:
                message = (
                    f"starts at {booking.start}, expected {bound[0]} or later: "
                    f"{dependency.type} {bound[1]}, delay {dependency.delay} s"
                )
                yield Violation("dependency", booking.id, message)
            elif dependency.max_delay is not None and case.started[booking.id] == booking.start:
                latest = bound[0] - dependency.delay + dependency.max_delay
                if booking.start > latest:
                    message = (
                        f"starts at {booking.start}, expected {latest} or earlier: "
                        f"{dependency.type} {bound[1]}, max_delay {dependency.max_delay} s"
                    )
                    yield Violation("dependency", booking.id, message)


def released_at(case: Case, job: Job) -> int | None:
    """Return the first start that a job's dependencies allow (`now` without any), None if one has no start."""
    bounds = [_earliest(case, dependency) for dependency in job.after]
    known = [bound[0] for bound in bounds if bound is not None]
    return max([case.instance.now, *known]) if len(known) == len(bounds) else None


def _earliest(case: Case, dependency: Dependency) -> tuple[int, str] | None:
    """Return the first start that a dependency allows and the job that decides it, None if one of them has no start."""
    moments: list[tuple[int, str]] = []
    for name in case.instance.members[dependency.job]:
        if name not in (case.started if dependency.type == "after" else case.by_id):
            return None
        moment = case.started[name] if dependency.type == "after" else case.by_id[name].end
        moments.append((moment + dependency.delay, name))
    return max(moments)
