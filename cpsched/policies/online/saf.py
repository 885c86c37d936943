"""Smallest area first."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["saf"]


def saf(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by cores times walltime; the first one that does not fit blocks the queue, or is backfilled
    around.
    """
    return QueueRule(name="saf", backfill=backfill_rule(backfill), order=Order.AREA)
