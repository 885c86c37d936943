"""`Task`: one window that is solved, and what all stages of the recipe need of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from cpsched.domain import Event, Instance, ObjectiveTerm, Plan, PlannedJob, SolveParams
from cpsched.engine import LONGEST_EVENT, Board, Budget, Outcome, Progress
from cpsched.metrics import least_value, objective_value
from cpsched.planner import compile_from_now_on, problem_of, stated_outcome
from cpsched.portfolio.lanes import OnPlan
from cpsched.portfolio.scoring import Check, plan_of
from cpsched.portfolio.teams import Team, prepare
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
            has_last_end = any(ObjectiveTerm.MAKESPAN in aim.weights for aim in self.instance.objective.aims)
            changing, linked = any(job.changes for job in jobs), has_last_end or any(job.after for job in jobs)
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

    def board(
        self,
        window: Instance,
        jobs: Sequence[PlannedJob],
        violations: Callable[[Sequence[PlannedJob]], Sequence[str]],
        *,
        by: str,
        budget: Budget,
        beside: Sequence[PlannedJob] = (),
        placeable: Collection[str] = (),
        value_of: Callable[[Sequence[PlannedJob]], float] | None = None,
        least_of: Callable[[Sequence[PlannedJob]], float] | None = None,
    ) -> Board:
        """Return the board for plans of a window for engines, with a first one on it.

        `window`: the window of the task, a part of it, or the same with another objective. `jobs`, `by`: those of the
        first plan, and its finder. `violations`: holds the jobs of a plan of the stated window to the rules. `budget`:
        The time for better plans. `beside`: jobs that have their places already, and are judged with each plan.
        `placeable`: the jobs that a plan could have. `value_of`, `least_of`: the value of a plan, and a bound of those
        with the same jobs; None: by the window's objective.
        """
        board = Board(
            jobs,
            by=by,
            budget=budget,
            value_of=value_of or partial(objective_value, window),
            judge=lambda found: violations(self.window.to_stated((*beside, *found))),
            placeable=placeable,
            least_of=least_of or partial(least_value, window),
        )
        board.takes_proofs = (self.has_all_plans or self.window.is_opened) and self.window.is_whole_for(jobs)
        return board

    def event(self, by: str, what: str) -> Event:
        """Return an event of now."""
        return Event(at=self.elapsed, by=by, what=what[:LONGEST_EVENT])
