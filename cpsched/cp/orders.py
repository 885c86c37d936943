"""`Orders`: proves or finds the best plan of a few jobs at once, in this process."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.cp.bounds.orders import MOST_JOBS, best_order
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board
from cpsched.planner import AdmissionResult, unsupported


class Orders:
    """Tries the orders in which a few rigid jobs can start, on aggregated resources; the planner plans the best one.

    It takes milliseconds, where a solver takes half a second to be loaded. Nothing in it depends on clock or seed.
    """

    name = "orders"

    def prepare(self) -> None:
        """Prepare nothing: the planner has prepared everything."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the planner cannot honour."""
        return unsupported(instance)

    def is_for(self, jobs: Sequence[PlannedJob], instance: Instance) -> bool:
        """Return whether a plan has so few waiting jobs that their orders are tried."""
        return 0 < len(jobs) - sum(job.running is not None for job in instance.jobs) <= MOST_JOBS

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Prove a bound of the jobs of the best plan, and offer a plan of the order that has this value."""
        best = board.best
        waiting = [job.id for job in instance.elements() if job.running is None and job.id in best.ids]
        found = best_order(instance, waiting)
        if found is None:
            return
        board.prove(found.bound.value, over=best.ids, how=found.bound.how, by=self.name)
        if board.is_optimal:
            return
        admission = AdmissionResult.of(instance, engine=self.name)
        ledger = Ledger(instance, admission.admitted)
        ledger.plan(found.jobs)
        board.offer(admission.outcome(ledger).jobs, by=self.name)
