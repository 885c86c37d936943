"""A solution in whole numbers: what travels between solver and engine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Placed"]


@dataclass(frozen=True, slots=True)
class Placed:
    """The times and the mode of a task, and the number of units of its parts on each site."""

    #: The begin of its first segment, and the ends of all its segments (s from now).
    times: tuple[int, ...]
    #: (part, site, number of its units there), without zeros.
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
