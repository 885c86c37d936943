"""The models: their optimum is the known one, every solution keeps the rules, and each rule of the format counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    MaxWait,
    NodeClass,
    Objective,
    ObjectiveTerm,
    Placement,
    PromisedStart,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.metrics import objective_value
from cpsched.mzn import MiniZinc, Window
from tests.mzn.modelled import modelled, needs_minizinc, postponed, printed_by
from tests.oracle.random_instances import instances
from tests.search.searched import board_of, planned, searched
from tests.sizes import examples
from tests.workloads.brute_force import least_weighted_wait
from tests.workloads.tiny import TinyCase, tiny_cases

weights = st.dictionaries(st.sampled_from(ObjectiveTerm), st.sampled_from([0.5, 1.0, 2.5]), min_size=1, max_size=3)

#: All tiny windows but those with jobs that have alternatives: of these the models have not all plans.
MODELLED = [case for case in tiny_cases() if not any(job.alternatives for job in case.instance.jobs)]


def job(name: str, walltime: int, cores: int = 4, **rest: Any) -> Job:
    """Return a job of one chunk that was submitted at 0."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": cores})),))
    return Job(id=name, submit=0, queue="q", steps=(Step(walltime=walltime, request=request),), **rest)


def one_node(*jobs: Job, max_wait: MaxWait | None = None) -> Instance:
    """Return a window of one node with 4 cores and one queue that expects to wait 10 s."""
    return Instance(
        name="one-node",
        cluster=Cluster(classes=(NodeClass(names=("n",), resources=Amounts({"cores": 4})),)),
        queues=FrozenMap({"q": Queue(expected_wait=10, max_wait=max_wait)}),
        jobs=jobs,
    )


def starts_of(instance: Instance, seconds: int = 0) -> dict[str, int]:
    """Return the starts of the waiting jobs in the proven best plan, found from a plan that begins later."""
    board = modelled(instance, first=postponed(instance, seconds))
    assert board.is_optimal
    running = {job.id for job in instance.jobs if job.running is not None}
    return {job.id: job.start for job in board.best.jobs if job.id not in running}


def test_jobs_keep_the_alternatives_of_the_plan_that_is_improved() -> None:
    """Whatever the first plan chose, MiniZinc finds earlier starts, and proves nothing of other choices."""
    instance = next(case.instance for case in tiny_cases() if case.instance.name == "tiny-moldable")
    first = postponed(instance, 7)
    board = board_of(instance, first)
    MiniZinc().improve(instance, board, seed=0)
    assert [(job.start, job.alternative) for job in first.jobs] == [(7, 1), (7, 1)]
    assert [(job.start, job.alternative) for job in board.best.jobs] == [(0, 1), (0, 1)]
    assert not board.is_optimal


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("case", MODELLED, ids=lambda case: case.instance.name)
def test_the_optimum_of_tiny_windows(case: TinyCase) -> None:
    """Where the optimum is known by hand it is found and proven, step by step from a poor plan."""
    board = modelled(case.instance, first=postponed(case.instance, 10_000))
    assert board.best.value == pytest.approx(case.optimum)
    assert board.is_optimal
    assert board.proof is not None
    assert board.proof.how == "MiniZinc, gecode: optimal"
    assert board.proof.value <= case.optimum
    assert [incumbent.by for incumbent in board.incumbents][1:] == ["minizinc:gecode"] * (len(board.incumbents) - 1)


@needs_minizinc
@examples(15, derandomize=True)
@given(instance=instances(max_nodes=3, max_jobs=3, max_running=2))
def test_the_optimum_is_that_of_brute_force(instance: Instance) -> None:
    """On random windows the proven optimum is the least value that trying everything finds."""
    free = replace(
        instance,
        jobs=tuple(replace(job, start_at=None, deadline=None, after=(), array=None) for job in instance.jobs),
    )
    placed = {job.id for job in planned(free).jobs}
    free = replace(free, jobs=tuple(job for job in free.jobs if job.id in placed))
    board = modelled(free)
    if any(job.running is None for job in free.jobs):
        assert board.is_optimal
        assert board.best.value == pytest.approx(least_weighted_wait(free).value)


@needs_minizinc
@examples(15, derandomize=True)  # Gecode needs hours for some windows: these are always the same ones
@given(instance=instances(max_nodes=3, max_jobs=3), weights=weights)
def test_no_plan_is_below_what_is_proven(instance: Instance, weights: dict[ObjectiveTerm, float]) -> None:
    """For any objective and any bounds in time the optimum is proven, verified, and the search finds nothing better."""
    alone = tuple(
        replace(job, array=None, after=tuple(awaited for awaited in job.after if "[" not in awaited.job))
        for job in instance.jobs
    )
    window = replace(instance, jobs=alone, objective=Objective(weights=FrozenMap(weights)))
    board = modelled(window)
    waiting = {job.id for job in window.elements() if job.running is None}
    if waiting & {job.id for job in board.best.jobs}:
        assert board.is_optimal
        assert searched(window, max_steps=300).best.value >= board.best.value * (1 - 1e-9)


@needs_minizinc
def test_prices_that_are_no_small_integers() -> None:
    """Prices that no integers say exactly are rounded down: the bound is below the value, by a little."""
    case = next(case for case in tiny_cases() if case.instance.name == "tiny-order")
    mixed = Objective(weights=FrozenMap({ObjectiveTerm.WEIGHTED_WAIT: 0.1, ObjectiveTerm.MAKESPAN: 1 / 3}))
    board = modelled(replace(case.instance, objective=mixed))
    assert board.proof is not None
    assert board.proof.how == "MiniZinc, gecode: optimal, of prices rounded down"
    assert board.best.value * (1 - 1e-5) < board.proof.value <= board.best.value


