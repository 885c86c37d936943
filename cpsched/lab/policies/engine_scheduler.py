"""Engines as on-line schedulers: `solve` and `replan` for one window after the other; and the portfolio on-line."""

from __future__ import annotations

from dataclasses import replace

from cpsched.arguments import Seconds, Seed, Workers, at_the_door
from cpsched.domain import Instance, Plan
from cpsched.engine import Budget, Outcome
from cpsched.lab.policies.queue_rules import DUE_AFTER, smith
from cpsched.lab.sim import BackfillRule, Order, QueueRule, Rolling, RuleChoice
from cpsched.portfolio import LivePlan, WindowPlanner, team_of


@at_the_door
def make_engine_scheduler(
    name: str,
    *,
    budget: Seconds = 1.0,
    min_interval: int = 0,
    window: int | None = None,
    workers: Workers = 1,
    seed: Seed = 0,
) -> Rolling:
    """Make a scheduler that plans the running and the waiting jobs by an engine, whenever jobs have arrived or ended.

    The planner never plans anew: it keeps its promised starts, adds new jobs, and moves jobs up when others end early
    (OCCS-34, OCCS-36). All other engines call `solve` in each cycle, beginning from the plan of the last cycle, or
    from a list schedule by Smith's rule if that is better. Only solvers need a budget.

    Raises `EngineError` if there is no such engine. Raises `ValueError` if a figure is out of its range.

    Parameters
    ----------
    name
        One of `ENGINES`.
    budget
        Seconds of a cycle.
    min_interval
        The fewest seconds between two cycles; in between the last plan is updated.
    window
        The most waiting jobs that are planned in a cycle: overdue jobs first, then those with the least work per cost
        of waiting (Smith's rule), of the highest classes where priorities are strict; None: all.
    workers
        The number of CPU cores to use.
    seed
        The same workload, engine and seed give the same history, as far as no clock decides.
    """
    if window is not None and window < 1:
        raise ValueError(f"Expected a window of 1 job or more, got {window}")
    solves = bool(team_of(name, workers=workers).lanes)
    budget = Budget(budget).seconds if solves else 0.0
    cycles = _Cycles(name, budget=budget, most=window, workers=workers, seed=seed)
    return Rolling(cycles, min_interval=min_interval)


class _Cycles:
    """An engine that plans one window after the other; mutable.

    `name`, `budget`, `most`, `workers`, `seed`: as `make_engine_scheduler` has them; `most` is its `window`.
    """

    def __init__(self, name: str, *, budget: float, most: int | None, workers: int, seed: int) -> None:
        self.name = name
        self._engine = WindowPlanner(name=name, budget=budget, most=most, workers=workers, seed=seed)
        #: Whether each cycle is more than to bring the last plan up to date.
        self._plans_anew = bool(team_of(name, workers=workers).lanes) or self._engine.is_rule
        #: The plan of the last cycle, and that which follows the windows since then.
        self._plan: Plan | None = None
        self._live: LivePlan | None = None

    def prepare(self) -> None:
        """Compile or load what the engine needs."""
        self._engine.prepare()

    def begin(self) -> None:
        """Forget all plans."""
        self._plan = self._live = None

    def plan(self, window: Instance) -> Plan | Outcome:
        """Plan the first jobs of a window."""
        if self._plan is not None and not self._plans_anew:
            return self.follow(window)
        self._plan = self._engine.plan(window, self._plan if self._live is None else self._live.plan())
        self._live = None
        return self._plan

    def follow(self, window: Instance) -> Outcome:
        """Keep the start and nodes of all jobs, or move them up, as far as possible."""
        head = self._engine.head(window)
        if self._live is None:
            if self._plan is None:
                raise ValueError("there is no plan yet")
            self._live = LivePlan(head, self._plan)
        self._live.follow(head)
        return self._live.outcome()


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
