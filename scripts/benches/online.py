"""Play workloads by every rule, by the planner and by optimisers on-line, whose own time is charged; compare the sums
of wait / expected wait (WQT).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarking.measure import load_average, print_table, say

from cpsched.domain import Instance
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.metrics import RunsSummary, runs_summary
from cpsched.policies import make_scheduler
from cpsched.portfolio import label_of, make_engine_scheduler
from cpsched.sim import History, QueueRule, Scheduler, simulate, warm_up_simulation
from cpsched.verify import verify
from cpsched.workloads import eurora_stream, scaled

#: A day of Eurora, 1,000 jobs of which come within two hours, or within four.
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "eurora"
#: Rules that have an order, without backfilling and with it; and the others.
ORDERS = ("fcfs", "sjf", "saf", "wspt", "wfp3", "unicef", "f1")
EASY = {"backfill": "easy"}
OTHERS = ("first_fit", "pbs_fifo_bf10", "pbs_walltime_bf400", "conservative", "maui", "slurm")
#: Windows planned anew without a solver, and whether that is by a rule: a list by Smith's rule is one.
PLANNED = {"wspt_list": True, "planner": False}
#: By so much WQT is to be under the best rule's.
WANTED = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A workload, played by a scheduler."""

    name: str
    is_rule: bool
    #: Whether the seconds of its decisions count.
    is_charged: bool
    figures: RunsSummary

    @property
    def wqt(self) -> float:
        """The sum of wait / expected wait."""
        return self.figures.total.wqt


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("workloads", nargs="*", type=Path, help="in place of Eurora's")
    parser.add_argument("--engines", nargs="+", default=["portfolio"], help="optimisers (default: portfolio)")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of a cycle (default: 1)")
    parser.add_argument("--min-interval", type=int, default=0, help="seconds between two cycles (default: 0)")
    parser.add_argument("--window", type=int, default=200, help="jobs planned in a cycle at the most (default: 200)")
    parser.add_argument("--workers", type=int, default=1, help="cores of an optimiser (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Print a table for each workload."""
    warm_up_simulation()
    for workload in workloads(options):
        print_workload(workload, options)


def workloads(options: argparse.Namespace) -> Iterator[Instance]:
    """Yield the workloads."""
    if options.quick:
        yield scaled(eurora_stream(180, 1), 200.0)
        return
    paths = options.workloads or sorted(REAL.glob("workload-1000-*.json.gz"))
    if not paths:
        yield eurora_stream(1000, 1)
    for path in paths:
        yield read_instance(path)


def print_workload(workload: Instance, options: argparse.Namespace) -> None:
    """Print how everybody played a workload."""
    played = []
    for name, scheduler, is_rule in contenders(options):
        say(f"{workload.name}: {name}, load average {load_average()}")
        history = simulate(workload, scheduler, charge_overhead=True)
        figures = judged(workload, history)
        is_charged = not isinstance(scheduler, QueueRule)
        played.append(Played(name=name, is_rule=is_rule, is_charged=is_charged, figures=figures))
    best = min(one.wqt for one in played if one.is_rule)
    header = [
        "scheduler",
        "decisions",
        "seconds of a decision, mean",
        "99 %",
        "sum of wait / expected wait",
        "to the best rule",
        "jobs that wait longer than expected",
        "waited beyond the expected, s",
        "mean wait, s",
    ]
    rows = [row_of(one, best) for one in sorted(played, key=lambda one: (not one.is_rule, one.wqt))]
    note = (
        f"{len(workload.jobs):,} jobs. The seconds of decisions are charged to the simulated clock, except those of "
        "compiled rules, which take microseconds. Each has been judged by the verifier for what happened. "
        f"`{'`, `'.join(options.engines)}`: {options.budget:g} s for each cycle, {options.window} jobs at the most, "
        f"{options.min_interval} s between two cycles at least, {options.workers} workers. Wanted for one of them: "
        f"a sum of wait / expected wait at least {WANTED:.0%} under the best rule's. `wspt_list` is a rule, too: "
        "a list by Smith's rule, planned anew at each event."
    )
    print_table(workload.name, header, rows, note)


def contenders(options: argparse.Namespace) -> Iterator[tuple[str, QueueRule | Scheduler, bool]]:
    """Yield the schedulers: in words, and whether each is a rule."""
    for order in ORDERS:
        yield order, make_scheduler(order), True
    for order in ORDERS[1:]:
        yield label_of(order, EASY), make_scheduler(order, **EASY), True
    yield "easy", make_scheduler("easy"), True
    for name in OTHERS:
        yield name, make_scheduler(name), True
    for name, is_rule in PLANNED.items():
        yield name, make_engine_scheduler(name, window=options.window), is_rule
    for name in options.engines:
        yield name, engine_scheduler(name, options), False


def engine_scheduler(name: str, options: argparse.Namespace) -> Scheduler:
    """Return an optimiser."""
    return make_engine_scheduler(
        name,
        budget=0.1 if options.quick else options.budget,
        min_interval=options.min_interval,
        window=options.window,
        workers=options.workers,
    )


def judged(workload: Instance, history: History) -> RunsSummary:
    """Return the figures of what happened, which must keep all rules."""
    violations = verify(instance_to_document(workload), plan_to_document(history.record()))
    if violations:
        sys.exit(f"{history.scheduler} on {workload.name}: {violations[0]}")
    capacity = workload.cluster.totals["cores"]
    return runs_summary(history.runs, capacity, decision_seconds=history.decision_seconds)


def row_of(played: Played, best: float) -> list[str]:
    """Return a row of the table."""
    total, decisions = played.figures.total, played.figures.decisions
    times = ["-"] * 3
    if decisions is not None and played.is_charged:
        times = [f"{decisions.count:,}", f"{decisions.mean:.3f}", f"{decisions.p99:.3f}"]
    wait = 0.0 if total.wait is None else total.wait.mean
    return [
        played.name,
        *times,
        f"{played.wqt:,.1f}",
        f"{played.wqt / best - 1:+.1%}" if best else "-",
        f"{total.late:,}",
        f"{total.tardiness:,}",
        f"{wait:,.0f}",
    ]
