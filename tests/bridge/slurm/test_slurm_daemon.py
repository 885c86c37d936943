"""The daemon's own process in the loop of a real slurmctld, as an operator runs it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpsched.site.bridge import JobFacts, JobState
from tests.bridge.slurm.laboratory import ROOT, Laboratory
from tests.bridge.slurm.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

JOBS = 100
#: Seconds between the ordered second and the start, of nine jobs of ten, and of all: Slurm's scheduler ticks once a
#: second, and a job waits for the end of the one before it on its nodes.
LATE, LATEST = 8, 40


@pytest.fixture
def site(lab: Laboratory, tmp_path: Path) -> Iterator[Site]:
    """Return a live site; its processes end with the test."""
    made = Site(lab, tmp_path)
    yield made
    made.end()


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


def wide(lab: Laboratory, count: int) -> list[str]:
    """Submit jobs that have to run one after the other."""
    return [lab.submit("--nodes=8", "--exclusive", "--time=1", seconds=2) for _ in range(count)]


def test_a_hundred_jobs_run_once_where_and_when_ordered(site: Site) -> None:
    """All jobs complete without a restart, on the nodes of the last order and not before its second; none is lost."""
    lab, chance = site.lab, random.Random(7)
    daemon = site.daemon()
    jobs = [lab.submit(*shape(chance), "--time=1", seconds=chance.randint(1, 4)) for _ in range(JOBS)]
    facts: dict[str, JobFacts] = {}
    end = time.monotonic() + 400
    while not all(job in facts and facts[job].state.is_over for job in jobs):
        assert time.monotonic() < end, site.log()[-5000:]
        time.sleep(2)
        facts |= lab.manager.snapshot().jobs
    assert {facts[job].state for job in jobs} == {JobState.COMPLETED}
    assert {facts[job].restarts for job in jobs} == {0}
    orders = site.orders()
    assert set(orders) == set(jobs)
    late = []
    for job in jobs:
        at, nodes = orders[job][-1]
        started = facts[job].start
        assert started is not None
        assert started >= min(second for second, _ in orders[job]), job
        assert facts[job].nodes == nodes, job
        late.append(started - at)
    late.sort()
    assert late[int(JOBS * 0.9)] <= LATE
    assert late[-1] <= LATEST
    assert site.metric('cpsched_orders_total{kind="Start",result="done"}') >= JOBS
    assert site.metric("cpsched_dry_run") == 0
    # a cycle may end between two looks
    lab.wait(lambda: site.metric("cpsched_cycles_total") == site.metric("cpsched_cycle_seconds_count") > 1)
    assert site.metric("cpsched_vetoes_total") <= JOBS // 10
    assert time.time() - site.metric("cpsched_last_good_cycle_timestamp_seconds") < 30
    site.stop(daemon)


def test_from_a_dry_run_to_production_and_back_out(site: Site) -> None:
    """The page for operators, step by step: nothing is touched, then all is steered, then nothing is left of it."""
    lab = site.lab
    site.write(dry_run=True)
    daemon = site.daemon()
    jobs = wide(lab, 3)
    lab.wait(lambda: site.metric('cpsched_jobs{state="planned"}') >= 1)
    assert not lab.gate.exists()
    assert all(not note for *_, note in site.waiting())
    assert site.orders() == {}
    site.write(dry_run=False)
    daemon.send_signal(signal.SIGHUP)
    lab.wait(lab.gate.exists)
    jobs += wide(lab, 3)
    lab.wait(lambda: all(note.startswith("cpsched:1") for *_, note in site.waiting()))
    lab.wait(lambda: lab.facts(jobs[3]).state is JobState.RUNNING)
    assert jobs[3] in site.orders()
    site.stop(daemon)
    assert not lab.gate.exists()
    assert all(not note and not begin.startswith("2099") for _, begin, note in site.waiting())
    later = lab.submit()
    lab.wait(lambda: lab.facts(later).state is JobState.RUNNING)
    site.wait_for_silence(60)
    done = lab.manager.snapshot().jobs
    assert {done[job].state for job in jobs} == {JobState.COMPLETED}


def test_the_watchdog_hands_back_when_the_daemon_is_killed(site: Site) -> None:
    """After kill -9 Slurm has all jobs back within the set time, and runs them; a new daemon takes them up again."""
    lab = site.lab
    daemon = site.daemon()
    watchdog = site.start("--watchdog")
    jobs = wide(lab, 6)
    lab.wait(lambda: len(site.waiting()) >= 4 and all(note for *_, note in site.waiting()))
    daemon.kill()
    killed = time.monotonic()
    lab.wait(lambda: not lab.gate.exists() and all(not note for *_, note in site.waiting()))
    assert time.monotonic() - killed >= 4  # ten seconds, of which a period may have passed before
    before = len(site.waiting())
    lab.wait(lambda: len(site.waiting()) < before)
    again = site.daemon()
    lab.wait(lambda: all(note for *_, note in site.waiting()))
    site.wait_for_silence(90)
    facts = lab.manager.snapshot().jobs
    assert {facts[job].state for job in jobs} == {JobState.COMPLETED}
    assert {facts[job].restarts for job in jobs} == {0}
    site.stop(again)
    site.stop(watchdog)


@pytest.mark.large
def test_the_benchmark_beside_slurm_itself_works() -> None:
    """Bench slurm plays a short list on three clusters, and prints all rows of its table."""
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(ROOT / "scripts" / "bench"), "slurm", "--jobs", "5", "--loads", "5", "--seeds", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if ", seed 0 |" in line]
    assert rows == [f"{kind}, seed 0" for kind in ("Slurm", "order, wspt_list", "exact, wspt_list")]
