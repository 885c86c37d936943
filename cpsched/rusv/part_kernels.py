"""Bookings whose amounts change from part to part, made in one pass over the blocks that they meet.

The same as one booking for each part; but a block in which several parts lie is renewed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels import (
    BLOCK,
    H_BLOCKS,
    HIGH,
    LAZY,
    LOW,
    add_break,
    drop_break,
    locate,
    summarise_system,
)

# places in `sizes`: the numbers of parts and of node columns
Z_PARTS, Z_COLUMNS = 0, 1


class Parts(NamedTuple):
    """The amounts of a booking in each of its parts."""

    #: int64 (2,): see ``Z_*``.
    sizes: NDArray[Any]
    #: int64 (parts + 1,): the start of each part, and the end of the last one.
    borders: NDArray[Any]
    #: int64 (·,): the node columns that any part takes; int64 (parts, ·): how much of them.
    columns: NDArray[Any]
    amounts: NDArray[Any]
    #: int64 (parts, Q): how much of each system column.
    samounts: NDArray[Any]
    #: int64 (W,): 1 + the place of a node column in `columns`; 0 if it is not there.
    place_of: NDArray[Any]
    #: int64 (BLOCK,): the part in which each slot of a block lies.
    part_of: NDArray[Any]


@kernel
def start_parts(z):
    """Begin with no parts."""
    for k in range(z.sizes[Z_COLUMNS]):
        z.place_of[z.columns[k]] = 0
    z.sizes[Z_PARTS] = z.sizes[Z_COLUMNS] = 0


@kernel
def add_part(start, end, filled, systems, x, z):
    """Add a part, directly after the last one, with the amounts that stand in the scratch `x` of the timeline."""
    part = z.sizes[Z_PARTS]
    z.sizes[Z_PARTS] += 1
    z.borders[part], z.borders[part + 1] = start, end
    for k in range(z.sizes[Z_COLUMNS]):
        z.amounts[part, k] = 0
    for q in range(z.samounts.shape[1]):
        z.samounts[part, q] = 0
    for k in range(filled):
        at = z.place_of[x.columns[k]] - 1
        if at < 0:
            at = z.sizes[Z_COLUMNS]
            z.sizes[Z_COLUMNS] += 1
            z.place_of[x.columns[k]], z.columns[at] = at + 1, x.columns[k]
            for before in range(part + 1):
                z.amounts[before, at] = 0
        z.amounts[part, at] += x.amounts[k]
    for k in range(systems):
        z.samounts[part, x.scolumns[k]] += x.samounts[k]


@kernel
def book_parts(s, z):
    """Take the amounts of all parts from what is free."""
    for k in range(z.sizes[Z_PARTS] + 1):
        add_break(z.borders[k], s)
    shift_parts(-1, s, z)


@kernel
def release_parts(s, z):
    """Give the amounts of all parts back: the exact inverse of `book_parts`."""
    shift_parts(1, s, z)
    for k in range(z.sizes[Z_PARTS] + 1):
        drop_break(z.borders[k], s)


@inner_kernel
def shift_parts(sign, s, z):
    """Add the amounts of all parts, times `sign`, to what is free; their borders are breakpoints."""
    part, behind = 0, z.sizes[Z_PARTS]
    place, begin = locate(z.borders[0], s)
    while place < s.head[H_BLOCKS]:
        block = s.order[place]
        size, stop = s.members[block, BLOCK], begin
        while stop < size and s.slots[s.members[block, stop], 0] < z.borders[behind]:
            while s.slots[s.members[block, stop], 0] >= z.borders[part + 1]:
                part += 1
            z.part_of[stop] = part
            stop += 1
        if stop == begin:
            return
        if begin == 0 and stop == size and z.part_of[0] == part:
            shift_block(block, part, sign, s, z)
        else:
            shift_slots(block, begin, stop, sign, s, z)
        if stop < size:
            return
        place, begin = place + 1, 0


@inner_kernel
def shift_block(block, part, sign, s, z):
    """Add the amounts of one part to all slots of a block."""
    for k in range(z.sizes[Z_COLUMNS]):
        s.blk[block, LAZY, z.columns[k]] += sign * z.amounts[part, k]
        s.blk[block, LOW, z.columns[k]] += sign * z.amounts[part, k]
    for q in range(z.samounts.shape[1]):
        amount = sign * z.samounts[part, q]
        s.sblk[block, LAZY, q] += amount
        s.sblk[block, LOW, q] += amount
        s.sblk[block, HIGH, q] += amount


@inner_kernel
def shift_slots(block, begin, stop, sign, s, z):
    """Add amounts to some slots of a block, to each those of its part; fold the lazy part of these columns into the
    rows, renew their minima.
    """
    size = s.members[block, BLOCK]
    for k in range(z.sizes[Z_COLUMNS]):
        column = z.columns[k]
        lazy, low = s.blk[block, LAZY, column], np.int64(1 << 40)
        for m in range(size):
            value = np.int64(s.rows[s.members[block, m], column]) + lazy
            if begin <= m < stop:
                value += sign * z.amounts[z.part_of[m], k]
            s.rows[s.members[block, m], column] = value
            low = min(low, value)
        s.blk[block, LAZY, column] = 0
        s.blk[block, LOW, column] = low
    for q in range(z.samounts.shape[1]):
        is_taken = False
        for part in range(z.sizes[Z_PARTS]):
            is_taken |= z.samounts[part, q] != 0
        if not is_taken:
            continue
        for m in range(begin, stop):
            s.srows[s.members[block, m], q] += sign * z.samounts[z.part_of[m], q]
        summarise_system(block, q, s)
