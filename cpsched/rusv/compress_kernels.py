"""The kernels of `compression.py`, which owns shapes and checks, and proves that no job is missed.

Beside the arrays of a timeline and of a table they take `Notes` (`n`).
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.instant_kernels import has_sums
from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.axis import following, last_until, locate
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, HIGH, LAZY, LOW, D, H, K, N, R, S
from cpsched.rusv.kernels.nodes import chunks_by_node, has_wanted, step_of, want_chunks
from cpsched.rusv.kernels.queues import place_jobs

#: Counters: the number of nodes on which resources were given back; a number that changes when a job may be able to
#: start; the state of the timeline; the state for which `times` and `least` were made, and their number of slots.
C_GIVEN, C_CHANCE, C_STATE, C_AHEAD, C_SLOTS, COUNTERS = 0, 1, 2, 3, 4, 5


#: Nodes: a lack is counted up to this many. An exact count costs more than it saves: 4 and 16 are as good, 64 is worse.
MUCH = 8


class Notes(NamedTuple):
    """What is known of the jobs and of the time from now on."""

    #: int64 (jobs,): value of the counter ``C_GIVEN`` from which a job is worth a look.
    enough: NDArray[Any]
    #: int64 (jobs,): value of ``C_CHANCE`` when a start of the job now was last tried.
    tried: NDArray[Any]
    #: int64 (demands,): a number for each kind of chunk; -1: several kinds, or whole nodes.
    chunk_of: NDArray[Any]
    #: int64 (Q,): the most that one node adds to a system column.
    biggest: NDArray[Any]
    #: int64 (chunks, nodes): the nodes on which a chunk fits now.
    nodes: NDArray[Any]
    #: int64 (chunks, nodes): for each of those nodes, how many chunks fit.
    units: NDArray[Any]
    #: int64 (chunks, nodes): for each of those nodes, until when one chunk fits.
    until: NDArray[Any]
    #: int64 (chunks, slots): chunks that fit on nodes with room from now to the end of a slot.
    room: NDArray[Any]
    #: int64 (chunks, 2): value of ``C_STATE`` when these were computed, and the number of `nodes`.
    looked: NDArray[Any]
    #: int64 (slots,): the starts of the slots, from now on.
    times: NDArray[Any]
    #: int64 (slots, Q): the least free of each system column from now to the end of a slot.
    least: NDArray[Any]
    #: int64 (COUNTERS,): see ``C_*``.
    counters: NDArray[Any]
    #: The starts that `kernels.place_jobs` remembers.
    bounds: NDArray[Any]


@inner_kernel
def nodes_lacking(demand, free, biggest, t):
    """Return how many nodes at least must give something back until the sums over the system suffice for a demand."""
    lack = 0
    for k in range(t.demands[demand, D.SYS], t.demands[demand + 1, D.SYS]):
        q = t.sysreq[k, 0]
        if free[q] < t.sysreq[k, 1]:
            lack = max(lack, (t.sysreq[k, 1] - free[q] + biggest[q] - 1) // biggest[q])
    return lack


@inner_kernel
def lacking_in_slot(demand, row, block, biggest, s, t):
    """Return the bound of `nodes_lacking` for one slot."""
    lack = 0
    for k in range(t.demands[demand, D.SYS], t.demands[demand + 1, D.SYS]):
        q = t.sysreq[k, 0]
        short = t.sysreq[k, 1] - s.srows[row, q] - s.sblk[block, LAZY, q]
        if short > 0:
            lack = max(lack, (short + biggest[q] - 1) // biggest[q])
    return lack


@inner_kernel
def last_lacking(demand, lack, place, index, stop_place, stop_index, biggest, s, t):
    """Return the last slot in ``[stop, given]`` in which `lack` nodes or more are lacking (place -1 if there is none),
    and the most nodes that are lacking in the slots after it.
    """
    most = 0
    while place >= stop_place:
        block = s.order[place]
        low = stop_index if place == stop_place else 0
        if nodes_lacking(demand, s.sblk[block, LOW], biggest, t) > most:
            while index >= low:
                short = lacking_in_slot(demand, s.members[block, index], block, biggest, s, t)
                if short >= lack:
                    return place, index, most
                most = max(most, short)
                index -= 1
        place -= 1
        if place >= stop_place:
            index = s.members[s.order[place], BLOCK] - 1
    return -1, 0, most


@inner_kernel
def lacking_sums(demand, earliest, duration, start, biggest, s, t):
    """Return a lower bound on the nodes that must give resources back until the sums over the system suffice for a job
    in some window that begins before its `start`; 0 if they suffice in one.

    Its own booking, which begins at `start`, is no obstacle, and a window need not be looked at from there on.
    """
    lack = MUCH
    place, index = locate(earliest, s)
    while place < s.head[H.BLOCKS]:
        block = s.order[place]
        row = s.members[block, index]
        begin = max(earliest, s.slots[row, 0])
        if begin >= start:
            break
        if nodes_lacking(demand, s.sblk[block, HIGH], biggest, t) >= lack:
            place, index = place + 1, 0
            continue
        last_place, last_index = place, index
        if lacking_in_slot(demand, row, block, biggest, s, t) < lack:
            last_place, last_index = locate(min(begin + duration, start) - 1, s)
        bad_place, bad_index, short = last_lacking(demand, lack, last_place, last_index, place, index, biggest, s, t)
        if bad_place >= 0:
            place, index = following(bad_place, bad_index, s)
        elif short == 0:
            return 0
        else:
            lack = short
    return lack


@inner_kernel
def look_ahead(now, n, s):
    """Write the starts of slots from `now` on, and the least free of each system column until each ends; count them."""
    place, index = locate(now, s)
    count = 0
    while place < s.head[H.BLOCKS]:
        block = s.order[place]
        for k in range(index, s.members[block, BLOCK]):
            row = s.members[block, k]
            n.times[count] = s.slots[row, 0]
            for q in range(n.least.shape[1]):
                value = s.srows[row, q] + s.sblk[block, LAZY, q]
                n.least[count, q] = min(value, n.least[count - 1, q]) if count > 0 else value
            count += 1
        place, index = place + 1, 0
    return count


@inner_kernel
def look_at_nodes(demand, now, chunk, n, o, t):
    """Write the nodes on which chunks of a demand's only kind fit now, with their number and until when one fits, and
    the chunks on nodes with room from now to the end of each slot. Return the number of nodes.
    """
    units, until, room, ahead = n.units[chunk], n.until[chunk], n.room[chunk], n.counters[C_SLOTS]
    kind, count, total = t.demands[demand, D.KIND], 0, 0
    for node in range(until.shape[0]):
        until[node] = now
    for k in range(ahead):
        room[k] = 0
    for segment in range(t.kinds[kind, K.SEG], t.kinds[kind, K.BEHIND]):
        first, last = t.segments[segment, S.TERM], t.segments[segment + 1, S.TERM]
        origin, terms = t.segments[segment, S.FIRST], want_chunks(1, first, last, o, t)
        for node in range(origin, origin + t.segments[segment, S.LENGTH]):
            step, behind = step_of(node, now, o), o.spans[node, N.FIRST] + o.spans[node, N.COUNT]
            if not has_wanted(step, terms, o.wanted, o.steps):
                continue
            n.nodes[chunk, count] = node
            units[node] = chunks_by_node(node, now, 1, FOREVER, first, last, o, t)
            count += 1
            total += units[node]
            step += 1
            while step < behind and has_wanted(step, terms, o.wanted, o.steps):
                step += 1
            until[node] = o.steps[step, 0] if step < behind else FOREVER
            if step < behind:
                room[last_until(until[node], n.times, ahead)] += units[node]
    for k in range(ahead):
        total -= room[k]
        room[k] = total
    return count


@inner_kernel
def may_start(demand, now, duration, start, placed, n, t):
    """Tell whether a demand's only kind may fit for a job that starts now instead of at `start` on `placed`.

    A node without room until the end may still be used up to the job's own booking there, which then continues it.
    """
    kind, chunk = t.demands[demand, D.KIND], n.chunk_of[demand]
    need, most = t.kinds[kind, K.NEED], t.kinds[kind, K.MOST]
    units, until = n.units[chunk], n.until[chunk]
    end, total = now + duration, 0
    for node in n.nodes[chunk, : n.looked[chunk, 1]]:
        total += min(units[node], most) * (until[node] >= end)
    if total < need and start < end:
        for e in range(placed.shape[0]):
            node = placed[e, 0]
            if start <= until[node] < end:
                total += placed[e, 2]
    return total >= need


@kernel
def next_break(now, s):
    """Return the end of the slot of `now`."""
    place, index = locate(now, s)
    place, index = following(place, index, s)
    return s.slots[s.members[s.order[place], index], 0] if place < s.head[H.BLOCKS] else FOREVER


@kernel
def compress(queue, begin, depth, n, j, s, o, t, x):
    """Give each job of ``queue[begin:]`` an earlier start if any; from index `depth` on only the earliest possible.

    Returns (R.DONE or what must grow, index in the queue that was reached).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        demand, earliest, latest, duration = j.jobs[job, 0], j.jobs[job, 1], j.jobs[job, 2], j.jobs[job, 3]
        start = j.starts[job]
        chunk, placed = n.chunk_of[demand], j.pool[j.spans[job, 0] : j.spans[job, 0] + j.spans[job, 1]]
        if start <= earliest:
            continue
        if k < depth:
            if n.counters[C_GIVEN] < n.enough[job]:
                continue
            lack = lacking_sums(demand, earliest, duration, start, n.biggest, s, t)
            if lack > 0:
                n.enough[job] = n.counters[C_GIVEN] + lack
                continue
        else:
            if n.tried[job] == n.counters[C_CHANCE]:
                continue
            n.tried[job] = n.counters[C_CHANCE]
            if n.counters[C_AHEAD] != n.counters[C_STATE]:
                n.counters[C_AHEAD] = n.counters[C_STATE]
                n.counters[C_SLOTS] = look_ahead(earliest, n, s)
            number = last_until(min(start, earliest + duration) - 1, n.times, n.counters[C_SLOTS])
            if not has_sums(demand, n.least[number], t.demands, t.sysreq):
                continue
            if chunk >= 0:
                if n.looked[chunk, 0] != n.counters[C_STATE]:
                    n.looked[chunk, 0] = n.counters[C_STATE]
                    n.looked[chunk, 1] = look_at_nodes(demand, earliest, chunk, n, o, t)
                kind = t.demands[demand, D.KIND]
                if n.room[chunk, number] < t.kinds[kind, K.NEED] or not may_start(
                    demand, earliest, duration, start, placed, n, t
                ):
                    continue
            j.jobs[job, 2] = earliest
        o.lacking[0] = 1
        code, _, moved = place_jobs(queue, k, k + 1, n.bounds, None, j, s, o, t, x)
        j.jobs[job, 2] = latest
        if code != R.DONE:
            n.enough[job] = n.tried[job] = 0
            return code, k
        if moved:
            n.counters[C_GIVEN] += placed.shape[0]
            n.counters[C_CHANCE] += 1
            n.counters[C_STATE] += 1
            n.enough[job] = n.counters[C_GIVEN] + 1
        elif k < depth:
            n.enough[job] = n.counters[C_GIVEN] + o.lacking[0]
    return R.DONE, queue.shape[0]
