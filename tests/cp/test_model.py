"""The model as a whole: its optimum is the optimum, its solutions are plans, its hints are complete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from cpsched.booking import Ledger
from cpsched.cp import ModelParams, lower_bound, solver
from cpsched.cp.costs import TaskCosts
from cpsched.cp.decode import decode, placed_as_in
from cpsched.cp.encoding import Encoding
from cpsched.cp.messages import BetterPlan, Bounded, Done, Reply, Solve, Verdict
from cpsched.cp.model import build
from cpsched.cp.solver import configured, solve
from cpsched.domain import FrozenMap, Instance, MaxWait, Objective, ObjectiveTerm, PlannedJob, PromisedStart
from cpsched.metrics import objective_value
from cpsched.planner import Planner
from cpsched.problem import compiled, refusal
from tests.cp.fixed_plans import Stand, broken_rules, cost_of, encoding_of, instance_of, is_allowed
from tests.oracle.random_instances import instances
from tests.sizes import examples
from tests.workloads.brute_force import least_weighted_wait
from tests.workloads.tiny import TinyCase, tiny_cases

OBJECTIVES = [
    *({term: 1.0} for term in ObjectiveTerm),
    {ObjectiveTerm.WEIGHTED_WAIT: 1.0, ObjectiveTerm.MAKESPAN: 0.001},
    {ObjectiveTerm.SLOWDOWN: 0.3, ObjectiveTerm.TARDINESS: 2.5, ObjectiveTerm.COMPLETION: 1e-4},
]
#: Redundant constraints: all of them, none, each alone.
ALL = ModelParams()
MODELS = [
    ALL,
    *(
        ModelParams(**{field: field == wanted for field in ModelParams.__slots__})
        for wanted in ("", *ModelParams.__slots__)
    ),
]


def plan_of(instance: Instance) -> list[PlannedJob]:
    """Return the planner's plan."""
    planner = Planner(instance)
    planner.plan()
    return list(planner.outcome().jobs)


def request_for(encoding: Encoding, plan: Sequence[PlannedJob], params: ModelParams = ALL) -> Solve:
    """Return the request to solve a window beginning from a plan."""
    hint = placed_as_in(encoding, {job.id: job for job in plan})
    return Solve(encoding=encoding, params=params, hint=hint, seed=1, workers=1, seconds=60, deterministic_time=20)


def optimum_of(
    instance: Instance, plan: Sequence[PlannedJob], params: ModelParams = ALL
) -> tuple[list[PlannedJob], float]:
    """Return an optimal plan and its bound; every plan on the way passes the verifier."""
    encoding = encoding_of(instance, plan)
    best, bound = list(plan), float("-inf")
    replies: list[Reply] = []
    solve(request_for(encoding, plan, params), replies.append)
    for reply in replies:
        if isinstance(reply, BetterPlan):
            found = decode(encoding, reply.placed)
            best = [found.get(job.id, job) for job in best]
            assert broken_rules(instance, best) == set()
        elif isinstance(reply, Bounded):
            bound = encoding.costs.bound(reply.least)
            value = objective_value(instance, best)
            assert bound <= value + 1e-12 * abs(value) + 1e-30
    assert replies[-1] == Done(Verdict.OPTIMAL)
    return best, bound


@pytest.mark.slow
@pytest.mark.parametrize("params", MODELS, ids=lambda params: str([f for f in params.__slots__ if getattr(params, f)]))
@pytest.mark.parametrize("case", tiny_cases(), ids=lambda case: case.instance.name)
def test_tiny_windows_are_solved(case: TinyCase, params: ModelParams) -> None:
    """The model has the optimum that is known by hand, with and without what is redundant, and proves it."""
    best, bound = optimum_of(case.instance, plan_of(case.instance), params)
    assert objective_value(case.instance, best) == pytest.approx(case.optimum, abs=1e-12)
    assert bound == pytest.approx(case.optimum, rel=1e-12)


