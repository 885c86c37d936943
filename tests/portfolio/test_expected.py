"""Jobs that state how long they are expected to run: plans hold walltimes, slowdowns and Smith's order reckon with
less.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.sizes import some


def window(*jobs: dict[str, Any], objective: str = "slowdown") -> Instance:
    """Return a window of one core."""
    document = {
        "format": "cpsched-instance/1",
        "name": "expected",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 1}}]},
        "jobs": [{"id": f"j{number}", "submit": 0, "request": "ncpus=1", **job} for number, job in enumerate(jobs)],
        "objective": objective,
    }
    return parse_instance(document, source="expected")


def planned(instance: Instance, engine: str, budget: float = 1.0) -> Plan:
    """Return the plan of an engine, which the verifier passes."""
    plan = solve(instance, engine=engine, budget=budget)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    return plan


#: The second job is the shorter one, but the first one is expected to end much sooner.
PAIR = ({"walltime": 200, "expected": 20}, {"walltime": 100, "expected": 100})


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["search", "cp", "portfolio"])
def test_the_slowdown_is_that_of_the_expected_runtime(engine: str) -> None:
    """First the job with the small expectation: 1 + 300 / 100 in place of 1 + 120 / 20. It holds its walltime."""
    plan = planned(window(*PAIR), engine)
    assert {job.id: (job.start, job.end) for job in plan.jobs} == {"j0": (0, 200), "j1": (200, 300)}
    assert plan.objective.value == pytest.approx(1 + 300 / 100)
    walltimes = planned(window(*({"walltime": job["walltime"]} for job in PAIR)), engine)
    assert {job.id: job.start for job in walltimes.jobs} == {"j1": 0, "j0": 100}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cp", "portfolio"])
def test_bounds_are_of_the_expected_runtime(engine: str) -> None:
    """The plan is proven, so that its bound is its value."""
    plan = planned(window(*PAIR, {"walltime": 50, "expected": 11}), engine, 60.0)
    assert plan.objective.bound == pytest.approx(plan.objective.value)


def test_smiths_order_reckons_with_the_expected_runtime() -> None:
    """The list by Smith's rule begins with the job that is expected to end first."""
    plan = planned(window(*PAIR, objective="weighted_wait"), "wspt_list", 0.0)
    assert {job.id: job.start for job in plan.jobs} == {"j0": 0, "j1": 200}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["planner", "search", "cp"])
@pytest.mark.parametrize("objective", some(["slowdown", "weighted_wait", "completion"], 2))
def test_expecting_the_walltime_changes_nothing(engine: str, objective: str) -> None:
    """A job that states its walltime has the start and the value of one that states nothing."""
    jobs = ({"walltime": 30}, {"walltime": 20, "submit": -30}, {"walltime": 10, "submit": -5})
    silent = window(*jobs, objective=objective)
    stating = replace(silent, jobs=tuple(replace(job, expected=job.walltime) for job in silent.jobs))
    one, other = planned(silent, engine), planned(stating, engine)
    assert [(job.id, job.start) for job in one.jobs] == [(job.id, job.start) for job in other.jobs]
    assert (one.objective.value, one.objective.suffered) == (other.objective.value, other.objective.suffered)
