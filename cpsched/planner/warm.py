"""From an earlier plan to the next: what was planned stays where it can, and what users were told is kept in mind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, Plan, PlannedJob, PromisedStart
from cpsched.planner.shrink import Values, go_on_shrunk, lenders
from cpsched.problem import awaited_first, planning_order


def displace(ledger: Ledger, jobs: Mapping[str, Job], name: str, before: Mapping[str, PlannedJob]) -> None:
    """Book a job at its planned start, and release as many jobs of lower priority as that needs, if it helps.

    The lowest priority leaves first, then the latest start; a job that has left and still fits comes back.

    `ledger`, `jobs`, `name`: the ledger, its jobs by id, and the job. `before`: the places in the plan before.
    """
    instance, planned = ledger.instance, before[name]
    start = max(planned.start, instance.now)
    if ledger.place([name], earliest=start, latest=start):
        return
    own, end = instance.priority(jobs[name]), start + planned.end - planned.start

    def is_movable(other: str) -> bool:
        return other != name and jobs[other].start_at is None and instance.priority(jobs[other]) < own

    mark, released = ledger.marked(), list[str]()
    near = [other for other, place in before.items() if place.start < end and place.end > start and is_movable(other)]
    for victim in sorted(near, key=lambda other: (instance.priority(jobs[other]), -before[other].start)):
        leaving = list(reversed(ledger.behind(victim)))
        if not all(map(is_movable, leaving)):
            continue
        leaving = [other for other in leaving if ledger.is_booked(other)]
        for other in leaving:
            ledger.release(other)
        released += leaving
        if ledger.place([name], earliest=start, latest=start):
            for other in reversed(released):
                if other in before:
                    ledger.restore(before[other])
            return
    ledger.back_to(mark)


def shrunk(ledger: Ledger) -> list[str]:
    """Return the running jobs that have less than all their cores now, or will."""
    running = ledger.running
    return [
        name for name, left in running.changeable.items() if name in running.changed or left.current != left.modes[0]
    ]


def shrink_more(ledger: Ledger, order: Sequence[str], values: Values, before: Mapping[str, PlannedJob]) -> None:
    """Shrink running jobs where the plan is worth more for it, and no job that had a start starts later."""
    for name in lenders(ledger, order):
        starts = {
            job_id: ledger.place_of(job_id).start for job_id in order if job_id in before and ledger.is_booked(job_id)
        }
        mark = ledger.marked()
        if go_on_shrunk(ledger, order, values, names=(name,)) and not all(
            ledger.is_booked(job_id) and ledger.place_of(job_id).start <= start for job_id, start in starts.items()
        ):
            ledger.back_to(mark)


def with_promised_starts(instance: Instance, plan: Plan, price: float) -> Instance:
    """Return the instance with the starts of an earlier plan as those that users were told: to postpone has a price.

    A job for which the instance itself says what its user was told keeps that. An array has one such start for all its
    elements: the last that was planned for any of them.

    `price`: of each expected wait of postponement, at least 0.
    """
    before = planned_by(plan.jobs, plan.now)

    def promised(job: Job) -> Job:
        starts = [before[element].start for element in job.element_ids if element in before]
        if job.running is not None or job.told is not None or not starts:
            return job
        return replace(job, told=PromisedStart(start=max(starts), price=price))

    return replace(instance, jobs=tuple(map(promised, instance.jobs)))


def planned_by(jobs: Sequence[PlannedJob], now: int) -> dict[str, PlannedJob]:
    """Return the jobs of a plan by id, without those that ran when it was made."""
    return {job.id: job for job in jobs if job.start >= now}


def ordered(instance: Instance, jobs: tuple[Job, ...], before: dict[str, PlannedJob]) -> list[Job]:
    """Order jobs by their starts in a plan, then as the planner does; but each after all that it waits for."""

    def key(job: Job) -> tuple[bool, int]:
        return job.id not in before, before[job.id].start if job.id in before else 0

    return awaited_first(instance, sorted(planning_order(instance, jobs), key=key))
