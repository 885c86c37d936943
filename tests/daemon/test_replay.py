"""What a store has seen, as a history that can be played again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cpsched.site.bridge import JobState
from cpsched.site.daemon import Policy, watched
from tests.bridge.small_world import job, world
from tests.daemon.making import LIVE, daemon_on


def test_jobs_that_have_not_started_are_in_nobodys_way(tmp_path: Path) -> None:
    """The others are there with their real starts and runtimes; one whose runtime nobody knows is not played."""
    jobs = [
        job("r", "2:ncpus=4", walltime=50, runtime=50),
        job("ran", "2:ncpus=4", walltime=900, submit=1, runtime=20),
        job("waits", "2:ncpus=4", walltime=100, submit=2, runtime=20),
    ]
    seen = world(*jobs, gate_is_closed=False)
    daemon, _ = daemon_on(seen, tmp_path, replace(LIVE, policy=Policy()))
    assert watched(daemon.store) is None
    for second in (20, 60, 80):
        seen.advance(second)
        if second == 60:
            seen.hold("waits")
        daemon.cycle()
    assert seen.jobs["ran"].state is JobState.COMPLETED
    found = watched(daemon.store)
    assert found is not None
    instance, starts = found
    assert starts["ran"] == seen.jobs["ran"].start == 50
    assert {one.id: one.runtime for one in instance.jobs}["ran"] == 20
    assert "waits" not in {one.id for one in instance.jobs} | starts.keys()


def test_a_history_begins_with_an_idle_machine(tmp_path: Path) -> None:
    """The first window has no job, and those that come after it are the history."""
    seen = world(gate_is_closed=False)
    daemon, _ = daemon_on(seen, tmp_path, replace(LIVE, policy=Policy()))
    daemon.cycle()
    found = watched(daemon.store)
    assert found is not None
    assert found[0].jobs == ()
