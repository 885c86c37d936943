"""What is free on each node, as steps of its own: what a timeline has until a kernel asks for rows of all nodes."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.kernels import nodes
from cpsched.rusv.kernels.arrays import Nodes, Tables, TimelineState
from cpsched.rusv.kernels.constants import N
from cpsched.rusv.kernels.nodes import SLACK, note_all_gaps

Ints = NDArray[np.int64]

#: Rows that a node has more than steps, at the least: with so many every kernel has space, also after it has given back
#: a booking, which may part steps that were one.
_SPARE = 3 * SLACK


class NodeSteps:
    """The steps of all nodes, from second 0 on; mutable.

    Memory grows with the bookings, not with nodes times breakpoints.

    `node_of`, `place_of`: int64 (W,): the node of each node column, and its column in a step. `idle`: int64 (nodes, 1 +
    resources): the step of each node when nothing is booked: second 0, and what there is. `arrays`: the steps as the
    kernels take them.
    """

    def __init__(self, node_of: Ints, place_of: Ints, idle: Ints) -> None:
        nodes = len(idle)
        spans = np.stack([np.arange(nodes), np.ones(nodes), np.ones(nodes)], axis=1).astype(np.int64)
        self.arrays = Nodes(
            spans=spans,
            steps=idle,
            used=np.array([nodes], dtype=np.int64),
            node_of=node_of,
            place_of=place_of,
            idle=idle,
            lacking=np.zeros(1, dtype=np.int64),
            gaps=np.zeros((nodes, 4), dtype=np.int64),
            wanted=np.zeros((idle.shape[1], 2), dtype=np.int64),
            coming=np.zeros((nodes + 1, 2), dtype=np.int64),
        )
        self.grow()

    def shift(self, start: int, end: int, sign: int, columns: Ints, amounts: Ints) -> None:
        """Add amounts of node columns, times `sign`, to what is free in ``[start, end)``."""
        while not nodes.has_space_for(columns, self.arrays):
            self.grow()
        nodes.shift_nodes(start, end, sign, columns, amounts, len(columns), self.arrays)

    def grow(self) -> None:
        """Lay the steps out anew, with room for more of each node, and as many rows for those that need even more."""
        arrays = self.arrays
        firsts, counts = arrays.spans[:, N.FIRST], arrays.spans[:, N.COUNT]
        rooms = np.maximum(2 * counts, counts + _SPARE)
        places: Ints = np.cumsum(rooms) - rooms
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        old, new = np.repeat(firsts, counts) + inside, np.repeat(places, counts) + inside
        rows = int(rooms.sum())
        steps = np.zeros((2 * rows, arrays.steps.shape[1]), dtype=np.int64)
        steps[new] = arrays.steps[old]
        spans = np.stack([places, counts, rooms], axis=1)
        self.arrays = arrays._replace(spans=spans, steps=steps, used=np.array([rows], dtype=np.int64))

    def gather(self, times: Ints, free: NDArray[np.int32]) -> None:
        """Take over what is free from rows of all node columns, int32 (slots, W), for slots that begin at `times`."""
        arrays = self.arrays
        changes = np.ones((len(times), len(arrays.idle)), dtype=bool)
        changes[1:] = False
        for place in range(1, arrays.idle.shape[1]):
            columns = np.flatnonzero(arrays.place_of == place)
            changes[1:, arrays.node_of[columns]] |= free[1:, columns] != free[:-1, columns]
        rows, slots = np.nonzero(changes.T)
        steps = np.zeros((len(rows), arrays.idle.shape[1]), dtype=np.int64)
        steps[:, 0] = times[slots]
        of_node: Ints = np.full(arrays.idle.shape, -1, dtype=np.int64)
        of_node[arrays.node_of, arrays.place_of] = np.arange(len(arrays.node_of))
        for place in range(1, arrays.idle.shape[1]):
            columns = of_node[rows, place]
            steps[:, place] = np.where(columns >= 0, free[slots, columns], 0)
        counts = changes.sum(axis=0)
        spans = np.stack([np.cumsum(counts) - counts, counts, counts], axis=1)
        self.arrays = arrays._replace(spans=spans, steps=steps, used=np.array([len(steps)], dtype=np.int64))
        note_all_gaps(self.arrays)
        self.grow()

    def copy(self) -> "NodeSteps":
        """Return a copy, which changes by itself."""
        same = copy(self)
        same.arrays = self.arrays._replace(
            spans=self.arrays.spans.copy(),
            steps=self.arrays.steps.copy(),
            used=self.arrays.used.copy(),
            gaps=self.arrays.gaps.copy(),
        )
        return same

    def least_free(self, start: int, end: int, tables: Tables) -> NDArray[np.int32]:
        """Return what is free of each node column throughout ``[start, end)``."""
        free = np.zeros(len(tables.capacity), dtype=np.int32)
        for run in range(len(tables.runs) - 1):
            nodes.least_by_node(run, start, end, free, self.arrays, tables)
        return free

    def spelled_out(self, axis: TimelineState) -> TimelineState:
        """Return the rows of all slots of a time axis that has none of node columns yet."""
        width = len(self.arrays.node_of)
        state = axis._replace(
            rows=np.zeros((len(axis.rows), width), dtype=np.int32),
            blk=np.zeros((len(axis.blk), 2, width), dtype=np.int32),
        )
        nodes.spell_out_rows(state, self.arrays)
        return state
