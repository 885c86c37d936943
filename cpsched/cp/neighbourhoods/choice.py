"""Which of several ways is tried next: the more of its gains, for the time that they took, the more often."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar

__all__ = ["Chooser"]

Way = TypeVar("Way")

#: Of all choices, such a part is drawn without looking at gains.
_ANY = 0.2
#: Each time that a way is tried, what it did before counts so much less.
_FADING = 0.95


class Chooser(Generic[Way]):
    """Draws ways by their gain per second; mutable.

    Parameters
    ----------
    ways
        At least one.
    """

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = tuple(ways)
        self._gains = [0.0] * len(self.ways)
        self._seconds = [0.0] * len(self.ways)
        self._tried = [0.0] * len(self.ways)

    def draw(self, random: Random) -> int:
        """Return the number of a way: that of the greatest gain per second, or any, the quick ones more often."""
        untried = [number for number, seconds in enumerate(self._seconds) if not seconds]
        if untried:
            return random.choice(untried)
        numbers = range(len(self.ways))
        if random.random() < _ANY:
            means = [tried / seconds for tried, seconds in zip(self._tried, self._seconds, strict=True)]
            return random.choices(numbers, means)[0]
        return max(numbers, key=lambda number: (self._gains[number] / self._seconds[number], random.random()))

    def learn(self, number: int, gain: float, seconds: float) -> None:
        """Take in what a way gained in some seconds."""
        self._gains[number] = _FADING * self._gains[number] + gain
        self._tried[number] = _FADING * self._tried[number] + 1
        self._seconds[number] = _FADING * self._seconds[number] + max(seconds, 1e-6)
