"""The value and the faults of a plan, and its plan document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from cpsched.arguments import at_the_door
from cpsched.domain import (
    Amounts,
    DependencyType,
    EngineReport,
    Event,
    Incumbent,
    Instance,
    Job,
    Placement,
    Plan,
    PlannedJob,
    ReservedSlice,
    Score,
    Segment,
    WaitingJob,
    WaitingReason,
)
from cpsched.engine import Board, Outcome
from cpsched.formats import checked, instance_to_document, plan_to_document
from cpsched.metrics import honest_gap, objective_value, suffered
from cpsched.problem import is_compiled, missing_from
from cpsched.verify import Judge, Violation

__all__ = ["Trusting", "faults_of", "judge_of", "plan_of", "scored", "verify_plan", "with_jobs", "with_openings"]

#: A bound that leaves more than this part of the avoidable cost unproven says nothing of the plan.
_NOTHING_PROVEN = 0.99
#: The most jobs that an event names.
_MOST_NAMED = 5


class Trusting(Judge):
    """Finds no fault: of a window of a simulation, where no document has what stands for rules. Its record is judged by
    the rules themselves.
    """

    def __init__(self) -> None: ...

    def violations(self, plan: object, source: str = "plan", *, claims: bool = True) -> tuple[Violation, ...]:
        """Return nothing."""
        return ()

    def openings(self, plan: object, source: str = "plan") -> tuple[dict[str, object], ...]:
        """Return nothing."""
        return ()


def judge_of(instance: Instance, document: object | None = None) -> Judge:
    """Return the verifier for an instance: on the document that it was read from, or else on one written anew."""
    if is_compiled(instance):
        return Trusting()
    return Judge(instance_to_document(instance) if document is None else document)


@at_the_door
def verify_plan(instance: Instance, plan: Plan) -> tuple[Violation, ...]:
    """Hold a plan to every rule of ``docs/formats.md``, as the independent judge reads both documents.

    Returns
    -------
    tuple of Violation
        Everything that is wrong; empty if the plan is valid.

    Raises
    ------
    DocumentError
        If the instance was built in Python and is not in order.
    """
    return Judge(instance_to_document(checked(instance))).violations(plan_to_document(plan))


def faults_of(judge: Judge, instance: Instance, first: Plan) -> Callable[[Sequence[PlannedJob]], Sequence[str]]:
    """Return the judge of further plans of a window, of the same jobs as the first one or of others.

    Whether the other jobs still belong into the waiting room is asked of the last plan only (`with_openings`).
    """

    def violations(jobs: Sequence[PlannedJob]) -> Sequence[str]:
        plan = with_jobs(instance, first, jobs)
        return [str(violation) for violation in judge.violations(plan_to_document(plan), claims=False)]

    return violations


def with_jobs(instance: Instance, plan: Plan, jobs: Sequence[PlannedJob]) -> Plan:
    """Return a plan with other places for its jobs, or with places for other jobs: these leave the waiting room, and
    jobs that have no place any more enter it. Its value and what was suffered are those of these jobs.
    """
    score = replace(plan.objective, value=objective_value(instance, jobs))
    found = {job.id: job for job in jobs}
    if found.keys() == {job.id for job in plan.jobs}:
        return replace(plan, jobs=tuple(jobs), objective=score)
    before = {job.id: job for job in plan.waiting_room}
    missing, waiting = missing_from(instance, found), list[WaitingJob]()
    for job in instance.elements():
        if job.id not in found:
            awaited = ((one.type, name) for one in job.after if (name := missing(one.job)) is not None)
            waiting.append(_waiting(instance, job, before.get(job.id), next(awaited, None)))
    score = replace(score, suffered=suffered(instance, jobs))
    return replace(plan, jobs=tuple(jobs), objective=score, waiting_room=tuple(waiting))


def _waiting(
    instance: Instance, job: Job, before: WaitingJob | None, awaited: tuple[DependencyType, str] | None
) -> WaitingJob:
    """Return why a job has no place in a plan.

    Parameters
    ----------
    before
        Why it had none in another plan; None if it had one.
    awaited
        A job without a place for which it waits, and how it waits.
    """
    if awaited is not None:
        detail = f"waits for {awaited[1]} ({awaited[0]}), which has no start"
        return WaitingJob(id=job.id, reason=WaitingReason.DEPENDENCY, detail=detail)
    if before is not None and before.reason is not WaitingReason.DEPENDENCY:
        return before
    is_bounded = instance.latest_start(job) is not None
    reason = WaitingReason.TOO_LATE if is_bounded else WaitingReason.NOT_MAPPED
    detail = "no start was found for it beside the planned jobs"
    if before is not None:
        detail = "no start was found for it after those of the jobs that it waits for"
    return WaitingJob(id=job.id, reason=reason, detail=detail)


def with_openings(judge: Judge, instance: Instance, plan: Plan, *, elapsed: float) -> Plan:
    """Return a plan in which those jobs of the waiting room have a start for which the verifier finds one beside it.

    No other job is moved. The bound stays one, since no further job makes a plan cheaper; the fallback's value grows as
    much as the plan's, so that both are values of the same jobs.
    """
    found: dict[str, PlannedJob] = {}
    waiting = plan.waiting_room
    while waiting:
        entries = judge.openings(
            plan_to_document(replace(plan, jobs=(*plan.jobs, *found.values()), waiting_room=waiting))
        )
        if not entries:
            break
        found.update((job.id, job) for job in map(_planned_job, entries))
        # a plan of some classes of priorities has the other jobs neither planned nor waiting
        left = {job.id for job in waiting} - found.keys()
        room = with_jobs(instance, plan, (*plan.jobs, *found.values())).waiting_room
        waiting = tuple(job for job in room if job.id in left)
    if not found:
        return plan
    placed = {job.id: job for job in plan.jobs} | found
    jobs = tuple(placed[job.id] for job in instance.elements() if job.id in placed)
    old, value = plan.objective, objective_value(instance, jobs)
    gap = None if old.bound is None else (value - old.bound) / abs(value) if value else 0.0
    score = replace(
        old,
        value=value,
        planner=old.planner + value - old.value,
        suffered=suffered(instance, jobs),
        gap=gap,
    )
    is_optimal = gap is not None and gap <= 1e-9
    stopped = "done" if plan.engine.stopped == "optimal" and not is_optimal else plan.engine.stopped
    names = ", ".join(list(found)[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
    event = Event(
        at=round(elapsed, 3), by="verify", what=f"found a start beside the plan for {len(found)} more: {names}"
    )
    return replace(
        plan,
        objective=score,
        engine=replace(plan.engine, stopped=stopped),
        jobs=jobs,
        waiting_room=waiting,
        incumbents=(*plan.incumbents, _incumbent(elapsed, value, "verify", jobs)),
        events=(*plan.events, event),
    )


def _planned_job(entry: Mapping[str, Any]) -> PlannedJob:
    """Return an entry of a plan as the verifier writes it."""
    segments = tuple(
        Segment(
            start=segment["start"],
            end=segment["end"],
            allocation=tuple(
                Placement(**{**one, "resources": Amounts(one["resources"])}) for one in segment["allocation"]
            ),
        )
        for segment in entry["segments"]
    )
    return PlannedJob(id=entry["id"], start=entry["start"], end=entry["end"], segments=segments)


def plan_of(
    instance: Instance,
    engine: str,
    outcome: Outcome,
    *,
    slices: tuple[ReservedSlice, ...] = (),
    budget: float,
    elapsed: float,
    by: str | None = None,
) -> Plan:
    """Return the plan of an engine's outcome after `elapsed` of `budget` seconds, without solvers.

    Parameters
    ----------
    by
        Its finder, None: the engine.
    """
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
        reservations=slices,
        incumbents=(_incumbent(elapsed, value, by or engine, outcome.jobs),),
    )


def _incumbent(elapsed: float, value: float, by: str, jobs: Sequence[PlannedJob]) -> Incumbent:
    return Incumbent(at=round(elapsed, 3), value=value, by=by, planned=len(jobs))


def scored(
    instance: Instance, plan: Plan, board: Board, jobs: Sequence[PlannedJob], *, stopped: str, elapsed: float
) -> Plan:
    """Return the first plan with the jobs, value and bound of the board in place of its own. A bound that says hardly
    more than what was already suffered is left out.

    Parameters
    ----------
    jobs
        Those of the board's best plan, as a plan of the stated window has them.
    """
    plan = with_jobs(instance, plan, jobs)
    value, proof = board.best.value, board.proof
    score = replace(plan.objective, value=value)
    if proof is not None:
        bound = min(proof.value, value)  # the two may be rounded differently; more than that the board refuses
        gap = (value - bound) / abs(value) if value else 0.0
        proven = replace(score, bound=bound, gap=gap, proof=proof.how)
        unproven = honest_gap(proven)
        score = score if unproven is not None and unproven > _NOTHING_PROVEN else proven
    return replace(
        plan,
        objective=score,
        engine=replace(plan.engine, stopped=stopped, elapsed=round(elapsed, 3)),
        incumbents=(*plan.incumbents, *board.incumbents[1:]),
        work=board.work,
        events=(*plan.events, *board.events),
    )
