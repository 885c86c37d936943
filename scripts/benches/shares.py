"""Give all users of a log equal shares: what that does to the fairness between them, and what it costs.

A part of each log at load 0.9, in replicas in which each submission is moved by up to ten minutes; `smith` with fair
shares beside itself without, replica by replica.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from benches.sim import whole_logs
from benchmarking.measure import print_table

from cpsched.domain import FairShare, Instance, UserShare
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import lublin, moved, scaled

DAY, MOVED, LOAD = 86_400, 600, 0.9
LOGS = ("CTC-SP2", "HPC2N", "KTH-SP2", "SDSC-SP2")
#: Half-life (s) and influence.
SHARES = ((DAY, 0.5), (DAY, 1.0), (7 * DAY, 0.5), (7 * DAY, 1.0))
HEADER = ["workload", "half-life, days", "influence", "Jain's index", "weighted queue time", "bounded slowdown",
          "longest wait"]  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--jobs", type=int, default=5000, help="the last jobs of each log")
    parser.add_argument("--replicas", type=int, default=10, help="the replicas of each part")


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    parts = [("Lublin", lublin(300, 1, nodes=32, cores=1))]
    if options.folder is not None and not options.quick:
        parts = [(log, last(workload, options.jobs)) for workload, log, _ in whole_logs(options.folder, LOGS)]
    replicas = 1 if options.quick else options.replicas
    found = {name: ratios(scaled(part, LOAD), replicas) for name, part in parts}
    found["all"] = np.exp(np.mean([np.log(one) for one in found.values()], axis=0))
    rows = [
        [name, f"{half_life / DAY:g}", f"{influence:g}", *(f"{ratio:.2f}" for ratio in row)]
        for name, table in found.items()
        for (half_life, influence), row in zip(SHARES, table, strict=True)
    ]
    print_table("Equal shares for all users", HEADER, rows, "Geometric means of what it is without shares.")


def last(workload: Instance, number: int) -> Instance:
    """Return a workload of the last jobs."""
    jobs = sorted(workload.jobs, key=lambda job: job.submit)[-number:]
    return replace(workload, jobs=tuple(jobs), now=jobs[0].submit)


def ratios(workload: Instance, replicas: int) -> np.ndarray:
    """Return figures with each of the shares to those without, the geometric means of some replicas."""
    names = sorted({job.user for job in workload.jobs if job.user is not None} | {"user0"})
    users = tuple(UserShare(user=name) for name in names)
    shared = [
        replace(workload, fair_share=FairShare(half_life=half_life, influence=influence, users=users))
        for half_life, influence in SHARES
    ]
    logs = []
    for seed in range(1, replicas + 1):
        without, *others = (np.log(figures(moved(one, MOVED, seed))) for one in (workload, *shared))
        logs.append(np.array(others) - without)
    return np.exp(np.mean(logs, axis=0))


def figures(workload: Instance) -> list[float]:
    """Return Jain's index, weighted queue time, mean bounded slowdown and longest wait (s) of a simulation."""
    summary = simulate(workload, make_scheduler("smith", {})).as_run("smith").summary()
    total = summary.total
    slowdown = 1.0 if total.bounded_slowdown is None else total.bounded_slowdown.mean
    longest = 0.0 if total.wait is None else total.wait.max
    return [summary.jain or 1.0, max(1.0, total.wqt), slowdown, max(1.0, longest)]
