"""PBSFifo as it was compared with constraint programming on Eurora (BRIDI-20)."""

from __future__ import annotations

from cpsched.sim import BackfillRule, QueueRule

__all__ = ["pbs_fifo_bf10"]

#: The number of jobs behind the blocked head that are tried.
_DEPTH = 10


def pbs_fifo_bf10() -> QueueRule:
    """Return the rule: first in, first out, with EASY backfilling by the first ten behind a blocked head."""
    return QueueRule(name="pbs_fifo_bf10", backfill=BackfillRule.NOT_DELAYING, depth=_DEPTH)
