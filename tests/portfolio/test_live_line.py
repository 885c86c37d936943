"""The line that says how far a solve is."""

from __future__ import annotations

import io
import sys

import pytest

from cpsched.portfolio.lanes import live_line


def test_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look is written over the one before, the user's function is asked too, and the line is gone at last."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with live_line(lambda value, bound, seconds: value > 10, 60) as told:
        assert [told(1234.5, None, 0.1), told(9.0, 8.0, 0.2)] == [True, False]
    assert shown.getvalue().split("\r")[1:] == [
        "best 1,234.5, no bound yet, 0 of 60 s",
        "best 9, bound 8, 0 of 60 s".ljust(len("best 1,234.5, no bound yet, 0 of 60 s")),
        " " * len("best 1,234.5, no bound yet, 0 of 60 s"),
        "",
    ]
