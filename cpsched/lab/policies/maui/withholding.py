"""Nodes that are withheld from jobs for a time: bookings of all that is free on them, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import Changes, Outlook
from cpsched.rusv import Booking, Demands, Timeline


def columns_of(demands: Demands, nodes: Iterable[int]) -> NDArray[np.int64]:
    """Return the columns of some nodes, which are numbered in the order of filling."""
    wanted, first = set(nodes), 0
    found: list[int] = []
    for run, columns in zip(demands.layout.runs, demands.columns, strict=True):
        for node in range(run.length):
            if first + node in wanted:
                found.extend(column + node for column in columns)
        first += run.length
    return np.array(found, dtype=np.int64)


def withhold(timeline: Timeline, columns: NDArray[np.int64], start: int, end: int) -> list[Booking]:
    """Book all that is free of some columns in ``[start, end)``, and return the bookings.

    Existing bookings remain: a running job may overlap a downtime, and a node may be down already. So this never takes
    more than is free.
    """
    cuts = timeline.breakpoints()
    edges = [start, *cuts[(cuts > start) & (cuts < end)].tolist(), end]
    pieces: list[tuple[int, NDArray[np.int64]]] = []
    for edge in edges[:-1]:
        free = timeline.free_at(edge)[0][columns]
        if not pieces or (free != pieces[-1][1]).any():
            pieces.append((edge, free))
    bookings = []
    for (begin, free), (until, _) in pairwise([*pieces, (end, columns)]):
        has = free > 0
        taken = dict(zip(columns[has].tolist(), free[has].tolist(), strict=True))
        booking = timeline.booking(begin, until, taken, {})
        timeline.book(booking)
        bookings.append(booking)
    return bookings


class Closures:
    """Nodes that are withheld in times known beforehand; mutable.

    `outlook`: the outlook whose timeline is used. `spans`: the columns, start and end of each closure.
    """

    def __init__(self, outlook: Outlook, spans: Sequence[tuple[NDArray[np.int64], int, int]]) -> None:
        self._timeline = outlook.timeline
        #: With their bookings, once there are any.
        self._coming: list[tuple[NDArray[np.int64], int, int, list[Booking]]] = [(*span, []) for span in spans]

    def follow(self, now: int, changes: Changes) -> None:
        """Withhold what is free by now, after the outlook has changed."""
        coming = []
        for columns, start, end, bookings in self._coming:
            is_over = end <= now
            is_touched = changes.has_taken or changes.freed_until > start
            if bookings and not (is_over or is_touched):
                coming.append((columns, start, end, bookings))
                continue
            for booking in bookings:
                self._timeline.release(booking)
            if not is_over:
                coming.append((columns, start, end, withhold(self._timeline, columns, max(now, start), end)))
        self._coming = coming
