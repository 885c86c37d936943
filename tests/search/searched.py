"""Running the search in tests: every plan that it offers is held to the rules, and one that breaks any is a failure."""

from __future__ import annotations

from functools import partial

from cpsched.domain import EngineReport, Instance, Plan, Score
from cpsched.engine import Board, Budget, Outcome
from cpsched.formats import instance_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.planner import PlannerEngine, placeable_beside
from cpsched.portfolio.scoring import faults_of
from cpsched.search import Search, SearchParams
from cpsched.verify import Judge

__all__ = ["FEW", "board_of", "planned", "searched"]

FEW = SearchParams(max_steps=400)


def planned(instance: Instance) -> Outcome:
    """Return the planner's plan."""
    return PlannerEngine().plan(instance, None)


def board_of(instance: Instance, outcome: Outcome, *, seconds: float = 60.0) -> Board:
    """Return a board with a plan on it, whose judge is the verifier; plans may have other jobs."""
    judge = Judge(instance_to_document(instance))
    value = objective_value(instance, outcome.jobs)
    suffered_so_far = suffered(instance, outcome.jobs)
    first = Plan(
        instance=instance.name,
        now=instance.now,
        objective=Score(name=instance.objective.name, value=value, planner=value, suffered=suffered_so_far),
        engine=EngineReport(name="search", version="test", budget=seconds, elapsed=0.0, stopped="done"),
        jobs=outcome.jobs,
        waiting_room=outcome.waiting_room,
    )
    return Board(
        outcome.jobs,
        by="planner",
        budget=Budget(seconds),
        value_of=partial(objective_value, instance),
        judge=faults_of(judge, instance, first),
        placeable=placeable_beside(instance, {job.id for job in outcome.jobs}),
    )


def searched(instance: Instance, params: SearchParams = FEW, *, seed: int = 0, seconds: float = 60.0) -> Board:
    """Return the board after a search that began from the planner's plan; no offer was refused."""
    board = board_of(instance, planned(instance), seconds=seconds)
    Search(params).improve(instance, board, seed=seed)
    assert not board.events
    return board
