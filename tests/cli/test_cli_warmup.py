"""``cpsched warmup``."""

from __future__ import annotations

import re

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run


def test_warmup_calls_the_planner_and_tells_the_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are compiled once, and the seconds that it took are printed."""
    calls: list[None] = []
    monkeypatch.setattr("cpsched.planner.warmup", lambda: calls.append(None))
    shown = run("warmup")
    assert shown.exit_code == ExitCode.FINE
    assert len(calls) == 1
    assert re.fullmatch(r"The kernels are ready after \d+\.\d s\.\n", shown.stdout)
