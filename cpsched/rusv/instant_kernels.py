"""Kernels for one moment: the amounts that are free now, or at one later second, without a time axis.

`free` has the free amount of every node column, `sfree` that of every system column; the others are the timeline's
`Tables` and `Scratch`.
"""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Scratch, Tables
from cpsched.rusv.kernels.axis import copy
from cpsched.rusv.kernels.constants import D, F, K, S
from cpsched.rusv.kernels.mapping import clear_busy, count_kind, map_chunks, placement_columns, suffices
from cpsched.rusv.kernels.windows import lower_by_two


@kernel
def has_sums(demand: int, sfree: Array, demands: Array, sysreq: Array) -> bool:
    """Tell whether the sums over the system, and the licenses, suffice for a demand (necessary)."""
    for k in range(demands[demand, D.SYS], demands[demand + 1, D.SYS]):
        if sfree[sysreq[k, 0]] < sysreq[k, 1]:
            return False
    return True


@kernel
def map_now(demand: int, free: Array, sfree: Array, tables: Tables, scratch: Scratch) -> int:
    """Map a demand to nodes, cheap ones first, in the scratch; return the number of entries, 0: it does not fit."""
    if not has_sums(demand, sfree, tables.demands, tables.sysreq):
        return 0
    if tables.demands[demand, D.FLAGS] & (F.EXCLUSIVE | F.JOINT | F.PARTED) == 0:
        if not suffices(demand, free, scratch.buffer, tables):
            return 0
        return map_chunks(demand, free, tables, scratch)
    attempt = demand
    while attempt >= 0:  # mapping lowers the amounts that it is given
        copy(scratch.free[0], free)
        if not suffices(demand, scratch.free[0], scratch.buffer, tables):
            return 0
        count = map_chunks(attempt, scratch.free[0], tables, scratch)
        if count > 0:
            return count
        attempt = tables.demands[attempt, D.OTHERWISE]
    return 0


@inner_kernel
def chunks_on(free: Array, index: int, first: int, last: int, most: int, terms: Array) -> int:
    """Return how many chunks fit on a node, at most `most`; `index` is its own in each column."""
    chunks = most
    for k in range(first, last):
        chunks = min(chunks, max(free[terms[k, 0] + index], 0) // terms[k, 1])
    return chunks


@inner_kernel
def take_chunks(
    chunks: int, node: int, index: int, first: int, last: int, flags: int, later: Array, now: Array, tables: Tables
) -> None:
    """Lower by some chunks what is free on a node, later and at once; to zero where no other chunk may be there."""
    for k in range(first, last):
        column = tables.terms[k, 0] + index
        later[column] -= chunks * tables.terms[k, 1]
        now[column] = min(now[column], later[column])
    if flags & F.SCATTER:
        run = tables.run_of[node]
        for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
            later[tables.runcols[k] + node - tables.runs[run, 0]] = 0
            now[tables.runcols[k] + node - tables.runs[run, 0]] = 0


@inner_kernel
def map_chunks_late(demand: int, later: Array, now: Array, tables: Tables, scratch: Scratch) -> int:
    """Map a demand to the amounts that are free `later`: each kind first where nothing is free `now`.

    `now` has the amounts that are free both now and later; both arrays are overwritten. Returns the number of entries,
    0 if some kind does not fit beside the others.
    """
    count, flags = 0, tables.demands[demand, D.FLAGS]
    if flags & F.WITHIN:
        return 0  # its groups are demands of their own
    for kind in range(tables.demands[demand, D.KIND], tables.demands[demand + 1, D.KIND]):
        need, most = tables.kinds[kind, K.NEED], tables.kinds[kind, K.MOST]
        late = count_kind(kind, later, scratch.buffer, tables)
        late -= count_kind(kind, now, scratch.buffer, tables)
        late = min(late, need)
        early = need - late
        for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
            first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
            column, least = tables.terms[first, 0], tables.terms[first, 1]
            for n in range(tables.segments[segment, S.LENGTH]):
                if late + early == 0:
                    break
                if later[column + n] < least:
                    continue
                there = chunks_on(later, n, first, last, most, tables.terms)
                at_once = chunks_on(now, n, first, last, most, tables.terms)
                lately, early_ones = min(late, there - at_once), min(early, at_once)
                if lately + early_ones == 0:
                    continue
                late -= lately
                early -= early_ones
                scratch.entries[count, 0] = tables.segments[segment, S.FIRST] + n
                scratch.entries[count, 1] = kind
                scratch.entries[count, 2] = lately + early_ones
                if flags & F.JOINT:
                    take_chunks(
                        lately + early_ones, scratch.entries[count, 0], n, first, last, flags, later, now, tables
                    )
                count += 1
        if late + early > 0:
            return 0
    return count


@kernel
def map_late(demand: int, free: Array, later: Array, now: Array, tables: Tables, scratch: Scratch) -> int:
    """Map a demand that starts later so that much of what is free now stays free; return the number of entries, 0 if no
    room was found. The entries are written to the scratch.

    Each kind of chunk first takes room that is not free yet. `later`: what is free at the start. `now` is overwritten.
    """
    if tables.demands[demand, D.FLAGS] & F.PARTED:
        copy(scratch.free[0], later)
        return (
            map_chunks(demand, scratch.free[0], tables, scratch)
            if suffices(demand, scratch.free[0], scratch.buffer, tables)
            else 0
        )
    attempt = demand
    while attempt >= 0:
        copy(scratch.free[0], later)
        lower_by_two(now, free, scratch.free[0])
        if tables.demands[demand, D.FLAGS] & F.EXCLUSIVE:
            for k in range(tables.demands[demand, D.REACH], tables.demands[demand + 1, D.REACH]):
                clear_busy(tables.reach[k], scratch.free[0], tables)
                clear_busy(tables.reach[k], now, tables)
        count = map_chunks_late(attempt, scratch.free[0], now, tables, scratch)
        if count > 0:
            return count
        attempt = tables.demands[attempt, D.OTHERWISE]
    return 0


@kernel
def spell_out(demand: int, entries: Array, count: int, tables: Tables, scratch: Scratch) -> int:
    """Write a placement to the scratch, with the sum of each system column; return the number of node columns."""
    filled, systems = placement_columns(demand, entries, count, tables, scratch)
    for k in range(systems, scratch.samounts.shape[0]):
        scratch.samounts[k] = 0
    for k in range(systems - 1, -1, -1):  # from the compact form to one amount for each column, in place
        amount = scratch.samounts[k]
        scratch.samounts[k] = 0
        scratch.samounts[scratch.scolumns[k]] = amount
    return filled


@kernel
def change(free: Array, sfree: Array, filled: int, sign: int, scratch: Scratch) -> None:
    """Add the amounts in the scratch (times `sign`) to the free amounts."""
    for k in range(filled):
        free[scratch.columns[k]] += sign * scratch.amounts[k]
    for q in range(sfree.shape[0]):
        sfree[q] += sign * scratch.samounts[q]
