"""F1, the best of the learnt orders of Carastan-Santos and de Camargo (SC'17)."""

from __future__ import annotations

from cpsched.policies.online.backfilling import Backfill, backfill_rule
from cpsched.sim import Order, QueueRule

__all__ = ["f1"]


def f1(backfill: Backfill = "none") -> QueueRule:
    """Return the rule: by ascending log10(walltime) · cores + 870 · log10(submit).

    The first one that does not fit blocks the queue, or is backfilled around, as in the last of their experiments.
    Submission counts from the workload's second 0: what F1 does depends on where its clock begins.
    """
    return QueueRule(name="f1", backfill=backfill_rule(backfill), order=Order.F1)
