"""A daemon that is killed at random instants, with signal 9, loses no job and starts none twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cpsched.site.bridge import JobState
from cpsched.site.daemon import Store
from tests.daemon.stored_orders import orders_in
from tests.daemon.world_server import NUM_JOBS, RemoteManager
from tests.sizes import LARGE

#: PlayedWorld seconds per second.
SPEED = 4.0
KILLS = 20 if LARGE else 3

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin(repository: Path, tmp_path: Path) -> Iterator[Begin]:
    """Yield what begins a process of `world_server` and waits for its first line; all of them end with the test."""
    with ExitStack() as stack:

        def start(*arguments: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "tests.daemon.world_server", str(tmp_path / "w"), str(SPEED), *arguments],
                cwd=repository,
                env={**os.environ, "PYTHONPATH": str(repository)},
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            stack.enter_context(process.stdout)
            assert process.stdout.readline()
            return process

        yield start


@pytest.mark.slow
def test_a_daemon_killed_at_random_instants_loses_and_doubles_nothing(begin: Begin, tmp_path: Path) -> None:
    """However often the daemon is killed, all jobs run once, on nodes that stood in its store before they started."""
    rng = random.Random(0)
    database = str(tmp_path / "cpsched.db")
    begin()
    manager = RemoteManager(str(tmp_path / "w"))
    for _ in range(KILLS):
        daemon = begin("daemon", database)
        time.sleep(rng.uniform(0, 0.6))
        daemon.kill()
        daemon.wait()
    daemon = begin("daemon", database)
    deadline = time.monotonic() + 240
    while True:
        jobs = manager.snapshot().jobs
        if len(jobs) == NUM_JOBS and all(facts.state.is_over for facts in jobs.values()):
            break
        assert time.monotonic() < deadline, {name: facts for name, facts in jobs.items() if not facts.state.is_over}
        time.sleep(0.2)
    assert {facts.state for facts in jobs.values()} == {JobState.COMPLETED}
    starts = manager.starts()
    assert len(starts) == len({(job, restarts) for job, restarts, *_ in starts}) == NUM_JOBS
    daemon.terminate()
    assert daemon.wait(timeout=60) == 0
    store = Store(f"sqlite:///{database}")
    ordered = {
        (order.job, tuple(sorted({one["node"] for one in order.content["allocation"]})))
        for order in orders_in(store)
        if order.kind == "Start"
    }
    assert {(job, nodes) for job, _, _, nodes, is_steered in starts if is_steered} <= ordered
    assert all(is_steered for *_, is_steered in starts)
    assert store.load().plan == {}
    assert store.load().unanswered == 0
    store.close()


@pytest.mark.slow
def test_a_daemon_that_is_told_to_stop_hands_back(begin: Begin, tmp_path: Path) -> None:
    """On SIGTERM the daemon ends with code 0, and the manager's own scheduler runs what is left."""
    begin()
    manager = RemoteManager(str(tmp_path / "w"))
    daemon = begin("daemon", str(tmp_path / "cpsched.db"))
    time.sleep(1)
    daemon.terminate()
    assert daemon.wait(timeout=60) == 0
    snapshot = manager.snapshot()
    assert snapshot.gate_is_closed is False
    assert not any(facts.is_steered for facts in snapshot.jobs.values())
