"""Lists of projects: decoded and justified as their naive twin does it, bred to short projects, and right on nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.cp import lower_bound
from cpsched.domain import Amounts, Cluster, Instance, Job, NodeClass, ObjectiveTerm, Placement, Running, Segment
from cpsched.engine import Budget
from cpsched.lab.workloads import job_mix
from cpsched.search import Search
from cpsched.search import project_kernels as kernels
from cpsched.search.chain import Chain
from cpsched.search.genetic import Breeding, _packed, desk_of, followers_of, in_units, lists_of, project_of, turned
from tests.oracle.naive_project import NaiveProject
from tests.rusv.linked_pairs import distances
from tests.rusv.test_links import JOBS, Drawn, made, milestones, spelt_out
from tests.search.searched import board_of, planned, searched
from tests.search.test_search_links import project
from tests.sizes import examples

#: Held by a running job until second 15.
_HELD = 4


def busy_project(num_jobs: int, seed: int) -> Instance:
    """Return a project of which a running job takes some cores at the beginning."""
    instance = project(num_jobs, seed, ObjectiveTerm.MAKESPAN)
    held = Placement(node="n", resources=Amounts({"cores": _HELD}), chunk=0, count=1)
    running = Running(start=0, segments=(Segment(start=0, end=15, allocation=(held,)),))
    step = replace(instance.jobs[0].steps[0], walltime=15)
    chunk = replace(step.request.chunks[0], resources=Amounts({"cores": _HELD}))
    step = replace(step, request=replace(step.request, chunks=(chunk,)))
    return replace(instance, jobs=(*instance.jobs, Job(id="running", submit=0, steps=(step,), running=running)))


def chain_of(instance: Instance) -> Chain:
    """Return a chain of the waiting jobs, which has planned them in document order."""
    jobs = [job for job in instance.elements() if job.running is None]
    chain = Chain(instance, jobs, seed=0)
    chain.plan_list(np.arange(len(jobs), dtype=np.float64))
    return chain


def twin_of(chain: Chain) -> NaiveProject:
    """Return the naive twin of a chain's project on a node of 10 cores."""
    table = chain.ledger.table
    needs = [[job.request.totals["cores"]] for job in chain.ledger.jobs if job.running is None]
    return NaiveProject(
        durations=table.jobs[:, 3].tolist(),
        needs=needs,
        earliest=table.jobs[:, 1].tolist(),
        links=distances(table.links),
        free=lambda second: [10 - _HELD if second < 15 else 10],
    )


@pytest.mark.kernels
@examples(60)
@given(seed=st.integers(0, 1000), data=st.data())
def test_lists_are_decoded_and_justified_as_by_the_twin(seed: int, data: st.DataObject) -> None:
    """A list has the same starts as the twin's, before and after it is justified, which never makes it longer."""
    chain = chain_of(busy_project(data.draw(st.integers(2, 12)), seed))
    twin, (_, _, of_chain) = twin_of(chain), project_of(chain)
    ahead = followers_of(chain.ledger.table.links)
    if data.draw(st.booleans()):
        of_chain, ahead = in_units(of_chain, ahead)
        assert not len(of_chain.times)
    back = turned(ahead, of_chain.jobs[:, kernels.DURATION])
    desk = desk_of(of_chain)
    keys = np.array(data.draw(st.permutations(range(len(of_chain.jobs)))), dtype=np.float64)
    starts = np.zeros(len(keys), dtype=np.int64)
    kernels.fill(len(of_chain.free), of_chain, desk)
    assert kernels.decode(keys, starts, False, ahead, of_chain, desk)
    expected = twin.decoded(keys.tolist())
    assert starts.tolist() == expected
    assert twin.is_feasible(expected)
    value = kernels.justify(starts, ahead, back, of_chain, desk)
    while twin.end(moved := twin.justified(expected)) < twin.end(expected):
        expected = moved
    if twin.end(moved) == twin.end(expected):
        expected = moved
    assert starts.tolist() == expected
    assert twin.is_feasible(expected)
    assert value == twin.end(expected)


