"""The search among malleable jobs: every plan is one, costs what it costs, and few are better in tiny windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
)
from cpsched.engine import Outcome
from cpsched.metrics import objective_value
from cpsched.search.chain import Chain
from tests.booking.small_windows import EXCLUSIVE, chunk, nodes, running, waiting, window
from tests.cp.trying_everything import best_plan
from tests.oracle.random_malleable import malleable_windows
from tests.portfolio.judged import assert_judged
from tests.search.searched import planned, searched
from tests.sizes import examples

weights = st.dictionaries(st.sampled_from(ObjectiveTerm), st.sampled_from([0.001, 1.0, 2.5]), min_size=1, max_size=3)
COMPLETION = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0}))


def waiting_in(instance: Instance, outcome: Outcome) -> list[Job]:
    """Return the waiting jobs that have a place."""
    names = {job.id for job in outcome.jobs}
    return [job for job in instance.elements() if job.running is None and job.id in names]


def check_best(instance: Instance, outcome: Outcome, chain: Chain, offset: float) -> list[PlannedJob]:
    """Hold a chain's best plan to the rules, and to what the chain says that it costs."""
    found = {one.id: one for one in chain.best()}
    jobs = [found.get(one.id, one) for one in outcome.jobs]
    assert_judged(instance, Outcome(jobs=tuple(jobs), waiting_room=outcome.waiting_room))
    assert objective_value(instance, jobs) == pytest.approx(chain.best_value + offset, rel=1e-9, abs=1e-6)
    return jobs


@pytest.mark.kernels
@examples(50)
@given(malleable_windows(), weights)
def test_a_chain_has_a_plan_after_every_move(instance: Instance, of_terms: dict[ObjectiveTerm, float]) -> None:
    """After steps, lists, changes of running jobs and others' plans the best plan verifies, and costs what it says."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(of_terms)))
    outcome = planned(instance)
    jobs = waiting_in(instance, outcome)
    assume(jobs)
    first, second = Chain(instance, jobs, 3, changing=True), Chain(instance, jobs, 4, changing=True)
    offset = first.offset()
    assert first.adopt(outcome.jobs)
    check_best(instance, outcome, first, offset)
    plans: Sequence[PlannedJob] = outcome.jobs
    for temperature in (0.5, 0.02):
        first.run(60, temperature)
        assert second.adopt(check_best(instance, outcome, first, offset))
        assert second.best_value <= first.best_value + 1e-6 * max(1.0, abs(first.best_value))
        second.run(20, temperature)
        second.adopt(plans)  # other running jobs than in its best plan
        plans = check_best(instance, outcome, second, offset)
        first.plan_list(np.arange(len(jobs), dtype=np.float64))
        first.run(20 if first.adopt(outcome.jobs) else 0, temperature)
        check_best(instance, outcome, first, offset)


@pytest.mark.kernels
@examples(50)
@given(malleable_windows(), weights)
def test_a_chain_books_what_its_plan_says(instance: Instance, of_terms: dict[ObjectiveTerm, float]) -> None:
    """After any steps, and back at an earlier plan, as much is free at each time as in a chain that never left it."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(of_terms)))
    outcome = planned(instance)
    jobs = waiting_in(instance, outcome)
    assume(jobs)
    moved, still = Chain(instance, jobs, 3, changing=True), Chain(instance, jobs, 3, changing=True)
    for chain in (moved, still):
        assert chain.adopt(outcome.jobs)
    moved.run(80, 2.0)
    assert moved.adopt(outcome.jobs)
    left, right = moved.ledger.timeline, still.ledger.timeline
    assert left.breakpoints().tolist() == right.breakpoints().tolist()
    for second in right.breakpoints().tolist():
        for mine, theirs in zip(left.free_at(second), right.free_at(second), strict=True):
            assert mine.tolist() == theirs.tolist()


@examples(30)
@given(malleable_windows(), weights, st.integers(0, 3))
def test_same_seed_same_plan(instance: Instance, of_terms: dict[ObjectiveTerm, float], seed: int) -> None:
    """With a limit of steps the plan, which verifies and is not worse than the planner's, depends on the seed alone."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(of_terms)))
    first, second = (searched(instance, max_steps=150, seed=seed) for _ in range(2))
    assert first.best.jobs == second.best.jobs
    assert first.best.value <= first.incumbents[0].value


@pytest.mark.kernels
@examples(5)
@given(malleable_windows(max_jobs=4))
def test_kernels_do_the_same_compiled_and_interpreted(instance: Instance) -> None:
    """A few steps with modes end in a plan that verifies; without the compiler too, where nothing may overflow."""
    searched(replace(instance, objective=COMPLETION), max_steps=30)


def test_a_plan_that_cannot_be_adopted_leaves_the_chain_as_it_is() -> None:
    """A running job that no ledger changes, changed in a plan, makes that plan somebody else's."""
    held = (Placement(node="a", resources=Amounts({"cores": 2})),)
    runs = running_on("r", 8, "a", 4, 0, None)
    instance = window([nodes("a", cores=4)], runs, waiting("w", 3, chunk(cores=2)))
    outcome = planned(instance)
    chain = Chain(instance, waiting_in(instance, outcome), 0, changing=True)
    assert chain.adopt(outcome.jobs)
    other = PlannedJob(id="r", start=0, end=16, segments=(Segment(start=0, end=16, allocation=held),))
    assert not chain.adopt([other, outcome.jobs[1]])
    check_best(instance, outcome, chain, chain.offset())


