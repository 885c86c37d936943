"""`replan`: the next plan of a window after time has passed, or after events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import (
    Event,
    Instance,
    Job,
    JobAltered,
    JobExtended,
    Plan,
    PromisedStart,
    Segment,
    WindowEvent,
    fitted,
)
from cpsched.engine import Budget, Outcome
from cpsched.errors import DocumentError, EngineError, Fault
from cpsched.formats import checked, instance_to_document, parse_instance
from cpsched.planner import Aftermath, advanced, after_event, replanned_after, with_slices
from cpsched.portfolio.causes import Delay, delays
from cpsched.portfolio.classes import ByClass
from cpsched.portfolio.engine_window import EngineWindow
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import judge_of, plan_of
from cpsched.portfolio.warm_start import WarmStart

__all__ = ["replan"]

#: The engine's name in plans of `replan`.
NAME = "replan"
#: Characters of an event in a plan, at the most.
_LONGEST_EVENT = 500
#: The most times that a window with jobs that change is planned after one event.
_MOST_PASSES = 20


def replan(
    instance: Instance, plan: Plan, *, at: int | None = None, events: Sequence[WindowEvent] = ()
) -> tuple[Instance, Plan]:
    """Advance a window to a later second, apply events, and update its plan.

    Each job keeps its start and nodes if they are still free and allowed, and moves up if resources have become free
    (`cpsched.planner.replanned_after`). A job that fails to get its allocation, or loses a node, may displace waiting
    jobs of lower priority to start as it was planned. The plan's `events` name the cause of each later start. A second
    call without events moves nothing. To improve the new plan further, pass it to `solve` as `warm`.

    Parameters
    ----------
    instance
        The window.
    plan
        A plan of it, as which all jobs have started and ended up to `at`.
    at
        The new `now`; None: the window's.
    events
        What happened at that second, one after the other.

    Returns
    -------
    instance, plan
        The window at `at`, after the events, and its plan, which the verifier has passed.

    Raises
    ------
    DocumentError
        If the plan is not one of the window, or an event names what is not there, or not in a state for it.
    EngineError
        If an event asks for what cannot be granted, or the window asks for something that cannot be honoured.
    UnverifiedError
        If the new plan breaks a rule that no single job is to blame for: a bug of cpsched.
    """
    instance = checked(instance)
    clock = Budget(0)
    moved = _moved(instance, plan, instance.now if at is None else at)
    told = {name: job.told for job in instance.jobs if job.told is not None for name in job.element_ids}
    current, said, late = plan, list[str](), dict[str, Delay]()
    for event in events or (None,):
        after = Aftermath(instance=moved, plan=current, words="time has passed")
        if event is not None:
            after = after_event(moved, current, event)
            changed = with_slices(_told_again(after.instance, told), current.reservations)
            moved = _checked(changed, f"the window after {after.words}")
        window, outcome = _planned_again(moved, after)
        late |= {one.job: one for one in _delays(window, moved, outcome, after)}
        if event is not None:
            said += [after.words, *(f"job {name}: {what}" for name, what in after.touched.items() if name not in late)]
            _check_granted(event, moved, after, outcome, window, late)
        current = plan_of(moved, NAME, outcome, slices=window.slices, budget=0, elapsed=clock.elapsed)
    new = verified(judge_of(moved), moved, current, engine=NAME, elapsed=clock.elapsed)
    starts = {job.id: job.start for job in new.jobs}
    late |= {
        job.id: Delay(job=job.id, before=job.start, after=None, cause="the verifier refused the place found for it")
        for job in current.jobs
        if starts.get(job.id) != job.start and job.id not in late
    }
    first = {job.id: job.start for job in plan.jobs}
    causes = [
        str(replace(one, before=first.get(name, one.before), after=starts.get(name)))
        for name, one in late.items()
        if name not in starts or starts[name] > first.get(name, one.before)
    ]
    at_ = round(clock.elapsed, 3)
    told_events = tuple(Event(at=at_, by=NAME, what=what[:_LONGEST_EVENT]) for what in (*said, *causes))
    return moved, replace(new, events=(*new.events, *told_events))


def _planned_again(moved: Instance, after: Aftermath) -> tuple[EngineWindow, Outcome]:
    """Return the window for engines, and its new plan, stated.

    Jobs that the plan before has moved up beyond soft limits keep their starts: these limits are not looked at. Where
    priorities are strict, each class is planned beside all that is higher.
    """
    window = EngineWindow.of(moved, soft=False)
    held = window.held(after.plan)
    if moved.has_strict_priorities:
        return window, window.outcome(ByClass(WarmStart(held)).plan(window.instance, None))
    planned = replanned_after(window.instance, held, urgent=after.urgent, altered=after.altered)
    if any(job.is_evolving or job.malleability is not None for job in moved.jobs):
        # what one of them gives back, others may have: until nothing moves
        for _ in range(_MOST_PASSES):
            again = replanned_after(window.instance, replace(held, now=moved.now, jobs=planned.jobs))
            if again.jobs == planned.jobs:
                break
            planned = again
    return window, window.outcome(planned)


def _delays(window: EngineWindow, moved: Instance, outcome: Outcome, after: Aftermath) -> tuple[Delay, ...]:
    """Return the jobs that start later than in the plan before an event."""
    takes = {job.id: job.licenses for job in window.instance.elements()}
    slices = (after.plan.reservations, window.slices)
    before = [job for job in after.plan.jobs if job.end > moved.now]
    return delays(moved, takes, before, outcome.jobs, slices, touched=after.touched, words=after.words)


def _check_granted(
    event: WindowEvent,
    moved: Instance,
    after: Aftermath,
    outcome: Outcome,
    window: EngineWindow,
    late: Mapping[str, Delay],
) -> None:
    """Refuse an alteration that leaves its job no start, and an extension for which others would have to wait."""
    if isinstance(event, JobAltered):
        had = {job.id for job in after.plan.jobs}
        for waiting in outcome.waiting_room:
            if waiting.id in had and waiting.id in after.touched:
                message = f"job {event.job} cannot be altered so: {waiting.detail}; the old request remains"
                raise EngineError(message)
    if not isinstance(event, JobExtended):
        return
    refused = f"job {event.job} cannot be extended by {event.seconds} s"
    if fitted(moved).stated and not fitted(_unextended(moved, event)).stated:
        raise EngineError(f"{refused}: its nodes are promised to other running jobs then")
    jobs = {job.id: job for job in moved.elements()}
    (last,) = [segment for job, segment in _last_segments(moved) if job == event.job]
    nodes = {held.node for held in last.allocation}
    for slice_ in window.slices:
        is_then = slice_.start < last.end and slice_.end > last.end - event.seconds
        if is_then and slice_.id != jobs[event.job].reservation and nodes & {one.node for one in slice_.allocation}:
            raise EngineError(f"{refused}: its nodes are those of reservation {slice_.id} then")
    most = moved.priority(jobs[event.job])
    for name in late:
        if name in jobs and (jobs[name].start_at is not None or moved.priority(jobs[name]) >= most):
            raise EngineError(f"{refused}: job {name}, which is not of lower priority, has its nodes then")


def _last_segments(instance: Instance) -> Iterator[tuple[str, Segment]]:
    """Yield the last segment of each running job."""
    for job in instance.jobs:
        if job.running is not None:
            yield job.id, job.running.segments[-1]


def _unextended(moved: Instance, event: JobExtended) -> Instance:
    """Return a window without the extension of a job."""

    def shorter(job: Job) -> Job:
        if job.id != event.job or job.running is None:
            return job
        *first, last = job.running.segments
        segments = (*first, replace(last, end=last.end - event.seconds))
        return replace(job, running=replace(job.running, segments=segments))

    return replace(moved, jobs=tuple(map(shorter, moved.jobs)))


def _told_again(instance: Instance, told: Mapping[str, PromisedStart]) -> Instance:
    """Return a window in which jobs that wait again were told what they had been told."""

    def again(job: Job) -> Job:
        if job.running is not None or job.told is not None or job.id not in told:
            return job
        return replace(job, told=told[job.id])

    return replace(instance, jobs=tuple(map(again, instance.jobs)))


def _checked(instance: Instance, source: str) -> Instance:
    """Return a window after an event, read again: an event may ask for what cannot be."""
    return parse_instance(instance_to_document(instance), source=source)


def _moved(instance: Instance, plan: Plan, at: int) -> Instance:
    """Return the window at `at`, checked: a plan that is not of this window can lead to an impossible one."""
    faults = []
    if plan.instance != instance.name:
        faults.append(Fault("instance", f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}"))
    if at < max(instance.now, plan.now):
        first = max(instance.now, plan.now)
        faults.append(Fault("now", f"Expected a second from {first} on (now of instance and plan), got {at}"))
    if faults:
        raise DocumentError("plan", faults)
    moved = with_slices(advanced(instance, plan, at), plan.reservations)
    source, warnings = f"the window at {at}", list[Fault]()
    read = parse_instance(instance_to_document(moved), source=source, on_warning=warnings.append)
    if fitted(read).stated and not fitted(instance).stated:
        raise DocumentError(source, warnings)  # such is no fact, but a plan of something else
    return read
