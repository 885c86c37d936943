"""Replicas of workloads: moved submissions, users and weeks that are drawn again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from cpsched.domain import Dependency, DependencyType, Instance
from cpsched.lab.workloads import moved, resampled_users, resampled_weeks
from cpsched.lab.workloads.changing import WEEK
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sizes import seeds

DAY = 86_400


def stream(jobs: int = 60) -> Instance:
    """Return a workload of five weeks, of four users and of jobs without one."""
    users = ("ann", "ben", "cyd", "dan", None)
    listed = [
        waiting(f"j{n}", 60, chunk(cores=1), submit=100 + n * 5 * WEEK // jobs, user=users[n % 5], deadline=10**8 + n)
        for n in range(jobs)
    ]
    return replace(window([nodes("n", cores=4)], *listed), now=0)


@pytest.mark.parametrize("seed", seeds(10))
def test_submissions_are_moved_by_so_much_at_most(seed: int) -> None:
    """Each job is there once, not before the first one, its own times move with it, and not all move alike."""
    workload = stream()
    found = moved(workload, 600, seed)
    by = [after.submit - before.submit for before, after in zip(workload.jobs, found.jobs, strict=True)]
    assert max(map(abs, by)) <= 600
    assert len(set(by)) > 30
    assert min(job.submit for job in found.jobs) >= 100
    for before, after, shift in zip(workload.jobs, found.jobs, by, strict=True):
        assert before.deadline is not None
        assert after == replace(before, submit=before.submit + shift, deadline=before.deadline + shift)
    assert moved(workload, 600, seed) == found
    assert moved(workload, 600, seed + 1) != found


def test_jobs_that_run_are_not_moved() -> None:
    """What is a fact stays one."""
    one = window([nodes("n", cores=4)], running("r", 60, n={"cores": 1}), waiting("w", 60, chunk(cores=1)))
    assert moved(one, 600, 1).jobs[0] == one.jobs[0]


def test_a_negative_distance_is_refused() -> None:
    """Nothing is moved by less than nothing."""
    with pytest.raises(ValueError, match="Expected 0 seconds or more, got -1"):
        moved(stream(), -1, 0)


@pytest.mark.parametrize("seed", seeds(10))
def test_as_many_users_are_drawn(seed: int) -> None:
    """Each drawn user has all jobs of one of the users, copies have names of their own, the rest is there once."""
    workload = stream()
    found = resampled_users(workload, seed)
    assert len({job.id for job in found.jobs}) == len(found.jobs)
    assert len({job.user for job in found.jobs} - {None}) == 4
    submits = {user: sorted(job.submit for job in workload.jobs if job.user == user) for user in ("ann", "ben", "cyd")}
    for user, of_user in submits.items():
        for copy in {job.user for job in found.jobs if job.user is not None and job.user.startswith(user)}:
            assert sorted(job.submit for job in found.jobs if job.user == copy) == of_user
    assert Counter(job.user for job in found.jobs)[None] == 12


@pytest.mark.parametrize("seed", seeds(10))
def test_weeks_follow_each_other(seed: int) -> None:
    """Each week has the jobs of one of the weeks, at the same times of the week; the last one stays the last."""
    workload = stream()
    found = resampled_weeks(workload, seed)
    assert len({job.id for job in found.jobs}) == len(found.jobs)

    def weeks(one: Instance) -> list[tuple[tuple[int, str | None], ...]]:
        listed: list[list[tuple[int, str | None]]] = [[] for _ in range(5)]
        for job in one.jobs:
            listed[(job.submit - 100) // WEEK].append(((job.submit - 100) % WEEK, job.user))
        return [tuple(sorted(week, key=str)) for week in listed]

    drawn, known = weeks(found), weeks(workload)
    assert set(drawn[:-1]) <= set(known[:-1])
    assert drawn[-1] == known[-1]


def test_jobs_that_depend_on_others_are_not_drawn() -> None:
    """A job without the one for which it waits would be another one."""
    tied = waiting("b", 60, chunk(cores=1), after=(Dependency(job="a", type=DependencyType.AFTEROK),))
    one = window([nodes("n", cores=4)], waiting("a", 60, chunk(cores=1)), tied)
    for resampled in (resampled_users, resampled_weeks):
        with pytest.raises(ValueError, match="Expected jobs that come by themselves, got b: it runs, or depends"):
            resampled(one, 0)


def test_a_workload_without_jobs_has_no_weeks() -> None:
    """Nothing is drawn from nothing."""
    empty = window([nodes("n", cores=4)])
    assert resampled_weeks(empty, 1) == resampled_users(empty, 1) == moved(empty, 5, 1) == empty
