"""Nodes with steps of their own: what is free on each node, and the search for a window over them.

The steps of a node are those of its own bookings, so that memory and time grow with what is booked, and not with nodes
times breakpoints. The search reads the nodes one by one and stops where it has enough of them.
"""

import numpy as np

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.axis import add_break, copy, drop_break, following, has_free, locate, shift, taken_of
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, LAZY, LOW, D, F, G, H, K, N, S
from cpsched.rusv.kernels.mapping import map_chunks, suffices
from cpsched.rusv.kernels.windows import next_window

#: Steps that are read one after the other where fewer are left.
FEW = 12
#: A node gets more room when it has less than this left; one booking adds two steps.
SLACK = 4

# --- steps ----------------------------------------------------------------------------------------------------------


@inner_kernel
def step_at(first, behind, time, steps):
    """Return the row of ``[first, behind)`` with the step of a node that holds `time`."""
    while behind - first > FEW:
        middle = (first + behind) >> 1
        if steps[middle, 0] <= time:
            first = middle
        else:
            behind = middle
    while first + 1 < behind and steps[first + 1, 0] <= time:
        first += 1
    return first


@inner_kernel
def step_of(node, time, o):
    """Return the row of a node's step that holds `time`."""
    first = o.spans[node, N.FIRST]
    return step_at(first, first + o.spans[node, N.COUNT], time, o.steps)


@kernel
def cut(node, time, o):
    """Make `time` the begin of a step of a node, and return its row; there is room for it."""
    k = step_of(node, time, o)
    if o.steps[k, 0] == time:
        return k
    for m in range(o.spans[node, N.FIRST] + o.spans[node, N.COUNT], k, -1):
        copy(o.steps[m], o.steps[m - 1])
    o.steps[k + 1, 0] = time
    o.spans[node, N.COUNT] += 1
    return k + 1


@inner_kernel
def join(node, k, o):
    """Join a step of a node with the one before it if both are equal."""
    if k == o.spans[node, N.FIRST]:
        return
    for r in range(1, o.steps.shape[1]):
        if o.steps[k, r] != o.steps[k - 1, r]:
            return
    o.spans[node, N.COUNT] -= 1
    for m in range(k, o.spans[node, N.FIRST] + o.spans[node, N.COUNT]):
        copy(o.steps[m], o.steps[m + 1])


@inner_kernel
def make_room(node, o):
    """Move the steps of a node to more rows if it has few left."""
    first, count, room = o.spans[node, N.FIRST], o.spans[node, N.COUNT], o.spans[node, N.ROOM]
    if count + SLACK <= room:
        return
    for k in range(count):
        copy(o.steps[o.used[0] + k], o.steps[first + k])
    o.spans[node, N.FIRST], o.spans[node, N.ROOM] = o.used[0], 2 * room
    o.used[0] += 2 * room


@inner_kernel
def has_space(entries, count, o):
    """Tell whether there are rows enough to take a placement twice, or to give it back and take it again."""
    lacking = 0
    for e in range(count):
        room = o.spans[entries[e, 0], N.ROOM]
        if o.spans[entries[e, 0], N.COUNT] + 2 * SLACK > room:
            lacking += 2 * room
    return o.used[0] + lacking <= o.steps.shape[0]


@kernel
def has_space_for(columns, o):
    """Tell whether there are rows enough to take some amount of node columns."""
    lacking = 0
    for k in range(columns.shape[0]):
        room = o.spans[o.node_of[columns[k]], N.ROOM]
        if o.spans[o.node_of[columns[k]], N.COUNT] + 2 * SLACK > room:
            lacking += 2 * room
    return o.used[0] + lacking <= o.steps.shape[0]


@inner_kernel
def note_gaps(node, o):
    """Note when a node has something of its first resource: see `Nodes.gaps`; all 0 where it never has any."""
    final = o.spans[node, N.FIRST] + o.spans[node, N.COUNT] - 1
    o.gaps[node, G.IDLE] = o.steps[final, 0]
    for r in range(1, o.steps.shape[1]):
        if o.steps[final, r] != o.idle[node, r]:
            o.gaps[node, G.IDLE] = FOREVER
    if o.idle.shape[1] == 1 or o.idle[node, 1] == 0:
        return
    first, soon, longest, since = o.spans[node, N.FIRST], FOREVER, np.int64(0), np.int64(-1)
    for k in range(first, first + o.spans[node, N.COUNT]):
        if o.steps[k, 1] <= 0:
            if since >= 0:
                longest = max(longest, o.steps[k, 0] - since)
            since = np.int64(-1)
        elif since < 0:
            since = o.steps[k, 0]
            soon = min(soon, since)
    o.gaps[node, G.SOON], o.gaps[node, G.LONGEST] = soon, longest
    o.gaps[node, G.LAST] = since if since >= 0 else FOREVER


