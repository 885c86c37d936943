"""Engines as on-line schedulers: what `solve` and `replan` make of one window, made of one window after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cpsched.domain import Instance, Job, Plan
from cpsched.engine import Budget, Engine, Outcome, Progress
from cpsched.metrics import objective_value
from cpsched.policies import POLICIES, Wspt
from cpsched.portfolio.recipe import prepare, solve
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import team_of
from cpsched.portfolio.warm_start import WarmStart
from cpsched.sim import Rolling

__all__ = ["make_engine_scheduler"]


def make_engine_scheduler(
    name: str,
    *,
    budget: float = 1.0,
    min_interval: int = 0,
    window: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Rolling:
    """Make a scheduler that plans the running and the waiting jobs by an engine, whenever some have come or gone.

    The planner never plans anew: it keeps what it has told its users, lets new jobs find their places, and moves up
    who can when others end early (OCCS-34, OCCS-36). All other engines do as `solve` says in each cycle, beginning
    from the plan of the last one, or from a list by Smith's rule where that is better. Only solvers need a budget.

    Parameters
    ----------
    name
        One of `ENGINES`.
    budget
        Seconds of a cycle.
    min_interval
        Seconds between two cycles, at least; in between the last plan is brought up to date.
    window
        So many waiting jobs are planned in a cycle at the most: who is overdue first, then those with the least work
        for what their waiting costs (Smith's rule); None: all.
    workers
        Cores that may be used.
    seed
        Same workload, same engine, same seed: same history, as far as no clock decides.

    Raises
    ------
    EngineError
        If there is no such engine.
    ValueError
        If a figure is out of its range.
    """
    if window is not None and window < 1:
        raise ValueError(f"Expected a window of 1 job or more, got {window}")
    if workers < 1:
        raise ValueError(f"Expected 1 worker or more, got {workers}")
    solves = bool(team_of(name, workers=workers).lanes)
    budget = Budget(budget).seconds if solves else 0.0
    return Rolling(
        _Cycles(name=name, budget=budget, most=window, workers=workers, seed=seed), min_interval=min_interval
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cycles:
    """How an engine plans one window after the other."""

    name: str
    budget: float
    most: int | None
    workers: int
    seed: int

    def prepare(self) -> None:
        """Compile or load what the engine needs."""
        prepare(self.name, workers=self.workers, evolving=False)

    def plan(self, window: Instance, previous: Plan | None) -> Plan:
        """Plan the first jobs of a window."""
        team = team_of(self.name, workers=self.workers)
        if previous is not None and team.first.name == "planner":
            team = replace(team, first=WarmStart(previous))
        if self.budget > 0:
            team = replace(team, first=_Better(team.first, POLICIES["policy:wspt"]))
        return solve(_head(window, self.most), engine=self.name, budget=self.budget, seed=self.seed, team=team)

    def follow(self, window: Instance, previous: Plan) -> Plan:
        """Let everybody keep start and nodes, or move up, as far as possible."""
        clock, head = Budget(0), _head(window, self.most)
        outcome = WarmStart(previous).plan(head, None)
        return plan_of(head, self.name, outcome, budget=0, elapsed=clock.elapsed)


class _Better:
    """Two engines, of whose plans the better one counts: so a solver with next to no time has a good one all the same.

    Parameters
    ----------
    usual
        Who can plan whatever `solve` is given.
    other
        Who is asked for the same jobs, where he can.
    """

    def __init__(self, usual: Engine, other: Engine) -> None:
        self._usual, self._other = usual, other
        self.name = f"{usual.name}, {other.name}"

    def prepare(self) -> None:
        """Compile or load what both need."""
        self._usual.prepare()
        self._other.prepare()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the usual engine cannot honour."""
        return self._usual.unsupported(instance)

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Return the plan that is worth more; the usual one, unless the other plans the same jobs."""
        usual = self._usual.plan(instance, progress)
        if self._other.unsupported(instance):
            return usual
        other = self._other.plan(instance, None)
        if {job.id for job in usual.jobs} != {job.id for job in other.jobs}:
            return usual
        return min(usual, other, key=lambda outcome: objective_value(instance, outcome.jobs))


def _head(window: Instance, most: int | None) -> Instance:
    """Return a window with so many of its waiting jobs at the most."""
    waiting = [job for job in window.jobs if job.running is None]
    if most is None or len(waiting) <= most:
        return window
    chosen = {job.id for job in _most_urgent(window, waiting)[:most]}
    return replace(window, jobs=tuple(job for job in window.jobs if job.running is not None or job.id in chosen))


def _most_urgent(window: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order jobs: who is overdue, then by Smith's rule."""

    def is_in_time(job: Job) -> bool:
        due = window.due(job)
        return due is None or due >= window.now

    return sorted(Wspt().order(window, jobs), key=is_in_time)
