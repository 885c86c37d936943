"""Nodes with steps of their own: what is free on each node, and the search for a window over them.

The steps of a node are those of its own bookings, so that memory and time grow with what is booked, and not with nodes
times breakpoints. The search reads the nodes one by one and stops where it has enough of them.
"""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Bookings, Nodes, Scratch, Tables, TimelineState
from cpsched.rusv.kernels.axis import add_break, copy, drop_break, following, free_until, locate, shift, taken_of
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, INT64, LAZY, LOW, D, F, G, H, K, N, S
from cpsched.rusv.kernels.mapping import map_chunks, suffices
from cpsched.rusv.kernels.windows import next_window

#: Steps that are read one after the other where fewer are left.
FEW = 12
#: A node gets more room when it has less than this left; one booking adds two steps.
SLACK = 4

# --- steps ----------------------------------------------------------------------------------------------------------


@inner_kernel
def step_at(first: int, behind: int, time: int, steps: Array) -> int:
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
def step_of(node: int, time: int, nodes: Nodes) -> int:
    """Return the row of a node's step that holds `time`."""
    first = nodes.spans[node, N.FIRST]
    return step_at(first, first + nodes.spans[node, N.COUNT], time, nodes.steps)


@kernel
def cut(node: int, time: int, nodes: Nodes) -> int:
    """Make `time` the begin of a step of a node, and return its row; there is room for it."""
    k = step_of(node, time, nodes)
    if nodes.steps[k, 0] == time:
        return k
    for m in range(nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT], k, -1):
        copy(nodes.steps[m], nodes.steps[m - 1])
    nodes.steps[k + 1, 0] = time
    nodes.spans[node, N.COUNT] += 1
    return k + 1


@inner_kernel
def join(node: int, step: int, nodes: Nodes) -> None:
    """Join a step of a node with the one before it if both are equal."""
    if step == nodes.spans[node, N.FIRST]:
        return
    for r in range(1, nodes.steps.shape[1]):
        if nodes.steps[step, r] != nodes.steps[step - 1, r]:
            return
    nodes.spans[node, N.COUNT] -= 1
    for m in range(step, nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]):
        copy(nodes.steps[m], nodes.steps[m + 1])


@inner_kernel
def make_room(node: int, nodes: Nodes) -> None:
    """Move the steps of a node to more rows if it has few left."""
    first, count, room = nodes.spans[node, N.FIRST], nodes.spans[node, N.COUNT], nodes.spans[node, N.ROOM]
    if count + SLACK <= room:
        return
    for k in range(count):
        copy(nodes.steps[nodes.used[0] + k], nodes.steps[first + k])
    nodes.spans[node, N.FIRST], nodes.spans[node, N.ROOM] = nodes.used[0], 2 * room
    nodes.used[0] += 2 * room


@inner_kernel
def has_space(entries: Array, count: int, nodes: Nodes) -> bool:
    """Tell whether there are rows enough to take a placement twice, or to give it back and take it again."""
    lacking = 0
    for e in range(count):
        room = nodes.spans[entries[e, 0], N.ROOM]
        if nodes.spans[entries[e, 0], N.COUNT] + 2 * SLACK > room:
            lacking += 2 * room
    return nodes.used[0] + lacking <= nodes.steps.shape[0]


@kernel
def has_space_for(columns: Array, nodes: Nodes) -> bool:
    """Tell whether there are rows enough to take some amount of node columns."""
    lacking = 0
    for k in range(columns.shape[0]):
        room = nodes.spans[nodes.node_of[columns[k]], N.ROOM]
        if nodes.spans[nodes.node_of[columns[k]], N.COUNT] + 2 * SLACK > room:
            lacking += 2 * room
    return nodes.used[0] + lacking <= nodes.steps.shape[0]