@kernel
def note_all_gaps(o):
    """Note when each node has something of its first resource."""
    for node in range(o.spans.shape[0]):
        note_gaps(node, o)


@inner_kernel
def shift_node(node, start, end, sign, columns, amounts, o):
    """Add amounts of columns of a node, times `sign`, in ``[start, end)``; rows suffice, gaps are the caller's."""
    make_room(node, o)
    low = cut(node, start, o)
    high = cut(node, end, o) if end < FOREVER else o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
    for step in range(low, high):
        for c in range(columns.shape[0]):
            o.steps[step, o.place_of[columns[c]]] += sign * amounts[c]
    if end < FOREVER:
        join(node, high, o)
    join(node, low, o)


@inner_kernel
def behind_node(k, count, columns, o):
    """Return the first index behind `k`, of `count`, whose column is of another node than that at `k`."""
    behind = k + 1
    while behind < count and o.node_of[columns[behind]] == o.node_of[columns[k]]:
        behind += 1
    return behind


@kernel
def shift_nodes(start, end, sign, columns, amounts, count, o):
    """Add the first `count` amounts, times `sign`, to what is free in ``[start, end)``; there are rows enough."""
    k = 0
    while k < count:
        node, behind = o.node_of[columns[k]], behind_node(k, count, columns, o)
        shift_node(node, start, end, sign, columns[k:behind], amounts[k:behind], o)
        note_gaps(node, o)
        k = behind


@kernel
def book_all(begin, bookings, s, o):
    """Book one after another, from index `begin` on, up to the first one of which not all is free; the state has space
    for all of them. `o` are the steps of the nodes, whose gaps are the caller's; None: there are rows of all nodes.

    Returns (index that was reached, or how many there are; whether that one lacks rows for steps).
    """
    for n in range(begin, bookings.spans.shape[0]):
        start, end, number = bookings.spans[n, 0], bookings.spans[n, 1], bookings.spans[n, 2]
        taken = taken_of(number, bookings)
        columns, amounts = taken.columns, taken.amounts
        if o is not None and not has_space_for(columns, o):
            return n, True
        add_break(start, s)
        if end < FOREVER:
            add_break(end, s)
        is_free = has_free(start, end, taken.scolumns, taken.samounts, s.srows, s.sblk, s)
        if o is None:
            is_free = is_free and has_free(start, end, columns, amounts, s.rows, s.blk, s)
        else:
            is_free = is_free and free_until_by_node(start, end, columns, amounts, o) == end
        if not is_free:
            drop_break(start, s)
            if end < FOREVER:
                drop_break(end, s)
            return n, False
        if o is None:
            shift(start, end, -1, columns, amounts, taken.scolumns, taken.samounts, s)
        else:
            shift(start, end, -1, columns[:0], amounts[:0], taken.scolumns, taken.samounts, s)
            k = 0
            while k < columns.shape[0]:
                behind = behind_node(k, columns.shape[0], columns, o)
                shift_node(o.node_of[columns[k]], start, end, -1, columns[k:behind], amounts[k:behind], o)
                k = behind
    return bookings.spans.shape[0], False


@kernel
def pass_time_by_node(seconds, o):
    """Make second `seconds` the new second 0 of all nodes."""
    for node in range(o.spans.shape[0]):
        first, step = o.spans[node, N.FIRST], step_of(node, seconds, o)
        o.spans[node, N.COUNT] -= step - first
        for k in range(first, first + o.spans[node, N.COUNT]):
            if step > first:
                copy(o.steps[k], o.steps[step + k - first])
            o.steps[k, 0] -= seconds
        o.steps[first, 0] = 0
        for gap in (G.SOON, G.LAST, G.IDLE):
            if o.gaps[node, gap] < FOREVER:
                o.gaps[node, gap] = max(0, o.gaps[node, gap] - seconds)


# --- looking --------------------------------------------------------------------------------------------------------


@kernel
def least_by_node(run, start, end, target, o, t):
    """Set the columns of a run of nodes in `target` to what is free throughout ``[start, end)``."""
    first, last = t.runs[run, 2], t.runs[run + 1, 2]
    for n in range(t.runs[run, 1]):
        node = t.runs[run, 0] + n
        begin = step_of(node, start, o)
        behind = o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
        for k in range(first, last):
            column, step = t.runcols[k] + n, begin + 1
            least = o.steps[begin, o.place_of[column]]
            while step < behind and o.steps[step, 0] < end:
                least = min(least, o.steps[step, o.place_of[column]])
                step += 1
            target[column] = least


