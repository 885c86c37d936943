"""What a dry run would have won: the same jobs, as they were and as they would have been."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.portfolio import WindowPlanner
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Planner, Policy
from cpsched.site.daemon.replay import replay
from tests.bridge.small_world import job, world
from tests.daemon.making import LIVE, daemon_on, finish, planner

#: Served in order, the long jobs come first; a plan lets the short ones go first.
JOBS = [
    job("r", "2:ncpus=4", walltime=50, runtime=50),
    *(job(f"long{number}", "2:ncpus=4", walltime=1000, submit=5, runtime=900) for number in range(2)),
    *(job(f"short{number}", "2:ncpus=4", walltime=10, submit=6, runtime=8) for number in range(5)),
    job("gone", "2:ncpus=4", walltime=10, submit=7),
]


def optimiser() -> Planner:
    """Make a planner with solvers."""
    engine = WindowPlanner(name="portfolio", budget=1.0)
    engine.prepare()
    return Planner(engine, gain=0.0, report=lambda what, error: pytest.fail(f"{what}: {error!r}"))


def test_jobs_that_have_not_started_are_in_nobodys_way(tmp_path: Path) -> None:
    """A job that still waits, whose runtime nobody knows, is not played for its whole walltime before others."""
    one = [
        job("r", "2:ncpus=4", walltime=50, runtime=50),
        job("ran", "2:ncpus=4", walltime=900, submit=1, runtime=20),
        job("waits", "2:ncpus=4", walltime=100, submit=2, runtime=20),
    ]
    watched = world(*one, gate_is_closed=False)
    daemon, _ = daemon_on(watched, tmp_path, replace(LIVE, policy=Policy()))
    for second in (20, 60, 80):
        watched.advance(second)
        if second == 60:
            watched.hold("waits")
        daemon.cycle()
    assert watched.jobs["ran"].state is JobState.COMPLETED
    found = replay(daemon.store, planner(engine="wspt_list"))
    assert found is not None
    assert (found.jobs, found.wait, found.wait_planned) == (1, 49, 49)


@pytest.mark.slow
def test_a_report_compares_the_same_jobs_with_their_real_runtimes(tmp_path: Path) -> None:
    """The waits as they were are exactly those of the world; with cpsched the short jobs go first."""
    dry = replace(LIVE, policy=Policy())
    watched = world(*JOBS, gate_is_closed=False)
    daemon, _ = daemon_on(watched, tmp_path, dry)
    assert replay(daemon.store, planner()) is None
    watched.advance(20)
    daemon.cycle()
    watched.cancel("gone")
    finish(daemon)
    found = replay(daemon.store, optimiser())
    assert found is not None
    ran = [entry for entry in watched.jobs.values() if entry.state is JobState.COMPLETED and entry.job.id != "r"]
    waits = [(entry.start or 0) - entry.job.submit for entry in ran]
    assert found.jobs == len(waits) == 7
    assert found.wait == sum(waits) / 7
    assert abs(found.wqt - sum(waits) / 100) < 1e-9
    assert abs(found.wait_planned - found.wqt_planned * 100 / 7) < 1e-9
    assert found.wait_planned < 0.5 * found.wait
