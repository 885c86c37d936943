"""Shortest job first."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.insertion import insert

__all__ = ["Sjf"]


class Sjf:
    """A list by walltime, inserted job by job."""

    name = "sjf_list"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by walltime, then by submission."""
        return sorted(jobs, key=lambda job: (job.walltime, job.submit))

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Insert one job after the other."""
        insert(ledger, queue, progress)
