"""A job that must start by some time is not lost while there is a plan that has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import Instance
from cpsched.formats import instance_to_document, parse_instance, plan_to_document, read_instance
from cpsched.portfolio import solve
from cpsched.verify import verify

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["planner", "search", "cp", "portfolio"])
@pytest.mark.parametrize("name", ["deadline-order", "deadline-wide", "deadline-dependency"])
def test_all_jobs_have_places(name: str, engine: str) -> None:
    """Each of these windows has a plan of all of its jobs, which the usual order of planning does not find."""
    instance = read_instance(CASES / f"{name}.json")
    plan = solve(instance, engine=engine, budget=0.5)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    assert plan.waiting_room == ()


def window(*jobs: dict[str, Any], cores: int = 1, **more: Any) -> Instance:
    """Return a window of one node and jobs that take all of it, unless they say something else."""
    whole = {"submit": 0, "request": f"ncpus={cores}"}
    document = {
        "format": "cpsched-instance/1",
        "name": "deadlines",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": cores}}]},
        "jobs": [{"id": f"j{number}", **whole, **job} for number, job in enumerate(jobs)],
    }
    return parse_instance({**document, **more}, source="deadlines")


def starts(instance: Instance, engine: str = "planner", budget: float = 0.0) -> dict[str, int]:
    """Return the starts of the jobs that an engine plans; the verifier passes its plan."""
    plan = solve(instance, engine=engine, budget=budget)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    return {job.id: job.start for job in plan.jobs}


def test_the_earliest_deadline_is_served_first() -> None:
    """Submitted and of higher priority first, the job with the later deadline waits all the same."""
    later = {"walltime": 10, "deadline": 40, "submit": -5, "priority": 9}
    assert starts(window(later, {"walltime": 10, "deadline": 12})) == {"j0": 10, "j1": 0}


def test_a_job_that_many_wait_for_is_served_first() -> None:
    """A job without a limit of its own must start in time for the one that waits for it."""
    rival = {"walltime": 5, "deadline": 20, "submit": -5}
    first = {"walltime": 5}
    last = {"walltime": 5, "deadline": 12, "after": [{"job": "j1", "type": "afterok"}]}
    assert starts(window(rival, first, last)) == {"j0": 10, "j1": 0, "j2": 5}


def test_one_long_job_gives_way_to_two_short_ones() -> None:
    """Not all three fit: two are planned, though the long one must start before them."""
    long = {"walltime": 20, "deadline": 20}
    short = {"walltime": 10, "deadline": 21}
    assert starts(window(long, short, {**short, "deadline": 22}), "cp", 20.0).keys() == {"j1", "j2"}


def test_a_window_in_which_all_jobs_have_places_is_planned_as_before() -> None:
    """No further order is tried: the job of higher priority starts first, though the other one is due first."""
    instance = window({"walltime": 10, "deadline": 40, "priority": 9}, {"walltime": 10, "deadline": 35})
    assert starts(instance) == {"j0": 0, "j1": 10}


def test_strict_classes_come_before_deadlines() -> None:
    """A job of a lower class is lost rather than that one of a higher class starts later."""
    first = {"walltime": 10, "deadline": 40, "priority": 9}
    instance = window(first, {"walltime": 10, "deadline": 12}, priorities="strict")
    assert starts(instance) == {"j0": 0}
    assert starts(replace(instance, has_strict_priorities=False)) == {"j0": 10, "j1": 0}


def test_a_class_loses_none_of_its_own_jobs() -> None:
    """Within a class the order is free: the job that is due first goes first."""
    lowest = {"walltime": 5, "priority": -1}
    jobs = [{"walltime": 10, "deadline": 40, "submit": -5}, {"walltime": 10, "deadline": 12}, lowest]
    assert starts(window(*jobs, priorities="strict")) == {"j0": 10, "j1": 0, "j2": 20}