@kernel
def free_until_by_node(start, end, columns, amounts, o):
    """Return the first second of ``[start, end)`` at which not all amounts of these columns are free, or `end`."""
    until = end
    for k in range(columns.shape[0]):
        node, place = o.node_of[columns[k]], o.place_of[columns[k]]
        step, behind = step_of(node, start, o), o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
        while step < behind and o.steps[step, 0] < until:
            if o.steps[step, place] < amounts[k]:
                until = max(start, o.steps[step, 0])
                if until == start:
                    return until
            step += 1
    return until


@kernel
def spell_out_rows(s, o):
    """Fill the rows of the slots, and the minima of the blocks, with what is free of each node column; none is lazy."""
    width = o.node_of.shape[0]
    for node in range(o.spans.shape[0]):
        o.coming[node, 0] = o.spans[node, N.FIRST]
    for place in range(s.head[H.BLOCKS]):
        block = s.order[place]
        for m in range(s.members[block, BLOCK]):
            row = s.members[block, m]
            for node in range(o.spans.shape[0]):
                behind = o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
                while o.coming[node, 0] + 1 < behind and o.steps[o.coming[node, 0] + 1, 0] <= s.slots[row, 0]:
                    o.coming[node, 0] += 1
            for column in range(width):
                amount = o.steps[o.coming[o.node_of[column], 0], o.place_of[column]]
                s.rows[row, column] = amount
                s.blk[block, LOW, column] = min(amount, s.blk[block, LOW, column]) if m > 0 else amount
        for column in range(width):
            s.blk[block, LAZY, column] = 0


# --- the search -----------------------------------------------------------------------------------------------------


@inner_kernel
def has_wanted(k, terms, wanted, steps):
    """Tell whether a step has what is wanted: (column of a step, amount), `terms` of them."""
    fits = True
    for term in range(terms):
        fits &= steps[k, wanted[term, 0]] >= wanted[term, 1]
    return fits


@inner_kernel
def next_room(first, behind, start, duration, bound, terms, wanted, steps):
    """Return the first second of ``[start, bound)`` from which on a node has what is wanted for `duration`, `bound` if
    there is none.

    The node has the rows ``[first, behind)`` of `steps`; `wanted` has (column of a step, amount), `terms` of them.
    """
    k, since = step_at(first, behind, start, steps), np.int64(-1)
    while k < behind:
        if has_wanted(k, terms, wanted, steps):
            if since < 0:
                since = max(start, steps[k, 0])
            if k + 1 == behind or steps[k + 1, 0] >= since + duration:
                return since
        else:
            since = -1
            if k + 1 < behind and steps[k + 1, 0] >= bound:
                return bound
        k += 1
    return bound


@inner_kernel
def want_chunks(chunks, first, last, o, t):
    """Write what some chunks want of a node, each the terms ``[first, last)``; return the number of rows."""
    for term in range(first, last):
        o.wanted[term - first, 0] = o.place_of[t.terms[term, 0]]
        o.wanted[term - first, 1] = chunks * t.terms[term, 1]
    return last - first


@inner_kernel
def want_all(node, o):
    """Write what an idle node has; return the number of rows."""
    terms = o.idle.shape[1] - 1
    for term in range(terms):
        o.wanted[term, 0], o.wanted[term, 1] = term + 1, o.idle[node, term + 1]
    return terms


@inner_kernel
def chunks_by_node(node, start, duration, most, first, last, o, t):
    """Return how many chunks, at most `most`, fit on a node throughout a window."""
    row, behind = o.spans[node, N.FIRST], o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
    begin, end = step_at(row, behind, start, o.steps), start + duration
    for term in range(first, last):
        place, step = o.place_of[t.terms[term, 0]], begin + 1
        least = o.steps[begin, place]
        while step < behind and o.steps[step, 0] < end:
            least = min(least, o.steps[step, place])
            step += 1
        if least < most * t.terms[term, 1]:  # a division costs more
            most = least // t.terms[term, 1]
    return most


@inner_kernel
def chunks_on_idle(node, most, first, last, o, t):
    """Return how many chunks, at most `most`, fit on an idle node."""
    for term in range(first, last):
        there = o.idle[node, o.place_of[t.terms[term, 0]]]
        if there < most * t.terms[term, 1]:
            most = there // t.terms[term, 1]
    return most


@inner_kernel
def push(time, chunks, size, coming):
    """Add to a heap of `size` (second, chunks), the latest second first."""
    k = size
    while k > 0 and coming[(k - 1) >> 1, 0] < time:
        up = (k - 1) >> 1
        coming[k, 0], coming[k, 1] = coming[up, 0], coming[up, 1]
        k = up
    coming[k, 0], coming[k, 1] = time, chunks


