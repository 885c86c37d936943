"""Count the starts that move later from one call of `solve --warm` to the next, with and without promises."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarking.measure import print_table, say

from cpsched.domain import Instance, Plan
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from cpsched.planner import advanced, with_promised_starts
from cpsched.portfolio import prepare, solve
from tests.workloads.eurora_windows import eurora_window

#: Prices of a promise; None: `--warm` without `--promise`.
PRICES = (None, 1.0, 10.0, 100.0)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("windows", nargs="*", type=Path, help="instances (default: two generated ones)")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each plan (default: 10)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--seconds", type=int, default=60, help="seconds between two calls (default: 60)")
    parser.add_argument("--calls", type=int, default=3, help="calls after the first one (default: 3)")


def run(options: argparse.Namespace) -> None:
    """Print a table of windows and prices."""
    budget = 1.0 if options.quick else options.budget
    prepare()
    windows = [read_instance(path) for path in options.windows]
    if not windows:
        windows = [eurora_window(30, 1)] if options.quick else [eurora_window(230, 1), eurora_window(400, 2)]
    rows = []
    for window in windows:
        first = solve(window, budget=budget, workers=options.workers)
        for price in PRICES:
            say(f"{window.name}, {'no promise' if price is None else f'price {price:g}'}")
            rows.append(row_of(window, first, price, options.seconds, options.calls, budget, options.workers))
    header = [
        "window",
        "waiting",
        "--promise",
        "starts",
        "moved later",
        "seconds in all",
        "at most",
        "value at the end",
    ]
    note = (
        f"{options.calls} calls after the first one, {options.seconds} s apart; all jobs start and end as "
        f"planned, none arrive; portfolio with {budget:g} s and {options.workers} workers. Starts: those "
        "of waiting jobs, over all calls. The value is that of the last plan without what promises cost."
    )
    print_table("Starts that were told, and moved", header, rows, note)


def row_of(
    window: Instance, plan: Plan, price: float | None, seconds: int, calls: int, budget: float, workers: int
) -> list[str]:
    """Return a row of the table: one window, planned again and again."""
    waiting = sum(job.running is None for job in window.elements())
    starts, later = 0, list[int]()
    for _ in range(calls):
        window = advanced(window, plan, window.now + seconds)
        promised = window if price is None else with_promised_starts(window, plan, price)
        before = {job.id: job.start for job in plan.jobs if job.start >= window.now}
        plan = solve(promised, budget=budget, workers=workers, warm=plan)
        after = {job.id: job.start for job in plan.jobs}
        starts += len(before)
        later += [after[name] - start for name, start in before.items() if name in after and after[name] > start]
    plain = replace(window, jobs=tuple(replace(job, told=None) for job in window.jobs))
    value = objective_value(plain, plan.jobs)
    asked = "no" if price is None else f"={price:g}"
    return [window.name, str(waiting), asked, str(starts), str(len(later)), f"{sum(later):,}",
            f"{max(later, default=0):,}", f"{value:,.2f}"]  # fmt: skip
