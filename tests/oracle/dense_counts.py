"""The naive twin of counting nodes: how many are held, one value per second."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DenseCounts", "Pieces"]

#: ``(since, until, nodes)``, from the start of a job on.
Pieces = Sequence[tuple[int, int, int]]


class DenseCounts:
    """How many nodes are held in each of the first seconds; mutable."""

    def __init__(self, seconds: int) -> None:
        self.held = [0] * seconds

    def add(self, pieces: Pieces, start: int, sign: int = 1) -> None:
        """Add what a job holds that begins at `start`, or take it away."""
        for since, until, amount in pieces:
            for second in range(start + since, start + until):
                self.held[second] += sign * amount

    def fits(self, pieces: Pieces, start: int, capacity: int) -> bool:
        """Return whether a job has enough nodes in all of its seconds if it begins at `start`."""
        return all(
            self.held[second] + amount <= capacity
            for since, until, amount in pieces
            for second in range(start + since, start + until)
        )

    def earliest_start(self, pieces: Pieces, earliest: int, capacity: int) -> int:
        """Return the first start from `earliest` on at which a job fits."""
        return next(start for start in range(earliest, len(self.held)) if self.fits(pieces, start, capacity))
