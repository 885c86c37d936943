"""Strict priorities: no job is later because of one of a lower class, whichever engine plans."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.domain import (
    Arrangement,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Malleability,
    Place,
    Plan,
    Queue,
    needs_migration,
    priority_classes,
)
from cpsched.engine import Board, Budget, Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_engine_scheduler
from cpsched.lab.sim import simulate
from cpsched.metrics import objective_value
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, replan, solve
from cpsched.portfolio import strict as strict_stage
from cpsched.portfolio.classes import ByClass, rank
from cpsched.portfolio.task import Task
from cpsched.rules import POLICIES
from cpsched.search import Search
from cpsched.verify import verify
from tests.booking.small_windows import EXCLUSIVE, chunk, nodes, running, waiting, window
from tests.cp.trying_everything import best_plan
from tests.judges.changing_windows import changing_window
from tests.judges.ruled_windows import ruled_window
from tests.judges.windows import random_window
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_instances import instances, pressed
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples, seeds

CASES = Path(__file__).parents[1] / "cases"


def strict(instance: Instance) -> Instance:
    """Return an instance with strict priorities."""
    return replace(instance, has_strict_priorities=True)


def from_class(instance: Instance, least: int) -> Instance:
    """Return a window without the waiting jobs of lower classes."""
    classes = priority_classes(instance)
    jobs = tuple(job for job in instance.jobs if job.running is not None or classes[job.id] >= least)
    return replace(instance, jobs=jobs)


def starts(instance: Instance, plan: Plan | Outcome) -> dict[str, int]:
    """Return the starts of the waiting jobs."""
    runs = {job.id for job in instance.jobs if job.running is not None}
    return {job.id: job.start for job in plan.jobs if job.id not in runs}


def valid(instance: Instance, plan: Plan) -> Plan:
    """Return a plan with which the judge finds no fault."""
    violations = verify(instance_to_document(instance), plan_to_document(plan))
    assert not violations, "\n".join(map(str, violations))
    return plan


def check_prefixes(instance: Instance, planned: Callable[[Instance], Plan]) -> None:
    """Check that the jobs of each class and all above start as they do in a window without lower classes."""
    instance = strict(instance)
    whole = valid(instance, planned(instance))
    for least in sorted({priority_classes(instance)[job.id] for job in instance.jobs if job.running is None})[1:]:
        top = from_class(instance, least)
        alone = starts(top, valid(top, planned(top)))
        of_top = {name for job in top.jobs for name in job.element_ids}
        assert {name: start for name, start in starts(instance, whole).items() if name in of_top} == alone


@examples(20, deadline=None)
@given(data=st.data(), windows=st.sampled_from([instances, malleable_windows, evolving_instances]))
def test_the_planner_plans_as_if_there_were_no_lower_classes(data: st.DataObject, windows: Any) -> None:
    """Start for start the plan of each class is that of a window without the jobs of lower classes."""
    check_prefixes(data.draw(pressed(data.draw(windows()))), lambda instance: solve(instance, engine="planner"))


@examples(20, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(POLICIES)))
def test_every_rule_serves_the_classes_in_order(data: st.DataObject, name: str) -> None:
    """Rules that look at the head of the queue alone do not let a lower class delay a higher one either."""
    instance = strict(data.draw(instances()))
    assume(not ByClass(POLICIES[name]).unsupported(instance))
    check_prefixes(instance, lambda instance: solve(instance, engine=name))


@examples(10, deadline=None)
@given(data=st.data(), windows=st.sampled_from([instances, malleable_windows, evolving_instances]))
def test_the_search_improves_one_class_after_the_other(data: st.DataObject, windows: Any) -> None:
    """With steps in place of seconds, too, the jobs of each class start as they do without lower classes."""
    instance = data.draw(windows())
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=30),),))
    check_prefixes(instance, lambda instance: solve(instance, engine="search", budget=600, team=team))


@pytest.mark.parametrize("seed", seeds(10))
def test_classes_keep_the_rules_of_a_site(seed: int) -> None:
    """Limits, pools, reservations and calendars hold in strict plans, too, whichever engine plans."""
    document, dice = ruled_window(seed), Random(seed)
    for job in document["jobs"]:
        job |= {"priority": dice.randint(0, 3)} if dice.random() < 0.7 else {}
    instance = strict(parse_instance(document, source=f"window {seed}"))
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=30),),))
    for engine, budget, of in (("planner", 0.0, None), ("easy", 0.0, None), ("search", 600.0, team)):
        valid(instance, solve(instance, engine=engine, budget=budget, team=of))


class Other:
    """The planner, in disguise: it plans class by class, as any other engine."""

    name = "other"

    def prepare(self) -> None:
        """Prepare nothing."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan a window of one class."""
        assert len({priority_classes(instance)[job.id] for job in instance.jobs if job.running is None}) < 2
        return PlannerEngine().plan(instance, progress)


