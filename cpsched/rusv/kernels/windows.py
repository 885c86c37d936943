"""The search for the earliest window of time in which a demand fits."""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Scratch, Tables, TimelineState
from cpsched.rusv.kernels.axis import following, locate
from cpsched.rusv.kernels.constants import BLOCK, HIGH, LAZY, LOW, D, H
from cpsched.rusv.kernels.mapping import map_chunks, suffices


@inner_kernel
def lower_by_row(target: Array, row: Array, lazy: Array) -> None:
    """Lower `target` to ``row + lazy``."""
    for c in range(len(target)):
        target[c] = min(target[c], target.dtype.type(row[c] + lazy[c]))


@inner_kernel
def lower_from_row(target: Array, source: Array, row: Array, lazy: Array) -> None:
    """Set `target` to the minimum of `source` and ``row + lazy``."""
    for c in range(len(target)):
        target[c] = min(source[c], target.dtype.type(row[c] + lazy[c]))


@kernel
def lower_by_two(target: Array, source: Array, low: Array) -> None:
    """Set `target` to the minimum of `source` and `low`, other arrays (an overlap would keep the loop scalar)."""
    for c in range(len(target)):
        target[c] = min(source[c], low[c])


@kernel
def is_good(block: int, index: int, demand: int, timeline: TimelineState, tables: Tables) -> bool:
    """Tell whether one slot has what the demand needs of the system columns."""
    row = timeline.members[block, index]
    good = True
    for k in range(tables.demands[demand, D.SYS], tables.demands[demand + 1, D.SYS]):
        good &= (
            timeline.srows[row, tables.sysreq[k, 0]] + timeline.sblk[block, LAZY, tables.sysreq[k, 0]]
            >= tables.sysreq[k, 1]
        )
    return good


@inner_kernel
def is_block_good(block: int, demand: int, timeline: TimelineState, tables: Tables) -> bool:
    """Tell whether every slot of a block has what the demand needs of the system columns."""
    good = True
    for k in range(tables.demands[demand, D.SYS], tables.demands[demand + 1, D.SYS]):
        good &= timeline.sblk[block, LOW, tables.sysreq[k, 0]] >= tables.sysreq[k, 1]
    return good


@inner_kernel
def is_block_bad(block: int, demand: int, timeline: TimelineState, tables: Tables) -> bool:
    """Tell whether no slot of a block can have what the demand needs of the system columns."""
    bad = False
    for k in range(tables.demands[demand, D.SYS], tables.demands[demand + 1, D.SYS]):
        bad |= timeline.sblk[block, HIGH, tables.sysreq[k, 0]] < tables.sysreq[k, 1]
    return bad


@inner_kernel
def next_good(demand: int, place: int, index: int, timeline: TimelineState, tables: Tables) -> tuple[int, int]:
    """Return the first slot from the given one on with what the demand needs of the system (place -1: none)."""
    while place < timeline.head[H.BLOCKS]:
        block = timeline.order[place]
        if not is_block_bad(block, demand, timeline, tables):
            while index < timeline.members[block, BLOCK]:
                if is_good(block, index, demand, timeline, tables):
                    return place, index
                index += 1
        place, index = place + 1, 0
    return -1, 0


@inner_kernel
def last_bad(
    demand: int, place: int, index: int, stop_place: int, stop_index: int, timeline: TimelineState, tables: Tables
) -> tuple[int, int]:
    """Return the last slot in ``[stop, given]`` that lacks what the demand needs of the system (place -1: none)."""
    while place >= stop_place:
        block = timeline.order[place]
        low = stop_index if place == stop_place else 0
        if not is_block_good(block, demand, timeline, tables):
            while index >= low:
                if not is_good(block, index, demand, timeline, tables):
                    return place, index
                index -= 1
        place -= 1
        if place >= stop_place:
            index = timeline.members[timeline.order[place], BLOCK] - 1
    return -1, 0


@inner_kernel
def next_window(
    demand: int,
    start: int,
    duration: int,
    latest: int,
    place: int,
    index: int,
    known_place: int,
    known_index: int,
    timeline: TimelineState,
    tables: Tables,
) -> tuple[int, int, int, int, int]:
    """Phase 1: the earliest window from `start` on in which every slot has what the demand needs of the system.

    `place`, `index` is the slot that holds `start`; from there to before `known_place`, `known_index` all slots are
    known to be good. A window is checked from its end: no start up to its last bad slot is possible, so the slots
    before that are not read. Returns (start or -1, its slot, the last slot of the window).
    """
    while True:
        if place == known_place and index == known_index:
            place, index = next_good(demand, place, index, timeline, tables)
            if place < 0:
                return -1, 0, 0, 0, 0
            start = max(start, timeline.slots[timeline.members[timeline.order[place], index], 0])
            known_place, known_index = place, index
        if start > latest:
            return -1, 0, 0, 0, 0
        last_place, last_index = locate(start + duration - 1, timeline)
        bad_place, bad_index = last_bad(demand, last_place, last_index, known_place, known_index, timeline, tables)
        if bad_place < 0:
            return start, place, index, last_place, last_index
        place, index = following(bad_place, bad_index, timeline)
        known_place, known_index = following(last_place, last_index, timeline)
        if place == timeline.head[H.BLOCKS]:
            return -1, 0, 0, 0, 0
        start = timeline.slots[timeline.members[timeline.order[place], index], 0]


