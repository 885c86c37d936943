"""The timeline's kernels: plain functions on arrays, compiled by numba. `timeline.py` owns shapes, units and checks.

The structure ("blocked dense"): one time axis for all nodes and for the system. A *slot* is the time from one
breakpoint to the next; the last one has no end. Each slot has a row: what is free of every node column (one column
for each node and resource) and of every system column (sums over nodes, licenses, a consumer's own view). Consecutive
slots form *blocks* of at most `BLOCK` slots. A block carries, for each column, an amount that is still to be added to
all its rows (lazy) and the smallest value over its rows, so that a booking of k columns over b blocks costs k*b, and
a search reads one row for a whole block.

The free amount of column c in slot r of block b is ``rows[r, c] + blk[b, LAZY, c]``; the lazy part is folded into the
rows of a column whenever a booking covers the block only in part, so that both parts stay within the capacity.

The kernels take their arrays in named tuples, which are passed last: the timeline's `State` (`s`), the `Tables` of what
can be asked for (`t`), a `Scratch` (`x`), and the `Jobs` of a table (`j`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.jit import kernel
from cpsched.rusv.vector import FOREVER

#: Slots in a block, at the most.
BLOCK = 32
#: Nodes whose counts are added up in 32 bits; times the most chunks that a request may have, this stays below 2^31.
PART = 2048

H_BLOCKS, H_SPARE_ROWS, H_SPARE_BLOCKS, H_FREED, HEAD = 0, 1, 2, 3, 4
LAZY, LOW, HIGH = 0, 1, 2

# columns of the demand tables, see timeline.Demands
D_KIND, D_SYS, D_LICENSE, D_RANGE, D_REACH, D_FLAGS, D_OTHERWISE = 0, 1, 2, 3, 4, 5, 6
K_NEED, K_SEG, K_MOST = 0, 1, 2
S_FIRST, S_LENGTH, S_TERM = 0, 1, 2
EXCLUSIVE, SCATTER, JOINT = 1, 2, 4

DONE, GROW_STATE, GROW_POOL = 0, 1, 2


class State(NamedTuple):
    """What is free, and when: a timeline."""

    #: int64 (HEAD,): counters, see ``H_*``.
    head: NDArray[Any]
    #: int64 (rows, 2): start of the slot; how many bookings begin or end there (the origin has one more).
    slots: NDArray[Any]
    #: int32 (blocks,): the blocks in time order.
    order: NDArray[Any]
    #: int32 (blocks, BLOCK + 1): the slots of a block in time order; in the last place how many there are.
    members: NDArray[Any]
    #: int32 (rows, W): free amounts of the node columns, without the block's lazy part.
    rows: NDArray[Any]
    #: int32 (blocks, 2, W): lazy part and minimum of each node column.
    blk: NDArray[Any]
    #: int64 (rows, Q): free amounts of the system columns, without the block's lazy part.
    srows: NDArray[Any]
    #: int64 (blocks, 3, Q): lazy part, minimum and maximum of each system column.
    sblk: NDArray[Any]
    #: int32 (2, rows): stacks of unused rows and blocks.
    spare: NDArray[Any]


class Tables(NamedTuple):
    """What can be asked for, and the machine; a table that others point into has a last row with the ends."""

    #: int64 (demands + 1, 7): where the rows of each demand begin in the other tables, its flags, and what is tried
    #: where it does not fit, see ``D_*``.
    demands: NDArray[Any]
    #: int64 (kinds + 1, 3): chunks needed, first segment, and the most chunks on a node, see ``K_*``.
    kinds: NDArray[Any]
    #: int64 (segments + 1, 3): adjacent nodes that may hold a kind: first node, number of nodes, first term, see
    #: ``S_*``.
    segments: NDArray[Any]
    #: int64 (terms, 2): column of a segment's first node, and the amount that a chunk takes of it.
    terms: NDArray[Any]
    #: float64 (terms, 2): factor and summand that divide by the amount (`count_kind`).
    scale: NDArray[Any]
    #: int64 (·, 2): system column, and the amount that must be free of it; a demand's licences come last.
    sysreq: NDArray[Any]
    #: int64 (·, 2): ranges ``[begin, end)`` of the columns that a demand looks at.
    ranges: NDArray[Any]
    #: int64 (·,): the runs whose nodes a demand may have.
    reach: NDArray[Any]
    #: int64 (runs + 1, 3): equal neighbours: first node, number of nodes, and where their columns begin in `runcols`.
    runs: NDArray[Any]
    #: int64 (·,): columns of the first node of each run.
    runcols: NDArray[Any]
    #: int32 (W,): the amount of each node column when nothing is booked.
    capacity: NDArray[Any]
    #: int64 (W, 2): the system columns that add up a node column, -1 for none.
    colsys: NDArray[Any]
    #: int64 (nodes,): the run of each node.
    run_of: NDArray[Any]


class Scratch(NamedTuple):
    """The arrays that kernels write into: the search and the mapping of a demand, and the amounts of a placement."""

    #: int32 (2, W): the least that is free in a window, while it is looked for.
    free: NDArray[Any]
    #: float64 (nodes,)
    buffer: NDArray[Any]
    #: int32 (·, 3): where a demand was mapped to, rows of (node, kind, chunks).
    entries: NDArray[Any]
    #: int64 (·,): node columns of a placement, and their amounts.
    columns: NDArray[Any]
    amounts: NDArray[Any]
    #: int64 (Q,): system columns of a placement, and their amounts.
    scolumns: NDArray[Any]
    samounts: NDArray[Any]
    #: int64 (nodes,): the last placement, by the counter `stamp`, that took the node whole.
    stamps: NDArray[Any]
    #: int64 (1,): the number of placements so far.
    stamp: NDArray[Any]


class Taken(NamedTuple):
    """Amounts of node columns and of system columns, int64 (·,)."""

    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]


class Jobs(NamedTuple):
    """Jobs and their places: the arrays of a `timeline.JobTable`, which describes them."""

    jobs: NDArray[Any]
    starts: NDArray[Any]
    spans: NDArray[Any]
    pool: NDArray[Any]
    used: NDArray[Any]
    waits_of: NDArray[Any]
    waits: NDArray[Any]
    followers_of: NDArray[Any]
    followers: NDArray[Any]


# --- the time axis -------------------------------------------------------------------------------------------------


@kernel
def locate(time, s):
    """Return (place of the block in `order`, index in the block) of the slot that holds `time`."""
    low, high = 0, s.head[H_BLOCKS]
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


@kernel
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


@kernel
def split_block(place, s):
    """Move the later half of a full block into a new block behind it."""
    block = s.order[place]
    s.head[H_SPARE_BLOCKS] -= 1
    new = s.spare[1, s.head[H_SPARE_BLOCKS]]
    half = BLOCK // 2
    for k in range(half, BLOCK):
        s.members[new, k - half] = s.members[block, k]
    s.members[new, BLOCK] = BLOCK - half
    s.members[block, BLOCK] = half
    copy(s.blk[new, LAZY], s.blk[block, LAZY])
    copy(s.sblk[new, LAZY], s.sblk[block, LAZY])
    for k in range(s.head[H_BLOCKS], place + 1, -1):
        s.order[k] = s.order[k - 1]
    s.order[place + 1] = new
    s.head[H_BLOCKS] += 1
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
    s.head[H_SPARE_ROWS] -= 1
    new = s.spare[0, s.head[H_SPARE_ROWS]]
    s.slots[new, 0] = time
    s.slots[new, 1] = 1
    copy(s.rows[new], s.rows[row])
    copy(s.srows[new], s.srows[row])
    for k in range(s.members[block, BLOCK], index + 1, -1):
        s.members[block, k] = s.members[block, k - 1]
    s.members[block, index + 1] = new
    s.members[block, BLOCK] += 1


@kernel
def drop_break(time, s):
    """Count one use less of the slot that begins at `time`; join it to the one before at the last use."""
    place, index = locate(time, s)
    block = s.order[place]
    row = s.members[block, index]
    s.slots[row, 1] -= 1
    if s.slots[row, 1] > 0:
        return
    s.spare[0, s.head[H_SPARE_ROWS]] = row
    s.head[H_SPARE_ROWS] += 1
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


@kernel
def remove_block(place, s):
    """Take a block out of the order."""
    s.spare[1, s.head[H_SPARE_BLOCKS]] = s.order[place]
    s.head[H_SPARE_BLOCKS] += 1
    s.head[H_BLOCKS] -= 1
    for k in range(place, s.head[H_BLOCKS]):
        s.order[k] = s.order[k + 1]


@kernel
def fold_block(block, s):
    """Fold the lazy part of a block into its rows, which then hold the free amounts (a difference of two lazy parts
    could exceed 32 bits).
    """
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


@kernel
def merge_next(place, s):
    """Join a block with the next if both are nearly empty; tell whether it did (minima are the caller's)."""
    if place + 1 >= s.head[H_BLOCKS]:
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


# --- booking -------------------------------------------------------------------------------------------------------


@kernel
def shift(start, end, sign, taken, count, scount, s):
    """Add the first `count` amounts of node columns, and the first `scount` of system columns, times `sign`, to the
    free amounts in ``[start, end)``; both must be breakpoints (or the end FOREVER).
    """
    place, index = locate(start, s)
    while place < s.head[H_BLOCKS]:
        block = s.order[place]
        size = s.members[block, BLOCK]
        stop = index
        while stop < size and s.slots[s.members[block, stop], 0] < end:
            stop += 1
        if stop == index:
            return
        whole = index == 0 and stop == size
        if whole:
            for k in range(count):
                s.blk[block, LAZY, taken.columns[k]] += sign * taken.amounts[k]
                s.blk[block, LOW, taken.columns[k]] += sign * taken.amounts[k]
            for k in range(scount):
                for part in range(3):
                    s.sblk[block, part, taken.scolumns[k]] += sign * taken.samounts[k]
        else:
            shift_part(block, index, stop, sign, taken, count, s)
            for k in range(scount):
                for m in range(index, stop):
                    s.srows[s.members[block, m], taken.scolumns[k]] += sign * taken.samounts[k]
                summarise_system(block, taken.scolumns[k], s)
        if stop < size:
            return
        place += 1
        index = 0


@kernel
def shift_part(block, begin, stop, sign, taken, count, s):
    """Add amounts (times `sign`) to some slots of a block; fold the lazy part of these columns into the rows, renew
    their minima.
    """
    size = s.members[block, BLOCK]
    for k in range(count):
        column = taken.columns[k]
        lazy = s.blk[block, LAZY, column]
        amount = sign * taken.amounts[k] + lazy
        low = s.rows[s.members[block, 0], column] + (amount if begin == 0 else lazy)
        for m in range(size):
            row = s.members[block, m]
            value = s.rows[row, column] + (amount if begin <= m < stop else lazy)
            s.rows[row, column] = value
            low = min(low, value)
        s.blk[block, LAZY, column] = 0
        s.blk[block, LOW, column] = low


@kernel
def placement_columns(demand, entries, count, t, x):
    """Write the amounts of a placement to the scratch `x`: node columns with amounts, system columns with amounts.

    An exclusive demand takes its nodes whole. Returns the numbers of node and of system columns.
    """
    filled = 0
    systems = 0
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = 0
    exclusive = t.demands[demand, D_FLAGS] & EXCLUSIVE
    x.stamp[0] += 1
    before, segment = -1, 0  # entries are in the order of kinds and of their segments
    for e in range(count):
        node, kind, chunks = entries[e, 0], entries[e, 1], entries[e, 2]
        if exclusive:
            if x.stamps[node] == x.stamp[0]:
                continue
            x.stamps[node] = x.stamp[0]
            run = t.run_of[node]
            inside = node - t.runs[run, 0]
            for k in range(t.runs[run, 2], t.runs[run + 1, 2]):
                column = t.runcols[k] + inside
                x.columns[filled] = column
                x.amounts[filled] = t.capacity[column]
                filled += 1
        else:
            if kind != before:
                segment = t.kinds[kind, K_SEG]
                before = kind
            inside = node - t.segments[segment, S_FIRST]
            while not 0 <= inside < t.segments[segment, S_LENGTH]:
                segment += 1
                inside = node - t.segments[segment, S_FIRST]
            for k in range(t.segments[segment, S_TERM], t.segments[segment + 1, S_TERM]):
                x.columns[filled] = t.terms[k, 0] + inside
                x.amounts[filled] = chunks * t.terms[k, 1]
                filled += 1
    for k in range(filled):
        for part in range(2):
            q = t.colsys[x.columns[k], part]
            if q >= 0:
                x.samounts[q] += x.amounts[k]
    for k in range(t.demands[demand, D_LICENSE], t.demands[demand + 1, D_SYS]):
        x.samounts[t.sysreq[k, 0]] += t.sysreq[k, 1]
    for q in range(x.samounts.shape[0]):
        if x.samounts[q] != 0:
            x.scolumns[systems] = q
            x.samounts[systems] = x.samounts[q]
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
def count_kind(kind, free, buffer, t):
    """Return how many chunks of a kind fit into `free`, the free amounts of the node columns.

    ``floor(x / a)`` is taken as the whole part of ``x * (1 / a) + 0.5 / a``, which is exact for all 32-bit amounts and
    compiles to vector instructions, unlike a division of integers.
    """
    total = 0
    most = np.int32(t.kinds[kind, K_MOST])
    for segment in range(t.kinds[kind, K_SEG], t.kinds[kind + 1, K_SEG]):
        length = t.segments[segment, S_LENGTH]
        first, last = t.segments[segment, S_TERM], t.segments[segment + 1, S_TERM]
        free0 = free[t.terms[first, 0] : t.terms[first, 0] + length]
        a0, b0 = t.scale[first, 0], t.scale[first, 1]
        if last - first == 1 and most == 1:
            total += count_enough(free0, np.int32(t.terms[first, 1]))
        elif last - first == 1:
            total += sum_one(free0, a0, b0, most)
        elif last - first == 2:
            free1 = free[t.terms[first + 1, 0] : t.terms[first + 1, 0] + length]
            total += sum_two(free0, a0, b0, free1, t.scale[first + 1, 0], t.scale[first + 1, 1], most)
        else:
            least = buffer[:length]
            for n in range(length):
                least[n] = free0[n] * a0 + b0
            for k in range(first + 1, last):
                lower(least, free[t.terms[k, 0] : t.terms[k, 0] + length], t.scale[k, 0], t.scale[k, 1])
            for n in range(length):
                total += np.int64(min(np.int32(least[n]), most))
    return total


@kernel
def suffices(demand, free, buffer, t):
    """Tell whether enough chunks of each kind fit into `free`, each kind by itself (necessary; sufficient for one
    kind).

    For an exclusive demand the columns of nodes that are not idle are set to zero first.
    """
    if t.demands[demand, D_FLAGS] & EXCLUSIVE:
        for k in range(t.demands[demand, D_REACH], t.demands[demand + 1, D_REACH]):
            clear_busy(t.reach[k], free, t)
    for kind in range(t.demands[demand, D_KIND], t.demands[demand + 1, D_KIND]):
        if count_kind(kind, free, buffer, t) < t.kinds[kind, K_NEED]:
            return False
    return True


@kernel
def clear_busy(run, free, t):
    """Set the columns of a run of nodes to zero on each node of which one column is not wholly free."""
    first, last = t.runs[run, 2], t.runs[run + 1, 2]
    for n in range(t.runs[run, 1]):
        idle = True
        for k in range(first, last):
            idle &= free[t.runcols[k] + n] == t.capacity[t.runcols[k] + n]
        if not idle:
            for k in range(first, last):
                free[t.runcols[k] + n] = 0


@kernel
def is_good(block, index, demand, s, t):
    """Tell whether one slot has what the demand needs of the system columns."""
    row = s.members[block, index]
    good = True
    for k in range(t.demands[demand, D_SYS], t.demands[demand + 1, D_SYS]):
        good &= s.srows[row, t.sysreq[k, 0]] + s.sblk[block, LAZY, t.sysreq[k, 0]] >= t.sysreq[k, 1]
    return good


@kernel
def is_block_good(block, demand, s, t):
    """Tell whether every slot of a block has what the demand needs of the system columns."""
    good = True
    for k in range(t.demands[demand, D_SYS], t.demands[demand + 1, D_SYS]):
        good &= s.sblk[block, LOW, t.sysreq[k, 0]] >= t.sysreq[k, 1]
    return good


@kernel
def is_block_bad(block, demand, s, t):
    """Tell whether no slot of a block can have what the demand needs of the system columns."""
    bad = False
    for k in range(t.demands[demand, D_SYS], t.demands[demand + 1, D_SYS]):
        bad |= s.sblk[block, HIGH, t.sysreq[k, 0]] < t.sysreq[k, 1]
    return bad


@kernel
def next_good(demand, place, index, s, t):
    """Return the first slot from the given one on that has what the demand needs of the system (place -1 if there is
    none).
    """
    while place < s.head[H_BLOCKS]:
        block = s.order[place]
        if not is_block_bad(block, demand, s, t):
            while index < s.members[block, BLOCK]:
                if is_good(block, index, demand, s, t):
                    return place, index
                index += 1
        place, index = place + 1, 0
    return -1, 0


@kernel
def last_bad(demand, place, index, stop_place, stop_index, s, t):
    """Return the last slot in ``[stop, given]`` that lacks what the demand needs of the system (place -1 if there is
    none).
    """
    while place >= stop_place:
        block = s.order[place]
        low = stop_index if place == stop_place else 0
        if not is_block_good(block, demand, s, t):
            while index >= low:
                if not is_good(block, index, demand, s, t):
                    return place, index
                index -= 1
        place -= 1
        if place >= stop_place:
            index = s.members[s.order[place], BLOCK] - 1
    return -1, 0


@kernel
def next_window(demand, start, duration, latest, place, index, known_place, known_index, s, t):
    """Phase 1: the earliest window from `start` on in which every slot has what the demand needs of the system.

    `place`, `index` is the slot that holds `start`; from there to before `known_place`, `known_index` all slots are
    known to be good. A window is checked from its end: no start up to its last bad slot is possible, so the slots
    before that are not read. Returns (start or -1, its slot, the last slot of the window).
    """
    while True:
        if place == known_place and index == known_index:
            place, index = next_good(demand, place, index, s, t)
            if place < 0:
                return -1, 0, 0, 0, 0
            start = max(start, s.slots[s.members[s.order[place], index], 0])
            known_place, known_index = place, index
        if start > latest:
            return -1, 0, 0, 0, 0
        last_place, last_index = locate(start + duration - 1, s)
        bad_place, bad_index = last_bad(demand, last_place, last_index, known_place, known_index, s, t)
        if bad_place < 0:
            return start, place, index, last_place, last_index
        place, index = following(bad_place, bad_index, s)
        known_place, known_index = following(last_place, last_index, s)
        if place == s.head[H_BLOCKS]:
            return -1, 0, 0, 0, 0
        start = s.slots[s.members[s.order[place], index], 0]


@kernel
def following(place, index, s):
    """Return the slot after the given one (of the block after the last one if there is none)."""
    if index + 1 < s.members[s.order[place], BLOCK]:
        return place, index + 1
    return place + 1, 0


@kernel
def take_slots(demand, block, low, high, source, target, s, t):
    """Set `target` to the minimum of `source` and the slots `low` … `high` of a block, over the columns that a demand
    takes.
    """
    whole = low == 0 and high == s.members[block, BLOCK] - 1
    for k in range(t.demands[demand, D_RANGE], t.demands[demand + 1, D_RANGE]):
        begin, end = t.ranges[k, 0], t.ranges[k, 1]
        if whole:
            lower_by_two(target[begin:end], source[begin:end], s.blk[block, LOW, begin:end])
            continue
        lazy = s.blk[block, LAZY, begin:end]
        lower_from_row(target[begin:end], source[begin:end], s.rows[s.members[block, high], begin:end], lazy)
        for m in range(low, high):
            lower_by_row(target[begin:end], s.rows[s.members[block, m], begin:end], lazy)


@kernel
def scan_window(demand, place, index, last_place, last_index, source, s, t, x):
    """Take the minimum of the amounts in `source` and of the free amounts over the slots of a window, from its last to
    its first.

    Returns (side, place, index): which half of `x.free` holds the minimum; and the first slot, seen from the end, with
    which too little is left for the demand (place -1 if there is none).
    """
    side = 0
    at, high = last_place, last_index
    singly = False  # a block that fails as a whole is checked again, slot by slot
    while True:
        block = s.order[at]
        low = index if at == place else 0
        other = 1 - side
        take_slots(demand, block, high if singly else low, high, source, x.free[other], s, t)
        if suffices(demand, x.free[other], x.buffer, t):
            side, source = other, x.free[other]
            if singly:
                high -= 1
            elif at == place:
                return side, -1, 0
            else:
                at -= 1
                high = s.members[s.order[at], BLOCK] - 1
        elif singly or low == high:
            return side, at, high
        else:
            singly = True


@kernel
def earliest_fit(demand, start, duration, latest, s, t, x):
    """Find the earliest start in ``[start, latest]`` at which the demand fits for `duration`, and where.

    For each window that phase 1 offers, the minimum of the free amounts is taken over its slots. If too little is left
    from some slot on, every window that holds this slot and begins no earlier is ruled out: the next one begins after
    it. A window that passes is mapped (`map_chunks`); only demands of several kinds can fail there, and then try their
    other orders.

    Returns (start or -1, number of `entries`).
    """
    place, index = locate(start, s)
    known_place, known_index = place, index
    last_place, last_index = place, index
    attempt = demand
    while True:
        if attempt == demand:
            start, place, index, last_place, last_index = next_window(
                demand, start, duration, latest, place, index, known_place, known_index, s, t
            )
            if start < 0:
                return -1, 0
        side, at, blocked = scan_window(demand, place, index, last_place, last_index, t.capacity, s, t, x)
        if at >= 0:
            place, index = at, blocked
        else:
            count = map_chunks(attempt, x.free[side], t, x)
            if count > 0:
                return start, count
            attempt = t.demands[attempt, D_OTHERWISE]
            if attempt >= 0:
                continue  # the mapping has overwritten the minimum: it is taken again
            attempt = demand
        place, index = following(place, index, s)
        if place == s.head[H_BLOCKS]:
            return -1, 0
        start = s.slots[s.members[s.order[place], index], 0]
        known_place, known_index = following(last_place, last_index, s)


@kernel
def free_from(demand, start, end, s, t, x):
    """Return the earliest second from `start` on from which a demand fits until `end`, each of its kinds by itself;
    `end` if it does not fit in the slot before that.
    """
    place, index = locate(start, s)
    last_place, last_index = locate(end - 1, s)
    bad_place, bad_index = last_bad(demand, last_place, last_index, place, index, s, t)
    if bad_place >= 0:
        if bad_place == last_place and bad_index == last_index:
            return end
        place, index = following(bad_place, bad_index, s)
        start = s.slots[s.members[s.order[place], index], 0]
    _, at, blocked = scan_window(demand, place, index, last_place, last_index, t.capacity, s, t, x)
    if at < 0:
        return start
    if at == last_place and blocked == last_index:
        return end
    place, index = following(at, blocked, s)
    return s.slots[s.members[s.order[place], index], 0]


@kernel
def map_chunks(demand, free, t, x):
    """Phase 2: cheap nodes first, as many chunks as fit (OCCS-30); kinds in the order of the table.

    Writes (node, kind, chunks) to the scratch `x` and returns how many, or 0 if some kind does not fit beside the
    others.
    """
    count = 0
    joint = t.demands[demand, D_FLAGS] & JOINT
    for kind in range(t.demands[demand, D_KIND], t.demands[demand + 1, D_KIND]):
        need = t.kinds[kind, K_NEED]
        segment = t.kinds[kind, K_SEG]
        while need > 0 and segment < t.kinds[kind + 1, K_SEG]:
            first, last = t.segments[segment, S_TERM], t.segments[segment + 1, S_TERM]
            column, least = t.terms[first, 0], t.terms[first, 1]
            for n in range(t.segments[segment, S_LENGTH]):
                if free[column + n] < least:
                    continue
                take = min(need, t.kinds[kind, K_MOST])
                for k in range(first, last):
                    value, amount = free[t.terms[k, 0] + n], t.terms[k, 1]
                    if value < amount:
                        take = 0
                        break
                    if value < take * amount:
                        take = value // amount
                if take > 0:
                    x.entries[count, 0] = t.segments[segment, S_FIRST] + n
                    x.entries[count, 1] = kind
                    x.entries[count, 2] = take
                    count += 1
                    need -= take
                    if joint:
                        for k in range(first, last):
                            free[t.terms[k, 0] + n] -= take * t.terms[k, 1]
                        if t.demands[demand, D_FLAGS] & SCATTER:
                            run = t.run_of[x.entries[count - 1, 0]]
                            for k in range(t.runs[run, 2], t.runs[run + 1, 2]):
                                free[t.runcols[k] + x.entries[count - 1, 0] - t.runs[run, 0]] = 0
                    if need == 0:
                        break
            segment += 1
        if need > 0:
            return 0
    return count


# --- whole jobs ----------------------------------------------------------------------------------------------------


@kernel
def take_placement(demand, entries, count, start, end, sign, s, t, x):
    """Take (sign -1) a placement from the free amounts in ``[start, end)``, or give it back (sign 1); the breakpoints
    do not change.
    """
    filled, systems = placement_columns(demand, entries, count, t, x)
    shift(start, end, sign, Taken(x.columns, x.amounts, x.scolumns, x.samounts), filled, systems, s)


@kernel
def book(start, end, taken, s):
    """Take amounts from the free amounts in ``[start, end)``."""
    add_break(start, s)
    if end < FOREVER:
        add_break(end, s)
    shift(start, end, -1, taken, taken.columns.shape[0], taken.scolumns.shape[0], s)


@kernel
def release(start, end, taken, s):
    """Give amounts back in ``[start, end)``: the exact inverse of `book`."""
    shift(start, end, 1, taken, taken.columns.shape[0], taken.scolumns.shape[0], s)
    drop_break(start, s)
    if end < FOREVER:
        drop_break(end, s)


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
def earliest_after(job, earliest, j):
    """Return the first start from `earliest` on that keeps a job's distance to all jobs that it waits for; FOREVER if
    one of those has no start.
    """
    for k in range(j.waits_of[job], j.waits_of[job + 1]):
        before = j.starts[j.waits[k, 0]]
        if before < 0:
            return FOREVER
        earliest = max(earliest, before + j.waits[k, 1])
    return earliest


@kernel
def latest_before(job, latest, j):
    """Return the last start up to `latest` that keeps the distance of all planned jobs that wait for the job."""
    for k in range(j.followers_of[job], j.followers_of[job + 1]):
        after = j.starts[j.followers[k, 0]]
        if after >= 0:
            latest = min(latest, after - j.followers[k, 1])
    return latest


@kernel
def place_jobs(queue, begin, end, bounds, j, s, t, x):
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
        if s.head[H_SPARE_ROWS] < 2 or s.head[H_SPARE_BLOCKS] < 2:
            return GROW_STATE, k, moved
        if j.pool.shape[0] - j.used[0] < x.entries.shape[0]:
            return GROW_POOL, k, moved
        demand, duration = j.jobs[job, 0], j.jobs[job, 3]
        released = earliest_after(job, j.jobs[job, 1], j)
        earliest, latest = released, j.jobs[job, 2]
        old, first, count = j.starts[job], j.spans[job, 0], j.spans[job, 1]
        if old < 0:
            latest = latest_before(job, latest, j)
        else:
            latest = min(latest, old - 1)  # which keeps the distance of the jobs that wait for it
            take_placement(demand, j.pool[first : first + count], count, old, old + duration, 1, s, t, x)
        if t.demands[demand, D_FLAGS] & JOINT == 0:
            known = remembered_start(bounds[demand], earliest, duration, s.head[H_FREED])
            if old >= 0:
                known = min(known, old - duration + 1)
            earliest = max(earliest, known)
        start, found = -1, 0
        if earliest <= latest and released < FOREVER:
            start, found = earliest_fit(demand, earliest, duration, latest, s, t, x)
        if start >= 0:
            moved += 1
            if found > j.spans[job, 2]:
                first = j.used[0]
                j.used[0] += found
                j.spans[job, 0], j.spans[job, 2] = first, found
            j.starts[job], j.spans[job, 1] = start, found
            keep_entries(j.pool, first, x.entries, found)
            add_break(start, s)
            add_break(start + duration, s)
            if old >= 0:
                drop_break(old, s)
                drop_break(old + duration, s)
                s.head[H_FREED] = min(s.head[H_FREED], old)
            old, count = start, found
        if old >= 0:
            if t.demands[demand, D_FLAGS] & JOINT == 0:
                remember_start(bounds[demand], released, duration, start if start >= 0 else latest + 1)
            take_placement(demand, j.pool[first : first + count], count, old, old + duration, -1, s, t, x)
    return DONE, end, moved
