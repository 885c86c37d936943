"""All orders of a few jobs: what they prove is the optimum on one node, and no plan is below it elsewhere."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched import solve
from cpsched.booking import Ledger
from cpsched.cp.bounds import orders
from cpsched.cp.bounds.orders import best_order
from cpsched.domain import FrozenMap, Instance, Job, Malleability, Objective, ObjectiveTerm
from cpsched.metrics import objective_value
from cpsched.portfolio import verify_plan
from tests.cp.test_bounds import OBJECTIVES, plans_of, running, small_instance, small_job, waiting_of
from tests.oracle.random_instances import instances, pressed
from tests.sizes import examples


def drawn(seed: int) -> Instance:
    """Return up to five jobs for one node on which another job runs."""
    dice = random.Random(seed)
    jobs = [
        small_job(
            str(number),
            dice.randint(1, 4),
            dice.randint(1, 30),
            queue=dice.choice(["hasty", "patient"]),
            not_before=dice.choice([None, dice.randint(1, 40)]),
        )
        for number in range(dice.randint(1, 5))
    ]
    return small_instance([running("r", dice.randint(1, 3), dice.randint(1, 20)), *jobs], term="weighted_wait")


def ids_of(instance: Instance) -> list[str]:
    """Return the waiting jobs."""
    return [job.id for job in waiting_of(instance)]


def value_of(instance: Instance, order: tuple[Job, ...]) -> float:
    """Return the value of the plan in which the planner books jobs in an order."""
    ledger = Ledger(instance, order)
    ledger.plan([job.id for job in order])
    placed = [ledger.planned(job.id) for job in order]
    return objective_value(instance, [ledger.running.planned("r"), *(one for one in placed if one is not None)])


@examples(60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES))
def test_on_one_node_the_bound_is_the_best_of_all_orders(seed: int, weights: dict[ObjectiveTerm, float]) -> None:
    """No order of the jobs gives a better plan than the bound says, and the order that comes with it gives that one."""
    instance = replace(drawn(seed), objective=Objective(weights=FrozenMap(weights)))
    found = best_order(instance, ids_of(instance))
    assert found is not None
    least = min(value_of(instance, order) for order in permutations(waiting_of(instance)))
    assert found.bound.value == pytest.approx(least, rel=1e-12)
    jobs = {job.id: job for job in waiting_of(instance)}
    assert value_of(instance, tuple(jobs[name] for name in found.jobs)) == pytest.approx(least, rel=1e-12)


@examples(60, deadline=None)
@given(instances() | instances().flatmap(pressed), st.sampled_from(OBJECTIVES), st.integers(0, 10**6))
def test_no_plan_of_a_random_instance_is_below_the_bound(
    instance: Instance, weights: dict[ObjectiveTerm, float], seed: int
) -> None:
    """In whatever order jobs are inserted, and whatever the objective, a plan of a few jobs costs at least as much."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    for plan in plans_of(instance, random.Random(seed), 4):
        found = best_order(instance, [job.id for job in plan]) if plan else None
        assert found is None or found.bound.value <= objective_value(instance, plan) * (1 + 1e-12)


def malleable(job: Job) -> Job:
    """Return a job that can run on half of its cores."""
    return replace(job, malleability=Malleability(shares=(0.5,)))


@pytest.mark.parametrize("why", ["many jobs", "many orders", "changing", "paid for delay"])
def test_other_windows_are_left_to_the_solvers(why: str) -> None:
    """There is no answer for many jobs or orders, for jobs that can change, and where delay is worth something."""
    jobs = [small_job(str(number), 1 + number % 4, 10 + number) for number in range(11 if why == "many jobs" else 6)]
    instance = small_instance([malleable(job) if why == "changing" else job for job in jobs])
    if why == "paid for delay":
        instance = replace(instance, objective=Objective(weights=FrozenMap({ObjectiveTerm.WAIT: -1.0})))
    with patch.object(orders, "_MOST_TRIED", 3 if why == "many orders" else orders._MOST_TRIED):
        assert best_order(instance, ids_of(instance)) is None


def three_jobs() -> Instance:
    """Return a window in which the queue's order is not the best."""
    jobs = [
        small_job("a", 4, 60, queue="hasty"),
        small_job("b", 3, 20, queue="patient"),
        small_job("c", 4, 5, queue="hasty"),
    ]
    return small_instance(jobs, term="weighted_wait")


def test_a_tiny_window_is_solved_without_a_solver() -> None:
    """The default engine proves the plan of three jobs optimal, and starts no process and no search for it."""
    instance = three_jobs()
    with patch("cpsched.portfolio.recipe.team_of", _unexpected):
        plan = solve(instance, budget=10.0)
    assert not verify_plan(instance, plan)
    assert (plan.engine.stopped, plan.objective.gap) == ("optimal", pytest.approx(0.0))
    assert [incumbent.by for incumbent in plan.incumbents] == ["planner", "orders"]
    assert plan.objective.value < plan.objective.planner


def test_an_earlier_plan_comes_first() -> None:
    """The best plan from before is proven to be that, and keeps its places."""
    instance = three_jobs()
    with patch("cpsched.portfolio.recipe.team_of", _unexpected):
        before = solve(instance, budget=10.0)
        plan = solve(instance, budget=10.0, warm=before)
    assert plan.jobs == before.jobs
    assert [incumbent.by for incumbent in plan.incumbents] == ["warm"]
    assert plan.engine.stopped == "optimal"


def _unexpected(*_: Any, **__: Any) -> None:
    """Fail, where no solver is needed."""
    raise AssertionError("solvers were loaded")
