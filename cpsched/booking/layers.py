"""Which nodes the units of a job get that comes and goes in layers, when its steps have their times (EVO-4b).

A unit gets one node for its whole life, so that nothing migrates. Longer lives are mapped first. Among equal units of
one kind that finds nodes wherever there are some: a node that can hold a unit throughout a life can also hold it for a
part of it, so that whoever comes earlier takes from the others no more than any mapping has to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.columns import WHOLE_REQUEST, Columns
from cpsched.booking.shapes import Shape
from cpsched.domain import Arrangement, Life
from cpsched.rusv import Timeline

__all__ = ["mapped"]

Ints = NDArray[np.int64]
Entries = NDArray[np.int32]


def mapped(
    timeline: Timeline, columns: Columns, shape: Shape, times: Sequence[tuple[int, int]]
) -> list[Entries] | None:
    """Return the entries of each step's demand, cheap nodes first; None if no way was found to place all units.

    Parameters
    ----------
    timeline, columns
        What is free, and what its columns mean.
    shape
        The job.
    times
        Begin and end of each step.
    """
    free = [timeline.least_free(start, end)[0] for start, end in times]
    for order in shape.orders:
        attempt = _Attempt(timeline, columns, shape, [amounts.copy() for amounts in free])
        by_kind = sorted(shape.lives, key=lambda life: order.kinds.index(_kind(life)))
        if all(attempt.place(life, order.nodes) for life in by_kind):
            return attempt.entries()
    return None


def _kind(life: Life) -> int:
    """Return the kind of a life's units as `Columns` has it."""
    return WHOLE_REQUEST if life.kind is None else life.kind


class _Attempt:
    """One way to place all units of a job, life by life; mutable."""

    def __init__(self, timeline: Timeline, columns: Columns, shape: Shape, free: list[Ints]) -> None:
        self._demands, self._shape, self._free = timeline.demands, shape, free
        place = shape.requests[0].place
        self._is_scattered = place.arrangement is Arrangement.SCATTER
        everywhere = np.ones(timeline.demands.layout.num_nodes, dtype=bool)
        #: The nodes that may be used in each step.
        self._usable = [timeline.idle_nodes(amounts) if place.exclusive else everywhere.copy() for amounts in free]
        #: The kinds of each step's demand in its order; which of them is which kind of its chunks; units on the nodes.
        self._kinds = [[kind for kind, _ in self._demands.kinds_of(demand)] for demand in shape.demands]
        self._number = [{columns.kind_of(kind): kind for kind in kinds} for kinds in self._kinds]
        self._held: list[dict[int, Ints]] = [
            {kind: np.zeros(len(everywhere), dtype=np.int64) for kind in kinds} for kinds in self._kinds
        ]

    def place(self, life: Life, order: Ints) -> bool:
        """Give the units of a life nodes, the first ones in an order that have room throughout it; tell whether there
        are enough.
        """
        kind = _kind(life)
        steps = range(life.first, life.last + 1)
        fitting = np.min(
            [self._demands.units_in(self._number[step][kind], self._free[step]) * self._usable[step] for step in steps],
            axis=0,
        )
        if self._is_scattered:
            fitting = np.minimum(fitting, 1)
        in_order = fitting[order]
        units = np.zeros_like(fitting)
        units[order] = np.clip(life.count - np.cumsum(in_order) + in_order, 0, in_order)
        if units.sum() < life.count:
            return False
        for step in steps:
            number = self._number[step][kind]
            self._demands.take(number, units, self._free[step])
            self._held[step][number] += units
            if self._is_scattered:
                self._usable[step] &= units == 0
        return True

    def entries(self) -> list[Entries]:
        """Return where all units stand, step by step."""
        return [
            np.array(
                [(node, kind, held[kind][node]) for kind in kinds for node in np.flatnonzero(held[kind]).tolist()],
                dtype=np.int32,
            )
            for kinds, held in zip(self._kinds, self._held, strict=True)
        ]
