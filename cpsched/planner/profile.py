"""On-line changes of evolving jobs: a running job says anew what it wants from now on (EVO-4, EVO-18; section 9.3)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NoReturn

from cpsched.booking import Units, continuation, units_on
from cpsched.domain import (
    Amounts,
    Cluster,
    Instance,
    Job,
    Placement,
    ProfileChange,
    Request,
    Running,
    Segment,
    Step,
    needs_migration,
)
from cpsched.errors import DocumentError, EngineError, Fault
from cpsched.problem import refusal


def with_profile(instance: Instance, change: ProfileChange) -> Instance:
    """Return a window in which a running evolving job is promised other steps from now on.

    The job comes before all that wait, and after what other running jobs hold and were promised. Nothing migrates: it
    keeps its nodes where it grows, and some of them where it shrinks. Before a step for which there is too little it
    holds the one before, for as long as that takes: it runs, and cannot be put off; its ``expand_limit`` does not
    count. Each step begins as early as that allows.

    The whole profile is promised, to its end, or nothing: no job ever holds nodes while it waits for nodes of another
    job that waits too. So there is no deadlock (EVO-18): all promises end, and a profile that does not fit beside them
    is refused, and the old promise remains. Steps that were promised before begin no later than they were to.

    Raises `DocumentError` if there is no such job, or if it could not have the profile even if it ran alone. Raises
    `EngineError` if the profile conflicts with promises to other jobs, or to the job itself.

    The ``steps`` and ``segments`` of the job that is returned say what it had, and what it is promised.
    """
    job, running = _running_job(instance, change)
    now = instance.now
    present = next(segment for segment in running.segments if segment.end > now)
    if any(step.request.place != job.steps[0].request.place for step in change.steps):
        _refuse(change, "steps", "Expected the place of the job in all steps")
    held = units_on(change.steps[0].request, present.allocation, instance.cluster)
    if held is None:
        _refuse(change, "steps[0].request", f"Expected what the job holds at {now}: {_words(present)}")
    if (moving := needs_migration(change.steps)) is not None:
        _refuse(change, "steps", f"Expected steps in which the job keeps its nodes; {moving}")
    new = _with_history(job, running, change.steps, now)
    _check_queue(instance, change, job, new)
    remaining = replace(job, steps=change.steps)
    coming = continuation(instance, remaining, held)
    if coming is None:
        _explain(instance, change, remaining, held)
    _check_promises(instance, change, job, running, coming)
    past = [segment for segment in running.segments if segment.end <= now]
    if len(job.steps) != len(running.segments):
        past = [replace(segment, allocation=_unstated(segment.allocation)) for segment in past]
    going = replace(coming[0], start=present.start)
    new = replace(new, running=replace(running, segments=(*past, going, *coming[1:])))
    return replace(instance, jobs=tuple(new if one.id == job.id else one for one in instance.jobs))


def _refuse(change: ProfileChange, path: str, message: str) -> NoReturn:
    raise DocumentError(f"profile of job {change.job}", [Fault(path, message)])


def _running_job(instance: Instance, change: ProfileChange) -> tuple[Job, Running]:
    """Return the job that changes, which must run and evolve."""
    job = next((job for job in instance.elements() if job.id == change.job), None)
    if job is None:
        _refuse(change, "job", f"Expected a job that runs at {instance.now}, got one that is not there")
    if job.running is None:
        _refuse(change, "job", f"Expected a job that runs at {instance.now}, got one that waits")
    if not job.is_evolving:
        _refuse(change, "job", "Expected a job of several steps, got one that does not evolve")
    return job, job.running


def _words(segment: Segment) -> str:
    """Return the allocation of a segment, in short."""
    totals: dict[str, int] = {}
    for placement in segment.allocation:
        for name, amount in placement.resources.items():
            totals[name] = totals.get(name, 0) + amount
    nodes = len({placement.node for placement in segment.allocation})
    return f"{', '.join(f'{amount} {name}' for name, amount in totals.items())} on {nodes} node{'s' * (nodes > 1)}"


def _with_history(job: Job, running: Running, steps: Sequence[Step], now: int) -> Job:
    """Return a job with the steps that it has had before those that remain.

    The present step counts from its begin. If a job does not have one segment for each step, its past steps are
    unknown: then the past is part of the first step.
    """
    number, present = next((n, segment) for n, segment in enumerate(running.segments) if segment.end > now)
    before, since = job.steps[:number], present.start
    if len(job.steps) != len(running.segments):
        before, since = (), running.start
    first = replace(steps[0], walltime=now - since + steps[0].walltime)
    return replace(job, steps=(*before, first, *steps[1:]))


def _check_queue(instance: Instance, change: ProfileChange, old: Job, new: Job) -> None:
    """Refuse a job that would get longer than its queue accepts."""
    most = None if new.queue is None else instance.queues[new.queue].max_walltime
    if most is not None and new.walltime > max(most, old.walltime):
        _refuse(change, "steps", f"Expected at most {most} s in all (queue {new.queue}), got {new.walltime} s")


def _explain(instance: Instance, change: ProfileChange, remaining: Job, held: Units) -> NoReturn:
    """Return why a job cannot continue with the remaining steps."""
    if continuation(replace(instance, jobs=(remaining,)), remaining, held) is not None:
        raise EngineError(
            f"job {change.job} cannot have this profile: it would hold nodes that others were promised for later; "
            "the promise to the job itself remains"
        )
    unbound = replace(remaining, running=None, queue=None, start_at=None, deadline=None)
    verdict = refusal(instance, unbound)
    _refuse(
        change, "steps", verdict[1] if verdict else "the nodes that the job keeps have no room for all of its steps"
    )


def _check_promises(
    instance: Instance, change: ProfileChange, job: Job, running: Running, coming: Sequence[Segment]
) -> None:
    """Refuse what would end after the job's deadline, or begin later than was promised."""
    if job.deadline is not None and coming[-1].end > max(job.deadline, running.segments[-1].end):
        raise EngineError(f"job {change.job} would end at {coming[-1].end}, after its deadline {job.deadline}")
    promised = _promised_starts(instance, running, change.steps)
    for number, (segment, start) in enumerate(zip(coming, promised, strict=False)):
        if segment.start > start:
            raise EngineError(
                f"job {change.job} was promised step {number} for {start}; with this profile it would begin at "
                f"{segment.start}"
            )


