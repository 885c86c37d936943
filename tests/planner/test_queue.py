"""The order in which waiting jobs are planned."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from cpsched.domain import FrozenMap, Instance, Queue
from cpsched.planner import planning_order
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle import literal_planner
from tests.oracle.random_instances import instances

ONE = chunk(cores=1)
QUEUES = FrozenMap({"high": Queue(expected_wait=60, priority=8), "low": Queue(expected_wait=60, priority=2)})


def test_order() -> None:
    """Fixed starts, deadlines, the rest; each by priority (the queue's where a job has none), submission, document."""
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


@settings(max_examples=50)
@given(instances())
def test_order_is_the_literal_planners(instance: Instance) -> None:
    """All waiting jobs stand in the order of the literal planner, the elements of an array in that of their indices."""
    elements = tuple(job for job in instance.elements() if job.running is None)
    expected = [job.id for job in literal_planner.planning_order(replace(instance, jobs=elements))]
    assert [job.id for job in planning_order(instance, elements)] == expected
