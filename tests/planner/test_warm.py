"""Replanning: what an earlier plan said stays where it can, whatever has happened since."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    MaxWait,
    NodeState,
    Plan,
    PlannedJob,
    PromisedStart,
    Queue,
)
from cpsched.metrics import objective_value
from cpsched.planner import AdmissionResult, Planner, PlannerEngine, replanned, with_promised_starts
from cpsched.planner.warm import ordered, planned_by
from cpsched.portfolio import plan_of
from tests.booking.small_windows import chunk, nodes, running, waiting, where_it_stands, window
from tests.oracle.random_instances import instances, pressed
from tests.portfolio.judged import assert_judged
from tests.sizes import examples

ONE, FULL = chunk(cores=1), chunk(cores=4)


def plan_by_planner(instance: Instance) -> Plan:
    """Return the planner's plan."""
    return plan_of(instance, "planner", PlannerEngine().plan(instance, None), budget=1, elapsed=0)


def where(instance: Instance, plan: Plan) -> dict[str, tuple[int, set[str]]]:
    """Return start and nodes of all jobs that `replanned` plans, after a look of the judge."""
    outcome = replanned(instance, plan)
    assert_judged(instance, outcome)
    seen = {job.id for job in outcome.jobs} | {job.id for job in outcome.waiting_room}
    assert seen == {job.id for job in instance.elements()}
    return {job.id: (job.start, nodes_of(job)) for job in outcome.jobs}


def nodes_of(job: PlannedJob) -> set[str]:
    """Return the nodes of a planned job."""
    return {placement.node for segment in job.segments for placement in segment.allocation}


def moved(plan: Plan, job_id: str, start: int, node: str) -> Plan:
    """Return the plan with one of its jobs elsewhere: a place that the planner would not choose."""
    (job,) = (job for job in plan.jobs if job.id == job_id)
    (segment,) = job.segments
    allocation = tuple(replace(placement, node=node) for placement in segment.allocation)
    end = start + job.end - job.start
    other = replace(
        job, start=start, end=end, segments=(replace(segment, start=start, end=end, allocation=allocation),)
    )
    return replace(plan, jobs=tuple(other if one.id == job_id else one for one in plan.jobs))


def two_nodes(*jobs: Job, **options: Any) -> Instance:
    """Return a window of two nodes of four cores."""
    return window([nodes("a b", cores=4)], *jobs, **options)


@pytest.mark.kernels
@examples(80)
@given(instances() | instances().flatmap(pressed))
def test_without_a_change_the_plan_stays(instance: Instance) -> None:
    """A plan in which every job has a place, and no job can move up, is its own successor, job by job, node by node."""
    planner = Planner(instance)
    planner.plan()
    planner.backfill()
    before = planner.outcome()
    if any(job.id not in AdmissionResult.of(instance, engine="test").refused for job in before.waiting_room):
        return
    after = replanned(instance, plan_of(instance, "planner", before, budget=1, elapsed=0))
    assert [job.id for job in after.jobs] == [job.id for job in before.jobs]
    for old, new in zip(before.jobs, after.jobs, strict=True):
        assert where_it_stands(instance, new) == where_it_stands(instance, old)
    assert after.waiting_room == before.waiting_room


@examples(80)
@given(instances(), instances().flatmap(pressed))
def test_a_plan_of_another_window(instance: Instance, other: Instance) -> None:
    """For any earlier plan, the new one is valid and has all jobs."""
    where(instance, plan_by_planner(other))
    where(other, plan_by_planner(instance))


@examples(80)
@given(instances().flatmap(pressed), st.integers(0, 12), st.randoms(use_true_random=False))
def test_time_goes_by(instance: Instance, seconds: int, pick: random.Random) -> None:
    """Some time later, with some jobs gone and some nodes down, the new plan is valid; an untouched one still stands.

    A job that keeps its place has not moved a second; jobs only move up from there.
    """
    plan = plan_by_planner(instance)
    left = tuple(job for job in instance.jobs if job.running is not None or pick.random() < 0.8)
    names = {job.id for job in left}
    left = tuple(replace(job, after=tuple(d for d in job.after if d.job in names)) for job in left)
    ended = tuple(job for job in left if job.running is None or job.running.segments[-1].end > instance.now + seconds)
    classes = tuple(
        replace(node_class, state=NodeState.DOWN) if pick.random() < 0.2 else node_class
        for node_class in instance.cluster.classes
    )
    names = {job.id for job in ended}
    ended = tuple(replace(job, after=tuple(d for d in job.after if d.job in names)) for job in ended)
    later = replace(
        instance, now=instance.now + seconds, jobs=ended, cluster=replace(instance.cluster, classes=classes)
    )
    where(later, plan)


