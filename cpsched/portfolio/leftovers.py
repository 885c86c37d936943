"""Starts for jobs that engines left out, of windows with rules too: the planner finds them beside the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpsched.domain import Plan, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Outcome
from cpsched.planner import elements_apart, inserted, never_placed
from cpsched.portfolio.engine_window import EngineWindow
from cpsched.portfolio.judging import Check
from cpsched.portfolio.scoring import changed, with_jobs
from cpsched.problem import missing_from, planning_order

__all__ = ["filled"]

#: The finder of these starts.
_NAME = "insertion"
#: The most jobs that are tried one by one, and that an event names.
_MOST_TRIED, _MOST_NAMED = 20, 5


def filled(check: Check, plan: Plan, *, at: float) -> Plan:
    """Return a plan with starts for those jobs of its waiting room that find one beside it; no other job is moved.

    All are tried in the window that engines have. Where that lacks some plans, each is tried once more in a window that
    is made for it alone: what rules give to jobs in parts is all its own there, and soft limits do not keep it out.
    A start that breaks a rule is not taken.

    Parameters
    ----------
    at
        Seconds since the engine began, for the event.
    """
    instance, waiting = check.instance, {job.id for job in plan.waiting_room}
    possible = waiting - never_placed(instance, waiting)
    if not possible:
        return plan
    window = EngineWindow.of(instance, slices=plan.reservations)
    jobs = _with_more(check, plan, plan.jobs, window, plan.waiting_room)
    if window.instance.is_restricted:
        apart = elements_apart(instance)
        for job in planning_order(apart, [job for job in apart.jobs if job.id in possible])[:_MOST_TRIED]:
            had = {one.id for one in jobs}
            if job.id in had or any(map(missing_from(apart, had), (one.job for one in job.after))):
                continue
            alone = replace(apart, jobs=tuple(one for one in apart.jobs if one.id in had or one.id == job.id))
            own = EngineWindow.of(alone, slices=plan.reservations, soft=False)
            asked = WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail="is asked about")
            jobs = _with_more(check, plan, jobs, own, (asked,))
    if len(jobs) == len(plan.jobs):
        return plan
    names = [job.id for job in jobs if job.id in waiting]
    words = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    what = f"found a start beside the plan for {len(names)} more: {words}"
    return changed(instance, plan, jobs, at=at, by=_NAME, what=what)


def _with_more(
    check: Check, plan: Plan, jobs: Sequence[PlannedJob], window: EngineWindow, waiting: Sequence[WaitingJob]
) -> tuple[PlannedJob, ...]:
    """Return jobs, and those waiting ones that find a start beside them in a window for engines, in document order."""
    found = inserted(window.instance, Outcome(jobs=window.to_held(jobs), waiting_room=tuple(waiting)))
    asked, placed = {job.id for job in waiting}, {job.id: job for job in jobs}
    more = {job.id: job for job in window.to_stated(found.jobs) if job.id in asked}
    if not more:
        return tuple(jobs)
    both = placed | more
    ordered = tuple(both[name] for job in check.instance.jobs for name in job.element_ids if name in both)
    return tuple(jobs) if check.faults(with_jobs(check.instance, plan, ordered), claims=False) else ordered
