"""The time axis of a timeline: slots and blocks, and the amounts that are booked on them."""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Taken
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, HIGH, LAZY, LOW, H


@kernel
def locate(time, s):
    """Return (place of the block in `order`, index in the block) of the slot that holds `time`."""
    low, high = 0, s.head[H.BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        if s.slots[s.members[s.order[middle], 0], 0] <= time:
            low = middle
        else:
            high = middle
    block = s.order[low]
    index = s.members[block, BLOCK] - 1
    while s.slots[s.members[block, index], 0] > time:
        index -= 1
    return low, index


@kernel
def copy(target, source):
    """Copy a row (a loop compiles in a tenth of the time of a slice assignment, which must reckon with overlaps)."""
    for c in range(len(target)):
        target[c] = source[c]


@inner_kernel
def summarise_block(block, s):
    """Compute the minima (and maxima) of a block anew."""
    count = s.members[block, BLOCK]
    width = s.rows.shape[1]
    first = s.members[block, 0]
    for c in range(width):
        s.blk[block, LOW, c] = s.rows[first, c]
    for k in range(1, count):
        row = s.members[block, k]
        for c in range(width):
            s.blk[block, LOW, c] = min(s.blk[block, LOW, c], s.rows[row, c])
    for c in range(width):
        s.blk[block, LOW, c] += s.blk[block, LAZY, c]
    for q in range(s.srows.shape[1]):
        summarise_system(block, q, s)


@kernel
def summarise_system(block, q, s):
    """Compute minimum and maximum of one system column of a block anew."""
    low = s.srows[s.members[block, 0], q]
    high = low
    for k in range(1, s.members[block, BLOCK]):
        value = s.srows[s.members[block, k], q]
        low = min(low, value)
        high = max(high, value)
    s.sblk[block, LOW, q] = low + s.sblk[block, LAZY, q]
    s.sblk[block, HIGH, q] = high + s.sblk[block, LAZY, q]


@inner_kernel
def split_block(place, s):
    """Move the later half of a full block into a new block behind it."""
    block = s.order[place]
    s.head[H.SPARE_BLOCKS] -= 1
    new = s.spare[1, s.head[H.SPARE_BLOCKS]]
    half = BLOCK // 2
    for k in range(half, BLOCK):
        s.members[new, k - half] = s.members[block, k]
    s.members[new, BLOCK] = BLOCK - half
    s.members[block, BLOCK] = half
    copy(s.blk[new, LAZY], s.blk[block, LAZY])
    copy(s.sblk[new, LAZY], s.sblk[block, LAZY])
    for k in range(s.head[H.BLOCKS], place + 1, -1):
        s.order[k] = s.order[k - 1]
    s.order[place + 1] = new
    s.head[H.BLOCKS] += 1
    summarise_block(block, s)
    summarise_block(new, s)


@kernel
def add_break(time, s):
    """Make `time` a breakpoint, or count one more use of the slot that begins there."""
    place, index = locate(time, s)
    block = s.order[place]
    row = s.members[block, index]
    if s.slots[row, 0] == time:
        s.slots[row, 1] += 1
        return
    if s.members[block, BLOCK] == BLOCK:
        split_block(place, s)
        if index >= BLOCK // 2:
            index -= BLOCK // 2
            block = s.order[place + 1]
    s.head[H.SPARE_ROWS] -= 1
    new = s.spare[0, s.head[H.SPARE_ROWS]]
    s.slots[new, 0] = time
    s.slots[new, 1] = 1
    copy(s.rows[new], s.rows[row])
    copy(s.srows[new], s.srows[row])
    for k in range(s.members[block, BLOCK], index + 1, -1):
        s.members[block, k] = s.members[block, k - 1]
    s.members[block, index + 1] = new
    s.members[block, BLOCK] += 1


@inner_kernel
def drop_break(time, s):
    """Count one use less of the slot that begins at `time`; join it to the one before at the last use."""
    place, index = locate(time, s)
    block = s.order[place]
    row = s.members[block, index]
    s.slots[row, 1] -= 1
    if s.slots[row, 1] > 0:
        return
    s.spare[0, s.head[H.SPARE_ROWS]] = row
    s.head[H.SPARE_ROWS] += 1
    count = s.members[block, BLOCK] - 1
    for k in range(index, count):
        s.members[block, k] = s.members[block, k + 1]
    s.members[block, BLOCK] = count
    if count == 0:
        remove_block(place, s)
        return
    joined = merge_next(place, s)
    if index == 0 or joined:  # elsewhere the row before, which is equal, stays in the block and keeps the minimum
        summarise_block(block, s)


@inner_kernel
def remove_block(place, s):
    """Take a block out of the order."""
    s.spare[1, s.head[H.SPARE_BLOCKS]] = s.order[place]
    s.head[H.SPARE_BLOCKS] += 1
    s.head[H.BLOCKS] -= 1
    for k in range(place, s.head[H.BLOCKS]):
        s.order[k] = s.order[k + 1]


@inner_kernel
def fold_block(block, s):
    """Fold the lazy part of a block into its rows (a difference of two lazy parts could exceed 32 bits)."""
    for k in range(s.members[block, BLOCK]):
        row = s.members[block, k]
        for c in range(s.rows.shape[1]):
            s.rows[row, c] += s.blk[block, LAZY, c]
        for q in range(s.srows.shape[1]):
            s.srows[row, q] += s.sblk[block, LAZY, q]
    for c in range(s.rows.shape[1]):
        s.blk[block, LAZY, c] = 0
    for q in range(s.srows.shape[1]):
        s.sblk[block, LAZY, q] = 0


@inner_kernel
def merge_next(place, s):
    """Join a block with the next if both are nearly empty; tell whether it did (minima are the caller's)."""
    if place + 1 >= s.head[H.BLOCKS]:
        return False
    block, follower = s.order[place], s.order[place + 1]
    count, more = s.members[block, BLOCK], s.members[follower, BLOCK]
    if count + more > BLOCK // 2:
        return False
    fold_block(block, s)
    fold_block(follower, s)
    for k in range(more):
        s.members[block, count + k] = s.members[follower, k]
    s.members[block, BLOCK] = count + more
    remove_block(place + 1, s)
    return True


@kernel
def following(place, index, s):
    """Return the slot after the given one (of the block after the last one if there is none)."""
    if index + 1 < s.members[s.order[place], BLOCK]:
        return place, index + 1
    return place + 1, 0


@inner_kernel
def last_until(time, times, count):
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
def shift(start, end, sign, columns, amounts, scolumns, samounts, s):
    """Add amounts of columns, times `sign`, to what is free in ``[start, end)``, both breakpoints or FOREVER."""
    place, index = locate(start, s)
    while place < s.head[H.BLOCKS]:
        block = s.order[place]
        size = s.members[block, BLOCK]
        stop = index
        while stop < size and s.slots[s.members[block, stop], 0] < end:
            stop += 1
        if stop == index:
            return
        whole = index == 0 and stop == size
        if whole:
            for k in range(len(columns)):
                s.blk[block, LAZY, columns[k]] += sign * amounts[k]
                s.blk[block, LOW, columns[k]] += sign * amounts[k]
            for k in range(len(scolumns)):
                for part in range(3):
                    s.sblk[block, part, scolumns[k]] += sign * samounts[k]
        else:
            shift_part(block, index, stop, sign, columns, amounts, s)
            for k in range(len(scolumns)):
                for m in range(index, stop):
                    s.srows[s.members[block, m], scolumns[k]] += sign * samounts[k]
                summarise_system(block, scolumns[k], s)
        if stop < size:
            return
        place += 1
        index = 0


@inner_kernel
def shift_part(block, begin, stop, sign, columns, amounts, s):
    """Add amounts (times `sign`) to some slots of a block: no lazy part is left in these columns."""
    size = s.members[block, BLOCK]
    for k in range(len(columns)):
        column = columns[k]
        lazy = s.blk[block, LAZY, column]
        amount = sign * amounts[k] + lazy
        low = s.rows[s.members[block, 0], column] + (amount if begin == 0 else lazy)
        for m in range(size):
            row = s.members[block, m]
            value = s.rows[row, column] + (amount if begin <= m < stop else lazy)
            s.rows[row, column] = value
            low = min(low, value)
        s.blk[block, LAZY, column] = 0
        s.blk[block, LOW, column] = low


@kernel
def book(start, end, taken, s):
    """Take amounts from the free amounts in ``[start, end)``."""
    add_break(start, s)
    if end < FOREVER:
        add_break(end, s)
    shift(start, end, -1, taken.columns, taken.amounts, taken.scolumns, taken.samounts, s)


@kernel
def release(start, end, taken, s):
    """Give amounts back in ``[start, end)``: the exact inverse of `book`."""
    shift(start, end, 1, taken.columns, taken.amounts, taken.scolumns, taken.samounts, s)
    drop_break(start, s)
    if end < FOREVER:
        drop_break(end, s)


@inner_kernel
def has_free(start, end, columns, amounts, rows, blocks, s):
    """Tell whether these amounts of columns are free in ``[start, end)``; both are breakpoints, or the end FOREVER.

    `rows` and `blocks` are those of the node columns, or of the system columns.
    """
    place, index = locate(start, s)
    while place < s.head[H.BLOCKS]:
        block = s.order[place]
        size = s.members[block, BLOCK]
        stop = index
        while stop < size and s.slots[s.members[block, stop], 0] < end:
            stop += 1
        if index == 0 and stop == size:
            for k in range(columns.shape[0]):
                if blocks[block, LOW, columns[k]] < amounts[k]:
                    return False
        else:
            for k in range(columns.shape[0]):
                for m in range(index, stop):
                    if rows[s.members[block, m], columns[k]] + blocks[block, LAZY, columns[k]] < amounts[k]:
                        return False
        if stop < size:
            return True
        place, index = place + 1, 0
    return True


@inner_kernel
def taken_of(number, bookings):
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
def pass_time(seconds, s):
    """Make second `seconds` the new second 0.

    No booking ends before it. The bookings that began before it begin at 0 now: that slot takes over their uses.
    """
    place, index = locate(seconds, s)
    uses = 0
    for k in range(place + 1):
        block = s.order[k]
        count = s.members[block, BLOCK] if k < place else index
        for m in range(count):
            row = s.members[block, m]
            uses += s.slots[row, 1]
            s.spare[0, s.head[H.SPARE_ROWS]] = row
            s.head[H.SPARE_ROWS] += 1
        if k < place:
            s.spare[1, s.head[H.SPARE_BLOCKS]] = block
            s.head[H.SPARE_BLOCKS] += 1
    s.head[H.BLOCKS] -= place
    if place > 0:
        for k in range(s.head[H.BLOCKS]):
            s.order[k] = s.order[k + place]
    first = s.order[0]
    if index > 0:
        count = s.members[first, BLOCK] - index
        for m in range(count):
            s.members[first, m] = s.members[first, m + index]
        s.members[first, BLOCK] = count
        summarise_block(first, s)
    for k in range(s.head[H.BLOCKS]):
        block = s.order[k]
        for m in range(s.members[block, BLOCK]):
            s.slots[s.members[block, m], 0] -= seconds
    row = s.members[first, 0]
    s.slots[row, 0] = 0
    s.slots[row, 1] += uses
