"""Simulate whole logs: how long the unluckiest waits, and what it costs that nobody starves.

Every figure is of all jobs, and in brackets of the second half of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benches.sim import whole_logs
from benchmarking.measure import print_table, say

from cpsched.domain import Instance
from cpsched.lab.policies import label_of, make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import lublin, scaled

DAY = 86_400
#: The yardstick of weighted queue time, and that of the longest wait.
WSPT, EASY = ("wspt", {"backfill": "easy"}), ("easy", {})
HEADER = ["workload", "jobs", "policy", "weighted queue time to WSPT+EASY", "mean wait to it", "longest wait, days",
          "to EASY's"]  # fmt: skip
#: The offered loads of Lublin's model.
LOADS = (0.6, 0.8, 0.95)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--only", help="the logs whose names begin so")
    parser.add_argument("--due-after", type=float, nargs="*", default=[1.5, 2.0, 3.0], help="the promises of smith")
    parser.add_argument("--lublin", type=int, default=0, help="so many jobs of Lublin's model on 256 nodes, too")


@dataclass(frozen=True, slots=True)
class _Waits:
    """The weighted queue time, the mean and the longest wait (s) of all jobs and of the second half of them."""

    weighted: tuple[float, float]
    mean: tuple[float, float]
    longest: tuple[float, float]


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    rows = [row for workload in workloads(options) for row in rows_of(workload, options.due_after)]
    print_table("Longest waits", HEADER, rows, "In brackets: of the jobs that come in the second half.")


def workloads(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield the logs, and Lublin's jobs at some loads."""
    if options.quick:
        yield scaled(lublin(300, 1, nodes=32, cores=1), 0.9)
        return
    if options.folder is not None:
        for workload, log in whole_logs(options.folder):
            if log.name.startswith(options.only or ""):
                yield workload
    for load in LOADS if options.lublin else ():
        yield scaled(lublin(options.lublin, 1, nodes=256, cores=1), load)


def rows_of(workload: Instance, promises: list[float]) -> Iterator[list[str]]:
    """Yield a row for each policy."""
    base, easy = waits(workload, *WSPT), waits(workload, *EASY)
    found = {label_of(*WSPT): base, label_of(*EASY): easy}
    for promise in (None, *promises):
        parameters = {"due_after": promise}
        found[label_of("smith", parameters)] = waits(workload, "smith", parameters)
    found["portfolio"] = waits(workload, "portfolio", {})
    for label, one in found.items():
        yield [workload.name, f"{len(workload.jobs):,}", label, *(
            f"{pair[0]:.2f} ({pair[1]:.2f})"
            for pair in (
                _ratios(one.weighted, base.weighted),
                _ratios(one.mean, base.mean),
                _ratios(one.longest, (DAY, DAY)),
                _ratios(one.longest, easy.longest),
            )
        )]  # fmt: skip


def _ratios(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return one pair of figures divided by another one."""
    return one[0] / max(other[0], 1e-9), one[1] / max(other[1], 1e-9)


def waits(workload: Instance, name: str, parameters: dict[str, Any]) -> _Waits:
    """Simulate a workload under a policy."""
    runs = simulate(workload, make_scheduler(name, parameters)).runs
    say(f"{workload.name}: {label_of(name, parameters)}")
    wait = np.where(runs.over, runs.start - runs.submit, 0)
    weighted, late = wait / runs.expected_wait, runs.submit >= np.median(runs.submit)
    return _Waits(
        weighted=(float(weighted.sum()), float(weighted[late].sum())),
        mean=(float(wait.mean()), float(wait[late].mean())),
        longest=(float(wait.max()), float(wait[late].max())),
    )