@inner_kernel
def note_gaps(node: int, nodes: Nodes) -> None:
    """Note when a node has something of its first resource: see `Nodes.gaps`; all 0 where it never has any."""
    final = nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT] - 1
    nodes.gaps[node, G.IDLE] = nodes.steps[final, 0]
    for r in range(1, nodes.steps.shape[1]):
        if nodes.steps[final, r] != nodes.idle[node, r]:
            nodes.gaps[node, G.IDLE] = FOREVER
    if nodes.idle.shape[1] == 1 or nodes.idle[node, 1] == 0:
        return
    first, soon, longest, since = nodes.spans[node, N.FIRST], FOREVER, INT64(0), INT64(-1)
    for k in range(first, first + nodes.spans[node, N.COUNT]):
        if nodes.steps[k, 1] <= 0:
            if since >= 0:
                longest = max(longest, nodes.steps[k, 0] - since)
            since = INT64(-1)
        elif since < 0:
            since = nodes.steps[k, 0]
            soon = min(soon, since)
    nodes.gaps[node, G.SOON], nodes.gaps[node, G.LONGEST] = soon, longest
    nodes.gaps[node, G.LAST] = since if since >= 0 else FOREVER


@kernel
def note_all_gaps(nodes: Nodes) -> None:
    """Note when each node has something of its first resource."""
    for node in range(nodes.spans.shape[0]):
        note_gaps(node, nodes)


@inner_kernel
def shift_node(node: int, start: int, end: int, sign: int, columns: Array, amounts: Array, nodes: Nodes) -> None:
    """Add amounts of columns of a node, times `sign`, in ``[start, end)``; rows suffice, gaps are the caller's."""
    make_room(node, nodes)
    low = cut(node, start, nodes)
    high = cut(node, end, nodes) if end < FOREVER else nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
    for step in range(low, high):
        for c in range(columns.shape[0]):
            nodes.steps[step, nodes.place_of[columns[c]]] += sign * amounts[c]
    if end < FOREVER:
        join(node, high, nodes)
    join(node, low, nodes)


@inner_kernel
def behind_node(index: int, count: int, columns: Array, nodes: Nodes) -> int:
    """Return the first index behind one, of `count`, whose column is of another node."""
    behind = index + 1
    while behind < count and nodes.node_of[columns[behind]] == nodes.node_of[columns[index]]:
        behind += 1
    return behind


@kernel
def shift_nodes(start: int, end: int, sign: int, columns: Array, amounts: Array, count: int, nodes: Nodes) -> None:
    """Add the first `count` amounts, times `sign`, to what is free in ``[start, end)``; there are rows enough."""
    k = 0
    while k < count:
        node, behind = nodes.node_of[columns[k]], behind_node(k, count, columns, nodes)
        shift_node(node, start, end, sign, columns[k:behind], amounts[k:behind], nodes)
        note_gaps(node, nodes)
        k = behind


@kernel
def book_all(begin: int, bookings: Bookings, timeline: TimelineState, nodes: Nodes | None) -> tuple[int, bool]:
    """Book one after another, from index `begin` on, up to the first one of which not all is free; the state has space
    for all of them. `nodes` are the steps of the nodes, whose gaps are the caller's; None: there are rows of all nodes.

    Returns (index that was reached, or how many there are; whether that one lacks rows for steps).
    """
    for n in range(begin, bookings.spans.shape[0]):
        start, end, number = bookings.spans[n, 0], bookings.spans[n, 1], bookings.spans[n, 2]
        taken = taken_of(number, bookings)
        columns, amounts = taken.columns, taken.amounts
        if nodes is not None and not has_space_for(columns, nodes):
            return n, True
        add_break(start, timeline)
        if end < FOREVER:
            add_break(end, timeline)
        until = free_until(start, end, taken.scolumns, taken.samounts, timeline.srows, timeline.sblk, timeline)
        if nodes is None:
            until = free_until(start, until, columns, amounts, timeline.rows, timeline.blk, timeline)
        else:
            until = free_until_by_node(start, until, columns, amounts, nodes)
        if until < end:
            drop_break(start, timeline)
            if end < FOREVER:
                drop_break(end, timeline)
            return n, False
        if nodes is None:
            shift(start, end, -1, columns, amounts, taken.scolumns, taken.samounts, timeline)
        else:
            shift(start, end, -1, columns[:0], amounts[:0], taken.scolumns, taken.samounts, timeline)
            k = 0
            while k < columns.shape[0]:
                behind = behind_node(k, columns.shape[0], columns, nodes)
                shift_node(nodes.node_of[columns[k]], start, end, -1, columns[k:behind], amounts[k:behind], nodes)
                k = behind
    return bookings.spans.shape[0], False


