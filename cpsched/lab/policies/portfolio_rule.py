"""The portfolio on-line: the rule `smith`, and another one where that wins on the site's own past."""

from __future__ import annotations

from dataclasses import replace

from cpsched.arguments import Seconds, Seed, Workers
from cpsched.lab.policies.engine_scheduler import make_engine_scheduler
from cpsched.lab.policies.queue_rules import DUE_AFTER, smith
from cpsched.lab.sim import BackfillRule, Order, QueueRule, RuleChoice


def _promising(name: str, order: Order) -> QueueRule:
    """Return a list with the promise of `smith`; in the order of submission nobody waits longer than under EASY."""
    due_after = None if order is Order.SUBMISSION else DUE_AFTER
    return QueueRule(name=name, backfill=BackfillRule.RESERVING, order=order, due_after=due_after)


#: The rules that may win, each with reservations for all blocked jobs.
_OTHERS = (
    replace(smith(expect="walltime"), name="smith_by_walltime"),
    replace(smith(gate=2.0), name="smith_gated"),
    _promising("saf_promising", Order.AREA),
    _promising("sjf_promising", Order.WALLTIME),
    _promising("in_order", Order.SUBMISSION),
)


def make_online_portfolio(
    *, budget: Seconds = 1.0, min_interval: int = 0, window: int | None = None, workers: Workers = 1, seed: Seed = 0
) -> RuleChoice:
    """Make the scheduler that is `smith`, or another rule where that wins on replicas of what has happened so far.

    Workloads with jobs that change as they run, and with strict priorities, are planned in rolling windows, as
    `make_engine_scheduler` says; so all figures but the seed are for these.

    `budget`: seconds of a cycle. `min_interval`: the fewest seconds between two cycles. `window`: the most waiting jobs
    that are planned in a cycle; None: all. `workers`: the number of CPU cores to use. `seed`: the same workload and
    seed give the same history, as far as no clock decides. Raises `ValueError` if a figure is out of its range.
    """
    return RuleChoice(
        name="portfolio",
        rules=(smith(), *_OTHERS),
        otherwise=make_engine_scheduler(
            "portfolio", budget=budget, min_interval=min_interval, window=window, workers=workers, seed=seed
        ),
        seed=seed,
    )