@given(milestones(), st.lists(st.integers(1, 9), min_size=JOBS, max_size=JOBS))
def test_who_follows_whom(drawn: list[Drawn], durations: list[int]) -> None:
    """Each pair counts once; where s_j >= s_i + lag, times t = -s - duration keep t_i >= t_j + lag + d_j - d_i."""
    ahead = followers_of(made(drawn))
    for followers, expected in (
        (ahead, [(i, j, lag) for j, i, lag in spelt_out(drawn)]),
        (
            turned(ahead, np.array(durations, dtype=np.int64)),
            [(j, i, lag + durations[j] - durations[i]) for j, i, lag in spelt_out(drawn)],
        ),
    ):
        jobs = np.repeat(np.arange(JOBS), np.diff(followers.of)).tolist()
        found = [(job, *pair) for job, pair in zip(jobs, followers.pairs.tolist(), strict=True)]
        assert sorted(found) == sorted(expected)
        assert followers.awaited.tolist() == [sum(after == job for _, after, _ in expected) for job in range(JOBS)]


@pytest.mark.kernels
def test_amounts_share_words() -> None:
    """A job fits where it would without packing, however many words the amounts of a slot take."""
    random = np.random.default_rng(0)
    for columns, most in ((1, 1), (3, 9), (7, 1000), (5, 1 << 40)):
        needs, free = random.integers(0, most + 1, (60, columns)), random.integers(0, most + 1, (40, columns))
        needs[::3] = free[np.arange(20) % 40]
        (packed_needs, packed_free), guards = _packed(needs, free)
        for job, need in zip(packed_needs, needs, strict=True):
            for slot, amounts in zip(packed_free | guards, free, strict=True):
                assert kernels.fits(job, guards, slot) == bool((need <= amounts).all())


def test_bred_lists_are_shorter() -> None:
    """Bred lists keep all distances, get shorter, and end with the plan that the chain makes of them."""
    bred, first = 0.0, 0.0
    for seed in range(5):
        chain = chain_of(busy_project(40, seed))
        first += chain.best_value
        breeding = Breeding(chain, [], seed)
        breeding.run(1)
        value = breeding.best_value
        breeding.run(1500)
        assert breeding.best_value <= value
        assert twin_of(chain).is_feasible(breeding.best_starts.tolist())
        assert chain.plan_list(breeding.best_starts.astype(np.float64)) == breeding.best_value
        bred += breeding.best_value
    assert bred < 0.97 * first


@pytest.mark.large
def test_a_mix_of_jobs_is_polished_to_its_optimum() -> None:
    """The best list of the mix of seed 12 is as short as is proven, if lists are polished; without that it is not."""
    mix, lengths = job_mix(12), []
    for polished in (0, 4):
        breeding = Breeding(chain_of(mix), [], 1)
        breeding._polished = polished
        breeding.run(60_000)
        lengths.append(breeding.best_value)
    bound = lower_bound(mix, [job.id for job in mix.jobs], seconds=60.0, evaluations=500)
    assert bound is not None
    assert lengths[1] == bound.value < lengths[0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.booleans())
def test_lists_are_selected_by_value(values: list[int], is_distinct: bool) -> None:
    """The best lists come first; where they are to be distinct, the first of each value, and then the others."""
    lists = lists_of(len(values), 1, np.random.default_rng(0))
    lists.next_values[:], lists.next_keys[:, 0] = values, range(len(values))
    kernels.select(is_distinct, lists)
    ordered = sorted(range(len(values)), key=lambda row: values[row])
    if is_distinct:
        firsts = [row for row in ordered if values.index(values[row]) == row]
        ordered = firsts + [row for row in ordered if row not in firsts]
    assert lists.keys[:, 0].tolist() == ordered
    assert lists.values.tolist() == [values[row] for row in ordered]


