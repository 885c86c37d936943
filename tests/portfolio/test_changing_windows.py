"""Windows of jobs that change, on nodes of many kinds with guards: every engine has a plan or a reason for each job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cpsched.errors import UnsupportedError
from cpsched.formats import parse_instance, plan_to_document
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from cpsched.rules import POLICIES
from cpsched.search import Search
from cpsched.verify import verify
from tests.cp.cp_here import CpHere
from tests.judges.changing_windows import changing_window
from tests.sizes import seeds

CASES = Path(__file__).parents[1] / "cases"
TEAMS = {
    "search": Team(first=PlannerEngine(), lanes=((Search(max_steps=30),),)),
    "cp": Team(first=PlannerEngine(), lanes=((CpHere(0.05),),)),
}


def planned_by_all(document: Any, rules: list[str]) -> dict[str, set[str]]:
    """Plan a window with planner, search, CP and some rules; return the jobs that each has a start for."""
    instance, planned = parse_instance(document, source="case"), {}
    for name in ("planner", *TEAMS, *rules):
        team = TEAMS.get(name)
        try:
            plan = solve(
                instance,
                engine="portfolio" if team else name,
                budget=600 if team else 0,
                workers=1,
                team=team,
                document=document,
            )
        except UnsupportedError:
            continue
        assert verify(document, plan_to_document(plan)) == ()
        assert not [event for event in plan.events if event.what.startswith("gave up")]
        planned[name] = {job.id for job in plan.jobs}
    return planned


@pytest.mark.parametrize("case", ["malleable-gpus-unsatisfiable", "malleable-guard"])
def test_a_mode_that_no_node_admits_costs_no_job_its_start(case: str) -> None:
    """On a tenth of its cores the chunk for the GPU is kept out by the node's guard: that mode is none, and all engines
    plan the other jobs.
    """
    document = json.loads((CASES / f"{case}.json").read_text())
    found = planned_by_all(document, [*POLICIES])
    others = {job["id"] for job in document["jobs"]} - {"j19"}
    assert found.keys() >= {"planner", *TEAMS, "fcfs"}
    assert all(planned == others for planned in found.values())


def test_engines_start_a_job_that_fits_on_a_share_of_its_cores_only() -> None:
    """Too large for the machine on all its cores, a malleable job is planned by the engines, not by the judge."""
    wide: dict[str, Any] = {"submit": 0, "walltime": 10, "request": "ncpus=4", "malleable": {"shares": [0.5]}}
    document = {
        "format": "cpsched-instance/1",
        "name": "narrow",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 2}}]},
        "jobs": [{"id": "a", **wide}, {"id": "b", "submit": 0, "walltime": 5, "request": "ncpus=2"}],
    }
    instance = parse_instance(document, source="case")
    for name in ("planner", *TEAMS):
        budget = 600 if name in TEAMS else 0
        plan = solve(instance, engine="portfolio" if budget else name, budget=budget, team=TEAMS.get(name))
        assert verify(document, plan_to_document(plan)) == ()
        assert {job.id for job in plan.jobs} == {"a", "b"}
        assert not {"verify", "insertion"} & {event.by for event in plan.events}
        assert plan["a"].end - plan["a"].start == 20


@pytest.mark.parametrize("seed", [76, 99, 296, 361, *seeds(300)])
def test_every_engine_plans_windows_of_many_kinds(seed: int) -> None:
    """Whatever malleable and evolving jobs ask for, no engine fails, and the judge passes each plan."""
    names = sorted(POLICIES)
    planned_by_all(changing_window(seed), [names[(seed + place) % len(names)] for place in (0, 7)])
