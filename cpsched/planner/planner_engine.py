"""The planner as an engine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.planner.admission_result import unsupported, without_longest_delays
from cpsched.planner.compiling import warmup
from cpsched.planner.planner import NAME, Planner
from cpsched.problem import left_without, missing_from, waits

#: How often a window is planned anew until all jobs start within their ``max_delay``, and how many jobs in all.
_MOST_ROUNDS, _MOST_PLANNED = 100, 100_000
_LATE = "no start was found at most max_delay after another job"


class PlannerEngine:
    """The planner as an engine: what everything else falls back on."""

    name = NAME

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the planner cannot honour yet."""
        return unsupported(without_longest_delays(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs in the planner's order.

        Where a job would start too late after another (``max_delay``), the other one starts later, and all are planned
        anew (as Franck, Neumann and Schwindt 2001 delay activities). Jobs that are still too late are left out.
        """
        window = without_longest_delays(instance)
        outcome = _planned(window, progress)
        if window is instance:
            return outcome
        entry_of = {name: entry for entry, names in instance.members().items() for name in names}
        running = {job.id for job in instance.jobs if job.running is not None}
        for _ in range(min(_MOST_ROUNDS, _MOST_PLANNED // (1 + len(outcome.jobs)))):
            planned, begins = {job.id: job for job in outcome.jobs}, dict[str, int]()
            for before, seconds in _too_late(instance, outcome).values():
                if before not in running:
                    entry = entry_of[before]
                    begins[entry] = max(begins.get(entry, 0), planned[before].start + seconds)
            if not begins:
                break
            jobs = (replace(job, not_before=begins.get(job.id, job.not_before)) for job in window.jobs)
            window = replace(window, jobs=tuple(jobs))
            outcome = _planned(window, progress)
        return _without(instance, outcome, _too_late(instance, outcome))


def _planned(instance: Instance, progress: Progress | None) -> Outcome:
    planner = Planner(instance)
    planner.plan(progress)
    return planner.outcome()


def _too_late(instance: Instance, outcome: Outcome) -> dict[str, tuple[str, int]]:
    """Return the jobs that start too late after another one, each with that one, and by how many seconds."""
    planned, found = {job.id: job for job in outcome.jobs}, dict[str, tuple[str, int]]()
    for job in instance.elements():
        for one in job.after if job.running is None and job.id in planned else ():
            if one.max_delay is not None:
                before = planned[one.job]
                latest = before.start + one.lag(before.end - before.start) - one.delay + one.max_delay
                if (over := planned[job.id].start - latest) > found.get(job.id, ("", 0))[1]:
                    found[job.id] = one.job, over
    return found


def _without(instance: Instance, outcome: Outcome, late: Collection[str]) -> Outcome:
    """Return an outcome without some jobs, and without those that wait for them."""
    left = left_without(instance, {*late, *(job.id for job in outcome.waiting_room)})
    missing, before = missing_from(instance, left), {job.id: job for job in outcome.waiting_room}
    return Outcome(
        jobs=tuple(job for job in outcome.jobs if job.id in left),
        waiting_room=tuple(
            before.get(job.id) or waits(instance, job, missing, _LATE)
            for job in instance.elements()
            if job.id not in left
        ),
    )
