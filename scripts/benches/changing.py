"""Plan windows with jobs that change, beside the same windows with those made rigid, and beside published rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from time import process_time

from benchmarking.measure import load_average, print_table, say
from benchmarking.windows import changeable

from cpsched.domain import FrozenMap, Instance, Objective, ObjectiveTerm
from cpsched.errors import UnsupportedError
from cpsched.lab.workloads import evolving_window, with_malleable
from cpsched.planner import PlannerEngine
from cpsched.portfolio import ENGINES, prepare, solve
from cpsched.search import Chain
from tests.workloads.changing import changing_windows, made_rigid, with_evolving
from tests.workloads.eurora_windows import eurora_window

#: Rules for jobs that change.
RULES = tuple(engine for engine in ENGINES if engine.startswith("ep_"))
#: Temperatures of the search, in mean costs of a job.
TEMPERATURES = (1.0, 0.1, 0.02)
COMPLETION = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0}))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each plan (default: 10)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--steps", action="store_true", help="how many steps the search does in a second, instead")


def run(options: argparse.Namespace) -> None:
    """Print a table of windows."""
    budget = 1.0 if options.quick else options.budget
    prepare()
    if options.steps:
        print_steps(quick=options.quick)
        return
    header = ["window", "jobs", "of them change", "made rigid: planner", "made rigid: portfolio", "best rule", "value",
              "planner", "portfolio", "under made rigid", "under the rule", "found by"]  # fmt: skip
    rows = [row_of(window, budget, options.workers) for window in windows(quick=options.quick)]
    note = (
        f"Sum of completion times, without what had been waited at `now`; portfolio with {budget:g} s and "
        f"{options.workers} workers. The best rule: of `ep_*`, as far as they can plan the "
        "window, the one with the least value on it. Every plan has passed the verifier."
    )
    print_table("Jobs that change", header, rows, note)


def print_steps(*, quick: bool) -> None:
    """Print how fast the search is in each window with jobs that change on parts of nodes."""
    header = ["window", "waiting jobs", "evolving", "malleable", *(f"at {one:g}" for one in TEMPERATURES)]
    rows = []
    for window in windows(quick=quick):
        if window.name.startswith("evolving-"):
            continue  # whole nodes are searched by numbers
        say(window.name)
        jobs = [job for job in window.elements() if job.running is None]
        kinds = sum(job.is_evolving for job in jobs), sum(job.malleability is not None for job in jobs)
        speeds = steps_a_second(window, seconds=0.2 if quick else 2.0)
        rows.append([window.name, f"{len(jobs)}", *map(str, kinds), *(f"{speed:,.0f}" for speed in speeds)])
    note = "Steps in a second of processor time, from the planner's plan on, at three temperatures one after the other."
    print_table("Steps where jobs change", header, rows, note)
    print(f"\nLoad average at the end: {load_average()}.")


def steps_a_second(window: Instance, seconds: float) -> Iterator[float]:
    """Yield the steps in a second of processor time at each temperature."""
    planned = PlannerEngine().plan(window, None).jobs
    ids = {one.id for one in planned}
    jobs = [job for job in window.elements() if job.running is None and job.id in ids]
    chain = Chain(window, jobs, seed=0, changing=True)
    chain.adopt(planned)
    chain.run(20, TEMPERATURES[0])
    for temperature in TEMPERATURES:
        began, steps = process_time(), 0
        while process_time() < began + seconds:
            chain.run(200, temperature)
            steps += 200
        yield steps / (process_time() - began)


def windows(*, quick: bool) -> Iterator[Instance]:
    """Yield the windows that the repository ships, and others like them."""
    if quick:
        yield replace(with_malleable(eurora_window(20, 1, busy=0.9, demand=100), 1), objective=COMPLETION)
        return
    yield from changing_windows()
    for seed in (2, 3):
        for jobs in (100, 400):
            window = with_malleable(eurora_window(jobs, seed, busy=0.9, demand=100), seed)
            yield replace(window, name=f"{window.name}-malleable, seed {seed}", objective=COMPLETION)
        window = with_evolving(eurora_window(100, seed, busy=0.5, demand=100), seed)
        yield replace(window, name=f"{window.name}-evolving, seed {seed}", objective=COMPLETION)
        yield evolving_window(seed)


def row_of(window: Instance, budget: float, workers: int) -> list[str]:
    """Measure all engines on a window."""
    say(window.name)
    rigid = made_rigid(window)
    rigid_values = (
        changeable(solve(rigid, engine="planner", budget=0)),
        changeable(solve(rigid, budget=budget, workers=workers)),
    )
    rule, ruled = best_rule(window)
    planner = changeable(solve(window, engine="planner", budget=0))
    plan = solve(window, budget=budget, workers=workers)
    found, finders = changeable(plan), [one.by.partition(":")[0] for one in plan.incumbents]
    changing = sum(job.is_evolving or job.malleability is not None for job in window.jobs)
    return [
        window.name,
        f"{len(window.jobs)}",
        f"{changing}",
        *(f"{value:,.0f}" for value in rigid_values),
        rule,
        "-" if ruled is None else f"{ruled:,.0f}",
        f"{planner:,.0f}",
        f"{found:,.0f}",
        f"{1 - found / rigid_values[1]:.1%}",
        "-" if ruled is None else f"{1 - found / ruled:.1%}",
        ", ".join(f"{name} {finders.count(name)}" for name in dict.fromkeys(finders)),
    ]


def best_rule(window: Instance) -> tuple[str, float | None]:
    """Return the rule whose plan is worth most, and what of its value a plan can change."""
    found = []
    for rule in RULES:
        try:
            found.append((changeable(solve(window, engine=rule, budget=0)), rule))
        except UnsupportedError:
            continue
    value, rule = min(found, default=(None, "-"))
    return rule, value
