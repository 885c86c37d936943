"""The portfolio on-line: it starts from the decisions of the rule `smith`, and differs where that wins when tested."""

from __future__ import annotations

from cpsched.arguments import Seconds, Seed, Workers
from cpsched.lab.policies.engine_scheduler import make_engine_scheduler
from cpsched.lab.policies.queue_rules import smith
from cpsched.lab.sim import RuleChoice

#: The gate of the other rule: see `smith` in `docs/simulator.md`.
_GATE = 2.0


def make_online_portfolio(
    *, budget: Seconds = 1.0, min_interval: int = 0, window: int | None = None, workers: Workers = 1, seed: Seed = 0
) -> RuleChoice:
    """Make the scheduler that is `smith`, with its gate where that wins on replicas of what has happened so far.

    Workloads with jobs that change as they run, and with strict priorities, are planned in rolling windows, as
    `make_engine_scheduler` says; so all figures but the seed are for these.

    `budget`: seconds of a cycle. `min_interval`: the fewest seconds between two cycles. `window`: the most waiting jobs
    that are planned in a cycle; None: all. `workers`: the number of CPU cores to use. `seed`: the same workload and
    seed give the same history, as far as no clock decides. Raises `ValueError` if a figure is out of its range.
    """
    return RuleChoice(
        name="portfolio",
        usual=smith(),
        other=smith(gate=_GATE),
        otherwise=make_engine_scheduler(
            "portfolio", budget=budget, min_interval=min_interval, window=window, workers=workers, seed=seed
        ),
        seed=seed,
    )
