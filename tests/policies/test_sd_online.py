"""SD-Policy on-line: worked numbers, its naive twin, and records that the judge has seen."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cpsched.domain import Instance, Malleability, Outage, PlannedJob, RuntimeModel
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.lab.policies.sd.mates import PiWeight, SdRule
from cpsched.lab.policies.sd.sd_policy import SdPolicy, malleable_value
from cpsched.lab.policies.sd.static_backfill import StaticBackfill
from cpsched.lab.sim import Checkpoint, Decision, History, News, Site, simulate
from cpsched.lab.workloads import cirne_like
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.policies.naive_sd_online import Task, sd_online_by_the_second
from tests.policies.test_sd_rules import FREE, HOUR, lending, malleable, worked
from tests.sim.played import played
from tests.sizes import seeds

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


@pytest.mark.parametrize(
    ("rule", "without", "mates"),
    [
        (FREE, "", "C"),
        (FREE, "C", "AB"),
        (FREE, "AC", "D"),
        (replace(FREE, pi_weight=PiWeight.NODES), "", "AB"),
        (SdRule(name="dyn", max_slowdown=None), "", "C"),
        (SdRule(name="dyn", max_slowdown=None), "AC", ""),
        (SdRule(name="four", max_slowdown=4.1), "AC", ""),
        (SdRule(name="four", max_slowdown=4.2), "AC", "D"),
        (replace(FREE, most_mates=1), "C", "D"),
    ],
)
def test_worked_choice(rule: SdRule, without: str, mates: str) -> None:
    """Plain {C} 1.75, then {A, B} 3.125, then {D} 4.1; by nodes {A, B} 6.25; the mean of slowdowns drops D (SD-8)."""
    policy = SdPolicy(rule, None)
    found = {job.id: job for job in played(worked(without), policy).record().jobs}
    assert "".join(name for name in "ABCDE" if name in found and len(found[name].segments) > 1) == mates
    assert policy.counters == {"guests": int(bool(mates)), "mates": len(mates)}


def test_worked_limits() -> None:
    """With A and B as mates the limits are 5 h, 9 h and, for the guest, 2 h; it ends after half an hour of work, when
    an hour is over, and they have lost half an hour (SD-3, SD-8, SD-11).
    """
    rule = replace(FREE, pi_weight=PiWeight.NODES)
    found = {job.id: job for job in played(worked(), SdPolicy(rule, None)).record().jobs}
    assert [(found[name].end - found[name].start) / HOUR for name in "ABN"] == [5, 9, 2]
    early = replace(
        worked(), jobs=tuple(replace(job, runtime=1800 if job.id == "N" else None) for job in worked().jobs)
    )
    found = {job.id: job for job in played(early, SdPolicy(rule, None)).record().jobs}
    assert [(found[name].end - found[name].start) / HOUR for name in "ABN"] == [4.5, 8.5, 1]


def test_shared_cores_are_used_once() -> None:
    """A guest has half of the cores for 200 of the mate's 400 s: the machine is full, and no more (SD-12)."""
    mate, guest = malleable("a", 300), replace(malleable("g", 100), submit=0)
    history = played(window([nodes("n", cores=4)], mate, guest), SdPolicy(FREE, None))
    assert history.counters == {"guests": 1, "mates": 1}
    assert history.runs.cores.tolist() == [3, 2]
    assert history.summary().allocated == 1


def test_a_mate_that_ends_early_leaves_its_cores_to_the_guest() -> None:
    """The mate's walltime is 100 s, but it ends after 30 s of work; its guest goes on with all cores (SD-10)."""
    mate, guest = (
        replace(waiting(name, walltime, chunk(cores=4)), malleability=HALF, runtime=runtime)
        for name, walltime, runtime in (("m", 100, 30), ("g", 40, 40))
    )
    record = played(window([nodes("a", cores=4)], mate, guest), SdPolicy(FREE, None)).record()
    assert {job.id: parts(job) for job in record.jobs} == {
        "m": [(0, 60, {"a": 2})],
        "g": [(0, 60, {"a": 2}), (60, 70, {"a": 4})],
    }


@pytest.mark.parametrize("seed", seeds(80))
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


@pytest.mark.parametrize("seed", seeds(20))
def test_static_backfill_without_malleable_jobs(seed: int) -> None:
    """With no malleable job the record is that of static backfilling, job by job (SD-14)."""
    dice = Random(seed)
    size, depth = dice.randint(2, 6), dice.choice([None, 1, 3])
    workload = workload_of(drawn_tasks(dice, size, 0), size)
    policy = SdPolicy(SdRule(name="twin", max_slowdown=None), depth)
    assert played(workload, policy).record().jobs == played(workload, StaticBackfill(depth)).record().jobs


