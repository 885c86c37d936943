"""Evolution profiles as values: the number of nodes that an evolving application asks for, or has, over time.

The algebra of Klein and Pérez, Towards Scheduling Evolving Applications (EVO-1 to 3). A profile is a sequence of steps
``(duration, amount)`` from time 0 on; after its end its value is 0. It serves three uses: what is asked for, what is
scheduled, and what is busy. Profiles are frozen and in one canonical form: no step is empty, neighbours differ, and the
last amount is not 0. So two that say the same at all times are equal. Times are whole seconds, intervals half-open.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class Profile:
    """A step function that begins at 0 (EP of EVO-1); given in any cut, it is brought into canonical form.

    Raises `ValueError` if a duration or an amount is negative.

    Examples
    --------
    >>> Profile(((2000, 0), (100, 3))) + Profile(((2050, 1),))
    Profile(steps=((2000, 1), (50, 4), (50, 3)))
    """

    #: ``(duration, amount)`` in time order: seconds, and nodes (or whatever is counted).
    steps: tuple[tuple[int, int], ...] = ()
    #: When each step ends.
    _ends: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _amounts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if any(duration < 0 or amount < 0 for duration, amount in self.steps):
            raise ValueError(f"Expected durations and amounts of 0 or more, got {self.steps}")
        lasting = (step for step in self.steps if step[0])
        joined = [(sum(map(itemgetter(0), same)), amount) for amount, same in groupby(lasting, key=itemgetter(1))]
        if joined and joined[-1][1] == 0:
            joined.pop()
        object.__setattr__(self, "steps", tuple(joined))
        object.__setattr__(self, "_ends", tuple(accumulate(duration for duration, _ in joined)))
        object.__setattr__(self, "_amounts", tuple(amount for _, amount in joined))

    @property
    def end(self) -> int:
        """When the last step ends; 0 of an empty profile."""
        return self._ends[-1] if self._ends else 0

    def _pieces(self) -> Iterator[tuple[int, int]]:
        return pairwise((0, *self._ends))

    def at(self, time: int) -> int:
        """Return the value in the second that begins at `time` (EVO-3)."""
        return self.max(time, time + 1)

    def max(self, start: int, end: int) -> int:
        """Return the greatest value in ``[start, end)``, 0 if that is empty (EVO-3); `ValueError` if `start` < 0."""
        return max(self._amounts[self._within(start, end)], default=0)

    def loc(self, start: int, end: int) -> int:
        """Return where, in ``[start, end]``, the last step ends that attains the greatest value of ``[start, end)``.

        A request that needs more than that value leaves has to begin there or later (EVO-3).

        Raises `ValueError` if `start` is negative.
        """
        within = self._within(start, end)
        highest = max(self._amounts[within], default=0)
        if highest:
            for place in reversed(range(*within.indices(len(self._amounts)))):
                if self._amounts[place] == highest:
                    return min(self._ends[place], end)
        return max(start, end)

    def _within(self, start: int, end: int) -> slice:
        """Return the steps that overlap ``[start, end)``."""
        if start < 0:
            raise ValueError(f"Expected times of 0 or later, got {start}")
        if start >= end:
            return slice(0, 0)
        return slice(bisect_right(self._ends, start), bisect_left(self._ends, end) + 1)

    def delay(self, seconds: int) -> "Profile":
        """Return the profile delayed by `seconds`, with the value 0 before it (EVO-2)."""
        return Profile(((seconds, 0), *self.steps))

    def __add__(self, other: "Profile") -> "Profile":
        """Return the sum at each time."""
        borders = pairwise(sorted({0, *self._ends, *other._ends}))
        return Profile(tuple((end - start, self.at(start) + other.at(start)) for start, end in borders))

    def mirrored(self, end: int) -> "Profile":
        """Return ``[0, end)`` backwards, and nothing after it: the value of second t is that of ``end - 1 - t``."""
        inside = [(min(last, end) - first, n) for (first, last), n in zip(self._pieces(), self._amounts, strict=True)]
        kept = [(duration, amount) for duration, amount in inside if duration > 0]
        return Profile(((max(0, end - self.end), 0), *reversed(kept)))
