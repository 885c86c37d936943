"""The naive twin of `cpsched.rusv.Timeline`: one row of free amounts for each second, in plain arrays.

A row has every node column and every system column. The last second stands for all time after it, so that nothing
that has an end may end there or later. Demands are numbered as `Demands` numbers them, and so are their kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import FOREVER, KindDemand, Layout

#: (node, kind, chunks).
Entry = tuple[int, int, int]


@dataclass(frozen=True)
class DenseDemand:
    """What `Demands.add` was called with."""

    #: Number of its first kind among the kinds of all demands.
    first_kind: int
    kinds: tuple[KindDemand, ...]
    system: dict[int, int]
    licenses: dict[int, int]
    exclusive: bool
    scatter: bool
    otherwise: int
    within: bool
    segment: int = 0
    spread: int = 0


@dataclass(frozen=True)
class DenseBooking:
    """Amounts by node column and by system column, taken in ``[start, end)``."""

    start: int
    end: int
    columns: dict[int, int]
    system: dict[int, int]


class DenseTimeline:
    """What is free of every column in each of so many seconds; mutable."""

    def __init__(self, layout: Layout, seconds: int) -> None:
        self.layout = layout
        self.seconds = seconds
        self.run_of = [run for run in layout.runs for _ in range(run.length)]
        #: The column of a node's resource: resource by resource, node by node.
        self.column: dict[tuple[int, int], int] = {}
        for resource in sorted({resource for run in layout.runs for resource in run.resources}):
            for node, run in enumerate(self.run_of):
                if resource in run.resources:
                    self.column[node, resource] = len(self.column)
        self.sums: dict[int, tuple[int, ...]] = {}
        capacity = np.zeros(len(self.column), dtype=np.int64)
        for node, run in enumerate(self.run_of):
            for resource, amount, sums in zip(run.resources, run.capacity, run.system, strict=True):
                capacity[self.column[node, resource]] = amount
                self.sums[self.column[node, resource]] = sums
        self.capacity = capacity
        self.free = np.tile(capacity, (seconds, 1))
        self.system = np.tile(np.array(layout.system_capacity, dtype=np.int64), (seconds, 1))
        #: How many bookings begin or end at a time.
        self.breaks: Counter[int] = Counter()
        self.demands: list[DenseDemand] = []

    def add(
        self,
        kinds: Sequence[KindDemand],
        *,
        system: Iterable[tuple[int, int]] = (),
        licenses: Iterable[tuple[int, int]] = (),
        exclusive: bool = False,
        scatter: bool = False,
        otherwise: int = -1,
        within: bool = False,
        segment: int = 0,
        spread: int = 0,
    ) -> int:
        """Note a demand and return its number, as `Demands.add`."""
        first = sum(len(demand.kinds) for demand in self.demands)
        self.demands.append(
            DenseDemand(
                first,
                tuple(kinds),
                dict(system),
                dict(licenses),
                exclusive,
                scatter,
                otherwise,
                within,
                segment,
                spread,
            )
        )
        return len(self.demands) - 1

    # ---- booking ----

    def book(self, booking: DenseBooking) -> None:
        """Take a booking's amounts from what is free."""
        self._change(booking, -1)

    def release(self, booking: DenseBooking) -> None:
        """Give a booking's amounts back."""
        self._change(booking, 1)

    def is_free(self, booking: DenseBooking) -> bool:
        """Return whether a booking's amounts are free in every second of it."""
        return self.free_until(booking, booking.end) == booking.end

    def free_until(self, booking: DenseBooking, end: int) -> int:
        """Return the first second before `end` at which not all of a booking's amounts are free; `end` if there is
        none.
        """
        for second in range(booking.start, end):
            for column, amount in booking.columns.items():
                if self.free[second, column] < amount:
                    return second
            for column, amount in booking.system.items():
                if self.system[second, column] < amount:
                    return second
        return end

    def _change(self, booking: DenseBooking, sign: int) -> None:
        for column, amount in booking.columns.items():
            self.free[booking.start : booking.end, column] += sign * amount
        for column, amount in booking.system.items():
            self.system[booking.start : booking.end, column] += sign * amount
        self.breaks[booking.start] -= sign
        if booking.end < FOREVER:
            assert booking.end < self.seconds, "the last second stands for all time after it"
            self.breaks[booking.end] -= sign

    def booking(self, start: int, end: int, columns: Mapping[int, int], licenses: Mapping[int, int]) -> DenseBooking:
        """Return the booking of amounts of node columns, with the sums that follow from them."""
        system = Counter(licenses)
        for column, amount in columns.items():
            for number in self.sums[column]:
                system[number] += amount
        return DenseBooking(start, end, dict(columns), dict(system))

    def booking_of(self, number: int, entries: Iterable[Entry], start: int, end: int) -> DenseBooking:
        """Return the booking of a demand that stands at `entries`; an exclusive one takes its nodes whole."""
        demand = self.demands[number]
        columns: Counter[int] = Counter()
        for node, kind, chunks in entries:
            if demand.exclusive:
                for column in self._columns_of(node):
                    columns[column] = int(self.capacity[column])
            else:
                for column, amount in self.takes(self._kind(kind), node).items():
                    columns[column] += chunks * amount
        return self.booking(start, end, columns, demand.licenses)

    def _columns_of(self, node: int) -> list[int]:
        return [self.column[node, resource] for resource in self.run_of[node].resources]

    def _kind(self, number: int) -> KindDemand:
        return [kind for demand in self.demands for kind in demand.kinds][number]

    def takes(self, kind: KindDemand, node: int) -> dict[int, int]:
        """Return what one chunk takes of a node's columns; nothing if it may not stand there."""
        for run, takes in kind.takes:
            if node in self.nodes_of(run):
                return {self._columns_of(node)[place]: amount for place, amount in takes}
        return {}

    def nodes_of(self, run: int) -> range:
        """Return the nodes of a run."""
        first = sum(before.length for before in self.layout.runs[:run])
        return range(first, first + self.layout.runs[run].length)

    # ---- searching ----

    def earliest_fit(
        self, number: int, *, earliest: int, latest: int, duration: int
    ) -> tuple[int, tuple[Entry, ...]] | None:
        """Return the earliest start of a demand and its entries, or None.

        A demand of one kind tries every second. One of several kinds tries `earliest` and the breakpoints after it: at
        another second less may be free, and the greedy mapping be luckier for it; that luck is nobody's promise.
        """
        seconds: Iterable[int] = range(earliest, self.seconds)
        if len(self.demands[number].kinds) > 1:
            seconds = sorted({earliest, *(time for time in self.breakpoints() if time > earliest)})
        for start in seconds:
            if start > latest:
                return None
            entries = self._mapped(number, start, start + duration)
            if entries:
                return start, entries
        return None

    def _mapped(self, number: int, start: int, end: int) -> tuple[Entry, ...]:
        """Return where a demand stands in ``[start, end)``, by its own orders or those it tries otherwise; one that is
        within a group stands in that with the least room.
        """
        room = self.free[start:end].min(axis=0)
        attempts = [number]
        while self.demands[attempts[-1]].otherwise >= 0:
            attempts.append(self.demands[attempts[-1]].otherwise)
        if self.demands[number].segment or self.demands[number].spread:
            return self._in_groups(number, attempts[1:], start, end, room)
        if self.demands[number].within:
            attempts = sorted(attempts[1:], key=lambda group: self._fitting(self.demands[group], room))
        for attempt in attempts:
            demand = self.demands[attempt]
            system = self.system[start:end].min(axis=0)
            needs = (*demand.system.items(), *demand.licenses.items())
            if all(system[column] >= amount for column, amount in needs):
                entries = self._greedy(demand, room.copy())
                if entries:
                    return entries
        return ()

    def _in_groups(
        self, number: int, groups: Sequence[int], start: int, end: int, room: NDArray[np.int64]
    ) -> tuple[Entry, ...]:
        """Return where a demand of one kind is in several groups: group by group as many chunks as may be there, first
        in that with most of them; where several have all that is left, in that with the least room.
        """
        demand, system = self.demands[number], self.system[start:end].min(axis=0)
        if any(system[column] < amount for column, amount in (*demand.system.items(), *demand.licenses.items())):
            return ()
        entries: list[Entry] = []
        left, unused = demand.kinds[0].need, list(groups)
        while left:
            fits = {group: self._fitting(self.demands[group], room) for group in unused}
            takes = {
                group: next(
                    count
                    for count in range(min(left, fit), -1, -1)
                    if count % (demand.segment or 1) == 0 and count <= (demand.spread or left)
                )
                for group, fit in fits.items()
            }
            best = max(unused, key=lambda group: (takes[group], takes[group] == left and -fits[group]), default=None)
            if best is None or takes[best] == 0:
                return ()
            of_group = self.demands[best]
            (kind,) = of_group.kinds
            entries += self._greedy(replace(of_group, kinds=(replace(kind, need=takes[best]),)), room.copy())
            left -= takes[best]
            unused.remove(best)
        return tuple(entries)

    def _fitting(self, demand: DenseDemand, room: NDArray[np.int64]) -> int:
        """Return how many chunks of a demand of one kind fit on its nodes."""
        count, (kind,) = 0, demand.kinds
        while self._greedy(replace(demand, kinds=(replace(kind, need=count + 1),)), room.copy()):
            count += 1
        return count

    def _greedy(self, demand: DenseDemand, room: NDArray[np.int64]) -> tuple[Entry, ...]:
        """Put as many chunks as fit on each node, kind by kind; nothing if some find no room."""
        entries: list[Entry] = []
        for number, kind in enumerate(demand.kinds, demand.first_kind):
            missing = kind.need
            for node in (node for run, _ in kind.takes for node in self.nodes_of(run)):
                if demand.exclusive and any(self._is_held(column, room, entries) for column in self._columns_of(node)):
                    continue
                if demand.scatter and node in {held for held, _, _ in entries}:
                    continue
                takes = self.takes(kind, node)
                count = min(missing, kind.most, *(int(room[column]) // amount for column, amount in takes.items()))
                if count > 0:
                    entries.append((node, number, count))
                    missing -= count
                    for column, amount in takes.items():
                        room[column] -= count * amount
            if missing:
                return ()
        return tuple(entries)

    def _is_held(self, column: int, room: NDArray[np.int64], entries: Iterable[Entry]) -> bool:
        """Return whether somebody else has some of a column: what this demand took itself does not count."""
        own = sum(chunks * self.takes(self._kind(kind), node).get(column, 0) for node, kind, chunks in entries)
        return int(room[column]) + own != int(self.capacity[column])

    # ---- windows ----

    def free_from(self, number: int, start: int, end: int) -> int:
        """Return the first second from `start` on from which each kind of a demand fits until `end` by itself."""
        demand = self.demands[number]
        for second in range(start, end):
            system = self.system[second:end].min(axis=0)
            if all(system[column] >= amount for column, amount in (*demand.system.items(), *demand.licenses.items())):
                room = self.free[second:end].min(axis=0)
                if all(sum(self.units_in(demand, kind, room)) >= kind.need for kind in demand.kinds):
                    return second
        return end

    def units_in(self, demand: DenseDemand, kind: KindDemand, room: NDArray[np.int64]) -> list[int]:
        """Return how many chunks of a kind fit on each node; none on one that is held, if the demand is exclusive."""
        return [
            min(kind.most, *(int(room[column]) // amount for column, amount in takes.items()))
            if (takes := self.takes(kind, node)) and not (demand.exclusive and not self.is_idle(node, room))
            else 0
            for node in range(len(self.run_of))
        ]

    def is_idle(self, node: int, room: NDArray[np.int64]) -> bool:
        """Return whether `room` has all of a node."""
        return all(room[column] == self.capacity[column] for column in self._columns_of(node))

    # ---- looking ----

    def breakpoints(self) -> list[int]:
        """Return 0 and all times at which a booking begins or ends, ascending."""
        return sorted({0, *(time for time, uses in self.breaks.items() if uses > 0)})
