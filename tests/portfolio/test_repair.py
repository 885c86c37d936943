"""What the verifier refuses of one job costs that job its start at the most, and never the window its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Plan, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Outcome, Progress
from cpsched.errors import UnverifiedError
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.random_instances import instances
from tests.sizes import examples
from tests.verify.openings import strictly_verified

CASES = Path(__file__).parents[1] / "cases"


class Wrong(PlannerEngine):
    """The planner, with something wrong in its plans."""

    def __init__(self, change: Callable[[Outcome], Outcome]) -> None:
        self._change = change

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs, and spoil the plan."""
        return self._change(super().plan(instance, progress))


def solved(instance: Instance, change: Callable[[Outcome], Outcome]) -> Plan:
    """Return the plan that is made of a spoilt one; the judge finds no fault with it."""
    plan = solve(instance, engine="planner", budget=0, team=Team(first=Wrong(change)))
    violations = strictly_verified(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))
    return plan


def moved(planned: PlannedJob, by: int) -> PlannedJob:
    """Return a job of one segment at another time."""
    (segment,) = planned.segments
    there = replace(segment, start=segment.start + by, end=segment.end + by)
    return replace(planned, start=there.start, end=there.end, segments=(there,))


def with_moved(job_id: str, by: int) -> Callable[[Outcome], Outcome]:
    """Return a function that moves one job of a plan."""
    return lambda found: replace(found, jobs=tuple(moved(job, by) if job.id == job_id else job for job in found.jobs))


def test_a_request_that_the_orders_of_mapping_miss_is_planned() -> None:
    """One node has to have chunks of both kinds, which no order of kinds and nodes finds."""
    (job,) = solved(read_instance(CASES / "not-mapped-exit3.json"), lambda found: found).jobs
    assert (job.id, job.start) == ("j5", 0)


def test_a_job_that_takes_what_others_have_gets_another_start() -> None:
    """Job b is put where a runs: it gets the next start, everybody else stays, and an event says so."""
    instance = window(
        [nodes("n", cores=1)],
        running("a", 10, n={"cores": 1}),
        waiting("b", 5, chunk(cores=1)),
        waiting("c", 5, chunk(cores=1)),
    )
    plan = solved(instance, with_moved("b", -5))
    assert {job.id: job.start for job in plan.jobs} == {"a": 0, "b": 10, "c": 15}
    assert any("refused job b: capacity" in event.what for event in plan.events)


def test_a_job_that_has_no_other_start_waits() -> None:
    """Job b starts after its deadline allows, and a runs until then: the waiting room says what was refused."""
    instance = window(
        [nodes("n", cores=1)],
        running("a", 10, n={"cores": 1}),
        waiting("b", 5, chunk(cores=1), deadline=15),
        waiting("c", 5, chunk(cores=1)),
    )

    def swapped(found: Outcome) -> Outcome:
        return with_moved("c", -5)(with_moved("b", 5)(found))

    plan = solved(instance, swapped)
    assert {job.id: job.start for job in plan.jobs} == {"a": 0, "c": 10}
    (left,) = plan.waiting_room
    assert (left.id, left.reason) == ("b", WaitingReason.TOO_LATE)
    assert "deadline" in left.detail


def test_a_false_reason_is_put_right() -> None:
    """No start before its deadline is left for b, which is said to be unsatisfiable."""
    instance = window(
        [nodes("n", cores=1)], running("a", 10, n={"cores": 1}), waiting("b", 5, chunk(cores=1), deadline=12)
    )

    def claimed(found: Outcome) -> Outcome:
        return replace(found, waiting_room=(WaitingJob(id="b", reason=WaitingReason.UNSATISFIABLE, detail="?"),))

    (left,) = solved(instance, claimed).waiting_room
    assert left.reason is WaitingReason.TOO_LATE


def test_a_running_job_that_is_moved_continues_as_stated() -> None:
    """What runs is a fact, whatever an engine says."""
    instance = window([nodes("n", cores=1)], running("a", 10, n={"cores": 1}))
    plan = solved(instance, with_moved("a", 1))
    assert [(job.start, job.end) for job in plan.jobs] == [(0, 10)]


def test_a_plan_without_one_of_its_jobs_is_a_bug() -> None:
    """A job that stands nowhere is no matter of one start."""
    instance = window([nodes("n", cores=1)], waiting("b", 5, chunk(cores=1)))
    with pytest.raises(UnverifiedError):
        solved(instance, lambda found: replace(found, jobs=()))


@examples(150, deadline=None)
@given(instances(), st.data())
def test_one_job_never_blocks_a_window(instance: Instance, data: st.DataObject) -> None:
    """Whatever is wrong with one or two jobs of a plan, the window has a plan that keeps all rules."""

    def spoilt(found: Outcome) -> Outcome:
        for _ in range(data.draw(st.integers(1, 2))):
            ids = [job.id for job in found.jobs if len(job.segments) == 1]
            if not ids:
                break
            job_id = data.draw(st.sampled_from(ids))
            is_out = data.draw(st.booleans()) and all(job.id != job_id or job.running is None for job in instance.jobs)
            if not is_out:
                found = with_moved(job_id, data.draw(st.integers(-9, 9)))(found)
                continue
            room = WaitingJob(id=job_id, reason=data.draw(st.sampled_from(REASONS)), detail="?")
            jobs = tuple(job for job in found.jobs if job.id != job_id)
            found = replace(found, jobs=jobs, waiting_room=(*found.waiting_room, room))
        return found

    solved(instance, spoilt)


#: What may be said of a job that waits in a plan.
REASONS = [reason for reason in WaitingReason if reason is not WaitingReason.NOT_STARTED]
