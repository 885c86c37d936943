"""Measure insertions and backfills on the timeline, through the planner and its ledger, beside the naive twin."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarking.charts import line_chart
from benchmarking.measure import Sample, print_table, repeat, say, verdict
from benchmarking.twin import TWIN_HEADER, TWIN_NOTE, compare
from benchmarking.workload import Load, array_of_single_cores, identical_jobs, instance_of

from cpsched.domain import Instance
from cpsched.planner import Planner, warmup


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is measured, and how often."""

    repetitions: int
    jobs: int
    #: The nodes of ARMINIUS, OCuLUS and a machine of 80,640 cores.
    machines: tuple[int, ...]
    growing_nodes: tuple[int, ...]
    growing_jobs: tuple[int, ...]
    #: Durations are rounded up to multiples of these (s): the coarser, the fewer slots.
    roundings: tuple[int, ...]
    #: (nodes, jobs) that the naive twin can do.
    twins: tuple[tuple[int, int], ...]


FULL = Sizes(
    repetitions=3,
    jobs=10_000,
    machines=(62, 616, 5040),
    growing_nodes=(62, 124, 308, 616, 1232, 2520, 5040),
    growing_jobs=(1000, 2000, 5000, 10_000, 15_000),
    roundings=(86_400, 21_600, 3600, 900, 60, 1),
    twins=((16, 200), (64, 200)),
)
QUICK = Sizes(
    repetitions=1,
    jobs=300,
    machines=(24, 32),
    growing_nodes=(16, 62),
    growing_jobs=(100, 300),
    roundings=(3600, 1),
    twins=((8, 40),),
)

#: At least so many a second, by nodes: (20 typical durations, continuous durations).
BACKFILLS_WANTED = {62: (60_000, 15_000), 616: (60_000, 10_000)}
INSERTIONS_WANTED = {5040: (8_000, 1_500)}
ARRAY_WANTED = {616: 0.2}
TYPICAL, CONTINUOUS = None, 1
CANCELLED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Speed:
    """What one window gave; seconds for all its jobs."""

    instance: Instance
    slots: int
    insertions: Sample
    backfills: Sample

    @property
    def jobs(self) -> int:
        """How many jobs were planned."""
        return len(self.instance.jobs)

    def cost_row(self) -> tuple[str, ...]:
        """Return slots, and microseconds for an insertion and a backfill."""
        micros = (sample.per(self.jobs, 1e-6).text(1) for sample in (self.insertions, self.backfills))
        return (f"{self.slots:,}", *micros)


def planned(instance: Instance) -> Planner:
    """Return a planner whose plan is made."""
    planner = Planner(instance)
    planner.plan()
    return planner


def shuffled(instance: Instance) -> list[str]:
    """Return the ids of all jobs in a random order, always the same."""
    ids = [job.id for job in instance.jobs]
    random.Random(0).shuffle(ids)
    return ids


def measured(instance: Instance, repetitions: int) -> Speed:
    """Measure the insertion of all jobs into the empty plan, and one backfill of each in random order."""
    say(f"{instance.name}: {repetitions} times {len(instance.jobs):,} insertions and backfills")
    insertions = repeat(repetitions, lambda: Planner(instance), Planner.plan)
    planner, order = planned(instance), shuffled(instance)
    backfills = repeat(repetitions, lambda: planner.ledger, lambda ledger: ledger.backfill(order))
    return Speed(instance, len(planner.ledger.timeline.breakpoints()), insertions, backfills)


@cache
def speed_of(load: Load, repetitions: int) -> Speed:
    """Measure a load, once for all tables in which it stands."""
    return measured(instance_of(load), repetitions)


# --- tables ---------------------------------------------------------------------------------------------------------


