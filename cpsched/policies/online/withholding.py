"""Nodes that are withheld from jobs for a time: bookings of all that is free on them, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import Booking, Demands, Timeline

__all__ = ["columns_of", "withhold"]


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

    What is booked there already stays so: who runs may run into a downtime, and a node that is out is out. So this
    never takes more than there is.
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
