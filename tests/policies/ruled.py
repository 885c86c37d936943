"""Plans by rules, each looked at by the judge as it is made."""

from __future__ import annotations

from cpsched.domain import EngineReport, Instance, Plan, Score
from cpsched.engine import Budget
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.policies import POLICIES
from cpsched.verify import verify

#: The rules' names, without what makes them engines' names.
RULES = [name.removeprefix("policy:") for name in POLICIES]


def planned(instance: Instance, rule: str) -> Plan:
    """Plan a window by a rule; every job is there once, and the judge finds no fault with the two documents."""
    engine = POLICIES[f"policy:{rule}"]
    outcome = engine.plan(instance, Budget(0), seed=0, hint=None, progress=None)
    value = objective_value(instance, outcome.jobs)
    plan = Plan(
        instance=instance.name,
        now=instance.now,
        objective=Score(
            name=instance.objective.name, value=value, planner=value, suffered=suffered(instance, outcome.jobs)
        ),
        engine=EngineReport(name=engine.name, version="0", budget=0, elapsed=0, stopped=outcome.stopped),
        jobs=outcome.jobs,
        waiting_room=outcome.waiting_room,
    )
    assert sorted(job.id for job in (*plan.jobs, *plan.waiting_room)) == sorted(job.id for job in instance.elements())
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))
    return plan


def starts(instance: Instance, rule: str) -> dict[str, int | None]:
    """Return the start of each waiting job, None for those in the waiting room."""
    plan = planned(instance, rule)
    running = {job.id for job in instance.jobs if job.running is not None}
    found: dict[str, int | None] = {job.id: job.start for job in plan.jobs if job.id not in running}
    return found | {job.id: None for job in plan.waiting_room}
