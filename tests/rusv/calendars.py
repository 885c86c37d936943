"""The calendars of the product behind one contract, and their naive twin: what is free of a pool, second by second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, Asks, Demands, KindDemand, Layout, Run, Timeline, count_kernels

#: The units of the pool; all that is booked ends by this second.
UNITS, SECONDS = 6, 40
#: The most bookings of a history.
MOST = 12

#: What happens: a booking of an amount for some seconds from some second on, as soon as it fits; or (None) the end of
#: one of those that are there.
Happening = tuple[int, int, int] | None


class Calendar(Protocol):
    """What is free of a pool over time."""

    def add(self, start: int, end: int, amount: int) -> None:
        """Book an amount in ``[start, end)``."""

    def remove(self, start: int, end: int, amount: int) -> None:
        """Release what was booked."""

    def earliest_fit(self, amount: int, seconds: int, earliest: int) -> int:
        """Return the first start from `earliest` on from which an amount is free for some seconds."""

    def free_in(self, start: int, end: int) -> int:
        """Return what is free throughout ``[start, end)``."""

    def next_change(self, after: int) -> int | None:
        """Return the first second after another one at which the free amount may change; None: it changes no more."""


class BySecond:
    """The naive twin."""

    def __init__(self) -> None:
        self.free = [UNITS] * (SECONDS * (MOST + 2))

    def add(self, start: int, end: int, amount: int) -> None:
        """Book second by second."""
        for second in range(start, end):
            self.free[second] -= amount

    def remove(self, start: int, end: int, amount: int) -> None:
        """Release second by second."""
        self.add(start, end, -amount)

    def earliest_fit(self, amount: int, seconds: int, earliest: int) -> int:
        """Try every second."""
        return next(at for at in range(earliest, len(self.free)) if self.free_in(at, at + seconds) >= amount)

    def free_in(self, start: int, end: int) -> int:
        """Look at every second."""
        return min(self.free[start:end])

    def next_change(self, after: int) -> int | None:
        """Look at every second."""
        changes = (at for at in range(after + 1, len(self.free)) if self.free[at] != self.free[at - 1])
        return next(changes, None)


class OnTimeline:
    """A `Timeline` of one node; its nodes have steps of their own, or rows for all nodes are spelled out."""

    def __init__(self, *, is_spelled_out: bool) -> None:
        demands = Demands(
            Layout(runs=(Run(length=1, resources=(0,), capacity=(UNITS,), system=((0,),)),), system_capacity=(UNITS,))
        )
        self._demands = [
            demands.add([KindDemand(need=amount, most=amount, takes=((0, ((0, 1),)),))], system=((0, amount),))
            for amount in range(1, UNITS + 1)
        ]
        self._timeline = Timeline(demands)
        if is_spelled_out:
            self._timeline.kernel_arguments()

    def add(self, start: int, end: int, amount: int) -> None:
        """Book a column of the node."""
        self._timeline.book(self._timeline.booking(start, end, {0: amount}, {}))

    def remove(self, start: int, end: int, amount: int) -> None:
        """Release a column of the node."""
        self._timeline.release(self._timeline.booking(start, end, {0: amount}, {}))

    def earliest_fit(self, amount: int, seconds: int, earliest: int) -> int:
        """Search for a demand of so many chunks of one unit."""
        demand = self._demands[amount - 1]
        fit = self._timeline.earliest_fit(demand, earliest=earliest, latest=FOREVER, duration=seconds)
        assert fit is not None
        return fit.start

    def free_in(self, start: int, end: int) -> int:
        """Look at the column of the node, which is that of the system, too."""
        (free,), (of_system,) = self._timeline.least_free(start, end)
        assert free == of_system
        return int(free)

    def next_change(self, after: int) -> int | None:
        """Return the next breakpoint."""
        return next((at for at in self._timeline.breakpoints().tolist() if at > after), None)


class ByCounts:
    """A `count_kernels.Profile` of one column, or of two, of which the second is of a license that nobody asks for."""

    def __init__(self, *, columns: int) -> None:
        room = 2 * MOST + 4
        self._columns = columns
        self._profile = count_kernels.Profile(
            size=np.ones(1, dtype=np.int64),
            times=np.zeros(room, dtype=np.int64),
            free=np.full((room, columns), UNITS, dtype=np.int64),
        )
        amounts, none = np.arange(1, UNITS + 1), np.zeros((0, 2), dtype=np.int64)
        self._asks = Asks(
            need=amounts,
            pools_of=np.arange(UNITS + 1),
            pools=np.zeros(UNITS, dtype=np.int64),
            licenses_of=np.zeros(UNITS + 1, dtype=np.int64),
            licenses=none,
        )

    def _shift(self, start: int, end: int, amount: int, sign: int) -> None:
        takes = np.zeros(self._columns, dtype=np.int64)
        takes[0] = amount
        count_kernels.shift(start, end, takes, sign, self._profile)
        count_kernels.forget(0, self._profile)

    def add(self, start: int, end: int, amount: int) -> None:
        """Take the amount from the profile."""
        self._shift(start, end, amount, -1)

    def remove(self, start: int, end: int, amount: int) -> None:
        """Give the amount back to the profile."""
        self._shift(start, end, amount, 1)

    def earliest_fit(self, amount: int, seconds: int, earliest: int) -> int:
        """Find the place of a job without a start."""
        one = np.array([earliest]), np.array([seconds]), np.array([NOWHERE])
        job = count_kernels.Reservations(np.array([amount - 1]), *one, np.zeros((1, self._columns), dtype=np.int64))
        scratch = np.zeros(self._columns, dtype=np.int64), np.zeros(self._columns, dtype=np.int64)
        return int(count_kernels.find(0, FOREVER, self._profile, self._asks, job, *scratch))

    def free_in(self, start: int, end: int) -> int:
        """Look at all intervals that overlap."""
        times = self._profile.times[: self._profile.size[0]]
        first, behind = int(np.searchsorted(times, start, side="right")) - 1, int(np.searchsorted(times, end))
        return int(self._profile.free[first:behind, 0].min())

    def next_change(self, after: int) -> int | None:
        """Return the next breakpoint."""
        times = self._profile.times[: self._profile.size[0]]
        return next((at for at in times.tolist() if at > after), None)


#: What happens in turn.
histories = st.lists(
    st.none() | st.tuples(st.integers(1, UNITS), st.integers(1, SECONDS), st.integers(0, SECONDS)), max_size=MOST
)


def assert_keeps_contract(make: Callable[[], Calendar], history: Sequence[Happening]) -> None:
    """Let the same happen to a calendar and to its twin, and ask both everything after each step."""
    calendar, twin, present = make(), BySecond(), list[tuple[int, int, int]]()
    for number, one in enumerate(history):
        if one is None:
            if not present:
                continue
            booked = present.pop(number % len(present))
            calendar.remove(*booked)
            twin.remove(*booked)
        else:
            amount, seconds, earliest = one
            start = twin.earliest_fit(amount, seconds, earliest)
            assert calendar.earliest_fit(amount, seconds, earliest) == start
            booked = (start, start + seconds, amount)
            present.append(booked)
            calendar.add(*booked)
            twin.add(*booked)
        assert_same(calendar, twin)
    for booked in present:
        calendar.remove(*booked)
    assert_same(calendar, BySecond())


def assert_same(calendar: Calendar, twin: BySecond) -> None:
    """Ask a calendar for what is free from each of its changes to the next, and for places of all amounts."""
    at, changes = 0, [0]
    while (after := calendar.next_change(at)) is not None:
        assert after > at
        changes.append(at := after)
    missed, at = {0}, 0
    while (found := twin.next_change(at)) is not None:
        missed.add(at := found)
    assert missed <= {*changes}
    for start, end in zip(changes, [*changes[1:], changes[-1] + 1], strict=True):
        assert calendar.free_in(start, end) == twin.free_in(start, end)
        assert calendar.free_in(0, end) == twin.free_in(0, end)
    for amount in range(1, UNITS + 1):
        for seconds, earliest in ((1, 0), (SECONDS // 3, changes[len(changes) // 2])):
            found = twin.earliest_fit(amount, seconds, earliest)
            assert calendar.earliest_fit(amount, seconds, earliest) == found