def parts(planned: PlannedJob) -> list[tuple[int, int, dict[str, int]]]:
    """Return start, end and cores by node of each segment."""
    found = []
    for segment in planned.segments:
        cores: dict[str, int] = {}
        for placement in segment.allocation:
            cores[placement.node] = cores.get(placement.node, 0) + placement.resources["cores"]
        found.append((segment.start, segment.end, cores))
    return found


@pytest.mark.parametrize("seed", seeds(25))
def test_nodes_that_fail(seed: int) -> None:
    """Guests and mates whose nodes fail start anew, the others have what is left, and everybody comes to an end."""
    dice = Random(seed)
    tasks = drawn_tasks(dice, 4, 0.9)
    outages = []
    for _ in range(dice.randint(1, 4)):
        start = dice.randint(1, 80)
        names = tuple(dice.sample(["n0", "n1", "n2", "n3"], dice.randint(1, 2)))
        outages.append(Outage(nodes=names, start=start, end=start + dice.randint(1, 40)))
    workload = replace(workload_of(tasks, 4), outages=tuple(outages))
    for policy in (SdPolicy(FREE, dice.choice([None, 3])), malleable_value(None), StaticBackfill(2)):
        record = played(workload, policy).record()
        assert len(record.jobs) == len(tasks)


@pytest.mark.parametrize("seed", seeds(25))
def test_decisions_that_take_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each decision takes effect a second or two late, guests and mates still have what is theirs."""
    ticks = count(step=1.5)
    monkeypatch.setattr("cpsched.lab.sim.scheduler_loop.time.perf_counter", lambda: next(ticks))
    dice = Random(seed)
    workload = workload_of(drawn_tasks(dice, 4, 0.9), 4)
    history = simulate(workload, SdPolicy(FREE, None), charge_overhead=True)
    assert not verify(instance_to_document(workload), plan_to_document(history.record()))
    assert len(history.record().jobs) == len(workload.jobs)


class Stopped(SdPolicy):
    """Is interrupted when it is asked for the fourth time."""

    asked = 0

    def decide(self, site: Site, news: News) -> Decision:
        """Decide three times."""
        self.asked += 1
        if self.asked == 4:
            raise KeyboardInterrupt
        return super().decide(site, news)


@pytest.mark.parametrize("seed", range(8))
def test_resuming_from_a_checkpoint(seed: int, tmp_path: Path) -> None:
    """The sharing of nodes is found out anew: guests end, and mates have their cores back."""
    workload = workload_of(drawn_tasks(Random(seed), 3, 1), 3)
    path = tmp_path / "state.npz"
    with contextlib.suppress(KeyboardInterrupt):
        simulate(workload, Stopped(FREE, None), checkpoint=Checkpoint(path=path, scheduler="sd"))
    history = simulate(workload, SdPolicy(FREE, None), checkpoint=Checkpoint(path=path, scheduler="sd", resume=True))
    assert not verify(instance_to_document(workload), plan_to_document(history.record()))
    assert len(history.record().jobs) == len(workload.jobs)


def test_by_value_mates_are_those_that_lose_least() -> None:
    """A guest of 10 s saves 80 s, and takes 10 s from the longer one of two; one of 20 s that saves 5 s is not worth 20
    s of a mate of 25 s.
    """
    mates = [lending(name, node, walltime=seconds) for name, node, seconds in (("x", "a", 100), ("y", "b", 1000))]
    record = played(window([nodes("a b", cores=4)], *mates, malleable("g", 10)), malleable_value()).record()
    assert {job.id: (job.start, job.end) for job in record.jobs} == {"x": (0, 100), "y": (0, 1010), "g": (0, 20)}
    short = lending("x", "a", walltime=25)
    record = played(window([nodes("a", cores=4)], short, malleable("g", 20)), malleable_value()).record()
    assert {job.id: (job.start, job.end) for job in record.jobs} == {"x": (0, 25), "g": (25, 45)}


@pytest.mark.slow
def test_slowdown_in_bursts() -> None:
    """With all jobs malleable, mean slowdown is clearly lower than that of static backfilling, and lower still by value
    (SD-14); with none malleable value has less to gain.
    """
    workload = cirne_like(250, 3, nodes=64, cores=8, widest=16)
    half = tuple(replace(job, malleability=Malleability(shares=(0.5,))) for job in workload.jobs)
    shared = replace(workload, jobs=half)
    static, sd, value, rigid = (
        mean_slowdown(played(of, policy))
        for of, policy in (
            (workload, StaticBackfill(None)),
            (shared, make_scheduler("sd_dyn")),
            (shared, malleable_value(None)),
            (workload, malleable_value(None)),
        )
    )
    assert sd < 0.75 * static
    assert value < 0.5 * sd
    assert value < rigid


def mean_slowdown(history: History) -> float:
    """Return the mean of response by unshrunk runtime."""
    runs = history.runs
    return float(((runs.end - runs.submit) / np.minimum(runs.runtime, runs.walltime)).mean())
