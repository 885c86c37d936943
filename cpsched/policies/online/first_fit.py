"""First fit: the queue is scanned in its order, and each job that fits now starts."""

from __future__ import annotations

from cpsched.sim import BackfillRule, QueueRule

__all__ = ["first_fit"]


def first_fit() -> QueueRule:
    """Return the rule: first come, first served among the jobs that fit now. Large jobs may wait without end."""
    return QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY)
