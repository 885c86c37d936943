"""One core does what two do, one thing after the other: a small window is proven there, too."""

from __future__ import annotations

import pytest

from cpsched.cp import Cp, LagrangianBound
from cpsched.formats import parse_instance
from cpsched.portfolio import solve, team_of


@pytest.mark.slow
def test_a_window_of_ten_jobs_is_proven_on_one_core() -> None:
    """On 200 nodes, too many for CP-SAT, ten jobs wait for the end of what runs: no plan can do better, and that is
    proven with one core as with two.
    """
    nodes = [{"node": f"n{number}", "resources": {"cores": 4}} for number in range(1, 201)]
    waiting = [
        {"id": f"w{number}", "submit": -50, "walltime": 60 + number, "request": f"{1 + number}:ncpus=4"}
        for number in range(10)
    ]
    runs = {"id": "r", "submit": -100, "walltime": 400, "request": "200:ncpus=4"}
    document = {
        "format": "cpsched-instance/1",
        "name": "behind",
        "cluster": {"nodes": [{"names": "n[1-200]", "resources": {"cores": 4}}]},
        "jobs": [{**runs, "running": {"start": -100, "allocation": nodes}}, *waiting],
    }
    plan = solve(parse_instance(document, source="behind"), budget=60.0, workers=1)
    assert plan.engine.stopped == "optimal"
    assert plan.objective.gap == 0
    assert {job.start for job in plan.jobs if job.id != "r"} == {300}


def test_on_one_core_large_windows_and_short_budgets_are_left_to_the_search() -> None:
    """With one worker the bound takes small windows only, and no share of a budget too short for it; with two any."""
    limits = []
    for workers in (1, 2):
        (*_, lane) = team_of("portfolio", workers=workers).lanes
        (prover,) = (solver for solver in lane if isinstance(solver, LagrangianBound))
        limits.append((prover.most_jobs, prover.least_seconds))
    assert limits == [(50, 0.8), (None, 0.1)]


def test_cp_takes_the_better_bound_of_small_windows() -> None:
    """Where CP-SAT has not proven a small window, engine cp asks the Lagrangian; larger ones are for plans alone."""
    ((*_, whole, prover, _),) = team_of("cp", workers=1).lanes
    assert isinstance(whole, Cp)
    assert isinstance(prover, LagrangianBound)
    assert (prover.most_jobs, prover.least_seconds) == (50, 0.8)
