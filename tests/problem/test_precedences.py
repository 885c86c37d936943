"""Dependencies as distances between starts."""

from __future__ import annotations

from cpsched.domain import Dependency, DependencyType, Instance, Job
from cpsched.problem import Lag, Milestone, Precedences, awaited_ends, by_job
from tests.booking.small_windows import chunk, nodes, running, waiting, window


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
