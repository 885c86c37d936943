"""PBSWalltime as it was compared with constraint programming on Eurora (BRIDI-21)."""

from __future__ import annotations

from cpsched.sim import BackfillRule, Order, QueueRule

__all__ = ["pbs_walltime_bf400"]

#: The number of jobs behind the blocked head that are tried.
_DEPTH = 400


def pbs_walltime_bf400() -> QueueRule:
    """Return the rule: by walltime, with EASY backfilling by the first 400 behind a blocked head."""
    return QueueRule(name="pbs_walltime_bf400", backfill=BackfillRule.NOT_DELAYING, order=Order.WALLTIME, depth=_DEPTH)
