"""Measure answers about a plan of many jobs: why a job does not start earlier, and when a new one would start; and of
real queues with rules of a site.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarking.measure import Sample, print_table, repeat, say, verdict
from benchmarking.ruled import queues, with_rules
from benchmarking.workload import Load, instance_of

from cpsched.answers import Answers, parse_submission
from cpsched.domain import Instance, Plan
from cpsched.formats import read_instance
from cpsched.portfolio import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is measured, and how often."""

    nodes: int
    jobs: int
    #: Of how many jobs, evenly over the plan, the start is explained.
    explained: int
    #: The same in each window with rules.
    with_rules: int


FULL = Sizes(nodes=616, jobs=10_000, explained=200, with_rules=8)
QUICK = Sizes(nodes=24, jobs=100, explained=5, with_rules=2)

#: Seconds at most, for the slowest answer.
EXPLAIN_WANTED, SUBMIT_WANTED = 0.5, 0.2
SUBMISSIONS = (
    "8:ncpus=2,walltime=2h",
    "1:ncpus=1,walltime=10m",
    "1:ncpus=16:ngpus=2,walltime=12h",
    "16:ncpus=16,walltime=7d,place=scatter:excl",
    "4:ncpus=16+8:ncpus=2:mem=8g,walltime=1d",
)


def slowest(sample: Sample) -> Sample:
    """Return the largest value alone: a target is for each answer."""
    return Sample((max(sample.values),))


def timed(works: Sequence[Callable[[], object]]) -> Sample:
    """Return the seconds of processor time of each of some works, done once before."""
    values: list[float] = []
    for work in works:
        work()
        values.extend(repeat(1, lambda: None, lambda _, work=work: work()).values)
    return Sample(tuple(values))


def plan_of(instance: Instance) -> Plan:
    """Return the planner's plan."""
    begin = time.perf_counter()
    plan = solve(instance, engine="planner", budget=0)
    say(f"{len(plan.jobs):,} jobs planned in {time.perf_counter() - begin:.1f} s")
    return plan


#: Its figures are processor time: it keeps to one core.
IS_PINNED = True


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    sizes = QUICK if options.quick else FULL
    instance = instance_of(Load(nodes=sizes.nodes, jobs=sizes.jobs, rounding=1))
    plan = plan_of(instance)
    booking = repeat(1, lambda: None, lambda _: Answers(instance, plan))
    answers = Answers(instance, plan)
    explained = timed([partial(answers.explain, job) for job in evenly(plan, sizes.explained)])
    submitted = timed([lambda text=text: answers.submit(parse_submission(text, instance)) for text in SUBMISSIONS])
    is_judged = sizes is FULL

    def row(what: str, sample: Sample, wanted: float | None) -> tuple[str, ...]:
        largest = slowest(sample)
        judged = verdict(largest, wanted if is_judged else None, at_most=True)
        return what, f"{sample.median:.3f}", f"{largest.median:.3f}", judged

    print_table(
        f"Answers about a plan of {sizes.jobs:,} jobs on {sizes.nodes} nodes, seconds",
        ("what", "median", "slowest", "target"),
        [
            row("booking the plan, once", booking, None),
            row(f"`explain` of each of {sizes.explained} jobs", explained, EXPLAIN_WANTED),
            row(f"`--submit` of each of {len(SUBMISSIONS)} requests", submitted, SUBMIT_WANTED),
        ],
    )
    print_ruled(sizes)


def evenly(plan: Plan, number: int) -> list[str]:
    """Return the ids of some jobs that start from now on, evenly over a plan."""
    order = sorted((job for job in plan.jobs if job.start >= plan.now), key=lambda job: job.start)
    return [order[at * (len(order) - 1) // max(1, number - 1)].id for at in range(number)]


def print_ruled(sizes: Sizes) -> None:
    """Print how long explanations of real queues take, with rules drawn at random."""
    rows = []
    for path in queues(quick=sizes is QUICK):
        instance = with_rules(read_instance(path), seed=1)
        plan = plan_of(instance)
        answers = Answers(instance, plan)
        sample = timed([partial(answers.explain, job) for job in evenly(plan, sizes.with_rules)])
        largest = slowest(sample)
        judged = verdict(largest, EXPLAIN_WANTED if sizes is FULL else None, at_most=True)
        rows.append((instance.name, f"{sample.median:.3f}", f"{largest.median:.3f}", judged))
    note = f"50 limits, 5 free pools, 10 reservations and 3 calendars; {sizes.with_rules} jobs evenly over each plan"
    print_table("`explain` with rules, seconds", ("window", "median", "slowest", "target"), rows, note)
