"""The time axis of a timeline: slots and blocks, and the amounts that are booked on them."""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Bookings, Taken, TimelineState
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, HIGH, LAZY, LOW, H


@kernel
def locate(time: int, timeline: TimelineState) -> tuple[int, int]:
    """Return (place of the block in `order`, index in the block) of the slot that holds `time`."""
    low, high = 0, timeline.head[H.BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        if timeline.slots[timeline.members[timeline.order[middle], 0], 0] <= time:
            low = middle
        else:
            high = middle
    block = timeline.order[low]
    index = timeline.members[block, BLOCK] - 1
    while timeline.slots[timeline.members[block, index], 0] > time:
        index -= 1
    return low, index


@kernel
def copy(target: Array, source: Array) -> None:
    """Copy a row (a loop compiles in a tenth of the time of a slice assignment, which must reckon with overlaps)."""
    for c in range(len(target)):
        target[c] = source[c]


@inner_kernel
def summarise_block(block: int, timeline: TimelineState) -> None:
    """Compute the minima (and maxima) of a block anew."""
    count = timeline.members[block, BLOCK]
    width = timeline.rows.shape[1]
    first = timeline.members[block, 0]
    for c in range(width):
        timeline.blk[block, LOW, c] = timeline.rows[first, c]
    for k in range(1, count):
        row = timeline.members[block, k]
        for c in range(width):
            timeline.blk[block, LOW, c] = min(timeline.blk[block, LOW, c], timeline.rows[row, c])
    for c in range(width):
        timeline.blk[block, LOW, c] += timeline.blk[block, LAZY, c]
    for q in range(timeline.srows.shape[1]):
        summarise_system(block, q, timeline)


@kernel
def summarise_system(block: int, column: int, timeline: TimelineState) -> None:
    """Compute minimum and maximum of one system column of a block anew."""
    low = timeline.srows[timeline.members[block, 0], column]
    high = low
    for k in range(1, timeline.members[block, BLOCK]):
        value = timeline.srows[timeline.members[block, k], column]
        low = min(low, value)
        high = max(high, value)
    timeline.sblk[block, LOW, column] = low + timeline.sblk[block, LAZY, column]
    timeline.sblk[block, HIGH, column] = high + timeline.sblk[block, LAZY, column]


@inner_kernel
def split_block(place: int, timeline: TimelineState) -> None:
    """Move the later half of a full block into a new block behind it."""
    block = timeline.order[place]
    timeline.head[H.SPARE_BLOCKS] -= 1
    new = timeline.spare[1, timeline.head[H.SPARE_BLOCKS]]
    half = BLOCK // 2
    for k in range(half, BLOCK):
        timeline.members[new, k - half] = timeline.members[block, k]
    timeline.members[new, BLOCK] = BLOCK - half
    timeline.members[block, BLOCK] = half
    copy(timeline.blk[new, LAZY], timeline.blk[block, LAZY])
    copy(timeline.sblk[new, LAZY], timeline.sblk[block, LAZY])
    for k in range(timeline.head[H.BLOCKS], place + 1, -1):
        timeline.order[k] = timeline.order[k - 1]
    timeline.order[place + 1] = new
    timeline.head[H.BLOCKS] += 1
    summarise_block(block, timeline)
    summarise_block(new, timeline)


@kernel
def add_break(time: int, timeline: TimelineState) -> None:
    """Make `time` a breakpoint, or count one more use of the slot that begins there."""
    place, index = locate(time, timeline)
    block = timeline.order[place]
    row = timeline.members[block, index]
    if timeline.slots[row, 0] == time:
        timeline.slots[row, 1] += 1
        return
    if timeline.members[block, BLOCK] == BLOCK:
        split_block(place, timeline)
        if index >= BLOCK // 2:
            index -= BLOCK // 2
            block = timeline.order[place + 1]
    timeline.head[H.SPARE_ROWS] -= 1
    new = timeline.spare[0, timeline.head[H.SPARE_ROWS]]
    timeline.slots[new, 0] = time
    timeline.slots[new, 1] = 1
    copy(timeline.rows[new], timeline.rows[row])
    copy(timeline.srows[new], timeline.srows[row])
    for k in range(timeline.members[block, BLOCK], index + 1, -1):
        timeline.members[block, k] = timeline.members[block, k - 1]
    timeline.members[block, index + 1] = new
    timeline.members[block, BLOCK] += 1


@inner_kernel
def drop_break(time: int, timeline: TimelineState) -> None:
    """Count one use less of the slot that begins at `time`; join it to the one before at the last use."""
    place, index = locate(time, timeline)
    block = timeline.order[place]
    row = timeline.members[block, index]
    timeline.slots[row, 1] -= 1
    if timeline.slots[row, 1] > 0:
        return
    timeline.spare[0, timeline.head[H.SPARE_ROWS]] = row
    timeline.head[H.SPARE_ROWS] += 1
    count = timeline.members[block, BLOCK] - 1
    for k in range(index, count):
        timeline.members[block, k] = timeline.members[block, k + 1]
    timeline.members[block, BLOCK] = count
    if count == 0:
        remove_block(place, timeline)
        return
    joined = merge_next(place, timeline)
    if index == 0 or joined:  # elsewhere the row before, which is equal, stays in the block and keeps the minimum
        summarise_block(block, timeline)


@inner_kernel
def remove_block(place: int, timeline: TimelineState) -> None:
    """Take a block out of the order."""
    timeline.spare[1, timeline.head[H.SPARE_BLOCKS]] = timeline.order[place]
    timeline.head[H.SPARE_BLOCKS] += 1
    timeline.head[H.BLOCKS] -= 1
    for k in range(place, timeline.head[H.BLOCKS]):
        timeline.order[k] = timeline.order[k + 1]


@inner_kernel
def fold_block(block: int, timeline: TimelineState) -> None:
    """Fold the lazy part of a block into its rows (a difference of two lazy parts could exceed 32 bits)."""
    for k in range(timeline.members[block, BLOCK]):
        row = timeline.members[block, k]
        for c in range(timeline.rows.shape[1]):
            timeline.rows[row, c] += timeline.blk[block, LAZY, c]
        for q in range(timeline.srows.shape[1]):
            timeline.srows[row, q] += timeline.sblk[block, LAZY, q]
    for c in range(timeline.rows.shape[1]):
        timeline.blk[block, LAZY, c] = 0
    for q in range(timeline.srows.shape[1]):
        timeline.sblk[block, LAZY, q] = 0


@inner_kernel
def merge_next(place: int, timeline: TimelineState) -> bool:
    """Join a block with the next if both are nearly empty; tell whether it did (minima are the caller's)."""
    if place + 1 >= timeline.head[H.BLOCKS]:
        return False
    block, follower = timeline.order[place], timeline.order[place + 1]
    count, more = timeline.members[block, BLOCK], timeline.members[follower, BLOCK]
    if count + more > BLOCK // 2:
        return False
    fold_block(block, timeline)
    fold_block(follower, timeline)
    for k in range(more):
        timeline.members[block, count + k] = timeline.members[follower, k]
    timeline.members[block, BLOCK] = count + more
    remove_block(place + 1, timeline)
    return True


@kernel
def following(place: int, index: int, timeline: TimelineState) -> tuple[int, int]:
    """Return the slot after the given one (of the block after the last one if there is none)."""
    if index + 1 < timeline.members[timeline.order[place], BLOCK]:
        return place, index + 1
    return place + 1, 0


@inner_kernel
def last_until(time: int, times: Array, count: int) -> int:
    """Return the index of the last of `count` ascending times that is not after `time`; 0 if there is none."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inner_kernel
def shift(
    start: int,
    end: int,
    sign: int,
    columns: Array,
    amounts: Array,
    scolumns: Array,
    samounts: Array,
    timeline: TimelineState,
) -> None:
    """Add amounts of columns, times `sign`, to what is free in ``[start, end)``, both breakpoints or FOREVER."""
    place, index = locate(start, timeline)
    while place < timeline.head[H.BLOCKS]:
        block = timeline.order[place]
        size = timeline.members[block, BLOCK]
        stop = index
        while stop < size and timeline.slots[timeline.members[block, stop], 0] < end:
            stop += 1
        if stop == index:
            return
        whole = index == 0 and stop == size
        if whole:
            for k in range(len(columns)):
                timeline.blk[block, LAZY, columns[k]] += sign * amounts[k]
                timeline.blk[block, LOW, columns[k]] += sign * amounts[k]
            for k in range(len(scolumns)):
                for part in range(3):
                    timeline.sblk[block, part, scolumns[k]] += sign * samounts[k]
        else:
            shift_part(block, index, stop, sign, columns, amounts, timeline)
            for k in range(len(scolumns)):
                for m in range(index, stop):
                    timeline.srows[timeline.members[block, m], scolumns[k]] += sign * samounts[k]
                summarise_system(block, scolumns[k], timeline)
        if stop < size:
            return
        place += 1
        index = 0


@inner_kernel
def shift_part(
    block: int, begin: int, stop: int, sign: int, columns: Array, amounts: Array, timeline: TimelineState
) -> None:
    """Add amounts (times `sign`) to some slots of a block: no lazy part is left in these columns."""
    size = timeline.members[block, BLOCK]
    for k in range(len(columns)):
        column = columns[k]
        lazy = timeline.blk[block, LAZY, column]
        amount = sign * amounts[k] + lazy
        low = timeline.rows[timeline.members[block, 0], column] + (amount if begin == 0 else lazy)
        for m in range(size):
            row = timeline.members[block, m]
            value = timeline.rows[row, column] + (amount if begin <= m < stop else lazy)
            timeline.rows[row, column] = value
            low = min(low, value)
        timeline.blk[block, LAZY, column] = 0
        timeline.blk[block, LOW, column] = low


@kernel
def book(start: int, end: int, taken: Taken, timeline: TimelineState) -> None:
    """Take amounts from the free amounts in ``[start, end)``."""
    add_break(start, timeline)
    if end < FOREVER:
        add_break(end, timeline)
    shift(start, end, -1, taken.columns, taken.amounts, taken.scolumns, taken.samounts, timeline)


@kernel
def release(start: int, end: int, taken: Taken, timeline: TimelineState) -> None:
    """Give amounts back in ``[start, end)``: the exact inverse of `book`."""
    shift(start, end, 1, taken.columns, taken.amounts, taken.scolumns, taken.samounts, timeline)
    drop_break(start, timeline)
    if end < FOREVER:
        drop_break(end, timeline)


@kernel
def free_until(
    start: int, end: int, columns: Array, amounts: Array, rows: Array, blocks: Array, timeline: TimelineState
) -> int:
    """Return the first second of ``[start, end)`` at which not all amounts of these columns are free, or `end`.

    `rows` and `blocks` are those of the node columns, or of the system columns.
    """
    place, index = locate(start, timeline)
    while place < timeline.head[H.BLOCKS]:
        block, is_free = timeline.order[place], True
        for k in range(columns.shape[0]):
            is_free &= blocks[block, LOW, columns[k]] >= amounts[k]
        for m in range(index, timeline.members[block, BLOCK]):
            row = timeline.members[block, m]
            if timeline.slots[row, 0] >= end:
                return end
            if is_free:
                continue
            for k in range(columns.shape[0]):
                if rows[row, columns[k]] + blocks[block, LAZY, columns[k]] < amounts[k]:
                    return max(start, timeline.slots[row, 0])
        place, index = place + 1, 0
    return end


@inner_kernel
def taken_of(number: int, bookings: Bookings) -> Taken:
    """Return what a booking takes, by its number among the amounts."""
    first, last = bookings.firsts[number, 0], bookings.firsts[number + 1, 0]
    sfirst, slast = bookings.firsts[number, 1], bookings.firsts[number + 1, 1]
    return Taken(
        bookings.columns[first:last],
        bookings.amounts[first:last],
        bookings.scolumns[sfirst:slast],
        bookings.samounts[sfirst:slast],
    )


@kernel
def pass_time(seconds: int, timeline: TimelineState) -> None:
    """Make second `seconds` the new second 0.

    No booking ends before it. The bookings that began before it begin at 0 now: that slot takes over their uses.
    """
    place, index = locate(seconds, timeline)
    uses = 0
    for k in range(place + 1):
        block = timeline.order[k]
        count = timeline.members[block, BLOCK] if k < place else index
        for m in range(count):
            row = timeline.members[block, m]
            uses += timeline.slots[row, 1]
            timeline.spare[0, timeline.head[H.SPARE_ROWS]] = row
            timeline.head[H.SPARE_ROWS] += 1
        if k < place:
            timeline.spare[1, timeline.head[H.SPARE_BLOCKS]] = block
            timeline.head[H.SPARE_BLOCKS] += 1
    timeline.head[H.BLOCKS] -= place
    if place > 0:
        for k in range(timeline.head[H.BLOCKS]):
            timeline.order[k] = timeline.order[k + place]
    first = timeline.order[0]
    if index > 0:
        count = timeline.members[first, BLOCK] - index
        for m in range(count):
            timeline.members[first, m] = timeline.members[first, m + index]
        timeline.members[first, BLOCK] = count
        summarise_block(first, timeline)
    for k in range(timeline.head[H.BLOCKS]):
        block = timeline.order[k]
        for m in range(timeline.members[block, BLOCK]):
            timeline.slots[timeline.members[block, m], 0] -= seconds
    row = timeline.members[first, 0]
    timeline.slots[row, 0] = 0
    timeline.slots[row, 1] += uses
