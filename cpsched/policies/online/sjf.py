"""Shortest job first."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["sjf"]


def sjf(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by walltime; the first one that does not fit blocks the queue, or is backfilled around."""
    return QueueRule(name="sjf", backfill=backfill_rule(backfill), order=Order.WALLTIME)