@examples(60, deadline=None)
@given(instances(max_nodes=3, max_jobs=3))
def test_the_optimum_is_that_of_brute_force(instance: Instance) -> None:
    """On random windows without own times, dependencies and queue limits, trying everything finds the same value
    (BRIDI-6).
    """
    free = tuple(replace(job, start_at=None, deadline=None, after=()) for job in instance.jobs)
    queues = FrozenMap({name: replace(queue, max_walltime=None) for name, queue in instance.queues.items()})
    instance = replace(instance, jobs=free, queues=queues)
    elements = replace(instance, jobs=instance.elements())
    assume(sum(job.running is None for job in elements.jobs) <= 4)
    expected = least_weighted_wait(elements)
    plan = [job for job in plan_of(instance) if job.id in expected.starts or job.id.startswith("r")]
    # the planner finds no place for some requests of several kinds of chunks although there is one
    assume(len(plan) == len(expected.starts) + sum(job.running is not None for job in instance.jobs))
    best, bound = optimum_of(instance, plan)
    assert objective_value(instance, best) == pytest.approx(expected.value, abs=1e-9)
    assert bound == pytest.approx(expected.value, abs=1e-9)


@examples(60, deadline=None)
@given(instances(max_nodes=4, max_jobs=5), st.sampled_from(OBJECTIVES), st.sampled_from(MODELS))
def test_redundant_constraints_change_no_optimum(
    instance: Instance, weights: dict[ObjectiveTerm, float], params: ModelParams
) -> None:
    """Whatever the objective, the optimum is the same with all constraints and with some; other bounds are below it."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    plan = plan_of(instance)
    best, bound = optimum_of(instance, plan)
    other, _ = optimum_of(instance, plan, params)
    value = objective_value(instance, best)
    assert objective_value(instance, other) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert bound == pytest.approx(value, rel=1e-9, abs=1e-9)
    waiting = [job.id for job in plan if job.id.startswith("w")]
    lagrangian = lower_bound(instance, waiting, seconds=1, evaluations=5)
    assert lagrangian is not None
    assert lagrangian.value <= value + 1e-9


@examples(100, deadline=None)
@given(instances(), st.sampled_from(OBJECTIVES), st.booleans())
def test_whole_numbers_mean_the_objective(
    instance: Instance, weights: dict[ObjectiveTerm, float], has_surcharges: bool
) -> None:
    """What a plan costs in whole numbers is what the plan is worth, and as a bound never above it."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    if has_surcharges:
        max_wait = MaxWait(seconds=4, price=2.5)
        queues = {name: replace(queue, max_wait=max_wait) for name, queue in instance.queues.items()}
        jobs = [
            replace(j, told=PromisedStart(start=instance.now + 3)) if j.running is None else j for j in instance.jobs
        ]
        instance = replace(instance, queues=FrozenMap(queues), jobs=tuple(jobs))
    plan = plan_of(instance)
    encoding = encoding_of(instance, plan)
    placed = placed_as_in(encoding, {job.id: job for job in plan})
    assert placed is not None
    cost = cost_of(encoding, placed)
    value = objective_value(instance, plan)
    assert float(encoding.costs.base + Fraction(cost) / encoding.costs.scale) == pytest.approx(value, rel=1e-12)
    assert encoding.costs.bound(cost) <= value * (1 + 1e-15)


def test_weights_of_the_paper_are_exact() -> None:
    """Expected waits of 1800, 21600 and 86400 s give the weights 48, 4 and 1 (BRIDI-8)."""
    queues = {name: {"expected_wait": wait} for name, wait in (("d", 1800), ("p", 21600), ("l", 86400))}
    jobs = [{"id": name, "request": "ncpus=1", "queue": name} for name in queues]
    instance = instance_of([{"names": "n", "resources": {"cores": 1}}], jobs, queues=queues)
    costs = encoding_of(instance, plan_of(instance)).costs
    assert [[rate.weight for rate in rates] for rates in costs.rates] == [[48], [4], [1]]
    assert costs.scale == 86400


