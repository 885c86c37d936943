"""A solution in whole numbers: what travels between solver and engine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Placed"]


@dataclass(frozen=True, slots=True)
class Placed:
    """When and how a task runs, and how many units of its parts stand where."""

    #: When its first segment begins, and each of its segments ends (s from now).
    times: tuple[int, ...]
    #: (part, site, how many units of it stand there); only where any do.
    counts: tuple[tuple[int, int, int], ...]
    #: Which of its modes it has.
    mode: int = 0

    @property
    def start(self) -> int:
        """Second from now."""
        return self.times[0]

    @property
    def end(self) -> int:
        """Second from now."""
        return self.times[-1]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Seconds that each segment takes."""
        return tuple(end - start for start, end in pairwise(self.times))
