"""Solve the job mixes of PBS and Maui: how far the last end is from what is proven, by us and by both of them.

Each mix is solved as if all runtimes were known, so that no scheduler, whatever it guesses, can end before the bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarking.measure import print_table, say
from benchmarking.windows import known

from cpsched.cp import lower_bound
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.lab.workloads import job_mix
from cpsched.portfolio import prepare, solve

#: The schedulers that are compared, as their table names them.
SCHEDULERS = {"PBS FIFO": "pbs_fifo_starve", "Maui": "maui", "conservative": "conservative"}
#: Rounds of the bound that the ends are compared with, more than it needs; and seconds that no such bound needs.
ROUNDS, LONG = 500, 600.0
#: Shares wanted: of mixes that are proven optimal, and the largest gap.
WANTED_PROVEN, WANTED_GAP = 0.8, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one mix."""

    seed: int
    bound: float
    gap: float
    #: The last end, by name of what planned or scheduled.
    ends: dict[str, float]

    def above(self, name: str) -> float:
        """Return by which part of the bound a last end is above it."""
        return self.ends[name] / self.bound - 1


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each mix (default: 60)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--mixes", type=int, default=60, help="seeds from 1 on (default: 60)")


def run(asked: argparse.Namespace) -> None:
    """Print a table of mixes, and one of means."""
    prepare()
    budget, count = (1.0, 1) if asked.quick else (asked.budget, asked.mixes)
    results = [solved(seed, budget, asked.workers) for seed in range(1, count + 1)]
    print_mixes(results)
    print_means(results, budget, asked.workers)


def solved(seed: int, budget: float, workers: int) -> Result:
    """Solve a mix; its plan has passed the verifier. And let the schedulers work it off, which know no runtimes.

    The bound does not depend on how busy the machine is.
    """
    mix = job_mix(seed)
    window = known(mix)
    plan = solve(window, budget=budget, workers=workers)
    proven = lower_bound(window, [job.id for job in window.jobs], seconds=LONG, evaluations=ROUNDS)
    if proven is None:
        raise SystemExit(f"{mix.name}: expected a bound, got none")
    bound = max(proven.value, plan.objective.bound or 0.0)
    gap = 1 - bound / plan.objective.value
    ends = {"planner": plan.objective.planner, "portfolio": plan.objective.value}
    for name, scheduler in SCHEDULERS.items():
        ends[name] = max(job.end for job in simulate(mix, make_scheduler(scheduler)).record().jobs) - mix.now
    say(f"{mix.name}: {plan.objective.value:,.0f}, bound {bound:,.0f}, gap {gap:.3%}")
    return Result(seed=seed, bound=bound, gap=gap, ends=ends)


def print_mixes(results: Sequence[Result]) -> None:
    """Print a row for each mix."""
    names = list(results[0].ends)
    rows = [
        [f"{one.seed}", f"{one.bound:,.0f}", *(f"{one.ends[name]:,.0f}" for name in names), f"{one.gap:.3%}"]
        for one in results
    ]
    print_table("Last ends (s), and the gap of the portfolio", ["mix", "bound", *names, "gap"], rows)


def print_means(results: Sequence[Result], budget: float, workers: int) -> None:
    """Print how far the last ends are above the bound, and how many mixes are proven."""
    rows = [
        [name, *(f"{find(one.above(name) for one in results):.2%}" for find in (min, mean, max))]
        for name in results[0].ends
    ]
    proven = mean(one.gap <= 1e-9 for one in results)
    note = (
        f"{len(results)} mixes, {budget:g} s and {workers} workers for each. Proven optimal: {proven:.0%} (wanted: "
        f"{WANTED_PROVEN:.0%}); largest gap: {max(one.gap for one in results):.3%} (wanted: {WANTED_GAP:.1%})."
    )
    print_table("Above the bound", ["planned by", "least", "mean", "most"], rows, note)
