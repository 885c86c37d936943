"""SD-Policy on-line: worked numbers, its naive twin, and records that the judge has seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from cpsched.domain import Instance, Malleability, PlannedJob, RuntimeModel
from cpsched.policies.malleable import PiWeight, SdRule
from cpsched.policies.online.sd import SdPolicy
from cpsched.policies.online.static_backfill import static_backfill
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.policies.naive_sd_online import Task, sd_online_by_the_second
from tests.sim.played import played

HALF = Malleability(shares=(0.5,), model=RuntimeModel.WORST)


def workload_of(tasks: Sequence[Task], size: int) -> Instance:
    """Return tasks as a workload."""
    jobs = [
        replace(
            waiting(task.name, task.walltime, chunk(task.count, cores=4), submit=task.submit),
            malleability=HALF if task.is_malleable else None,
            runtime=task.runtime,
        )
        for task in tasks
    ]
    return window([nodes(" ".join(f"n{node}" for node in range(size)), cores=4)], *jobs)


def held(planned: PlannedJob) -> list[int]:
    """Return the numbers of the nodes of a job."""
    return sorted(int(placement.node.removeprefix("n")) for placement in planned.segments[0].allocation)


def drawn_tasks(dice: Random, size: int, malleable: float) -> list[Task]:
    """Return tasks that come over time, and run shorter than they ask for."""
    tasks = []
    for number in range(dice.randint(4, 16)):
        walltime = dice.choice([3, 5, 8, 13, 40, 61])
        tasks.append(
            Task(
                name=f"j{number:02}",
                submit=dice.randint(0, 60),
                walltime=walltime,
                runtime=dice.choice([walltime, walltime + 1, dice.randint(1, walltime), dice.randint(1, walltime)]),
                count=dice.randint(1, size),
                is_malleable=dice.random() < malleable,
            )
        )
    return tasks


@pytest.mark.parametrize("seed", range(150))
def test_policy_is_its_naive_twin(seed: int) -> None:
    """What is done at events gives the starts, ends, nodes and counts that looking in every second gives (SD-2)."""
    dice = Random(seed)
    size, limit = dice.randint(2, 6), dice.choice([None, None, 2, 5, math.inf])
    tasks, depth = drawn_tasks(dice, size, 0.8), dice.choice([None, None, 1, 3])
    rule = SdRule(name="twin", max_slowdown=limit, most_mates=dice.randint(1, 3), pi_weight=dice.choice(list(PiWeight)))
    sd_online_by_the_second(tasks, size, limit, rule.most_mates, depth, by_nodes=rule.pi_weight is PiWeight.NODES)
    policy = SdPolicy(rule, depth)
    record = played(workload_of(tasks, size), policy).record()
    assert {job.id: (job.start, job.end, held(job)) for job in record.jobs} == {
        task.name: (task.start, task.end, sorted(task.stands)) for task in tasks
    }
    assert policy.counters == {
        "guests": sum(task.was_guest for task in tasks),
        "mates": sum(task.has_lent for task in tasks),
    }


@pytest.mark.parametrize("seed", range(20))
def test_static_backfill_without_malleable_jobs(seed: int) -> None:
    """With no malleable job the record is that of static backfilling, job by job (SD-14)."""
    dice = Random(seed)
    size, depth = dice.randint(2, 6), dice.choice([None, 1, 3])
    workload = workload_of(drawn_tasks(dice, size, 0), size)
    policy = SdPolicy(SdRule(name="twin", max_slowdown=None), depth)
    assert played(workload, policy).record().jobs == played(workload, static_backfill(depth)).record().jobs
