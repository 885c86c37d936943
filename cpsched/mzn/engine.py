"""MiniZinc as an improver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpsched.domain import Instance
from cpsched.engine import Board
from cpsched.errors import EngineError
from cpsched.mzn.solver import Verdict, find_solver, solutions
from cpsched.mzn.support import unsupported
from cpsched.mzn.window import Window

__all__ = ["MiniZinc", "MiniZincParams"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniZincParams:
    """Which solver, as ``minizinc --solver`` names it."""

    solver: str = "gecode"


class MiniZinc:
    """The model ``models/window.mzn``, given to a solver that MiniZinc knows."""

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
        window = Window.of(instance, known)
        if not window.jobs or board.is_over:
            return
        by = f"{self.name}:{self.params.solver}"

        def offer(solution: Any) -> None:
            found = {planned.id: planned for planned in window.planned(solution.start, solution.count)}
            board.offer([found.get(planned.id, planned) for planned in known], by=by)

        answer = solutions(
            self.params.solver,
            window.data,
            seconds=board.budget.remaining,
            seed=seed,
            is_over=lambda: board.is_over,
            on_solution=offer,
        )
        if answer.verdict is Verdict.IMPOSSIBLE:
            raise EngineError(f"{by}: expected a plan as good as the one that is known, got the answer that none is")
        if answer.verdict is Verdict.OPTIMAL and answer.cost is not None:
            rounding = "" if window.prices.is_exact else ", of prices rounded down"
            board.prove(window.bound_of(answer.cost), how=f"MiniZinc, {self.params.solver}: optimal{rounding}")
