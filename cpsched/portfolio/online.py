"""Engines as on-line schedulers: `solve` and `replan` for one window after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cpsched.arguments import Seconds, Seed, Workers, at_the_door
from cpsched.domain import Instance, Job, Plan, priority_classes
from cpsched.engine import Budget, Engine, Outcome, Progress
from cpsched.formats import instance_to_document
from cpsched.metrics import objective_value
from cpsched.policies import POLICIES, by_smith
from cpsched.portfolio.engine_window import EngineWindow
from cpsched.portfolio.live import LivePlan
from cpsched.portfolio.preparing import prepare
from cpsched.portfolio.recipe import solve
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import team_of
from cpsched.portfolio.warm_start import WarmStart
from cpsched.sim import Rolling

__all__ = ["WindowPlanner", "make_engine_scheduler"]


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

    Raises
    ------
    EngineError
        If there is no such engine.
    ValueError
        If a figure is out of its range.
    """
    if window is not None and window < 1:
        raise ValueError(f"Expected a window of 1 job or more, got {window}")
    solves = bool(team_of(name, workers=workers).lanes)
    budget = Budget(budget).seconds if solves else 0.0
    cycles = _Cycles(name, budget=budget, most=window, workers=workers, seed=seed)
    return Rolling(cycles, min_interval=min_interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlanner:
    """An engine that plans any window, beginning from the plan of another one."""

    #: One of `ENGINES`.
    name: str
    #: Seconds; 0 for engines without solvers.
    budget: float
    #: The most waiting jobs that are planned; None: all.
    most: int | None = None
    workers: int = 1
    seed: int = 0

    @property
    def is_rule(self) -> bool:
        """Whether it plans each window anew by a rule, which takes no budget."""
        team = team_of(self.name, workers=self.workers)
        return not team.lanes and team.first.name != "planner"

    def prepare(self) -> None:
        """Compile or load what the engine needs."""
        prepare(self.name, workers=self.workers, changing=False)

    def plan(self, window: Instance, before: Plan | None) -> Plan:
        """Plan the first jobs of a window."""
        if any(job.changes for job in window.jobs):
            prepare(self.name, workers=self.workers)
        team = team_of(self.name, workers=self.workers)
        head = self.head(window)
        if before is not None and team.first.name == "planner":
            team = replace(team, first=WarmStart(EngineWindow.of(head).held(before)))
        if self.budget > 0:
            team = replace(team, first=_Better(team.first, POLICIES["wspt_list"]))
        document = instance_to_document(head)
        return solve(head, engine=self.name, budget=self.budget, seed=self.seed, team=team, document=document)

    def head(self, window: Instance) -> Instance:
        """Return a window with those of its waiting jobs that are planned."""
        return _head(window, self.most)

    def follow(self, window: Instance, before: Plan | LivePlan) -> Plan:
        """Keep the start and nodes of all jobs, or move them up, as far as possible; a plan that lives follows."""
        clock, head = Budget(0), self.head(window)
        live = before if isinstance(before, LivePlan) else LivePlan(head, before)
        live.follow(head)
        return plan_of(head, self.name, live.outcome(), slices=live.slices, budget=0, elapsed=clock.elapsed)


class _Cycles:
    """An engine that plans one window after the other; mutable.

    Parameters
    ----------
    name, budget, most, workers, seed
        As `make_engine_scheduler` has them; `most` is its `window`.
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


class _Better:
    """Two engines, of which the better plan counts: so a solver begins from a good plan even with little time.

    Parameters
    ----------
    usual
        An engine that can plan every instance of `solve`.
    other
        Another engine, which is not asked where it cannot honour the instance.
    """

    def __init__(self, usual: Engine, other: Engine) -> None:
        self._usual, self._other = usual, other
        self.name = f"{usual.name}, {other.name}"

    def prepare(self) -> None:
        """Compile or load the needs of both engines."""
        self._usual.prepare()
        self._other.prepare()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features that the usual engine cannot honour."""
        return self._usual.unsupported(instance)

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Return the better plan: that of more jobs, and of as many jobs that of the smaller value."""
        usual = self._usual.plan(instance, progress)
        if self._other.unsupported(instance):
            return usual
        other = self._other.plan(instance, None)
        return min(usual, other, key=lambda outcome: (-len(outcome.jobs), objective_value(instance, outcome.jobs)))


def _head(window: Instance, most: int | None) -> Instance:
    """Return a window with at most this many of its waiting jobs."""
    waiting = [job for job in window.jobs if job.running is None]
    if most is None or len(waiting) <= most:
        return window
    chosen = {job.id for job in _most_urgent(window, waiting)[:most]}
    return replace(window, jobs=tuple(job for job in window.jobs if job.running is not None or job.id in chosen))


def _most_urgent(window: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order jobs: by their classes where priorities are strict; overdue jobs first, then by Smith's rule."""
    classes = priority_classes(window) if window.has_strict_priorities else {}

    def urgency(job: Job) -> tuple[int, bool]:
        due = window.due(job)
        return -classes.get(job.id, 0), due is None or due >= window.now

    return sorted(by_smith(window, jobs), key=urgency)