@examples(30, deadline=None)
@given(instance=instances(max_jobs=10))
def test_the_planner_plans_all_classes_at_once(instance: Instance) -> None:
    """Where all jobs have one kind of chunks the planner's own order comes to the same as one class after the other."""
    simple = tuple(job for job in instance.jobs if job.running is not None or len(job.request.chunks) == 1)
    left = {name for job in simple for name in (job.id, *job.element_ids)}
    instance = strict(
        replace(
            instance,
            jobs=tuple(replace(job, after=tuple(one for one in job.after if one.job in left)) for job in simple),
        )
    )
    at_once, by_class = ByClass(PlannerEngine()).plan(instance, None), ByClass(Other()).plan(instance, None)
    assert starts(instance, at_once) == starts(instance, by_class)
    assert {job.id for job in at_once.waiting_room} == {job.id for job in by_class.waiting_room}


@pytest.mark.slow
def test_the_highest_class_is_optimal_beside_nothing_else() -> None:
    """CP proves the optimum of the highest class: that of trying everything without the other jobs."""
    jobs = (
        *(waiting(name, seconds, chunk(cores=n), priority=5) for name, seconds, n in [("a", 9, 3), ("b", 4, 2)]),
        *(waiting(name, seconds, chunk(cores=n), priority=5) for name, seconds, n in [("c", 3, 2), ("d", 6, 1)]),
        *(waiting(name, seconds, chunk(cores=1), priority=1) for name, seconds in [("x", 1), ("y", 2)]),
    )
    instance = strict(window([nodes("n1", cores=4)], *jobs))
    plan = valid(instance, solve(instance, engine="cp", budget=12))
    (proven,) = [event.what for event in plan.events if event.what.startswith("priority 5")]
    assert "optimal" in proven
    top = from_class(instance, 5)
    best = objective_value(top, best_plan(top))
    assert objective_value(top, [job for job in plan.jobs if job.id in "abcd"]) == pytest.approx(best)
    assert (
        plan.objective.value > solve(replace(instance, has_strict_priorities=False), budget=60).objective.value - 1e-9
    )


@pytest.mark.slow
def test_weights_and_strict_classes_move_an_important_job() -> None:
    """A job of priority 1000 goes last where the sum is smaller so; a weight moves it, and so do strict classes."""
    document = json.loads((CASES / "priority.json").read_text())
    heavy = document | {"jobs": [document["jobs"][0], document["jobs"][1] | {"weight": 11}]}
    for case, first in ((document, "lo"), (heavy, "hi"), (document | {"priorities": "strict"}, "hi")):
        for engine in ("search", "portfolio"):
            instance = parse_instance(case, source="case")
            plan = valid(instance, solve(instance, engine=engine, budget=3))
            assert min(plan.jobs, key=lambda job: job.start).id == first


