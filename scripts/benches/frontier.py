"""Simulate `smith` with shorter and longer promises: what it costs that nobody waits long.

The workloads are those of docs/decisions.md. A promise of so many times: a job is due when it has waited so much longer
than the longest wait under EASY (`due_after`). The chart has a line for each workload, from the shortest promise on the
left to none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benches.knowledge import figures
from benchmarking.charts import line_chart
from benchmarking.measure import print_table
from benchmarking.windows import decision_workloads
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import warm_up_simulation
from cpsched.lab.workloads import eurora_stream

#: The promises; None: there is none.
PROMISES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 5.0, 10.0, None)
HEADER = ["due_after", "weighted queue time", "bounded slowdown", "longest wait, mean", "worst"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are")
    parser.add_argument("--only", nargs="+", default=[""], help="the workloads whose names begin so")
    parser.add_argument("--replicas", type=int, default=2, help="the replicas of each workload")
    parser.add_argument("--chart", type=Path, help="the file for the chart (.svg)")


def run(options: argparse.Namespace) -> None:
    """Print the table, and write the chart."""
    warm_up_simulation()
    found = {name: frontier(replicas) for name, replicas in workloads(options).items()}
    rows = []
    for place, promise in enumerate(PROMISES):
        of_all = np.array([ratios[place] for ratios in found.values()])
        means = np.exp(np.log(of_all).mean(axis=0))
        rows.append([str(promise).lower(), *(f"{mean:.2f}" for mean in means), f"{of_all[:, 2].max():.2f}"])
    print_table("Promises", HEADER, rows, f"Relative to EASY; geometric means of {len(found)} workloads.")
    if options.chart is not None:
        series = {name: [(ratio[2], ratio[0]) for ratio in ratios.tolist()] for name, ratios in found.items()}
        axes = "longest wait, relative to EASY's", "weighted queue time, relative to EASY's"
        options.chart.write_text(line_chart("What a shorter promise costs", *axes, series), encoding="utf-8")


def workloads(options: argparse.Namespace) -> dict[str, list[Instance]]:
    """Return the replicas of the workloads that are there."""
    if options.quick:
        return {"Eurora-like": [eurora_stream(30, 1)]}
    return dict(decision_workloads(options.folder, options.only, range(1, options.replicas + 1)))


def frontier(replicas: Sequence[Instance]) -> NDArray[np.float64]:
    """Return weighted queue time, mean bounded slowdown and longest wait to those of EASY; a row for each promise."""
    logs = []
    for replica in replicas:
        easy = figures(replica, make_scheduler("easy", {}))
        rules = (make_scheduler("smith", {"due_after": promise}) for promise in PROMISES)
        logs.append([np.log(figures(replica, rule) / easy) for rule in rules])
    return np.exp(np.mean(logs, axis=0))
