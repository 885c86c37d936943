"""The map of future reservations: the conservative plan of all that waits, given what runs at some time (SD-2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from cpsched.booking import Ledger
from cpsched.domain import Dependency, Instance, Job, PlannedJob, Running


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The scheduler's map of the future, valid until a predicted end changes."""

    ledger: Ledger
    #: The reserved starts of the waiting jobs; jobs that fit nowhere are left out.
    starts: dict[str, int]
    #: From when on each of these may start, by its own times and by the places of those that it waits for.
    arrivals: dict[str, int]
    #: The starts of jobs that no rule moves, by the nodes that they will have.
    promised: dict[str, list[int]]

    @classmethod
    def of(cls, instance: Instance, queue: Sequence[Job], bound: Sequence[str], kept: Mapping[str, PlannedJob]) -> View:
        """Reserve a place for each waiting job, as conservative backfilling does.

        `instance`: the running jobs, and `now`. `queue`: the waiting jobs, in the order in which they are served.
        `bound`: the first of them, which no rule moves. `kept`: the places of these in an earlier view, if they have
        one there.
        """
        ledger = Ledger(instance, queue)
        ledger.plan([job_id for job_id in bound if job_id not in kept or not ledger.restore(kept[job_id])])
        fixed = [planned for job_id in bound if (planned := ledger.planned(job_id)) is not None]
        free = [job.id for job in queue[len(bound) :]]
        starts = ledger.place(free, earliest=instance.now)
        promised: dict[str, list[int]] = {}
        for planned in fixed:
            for node in {placement.node for segment in planned.segments for placement in segment.allocation}:
                promised.setdefault(node, []).append(planned.start)
        starts |= {planned.id: planned.start for planned in fixed}
        arrivals = {job_id: arrival for job_id in starts if (arrival := ledger.earliest_start(job_id)) is not None}
        return cls(ledger=ledger, starts=starts, arrivals=arrivals, promised=promised)


def seen_at(
    time: int, instance: Instance, waiting: Sequence[Job], runs: Mapping[str, Running], placed: Mapping[str, PlannedJob]
) -> tuple[Instance, list[Job]]:
    """Return the instance at a later time, and its waiting jobs.

    `waiting`: the jobs that wait then; arrays by their elements. `runs`: the jobs that run then. `placed`: the places
    of the jobs that have started by then and for which others wait.
    """
    members, elements = instance.members(), {job.id: job for job in instance.elements()}
    names = {job.id for job in waiting}
    apart = {name for job in instance.jobs if job.array is not None for name in job.element_ids}

    @cache
    def passed(link: Dependency) -> tuple[int, bool]:
        """Return when the started jobs of a dependency allow a start, and whether others of it wait."""
        gone = [placed[name] for name in members[link.job] if name not in names]
        moments = [planned.start + link.lag(planned.end - planned.start) for planned in gone]
        return max(moments, default=time), len(gone) < len(members[link.job])

    def alone(job: Job) -> Job:
        """Return a job whose dependencies on started jobs are replaced by a time."""
        job = replace(job, array=()) if job.id in apart else job  # others can wait for its array
        if not job.after:
            return job
        earliest = max((*(passed(link)[0] for link in job.after), time if job.not_before is None else job.not_before))
        return replace(job, after=tuple(link for link in job.after if passed(link)[1]), not_before=earliest)

    queue = [alone(job) for job in waiting]
    running = [replace(elements[job_id], after=(), running=held) for job_id, held in runs.items()]
    return replace(instance, now=time, jobs=(*running, *queue)), queue
