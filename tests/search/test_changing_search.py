"""The search where jobs change while they run, on any nodes: its plans are plans, and cost what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.domain import (
    Amounts,
    Dependency,
    DependencyType,
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
    Segment,
    Step,
)
from cpsched.metrics import objective_value
from cpsched.problem import refusal
from cpsched.rusv import awaited_first
from cpsched.search.chain import Chain
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.literal_lists import listed_literally
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_malleable import malleable_windows
from tests.search.searched import planned, searched
from tests.sizes import examples
from tests.workloads.changing import made_rigid, with_evolving
from tests.workloads.eurora_windows import eurora_window

FEW = 60
SLOW = examples(40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def completion(instance: Instance, **more: float) -> Instance:
    """Return the window with the sum of completion times as objective, and other terms."""
    weights = {ObjectiveTerm.COMPLETION: 1.0} | {ObjectiveTerm(term): weight for term, weight in more.items()}
    return replace(instance, objective=Objective(weights=FrozenMap(weights)))


def evolving(job_id: str, *steps: tuple[int, int], cores: int = 2, **options: Any) -> Job:
    """Return a waiting job of (walltime, chunks)."""
    asked = tuple(
        Step(walltime=walltime, request=Request(chunks=(chunk(count, cores=cores),))) for walltime, count in steps
    )
    return Job(id=job_id, submit=0, steps=asked, **options)


def small() -> Instance:
    """Return a part of a machine on which a third of the jobs evolve."""
    return completion(with_evolving(eurora_window(40, 1, busy=0.9, demand=100), 1))


def chain_of(instance: Instance, seed: int = 0) -> tuple[Chain, list[Job]]:
    """Return a chain that begins from the planner's plan, and its jobs."""
    outcome = planned(instance)
    placed = {job.id for job in outcome.jobs}
    jobs = [job for job in instance.elements() if job.running is None and job.id in placed]
    chain = Chain(instance, jobs, seed, changing=True)
    assert chain.adopt(outcome.jobs)
    return chain, jobs


def value_of(instance: Instance, best: Sequence[PlannedJob]) -> float:
    """Return what the objective says of a plan."""
    return objective_value(instance, best)


@SLOW
@given(evolving_instances(), st.sampled_from(list(ObjectiveTerm)), st.integers(0, 3))
def test_whatever_it_offers_is_a_plan(instance: Instance, term: ObjectiveTerm, seed: int) -> None:
    """Whatever evolves beside whatever runs: what is offered passes the judge, and is never worse than before."""
    weights = {term: 1.0, ObjectiveTerm.WASTE: 0.1}
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    outcome = planned(instance)
    board = searched(instance, FEW, seed=seed)
    assert board.best.value <= objective_value(instance, outcome.jobs) + 1e-9


@pytest.mark.kernels
@SLOW
@given(evolving_instances(), st.sampled_from(list(ObjectiveTerm)))
def test_it_knows_what_its_plans_cost(instance: Instance, term: ObjectiveTerm) -> None:
    """After a list, and after each portion of steps, the best value and the offset add up to the objective."""
    weights = {term: 1.0, ObjectiveTerm.COMPLETION: 0.5, ObjectiveTerm.WASTE: 0.1}
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    outcome = planned(instance)
    jobs = [job for job in instance.elements() if job.id in {one.id for one in outcome.jobs} and job.running is None]
    if not jobs:
        return
    assert all(refusal(instance, job) is None for job in jobs)
    chain = Chain(instance, jobs, 0, changing=True)
    offset = chain.offset()
    chain.plan_list(np.arange(len(jobs), dtype=np.float64))
    assert chain.adopt(outcome.jobs)
    for _ in range(3):
        chain.run(5, 1.0)
        assert chain.best_value + offset == pytest.approx(value_of(instance, chain.best()), abs=1e-6)


