"""The daemon in the loop of a real slurmctld: 100 short jobs of mixed shapes, each once, where and when ordered."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cpsched.bridge import Gate, JobState, Order, Receipt, Result, Start
from cpsched.bridge.slurm import SlurmManager
from cpsched.daemon import Daemon, Policy, Settings, Store
from tests.bridge.slurm.laboratory import Laboratory
from tests.daemon.making import Lines, planner

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

JOBS = 100
#: Seconds between the ordered second and the start of nine jobs of ten: Slurm's scheduler ticks once a second, and
#: a job waits for the end of the one before it on its nodes.
LATE = 8


class Watched(SlurmManager):
    """A manager that keeps the orders that it was given. Mutable."""

    def keep(self) -> None:
        """Begin with no orders."""
        self.starts: dict[str, list[Start]] = {}

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, and keep those to start that were carried out."""
        receipts = super().apply(orders)
        for receipt in receipts:
            if isinstance(receipt.order, Start) and receipt.result in (Result.DONE, Result.ALREADY):
                self.starts.setdefault(receipt.order.job, []).append(receipt.order)
        return receipts


def shape(random: random.Random) -> tuple[str, ...]:
    """Return the request of one job."""
    kind = random.randrange(6)
    if kind == 0:
        return ("--nodes=2", f"--ntasks={random.randint(2, 16)}")
    if kind == 1:
        return (f"--gres=gpu:{random.randint(1, 2)}", f"--ntasks={random.randint(1, 4)}")
    if kind == 2:
        return ("--gres=mic:1",)
    if kind == 3:
        return ("--exclusive",)
    return (f"--ntasks={random.randint(1, 24)}",)


def test_a_hundred_jobs_run_once_where_and_when_ordered(lab: Laboratory, tmp_path: Path) -> None:
    """All jobs complete without a restart, on the nodes of the last order and not before its second; none is lost."""
    chance = random.Random(7)
    manager = Watched(lab.client, gate=lab.gate)
    manager.keep()
    assert manager.apply([Gate(is_closed=True)])[0].result is Result.DONE
    jobs = [lab.submit(*shape(chance), "--time=1", seconds=chance.randint(1, 4)) for _ in range(JOBS)]
    settings = Settings(policy=Policy(is_dry_run=False, horizon=3, patience=30, grain=10), budget=0.0, period=5)
    daemon = Daemon(manager, Store(f"sqlite:///{tmp_path}/cpsched.db"), planner(), settings, log=Lines().log)
    daemon.begin()
    end = time.monotonic() + 400
    where: dict[str, tuple[str, ...]] = {}
    while time.monotonic() < end:
        assert daemon.cycle()
        facts = manager.snapshot().jobs
        where |= {job: facts[job].nodes for job in jobs if facts[job].state is JobState.RUNNING}
        if all(facts[job].state.is_over for job in jobs):
            break
        time.sleep(0.3)
    assert {facts[job].state for job in jobs} == {JobState.COMPLETED}
    assert {facts[job].restarts for job in jobs} == {0}
    assert set(manager.starts) == set(jobs)
    for job in jobs:
        order = manager.starts[job][-1]
        started = facts[job].start
        assert started is not None
        assert started >= min(one.at for one in manager.starts[job]), job
        ordered = tuple(sorted({place.node for place in order.allocation}))
        assert where.get(job, ordered) == ordered, job
    assert len(where) > JOBS // 2
    late = sorted((facts[job].start or 0) - manager.starts[job][-1].at for job in jobs)
    assert late[int(JOBS * 0.9)] <= LATE
