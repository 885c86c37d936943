"""Plans of engines held to the rules as the recipe does it: the judge of a board, and starts that the judge finds."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from cpsched.domain import EngineReport, Instance, Plan, Score
from cpsched.engine import Board, Budget, Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.planner import placeable_beside
from cpsched.portfolio.scoring import faults_of, judge_of, plan_of, with_openings
from cpsched.verify import Judge, verify

__all__ = ["assert_judged", "board_for", "board_of", "faults_of"]


def assert_judged(instance: Instance, outcome: Outcome) -> None:
    """Verify the outcome of an engine, after placing the jobs for which the judge finds a start."""
    plan = plan_of(instance, "engine under test", outcome, budget=1, elapsed=0)
    plan = with_openings(judge_of(instance), instance, plan, elapsed=0)
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))


def board_for(
    instance: Instance, first: Plan, judge: Judge, *, seconds: float, placeable: Collection[str] = ()
) -> Board:
    """Return a board with the jobs of a plan on it, held to the rules by a verifier; plans may have some others."""
    return Board(
        first.jobs,
        by="planner",
        budget=Budget(seconds),
        value_of=partial(objective_value, instance),
        judge=faults_of(judge, instance, first),
        placeable=placeable,
    )


def board_of(instance: Instance, outcome: Outcome, *, seconds: float = 60.0) -> Board:
    """Return a board with a plan on it, whose judge is the verifier; plans may have other jobs."""
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
    judge = Judge(instance_to_document(instance))
    others = placeable_beside(instance, {job.id for job in outcome.jobs})
    return board_for(instance, first, judge, seconds=seconds, placeable=others)
