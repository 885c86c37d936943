"""Plan windows in which jobs have deadlines and wait for others: which jobs are left out, by whom, and at what cost.

Jobs that no plan has, since even alone they would be too late, are not counted as left out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from benchmarking.measure import print_table, say

from cpsched.booking import Ledger
from cpsched.domain import Instance, Plan, PlannedJob
from cpsched.engine import Outcome
from cpsched.metrics import objective_value, suffered
from cpsched.planner import AdmissionResult, placeable_beside
from cpsched.portfolio import prepare, solve
from cpsched.problem import awaited_first, planning_order
from tests.workloads.deadlines import with_deadlines
from tests.workloads.eurora_windows import eurora_window

#: (jobs, share of the machine that is busy at first).
SIZES = ((200, 0.0), (200, 0.9), (800, 0.0), (800, 0.9))
#: The orders at random of which the best one counts.
ORDERS = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of the portfolio (default: 10)")
    parser.add_argument("--cp", type=float, default=60.0, help="seconds of CP alone (default: 60)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--seeds", type=int, default=3, help="windows of each size (default: 3)")


def run(options: argparse.Namespace) -> None:
    """Print a table of windows."""
    prepare()
    if options.quick:
        rows = [row_of(with_deadlines(eurora_window(60, 6, busy=0.5), 6, share=0.7), 1.0, 1.0, 1, orders=5)]
    else:
        windows = [(jobs, busy, seed) for jobs, busy in SIZES for seed in range(1, options.seeds + 1)]
        rows = [
            row_of(with_deadlines(eurora_window(jobs, seed, busy=busy), seed), options.budget, options.cp,
                   options.workers, orders=ORDERS)
            for jobs, busy, seed in windows
        ]  # fmt: skip
    header = ["window", "jobs", "deadlines", "first order", "list by deadlines", f"best of {ORDERS} orders", "planner",
              "CP", "portfolio", "rescued by", "by deadlines: value", "portfolio: value", "under"]  # fmt: skip
    note = (
        "Jobs that are left out by each: the planner's first order alone; a list by deadlines; the best of so many "
        f"orders at random; the planner; CP alone in {options.cp:g} s; and the portfolio in {options.budget:g} s with "
        f"{options.workers} workers. Rescues: more planned jobs than before, by solver, in both. Values are those of "
        "the jobs that both the list and the portfolio plan."
    )
    print_table("Jobs that must end in time", header, rows, note)


def row_of(window: Instance, budget: float, cp_budget: float, workers: int, *, orders: int) -> list[str]:
    """Return the row of a window."""
    say(window.name)
    random = Random(1)
    jobs = AdmissionResult.of(window, engine="bench").admitted
    first = planned_in(window, [job.id for job in planning_order(window, jobs)])
    last = window.now + 10**9
    due = sorted(jobs, key=lambda job: last if job.deadline is None else job.deadline)
    listed = planned_in(window, [job.id for job in awaited_first(window, due)])
    drawn = [
        len(planned_in(window, [job.id for job in awaited_first(window, random.sample(jobs, len(jobs)))]).jobs)
        for _ in range(orders)
    ]
    plans = {
        name: solve(window, engine=name, budget=seconds, workers=workers)
        for name, seconds in (("planner", 0.0), ("cp", cp_budget), ("portfolio", budget))
    }
    best = plans["portfolio"]
    most = len(placeable_beside(window, {job.id for job in best.jobs}))
    both = {job.id for job in best.jobs} & {job.id for job in listed.jobs}
    values = [changeable(window, [job for job in plan.jobs if job.id in both]) for plan in (listed, best)]
    rescues = sum((rescues_of(plan) for plan in (plans["cp"], best)), Counter[str]())
    return [
        window.name,
        f"{len(jobs)}",
        f"{sum(job.deadline is not None for job in jobs)}",
        f"{most - len(first.jobs)}",
        f"{most - len(listed.jobs)}",
        f"{most - max(drawn)}",
        *(f"{most - len(plans[name].jobs)}" for name in ("planner", "cp", "portfolio")),
        ", ".join(f"{name} {count}" for name, count in rescues.items()) or "-",
        *(f"{value:,.2f}" for value in values),
        f"{1 - values[1] / values[0]:.1%}",
    ]


def planned_in(window: Instance, order: Sequence[str]) -> Outcome:
    """Return the plan in which each job gets its earliest start beside those before it in an order."""
    admission = AdmissionResult.of(window, engine="bench")
    ledger = Ledger(window, admission.admitted)
    ledger.plan(order)
    return admission.outcome(ledger)


def changeable(window: Instance, jobs: Sequence[PlannedJob]) -> float:
    """Return the part of a plan's value that a plan can change."""
    return objective_value(window, jobs) - suffered(window, jobs)


def rescues_of(plan: Plan) -> Counter[str]:
    """Return how many jobs each solver added to the best plan before."""
    found: Counter[str] = Counter()
    for before, after in pairwise(plan.incumbents):
        more = (after.planned or 0) - (before.planned or 0)
        if more > 0:
            found[after.by] += more
    return found
