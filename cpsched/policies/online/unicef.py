"""UNICEF (Tang, Desai, Buettner, Lan, IPDPS 2010): quick turnaround for small jobs."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["unicef"]


def unicef(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by descending wait / (log2(cores) · walltime), anew in each pass.

    The first one that does not fit blocks the queue, as in Carastan-Santos and de Camargo (SC'17), or is backfilled
    around, as in the last of their experiments.
    """
    return QueueRule(name="unicef", backfill=backfill_rule(backfill), order=Order.UNICEF)
