"""What only simulators may know, runtimes and outages, changes no plan."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from cpsched.domain import Instance, Outage
from cpsched.planner import PlannerEngine
from cpsched.portfolio import solve
from tests.oracle.random_instances import instances
from tests.sizes import examples

#: The rooms that make plans, and what none of them may ask an instance or a job for.
PLANNERS = ("booking", "planner", "policies", "search", "cp", "mzn", "portfolio")
HIDDEN = frozenset({"runtime", "outages"})


@pytest.mark.slow
@pytest.mark.parametrize("room", PLANNERS)
def test_nobody_who_plans_asks_for_what_is_hidden(repository: Path, room: str) -> None:
    """No module of a room that makes plans has an attribute of that name in its text."""
    for path in (repository / "cpsched" / room).rglob("*.py"):
        asked = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert asked.isdisjoint(HIDDEN), path


def hidden(instance: Instance) -> Instance:
    """Return an instance of which all nodes fail at once, and all jobs take a second."""
    jobs = tuple(replace(job, runtime=1) for job in instance.jobs)
    now, nodes = instance.now, instance.cluster.node_names
    return replace(instance, jobs=jobs, outages=(Outage(nodes=nodes, start=now + 1, end=now + 50),))


@examples(30)
@given(instances())
def test_a_plan_is_the_same_with_outages_and_runtimes(instance: Instance) -> None:
    """The planner's plan of an instance is the one of the same instance in which nothing is hidden."""
    engine = PlannerEngine()
    assert engine.plan(hidden(instance), None) == engine.plan(instance, None)


@examples(3)
@given(instances())
def test_a_solution_is_the_same_with_outages_and_runtimes(instance: Instance) -> None:
    """So is what the whole recipe returns, its verifier included."""
    assert solve(hidden(instance), budget=0).jobs == solve(instance, budget=0).jobs
