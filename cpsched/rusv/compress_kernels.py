"""The kernels of `compression.py`, which owns shapes and checks, and proves that no job is missed.

Beside the arrays of a timeline and of a table they take `Notes`.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.instant_kernels import has_sums
from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Jobs, Nodes, Scratch, Tables, TimelineState
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
def nodes_lacking(demand: int, free: Array, biggest: Array, tables: Tables) -> int:
    """Return how many nodes at least must give something back until the sums over the system suffice for a demand."""
    lack = 0
    for k in range(tables.demands[demand, D.SYS], tables.demands[demand + 1, D.SYS]):
        q = tables.sysreq[k, 0]
        if free[q] < tables.sysreq[k, 1]:
            lack = max(lack, (tables.sysreq[k, 1] - free[q] + biggest[q] - 1) // biggest[q])
    return lack


@inner_kernel
def lacking_in_slot(demand: int, row: int, block: int, biggest: Array, timeline: TimelineState, tables: Tables) -> int:
    """Return the bound of `nodes_lacking` for one slot."""
    lack = 0
    for k in range(tables.demands[demand, D.SYS], tables.demands[demand + 1, D.SYS]):
        q = tables.sysreq[k, 0]
        short = tables.sysreq[k, 1] - timeline.srows[row, q] - timeline.sblk[block, LAZY, q]
        if short > 0:
            lack = max(lack, (short + biggest[q] - 1) // biggest[q])
    return lack


@inner_kernel
def last_lacking(
    demand: int,
    lack: int,
    place: int,
    index: int,
    stop_place: int,
    stop_index: int,
    biggest: Array,
    timeline: TimelineState,
    tables: Tables,
) -> tuple[int, int, int]:
    """Return the last slot in ``[stop, given]`` in which `lack` nodes or more are lacking (place -1 if there is none),
    and the most nodes that are lacking in the slots after it.
    """
    most = 0
    while place >= stop_place:
        block = timeline.order[place]
        low = stop_index if place == stop_place else 0
        if nodes_lacking(demand, timeline.sblk[block, LOW], biggest, tables) > most:
            while index >= low:
                short = lacking_in_slot(demand, timeline.members[block, index], block, biggest, timeline, tables)
                if short >= lack:
                    return place, index, most
                most = max(most, short)
                index -= 1
        place -= 1
        if place >= stop_place:
            index = timeline.members[timeline.order[place], BLOCK] - 1
    return -1, 0, most


@inner_kernel
def lacking_sums(
    demand: int, earliest: int, duration: int, start: int, biggest: Array, timeline: TimelineState, tables: Tables
) -> int:
    """Return a lower bound on the nodes that must give resources back until the sums over the system suffice for a job
    in some window that begins before its `start`; 0 if they suffice in one.

    Its own booking, which begins at `start`, is no obstacle, and a window need not be looked at from there on.
    """
    lack = MUCH
    place, index = locate(earliest, timeline)
    while place < timeline.head[H.BLOCKS]:
        block = timeline.order[place]
        row = timeline.members[block, index]
        begin = max(earliest, timeline.slots[row, 0])
        if begin >= start:
            break
        if nodes_lacking(demand, timeline.sblk[block, HIGH], biggest, tables) >= lack:
            place, index = place + 1, 0
            continue
        last_place, last_index = place, index
        if lacking_in_slot(demand, row, block, biggest, timeline, tables) < lack:
            last_place, last_index = locate(min(begin + duration, start) - 1, timeline)
        bad_place, bad_index, short = last_lacking(
            demand, lack, last_place, last_index, place, index, biggest, timeline, tables
        )
        if bad_place >= 0:
            place, index = following(bad_place, bad_index, timeline)
        elif short == 0:
            return 0
        else:
            lack = short
    return lack


@inner_kernel
def look_ahead(now: int, notes: Notes, timeline: TimelineState) -> int:
    """Write the starts of slots from `now` on, and the least free of each system column until each ends; count them."""
    place, index = locate(now, timeline)
    count = 0
    while place < timeline.head[H.BLOCKS]:
        block = timeline.order[place]
        for k in range(index, timeline.members[block, BLOCK]):
            row = timeline.members[block, k]
            notes.times[count] = timeline.slots[row, 0]
            for q in range(notes.least.shape[1]):
                value = timeline.srows[row, q] + timeline.sblk[block, LAZY, q]
                notes.least[count, q] = min(value, notes.least[count - 1, q]) if count > 0 else value
            count += 1
        place, index = place + 1, 0
    return count


@inner_kernel
def look_at_nodes(demand: int, now: int, chunk: int, notes: Notes, nodes: Nodes, tables: Tables) -> int:
    """Write the nodes on which chunks of a demand's only kind fit now, with their number and until when one fits, and
    the chunks on nodes with room from now to the end of each slot. Return the number of nodes.
    """
    units, until, room, ahead = notes.units[chunk], notes.until[chunk], notes.room[chunk], notes.counters[C_SLOTS]
    kind, count, total = tables.demands[demand, D.KIND], 0, 0
    for node in range(until.shape[0]):
        until[node] = now
    for k in range(ahead):
        room[k] = 0
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
        origin, terms = tables.segments[segment, S.FIRST], want_chunks(1, first, last, nodes, tables)
        for node in range(origin, origin + tables.segments[segment, S.LENGTH]):
            step, behind = step_of(node, now, nodes), nodes.spans[node, N.FIRST] + nodes.spans[node, N.COUNT]
            if not has_wanted(step, terms, nodes.wanted, nodes.steps):
                continue
            notes.nodes[chunk, count] = node
            units[node] = chunks_by_node(node, now, 1, FOREVER, first, last, nodes, tables)
            count += 1
            total += units[node]
            step += 1
            while step < behind and has_wanted(step, terms, nodes.wanted, nodes.steps):
                step += 1
            until[node] = nodes.steps[step, 0] if step < behind else FOREVER
            if step < behind:
                room[last_until(until[node], notes.times, ahead)] += units[node]
    for k in range(ahead):
        total -= room[k]
        room[k] = total
    return count


@inner_kernel
def may_start(demand: int, now: int, duration: int, start: int, placed: Array, notes: Notes, tables: Tables) -> bool:
    """Tell whether a demand's only kind may fit for a job that starts now instead of at `start` on `placed`.

    A node without room until the end may still be used up to the job's own booking there, which then continues it.
    """
    kind, chunk = tables.demands[demand, D.KIND], notes.chunk_of[demand]
    need, most = tables.kinds[kind, K.NEED], tables.kinds[kind, K.MOST]
    units, until = notes.units[chunk], notes.until[chunk]
    end, total = now + duration, 0
    for node in notes.nodes[chunk, : notes.looked[chunk, 1]]:
        total += min(units[node], most) * (until[node] >= end)
    if total < need and start < end:
        for e in range(placed.shape[0]):
            node = placed[e, 0]
            if start <= until[node] < end:
                total += placed[e, 2]
    return total >= need


@kernel
def next_break(now: int, timeline: TimelineState) -> int:
    """Return the end of the slot of `now`."""
    place, index = locate(now, timeline)
    place, index = following(place, index, timeline)
    return (
        timeline.slots[timeline.members[timeline.order[place], index], 0]
        if place < timeline.head[H.BLOCKS]
        else FOREVER
    )


@kernel
def compress(
    queue: Array,
    begin: int,
    depth: int,
    notes: Notes,
    jobs: Jobs,
    timeline: TimelineState,
    nodes: Nodes,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int]:
    """Give each job of ``queue[begin:]`` an earlier start if any; from index `depth` on only the earliest possible.

    Returns (R.DONE or what must grow, index in the queue that was reached).
    """
    for k in range(begin, queue.shape[0]):
        job = queue[k]
        demand, earliest, latest, duration = jobs.jobs[job, 0], jobs.jobs[job, 1], jobs.jobs[job, 2], jobs.jobs[job, 3]
        start = jobs.starts[job]
        chunk, placed = notes.chunk_of[demand], jobs.pool[jobs.spans[job, 0] : jobs.spans[job, 0] + jobs.spans[job, 1]]
        if start <= earliest:
            continue
        if k < depth:
            if notes.counters[C_GIVEN] < notes.enough[job]:
                continue
            lack = lacking_sums(demand, earliest, duration, start, notes.biggest, timeline, tables)
            if lack > 0:
                notes.enough[job] = notes.counters[C_GIVEN] + lack
                continue
        else:
            if notes.tried[job] == notes.counters[C_CHANCE]:
                continue
            notes.tried[job] = notes.counters[C_CHANCE]
            if notes.counters[C_AHEAD] != notes.counters[C_STATE]:
                notes.counters[C_AHEAD] = notes.counters[C_STATE]
                notes.counters[C_SLOTS] = look_ahead(earliest, notes, timeline)
            number = last_until(min(start, earliest + duration) - 1, notes.times, notes.counters[C_SLOTS])
            if not has_sums(demand, notes.least[number], tables.demands, tables.sysreq):
                continue
            if chunk >= 0:
                if notes.looked[chunk, 0] != notes.counters[C_STATE]:
                    notes.looked[chunk, 0] = notes.counters[C_STATE]
                    notes.looked[chunk, 1] = look_at_nodes(demand, earliest, chunk, notes, nodes, tables)
                kind = tables.demands[demand, D.KIND]
                if notes.room[chunk, number] < tables.kinds[kind, K.NEED] or not may_start(
                    demand, earliest, duration, start, placed, notes, tables
                ):
                    continue
            jobs.jobs[job, 2] = earliest
        nodes.lacking[0] = 1
        code, _, moved = place_jobs(queue, k, k + 1, notes.bounds, None, jobs, timeline, nodes, tables, scratch)
        jobs.jobs[job, 2] = latest
        if code != R.DONE:
            notes.enough[job] = notes.tried[job] = 0
            return code, k
        if moved:
            notes.counters[C_GIVEN] += placed.shape[0]
            notes.counters[C_CHANCE] += 1
            notes.counters[C_STATE] += 1
            notes.enough[job] = notes.counters[C_GIVEN] + 1
        elif k < depth:
            notes.enough[job] = notes.counters[C_GIVEN] + nodes.lacking[0]
    return R.DONE, queue.shape[0]
