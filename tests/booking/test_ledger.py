"""The ledger: what it holds is what it says, releasing is the inverse of booking, and sums add up."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.domain import Amounts, Instance, NodeState, Segment
from cpsched.problem import refusal
from tests.booking.small_windows import (
    EXCLUSIVE,
    PACK,
    chunk,
    cores_for_gpus,
    nodes,
    running,
    waiting,
    where_it_stands,
    window,
)
from tests.oracle.random_instances import instances
from tests.sizes import examples

pytestmark = pytest.mark.kernels


def ledger_of(instance: Instance) -> Ledger:
    """Return a ledger of all jobs that can have a start."""
    return Ledger(
        instance,
        [job for job in instance.elements() if job.running is None and refusal(instance, job) is None],
    )


def booked(instance: Instance) -> Ledger:
    """Return a ledger in which all jobs that can have a start are planned, in document order."""
    ledger = ledger_of(instance)
    ledger.plan([job.id for job in ledger.jobs])
    return ledger


def state(ledger: Ledger) -> list[object]:
    """Return all breakpoints and what is free of each column from there on."""
    timeline = ledger.timeline
    return [
        (time, *(amounts.tolist() for amounts in timeline.free_at(time))) for time in timeline.breakpoints().tolist()
    ]


@examples(80)
@given(instances(), st.randoms(use_true_random=False))
def test_release_is_the_inverse_of_planning(instance: Instance, order: random.Random) -> None:
    """When all planned jobs are released, in any order, every column at every time is as before: running work alone
    (OCCS-33).
    """
    ledger = ledger_of(instance)
    before = state(ledger)
    ledger.plan([job.id for job in ledger.jobs])
    planned = [job.id for job in ledger.jobs if ledger.is_booked(job.id)]
    order.shuffle(planned)
    for job_id in planned:
        ledger.release(job_id)
    assert state(ledger) == before
    assert all(ledger.planned(job_id) is None for job_id in planned)


@examples(50)
@given(instances())
def test_planning_again_gives_the_same(instance: Instance) -> None:
    """A job of one kind of chunk that is released and planned again gets its place back: all others stand still."""
    ledger = booked(instance)
    for job in ledger.jobs:
        before, there = ledger.planned(job.id), state(ledger)
        if before is not None and len(job.request.chunks) == 1:
            ledger.release(job.id)
            ledger.plan([job.id])
            assert ledger.planned(job.id) == before
            assert state(ledger) == there


@examples(80)
@given(instances())
def test_sums_are_those_of_the_nodes(instance: Instance) -> None:
    """OCCS-13: at each breakpoint the sum over the nodes that are up is the system's, for each resource and group."""
    ledger = booked(instance)
    columns, layout = ledger._columns, ledger._columns.demands.layout
    for time in ledger.timeline.breakpoints().tolist():
        free, system = ledger.timeline.free_at(time)
        sums: Counter[int] = Counter()
        for run, first in zip(layout.runs, columns.demands.columns, strict=True):
            for column, numbers in zip(first, run.system, strict=True):
                for number in numbers:
                    sums[number] += int(free[column : column + run.length].sum())
        names = set(range(len(system))) - set(columns.license_number.values())
        assert {number: int(system[number]) for number in names} == {number: sums[number] for number in names}
        assert (free >= 0).all()


@examples(80)
@given(instances())
def test_holds_what_it_says(instance: Instance) -> None:
    """At each breakpoint a node has of its resources what the allocations of all jobs that hold it leave; of a node
    that a job has to itself nothing is left.
    """
    ledger = booked(instance)
    cluster = instance.cluster
    held = [
        (segment.start, segment.end, part, job.request.place.exclusive)
        for job in instance.elements()
        for segments in [job.running.segments if job.running else _segments(ledger, job.id)]
        for segment in segments
        for part in segment.allocation
    ]
    for time in ledger.timeline.breakpoints().tolist():
        now = time + instance.now
        free, _ = ledger.timeline.free_at(time)
        for name, node_class in cluster.class_of.items():
            there = [(part, alone) for start, end, part, alone in held if part.node == name and start <= now < end]
            for resource, amount in node_class.resources.items():
                if amount == 0:
                    continue
                (column, _, _), *_ = ledger._columns.columns_on(name, Amounts({resource: 1}), whole=False)
                used = sum(part.resources.get(resource, 0) for part, _ in there)
                left = 0 if any(alone for _, alone in there) else amount - used
                assert free[column] == left


