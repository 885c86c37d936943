"""Simulate logs whose jobs may change their number of nodes while they run: the strategies of others, and ours.

All jobs can run on a quarter to four times their nodes, with Downey's speed-up (`with_moldable`); the rigid ones are
the same jobs without that. Our policy was made on the first month of Theta.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from benches.sim import whole_logs
from benchmarking.measure import print_table, say

from cpsched.domain import Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import lublin, with_moldable

LOGS = ("Theta-2023-jan", "Theta-2023.first", "KTH-SP2")
RIGID = ("easy", "smith")
PUBLISHED = ("malleable_min", "malleable_pref", "malleable_keep", "malleable_avg")
OURS = ("malleable_gain",)
HEADER = ("workload", "jobs", "policy", "turnaround, h", "to rigid EASY", "to the best published", "wait, h", "longest",
          "bounded slowdown", "in use", "changes a job")  # fmt: skip
#: A runtime counts as at least so many seconds in a slowdown.
TAU = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--only", default="", help="the logs whose names begin so")
    parser.add_argument("--jobs", type=int, help="the first so many jobs of each")
    parser.add_argument("--cost", type=int, default=0, help="seconds without work after each change (default: 0)")
    parser.add_argument("--policies", nargs="*", default=[*PUBLISHED, *OURS], help="these malleable ones")


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    workloads = [lublin(100, 1, nodes=64)] if options.quick else logs(options)
    rows = [row for workload in workloads for row in rows_of(workload, options.cost, options.policies)]
    note = "Each malleable job asks for what the rigid one does. Slowdowns divide by the runtime of the rigid one."
    print_table(f"Jobs that change their nodes, for {options.cost} s each time", HEADER, rows, note)


def logs(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield the logs."""
    wanted = [log for log in LOGS if log.startswith(options.only)]
    for workload, _, _ in whole_logs(options.folder, wanted):
        yield replace(workload, jobs=workload.jobs[: options.jobs])


def rows_of(workload: Instance, cost: int, policies: list[str]) -> Iterator[list[str]]:
    """Yield a row for each policy."""
    malleable = with_moldable(workload, 0, resizable=cost)
    seconds = np.array(
        [job.walltime if job.runtime is None else min(job.runtime, job.walltime) for job in workload.jobs]
    )
    turnarounds: dict[str, float] = {}
    for policy, played in (*((rule, workload) for rule in RIGID), *((rule, malleable) for rule in policies)):
        history = simulate(played, make_scheduler(policy))
        runs, over = history.runs, history.runs.over
        taken, wait = (runs.end - runs.submit)[over], (runs.start - runs.submit)[over]
        turnarounds[policy] = mean = float(taken.mean())
        slowdown = float(np.maximum(1, taken / np.maximum(TAU, seconds[over])).mean())
        published = min((turnarounds[one] for one in PUBLISHED if one in turnarounds), default=None)
        changes = sum(history.counters.values()) / len(runs) if played is malleable else 0.0
        held = float((runs.cores * (runs.end - runs.start))[over].sum())
        use = held / (workload.cluster.totals["cores"] * float(runs.end.max() - runs.submit.min()))
        to_best = f"{mean / published - 1:+.0%}" if published and policy in OURS else ""
        name = policy if played is malleable else f"{policy}, rigid"
        row = [workload.name, f"{len(runs):,}", name, f"{mean / 3600:.2f}", f"{mean / turnarounds['easy'] - 1:+.0%}"]
        row += [to_best, f"{wait.mean() / 3600:.2f}", f"{wait.max() / 3600:.0f}", f"{slowdown:.1f}"]
        row += [f"{use:.0%}", f"{changes:.1f}"]
        say(" | ".join(row))
        yield row