@kernel
def pass_time_by_node(seconds: int, nodes: Nodes) -> None:
    """Make second `seconds` the new second 0 of all nodes."""
    for node in range(nodes.spans.shape[0]):
        first, step = nodes.spans[node, N.FIRST], step_of(node, seconds, nodes)
        nodes.spans[node, N.COUNT] -= step - first
        for k in range(first, first + nodes.spans[node, N.COUNT]):
            if step > first:
                copy(nodes.steps[k], nodes.steps[step + k - first])
            nodes.steps[k, 0] -= seconds
        nodes.steps[first, 0] = 0
        for gap in (G.SOON, G.LAST, G.IDLE):
            if nodes.gaps[node, gap] < FOREVER:
                nodes.gaps[node, gap] = max(0, nodes.gaps[node, gap] - seconds)


# --- looking --------------------------------------------------------------------------------------------------------


@kernel
def least_by_node(run: int, start: int, end: int, target: Array, nodes: Nodes, tables: Tables) -> None:
    """Set the columns of a run of nodes in `target` to what is free throughout ``[start, end)``."""
    first, last = tables.runs[run, 2], tables.runs[run + 1, 2]
    for n in range(tables.runs[run, 1]):
        node = tables.runs[run, 0] + n
        begin = step_of(node, start, nodes)
        behind = nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
        for k in range(first, last):
            column, step = tables.runcols[k] + n, begin + 1
            least = nodes.steps[begin, nodes.place_of[column]]
            while step < behind and nodes.steps[step, 0] < end:
                least = min(least, nodes.steps[step, nodes.place_of[column]])
                step += 1
            target[column] = least


@kernel
def free_until_by_node(start: int, end: int, columns: Array, amounts: Array, nodes: Nodes) -> int:
    """Return the first second of ``[start, end)`` at which not all amounts of these columns are free, or `end`."""
    until = end
    for k in range(columns.shape[0]):
        node, place = nodes.node_of[columns[k]], nodes.place_of[columns[k]]
        step, behind = step_of(node, start, nodes), nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
        while step < behind and nodes.steps[step, 0] < until:
            if nodes.steps[step, place] < amounts[k]:
                until = max(start, nodes.steps[step, 0])
                if until == start:
                    return until
            step += 1
    return until


@kernel
def spell_out_rows(timeline: TimelineState, nodes: Nodes) -> None:
    """Fill the rows of the slots, and the minima of the blocks, with what is free of each node column; none is lazy."""
    width = nodes.node_of.shape[0]
    for node in range(nodes.spans.shape[0]):
        nodes.coming[node, 0] = nodes.spans[node, N.FIRST]
    for place in range(timeline.head[H.BLOCKS]):
        block = timeline.order[place]
        for m in range(timeline.members[block, BLOCK]):
            row = timeline.members[block, m]
            for node in range(nodes.spans.shape[0]):
                behind = nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
                while (
                    nodes.coming[node, 0] + 1 < behind
                    and nodes.steps[nodes.coming[node, 0] + 1, 0] <= timeline.slots[row, 0]
                ):
                    nodes.coming[node, 0] += 1
            for column in range(width):
                amount = nodes.steps[nodes.coming[nodes.node_of[column], 0], nodes.place_of[column]]
                timeline.rows[row, column] = amount
                timeline.blk[block, LOW, column] = min(amount, timeline.blk[block, LOW, column]) if m > 0 else amount
        for column in range(width):
            timeline.blk[block, LAZY, column] = 0


# --- the search -----------------------------------------------------------------------------------------------------


@inner_kernel
def has_wanted(step: int, terms: int, wanted: Array, steps: Array) -> bool:
    """Tell whether a step has what is wanted: (column of a step, amount), `terms` of them."""
    fits = True
    for term in range(terms):
        fits &= steps[step, wanted[term, 0]] >= wanted[term, 1]
    return fits


