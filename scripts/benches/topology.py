"""Simulate logs on trees of switches: jobs that cross one without need, waits and utilisation by rules of placement.

Where jobs have whole nodes, no rule of placement changes a start: the starts under a policy without a topology are
placed anew by first fit, at random, and by Slurm's best-fit switch. The others ask for their smallest group of nodes:
hard, or softly, at a cost in seconds of waiting (docs/topology.md).
"""

from __future__ import annotations

import argparse
import tempfile
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from benches.planner import CPSCHED, probe
from benches.sim import whole_logs
from benchmarking.measure import print_table, run_command, say
from benchmarking.workload import Load, instance_of
from numpy.typing import NDArray

from cpsched.domain import FrozenMap, Instance, Job, Step
from cpsched.formats import read_instance, write_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import History, simulate, warm_up_simulation
from cpsched.lab.workloads import lublin, scaled
from cpsched.metrics import Runs

#: Nodes under a switch and in a block, of which the machine is the third level.
TREES = {"KTH-SP2": (10, 50), "SDSC-SP2": (16, 64), "Theta-2023.first": (384, 1536), "Eurora": (16, 32)}
HEADER = ["log", "policy", "placement", "cross without need", "weighted waiting to easy", "utilisation to easy"]

#: Chooses so many of the free nodes, given in ascending order.
Placement = Callable[[Sequence[int], int], Sequence[int]]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--eurora", type=Path, help="a workload of Eurora (trace-2014-04-first.json.gz)")
    parser.add_argument("--only", default="", help="the logs whose names begin so")
    parser.add_argument("--jobs", type=int, default=3000, help="the first jobs of each log (default: 3,000)")
    parser.add_argument("--costs", type=int, nargs="*", default=[600, 3600], help="what a larger group costs (s)")
    parser.add_argument("--policies", nargs="*", default=["easy", "smith"], help="of which easy is the yardstick")


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    print_large(options)
    warm_up_simulation()
    rows = [row for name, tree in trees(options) for row in rows_of(name, tree, options)]
    note = (
        "Cross without need: of the jobs of two nodes or more that a switch or block holds, those in several of them."
    )
    print_table("Placement on trees", HEADER, rows, note)


def print_large(options: argparse.Namespace) -> None:
    """Print what the plan of a large window takes where jobs may be anywhere, or each is in its smallest group."""
    nodes, jobs, sizes = (64, 200, (8, 32)) if options.quick else (16_384, 50_000, (64, 1024))
    workload, rows = instance_of(Load(nodes=nodes, jobs=jobs, rounding=1)), list[list[str]]()
    with tempfile.TemporaryDirectory(prefix="cpsched-bench-") as name:
        document, plan = Path(name) / "window.json", Path(name) / "plan.json"
        solve = ["solve", str(document), "--engine", "planner", "-o", str(plan), "--quiet"]
        for words, window in (("anywhere", workload), ("in its smallest group", Tree(workload, sizes).asking(None))):
            say(f"{jobs:,} jobs on {nodes:,} nodes, {words}")
            write_instance(window, document)
            used, _ = run_command([*CPSCHED, *solve])
            rows.append([words, f"{used:.1f}", f"{probe('solve-memory', *solve)['whole']:,.0f}"])
    title = f"`cpsched solve --engine planner`, {jobs:,} jobs on {nodes:,} nodes of three levels"
    print_table(title, ["each job", "processor, s", "peak, MB"], rows, "")


