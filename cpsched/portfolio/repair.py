"""The judgement of a plan, the last thing that happens to it.

The verifier's refusal of one job costs that job its start at the most, and never the window its plan.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import Event, Instance, Plan, WaitingJob, repeated
from cpsched.engine import LONGEST_EVENT
from cpsched.errors import UnverifiedError
from cpsched.portfolio.leftovers import filled
from cpsched.portfolio.scoring import Check, changed
from cpsched.problem import missing_from, waits
from cpsched.verify import Violation

#: The number of times that refused jobs are taken out of a plan.
_MOST_REPAIRS = 20


def verified(
    check: Check,
    plan: Plan,
    *,
    engine: str,
    at: float,
    claims: bool = True,
    finished: Callable[[Plan], Plan] = lambda plan: plan,
) -> Plan:
    """Return a plan in which the verifier, which judges it last, finds no fault: single refused jobs are put right.

    A planned job that breaks a rule is taken out of the plan, and gets another start if there is one beside the plan;
    otherwise it waits. A running job that breaks a rule continues as the instance states. An event names each of them.

    `engine`: the maker of the plan, for the error. `at`: seconds since the engine began, for the events. `claims`:
    whether the reasons of the waiting room are judged, too. `finished`: returns the plan as it leaves: with more
    events. Raises `UnverifiedError` if the plan breaks a rule that no single job is to blame for: a bug of cpsched.
    """
    for _ in range(_MOST_REPAIRS + 1):
        last, faults = check.judged(finished(plan), claims=claims)
        if not faults:
            return last
        refused = _refused(check.instance, plan, faults)
        if not refused:
            break
        plan = filled(check, _without(check.instance, plan, refused, at), at=at)
    raise UnverifiedError(engine, [str(fault) for fault in faults])


def _refused(instance: Instance, plan: Plan, faults: Sequence[Violation]) -> Mapping[str, str]:
    """Return the jobs that are to blame for faults, each with the fault, as far as their place can still change.

    A fault of a node or a limit names the jobs that take too much: the last of them to start is to blame.
    """
    facts = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    movable = {job.id: job.start for job in plan.jobs if facts.get(job.id) != job}
    dishonest = (job.id for job in plan.waiting_room if job.reason is not _honest(instance, plan, job.id).reason)
    changeable = {*movable, *dishonest}
    refused: dict[str, str] = {}
    for fault in faults:
        names = [fault.subject] if fault.subject in changeable else []
        if not names:
            named = [name for name in movable if f"job {name}" in fault.message]
            names = [max(named, key=lambda name: (movable[name], name))] if named else []
        for name in names:
            refused.setdefault(name, str(fault))
    return refused


def _honest(instance: Instance, plan: Plan, job_id: str) -> WaitingJob:
    """Return why a job waits if no start is found for it beside a plan."""
    job = next(job for job in instance.elements() if job.id == job_id)
    return waits(instance, job, missing_from(instance, {job.id for job in plan.jobs}), "no start was found for it")


def _without(instance: Instance, plan: Plan, refused: Mapping[str, str], at: float) -> Plan:
    """Return a plan in which refused jobs wait, and running ones continue as the instance states."""
    facts = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    kept = tuple(facts.get(job.id, job) if job.id in refused else job for job in plan.jobs)
    jobs = tuple(job for job in kept if job.id in facts or job.id not in refused)
    before = {job.id for job in plan.waiting_room}
    events = [
        Event(at=round(at, 3), by="verify", what=f"refused job {name}: {fault}"[:LONGEST_EVENT])
        for name, fault in refused.items()
    ]
    left = changed(instance, plan, jobs, at=at, by="verify", what="")
    left = replace(left, events=(*plan.events, *events))

    def honest(waiting: WaitingJob) -> WaitingJob:
        if waiting.id not in refused:
            return waiting
        detail = f"the start that was found for it breaks a rule, and no other was found: {refused[waiting.id]}"
        if waiting.id in before:
            detail = f"no start was found for it; the reason that was given is none: {refused[waiting.id]}"
        return replace(_honest(instance, left, waiting.id), detail=detail)

    return replace(left, waiting_room=tuple(map(honest, left.waiting_room)))