def test_lists_that_end_alike_end_the_search() -> None:
    """Once most beginnings have ended with the best value the search gives the rest of its time away; not before."""
    instance = busy_project(12, 2)
    breeding = Breeding(chain_of(instance), [], 1)
    breeding.run(1000)
    assert not breeding.is_exhausted
    breeding.run(200_000)
    assert breeding.is_exhausted
    board = searched(instance, max_steps=10_000_000)
    assert not board.is_over
    assert board.best.value == breeding.best_value + chain_of(instance).offset()


def test_lists_that_end_at_random_do_not_end_the_search() -> None:
    """A few beginnings that are alike among many, or a shorter plan that was found once, are no end."""
    breeding = Breeding(chain_of(busy_project(12, 2)), [], 1)
    worse = breeding._project.price[0] * breeding._project.unit[0]
    breeding._lists.best_value[0] = breeding._lists.values[0] = 100 * worse
    for _ in range(12):
        breeding._begin_anew()
    assert breeding.is_exhausted
    breeding._lists.best_value[0] -= worse
    breeding._begin_anew()
    assert not breeding.is_exhausted
    for _ in range(11):
        breeding._lists.values[0] = breeding.best_value + worse / 2
        breeding._begin_anew()
    assert not breeding.is_exhausted  # 11 of 24
    for _ in range(3):
        breeding._begin_anew()
    assert breeding.is_exhausted


def test_the_search_breeds_projects() -> None:
    """Projects get shorter than the lists that the search begins with, and the log of incumbents says by what."""
    lengths = []
    for steps in (0, 3000):
        boards = [searched(project(30, seed, ObjectiveTerm.MAKESPAN), max_steps=steps) for seed in range(4)]
        lengths.append(sum(board.best.value for board in boards))
    assert lengths[1] < lengths[0]
    assert any(incumbent.by == "list:bred" for board in boards for incumbent in board.incumbents)


def test_lists_are_orders_where_nodes_are_small() -> None:
    """Where two jobs fit into the sums but on no node, the plan still verifies, and insertion gets its share."""
    instance = project(60, 3, ObjectiveTerm.MAKESPAN)
    nodes = NodeClass(names=("a", "b"), resources=Amounts({"cores": 7}))
    instance = replace(instance, cluster=Cluster(classes=(nodes,)))
    board = searched(instance, max_steps=2000)
    assert board.best.value < board.incumbents[0].value


def test_same_seed_same_lists() -> None:
    """The lists depend on nothing but the chain and the seed."""
    first, second, other = (Breeding(chain_of(busy_project(40, 1)), [], seed) for seed in (3, 3, 4))
    for breeding in (first, second, other):
        breeding.run(450)
    assert first.best_starts.tolist() == second.best_starts.tolist()
    assert first.best_starts.tolist() != other.best_starts.tolist()


@pytest.mark.parametrize("objective", [ObjectiveTerm.WEIGHTED_WAIT, ObjectiveTerm.SLOWDOWN])
def test_only_projects_are_bred(objective: ObjectiveTerm) -> None:
    """Where the last end does not count, no lists are bred; where it does they are, also of jobs that wait for none."""
    instance = project(20, 1, objective)
    assert not chain_of(instance).is_project
    linked = project(20, 1, ObjectiveTerm.MAKESPAN)
    assert chain_of(linked).is_project
    assert chain_of(replace(linked, jobs=tuple(replace(job, after=()) for job in linked.jobs))).is_project


def test_lists_that_take_long_are_not_bred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a first generation would take more than a small part of the time, insertion gets nearly all of it."""
    made = []
    monkeypatch.setattr(Breeding, "run", lambda self, lists: made.append(lists))
    instance = project(30, 1, ObjectiveTerm.MAKESPAN)
    ticks = count()
    board = board_of(instance, planned(instance))
    board.budget = Budget(20.0, clock=lambda: next(ticks) * 0.1)
    Search().improve(instance, board, seed=0)
    assert made
    assert sum(made) < 10