@dataclass(frozen=True, slots=True)
class Tree:
    """A workload on a machine of three levels: groups of neighbouring nodes."""

    workload: Instance
    sizes: tuple[int, int]

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.workload.cluster.node_names)

    def level_of(self, count: int) -> int:
        """Return the smallest level that holds so many chunks, each on a node: 0, 1, or 2, the machine."""
        return sum(count > size for size in self.sizes)

    def groups(self, level: int) -> list[range]:
        """Return the nodes of each group."""
        size = (*self.sizes, self.nodes)[level]
        return [range(first, min(first + size, self.nodes)) for first in range(0, self.nodes, size)]

    def asking(self, cost: int | None) -> Instance:
        """Return the workload on that machine, each job within its smallest level; else, if there is a cost, in the
        next one.
        """
        cluster, names = self.workload.cluster, self.workload.cluster.node_names
        levels = {
            f"level{level}": FrozenMap(
                {f"g{place}": tuple(names[node] for node in group) for place, group in enumerate(self.groups(level))}
            )
            for level in range(2)
        }

        def asked(job: Job) -> Job:
            count = sum(chunk.count for chunk in job.request.chunks)
            places = [f"level{level}" for level in range(self.level_of(count), 2)]
            if count == 1 or not places:
                return job
            own = job.steps[0]
            steps: list[Step] = [
                replace(own, request=replace(own.request, place=replace(own.request.place, within=level)), cost=extra)
                for level, extra in zip((*places, None), (0, *[cost or 0] * len(places)), strict=True)
            ]
            return replace(job, steps=(steps[0],), alternatives=() if cost is None else tuple(steps[1:]))

        jobs = tuple(map(asked, self.workload.jobs))
        return replace(self.workload, jobs=jobs, cluster=replace(cluster, topology=FrozenMap(levels)))

    def crossing(self, jobs: Sequence[Sequence[int]]) -> float:
        """Return the share of jobs in several groups of the smallest level that holds them; each is its nodes."""
        asked = [(level, nodes) for nodes in jobs if len(nodes) > 1 and (level := self.level_of(len(nodes))) < 2]
        found = [len({node // self.sizes[level] for node in nodes}) > 1 for level, nodes in asked]
        return sum(found) / max(1, len(found))

    def best_fit_switch(self, free: Sequence[int], count: int) -> Sequence[int]:
        """Choose nodes as Slurm's ``topology/tree`` does: of the lowest level at which one group has enough, the group
        with the fewest free; there switch by switch, the fullest one that is enough, else the emptiest.
        """
        for level in range(3):
            groups = [[node for node in free if node in group] for group in self.groups(level)]
            if found := [group for group in groups if len(group) >= count]:
                break
        within, chosen = set(min(found, key=len)), list[int]()
        switches = [[node for node in group if node in within] for group in self.groups(0)]
        while len(chosen) < count:
            left = count - len(chosen)
            switch = min(switches, key=lambda one: (len(one) < left, len(one) if len(one) >= left else -len(one)))
            switches.remove(switch)
            chosen += switch[:left]
        return chosen


def trees(options: argparse.Namespace) -> Iterator[tuple[str, Tree]]:
    """Yield the logs that are wanted, on trees."""
    if options.quick:
        yield "Lublin", Tree(scaled(lublin(200, 1, nodes=32, cores=1), 0.9), (4, 16))
        return
    wanted = [name for name in TREES if name.startswith(options.only)]
    for workload, log, _ in whole_logs(options.folder, wanted) if options.folder is not None else ():
        yield log, Tree(replace(workload, jobs=workload.jobs[: options.jobs]), TREES[log])
    if options.eurora is not None and "Eurora" in wanted:
        workload = read_instance(options.eurora)
        yield "Eurora", Tree(replace(workload, jobs=workload.jobs[: options.jobs]), TREES["Eurora"])


def rows_of(name: str, tree: Tree, options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row for each policy and placement."""
    first: Runs | None = None
    has_whole_nodes = all(one.resources["cores"] == 1 for one in tree.workload.cluster.classes)
    for policy in options.policies:
        flat = simulate(tree.workload, make_scheduler(policy))
        first = first or flat.runs

        def row(placement: str, runs: Runs, cross: float, policy: str = policy, first: Runs = first) -> list[str]:
            say(f"{name}, {policy}, {placement}: {cross:.1%}")
            figures = waiting(runs) / waiting(first), utilisation(runs) / utilisation(first)
            return [name, policy, placement, f"{cross:.1%}", *(f"{figure:.3f}" for figure in figures)]

        yield row("first fit", flat.runs, tree.crossing(nodes_of(tree, flat)))
        others: dict[str, Placement] = {"random": Random(1).sample, "best-fit switch": tree.best_fit_switch}
        for placement, choose in others.items() if has_whole_nodes else ():
            yield row(placement, flat.runs, tree.crossing(placed(flat.runs, tree.nodes, choose)))
        for cost in (0, *options.costs, None):
            words = "all isolated" if cost is None else f"prefers, {cost} s" if cost else "best-fit group"
            history = simulate(tree.asking(cost), make_scheduler(policy))
            yield row(words, history.runs, tree.crossing(nodes_of(tree, history)))


def nodes_of(tree: Tree, history: History) -> list[Sequence[int]]:
    """Return the nodes of each job that has run."""
    number = {name: place for place, name in enumerate(tree.workload.cluster.node_names)}
    return [[number[node] for node in one.nodes] for one in history.record().jobs]


def placed(runs: Runs, nodes: int, choose: Placement) -> list[Sequence[int]]:
    """Return the nodes of each job, if they are chosen so when it starts."""
    free, held = list(range(nodes)), dict[int, Sequence[int]]()
    ran: list[int] = np.flatnonzero(runs.over).tolist()
    events = sorted([(int(runs.start[job]), 1, job) for job in ran] + [(int(runs.end[job]), 0, job) for job in ran])
    for _, is_start, job in events:
        if is_start:
            held[job] = choose(free, int(runs.nodes[job]))
            taken = set(held[job])
            free = [node for node in free if node not in taken]
        else:
            for node in held[job]:
                insort(free, node)
    return list(held.values())


def waiting(runs: Runs) -> float:
    """Return the sum of waits over expected waits."""
    waits: NDArray[np.float64] = (runs.start - runs.submit) / runs.expected_wait
    return float(waits[runs.over].sum())


def utilisation(runs: Runs) -> float:
    """Return the node-seconds until the last submission."""
    last = runs.submit.max()
    seconds = np.maximum(0, np.minimum(runs.end, last) - np.minimum(runs.start, last))
    return float((seconds * runs.nodes)[runs.over].sum())
