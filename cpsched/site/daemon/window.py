"""The window that is planned: what a snapshot says, seen from the second at which the plan will be there."""

from dataclasses import dataclass, replace

from cpsched.domain import Instance, Job, PromisedStart, Running
from cpsched.forecast import Kind, RuntimeLearner
from cpsched.site.bridge import Snapshot, without_awaited
from cpsched.site.daemon.standing import Standing, standings
from cpsched.site.daemon.state import PlannedStart, Promise, State

#: Seconds for which a job counts as started that the manager was ordered to start: its scheduler ticks.
_IN_FLIGHT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningWindow:
    """An instance to plan, and the jobs that wait in it."""

    instance: Instance
    #: By id.
    revisions: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A waiting job as it is planned, and of what that was made."""

    seen: Job
    promise: Promise | None
    price: float
    kind: Kind | None
    expected: int | None
    standing: Standing | None
    job: Job


#: By id, the waiting jobs of the window before.
Told = dict[str, _Planned]


def planning_window(
    state: State,
    *,
    lead: int = 0,
    price: float = 1.0,
    told: Told | None = None,
    learner: RuntimeLearner | None = None,
) -> PlanningWindow:
    """Return the window `lead` seconds after the last snapshot.

    A job that starts until then, by an order that the manager has or by the plan, runs in the window on its planned
    nodes: the new plan is made around it, and does not take back what the manager is doing. So does a job for which
    others are being stopped, in their place. A job whose walltime ends until then runs for one second more: it may be
    late. The start that a waiting job's user was told is its promised start, at this price. Raises `ValueError` if the
    state has no snapshot. `told`: jobs of earlier windows, used again where nothing has changed, and brought up to
    date. `learner`: how long jobs are expected to run; None: for their walltimes.
    """
    snapshot = state.snapshot
    if snapshot is None:
        raise ValueError("expected a state with a snapshot")
    at = snapshot.taken_at + lead
    jobs: list[Job] = []
    gone: set[str] = set()
    revisions: dict[str, str] = {}
    new: Told = {}
    standing = standings(snapshot.instance, snapshot.jobs, state.policy)
    orders_starts = not state.policy.is_dry_run
    for job in snapshot.instance.jobs:
        if job.running is not None:
            jobs.append(_running_on(job, at))
            continue
        if state.is_barred(job.id):
            continue
        entry = state.plan.get(job.id)
        # most start later
        is_near = orders_starts and entry is not None and entry.planned.start <= at
        leaving = entry.in_the_way(snapshot.jobs) if entry is not None and entry.stops and orders_starts else ()
        is_next = entry is not None and bool(leaving) and entry.stop_at(snapshot) <= at
        if is_next:
            gone |= {stop.job for stop in leaving}
        if entry is not None and (is_next or (is_near and _starts(entry, snapshot, at, is_ahead=lead > 0))):
            segment = replace(entry.planned.segments[0], end=max(entry.planned.end, at + 1))
            segment = replace(segment, start=min(segment.start, at))
            running = Running(start=segment.start, segments=(segment,))
            job = job.choices[min(entry.planned.alternative, len(job.alternatives))]
            jobs.append(replace(job, running=running, told=None, after=(), malleability=None, preemptible=None))
            continue
        revisions[job.id] = snapshot.jobs[job.id].revision
        promise = state.promises.get(job.id)
        before = None if told is None else told.get(job.id)
        new[job.id] = after = _planned(job, promise, price, learner, standing.get(job.id), before)
        jobs.append(after.job)
    jobs = [job for job in jobs if job.id not in gone] if gone else jobs
    if told is not None:
        told.clear()
        told.update(new)
    if any(job.after for job in jobs):
        known = {job.id: job for job in jobs}
        for name in without_awaited(known, known):
            revisions.pop(name, None)
        jobs = list(known.values())
    is_strict = len({one.priority for one in standing.values()}) > 1
    is_strict |= bool(standing) and snapshot.instance.preemption is not None  # its tiers are
    instance = replace(snapshot.instance, now=at, jobs=tuple(jobs), has_strict_priorities=is_strict)
    return PlanningWindow(instance=instance, revisions=revisions)


def _planned(
    job: Job,
    promise: Promise | None,
    price: float,
    learner: RuntimeLearner | None,
    standing: Standing | None,
    before: _Planned | None,
) -> _Planned:
    """Return a job with its promised start, expected runtime and standing; the same where nothing has changed."""
    if before is not None and before.seen is not job:
        before = None
    kind = before.kind if before is not None else Kind.of(job) if job.shortest == job.longest else None
    expected = None if learner is None or kind is None else learner.expected(kind)
    if before is not None and (before.promise is promise, before.price, before.expected, before.standing) == (
        True,
        price,
        expected,
        standing,
    ):
        return before
    told = None if promise is None else PromisedStart(start=promise.start, price=price)
    is_as_seen = told is None and expected in (None, job.walltime)  # without a word it is its walltime
    planned = job if is_as_seen else replace(job, told=told, expected=expected)
    if standing is not None:
        planned = replace(planned, priority=standing.priority, weight=standing.weight)
    return _Planned(job, promise, price, kind, expected, standing, planned)


def _starts(entry: PlannedStart, snapshot: Snapshot, at: int, *, is_ahead: bool) -> bool:
    """Tell whether a waiting job starts before a second, or at it by an order that the manager is carrying out."""
    if is_ahead and entry.start < at:
        return True
    facts = snapshot.jobs[entry.planned.id]
    is_then = facts.due == entry.start and snapshot.taken_at - _IN_FLIGHT <= entry.start <= at
    return is_then and facts.nodes == entry.nodes


def _running_on(job: Job, at: int) -> Job:
    """Return a running job that has not ended at a second."""
    running = job.running
    if running is None or running.segments[-1].end > at:
        return job
    *earlier, last = running.segments
    return replace(job, running=replace(running, segments=(*earlier, replace(last, end=at + 1))))
