"""MiniZinc as an improver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board
from cpsched.errors import EngineError
from cpsched.mzn.evolving import EvolvingWindow
from cpsched.mzn.malleable import MalleableWindow
from cpsched.mzn.solver import Answer, Verdict, find_solver, solutions
from cpsched.mzn.support import model_for, unsupported
from cpsched.mzn.window import Window

__all__ = ["MiniZinc", "MiniZincParams", "window_of"]

#: What is said when a solver has finished with a model that has not all plans of a window: nothing is proven then.
_ENDS = {
    Verdict.OPTIMAL: "its best plan is the best one that {model}.mzn has; there may be better ones of other kinds",
    Verdict.IMPOSSIBLE: "no plan that {model}.mzn has is as good as the one that is known",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniZincParams:
    """Which solver, as ``minizinc --solver`` names it."""

    solver: str = "gecode"


class MiniZinc:
    """The models ``window``, ``evolving`` and ``malleable``, given to a solver that MiniZinc knows."""

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
        """Return what the instance asks for and the model does not know."""
        return unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer the solver's plans as they come, and its proof, until it has finished or the board is over.

        Raises
        ------
        EngineError
            If MiniZinc or the solver is missing or fails, or denies that there is a plan.
        """
        known = board.best.jobs
        window = window_of(instance, known)
        if not window.jobs or board.is_over:
            return
        by = f"{self.name}:{self.params.solver}"

        def offer(solution: Any) -> None:
            found = {planned.id: planned for planned in window.planned(solution)}
            board.offer([found.get(planned.id, planned) for planned in known], by=by)

        answer = solutions(
            self.params.solver,
            window.model,
            window.data,
            seconds=board.budget.remaining,
            seed=seed,
            is_over=lambda: board.is_over,
            on_solution=offer,
        )
        if isinstance(window, Window):
            _conclude(window, answer, board, self.params.solver, by)
        elif answer.verdict in _ENDS:
            board.report(_ENDS[answer.verdict].format(model=window.model), by=by)


def window_of(instance: Instance, known: Sequence[PlannedJob]) -> Window | EvolvingWindow | MalleableWindow:
    """Return a window as the model is given it that knows what its jobs do.

    Parameters
    ----------
    instance
        One that `unsupported` finds nothing in.
    known
        The jobs of any plan. The model is asked for a plan that is no worse.
    """
    match model_for(instance):
        case EvolvingWindow.model:
            return EvolvingWindow.of(instance, known)
        case MalleableWindow.model:
            return MalleableWindow.of(instance, known)
    return Window.of(instance, known)


def _conclude(window: Window, answer: Answer, board: Board, solver: str, by: str) -> None:
    """Say what is proven when the solver has finished with a model that has all plans of a window."""
    if answer.verdict is Verdict.IMPOSSIBLE:
        raise EngineError(f"{by}: expected a plan as good as the one that is known, got the answer that none is")
    if answer.verdict is Verdict.OPTIMAL and answer.cost is not None:
        rounding = "" if window.prices.is_exact else ", of prices rounded down"
        board.prove(window.bound_of(answer.cost), how=f"MiniZinc, {solver}: optimal{rounding}", by=by)
