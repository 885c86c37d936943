"""Measure how far plans are from what is proven, by window and budget; what the gap is made of; and on parts of the
windows that CP-SAT solves to the end, how far the bound is from the optimum.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarking.measure import print_table, say
from benchmarking.windows import changeable, eurora_windows

from cpsched.cp import lower_bound
from cpsched.domain import Amounts, Chunk, Instance, Plan
from cpsched.formats import read_instance
from cpsched.portfolio import prepare, solve

#: A part of a window: its first jobs that have few chunks, and the first nodes of each class.
PART_JOBS, PART_CHUNKS, PART_NODES = 14, 3, 2


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("windows", nargs="*", type=Path, help="instances; default: Eurora's with 100 jobs or more")
    parser.add_argument(
        "--budget", type=float, action="append", help="seconds for a bound (repeatable; default: 10, 60)"
    )
    parser.add_argument("--planning", type=float, default=30.0, help="seconds for a plan (default: 30)")


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    options.windows = options.windows or eurora_windows(quick=options.quick)
    options.budgets = (0.5,) if options.quick else options.budget or (10.0, 60.0)
    options.planning = 0.5 if options.quick else options.planning
    prepare()
    print_windows(options)
    print_causes(options)
    print_parts(options)


def proven(instance: Instance, plan: Plan, seconds: float) -> tuple[float, str, float]:
    """Return (Z that no plan of the same jobs can undercut, method, seconds it took)."""
    running = {job.id for job in instance.jobs if job.running is not None}
    begin = time.monotonic()
    bound = lower_bound(instance, [job.id for job in plan.jobs if job.id not in running], seconds=seconds)
    elapsed = time.monotonic() - begin
    if bound is None:
        raise SystemExit(f"{instance.name}: an objective that pays for delay has no bound")
    return bound.value - plan.objective.suffered, bound.how, elapsed


def gap(value: float, least: float) -> str:
    """Return the part of a plan's Z that may be avoidable."""
    return f"{1 - least / value:.1%}" if value > 0 else "-"


def print_windows(options: argparse.Namespace) -> None:
    """Print bound, plan and gap of each window and budget."""
    rows = []
    for path in options.windows:
        instance = read_instance(path)
        say(instance.name)
        plan = solve(instance, budget=options.planning)
        value = changeable(plan)
        for budget in options.budgets:
            least, how, elapsed = proven(instance, plan, budget)
            rows.append(
                [instance.name, f"{budget:g} s", f"{value:,.4g}", f"{least:,.4g}", gap(value, least),
                 f"{elapsed:.1f} s", how]
            )  # fmt: skip
    note = f"Z = value less what had been waited at `now`. Plans: portfolio, {options.planning:g} s, verified."
    print_table("Bound and plan", ["window", "budget", "plan", "bound", "gap", "took", "method"], rows, note)


Change = Callable[[Chunk], Chunk]


def only(*names: str) -> Change:
    """Return a change that leaves a chunk some of its resources."""

    def change(chunk: Chunk) -> Chunk:
        kept = {name: amount for name, amount in chunk.resources.items() if name in names}
        return replace(chunk, resources=Amounts(kept or {"cores": 1}))

    return change


def changed(instance: Instance, change: Change) -> Instance:
    """Return the instance with other chunks."""
    jobs = []
    for job in instance.jobs:
        steps = [
            replace(step, request=replace(step.request, chunks=tuple(change(chunk) for chunk in step.request.chunks)))
            for step in job.steps
        ]
        jobs.append(replace(job, steps=tuple(steps)))
    return replace(instance, jobs=tuple(jobs))


def causes(instance: Instance) -> Sequence[tuple[str, Instance]]:
    """Return the window with less and less to pack."""
    most = max(node_class.resources.get("cores", 0) for node_class in instance.cluster.classes)

    def whole(chunk: Chunk) -> Chunk:
        return replace(chunk, resources=Amounts({"cores": most}))

    def nested(chunk: Chunk) -> Chunk:
        cores = chunk.resources.get("cores", 1)
        return replace(chunk, resources=Amounts({"cores": next(size for size in (4, 8, most) if size >= cores)}))

    return [
        ("as it is", instance),
        ("no GPUs, no MICs", changed(instance, only("cores", "mem"))),
        ("no memory", changed(instance, only("cores", "gpus", "mics"))),
        ("only cores", changed(instance, only("cores"))),
        ("only cores, rounded up to 4, 8 or all", changed(instance, nested)),
        ("each chunk takes a whole node", changed(instance, whole)),
    ]


def print_causes(options: argparse.Namespace) -> None:
    """Print plan, bound and gap as there is less and less to pack on the nodes."""
    path = next((path for path in options.windows if "0200" in path.name), options.windows[0])
    rows = []
    for name, instance in causes(read_instance(path)):
        say(name)
        plan = solve(instance, budget=options.planning)
        least, _, _ = proven(instance, plan, options.budgets[0])
        rows.append([name, f"{changeable(plan):,.4g}", f"{least:,.4g}", gap(changeable(plan), least)])
    note = f"Plans: portfolio, {options.planning:g} s; bounds: {options.budgets[0]:g} s."
    print_table(f"What the gap is made of: {path.name}", ["requests", "plan", "bound", "gap"], rows, note)


def part(instance: Instance) -> Instance:
    """Return a part of a window that is small enough for a proof."""
    classes = tuple(replace(one, names=one.names[:PART_NODES]) for one in instance.cluster.classes)
    jobs = [
        job
        for job in instance.jobs
        if job.running is None and sum(chunk.count for chunk in job.steps[0].request.chunks) <= PART_CHUNKS
    ]
    return replace(instance, cluster=replace(instance.cluster, classes=classes), jobs=tuple(jobs[:PART_JOBS]))


def print_parts(options: argparse.Namespace) -> None:
    """Print for a part of each window the optimum, if CP-SAT proves one, and the bound."""
    rows = []
    for path in options.windows:
        instance = part(read_instance(path))
        say(f"{instance.name}, a part")
        plan = solve(instance, engine="cp", budget=options.planning, workers=1)
        value = changeable(plan)
        least, _, _ = proven(instance, plan, options.budgets[0])
        rows.append([instance.name, plan.engine.stopped, f"{value:,.4g}", f"{least:,.4g}", gap(value, least)])
    note = f"{PART_JOBS} jobs, {PART_NODES} nodes of each class. Plans: cp, {options.planning:g} s, one core."
    print_table("Parts that are solved to the end", ["window", "cp", "plan", "bound", "gap"], rows, note)