def print_speed(sizes: Sizes) -> None:
    """Print what stands in the table of targets."""
    rows = []
    for nodes in sizes.machines:
        for place, rounding in enumerate((TYPICAL, CONTINUOUS)):
            load = Load(nodes=nodes, jobs=sizes.jobs, rounding=rounding)
            speed = speed_of(load, sizes.repetitions)
            inserted, backfilled = speed.insertions.rate(speed.jobs), speed.backfills.rate(speed.jobs)
            wanted = INSERTIONS_WANTED.get(nodes), BACKFILLS_WANTED.get(nodes)
            cells = []
            for sample, targets in zip((inserted, backfilled), wanted, strict=True):
                cells += [sample.text(), verdict(sample, targets[place] if targets else None)]
            cores = f"{speed.instance.cluster.totals['cores']:,}"
            rows.append((f"{nodes:,}", cores, load.durations, f"{speed.slots:,}", *cells))
    header = ("nodes", "cores", "durations", "slots", "insertions/s", "target", "backfills/s", "target")
    note = (
        "An insertion plans, maps and books one job. A backfill unbooks one job of the full plan, plans and maps it "
        "again and books it; in random order over all jobs. On a plan just made nobody can move."
    )
    print_table(f"Speed on a full plan of {sizes.jobs:,} jobs", header, rows, note)


def print_variants(sizes: Sizes) -> None:
    """Print what becomes of the figures where the plan is less convenient."""
    small, middle = sizes.machines[:2]
    large, little = (Load(nodes=nodes, jobs=sizes.jobs, rounding=TYPICAL) for nodes in (middle, small))
    variants = {
        "as above": large,
        "all single-core jobs of the published table": replace(large, all_single_cores=True),
        "memory in odd MiB": replace(large, odd_memory=True),
        "as above, smaller machine": little,
        "nodes of 8 and 12 cores, chunks of 8": replace(little, uneven=True),
    }
    rows = []
    for name, variant in variants.items():
        for rounding in (TYPICAL, CONTINUOUS):
            load = replace(variant, rounding=rounding)
            speed = speed_of(load, sizes.repetitions)
            rates = (sample.rate(speed.jobs).text() for sample in (speed.insertions, speed.backfills))
            rows.append((name, f"{load.nodes:,}", load.durations, f"{speed.slots:,}", *rates))
    header = ("workload", "nodes", "durations", "slots", "insertions/s", "backfills/s")
    print_table(f"Other workloads, {sizes.jobs:,} jobs", header, rows)


def moving_of(instance: Instance, repetitions: int) -> tuple[float, Sample]:
    """Measure the first pass of backfills after some jobs, drawn at random, were cancelled.

    Returns
    -------
    tuple
        The share of the jobs left that moved, and how many were backfilled a second.
    """
    order = shuffled(instance)
    cancelled = int(CANCELLED_SHARE * len(order))
    left, moved = order[cancelled:], 0

    def with_holes() -> Planner:
        planner = planned(instance)
        for job_id in order[:cancelled]:
            planner.ledger.release(job_id)
        return planner

    def backfill(planner: Planner) -> None:
        nonlocal moved
        moved = planner.ledger.backfill(left)

    say(f"{instance.name}: {cancelled:,} jobs cancelled")
    rate = repeat(repetitions, with_holes, backfill).rate(len(left))
    return moved / len(left), rate


def print_moving(sizes: Sizes) -> None:
    """Print how fast a plan closes the holes that cancelled jobs leave."""
    nodes, rows = sizes.machines[1], []
    for rounding in (TYPICAL, CONTINUOUS):
        load = Load(nodes=nodes, jobs=sizes.jobs, rounding=rounding)
        share, rate = moving_of(instance_of(load), sizes.repetitions)
        rows.append((load.durations, f"{share:.0%}", rate.text()))
    note = f"The first pass over the plan after {CANCELLED_SHARE:.0%} of its jobs, drawn at random, were cancelled."
    title = f"Backfilling that moves jobs, {nodes:,} nodes, {sizes.jobs:,} jobs"
    print_table(title, ("durations", "jobs that moved", "backfills/s"), rows, note)


def array_seconds(instance: Instance, elements: int, repetitions: int) -> Sample:
    """Measure the planning of an array after all jobs of the window have their places."""
    array = array_of_single_cores(elements, instance.now)
    both = replace(instance, jobs=(*instance.jobs, array))
    first = [job.id for job in instance.jobs]

    def full_plan() -> Planner:
        planner = Planner(both)
        planner.ledger.plan(first)
        return planner

    say(f"{instance.name}: an array of {elements:,} jobs on top")
    return repeat(repetitions, full_plan, lambda planner: planner.ledger.plan(array.element_ids))