def test_weights_that_are_too_fine_are_rounded_down() -> None:
    """With walltimes whose common multiple is huge, the slowdown keeps a scale, and its bound stays a bound."""
    primes = [997, 991, 983, 977, 971, 967, 953, 947, 941]
    jobs = [{"id": str(prime), "request": "ncpus=1", "walltime": prime} for prime in primes]
    instance = instance_of([{"names": "n", "resources": {"cores": 1}}], jobs, objective="slowdown")
    plan = plan_of(instance)
    encoding = encoding_of(instance, plan)
    costs = encoding.costs
    placed = placed_as_in(encoding, {job.id: job for job in plan})
    assert placed is not None
    cost = cost_of(encoding, placed)
    assert cost < 2**50 < math.lcm(*primes)
    value = objective_value(instance, plan)
    assert value * (1 - 1e-9) <= costs.bound(cost) <= value


def heterogeneous(*more: dict[str, Any]) -> Instance:
    """Return a window of two kinds of nodes under two switches, with jobs of each kind and some more."""
    nodes = [
        {"names": "a[1-3]", "resources": {"cores": 8, "mem": 16, "gpus": 1}},
        {"names": "b[1-2]", "resources": {"cores": 6, "mem": 32}},
    ]
    jobs = [
        {"id": "x", "request": "3:ncpus=5:mem=4m", "walltime": 20},
        {"id": "y", "request": "2:ncpus=5:mem=4m", "walltime": 20},
        {"id": "z", "request": "2:ncpus=2:ngpus=1+3:ncpus=3", "walltime": 7},
        {"id": "e", "request": "2:ncpus=1+ncpus=2,place=scatter:excl", "walltime": 9},
        {"id": "p", "request": "2:ncpus=2:mem=8m+ncpus=1,place=pack", "walltime": 5},
        {"id": "l", "request": "ncpus=1,abaqus=1", "walltime": 30, "array": {"indices": "0-2"}},
        {"id": "d", "request": "ncpus=6", "walltime": 3, "after": [{"job": "x", "type": "afterok", "delay": 1}]},
    ]
    return compiled(
        instance_of(
            nodes,
            [*jobs, *more],
            topology={"switch": {"s1": "a[1-2],b1", "s2": "a3,b2"}},
            licenses={"abaqus": 1},
            queues={},
            objective={"weighted_wait": 1.0, "tardiness": 0.5, "makespan": 0.01, "slowdown": 1.0},
        )
    ).instance


HETEROGENEOUS = heterogeneous()
GROUPED = heterogeneous(
    {"id": "w", "request": "2:ncpus=1+ncpus=2,place=within=switch"},
    {
        "id": "s",
        "request": "4:ncpus=1,place=segment=2:within=switch",
        "prefer": {"level": "switch", "cost": 5},
    },
    {"id": "q", "request": "2:ncpus=1,place=spread=1:within=switch"},
)


@pytest.mark.slow
@pytest.mark.parametrize("params", MODELS, ids=lambda params: str([f for f in params.__slots__ if getattr(params, f)]))
def test_the_solver_says_that_the_hint_is_complete_and_feasible(params: ModelParams) -> None:
    """The log of CP-SAT speaks of a complete and feasible hint, with every kind of variable in the model (BRIDI-17)."""
    plan = plan_of(GROUPED)
    encoding = encoding_of(GROUPED, plan)
    request = request_for(encoding, plan, params)
    model, variables = build(encoding, params, request.hint)
    assert variables.hosts
    assert variables.totals
    assert variables.delays
    assert variables.groups
    assert variables.makespan is not None
    assert len(model.proto.solution_hint.vars) == len(model.proto.variables)
    solver = configured(request)
    lines: list[str] = []
    solver.parameters.max_deterministic_time = 0.1
    solver.parameters.log_search_progress = True
    solver.parameters.log_to_stdout = False
    solver.log_callback = lines.append
    assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    assert any("The solution hint is complete and is feasible" in line for line in lines), "\n".join(lines)


