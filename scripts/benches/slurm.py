"""The same jobs under cpsched's daemon and under Slurm's own sched/backfill, each on an emulated cluster of its own.

Both clusters are those of `scripts/slurm-lab`, and run beside each other on this machine, so that both suffer the same
noise. One second stands for one minute: jobs sleep for 3 to 250 s, which are up to four hours, and Slurm's time limits,
whose grain is a minute, are hours. Slurm's own scheduler works on every event, and every second besides, and its
backfilling every second with slots of a second: nothing of it is made slower by the scale. Users ask for three to
eighteen times what their jobs take, each with a habit of his own, and the daemon knows how long 300 earlier jobs of
theirs ran, as after a dry run. Jobs arrive as a Poisson process, and are over when all have run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarking.measure import load_average, print_table, say

from cpsched.formats import parse_instance
from cpsched.metrics import Ending, Runs, RunsSummary, runs_summary
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Store
from cpsched.site.daemon.state import JobOver, Save

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "scripts" / "slurm-lab"
#: Accounts of every Debian, which submit the jobs: each has a habit of its own in asking for time.
USERS = ("daemon", "games", "man", "lp", "mail", "news", "uucp", "backup")
#: Seconds that users of a partition expect to wait: one hour, two, and four; and the time limits, in minutes.
WAITS = {"urgent": 60, "normal": 120, "gpuq": 240}
LIMITS = {"urgent": (1, 2), "normal": (1, 2, 4, 8, 12), "gpuq": (1, 2, 4, 8, 12)}
#: CPUs of the emulated cluster, its nodes, its GPUs and its MICs.
CPUS, NODES, GPUS, MICS = 184, 8, 12, 4
#: Seconds of the shortest job, and of the longest list.
SHORTEST, LONGEST = 3.0, 7200.0
#: Earlier jobs whose ends the daemon knows, as after a dry run.
EARLIER = 300
UNFINISHED = ("PENDING", "RUNNING", "COMPLETING")
#: WQT is asked to be lower by this share in the mean.
WANTED = 0.3

SITE = """\
dry_run = false
allow_root = true
[manager]
kind = "slurm"
steering = "exact"
conf = "{lab}/etc/slurm.conf"
gate = "{lab}/run/gate"
expected_wait = 120
{queues}
[planning]
engine = "{engine}"
budget = {budget}
workers = 1
[cycle]
period = 10
least = {least}
horizon = 0
patience = 20
[store]
url = "sqlite:///{lab}/cpsched.db"
[log]
file = "{lab}/daemon.log"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One job of a list."""

    #: Seconds after the first one.
    at: float
    user: str
    partition: str
    #: What it asks ``sbatch`` for.
    shape: tuple[str, ...]
    cpus: int
    #: The largest share of the machine that it takes of anything.
    share: float
    runtime: float
    #: Minutes.
    limit: int


def job_list(count: int, load: float, seed: int) -> list[Task]:
    """Draw jobs of mixed shapes, such that those of a second keep the machine busy for `load` seconds."""
    rng = random.Random(f"{seed} {count}")
    drawn = [_drawn(rng) for _ in range(count)]
    pace = load * count / sum(task.share * task.runtime for task in drawn)
    at, tasks = 0.0, []
    for task in drawn:
        tasks.append(replace(task, at=at))
        at += rng.expovariate(pace)
    return tasks


def _drawn(rng: random.Random) -> Task:
    """Draw a job."""
    user = rng.choice(USERS)
    partition, shape, cpus, share = _shape(rng)
    limit = rng.choice(LIMITS[partition])
    # each user needs a share of his own of what he asks for, more or less
    needs = (0.08 + 0.03 * USERS.index(user)) * rng.uniform(0.7, 1.3)
    return Task(
        at=0.0,
        user=user,
        partition=partition,
        shape=shape,
        cpus=cpus,
        share=share,
        runtime=max(SHORTEST, 60 * limit * needs),
        limit=limit,
    )


def remember(store: Store, count: int) -> None:
    """Write into a store what a dry run would have seen: the ends of earlier jobs of the same users."""
    rng, now = random.Random("earlier"), int(time.time()) - 100_000
    tasks = [_drawn(rng) for _ in range(count)]
    jobs = [
        {
            "id": f"earlier-{number}",
            "user": task.user,
            "queue": task.partition,
            "submit": now,
            "walltime": 60 * task.limit,
            "request": "1:ncpus=1",
        }
        for number, task in enumerate(tasks)
    ]
    document = {
        "format": "cpsched-instance/1",
        "name": "earlier",
        "now": now,
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 1}}]},
        "queues": {name: {"expected_wait": wait} for name, wait in WAITS.items()},
        "jobs": jobs,
    }
    instance = parse_instance(document, source="earlier jobs")
    store.add_jobs({entry["id"]: json.dumps(entry) for entry in jobs}, now)
    ends = (round(now + task.runtime) for task in tasks)
    over = [
        JobOver(job=job.id, state=JobState.COMPLETED, start=now, end=end)
        for job, end in zip(instance.jobs, ends, strict=True)
    ]
    store.save(Save(records=tuple(over)), now)


def _shape(rng: random.Random) -> tuple[str, tuple[str, ...], int, float]:
    """Draw a partition, a request, its CPUs and its largest share of the machine."""
    kind = rng.random()
    if kind < 0.15:
        cpus = rng.choice((1, 2, 4, 8))
        return "urgent", ("--nodes=1", f"--ntasks={cpus}"), cpus, cpus / CPUS
    if kind < 0.40:
        gpus, cpus = rng.choice((1, 1, 2, 2, 4)), rng.choice((1, 2, 4, 8))
        return "gpuq", ("--nodes=1", f"--gres=gpu:{gpus}", f"--ntasks={cpus}"), cpus, max(gpus / GPUS, cpus / CPUS)
    if kind < 0.45:
        mics, cpus = rng.choice((1, 2)), rng.choice((1, 4))
        return "normal", ("--nodes=1", f"--gres=mic:{mics}", f"--ntasks={cpus}"), cpus, max(mics / MICS, cpus / CPUS)
    if kind < 0.65:
        nodes, each = rng.choice((2, 2, 3, 4)), rng.choice((4, 8, 8, 16))
        return "normal", (f"--nodes={nodes}", f"--ntasks-per-node={each}"), nodes * each, nodes * each / CPUS
    if kind < 0.70:
        return "normal", ("--nodes=1", "--exclusive"), 1, 1 / NODES
    cpus = rng.choice((1, 2, 4, 8, 8, 16, 16, 24))
    return "normal", ("--nodes=1", f"--ntasks={cpus}"), cpus, cpus / CPUS


class Cluster:
    """An emulated cluster in a directory of its own. Mutable."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._environment = {**os.environ, "SLURM_CONF": str(directory / "etc" / "slurm.conf")}

    def script(self, *arguments: str) -> None:
        """Run ``scripts/slurm-lab``."""
        subprocess.run([sys.executable, str(LAB), "--directory", str(self.directory), *arguments], check=True, stdout=2)  # noqa: S603 - ours

    def ask(self, *command: str) -> str:
        """Run a command of Slurm, and return what it prints."""
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603 - ours
        return done.stdout

    def submit(self, tasks: Sequence[Task], begin: float) -> list[str]:
        """Submit each job at its second, and return their ids."""
        ids = []
        for task in tasks:
            time.sleep(max(0.0, begin + task.at - time.monotonic()))
            command = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/", f"--uid={task.user}", *task.shape]
            command += [f"--partition={task.partition}", f"--time={task.limit}"]
            ids.append(self.ask(*command, "--wrap", f"exec sleep {task.runtime:.2f}").strip())
        return ids

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return all jobs that Slurm knows."""
        said = json.loads(self.ask("squeue", "--all", "--states=all", "--json"))
        return {str(entry["job_id"]): entry for entry in said["jobs"]}

    def play(self, tasks: Sequence[Task], begin: float) -> dict[str, dict[str, Any]]:
        """Let a list run, and return what Slurm says of its jobs when they are over."""
        over: dict[str, dict[str, Any]] = {}
        deadline = begin + tasks[-1].at + LONGEST
        with ThreadPoolExecutor() as pool:
            submitting = pool.submit(self.submit, tasks, begin)
            while not submitting.done() or len(over) < len(tasks):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"Expected {len(tasks)} jobs to be over, got {len(over)}; see {self.directory}")
                if submitting.done():
                    submitting.result()  # raises what went wrong
                time.sleep(2)
                over |= {key: job for key, job in self.jobs().items() if job["job_state"] not in UNFINISHED}
            return {key: over[key] for key in submitting.result()}


@contextlib.contextmanager
def daemon_of(cluster: Cluster, *, engine: str, budget: float, least: float) -> Iterator[None]:
    """Let cpsched's daemon plan a cluster."""
    site = cluster.directory / "site.toml"
    queues = "\n".join(f"[manager.queues.{name}]\nexpected_wait = {wait}" for name, wait in WAITS.items())
    site.write_text(SITE.format(lab=cluster.directory, queues=queues, engine=engine, budget=budget, least=least))
    store = Store(f"sqlite:///{cluster.directory}/cpsched.db")
    remember(store, EARLIER)
    store.close()
    daemon = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", "cpsched", "daemon", "--config", str(site)], cwd=ROOT, start_new_session=True
    )
    try:
        gate = cluster.directory / "run" / "gate"
        end = time.monotonic() + 300  # kernels may have to be compiled
        while not gate.exists():
            if daemon.poll() is not None or time.monotonic() > end:
                sys.exit(f"Expected a daemon that closes the gate; see {cluster.directory}/daemon.log")
            time.sleep(0.1)
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)


