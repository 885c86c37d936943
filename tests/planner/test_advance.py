"""A window some time later: ended jobs are gone, started ones run, and the plan goes on as it was."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cpsched.domain import (
    Dependency,
    DependencyType,
    Instance,
    Job,
    Malleability,
    Placement,
    Plan,
    PlannedJob,
    PromisedStart,
    Request,
    Segment,
    Step,
)
from cpsched.formats import instance_to_document, parse_instance
from cpsched.planner import Planner, advanced, replanned
from cpsched.portfolio import plan_of
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_instances import instances, pressed
from tests.oracle.random_malleable import malleable_windows
from tests.planner.checked import solved
from tests.portfolio.judged import assert_judged
from tests.sizes import examples

SLOW = examples(60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
FULL, HALF = chunk(cores=4), chunk(cores=2)


def backfilled(instance: Instance) -> Plan:
    """Return the planner's plan in which no job can move up any more."""
    planner = Planner(instance)
    planner.plan()
    planner.backfill()
    outcome = planner.outcome()
    assert_judged(instance, outcome)
    return plan_of(instance, "planner", outcome, budget=1, elapsed=0)


def one_node(*jobs: Job) -> Instance:
    """Return a window of a node of four cores."""
    return window([nodes("a", cores=4)], *jobs)


def later(instance: Instance, at: int) -> dict[str, Job]:
    """Return the jobs of a window some time later by id; its document passes the reader, and its plan the judge."""
    found = advanced(instance, solved(instance), at)
    assert parse_instance(instance_to_document(found)) == found
    solved(found)
    assert found.now == at
    return {job.id: job for job in found.jobs}


def segments_of(jobs: tuple[PlannedJob, ...]) -> dict[str, list[tuple[int, int, dict[str, dict[str, int]]]]]:
    """Return what jobs hold on each node and when, all chunks together, by id."""
    return {job.id: [(one.start, one.end, _by_node(one)) for one in job.segments] for job in jobs}


def _by_node(segment: Segment) -> dict[str, dict[str, int]]:
    held: dict[str, dict[str, int]] = {}
    for placement in segment.allocation:
        here = held.setdefault(placement.node, {})
        for name, amount in placement.resources.items():
            here[name] = here.get(name, 0) + amount
    return held


@pytest.mark.kernels
@SLOW
@given(instances() | instances().flatmap(partial(pressed, can_be_hard=False)), st.integers(0, 20))
def test_the_plan_goes_on(instance: Instance, seconds: int) -> None:
    """Of rigid jobs the plan that was made is the plan some time later, job by job and node by node, without those
    that have ended. Hard limits of waiting are left out: whom one keeps out, it does not bind once it has passed.
    """
    classes = tuple(replace(node_class, keep_free=()) for node_class in instance.cluster.classes)
    instance = replace(instance, cluster=replace(instance.cluster, classes=classes))
    plan = backfilled(instance)
    at = instance.now + seconds
    found = advanced(instance, plan, at)
    assert parse_instance(instance_to_document(found)) == found
    outcome = replanned(found, plan)
    assert_judged(found, outcome)
    assert segments_of(outcome.jobs) == segments_of(tuple(job for job in plan.jobs if job.end > at))
    assert {job.id for job in outcome.waiting_room} == {job.id for job in plan.waiting_room}


@pytest.mark.kernels
@SLOW
@given(evolving_instances() | malleable_windows(), st.integers(0, 20))
def test_promises_are_kept(instance: Instance, seconds: int) -> None:
    """Where jobs evolve or shrink, all that have started go on as planned, and nobody else starts or ends later. A job
    that was shrunk may get its cores back earlier than was planned.
    """
    plan = backfilled(instance)
    at = instance.now + seconds
    found = advanced(instance, plan, at)
    assert parse_instance(instance_to_document(found)) == found
    outcome = replanned(found, plan)
    assert_judged(found, outcome)
    old, new = (segments_of(jobs) for jobs in (plan.jobs, outcome.jobs))
    entries = {job.id: job for job in found.elements()}
    assert new.keys() >= {job.id for job in plan.jobs if job.end > at}
    for job in plan.jobs:
        if job.start < at < job.end and new[job.id] != old[job.id]:
            assert entries[job.id].malleability is not None
            assert new[job.id][-1][1] < old[job.id][-1][1]
        elif job.end > at:
            assert new[job.id][0][0] <= job.start
            assert new[job.id][-1][1] <= job.end


def test_now_is_now() -> None:
    """At `now` nothing has happened: a job that starts then still waits."""
    instance = one_node(running("r", 5, a={"cores": 1}), waiting("w", 3, HALF))
    plan = solved(instance)
    assert {job.id: job.start for job in plan.jobs}["w"] == 0
    assert advanced(instance, plan, 0) == instance
    assert {job.id: job.running is not None for job in advanced(instance, plan, 1).jobs} == {"r": True, "w": True}


def test_time_does_not_run_back() -> None:
    """There is no window before `now`."""
    instance = one_node(waiting("w", 3, HALF))
    with pytest.raises(ValueError, match="from 0 on, got -1"):
        advanced(instance, solved(instance), -1)


