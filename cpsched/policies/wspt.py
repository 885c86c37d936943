"""Weighted shortest processing time first (Smith, 1956), with the machine's dominant share as the width of a job."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.insertion import insert

__all__ = ["Wspt"]


class Wspt:
    """A list by Smith's rule for the sum of wait / expected wait, inserted job by job.

    On one machine the best order is by ascending processing time / weight. The weight is the job's over its expected
    wait; the processing time is walltime times width, the largest share of all nodes' (or licences') total that the job
    takes of anything.
    """

    name = "wspt_list"

    def order(self, instance: Instance, jobs: Sequence[Job]) -> list[Job]:
        """Order by expected wait x walltime x dominant share / weight, then by submission."""

        def key(job: Job) -> tuple[Fraction, int]:
            share = instance.cluster.dominant_share(job.request, job.licenses)
            return instance.expected_wait(job) * job.walltime * share / instance.weight(job), job.submit

        return sorted(jobs, key=key)

    def serve(self, ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
        """Insert one job after the other."""
        insert(ledger, queue, progress)