def runs_of(tasks: Sequence[Task], jobs: dict[str, dict[str, Any]]) -> Runs:
    """Return the outcomes of a list as the figures are made from."""
    found = [jobs[key] for key in jobs]
    wrong = {
        key: job["job_state"] for key, job in jobs.items() if job["job_state"] != "COMPLETED" or job["restart_cnt"]
    }
    if wrong:
        sys.exit(f"Expected all jobs to complete at once, got {wrong}")

    def column(values: Iterator[float]) -> Any:
        return np.array([round(value) for value in values], dtype=np.int64)

    start, end = column(job["start_time"] for job in found), column(job["end_time"] for job in found)
    zeros = np.zeros(len(found), dtype=np.int64)
    return Runs(
        ids=tuple(jobs),
        users=tuple(task.user for task in tasks),
        groups=(None,) * len(found),
        queues=tuple(task.partition for task in tasks),
        submit=column(job["submit_time"] for job in found),
        walltime=column(60 * task.limit for task in tasks),
        runtime=end - start,
        start=start,
        end=end,
        cores=column(job["cpus"] for job in found),
        asked={},
        nodes=column(job["node_count"] for job in found),
        expected_wait=column(WAITS[task.partition] for task in tasks),
        max_wait=zeros - 1,
        attempts=zeros + 1,
        first_start=start,
        lost=zeros,
        ending=np.full(len(found), Ending.COMPLETED, dtype=np.int8),
    )


