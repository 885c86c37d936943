"""Say what 1, 2, 4 and 8 lanes are worth, without as many cores: lanes run one after the other, each for the budget.

As on a Dask cluster, each lane searches for a slice of the budget from the best plan of all, and then all exchange
theirs. Seconds are processor time of this process.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarking.measure import print_table, say

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget
from cpsched.formats import read_instance
from cpsched.metrics import objective_value, suffered
from cpsched.planner import PlannerEngine
from cpsched.search import Search
from tests.workloads.eurora_windows import eurora_window

#: Numbers of lanes, and of slices of the budget.
LANES = (1, 2, 4, 8)
SLICES = (1, 3)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("windows", nargs="*", type=Path, help="instances (default: two generated ones)")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each lane (default: 10)")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each (default: 2)")


def run(options: argparse.Namespace) -> None:
    """Print a table of windows and numbers of lanes."""
    windows = [read_instance(path) for path in options.windows]
    if not windows:
        windows = [eurora_window(30, 1)] if options.quick else [eurora_window(230, 1), eurora_window(800, 2)]
    budget, seeds = (0.5, 1) if options.quick else (options.budget, options.seeds)
    search = Search()
    search.prepare()
    rows = []
    for window in windows:
        first = PlannerEngine().plan(window, None).jobs
        for slices in SLICES:
            values = []
            for lanes in LANES:
                say(f"{window.name}, {lanes} lanes, {slices} slices")
                found = [value_of(search, window, first, lanes, slices, budget, seed) for seed in range(seeds)]
                values.append(sum(found) / seeds - suffered(window, first))
            shares = [f"{value / values[0] - 1:+.2%}" if values[0] else "-" for value in values[1:]]
            rows.append([window.name, f"{slices}", f"{values[0]:.5g}", *shares])
    note = (
        f"Z after {budget:g} s of processor time for each lane, mean of {seeds} runs; the search alone. In one slice "
        "the lanes know nothing of each other."
    )
    print_table("Lanes", ["window", "slices", "1 lane", *(f"{lanes} lanes" for lanes in LANES[1:])], rows, note)


def value_of(
    search: Search,
    window: Instance,
    first: tuple[PlannedJob, ...],
    lanes: int,
    slices: int,
    budget: float,
    seed: int,
) -> float:
    """Return the value of the best plan of some lanes."""
    best = objective_value(window, first), first
    for turn in range(slices):
        found = [best]
        for lane in range(lanes):
            board = Board(
                best[1],
                by="first",
                budget=Budget(budget / slices, time.process_time),
                value_of=lambda jobs: objective_value(window, jobs),
                judge=lambda jobs: [],
            )
            search.improve(window, board, seed=(seed * max(LANES) + lane) * max(SLICES) + turn)
            found.append((board.best.value, board.best.jobs))
        best = min(found, key=lambda pair: pair[0])
    return best[0]