@inner_kernel
def pop(size, coming):
    """Take the latest second from a heap of `size`."""
    size -= 1
    time, chunks = coming[size, 0], coming[size, 1]
    k, down = 0, 1
    while down < size:
        if down + 1 < size and coming[down + 1, 0] > coming[down, 0]:
            down += 1
        if coming[down, 0] <= time:
            break
        coming[k, 0], coming[k, 1] = coming[down, 0], coming[down, 1]
        k, down = down, 2 * down + 1
    coming[k, 0], coming[k, 1] = time, chunks


@inner_kernel
def wants_first(terms, wanted):
    """Tell whether something of the first resource is wanted."""
    for term in range(terms):
        if wanted[term, 0] == 1 and wanted[term, 1] > 0:
            return True
    return False


@inner_kernel
def find_chunks(kind, start, duration, latest, whole, o, t, x):
    """Find nodes for the chunks of a kind in the window from `start` on, cheap nodes first.

    Where there are too few, each node says from when on it may have more. No window begins before these are enough.

    Returns (start, number of entries) if there are enough; else (first second at which there may be, 0); or (-1, 0)
    if there is none up to `latest`: then `lacking` says how many nodes must at least give something back before.
    """
    need, most = t.kinds[kind, K.NEED], t.kinds[kind, K.MOST]
    have, awaited, size, count, bound = 0, 0, 0, 0, latest + 1
    for segment in range(t.kinds[kind, K.SEG], t.kinds[kind, K.BEHIND]):
        first, last = t.segments[segment, S.TERM], t.segments[segment + 1, S.TERM]
        node, terms = t.segments[segment, S.FIRST], want_chunks(1, first, last, o, t)
        has_gaps = whole or wants_first(terms, o.wanted)
        for n in range(node, node + t.segments[segment, S.LENGTH]):
            is_short = o.gaps[n, G.LONGEST] < duration or o.gaps[n, G.SOON] >= bound
            if has_gaps and is_short and o.gaps[n, G.LAST] >= bound:
                continue  # most nodes of a busy machine
            if whole:
                terms = want_all(n, o)
            row = o.spans[n, N.FIRST]
            behind = row + o.spans[n, N.COUNT]
            k = row if row + 1 == behind or o.steps[row + 1, 0] > start else step_at(row, behind, start, o.steps)
            if o.steps[k, o.wanted[0, 0]] < o.wanted[0, 1] and (k + 1 == behind or o.steps[k + 1, 0] >= bound):
                continue  # a call costs more
            since = next_room(k, behind, start, duration, bound, terms, o.wanted, o.steps)
            more = chunks_on_idle(n, most, first, last, o, t)
            if since >= bound or more == 0:
                continue
            if since == start:
                held = more
                if more > 1 and not whole:
                    held = chunks_by_node(n, start, duration, most, first, last, o, t)
                x.entries[count, 0], x.entries[count, 1], x.entries[count, 2] = n, kind, min(held, need - have)
                count += 1
                have += held
                if have >= need:
                    return start, count
                more -= held
                if more > 0:
                    terms = want_chunks(held + 1, first, last, o, t)
                    since = next_room(k, behind, start, duration, bound, terms, o.wanted, o.steps)
                    terms = want_chunks(1, first, last, o, t)
            if more > 0 and since < bound:
                push(since, more, size, o.coming)
                size += 1
                awaited += more
            while size > 0 and have + awaited - o.coming[0, 1] >= need:
                awaited -= o.coming[0, 1]
                pop(size, o.coming)
                size -= 1
            if have + awaited >= need:
                bound = o.coming[0, 0]
    if have + awaited >= need:
        return bound, 0
    o.lacking[0] = (need - have - awaited + most - 1) // most
    return -1, 0


@inner_kernel
def find_kinds(demand, start, duration, latest, o, t, x):
    """Find nodes for each kind of chunks by itself, as `find_chunks` does; the entries are those of the last kind."""
    whole, count = t.demands[demand, D.FLAGS] & F.EXCLUSIVE, 0
    for kind in range(t.demands[demand, D.KIND], t.demands[demand + 1, D.KIND]):
        found, count = find_chunks(kind, start, duration, latest, whole, o, t, x)
        if found != start:
            return found, 0
    return start, count


