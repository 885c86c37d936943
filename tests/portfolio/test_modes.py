"""Jobs that choose and wait for each other, and licences that do not come back: brute force, engines and bounds."""

from __future__ import annotations

import pytest

from cpsched.cp import lower_bound
from cpsched.domain import Instance
from cpsched.engine import Board
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.metrics import objective_value
from cpsched.planner import PlannerEngine, advanced, problem_of, stated_outcome
from cpsched.portfolio import solve
from cpsched.portfolio.bandit import improve_by_choice
from cpsched.problem import Problem
from cpsched.search import Search
from cpsched.verify import verify
from tests.cp.cp_here import CpHere
from tests.oracle.random_modes import best_value, window_with_modes
from tests.portfolio.judged import board_of
from tests.sizes import seeds

#: Windows in which a bound was too high: what a job consumes counted as an amount that it holds.
MENDED = (11, 196)


def board_in(instance: Instance, problem: Problem) -> Board:
    """Return the board of engines with the planner's plan, held to the rules of the stated window."""
    outcome = PlannerEngine().plan(problem.instance, None)
    stated = board_of(instance, stated_outcome(problem, outcome))
    board = Board(
        outcome.jobs,
        by="planner",
        budget=stated.budget,
        value_of=lambda jobs: objective_value(problem.instance, jobs),
        judge=lambda jobs: stated._judge(problem.to_stated(jobs)),
        placeable={job.id for job in instance.jobs},
    )
    board.takes_proofs = problem.is_opened
    return board


@pytest.mark.parametrize("seed", [*seeds(40), *MENDED])
def test_the_best_of_all_choices_is_found_and_proven(seed: int) -> None:
    """What CP-SAT proves is the best plan of brute force, no bound is above it, and the search keeps the rules."""
    instance = window_with_modes(seed)
    best = best_value(instance)
    assert parse_instance(instance_to_document(instance)) == instance
    problem = problem_of(instance)
    board = board_in(instance, problem)
    improve_by_choice(Search(max_steps=40), problem.instance, board, seed=seed)
    CpHere(2.0).improve(problem.instance, board, seed=seed)
    improve_by_choice(Search(max_steps=40), problem.instance, board, seed=seed)
    assert not board.events
    if best is None:
        assert len(board.best.jobs) < len(instance.jobs)
        return
    if problem.is_opened:
        assert board.is_optimal
    if len(board.best.jobs) == len(instance.jobs):
        assert board.best.value >= best - 1e-9
        if problem.is_opened:
            assert board.best.value == pytest.approx(best)
    bound = lower_bound(
        problem.instance, [job.id for job in instance.jobs if job.running is None], seconds=0, evaluations=20
    )
    assert bound is not None
    assert bound.value <= best + 1e-9


def test_what_ended_jobs_consumed_is_gone() -> None:
    """A window that is moved on has less of a licence that does not come back; what runs is counted where it runs."""
    jobs = [
        {"id": name, "submit": 0, "walltime": seconds, "request": "1:ncpus=1", "licenses": {"gold": 2}}
        for name, seconds in (("ends", 5), ("runs", 20), ("waits", 5))
    ]
    cluster = {"nodes": [{"names": "n1", "resources": {"cores": 2}}], "licenses": {"gold": 6}, "consumed": ["gold"]}
    document = {"format": "cpsched-instance/1", "name": "gone", "now": 0, "cluster": cluster, "jobs": jobs}
    instance = parse_instance(document)
    plan = solve(instance, engine="planner", budget=0)
    assert [job.start for job in plan.jobs] == [0, 0, 5]
    later = advanced(instance, plan, 5)
    assert later.cluster.licenses["gold"] == 4
    assert [job.id for job in later.jobs] == ["runs", "waits"]
    again = solve(later, engine="planner", budget=0)
    assert len(again.jobs) == 2
    assert not verify(instance_to_document(later), plan_to_document(again))
