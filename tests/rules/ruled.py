"""Plans by rules, each looked at by the judge as it is made."""

from __future__ import annotations

from cpsched.domain import Instance, Plan
from cpsched.portfolio import plan_of
from cpsched.rules import POLICIES, PolicyEngine
from tests.portfolio.judged import assert_judged

#: The names of the rules that work on a ledger, without what makes them engines' names.
RULES = [name for name, engine in POLICIES.items() if isinstance(engine, PolicyEngine)]


def planned(instance: Instance, rule: str) -> Plan:
    """Plan a window by a rule; every job is there once, and the judge finds no fault with the two documents."""
    engine = POLICIES[rule]
    outcome = engine.plan(instance, None)
    plan = plan_of(instance, engine.name, outcome, budget=0, elapsed=0)
    seen = [job.id for job in plan.jobs] + [job.id for job in plan.waiting_room]
    assert sorted(seen) == sorted(job.id for job in instance.elements())
    assert_judged(instance, outcome)
    return plan


def starts(instance: Instance, rule: str) -> dict[str, int | None]:
    """Return the start of each waiting job, None for those in the waiting room."""
    plan = planned(instance, rule)
    running = {job.id for job in instance.jobs if job.running is not None}
    found: dict[str, int | None] = {job.id: job.start for job in plan.jobs if job.id not in running}
    return found | {job.id: None for job in plan.waiting_room}
