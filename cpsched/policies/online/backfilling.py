"""Whether an order rule lets jobs past the first one that has to wait."""

from __future__ import annotations

from typing import Literal

from cpsched.sim import Way

__all__ = ["Backfill", "way_of"]

#: ``none``: nobody is let past, as the orders were published first. ``easy``: who does not delay the head's
#: reservation (aggressive backfilling).
Backfill = Literal["none", "easy"]


def way_of(backfill: Backfill) -> Way:
    """Return the way of a queue rule."""
    return Way.NOT_DELAYING if backfill == "easy" else Way.NOBODY