def print_array(sizes: Sizes) -> None:
    """Print how long a large array takes that comes to a full plan."""
    nodes, rows = sizes.machines[1], []
    for rounding in (TYPICAL, CONTINUOUS):
        load = Load(nodes=nodes, jobs=sizes.jobs, rounding=rounding)
        seconds = array_seconds(instance_of(load), sizes.jobs, sizes.repetitions)
        target = verdict(seconds, ARRAY_WANTED.get(nodes), at_most=True)
        rows.append((load.durations, f"{sizes.jobs:,}", seconds.text(3), target))
    header = ("durations of the plan", "elements", "seconds", "target")
    title = f"An array of single-core jobs (1 h) onto a full plan of {sizes.jobs:,} jobs, {nodes:,} nodes"
    print_table(title, header, rows)


# --- growth ---------------------------------------------------------------------------------------------------------


def print_growth(sizes: Sizes, plots: Path | None) -> None:
    """Print how the cost of one operation grows, and draw it."""
    middle = sizes.machines[1]
    both = (TYPICAL, CONTINUOUS)
    by_nodes = [Load(nodes=nodes, jobs=sizes.jobs, rounding=r) for r in both for nodes in sizes.growing_nodes]
    by_jobs = [Load(nodes=middle, jobs=jobs, rounding=r) for r in both for jobs in sizes.growing_jobs]
    by_slots = [Load(nodes=middle, jobs=sizes.jobs, rounding=rounding) for rounding in sizes.roundings]

    def speeds(loads: list[Load]) -> list[tuple[str, Speed]]:
        return [(load.durations, speed_of(load, sizes.repetitions)) for load in loads]

    same = [("identical", measured(identical_jobs(middle, jobs), sizes.repetitions)) for jobs in sizes.growing_jobs]
    chapters = (
        ("nodes", f"Growth with nodes, {sizes.jobs:,} jobs", speeds(by_nodes)),
        ("jobs", f"Growth with jobs, {middle:,} nodes", speeds(by_jobs)),
        ("slots", f"Growth with slots, {middle:,} nodes, {sizes.jobs:,} jobs", speeds(by_slots)),
        ("identical", f"Flat with identical jobs, {middle:,} nodes (OCCS-12)", same),
    )
    for key, title, found in chapters:
        rows = [
            (f"{len(s.instance.cluster.node_names):,}", f"{s.jobs:,}", durations, *s.cost_row())
            for durations, s in found
        ]
        print_table(title, ("nodes", "jobs", "durations", "slots", "µs per insertion", "µs per backfill"), rows)
        if plots is not None:
            x = "jobs" if key == "identical" else key
            (plots / f"growth-{key}.svg").write_text(chart_of(title, x, found), encoding="utf-8")


def chart_of(title: str, x: str, found: Iterable[tuple[str, Speed]]) -> str:
    """Return a chart of the medians: one line for each operation and kind of durations (one kind where slots vary)."""
    series: dict[str, list[tuple[float, float]]] = {}
    for durations, speed in found:
        across = {"nodes": len(speed.instance.cluster.node_names), "jobs": speed.jobs, "slots": speed.slots}[x]
        kind = "" if x == "slots" else f", {durations}"
        series.setdefault(f"insertion{kind}", []).append((across, speed.insertions.per(speed.jobs, 1e-6).median))
        series.setdefault(f"backfill{kind}", []).append((across, speed.backfills.per(speed.jobs, 1e-6).median))
    return line_chart(title, x, "µs per operation", series)


#: Its figures are processor time: it keeps to one core.
IS_PINNED = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--plots", type=Path, metavar="DIRECTORY", help="write the charts of growth there, as SVG")


def run(arguments: argparse.Namespace) -> None:
    """Measure all, and print it."""
    sizes = QUICK if arguments.quick else FULL
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)  # not after minutes of work
    say("loading the kernels (the first time this compiles them)")
    warmup()
    print_speed(sizes)
    print_array(sizes)
    print_moving(sizes)
    print_variants(sizes)
    print_growth(sizes, arguments.plots)
    rows = []
    for nodes, jobs in sizes.twins:
        say(f"the naive twin: {jobs} jobs on {nodes} nodes")
        rows.append(compare(instance_of(Load(nodes=nodes, jobs=jobs, rounding=CONTINUOUS))).row())
    print_table("Beside the naive twin, continuous durations", TWIN_HEADER, rows, TWIN_NOTE)
