"""Worked examples of malleable jobs, planned by each engine; the verifier passes every plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import parse_instance, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify

ENGINES = ("planner", "search", "cp", "portfolio")

each_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture
def cases(repository: Path) -> Path:
    """Return the folder of small cases."""
    return repository / "tests" / "cases"


def read(path: Path) -> Instance:
    """Return an instance."""
    return parse_instance(json.loads(path.read_text()), source=path.name)


def solved(path: Path, engine: str, budget: float = 1.0) -> Plan:
    """Return the plan of a case, which the verifier passes."""
    plan = solve(read(path), engine=engine, budget=budget)
    assert verify(json.loads(path.read_text()), plan_to_document(plan)) == ()
    return plan


@pytest.mark.slow
@each_engine
def test_jobs_do_not_run_on_slivers_to_start_at_once(cases: Path, engine: str) -> None:
    """Six jobs of an hour end two by two, after one, two and three hours: none of them runs for 16 hours on a tenth of
    its cores to start at once. It would cost as much as waiting for 15.
    """
    plan = solved(cases / "malleable-queue.json", engine)
    assert plan.objective.value == 12
    assert max(job.end for job in plan.jobs) == 3 * 3600


@pytest.mark.slow
@each_engine
def test_one_after_the_other_is_best_by_default(cases: Path, engine: str) -> None:
    """Two jobs of 100 s that can both run on a quarter of one node, for 400 s, run one after the other."""
    plan = solved(cases / "malleable-default.json", engine)
    assert sorted((job.start, job.end) for job in plan.jobs) == [(0, 100), (100, 200)]
    assert plan.objective.value == pytest.approx(100 / 1800)


@pytest.mark.slow
@each_engine
def test_a_waiting_job_expands_when_its_guest_has_ended(cases: Path, engine: str) -> None:
    """A job of 100 s runs on half of its cores beside one of 10 s, and then on all of them: it ends at 105, not 110."""
    plan = solved(cases / "malleable-expand.json", engine)
    assert plan.objective.value == 105
    (changing,) = (job for job in plan.jobs if job.id == "m")
    assert [(part.start, part.end, part.allocation[0].resources["cores"]) for part in changing.segments] == [
        (0, 10, 2),
        (10, 105, 4),
    ]


@pytest.mark.slow
@each_engine
def test_a_running_job_expands_step_by_step(cases: Path, engine: str) -> None:
    """A running job lends half of its cores to two guests, has a quarter back when the first has ended, then all."""
    plan = solved(cases / "malleable-two-guests.json", engine)
    assert plan.objective.value == 30
    (changing,) = (job for job in plan.jobs if job.id == "h")
    cores = [(part.start, part.end, part.allocation[0].resources["cores"]) for part in changing.segments]
    assert cores == [(-1, 0, 8), (0, 4, 4), (4, 20, 6), (20, 106, 8)]
