"""Bookings whose amounts change from part to part, made in one pass over the blocks that they meet.

The same as one booking for each part; but a block in which several parts lie is renewed once.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Scratch, TimelineState
from cpsched.rusv.kernels.axis import add_break, drop_break, locate, summarise_system
from cpsched.rusv.kernels.constants import BLOCK, HIGH, INT64, LAZY, LOW, H

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
def start_parts(parts: Parts) -> None:
    """Begin with no parts."""
    for k in range(parts.sizes[Z_COLUMNS]):
        parts.place_of[parts.columns[k]] = 0
    parts.sizes[Z_PARTS] = parts.sizes[Z_COLUMNS] = 0


@kernel
def add_part(start: int, end: int, filled: int, systems: int, scratch: Scratch, parts: Parts) -> None:
    """Add a part, directly after the last one, with the amounts in the scratch of the timeline."""
    part = parts.sizes[Z_PARTS]
    parts.sizes[Z_PARTS] += 1
    parts.borders[part], parts.borders[part + 1] = start, end
    for k in range(parts.sizes[Z_COLUMNS]):
        parts.amounts[part, k] = 0
    for q in range(parts.samounts.shape[1]):
        parts.samounts[part, q] = 0
    for k in range(filled):
        at = parts.place_of[scratch.columns[k]] - 1
        if at < 0:
            at = parts.sizes[Z_COLUMNS]
            parts.sizes[Z_COLUMNS] += 1
            parts.place_of[scratch.columns[k]], parts.columns[at] = at + 1, scratch.columns[k]
            for before in range(part + 1):
                parts.amounts[before, at] = 0
        parts.amounts[part, at] += scratch.amounts[k]
    for k in range(systems):
        parts.samounts[part, scratch.scolumns[k]] += scratch.samounts[k]


@kernel
def book_parts(state: TimelineState, parts: Parts) -> None:
    """Take the amounts of all parts from what is free."""
    for k in range(parts.sizes[Z_PARTS] + 1):
        add_break(parts.borders[k], state)
    shift_parts(-1, state, parts)


@kernel
def release_parts(state: TimelineState, parts: Parts) -> None:
    """Give the amounts of all parts back: the exact inverse of `book_parts`."""
    shift_parts(1, state, parts)
    for k in range(parts.sizes[Z_PARTS] + 1):
        drop_break(parts.borders[k], state)


@inner_kernel
def shift_parts(sign: int, state: TimelineState, parts: Parts) -> None:
    """Add the amounts of all parts, times `sign`, to what is free; their borders are breakpoints."""
    part, behind = 0, parts.sizes[Z_PARTS]
    place, begin = locate(parts.borders[0], state)
    while place < state.head[H.BLOCKS]:
        block = state.order[place]
        size, stop = state.members[block, BLOCK], begin
        while stop < size and state.slots[state.members[block, stop], 0] < parts.borders[behind]:
            while state.slots[state.members[block, stop], 0] >= parts.borders[part + 1]:
                part += 1
            parts.part_of[stop] = part
            stop += 1
        if stop == begin:
            return
        if begin == 0 and stop == size and parts.part_of[0] == part:
            shift_block(block, part, sign, state, parts)
        else:
            shift_slots(block, begin, stop, sign, state, parts)
        if stop < size:
            return
        place, begin = place + 1, 0


@inner_kernel
def shift_block(block: int, part: int, sign: int, state: TimelineState, parts: Parts) -> None:
    """Add the amounts of one part to all slots of a block."""
    for k in range(parts.sizes[Z_COLUMNS]):
        state.blk[block, LAZY, parts.columns[k]] += sign * parts.amounts[part, k]
        state.blk[block, LOW, parts.columns[k]] += sign * parts.amounts[part, k]
    for q in range(parts.samounts.shape[1]):
        amount = sign * parts.samounts[part, q]
        state.sblk[block, LAZY, q] += amount
        state.sblk[block, LOW, q] += amount
        state.sblk[block, HIGH, q] += amount


@inner_kernel
def shift_slots(block: int, begin: int, stop: int, sign: int, state: TimelineState, parts: Parts) -> None:
    """Add to some slots of a block the amounts of their parts: no lazy part is left in these columns."""
    size = state.members[block, BLOCK]
    for k in range(parts.sizes[Z_COLUMNS]):
        column = parts.columns[k]
        lazy, low = state.blk[block, LAZY, column], INT64(1 << 40)
        for m in range(size):
            value = INT64(state.rows[state.members[block, m], column]) + lazy
            if begin <= m < stop:
                value += sign * parts.amounts[parts.part_of[m], k]
            state.rows[state.members[block, m], column] = value
            low = min(low, value)
        state.blk[block, LAZY, column] = 0
        state.blk[block, LOW, column] = low
    for q in range(parts.samounts.shape[1]):
        is_taken = False
        for part in range(parts.sizes[Z_PARTS]):
            is_taken |= parts.samounts[part, q] != 0
        if not is_taken:
            continue
        for m in range(begin, stop):
            state.srows[state.members[block, m], q] += sign * parts.samounts[parts.part_of[m], q]
        summarise_system(block, q, state)
