"""The search: never worse than the planner, always a plan, the same for a seed, and right about what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Objective,
    ObjectiveTerm,
    PlannedJob,
    Request,
    Step,
)
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from cpsched.planner import Planner
from cpsched.rusv import kernels
from cpsched.search.chain import Chain
from tests.oracle.random_instances import instances, pressed
from tests.search.searched import planned, searched
from tests.sizes import examples
from tests.workloads.tiny import TinyCase, tiny_cases

INSTANCES = Path(__file__).parents[2] / "instances"

weights = st.dictionaries(st.sampled_from(ObjectiveTerm), st.sampled_from([0.001, 1.0, 2.5]), min_size=1, max_size=3)


@examples(60)
@given(data=st.data(), weights=weights)
def test_never_worse_than_the_planner(data: st.DataObject, weights: dict[ObjectiveTerm, float]) -> None:
    """For any objective the plan verifies, plans no fewer jobs than the planner, and with as many is worth no more."""
    instance = data.draw(instances().flatmap(pressed))
    board = searched(replace(instance, objective=Objective(weights=FrozenMap(weights))))
    ranks = [(-(incumbent.planned or 0), incumbent.value) for incumbent in board.incumbents]
    assert ranks == sorted(ranks, reverse=True)
    assert len(board.best.jobs) == -ranks[-1][0] >= len(planned(instance).jobs)


@pytest.mark.parametrize("case", tiny_cases(), ids=lambda case: case.instance.name)
def test_finds_the_optimum_of_tiny_windows(case: TinyCase) -> None:
    """The windows whose optimum is known by hand are solved."""
    board = searched(case.instance, max_steps=2000)
    assert board.best.value == pytest.approx(float(case.optimum))


def test_improves_an_eurora_like_window() -> None:
    """A window that a queue fills badly gets much better, and the log of incumbents says who found what."""
    board = searched(read_instance(INSTANCES / "eurora-like-0050.json.gz"), max_steps=4000)
    assert board.best.value < 0.9 * board.incumbents[0].value
    assert {incumbent.by.split(":")[0] for incumbent in board.incumbents} == {"planner", "list", "search"}


def test_same_seed_same_plan() -> None:
    """With a limit of steps the plan depends on nothing but instance and seed."""
    instance = read_instance(INSTANCES / "eurora-like-0050.json.gz")
    first, second, other = (searched(instance, max_steps=2000, seed=seed).best.jobs for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_without_budget_the_planner_decides() -> None:
    """With a budget of 0 the plan is the planner's."""
    instance = read_instance(INSTANCES / "eurora-like-0050.json.gz")
    assert searched(instance, max_steps=None, seconds=0).best.by == "planner"


@examples(30)
@given(instance=instances(max_jobs=10))
def test_a_chain_leaves_the_timeline_as_its_plan_says(instance: Instance) -> None:
    """After any number of steps the timeline is the one on which the present plan was booked afresh."""
    planner = Planner(instance)
    planner.plan()
    jobs = [job for job in planner.ledger.jobs if planner.ledger.is_booked(job.id)]
    if len(jobs) < 2:
        return
    chain = Chain(instance, jobs, seed=5)
    if chain.plan_list(np.arange(len(jobs), dtype=np.float64)) is None:
        return
    chain.run(300, 0.1)
    table, timeline = chain.ledger.table, chain.ledger.timeline
    assert chain.best_value == pytest.approx(chain.value_of(chain.best_starts))
    for row, job in enumerate(jobs):
        ((start, end, mode, entries),) = chain.pieces(row)
        assert (start, end - start, mode) == (chain.starts[row], job.walltime, 0)
        timeline.release(timeline.booking_of(int(table.jobs[row, 0]), entries, start, end))
    untouched = Planner(replace(instance, jobs=tuple(job for job in instance.jobs if job.running is not None)))
    empty = untouched.ledger.timeline
    assert timeline.breakpoints().tolist() == empty.breakpoints().tolist()
    for second in empty.breakpoints().tolist():
        for mine, theirs in zip(timeline.free_at(second), empty.free_at(second), strict=True):
            assert mine.tolist() == theirs.tolist()


