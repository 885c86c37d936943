"""Compare what the engines' plans are worth: the portfolio against rules, lists and the planner, on the same windows;
and how far from the optimum they can be.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from benchmarking.charts import line_chart
from benchmarking.heavy import heavy_window
from benchmarking.measure import print_table, say
from benchmarking.windows import REAL, below, changeable, eurora_windows
from benchmarking.workload import Load, instance_of

from cpsched.domain import Instance, Plan
from cpsched.formats import read_instance, read_plan, write_instance
from cpsched.metrics import honest_gap
from cpsched.portfolio import prepare, solve
from cpsched.rules import POLICIES, PolicyEngine
from tests.workloads.tiny import tiny_cases

PBS = ("pbs_fifo_bf10", "pbs_walltime_bf400")
LISTS = ("fcfs", "sjf_list", "wspt_list")
#: The best values known of Z before this engine, from prototypes that ran longer.
BEST_KNOWN = {
    "0100-0": 0.726, "0100-1": 2.41, "0200-0": 30.8, "0200-1": 30.9, "0400-0": 379.0,
    "0400-1": 281.0, "0800-0": 1431.0, "0800-1": 1686.0, "1000-0": 2413.0, "1000-1": 2294.0,
}  # fmt: skip


def arguments(parser: ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("windows", nargs="*", type=Path, help="instances for the first table, in place of Eurora's")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="print only this section (repeatable)")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of the portfolio (default: 10)")
    parser.add_argument("--long", type=float, default=60.0, help="seconds of the long runs (default: 60; 0: none)")
    parser.add_argument("--bound", type=float, default=60.0, help="seconds of the bound in long runs (default: 60)")
    parser.add_argument("--plots", type=Path, help="folder for charts")


def run(options: Namespace) -> None:
    """Print the sections that were asked for."""
    if options.quick:
        options.budget, options.long = 1.0, 0.0
    prepare()
    for name in options.only or SECTIONS:
        SECTIONS[name](options)


# --- what is measured on one window ----------------------------------------------------------------------------------


def best_of(instance: Instance, engines: Sequence[str]) -> float:
    """Return the least Z of several engines; each plan has passed the verifier."""
    return min(changeable(solve(instance, engine=engine)) for engine in engines)


def best_list(instance: Instance, plan: Plan) -> float:
    """Return the least Z of all lists: the rules that are lists, and those that the portfolio began with."""
    tried = [found.value - plan.objective.suffered for found in plan.incumbents if found.by.startswith("list:")]
    return min([best_of(instance, LISTS), *tried])


def finders(plan: Plan) -> str:
    """Return who found plans that were the best so far, and how many."""
    names = [found.by.partition(":")[0] for found in plan.incumbents]
    return ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))


# --- the sections ----------------------------------------------------------------------------------------------------


def print_windows(options: Namespace) -> None:
    """Print the Eurora windows: rules, lists, portfolio, and how far from the optimum its plans can be."""
    header = ["window", "better PBS rule", "best list", "planner", f"portfolio {options.budget:g} s", "to the rule",
              "to the list", "to the best known", "found by"]  # fmt: skip
    rows, to_rule, to_known, plans = [], [], [], {}
    for path in windows_of(options):
        instance = read_instance(path)
        say(instance.name)
        plan = solve(instance, budget=options.budget)
        plans[instance.name] = (instance, plan)
        value, rule = changeable(plan), best_of(instance, PBS)
        known = BEST_KNOWN.get(instance.name.removeprefix("eurora-window-"))
        to_rule.append(value / rule - 1)
        to_known += [] if known is None else [value / known - 1]
        figures = [rule, best_list(instance, plan), plan.objective.planner - plan.objective.suffered, value]
        rows.append(
            [instance.name, *(f"{figure:,.4g}" for figure in figures), below(value, rule), below(value, figures[1]),
             "-" if known is None else below(value, known), finders(plan)]
        )  # fmt: skip
    means = f"In the mean {mean(to_rule):+.1%} to the better PBS rule"
    means += f", {mean(to_known):+.1%} to the best known (engine of the prototypes)." if to_known else "."
    note = (
        "Z = value less what had been waited at `now`: what a plan can change. Every plan has passed the verifier. The "
        "PBS rules: `pbs_fifo_bf10`, `pbs_walltime_bf400`; the lists: `fcfs`, `sjf`, `wspt` and those that the search "
        f"begins with. {means}"
    )
    print_table(f"Z on Eurora windows, {options.budget:g} s", header, rows, note)
    if options.plots is not None:
        draw_improvement(plans, options.plots)
    if options.long:
        print_long(plans, options)


def print_long(plans: dict[str, tuple[Instance, Plan]], options: Namespace) -> None:
    """Print what more time is worth, and the gap with a bound that had as much."""
    header = [
        "window",
        f"Z {options.budget:g} s",
        f"Z {options.long:g} s",
        "bound",
        "gap",
        "to the best known",
        "proof",
    ]
    rows = []
    for name, (instance, short) in plans.items():
        say(f"{name}, {options.long:g} s")
        plan = solve(instance, budget=options.long, bound=options.bound)
        known = BEST_KNOWN.get(name.removeprefix("eurora-window-"))
        bound = (plan.objective.bound or 0.0) - plan.objective.suffered
        gap = honest_gap(plan.objective) or 0.0
        compared = "-" if known is None else below(changeable(plan), known)
        rows.append(
            [name, f"{changeable(short):,.4g}", f"{changeable(plan):,.4g}", f"{bound:,.4g}", f"{gap:.1%}", compared,
             plan.objective.proof or "-"]
        )  # fmt: skip
    note = f"The bound had {options.bound:g} s of its own after the plan; bound and gap are without what was suffered."
    print_table(f"Z and gap, {options.long:g} s", header, rows, note)


def draw_improvement(plans: dict[str, tuple[Instance, Plan]], folder: Path) -> None:
    """Draw how the plans get better with time, relative to the last one, a line for each size."""
    series = {}
    for _, plan in plans.values():
        suffered, last = plan.objective.suffered, changeable(plan)
        points = [(max(found.at, 0.01), (found.value - suffered) / last) for found in plan.incumbents if last > 0]
        size = f"{sum(1 for job in plan.jobs) // 100 * 100} jobs"
        if size not in series and len(series) < 4 and points:
            series[size] = [*points, (plan.engine.elapsed, 1.0)]
    folder.mkdir(parents=True, exist_ok=True)
    chart = line_chart("How plans get better", "seconds", "Z / last Z", series, is_step=True)
    (folder / "engine-improvement.svg").write_text(chart)
    print("\n![How plans get better](engine-improvement.svg)")


def print_real(options: Namespace) -> None:
    """Print the real job mixes and the queues of real machines against every rule and list."""
    ledgers = [name for name, engine in POLICIES.items() if isinstance(engine, PolicyEngine)]
    rules = [name for name in ledgers if name != "easy"] if options.quick else ledgers
    header = ["window", "better PBS rule", "best other rule or list", "portfolio", "to the PBS rule",
              "to the best of all"]  # fmt: skip
    rows = []
    for path in real_windows(options):
        instance = read_instance(path)
        say(instance.name)
        plan = solve(instance, budget=options.budget)
        value, pbs = changeable(plan), best_of(instance, PBS)
        other = min(best_of(instance, [rule for rule in rules if rule not in PBS]), best_list(instance, plan))
        rows.append([instance.name, *(f"{figure:,.5g}" for figure in (pbs, other, value)), below(value, pbs),
                     below(value, min(pbs, other))])  # fmt: skip
    print_table(f"Z on real job mixes and real queues, {options.budget:g} s", header, rows)


def print_heavy(options: Namespace) -> None:
    """Print heavy synthetic windows: all methods relative to the best plan that a long run finds."""
    header = ["jobs", "easy", "pbs_fifo_bf10", "pbs_walltime_bf400", "wspt_list", "best list",
              f"portfolio {options.budget:g} s", "best Z"]  # fmt: skip
    rows = []
    for jobs in (50,) if options.quick else (50, 150, 400, 700, 2000):
        instance = heavy_window(jobs, seed=0)
        say(f"{jobs} jobs, heavy")
        plan = solve(instance, budget=options.budget)
        longer = solve(instance, budget=options.long, warm=plan) if options.long else plan
        best = min(changeable(plan), changeable(longer))
        found = [best_of(instance, [rule]) for rule in ("easy", *PBS, "wspt_list")]
        found += [best_list(instance, plan), changeable(plan)]
        rows.append([f"{jobs:,}", *(f"{value / best:.3f}" for value in found), f"{best:,.4g}"])
    note = f"Relative to the best plan of {options.long:g} s more." if options.long else ""
    print_table("Heavy synthetic windows: Z relative to the best", header, rows, note)


def print_large(options: Namespace) -> None:
    """Print a machine of thousands of nodes with thousands of jobs."""
    load = Load(nodes=62, jobs=300, rounding=1) if options.quick else Load(nodes=5_040, jobs=10_000, rounding=1)
    instance = replace(instance_of(load), name=f"{load.jobs:,} jobs, {load.nodes:,} nodes")
    say(instance.name)
    planner, wspt = (solve(instance, engine=engine) for engine in ("planner", "wspt_list"))
    plan = solve(instance, budget=options.long or options.budget)
    row = [
        instance.name, f"{planner.engine.elapsed:.1f}", f"{changeable(planner):,.5g}", f"{changeable(wspt):,.5g}",
        f"{plan.engine.budget:g}", f"{plan.engine.elapsed:.1f}", f"{changeable(plan):,.5g}",
        below(changeable(plan), changeable(wspt)),
    ]  # fmt: skip
    header = ["window", "planner, s", "planner, Z", "wspt, Z", "budget, s", "portfolio, s", "portfolio, Z", "to wspt"]
    print_table("A large machine", header, [row])


def print_workers(options: Namespace) -> None:
    """Print what one more core is worth."""
    rows = []
    for path in windows_of(options):
        instance = read_instance(path)
        say(f"{instance.name}, one worker and two")
        one, two = (solve(instance, budget=options.budget, workers=workers) for workers in (1, 2))
        figures = f"{changeable(one):,.4g}", f"{changeable(two):,.4g}"
        rows.append([instance.name, *figures, below(changeable(two), changeable(one))])
    print_table(f"More cores, {options.budget:g} s", ["window", "1 worker", "2 workers", "difference"], rows)


def print_tiny(options: Namespace) -> None:
    """Print windows whose optimum is known: the value and the proof."""
    header = ["window", "optimum", "portfolio", "stopped", "seconds", "proof"]
    rows = []
    for case in tiny_cases()[: 2 if options.quick else None]:
        plan = solve(case.instance, budget=5.0)
        figures = f"{float(case.optimum):.6g}", f"{plan.objective.value:.6g}"
        seconds, proof = f"{plan.engine.elapsed:.2f}", plan.objective.proof or "-"
        rows.append([case.instance.name, *figures, plan.engine.stopped, seconds, proof])
    print_table("Tiny windows, 5 s", header, rows)


def print_promise(options: Namespace) -> None:
    """Print when `solve` comes back, and how long the whole process takes, for several budgets."""
    folder = Path(tempfile.mkdtemp(prefix="cpsched-bench-"))
    rows = []
    for instance in promise_windows(options):
        path = folder / f"{instance.name}.json"
        write_instance(instance, path)
        for budget in (0.0, 0.5) if options.quick else (0.0, 1.0, 2.0, 5.0, 10.0):
            say(f"{instance.name}, budget {budget:g} s")
            begin = time.perf_counter()
            plan = solve(instance, budget=budget)
            returned = time.perf_counter() - begin
            command = [sys.executable, "-m", "cpsched", "solve", str(path), "--budget", str(budget), "--quiet"]
            begin = time.perf_counter()
            subprocess.run([*command, "-o", str(folder / "plan.json")], check=True)  # noqa: S603 - our own command
            process = time.perf_counter() - begin
            added = process - read_plan(folder / "plan.json").engine.elapsed
            waiting = f"{len(plan.jobs) + len(plan.waiting_room):,}"
            rows.append([instance.name, waiting, f"{len(instance.cluster.node_names):,}", f"{budget:g}",
                         f"{returned:.2f}", f"{returned - budget:+.2f}", f"{added:.2f}"])  # fmt: skip
    shutil.rmtree(folder)
    header = ["window", "jobs", "nodes", "budget, s", "solve() returns after, s", "over the budget, s",
              "the process adds, s"]  # fmt: skip
    note = (
        "With a budget of 0 the planner takes the time that it needs. The process reads the instance, writes the plan; "
        "what it adds is its own time less what its `solve()` took."
    )
    print_table("The budget is a promise", header, rows, note)


def promise_windows(options: Namespace) -> Iterator[Instance]:
    """Yield a small and a large machine, with many jobs each."""
    sizes = ((62, 100),) if options.quick else ((62, 2_000), (5_040, 1_000))
    for nodes, jobs in sizes:
        yield replace(instance_of(Load(nodes=nodes, jobs=jobs, rounding=1)), name=f"openccs-{nodes}-{jobs}")


SECTIONS: dict[str, Callable[[Namespace], None]] = {
    "windows": print_windows,
    "real": print_real,
    "heavy": print_heavy,
    "large": print_large,
    "workers": print_workers,
    "tiny": print_tiny,
    "promise": print_promise,
}


# --- where the windows are -------------------------------------------------------------------------------------------


def windows_of(options: Namespace) -> Sequence[Path]:
    """Return the windows that were asked for, else those of Eurora."""
    return eurora_windows(quick=True) if options.quick else options.windows or eurora_windows(quick=False)


def real_windows(options: Namespace) -> Iterator[Path]:
    """Yield the real job mixes and queue snapshots that are present, else a shipped window."""
    present = sorted((REAL / "eurora").glob("real-*.json.gz")) + sorted((REAL / "snapshots").glob("*.json.gz"))
    yield from windows_of(options)[:1] if options.quick or not present else present