def warm_order(instance: Instance, plan: Plan) -> list[str]:
    """Return the waiting jobs in the order in which a plan that lives takes those that lost their places."""
    waiting_jobs = tuple(job for job in instance.elements() if job.running is None)
    return [job.id for job in ordered(instance, waiting_jobs, planned_by(plan.jobs, plan.now))]


def test_starts_and_nodes_are_kept() -> None:
    """Each job stays on the node where the earlier plan has it, though the planner would choose the other one."""
    instance = two_nodes(waiting("x", 10, FULL), waiting("y", 10, FULL))
    plan = plan_by_planner(instance)
    assert {job.id: (job.start, nodes_of(job)) for job in plan.jobs} == {"x": (0, {"a"}), "y": (0, {"b"})}
    swapped = moved(moved(plan, "x", 0, "b"), "y", 0, "a")
    assert where(instance, swapped) == {"x": (0, {"b"}), "y": (0, {"a"})}


def test_jobs_come_and_go() -> None:
    """Of three in a row the first is gone: the others move up, and the new one takes what is left behind them."""
    one = window([nodes("a", cores=4)], *(waiting(name, 10, FULL) for name in "xyz"))
    plan = plan_by_planner(one)
    new = waiting("new", 10, FULL, priority=99)
    later = replace(one, jobs=(new, *one.jobs[1:]))
    assert warm_order(later, plan) == ["y", "z", "new"]
    # y and z stand at 10 and 20, the new one takes the second 0 that x has left, and there is nothing to move up into
    assert where(later, plan) == {"new": (0, {"a"}), "y": (10, {"a"}), "z": (20, {"a"})}
    assert where(replace(one, jobs=one.jobs[1:]), plan) == {"y": (0, {"a"}), "z": (10, {"a"})}


def test_a_node_went_down() -> None:
    """The job that stood on it is planned anew, behind those that stay where they are."""
    classes = [nodes("a", cores=4), nodes("b", cores=4)]
    one = window(classes, *(waiting(name, 10, FULL) for name in "xyz"))
    plan = plan_by_planner(one)
    assert {job.id: (job.start, nodes_of(job)) for job in plan.jobs} == {
        "x": (0, {"a"}), "y": (0, {"b"}), "z": (10, {"a"})
    }  # fmt: skip
    broken = window([classes[0], replace(classes[1], state=NodeState.DOWN)], *one.jobs)
    assert where(broken, plan) == {"x": (0, {"a"}), "z": (10, {"a"}), "y": (20, {"a"})}


def test_a_job_began_to_run() -> None:
    """At second 5 x runs on b, where y should have begun: y follows it there, and z takes a at once."""
    one = two_nodes(*(waiting(name, 10, FULL) for name in "xyz"))
    plan = plan_by_planner(one)
    x = replace(one.jobs[0], running=running("x", 10, b={"cores": 4}).running)
    later = replace(one, now=5, jobs=(x, *one.jobs[1:]))
    assert warm_order(later, plan) == ["y", "z"]
    assert where(later, plan) == {"x": (0, {"b"}), "y": (10, {"b"}), "z": (5, {"a"})}


def test_who_should_have_started_starts_now() -> None:
    """At second 3 a start at 0 has passed: the job is planned again, as early as it fits beside those that stay."""
    one = two_nodes(waiting("x", 10, FULL), waiting("y", 10, FULL))
    plan = plan_by_planner(one)
    assert where(replace(one, now=3), plan) == {"x": (3, {"a"}), "y": (3, {"b"})}


def test_a_new_job_with_a_deadline_takes_what_was_planned() -> None:
    """It can only run now: the one that stood there goes behind the other one, which moves up."""
    one = window([nodes("a", cores=4)], waiting("x", 10, FULL), waiting("y", 10, FULL))
    plan = plan_by_planner(one)
    later = replace(one, jobs=(*one.jobs, waiting("new", 5, FULL, deadline=5)))
    assert where(later, plan) == {"new": (0, {"a"}), "y": (5, {"a"}), "x": (20, {"a"})}


