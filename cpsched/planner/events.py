"""What an event makes of a window: pure functions, `Instance` to `Instance` (OCCS-34, 36, 37, 39, 45, 48)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NoReturn

from cpsched.domain import (
    AllocationFailed,
    Amounts,
    CapacityChanged,
    Cluster,
    DependencyType,
    Instance,
    Job,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    NodeClass,
    NodesChanged,
    NodeState,
    Plan,
    PlannedJob,
    ProfileChange,
    RequestState,
    ReservationDropped,
    ReservationMade,
    WindowEvent,
    repeated,
    state_of,
)
from cpsched.errors import DocumentError, EngineError, Fault
from cpsched.planner.advance import without
from cpsched.planner.profile import with_profile

#: By how much a running job may be extended in all: a part of its walltime (OCCS-39).
_EXTENSION = 10

#: The dependencies on a job that are met no more if it is cancelled before it starts.
_UNREACHABLE = frozenset({DependencyType.AFTER, DependencyType.AFTEROK})

_S = RequestState
#: The states in which the job of an event may be. A job that the plan has started is RUNNING until the resource manager
#: says that its allocation failed.
EXPECTED_STATES: dict[type, frozenset[RequestState]] = {
    JobEnded: frozenset({_S.RUNNING}),
    JobAltered: frozenset({_S.SUBMITTED, _S.PLANNED, _S.ALLOCATING, _S.WAITING}),
    JobExtended: frozenset({_S.RUNNING}),
    AllocationFailed: frozenset({_S.PLANNED, _S.ALLOCATING, _S.RUNNING}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """A window after an event, before it is planned again."""

    instance: Instance
    #: The plan before, as far as it still means something.
    plan: Plan
    #: The event in words.
    words: str
    #: Jobs that the event itself concerns, each with what it means for that job.
    touched: dict[str, str] = field(default_factory=dict)
    #: Waiting jobs that may displace others of lower priority, to start as they were planned.
    urgent: tuple[str, ...] = ()
    #: Waiting jobs that ask for something else.
    altered: tuple[str, ...] = ()


def after_event(instance: Instance, plan: Plan, event: WindowEvent) -> Aftermath:
    """Return the window after an event (OCCS-51).

    Raises `DocumentError` if the window does not have what the event names, or not in a state in which the event can
    concern it. Raises `EngineError` if what the event asks for cannot be granted.

    `plan`: the plan so far.
    """
    if isinstance(event, JobEnded | JobAltered | JobExtended | AllocationFailed):
        _check_state(instance, plan, event)
    match event:
        case JobEnded():
            return _ended(instance, plan, event)
        case JobCancelled():
            return _cancelled(instance, plan, event)
        case JobAltered():
            return _altered(instance, plan, event)
        case JobExtended():
            return _extended(instance, plan, event)
        case AllocationFailed():
            return _failed(instance, plan, event)
        case NodesChanged():
            return _with_states(instance, plan, event)
        case CapacityChanged():
            return _with_capacity(instance, plan, event)
        case ReservationMade():
            name = event.reservation.id
            if any(one.id == name for one in instance.reservations):
                _refuse(event, "reservation.id", f"Expected a new reservation, got {name}, which is there")
            made = replace(instance, reservations=(*instance.reservations, event.reservation))
            return Aftermath(instance=made, plan=plan, words=f"reservation {name} was made")
        case ReservationDropped():
            return _dropped(instance, plan, event)
        case ProfileChange():
            words = f"job {event.job} has other steps"
            return Aftermath(
                instance=with_profile(instance, event),
                plan=plan,
                words=words,
                touched={event.job: "it has other steps"},
            )


def _refuse(event: WindowEvent, path: str, message: str) -> NoReturn:
    raise DocumentError(f"event {type(event).__name__}", [Fault(path, message)])


def _check_state(instance: Instance, plan: Plan, event: JobEnded | JobAltered | JobExtended | AllocationFailed) -> None:
    """Refuse an event of a job that is not in one of the states in which it can happen."""
    expected = EXPECTED_STATES[type(event)]
    state = state_of(instance, plan, event.job)
    if state is None and isinstance(event, JobAltered):
        state = next((_S.WAITING for job in instance.jobs if job.id == event.job), None)  # an array
    if state not in expected:
        words = " or ".join(sorted(expected))
        got = "one that is not there" if state is None else f"one that is {state}"
        _refuse(event, "job", f"Expected a job that is {words} at {instance.now}, got {got}")


def _job(instance: Instance, job_id: str) -> Job:
    return next(job for job in instance.jobs if job.id == job_id)


def _with_job(instance: Instance, job_id: str, change: Callable[[Job], Job]) -> Instance:
    return replace(instance, jobs=tuple(change(job) if job.id == job_id else job for job in instance.jobs))


def _ended(instance: Instance, plan: Plan, event: JobEnded) -> Aftermath:
    """Remove a running job, and with it those that wait for another outcome (OCCS-49)."""
    fatal = frozenset[DependencyType]()
    if event.is_success is not None:
        fatal = frozenset({DependencyType.AFTERNOTOK if event.is_success else DependencyType.AFTEROK})
    hopeless = _hopeless(instance, {event.job: fatal})
    run = replace(repeated(_job(instance, event.job)), end=instance.now)
    runs = {event.job: run, **{name: _nothing(name, instance.now) for name in hopeless}}
    outcome = {None: "ended", True: "ended with success", False: "failed"}[event.is_success]
    return Aftermath(
        instance=without(instance, runs),
        plan=plan,
        words=f"job {event.job} {outcome}",
        touched={
            name: f"revoked, since it waited for another outcome of job {cause}"
            if cause == event.job
            else _cancelled_with(cause)
            for name, cause in hopeless.items()
        },
    )


def _cancelled(instance: Instance, plan: Plan, event: JobCancelled) -> Aftermath:
    """Remove a job, and with it those that wait for its success, or for its start if it has none.

    For jobs that wait for its end whatever it is, or for its failure, it has ended now.
    """
    members = instance.members()
    if event.job not in members:
        _refuse(event, "job", f"Expected a job of the window at {instance.now}, got {event.job}")
    elements = {job.id: job for job in instance.elements()}
    ran = frozenset({DependencyType.AFTEROK})
    hopeless = _hopeless(
        instance, {name: ran if elements[name].running is not None else _UNREACHABLE for name in members[event.job]}
    )
    now = instance.now
    runs = {
        name: replace(repeated(job), end=now) if job.running is not None else _nothing(name, now)
        for name, job in elements.items()
        if name in members[event.job] or name in hopeless
    }
    return Aftermath(
        instance=without(instance, runs),
        plan=plan,
        words=f"job {event.job} was cancelled",
        touched={name: _cancelled_with(cause) for name, cause in hopeless.items()},
    )


def _cancelled_with(cause: str) -> str:
    """Say in words why a job is cancelled that waited for another one."""
    return f"cancelled with job {cause}, for which it waited"


def _hopeless(instance: Instance, fatal: Mapping[str, frozenset[DependencyType]]) -> dict[str, str]:
    """Return the waiting jobs that can start no more, each with the job that it has waited for in vain.

    `fatal`: the jobs that are gone, each with the dependencies on it that can be met no more.
    """
    gone, hopeless = dict(fatal), dict[str, str]()
    waiting: dict[tuple[str, DependencyType], list[str]] = {}
    for job in instance.elements():
        for one in job.after if job.running is None else ():
            waiting.setdefault((one.job, one.type), []).append(job.id)
    names, pending = instance.names(), list(gone)
    while pending:
        name = pending.pop()
        for key in product(names.get(name, ()), sorted(gone[name])):
            for job_id in waiting.pop(key, ()):
                if job_id not in gone:
                    gone[job_id], hopeless[job_id] = _UNREACHABLE, name
                    pending.append(job_id)
    return hopeless


def _nothing(name: str, now: int) -> PlannedJob:
    """Return the run of a job that never ran."""
    return PlannedJob(id=name, start=now, end=now, segments=())


def _altered(instance: Instance, plan: Plan, event: JobAltered) -> Aftermath:
    """Change the fields of a waiting job; a rigid one with another walltime keeps its start and nodes if it can."""
    altered = _with_job(instance, event.job, lambda job: replace(job, **dict(event.changes)))
    job = _job(altered, event.job)

    def as_long(planned: PlannedJob) -> PlannedJob:
        if planned.id not in names or len(planned.segments) != 1 or job.is_evolving or job.malleability is not None:
            return planned
        end = planned.start + job.walltime
        return replace(planned, end=end, segments=(replace(planned.segments[0], end=end),))

    names = set(job.element_ids)
    return Aftermath(
        instance=altered,
        plan=replace(plan, jobs=tuple(map(as_long, plan.jobs))),
        words=f"job {event.job} was altered",
        touched=dict.fromkeys(job.element_ids, "it was altered"),
        altered=job.element_ids,
    )


def _extended(instance: Instance, plan: Plan, event: JobExtended) -> Aftermath:
    """Extend a running job, by a tenth of its walltime in all.

    The walltime of the document remains the first one; the end of the last segment says what was added. Whether the job
    can keep its nodes is seen when the window is planned again.
    """
    job = _job(instance, event.job)
    running = job.running
    if running is None or job.is_evolving or job.malleability is not None:
        _refuse(event, "job", "Expected a rigid job: one that changes while it runs has its end by its steps or shares")
    last = running.segments[-1]
    end = last.end + event.seconds
    most = running.start + job.walltime + job.walltime // _EXTENSION
    if end > most:
        message = f"job {job.id} may end by {most}, a tenth of its walltime of {job.walltime} s later, got {end}"
        raise EngineError(message)
    if job.deadline is not None and end > job.deadline:
        raise EngineError(f"job {job.id} would end at {end}, after its deadline {job.deadline}")
    for slice_ in plan.reservations:
        if slice_.id == job.reservation and slice_.start < last.end <= slice_.end < end:
            raise EngineError(f"job {job.id} would end at {end}, after its reservation {slice_.id}, at {slice_.end}")
    longer = replace(running, segments=(*running.segments[:-1], replace(last, end=end)))
    words = f"job {job.id} was extended to {end}"
    extended = _with_job(instance, job.id, lambda job: replace(job, running=longer))
    return Aftermath(instance=extended, plan=plan, words=words)


def _failed(instance: Instance, plan: Plan, event: AllocationFailed) -> Aftermath:
    """Put a job back among those that wait, and take the nodes out that are to blame."""
    back = _with_job(instance, event.job, lambda job: replace(job, running=None))
    down = NodesChanged(nodes=event.nodes, state=NodeState.DOWN)
    nodes = _with_states(back, plan, down) if event.nodes else Aftermath(instance=back, plan=plan, words="")
    touched = {**nodes.touched, event.job: "its allocation failed"}
    urgent = tuple(dict.fromkeys((event.job, *nodes.urgent)))
    words = f"the allocation of job {event.job} failed"
    return Aftermath(instance=nodes.instance, plan=plan, words=words, touched=touched, urgent=urgent)


def _with_states(instance: Instance, plan: Plan, event: NodesChanged) -> Aftermath:
    """Set the state of nodes; what runs on a node that goes down begins anew, and what was planned there is urgent."""
    nodes = frozenset(event.nodes)
    cluster = _with_nodes(instance.cluster, nodes, lambda one: replace(one, state=event.state))
    changed = replace(instance, cluster=cluster)
    words = f"{_listed(event.nodes)} {'is' if len(event.nodes) == 1 else 'are'} {_STATES[event.state]}"
    touched: dict[str, str] = {}
    urgent: list[str] = []
    if event.state is NodeState.DOWN:
        for job in instance.jobs:
            running = job.running
            held = () if running is None else (one for one in running.segments if one.end > instance.now)
            present = next(iter(held), None)
            if present is not None and (lost := _first(nodes, (one.node for one in present.allocation))):
                touched[job.id] = f"it ran on {lost}, which is down, and begins anew"
                changed = _with_job(changed, job.id, lambda job: replace(job, running=None))
    waiting = {job.id for job in instance.elements() if job.running is None}
    for planned in plan.jobs if event.state is not NodeState.UP else ():
        held_nodes = (one.node for segment in planned.segments for one in segment.allocation)
        if planned.id in waiting and (lost := _first(nodes, held_nodes)):
            touched[planned.id] = f"its node {lost} is {_STATES[event.state]}"
            urgent.append(planned.id)
    return Aftermath(instance=changed, plan=plan, words=words, touched=touched, urgent=tuple(urgent))


_STATES = {NodeState.UP: "up", NodeState.DRAIN: "drained", NodeState.DOWN: "down"}


def _with_capacity(instance: Instance, plan: Plan, event: CapacityChanged) -> Aftermath:
    """Set the amounts of nodes and licences; amounts that are not named stay."""
    resources = dict(event.resources)

    def changed(one: NodeClass) -> NodeClass:
        return replace(one, resources=Amounts({**one.resources, **resources}))

    cluster = _with_nodes(instance.cluster, frozenset(event.nodes), changed)
    cluster = replace(cluster, licenses=Amounts({**cluster.licenses, **event.licenses}))
    what = [_listed(event.nodes)] if event.nodes else []
    words = f"the capacity of {' and '.join([*what, *event.licenses])} changed"
    return Aftermath(instance=replace(instance, cluster=cluster), plan=plan, words=words)


def _dropped(instance: Instance, plan: Plan, event: ReservationDropped) -> Aftermath:
    """Drop a reservation; its jobs are planned as all others."""
    name = event.reservation
    if all(one.id != name for one in instance.reservations):
        _refuse(event, "reservation", f"Expected a reservation of the window at {instance.now}, got {name}")
    left = tuple(one for one in instance.reservations if one.id != name)
    jobs = tuple(replace(job, reservation=None) if job.reservation == name else job for job in instance.jobs)
    touched = {
        element: f"reservation {name} was dropped"
        for job in instance.jobs
        if job.reservation == name
        for element in job.element_ids
    }
    dropped = replace(instance, reservations=left, jobs=jobs)
    return Aftermath(instance=dropped, plan=plan, words=f"reservation {name} was dropped", touched=touched)


def _with_nodes(cluster: Cluster, nodes: Collection[str], change: Callable[[NodeClass], NodeClass]) -> Cluster:
    """Return a cluster with some nodes changed: classes are split, and parts join a class like them."""
    parts: dict[Any, list[str]] = {}
    for one in cluster.classes:
        for name in one.names:
            parts.setdefault(replace(change(one) if name in nodes else one, names=()), []).append(name)
    return replace(cluster, classes=tuple(replace(one, names=tuple(names)) for one, names in parts.items()))


def _first(nodes: Collection[str], held: Iterable[str]) -> str | None:
    """Return the first of the held nodes that is among some, or None."""
    return next((node for node in held if node in nodes), None)


def _listed(nodes: Collection[str]) -> str:
    listed = ", ".join(list(nodes)[:3])
    return f"node{'s' * (len(nodes) > 1)} {listed}" + (", ..." if len(nodes) > 3 else "")
