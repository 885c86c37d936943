"""MiniZinc as an improver."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cpsched import planner
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board
from cpsched.errors import EngineError
from cpsched.mzn.evolving import EvolvingWindow
from cpsched.mzn.solver import Answer, Verdict, find_solver, solutions
from cpsched.mzn.support import has_evolving, unsupported
from cpsched.mzn.window import Window
from cpsched.problem import given

#: Events for a solver that has finished with a model that does not have all plans of a window: nothing is proven then.
_ENDS = {
    Verdict.OPTIMAL: "its best plan is optimal in {model}.mzn, which does not have all plans: there may be better ones",
    Verdict.IMPOSSIBLE: "no plan of {model}.mzn is as good as the best known plan",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniZincParams:
    """The solver to use, as ``minizinc --solver`` names it."""

    solver: str = "gecode"


class MiniZinc:
    """The models ``window`` and ``evolving``, given to a solver that MiniZinc knows."""

    name = "minizinc"

    def __init__(self, params: MiniZincParams | None = None) -> None:
        self.params = params or MiniZincParams()

    def prepare(self) -> None:
        """Find MiniZinc and the solver.

        Raises
        ------
        EngineError
            If one of them is missing; the message says how to get it.
        """
        find_solver(self.params.solver)

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the model does not have."""
        return unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer each plan of the solver, and its proof, until it has finished or the board is over.

        Raises `EngineError` if MiniZinc or the solver is missing or fails, or answers that there is no plan.
        """
        best = board.best
        chosen = {planned.id: planned.alternative for planned in best.jobs}
        has_choices = any(job.alternatives for job in instance.jobs)
        if has_choices:
            instance = _settled(instance, chosen)
        window = window_of(instance, [replace(planned, alternative=0) for planned in best.jobs])
        if not window.jobs or board.is_over:
            return
        by = f"{self.name}:{self.params.solver}"

        def offer(solution: Any) -> None:
            found = {one.id: replace(one, alternative=chosen[one.id]) for one in window.planned(solution)}
            board.offer([found.get(planned.id, planned) for planned in best.jobs], by=by)

        answer = solutions(
            self.params.solver,
            window.model,
            window.data,
            seconds=board.budget.remaining,
            seed=seed,
            is_over=lambda: board.is_over,
            on_solution=offer,
        )
        if isinstance(window, Window) and not has_choices:
            _conclude(window, answer, board, best.ids, self.params.solver, by)
        elif answer.verdict in _ENDS:
            board.report(_ENDS[answer.verdict].format(model=window.model), by=by)


def _settled(instance: Instance, chosen: Mapping[str, int]) -> Instance:
    """Return a window in which each job has to run by the alternative that a plan chose for it."""
    apart = planner.elements_apart(instance)
    return replace(apart, jobs=tuple(given(job, chosen.get(job.id, 0)) for job in apart.jobs))


def window_of(instance: Instance, known: Sequence[PlannedJob]) -> Window | EvolvingWindow:
    """Return the data of a window for the model that has its kinds of jobs.

    `instance`: an instance without unsupported features. `known`: the jobs of any plan. The model is asked for a plan
    that is no worse.
    """
    return EvolvingWindow.of(instance, known) if has_evolving(instance) else Window.of(instance, known)


def _conclude(window: Window, answer: Answer, board: Board, jobs: Collection[str], solver: str, by: str) -> None:
    """Offer the bound that is proven when the solver has finished with a model that has all plans of a window."""
    if answer.verdict is Verdict.IMPOSSIBLE:
        raise EngineError(f"{by}: expected a plan as good as the best known one, got the answer that there is none")
    if answer.verdict is Verdict.OPTIMAL and answer.cost is not None:
        rounding = "" if window.prices.is_exact else ", of prices rounded down"
        board.prove(window.bound_of(answer.cost), over=jobs, how=f"MiniZinc, {solver}: optimal{rounding}", by=by)
