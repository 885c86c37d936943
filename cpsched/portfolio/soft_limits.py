"""Soft limits: exceeded only where no other job starts later for it (OCCS-15)."""

from __future__ import annotations

from dataclasses import replace

from cpsched.domain import Event, Incumbent, Instance, Plan
from cpsched.formats import plan_to_document
from cpsched.metrics import objective_value
from cpsched.planner import problem_of, replanned, stated_outcome
from cpsched.verify import Judge

__all__ = ["beyond_soft_limits"]


def beyond_soft_limits(judge: Judge, instance: Instance, plan: Plan, *, elapsed: float) -> Plan:
    """Return a plan that keeps all soft limits with jobs moved to earlier starts beyond these limits.

    No job starts later. The bound stays one: it was none for plans that keep the soft limits, but for all.
    """
    window = problem_of(instance, soft=False)
    outcome = stated_outcome(window, replanned(window.instance, window.held(plan)))
    moved = {job.id: job for job in outcome.jobs}
    jobs = tuple(moved.get(job.id, job) for job in plan.jobs)
    earlier = sum(new.start < old.start for new, old in zip(jobs, plan.jobs, strict=True))
    value = objective_value(instance, jobs)
    if not earlier or value > plan.objective.value:
        return plan
    old = plan.objective
    gap = None if old.bound is None else (value - old.bound) / abs(value) if value else 0.0
    at = round(elapsed, 3)
    better = replace(
        plan,
        objective=replace(old, value=value, planner=max(old.planner, value), gap=gap),
        jobs=jobs,
        incumbents=(*plan.incumbents, Incumbent(at=at, value=value, by="soft limits", planned=len(jobs))),
        events=(*plan.events, Event(at=at, by="soft limits", what=f"moved {earlier} jobs up beyond their limits")),
    )
    return plan if judge.violations(plan_to_document(better), claims=False) else better
