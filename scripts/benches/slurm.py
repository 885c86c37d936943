"""The same jobs under Slurm's own sched/backfill and as cpsched's daemon steers it, each on a cluster of its own.

All clusters are those of `scripts/slurm-lab`, with priorities by age, size and fair share, and run beside each other on
this machine, so that all suffer the same noise: one for Slurm, and one for each kind of steering by each engine. One
second stands for one minute: jobs sleep for 3 to 250 s, which are up to four hours, and Slurm's time limits, whose
grain is a minute, are hours. Slurm's own scheduler works on every event, and every second besides, and its
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
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarking.measure import load_average, print_table, say

from cpsched.domain import Instance
from cpsched.formats import parse_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.metrics import Ending, Runs, RunsSummary, runs_summary
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Store
from cpsched.site.daemon.state import JobOver, Save

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "scripts" / "slurm-lab"
#: Accounts of every Debian, which submit the jobs: each has a habit of its own in asking for time.
USERS = ("daemon", "games", "man", "lp", "mail", "news", "uucp", "backup")
#: Seconds that users of a partition expect to wait: one hour, two, and four; its tier; and the time limits, in minutes.
WAITS = {"urgent": 60, "normal": 120, "gpuq": 240}
TIERS = {"urgent": 50, "normal": 10, "gpuq": 20}
LIMITS = {"urgent": (1, 2), "normal": (1, 2, 4, 8, 12), "gpuq": (1, 2, 4, 8, 12)}
#: CPUs of the emulated cluster, its nodes, its GPUs and its MICs.
CPUS, NODES, GPUS, MICS = 184, 8, 12, 4
#: Seconds of the shortest job, and of the longest list.
SHORTEST, LONGEST = 3.0, 7200.0
#: Earlier jobs whose ends the daemon knows, as after a dry run.
EARLIER = 300
#: Engines that plan windows, and those of them that take no budget.
PLANNING = ("portfolio", "planner", "search", "cp", "wspt_list")
AT_ONCE = ("planner", "wspt_list")
UNFINISHED = ("PENDING", "RUNNING", "COMPLETING")
#: What is asked of exact steering, lower by these shares in the mean; and the part of it that is asked of the order.
WANTED = {"mean wait": 0.2, "WQT": 0.35, "bounded slowdown": 0.25}
OF_ORDER = 2 / 3
#: What ``sdiag`` counts by: all messages, and changes of jobs.
_MESSAGE = re.compile(r"^\s+(REQUEST_\w+)\s+\(.*count:(\d+)", re.MULTILINE)

SITE = """\
dry_run = false
allow_root = true
[manager]
kind = "slurm"
steering = "{steering}"
conf = "{lab}/etc/slurm.conf"
gate = "{lab}/run/gate"
{choices}
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
[promises]
forecasts = {forecasts}
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
    needs = _habit(user) * rng.uniform(0.7, 1.3)
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


def _habit(user: str) -> float:
    """Return the share of what a user asks for that his jobs need, more or less."""
    return 0.08 + 0.03 * USERS.index(user)


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


class Steered(NamedTuple):
    """How a cluster is steered, and by which engine's plans."""

    how: str
    engine: str


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


def _budget(engine: str, given: argparse.Namespace) -> float:
    """Return the seconds of a cycle."""
    return 0.0 if engine in AT_ONCE else float(given.budget)


@contextlib.contextmanager
def daemon_of(cluster: Cluster, steered: Steered, given: argparse.Namespace) -> Iterator[None]:
    """Let cpsched's daemon plan a cluster."""
    site, log = cluster.directory / "site.toml", cluster.directory / "daemon.log"
    queues = "\n".join(f"[manager.queues.{name}]\nexpected_wait = {wait}" for name, wait in WAITS.items())
    values = {
        "engine": steered.engine,
        "budget": _budget(steered.engine, given),
        "least": given.least,
        "steering": steered.how,
    }
    values["forecasts"] = given.forecasts
    site.write_text(SITE.format(lab=cluster.directory, queues=queues, choices="\n".join(given.choices), **values))
    store = Store(f"sqlite:///{cluster.directory}/cpsched.db")
    remember(store, EARLIER)
    store.close()
    daemon = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", "cpsched", "daemon", "--config", str(site)], cwd=ROOT, start_new_session=True
    )
    try:
        end = time.monotonic() + 300  # kernels may have to be compiled
        while not log.exists() or '"cycle"' not in log.read_text():
            if daemon.poll() is not None or time.monotonic() > end:
                sys.exit(f"Expected a daemon that makes a cycle; see {log}")
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


