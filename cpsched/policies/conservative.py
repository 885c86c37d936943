"""Conservative backfilling (OCCS-52): no job is delayed by a job behind it in the queue."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.planner import planning_order
from cpsched.policies.counting import insert_by_counts
from cpsched.policies.insertion import insert

__all__ = ["Conservative"]


class Conservative:
    """Every job gets a reservation in its turn, in the order of the planner's queue.

    Where nodes are interchangeable, reservations are counts, and nodes are chosen in the order of the starts; where
    they are not, they are on nodes, as by `ConservativeOnNodes`.
    """

    name = "conservative"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by priority, then by submission."""
        return planning_order(instance, tuple(jobs))

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Reserve for one job after the other."""
        if not insert_by_counts(ledger, queue, progress):
            insert(ledger, queue, progress)
