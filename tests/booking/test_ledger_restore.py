"""Restoring: a job goes back to where another plan had it, if it may still stand there."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.domain import (
    Amounts,
    Dependency,
    DependencyType,
    Instance,
    NodeState,
    Placement,
    PlannedJob,
    Request,
    Segment,
    Step,
)
from tests.booking.small_windows import (
    EXCLUSIVE,
    PACK,
    SCATTER,
    chunk,
    nodes,
    running,
    waiting,
    where_it_stands,
    window,
)
from tests.booking.test_ledger import ledger_of, state
from tests.oracle.random_instances import instances, pressed
from tests.sizes import examples

pytestmark = pytest.mark.kernels

FOUR = nodes("a b", cores=4)
#: Two chunks of one kind and one of another.
MIXED = (chunk(2, cores=1), chunk(cores=2))


def at(job_id: str, start: int, *parts: tuple[str, int, int, int], end: int | None = None) -> PlannedJob:
    """Return a job of 10 s that has (node, kind, chunks, cores in all)."""
    allocation = tuple(
        Placement(node=node, chunk=kind, count=count, resources=Amounts({"cores": cores}))
        for node, kind, count, cores in parts
    )
    end = start + 10 if end is None else end
    return PlannedJob(id=job_id, start=start, end=end, segments=(Segment(start=start, end=end, allocation=allocation),))


@examples(120)
@given(instances() | instances().flatmap(pressed), st.randoms(use_true_random=False))
def test_a_whole_plan_is_restored(instance: Instance, order: random.Random) -> None:
    """What one ledger has planned, another restores to the last column, jobs that others wait for first."""
    first, second = ledger_of(instance), ledger_of(instance)
    first.plan([job.id for job in first.jobs])
    first.backfill([job.id for job in first.jobs])
    planned = [placed for job in first.jobs if (placed := first.planned(job.id)) is not None]
    order.shuffle(planned)
    left = planned
    while left:
        rest = [placed for placed in left if not second.restore(placed)]
        assert len(rest) < len(left), "nobody could be restored"
        left = rest
    for placed in planned:
        again = second.planned(placed.id)
        assert again is not None
        assert where_it_stands(instance, again) == where_it_stands(instance, placed)
    assert state(second) == state(first)


@examples(120)
@given(instances(), instances())
def test_strange_plans_change_nothing(instance: Instance, other: Instance) -> None:
    """A job goes where another window's plan has one of its name, or nothing is booked at all."""
    foreign, ledger = ledger_of(other), ledger_of(instance)
    foreign.plan([job.id for job in foreign.jobs])
    known = {job.id for job in ledger.jobs}
    for job in foreign.jobs:
        placed, before = foreign.planned(job.id), state(ledger)
        if placed is None or job.id not in known:
            continue
        if ledger.restore(placed):
            again = ledger.planned(job.id)
            assert again is not None
            assert (again.start, again.end) == (placed.start, placed.end)
        else:
            assert state(ledger) == before
            assert not ledger.is_booked(job.id)


@pytest.mark.parametrize(
    ("placed", "may"),
    [
        (at("j", 5, ("a", 0, 2, 2), ("a", 1, 1, 2)), True),
        (at("j", 5, ("b", 1, 1, 2), ("a", 0, 1, 1), ("b", 0, 1, 1)), True),
        (at("j", -1, ("a", 0, 2, 2), ("a", 1, 1, 2)), False),  # before now
        (at("j", 5, ("a", 0, 2, 2), ("a", 1, 1, 2), end=16), False),  # another walltime
        (at("j", 5, ("a", 0, 3, 3), ("a", 1, 1, 2)), False),  # more chunks
        (at("j", 5, ("a", 0, 2, 2)), False),  # a kind less
        (at("j", 5, ("a", 0, 2, 2), ("a", 2, 1, 2)), False),  # a kind that there is not
        (at("j", 5, ("a", 0, 2, 4), ("a", 1, 1, 2)), False),  # larger chunks
        (at("j", 5, ("c", 0, 2, 2), ("a", 1, 1, 2)), False),  # a node that there is not
        (at("j", 5, ("d", 0, 2, 2), ("a", 1, 1, 2)), False),  # a node that is down
        (at("j", 5, ("e", 0, 2, 2), ("a", 1, 1, 2)), False),  # without room beside those who run there
    ],
    ids=range(11),
)
def test_what_has_changed_since(placed: PlannedJob, may: bool) -> None:
    """A job is restored only with the same request and walltime, from now on, on free nodes that may hold it."""
    classes = [FOUR, nodes("d", cores=4, state=NodeState.DOWN), nodes("e", cores=4)]
    job = waiting("j", 10, *MIXED)
    ledger = Ledger(window(classes, running("r", 6, e={"cores": 3}), job), [job])
    before = state(ledger)
    assert ledger.restore(placed) is may
    assert ledger.is_booked("j") is may
    assert (state(ledger) == before) is not may


