"""PBSWalltime as it was compared with constraint programming on Eurora (BRIDI-21)."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.event_loop import start_in_turn

__all__ = ["PbsWalltimeBf400"]

#: The number of jobs behind the blocked head that are tried.
_DEPTH = 400


class PbsWalltimeBf400:
    """By increasing walltime, with backfilling among the first 400 jobs behind the blocked head."""

    name = "pbs_walltime_bf400"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by walltime, then by submission."""
        return sorted(jobs, key=lambda job: (job.walltime, job.submit))

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Start jobs in their turn, or some out of turn if that does not delay the head."""
        start_in_turn(ledger, queue, depth=_DEPTH, progress=progress)
