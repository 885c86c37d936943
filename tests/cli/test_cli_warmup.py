"""``cpsched warmup``."""

from __future__ import annotations

import re

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run


def test_warmup_prepares_the_portfolio_and_tells_the_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the portfolio needs is compiled, and the seconds that it took are printed."""
    calls: list[str] = []
    monkeypatch.setattr("cpsched.portfolio.prepare", calls.append)
    shown = run("warmup")
    assert shown.exit_code == ExitCode.FINE
    assert calls == ["portfolio"]
    assert re.fullmatch(r"The kernels are ready after \d+\.\d s\.\n", shown.stdout)
