"""From a snapshot to actions, without solving: seconds of the daemon's cycle at 1,000 and 10,000 waiting jobs.

The machine is full: one in memory, and a Slurm whose commands print files of the form and the length of real ones (what
a real Slurm takes to write its answers is not counted; running commands and reading what they print is). The plan is
made by hand, so that no planner is timed: each waiting job has a start, and some start at once. Three figures for each
size: the first cycle of a daemon, in which every job is new; one in which 1 % of the waiting jobs changed since the
last cycle; one in which nothing changed. With --repeat the best of several.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarking import slurm_in_files

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Placement,
    PlannedJob,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.engine import Outcome
from cpsched.portfolio import WindowPlanner, plan_of
from cpsched.site.bridge import MemoryManager, Snapshot
from cpsched.site.bridge.slurm import SlurmManager, SlurmModel
from cpsched.site.daemon import Daemon, Planner, Policy, Settings, Store, make_log
from cpsched.site.daemon.planning import Made
from cpsched.site.daemon.state import Planned
from tests.bridge.played_world import PlayedWorld

#: Of a node.
CORES = 16
#: Seconds of Unix time at which the Slurm in files is.
NOW = 1_800_000_000
#: What counts the seconds. Mutable.
CLOCK = [time.perf_counter]
#: What the issue asks, in seconds: all new, and 1 % changed, at 10,000 jobs.
ASKED = {"all new": 2.0, "1 % changed": 0.3, "nothing changed": 0.3}


def machine(nodes: int, waiting: int) -> Instance:
    """Make a full machine: each node runs a job of its own; the waiting jobs ask for one to four nodes' halves."""
    rng = random.Random(0)
    names = tuple(f"cn{number:04d}" for number in range(nodes))
    jobs = []
    for number, name in enumerate(names):
        # one node in fifty is idle
        if number % 50:
            end = 600 + rng.randint(0, 7200)
            allocation = (Placement(node=name, resources=Amounts({"cores": CORES}), chunk=0, count=1),)
            running = Running(start=0, segments=(Segment(start=0, end=end, allocation=allocation),))
            jobs.append(job(f"r{number}", 1, CORES, end, running=running))
    jobs += [job(f"w{number}", rng.randint(1, 4), CORES // 2, rng.randint(600, 7200)) for number in range(waiting)]
    return Instance(
        name="bench",
        cluster=Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": CORES, "mem": 65536})),)),
        queues=FrozenMap({"q": Queue(expected_wait=3600)}),
        jobs=tuple(jobs),
    )


def job(name: str, chunks: int, cores: int, walltime: int, running: Running | None = None) -> Job:
    """Make a job of some chunks of some cores."""
    request = Request(chunks=(Chunk(count=chunks, resources=Amounts({"cores": cores})),))
    return Job(id=name, queue="q", submit=0, steps=(Step(walltime=walltime, request=request),), running=running)


def plan_by_hand(snapshot: Snapshot, soon: float) -> Planned:
    """Plan each waiting job one after the other, on idle nodes at once as far as these go, and far away otherwise."""
    instance = snapshot.instance
    busy = {one.node for each in instance.jobs if each.running for one in each.running.segments[-1].allocation}
    idle = [name for name in instance.cluster.node_names if name not in busy]
    names = instance.cluster.node_names
    most = int(soon * sum(each.running is None for each in instance.jobs))
    jobs, started, later = [], 0, instance.now + 100_000
    for number, each in enumerate(instance.jobs):
        if each.running is not None:
            continue
        chunk = each.request.chunks[0]
        if started < most and len(idle) >= chunk.count:
            nodes, start = [idle.pop() for _ in range(chunk.count)], instance.now
            started += 1
        else:
            nodes, start = [names[(number * 7 + place) % len(names)] for place in range(chunk.count)], later + number
        allocation = tuple(Placement(node=node, resources=chunk.resources, chunk=0, count=1) for node in nodes)
        segment = Segment(start=start, end=start + each.walltime, allocation=allocation)
        jobs.append(PlannedJob(id=each.id, start=start, end=segment.end, segments=(segment,)))
    plan = plan_of(instance, "bench", Outcome(jobs=tuple(jobs), waiting_room=()), budget=0, elapsed=0)
    revisions = {each.id: snapshot.jobs[each.id].revision for each in instance.jobs if each.running is None}
    return Planned(plan=plan, revisions=revisions, why="bench")


class ByHand(Planner):
    """Answers with a plan that is ready."""

    def __init__(self) -> None:
        super().__init__(WindowPlanner(name="planner", budget=0.0), gain=0.0, report=lambda what, error: None)
        self.ready: Made | None = None

    def follow(self, window: object, previous: object, why: str) -> Made | None:
        """Return the plan that is ready."""
        return self.ready


class InMemory:
    """A full machine in memory. Mutable."""

    name = "memory"

    def __init__(self, nodes: int, waiting: int, folder: Path) -> None:
        self.world = PlayedWorld(machine(nodes, waiting), gate_is_closed=True)
        #: The daemon's, and another one, by which the plans are made.
        self.manager, self.other = MemoryManager(self.world), MemoryManager(self.world)
        #: Seconds that are not the daemon's.
        self.seconds = 0.0

    def exchange(self, turn: str, few: int) -> None:
        """Cancel some waiting jobs, and submit as many."""
        world = self.world
        ids = [name for name, entry in world.jobs.items() if name.startswith("w") and not entry.state.is_over]
        for name in [name for name in ids if world.jobs[name].start is None][:few]:
            world.cancel(name)
        for number in range(few):
            world.submit(job(f"{turn}{number}", 1 + number % 4, CORES // 2, 3600))


class InFiles:
    """A full machine of a Slurm that is files. Mutable."""

    name = "slurm"

    def __init__(self, nodes: int, waiting: int, folder: Path) -> None:
        rng = random.Random(0)
        names = [f"cn{number:04d}" for number in range(nodes)]
        entries = [
            slurm_in_files.running(number + 1, name, CORES, rng.randint(60, 600), NOW - 60)
            for number, name in enumerate(names)
            if number % 50
        ]
        first = nodes + 1
        entries += [
            slurm_in_files.waiting(number, rng.randint(1, 4), CORES // 2, rng.randint(10, 120), NOW - 600)
            for number in range(first, first + waiting)
        ]
        jobs = {str(entry["job_id"]): entry for entry in entries}
        self.slurm = slurm_in_files.FiledSlurm(folder / "slurm", names, CORES, NOW, jobs, CLOCK[0])
        #: The daemon's, and another one, by which the plans are made.
        exact = SlurmModel(kind="slurm", steering="exact")
        self.manager, self.other = (SlurmManager(self.slurm.client, exact, clock=lambda: NOW) for _ in range(2))

    @property
    def seconds(self) -> float:
        """Seconds that are not the daemon's."""
        return self.slurm.seconds

    def exchange(self, turn: str, few: int) -> None:
        """Cancel some waiting jobs, and submit as many."""
        jobs = self.slurm.jobs
        gone = [name for name, entry in jobs.items() if entry["eligible_time"] == slurm_in_files.GATE][:few]
        last = max(map(int, jobs))
        new = [slurm_in_files.waiting(last + 1 + number, 1 + number % 4, CORES // 2, 60, NOW) for number in range(few)]
        cancelled = {name: jobs[name] | {"job_state": "CANCELLED", "end_time": NOW} for name in gone}
        self.slurm.change({**cancelled, **{str(entry["job_id"]): entry for entry in new}})


def measure(site: InMemory | InFiles, waiting: int, folder: Path) -> dict[str, float]:
    """Return the seconds of each kind of cycle."""
    planner = ByHand()
    settings = Settings(
        policy=Policy(is_dry_run=False, horizon=0, patience=10**6), budget=0.0, rate=0.0, snapshot_every=0
    )
    daemon = Daemon(site.manager, Store(f"sqlite:///{folder}/bench.db"), planner, settings, log=make_log(level="error"))
    daemon.begin()
    found: dict[str, float] = {}
    # every job is new: the plan, its promises, the first orders
    planner.ready = made(plan_by_hand(site.other.snapshot(), soon=0.01))
    found["all new"] = timed(daemon, site)
    # 1 % changed: half of them are cancelled, and as many arrive; the second time, when all others are as before
    for turn in ("a", "b"):
        site.exchange(turn, max(1, waiting // 200))
        planner.ready = made(plan_by_hand(site.other.snapshot(), soon=0.0), keeping=daemon)
        found["1 % changed"] = timed(daemon, site)
    found["nothing changed"] = timed(daemon, site)
    daemon.store.close()
    return found


def made(planned: Planned, keeping: Daemon | None = None) -> Made:
    """Return a plan as a planner gives it; jobs that have a place in the daemon's plan keep it."""
    plan = planned.plan
    if keeping is not None:
        old = keeping.state.plan
        plan = replace(plan, jobs=tuple(old[one.id].planned if one.id in old else one for one in plan.jobs))
    return Made(plan=plan, why="bench")


def timed(daemon: Daemon, site: InMemory | InFiles) -> float:
    """Return the seconds of a cycle."""
    began, before = CLOCK[0](), site.seconds
    if not daemon.cycle():
        raise SystemExit("a cycle failed: see the log")
    return CLOCK[0]() - began - (site.seconds - before)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--repeat", type=int, default=1, help="take the best of so many runs")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor, where the machine is not idle")


def run(options: argparse.Namespace) -> None:
    """Print a table, and say what was asked and missed."""
    CLOCK[0] = time.process_time if options.cpu else time.perf_counter
    print(f"{'manager':>8} {'nodes':>6} {'waiting':>8}  " + "  ".join(f"{name:>16}" for name in ASKED))
    missed = []
    for kind in (InMemory, InFiles):
        for nodes in (616,) if options.quick else (616, 5000):
            for waiting in (1000,) if options.quick else (1000, 10_000):
                runs = []
                for _ in range(options.repeat):
                    with tempfile.TemporaryDirectory() as folder:
                        runs.append(measure(kind(nodes, waiting, Path(folder)), waiting, Path(folder)))
                best = {name: min(run[name] for run in runs) for name in ASKED}
                figures = "  ".join(f"{best[name]:>14.3f} s" for name in ASKED)
                print(f"{kind.name:>8} {nodes:>6} {waiting:>8}  {figures}", flush=True)
                where = f"with {waiting} jobs on {nodes} nodes of {kind.name}"
                missed += [f"{name} {where}" for name in ASKED if best[name] > ASKED[name]]
    print("asked: " + ", ".join(f"{name} in {limit:g} s" for name, limit in ASKED.items()))
    print("missed: " + ("; ".join(missed) or "nothing"))
