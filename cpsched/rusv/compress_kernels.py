"""The kernels of `compression.py`, which owns shapes and checks, and proves that no job is missed.

The arrays that are not those of a timeline or a table:

======== ========================== =================================================================================
enough   int64 (jobs,)              value of the counter ``C_GIVEN`` from which a job is worth a look
tried    int64 (jobs,)              value of ``C_CHANCE`` when a start of the job now was last tried
chunk_of int64 (demands,)           a number for each kind of chunk; -1: several kinds, or whole nodes
biggest  int64 (Q,)                 the most that one node adds to a system column
wanted   like `kinds`               scratch: `kinds` with fewer chunks needed
tail     int32 (2, W)               scratch: least free after a job's start, without and with its own booking
nodes    int64 (chunks, nodes)      the nodes on which a chunk fits now
units    int64 (chunks, nodes)      for each of those nodes, how many chunks fit
until    int64 (chunks, nodes)      for each of those nodes, until when one chunk fits
room     int64 (chunks, slots)      chunks that fit on nodes with room from now to the end of a slot
looked   int64 (chunks, 2)          value of ``C_STATE`` when these were computed, and the number of `nodes`
times    int64 (slots,)             the starts of the slots, from now on
least    int64 (slots, Q)           the least free of each system column from now to the end of a slot
======== ========================== =================================================================================
"""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import (
    BLOCK,
    D_KIND,
    D_RANGE,
    D_SYS,
    DONE,
    H_BLOCKS,
    HIGH,
    K_MOST,
    K_NEED,
    K_SEG,
    LAZY,
    LOW,
    S_FIRST,
    S_LENGTH,
    S_TERM,
    copy,
    count_kind,
    following,
    locate,
    lower_by_row,
    place_jobs,
    placement_columns,
    scan_window,
)
from cpsched.rusv.vector import FOREVER

#: Counters: the number of nodes on which resources were given back; a number that changes when a job that could not
#: start may be able to; the state of the timeline; the state for which `times` and `least` were made, and their number
#: of slots.
C_GIVEN, C_CHANCE, C_STATE, C_AHEAD, C_SLOTS, COUNTERS = 0, 1, 2, 3, 4, 5
#: Nodes: a lack is counted up to this many. An exact count costs more than it saves: 4 and 16 are as good, 64 is worse.
MUCH = 8


