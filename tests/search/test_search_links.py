"""The search where jobs wait for each other: distances are kept, chains move as a whole, the makespan shrinks."""

from __future__ import annotations

from random import Random

import numpy as np
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
    NodeClass,
    Objective,
    ObjectiveTerm,
    Request,
    Step,
)
from cpsched.rusv import JobTable, awaited_first, heads, lasts
from tests.rusv.linked_pairs import linked_pairs
from tests.search.searched import searched


def project(num_jobs: int, seed: int, objective: ObjectiveTerm) -> Instance:
    """Return a project in random layers on one node of 10 cores: most jobs wait for one or two before them."""
    dice = Random(seed)
    jobs = []
    for number in range(num_jobs):
        before = dice.sample(range(number), min(number, dice.choice([0, 1, 1, 2])))
        after = tuple(
            Dependency(job=f"j{other}", type=dice.choice(list(DependencyType)), delay=dice.choice([0, 0, 3]))
            for other in before
        )
        request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": dice.randint(1, 6)})),))
        step = Step(walltime=dice.randint(1, 10), request=request)
        jobs.append(Job(id=f"j{number}", submit=0, steps=(step,), after=after))
    nodes = NodeClass(names=("n",), resources=Amounts({"cores": 10}))
    weights = FrozenMap({objective: 1.0})
    return Instance(
        name="project", cluster=Cluster(classes=(nodes,)), jobs=tuple(jobs), objective=Objective(weights=weights)
    )


@pytest.mark.slow
@pytest.mark.parametrize("objective", [ObjectiveTerm.MAKESPAN, ObjectiveTerm.WEIGHTED_WAIT, ObjectiveTerm.SLOWDOWN])
def test_projects_get_better(objective: ObjectiveTerm) -> None:
    """Plans of random projects verify, and together are worth less than what the lists find."""
    before, after = 0.0, 0.0
    for seed in range(6):
        instance = project(30, seed, objective)
        after += searched(instance, max_steps=5000).best.value
        before += searched(instance, max_steps=0).best.value
    assert after < before


def test_a_pair_moves_together() -> None:
    """Two long jobs, one of which waits for the other, make way for a short one, though neither can move alone."""
    full = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 4})),))
    first = Job(id="a", submit=0, steps=(Step(walltime=100, request=full),), priority=9)
    second = Job(
        id="b",
        submit=0,
        steps=(Step(walltime=100, request=full),),
        priority=8,
        after=(Dependency(job="a", type=DependencyType.AFTEROK),),
    )
    short = Job(id="c", submit=0, steps=(Step(walltime=10, request=full),))
    nodes = NodeClass(names=("n",), resources=Amounts({"cores": 4}))
    instance = Instance(name="pair", cluster=Cluster(classes=(nodes,)), jobs=(first, second, short))
    board = searched(instance, max_steps=500)
    assert {job.id: job.start for job in board.best.jobs} == {"a": 10, "b": 110, "c": 0}


@given(
    links=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 5)), max_size=12),
    order=st.permutations(range(8)),
)
def test_what_links_say(links: list[tuple[int, int, int]], order: list[int]) -> None:
    """No row comes before one that it waits for; first starts and tails are the longest paths."""
    rows = [(0, place, 10**9, place + 1) for place in range(8)]
    forward = [(max(a, b), min(a, b), lag) for a, b, lag in links if a != b]
    table = JobTable(rows, linked_pairs(len(rows), forward))
    sorted_rows = awaited_first(table.links, np.array(order)).tolist()
    assert sorted(sorted_rows) == list(range(8))
    assert all(sorted_rows.index(before) < sorted_rows.index(job) for job, before, _ in forward)
    if not forward:
        assert sorted_rows == order
    first_starts, last_ends = heads(table.links, table.jobs[:, 1]), -lasts(table.links, -table.jobs[:, 3])
    for job in range(8):
        waits = [first_starts[before] + lag for after, before, lag in forward if after == job]
        assert first_starts[job] == max([job, *waits])
        behind = [last_ends[after] + lag for after, before, lag in forward if before == job]
        assert last_ends[job] == max([job + 1, *behind])
