"""First come, first served, to the letter."""

from __future__ import annotations

from cpsched.sim import BackfillRule, QueueRule

__all__ = ["fcfs"]


def fcfs() -> QueueRule:
    """Return the rule: no job starts before one that came before it."""
    return QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)