def never_worse_by_class(document: Any, engine: str, budget: float, team: Team | None = None) -> tuple[Plan, Plan]:
    """Return the planner's plan of a strict window and that of an engine: in the first class in which they differ, this
    one has more jobs, or as many of a smaller value.
    """
    instance = strict(parse_instance(document, source="case"))
    first = valid(instance, solve(instance, engine="planner", budget=0))
    plan = valid(instance, solve(instance, engine=engine, budget=budget, team=team))
    assert rank(instance, plan.jobs) <= rank(instance, first.jobs)
    return first, plan


@pytest.mark.parametrize("seed", seeds(300))
@pytest.mark.parametrize("draw", [ruled_window, random_window, changing_window])
def test_no_class_pays_for_a_lower_one(seed: int, draw: Callable[[int], Any]) -> None:
    """Whatever a window has, the search is never worse than the planner class by class, and says what was compared.

    Only steps that would need migration are refused, by name.
    """
    document, dice = draw(seed), Random(seed)
    for job in document["jobs"]:
        job |= {"priority": dice.randint(0, 3)} if dice.random() < 0.7 else {}
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=30),),))
    if any(needs_migration(job.steps) for job in parse_instance(document, source="case").jobs if job.running is None):
        with pytest.raises(UnsupportedError, match="cannot keep its nodes from step to step"):
            never_worse_by_class(document, "search", 600, team)
        return
    _, plan = never_worse_by_class(document, "search", 600, team)
    assert plan.events[-1].what.startswith("compared class by class")


def test_a_higher_class_gains_and_the_sum_of_all_loses() -> None:
    """The whole value may be above the planner's, where a higher class is better for it: the classes count."""
    document = json.loads((CASES / "strict-portfolio-above-planner.json").read_text())
    first, plan = never_worse_by_class(document, "portfolio", 1.0)
    assert plan.events[-1].what.startswith("compared class by class")
    instance = parse_instance(document, source="case")
    assert plan.jobs == first.jobs or rank(instance, plan.jobs) < rank(instance, first.jobs)


def test_classes_are_inherited() -> None:
    """A job for which a higher one waits is of that one's class: an array as a whole, over any number of jobs."""
    after = (Dependency(job="b", type=DependencyType.AFTEROK, delay=2),)
    first = (Dependency(job="a[1]", type=DependencyType.AFTER),)
    jobs = (
        waiting("a", 10, chunk(cores=4), array=(0, 1), priority=-3),
        waiting("b", 10, chunk(cores=4), after=first),
        waiting("c", 10, chunk(cores=4), after=after, priority=7),
        waiting("d", 5, chunk(cores=4), priority=6),
    )
    instance = strict(window([nodes("n1", cores=4)], *jobs))
    assert priority_classes(instance) == {"a": 7, "a[0]": 7, "a[1]": 7, "b": 7, "c": 7, "d": 6}
    plan = valid(instance, solve(instance, engine="planner"))
    assert starts(instance, plan) | {"a[0]": 0, "a[1]": 10} == {"a[0]": 0, "a[1]": 10, "b": 20, "c": 32, "d": 42}


def test_a_job_waits_for_one_of_a_higher_class_or_with_it_in_the_waiting_room() -> None:
    """Dependencies on jobs of higher classes count from their plans; on one without a start nothing can wait."""
    after = (Dependency(job="a", type=DependencyType.AFTEROK, delay=3),)
    lost = (Dependency(job="never", type=DependencyType.AFTER),)
    jobs = (
        waiting("a", 10, chunk(cores=1), priority=2),
        waiting("b", 10, chunk(cores=1), after=after),
        waiting("never", 10, chunk(cores=9), priority=3),
        waiting("c", 10, chunk(cores=1), after=lost),
        waiting("d", 10, chunk(cores=1), after=(Dependency(job="c", type=DependencyType.AFTER),)),
        waiting("at", 10, chunk(cores=1), after=after, start_at=12),
    )
    instance = strict(window([nodes("n1", cores=4)], *jobs))
    for engine in ("planner", "wspt_list", "search"):
        plan = valid(instance, solve(instance, engine=engine, budget=0.5))
        assert starts(instance, plan) == {"a": 0, "b": 13}
        reasons = {job.id: str(job.reason) for job in plan.waiting_room}
        assert reasons == {"never": "unsatisfiable", "c": "dependency", "d": "dependency", "at": "too_late"}


