"""`solve`: the score, the engines, and what is at the edges of a window."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import (
    Amounts,
    EngineReport,
    FrozenMap,
    Instance,
    NodeState,
    Objective,
    ObjectiveTerm,
    Queue,
    WaitingReason,
)
from cpsched.engine import Budget
from cpsched.errors import EngineError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.planner import warmup
from cpsched.portfolio import ENGINES, solve
from cpsched.verify import verify
from tests.booking.small_windows import PACK, SCATTER, chunk, nodes, running, waiting, window
from tests.oracle.random_instances import instances
from tests.planner.checked import solved, starts
from tests.sizes import examples

LARGEST = 2**31 - 1
LONGEST = 10**10
QUEUES = FrozenMap({"q": Queue(expected_wait=60)})
FOUR = nodes("n", cores=4)


# ---- the score and the engine's report ----


def test_score() -> None:
    """Two jobs of 10 s on one node, submitted 30 s ago, expected to wait 60 s: (30 + 40) / 60, of which 1 is past. That
    no plan is below 1 says nothing of this one, and is no bound.
    """
    jobs = [waiting(name, 10, chunk(cores=4), queue="q", submit=-30) for name in "ab"]
    plan = solved(window([FOUR], *jobs, queues=QUEUES))
    score = plan.objective
    assert score.name == "weighted_wait"
    assert score.value == score.planner == pytest.approx(70 / 60)
    assert score.suffered == pytest.approx(1)
    assert (score.bound, score.gap, score.proof) == (None, None, None)


def test_sum_of_terms() -> None:
    """An objective of several terms is named as a sum and valued as one: 2·makespan + wait = 2·20 + (0 + 10)."""
    weights = FrozenMap({ObjectiveTerm.MAKESPAN: 2.0, ObjectiveTerm.WAIT: 1.0})
    jobs = [waiting(name, 10, chunk(cores=4)) for name in "ab"]
    plan = solved(window([FOUR], *jobs, objective=Objective(weights=weights)))
    assert (plan.objective.name, plan.objective.value) == ("2*makespan + 1*wait", 50)


def test_report_and_incumbents() -> None:
    """The plan states its engine, the time and the budget, and how it was found."""
    plan = solve(window([FOUR], waiting("a", 10, chunk(cores=4))), engine="planner", budget=2.5)
    assert isinstance(plan.engine, EngineReport)
    assert (plan.engine.name, plan.engine.budget, plan.engine.stopped) == ("planner", 2.5, "optimal")
    assert plan.engine.version
    assert plan.engine.elapsed >= 0
    assert [(found.by, found.value) for found in plan.incumbents] == [("planner", plan.objective.value)]
    assert (plan.instance, plan.now, plan.reservations) == ("small", 0, ())


@pytest.mark.slow
def test_a_bound_on_demand() -> None:
    """With seconds to prove in, the plan carries a bound and its gap; the judge finds both in order."""
    jobs = [waiting(name, 10, chunk(cores=3)) for name in "abc"]
    instance = window([FOUR], *jobs)
    plan = solve(instance, engine="planner", budget=0, bound=60)  # it ends as soon as it is proven
    assert plan.objective.bound is not None
    assert plan.objective.gap is not None
    assert 0 < plan.objective.bound <= plan.objective.value
    assert plan.objective.proof != "no job can start before now, or before it is submitted"
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    assert solve(instance, engine="planner").objective.bound is None


def test_unknown_engine() -> None:
    """An engine that does not exist is an error that names those that do."""
    with pytest.raises(EngineError, match=r"Expected an engine out of portfolio, planner.*, got 'magic'"):
        solve(window([FOUR]), engine="magic")
    assert ENGINES[:2] == ("portfolio", "planner")


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan, -math.inf])
def test_budgets_that_are_none(seconds: float) -> None:
    """A negative budget, or one that is no number, is refused."""
    with pytest.raises(ValueError, match="budget: Expected a number of seconds from 0 to"):
        solve(window([FOUR]), budget=seconds)


def test_budget_counts_down() -> None:
    """10 s less the 4 s that have passed since it was made are 6 s; after 20 s nothing is left, and never less."""
    now = [100.0]
    budget = Budget(10, clock=lambda: now[0])
    now[0] = 104.0
    assert (budget.elapsed, budget.remaining) == (4, 6)
    now[0] = 120.0
    assert (budget.elapsed, budget.remaining) == (20, 0)


def test_a_pause_is_not_counted() -> None:
    """What is done in a pause takes nothing of the budget, nor of those that are made of it later."""
    now = [100.0]
    budget = Budget(10, clock=lambda: now[0])
    now[0] = 103.0
    with budget.paused():
        now[0] = 150.0
    assert (budget.elapsed, budget.remaining, budget.more(5).remaining) == (3, 7, 12)


def test_the_solvers_are_prepared_when_there_is_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who interrupts that gets the planner's plan; without a budget nothing of it is compiled at all."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cpsched.cp.bounding.MOST_JOBS", 0)  # no window is so small that no solver is needed
    monkeypatch.setattr("cpsched.portfolio.teams._prepare", interrupted)
    instance = window([FOUR], waiting("a", 50, chunk(cores=4)), waiting("b", 10, chunk(cores=4)))
    planned = solve(instance, engine="planner", budget=0)
    for asked in (instance, replace(instance, has_strict_priorities=True)):
        plan = solve(asked, budget=5)
        assert plan.engine.stopped == "interrupted"
        assert plan.jobs == planned.jobs


def test_no_budget_is_enough_for_the_planner() -> None:
    """The planner makes its plan with a budget of 0 s."""
    assert len(solve(window([FOUR], waiting("a", 10, chunk(cores=4))), budget=0).jobs) == 1


@examples(30)
@given(instances())
def test_same_instance_same_plan(instance: Instance) -> None:
    """The same window gives the same plan, whatever the seed and the budget."""
    first, second = solve(instance, engine="planner"), solve(instance, engine="planner", seed=7, budget=0.5)
    assert (first.jobs, first.waiting_room, first.objective) == (second.jobs, second.waiting_room, second.objective)


def test_warmup_plans_something() -> None:
    """Compiling ahead of time leaves nothing behind and can be repeated."""
    warmup()
    warmup()


# ---- edges ----


def test_order_of_the_document() -> None:
    """Jobs stand in document order, running ones among them, an array's elements in the order of their indices."""
    jobs = [
        waiting("b", 5, chunk(cores=1), priority=-1),
        running("r", 5, n={"cores": 1}),
        waiting("x", 5, chunk(cores=1), array=(0, 3, 20)),
        waiting("a", 5, chunk(cores=1)),
    ]
    plan = solved(window([FOUR], *jobs))
    assert [job.id for job in plan.jobs] == ["b", "r", "x[0]", "x[3]", "x[20]", "a"]
    assert jobs[1].running is not None
    assert plan.jobs[1].segments == jobs[1].running.segments


