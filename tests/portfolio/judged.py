"""Plans of engines held to the rules as the recipe does it: the judge of a board, and starts beside a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from cpsched.domain import EngineReport, Instance, Plan, PlannedJob, Score
from cpsched.engine import Board, Budget, Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.planner import placeable_beside
from cpsched.portfolio import plan_of
from cpsched.portfolio.leftovers import filled
from cpsched.portfolio.scoring import Check
from cpsched.verify import Judge
from tests.verify.openings import strictly_verified

__all__ = ["assert_judged", "board_for", "board_of", "faults_of"]


def assert_judged(instance: Instance, outcome: Outcome) -> None:
    """Verify the outcome of an engine, with starts for jobs that it leaves out and that find one beside its plan."""
    plan = plan_of(instance, "engine under test", outcome, budget=1, elapsed=0)
    plan = filled(Check.of(instance), plan, at=0)
    violations = strictly_verified(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))


def faults_of(judge: Judge, instance: Instance, first: Plan) -> Callable[[Sequence[PlannedJob]], Sequence[str]]:
    """Return the judge of plans that have other jobs than a first one, or other places for its jobs."""
    return Check(instance, judge).of_jobs(first)


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
