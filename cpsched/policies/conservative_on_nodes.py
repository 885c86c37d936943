"""Conservative backfilling on concrete nodes: a reservation is for nodes that are free in all of its time."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.planner import planning_order
from cpsched.policies.insertion import insert

__all__ = ["ConservativeOnNodes"]


class ConservativeOnNodes:
    """Every job gets a reservation in its turn: insertion in the order of the planner's queue."""

    name = "conservative_on_nodes"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by priority, then by submission."""
        return planning_order(instance, tuple(jobs))

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Insert one job after the other."""
        insert(ledger, queue, progress)
