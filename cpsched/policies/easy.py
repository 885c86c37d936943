"""EASY backfilling (OCCS-52): only the head of the queue must not be delayed."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.planner import by_turn
from cpsched.policies.event_loop import start_in_turn

__all__ = ["Easy"]


class Easy:
    """The head has a reservation, and the whole queue behind it is looked through for jobs that can start now."""

    name = "easy"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by priority, then by submission."""
        return by_turn(instance, jobs)

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Start jobs in their turn, or out of turn if that does not delay the head."""
        start_in_turn(ledger, queue, depth=None, progress=progress)