@inner_kernel
def next_room(
    first: int, behind: int, start: int, duration: int, bound: int, terms: int, wanted: Array, steps: Array
) -> int:
    """Return the first second of ``[start, bound)`` from which on a node has what is wanted for `duration`, `bound` if
    there is none.

    The node has the rows ``[first, behind)`` of `steps`; `wanted` has (column of a step, amount), `terms` of them.
    """
    k, since = step_at(first, behind, start, steps), INT64(-1)
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
def want_chunks(chunks: int, first: int, last: int, nodes: Nodes, tables: Tables) -> int:
    """Write what some chunks want of a node, each the terms ``[first, last)``; return the number of rows."""
    for term in range(first, last):
        nodes.wanted[term - first, 0] = nodes.place_of[tables.terms[term, 0]]
        nodes.wanted[term - first, 1] = chunks * tables.terms[term, 1]
    return last - first


@inner_kernel
def want_all(node: int, nodes: Nodes) -> int:
    """Write what an idle node has; return the number of rows."""
    terms = nodes.idle.shape[1] - 1
    for term in range(terms):
        nodes.wanted[term, 0], nodes.wanted[term, 1] = term + 1, nodes.idle[node, term + 1]
    return terms


@inner_kernel
def chunks_by_node(
    node: int, start: int, duration: int, most: int, first: int, last: int, nodes: Nodes, tables: Tables
) -> int:
    """Return how many chunks, at most `most`, fit on a node throughout a window."""
    row, behind = nodes.spans[node, N.FIRST], nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
    begin, end = step_at(row, behind, start, nodes.steps), start + duration
    for term in range(first, last):
        place, step = nodes.place_of[tables.terms[term, 0]], begin + 1
        least = nodes.steps[begin, place]
        while step < behind and nodes.steps[step, 0] < end:
            least = min(least, nodes.steps[step, place])
            step += 1
        if least < most * tables.terms[term, 1]:  # a division costs more
            most = least // tables.terms[term, 1]
    return most


@inner_kernel
def chunks_on_idle(node: int, most: int, first: int, last: int, nodes: Nodes, tables: Tables) -> int:
    """Return how many chunks, at most `most`, fit on an idle node."""
    for term in range(first, last):
        there = nodes.idle[node, nodes.place_of[tables.terms[term, 0]]]
        if there < most * tables.terms[term, 1]:
            most = there // tables.terms[term, 1]
    return most


@inner_kernel
def push(time: int, chunks: int, size: int, coming: Array) -> None:
    """Add to a heap of `size` (second, chunks), the latest second first."""
    k = size
    while k > 0 and coming[(k - 1) >> 1, 0] < time:
        up = (k - 1) >> 1
        coming[k, 0], coming[k, 1] = coming[up, 0], coming[up, 1]
        k = up
    coming[k, 0], coming[k, 1] = time, chunks


@inner_kernel
def pop(size: int, coming: Array) -> None:
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
def wants_first(terms: int, wanted: Array) -> bool:
    """Tell whether something of the first resource is wanted."""
    for term in range(terms):
        if wanted[term, 0] == 1 and wanted[term, 1] > 0:
            return True
    return False


