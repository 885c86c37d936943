"""The recipe begins from an earlier plan, whatever became of its jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import Instance, Job, Plan, Running, Segment
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from cpsched.verify import verify
from tests.oracle.random_instances import instances
from tests.sizes import examples

INSTANCES = Path(__file__).parents[2] / "instances"


@pytest.fixture(autouse=True)
def _nobody_improves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the earlier plan be the only one that is offered."""
    monkeypatch.setattr("cpsched.cp.orders.MOST_JOBS", 0)
    monkeypatch.setattr("cpsched.portfolio.recipe.team_of", lambda *_, **__: Team(first=PlannerEngine()))


def begun_from(instance: Instance, earlier: Plan) -> Plan:
    """Plan a window from an earlier plan; the judge finds no fault with it, and it is no worse than the planner's."""
    plan = solve(instance, warm=earlier)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    assert plan.objective.value <= plan.objective.planner
    return plan


def test_a_better_plan_is_taken_over() -> None:
    """The short job first is better than the queue's order: a plan that says so is the answer."""
    instance = read_instance(INSTANCES / "tiny-order.json")
    fallback = solve(instance)
    better = replace(fallback, jobs=best_order(instance, fallback))
    plan = begun_from(instance, better)
    assert plan.objective.value < fallback.objective.value
    assert [found.by for found in plan.incumbents] == ["planner", "warm"]


def best_order(instance: Instance, plan: Plan) -> tuple[Any, ...]:
    """Return the jobs of a plan with starts by ascending walltime; the nodes stay as they are."""
    walltime = {job.id: job.walltime for job in instance.elements()}
    start, moved = instance.now, {}
    for job in sorted(plan.jobs, key=lambda job: walltime[job.id]):
        end = start + walltime[job.id]
        (segment,) = job.segments
        moved[job.id] = replace(job, start=start, end=end, segments=(replace(segment, start=start, end=end),))
        start = end
    return tuple(moved[job.id] for job in plan.jobs)


@examples(60)
@given(instances(), instances())
def test_any_plan_may_be_the_earlier_one(instance: Instance, other: Instance) -> None:
    """A plan of the same window changes nothing; one of another window neither helps nor harms."""
    assert begun_from(instance, solve(instance)).objective.value <= solve(instance).objective.value
    begun_from(instance, solve(other))


def test_time_has_passed() -> None:
    """Jobs that began in the meantime run now, one is gone, a new one came: the rest of the plan still helps."""
    instance = read_instance(INSTANCES / "eurora-like-0050.json.gz")
    earlier = solve(instance)
    now = instance.now + 1800
    by_id = {job.id: job for job in earlier.jobs}
    later = tuple(begun for job in instance.jobs[:-1] if (begun := as_of(job, by_id[job.id].segments, now)) is not None)
    new = replace(instance.jobs[-1], id="new", submit=now)
    begun_from(replace(instance, now=now, jobs=(*later, new)), earlier)


def as_of(job: Job, segments: tuple[Segment, ...], now: int) -> Job | None:
    """Return what has become of a planned job: gone, running, or still waiting."""
    (segment,) = segments
    if segment.end <= now:
        return None
    if segment.start > now:
        return job
    held = tuple(replace(part, chunk=None, count=None) for part in segment.allocation)
    return replace(job, running=Running(start=segment.start, segments=(replace(segment, allocation=held),)))
