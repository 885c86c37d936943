"""Replicas of a workload: the same jobs at other times, so that a log is one of many that could have been.

One run of a log proves little: submissions that are moved by some minutes change its weighted queue time by up to a
quarter. Policies are compared over replicas, each on the same ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cpsched.domain import Instance, Job
from cpsched.lab.workloads.load import later

#: Seconds.
WEEK = 7 * 86_400


def moved(workload: Instance, seconds: int, seed: int) -> Instance:
    """Return a workload in which each submission is moved at random, by at most so many seconds.

    No job comes before the first one of the workload. A job's own times (`not_before`, `start_at`, `deadline`) move
    with it. Jobs that run stay as they are.

    Raises `ValueError` if `seconds` is negative.
    """
    if seconds < 0:
        raise ValueError(f"Expected 0 seconds or more, got {seconds}")
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    first = min((job.submit for job in workload.jobs), default=workload.now)

    def shifted(job: Job) -> Job:
        by = max(first - job.submit, draw.randint(-seconds, seconds))
        return job if job.running is not None else later(job, by)

    return replace(workload, jobs=tuple(map(shifted, workload.jobs)))


def resampled_users(workload: Instance, seed: int) -> Instance:
    """Return a workload of as many users, drawn with replacement: some are missing, others are there several times.

    Each copy of a user is another user with the same jobs at the same times; jobs without a user are kept once.

    Raises `ValueError` if jobs run, wait for each other, or are in reservations.
    """
    _check_independent(workload)
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    users = sorted({job.user for job in workload.jobs if job.user is not None})
    times = dict.fromkeys(users, 0)
    for _ in users:
        times[draw.choice(users)] += 1
    found = []
    for job in workload.jobs:
        found += [_copy(job, number) for number in range(1 if job.user is None else times[job.user])]
    return replace(workload, jobs=tuple(found))


def resampled_weeks(workload: Instance, seed: int) -> Instance:
    """Return a workload of as many weeks, drawn with replacement; each begins when the one before it ends.

    The first week begins with the first job. The last one, which may not be whole, stays the last.

    Raises `ValueError` if jobs run, wait for each other, or are in reservations.
    """
    _check_independent(workload)
    if not workload.jobs:
        return workload
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    first = min(job.submit for job in workload.jobs)
    weeks: dict[int, list[Job]] = {}
    for job in workload.jobs:
        weeks.setdefault((job.submit - first) // WEEK, []).append(job)
    last, drawn = max(weeks), list[Job]()
    times: dict[int, int] = {}
    for place in range(last + 1):
        week = draw.randrange(last) if place < last else last
        number = times[week] = times.get(week, -1) + 1
        drawn += [
            replace(later(_copy(job, number), (place - week) * WEEK), user=job.user) for job in weeks.get(week, ())
        ]
    return replace(workload, jobs=tuple(drawn))


def _copy(job: Job, number: int) -> Job:
    """Return the copy of a job and its user with a number; the first one is the job itself."""
    if number == 0:
        return job
    return replace(job, id=f"{job.id}-{number}", user=None if job.user is None else f"{job.user}-{number}")


def _check_independent(workload: Instance) -> None:
    """Refuse a workload whose jobs cannot be drawn one by one."""
    tied = next((job for job in workload.jobs if job.after or job.running is not None or job.reservation), None)
    if tied is not None:
        raise ValueError(f"Expected jobs that come by themselves, got {tied.id}: it runs, or depends on something else")