@inner_kernel
def room_by_node(kind, start, duration, enough, whole, o, t):
    """Return how many chunks of a kind fit throughout a window; where these are `enough`, so many or more."""
    most, room = t.kinds[kind, K.MOST], 0
    for segment in range(t.kinds[kind, K.SEG], t.kinds[kind, K.BEHIND]):
        first, last = t.segments[segment, S.TERM], t.segments[segment + 1, S.TERM]
        node, terms = t.segments[segment, S.FIRST], want_chunks(1, first, last, o, t)
        idle = room  # each idle node has room for one
        for n in range(node, node + t.segments[segment, S.LENGTH]):
            idle += o.gaps[n, G.IDLE] <= start
        if idle >= enough:
            return idle
        has_gaps = whole or wants_first(terms, o.wanted)
        for n in range(node, node + t.segments[segment, S.LENGTH]):
            is_short = o.gaps[n, G.LONGEST] < duration or o.gaps[n, G.SOON] > start
            if has_gaps and is_short and o.gaps[n, G.LAST] > start:
                continue  # as in find_chunks
            if not whole:
                room += max(0, chunks_by_node(n, start, duration, most, first, last, o, t))
            else:
                row, terms = o.spans[n, N.FIRST], want_all(n, o)
                behind = row + o.spans[n, N.COUNT]
                if next_room(row, behind, start, duration, start + 1, terms, o.wanted, o.steps) == start:
                    room += chunks_on_idle(n, most, first, last, o, t)
            if room >= enough:
                return room
    return room


@inner_kernel
def find_in_groups(demand, start, duration, latest, o, t, x):
    """Find nodes for each kind by itself in one group of nodes, as `find_kinds`; the group that begins earliest, and of
    several that do from `start` on, for one kind, that with the least room left.
    """
    soon, count, attempt = np.int64(-1), 0, t.demands[demand, D.OTHERWISE]
    tight, least, whole = np.int64(-1), np.int64(FOREVER), t.demands[demand, D.FLAGS] & F.EXCLUSIVE
    while attempt >= 0:
        kind = t.demands[attempt, D.KIND]
        if soon != start:
            found, here = find_kinds(attempt, start, duration, latest if soon < 0 else soon - 1, o, t, x)
            if found >= 0:
                soon, count = found, here
        if soon == start and t.demands[demand, D.FLAGS] & F.JOINT:
            break
        if soon == start:
            room = room_by_node(kind, start, duration, least, whole, o, t)
            if t.kinds[kind, K.NEED] <= room < least:
                tight, least = attempt, room
                if room == t.kinds[kind, K.NEED]:
                    break  # no group has less
        attempt = t.demands[attempt, D.OTHERWISE]
    if tight >= 0:
        _, count = find_kinds(tight, start, duration, start, o, t, x)
    o.lacking[0] = 1  # of each group something else is known
    return soon, count


@inner_kernel
def map_kinds(demand, start, duration, o, t, x):
    """Map all kinds of a demand, also in its other orders; return the number of entries, 0 if none succeeds."""
    attempt = demand
    while attempt >= 0:
        for k in range(t.demands[demand, D.REACH], t.demands[demand + 1, D.REACH]):
            least_by_node(t.reach[k], start, start + duration, x.free[0], o, t)
        if not suffices(demand, x.free[0], x.buffer, t):
            return 0
        count = map_chunks(attempt, x.free[0], t, x)
        if count > 0:
            return count
        attempt = t.demands[attempt, D.OTHERWISE]
    return 0


@kernel
def earliest_fit_by_node(demand, start, duration, latest, s, o, t, x):
    """Find what `earliest_fit` finds, on a timeline whose nodes have steps of their own.

    Where no window is found, `lacking` has a lower bound on the nodes that must give something back before there is
    one, where the nodes are what was lacking; else it is left as it is.
    """
    is_joint, first = t.demands[demand, D.FLAGS] & (F.JOINT | F.PARTED), start
    while True:
        place, index = locate(start, s)
        start, place, index, _, _ = next_window(demand, start, duration, latest, place, index, place, index, s, t)
        if start < 0:
            return -1, 0
        if t.demands[demand, D.FLAGS] & (F.WITHIN | F.PARTED) == F.WITHIN:
            found, count = find_in_groups(demand, start, duration, latest, o, t, x)
        else:
            found, count = find_kinds(demand, start, duration, latest, o, t, x)
        if found < 0:
            if start > first:
                o.lacking[0] = 1  # nothing is said of the windows that begin before
            return -1, 0
        if found > start:
            start = found
            continue
        if is_joint:
            count = map_kinds(demand, start, duration, o, t, x)
        if count > 0:
            return start, count
        place, index = following(place, index, s)
        if place == s.head[H.BLOCKS]:
            return -1, 0
        start = s.slots[s.members[s.order[place], index], 0]
