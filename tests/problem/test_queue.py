"""The order in which waiting jobs are planned."""

from __future__ import annotations

from hypothesis import given

from cpsched.domain import Dependency, DependencyType, FrozenMap, Instance, Job, Queue
from cpsched.planner import AdmissionResult
from cpsched.problem import awaited_first, bound_jobs, planning_order
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle import literal_planner
from tests.oracle.random_instances import instances
from tests.sizes import examples

ONE = chunk(cores=1)
QUEUES = FrozenMap({"high": Queue(expected_wait=60, priority=8), "low": Queue(expected_wait=60, priority=2)})


def test_order() -> None:
    """Fixed starts, deadlines, the rest; each by priority (the queue's where a job has none), submission, document
    (OCCS-35).
    """
    jobs = (
        waiting("rest", 5, ONE),
        waiting("earlier", 5, ONE, submit=-5),
        waiting("twin", 5, ONE),
        waiting("own", 5, ONE, queue="low", priority=9),
        waiting("high", 5, ONE, queue="high"),
        waiting("none", 5, ONE, queue="high", priority=0, submit=-4),
        waiting("low", 5, ONE, queue="low"),
        waiting("deadline", 5, ONE, deadline=50, priority=-3),
        waiting("soon", 5, ONE, deadline=20, priority=-3, submit=1),
        waiting("fixed", 5, ONE, start_at=9, deadline=50, priority=-9),
    )
    instance = window([nodes("a", cores=4)], *jobs, queues=QUEUES)
    order = [job.id for job in planning_order(instance, jobs)]
    assert order == ["fixed", "deadline", "soon", "own", "high", "low", "earlier", "none", "rest", "twin"]


def test_fixed_start_at_second_zero() -> None:
    """A fixed start or a deadline at second 0 is one like any other."""
    jobs = (
        waiting("rest", 5, ONE, priority=9),
        waiting("deadline", 5, ONE, deadline=0),
        waiting("fixed", 5, ONE, start_at=0),
    )
    order = [job.id for job in planning_order(window([nodes("a", cores=4)], *jobs), jobs)]
    assert order == ["fixed", "deadline", "rest"]


@examples(50)
@given(instances())
def test_order_is_the_literal_planners(instance: Instance) -> None:
    """All jobs that are not refused stand in the order of the literal planner, the elements of an array in that of
    their indices.
    """
    expected = [job.id for job in literal_planner.planning_order(instance)]
    assert [
        job.id for job in planning_order(instance, AdmissionResult.of(instance, engine="test").admitted)
    ] == expected


# ---- jobs that wait for others ----


def after(*names: str) -> tuple[Dependency, ...]:
    """Return the dependencies of a job."""
    return tuple(Dependency(job=name, type=DependencyType.AFTEROK) for name in names)


def ids(jobs: list[Job]) -> str:
    """Return the ids of some jobs."""
    return " ".join(job.id for job in jobs)


def test_awaited_jobs_come_first() -> None:
    """By priority a, b, c, d; a waits for d, and c for a: a comes behind d, and c at once behind a."""
    jobs = (
        waiting("a", 5, ONE, priority=9, after=after("d")),
        waiting("b", 5, ONE, priority=8),
        waiting("c", 5, ONE, priority=7, after=after("a", "d")),
        waiting("d", 5, ONE, priority=6),
        waiting("e", 5, ONE, priority=5),
    )
    instance = window([nodes("n", cores=4)], *jobs)
    assert ids(planning_order(instance, jobs)) == "b d a c e"
    assert ids(awaited_first(instance, jobs[::-1])) == "e d b a c"


def test_who_is_awaited_is_as_urgent_as_who_waits() -> None:
    """A fixed start lends its urgency to all before it, a deadline to those that nobody more urgent needs; priority is
    not lent.
    """
    jobs = (
        waiting("important", 5, ONE, priority=9, after=after("minor")),
        waiting("minor", 5, ONE, priority=-9),
        waiting("middle", 5, ONE),
        waiting("fixed", 5, ONE, start_at=40, after=after("direct")),
        waiting("direct", 5, ONE, priority=1, after=after("indirect")),
        waiting("indirect", 5, ONE),
        waiting("due", 5, ONE, deadline=60, after=after("direct", "other")),
        waiting("other", 5, ONE),
    )
    instance = window([nodes("n", cores=4)], *jobs)
    assert ids(planning_order(instance, jobs)) == "indirect direct fixed other due middle minor important"
    assert ids(bound_jobs(instance, jobs)) == "indirect direct fixed other due"


def test_arrays_wait_for_arrays() -> None:
    """Each element waits for all elements of the other array; one that is named alone is waited for alone."""
    jobs = (
        waiting("late", 5, ONE, array=(1, 2), priority=9, after=after("early")),
        waiting("next", 5, ONE, priority=8, after=after("early[7]")),
        waiting("early", 5, ONE, array=(5, 7)),
        waiting("between", 5, ONE, submit=1),
    )
    instance = window([nodes("n", cores=4)], *jobs)
    order = planning_order(instance, instance.elements())
    assert ids(order) == "early[5] early[7] late[1] late[2] next between"


def test_who_has_no_turn_holds_nobody_up() -> None:
    """A job whose predecessor runs, or is not among those to be ordered, comes in its own turn."""
    jobs = (
        running("r", 9, n={"cores": 1}),
        waiting("a", 5, ONE, after=after("r")),
        waiting("b", 5, ONE, after=after("gone")),
        waiting("c", 5, ONE),
        waiting("gone", 5, ONE),
    )
    assert ids(awaited_first(window([nodes("n", cores=4)], *jobs), jobs[1:4])) == "a b c"