@inner_kernel
def find_chunks(
    kind: int, start: int, duration: int, latest: int, whole: int, nodes: Nodes, tables: Tables, scratch: Scratch
) -> tuple[int, int]:
    """Find nodes for the chunks of a kind in the window from `start` on, cheap nodes first.

    Where there are too few, each node says from when on it may have more. No window begins before these are enough.

    Returns (start, number of entries) if there are enough; else (first second at which there may be, 0); or (-1, 0)
    if there is none up to `latest`: then `lacking` says how many nodes must at least give something back before.
    """
    need, most = tables.kinds[kind, K.NEED], tables.kinds[kind, K.MOST]
    have, awaited, size, count, bound = 0, 0, 0, 0, latest + 1
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
        node, terms = tables.segments[segment, S.FIRST], want_chunks(1, first, last, nodes, tables)
        has_gaps = whole or wants_first(terms, nodes.wanted)
        for n in range(node, node + tables.segments[segment, S.LENGTH]):
            is_short = nodes.gaps[n, G.LONGEST] < duration or nodes.gaps[n, G.SOON] >= bound
            if has_gaps and is_short and nodes.gaps[n, G.LAST] >= bound:
                continue  # most nodes of a busy machine
            if whole:
                terms = want_all(n, nodes)
            row = nodes.spans[n, N.FIRST]
            behind = row + nodes.spans[n, N.COUNT]
            k = (
                row
                if row + 1 == behind or nodes.steps[row + 1, 0] > start
                else step_at(row, behind, start, nodes.steps)
            )
            if nodes.steps[k, nodes.wanted[0, 0]] < nodes.wanted[0, 1] and (
                k + 1 == behind or nodes.steps[k + 1, 0] >= bound
            ):
                continue  # a call costs more
            since = next_room(k, behind, start, duration, bound, terms, nodes.wanted, nodes.steps)
            more = chunks_on_idle(n, most, first, last, nodes, tables)
            if since >= bound or more == 0:
                continue
            if since == start:
                held = more
                if more > 1 and not whole:
                    held = chunks_by_node(n, start, duration, most, first, last, nodes, tables)
                scratch.entries[count, 0], scratch.entries[count, 1], scratch.entries[count, 2] = (
                    n,
                    kind,
                    min(held, need - have),
                )
                count += 1
                have += held
                if have >= need:
                    return start, count
                more -= held
                if more > 0:
                    terms = want_chunks(held + 1, first, last, nodes, tables)
                    since = next_room(k, behind, start, duration, bound, terms, nodes.wanted, nodes.steps)
                    terms = want_chunks(1, first, last, nodes, tables)
            if more > 0 and since < bound:
                push(since, more, size, nodes.coming)
                size += 1
                awaited += more
            while size > 0 and have + awaited - nodes.coming[0, 1] >= need:
                awaited -= nodes.coming[0, 1]
                pop(size, nodes.coming)
                size -= 1
            if have + awaited >= need:
                bound = nodes.coming[0, 0]
    if have + awaited >= need:
        return bound, 0
    nodes.lacking[0] = (need - have - awaited + most - 1) // most
    return -1, 0


@inner_kernel
def find_kinds(
    demand: int, start: int, duration: int, latest: int, nodes: Nodes, tables: Tables, scratch: Scratch
) -> tuple[int, int]:
    """Find nodes for each kind of chunks by itself, as `find_chunks` does; the entries are those of the last kind."""
    whole, count = tables.demands[demand, D.FLAGS] & F.EXCLUSIVE, 0
    for kind in range(tables.demands[demand, D.KIND], tables.demands[demand + 1, D.KIND]):
        found, count = find_chunks(kind, start, duration, latest, whole, nodes, tables, scratch)
        if found != start:
            return found, 0
    return start, count


@inner_kernel
def room_by_node(kind: int, start: int, duration: int, enough: int, whole: int, nodes: Nodes, tables: Tables) -> int:
    """Return how many chunks of a kind fit throughout a window; where these are `enough`, so many or more."""
    most, room = tables.kinds[kind, K.MOST], 0
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
        node, terms = tables.segments[segment, S.FIRST], want_chunks(1, first, last, nodes, tables)
        idle = room  # each idle node has room for one
        for n in range(node, node + tables.segments[segment, S.LENGTH]):
            idle += nodes.gaps[n, G.IDLE] <= start
        if idle >= enough:
            return idle
        has_gaps = whole or wants_first(terms, nodes.wanted)
        for n in range(node, node + tables.segments[segment, S.LENGTH]):
            is_short = nodes.gaps[n, G.LONGEST] < duration or nodes.gaps[n, G.SOON] > start
            if has_gaps and is_short and nodes.gaps[n, G.LAST] > start:
                continue  # as in find_chunks
            if not whole:
                room += max(0, chunks_by_node(n, start, duration, most, first, last, nodes, tables))
            else:
                row, terms = nodes.spans[n, N.FIRST], want_all(n, nodes)
                behind = row + nodes.spans[n, N.COUNT]
                if next_room(row, behind, start, duration, start + 1, terms, nodes.wanted, nodes.steps) == start:
                    room += chunks_on_idle(n, most, first, last, nodes, tables)
            if room >= enough:
                return room
    return room


