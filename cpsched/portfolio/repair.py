"""A plan that the verifier has passed: the verifier's refusal of one job costs that job its start, never the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpsched.domain import Event, Incumbent, Instance, Plan, WaitingJob, WaitingReason, repeated
from cpsched.errors import UnverifiedError
from cpsched.formats import plan_to_document
from cpsched.metrics import objective_value, suffered
from cpsched.portfolio.scoring import with_openings
from cpsched.problem import missing_from
from cpsched.verify import Judge, Violation

__all__ = ["verified"]

#: The number of times that refused jobs are taken out of a plan.
_MOST_REPAIRS = 20

#: Characters of an event, at the most.
_LONGEST_EVENT = 500


def verified(judge: Judge, instance: Instance, plan: Plan, *, engine: str, elapsed: float, claims: bool = True) -> Plan:
    """Return a first plan, without a bound, with all that the verifier refuses of single jobs put right.

    Jobs of the waiting room for which the verifier finds a start get it. A planned job that breaks a rule is taken out
    of the plan, and gets another start if there is one beside the plan; otherwise it waits. A running job that breaks a
    rule continues as the instance states. An event names each of them.

    Parameters
    ----------
    engine
        The maker of the plan, for the error.
    elapsed
        Seconds since the engine began, for the events.
    claims
        Whether the waiting room is looked at, too; without, no job of it gets a start.

    Raises
    ------
    UnverifiedError
        If the plan breaks a rule that no single job is to blame for: a bug of cpsched.
    """
    if claims:
        plan = with_openings(judge, instance, plan, elapsed=elapsed)
    faults = judge.violations(plan_to_document(plan), claims=claims)
    for _ in range(_MOST_REPAIRS):
        refused = _refused(instance, plan, faults)
        if not refused:
            break
        plan = _without(instance, plan, refused, elapsed)
        if claims:
            plan = with_openings(judge, instance, plan, elapsed=elapsed)
        faults = judge.violations(plan_to_document(plan), claims=claims)
    if faults:
        raise UnverifiedError(engine, [str(fault) for fault in faults])
    return plan


def _refused(instance: Instance, plan: Plan, faults: Sequence[Violation]) -> Mapping[str, str]:
    """Return the jobs that are to blame for faults, each with the fault, as far as their place can still change.

    A fault of a node or a limit names the jobs that take too much: the last of them to start is to blame.
    """
    facts = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    movable = {job.id: job.start for job in plan.jobs if facts.get(job.id) != job}
    changeable = {*movable, *(job.id for job in plan.waiting_room if job.reason is not _honest(instance, plan, job.id))}
    refused: dict[str, str] = {}
    for fault in faults:
        names = [fault.subject] if fault.subject in changeable else []
        if not names:
            named = [name for name in movable if f"job {name}" in fault.message]
            names = [max(named, key=lambda name: (movable[name], name))] if named else []
        for name in names:
            refused.setdefault(name, str(fault))
    return refused


def _honest(instance: Instance, plan: Plan, job_id: str) -> WaitingReason:
    """Return the reason that a job has for waiting if no start is found for it beside a plan."""
    job = next(job for job in instance.elements() if job.id == job_id)
    if any(map(missing_from(instance, {job.id for job in plan.jobs}), (one.job for one in job.after))):
        return WaitingReason.DEPENDENCY
    return WaitingReason.NOT_MAPPED if instance.latest_start(job) is None else WaitingReason.TOO_LATE


def _without(instance: Instance, plan: Plan, refused: Mapping[str, str], elapsed: float) -> Plan:
    """Return a plan in which refused jobs wait, and running ones continue as the instance states."""
    facts = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    kept = tuple(facts.get(job.id, job) if job.id in refused else job for job in plan.jobs)
    jobs = tuple(job for job in kept if job.id in facts or job.id not in refused)
    left = replace(plan, jobs=jobs)
    before = {job.id: job for job in plan.waiting_room}
    planned = {job.id for job in jobs}
    waiting = []
    for job in instance.elements():
        if job.id in refused and job.id not in planned:
            reason = _honest(instance, left, job.id)
            detail = f"the start that was found for it breaks a rule, and no other was found: {refused[job.id]}"
            if job.id in before:
                detail = f"no start was found for it; the reason that was given is none: {refused[job.id]}"
            waiting.append(WaitingJob(id=job.id, reason=reason, detail=detail))
        elif job.id in before:
            waiting.append(before[job.id])
    value, at = objective_value(instance, jobs), round(elapsed, 3)
    score = replace(plan.objective, value=value, planner=value, suffered=suffered(instance, jobs))
    events = tuple(
        Event(at=at, by="verify", what=f"refused job {name}: {fault}"[:_LONGEST_EVENT])
        for name, fault in refused.items()
    )
    return replace(
        left,
        objective=score,
        waiting_room=tuple(waiting),
        incumbents=(*plan.incumbents, Incumbent(at=at, value=value, by="verify", planned=len(jobs))),
        events=(*plan.events, *events),
    )
