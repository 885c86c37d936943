"""``cpsched warmup``."""

from __future__ import annotations

import re

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run


def test_warmup_prepares_all_and_tells_the_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the portfolio and simulations need is compiled, and the seconds that it took are printed."""
    calls: list[str] = []
    monkeypatch.setattr("cpsched.portfolio.prepare", calls.append)
    monkeypatch.setattr("cpsched.lab.sim.warm_up_simulation", lambda: calls.append("simulation"))
    shown = run("warmup")
    assert shown.exit_code == ExitCode.FINE
    assert calls == ["portfolio", "simulation"]
    assert re.fullmatch(r"The kernels are ready after \d+\.\d s\.\n", shown.stdout)