def played(
    tasks: Sequence[Task], folder: Path, given: argparse.Namespace
) -> dict[Steered | None, tuple[RunsSummary, str]]:
    """Return the figures of a list, and Slurm's load, under its own scheduler (None) and however it is steered."""
    kinds = [None, *(Steered(how, engine) for engine in given.engines for how in given.steering)]
    clusters = {kind: Cluster(folder / str(number)) for number, kind in enumerate(kinds)}
    try:
        for cluster in clusters.values():
            cluster.script("start", "--administrator", "backup", "--multifactor", "--seconds", "180")
            for user in USERS:
                if user != "backup":
                    cluster.ask("sacctmgr", "-i", "add", "user", user, "account=staff")
        with contextlib.ExitStack() as daemons:
            for kind, cluster in clusters.items():
                if kind is not None:
                    daemons.enter_context(daemon_of(cluster, kind, given))
            for cluster in clusters.values():
                cluster.ask("sdiag", "--reset")
            begin = time.monotonic() + 1
            with ThreadPoolExecutor() as pool:
                results = list(pool.map(lambda one: one.play(tasks, begin), clusters.values()))
            seconds = time.monotonic() - begin
        loads = [load_of(cluster, seconds) for cluster in clusters.values()]
    finally:
        for cluster in clusters.values():
            cluster.script("stop")
    figures = [runs_summary(runs_of(tasks, jobs), CPUS) for jobs in results]
    return dict(zip(kinds, zip(figures, loads, strict=True), strict=True))


def load_of(cluster: Cluster, seconds: float) -> str:
    """Return how many messages a second Slurm had, and how many of them changed jobs."""
    counts = {name: int(count) for name, count in _MESSAGE.findall(cluster.ask("sdiag"))}
    return f"{sum(counts.values()) / seconds:.1f} / {counts.get('REQUEST_UPDATE_JOB', 0) / seconds:.2f}"


def figures_of(figures: RunsSummary) -> dict[str, float]:
    """Return the figures that are compared."""
    total = figures.total
    if total.wait is None or total.bounded_slowdown is None:
        raise SystemExit("Expected jobs that are over, got none")
    return {
        "mean wait": total.wait.mean,
        "WQT": total.wqt,
        "bounded slowdown": total.bounded_slowdown.mean,
        "longest wait": total.wait.max,
    }


def window_of(tasks: Sequence[Task]) -> Instance:
    """Return a list as a workload of the emulated cluster, each job with the runtime that its user lets expect."""
    nodes = [
        {"names": "g[1-2]", "resources": {"cores": 16, "gpus": 2}},
        {"names": "g[3-4]", "resources": {"cores": 32, "gpus": 4}},
        {"names": "m[1-2]", "resources": {"cores": 16, "mics": 2}},
        {"names": "f1", "resources": {"cores": 48}},
        {"names": "c1", "resources": {"cores": 8}},
    ]
    jobs = []
    for number, task in enumerate(tasks):
        said = dict(one.removeprefix("--").partition("=")[::2] for one in task.shape)
        count = int(said["nodes"])
        kind, _, amount = said.get("gres", "").partition(":")
        beside = f":n{kind}s={amount}" if kind else ""
        place = "scatter:excl" if "exclusive" in said else "scatter"
        jobs.append(
            {
                "id": str(number),
                "user": task.user,
                "queue": task.partition,
                "submit": round(task.at),
                "walltime": 60 * task.limit,
                "runtime": max(1, round(task.runtime)),
                "expected": max(1, round(60 * task.limit * _habit(task.user))),
                "request": f"{count}:ncpus={task.cpus // count}{beside},place={place}",
            }
        )
    queues = {name: {"expected_wait": wait, "priority": TIERS[name]} for name, wait in WAITS.items()}
    document = {"format": "cpsched-instance/1", "name": "list", "now": 0, "cluster": {"nodes": nodes}}
    return parse_instance({**document, "queues": queues, "jobs": jobs}, source="list")


