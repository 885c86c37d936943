"""The last thing that happens to a plan is one judgement: a stage that breaks a plan is caught."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.answers import WhatIf, what_if
from cpsched.domain import (
    Dependency,
    DependencyType,
    Instance,
    Judgement,
    Plan,
    PlannedJob,
    SolveParams,
    WaitingJob,
    WaitingReason,
)
from cpsched.errors import DocumentError, UnverifiedError
from cpsched.formats import instance_to_document, parse_plan, plan_to_document, read_instance, read_solve_params
from cpsched.modelling import Model
from cpsched.planner import PlannerEngine
from cpsched.portfolio import OnPlan, Team, leftovers, recipe, replan, solve
from cpsched.portfolio.scoring import Check
from cpsched.search import Search
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.verify.openings import strictly_verified
from tests.workloads.eurora_windows import eurora_window


def two_jobs(*, is_strict: bool = False) -> Instance:
    """Return a window in which two jobs take the only node one after the other."""
    jobs = (waiting(name, 5, chunk(cores=4), priority=number) for number, name in enumerate("ab"))
    return replace(window([nodes("n1", cores=4)], *jobs), has_strict_priorities=is_strict)


def team() -> Team:
    """Return the planner, and a search of a few steps."""
    return Team(first=PlannerEngine(), lanes=((Search(max_steps=20),),))


def at_once(plan: Plan) -> Plan:
    """Return a plan in which all jobs start as early as the first one."""
    start = min(job.start for job in plan.jobs)
    return replace(plan, jobs=tuple(_moved(job, start - job.start) for job in plan.jobs))


def without_jobs(plan: Plan) -> Plan:
    """Return a plan in which jobs are neither planned nor waiting."""
    return replace(plan, jobs=())


def claimed(plan: Plan) -> Plan:
    """Return a plan of whose last job it is falsely said that it can never run."""
    *jobs, last = plan.jobs
    room = WaitingJob(id=last.id, reason=WaitingReason.UNSATISFIABLE, detail="?")
    return replace(plan, jobs=tuple(jobs), waiting_room=(*plan.waiting_room, room))


def _moved(job: PlannedJob, by: int) -> PlannedJob:
    segments = tuple(replace(one, start=one.start + by, end=one.end + by) for one in job.segments)
    return replace(job, start=job.start + by, end=job.end + by, segments=segments)


def _first(broken: Callable[[Plan], Plan], made: Any) -> Any:
    return replace(made, plan=broken(made.plan))


def _of_classes(broken: Callable[[Plan], Plan], made: Any) -> Any:
    return broken(made[0]), made[1]


def _plan(broken: Callable[[Plan], Plan], made: Any) -> Any:
    return broken(made)


#: The stages of the recipe, and how a plan is broken in what each returns.
STAGES = {
    "_first": _first,
    "by_class": _of_classes,
    "scored": _plan,
    "beyond_soft_limits": _plan,
    "filled": _plan,
}


def with_mutant(monkeypatch: pytest.MonkeyPatch, stage: str, broken: Callable[[Plan], Plan]) -> None:
    """Let a stage of the recipe break the plan."""
    whole = getattr(recipe, stage)
    monkeypatch.setattr(recipe, stage, lambda *given, **more: STAGES[stage](broken, whole(*given, **more)))


@pytest.mark.parametrize("broken", [at_once, claimed])
@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_breaks_is_put_right(
    stage: str, broken: Callable[[Plan], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that a stage puts where another one runs, or falsely gives up, gets a start of its own."""
    instance = two_jobs(is_strict=stage == "by_class")
    with_mutant(monkeypatch, stage, broken)
    plan = solve(instance, engine="search", budget=600, team=team())
    assert strictly_verified(instance_to_document(instance), plan_to_document(plan)) == ()
    assert {job.id for job in plan.jobs} == {"a", "b"}


