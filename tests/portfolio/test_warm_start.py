"""The recipe begins from an earlier plan, whatever became of its jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import Instance, Job, Plan, PlannedJob, Running, Segment
from cpsched.errors import UnsupportedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document, read_instance, read_plan
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, engine_names, solve
from cpsched.portfolio.classes import rank
from cpsched.search import Search
from cpsched.verify import verify
from tests.judges.ruled_windows import ruled_window
from tests.oracle.random_instances import instances
from tests.sizes import examples, seeds

INSTANCES = Path(__file__).parents[2] / "instances"
CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture(autouse=True)
def _nobody_improves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the earlier plan be the only one that is offered."""
    monkeypatch.setattr("cpsched.cp.bounding.MOST_JOBS", 0)
    monkeypatch.setattr("cpsched.portfolio.recipe.team_of", lambda *_, **__: Team(first=PlannerEngine()))


def begun_from(instance: Instance, earlier: Plan) -> Plan:
    """Plan a window from an earlier plan; the judge finds no fault with it, and it is no worse than the planner's."""
    plan = solve(instance, budget=2, warm=earlier)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    assert rank(instance, plan.jobs) <= rank(instance, solve(instance, engine="planner").jobs)
    return plan


def test_a_better_plan_is_taken_over() -> None:
    """The short job first is better than the queue's order: a plan that says so is the answer."""
    instance = read_instance(INSTANCES / "tiny-order.json")
    fallback = solve(instance)
    better = replace(fallback, jobs=best_order(instance, fallback))
    plan = begun_from(instance, better)
    assert plan.objective.value < fallback.objective.value
    assert [found.by for found in plan.incumbents] == ["warm"]
    assert plan.events == ()


@pytest.mark.parametrize("engine", engine_names())
@pytest.mark.parametrize("budget", [0, 0.01])
def test_no_engine_is_worse_than_the_earlier_plan(engine: str, budget: float) -> None:
    """A valid earlier plan is the first incumbent of every engine, even without time; nothing is wrong with it."""
    instance, earlier = read_instance(CASES / "warm-budget0.json"), read_plan(CASES / "warm-budget0.plan.json")
    plan = solve(instance, engine=engine, budget=budget, warm=earlier)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    assert plan.objective.value == earlier.objective.value < plan.objective.planner
    assert plan.incumbents[0].by == "warm"
    assert not [event for event in plan.events if event.by == "warm"]


@pytest.mark.parametrize("seed", seeds(100))
@pytest.mark.parametrize("is_strict", [False, True])
def test_whatever_rules_a_window_has_no_plan_is_worse(seed: int, *, is_strict: bool) -> None:
    """Windows with rules, strict ones too, begin from the plan of a search, and end no worse without further time."""
    dice, document = Random(seed), ruled_window(seed) | ({"priorities": "strict"} if is_strict else {})
    for job in document["jobs"]:
        job |= {"priority": dice.randint(0, 3)} if dice.random() < 0.7 else {}
    instance = parse_instance(document, source=f"window {seed}")
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=50),),))
    earlier = solve(instance, budget=600, team=team, seed=1)
    for engine in ("planner", "easy", "search"):
        try:
            plan = solve(instance, engine=engine, budget=0, warm=earlier, document=document)
        except UnsupportedError:
            continue
        assert verify(document, plan_to_document(plan)) == ()
        assert rank(instance, plan.jobs) <= rank(instance, earlier.jobs)


def test_what_is_wrong_with_an_earlier_plan_is_said() -> None:
    """A start that has passed, a rule that is broken and jobs without a start are named, and the rest is kept."""
    instance, earlier = read_instance(CASES / "warm-budget0.json"), read_plan(CASES / "warm-budget0.plan.json")
    whole, half = earlier, replace(earlier, jobs=earlier.jobs[:1])
    late = replace(instance, now=5)
    overlapping = replace(earlier, jobs=tuple(moved(job, -job.start) for job in earlier.jobs))
    for window, plan, words in (
        (late, whole, "1 of its starts have passed"),
        (instance, half, "1 jobs have no start in it"),
        (instance, overlapping, "it breaks a rule here"),
    ):
        (event,) = (event for event in begun_from(window, plan).events if event.by == "warm")
        assert words in event.what


def moved(job: PlannedJob, seconds: int) -> PlannedJob:
    """Return a job of one segment that starts some seconds later."""
    (segment,) = job.segments
    start, end = job.start + seconds, job.end + seconds
    return replace(job, start=start, end=end, segments=(replace(segment, start=start, end=end),))


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