@inner_kernel
def find_in_groups(
    demand: int, start: int, duration: int, latest: int, nodes: Nodes, tables: Tables, scratch: Scratch
) -> tuple[int, int]:
    """Find nodes for each kind by itself in one group of nodes, as `find_kinds`; the group that begins earliest, and of
    several that do from `start` on, for one kind, that with the least room left.
    """
    soon, count, attempt = INT64(-1), 0, tables.demands[demand, D.OTHERWISE]
    tight, least, whole = INT64(-1), INT64(FOREVER), tables.demands[demand, D.FLAGS] & F.EXCLUSIVE
    while attempt >= 0:
        kind = tables.demands[attempt, D.KIND]
        if soon != start:
            found, here = find_kinds(attempt, start, duration, latest if soon < 0 else soon - 1, nodes, tables, scratch)
            if found >= 0:
                soon, count = found, here
        if soon == start and tables.demands[demand, D.FLAGS] & F.JOINT:
            break
        if soon == start:
            room = room_by_node(kind, start, duration, least, whole, nodes, tables)
            if tables.kinds[kind, K.NEED] <= room < least:
                tight, least = attempt, room
                if room == tables.kinds[kind, K.NEED]:
                    break  # no group has less
        attempt = tables.demands[attempt, D.OTHERWISE]
    if tight >= 0:
        _, count = find_kinds(tight, start, duration, start, nodes, tables, scratch)
    nodes.lacking[0] = 1  # of each group something else is known
    return soon, count


@inner_kernel
def map_kinds(demand: int, start: int, duration: int, nodes: Nodes, tables: Tables, scratch: Scratch) -> int:
    """Map all kinds of a demand, also in its other orders; return the number of entries, 0 if none succeeds."""
    attempt = demand
    while attempt >= 0:
        for k in range(tables.demands[demand, D.REACH], tables.demands[demand + 1, D.REACH]):
            least_by_node(tables.reach[k], start, start + duration, scratch.free[0], nodes, tables)
        if not suffices(demand, scratch.free[0], scratch.buffer, tables):
            return 0
        count = map_chunks(attempt, scratch.free[0], tables, scratch)
        if count > 0:
            return count
        attempt = tables.demands[attempt, D.OTHERWISE]
    return 0


@kernel
def earliest_fit_by_node(
    demand: int,
    start: int,
    duration: int,
    latest: int,
    timeline: TimelineState,
    nodes: Nodes,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int]:
    """Find what `earliest_fit` finds, on a timeline whose nodes have steps of their own.

    Where no window is found, `lacking` has a lower bound on the nodes that must give something back before there is
    one, where the nodes are what was lacking; else it is left as it is.
    """
    is_joint, first = tables.demands[demand, D.FLAGS] & (F.JOINT | F.PARTED), start
    while True:
        place, index = locate(start, timeline)
        start, place, index, _, _ = next_window(
            demand, start, duration, latest, place, index, place, index, timeline, tables
        )
        if start < 0:
            return -1, 0
        if tables.demands[demand, D.FLAGS] & (F.WITHIN | F.PARTED) == F.WITHIN:
            found, count = find_in_groups(demand, start, duration, latest, nodes, tables, scratch)
        else:
            found, count = find_kinds(demand, start, duration, latest, nodes, tables, scratch)
        if found < 0:
            if start > first:
                nodes.lacking[0] = 1  # nothing is said of the windows that begin before
            return -1, 0
        if found > start:
            start = found
            continue
        if is_joint:
            count = map_kinds(demand, start, duration, nodes, tables, scratch)
        if count > 0:
            return start, count
        place, index = following(place, index, timeline)
        if place == timeline.head[H.BLOCKS]:
            return -1, 0
        start = timeline.slots[timeline.members[timeline.order[place], index], 0]