@examples(100)
@given(instance=instances(), weights=weights, seconds=st.integers(0, 500))
def test_the_cost_of_a_model_is_the_objective(
    instance: Instance, weights: dict[ObjectiveTerm, float], seconds: int
) -> None:
    """What a plan costs in integers gives its value, for a plan that the model has not been told."""
    queues = {
        name: replace(queue, max_wait=MaxWait(seconds=seconds + 1, price=2.5))
        for name, queue in instance.queues.items()
    }
    jobs = tuple(
        job if job.running is not None else replace(job, told=PromisedStart(start=seconds // 2, price=0.5))
        for job in instance.jobs
    )
    window = replace(instance, objective=Objective(weights=FrozenMap(weights)), queues=FrozenMap(queues), jobs=jobs)
    model = Window.of(window, planned(window).jobs)
    later = {job.id: job for job in postponed(window, seconds).jobs}
    times = [later[job.id] for job in model.jobs]
    cost = model.prices.integer_cost(
        [job.start - window.now for job in times], max((job.end - window.now for job in times), default=0)
    )
    assert model.prices.is_exact
    assert model.bound_of(cost) == pytest.approx(objective_value(window, later.values()))


@needs_minizinc
@pytest.mark.parametrize(("type_", "start"), [(DependencyType.AFTER, 7), (DependencyType.AFTERANY, 17)])
def test_dependencies(type_: DependencyType, start: int) -> None:
    """A job starts its delay after the start, or the end, of the longer one that it waits for."""
    small = job("b", 1, cores=1, after=(Dependency(job="a", type=type_, delay=7),))
    assert starts_of(one_node(job("a", 10, cores=3), small), 50) == {"a": 0, "b": start}


@needs_minizinc
def test_a_dependency_on_an_array_and_on_a_running_job() -> None:
    """A job waits for all elements of an array, and for what runs until its fixed end."""
    segment = Segment(start=-5, end=4, allocation=(Placement(node="n", resources=Amounts({"cores": 2})),))
    runs = replace(job("r", 9, cores=2), submit=-5, running=Running(start=-5, segments=(segment,)))
    array = job("a", 10, cores=1, array=(0, 1))
    after_array = job("b", 2, cores=1, after=(Dependency(job="a", type=DependencyType.AFTEROK, delay=1),))
    after_running = job("c", 2, cores=1, after=(Dependency(job="r", type=DependencyType.AFTEROK, delay=3),))
    found = starts_of(one_node(runs, array, after_array, after_running), 50)
    assert found == {"a[0]": 0, "a[1]": 0, "b": 11, "c": 7}


@needs_minizinc
def test_starts_and_ends_that_are_set() -> None:
    """The shorter job would go first, but for the start and the deadline of others."""
    fixed = one_node(job("a", 11), job("b", 3, start_at=10), job("c", 4))
    assert starts_of(fixed) == {"a": 13, "b": 10, "c": 0}
    due = one_node(job("a", 10, deadline=12), job("b", 3))
    assert starts_of(due) == {"a": 0, "b": 10}


@needs_minizinc
@pytest.mark.parametrize(
    ("max_wait", "start"),
    [
        (None, 6),
        (MaxWait(seconds=25, price=0.0), 6),
        (MaxWait(seconds=25, price=10.0), 3),
        (MaxWait(seconds=25, price=0.0, is_hard=True), 3),
    ],
)
def test_a_wait_that_is_bounded(max_wait: MaxWait | None, start: int) -> None:
    """The longest job goes last (6), unless its queue does not let it wait beyond 5, or at a price of 1 a second."""
    window = one_node(replace(job("a", 12), submit=-20), job("b", 3), job("c", 3), max_wait=max_wait)
    assert starts_of(window)["a"] == start


@needs_minizinc
def test_a_start_that_was_told() -> None:
    """To move a start that a user was told costs more than to let the shorter job wait."""
    short = job("b", 3)
    assert starts_of(one_node(job("a", 5), short)) == {"a": 3, "b": 0}
    assert starts_of(one_node(job("a", 5, told=PromisedStart(start=0, price=2.0)), short)) == {"a": 0, "b": 5}


def is_plain(instance: Instance) -> bool:
    """Return whether the textbook model knows all that an instance asks for."""
    places: defaultdict[str, int] = defaultdict(int)
    for one in instance.jobs:
        place = one.request.place
        places["special"] += place.exclusive or place.arrangement != "free" or bool(one.licenses)
    return not places["special"] and not any(c.keep_free for c in instance.cluster.classes)


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("case", MODELLED, ids=lambda case: case.instance.name)
def test_the_models_agree_when_they_are_run_by_hand(case: TinyCase, tmp_path: Path) -> None:
    """The textbook model has the same optimum as the full one, or says what it does not know."""
    window = Window.of(case.instance, planned(case.instance).jobs)
    full = printed_by("window", window, tmp_path)
    textbook = printed_by("one_node_per_unit", window, tmp_path)
    assert full.count("==========") == 1
    if is_plain(case.instance):
        assert textbook.count("==========") == 1
        costs = [[line for line in text.splitlines() if line.startswith("cost ")][-1] for text in (full, textbook)]
        assert costs[0] == costs[1]
    else:
        assert "expected a window without places, licences, dependencies and keep_free" in textbook