@pytest.mark.parametrize("engine", ["planner", "easy", "search", "cp", "minizinc"])
def test_an_exclusive_job_of_a_lower_class_finds_no_shared_node(engine: str) -> None:
    """Nodes that higher classes have in part are not idle, and those that they have exclusively are not free."""
    jobs = (
        waiting("part", 10, chunk(cores=1), priority=3),
        waiting("whole", 20, chunk(cores=1), place=EXCLUSIVE, priority=2),
        waiting(
            "alone", 5, chunk(2, cores=1), place=Place(arrangement=Arrangement.SCATTER, exclusive=True), priority=1
        ),
        waiting("small", 5, chunk(cores=1)),
    )
    instance = strict(window([nodes("n1 n2", cores=4)], *jobs))
    plan = valid(instance, solve(instance, engine=engine, budget=1.5))
    assert starts(instance, plan) == {"part": 0, "whole": 0, "alone": 20, "small": 0}


@pytest.mark.parametrize(("priority", "is_shrunk"), [(9, True), (5, True), (1, False)])
def test_a_running_job_makes_room_for_its_own_class_and_higher_ones(priority: int, *, is_shrunk: bool) -> None:
    """A running job whose share can change is shrunk for jobs of its class or a higher one, never for a lower one."""
    held = running("r", 100, n1={"cores": 4})
    assert held.running is not None
    (segment,) = held.running.segments
    counted = replace(segment, allocation=tuple(replace(one, chunk=0, count=1) for one in segment.allocation))
    malleable = replace(
        held,
        running=replace(held.running, segments=(counted,)),
        malleability=Malleability(shares=(0.5,)),
        queue="slow",
        priority=5,
    )
    new = waiting("new", 10, chunk(cores=2), priority=priority, queue="fast")
    queues = FrozenMap({"slow": Queue(expected_wait=10_000), "fast": Queue(expected_wait=10)})
    instance = window([nodes("n1", cores=4)], malleable, new, waiting("low", 5, chunk(cores=2)), queues=queues)
    for engine in ("planner", "search"):
        plan = valid(strict(instance), solve(strict(instance), engine=engine, budget=0.5))
        assert (starts(instance, plan)["new"] == 0) is is_shrunk


def test_windows_with_one_class_or_none_are_planned_at_once() -> None:
    """A window without waiting jobs has a plan of what runs, and one class is an ordinary window."""
    runs = strict(window([nodes("n1", cores=4)], running("r", 10, n1={"cores": 1})))
    assert [job.id for job in valid(runs, solve(runs, budget=0)).jobs] == ["r"]
    one = replace(runs, jobs=(*runs.jobs, waiting("a", 10, chunk(cores=4), priority=2)))
    assert starts(one, valid(one, solve(one, budget=0.5))) == {"a": 10}
    assert ByClass(Other()).plan(strict(window([nodes("n1", cores=4)])), None).jobs == ()


def test_an_engine_that_knows_nothing_set_aside_plans_one_class_only() -> None:
    """A rule that cannot honour amounts set aside refuses several classes, each named before anything is planned."""

    class Simple(Other):
        def unsupported(self, instance: Instance) -> tuple[str, ...]:
            return ("set aside",) if instance.set_aside else ()

    one = strict(window([nodes("n1", cores=4)], waiting("a", 10, chunk(cores=2), priority=1)))
    two = replace(one, jobs=(*one.jobs, waiting("b", 10, chunk(cores=2))))
    assert valid(one, solve(one, engine="simple", team=Team(first=Simple()))).jobs
    with pytest.raises(UnsupportedError, match="priorities: strict, with several classes of jobs"):
        solve(two, engine="simple", team=Team(first=Simple()))


