"""Running jobs that a plan stops for urgent ones: when, which, at what price, and as people are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.answers import Answers
from cpsched.domain import Instance, Plan
from cpsched.engine import Budget
from cpsched.errors import DocumentError
from cpsched.formats import parse_instance, parse_plan, plan_to_document
from cpsched.portfolio import replan, solve, verify_plan
from cpsched.portfolio.scoring import Check
from cpsched.portfolio.stopping import stops_of
from cpsched.report import plan_table

SAVED = {"by": "checkpoint", "cost": 5, "interval": 60}


def running(name: str, node: str, since: int, way: Any) -> Any:
    """Return a job that has run on a node since a second, for an hour at most."""
    held = {"start": since, "allocation": [{"node": node, "resources": {"cores": 4}}]}
    keys = {} if way is None else {"preemptible": way}
    asks = {"submit": 0, "walltime": 3600, "request": "ncpus=4", "queue": "long"}
    return {"id": name, **asks, "running": held, **keys}


def urgent(name: str, **keys: Any) -> Any:
    """Return a waiting job that may stop others."""
    return {"id": name, "submit": 990, "walltime": 600, "request": "ncpus=4", "queue": "urgent", **keys}


def window(*jobs: Any, **keys: Any) -> Instance:
    """Return a window of two nodes at second 1000, with an urgent job."""
    queues = {"urgent": {"expected_wait": 60, "priority": 9}, "long": {"expected_wait": 3600}}
    document = {
        "format": "cpsched-instance/1",
        "name": "window",
        "now": 1000,
        "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
        "queues": queues,
        "jobs": [*jobs, urgent("u")],
        "preemption": {"queues": {"urgent": ["long"]}},
    }
    return parse_instance(document | keys)


LOST, KEPT = running("b", "n2", 800, {"by": "requeue"}), running("a", "n1", 100, SAVED)


def planned(instance: Instance, engine: str = "planner") -> Plan:
    """Plan a window; the judge finds no fault, and what is written is read again."""
    plan = solve(instance, engine=engine, budget=0)
    assert verify_plan(instance, plan) == ()
    assert parse_plan(plan_to_document(plan)).attempts == plan.attempts
    return plan


@pytest.mark.parametrize(
    ("rules", "cut", "urgent", "again"),
    [
        # 895 of its 900 s are kept, less 5 to begin again
        ({"queues": {"urgent": ["long"]}}, [("a", 1000)], 1000, (1600, 4305)),
        ({}, [("a", 1000)], 1000, (1600, 4305)),
        # with notice it writes a checkpoint at 1030: 920 of 930 s
        ({"notice": 30}, [("a", 1030)], 1030, (1630, 4310)),
        # nobody has run for so long: it waits
        ({"exempt": 950}, [], 3700, (100, 3700)),
    ],
)
def test_the_cheapest_job_is_stopped(rules: Any, cut: Any, urgent: int, again: Any) -> None:
    """The job that loses least is stopped, if it may be, and is planned again with what is left of it."""
    plan = planned(window(LOST, KEPT, preemption=rules))
    assert [(one.id, one.end) for one in plan.attempts] == cut
    jobs = {one.id: (one.start, one.end) for one in plan.jobs}
    assert (jobs["u"][0], jobs["a"], jobs["b"]) == (urgent, again, (800, 4400))


def with_memory(job: Any, memory: int, **keys: Any) -> Any:
    """Return a job that also has so much memory; a running one has it on n1 since second 100."""
    held = {"start": 100, "allocation": [{"node": "n1", "resources": {"cores": 4, "mem": memory}}]}
    return {**job, "request": f"ncpus=4:mem={memory}mb", **({"running": held} if "running" in job else {}), **keys}


NODES = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4, "mem": 8}}]}
ASLEEP = with_memory(running("a", "n1", 100, {"by": "suspend"}), 4)


def test_a_large_job_that_loses_less_than_the_small_ones_is_stopped() -> None:
    """Each small job is cheaper than the large one; together they would lose more."""
    large = running("large", "n1", 900, {"by": "requeue"}) | {"request": "2:ncpus=4"}
    held = [{"node": name, "resources": {"cores": 4}} for name in ("n1", "n2")]
    large["running"] = large["running"] | {"allocation": held}
    small = [running(f"small{node}", node, 850, {"by": "requeue"}) for node in ("n3", "n4")]
    wide = urgent("wide", request="2:ncpus=4", submit=980)
    cluster = {"nodes": [{"names": "n[1-4]", "resources": {"cores": 4}}]}
    instance = window(cluster=cluster, jobs=[large, *small, wide])
    assert [one.id for one in planned(instance).attempts] == ["large"]


@pytest.mark.parametrize("engine", ["planner", "search", "cp"])
def test_a_suspended_job_continues_where_it_was(engine: str) -> None:
    """It loses nothing, and continues with what it had when the urgent job ends, which has its cores meanwhile."""
    plan = planned(window(ASLEEP, running("b", "n2", 800, None), cluster=NODES), engine)
    jobs = {one.id: one for one in plan.jobs}
    assert [(one.id, one.start, one.end) for one in plan.attempts] == [("a", 100, 1000)]
    assert (jobs["u"].start, jobs["a"].start, jobs["a"].end) == (1000, 1600, 4300)
    assert jobs["a"].segments[0].allocation == plan.attempts[0].segments[0].allocation


@pytest.mark.parametrize(("memory", "start"), [(4, 1000), (5, 4300)])
def test_a_suspended_job_keeps_its_memory(memory: int, start: int) -> None:
    """It is suspended only for a job that finds enough memory beside it: else for the next one, u."""
    first = with_memory(urgent("v"), memory, submit=900)
    plan = planned(window(ASLEEP, running("b", "n2", 800, None), first, cluster=NODES, priorities="strict"))
    assert {one.id: one.start for one in plan.jobs}["v"] == start


@pytest.mark.parametrize("engine", ["easy", "search"])
def test_every_engine_plans_what_is_stopped(engine: str) -> None:
    """An engine that knows no stops plans the window in which the stopped job waits."""
    assert [one.id for one in planned(window(LOST, KEPT), engine).attempts] == ["a"]


@pytest.mark.parametrize(
    "jobs",
    [
        (LOST, KEPT | {"expected": 3500}),
        (LOST, KEPT, urgent("v", preemptible={"by": "requeue"}, weight=9)),
        (LOST, KEPT | {"id": "a" * 256}, urgent("0 until 1030", queue="long")),
    ],
    ids=["expected", "preemptible", "ids"],
)
def test_the_window_of_stops_is_in_order(jobs: Any) -> None:
    """Whatever else the jobs have, a window with stops is one that every reader takes."""
    assert planned(window(*jobs, preemption={"queues": {"urgent": ["long"]}, "notice": 30})).attempts


def test_nothing_is_stopped_in_vain() -> None:
    """No job is stopped where the plan is worse so, where none may be, or where the urgent job starts anyhow."""
    dear = KEPT | {"weight": 10**6, "preemptible": {"by": "requeue"}}
    only = running("c", "n2", 800, None)
    assert not planned(window(dear, only)).attempts
    assert planned(window(dear, only, priorities="strict")).attempts
    assert not planned(window(running("d", "n1", 800, None), only)).attempts
    assert not planned(window(KEPT)).attempts
    assert not planned(window(LOST, KEPT, preemption={"queues": {"long": ["urgent"]}})).attempts


def test_a_plan_with_a_fault_falls_back() -> None:
    """Where what engines made of the window breaks a rule, the planner's plan with the same stops is the answer."""
    instance = window(LOST, KEPT)
    stops, check = stops_of(instance, Budget(0)), Check.of(instance)
    plan = solve(stops.window, engine="planner", budget=0)
    late = replace(plan, jobs=tuple(job for job in plan.jobs if job.id != "u"))
    answer = stops.judged(check, late, at=0.5)
    assert stops.first is not None
    assert (answer.jobs, answer.engine.stopped) == (stops.first.jobs, "fallback")
    assert not check.faults(answer)
    assert stops.judged(check, plan, at=0.5).attempts == answer.attempts


def test_replan_refuses_stops() -> None:
    """What becomes of a stopped job is stated in the next window; `replan` does not guess it."""
    instance = window(LOST, KEPT)
    with pytest.raises(DocumentError, match="attempts"):
        replan(instance, planned(instance), at=1010)


def test_people_are_told() -> None:
    """Events, explanations and tables say what was stopped for whom."""
    instance = window(LOST, KEPT)
    plan = planned(instance)
    assert "stopped for it: a" in plan.events[0].what
    answers = Answers(instance, plan)
    assert answers.explain("u").form == "stopped for it: a"
    assert answers.explain("a").form == "stopped at now + 0 s for u, and planned again"
    assert [*map(str, plan_table(instance, plan).columns[-1].cells)].count("running") == 1