def _promised_starts(instance: Instance, running: Running, steps: Sequence[Step]) -> list[int]:
    """Return when steps begin if a job has no more than it was promised, as far as that is enough for them."""
    starts = [instance.now]

    def is_promised(request: Request, start: int, end: int) -> bool:
        within = [segment for segment in running.segments if segment.start < end and segment.end > start]
        return end <= running.segments[-1].end and all(
            _has(instance.cluster, _unstated(segment.allocation), request) for segment in within
        )

    for before, step in pairwise(steps):
        earliest = starts[-1] + before.walltime
        changes = [earliest, *(segment.start for segment in running.segments if segment.start > earliest)]
        fitting = (
            start
            for start in changes
            if is_promised(before.request, starts[-1], start)
            and is_promised(step.request, start, start + step.walltime)
        )
        start = next(fitting, None)
        if start is None:
            break
        starts.append(start)
    return starts


def _unstated(allocation: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return the amounts held on each node, whichever chunks hold them."""
    held: dict[str, Counter[str]] = {}
    for placement in allocation:
        held.setdefault(placement.node, Counter()).update(placement.resources)
    return tuple(Placement(node=node, resources=Amounts(amounts)) for node, amounts in held.items())


def _has(cluster: Cluster, allocation: Sequence[Placement], request: Request) -> bool:
    """Return whether an allocation has room for a request, each kind of its chunks by itself."""
    if request.place.is_packed:
        return any(
            all(held.resources.get(name, 0) >= amount for name, amount in request.totals.items()) for held in allocation
        )
    most = 1 if request.place.is_scattered else max(chunk.count for chunk in request.chunks)
    return all(
        sum(
            min(most, *(held.resources.get(name, 0) // amount for name, amount in chunk.resources.items()))
            for held in allocation
            if chunk.where.items() <= cluster.class_of[held.node].properties.items()
        )
        >= chunk.count
        for chunk in request.chunks
    )