def test_same_seed_same_plan() -> None:
    """With a limit of steps the seed says all."""
    one, same, other = (searched(small(), max_steps=150, seed=seed).best.jobs for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_it_is_better_than_the_planner_and_than_rigid_jobs() -> None:
    """Jobs that give back what they do not need let others start earlier, and the search finds how."""
    instance = small()
    found = searched(instance, max_steps=300).best.value
    rigid = searched(made_rigid(instance), max_steps=5000).best.value
    assert found < objective_value(instance, planned(instance).jobs)
    assert found < rigid


def test_after_a_list_that_failed_the_best_plan_is_read_and_adopted() -> None:
    """A list schedule that costs too much leaves no plan; the best one can still be read, and begun from."""
    chain, jobs = chain_of(small())
    best = chain.best()
    assert chain.plan_list(np.arange(len(jobs), 0, -1.0), limit=0.5 * chain.best_value) is None
    assert chain.best() == best
    before = chain.best_value
    assert chain.adopt(best)
    assert chain.best_value == before
    chain.run(20, 0.1)
    assert chain.best_value <= before


@pytest.mark.kernels
@SLOW
@given(st.one_of(evolving_instances(), malleable_windows()), st.randoms())
def test_lists_are_those_of_the_ledger(instance: Instance, random: Random) -> None:
    """In any order each job that changes has the start, the end, the nodes and the changes that the ledger finds."""
    outcome = planned(completion(instance))
    placed = {job.id for job in outcome.jobs}
    jobs = [job for job in instance.elements() if job.running is None and job.id in placed]
    if not jobs:
        return
    chain = Chain(completion(instance), jobs, 0, changing=True)
    keys = np.array([random.random() for _ in jobs])
    order = awaited_first(Ledger(instance, jobs).table.links, np.argsort(keys)).tolist()
    expected = listed_literally(completion(instance), jobs, order)
    if chain.plan_list(keys) is None:
        assert expected is None
    else:
        of_waiting = {job.id for job in jobs}
        assert [one for one in chain.best() if one.id in of_waiting] == expected


def test_order_of_a_list() -> None:
    """Smallest keys first; a list that costs more than its limit is given up, and so is one without room."""
    jobs = [evolving("long", (8, 2), (2, 1)), evolving("short", (1, 1), (1, 2))]
    chain, _ = chain_of(completion(window([nodes("a b", cores=2)], *jobs)))
    long_first, short_first = chain.plan_list(np.array([0.0, 1.0])), chain.plan_list(np.array([1.0, 0.0]))
    assert long_first is not None
    assert short_first is not None
    assert long_first - short_first == 7  # ends at 10 and 11 against 12 and 2
    assert chain.plan_list(np.array([0.0, 1.0]), limit=short_first) is None
    assert chain.plan_list(np.array([1.0, 0.0]), limit=short_first) == short_first


def test_keys_of_lists() -> None:
    """A wider or longer job comes later; where the end of the last counts, there is a list with the longest first."""
    jobs = [evolving("wide", (4, 2), (4, 1)), evolving("narrow", (4, 1), (4, 1)), evolving("short", (1, 1), (1, 1))]
    instance = completion(window([nodes("a b", cores=2)], *jobs))
    chain, _ = chain_of(instance)
    assert {name: np.argsort(keys, kind="stable").tolist() for name, keys in chain.list_keys().items()} == {
        "nodes": [2, 1, 0],
        "widest": [2, 1, 0],
        "walltime": [2, 0, 1],
    }
    chain, _ = chain_of(completion(instance, makespan=1.0))
    assert np.argsort(chain.list_keys()["tails"], kind="stable").tolist() == [0, 1, 2]


def test_nobody_comes_before_whom_he_waits_for() -> None:
    """Jobs that wait for each other are taken out and put back together, and the plan gets better."""
    jobs = [evolving(f"big{n}", (20, 2), (20, 1)) for n in range(3)]
    chains = [
        job
        for n in range(4)
        for job in (
            evolving(f"first{n}", (2, 1), (2, 2)),
            waiting(f"then{n}", 3, chunk(cores=2), after=(Dependency(job=f"first{n}", type=DependencyType.AFTEROK),)),
        )
    ]
    instance = completion(window([nodes("a b", cores=2)], *jobs, *chains))
    found = searched(instance, max_steps=300).best.value
    assert found < objective_value(instance, planned(instance).jobs)


def test_last_end_counts() -> None:
    """Where only the end of the last job counts, the long one goes first."""
    jobs = [evolving(f"s{n}", (3, 1), (3, 1)) for n in range(4)] + [evolving("l", (9, 1), (9, 1))]
    instance = window([nodes("a b", cores=2)], *jobs)
    instance = replace(instance, objective=Objective(weights=FrozenMap({ObjectiveTerm.MAKESPAN: 1.0})))
    best = searched(instance, max_steps=300).best
    assert max(job.end for job in best.jobs) == 24  # (4 * 6 + 18) / 2 = 21 cannot be had with parts of 6 and 18


@pytest.mark.parametrize(("waste", "held"), [(0.001, 4), (100.0, 0)])
def test_holding_pays_where_it_does(waste: float, held: int) -> None:
    """A step is held where that lets the job end earlier; and not, where what is wasted costs more (EVO-10)."""
    job = evolving("e", (2, 4), (2, 2), (3, 4), expand_limit=None)
    two_cores: Any = {"cores": 2}
    now = [running(f"r{name}", 2, **{name: two_cores}) for name in "abc"]
    later = [waiting(f"w{n}", 6, chunk(cores=2), start_at=6, priority=1) for n in range(3)]
    instance = completion(window([nodes("a b c d e", cores=2)], *now, *later, job), waste=waste)
    for plan in (planned(instance).jobs, searched(instance, FEW).best.jobs):
        found = next(one for one in plan if one.id == "e")
        assert found.end - found.start - job.walltime == held


def test_running_jobs_change_for_those_that_wait() -> None:
    """Of two jobs on a full node one shrinks for a short job that waits, and expands again when that has ended."""
    able = Malleability(shares=(0.5,))
    long = Job(
        id="long", submit=-5, steps=(Step(walltime=105, request=Request(chunks=(chunk(cores=4),))),), malleability=able
    )
    held = Placement(node="a", resources=Amounts({"cores": 4}), chunk=0, count=1)
    long = replace(long, running=Running(start=-5, segments=(Segment(start=-5, end=100, allocation=(held,)),)))
    instance = completion(window([nodes("a", cores=4)], long, waiting("short", 10, chunk(cores=2))))
    jobs = [instance.jobs[1]]
    chain = Chain(instance, jobs, 0, changing=True)
    chain.plan_list(np.zeros(1))
    assert chain.best()[1].start == 100
    chain.run(50, 0.1)
    found = {one.id: one for one in chain.best()}
    assert found["short"].start == 0
    assert [(one.start, one.end) for one in found["long"].segments] == [(-5, 0), (0, 10), (10, 105)]
    assert chain.best_value + chain.offset() == objective_value(instance, list(found.values()))
    assert searched(instance, FEW).best.value <= objective_value(instance, list(found.values()))


def test_one_job() -> None:
    """A single job has no other to change places with."""
    instance = completion(window([nodes("a b", cores=2)], evolving("e", (2, 1), (3, 2))))
    assert searched(instance, FEW).best.jobs == planned(instance).jobs
