"""PBSFifo as it was compared with constraint programming on Eurora (BRIDI-20)."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.event_loop import start_in_turn

__all__ = ["PbsFifoBf10"]

#: The number of jobs behind the blocked head that are tried.
_DEPTH = 10


class PbsFifoBf10:
    """First in, first out, with backfilling among the first ten jobs behind the blocked head."""

    name = "pbs_fifo_bf10"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by submission."""
        return sorted(jobs, key=lambda job: job.submit)

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Start jobs in their turn, or a few out of turn if that does not delay the head."""
        start_in_turn(ledger, queue, depth=_DEPTH, progress=progress)
