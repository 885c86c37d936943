"""A plan that lives: it follows a window with its rules and events, and is made anew only where it cannot follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import (
    Instance,
    Job,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    Plan,
    PromisedStart,
    ReservedSlice,
    WindowEvent,
)
from cpsched.engine import Outcome
from cpsched.errors import DocumentError, EngineError, Fault
from cpsched.formats import instance_to_document, parse_instance
from cpsched.planner import (
    Aftermath,
    Concern,
    LivePlanner,
    advanced,
    after_event,
    problem_of,
    stated_outcome,
    with_slices,
)
from cpsched.portfolio.classes import ByClass
from cpsched.portfolio.delay_causes import Delay, delays
from cpsched.portfolio.warm_start import WarmStart
from cpsched.problem import Problem, has_rules, is_overcommitted

#: The most times that a window with jobs that change is planned after one event.
_MOST_PASSES = 20
#: After these events a window is as sound as before; others ask for something, and may ask for what cannot be.
_HARMLESS = (JobEnded, JobCancelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """The consequences of an event."""

    #: The event in words.
    words: str
    #: The jobs that the event itself concerns, each with what it means for that job.
    touched: Mapping[str, str]
    #: The jobs that start later than before, by id, each with the cause.
    late: Mapping[str, Delay]


class LivePlan:
    """The plan of a window, which is brought up to date whenever the window changes; mutable.

    Jobs keep their starts and nodes where these are still free and allowed; new jobs are planned beside them, jobs with
    limited starts first; and jobs move up into what has become free. After an event no job starts later without a cause
    (`cpsched.planner.LivePlanner` has both rules). The plan is always that made anew from the plan before.

    `window`: the first window. `plan`: a plan of it, or of an earlier window. The first call of `follow` or `happened`
    brings it up to date.
    """

    def __init__(self, window: Instance, plan: Plan) -> None:
        self._window, self._plan = window, plan
        #: What follows the window; or the outcome of one that has rules, or of the first plan.
        self._live: LivePlanner | Outcome = Outcome(jobs=plan.jobs, waiting_room=plan.waiting_room)
        #: The window as engines plan it, where it has rules.
        self._engines: Problem | None = None
        #: The starts that users were told, of jobs that run by now as well.
        self._told: dict[str, PromisedStart] = {}

    @property
    def window(self) -> Instance:
        """The window of which it has the plan."""
        return self._window

    @property
    def slices(self) -> tuple[ReservedSlice, ...]:
        """The nodes that the reservations of the window have."""
        return self._plan.reservations

    def outcome(self) -> Outcome:
        """Return the plan of all jobs, in document order, and the waiting room."""
        return self._live if isinstance(self._live, Outcome) else self._live.outcome()

    def plan(self) -> Plan:
        """Return the plan with the figures of the first one: for engines to begin from."""
        outcome = self.outcome()
        return replace(self._plan, jobs=outcome.jobs, waiting_room=outcome.waiting_room)

    def follow(self, window: Instance, concern: Concern | None = None) -> None:
        """Bring the plan up to date for another window: some time later, or with other jobs, nodes or rules.

        `window`: jobs and rules that are the same objects as in the window before are known to be unchanged. `concern`:
        what an event means that has led to this window; None: just time has passed, or jobs have come and gone. Raises
        `UnsupportedError` if the window asks for something that the planner cannot honour.
        """
        for job in self._window.jobs:
            if job.told is not None:
                self._told |= dict.fromkeys(job.element_ids, job.told)
        if isinstance(self._live, LivePlanner) and not (window.has_strict_priorities or has_rules(window)):
            self._live.follow(window, concern)
            _repeat(self._live, concern)
            self._plan = replace(self._plan, now=window.now)
        else:
            self._begin(window, self.plan(), concern)
        self._window = window

    def _begin(self, window: Instance, before: Plan, concern: Concern | None) -> None:
        """Make the plan of a window out of the plan before.

        After an event soft limits are not looked at: jobs that were moved up beyond them keep their starts.
        """
        if not (window.has_strict_priorities or has_rules(window)):
            self._live, self._engines = LivePlanner(window, before.jobs, before.now, concern), None
            _repeat(self._live, concern)
            self._plan = replace(before, now=window.now, reservations=())
            return
        engines = problem_of(window, soft=concern is None)
        held = engines.held(before)
        if window.has_strict_priorities:
            outcome = ByClass(WarmStart(held)).plan(engines.instance, None)
        else:
            if concern is not None:
                places = engines.to_held(tuple(concern.places.values()))
                concern = replace(concern, places={job.id: job for job in places})
            planner = LivePlanner(engines.instance, held.jobs, held.now, concern)
            _repeat(planner, concern)
            outcome = planner.outcome()
        self._live, self._engines = stated_outcome(engines, outcome), engines
        self._plan = replace(before, now=window.now, reservations=engines.slices)

    def happened(self, event: WindowEvent, *, at: int | None = None) -> Happened:
        """Apply an event, and bring the plan up to date.

        A job that gets no allocation, or loses a node, may displace waiting jobs of lower priority to start as planned.

        `event`: what happened. `at`: when; up to then all has gone as planned. None: at the window's `now`. Raises
        `DocumentError` if the event names what is not there, or not in a state for it. Raises `EngineError` if the
        event asks for what cannot be granted. The window and the plan are then as they were.
        """
        window, before = self._window, self.plan()
        now = window if at is None else _later(window, before, at)
        after = after_event(now, before, event)
        told = self._told | {name: job.told for job in window.jobs if job.told for name in job.element_ids}
        changed = with_slices(_told_again(after.instance, told), before.reservations)
        if not isinstance(event, _HARMLESS):
            changed = parse_instance(instance_to_document(changed), source=f"the window after {after.words}")
        places = {job.id: job for job in after.plan.jobs if job.id in after.altered}
        self.follow(changed, Concern(urgent=after.urgent, altered=after.altered, places=places))
        late = {one.job: one for one in self._delays(after)}
        try:
            self._check_granted(event, after, late)
        except EngineError:
            self._window, self._plan, self._engines = window, before, None
            self._live = Outcome(jobs=before.jobs, waiting_room=before.waiting_room)
            raise
        return Happened(words=after.words, touched=after.touched, late=late)

    def elapsed(self, at: int) -> Happened:
        """Bring the plan up to date for a later second, up to which all has gone as planned."""
        before = self.plan()
        after = Aftermath(instance=_later(self._window, before, at), plan=before, words="time has passed")
        self.follow(after.instance, Concern())
        return Happened(words=after.words, touched={}, late={one.job: one for one in self._delays(after)})

    def _delays(self, after: Aftermath) -> tuple[Delay, ...]:
        """Return the jobs that start later than in the plan before an event."""
        window = self._window if self._engines is None else self._engines.instance
        slices = (after.plan.reservations, self.slices)
        before = [job for job in after.plan.jobs if job.end > self._window.now]
        jobs = self.outcome().jobs
        chosen = {job.id: job.alternative for job in jobs}
        takes = {job.id: job.licenses_of(chosen.get(job.id, 0)) for job in window.elements()}
        return delays(self._window, takes, before, jobs, slices, touched=after.touched, words=after.words)

    def _check_granted(self, event: WindowEvent, after: Aftermath, late: Mapping[str, Delay]) -> None:
        """Refuse an alteration that leaves its job no start, and an extension for which others would have to wait."""
        if isinstance(event, JobAltered):
            had = {job.id for job in after.plan.jobs}
            for waiting in self.outcome().waiting_room:
                if waiting.id in had and waiting.id in after.touched:
                    message = f"job {event.job} cannot be altered so: {waiting.detail}; the old request remains"
                    raise EngineError(message)
        if isinstance(event, JobExtended):
            _check_extended(event, self._window, self.slices, late)


def _repeat(planner: LivePlanner, concern: Concern | None) -> None:
    """Plan again after an event until nothing moves: what a job that changes gives back, others may have."""
    window = planner.instance
    if concern is None or not any(job.is_evolving or job.malleability is not None for job in window.jobs):
        return
    for _ in range(_MOST_PASSES):
        before = planner.outcome().jobs
        planner.follow(window, Concern())
        if planner.outcome().jobs == before:
            break


def _later(window: Instance, plan: Plan, at: int) -> Instance:
    """Return a window at a later second, if all has gone as in a plan of it.

    Raises `DocumentError` if the plan is not one of the window.
    """
    faults = []
    if plan.instance != window.name:
        faults.append(Fault("instance", f"Expected a plan of {window.name!r}, got one of {plan.instance!r}"))
    if at < max(window.now, plan.now):
        first = max(window.now, plan.now)
        faults.append(Fault("now", f"Expected a second from {first} on (now of instance and plan), got {at}"))
    if faults:
        raise DocumentError("plan", faults)
    moved = with_slices(advanced(window, plan, at), plan.reservations)
    source, warnings = f"the window at {at}", list[Fault]()
    read = parse_instance(instance_to_document(moved), source=source, on_warning=warnings.append)
    if is_overcommitted(read) and not is_overcommitted(window):
        raise DocumentError(source, warnings)  # such is no fact, but a plan of something else
    return read


def _check_extended(
    event: JobExtended, window: Instance, slices: Sequence[ReservedSlice], late: Mapping[str, Delay]
) -> None:
    """Refuse an extension for which others would have to wait."""
    refused = f"job {event.job} cannot be extended by {event.seconds} s"
    if is_overcommitted(window) and not is_overcommitted(_unextended(window, event)):
        raise EngineError(f"{refused}: its nodes are promised to other running jobs then")
    jobs = {job.id: job for job in window.elements()}
    (last,) = [job.running.segments[-1] for job in window.jobs if job.id == event.job and job.running is not None]
    nodes = {held.node for held in last.allocation}
    for slice_ in slices:
        is_then = slice_.start < last.end and slice_.end > last.end - event.seconds
        if is_then and slice_.id != jobs[event.job].reservation and nodes & {one.node for one in slice_.allocation}:
            raise EngineError(f"{refused}: its nodes are those of reservation {slice_.id} then")
    most = window.priority(jobs[event.job])
    for name in late:
        if name in jobs and (jobs[name].start_at is not None or window.priority(jobs[name]) >= most):
            raise EngineError(f"{refused}: job {name}, which is not of lower priority, has its nodes then")


def _unextended(window: Instance, event: JobExtended) -> Instance:
    """Return a window without the extension of a job."""

    def shorter(job: Job) -> Job:
        if job.id != event.job or job.running is None:
            return job
        *first, last = job.running.segments
        segments = (*first, replace(last, end=last.end - event.seconds))
        return replace(job, running=replace(job.running, segments=segments))

    return replace(window, jobs=tuple(map(shorter, window.jobs)))


def _told_again(instance: Instance, told: Mapping[str, PromisedStart]) -> Instance:
    """Return a window in which jobs that wait again were told what they had been told."""

    def again(job: Job) -> Job:
        if job.running is not None or job.told is not None or job.id not in told:
            return job
        return replace(job, told=told[job.id])

    return replace(instance, jobs=tuple(map(again, instance.jobs)))