@kernel
def nodes_lacking(demand, free, demands, sysreq, biggest):
    """Return a lower bound on the number of nodes that must give resources back until the sums over the system suffice
    for a demand; 0 if they suffice now.
    """
    lack = 0
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        q = sysreq[k, 0]
        if free[q] < sysreq[k, 1]:
            lack = max(lack, (sysreq[k, 1] - free[q] + biggest[q] - 1) // biggest[q])
    return lack


@kernel
def lacking_in_slot(demand, row, block, srows, sblk, demands, sysreq, biggest):
    """Return the bound of `nodes_lacking` for one slot."""
    lack = 0
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        q = sysreq[k, 0]
        short = sysreq[k, 1] - srows[row, q] - sblk[block, LAZY, q]
        if short > 0:
            lack = max(lack, (short + biggest[q] - 1) // biggest[q])
    return lack


@kernel
def last_lacking(
    demand, lack, place, index, stop_place, stop_index, order, members, srows, sblk, demands, sysreq, biggest
):  # fmt: skip
    """Return the last slot in ``[stop, given]`` in which `lack` nodes or more are lacking (place -1 if there is none),
    and the most nodes that are lacking in the slots after it.
    """
    most = 0
    while place >= stop_place:
        block = order[place]
        low = stop_index if place == stop_place else 0
        if nodes_lacking(demand, sblk[block, LOW], demands, sysreq, biggest) > most:
            while index >= low:
                short = lacking_in_slot(demand, members[block, index], block, srows, sblk, demands, sysreq, biggest)
                if short >= lack:
                    return place, index, most
                most = max(most, short)
                index -= 1
        place -= 1
        if place >= stop_place:
            index = members[order[place], BLOCK] - 1
    return -1, 0, most


@kernel
def lower_by(target, low):
    """Lower `target` to `low`."""
    for c in range(len(target)):
        target[c] = min(target[c], low[c])


@kernel
def lower_until(end, target, place, index, first, last, head, slots, order, members, rows, blk, ranges):
    """Lower `target`, over some ranges of columns, to the slots from the given one to `end`; return the one after."""
    while place < head[H_BLOCKS]:
        block = order[place]
        size = members[block, BLOCK]
        stop = index
        while stop < size and slots[members[block, stop], 0] < end:
            stop += 1
        for k in range(first, last):
            left, right = ranges[k, 0], ranges[k, 1]
            if stop - index == size:
                lower_by(target[left:right], blk[block, LOW, left:right])
                continue
            for m in range(index, stop):
                lower_by_row(target[left:right], rows[members[block, m], left:right], blk[block, LAZY, left:right])
        if stop < size:
            return place, stop
        place, index = place + 1, 0
    return place, index


@kernel
def lower_tail(
    end, tail, place, index, filled, columns, amounts, first, last, head, slots, order, members, rows, blk, ranges
):  # fmt: skip
    """Lower the free amounts in `tail`, over some ranges of columns, to the slots from the given one to `end`, and add
    the job's own booking there; return the slot after.
    """
    place, index = lower_until(end, tail[0], place, index, first, last, head, slots, order, members, rows, blk, ranges)
    copy(tail[1], tail[0])
    for k in range(filled):
        tail[1, columns[k]] += amounts[k]
    return place, index


@kernel
def find_gain(
    demand, chunk, earliest, duration, start, placed, wanted, tail, biggest,
    head, slots, order, members, rows, blk, srows, sblk,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Find the first second before `start` at which a job fits that is booked on `placed` from `start` on.

    The job's own booking is no obstacle: a window that reaches into it may use, at its end, the amounts in `tail` and
    the job's own nodes. A job with several kinds of chunks, or with whole nodes, may still not fit there.

    Windows that lack at least as much as the best one so far are skipped (`wanted` is `kinds` with what a better window
    must have). Returns (second or -1, a lower bound on the number of nodes that must give resources back before the job
    can fit).
    """
    kind, first, last = demands[demand, D_KIND], demands[demand, D_RANGE], demands[demand + 1, D_RANGE]
    need, most = kinds[kind, K_NEED], kinds[kind, K_MOST]
    lack = min((need + most - 1) // most, MUCH) if chunk >= 0 else 1
    filled, _ = placement_columns(
        demand, placed, placed.shape[0], 1,
        demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
        columns, amounts, scolumns, samounts, stamps, head,
    )  # fmt: skip
    copy(tail[0], capacity)
    tail_place, tail_index = locate(head, slots, order, members, start)
    place, index = locate(head, slots, order, members, earliest)
    while place < head[H_BLOCKS]:
        block = order[place]
        row = members[block, index]
        begin = max(earliest, slots[row, 0])
        if begin >= start:
            break
        if nodes_lacking(demand, sblk[block, HIGH], demands, sysreq, biggest) >= lack:
            place, index = place + 1, 0
            continue
        last_place, last_index = place, index
        if lacking_in_slot(demand, row, block, srows, sblk, demands, sysreq, biggest) < lack:
            last_place, last_index = locate(head, slots, order, members, min(begin + duration, start) - 1)
        bad_place, bad_index, short = last_lacking(
            demand, lack, last_place, last_index, place, index, order, members, srows, sblk, demands, sysreq, biggest
        )
        if bad_place < 0:
            if chunk < 0:
                return begin, 1
            source = capacity
            if begin + duration > start:
                tail_place, tail_index = lower_tail(
                    begin + duration, tail, tail_place, tail_index, filled, columns, amounts, first, last,
                    head, slots, order, members, rows, blk, ranges,
                )  # fmt: skip
                source = tail[1]
            wanted[kind, K_NEED] = need - (lack - 1) * most
            side, bad_place, bad_index = scan_window(
                demand, place, index, last_place, last_index,
                order, members, rows, blk,
                demands, wanted, segments, terms, scale, ranges, reach, runs, runcols, source,
                free, buffer,
            )  # fmt: skip
            if bad_place < 0:
                lacking = need - count_kind(kind, free[side], buffer, kinds, segments, terms, scale)
                lack = max(short, (lacking + most - 1) // most)
                if lack <= 0:
                    return begin, 1
                continue
        place, index = following(bad_place, bad_index, order, members)
    return -1, lack


@kernel
def look_ahead(now, times, least, head, slots, order, members, srows, sblk):
    """Write the starts of the slots from the one of `now` on, and the least free amount of each system column from now
    to the end of each; return the number of slots.
    """
    place, index = locate(head, slots, order, members, now)
    count = 0
    while place < head[H_BLOCKS]:
        block = order[place]
        for k in range(index, members[block, BLOCK]):
            row = members[block, k]
            times[count] = slots[row, 0]
            for q in range(least.shape[1]):
                value = srows[row, q] + sblk[block, LAZY, q]
                least[count, q] = min(value, least[count - 1, q]) if count > 0 else value
            count += 1
        place, index = place + 1, 0
    return count


@kernel
def has_sums(demand, number, least, demands, sysreq):
    """Tell whether the sums over the system suffice for a demand up to the end of a slot."""
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        if least[number, sysreq[k, 0]] < sysreq[k, 1]:
            return False
    return True


@kernel
def slot_before(end, times, count):
    """Return the index, in `times`, of the last slot of a window that ends at `end`."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] < end:
            low = middle
        else:
            high = middle
    return low


@kernel
def has_room(row, block, first, last, node, rows, blk, terms):
    """Tell whether a chunk fits on a node in one slot."""
    for k in range(first, last):
        if rows[row, terms[k, 0] + node] + blk[block, LAZY, terms[k, 0] + node] < terms[k, 1]:
            return False
    return True


@kernel
def chunks_at(row, block, first, last, node, rows, blk, terms):
    """Return how many chunks fit on a node in one slot."""
    units = FOREVER
    for k in range(first, last):
        units = min(units, (rows[row, terms[k, 0] + node] + blk[block, LAZY, terms[k, 0] + node]) // terms[k, 1])
    return units


@kernel
def holds_one(block, first, last, node, blk, terms):
    """Tell whether a chunk fits on a node in every slot of a block."""
    for k in range(first, last):
        if blk[block, LOW, terms[k, 0] + node] < terms[k, 1]:
            return False
    return True


@kernel
def follow_nodes(
    place, index, first, last, origin, nodes, units, until, room, head, slots, order, members, rows, blk, terms
):  # fmt: skip
    """Write, for nodes on which a chunk fits in a slot, until when it fits: the start of the first slot without room.
    Add to `room`, slot by slot, the chunks of the nodes whose room has ended. `nodes` is overwritten.

    Single slots are visited only in blocks in which the room of some nodes ends, and there for all those nodes at once.
    """
    count, number = nodes.shape[0], 0
    while place < head[H_BLOCKS] and count > 0:
        block = order[place]
        passing = 0
        for i in range(count):  # nodes with room in the whole block come first
            if holds_one(block, first, last, nodes[i] - origin, blk, terms):
                nodes[i], nodes[passing] = nodes[passing], nodes[i]
                passing += 1
        size = members[block, BLOCK]
        for k in range(index, size):
            if passing == count:
                break
            row, left = members[block, k], passing
            for i in range(passing, count):
                node = nodes[i]
                if has_room(row, block, first, last, node - origin, rows, blk, terms):
                    nodes[left] = node
                    left += 1
                else:
                    until[node] = slots[row, 0]
                    room[number + k - index] += units[node]
            count = left
        number += size - index
        place, index = place + 1, 0
    for i in range(count):
        until[nodes[i]] = FOREVER


@kernel
def look_at_nodes(
    demand, now, ahead, nodes, units, until, room, scratch,
    head, slots, order, members, rows, blk, demands, kinds, segments, terms,
):  # fmt: skip
    """Write the nodes on which chunks of a demand's only kind fit now, with their number and until when one fits, and
    the chunks on nodes with room from now to the end of each of the slots `ahead`. Return the number of nodes.
    """
    kind = demands[demand, D_KIND]
    place, index = locate(head, slots, order, members, now)
    block = order[place]
    row, count, total = members[block, index], 0, 0
    for n in range(until.shape[0]):
        until[n] = now
    for k in range(ahead):
        room[k] = 0
    for segment in range(kinds[kind, K_SEG], kinds[kind + 1, K_SEG]):
        first, last, origin = segments[segment, S_TERM], segments[segment + 1, S_TERM], segments[segment, S_FIRST]
        before = count
        for n in range(segments[segment, S_LENGTH]):
            if has_room(row, block, first, last, n, rows, blk, terms):
                nodes[count] = scratch[count] = origin + n
                units[origin + n] = chunks_at(row, block, first, last, n, rows, blk, terms)
                total += units[origin + n]
                count += 1
        follow_nodes(
            place, index, first, last, origin, scratch[before:count], units, until, room,
            head, slots, order, members, rows, blk, terms,
        )  # fmt: skip
    for k in range(ahead):
        total -= room[k]
        room[k] = total
    return count


@kernel
def may_start(need, most, now, duration, start, placed, nodes, units, until):
    """Tell whether `need` chunks may fit, at most `most` on a node, for a job that starts now instead of at `start` on
    `placed`.

    A node without room until the end may still be used up to the job's own booking there, which then continues it.
    """
    end, total = now + duration, 0
    for node in nodes:
        total += min(units[node], most) * (until[node] >= end)
    if total < need and start < end:
        for e in range(placed.shape[0]):
            node = placed[e, 0]
            if start <= until[node] < end:
                total += placed[e, 2]
    return total >= need


@kernel
def next_break(now, head, slots, order, members):
    """Return the end of the slot of `now`."""
    place, index = locate(head, slots, order, members, now)
    place, index = following(place, index, order, members)
    return slots[members[order[place], index], 0] if place < head[H_BLOCKS] else FOREVER


@kernel
def compress(
    queue, begin, depth, enough, tried, chunk_of, biggest, tail, wanted,
    nodes, units, until, room, looked, scratch, times, least, counters,
    jobs, starts, spans, pool, used, memory, waits_of, waits, followers_of, followers,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Give each job of ``queue[begin:]`` an earlier start where there is one; from index `depth` on, only its earliest
    possible one.

    Returns (DONE or what must grow, index in the queue that was reached).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        demand, earliest, latest, duration, start = jobs[job, 0], jobs[job, 1], jobs[job, 2], jobs[job, 3], starts[job]
        chunk, placed = chunk_of[demand], pool[spans[job, 0] : spans[job, 0] + spans[job, 1]]
        if start <= earliest:
            continue
        if k < depth:
            if counters[C_GIVEN] < enough[job]:
                continue
            first, lack = find_gain(
                demand, chunk, earliest, duration, start, placed, wanted, tail, biggest,
                head, slots, order, members, rows, blk, srows, sblk,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
                free, buffer, columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
            enough[job] = counters[C_GIVEN] + lack
            if first < 0:
                continue
        else:
            if tried[job] == counters[C_CHANCE]:
                continue
            tried[job] = counters[C_CHANCE]
            if counters[C_AHEAD] != counters[C_STATE]:
                counters[C_AHEAD] = counters[C_STATE]
                counters[C_SLOTS] = look_ahead(earliest, times, least, head, slots, order, members, srows, sblk)
            number = slot_before(min(start, earliest + duration), times, counters[C_SLOTS])
            if not has_sums(demand, number, least, demands, sysreq):
                continue
            if chunk >= 0:
                if looked[chunk, 0] != counters[C_STATE]:
                    looked[chunk, 0] = counters[C_STATE]
                    looked[chunk, 1] = look_at_nodes(
                        demand, earliest, counters[C_SLOTS],
                        nodes[chunk], units[chunk], until[chunk], room[chunk], scratch,
                        head, slots, order, members, rows, blk, demands, kinds, segments, terms,
                    )  # fmt: skip
                kind = demands[demand, D_KIND]
                if room[chunk, number] < kinds[kind, K_NEED] or not may_start(
                    kinds[kind, K_NEED], kinds[kind, K_MOST], earliest, duration, start,
                    placed, nodes[chunk, : looked[chunk, 1]], units[chunk], until[chunk],
                ):  # fmt: skip
                    continue
            first = earliest
            jobs[job, 2] = earliest
        jobs[job, 1] = first
        code, _, moved = place_jobs(
            queue, k, k + 1, jobs, starts, spans, pool, used, memory, waits_of, waits, followers_of, followers,
            head, slots, order, members, rows, blk, srows, sblk, spare,
            demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
            free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
        )  # fmt: skip
        jobs[job, 1], jobs[job, 2] = earliest, latest
        if code != DONE:
            enough[job] = tried[job] = 0
            return code, k
        if moved:
            counters[C_GIVEN] += placed.shape[0]
            counters[C_CHANCE] += 1
            counters[C_STATE] += 1
            enough[job] = counters[C_GIVEN] + 1
    return DONE, queue.shape[0]
