"""The kernels of `compression.py`, which owns shapes and checks."""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import (
    BLOCK,
    D_KIND,
    DONE,
    H_BLOCKS,
    K_MOST,
    K_NEED,
    K_SEG,
    LAZY,
    LOW,
    S_FIRST,
    S_LENGTH,
    S_TERM,
    following,
    is_good,
    last_bad,
    locate,
    next_good,
    place_jobs,
)
from cpsched.rusv.vector import FOREVER


@kernel
def may_gain(
    demand, earliest, duration, start, until, head, slots, order, members, srows, sblk, demands, sysreq
):  # fmt: skip
    """Tell whether the sums over the system let a job, booked from `start` on, begin before that, and before `until`.

    What it has booked itself is no obstacle: so what lies in its own booking need not be looked at.
    """
    place, index = locate(head, slots, order, members, earliest)
    if until == earliest + 1 and not is_good(order[place], index, demand, members, srows, sblk, demands, sysreq):
        return False
    while True:
        place, index = next_good(demand, place, index, head, order, members, srows, sblk, demands, sysreq)
        if place < 0:
            return False
        begin = max(earliest, slots[members[order[place], index], 0])
        if begin >= start or begin >= until:
            return False
        last_place, last_index = locate(head, slots, order, members, min(begin + duration, start) - 1)
        bad_place, bad_index = last_bad(
            demand, last_place, last_index, place, index, order, members, srows, sblk, demands, sysreq
        )
        if bad_place < 0:
            return True
        place, index = following(bad_place, bad_index, order, members)
        if place == head[H_BLOCKS]:
            return False


@kernel
def chunks_at(row, block, first, last, node, most, rows, blk, terms):
    """Return how many chunks fit on a node in one slot."""
    units = most
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
def follow_nodes(place, index, first, last, origin, nodes, until, head, slots, order, members, rows, blk, terms):
    """Write for nodes on which a chunk fits in a slot until when it does: the start of the first slot in which it does
    not. `nodes` is used up.

    Slots are gone through one by one only in blocks where it ends, and there with all those nodes side by side.
    """
    count = nodes.shape[0]
    while place < head[H_BLOCKS] and count > 0:
        block = order[place]
        passing = 0
        for i in range(count):  # who has room in the whole block comes first
            if holds_one(block, first, last, nodes[i] - origin, blk, terms):
                nodes[i], nodes[passing] = nodes[passing], nodes[i]
                passing += 1
        while index < members[block, BLOCK] and passing < count:
            row, left = members[block, index], passing
            for i in range(passing, count):
                node = nodes[i]
                if chunks_at(row, block, first, last, node - origin, 1, rows, blk, terms) > 0:
                    nodes[left] = node
                    left += 1
                else:
                    until[node] = slots[row, 0]
            count = left
            index += 1
        place, index = place + 1, 0
    for i in range(count):
        until[nodes[i]] = FOREVER


@kernel
def look_at_nodes(
    demand, now, nodes, units, until, scratch, head, slots, order, members, rows, blk, demands, kinds, segments, terms
):  # fmt: skip
    """Write on which nodes chunks of a demand's only kind fit now; how many; and for each node until when one does.
    Return on how many nodes.
    """
    kind = demands[demand, D_KIND]
    place, index = locate(head, slots, order, members, now)
    block = order[place]
    row, count = members[block, index], 0
    for n in range(until.shape[0]):
        until[n] = now
    for segment in range(kinds[kind, K_SEG], kinds[kind + 1, K_SEG]):
        first, last, origin = segments[segment, S_TERM], segments[segment + 1, S_TERM], segments[segment, S_FIRST]
        before = count
        for n in range(segments[segment, S_LENGTH]):
            found = chunks_at(row, block, first, last, n, FOREVER, rows, blk, terms)
            if found > 0:
                nodes[count], units[origin + n], scratch[count] = origin + n, found, origin + n
                count += 1
        follow_nodes(
            place, index, first, last, origin, scratch[before:count], until,
            head, slots, order, members, rows, blk, terms,
        )  # fmt: skip
    return count


@kernel
def may_start(need, most, now, duration, start, entries, count, nodes, units, until):
    """Tell whether `need` chunks may fit, `most` on a node, for a job that starts now, and was to start on `entries` at
    `start`.

    On a node that has no room until the end, it can stand up to its own booking, and go on there.
    """
    end, total = now + duration, 0
    for node in nodes:
        total += min(units[node], most) * (until[node] >= end)
    if total < need and start < end:
        for e in range(count):
            node = entries[e, 0]
            if start <= until[node] < end:
                total += entries[e, 2]
    return total >= need


@kernel
def compress(
    queue, begin, depth, unseen, chunk_of, nodes, units, until, scratch, stamp,
    jobs, starts, spans, pool, used, memory, waits_of, waits, followers_of, followers,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Give each of ``queue[begin:]`` that can gain an earlier start; from the place `depth` on, only its earliest
    possible one.

    `stamp` has the state that counts, and for each kind of chunk the one in which nodes were looked at, and how many
    have room. Returns (DONE or what must grow, place in the queue that was reached).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        demand, earliest, latest, duration, start = jobs[job, 0], jobs[job, 1], jobs[job, 2], jobs[job, 3], starts[job]
        before, chunk = unseen[job], chunk_of[demand]
        if start <= earliest or before <= earliest:
            continue
        if k < depth or chunk < 0:
            before = before if k < depth else earliest + 1
            can_gain = may_gain(
                demand, earliest, duration, start, before, head, slots, order, members, srows, sblk, demands, sysreq
            )
        else:
            before = earliest + 1
            place, index = locate(head, slots, order, members, earliest)
            can_gain = is_good(order[place], index, demand, members, srows, sblk, demands, sysreq)
            if can_gain and stamp[chunk, 0] != stamp[-1, 0]:
                stamp[chunk, 0] = stamp[-1, 0]
                stamp[chunk, 1] = look_at_nodes(
                    demand, earliest, nodes[chunk], units[chunk], until[chunk], scratch,
                    head, slots, order, members, rows, blk, demands, kinds, segments, terms,
                )  # fmt: skip
            kind = demands[demand, D_KIND]
            can_gain = can_gain and may_start(
                kinds[kind, K_NEED], kinds[kind, K_MOST], earliest, duration, start,
                pool[spans[job, 0] :], spans[job, 1], nodes[chunk, : stamp[chunk, 1]], units[chunk], until[chunk],
            )  # fmt: skip
        if can_gain:
            jobs[job, 2] = min(latest, before - 1)
            code, _, moved = place_jobs(
                queue, k, k + 1, jobs, starts, spans, pool, used, memory, waits_of, waits, followers_of, followers,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
                free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
            jobs[job, 2] = latest
            if code != DONE:
                return code, k
            if moved:
                stamp[-1, 0] += 1
                for other in queue:
                    unseen[other] = max(unseen[other], start + duration)
        if k < depth:
            unseen[job] = 0
    return DONE, queue.shape[0]
