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
        """Offer the updated plan, if it plans the same jobs as the plan on the board."""
        outcome = self.plan(instance, None)
        if {job.id for job in outcome.jobs} == {job.id for job in board.best.jobs}:
            board.offer(outcome.jobs, by=self.name)
        else:
            board.report("could not begin from the earlier plan: it leaves other jobs without a start", by=self.name)
