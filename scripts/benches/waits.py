"""Simulate whole logs: how long the unluckiest waits, and what it costs that nobody starves.

Every figure is of all jobs, and in brackets of the second half of them: the mean of replicas in which each submission
is moved by up to ten minutes. The promise was chosen on the logs that are not called held back.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benches.sim import LOGS, whole_logs
from benchmarking.measure import print_table, say
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.lab.policies import label_of, make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import lublin, moved, scaled

DAY, MOVED = 86_400, 600
#: The yardsticks of weighted queue time, and that of the longest wait.
WSPT, NO_PROMISE, EASY = ("wspt", {"backfill": "easy"}), ("smith", {"due_after": None}), ("easy", {})
HEADER = ["workload", "jobs", "policy", "weighted queue time to no promise", "to WSPT+EASY", "bounded slowdown to it",
          "longest wait, days", "to EASY's", "jobs beyond EASY's"]  # fmt: skip
#: The logs on which the promise was chosen; all others are held back.
CHOSEN_ON = ("CEA-Curie", "CTC-SP2", "KTH-SP2", "SDSC-SP2")
HELD_BACK = ("RICC", "Theta-2023.first")
#: The offered loads of Lublin's model.
LOADS = (0.6, 0.8, 0.95)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--only", help="the logs whose names begin so")
    parser.add_argument("--due-after", type=float, nargs="*", default=[2.0, 3.5, 5.0], help="the promises of smith")
    parser.add_argument("--replicas", type=int, default=3, help="the replicas of each log")
    parser.add_argument("--no-portfolio", action="store_true", help="leave it out: it takes ten times as long")
    parser.add_argument("--lublin", type=int, default=0, help="so many jobs of Lublin's model on 256 nodes, too")


@dataclass(frozen=True, slots=True)
class _Waits:
    """The weighted queue time, the mean bounded slowdown, the longest wait (s) of all jobs and of the second half."""

    weighted: tuple[float, float]
    slowdown: tuple[float, float]
    longest: tuple[float, float]
    #: Of each job, s.
    all: NDArray[np.int64]


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    replicas = 1 if options.quick else options.replicas
    rows = [row for name, workload in workloads(options) for row in rows_of(name, workload, options, replicas)]
    print_table("Longest waits", HEADER, rows, "In brackets: of the jobs that come in the second half.")


def workloads(options: argparse.Namespace) -> Iterator[tuple[str, Instance]]:
    """Yield the logs, and Lublin's jobs at some loads, with their names."""
    if options.quick:
        yield "Lublin", scaled(lublin(300, 1, nodes=32, cores=1), 0.9)
        return
    wanted = [log for log in (*LOGS, *HELD_BACK) if log.startswith(options.only or "")]
    for workload, log, _ in whole_logs(options.folder, wanted) if options.folder is not None else ():
        yield log if log in CHOSEN_ON else f"{log}, held back", workload
    for load in LOADS if options.lublin else ():
        yield f"Lublin {load}, held back", scaled(lublin(options.lublin, 1, nodes=256, cores=1), load)


def rows_of(name: str, workload: Instance, options: argparse.Namespace, replicas: int) -> Iterator[list[str]]:
    """Yield a row for each policy."""
    policies = [EASY, WSPT, NO_PROMISE, *(("smith", {"due_after": promise}) for promise in options.due_after)]
    policies += [] if options.no_portfolio else [("portfolio", {})]
    names = [label_of(*policy) for policy in policies]
    played = [
        [waits(replica, *policy) for policy in policies]
        for replica in (moved(workload, MOVED, seed) for seed in range(1, replicas + 1))
    ]
    for place, policy in enumerate(names):
        ratios = [
            (one[place].weighted, one[2].weighted, one[place].weighted, one[1].weighted, one[place].slowdown,
             one[1].slowdown, one[place].longest, (DAY, DAY), one[place].longest, one[0].longest)
            for one in played
        ]  # fmt: skip
        figures = np.mean([[_ratios(row[k], row[k + 1]) for k in range(0, len(row), 2)] for row in ratios], axis=0)
        beyond = np.mean([np.count_nonzero(one[place].all > one[0].longest[0]) for one in played])
        figures = [f"{a:.2f} ({b:.2f})" for a, b in figures]
        yield [name, f"{len(workload.jobs):,}", policy, *figures, f"{beyond:,.1f}"]


def _ratios(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return one pair of figures divided by another one."""
    return one[0] / max(other[0], 1e-9), one[1] / max(other[1], 1e-9)


def waits(workload: Instance, name: str, parameters: dict[str, Any]) -> _Waits:
    """Simulate a workload under a policy."""
    history = simulate(workload, make_scheduler(name, parameters))
    runs = history.runs
    rules = [(round((use.since - workload.now) / DAY, 1), use.rule, round(use.ratio, 2)) for use in history.rules]
    say(f"{workload.name}: {label_of(name, parameters)}, {len(runs) / history.elapsed:,.0f} jobs/s {rules or ''}")
    wait = np.where(runs.over, runs.start - runs.submit, 0)
    weighted, late = wait / runs.expected_wait, runs.submit >= np.median(runs.submit)
    slowdown = np.where(runs.over, runs.bounded_slowdown, 1)
    return _Waits(
        weighted=(float(weighted.sum()), float(weighted[late].sum())),
        slowdown=(float(slowdown.mean()), float(slowdown[late].mean())),
        longest=(float(wait.max()), float(wait[late].max())),
        all=wait,
    )
