"""WFP3 (Tang, Desai, Buettner, Lan, IPDPS 2010): waiting counts in cubes, and favours large jobs."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["wfp3"]


def wfp3(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by descending (wait / walltime)³ · cores, anew in each pass.

    The first one that does not fit blocks the queue, as in Carastan-Santos and de Camargo (SC'17), or is backfilled
    around, as in the last of their experiments.
    """
    return QueueRule(name="wfp3", backfill=backfill_rule(backfill), order=Order.WFP3)