def test_elements_leave_their_array() -> None:
    """Of four elements, two at a time, two have ended at 6, two run; at 3 two run and two wait; told is for these."""
    array = waiting("x", 5, HALF, array=(0, 1, 2, 7), told=PromisedStart(start=9))
    instance = one_node(array)
    at_3 = later(instance, 3)
    assert list(at_3) == ["x[0]", "x[1]", "x"]
    assert (at_3["x"].array, at_3["x"].told) == ((2, 7), PromisedStart(start=9))
    assert (at_3["x[0]"].array, at_3["x[0]"].told) == (None, None)
    assert list(later(instance, 6)) == ["x[2]", "x[7]"]
    assert list(later(instance, 10)) == []


@pytest.mark.parametrize(
    ("kind", "delay", "at", "after", "not_before"),
    [
        ("afterok", 0, 3, [("r", 0)], None),  # it runs still
        ("afterok", 0, 6, [], None),  # it has ended
        ("afterok", 4, 6, [], 9),  # the delay goes on
        ("afterany", 4, 9, [], None),  # the delay is over
        ("after", 8, 6, [], 8),  # counted from the start
    ],
)
def test_dependencies(kind: str, delay: int, at: int, after: list[tuple[str, int]], not_before: int | None) -> None:
    """A job that waits for r, which runs until 5, waits for it while it runs, and for the rest of its delay."""
    link = Dependency(job="r", type=DependencyType(kind), delay=delay)
    instance = one_node(running("r", 5, a={"cores": 1}), waiting("w", 3, FULL, after=(link,), start_at=20))
    job = later(instance, at)["w"]
    assert ([(link.job, link.delay - delay) for link in job.after], job.not_before) == (after, not_before)


def test_dependencies_on_arrays() -> None:
    """A job that waits for an array waits for the rest of it, and for each element that runs."""
    array = waiting("x", 5, HALF, array=(0, 1, 2, 3, 4))
    instance = one_node(
        array, waiting("w", 1, FULL, after=(Dependency(job="x", type=DependencyType.AFTEROK, delay=2),))
    )
    assert [link.job for link in later(instance, 3)["w"].after] == ["x", "x[0]", "x[1]"]
    assert [link.job for link in later(instance, 8)["w"].after] == ["x", "x[2]", "x[3]"]
    assert [link.job for link in later(instance, 12)["w"].after] == ["x[4]"]
    at_16 = later(instance, 16)["w"]
    assert (at_16.after, at_16.not_before) == ((), 17)


def test_chunks_of_malleable_jobs_are_said() -> None:
    """A malleable job that has started states its chunks on each node, so that its share may change again."""
    half = Malleability(shares=(0.5,))
    instance = one_node(waiting("m", 8, FULL, malleability=half), waiting("r", 2, HALF, not_before=20))
    (held,) = _allocation(later(instance, 1)["m"])
    assert (held.chunk, held.count) == (0, 1)


def test_a_share_that_the_plan_changes_is_a_fact_then() -> None:
    """The plan lets m go on with half of its cores, so that w can start: some time later m runs so, its chunk is said,
    and the plan goes on.
    """
    m = replace(
        running("m", 100, a={"cores": 4}),
        malleability=Malleability(shares=(0.5,)),
        steps=(Step(walltime=100, request=Request(chunks=(FULL,))),),
    )
    instance = one_node(m, waiting("w", 10, HALF))
    plan = solved(instance)
    assert {job.id: job.start for job in plan.jobs} == {"m": 0, "w": 0}
    at_3 = advanced(instance, plan, 3)
    assert parse_instance(instance_to_document(at_3)) == at_3
    segments = at_3.jobs[0].running
    assert segments is not None
    assert [held.resources["cores"] for one in segments.segments for held in one.allocation] == [2, 4]
    assert {(held.chunk, held.count) for one in segments.segments for held in one.allocation} == {(0, 1)}
    outcome = replanned(at_3, plan)
    assert_judged(at_3, outcome)
    assert segments_of(outcome.jobs) == segments_of(plan.jobs)


@pytest.mark.parametrize("malleability", [None, Malleability(shares=(0.5,))])
def test_a_job_that_has_started_states_its_chunks(malleability: Malleability | None) -> None:
    """A running job names each node once for each kind of its chunks, so that nobody has to guess them later."""
    instance = one_node(waiting("w", 8, chunk(cores=1), chunk(cores=2), malleability=malleability))
    allocation = _allocation(later(instance, 1)["w"])
    assert {(held.chunk, held.count, held.resources["cores"]) for held in allocation} == {(0, 1, 1), (1, 1, 2)}
    at_1 = advanced(instance, solved(instance), 1)
    assert parse_instance(instance_to_document(at_1)) == at_1
    assert_judged(at_1, replanned(at_1, solved(instance)))


def test_who_has_no_start_waits_on() -> None:
    """A job of the waiting room, and one that the plan does not know, are in the window as before."""
    jobs = (waiting("w", 3, chunk(cores=8)), waiting("v", 3, HALF))
    plan = solved(one_node(jobs[0]))
    assert advanced(one_node(*jobs), plan, 5).jobs == jobs


def _allocation(job: Job) -> tuple[Placement, ...]:
    assert job.running is not None
    return job.running.segments[0].allocation
