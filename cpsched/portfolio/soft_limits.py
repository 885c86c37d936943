"""Soft limits: exceeded only where no other job starts later for it (OCCS-15)."""

from __future__ import annotations

from cpsched.domain import Plan
from cpsched.metrics import objective_value
from cpsched.planner import problem_of, replanned, stated_outcome
from cpsched.portfolio.judging import Check
from cpsched.portfolio.scoring import changed

#: The finder of these starts.
_NAME = "soft limits"


def beyond_soft_limits(check: Check, plan: Plan, *, at: float) -> Plan:
    """Return a plan that keeps all soft limits with jobs moved to earlier starts beyond these limits.

    No job starts later. The bound stays one: it was none for plans that keep the soft limits, but for all.
    """
    instance = check.instance
    if not any(limit.soft for limit in instance.limits):
        return plan
    window = problem_of(instance, slices=plan.reservations, soft=False)
    outcome = stated_outcome(window, replanned(window.instance, window.held(plan)))
    moved = {job.id: job for job in outcome.jobs}
    jobs = tuple(moved.get(job.id, job) for job in plan.jobs)
    earlier = sum(new.start < old.start for new, old in zip(jobs, plan.jobs, strict=True))
    if not earlier or objective_value(instance, jobs) > plan.objective.value:
        return plan
    better = changed(instance, plan, jobs, at=at, by=_NAME, what=f"moved {earlier} jobs up beyond their limits")
    return plan if check.faults(better, claims=False) else better