def test_a_start_that_only_the_verifier_finds_comes_before_lower_classes() -> None:
    """A job for which the planner finds no nodes, but the verifier does, gets them before a lower class takes them."""
    document = json.loads((CASES / "not-mapped-exit3.json").read_text())
    low = [{"id": f"low{n}", "submit": 0, "walltime": 9, "request": "2:ncpus=1", "priority": -1} for n in range(9)]
    instance = parse_instance(document | {"jobs": [*low, *document["jobs"]], "priorities": "strict"}, source="case")
    for engine in ("planner", "wspt_list", "search"):
        assert starts(instance, valid(instance, solve(instance, engine=engine, budget=0.5)))["j5"] == 0


def test_an_array_is_of_one_class_where_a_limit_takes_its_elements_apart() -> None:
    """A limit of an outstanding area makes jobs of the elements of an array: they stay of the class of the array."""
    high = {"id": "high", "submit": 0, "walltime": 5, "request": "ncpus=4", "priority": 9}
    jobs = [
        {"id": "a", "user": "u", "submit": 0, "walltime": 10, "request": "ncpus=4", "array": {"indices": "0-2"}},
        {"id": "b", "submit": 0, "walltime": 10, "request": "ncpus=4", "priority": 5},
        high | {"after": [{"job": "a[1]", "type": "afterok"}]},
    ]
    limit = {"consumer": {"user": "u"}, "resource": "cores", "area": 10_000, "area_scope": "outstanding"}
    document = {
        "format": "cpsched-instance/1",
        "name": "arrays",
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 4}}]},
        "jobs": jobs,
        "priorities": "strict",
    }
    for more in ({}, {"limits": [limit]}):
        instance = parse_instance(document | more, source="arrays")
        assert starts(instance, valid(instance, solve(instance, engine="planner")))["b"] == 35


def crowd(num_jobs: int, num_classes: int) -> Instance:
    """Return a window of many jobs, the classes of which are mixed."""
    jobs = [
        waiting(f"j{n:04}", 10 + 7 * n % 90, chunk(1 + n % 3, cores=1 + n % 4), priority=n % num_classes)
        for n in range(num_jobs)
    ]
    return strict(window([nodes("n1 n2 n3 n4", cores=4)], *jobs))


def test_the_budget_goes_to_the_highest_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more classes than the budget has time for, the highest ones get their part of it first."""
    improved: list[Instance] = []

    def improve(task: Task, board: Board, window: Instance, share: Budget, log: Any) -> None:
        improved.append(window)
        if len(improved) == 3:  # here the time ends
            task.clock.seconds = task.clock.elapsed

    monkeypatch.setattr(strict_stage, "_improve", improve)
    instance = crowd(240, 40)
    plan = valid(instance, solve(instance, engine="portfolio", budget=600))
    assert len(plan.jobs) == 240
    assert plan.engine.stopped == "budget"
    assert [event.what.partition(":")[0] for event in plan.events][:-1] == ["priority 39", "priority 38", "priority 37"]


@pytest.mark.parametrize("improved", [0, 1])
def test_an_interruption_between_classes_keeps_the_plan(monkeypatch: pytest.MonkeyPatch, improved: int) -> None:
    """Ctrl-C while the planner plans a class for solvers ends them; what they improved before is kept."""
    plan_window, asked = PlannerEngine.plan, list[Instance]()

    def plan(self: PlannerEngine, instance: Instance, progress: Progress | None) -> Outcome:
        if len(asked) == improved and not progress:
            asked.append(instance)
            raise KeyboardInterrupt
        return plan_window(self, instance, progress)

    def improve(task: Task, board: Board, window: Instance, share: Budget, log: Any) -> None:
        asked.append(window)
        log.given_up.append(False)

    instance = crowd(12, 3)
    monkeypatch.setattr(PlannerEngine, "plan", plan)
    monkeypatch.setattr(strict_stage, "_improve", improve)
    team = Team(first=PlannerEngine(), lanes=((Search(),),))
    found = valid(instance, solve(instance, engine="search", budget=600, team=team, progress=lambda *_: None))
    assert found.engine.stopped == "interrupted"
    assert len(found.jobs) == 12


def test_many_classes_take_the_planner_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window in which each job has a class of its own is planned at once, as long as no job has to move."""
    planned: list[int] = []
    plan_window = PlannerEngine.plan

    def plan(self: PlannerEngine, instance: Instance, progress: Progress | None) -> Outcome:
        planned.append(len(instance.jobs))
        return plan_window(self, instance, progress)

    monkeypatch.setattr(PlannerEngine, "plan", plan)
    assert len(solve(crowd(300, 300), engine="planner").jobs) == 300
    assert planned == [300]


