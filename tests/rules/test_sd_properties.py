"""What holds for every window: static backfill where no job shares, verified plans, and which jobs share with which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
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
    Malleability,
    Place,
    Placement,
    PlannedJob,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
)
from cpsched.rules import POLICIES, SdEngine
from cpsched.rules.sd import SD_RULES, PiWeight, SdRule
from tests.booking.small_windows import SCATTER, chunk, nodes, waiting, window
from tests.oracle.random_instances import instances
from tests.portfolio.judged import assert_judged
from tests.rules.naive_sd import Task, sd_by_the_second
from tests.sizes import examples, seeds, some


@pytest.mark.parametrize("rule", SD_RULES, ids=lambda rule: rule.name)
@examples(25)
@given(instances())
def test_static_backfill_without_malleable_jobs(rule: SdRule, instance: Instance) -> None:
    """With no malleable job the schedule is that of conservative backfilling on nodes, job by job (SD-14)."""
    assert SdEngine(rule).plan(instance, None) == POLICIES["conservative_on_nodes"].plan(instance, None)


@examples(40)
@given(instances(), st.sampled_from(SD_RULES))
def test_static_backfill_without_the_share(instance: Instance, rule: SdRule) -> None:
    """The same holds where no job has the share that is needed."""
    other = Malleability(shares=(0.75,))
    shy = replace(instance, jobs=tuple(replace(job, malleability=other) for job in instance.jobs))
    assert SdEngine(rule).plan(shy, None) == POLICIES["conservative_on_nodes"].plan(instance, None)


def whole_node_job(dice: Random, job_id: str) -> Job:
    """Return a job of whole nodes, with 4 or with 5 cores; some of its chunks share a node, and some have memory."""
    cores = dice.choice([4, 4, 4, 4, 5])
    mem = {"mem": dice.randint(1, 2)} if dice.random() < 0.3 else {}
    unit, count = dice.choice([(cores, 1)] * 4 + [(cores, 2)] * 3 + [(cores, 3), (2, 2), (3, 2)])
    request = Request(
        chunks=(Chunk(count=count, resources=Amounts({"cores": unit, **mem})),),
        place=dice.choice([Place(), Place(), SCATTER]),
    )
    stretches: list[dict[float, float]] = [{}, {}, {0.5: 1.2}, {0.5: 1}, {0.5: 2.5}]
    malleability = Malleability(
        shares=dice.choice([(0.5,), (0.75, 0.5, 0.25)]),
        model=dice.choice(list(RuntimeModel)),
        stretch=FrozenMap(dice.choice(stretches)),
    )
    return Job(
        id=job_id,
        submit=dice.randint(-20, 20),
        steps=(Step(walltime=dice.choice([5, 7, 10, 25, 60, 100, 200]), request=request),),
        priority=dice.choice([None, None, 1]),
        not_before=dice.choice([None] * 7 + [15]),
        deadline=dice.choice([None] * 12 + [400]),
        malleability=dice.choice([malleability] * 9 + [None]),
    )


def malleable_window(seed: int) -> tuple[Instance, SdRule]:
    """Return a window of jobs that mostly are malleable and have whole nodes, some of which run already, and a rule."""
    dice = Random(seed)
    left, jobs = list("abc"), []
    for number in range(dice.randint(0, 2)):
        count, job = dice.randint(1, 2 - number), whole_node_job(dice, f"r{number}")
        held = Amounts({"cores": 4, "mem": dice.randint(1, 2)})
        allocation = tuple(Placement(node=left.pop(), resources=held) for _ in range(count))
        start = -dice.randrange(job.walltime)
        running = Running(
            start=start, segments=(Segment(start=start, end=start + job.walltime, allocation=allocation),)
        )
        step = Step(walltime=job.walltime, request=Request(chunks=(Chunk(count=count, resources=held),)))
        times: dict[str, Any] = {"submit": min(job.submit, start), "deadline": None, "not_before": None}
        jobs.append(replace(job, steps=(step,), running=running, **times))
    for number in range(dice.randint(8, 14)):
        links = [
            Dependency(job=other.id, type=dice.choice(list(DependencyType)), delay=dice.randint(0, 3))
            for other in jobs
            if dice.random() < 0.02
        ]
        jobs.append(replace(whole_node_job(dice, f"w{number}"), after=tuple(links)))
    rule = SdRule(
        name="drawn",
        max_slowdown=dice.choice([None, 3, math.inf, math.inf, math.inf]),
        sharing_factor=dice.choice([Fraction(1, 2)] * 4 + [Fraction(1, 4), Fraction(3, 4)]),
        most_mates=dice.randint(1, 3),
        pi_weight=dice.choice(list(PiWeight)),
        truncation=dice.choice([None, None, 2]),
    )
    cluster = Cluster(classes=(nodes("a b c", cores=4, mem=4), nodes("d", cores=5, mem=8)))
    return Instance(name="malleable", cluster=cluster, jobs=tuple(jobs)), rule


SEEDS = range(150)


@pytest.mark.slow
def test_every_plan_is_valid() -> None:
    """The judge finds no fault, nobody is lost, and of the same input comes the same plan; many windows have guests."""
    sharing, tried = 0, some(SEEDS, 3)
    for seed in tried:
        instance, rule = malleable_window(seed)
        outcome = SdEngine(rule).plan(instance, None)
        assert_judged(instance, outcome)
        everybody = sorted([*(job.id for job in outcome.jobs), *(job.id for job in outcome.waiting_room)])
        assert everybody == sorted(job.id for job in instance.elements())
        assert SdEngine(rule).plan(instance, None) == outcome
        sharing += bool(shrunk(instance, outcome.jobs))
    assert sharing >= len(tried) // 3


def test_who_shares() -> None:
    """No node has more than two jobs that share it; it is malleable, not bound in time, and not waited for."""
    for seed in SEEDS:
        instance, rule = malleable_window(seed)
        parts = shrunk(instance, SdEngine(rule).plan(instance, None).jobs)
        awaited = {link.job for job in instance.jobs for link in job.after}
        for job, _ in parts:
            assert job.malleability is not None
            assert job.deadline is None
            assert job.id not in awaited
            assert {rule.guest_share, rule.mate_share} & set(job.malleability.shares)
        for time in {part.start for _, part in parts}:
            present = [part for _, part in parts if part.start <= time < part.end]
            crowd = Counter(placement.node for part in present for placement in part.allocation)
            assert max(crowd.values()) <= 2


def shrunk(instance: Instance, planned: Sequence[PlannedJob]) -> list[tuple[Job, Segment]]:
    """Return the segments in which jobs have less cores than they ask for."""
    jobs = {job.id: job for job in instance.jobs}
    return [
        (jobs[one.id], segment)
        for one in planned
        for segment in one.segments
        if sum(held.resources["cores"] for held in segment.allocation) < jobs[one.id].request.totals["cores"]
    ]


@pytest.mark.parametrize("seed", seeds(60))
def test_policy_is_its_naive_twin(seed: int) -> None:
    """Going from event to event gives the starts, ends and nodes that looking in every second gives (SD-2)."""
    dice = Random(seed)
    size, limit = dice.randint(2, 5), dice.choice([None, None, 2, 5, math.inf])
    tasks = [
        Task(
            name=f"j{number:02}",
            submit=dice.randint(0, 40),
            walltime=dice.choice([3, 5, 8, 13, 40, 61]),
            count=dice.randint(1, size),
            is_malleable=dice.random() < 0.8,
        )
        for number in range(dice.randint(4, 14))
    ]
    rule = SdRule(name="twin", max_slowdown=limit, most_mates=dice.randint(1, 3), pi_weight=dice.choice(list(PiWeight)))
    sd_by_the_second(tasks, size, limit, rule.most_mates, by_nodes=rule.pi_weight is PiWeight.NODES)
    outcome = SdEngine(rule).plan(window_of(tasks, size), None)
    assert_judged(window_of(tasks, size), outcome)
    assert {job.id: (job.start, job.end, held(job)) for job in outcome.jobs} == {
        task.name: (task.start, task.end, sorted(task.nodes + [node for mate in task.mates for node in mate.nodes]))
        for task in tasks
    }


def window_of(tasks: Sequence[Task], size: int) -> Instance:
    """Return tasks as a window."""
    half = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
    jobs = [
        waiting(
            task.name,
            task.walltime,
            chunk(task.count, cores=4),
            submit=task.submit,
            malleability=half if task.is_malleable else None,
        )
        for task in tasks
    ]
    return window([nodes(" ".join(f"n{node}" for node in range(size)), cores=4)], *jobs)


def held(planned: PlannedJob) -> list[int]:
    """Return the numbers of the nodes of a job."""
    return sorted(int(placement.node.removeprefix("n")) for placement in planned.segments[0].allocation)


def bursty_window(seed: int) -> Instance:
    """Return 60 malleable jobs in bursts of 20: narrow and wide, short and long, evenly in their logarithms."""
    dice = Random(seed)
    jobs: list[Job] = []
    arrival = 0
    while len(jobs) < 60:
        for _ in range(20):
            walltime = int(math.exp(dice.uniform(math.log(60), math.log(40_000))))
            job = waiting(f"j{len(jobs):02}", walltime, chunk(int(2 ** dice.uniform(0, 4.5)), cores=16))
            half = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
            jobs.append(replace(job, submit=arrival + dice.randint(0, 600), malleability=half))
        arrival += dice.randint(3_000, 40_000)
    return window([nodes(" ".join(f"n{node:02}" for node in range(32)), cores=16)], *jobs)


def test_slowdown_in_bursts() -> None:
    """With all jobs malleable, slowdown against the unshrunk runtime is clearly lower, response lower (SD-14)."""
    static, shared = ({"response": 0.0, "slowdown": 0.0} for _ in range(2))
    for seed in range(6):
        instance = bursty_window(seed)
        walltimes = {job.id: job.walltime for job in instance.jobs}
        submits = {job.id: job.submit for job in instance.jobs}
        for engine, sums in (("conservative", static), ("sd_inf", shared)):
            outcome = POLICIES[engine].plan(instance, None)
            assert_judged(instance, outcome)
            for job in outcome.jobs:
                sums["response"] += job.end - submits[job.id]
                sums["slowdown"] += (job.end - submits[job.id]) / walltimes[job.id]
    assert shared["slowdown"] < 0.75 * static["slowdown"]
    assert shared["response"] < 0.95 * static["response"]
