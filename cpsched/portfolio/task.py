"""`Task`: one window that is solved, and what all stages of the recipe need of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from cpsched.domain import Event, Instance, Plan, SolveParams
from cpsched.engine import LONGEST_EVENT, Budget, Outcome, Progress
from cpsched.planner import compile_from_now_on, problem_of, stated_outcome
from cpsched.portfolio.judging import Check
from cpsched.portfolio.lanes import OnPlan
from cpsched.portfolio.preparing import prepare
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import Team
from cpsched.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Task:
    """A window, how it is solved, and by whom."""

    instance: Instance
    params: SolveParams
    clock: Budget
    team: Team
    #: Whether the team is compiled and loaded.
    is_ready: bool = False
    #: The document of the instance; None: it is written anew.
    document: object | None = None
    #: An earlier plan to begin from.
    warm: Plan | None = None
    #: Called while the first plan is made, and while it is improved.
    progress: Progress | None = None
    on_plan: OnPlan | None = None

    @cached_property
    def window(self) -> Problem:
        """The window as engines plan it."""
        return problem_of(self.instance)

    @cached_property
    def check(self) -> Check:
        """The verifier."""
        return Check.of(self.instance, self.document)

    @property
    def has_all_plans(self) -> bool:
        """Whether engines know all plans of the window: some rules leave them only a part."""
        return self.window.has_all_plans

    @property
    def is_by_class(self) -> bool:
        """Whether solvers improve one class of priorities after the other."""
        return self.instance.has_strict_priorities and bool(self.team.lanes) and self.params.budget > 0

    def load(self) -> None:
        """Compile or load what the solvers need, in seconds that do not count."""
        if not self.is_ready:
            params, jobs = self.params, self.instance.jobs
            changing, linked = any(job.changes for job in jobs), any(job.after for job in jobs)
            compile_from_now_on()
            with self.clock.paused():
                prepare(params.engine, workers=params.workers, solver=params.solver, changing=changing, linked=linked)

    @property
    def elapsed(self) -> float:
        """Seconds since the engine began, as events have them."""
        return round(self.clock.elapsed, 3)

    def plan_of(self, outcome: Outcome, *, by: str | None = None) -> Plan:
        """Return the plan of an outcome of the window for engines; `by` has found it, None: the engine."""
        plan = plan_of(
            self.instance,
            self.params.engine,
            stated_outcome(self.window, outcome),
            slices=self.window.slices,
            budget=self.params.budget,
            elapsed=self.clock.elapsed,
            by=by,
        )
        return replace(plan, engine=replace(plan.engine, params=self.params))

    def event(self, by: str, what: str) -> Event:
        """Return an event of now."""
        return Event(at=self.elapsed, by=by, what=what[:LONGEST_EVENT])
