"""Solve projects with modes or time lags: how many are proven optimal, and how many are within 1 % of the best known.

They are made by the schemes of ProGen, in the design of MMLIB, and ProGen/max (`benchmarking.progen`), always the same.
The best known is
the least of what we find and of what a direct model of ten lines finds in CP-SAT with a generous limit.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benches.psplib import Result, share, solve_window
from benchmarking.measure import print_table, say
from benchmarking.progen import project, shapes, with_lags

from cpsched.domain import DependencyType, Instance
from cpsched.portfolio import ENGINES, prepare
from tests.workloads.psplib import lags_window, project_window

#: Sets by name: activities, and arcs by activity.
SETS = {"j30": (30, (1.8,)), "mmlib50": (50, (1.2, 1.5, 1.8)), "mmlib100": (100, (1.2, 1.5, 1.8))}
SETS |= {"lags20": (20, (1.5,)), "lags50": (50, (1.5,)), "lags100": (100, (1.5,))}
#: The share that is wanted within `NEAR` of the best known.
WANTED, NEAR = 0.6, 1.01


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument(
        "sets", nargs="*", metavar="SET", choices=[*SETS, []], help=f"of {', '.join(SETS)} (default: all)"
    )
    parser.add_argument("--engine", choices=ENGINES, default="portfolio")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each project (default: 10)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--sample", type=int, default=60, metavar="N", help="how many projects (default: 60)")
    parser.add_argument("--direct", type=float, default=120.0, help="seconds of the direct model (default: 120)")
    parser.add_argument("--known", type=Path, help="a JSON file that keeps what the direct model found")


def run(options: argparse.Namespace) -> None:
    """Print a table of sets."""
    prepare(options.engine)
    options.budget = 1.0 if options.quick else options.budget
    known = json.loads(options.known.read_text()) if options.known is not None and options.known.exists() else {}
    rows = []
    sets = options.sets or list(SETS)
    for name in sets:
        activities, complexities = SETS[name]
        drawn = [(shape, seed) for seed in range(5) for shape in shapes(activities, complexities)]
        found: list[tuple[Result, int]] = []
        for shape, seed in Random(name).sample(drawn, 1 if options.quick else -(-options.sample // len(sets))):
            called = f"{name}-{drawn.index((shape, seed))}"
            if name.startswith("lags"):
                instance = lags_window(with_lags(shape, seed), called)
            else:
                instance = project_window(project(shape, seed), called)
            if called not in known:
                known[called] = direct(instance, 1.0 if options.quick else options.direct, options.workers)
                if options.known is not None:
                    options.known.write_text(json.dumps(known, indent=1))
            if known[called] is None:
                say(f"{called}: no plan of all activities is known")
                continue
            found.append((solve_window(instance, options), known[called]))
        rows.append([name, *_figures(found)])
    note = f"Engine `{options.engine}`, {options.budget:g} s and {options.workers} workers for each project."
    print_table(
        "Projects",
        ["set", "projects", "all activities planned", "proven", "as the best", "within 1 %", "wanted", "over the best"],
        rows,
        f"{note} The direct model had {options.direct:g} s. Every plan has passed the verifier.",
    )


def _figures(found: Sequence[tuple[Result, int]]) -> list[str]:
    """Return the columns of a set."""
    ratios = [result.value / min(result.value, best) for result, best in found if result.is_whole]
    return [
        f"{len(found)}",
        f"{len(ratios)}",
        f"{share([result.is_proven for result, _ in found]):.0%}",
        f"{sum(ratio <= 1 for ratio in ratios) / max(1, len(found)):.0%}",
        f"{sum(ratio <= NEAR for ratio in ratios) / max(1, len(found)):.0%}",
        f"{WANTED:.0%}",
        f"{sum(ratios) / len(ratios) - 1:+.2%}" if ratios else "-",
    ]


def direct(instance: Instance, seconds: float, workers: int) -> int | None:
    """Return the least makespan that CP-SAT finds with a model of its own; None if it finds no plan."""
    from ortools.sat.python import cp_model

    model, ends, has = cp_model.CpModel(), {}, dict(instance.cluster.licenses)
    horizon = sum(job.longest + sum(link.delay for link in job.after) for job in instance.jobs)
    starts = {job.id: model.new_int_var(0, horizon, job.id) for job in instance.jobs}
    uses: dict[str, list[tuple[object, int, object]]] = {name: [] for name in has}
    for job in instance.jobs:
        chosen = [model.new_bool_var("") for _ in job.choices]
        model.add_exactly_one(chosen)
        ends[job.id] = starts[job.id] + sum(
            one.walltime * is_so for one, is_so in zip(job.choices, chosen, strict=True)
        )
        for one, is_so in zip(job.choices, chosen, strict=True):
            interval = model.new_optional_fixed_size_interval_var(starts[job.id], one.walltime, is_so, "")
            for name, amount in one.licenses.items():
                uses[name].append((interval, amount, is_so))
    for name, of in uses.items():
        if name in instance.cluster.consumed:
            model.add(sum(amount * is_so for _, amount, is_so in of) <= has[name])
        else:
            model.add_cumulative([interval for interval, _, _ in of], [amount for _, amount, _ in of], has[name])
    for job in instance.jobs:
        for link in job.after:
            since = (starts if link.type is DependencyType.AFTER else ends)[link.job]
            model.add(starts[job.id] >= since + link.delay)
            if link.max_delay is not None:
                model.add(starts[job.id] <= since + link.max_delay)
    last = model.new_int_var(0, horizon, "last")
    model.add_max_equality(last, list(ends.values()))
    model.minimize(last)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, workers
    status = solver.solve(model)
    return round(solver.objective_value) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
