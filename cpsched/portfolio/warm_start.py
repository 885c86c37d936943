"""An earlier plan as one more solver, which offers it once; or as the engine that makes the first plan."""

from __future__ import annotations

from cpsched.domain import Instance, Plan
from cpsched.engine import Board, Outcome, Progress
from cpsched.planner import replanned

__all__ = ["WarmStart"]


class WarmStart:
    """Updates an earlier plan."""

    name = "warm"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def prepare(self) -> None:
        """Prepare nothing: the planner has prepared everything."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return no features: a plan that cannot be updated is reported on the board."""
        return ()

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs as in the earlier plan, as far as possible."""
        return replanned(instance, self._plan)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer the updated plan, unless it has fewer jobs than the plan on the board."""
        outcome = self.plan(instance, None)
        lost = len(board.best.jobs) - len(outcome.jobs)
        if lost > 0:
            board.report(f"could not begin from the earlier plan: it leaves {lost} more without a start", by=self.name)
        else:
            board.offer(outcome.jobs, by=self.name)
