"""Plan windows whose jobs have alternatives: the planner's time with and without them, and what a choice is worth."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np
from benchmarking.measure import Sample, print_table, say
from benchmarking.windows import changeable, eurora_windows
from benchmarking.workload import Load, instance_of

from cpsched.domain import Instance, Job
from cpsched.formats import read_instance
from cpsched.metrics import end_rate
from cpsched.planner import Planner
from cpsched.portfolio import prepare, solve
from tests.workloads.changing import with_alternatives
from tests.workloads.eurora_windows import eurora_window

#: The most of the planner's time without alternatives that it may take with eight of them.
WANTED = 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of each search (default: 10)")
    parser.add_argument("--only", choices=["planner", "search"], help="one of the tables")


def run(options: argparse.Namespace) -> None:
    """Print both tables."""
    prepare()
    if options.only != "search":
        print_planner(quick=options.quick)
    if options.only != "planner":
        print_search(0.3 if options.quick else options.seconds, quick=options.quick)


def print_planner(*, quick: bool) -> None:
    """Print the planner's time without alternatives and with eight of each job, one after the other in turn."""
    windows = windows_of("-0.", quick=quick)
    if not quick:
        windows += [instance_of(Load(nodes=nodes, jobs=jobs, rounding=1)) for nodes, jobs in ((128, 2000), (616, 5000))]
    rows = []
    for rigid in windows:
        say(rigid.name)
        both = rigid, with_alternatives(rigid, 1)
        taken: list[list[float]] = [[], []]
        for _ in range(3 if quick else 7):
            for window, seconds in zip(both, taken, strict=True):
                seconds.append(timed(lambda window=window: planned(window)))
        modes = np.mean([1 + len(job.alternatives) for job in both[1].jobs])
        factor = min(taken[1]) / min(taken[0])
        row = rigid.name, f"{len(rigid.jobs):,}", f"{modes:.1f}", *(Sample(tuple(one)).text(3) for one in taken)
        rows.append((*row, f"{factor:.1f}", "reached" if factor <= WANTED else "**missed**"))
    header = ("window", "jobs", "modes a job", "without, s", "with, s", "times", f"at most {WANTED:g}")
    print_table("Planner with eight alternatives a job", header, rows, "Processor time; the least of each is compared.")


def windows_of(*names: str, quick: bool) -> list[Instance]:
    """Return the real windows with one of these names, as far as they are present, or a tiny one."""
    paths = [] if quick else [path for path in eurora_windows(quick=False) if any(name in path.name for name in names)]
    return [read_instance(path) for path in paths] or [eurora_window(40, 1, busy=0.5, demand=40)]


def planned(window: Instance) -> Planner:
    """Return the planner after its plan."""
    planner = Planner(window)
    planner.plan()
    planner.outcome()
    return planner


def timed(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    began = process_time()
    work()
    return process_time() - began


def print_search(seconds: float, *, quick: bool) -> None:
    """Print Z of the search on windows made rigid, where each job takes the first alternative that fits, and free."""
    rows = []
    for rigid in windows_of("0100-0", "0200-0", "0400-1", "0800-0", quick=quick):
        least = searched(rigid, seconds)
        for share in (1 / 3, 1.0):
            window = with_alternatives(rigid, 1, share=share)
            say(f"{rigid.name}, {share:.0%}")
            first, extra = first_that_fits(window)
            fixed = searched(first, seconds) + extra
            value = searched(window, seconds)
            row = rigid.name, f"{share:.0%}", *(f"{one:,.1f}" for one in (least, fixed, value))
            rows.append((*row, above(value, least), above(value, fixed)))
    header = "window", "have a choice", "Z made rigid", "Z of the first that fits", "Z", "to rigid", "to the first"
    note = (
        f"`solve --engine search --workers 1 --budget {seconds:g}` for each. The first that fits: each job as `easy` "
        "runs it, which starts it by the first alternative that fits at once; its starts are searched as those of "
        "rigid jobs. Z is the value without what jobs had waited at `now`; ends before those by own requests make it "
        "less than 0."
    )
    print_table("What a choice is worth", header, rows, note)


def above(value: float, other: float) -> str:
    """Return by which part one value is above another."""
    return f"{value / other - 1:+.0%}" if other else "-"


def first_that_fits(window: Instance) -> tuple[Instance, float]:
    """Return a window in which each job is what `easy` has made of it, and what that costs beside its wait."""
    taken = {job.id: job.alternative for job in solve(window, engine="easy", budget=0).jobs}

    def settled(job: Job) -> Job:
        return replace(job, steps=job.choices[taken.get(job.id, 0)].steps, alternatives=())

    fixed = replace(window, jobs=tuple(map(settled, window.jobs)))
    pairs = zip(window.jobs, fixed.jobs, strict=True)
    return fixed, float(sum(end_rate(window, one) * (other.walltime - one.walltime) for one, other in pairs))


def searched(window: Instance, seconds: float) -> float:
    """Return Z of the search after so many seconds."""
    return changeable(solve(window, engine="search", budget=seconds, workers=1))
