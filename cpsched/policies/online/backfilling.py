"""Whether a rule of order starts jobs ahead of the first job that has to wait."""

from __future__ import annotations

from typing import Literal

from cpsched.sim import BackfillRule

__all__ = ["Backfill", "backfill_rule"]

#: ``none``: no job starts ahead of the head (as the orders were first published). ``easy``: a job that does not delay
#: the head's reservation does (aggressive backfilling).
Backfill = Literal["none", "easy"]


def backfill_rule(backfill: Backfill) -> BackfillRule:
    """Return the backfill rule of a queue rule."""
    return BackfillRule.NOT_DELAYING if backfill == "easy" else BackfillRule.NOBODY
