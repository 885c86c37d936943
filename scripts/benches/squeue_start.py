"""When jobs will start, as ``squeue --start`` of a real Slurm says it, and as the daemon beside it forecasts it.

One cluster of `scripts/slurm-lab`, with the jobs of the bench `slurm` (one second stands for one minute), steered by
`order`. Each job that waits is forecast once, when the daemon sees it first; beside it is what ``squeue --start`` said
in the seconds after. Slurm's estimates rest on the time limits, and on the order that the daemon has given.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benches.slurm import USERS, Cluster, Steered, daemon_of, job_list
from benchmarking.measure import load_average, print_table, say

from cpsched.site.daemon import Store

#: Seconds after a forecast in which Slurm's word counts, and those after which a job had to wait.
LATER, WAITED = 5, 2
ASKING = ("env", "SLURM_TIME_FORMAT=%s", "squeue", "--start", "--noheader", "--format=%i %S")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--jobs", type=int, default=100, help="of a list  [default: 100]")
    parser.add_argument("--load", type=float, default=3.0, help="offered load  [default: 3]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="[default: 0 1 2]")
    parser.set_defaults(budget=0.0, least=0.2, choices=[], forecasts=1)


def run(given: argparse.Namespace) -> None:
    """Play each list, and print a table."""
    rows = []
    for seed in given.seeds:
        with tempfile.TemporaryDirectory(prefix="cpb-", dir="/tmp") as folder:
            Path(folder).chmod(0o755)  # users run their scripts there
            found = list(compared(Cluster(Path(folder) / "0"), given, 20 if given.quick else given.jobs, seed))
        rows.append([f"seed {seed}", *row(found)])
        say(" | ".join(rows[-1]))
    say(load_average())
    header = ("list", "jobs that waited", "of these squeue has a start", "error of squeue (s)", "ours of these (s)",
              "ratio", "within our 80 %")  # fmt: skip
    print_table("Starts", header, rows, "Errors are medians of absolute ones.")


def compared(
    cluster: Cluster, given: argparse.Namespace, count: int, seed: int
) -> Iterator[tuple[int, int, int | None, bool]]:
    """Yield of each job that waited its start, the forecast one, what Slurm said, and whether it was within."""
    tasks, said, is_over = job_list(count, given.load, seed), list[tuple[float, dict[str, int]]](), threading.Event()

    def listen() -> None:
        while not is_over.wait(0.5):
            words = (line.split() for line in cluster.ask(*ASKING).splitlines())
            said.append((time.time(), {job: int(start) for job, start in words if start.isdecimal()}))

    try:
        cluster.script("start", "--administrator", "backup", "--multifactor", "--seconds", "180")
        for user in USERS:
            if user != "backup":
                cluster.ask("sacctmgr", "-i", "add", "user", user, "account=staff")
        with daemon_of(cluster, Steered("order", "wspt_list"), given):
            listener = threading.Thread(target=listen)
            listener.start()
            try:
                jobs = cluster.play(tasks, time.monotonic() + 1)
            finally:
                is_over.set()
                listener.join()
    finally:
        cluster.script("stop")
    store = Store(f"sqlite:///{cluster.directory}/cpsched.db", is_reader=True)
    first = {one.job: one for one in reversed(store.forecasts(10**6))}
    store.close()
    for job, one in first.items():
        if job not in jobs or one.likely is None or (start := jobs[job]["start_time"]) <= one.at + WAITED:
            continue
        words = (starts[job] for at, starts in said if one.at <= at <= one.at + LATER and job in starts)
        yield start, one.likely, next(words, None), one.holds(start)


def row(found: list[tuple[int, int, int | None, bool]]) -> list[str]:
    """Return the cells of a list."""
    both = np.array([(start, ours, slurm) for start, ours, slurm, _ in found if slurm is not None]).reshape(-1, 3)
    ours, slurm = (float(np.median(np.abs(both[:, column] - both[:, 0]))) for column in (1, 2))
    within = sum(is_within for *_, is_within in found) / max(1, len(found))
    return [f"{len(found)}", f"{len(both)}", f"{slurm:.0f}", f"{ours:.0f}", f"{ours / slurm:.2f}", f"{within:.0%}"]