def test_a_running_allocation_is_nothing_to_restore() -> None:
    """Where the other plan does not say which chunk stands where, the job did run there, and waits again now."""
    job = waiting("j", 10, chunk(cores=1))
    placed = at("j", 5, ("a", 0, 1, 1))
    (segment,) = placed.segments
    bare = (replace(segment.allocation[0], chunk=None, count=None),)
    ledger = Ledger(window([FOUR], job), [job])
    assert not ledger.restore(replace(placed, segments=(replace(segment, allocation=bare),)))
    assert ledger.restore(placed)


@pytest.mark.parametrize(
    ("options", "parts", "may"),
    [
        ({"place": PACK}, [("a", 0, 2, 2)], True),
        ({"place": PACK}, [("a", 0, 1, 1), ("b", 0, 1, 1)], False),
        ({"place": SCATTER}, [("a", 0, 1, 1), ("b", 0, 1, 1)], True),
        ({"place": SCATTER}, [("a", 0, 2, 2)], False),
        ({"place": EXCLUSIVE}, [("a", 0, 2, 2)], True),
        ({"place": EXCLUSIVE}, [("a", 0, 1, 1), ("b", 0, 1, 1)], False),  # somebody is on b
        ({"licenses": Amounts({"solver": 2})}, [("a", 0, 2, 2)], True),
        ({"licenses": Amounts({"solver": 3})}, [("a", 0, 2, 2)], False),
        ({"not_before": 6}, [("a", 0, 2, 2)], False),
        ({"deadline": 15}, [("a", 0, 2, 2)], True),
        ({"deadline": 14}, [("a", 0, 2, 2)], False),
        ({"start_at": 4}, [("a", 0, 2, 2)], False),
    ],
    ids=range(12),
)
def test_what_the_job_asks_for_now(options: dict[str, Any], parts: list[tuple[str, int, int, int]], may: bool) -> None:
    """Place, licences and times of today count, not those of the day of the plan."""
    job = waiting("j", 10, chunk(2, cores=1), **options)
    taker = running("r", 8, b={"cores": 1}, licenses={"solver": 1})
    ledger = Ledger(window([FOUR], taker, job, licenses={"solver": 3}), [job])
    assert ledger.restore(at("j", 5, *parts)) is may


def test_several_segments_are_no_rigid_job() -> None:
    """A plan of an evolving job of the same length is not that of a rigid one."""
    job = replace(
        waiting("j", 10, chunk(cores=1)), steps=(Step(walltime=10, request=Request(chunks=(chunk(cores=1),))),)
    )
    placed = at("j", 5, ("a", 0, 1, 1))
    (segment,) = placed.segments
    halves = (replace(segment, end=10), replace(segment, start=10))
    ledger = Ledger(window([FOUR], job), [job])
    assert not ledger.restore(replace(placed, segments=halves))


@pytest.mark.parametrize(("start", "may"), [(14, False), (15, True)])
def test_dependencies_are_kept(start: int, may: bool) -> None:
    """A job that waits for another one cannot be restored before it has a place, nor at less than its distance."""
    first, second = waiting("a", 10, chunk(cores=1)), waiting("b", 10, chunk(cores=1))
    second = replace(second, after=(Dependency(job="a", type=DependencyType.AFTEROK),))
    ledger = Ledger(window([FOUR], first, second), [first, second])
    follower = at("b", start, ("b", 0, 1, 1))
    assert not ledger.restore(follower)
    assert ledger.restore(at("a", 5, ("a", 0, 1, 1)))
    assert ledger.restore(follower) is may


def test_entries_find_room_again() -> None:
    """A job that is released and restored with more entries than before keeps them: one node, two, then one."""
    job = waiting("j", 10, chunk(2, cores=1))
    ledger = Ledger(window([FOUR], job), [job])
    narrow, wide = at("j", 5, ("a", 0, 2, 2)), at("j", 7, ("a", 0, 1, 1), ("b", 0, 1, 1))
    for placed in (narrow, wide, narrow):
        assert ledger.restore(placed)
        assert ledger.planned("j") == placed
        ledger.release("j")


def test_a_changing_job_that_would_have_begun_is_not_restored() -> None:
    """Its first step is before now: a second that no timeline has."""
    steps = tuple(Step(walltime=5, request=Request(chunks=(chunk(cores=cores),))) for cores in (1, 2))
    job = replace(waiting("j", 5, chunk(cores=1)), steps=steps)
    instance = replace(window([FOUR], job), now=1)
    segments = tuple(at("j", 5 * number, ("a", 0, 1, number + 1), end=5 * number + 5).segments[0] for number in (0, 1))
    ledger = ledger_of(instance)
    assert not ledger.restore(PlannedJob(id="j", start=0, end=10, segments=segments))
    later = tuple(replace(one, start=one.start + 1, end=one.end + 1) for one in segments)
    assert ledger.restore(PlannedJob(id="j", start=1, end=11, segments=later))