@pytest.mark.slow
def test_array_of_2000() -> None:
    """2,000 elements of 1 core on 40 cores stand in 50 waves of 7 s; progress is told on the way (OCCS-44)."""
    calls: list[tuple[int, int]] = []
    instance = window([nodes("a b", cores=20)], waiting("x", 7, chunk(cores=1), array=tuple(range(2000))))
    plan = solve(instance, engine="planner", progress=lambda done, total: calls.append((done, total)))
    assert [job.start for job in plan.jobs] == [index // 40 * 7 for index in range(2000)]
    assert calls == [(500, 2000), (1000, 2000), (1500, 2000), (2000, 2000)]
    solved(instance)


@pytest.mark.parametrize("now", [5 - 10**12, -7, 0, 10**12 - 10**11])
def test_the_clock_may_stand_anywhere(now: int) -> None:
    """Starts are counted on the instance's own clock, also before second 0 and far from it."""
    jobs = [
        waiting("past", 10, chunk(cores=4), submit=now - 5),
        waiting("future", 10, chunk(cores=4), submit=now + 50),
        waiting("fixed", 10, chunk(cores=4), start_at=now + 15, submit=now),
    ]
    assert starts(replace(window([FOUR], *jobs), now=now)) == {"past": now, "future": now + 50, "fixed": now + 15}


def test_jobs_of_the_longest_walltime() -> None:
    """20 jobs of 10^10 s follow each other exactly."""
    jobs = [waiting(str(number), LONGEST, chunk(cores=4)) for number in range(20)]
    assert list(starts(window([FOUR], *jobs)).values()) == [number * LONGEST for number in range(20)]


def test_largest_amounts() -> None:
    """Nodes of 2^31 - 1 units are shared to the last one."""
    classes = [nodes("a b", cores=LARGEST, mem=LARGEST)]
    jobs = [
        waiting("most", 10, chunk(cores=LARGEST - 1, mem=1)),
        waiting("one", 10, chunk(cores=1, mem=LARGEST - 1)),
        waiting("both", 10, chunk(2, cores=LARGEST)),
        waiting("half", 10, chunk(2, cores=LARGEST // 2)),
        waiting("large", 10, chunk(3, cores=LARGEST)),
    ]
    assert starts(window(classes, *jobs)) == {"most": 0, "one": 0, "both": 10, "half": 0, "large": None}


@pytest.mark.parametrize(
    ("options", "cores", "detail"),
    [
        ({}, 3, "asks for 1000000 chunks of 1 cores; at most 6 fit at a time"),
        ({"place": SCATTER}, 3, "asks for 1000000 chunks of 1 cores; at most 2 fit at a time"),
        ({"place": PACK}, 3, "asks for 1000000 chunks of 1 cores packed on one node; no node holds so many"),
        ({}, 499_999, "asks for 1000000 chunks of 1 cores; at most 999998 fit at a time"),
    ],
)
def test_a_million_chunks_that_do_not_fit(options: dict[str, Any], cores: int, detail: str) -> None:
    """A request of the largest count goes to the waiting room at once, with the count that would fit."""
    plan = solved(window([nodes("a b", cores=cores)], waiting("j", 10, chunk(10**6, cores=1), **options)))
    (entry,) = plan.waiting_room
    assert (entry.reason, entry.detail) == (WaitingReason.UNSATISFIABLE, detail)


def test_a_million_chunks_that_fit() -> None:
    """A request of the largest count is planned where it fits: on the cheaper node first."""
    instance = window([nodes("a", cores=400_000), nodes("b", cores=600_000)], waiting("j", 10, chunk(10**6, cores=1)))
    (job,) = solved(instance).jobs
    assert [(part.node, part.count) for part in job.segments[0].allocation] == [("a", 400_000), ("b", 600_000)]


def test_nobody_waits() -> None:
    """Windows without jobs, or with running jobs only, have a plan of value 0."""
    assert solved(window([FOUR])).jobs == ()
    plan = solved(window([FOUR], running("r", 10, n={"cores": 4})))
    assert ([job.id for job in plan.jobs], plan.objective.value) == (["r"], 0)


def test_all_nodes_are_down() -> None:
    """On a cluster of which nothing is up everybody waits; a job too large even for that is told so."""
    classes = [nodes("a", cores=4, state=NodeState.DOWN), nodes("b", cores=4, state=NodeState.DRAIN)]
    jobs = [waiting("j", 10, chunk(2, cores=4)), waiting("k", 10, chunk(3, cores=4)), running("r", 5, b={"cores": 1})]
    plan = solved(window(classes, *jobs))
    assert [(job.id, job.reason) for job in plan.waiting_room] == [("j", "unavailable"), ("k", "unsatisfiable")]
    assert [job.id for job in plan.jobs] == ["r"]


def test_kinds_that_find_no_room_together() -> None:
    """Each of two kinds fits by itself, but needs all of the one node that the other needs too."""
    classes = [nodes("a", cores=2, properties=FrozenMap({"host": "a"})), nodes("b", cores=1)]
    pair = [chunk(2, cores=1, where={"host": "a"}), chunk(1, cores=2)]
    plan = solved(window(classes, waiting("j", 10, *pair)))
    assert [(job.id, job.reason) for job in plan.waiting_room] == [("j", WaitingReason.NOT_MAPPED)]
    assert "no way was found to place all of them" in plan.waiting_room[0].detail


def test_times_that_leave_no_start() -> None:
    """A fixed start at which the nodes are taken, and a deadline before they are free, are told in words."""
    jobs = [
        running("r", 20, n={"cores": 4}),
        waiting("fixed", 10, chunk(cores=1), start_at=19),
        waiting("due", 10, chunk(cores=1), deadline=29),
        waiting("just", 10, chunk(cores=1), deadline=30),
        waiting("later", 10, chunk(cores=1), start_at=20),
    ]
    plan = solved(window([FOUR], *jobs))
    assert {job.id: job.detail for job in plan.waiting_room} == {
        "fixed": "its nodes are not free for 10 s at 19, the only start it accepts",
        "due": "no start leaves it 10 s before its deadline 29",
    }
    assert {job.id: job.start for job in plan.jobs} == {"r": 0, "just": 20, "later": 20}


def test_licences_alone_keep_jobs_apart() -> None:
    """Of three jobs of 2 licences each, of 5, two run at a time, though cores are plenty (OCCS-53)."""
    jobs = [waiting(name, 10, chunk(cores=1), licenses=Amounts({"solver": 2})) for name in "abc"]
    assert starts(window([FOUR], *jobs, licenses={"solver": 5})) == {"a": 0, "b": 0, "c": 10}
