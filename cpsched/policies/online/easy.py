"""EASY backfilling (OCCS-52; Lifka, JSSPP 1995): only the head of the queue must not be delayed."""

from __future__ import annotations

from cpsched.sim import BackfillRule, QueueRule

__all__ = ["easy"]


def easy() -> QueueRule:
    """Return the rule: in the order of submission; a job that does not delay the head's reservation starts ahead
    of it.
    """
    return QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