def _segments(ledger: Ledger, job_id: str) -> tuple[Segment, ...]:
    """Return the segments of a waiting job, none if it has no place."""
    if job_id not in {job.id for job in ledger.jobs} or (planned := ledger.planned(job_id)) is None:
        return ()
    return planned.segments


# ---- running jobs ----


def first_start(instance: Instance) -> tuple[int, list[tuple[str, int, int]]]:
    """Return where the last job of a window stands when all are planned."""
    ledger = booked(instance)
    planned = ledger.planned(instance.jobs[-1].id)
    assert planned is not None
    return where_it_stands(instance, planned)


def test_running_jobs_hold_their_nodes() -> None:
    """4 of 16 cores are free until the running job ends, and its licence as well (BRIDI-4)."""
    node = nodes("a", cores=16)
    busy = running("r", 100, a={"cores": 12}, licenses={"solver": 1})
    one = {"solver": 1}
    assert first_start(window([node], busy, waiting("j", 9, chunk(cores=4)), licenses=one))[0] == 0
    assert first_start(window([node], busy, waiting("j", 9, chunk(cores=5)), licenses=one))[0] == 100
    licensed = waiting("j", 9, chunk(cores=1), licenses=Amounts({"solver": 1}))
    assert first_start(window([node], busy, licensed, licenses=one))[0] == 100
    assert first_start(window([node], busy, licensed, licenses={"solver": 2}))[0] == 0


def test_running_exclusive_job_leaves_nothing() -> None:
    """One core of a job that has the node to itself keeps all others off until it ends."""
    busy = running("r", 100, EXCLUSIVE, a={"cores": 1})
    assert first_start(window([nodes("a", cores=16, gpus=1)], busy, waiting("j", 9, chunk(gpus=1)))) == (
        100,
        [("a", 0, 1)],
    )


def test_running_exclusive_jobs_may_share() -> None:
    """Two running jobs on a node, one of them exclusive, are a fact: the node opens when that one ends."""
    jobs = [running("r1", 50, EXCLUSIVE, a={"cores": 2}), running("r2", 80, a={"cores": 3})]
    assert first_start(window([nodes("a", cores=8)], *jobs, waiting("j", 9, chunk(cores=5))))[0] == 50
    assert first_start(window([nodes("a", cores=8)], *jobs, waiting("j", 9, chunk(cores=6))))[0] == 80
    jobs = [running("r1", 80, EXCLUSIVE, a={"cores": 2}), running("r2", 50, EXCLUSIVE, a={"cores": 3})]
    assert first_start(window([nodes("a", cores=8)], *jobs, waiting("j", 9, chunk(cores=1))))[0] == 80


def test_running_work_may_overrun_what_is_kept() -> None:
    """15 of 16 cores run, 2 are kept for GPUs: others wait, GPU jobs get the last core.

    When one job of 10 cores has ended, 5 are in use by others and 9 of their 14 are free.
    """
    node = nodes("g", cores=16, gpus=2, keep_free=cores_for_gpus(2))
    busy = [running("r1", 50, g={"cores": 10}), running("r2", 90, g={"cores": 5})]
    asked = {
        0: chunk(cores=1, gpus=1),
        50: chunk(cores=9),
        90: chunk(cores=10),
    }
    assert {start: first_start(window([node], *busy, waiting("j", 9, c)))[0] for start, c in asked.items()} == {
        0: 0,
        50: 50,
        90: 90,
    }
    assert first_start(window([node], *busy, waiting("j", 9, chunk(cores=1))))[0] == 50


