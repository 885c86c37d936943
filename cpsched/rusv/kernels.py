"""The timeline's kernels: plain functions on arrays, compiled by numba. `timeline.py` owns shapes, units and checks.

The structure ("blocked dense"): one time axis for all nodes and for the system. A *slot* is the time from one
breakpoint to the next; the last one has no end. Each slot has a row: what is free of every node column (one column
for each node and resource) and of every system column (sums over nodes, licenses, a consumer's own view). Consecutive
slots form *blocks* of at most `BLOCK` slots. A block carries, for each column, an amount that is still to be added to
all its rows (lazy) and the smallest value over its rows, so that a booking of k columns over b blocks costs k*b, and
a search reads one row for a whole block.

The free amount of column c in slot r of block b is ``rows[r, c] + blk[b, LAZY, c]``; the lazy part is folded into the
rows of a column whenever a booking covers the block only in part, so that both parts stay within the capacity.

Arrays of the state, in the order in which the kernels take them:

======== ========================= ==================================================================================
head     int64 (HEAD,)             counters, see ``H_*``
slots    int64 (rows, 2)           start of the slot; how many bookings begin or end there (the origin has one more)
order    int32 (blocks,)           the blocks in time order
members  int32 (blocks, BLOCK + 1) the slots of a block in time order; in the last place how many there are
rows     int32 (rows, W)           free amounts of the node columns, without the block's lazy part
blk      int32 (blocks, 2, W)      lazy part and minimum of each node column
srows    int64 (rows, Q)           free amounts of the system columns, without the block's lazy part
sblk     int64 (blocks, 3, Q)      lazy part, minimum and maximum of each system column
spare    int32 (2, rows)           stacks of unused rows and blocks
======== ========================= ==================================================================================
"""

from __future__ import annotations

import numpy as np

from cpsched.rusv.jit import kernel
from cpsched.rusv.vector import FOREVER

#: Slots in a block, at the most.
BLOCK = 32
#: Nodes whose counts are added up in 32 bits; times the most chunks that a request may have, this stays below 2^31.
PART = 2048

H_BLOCKS, H_SPARE_ROWS, H_SPARE_BLOCKS, H_STAMP, H_FREED, HEAD = 0, 1, 2, 3, 4, 5
LAZY, LOW, HIGH = 0, 1, 2

# columns of the demand tables, see timeline.Demands
D_KIND, D_SYS, D_LICENSE, D_RANGE, D_REACH, D_FLAGS, D_OTHERWISE = 0, 1, 2, 3, 4, 5, 6
K_NEED, K_SEG, K_MOST = 0, 1, 2
S_FIRST, S_LENGTH, S_TERM = 0, 1, 2
EXCLUSIVE, SCATTER, JOINT = 1, 2, 4

DONE, GROW_STATE, GROW_POOL = 0, 1, 2


# --- the time axis -------------------------------------------------------------------------------------------------


