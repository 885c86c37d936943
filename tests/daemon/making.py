"""Daemons for tests: on a world in virtual time, with the planner alone, and a log that can be read."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import structlog

from cpsched.portfolio import WindowPlanner
from cpsched.site.bridge import JobState, MemoryManager
from cpsched.site.daemon import Daemon, Planner, Policy, Settings, Store
from cpsched.site.daemon.choosing import Choices
from cpsched.site.daemon.state import EngineChosen
from tests.bridge.played_world import PlayedWorld

__all__ = ["LIVE", "Lines", "chooses", "daemon_on", "finish", "planner"]

#: Gives orders, in a world whose time stands still except when it is watched.
LIVE = Settings(policy=Policy(is_dry_run=False, horizon=10, patience=30, grain=10), budget=0.0, period=10, rate=0.0)


class Lines:
    """A log in memory. Mutable."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.log = structlog.wrap_logger(
            structlog.WriteLogger(self._stream),
            processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer(default=str)],
        )

    def clear(self) -> None:
        """Forget all lines."""
        self._stream.seek(0)
        self._stream.truncate()

    def read(self) -> list[dict[str, Any]]:
        """Return all lines."""
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]


def planner(gain: float = 0.01, engine: str = "planner") -> Planner:
    """Make a planner without solvers, whose failures are raised."""

    def report(what: str, error: Exception) -> None:
        raise AssertionError(what) from error

    return Planner(WindowPlanner(name=engine, budget=0.0), gain=gain, report=report)


def daemon_on(
    there: PlayedWorld, folder: Path, settings: Settings = LIVE, *, manager: MemoryManager | None = None, **more: Any
) -> tuple[Daemon, Lines]:
    """Make a daemon that has begun."""
    lines = Lines()
    store = Store(f"sqlite:///{folder}/cpsched.db")
    made = more.pop("planner", None) or planner()
    daemon = Daemon(manager or MemoryManager(there), store, made, settings, log=lines.log, **more)
    daemon.begin()
    return daemon, lines


def finish(daemon: Daemon, most: int = 500) -> None:
    """Run cycles until no job waits or runs any more."""
    assert isinstance(daemon.manager, MemoryManager)
    there = daemon.manager.world
    for _ in range(most):
        daemon.cycle()
        busy = any(entry.state in (JobState.WAITING, JobState.RUNNING) for entry in there.jobs.values())
        if not busy and there.next_event is None:
            daemon.cycle()
            return
        daemon.manager.world.advance(there.now + 5)
    raise AssertionError(f"after {most} cycles there are jobs left at {there.now}")


def chooses(daemon: Daemon) -> dict[str, Any]:
    """Have a daemon choose an engine, and return the choice as readers see it."""
    trials = {"easy": {"wins": True, "ratio": 0.5}, "fcfs": {"wins": False, "ratio": 1.25}}
    chosen = {"engine": "easy", "usual": "planner", "since": 0, "jobs": 200, "trials": trials}
    kept = msgspec.convert(chosen, EngineChosen)
    daemon.settings = replace(daemon.settings, choices=Choices(engines=("planner", "easy", "fcfs"), command=()))
    daemon._chooser.begin(msgspec.to_builtins(kept), 0)
    return chosen
