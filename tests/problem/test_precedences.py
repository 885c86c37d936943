"""Dependencies as distances between starts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx import DiGraph, transitive_reduction

from cpsched.domain import Dependency, DependencyType, Instance, Job
from cpsched.problem import Lag, Milestone, Precedences, awaited_ends, by_job, precedences
from cpsched.problem.precedences import reduced
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sizes import examples


def linked(*jobs: Job) -> Instance:
    """Return a window of one node."""
    return window([nodes("n", cores=4)], *jobs)


def after(name: str, kind: DependencyType = DependencyType.AFTEROK, delay: int = 0) -> Dependency:
    """Return a dependency."""
    return Dependency(job=name, type=kind, delay=delay)


def test_a_start_and_an_end_are_distances_from_the_start() -> None:
    """One that waits for a start waits for the delay only, one that waits for an end for the walltime, too."""
    jobs = (
        waiting("a", 50, chunk(cores=1)),
        waiting("b", 10, chunk(cores=1), after=(after("a", DependencyType.AFTER, 5),)),
        waiting("c", 10, chunk(cores=1), after=(after("a", delay=5), after("b"))),
    )
    found = Precedences(linked(*jobs), jobs)
    assert found.milestones() == (
        Milestone(before=((0, 0),), after=((1, 5),), is_from_end=False),
        Milestone(before=((0, 50),), after=((2, 5),), is_from_end=True),
        Milestone(before=((1, 10),), after=((2, 0),), is_from_end=True),
    )
    assert [list(one.lags()) for one in found.milestones()] == [[Lag(0, 1, 5)], [Lag(0, 2, 55)], [Lag(1, 2, 10)]]
    assert [found.released(job) for job in jobs] == [0, 0, 0]


def test_entries_by_job() -> None:
    """Each job has its entries in the order of the milestones, by their numbers."""
    assert by_job([[(3, 7), (1, 2)], [], [(3, 0), (3, 5)]]) == {3: [(0, 7), (2, 0), (2, 5)], 1: [(0, 2)]}
    array = waiting("a", 50, chunk(cores=1), array=(1, 2))
    assert linked(array).names() == {"a[1]": ["a[1]", "a"], "a[2]": ["a[2]", "a"]}


def test_running_jobs_release_at_a_second() -> None:
    """A job that waits for running ones may start when the last of them has ended, or after a delay from its start."""
    jobs = running("r", 30, n={"cores": 1}), running("s", 20, n={"cores": 1})
    waits = waiting("w", 10, chunk(cores=1), after=(after("r"), after("s", DependencyType.AFTER, 25)))
    found = Precedences(linked(*jobs, waits), [waits])
    assert found.released(waits) == 30
    assert found.milestones() == ()


def test_an_array_means_all_of_its_elements() -> None:
    """A dependency on an array is one on each element that waits; where one has no start, there is no release."""
    array = waiting("a", 50, chunk(cores=1), array=(1, 2))
    last = waiting("z", 10, chunk(cores=1), after=(after("a"),))
    instance = linked(array, last)
    jobs = instance.elements()
    assert Precedences(instance, jobs).milestones() == (Milestone(((0, 50), (1, 50)), ((2, 0),), is_from_end=True),)
    assert Precedences(instance, jobs[1:]).released(last) is None
    assert awaited_ends(instance) == {"a[1]", "a[2]"}


def starts(milestones: Sequence[Milestone], length: Sequence[int]) -> list[int]:
    """Return the earliest starts of jobs that wait for jobs of lower numbers only, and take so long."""
    found = [0] * len(length)
    for job in range(len(length)):
        for one in milestones:
            passed = max(found[before] + (length[before] if one.is_from_end else 0) for before, _ in one.before)
            found[job] = max([found[job], *(passed + delay for after, delay in one.after if after == job)])
    return found


@examples(100)
@given(seed=st.integers(0, 2**32))
def test_waits_that_others_imply_are_left_out(seed: int) -> None:
    """Whatever jobs take, they start as early without them; of jobs that wait for ends alone as few waits are left as
    networkx leaves.
    """
    random = Random(seed)
    count, milestones = random.randint(2, 12), list[Milestone]()
    for _ in range(random.randint(1, 12)):
        parts = random.randint(1, count - 1)
        before, after = range(parts), range(parts, count)
        chosen = [sorted(random.sample(part, random.randint(1, min(len(part), 4)))) for part in (before, after)]
        waits = tuple((job, random.choice((0, 0, 0, 5))) for job in chosen[1])
        milestones.append(Milestone(tuple((job, 0) for job in chosen[0]), waits, random.random() < 0.7))
    left = reduced(milestones)
    assert sum(len(one.after) for one in left) <= sum(len(one.after) for one in milestones)
    for _ in range(3):
        length = [random.choice((0, 1, 3, 9)) for _ in range(count)]
        assert starts(left, length) == starts(milestones, length)
    graph = DiGraph((one, other) for other in range(count) for one in range(other) if random.random() < 0.5)
    ends = [Milestone(((one, 1),), tuple((other, 0) for other in graph[one]), is_from_end=True) for one in graph]
    kept = {(one.before[0][0], other) for one in reduced(ends) for other, _ in one.after}
    assert kept == set(transitive_reduction(graph).edges)


def test_of_many_milestones_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit they are as they were stated."""
    chain = [
        Milestone(((0, 9),), ((1, 0), (2, 0)), is_from_end=True),
        Milestone(((1, 9),), ((2, 0),), is_from_end=True),
    ]
    assert reduced(chain) == (chain[0]._replace(after=((1, 0),)), chain[1])
    monkeypatch.setattr(precedences, "_MOST_REDUCED", 1)
    assert reduced(chain) == tuple(chain)
