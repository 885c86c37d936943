"""The naive twin of lists of jobs that change: one job after the other is booked on the planner's ledger."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.planner import Values, place_cheaply

__all__ = ["listed_literally"]


def listed_literally(instance: Instance, jobs: Sequence[Job], order: Sequence[int]) -> list[PlannedJob] | None:
    """Return the jobs as planned in this order, each where it ends earliest, a malleable one in the mode and with the
    changes that cost it least; None if one of them finds no place.
    """
    ledger = Ledger(instance, jobs)
    values = Values(instance, ledger)
    for row in order:
        if len(ledger.modes[row]) > 1:
            place_cheaply(ledger, row, values)
        else:
            ledger.plan([jobs[row].id])
    planned = [ledger.planned(job.id) for job in jobs]
    return None if None in planned else [one for one in planned if one is not None]
