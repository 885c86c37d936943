"""First come, first served, to the letter."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.event_loop import start_in_turn

__all__ = ["Fcfs"]


class Fcfs:
    """No job starts before a job ahead of it in the queue: a blocked head blocks the queue."""

    name = "fcfs"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by submission."""
        return sorted(jobs, key=lambda job: job.submit)

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Start one job after the other, none out of turn."""
        start_in_turn(ledger, queue, depth=0, progress=progress)
