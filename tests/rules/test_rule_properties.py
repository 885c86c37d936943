"""Properties of every window: no job is lost, and the rules are what their names promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Job, PlannedJob, WaitingJob
from cpsched.formats import read_instance
from cpsched.planner import AdmissionResult, PlannerEngine
from cpsched.problem import bound_jobs
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.literal_planner import start_after_awaited
from tests.oracle.random_instances import instances
from tests.rules.naive_easy import easy_by_the_second
from tests.rules.ruled import RULES, planned, starts
from tests.sizes import examples


@pytest.mark.parametrize("rule", RULES)
@examples(12)
@given(instances())
def test_everybody_is_planned_or_told_why(rule: str, instance: Instance) -> None:
    """A valid plan has each job once; who is bound in time (or awaited by one who is), or refused, stands where the
    planner has it.
    """
    plan = planned(instance, rule)
    mine: dict[str, PlannedJob | WaitingJob] = {job.id: job for job in plan.jobs}
    mine |= {job.id: job for job in plan.waiting_room}
    outcome = PlannerEngine().plan(instance, None)
    planners: dict[str, PlannedJob | WaitingJob] = {job.id: job for job in outcome.jobs}
    planners |= {job.id: job for job in outcome.waiting_room}
    admission = AdmissionResult.of(instance, engine="test")
    bound = {job.id for job in bound_jobs(instance, admission.admitted)}
    free = {job.id for job in admission.admitted} - bound
    for job in instance.elements():
        if job.id not in free:
            assert mine[job.id] == planners[job.id]
    assert {job.reason for job in plan.waiting_room if job.id in free} <= {"not_mapped", "dependency"}


@examples(40)
@given(instances())
def test_conservative_backfilling_is_the_planner(instance: Instance) -> None:
    """Insertion in queue order, on nodes, is what the planner does."""
    plan = planned(instance, "conservative_on_nodes")
    outcome = PlannerEngine().plan(instance, None)
    assert (plan.jobs, plan.waiting_room) == (outcome.jobs, outcome.waiting_room)


@examples(40)
@given(instances())
def test_first_come_first_served(instance: Instance) -> None:
    """No job starts while a job ahead of it in the queue waits."""
    found = starts(instance, "fcfs")
    places: dict[str, tuple[int, list[Any]] | None] = {
        job_id: None if start is None else (start, []) for job_id, start in found.items()
    }
    bound = {job.id for job in bound_jobs(instance, AdmissionResult.of(instance, engine="test").admitted)}
    free = [job for job in waiting_jobs(instance) if job.id not in bound and found[job.id] is not None]
    queue = sorted(free, key=lambda job: job.submit)
    for place, job in enumerate(queue):
        start = found[job.id] or 0
        for other in queue[:place]:
            if (found[other.id] or 0) > start:
                arrival = start_after_awaited(instance, other, places)
                assert arrival is not None
                # who is released when its predecessor starts comes a moment later
                assert instance.earliest_start(other) > start or arrival > start - bool(other.after)


@examples(60)
@given(instances(max_nodes=4, max_jobs=8))
def test_easy_is_its_naive_twin(instance: Instance) -> None:
    """Going from event to event gives the starts that looking in every second gives."""
    instance = replace(instance, jobs=tuple(map(of_one_kind, instance.jobs)))
    refused = AdmissionResult.of(instance, engine="test").refused
    twin = easy_by_the_second(instance, [job for job in waiting_jobs(instance) if job.id not in refused])
    assert {job_id: start for job_id, start in starts(instance, "easy").items() if start is not None} == twin


def waiting_jobs(instance: Instance) -> list[Job]:
    """Return the jobs that wait, arrays by their elements."""
    return [job for job in instance.elements() if job.running is None]


def of_one_kind(job: Job) -> Job:
    """Return a waiting job with the first kind of its chunks only."""
    if job.running is not None:
        return job
    (step,) = job.steps
    return replace(job, steps=(replace(step, request=replace(step.request, chunks=step.request.chunks[:1])),))


@examples(30)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 5), st.data())
def test_rules_agree_on_unit_jobs(size: int, count: int, end: int, data: st.DataObject) -> None:
    """One node, jobs of one core and one second: whatever fits beside the running job starts, so all rules agree."""
    held = data.draw(st.integers(1, size))
    jobs = [waiting(f"j{n}", 1, chunk(cores=1)) for n in range(count)]
    instance = window([nodes("n", cores=size)], running("r", end, n={"cores": held}), *jobs)
    assert len({tuple(sorted(starts(instance, rule).items())) for rule in RULES}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_real_windows(rule: str, shared_data: Path) -> None:
    """A window of the Eurora cluster and a queue of a real machine are planned and verified."""
    for name in ("eurora/window-0200-0.json.gz", "eurora/real-0400-0.json.gz"):
        planned(read_instance(shared_data / name), rule)
