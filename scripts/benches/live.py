"""Measure a plan that lives: a cycle after some of the jobs have changed, beside the same plan made anew; and how many
jobs a second the planner plays on-line.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from benchmarking.measure import print_table, say
from benchmarking.windows import workload_of
from benchmarking.workload import Load, instance_of

from cpsched.domain import Instance
from cpsched.lab.policies import make_engine_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import eurora_stream
from cpsched.planner import LivePlanner, advanced
from cpsched.portfolio import plan_of

#: Seconds from one cycle to the next.
STEP = 30


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("logs", nargs="*", type=Path, help="logs that the planner plays on-line (*.swf.gz)")
    parser.add_argument("--nodes", type=int, default=5040, help="nodes of the window (default: 5,040)")
    parser.add_argument("--jobs", type=int, default=10_000, help="waiting jobs of the window (default: 10,000)")
    parser.add_argument("--share", type=float, default=0.01, help="of the waiting jobs, so many change (default: 0.01)")
    parser.add_argument("--cycles", type=int, default=5, help="cycles (default: 5)")
    parser.add_argument("--first", type=int, default=0, help="the first job of a log (default: 0)")
    parser.add_argument("--count", type=int, default=3000, help="jobs of a log (default: 3,000)")


def run(options: argparse.Namespace) -> None:
    """Print a table of cycles and a table of logs."""
    if options.quick:
        options.nodes, options.jobs, options.cycles = 20, 60, 2
    warm_up_simulation()
    print_cycles(options)
    print_logs(options)


def print_cycles(options: argparse.Namespace) -> None:
    """Print how long a cycle takes, where jobs have typical durations, and where all are different."""
    rows = []
    for rounding in (None, 1):
        load = Load(nodes=options.nodes, jobs=2 * options.jobs, rounding=rounding)
        for number, (followed, anew) in enumerate(cycles(load, options)):
            say(f"{load.durations}: cycle {number}: {followed:.3f} s, anew {anew:.3f} s")
            rows.append([load.durations, str(number), f"{followed:.3f}", f"{anew:.3f}"])
    print_table(
        f"A cycle after {options.share:.1%} of {options.jobs:,} waiting jobs on {options.nodes:,} nodes has changed",
        ["durations", "cycle", "followed, s", "anew, s"],
        rows,
        "Processor time. Half of the jobs that change are running ones that end early, half are new ones. The first "
        "cycle tries all jobs, the others those that can gain.",
    )


def cycles(load: Load, options: argparse.Namespace) -> list[tuple[float, float]]:
    """Return the seconds of each cycle: of the plan that follows, and of one made anew from the same plan."""
    whole = instance_of(load)
    drawn = list(whole.jobs)
    window = replace(whole, jobs=tuple(drawn[: options.jobs]))
    coming = drawn[options.jobs :]
    live = LivePlanner(window)
    window = settled(live, window)
    live.follow(window)
    found = []
    for _ in range(options.cycles):
        count = max(2, round(options.share * options.jobs))
        lacking = max(count // 2, options.jobs - sum(job.running is None for job in window.jobs))
        ended = {
            job.id for job in [job for job in window.jobs if job.running is not None][:: 1 + count % 7][: count // 2]
        }
        arrived, coming = coming[:lacking], coming[lacking:]
        jobs = [job for job in window.jobs if job.id not in ended]
        later = replace(window, jobs=(*jobs, *(replace(job, submit=window.now) for job in arrived)))
        before = live.outcome()
        began = time.process_time()
        live.follow(later)
        followed = time.process_time() - began
        LivePlanner(later, before.jobs, window.now)
        found.append((followed, time.process_time() - began - followed))
        window = settled(live, later)
        live.follow(window)
    return found


def settled(live: LivePlanner, window: Instance) -> Instance:
    """Return a window some seconds later, if all has gone as planned."""
    plan = plan_of(window, "planner", live.outcome(), budget=0, elapsed=0)
    return advanced(window, plan, window.now + STEP)


def print_logs(options: argparse.Namespace) -> None:
    """Print how many jobs of logs a second the planner plays on-line."""
    rows = []
    for workload in [eurora_stream(200, 1)] if options.quick else (workload_of(path)[0] for path in options.logs):
        jobs = sorted(workload.jobs, key=lambda job: job.submit)[options.first : options.first + options.count]
        part = replace(workload, now=min(job.submit for job in jobs), jobs=tuple(jobs))
        simulate(replace(part, jobs=part.jobs[:50]), make_engine_scheduler("planner"))  # compiles
        began = time.process_time()
        runs = simulate(part, make_engine_scheduler("planner")).runs
        seconds = time.process_time() - began
        wait = (runs.start - runs.submit)[runs.over].mean()
        say(f"{workload.name}: {len(jobs) / seconds:,.0f} jobs/s")
        nodes = len(workload.cluster.node_names)
        rows.append([workload.name, f"{len(jobs):,}", f"{nodes:,}", f"{len(jobs) / seconds:,.0f}", f"{wait:,.0f}"])
    if rows:
        print_table("The planner on-line", ["workload", "jobs", "nodes", "jobs/s", "mean wait, s"], rows)
