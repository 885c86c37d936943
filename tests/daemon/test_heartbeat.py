"""The dead-man switch: when the heart stops everything is handed back, and not before."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from cpsched.errors import BridgeError
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Watchdog, hand_back
from cpsched.site.daemon.heartbeat import beat
from tests.bridge.small_world import job, world
from tests.daemon.making import LIVE, Lines, daemon_on


def test_a_dead_daemon_costs_the_set_time(tmp_path: Path) -> None:
    """After the set seconds without a heartbeat the manager's own scheduler has all jobs; new ones too."""
    there = world(job("a"), job("b"), job("c"))
    heart = tmp_path / "heart"
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, heartbeat=heart))
    daemon.cycle()
    seconds, lines = [0.0], Lines()
    watchdog = Watchdog(daemon.manager, heart, 60, lines.log, clock=lambda: seconds[0])
    for seconds[0] in (30.0, 60.0):
        assert not watchdog.look()
    assert there.gate_is_closed
    seconds[0] = 61
    assert watchdog.look()
    assert not there.gate_is_closed
    assert not any(entry.is_steered for entry in there.jobs.values() if entry.state is JobState.WAITING)
    there.advance(300)
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}


def test_a_beating_heart_keeps_the_watchdog_still(tmp_path: Path) -> None:
    """As long as the file changes nothing is handed back, whatever the system's clock says."""
    heart = tmp_path / "heart"
    there = world(job("a"))
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    seconds, lines = [0.0], Lines()
    watchdog = Watchdog(daemon.manager, heart, 60, lines.log, clock=lambda: seconds[0])
    for minute, stamp in enumerate((10**9, 5, 2 * 10**9, 7)):
        beat(heart)
        os.utime(heart, (stamp, stamp))
        seconds[0] = 50.0 * minute
        assert not watchdog.look()
    assert there.gate_is_closed
    seconds[0] += 61
    assert watchdog.look()
    beat(heart)
    assert not watchdog.look()
    assert [line["event"] for line in lines.read()] == [
        "handed back to the manager's own scheduler",
        "the heart beats again",
    ]


def test_a_watchdog_tries_again(tmp_path: Path) -> None:
    """A manager that does not answer is asked again at the next look."""
    there = world(job("a"), job("b"), job("c"))
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    seconds, lines = [0.0], Lines()
    snapshot = daemon.manager.snapshot

    def fail() -> None:
        raise BridgeError(("scontrol",), "no answer")

    daemon.manager.snapshot = fail  # type: ignore[method-assign, assignment]  # a manager that hangs
    watchdog = Watchdog(daemon.manager, tmp_path / "heart", 60, lines.log, clock=lambda: seconds[0])
    seconds[0] = 61
    assert watchdog.look()
    assert there.gate_is_closed
    daemon.manager.snapshot = snapshot  # type: ignore[method-assign]  # as it was
    assert watchdog.look()
    assert not there.gate_is_closed
    assert hand_back(daemon.manager).orders == 0
