"""Running MiniZinc in tests: every plan that it offers is held to the rules, and one that breaks any is a failure."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Outcome
from cpsched.mzn import MiniZinc, Window, model_path
from tests.search.searched import board_of, planned

__all__ = ["modelled", "needs_minizinc", "postponed", "printed_by"]

needs_minizinc = pytest.mark.skipif(
    shutil.which("minizinc") is None, reason="MiniZinc is not installed (apt-get install minizinc)"
)


def modelled(instance: Instance, *, first: Outcome | None = None) -> Board:
    """Return the board after MiniZinc with Gecode began from a plan (the planner's); no offer was refused."""
    board = board_of(instance, first or planned(instance))
    MiniZinc().improve(instance, board, seed=0)
    assert not board.events
    return board


def postponed(instance: Instance, seconds: int) -> Outcome:
    """Return the planner's plan with all that waits put off: a poor plan, but one that keeps the rules."""
    outcome = planned(instance)
    waiting = {job.id for job in instance.elements() if job.running is None}
    return replace(outcome, jobs=tuple(_later(job, seconds) if job.id in waiting else job for job in outcome.jobs))


def _later(job: PlannedJob, seconds: int) -> PlannedJob:
    segments = tuple(replace(one, start=one.start + seconds, end=one.end + seconds) for one in job.segments)
    return replace(job, start=job.start + seconds, end=job.end + seconds, segments=segments)


def printed_by(model: str, window: Window, folder: Path) -> str:
    """Return what ``minizinc`` prints for a model and a window, as it is run by hand."""
    data = folder / "window.json"
    data.write_text(json.dumps(window.data))
    command = ["minizinc", "--solver", "gecode", str(model_path(model)), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout + done.stderr
