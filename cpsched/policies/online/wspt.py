"""Weighted shortest processing time first (Smith, 1956), for the sum of wait / expected wait (BRIDI-8)."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["wspt"]


def wspt(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by ascending walltime · largest share of the machine · expected wait / weight.

    The share is the largest that the job asks for of any resource's or licence's total. The first job that does not fit
    blocks the queue, or is backfilled around.
    """
    return QueueRule(name="wspt", backfill=backfill_rule(backfill), order=Order.WSPT)