@examples(50, deadline=None)
@given(instances(max_nodes=6, max_jobs=8), st.sampled_from(OBJECTIVES), st.randoms(use_true_random=False))
def test_every_plan_can_be_hinted_at(instance: Instance, weights: dict[ObjectiveTerm, float], random: Random) -> None:
    """Whatever the plan, the model has it (or its equal that is kept) as a solution, and values it as the plan."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    admitted = [job for job in instance.elements() if job.running is None and refusal(instance, job) is None]
    admitted = [job for job in admitted if not job.after]
    ledger = Ledger(instance, admitted)
    order = [job.id for job in admitted]
    random.shuffle(order)
    ledger.plan(order)
    running = [job for job in plan_of(instance) if job.id.startswith("r")]
    plan = [*running, *(placed for job in admitted if (placed := ledger.planned(job.id)) is not None)]
    assume(len(plan) > len(running))
    encoding = encoding_of(instance, plan)
    hint = placed_as_in(encoding, {job.id: job for job in plan})
    model, _ = build(encoding, ALL, hint)
    hinted = set(model.proto.solution_hint.vars)
    assert [str(v) for n, v in enumerate(model.proto.variables) if n not in hinted] == []
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model) == cp_model.OPTIMAL
    assert hint is not None
    cost = cost_of(encoding, hint)
    assert solver.objective_value == pytest.approx(cost, rel=1e-12)


def test_the_hint_is_the_plan() -> None:
    """A model whose only solution is the hint has the plan's value and starts, in whatever order equal jobs are."""
    plan = plan_of(HETEROGENEOUS)
    encoding = encoding_of(HETEROGENEOUS, plan)
    request = request_for(encoding, plan)
    model, variables = build(encoding, request.params, request.hint)
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model) == cp_model.OPTIMAL
    assert request.hint is not None
    assert solver.objective_value == cost_of(encoding, request.hint)
    assert sorted(map(solver.value, variables.starts)) == sorted(placed.start for placed in request.hint)


def test_equal_nodes_are_filled_in_one_order_only() -> None:
    """Of two plans that differ in the names of equal nodes the model keeps one."""
    instance = instance_of([{"names": "n[1-2]", "resources": {"cores": 4}}], [{"id": "a", "request": "ncpus=3"}])
    params = ModelParams()
    assert is_allowed(instance, {"a": (0, [Stand("n1")])}, params)
    assert not is_allowed(instance, {"a": (0, [Stand("n2")])}, params)


def test_equal_jobs_start_in_one_order_only() -> None:
    """Of two plans that differ in the names of equal jobs the model keeps one."""
    jobs = [{"id": name, "request": "ncpus=3"} for name in "ab"]
    instance = instance_of([{"names": "n", "resources": {"cores": 4}}], jobs)
    params = ModelParams()
    assert is_allowed(instance, {"a": (0, [Stand("n")]), "b": (10, [Stand("n")])}, params)
    assert not is_allowed(instance, {"a": (10, [Stand("n")]), "b": (0, [Stand("n")])}, params)


def test_a_bound_is_raised_to_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the end of the last job alone counts, a plan that no time is left to improve is proven from below.

    53 s of work on a node of two jobs at a time: 13 + 11 + 3 s and 7 + 5 + 5 + 5 + 4 s end after 27 s.
    """
    instance = instance_of(
        [{"names": "n1", "resources": {"cores": 2}}],
        [{"id": f"{s} {k}", "request": "ncpus=1", "walltime": s} for k, s in enumerate([7, 5, 5, 5, 4, 3, 11, 13])],
        objective={"makespan": 1.0},
    )
    plan = plan_of(instance)
    request = request_for(encoding_of(instance, plan), plan)
    first: list[Reply] = []
    with monkeypatch.context() as patch:
        patch.setattr(TaskCosts, "is_makespan_alone", False)
        solve(replace(request, deterministic_time=1e-4), first.append)
    assert first[-1] == Done(Verdict.FEASIBLE)
    monkeypatch.setattr(solver, "_TOP_DOWN", 1e-4 / 20)
    best, bound = optimum_of(instance, plan)
    assert bound == objective_value(instance, best) == 27
