"""The least use of running jobs: those whose share a plan may change can release cores, and end earlier."""

from __future__ import annotations

from dataclasses import replace

from cpsched.domain import Instance, Job, Remaining, Running, Segment, resumable


def with_least_running(instance: Instance) -> Instance:
    """Return the instance in which running jobs leave at every second all that a plan can make them leave.

    A malleable job holds the cores of its smallest share, and only until its end with all its cores: no plan can
    have both, so every plan remains possible beside it.
    """
    lefts = [resumable(job, instance.now) for job in instance.jobs]
    if not any(lefts):
        return instance
    jobs = tuple(
        job if left is None else _at_least(job, left, instance.now)
        for job, left in zip(instance.jobs, lefts, strict=True)
    )
    return replace(instance, jobs=jobs)


def _at_least(job: Job, left: Remaining, now: int) -> Job:
    """Return a job that holds what is held on the smallest share, for as long as on the full one."""
    end = now + left.modes[0].time_for(left.work)
    start = now if job.running is None else job.running.start
    segment = Segment(start=start, end=end, allocation=left.allocations[-1])
    return replace(job, malleability=None, running=Running(start=start, segments=(segment,)))