@pytest.mark.parametrize("state_", [NodeState.DRAIN, NodeState.DOWN])
def test_work_on_nodes_that_are_not_up(state_: NodeState) -> None:
    """What runs on a drained node takes nothing from the sums of those that are up."""
    classes = [nodes("a", cores=8, state=state_), nodes("b", cores=8)]
    instance = window(classes, running("r", 100, a={"cores": 8}), waiting("j", 9, chunk(cores=8)))
    assert first_start(instance) == (0, [("b", 0, 1)])


def test_overrun_walltime() -> None:
    """A job that runs beyond its walltime ends at now + 1: its nodes are free one second from now."""
    assert (
        first_start(window([nodes("a", cores=8)], running("r", 1, a={"cores": 8}), waiting("j", 9, chunk(cores=8))))[0]
        == 1
    )


def test_more_licences_run_than_there_are() -> None:
    """Licences in use beyond what there is: nobody gets one until enough have come back."""
    busy = [
        running("r1", 50, a={"cores": 1}, licenses={"solver": 2}),
        running("r2", 80, a={"cores": 1}, licenses={"solver": 2}),
    ]
    job = waiting("j", 9, chunk(cores=1), licenses=Amounts({"solver": 1}))
    assert first_start(window([nodes("a", cores=8)], *busy, job, licenses={"solver": 2}))[0] == 80


# ---- waiting jobs ----


def test_packed_request() -> None:
    """All kinds of a packed request stand on one node, each with its count, and what they take is free again later."""
    classes = [nodes("a", cores=6), nodes("b", cores=8, gpus=1)]
    instance = window(classes, waiting("j", 9, chunk(2, cores=3), chunk(1, cores=2), place=PACK))
    ledger = booked(instance)
    planned = ledger.planned("j")
    assert planned is not None
    assert where_it_stands(instance, planned) == (0, [("b", 0, 2), ("b", 1, 1)])
    assert [part.resources for part in planned.segments[0].allocation] == [{"cores": 6}, {"cores": 2}]
    ledger.release("j")
    assert len(ledger.timeline.breakpoints()) == 1


def test_release_needs_a_booking() -> None:
    """Releasing a job that has no place is refused, also the second time."""
    ledger = ledger_of(window([nodes("a", cores=8)], waiting("j", 9, chunk(cores=8))))
    with pytest.raises(ValueError, match="job j is not booked"):
        ledger.release("j")
    ledger.plan(["j"])
    ledger.release("j")
    with pytest.raises(ValueError, match="job j is not booked"):
        ledger.release("j")


def test_backfill_is_one_pass_in_the_given_order() -> None:
    """After the first of three jobs of 10 s is gone, one pass moves the others from 10 and 20 to 0 and 10."""
    jobs = [waiting(name, 10, chunk(cores=8)) for name in "abc"]
    ledger = booked(window([nodes("n", cores=8)], *jobs))
    ledger.release("a")
    assert ledger.backfill(["b", "c"]) == 2
    assert [planned and planned.start for planned in map(ledger.planned, "abc")] == [None, 0, 10]
    assert ledger.backfill(["b", "c"]) == 0


def test_backfill_gives_a_place_to_those_without() -> None:
    """A job whose deadline left no start gets one when another job is gone (OCCS-37)."""
    jobs = [waiting("a", 10, chunk(cores=8)), waiting("b", 10, chunk(cores=8), deadline=15)]
    ledger = booked(window([nodes("n", cores=8)], *jobs))
    assert not ledger.is_booked("b")
    ledger.release("a")
    assert ledger.backfill(["b"]) == 1
    planned = ledger.planned("b")
    assert planned is not None
    assert planned.start == 0


def test_slots_in_use() -> None:
    """Two jobs of 10 s one after the other, and a running one of 4 s, cut the axis at 0, 4, 14 and 24."""
    jobs = [running("r", 4, n={"cores": 8}), *(waiting(name, 10, chunk(cores=8)) for name in "ab")]
    assert len(booked(window([nodes("n", cores=8)], *jobs)).timeline.breakpoints()) == 4