@examples(25)
@given(malleable_windows(max_jobs=3), weights)
def test_beside_jobs_that_evolve(instance: Instance, of_terms: dict[ObjectiveTerm, float]) -> None:
    """Evolving and malleable jobs are planned side by side, held and shrunk: the chain knows what that costs."""
    steps = tuple(
        Step(walltime=time, request=Request(chunks=(chunk(cores=cores),))) for time, cores in ((3, 1), (2, 2))
    )
    evolving = [Job(id=name, submit=instance.now - 3, steps=steps, expand_limit=2) for name in ("e", "f")]
    objective = Objective(weights=FrozenMap(of_terms))
    instance = replace(instance, objective=objective, jobs=(*instance.jobs, *evolving))
    outcome = planned(instance)
    chain = Chain(instance, waiting_in(instance, outcome), 1, changing=True) if waiting_in(instance, outcome) else None
    assume(chain)
    assert chain is not None
    offset = chain.offset()
    assert chain.adopt(outcome.jobs)
    check_best(instance, outcome, chain, offset)
    chain.run(40, 0.5)
    check_best(instance, outcome, chain, offset)
    searched(instance, max_steps=40)


def test_two_jobs_that_lose_nothing_run_side_by_side() -> None:
    """Two jobs of 10 s that take 10.5 s on half their cores end at 11 both, not at 10 and 20: the planner shrinks the
    first one for the second.
    """
    malleable = Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 1.05}))
    jobs = [waiting(name, 10, chunk(cores=4), malleability=malleable) for name in "vw"]
    board = searched(window([nodes("a", cores=4)], *jobs, objective=COMPLETION))
    assert [incumbent.value for incumbent in board.incumbents] == [22]


def test_an_exclusive_job_grows_only_into_nodes_that_are_large_enough() -> None:
    """At full share a core and twice two cores are more than the free node, which the job has for itself at half share:
    lists and steps leave it there on that share, beside other jobs or alone.
    """
    alone = waiting(
        "w", 2, chunk(cores=1), chunk(2, cores=2), place=EXCLUSIVE, malleability=Malleability(shares=(0.5,))
    )
    instance = window([nodes("a b", cores=4)], running("r", 20, a={"cores": 1}), alone, waiting("x", 5, chunk(cores=4)))
    instance = replace(instance, objective=COMPLETION)
    outcome = planned(instance)
    chain = Chain(instance, waiting_in(instance, outcome), 0, changing=True)
    for order in ([0.0, 1.0], [1.0, 0.0]):
        assert chain.plan_list(np.array(order)) is not None
        check_best(instance, outcome, chain, chain.offset())
    chain.run(60, 0.5)
    jobs = check_best(instance, outcome, chain, chain.offset())
    assert {job.id: (job.start, job.end) for job in jobs} == {"r": (0, 20), "w": (0, 4), "x": (4, 9)}


# --- tiny windows, all of them tried --------------------------------------------------------------------------------


def running_on(job_id: str, walltime: int, node: str, cores: int, start: int, malleability: Malleability | None) -> Job:
    """Return a job that runs on a node, on all its cores."""
    asked = chunk(cores=cores)
    held = Placement(node=node, resources=asked.resources)
    if malleability is not None:
        held = replace(held, chunk=0, count=1)
    return Job(
        id=job_id,
        submit=-5,
        steps=(Step(walltime=walltime, request=Request(chunks=(asked,))),),
        malleability=malleability,
        running=Running(start=start, segments=(Segment(start=start, end=start + walltime, allocation=(held,)),)),
    )


def tiny(seed: int) -> Instance:
    """Draw a window of one or two nodes, up to two running jobs and two or three that wait."""
    draw = Random(seed)
    names = "ab"[: draw.choice([1, 2])]
    left = dict.fromkeys(names, 4)

    def malleable() -> Malleability:
        return Malleability(
            shares=draw.choice([(0.5,), (0.5, 0.25)]),
            model=draw.choice(list(RuntimeModel)),
            stretch=FrozenMap({0.5: draw.choice([1.0, 1.5])} if draw.random() < 0.3 else {}),
        )

    jobs = []
    for number in range(draw.choice([0, 1, 2])):
        cores, node = draw.choice([2, 4]), draw.choice(names)
        if left[node] >= cores:
            left[node] -= cores
            jobs.append(running_on(f"r{number}", draw.randint(3, 6), node, cores, -draw.randint(0, 2), malleable()))
    for number in range(draw.choice([2, 2, 3])):
        asked: dict[str, Any] = {"cores": draw.choice([1, 2, 4])} | ({"gpus": 1} if draw.random() < 0.2 else {})
        able = malleable() if draw.random() < 0.6 else None
        count = draw.choice([1, len(names)])
        jobs.append(waiting(f"w{number}", draw.randint(1, 4), chunk(count, **asked), malleability=able))
    term = draw.choice([ObjectiveTerm.COMPLETION, ObjectiveTerm.SLOWDOWN, ObjectiveTerm.WAIT])
    objective = Objective(weights=FrozenMap({term: 1.0, ObjectiveTerm.MAKESPAN: draw.choice([0.001, 0.5])}))
    return window([nodes(" ".join(names), cores=4, gpus=1)], *jobs, objective=objective)


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.large)])
def test_finds_the_optimum_of_most_tiny_windows(count: int) -> None:
    """In nine of ten windows it finds a plan as good as the best one in which jobs keep their shares, and in none one
    that is better than the best of all.
    """
    found = 0
    for seed in range(count):
        instance = tiny(seed)
        best = objective_value(instance, best_plan(instance))
        value = searched(instance, max_steps=1000).best.value
        assert value >= best - 1e-9 * max(1.0, abs(best))
        on_one_share = objective_value(instance, best_plan(instance, keeps_share=True))
        found += value <= on_one_share + 1e-9 * max(1.0, abs(on_one_share))
    assert found >= 0.9 * count
