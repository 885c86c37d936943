"""Measure CP's neighbourhoods: from the planner's plan alone, and as ``--engine cp`` has them, after the lists."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarking.measure import print_table, say
from benchmarking.windows import eurora_windows, shipped

from cpsched.cp import Neighbourhoods
from cpsched.domain import Instance, Plan
from cpsched.formats import read_instance
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, prepare, solve

SIZES = ("window-0100", "window-0400", "window-1000")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("windows", nargs="*", type=Path, help="instances, in place of Eurora's with 100 to 1,000 jobs")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each plan (default: 10)")


def run(options: argparse.Namespace) -> None:
    """Print a table of windows."""
    budget = 2.0 if options.quick else options.budget
    prepare("cp", workers=1)
    header = ["window", "planner", "cp alone", "under the planner's", "best list", "cp after lists", "under the list",
              "neighbourhoods alone", "after lists"]  # fmt: skip
    real = [path for path in eurora_windows(quick=options.quick) if path.name.startswith(SIZES)]
    chosen = options.windows or real or shipped()[: 1 if options.quick else None]
    rows = [row_of(read_instance(path), budget) for path in chosen]
    note = f"Z, what a plan can change of its value; {budget:g} s on one core. Every plan has passed the verifier."
    print_table("CP's neighbourhoods on windows of any size", header, rows, note)


def row_of(instance: Instance, budget: float) -> list[str]:
    """Return the row of a window."""
    say(instance.name)
    team = Team(first=PlannerEngine(), lanes=((Neighbourhoods(),),))
    alone = solve(instance, engine="cp", budget=budget, workers=1, team=team)
    after = solve(instance, engine="cp", budget=budget, workers=1)
    suffered = after.objective.suffered
    lists = [found.value - suffered for found in after.incumbents if found.by != "cp"]
    planner, best = alone.objective.planner - suffered, min(lists)
    values = [plan.objective.value - suffered for plan in (alone, after)]
    return [
        instance.name,
        f"{planner:,.4g}",
        f"{values[0]:,.4g}",
        saved(values[0], planner),
        f"{best:,.5g}",
        f"{values[1]:,.5g}",
        saved(values[1], best),
        work_of(alone),
        work_of(after),
    ]


def saved(value: float, other: float) -> str:
    """Return by how much a value is below another one."""
    return f"{1 - value / other:.2%}" if other else "-"


def work_of(plan: Plan) -> str:
    """Return in words how CP's neighbourhoods fared."""
    return "; ".join(work.what for work in plan.work if work.by == "cp" and work.what is not None) or "-"
