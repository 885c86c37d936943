"""From an earlier plan to the next: what was planned stays where it can, and what users were told is kept in mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, Plan, PlannedJob, PromisedStart
from cpsched.engine import Outcome
from cpsched.planner.admission_result import AdmissionResult
from cpsched.planner.planner import NAME
from cpsched.planner.queue import awaited_first, bound_jobs, planning_order
from cpsched.planner.shrink import Values, go_on_shrunk, lenders

__all__ = ["replanned", "warm_order", "with_promised_starts"]


def replanned(instance: Instance, plan: Plan) -> Outcome:
    """Bring an earlier plan up to date, after jobs came and went, nodes broke down, or time passed (OCCS-36).

    Each job keeps its start and its nodes if they are still free and allowed. All others are planned beside them,
    in `warm_order`, and one pass of backfilling moves jobs up into freed resources. Jobs with limited starts come
    first, so that a new one of them finds its place before jobs that can wait take it. Running jobs continue as in the
    plan, but are shrunk only while that still improves the plan. For new jobs, further running jobs are shrunk if that
    improves the plan and no job that had a start starts later.

    Parameters
    ----------
    plan
        A plan of any instance: a job that this instance does not have, or that runs by now, is ignored.

    Raises
    ------
    UnsupportedError
        If the instance asks for something that the planner cannot honour yet.
    """
    admission = AdmissionResult.of(instance, engine=NAME)
    ledger = Ledger(instance, admission.admitted)
    before = _planned_by(plan)
    bound = {job.id for job in bound_jobs(instance, admission.admitted)}
    order = [job.id for job in _ordered(instance, admission.admitted, before)]
    ledger.running.restore(ledger.running.resumed(plan.jobs))
    for turn in (True, False):
        jobs = [job_id for job_id in order if (job_id in bound) is turn]
        ledger.plan([job_id for job_id in jobs if job_id not in before or not ledger.restore(before[job_id])])
    ledger.backfill(order)
    shrunk = _shrunk(ledger)
    is_new = bool(ledger.running.changeable) and any(job_id not in before for job_id in order)
    if shrunk or is_new:
        values = Values(instance, ledger)
        go_on_shrunk(ledger, order, values, names=shrunk)
        if is_new:
            _shrink_more(ledger, order, values, before)
    return admission.outcome(ledger)


def _shrunk(ledger: Ledger) -> list[str]:
    """Return the running jobs that have less than all their cores now, or will."""
    running = ledger.running
    return [
        name for name, left in running.changeable.items() if name in running.changed or left.current != left.modes[0]
    ]


def _shrink_more(ledger: Ledger, order: Sequence[str], values: Values, before: Mapping[str, PlannedJob]) -> None:
    """Shrink running jobs where the plan is worth more for it, and no job that had a start in the plan
    before starts later.
    """
    for name in lenders(ledger, order):
        starts = {
            job_id: ledger.place_of(job_id).start for job_id in order if job_id in before and ledger.is_booked(job_id)
        }
        mark = ledger.marked()
        if go_on_shrunk(ledger, order, values, names=(name,)) and not all(
            ledger.is_booked(job_id) and ledger.place_of(job_id).start <= start for job_id, start in starts.items()
        ):
            ledger.back_to(mark)


def warm_order(instance: Instance, plan: Plan) -> list[str]:
    """Order the waiting jobs as they start in an earlier plan; those that it has no start for follow as the planner
    orders them, and each comes after all that it waits for.
    """
    waiting = tuple(job for job in instance.elements() if job.running is None)
    return [job.id for job in _ordered(instance, waiting, _planned_by(plan))]


def with_promised_starts(instance: Instance, plan: Plan, price: float) -> Instance:
    """Return the instance with the starts of an earlier plan as those that users were told: to postpone has a price.

    A job for which the instance itself says what its user was told keeps that. An array has one such start for all its
    elements: the last that was planned for any of them.

    Parameters
    ----------
    price
        Of each expected wait of postponement, at least 0.
    """
    before = _planned_by(plan)

    def told(job: Job) -> Job:
        starts = [before[element].start for element in job.element_ids if element in before]
        if job.running is not None or job.told is not None or not starts:
            return job
        return replace(job, told=PromisedStart(start=max(starts), price=price))

    return replace(instance, jobs=tuple(map(told, instance.jobs)))


def _planned_by(plan: Plan) -> dict[str, PlannedJob]:
    """Return the jobs of a plan by id, without those that ran when it was made."""
    return {job.id: job for job in plan.jobs if job.start >= plan.now}


def _ordered(instance: Instance, jobs: tuple[Job, ...], before: dict[str, PlannedJob]) -> list[Job]:
    """Order jobs by their starts in a plan, those without one behind, equals as the planner orders them; but each after
    all that it waits for.
    """

    def key(job: Job) -> tuple[bool, int]:
        return job.id not in before, before[job.id].start if job.id in before else 0

    return awaited_first(instance, sorted(planning_order(instance, jobs), key=key))
