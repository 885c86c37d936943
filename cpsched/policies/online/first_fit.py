"""First fit: the queue is walked, and whoever fits starts."""

from __future__ import annotations

from cpsched.sim import BackfillRule, QueueRule

__all__ = ["first_fit"]


def first_fit() -> QueueRule:
    """Return the rule: first come, first served among those who fit now. Large jobs may wait for ever."""
    return QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY)
