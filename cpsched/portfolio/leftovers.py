"""Starts for jobs that engines left out, of windows with rules too: the planner finds them beside the plan;
and starts beyond soft limits, which are exceeded only where no other job starts later for it (OCCS-15).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import Instance, Job, Plan, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Outcome
from cpsched.metrics import objective_value
from cpsched.planner import elements_apart, inserted, most_tried, never_placed, problem_of, replanned, stated_outcome
from cpsched.portfolio.scoring import Check, changed
from cpsched.problem import Problem, missing_from, planning_order

#: The finder of these starts.
_NAME = "insertion"
#: The most starts of a job that are tried in one window.
_MOST_STARTS = 8
#: The most jobs that an event names.
_MOST_NAMED = 5


def filled(check: Check, plan: Plan, *, at: float, window: Problem | None = None) -> Plan:
    """Return a plan with starts for those jobs of its waiting room that find one beside it; no other job is moved.

    All are tried in the window that engines have. Where that lacks some plans, each is tried once more in a window that
    is made for it alone: what rules give to jobs in parts is all its own there, and soft limits do not keep it out.
    A start that breaks a rule is not taken; the next ones are those at which another job ends.

    `at`: seconds since the engine began, for the event. `window`: the window that engines have; None: it is compiled.
    """
    instance, waiting = check.instance, {job.id for job in plan.waiting_room}
    possible = waiting - never_placed(instance, waiting)
    if not possible:
        return plan
    whole = problem_of(instance, slices=plan.reservations) if window is None else window
    more = _with_more(check, plan, plan, whole, plan.waiting_room, at)
    best = plan if more is None or check.faults(more, claims=False) else more
    if not whole.has_all_plans:
        apart = elements_apart(instance)
        order = planning_order(apart, [job for job in apart.jobs if job.id in possible])
        for job in order[: most_tried(len(plan.jobs), is_compiled=True)]:
            places = {one.id: one for one in best.jobs}
            if job.id in places or any(map(missing_from(apart, places), (one.job for one in job.after))):
                continue
            asked = WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail="is asked about")
            alone = _alone(apart, job, places)
            for wider in _wider(alone):
                if (more := _first_kept(check, plan, best, wider, asked, at)) is not None:
                    best = more
                    break
    return best


def _alone(apart: Instance, job: Job, places: Mapping[str, PlannedJob]) -> Instance:
    """Return the window of a waiting job beside jobs with given places: rules know when they take something."""
    jobs = []
    for one in apart.jobs:
        if one.id in places:
            start = places[one.id].start
            chosen = one.choices[places[one.id].alternative]
            jobs.append(one if one.running is not None else replace(chosen, not_before=start, start_at=start))
        elif one.id == job.id:
            jobs.append(one)
    return replace(apart, jobs=tuple(jobs))


def _wider(alone: Instance) -> Iterator[Instance]:
    """Yield the window of a job, and the same without rules that engines keep in parts: a start may keep them still."""
    yield alone
    without = replace(alone, limits=(), usage=(), free_pools=())
    if alone.limits or alone.free_pools:
        yield without
    classes = alone.cluster.classes
    if any(one.keep_free for one in classes):
        yield replace(
            without, cluster=replace(alone.cluster, classes=tuple(replace(one, keep_free=()) for one in classes))
        )


def _first_kept(check: Check, plan: Plan, best: Plan, window: Instance, asked: WaitingJob, at: float) -> Plan | None:
    """Return the best plan so far with the first start of a waiting job in its window that breaks no rule: its earliest
    one, or one at which a job beside it ends; None if there is none.
    """
    ends = sorted({one.end for one in best.jobs})
    for _ in range(_MOST_STARTS):
        own = problem_of(window, slices=plan.reservations, soft=False)
        more = _with_more(check, plan, best, own, (asked,), at)
        if more is None or not check.faults(more, claims=False):
            return more
        refused = next(one.start for one in more.jobs if one.id == asked.id)
        later = next((end for end in ends if end > refused), None)
        if later is None:
            return None
        jobs = tuple(replace(one, not_before=later) if one.id == asked.id else one for one in window.jobs)
        window = replace(window, jobs=jobs)
    return None


def _with_more(
    check: Check, plan: Plan, best: Plan, window: Problem, waiting: Sequence[WaitingJob], at: float
) -> Plan | None:
    """Add those waiting jobs to the best plan so far that find a start beside it in a window for engines; None if none
    does. It is not judged.

    All that was found beside the first `plan` is one event.
    """
    found = inserted(window.instance, Outcome(jobs=window.to_held(best.jobs), waiting_room=tuple(waiting)))
    asked, both = {job.id for job in waiting}, {job.id: job for job in best.jobs}
    both |= {job.id: job for job in window.to_stated(found.jobs) if job.id in asked}
    if len(both) == len(best.jobs):
        return None
    jobs = tuple(both[name] for job in check.instance.jobs for name in job.element_ids if name in both)
    planned = {job.id for job in plan.jobs}
    names = [job.id for job in jobs if job.id not in planned]
    words = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    what = f"found a start beside the plan for {len(names)} more: {words}"
    return changed(check.instance, plan, jobs, at=at, by=_NAME, what=what)


#: The finder of these starts.
_BEYOND = "soft limits"


def beyond_soft_limits(check: Check, plan: Plan, *, at: float) -> Plan:
    """Return a plan that keeps all soft limits with jobs moved to earlier starts beyond these limits.

    No job starts later. The bound stays one: it was none for plans that keep the soft limits, but for all.
    """
    instance = check.instance
    if not instance.has_soft_limits:
        return plan
    window = problem_of(instance, slices=plan.reservations, soft=False)
    outcome = stated_outcome(window, replanned(window.instance, window.held(plan)))
    moved = {job.id: job for job in outcome.jobs}
    jobs = tuple(moved.get(job.id, job) for job in plan.jobs)
    earlier = sum(new.start < old.start for new, old in zip(jobs, plan.jobs, strict=True))
    if not earlier or objective_value(instance, jobs) > plan.objective.value:
        return plan
    better = changed(instance, plan, jobs, at=at, by=_BEYOND, what=f"moved {earlier} jobs up beyond their limits")
    return plan if check.faults(better, claims=False) else better
