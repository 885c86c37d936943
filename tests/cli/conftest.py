"""A window of four jobs on two nodes, its plan made by hand, and a way to run commands on them.

::

    n1 | r r r r r a a a a a a a a a a      r runs until 50; a needs both nodes; b waits for nobody;
    n2 | b b b b b a a a a a a a a a a      c asks for more cores than a node has
       0         50                  150
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cpsched.cli import main

Run = Callable[..., Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The two documents, as values and as files."""

    instance: dict[str, Any]
    plan: dict[str, Any]
    folder: Path

    @property
    def instance_file(self) -> Path:
        """The instance document as a file."""
        return self.write("window.json", self.instance)

    @property
    def plan_file(self) -> Path:
        """The plan document as a file."""
        return self.write("plan.json", self.plan)

    def write(self, name: str, document: object) -> Path:
        """Write a document into the folder and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path


@pytest.fixture
def window(tmp_path: Path) -> Window:
    """Return the hand-made window.

    Waits: a 50 s, b 50 s (all before now), each over an expected wait of 100 s: the value is 1.0, 0.5 of it suffered.
    """
    running = [{"node": "n1", "resources": {"cores": 4}}]
    instance = {
        "format": "cpsched-instance/1",
        "name": "hand-made",
        "now": 0,
        "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
        "queues": {"debug": {"expected_wait": 100}},
        "jobs": [
            {"id": "r", "queue": "debug", "submit": -20, "walltime": 60, "request": "1:ncpus=4",
             "running": {"start": -10, "allocation": running}},
            {"id": "a", "user": "ada", "queue": "debug", "submit": 0, "walltime": 100, "request": "2:ncpus=4"},
            {"id": "b", "user": "bob", "queue": "debug", "submit": -50, "walltime": 50, "request": "1:ncpus=2"},
            {"id": "c", "queue": "debug", "submit": 0, "walltime": 10, "request": "1:ncpus=8"},
        ],
    }  # fmt: skip
    whole = [{"node": node, "chunk": 0, "count": 1, "resources": {"cores": 4}} for node in ("n1", "n2")]
    half = [{"node": "n2", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    plan = {
        "format": "cpsched-plan/1",
        "instance": "hand-made",
        "now": 0,
        "objective": {
            "name": "weighted_wait", "value": 1.0, "bound": None, "gap": None, "planner": 1.0, "suffered": 0.5,
        },
        "engine": {"name": "planner", "version": "0.1.0", "budget": 10.0, "elapsed": 0.1, "stopped": "done"},
        "jobs": [
            planned("r", -10, 50, running),
            planned("a", 50, 150, whole),
            planned("b", 0, 50, half),
        ],
        "waiting_room": [{"id": "c", "reason": "unsatisfiable", "detail": "asks for 8 cores; a node has 4"}],
    }  # fmt: skip
    return Window(instance=instance, plan=plan, folder=tmp_path)


def planned(job: str, start: int, end: int, allocation: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entry of a rigid job in a plan."""
    return {
        "id": job,
        "start": start,
        "end": end,
        "segments": [{"start": start, "end": end, "allocation": allocation}],
    }


@pytest.fixture
def run() -> Run:
    """Return a function that runs one command line and gives its result; bugs come through as exceptions."""

    def run_command(*arguments: object, stdin: bytes | None = None, color: bool = False) -> Result:
        line = [str(argument) for argument in arguments]
        return CliRunner().invoke(main, line, input=stdin, catch_exceptions=False, color=color)

    return run_command
