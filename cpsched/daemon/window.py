"""The window that is planned: what a snapshot says, seen from the second at which the plan will be there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpsched.daemon.state import State
from cpsched.domain import Instance, Job, PromisedStart, Running

__all__ = ["PlanningWindow", "planning_window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningWindow:
    """An instance to plan, and the jobs that wait in it."""

    instance: Instance
    #: By id.
    revisions: dict[str, str]


def planning_window(state: State, *, lead: int = 0, price: float = 1.0) -> PlanningWindow:
    """Return the window `lead` seconds after the last snapshot.

    A job that starts until then, by an order that the manager has or by the plan, runs in the window on its planned
    nodes: the new plan is made around it. A job whose walltime ends until then runs for one second more: it may be
    late. The start that a waiting job's user was told is its promised start, at this price.

    Raises
    ------
    ValueError
        If the state has no snapshot.
    """
    snapshot = state.snapshot
    if snapshot is None:
        raise ValueError("expected a state with a snapshot")
    at = snapshot.taken_at + lead
    jobs: list[Job] = []
    revisions: dict[str, str] = {}
    for job in snapshot.instance.jobs:
        if job.running is not None:
            jobs.append(_running_on(job, at))
            continue
        if state.is_barred(job.id):
            continue
        entry = state.plan.get(job.id)
        if entry is not None and lead and entry.start < at and not state.policy.is_dry_run:
            segment = replace(entry.planned.segments[0], end=max(entry.planned.end, at + 1))
            running = Running(start=entry.start, segments=(segment,))
            jobs.append(replace(job, running=running, told=None, after=(), malleability=None))
            continue
        revisions[job.id] = snapshot.jobs[job.id].revision
        promise = state.promises.get(job.id)
        jobs.append(job if promise is None else replace(job, told=PromisedStart(start=promise.start, price=price)))
    jobs = _whole(jobs)
    revisions = {job.id: revisions[job.id] for job in jobs if job.id in revisions}
    return PlanningWindow(instance=replace(snapshot.instance, now=at, jobs=tuple(jobs)), revisions=revisions)


def _whole(jobs: list[Job]) -> list[Job]:
    """Return the jobs without those that wait, by however many others, for one that is not among them."""
    while True:
        known = {job.id for job in jobs}
        left = [job for job in jobs if all(one.job in known for one in job.after)]
        if len(left) == len(jobs):
            return left
        jobs = left


def _running_on(job: Job, at: int) -> Job:
    """Return a running job that has not ended at a second."""
    running = job.running
    if running is None or running.segments[-1].end > at:
        return job
    *earlier, last = running.segments
    return replace(job, running=replace(running, segments=(*earlier, replace(last, end=at + 1))))