def test_a_later_plan_serves_a_new_job_of_a_higher_class_first() -> None:
    """What was planned stays where it can, but beside all that is higher: a new job of a higher class goes first."""
    jobs = [waiting(name, 10, chunk(cores=4), priority=2) for name in "ab"]
    instance = strict(window([nodes("n1", cores=4)], *jobs))
    plan = solve(instance, engine="planner")
    more = replace(instance, jobs=(*instance.jobs, waiting("new", 5, chunk(cores=4), priority=3)))
    moved, updated = replan(more, plan, at=0)
    assert starts(moved, valid(moved, updated)) == {"new": 0, "b": 5, "a": 20}  # b keeps its nodes, and moves up
    less = replace(instance, jobs=(*instance.jobs, waiting("new", 5, chunk(cores=4), priority=1)))
    moved, updated = replan(less, plan, at=0)
    assert starts(moved, valid(moved, updated)) == {"a": 0, "b": 10, "new": 20}


def test_the_simulator_starts_classes_in_order() -> None:
    """On-line, too, a job that comes later is started first if its class is higher; what runs, runs."""
    jobs = (
        waiting("a", 10, chunk(cores=1), submit=0, runtime=10),
        waiting("b", 30, chunk(cores=1), submit=1, runtime=30),
        waiting("c", 10, chunk(cores=1), submit=2, runtime=10),
        waiting("d", 50, chunk(cores=1), submit=5, runtime=50, priority=9),
    )
    instance = strict(window([nodes("n", cores=1)], *jobs))
    for name in ("planner", "search"):
        record = simulate(instance, make_engine_scheduler(name, budget=0)).record()
        began = {job.id: job.start for job in record.jobs}
        assert (began["a"], began["d"]) == (0, 10)
        assert min(began["b"], began["c"]) == 60


def test_a_job_of_a_lower_class_moves_nobody_above() -> None:
    """A job that is added to a lower class changes no start of a higher one."""
    instance = crowd(60, 5)
    before = starts(instance, solve(instance, engine="planner"))
    more = replace(instance, jobs=(waiting("new", 1, chunk(cores=1), priority=1), *instance.jobs))
    after = starts(more, solve(more, engine="planner"))
    classes = priority_classes(more)
    high = {name for name in before if classes[name] > 1}
    assert high
    assert all(before[name] == after[name] for name in high)


def test_plans_name_their_finders() -> None:
    """The incumbents of a strict plan are those of the whole plan; the classes' own results are events."""
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=200),),))
    jobs = [waiting(f"j{n}", 40 - 4 * n, chunk(cores=4), priority=n % 2) for n in range(8)]
    instance = strict(window([nodes("n1", cores=4)], *jobs))
    plan = valid(instance, solve(instance, engine="search", budget=60, team=team))
    assert [incumbent.by for incumbent in plan.incumbents] == ["planner", "classes"]
    assert plan.incumbents[-1].value == plan.objective.value < plan.objective.planner
    said = [event.what.split(":")[0] for event in plan.events]
    assert said == ["priority 1", "priority 0", "compared class by class, the highest first"]
    assert plan.objective.bound is None or plan.objective.bound <= plan.objective.value
