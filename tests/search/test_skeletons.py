"""Schedules of the widest jobs: as short as the best of all orders, and proven to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import FrozenMap, ObjectiveTerm
from cpsched.lab.workloads import job_mix
from cpsched.search.genetic import Breeding
from cpsched.search.skeletons import Skeleton, Skeletons, measures_of, wide_jobs
from tests.oracle.naive_project import NaiveProject
from tests.search.searched import searched
from tests.search.test_genetic import chain_of
from tests.search.test_search_links import project
from tests.sizes import examples

CAPACITY = 10
#: (what it takes, seconds, earliest start) of a job.
JOBS = st.lists(st.tuples(st.integers(1, CAPACITY), st.integers(1, 9), st.integers(0, 8)), min_size=1, max_size=5)
Asked = tuple[int, int, int]


def twin_of(jobs: Sequence[Asked]) -> NaiveProject:
    """Return the naive twin of jobs that share one sum."""
    needs, durations, earliest = zip(*jobs, strict=True)
    return NaiveProject(
        durations=durations,
        needs=[[need] for need in needs],
        earliest=earliest,
        links=[],
        free=lambda _: [CAPACITY],
    )


def least_end(jobs: Sequence[Asked]) -> int:
    """Return the end of the best of all orders, each job as early as it fits beside those before it."""
    twin = twin_of(jobs)
    return min(twin.end(twin.decoded(order)) for order in permutations(range(len(jobs))))


def search_of(jobs: Sequence[Asked], seed: int = 0) -> Skeletons:
    """Return a search for schedules of the wide ones of some jobs."""
    needs, durations, earliest = np.array(jobs, dtype=np.int64).T.copy()
    return Skeletons(needs, durations, earliest, CAPACITY, seed)


def settled(search: Skeletons, moments: int = 1000, count: int = 1) -> Skeleton:
    """Return the schedule with the least end, of so many jobs or more."""
    found = None
    while found is None or not search.is_settled or len(found.jobs) < count:
        found = search.run(moments) or found
    return found


@pytest.mark.kernels
@examples(200)
@given(jobs=JOBS, seed=st.integers(0, 5), moments=st.sampled_from((1, 1000)))
def test_the_least_end_is_that_of_the_best_order(jobs: list[Asked], seed: int, moments: int) -> None:
    """What is proven of the wide jobs is the end of their best schedule, which keeps to the sum, however few moments
    are looked at in a call; and so it goes on until it is proven of all jobs.
    """
    search, count = search_of(jobs, seed), 1
    while count <= len(jobs):
        found = settled(search, moments, count)
        wide = [jobs[row] for row in found.jobs]
        twin = twin_of(wide)
        assert twin.is_feasible(found.starts.tolist())
        assert search.least == twin.end(found.starts.tolist()) == least_end(wide)
        count = len(wide) + 1


@pytest.mark.kernels
@examples(200)
@given(jobs=JOBS, seed=st.integers(0, 5), moments=st.sampled_from((1, 1000)))
def test_nothing_is_found_that_ends_no_sooner_than_a_plan(jobs: list[Asked], seed: int, moments: int) -> None:
    """If no schedule ends before the best plan, none is found, and that is proven."""
    search = search_of(jobs, seed)
    search.before = least_end(jobs)
    while not search.is_over:
        found = search.run(moments)
        assert found is None or len(found.jobs) < len(jobs)
    assert search.least == search.before
    assert search.run(moments) is None


@given(jobs=JOBS)
def test_jobs_that_fit_together_measure_no_more_than_the_most(jobs: list[Asked]) -> None:
    """No three of the first wide jobs fit beside each other; and no set of jobs that fits measures too much."""
    needs, durations, _ = np.array(jobs, dtype=np.int64).T
    wide = needs[wide_jobs(needs, durations, CAPACITY)]
    assert len(wide) < 3 or np.sort(wide)[:3].sum() > CAPACITY
    measures, most = measures_of(needs, durations, CAPACITY)
    sets = np.array(list(product((0, 1), repeat=len(jobs))))
    fitting = sets[sets @ needs <= CAPACITY]
    assert ((measures @ fitting.T).max(axis=1) <= most).all()


def test_jobs_that_may_change_places_do_so() -> None:
    """In lists that a schedule is sown in, its jobs come first, and those that are alone at the end in any order."""
    chain = chain_of(job_mix(3))
    breeding = Breeding(chain, [], 1)
    search = breeding.skeletons()
    assert search is not None
    found = settled(search, 100_000)
    breeding.sow(found)
    keys = breeding._lists.next_keys
    fixed, movable = found.jobs[~found.is_movable], found.jobs[found.is_movable]
    others = np.setdiff1d(np.arange(keys.shape[1]), found.jobs)
    assert (keys[:, fixed].max(axis=1) < keys[:, movable].min(axis=1)).all()
    assert (keys[:, movable].max(axis=1) < keys[:, others].min(axis=1)).all()
    assert len({tuple(np.argsort(row)) for row in keys[:, movable]}) > 1
    breeding.run(len(keys))
    assert breeding.best_value == search.least


def test_a_mix_of_jobs_is_proven_optimal() -> None:
    """The search finds the shortest plan of a mix, and proves that it is."""
    board = searched(job_mix(11), max_steps=5_000)
    assert board.is_optimal


def test_where_more_counts_than_the_last_end_nothing_is_proven() -> None:
    """Where starts have a price, and where jobs wait for others, no schedules of wide jobs are searched for."""
    instance = job_mix(1)
    both = FrozenMap({ObjectiveTerm.MAKESPAN: 1.0, ObjectiveTerm.WEIGHTED_WAIT: 1e-6})
    priced = replace(instance, objective=replace(instance.objective, weights=both))
    for other in (priced, project(20, 1, ObjectiveTerm.MAKESPAN)):
        assert Breeding(chain_of(other), [], 1).skeletons() is None