def test_dependencies_hold() -> None:
    """A chain stays as it was planned; where its first job has to move, all of it does."""
    chain = [waiting("x", 10, FULL)]
    chain += [
        waiting(name, 10, ONE, after=(Dependency(job=before, type=DependencyType.AFTEROK),))
        for before, name in (("x", "y"), ("y", "z"))
    ]
    one = window([nodes("a", cores=4)], *chain)
    plan = plan_by_planner(one)
    assert {job.id: start for job, (start, _) in zip(plan.jobs, where(one, plan).values(), strict=True)} == {
        "x": 0, "y": 10, "z": 20
    }  # fmt: skip
    later = replace(one, jobs=(*chain, running("r", 7, a={"cores": 1})))
    assert {job_id: start for job_id, (start, _) in where(later, plan).items()} == {"r": 0, "x": 7, "y": 17, "z": 27}


def test_warm_order_of_equals_is_the_planners() -> None:
    """Jobs with the same old start, and jobs without one, are ordered as the planner does it; elements by their own."""
    jobs = (
        waiting("low", 5, ONE), waiting("array", 5, ONE, array=(0, 1)), waiting("high", 5, ONE, priority=9),
        waiting("new", 5, ONE, priority=8), waiting("newer", 5, ONE, submit=-5),
    )  # fmt: skip
    instance = two_nodes(*jobs)
    old = replace(instance, jobs=jobs[:3])
    plan = moved(plan_by_planner(old), "array[0]", 50, "a")
    assert warm_order(instance, plan) == ["high", "low", "array[1]", "array[0]", "new", "newer"]


def test_told_by_an_earlier_plan() -> None:
    """Jobs that wait in both were told their start, an array the last one of its elements; the others nothing."""
    jobs = (
        waiting("x", 10, FULL),
        waiting("array", 10, FULL, array=(0, 1)),
        waiting("gone", 10, FULL),
        running("r", 20, b={"cores": 4}),
    )
    one = two_nodes(*jobs)
    plan = plan_by_planner(one)
    begun = replace(waiting("gone", 10, FULL), running=running("gone", 50, a={"cores": 4}).running)
    later = replace(one, jobs=(*jobs[:2], begun, jobs[3], waiting("new", 10, FULL)))
    told = {job.id: job.told for job in with_promised_starts(later, plan, 2.5).jobs}
    starts = {job.id: job.start for job in plan.jobs}
    assert starts["array[0]"] < starts["array[1]"]
    assert told == {
        "x": PromisedStart(start=starts["x"], price=2.5),
        "array": PromisedStart(start=starts["array[1]"], price=2.5),
        "gone": None,
        "r": None,
        "new": None,
    }


def test_what_the_instance_says_was_told_remains() -> None:
    """An earlier plan does not overwrite the start that the document says its user was told."""
    one = two_nodes(waiting("x", 10, FULL, told=PromisedStart(start=7)))
    assert with_promised_starts(one, plan_by_planner(one), 3.0) == one


def test_who_ran_was_not_told_a_start() -> None:
    """A job that ran in the earlier plan and waits again keeps what the document says, and so does one it lacks."""
    one = two_nodes(running("r", 20, b={"cores": 4}), now=1)
    again = waiting("r", 20, FULL, told=PromisedStart(start=7))
    assert with_promised_starts(two_nodes(again, now=5), plan_by_planner(one), 3.0).jobs == (again,)


def test_to_postpone_costs_its_price() -> None:
    """A job that was told 0 and starts at 18 pays 2 for each expected wait of 9 s: 2 x 2 beside its wait of 2."""
    queues = FrozenMap({"q": Queue(expected_wait=9, max_wait=MaxWait(seconds=900))})
    one = window([nodes("a", cores=4)], waiting("x", 10, FULL, queue="q"), queues=queues)
    plan = plan_by_planner(one)
    later = with_promised_starts(replace(one, jobs=(*one.jobs, running("r", 18, a={"cores": 1}))), plan, 2)
    outcome = replanned(later, plan)
    assert_judged(later, outcome)
    assert objective_value(later, outcome.jobs) == 6