@pytest.mark.parametrize("stage", STAGES)
def test_what_cannot_be_put_right_does_not_leave(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that loses jobs is a bug, and there is no plan."""
    instance = two_jobs(is_strict=stage == "by_class")
    with_mutant(monkeypatch, stage, without_jobs)
    solvers = team() if stage != "_first" else replace(team(), lanes=())  # which would plan anew what is lost
    with pytest.raises(UnverifiedError):
        solve(instance, engine="search", budget=600, team=solvers)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Plan, bool, int]]:
    """Return a list of all that is judged: the plan, whether its claims were, and the number of violations."""
    calls = list[tuple[Plan, bool, int]]()
    whole = Check.judged

    def judged(self: Check, plan: Plan, *, claims: bool = True) -> Any:
        found, faults = whole(self, plan, claims=claims)
        calls.append((found, claims, len(faults)))
        return found, faults

    monkeypatch.setattr(Check, "judged", judged)
    return calls


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize("budget", [0, 600])
def test_what_leaves_was_judged_last(judged: list[tuple[Plan, bool, int]], budget: float, *, is_strict: bool) -> None:
    """The plan of `solve` is the very one that was judged last, with its claims; without a budget nothing else is."""
    instance = two_jobs(is_strict=is_strict)
    plan = solve(instance, engine="search", budget=budget, team=team())
    assert judged[-1][0] is plan
    assert judged[-1][1:] == (True, 0)
    assert budget > 0 or len(judged) == 1
    warm = solve(instance, engine="planner", budget=0, warm=plan)
    assert judged[-1][0] is warm


def test_what_leaves_other_doors_was_judged_last(judged: list[tuple[Plan, bool, int]]) -> None:
    """So it is with `replan` and `what_if`."""
    instance = two_jobs()
    plan = solve(instance, engine="planner", budget=0)
    _, later = replan(instance, plan, at=2)
    assert judged[-1][0] is later
    for budget in (0.0, 0.5):
        after = what_if(instance, plan, WhatIf(drop=("a",)), budget=budget)
        assert judged[-1][0] is after.plan
        assert judged[-1][1:] == (True, 0)


def test_a_plan_carries_its_judgement() -> None:
    """The plan of `solve` has the judgement of its verifier; a changed one has none, and its own violations."""
    instance = two_jobs()
    plan = solve(instance, engine="planner", budget=0)
    assert plan.judgement is not None
    assert plan.judgement.violations == 0
    assert {"capacity", "waiting_room"} <= {*plan.judgement.rules}
    broken = at_once(plan)
    assert broken.judgement is None
    again, faults = Check.of(instance).judged(broken, claims=False)
    rules = tuple(name for name in plan.judgement.rules if name != "waiting_room")
    assert again.judgement == Judgement(violations=len(faults), rules=rules)
    assert faults


def test_nothing_is_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """For jobs that find no start beside a plan nothing is compiled again, nor are they asked about beside it again."""
    jobs = (waiting(name, 5, chunk(cores=4), deadline=5) for name in "ab")
    instance = window([nodes("n1", cores=4)], *jobs)
    asked, whole = list[Any](), leftovers.filled

    def filled(check: Check, plan: Plan, **more: Any) -> Plan:
        asked.append(plan.jobs)
        return whole(check, plan, **more)

    monkeypatch.setattr(recipe, "filled", filled)
    monkeypatch.setattr(leftovers, "problem_of", None)
    plan = solve(instance, engine="search", budget=600, team=team())
    assert [job.reason for job in plan.waiting_room] == [WaitingReason.TOO_LATE]
    assert asked
    assert all(jobs not in asked[:number] for number, jobs in enumerate(asked))


def test_a_plan_says_how_it_was_solved() -> None:
    """The figures of `solve` are in the plan document, and repeat the solve."""
    instance = eurora_window(20, 1, demand=50)
    plan = solve(instance, engine="search", budget=600, seed=3, workers=1, team=team())
    read = parse_plan(json.loads(json.dumps(plan_to_document(plan))))
    assert read.engine.params == SolveParams(engine="search", budget=600, seed=3, workers=1)
    again = solve(instance, team=team(), **asdict(read.engine.params))
    assert again.jobs == plan.jobs
    assert again.engine.params == plan.engine.params


def test_a_caller_is_told_of_the_plan_and_ends_its_improvement() -> None:
    """It gets value, bound and seconds again and again; when it returns False the best plan so far is the answer."""
    told: list[tuple[float, float | None, float]] = []

    def on_plan(value: float, bound: float | None, seconds: float) -> bool:
        told.append((value, bound, seconds))
        return len(told) < 5

    instance = eurora_window(150, 1)
    plan = solve(instance, engine="search", budget=600, workers=1, on_plan=on_plan)
    assert plan.engine.stopped == "interrupted"
    assert len(told) == 5
    values, seconds = [value for value, _, _ in told], [at for _, _, at in told]
    assert values == sorted(values, reverse=True)
    assert seconds == sorted(seconds)
    assert plan.objective.value <= values[-1] <= plan.objective.planner
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()


def test_a_caller_is_told_of_a_first_plan_that_cannot_be_improved() -> None:
    """Its value is told once, whatever the budget."""
    model = Model()
    model.add_nodes("n0", cores=1)
    model.add_job(1, 10)
    told: list[float] = []
    for budget in (0, 60):
        model.solve(budget=budget, on_plan=lambda value, *_: told.append(value))
    assert told == [0, 0]


def test_with_steps_a_seed_gives_the_same_plan() -> None:
    """No clock decides: cores and a caller that is slow change nothing, another seed does."""
    instance = eurora_window(150, 1)

    def steps(seed: int, workers: int = 2, on_plan: OnPlan | None = None) -> Plan:
        return solve(instance, engine="search", budget=600, steps=3000, seed=seed, workers=workers, on_plan=on_plan)

    first, again, slow, other = steps(1), steps(1, workers=1), steps(1, on_plan=lambda *_: time.sleep(0.2)), steps(2)
    assert first.engine.stopped == "done"
    assert first.jobs == again.jobs == slow.jobs
    assert first.objective.value == slow.objective.value < first.objective.planner
    assert first.jobs != other.jobs
    with pytest.raises(ValueError, match="steps: Expected the engine 'search'"):
        solve(instance, steps=3000)


def test_params_of_a_file(tmp_path: Path) -> None:
    """The figures of `solve` are read from a file, and refused with everything that is wrong."""
    path = tmp_path / "solve.toml"
    path.write_text('engine = "planner"\nbudget = 2\nseed = 7\n')
    assert read_solve_params(path) == SolveParams(engine="planner", budget=2.0, seed=7)
    path.write_text("engine = 3\nworkers = 0\nbudjet = 2\n")
    with pytest.raises(DocumentError) as caught:
        read_solve_params(path)
    assert [fault.path for fault in caught.value.faults] == ["engine", "workers", "budjet"]
    with pytest.raises(ValueError, match="workers"):
        SolveParams(workers=0)


@pytest.mark.parametrize("is_linked", [False, True])
def test_kernels_of_projects_are_loaded_where_jobs_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch, *, is_linked: bool
) -> None:
    """They take an eighth of the time of a first plan on a new machine, and most windows need none of them."""
    loaded: list[bool] = []

    def note(*_: object, linked: bool, **__: object) -> None:
        loaded.append(linked)

    monkeypatch.setattr("cpsched.portfolio.task.prepare", note)
    first, second = two_jobs().jobs
    dependency = Dependency(type=DependencyType.AFTERANY, job=first.id)
    instance = replace(two_jobs(), jobs=(first, replace(second, after=(dependency,) if is_linked else ())))
    solve(instance, engine="search", budget=0.1)
    assert loaded == [is_linked]


def test_jobs_that_were_left_out_count() -> None:
    """A plan that is better for the jobs of the engines' window is not taken where what is added later costs more."""
    instance = read_instance(Path(__file__).parents[1] / "cases" / "left-out-costs-more.json")
    first = solve(instance, engine="portfolio", budget=0, workers=1, team=Team(first=PlannerEngine()))
    plan = solve(instance, engine="portfolio", budget=60, workers=1, team=team())
    assert len(plan.jobs) == len(first.jobs) == len(instance.jobs)
    assert plan.objective.value <= first.objective.value