@kernel
def locate(head, slots, order, members, time):
    """Return (place of the block in `order`, index in the block) of the slot that holds `time`."""
    low, high = 0, head[H_BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        if slots[members[order[middle], 0], 0] <= time:
            low = middle
        else:
            high = middle
    block = order[low]
    index = members[block, BLOCK] - 1
    while slots[members[block, index], 0] > time:
        index -= 1
    return low, index


@kernel
def copy(target, source):
    """Copy a row (a loop compiles in a tenth of the time of a slice assignment, which must reckon with overlaps)."""
    for c in range(len(target)):
        target[c] = source[c]


@kernel
def summarise_block(block, members, rows, blk, srows, sblk):
    """Compute the minima (and maxima) of a block anew."""
    count = members[block, BLOCK]
    width = rows.shape[1]
    first = members[block, 0]
    for c in range(width):
        blk[block, LOW, c] = rows[first, c]
    for k in range(1, count):
        row = members[block, k]
        for c in range(width):
            blk[block, LOW, c] = min(blk[block, LOW, c], rows[row, c])
    for c in range(width):
        blk[block, LOW, c] += blk[block, LAZY, c]
    for q in range(srows.shape[1]):
        summarise_system(block, q, members, srows, sblk)


@kernel
def summarise_system(block, q, members, srows, sblk):
    """Compute minimum and maximum of one system column of a block anew."""
    low = srows[members[block, 0], q]
    high = low
    for k in range(1, members[block, BLOCK]):
        value = srows[members[block, k], q]
        low = min(low, value)
        high = max(high, value)
    sblk[block, LOW, q] = low + sblk[block, LAZY, q]
    sblk[block, HIGH, q] = high + sblk[block, LAZY, q]


@kernel
def split_block(place, head, order, members, rows, blk, srows, sblk, spare):
    """Move the later half of a full block into a new block behind it."""
    block = order[place]
    head[H_SPARE_BLOCKS] -= 1
    new = spare[1, head[H_SPARE_BLOCKS]]
    half = BLOCK // 2
    for k in range(half, BLOCK):
        members[new, k - half] = members[block, k]
    members[new, BLOCK] = BLOCK - half
    members[block, BLOCK] = half
    copy(blk[new, LAZY], blk[block, LAZY])
    copy(sblk[new, LAZY], sblk[block, LAZY])
    for k in range(head[H_BLOCKS], place + 1, -1):
        order[k] = order[k - 1]
    order[place + 1] = new
    head[H_BLOCKS] += 1
    summarise_block(block, members, rows, blk, srows, sblk)
    summarise_block(new, members, rows, blk, srows, sblk)


@kernel
def add_break(time, head, slots, order, members, rows, blk, srows, sblk, spare):
    """Make `time` a breakpoint, or count one more use of the slot that begins there."""
    place, index = locate(head, slots, order, members, time)
    block = order[place]
    row = members[block, index]
    if slots[row, 0] == time:
        slots[row, 1] += 1
        return
    if members[block, BLOCK] == BLOCK:
        split_block(place, head, order, members, rows, blk, srows, sblk, spare)
        if index >= BLOCK // 2:
            index -= BLOCK // 2
            block = order[place + 1]
    head[H_SPARE_ROWS] -= 1
    new = spare[0, head[H_SPARE_ROWS]]
    slots[new, 0] = time
    slots[new, 1] = 1
    copy(rows[new], rows[row])
    copy(srows[new], srows[row])
    for k in range(members[block, BLOCK], index + 1, -1):
        members[block, k] = members[block, k - 1]
    members[block, index + 1] = new
    members[block, BLOCK] += 1


@kernel
def drop_break(time, head, slots, order, members, rows, blk, srows, sblk, spare):
    """Count one use less of the slot that begins at `time`; join it to the one before at the last use."""
    place, index = locate(head, slots, order, members, time)
    block = order[place]
    row = members[block, index]
    slots[row, 1] -= 1
    if slots[row, 1] > 0:
        return
    spare[0, head[H_SPARE_ROWS]] = row
    head[H_SPARE_ROWS] += 1
    count = members[block, BLOCK] - 1
    for k in range(index, count):
        members[block, k] = members[block, k + 1]
    members[block, BLOCK] = count
    if count == 0:
        remove_block(place, head, order, spare)
        return
    joined = merge_next(place, head, order, members, rows, blk, srows, sblk, spare)
    if index == 0 or joined:  # elsewhere the row before, which is equal, stays in the block and keeps the minimum
        summarise_block(block, members, rows, blk, srows, sblk)


@kernel
def remove_block(place, head, order, spare):
    """Take a block out of the order."""
    spare[1, head[H_SPARE_BLOCKS]] = order[place]
    head[H_SPARE_BLOCKS] += 1
    head[H_BLOCKS] -= 1
    for k in range(place, head[H_BLOCKS]):
        order[k] = order[k + 1]


@kernel
def fold_block(block, members, rows, blk, srows, sblk):
    """Fold the lazy part of a block into its rows, which then hold the free amounts (a difference of two lazy parts
    could exceed 32 bits).
    """
    for k in range(members[block, BLOCK]):
        row = members[block, k]
        for c in range(rows.shape[1]):
            rows[row, c] += blk[block, LAZY, c]
        for q in range(srows.shape[1]):
            srows[row, q] += sblk[block, LAZY, q]
    for c in range(rows.shape[1]):
        blk[block, LAZY, c] = 0
    for q in range(srows.shape[1]):
        sblk[block, LAZY, q] = 0


@kernel
def merge_next(place, head, order, members, rows, blk, srows, sblk, spare):
    """Join a block with the next if both are nearly empty; tell whether it did (minima are the caller's)."""
    if place + 1 >= head[H_BLOCKS]:
        return False
    block, follower = order[place], order[place + 1]
    count, more = members[block, BLOCK], members[follower, BLOCK]
    if count + more > BLOCK // 2:
        return False
    fold_block(block, members, rows, blk, srows, sblk)
    fold_block(follower, members, rows, blk, srows, sblk)
    for k in range(more):
        members[block, count + k] = members[follower, k]
    members[block, BLOCK] = count + more
    remove_block(place + 1, head, order, spare)
    return True


# --- booking -------------------------------------------------------------------------------------------------------


@kernel
def shift(
    start, end, columns, amounts, count, scolumns, samounts, scount, head, slots, order, members, rows, blk, srows, sblk
):
    """Add `amounts` to the free amounts of `columns` in ``[start, end)``; both must be breakpoints (or the end
    FOREVER).
    """
    place, index = locate(head, slots, order, members, start)
    while place < head[H_BLOCKS]:
        block = order[place]
        size = members[block, BLOCK]
        stop = index
        while stop < size and slots[members[block, stop], 0] < end:
            stop += 1
        if stop == index:
            return
        whole = index == 0 and stop == size
        if whole:
            for k in range(count):
                blk[block, LAZY, columns[k]] += amounts[k]
                blk[block, LOW, columns[k]] += amounts[k]
            for k in range(scount):
                for part in range(3):
                    sblk[block, part, scolumns[k]] += samounts[k]
        else:
            shift_part(block, index, stop, columns, amounts, count, members, rows, blk)
            for k in range(scount):
                for m in range(index, stop):
                    srows[members[block, m], scolumns[k]] += samounts[k]
                summarise_system(block, scolumns[k], members, srows, sblk)
        if stop < size:
            return
        place += 1
        index = 0


@kernel
def shift_part(block, begin, stop, columns, amounts, count, members, rows, blk):
    """Add `amounts` to some slots of a block; fold the lazy part of these columns into the rows, renew their minima."""
    size = members[block, BLOCK]
    for k in range(count):
        column = columns[k]
        lazy = blk[block, LAZY, column]
        amount = amounts[k] + lazy
        low = rows[members[block, 0], column] + (amount if begin == 0 else lazy)
        for m in range(size):
            row = members[block, m]
            value = rows[row, column] + (amount if begin <= m < stop else lazy)
            rows[row, column] = value
            low = min(low, value)
        blk[block, LAZY, column] = 0
        blk[block, LOW, column] = low


@kernel
def placement_columns(
    demand, entries, count, sign,
    demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
    columns, amounts, scolumns, samounts, stamps, head,
):  # fmt: skip
    """Write the amounts of a placement: node columns with amounts, system columns with amounts (times `sign`).

    An exclusive demand takes its nodes whole. Returns the numbers of node and of system columns.
    """
    filled = 0
    systems = 0
    for q in range(samounts.shape[0]):
        samounts[q] = 0
    exclusive = demands[demand, D_FLAGS] & EXCLUSIVE
    head[H_STAMP] += 1
    before, segment = -1, 0  # entries are in the order of kinds and of their segments
    for e in range(count):
        node, kind, chunks = entries[e, 0], entries[e, 1], entries[e, 2]
        if exclusive:
            if stamps[node] == head[H_STAMP]:
                continue
            stamps[node] = head[H_STAMP]
            run = run_of[node]
            inside = node - runs[run, 0]
            for k in range(runs[run, 2], runs[run + 1, 2]):
                column = runcols[k] + inside
                columns[filled] = column
                amounts[filled] = sign * capacity[column]
                filled += 1
        else:
            if kind != before:
                segment = kinds[kind, K_SEG]
                before = kind
            inside = node - segments[segment, S_FIRST]
            while not 0 <= inside < segments[segment, S_LENGTH]:
                segment += 1
                inside = node - segments[segment, S_FIRST]
            for k in range(segments[segment, S_TERM], segments[segment + 1, S_TERM]):
                columns[filled] = terms[k, 0] + inside
                amounts[filled] = sign * chunks * terms[k, 1]
                filled += 1
    for k in range(filled):
        for part in range(2):
            q = colsys[columns[k], part]
            if q >= 0:
                samounts[q] += amounts[k]
    for k in range(demands[demand, D_LICENSE], demands[demand + 1, D_SYS]):
        samounts[sysreq[k, 0]] += sign * sysreq[k, 1]
    for q in range(samounts.shape[0]):
        if samounts[q] != 0:
            scolumns[systems] = q
            samounts[systems] = samounts[q]
            systems += 1
    return filled, systems


# --- searching -----------------------------------------------------------------------------------------------------


@kernel
def sum_one(free0, a0, b0, most):
    """Sum the chunks that one column allows over the nodes of a segment (in 32 bits, in parts that cannot overflow)."""
    total = 0
    for begin in range(0, len(free0), PART):
        part = np.int32(0)
        for n in range(begin, min(len(free0), begin + PART)):
            part = np.int32(part + min(np.int32(free0[n] * a0 + b0), most))
        total += np.int64(part)
    return total


@kernel
def count_enough(free0, amount):
    """Count the nodes of a segment on which a column has enough for one chunk."""
    total = np.int32(0)
    for n in range(len(free0)):
        total = np.int32(total + np.int32(free0[n] >= amount))
    return np.int64(total)


@kernel
def sum_two(free0, a0, b0, free1, a1, b1, most):
    """Sum the chunks that two columns allow together over the nodes of a segment."""
    total = 0
    for begin in range(0, len(free0), PART):
        part = np.int32(0)
        for n in range(begin, min(len(free0), begin + PART)):
            part = np.int32(part + min(np.int32(min(free0[n] * a0 + b0, free1[n] * a1 + b1)), most))
        total += np.int64(part)
    return total


@kernel
def lower(least, free0, a0, b0):
    """Lower `least` to the chunks that one more column allows."""
    for n in range(len(free0)):
        least[n] = min(least[n], free0[n] * a0 + b0)


@kernel
def lower_by_row(target, row, lazy):
    """Lower `target` to ``row + lazy``."""
    for c in range(len(target)):
        target[c] = min(target[c], target.dtype.type(row[c] + lazy[c]))


@kernel
def lower_from_row(target, source, row, lazy):
    """Set `target` to the minimum of `source` and ``row + lazy``."""
    for c in range(len(target)):
        target[c] = min(source[c], target.dtype.type(row[c] + lazy[c]))


@kernel
def lower_by_two(target, source, low):
    """Set `target` to the minimum of `source` and `low`, which are other arrays (an overlap would keep the loop
    scalar).
    """
    for c in range(len(target)):
        target[c] = min(source[c], low[c])


@kernel
def count_kind(kind, free, buffer, kinds, segments, terms, scale):
    """Return how many chunks of a kind fit into `free`, the free amounts of the node columns.

    ``floor(x / a)`` is taken as the whole part of ``x * (1 / a) + 0.5 / a``, which is exact for all 32-bit amounts and
    compiles to vector instructions, unlike a division of integers.
    """
    total = 0
    most = np.int32(kinds[kind, K_MOST])
    for segment in range(kinds[kind, K_SEG], kinds[kind + 1, K_SEG]):
        length = segments[segment, S_LENGTH]
        first, last = segments[segment, S_TERM], segments[segment + 1, S_TERM]
        free0 = free[terms[first, 0] : terms[first, 0] + length]
        a0, b0 = scale[first, 0], scale[first, 1]
        if last - first == 1 and most == 1:
            total += count_enough(free0, np.int32(terms[first, 1]))
        elif last - first == 1:
            total += sum_one(free0, a0, b0, most)
        elif last - first == 2:
            free1 = free[terms[first + 1, 0] : terms[first + 1, 0] + length]
            total += sum_two(free0, a0, b0, free1, scale[first + 1, 0], scale[first + 1, 1], most)
        else:
            least = buffer[:length]
            for n in range(length):
                least[n] = free0[n] * a0 + b0
            for k in range(first + 1, last):
                lower(least, free[terms[k, 0] : terms[k, 0] + length], scale[k, 0], scale[k, 1])
            for n in range(length):
                total += np.int64(min(np.int32(least[n]), most))
    return total


@kernel
def suffices(demand, free, buffer, demands, kinds, segments, terms, scale, reach, runs, runcols, capacity):
    """Tell whether enough chunks of each kind fit into `free`, each kind by itself (necessary; sufficient for one
    kind).

    For an exclusive demand the columns of nodes that are not idle are set to zero first.
    """
    if demands[demand, D_FLAGS] & EXCLUSIVE:
        for k in range(demands[demand, D_REACH], demands[demand + 1, D_REACH]):
            clear_busy(reach[k], free, runs, runcols, capacity)
    for kind in range(demands[demand, D_KIND], demands[demand + 1, D_KIND]):
        if count_kind(kind, free, buffer, kinds, segments, terms, scale) < kinds[kind, K_NEED]:
            return False
    return True


@kernel
def clear_busy(run, free, runs, runcols, capacity):
    """Set the columns of a run of nodes to zero on each node of which one column is not wholly free."""
    first, last = runs[run, 2], runs[run + 1, 2]
    for n in range(runs[run, 1]):
        idle = True
        for k in range(first, last):
            idle &= free[runcols[k] + n] == capacity[runcols[k] + n]
        if not idle:
            for k in range(first, last):
                free[runcols[k] + n] = 0


@kernel
def is_good(block, index, demand, members, srows, sblk, demands, sysreq):
    """Tell whether one slot has what the demand needs of the system columns."""
    row = members[block, index]
    good = True
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        good &= srows[row, sysreq[k, 0]] + sblk[block, LAZY, sysreq[k, 0]] >= sysreq[k, 1]
    return good


@kernel
def is_block_good(block, demand, sblk, demands, sysreq):
    """Tell whether every slot of a block has what the demand needs of the system columns."""
    good = True
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        good &= sblk[block, LOW, sysreq[k, 0]] >= sysreq[k, 1]
    return good


@kernel
def is_block_bad(block, demand, sblk, demands, sysreq):
    """Tell whether no slot of a block can have what the demand needs of the system columns."""
    bad = False
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        bad |= sblk[block, HIGH, sysreq[k, 0]] < sysreq[k, 1]
    return bad


@kernel
def next_good(demand, place, index, head, order, members, srows, sblk, demands, sysreq):
    """Return the first slot from the given one on that has what the demand needs of the system (place -1 if there is
    none).
    """
    while place < head[H_BLOCKS]:
        block = order[place]
        if not is_block_bad(block, demand, sblk, demands, sysreq):
            while index < members[block, BLOCK]:
                if is_good(block, index, demand, members, srows, sblk, demands, sysreq):
                    return place, index
                index += 1
        place, index = place + 1, 0
    return -1, 0


@kernel
def last_bad(demand, place, index, stop_place, stop_index, order, members, srows, sblk, demands, sysreq):
    """Return the last slot in ``[stop, given]`` that lacks what the demand needs of the system (place -1 if there is
    none).
    """
    while place >= stop_place:
        block = order[place]
        low = stop_index if place == stop_place else 0
        if not is_block_good(block, demand, sblk, demands, sysreq):
            while index >= low:
                if not is_good(block, index, demand, members, srows, sblk, demands, sysreq):
                    return place, index
                index -= 1
        place -= 1
        if place >= stop_place:
            index = members[order[place], BLOCK] - 1
    return -1, 0


@kernel
def next_window(
    demand, start, duration, latest, place, index, known_place, known_index,
    head, slots, order, members, srows, sblk, demands, sysreq,
):  # fmt: skip
    """Phase 1: the earliest window from `start` on in which every slot has what the demand needs of the system.

    `place`, `index` is the slot that holds `start`; from there to before `known_place`, `known_index` all slots are
    known to be good. A window is checked from its end: no start up to its last bad slot is possible, so the slots
    before that are not read. Returns (start or -1, its slot, the last slot of the window).
    """
    while True:
        if place == known_place and index == known_index:
            place, index = next_good(demand, place, index, head, order, members, srows, sblk, demands, sysreq)
            if place < 0:
                return -1, 0, 0, 0, 0
            start = max(start, slots[members[order[place], index], 0])
            known_place, known_index = place, index
        if start > latest:
            return -1, 0, 0, 0, 0
        last_place, last_index = locate(head, slots, order, members, start + duration - 1)
        bad_place, bad_index = last_bad(
            demand, last_place, last_index, known_place, known_index, order, members, srows, sblk, demands, sysreq
        )
        if bad_place < 0:
            return start, place, index, last_place, last_index
        place, index = following(bad_place, bad_index, order, members)
        known_place, known_index = following(last_place, last_index, order, members)
        if place == head[H_BLOCKS]:
            return -1, 0, 0, 0, 0
        start = slots[members[order[place], index], 0]


@kernel
def following(place, index, order, members):
    """Return the slot after the given one (of the block after the last one if there is none)."""
    if index + 1 < members[order[place], BLOCK]:
        return place, index + 1
    return place + 1, 0


@kernel
def take_slots(block, low, high, source, target, members, rows, blk, ranges, first, last):
    """Set `target` to the minimum of `source` and the slots `low` … `high` of a block, over some ranges of columns."""
    whole = low == 0 and high == members[block, BLOCK] - 1
    for k in range(first, last):
        begin, end = ranges[k, 0], ranges[k, 1]
        if whole:
            lower_by_two(target[begin:end], source[begin:end], blk[block, LOW, begin:end])
            continue
        lazy = blk[block, LAZY, begin:end]
        lower_from_row(target[begin:end], source[begin:end], rows[members[block, high], begin:end], lazy)
        for m in range(low, high):
            lower_by_row(target[begin:end], rows[members[block, m], begin:end], lazy)


@kernel
def scan_window(
    demand, place, index, last_place, last_index,
    order, members, rows, blk,
    demands, kinds, segments, terms, scale, ranges, reach, runs, runcols, capacity,
    free, buffer,
):  # fmt: skip
    """Take the minimum of the free amounts over the slots of a window, from its last to its first.

    Returns (side, place, index): which half of `free` holds the minimum; and the first slot, seen from the end, with
    which too little is left for the demand (place -1 if there is none).
    """
    first, last = demands[demand, D_RANGE], demands[demand + 1, D_RANGE]
    side, source = 0, capacity
    at, high = last_place, last_index
    singly = False  # a block that fails as a whole is checked again, slot by slot
    while True:
        block = order[at]
        low = index if at == place else 0
        other = 1 - side
        take_slots(block, high if singly else low, high, source, free[other], members, rows, blk, ranges, first, last)
        if suffices(
            demand, free[other], buffer, demands, kinds, segments, terms, scale, reach, runs, runcols, capacity
        ):
            side, source = other, free[other]
            if singly:
                high -= 1
            elif at == place:
                return side, -1, 0
            else:
                at -= 1
                high = members[order[at], BLOCK] - 1
        elif singly or low == high:
            return side, at, high
        else:
            singly = True


@kernel
def earliest_fit(
    demand, start, duration, latest,
    head, slots, order, members, rows, blk, srows, sblk,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, run_of,
    free, buffer, entries,
):  # fmt: skip
    """Find the earliest start in ``[start, latest]`` at which the demand fits for `duration`, and where.

    For each window that phase 1 offers, the minimum of the free amounts is taken over its slots. If too little is left
    from some slot on, every window that holds this slot and begins no earlier is ruled out: the next one begins after
    it. A window that passes is mapped (`map_chunks`); only demands of several kinds can fail there, and then try their
    other orders.

    Returns (start or -1, number of `entries`).
    """
    place, index = locate(head, slots, order, members, start)
    known_place, known_index = place, index
    last_place, last_index = place, index
    attempt = demand
    while True:
        if attempt == demand:
            start, place, index, last_place, last_index = next_window(
                demand, start, duration, latest, place, index, known_place, known_index,
                head, slots, order, members, srows, sblk, demands, sysreq,
            )  # fmt: skip
            if start < 0:
                return -1, 0
        side, at, blocked = scan_window(
            demand, place, index, last_place, last_index,
            order, members, rows, blk,
            demands, kinds, segments, terms, scale, ranges, reach, runs, runcols, capacity,
            free, buffer,
        )  # fmt: skip
        if at >= 0:
            place, index = at, blocked
        else:
            count = map_chunks(attempt, free[side], entries, demands, kinds, segments, terms, runs, runcols, run_of)
            if count > 0:
                return start, count
            attempt = demands[attempt, D_OTHERWISE]
            if attempt >= 0:
                continue  # the mapping has overwritten the minimum: it is taken again
            attempt = demand
        place, index = following(place, index, order, members)
        if place == head[H_BLOCKS]:
            return -1, 0
        start = slots[members[order[place], index], 0]
        known_place, known_index = following(last_place, last_index, order, members)


@kernel
def free_from(
    demand, start, end,
    head, slots, order, members, rows, blk, srows, sblk,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity,
    free, buffer,
):  # fmt: skip
    """Return the earliest second from `start` on from which a demand fits until `end`, each of its kinds by itself;
    `end` if it does not fit in the slot before that.
    """
    place, index = locate(head, slots, order, members, start)
    last_place, last_index = locate(head, slots, order, members, end - 1)
    bad_place, bad_index = last_bad(
        demand, last_place, last_index, place, index, order, members, srows, sblk, demands, sysreq
    )
    if bad_place >= 0:
        if bad_place == last_place and bad_index == last_index:
            return end
        place, index = following(bad_place, bad_index, order, members)
        start = slots[members[order[place], index], 0]
    _, at, blocked = scan_window(
        demand, place, index, last_place, last_index,
        order, members, rows, blk,
        demands, kinds, segments, terms, scale, ranges, reach, runs, runcols, capacity,
        free, buffer,
    )  # fmt: skip
    if at < 0:
        return start
    if at == last_place and blocked == last_index:
        return end
    place, index = following(at, blocked, order, members)
    return slots[members[order[place], index], 0]


@kernel
def map_chunks(demand, free, entries, demands, kinds, segments, terms, runs, runcols, run_of):
    """Phase 2: cheap nodes first, as many chunks as fit (OCCS-30); kinds in the order of the table.

    Writes (node, kind, chunks) to `entries` and returns how many, or 0 if some kind does not fit beside the others.
    """
    count = 0
    joint = demands[demand, D_FLAGS] & JOINT
    for kind in range(demands[demand, D_KIND], demands[demand + 1, D_KIND]):
        need = kinds[kind, K_NEED]
        segment = kinds[kind, K_SEG]
        while need > 0 and segment < kinds[kind + 1, K_SEG]:
            first, last = segments[segment, S_TERM], segments[segment + 1, S_TERM]
            column, least = terms[first, 0], terms[first, 1]
            for n in range(segments[segment, S_LENGTH]):
                if free[column + n] < least:
                    continue
                take = min(need, kinds[kind, K_MOST])
                for k in range(first, last):
                    value, amount = free[terms[k, 0] + n], terms[k, 1]
                    if value < amount:
                        take = 0
                        break
                    if value < take * amount:
                        take = value // amount
                if take > 0:
                    entries[count, 0] = segments[segment, S_FIRST] + n
                    entries[count, 1] = kind
                    entries[count, 2] = take
                    count += 1
                    need -= take
                    if joint:
                        for k in range(first, last):
                            free[terms[k, 0] + n] -= take * terms[k, 1]
                        if demands[demand, D_FLAGS] & SCATTER:
                            run = run_of[entries[count - 1, 0]]
                            for k in range(runs[run, 2], runs[run + 1, 2]):
                                free[runcols[k] + entries[count - 1, 0] - runs[run, 0]] = 0
                    if need == 0:
                        break
            segment += 1
        if need > 0:
            return 0
    return count


# --- whole jobs ----------------------------------------------------------------------------------------------------


@kernel
def take_placement(
    demand, entries, count, start, end, sign,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
    columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Take (sign -1) a placement from the free amounts in ``[start, end)``, or give it back (sign 1); the breakpoints
    do not change.
    """
    filled, systems = placement_columns(
        demand, entries, count, sign,
        demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
        columns, amounts, scolumns, samounts, stamps, head,
    )  # fmt: skip
    shift(
        start, end, columns, amounts, filled, scolumns, samounts, systems,
        head, slots, order, members, rows, blk, srows, sblk,
    )  # fmt: skip


@kernel
def book(
    start, end, columns, amounts, scolumns, samounts, head, slots, order, members, rows, blk, srows, sblk, spare
):  # fmt: skip
    """Take amounts from the free amounts in ``[start, end)``."""
    add_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
    if end < FOREVER:
        add_break(end, head, slots, order, members, rows, blk, srows, sblk, spare)
    shift(
        start, end, columns, -amounts, columns.shape[0], scolumns, -samounts, scolumns.shape[0],
        head, slots, order, members, rows, blk, srows, sblk,
    )  # fmt: skip


@kernel
def release(
    start, end, columns, amounts, scolumns, samounts, head, slots, order, members, rows, blk, srows, sblk, spare
):  # fmt: skip
    """Give amounts back in ``[start, end)``: the exact inverse of `book`."""
    shift(
        start, end, columns, amounts, columns.shape[0], scolumns, samounts, scolumns.shape[0],
        head, slots, order, members, rows, blk, srows, sblk,
    )  # fmt: skip
    drop_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
    if end < FOREVER:
        drop_break(end, head, slots, order, members, rows, blk, srows, sblk, spare)


@kernel
def keep_entries(pool, first, entries, count):
    """Copy entries into the pool."""
    for e in range(count):
        for part in range(3):
            pool[first + e, part] = entries[e, part]


@kernel
def remembered_start(memory, earliest, duration, freed):
    """Return a time before which a demand of `duration`, searched from `earliest` on, is known not to fit.

    This follows from a note of a demand that was at most as long and searched from no later. As resources were given
    back from `freed` on, it holds only for windows that end by then.
    """
    start = earliest
    for k in range(1, 1 + min(memory[0, 0], memory.shape[0] - 1)):
        if memory[k, 0] <= duration and memory[k, 1] <= earliest:
            start = max(start, min(memory[k, 2], freed - memory[k, 0] + 1))
    return start


@kernel
def remember_start(memory, earliest, duration, start):
    """Note that a demand of `duration`, searched from `earliest`, first fits at `start`; the oldest note is dropped."""
    size = memory.shape[0] - 1
    for k in range(1, 1 + min(memory[0, 0], size)):
        if memory[k, 0] == duration and memory[k, 1] == earliest:
            memory[k, 2] = max(memory[k, 2], start)
            return
    k = 1 + memory[0, 0] % size
    memory[0, 0] += 1
    memory[k, 0] = duration
    memory[k, 1] = earliest
    memory[k, 2] = start


@kernel
def earliest_after(job, earliest, starts, waits_of, waits):
    """Return the first start from `earliest` on that keeps a job's distance to all jobs that it waits for; FOREVER if
    one of those has no start.
    """
    for k in range(waits_of[job], waits_of[job + 1]):
        before = starts[waits[k, 0]]
        if before < 0:
            return FOREVER
        earliest = max(earliest, before + waits[k, 1])
    return earliest


@kernel
def latest_before(job, latest, starts, followers_of, followers):
    """Return the last start up to `latest` that keeps the distance of all planned jobs that wait for the job."""
    for k in range(followers_of[job], followers_of[job + 1]):
        after = starts[followers[k, 0]]
        if after >= 0:
            latest = min(latest, after - followers[k, 1])
    return latest


@kernel
def place_jobs(
    queue, begin, end, jobs, starts, spans, pool, used, bounds, waits_of, waits, followers_of, followers,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Place the jobs of ``queue[begin:end]`` in turn, each as early as it fits beside all others.

    A job without a place gets one, if there is one. A job with a place is unbooked and planned again; it takes the new
    place only if it starts earlier (OCCS-34). Each job keeps its distance to the jobs that it waits for, and to those
    that wait for it. Where a job that it waits for has no place, it gets none, or keeps the one that it has.

    While nothing is given back, a job cannot start before the start found for an equal demand that was at most as long:
    `bounds` remembers that (`remembered_start`). The resources that a job gives back open only windows that reach into
    its old interval.

    Returns (DONE or what must grow, index in the queue that was reached, number of jobs with a new place).
    """
    moved = 0
    for k in range(begin, end):
        job = queue[k]
        if head[H_SPARE_ROWS] < 2 or head[H_SPARE_BLOCKS] < 2:
            return GROW_STATE, k, moved
        if pool.shape[0] - used[0] < entries.shape[0]:
            return GROW_POOL, k, moved
        demand, duration = jobs[job, 0], jobs[job, 3]
        released = earliest_after(job, jobs[job, 1], starts, waits_of, waits)
        earliest, latest = released, jobs[job, 2]
        old, first, count = starts[job], spans[job, 0], spans[job, 1]
        if old < 0:
            latest = latest_before(job, latest, starts, followers_of, followers)
        else:
            latest = min(latest, old - 1)  # which keeps the distance of the jobs that wait for it
            take_placement(
                demand, pool[first : first + count], count, old, old + duration, 1,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
        if demands[demand, D_FLAGS] & JOINT == 0:
            known = remembered_start(bounds[demand], earliest, duration, head[H_FREED])
            if old >= 0:
                known = min(known, old - duration + 1)
            earliest = max(earliest, known)
        start, found = -1, 0
        if earliest <= latest and released < FOREVER:
            start, found = earliest_fit(
                demand, earliest, duration, latest,
                head, slots, order, members, rows, blk, srows, sblk,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, run_of,
                free, buffer, entries,
            )  # fmt: skip
        if start >= 0:
            moved += 1
            if found > spans[job, 2]:
                first = used[0]
                used[0] += found
                spans[job, 0], spans[job, 2] = first, found
            starts[job], spans[job, 1] = start, found
            keep_entries(pool, first, entries, found)
            add_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
            add_break(start + duration, head, slots, order, members, rows, blk, srows, sblk, spare)
            if old >= 0:
                drop_break(old, head, slots, order, members, rows, blk, srows, sblk, spare)
                drop_break(old + duration, head, slots, order, members, rows, blk, srows, sblk, spare)
                head[H_FREED] = min(head[H_FREED], old)
            old, count = start, found
        if old >= 0:
            if demands[demand, D_FLAGS] & JOINT == 0:
                remember_start(bounds[demand], released, duration, start if start >= 0 else latest + 1)
            take_placement(
                demand, pool[first : first + count], count, old, old + duration, -1,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
    return DONE, end, moved
