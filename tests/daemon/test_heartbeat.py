"""The dead-man switch: when the heart stops everything is handed back, and not before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cpsched.errors import BridgeError
from cpsched.site.bridge import JobState, MemoryManager, Order, Receipt, Snapshot
from cpsched.site.daemon import Watchdog, hand_back
from cpsched.site.daemon.heartbeat import beat
from tests.bridge.played_world import PlayedWorld
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


class Tired(MemoryManager):
    """A manager each command of which takes eight seconds, amid which a watchdog looks, and a test. Mutable."""

    def __init__(self, world: PlayedWorld, heart: Path) -> None:
        super().__init__(world)
        self.lines = Lines()
        self.watchdog = Watchdog(MemoryManager(world), heart, 180, self.lines.log, clock=self.clock)
        self.held: set[str] = set()
        self.was_freed: list[str] = []

    def clock(self) -> float:
        """Return seconds."""
        return float(self.world.now)

    def _wait(self, commands: int) -> None:
        for _ in range(commands):
            self.world.advance(self.world.now + 8)
            self.watchdog.look()
            waiting = {name for name, entry in self.world.jobs.items() if entry.state is JobState.WAITING}
            held = {name for name in waiting if self.world.jobs[name].is_steered}
            self.was_freed += sorted(self.held & waiting - held)
            self.held = held

    def snapshot(self) -> Snapshot:
        """Ask what Slurm is asked: for a look, lines, jobs, factors, nodes, and so on."""
        self._wait(12)
        return super().snapshot()

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Look before, order, and look afterwards."""
        self._wait(2)
        receipts = super().apply(orders)
        self._wait(3)
        return receipts


def test_a_slow_manager_lengthens_cycles_and_nothing_is_handed_back(tmp_path: Path) -> None:
    """No job of a living daemon is handed back, in its first cycle either; no hold ends, and jobs run as planned."""
    long = [job(f"j{number}", "2:ncpus=4", walltime=900, runtime=800) for number in range(4)]
    there = world(*long, gate_is_closed=False)
    heart = tmp_path / "heart"
    manager = Tired(there, heart)
    settings = replace(LIVE, heartbeat=heart, budget=10.0)
    daemon, lines = daemon_on(there, tmp_path, settings, manager=manager, clock=manager.clock)
    assert daemon.cycle()
    assert manager.held
    manager.lines.clear()  # the gate may have been opened before there was a plan
    for _ in range(80):
        assert daemon.cycle()
        if all(entry.state.is_over for entry in there.jobs.values()):
            break
    assert manager.was_freed == []
    assert manager.lines.read() == []
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}
    started = [line["job"] for line in lines.read() if line["event"] == "JobStarted"]
    assert sorted(started) == ["j1", "j2", "j3"]  # before the first look the manager had started one itself


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