@pytest.mark.kernels
@examples(5)
@given(instance=instances(max_jobs=6))
def test_kernels_do_the_same_compiled_and_interpreted(instance: Instance) -> None:
    """A few steps end in a plan that verifies; without the compiler too, where nothing may overflow."""
    searched(instance, max_steps=30)


def test_a_plan_that_is_adopted_is_the_same_plan() -> None:
    """A chain that begins from a plan stands where the plan says, and is worth what it is worth."""
    instance = read_instance(INSTANCES / "eurora-like-0050.json.gz")
    jobs = [job for job in instance.elements() if job.running is None]
    first, second = (Chain(instance, jobs, seed=0) for _ in range(2))
    first.plan_list(np.arange(len(jobs), dtype=np.float64)[::-1])
    assert second.adopt(first.best())
    assert second.best() == first.best()
    assert second.best_value == first.best_value


@pytest.mark.parametrize(("term", "depth"), [(ObjectiveTerm.WAIT, 5.0), (ObjectiveTerm.MAKESPAN, 0.0)])
def test_the_depth_of_a_plan_is_its_cost_in_waits_as_long_as_the_jobs(term: ObjectiveTerm, depth: float) -> None:
    """Of eleven equal jobs in a row, each waits for five in the mean; where the last end counts, the depth is 0."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),))
    jobs = tuple(Job(id=f"j{k}", submit=0, steps=(Step(walltime=60, request=request),)) for k in range(11))
    cluster = Cluster(classes=(NodeClass(names=("n",), resources=Amounts({"cores": 1})),))
    objective = Objective(weights=FrozenMap({term: 1.0}))
    chain = Chain(Instance(name="row", now=0, cluster=cluster, jobs=jobs, objective=objective), jobs, seed=0)
    chain.plan_list(np.arange(11.0))
    assert chain.depth == pytest.approx(depth)


@examples(60)
@given(data=st.data(), weights=weights)
def test_costs_are_the_objective_but_for_a_constant(data: st.DataObject, weights: dict[ObjectiveTerm, float]) -> None:
    """Between any two plans the objective changes by what the search says that it does, whatever its kinks."""
    instance = data.draw(instances().flatmap(pressed))
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    names = {job.id for job in planned(instance).jobs}
    jobs = [job for job in instance.elements() if job.running is None and job.id in names]
    assume(jobs)
    chain = Chain(instance, jobs, seed=0)
    values = []
    for _ in range(2):
        starts = [max(instance.earliest_start(job), instance.now) + data.draw(st.integers(0, 400)) for job in jobs]
        plan = [
            PlannedJob(id=job.id, start=start, end=start + job.walltime, segments=())
            for job, start in zip(jobs, starts, strict=True)
        ]
        values.append(objective_value(instance, plan) - chain.value_of([start - instance.now for start in starts]))
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-6)


kinked = st.tuples(
    st.sampled_from([0.0, 1 / 1800, 1.0]),
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([1 / 10, 3.0])), max_size=3),
)


@given(shape=kinked, level=st.sampled_from([0.0, 7.5]), start=st.integers(0, 10**7))
def test_the_latest_start_for_a_cost_is_the_inverse_of_the_cost(
    shape: tuple[float, list[tuple[int, float]]], level: float, start: int
) -> None:
    """A start is among those that its own cost allows, and a start that costs more is not."""
    rate, kinks = shape
    costs = np.array([[rate, level, *(value for kink, more in sorted(kinks) for value in (more, kink))]])
    cost = kernels.cost_of(0, start, costs)
    latest = kernels.latest_for(0, cost, costs)
    assert latest >= start
    if kernels.cost_of(0, start + 1, costs) > cost:
        assert kernels.cost_of(0, latest, costs) <= cost + 1e-6 * max(1.0, cost)
    assert kernels.latest_for(0, level - 0.1, costs) == -1
