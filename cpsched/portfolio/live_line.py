"""A line that says how far a solve is, for those who wait for it in a terminal or a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cpsched.portfolio.lanes import OnPlan


@contextmanager
def live_line(on_plan: OnPlan | None, budget: float) -> Iterator[OnPlan]:
    """Yield a callback that writes value, bound and seconds over one line of stderr, and calls another one.

    Notebooks know the carriage return as terminals do. The line is gone at the end. `budget`: of the solve, in seconds.
    """
    written = 0

    def show(value: float, bound: float | None, elapsed: float) -> object:
        nonlocal written
        proven = "no bound yet" if bound is None else f"bound {bound:,.6g}"
        line = f"best {value:,.6g}, {proven}, {elapsed:.0f} of {budget:.0f} s"
        sys.stderr.write(f"\r{line.ljust(written)}")
        sys.stderr.flush()
        written = max(written, len(line))
        return None if on_plan is None else on_plan(value, bound, elapsed)

    try:
        yield show
    finally:
        if written:
            sys.stderr.write(f"\r{' ' * written}\r")
            sys.stderr.flush()
