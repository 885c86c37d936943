"""An earlier plan as one more solver: what it knows is offered once."""

from __future__ import annotations

from cpsched.domain import Instance, Plan
from cpsched.engine import Board
from cpsched.planner import replanned

__all__ = ["WarmStart"]


class WarmStart:
    """Offers an earlier plan, brought up to date."""

    name = "warm"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def prepare(self) -> None:
        """Need nothing that the planner does not need."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return nothing: a plan that cannot be brought up to date is told on the board."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer it, if it plans the same jobs as the plan on the board."""
        outcome = replanned(instance, self._plan)
        if {job.id for job in outcome.jobs} == {job.id for job in board.best.jobs}:
            board.offer(outcome.jobs, by=self.name)
        else:
            board.report("could not begin from the earlier plan: it leaves other jobs without a start", by=self.name)
