"""Which of several ways is tried next: the more it gains in a second, the more often."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar

Way = TypeVar("Way")

#: Of all choices, such a part is drawn without looking at gains.
_ANY = 0.2
#: Each time that a way is tried, what it did before counts so much less.
_FADING = 0.99


class Chooser(Generic[Way]):
    """Draws ways by their gain per second; mutable.

    `ways`: at least one.
    """

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = tuple(ways)
        self._gains = [0.0] * len(self.ways)
        self._seconds = [0.0] * len(self.ways)
        self._tried = [0.0] * len(self.ways)

    def draw(self, random: Random) -> int:
        """Return the number of a way: drawn by its gain per second, or any, the quick ones more often.

        Few of many tries gain anything: the way of the greatest gain so far is often one that was lucky.
        """
        untried = [number for number, seconds in enumerate(self._seconds) if not seconds]
        if untried:
            return random.choice(untried)
        numbers = range(len(self.ways))
        rates = [gain / seconds for gain, seconds in zip(self._gains, self._seconds, strict=True)]
        if random.random() < _ANY or not any(rates):
            means = [tried / seconds for tried, seconds in zip(self._tried, self._seconds, strict=True)]
            return random.choices(numbers, means)[0]
        return random.choices(numbers, rates)[0]

    def learn(self, number: int, gain: float, seconds: float) -> None:
        """Take in what a way gained in some seconds."""
        self._gains[number] = _FADING * self._gains[number] + gain
        self._tried[number] = _FADING * self._tried[number] + 1
        self._seconds[number] = _FADING * self._seconds[number] + max(seconds, 1e-6)
