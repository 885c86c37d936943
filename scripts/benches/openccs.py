"""Measure what section 6 of OpenCCS reports (Keller, JSSPP 2017): a restart, submissions, sorting, a full plan."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking.measure import Sample, print_table, repeat, run_command, say
from benchmarking.workload import OCULUS_NODES, Load, instance_of

from cpsched.domain import Instance
from cpsched.formats import write_instance, write_plan
from cpsched.planner import Planner, warmup
from cpsched.portfolio import LivePlan, solve
from cpsched.problem import planning_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many jobs, and how often."""

    repetitions: int
    nodes: int
    recovered: int
    planned: int
    #: Jobs that come in one second.
    submitted: int
    queued: int


FULL = Sizes(repetitions=3, nodes=OCULUS_NODES, recovered=5_000, planned=15_000, submitted=100, queued=60_000)
QUICK = Sizes(repetitions=1, nodes=32, recovered=50, planned=150, submitted=10, queued=600)


def window_of(sizes: Sizes, jobs: int) -> Instance:
    """Return a window with so many waiting jobs of continuous durations, the worst case."""
    return instance_of(Load(nodes=sizes.nodes, jobs=jobs, rounding=1))


def recovery(sizes: Sizes, folder: Path) -> Sample:
    """Return the seconds of a process that reads a window and its plan, moves both on by a second and writes them."""
    say(f"{sizes.recovered:,} jobs are recovered")
    window, plan = folder / "window.json", folder / "plan.json"
    instance = window_of(sizes, sizes.recovered)
    write_instance(instance, window)
    write_plan(solve(instance, engine="planner"), plan)
    command = (sys.executable, "-m", "cpsched", "replan", str(window), str(plan), "--at", str(instance.now + 1))
    output = ("-o", str(folder / "next.json"), "--instance-output", str(folder / "next-window.json"), "--quiet")
    return Sample(tuple(run_command((*command, *output))[0] for _ in range(sizes.repetitions)))


def submissions(sizes: Sizes) -> Sample:
    """Return the seconds in which more jobs get starts and nodes beside a full plan."""
    say(f"{sizes.submitted:,} submissions onto a plan of {sizes.planned:,} jobs")
    whole = window_of(sizes, sizes.planned + 2 * sizes.submitted)
    before, between = (replace(whole, jobs=whole.jobs[: sizes.planned + come]) for come in (0, sizes.submitted))
    plan = solve(before, engine="planner")

    def followed() -> LivePlan:
        live = LivePlan(before, plan)
        live.follow(between)
        live.follow(between)
        return live

    return repeat(sizes.repetitions, followed, lambda live: (live.follow(whole), live.outcome()))


#: Its figures are processor time: it keeps to one core.
IS_PINNED = True


def run(arguments: argparse.Namespace) -> None:
    """Measure all, and print it."""
    sizes = QUICK if arguments.quick else FULL
    warmup()
    with tempfile.TemporaryDirectory(prefix="cpsched-bench-") as name:
        recovered = recovery(sizes, Path(name))
    submitted = submissions(sizes)
    say(f"{sizes.queued:,} jobs are sorted, {sizes.planned:,} are planned")
    queued, full = window_of(sizes, sizes.queued), window_of(sizes, sizes.planned)
    ordered = repeat(sizes.repetitions, lambda: queued, lambda window: planning_order(window, window.jobs))
    planned = repeat(sizes.repetitions, lambda: Planner(full), Planner.plan)
    rows = (
        (f"{sizes.recovered:,} jobs recovered: `cpsched replan`, the whole process", recovered.text(2)),
        (f"{sizes.submitted:,} submissions planned beside {sizes.planned:,} jobs", submitted.text(3)),
        (f"{sizes.queued:,} jobs sorted", ordered.text(3)),
        (f"{sizes.planned:,} jobs planned", planned.text(2)),
    )
    print_table(f"Section 6 of OpenCCS, {sizes.nodes:,} nodes, continuous durations", ("work", "seconds"), rows)