def simulated(tasks: Sequence[Task], given: argparse.Namespace) -> dict[Steered | None, tuple[RunsSummary, str]]:
    """Return the figures of a list on a machine on which nothing is late, under our Slurm and by each engine."""
    window = window_of(tasks)
    rules: dict[Steered | None, tuple[str, dict[str, object]]] = {
        None: ("slurm", {"bf_interval": 1, "bf_resolution": 1, "bf_max_job_test": 1000})
    }
    rules |= {
        Steered("simulated", one): (one, {"budget": _budget(one, given)} if one in PLANNING else {})
        for one in given.engines
    }
    return {
        kind: (runs_summary(simulate(window, make_scheduler(name, parameters)).runs, CPUS), "-")
        for kind, (name, parameters) in rules.items()
    }


def row(name: str, figures: RunsSummary, load: str) -> list[str]:
    """Return a row of a table."""
    mean, wqt, slowdown, longest = figures_of(figures).values()
    cells = (f"{mean:.1f}", f"{longest:.0f}", f"{wqt:.1f}", f"{slowdown:.2f}")
    return [name, *cells, f"{figures.makespan}", f"{figures.allocated:.1%}", load]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--jobs", type=int, default=100, help="of a list  [default: 100]")
    parser.add_argument("--loads", type=float, nargs="+", default=[3.0], help="offered loads  [default: 3]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="[default: 0 1 2]")
    parser.add_argument("--steering", nargs="+", default=["order", "exact"], help="[default: order exact]")
    parser.add_argument("--engines", nargs="+", default=["wspt_list"], help="of the daemons  [default: wspt_list]")
    parser.add_argument("--choices", nargs="*", default=[], help="lines for [manager] of the daemons' files")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of a solver's cycles  [default: 0.5]")
    parser.add_argument("--simulated", action="store_true", help="simulate the lists, without a Slurm and a daemon")
    parser.set_defaults(forecasts=300)
    parser.add_argument(
        "--least", type=float, default=0.2, help="the fewest seconds between two cycles  [default: 0.2]"
    )


def run(given: argparse.Namespace) -> None:
    """Play each list on all clusters, and print the tables."""
    header = ("scheduler", "mean wait (s)", "longest (s)", "WQT", "bounded slowdown", "makespan (s)", "CPUs in use")
    header = (*header, "messages / changes of jobs, a second")
    for load in given.loads:
        rows, changes = [], defaultdict[str, list[dict[str, float]]](list)
        for seed in given.seeds:
            tasks = job_list(given.jobs, load, seed)
            with tempfile.TemporaryDirectory(prefix="cpb-", dir="/tmp") as folder:
                Path(folder).chmod(0o755)  # users run their scripts there
                results = simulated(tasks, given) if given.simulated else played(tasks, Path(folder), given)
            own = figures_of(results[None][0])
            for kind, (figures, messages) in results.items():
                name = "Slurm" if kind is None else f"{kind.how}, {kind.engine}"
                rows.append(row(f"{name}, seed {seed}", figures, messages))
                say(" | ".join(rows[-1]))
                if kind is not None:
                    ours = figures_of(figures)
                    changes[name].append({key: ours[key] / own[key] - 1 if own[key] else 0.0 for key in own})
            say(load_average())
        print_table(f"Offered load {load:g}, {given.jobs} jobs", header, rows)
        print_table(f"Against Slurm, {len(given.seeds)} lists", ("steered", *own), list(_compared(changes)), _asked())


def _compared(changes: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[list[str]]:
    """Yield for each kind of steering the mean changes, with the least and the greatest."""
    for name, found in changes.items():
        columns = ([one[key] for one in found] for key in found[0])
        yield [name, *(f"{sum(each) / len(each):+.0%} ({min(each):+.0%} to {max(each):+.0%})" for each in columns)]


def _asked() -> str:
    wanted = ", ".join(f"{key} -{share:.0%}" for key, share in WANTED.items())
    return f"Asked of exact steering: {wanted}; of the order: {OF_ORDER:.0%} of that; of both: no longer longest wait."
