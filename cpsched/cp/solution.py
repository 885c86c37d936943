"""A solution in whole numbers: what travels between solver and engine."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Placed"]


@dataclass(frozen=True, slots=True)
class Placed:
    """When a task starts, and how many units of its parts stand where."""

    #: Seconds from now.
    start: int
    #: (part, site, how many units of it stand there); only where any do.
    counts: tuple[tuple[int, int, int], ...]