def pair(tasks: Sequence[Task], folder: Path, given: argparse.Namespace) -> tuple[RunsSummary, RunsSummary]:
    """Return the figures of a list under Slurm's own scheduler, and under cpsched."""
    clusters = Cluster(folder / "slurm"), Cluster(folder / "cpsched")
    try:
        for cluster in clusters:
            cluster.script("start")
        with daemon_of(clusters[1], engine=given.engine, budget=given.budget, least=given.least):
            begin = time.monotonic() + 1
            with ThreadPoolExecutor() as pool:
                results = list(pool.map(lambda one: one.play(tasks, begin), clusters))
    finally:
        for cluster in clusters:
            cluster.script("stop")
    own, ours = (runs_summary(runs_of(tasks, jobs), CPUS) for jobs in results)
    return own, ours


def row(name: str, figures: RunsSummary) -> list[str]:
    """Return a row of a table."""
    total = figures.total
    if total.wait is None or total.bounded_slowdown is None:
        raise SystemExit("Expected jobs that are over, got none")
    cells = (
        f"{total.wait.mean:.1f}",
        f"{total.wait.max:.0f}",
        f"{total.wqt:.1f}",
        f"{total.bounded_slowdown.mean:.2f}",
    )
    return [name, *cells, f"{figures.makespan}", f"{figures.allocated:.1%}"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--jobs", type=int, default=100, help="of a list  [default: 100]")
    parser.add_argument("--loads", type=float, nargs="+", default=[1.5, 3.0], help="offered loads  [default: 1.5 3]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="[default: 0 1 2]")
    parser.add_argument("--engine", default="wspt_list", help="of the daemon  [default: wspt_list]")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of its cycles  [default: 0]")
    parser.add_argument(
        "--least", type=float, default=0.2, help="the fewest seconds between two cycles  [default: 0.2]"
    )


def run(given: argparse.Namespace) -> None:
    """Play each list on both clusters, and print the tables."""
    missed = []
    header = ("scheduler", "mean wait (s)", "longest (s)", "WQT", "bounded slowdown", "makespan (s)", "CPUs in use")
    for load in given.loads:
        rows, gains = [], []
        for seed in given.seeds:
            tasks = job_list(given.jobs, load, seed)
            with tempfile.TemporaryDirectory(prefix="cpb-", dir="/tmp") as folder:
                Path(folder).chmod(0o755)  # users run their scripts there
                own, ours = pair(tasks, Path(folder), given)
            gains.append(1 - ours.total.wqt / own.total.wqt if own.total.wqt else 0.0)
            rows += [row(f"Slurm, seed {seed}", own), row(f"cpsched, seed {seed}", ours)]
            say(f"load {load:g}, seed {seed}: WQT {own.total.wqt:.1f} and {ours.total.wqt:.1f}; {load_average()}")
        mean = sum(gains) / len(gains)
        ratios = sorted(60 * task.limit / task.runtime for task in tasks)
        note = f"WQT lower by {mean:.0%} in the mean, by {min(gains):.0%} at least; limit / runtime of the last list: "
        note += ", ".join(f"{ratios[int(len(ratios) * share)]:.1f}" for share in (0.1, 0.5, 0.9)) + " (deciles 1, 5, 9)"
        print_table(f"Offered load {load:g}, {given.jobs} jobs", header, rows, note)
        if mean < WANTED or min(gains) < 0:
            missed.append(f"{load:g}")
    print(
        f"\nasked: WQT lower by {WANTED:.0%} in the mean, and never higher; missed at: {', '.join(missed) or 'no load'}"
    )
