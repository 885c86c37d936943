"""What a plan is worth, whether it keeps the rules, and how all that is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from cpsched.domain import EngineReport, Incumbent, Instance, Plan, PlannedJob, Score
from cpsched.engine import Board, Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.verify import Judge

__all__ = ["judge_of", "plan_of", "scored"]


def judge_of(
    instance: Instance, document: object | None, first: Plan
) -> Callable[[Sequence[PlannedJob]], Sequence[str]]:
    """Return who judges plans of the same jobs as the first one: the verifier, on the instance's own document."""
    judge = Judge(instance_to_document(instance) if document is None else document)

    def violations(jobs: Sequence[PlannedJob]) -> Sequence[str]:
        score = replace(first.objective, value=objective_value(instance, jobs))
        plan = replace(first, jobs=tuple(jobs), objective=score)
        return [str(violation) for violation in judge.violations(plan_to_document(plan))]

    return violations


def plan_of(instance: Instance, engine: str, outcome: Outcome, *, budget: float, elapsed: float) -> Plan:
    """Return the plan document of what an engine found in `elapsed` of `budget` seconds, by itself."""
    value = objective_value(instance, outcome.jobs)
    return Plan(
        instance=instance.name,
        now=instance.now,
        objective=Score(
            name=instance.objective.name, value=value, planner=value, suffered=suffered(instance, outcome.jobs)
        ),
        engine=EngineReport(
            name=engine, version=version("cpsched"), budget=budget, elapsed=round(elapsed, 3), stopped="done"
        ),
        jobs=outcome.jobs,
        waiting_room=outcome.waiting_room,
        incumbents=(Incumbent(at=round(elapsed, 3), value=value, by=engine),),
    )


def scored(plan: Plan, board: Board, *, stopped: str, elapsed: float) -> Plan:
    """Return the first plan with what stands on the board in its place."""
    value, proof = board.best.value, board.proof
    known: dict[str, Any] = {}
    if proof is not None:
        bound = min(proof.value, value)  # the two may be rounded differently; more than that the board refuses
        known = {"bound": bound, "gap": (value - bound) / abs(value) if value else 0.0, "proof": proof.how}
    return replace(
        plan,
        objective=replace(plan.objective, value=value, **known),
        engine=replace(plan.engine, stopped=stopped, elapsed=round(elapsed, 3)),
        jobs=board.best.jobs,
        incumbents=board.incumbents,
        events=board.events,
    )