@inner_kernel
def take_slots(
    demand: int, block: int, low: int, high: int, source: Array, target: Array, timeline: TimelineState, tables: Tables
) -> None:
    """Set `target` to the minimum of `source` and slots `low` … `high` of a block, in the columns of a demand."""
    whole = low == 0 and high == timeline.members[block, BLOCK] - 1
    for k in range(tables.demands[demand, D.RANGE], tables.demands[demand + 1, D.RANGE]):
        begin, end = tables.ranges[k, 0], tables.ranges[k, 1]
        if whole:
            lower_by_two(target[begin:end], source[begin:end], timeline.blk[block, LOW, begin:end])
            continue
        lazy = timeline.blk[block, LAZY, begin:end]
        lower_from_row(
            target[begin:end], source[begin:end], timeline.rows[timeline.members[block, high], begin:end], lazy
        )
        for m in range(low, high):
            lower_by_row(target[begin:end], timeline.rows[timeline.members[block, m], begin:end], lazy)


@inner_kernel
def scan_window(
    demand: int,
    place: int,
    index: int,
    last_place: int,
    last_index: int,
    source: Array,
    timeline: TimelineState,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Take the minimum of the amounts in `source` and of the free amounts over a window's slots, from the last on.

    Returns (side, place, index): which half of `x.free` holds the minimum; and the first slot, seen from the end, with
    which too little is left for the demand (place -1 if there is none).
    """
    side = 0
    at, high = last_place, last_index
    singly = False  # a block that fails as a whole is checked again, slot by slot
    while True:
        block = timeline.order[at]
        low = index if at == place else 0
        other = 1 - side
        take_slots(demand, block, high if singly else low, high, source, scratch.free[other], timeline, tables)
        if suffices(demand, scratch.free[other], scratch.buffer, tables):
            side, source = other, scratch.free[other]
            if singly:
                high -= 1
            elif at == place:
                return side, -1, 0
            else:
                at -= 1
                high = timeline.members[timeline.order[at], BLOCK] - 1
        elif singly or low == high:
            return side, at, high
        else:
            singly = True


@kernel
def first_window(
    demand: int, start: int, duration: int, latest: int, timeline: TimelineState, tables: Tables, scratch: Scratch
) -> tuple[int, int]:
    """Find the earliest start in ``[start, latest]`` at which each kind of a demand fits by itself for `duration`.

    For each window that phase 1 offers, the minimum of the free amounts is taken over its slots. If too little is left
    from some slot on, every window that holds this slot and begins no earlier is ruled out: the next one begins after
    it.

    Returns (start or -1, the half of `free` with the amounts free all the time).
    """
    place, index = locate(start, timeline)
    known_place, known_index = place, index
    while True:
        start, place, index, last_place, last_index = next_window(
            demand, start, duration, latest, place, index, known_place, known_index, timeline, tables
        )
        if start < 0:
            return -1, 0
        side, at, blocked = scan_window(
            demand, place, index, last_place, last_index, tables.capacity, timeline, tables, scratch
        )
        if at < 0:
            return start, side
        place, index = following(at, blocked, timeline)
        if place == timeline.head[H.BLOCKS]:
            return -1, 0
        start = timeline.slots[timeline.members[timeline.order[place], index], 0]
        known_place, known_index = following(last_place, last_index, timeline)


@kernel
def earliest_fit(
    demand: int, start: int, duration: int, latest: int, timeline: TimelineState, tables: Tables, scratch: Scratch
) -> tuple[int, int]:
    """Find the earliest start in ``[start, latest]`` at which the demand fits for `duration`, and where.

    A window is mapped (`map_chunks`); only demands of several kinds can fail there, and then try their other orders.

    Returns (start or -1, number of `entries`).
    """
    attempt = demand
    while True:
        start, side = first_window(demand, start, duration, latest, timeline, tables, scratch)
        if start < 0:
            return -1, 0
        count = map_chunks(attempt, scratch.free[side], tables, scratch)
        if count > 0:
            return start, count
        attempt = tables.demands[attempt, D.OTHERWISE]
        if attempt >= 0:
            continue  # the mapping has overwritten the minimum: it is taken again
        attempt = demand
        place, index = locate(start, timeline)
        place, index = following(place, index, timeline)
        if place == timeline.head[H.BLOCKS]:
            return -1, 0
        start = timeline.slots[timeline.members[timeline.order[place], index], 0]


@kernel
def free_from(demand: int, start: int, end: int, timeline: TimelineState, tables: Tables, scratch: Scratch) -> int:
    """Return the earliest second from `start` on from which a demand fits until `end`, each of its kinds by itself;
    `end` if it does not fit in the slot before that.
    """
    place, index = locate(start, timeline)
    last_place, last_index = locate(end - 1, timeline)
    bad_place, bad_index = last_bad(demand, last_place, last_index, place, index, timeline, tables)
    if bad_place >= 0:
        if bad_place == last_place and bad_index == last_index:
            return end
        place, index = following(bad_place, bad_index, timeline)
        start = timeline.slots[timeline.members[timeline.order[place], index], 0]
    _, at, blocked = scan_window(
        demand, place, index, last_place, last_index, tables.capacity, timeline, tables, scratch
    )
    if at < 0:
        return start
    if at == last_place and blocked == last_index:
        return end
    place, index = following(at, blocked, timeline)
    return timeline.slots[timeline.members[timeline.order[place], index], 0]


@kernel
def remembered_start(memory: Array, earliest: int, duration: int, freed: int) -> int:
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
def remember_start(memory: Array, earliest: int, duration: int, start: int) -> None:
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
