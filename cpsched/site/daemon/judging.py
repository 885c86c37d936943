"""The verifier before every action: whether starts are allowed beside what runs now.

The verifier judged each plan as a whole when it was made. Time has passed since, so that the starts which are due are
judged once more, against the newest snapshot. Only the nodes that they are about are looked at, with all that runs
there, unless a rule of the site counts what is elsewhere: the judge takes seconds for 5,000 nodes.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import (
    Amounts,
    FrozenMap,
    Instance,
    Job,
    Placement,
    PlannedJob,
    Segment,
    WaitingJob,
    WaitingReason,
    repeated,
)
from cpsched.engine import Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.planner import slices_of
from cpsched.portfolio import plan_of
from cpsched.site.bridge import JobState, Requeue, Snapshot, Start
from cpsched.verify import Judge, Violation


def vetoes(
    snapshot: Snapshot, starts: Sequence[Start], ordered: Iterable[PlannedJob], stops: Sequence[Requeue] = ()
) -> dict[str, str]:
    """Return the starts that break a rule: the violation in words, by job.

    Where a violation names none of them, they are judged one by one, each beside those before it.

    `snapshot`: what is true now.
    `starts`: the orders to be given.
    `ordered`: the jobs that the manager starts soon by orders that it has.
    `stops`: the stops of running jobs that are to be ordered for some of the starts.
    """
    waiting = {job.id: job for job in snapshot.instance.jobs if job.running is None}
    planned: dict[str, PlannedJob] = {}
    preemption, urgent = snapshot.instance.preemption, {stop.urgent for stop in stops}
    notice = 0 if preemption is None else preemption.notice
    asked = [(one.id, one.start, one.segments[0].allocation, one.alternative) for one in ordered]
    is_late = any(start < snapshot.taken_at for _, start, *_ in asked)
    asked += [(one.job, one.at, one.allocation, one.alternative) for one in starts]
    for job_id, at, allocation, number in asked:
        if job_id in waiting and snapshot.jobs[job_id].state is JobState.WAITING:
            choices = waiting[job_id].choices
            number = min(number, len(choices) - 1)
            segment = Segment(start=at, end=at + choices[number].walltime, allocation=allocation)
            one = PlannedJob(id=job_id, start=at, end=segment.end, segments=(segment,), alternative=number)
            planned[job_id] = _begun_at(one, max(at, snapshot.taken_at + (notice if job_id in urgent else 0)))
    candidates = [start.job for start in starts if start.job in planned]
    if not candidates:
        return {}
    if is_late:
        planned |= _held_up(snapshot, {job: one for job, one in planned.items() if job not in candidates})
    # whatever the plan thought of the jobs that they wait for
    known = {job.id for job in snapshot.instance.jobs if job.running is not None} | planned.keys()
    unready = [job for job in planned if any(one.job not in known for one in waiting[job].after)]
    found = dict.fromkeys(unready, "dependency: it waits for a job that does not run")
    planned = {job: one for job, one in planned.items() if job not in found}
    are_told_apart = True
    for violation in _violations(snapshot, planned, stops):
        names = _named(violation, candidates)
        are_told_apart = are_told_apart and bool(names)
        for name in names:
            found.setdefault(name, str(violation))
    if not are_told_apart:
        names = [name for name in candidates if name in planned and name not in found]
        found |= _one_by_one(snapshot, planned, names, stops)
    return {name: words for name, words in found.items() if name in candidates}


def _one_by_one(
    snapshot: Snapshot, planned: Mapping[str, PlannedJob], names: Sequence[str], stops: Sequence[Requeue]
) -> dict[str, str]:
    """Return those of some jobs that break a rule which is not broken without them."""
    found: dict[str, str] = {}
    kept = {job: one for job, one in planned.items() if job not in names}
    # what is wrong already is no fault of theirs
    before = {str(one) for one in _violations(snapshot, kept, stops)}
    for name in names:
        beside = _violations(snapshot, kept | {name: planned[name]}, stops)
        new = next((one for one in beside if str(one) not in before), None)
        if new is None:
            kept[name] = planned[name]
        else:
            found[name] = str(new)
    return found


def _violations(
    snapshot: Snapshot, planned: Mapping[str, PlannedJob], stops: Iterable[Requeue] = ()
) -> tuple[Violation, ...]:
    """Return the faults of jobs beside those that run, and of the stops for them."""
    if not planned:
        return ()
    instance = _about(snapshot.instance, planned)
    ends = {stop.job: planned[stop.urgent].start for stop in stops if stop.urgent in planned}
    jobs = [planned[job.id] if job.running is None else repeated(job) for job in instance.jobs]
    cut = tuple(cut_at(job, ends[job.id]) for job in jobs if job.id in ends)
    again = tuple(WaitingJob(id=one.id, reason=WaitingReason.NOT_MAPPED, detail="it is stopped") for one in cut)
    outcome = Outcome(jobs=tuple(job for job in jobs if job.id not in ends), waiting_room=again)
    plan = plan_of(instance, "daemon", outcome, slices=slices_of(instance), budget=0, elapsed=0)
    document = plan_to_document(replace(plan, attempts=cut))
    return tuple(Judge(instance_to_document(instance)).violations(document, claims=False))


def cut_at(job: PlannedJob, end: int) -> PlannedJob:
    """Return a run that ends at a second before its own end."""
    segments = tuple(replace(one, end=min(one.end, end)) for one in job.segments if one.start < end)
    return replace(job, end=end, segments=segments)


def _named(violation: Violation, names: Iterable[str]) -> list[str]:
    in_words = {name: rf"\bjob {re.escape(name)}(?![^\s,;:)])" for name in names}
    return [
        name for name, words in in_words.items() if name == violation.subject or re.search(words, violation.message)
    ]


def _held_up(snapshot: Snapshot, ordered: Mapping[str, PlannedJob]) -> dict[str, PlannedJob]:
    """Return ordered jobs that cannot start yet, since a job that is late still has their nodes, from its end on.

    The manager starts them then; until then they are no fault of others.
    """
    moved: dict[str, PlannedJob] = {}
    for name in {name for violation in _violations(snapshot, ordered) for name in _named(violation, ordered)}:
        nodes = {one.node for one in ordered[name].segments[0].allocation}
        last = [job.running.segments[-1] for job in snapshot.instance.jobs if job.running is not None]
        ends = [one.end for one in last if nodes & {held.node for held in one.allocation}]
        moved[name] = _begun_at(ordered[name], max([ordered[name].start, *ends]))
    return moved


def _begun_at(planned: PlannedJob, at: int) -> PlannedJob:
    """Return a job of one segment with another start."""
    (segment,) = planned.segments
    end = at + segment.end - segment.start
    return replace(planned, start=at, end=end, segments=(replace(segment, start=at, end=end),))


def _about(instance: Instance, planned: Mapping[str, PlannedJob]) -> Instance:
    """Return the window of the running jobs and of those planned, as far as the latter's nodes are concerned."""
    jobs = [job for job in instance.jobs if job.running is not None or job.id in planned]
    if instance.limits or instance.free_pools or any(one.request for one in instance.reservations):
        return replace(instance, jobs=tuple(jobs), outages=())
    awaited = {one.job for job in jobs if job.id in planned for one in job.after}
    nodes = {one.node for job in planned.values() for one in job.segments[0].allocation}
    for job in jobs:
        if job.id in awaited and job.running is not None:
            nodes.add(job.running.segments[-1].allocation[0].node)
    here: list[Job] = []
    licenses = dict(instance.cluster.licenses)
    for job in jobs:
        cut = job if job.id in planned else _cut(job, nodes)
        if cut is not None:
            here.append(cut)
            continue
        for name, amount in job.licenses.items():
            licenses[name] = max(0, licenses[name] - amount)

    def own(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in nodes)

    used = {job.queue for job in here}
    queues = {name: queue for name, queue in instance.queues.items() if name in used}
    classes = [replace(one, names=own(one.names)) for one in instance.cluster.classes]
    reservations = [
        replace(one, nodes=own(one.nodes or ()), allocation=_those(one.allocation, nodes))
        for one in instance.reservations
    ]
    return replace(
        instance,
        cluster=instance.cluster.of((one for one in classes if one.names), Amounts(licenses)),
        queues=FrozenMap(
            {name: one if one.nodes is None else replace(one, nodes=own(one.nodes)) for name, one in queues.items()}
        ),
        jobs=tuple(here),
        reservations=tuple(one for one in reservations if one.nodes),
        preemption=instance.preemption and instance.preemption.among(used),
        usage=(),
        outages=(),
    )


def _cut(job: Job, nodes: Collection[str]) -> Job | None:
    """Return a running job with those of its nodes that matter, or None if it has none of them."""
    running = job.running
    if running is None:
        return None
    segments = []
    for segment in running.segments:
        allocation = _those(segment.allocation, nodes)
        if not allocation:
            return None
        segments.append(replace(segment, allocation=allocation))
    return replace(job, running=replace(running, segments=tuple(segments)), after=(), malleability=None)


def _those(allocation: Iterable[Placement], nodes: Collection[str]) -> tuple[Placement, ...]:
    # without kinds and counts, which are of the whole request
    return tuple(replace(one, chunk=None, count=None) for one in allocation if one.node in nodes)
