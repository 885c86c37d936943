"""Serving a queue by insertion: one job after the other into the plan."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Job
from cpsched.engine import Progress
from cpsched.problem import awaited_first


def insert(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Give each job its earliest start beside the jobs before it, which it does not move.

    The turn of a job that waits for others does not come before theirs.
    """
    ledger.plan([job.id for job in awaited_first(ledger.instance, queue)], progress)
