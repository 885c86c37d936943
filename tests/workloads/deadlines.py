"""Deadlines and dependencies for the jobs of a window."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cpsched.domain import Dependency, DependencyType, Instance, Job

__all__ = ["with_deadlines"]


def with_deadlines(
    instance: Instance,
    seed: int,
    *,
    share: float = 0.2,
    dependent: float = 0.1,
    slack: tuple[float, float] = (1.2, 3.0),
) -> Instance:
    """Return a window of rigid jobs in which some wait for the success of an earlier one, and some have a deadline.

    Parameters
    ----------
    share, dependent
        The shares of the waiting jobs that have a deadline, and that wait for another one.
    slack
        The least and the most of what a deadline is drawn as: a multiple of the seconds from ``now`` to the earliest
        end of the job, on an idle machine and after the job for which it waits.
    """
    draw = Random(seed)
    waiting = [job for job in instance.jobs if job.running is None]
    late = {job.id for job in draw.sample(waiting, round(share * len(waiting)))}
    behind = {job.id for job in draw.sample(waiting[1:], round(dependent * len(waiting)))}
    ends: dict[str, int] = {}
    changed: dict[str, Job] = {}
    for place, job in enumerate(waiting):
        start = instance.earliest_start(job) - instance.now
        if job.id in behind:
            before = waiting[draw.randrange(place)].id
            job = replace(job, after=(Dependency(job=before, type=DependencyType.AFTEROK),))
            start = max(start, ends[before])
        ends[job.id] = start + job.walltime
        if job.id in late:
            job = replace(job, deadline=instance.now + int(draw.uniform(*slack) * ends[job.id]))
        changed[job.id] = job
    return replace(instance, jobs=tuple(changed.get(job.id, job) for job in instance.jobs))
