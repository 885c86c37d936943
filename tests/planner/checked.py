"""Plans that are verified as they are made: every plan of these tests goes through the judge."""

from __future__ import annotations

from cpsched.domain import Instance, Plan
from cpsched.engine import Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.booking.small_windows import where_it_stands
from tests.oracle.literal_planner import Mapped


def solved(instance: Instance) -> Plan:
    """Plan a window; the judge finds no fault with the two documents."""
    plan = solve(instance, engine="planner")
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))
    return plan


def assert_valid(instance: Instance, plan: Plan) -> None:
    """Verify starts and nodes, but not the value, of a plan with replaced jobs."""
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not [violation for violation in violations if not violation.rule.startswith("objective")]


def places(instance: Instance, plan: Plan | Outcome) -> dict[str, tuple[int, Mapped] | None]:
    """Return start and nodes of each waiting job, None for those in the waiting room, as `plan_literally` does."""
    running = {job.id for job in instance.jobs if job.running is not None}
    found: dict[str, tuple[int, Mapped] | None] = {
        job.id: where_it_stands(instance, job) for job in plan.jobs if job.id not in running
    }
    return found | {job.id: None for job in plan.waiting_room}


def starts(instance: Instance) -> dict[str, int | None]:
    """Return the start of each waiting job of a verified plan."""
    return {job_id: place and place[0] for job_id, place in places(instance, solved(instance)).items()}
