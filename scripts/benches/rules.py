"""Plan windows with rules of a site: real queues with limits, free pools, reservations and calendars drawn at random,
and Eurora's windows with each user limited to a quarter of the cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import mean

from benchmarking.measure import print_table, say
from benchmarking.ruled import queues, with_rules, with_shares
from benchmarking.windows import below, changeable

from cpsched.domain import Instance, Plan
from cpsched.errors import UnsupportedError
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.planner import PlannerEngine, problem_of
from cpsched.portfolio import ENGINES, prepare, solve
from cpsched.verify import verify
from tests.workloads.eurora_windows import eurora_window

PBS = ("pbs_fifo_bf10", "pbs_walltime_bf400")
#: The engines that use the budget.
IMPROVERS = ("portfolio", "search", "cp", "minizinc")
#: Percent of the cores that each user of Eurora has.
SHARE = 25
#: The planner's time is the least of so many plans.
REPEATS = 9


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of each engine (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="of the rules that are drawn (default: 1)")
    parser.add_argument("--only", choices=["queues", "eurora"], help="print only this table")


def run(options: argparse.Namespace) -> None:
    """Print both tables."""
    budget = 1.0 if options.quick else options.budget
    prepare()
    if options.only != "eurora":
        print_queues(budget, options.seed, quick=options.quick)
    if options.only != "queues":
        print_eurora(budget, quick=options.quick)


def seconds_of(*works: Callable[[], object]) -> list[float]:
    """Return the seconds of processor time that each work takes, the least of some repetitions by turns."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, seconds in zip(works, found, strict=True):
            begin = time.process_time()
            work()
            seconds.append(time.process_time() - begin)
    return list(map(min, found))


def plan_alone(instance: Instance) -> None:
    """Plan a window with the planner: its rules are compiled, nothing is verified."""
    PlannerEngine().plan(problem_of(instance).instance, None)


def print_queues(budget: float, seed: int, *, quick: bool) -> None:
    """Print real queues with rules: the engines that plan them, the planner's time, and the portfolio's plan."""
    header = ["window", "jobs", "wait for ever", "engines that plan it", "not verified", "planner without rules, s",
              "planner, s", "ratio", "solve, s", "Z of the planner", "Z of the portfolio", "difference"]  # fmt: skip
    rows, ratios = [], []
    for path in queues(quick=quick):
        plain = read_instance(path)
        say(plain.name)
        instance = with_rules(plain, seed)
        plans, num_faulty = _planned_by_all(instance, budget, quick=quick)
        planner, portfolio = plans["planner"], plans["portfolio"]
        without, with_them, in_all = seconds_of(
            partial(plan_alone, plain),
            partial(plan_alone, instance),
            partial(solve, instance, engine="planner", budget=0),
        )
        ratios.append(with_them / without)
        values = changeable(planner), changeable(portfolio)
        rows.append(
            [plain.name, f"{len(plain.jobs)}", f"{len(planner.waiting_room)}", f"{len(plans)}", f"{num_faulty}",
             f"{without:.3f}", f"{with_them:.3f}", f"{ratios[-1]:.2f}", f"{in_all:.3f}",
             *(f"{value:,.4g}" for value in values), below(values[1], values[0])]
        )  # fmt: skip
    note = (
        f"50 limits, 5 free pools, 10 reservations and 3 calendars, seed {seed}; {budget:g} s for each engine that has "
        "a budget. Z = value less what had been waited at `now`. Times are processor time, the least of "
        f"{REPEATS}: of the planner, and of `solve --engine planner`, which verifies. The planner takes "
        f"{mean(ratios):.2f} times as long as without rules in the mean."
    )
    print_table("Real queues with rules drawn at random", header, rows, note)


def _planned_by_all(instance: Instance, budget: float, *, quick: bool) -> tuple[dict[str, Plan], int]:
    """Return the plans of all engines that do not refuse a window, and how many the verifier refuses."""
    document = instance_to_document(instance)
    plans: dict[str, Plan] = {}
    num_faulty = 0
    for engine in ("planner", "portfolio", *PBS) if quick else ENGINES:
        try:
            plan = solve(instance, engine=engine, budget=budget if engine in IMPROVERS else 0)
        except UnsupportedError:
            continue
        plans[engine] = plan
        num_faulty += bool(verify(document, plan_to_document(plan)))
    return plans, num_faulty


def print_eurora(budget: float, *, quick: bool) -> None:
    """Print Eurora's windows with each user limited to a share of the cores: the portfolio beside the PBS rules."""
    header = ["window", "jobs", "wait for ever", "better PBS rule", "planner", "portfolio", "to the rule"]
    rows, differences = [], []
    sizes = (20,) if quick else (100, 200, 400, 800)
    for jobs, seed in product(sizes, (1,) if quick else (1, 2)):
        window = eurora_window(jobs, seed, busy=0.9, demand=100)
        instance = with_shares(replace(window, name=f"{window.name}, seed {seed}"), SHARE)
        say(instance.name)
        plan = solve(instance, budget=budget)
        rule = min(_ruled(instance, engine, plan) for engine in PBS)
        value = changeable(plan)
        differences += [value / rule - 1] if rule else []
        planner = plan.objective.planner - plan.objective.suffered
        figures = [f"{figure:,.4g}" for figure in (rule, planner, value)]
        rows.append([instance.name, f"{len(instance.jobs)}", f"{len(plan.waiting_room)}", *figures, below(value, rule)])
    means = f" In the mean {mean(differences):+.1%} to the better rule." if differences else ""
    note = (
        f"Z with at most {SHARE} % of the cores for each user, {budget:g} s. Every plan has passed the verifier.{means}"
    )
    print_table("Eurora windows with a limit for each user", header, rows, note)


def _ruled(instance: Instance, engine: str, plan: Plan) -> float:
    """Return Z of a rule's plan.

    Raises
    ------
    ValueError
        If it plans other jobs.
    """
    found = solve(instance, engine=engine, budget=0)
    if {job.id for job in found.jobs} != {job.id for job in plan.jobs}:
        raise ValueError(f"expected plans of the same jobs, {engine} plans others")
    return changeable(found)
