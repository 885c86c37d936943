"""Kernels for one moment: the amounts that are free now, or at one later second, without a time axis.

`free` has the free amount of every node column, `sfree` that of every system column; `t` and `x` are the timeline's
`Tables` and `Scratch`.
"""

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.axis import copy
from cpsched.rusv.kernels.constants import D, F, K, S
from cpsched.rusv.kernels.mapping import clear_busy, count_kind, map_chunks, placement_columns, suffices
from cpsched.rusv.kernels.windows import lower_by_two


@kernel
def has_sums(demand, sfree, demands, sysreq):
    """Tell whether the sums over the system, and the licenses, suffice for a demand (necessary)."""
    for k in range(demands[demand, D.SYS], demands[demand + 1, D.SYS]):
        if sfree[sysreq[k, 0]] < sysreq[k, 1]:
            return False
    return True


@kernel
def map_now(demand, free, sfree, t, x):
    """Map a demand to nodes, cheap ones first, in the scratch `x`; return the number of entries, 0: it does not fit."""
    if not has_sums(demand, sfree, t.demands, t.sysreq):
        return 0
    if t.demands[demand, D.FLAGS] & (F.EXCLUSIVE | F.JOINT | F.PARTED) == 0:
        if not suffices(demand, free, x.buffer, t):
            return 0
        return map_chunks(demand, free, t, x)
    attempt = demand
    while attempt >= 0:  # mapping lowers the amounts that it is given
        copy(x.free[0], free)
        if not suffices(demand, x.free[0], x.buffer, t):
            return 0
        count = map_chunks(attempt, x.free[0], t, x)
        if count > 0:
            return count
        attempt = t.demands[attempt, D.OTHERWISE]
    return 0


@inner_kernel
def chunks_on(free, n, first, last, most, terms):
    """Return how many chunks fit on a node, at most `most`; `n` is its index in each column."""
    chunks = most
    for k in range(first, last):
        chunks = min(chunks, max(free[terms[k, 0] + n], 0) // terms[k, 1])
    return chunks


@inner_kernel
def take_chunks(chunks, node, n, first, last, flags, later, now, t):
    """Lower by some chunks what is free on a node, later and at once; to zero where no other chunk may be there."""
    for k in range(first, last):
        column = t.terms[k, 0] + n
        later[column] -= chunks * t.terms[k, 1]
        now[column] = min(now[column], later[column])
    if flags & F.SCATTER:
        run = t.run_of[node]
        for k in range(t.runs[run, 2], t.runs[run + 1, 2]):
            later[t.runcols[k] + node - t.runs[run, 0]] = 0
            now[t.runcols[k] + node - t.runs[run, 0]] = 0


@inner_kernel
def map_chunks_late(demand, later, now, t, x):
    """Map a demand to the amounts that are free `later`: each kind first where nothing is free `now`.

    `now` has the amounts that are free both now and later; both arrays are overwritten. Returns the number of entries,
    0 if some kind does not fit beside the others.
    """
    count, flags = 0, t.demands[demand, D.FLAGS]
    if flags & F.WITHIN:
        return 0  # its groups are demands of their own
    for kind in range(t.demands[demand, D.KIND], t.demands[demand + 1, D.KIND]):
        need, most = t.kinds[kind, K.NEED], t.kinds[kind, K.MOST]
        late = count_kind(kind, later, x.buffer, t)
        late -= count_kind(kind, now, x.buffer, t)
        late = min(late, need)
        early = need - late
        for segment in range(t.kinds[kind, K.SEG], t.kinds[kind, K.BEHIND]):
            first, last = t.segments[segment, S.TERM], t.segments[segment + 1, S.TERM]
            column, least = t.terms[first, 0], t.terms[first, 1]
            for n in range(t.segments[segment, S.LENGTH]):
                if late + early == 0:
                    break
                if later[column + n] < least:
                    continue
                there = chunks_on(later, n, first, last, most, t.terms)
                at_once = chunks_on(now, n, first, last, most, t.terms)
                lately, early_ones = min(late, there - at_once), min(early, at_once)
                if lately + early_ones == 0:
                    continue
                late -= lately
                early -= early_ones
                x.entries[count, 0] = t.segments[segment, S.FIRST] + n
                x.entries[count, 1] = kind
                x.entries[count, 2] = lately + early_ones
                if flags & F.JOINT:
                    take_chunks(lately + early_ones, x.entries[count, 0], n, first, last, flags, later, now, t)
                count += 1
        if late + early > 0:
            return 0
    return count


@kernel
def map_late(demand, free, later, now, t, x):
    """Map a demand that starts later so that much of what is free now stays free; return the number of entries, 0 if no
    room was found. The entries are written to the scratch `x`.

    Each kind of chunk first takes room that is not free yet. `later`: what is free at the start. `now` is overwritten.
    """
    if t.demands[demand, D.FLAGS] & F.PARTED:
        copy(x.free[0], later)
        return map_chunks(demand, x.free[0], t, x) if suffices(demand, x.free[0], x.buffer, t) else 0
    attempt = demand
    while attempt >= 0:
        copy(x.free[0], later)
        lower_by_two(now, free, x.free[0])
        if t.demands[demand, D.FLAGS] & F.EXCLUSIVE:
            for k in range(t.demands[demand, D.REACH], t.demands[demand + 1, D.REACH]):
                clear_busy(t.reach[k], x.free[0], t)
                clear_busy(t.reach[k], now, t)
        count = map_chunks_late(attempt, x.free[0], now, t, x)
        if count > 0:
            return count
        attempt = t.demands[attempt, D.OTHERWISE]
    return 0


@kernel
def spell_out(demand, entries, count, t, x):
    """Write a placement to the scratch `x`, with the sum of each system column; return the number of node columns."""
    filled, systems = placement_columns(demand, entries, count, t, x)
    for k in range(systems, x.samounts.shape[0]):
        x.samounts[k] = 0
    for k in range(systems - 1, -1, -1):  # from the compact form to one amount for each column, in place
        amount = x.samounts[k]
        x.samounts[k] = 0
        x.samounts[x.scolumns[k]] = amount
    return filled


@kernel
def change(free, sfree, filled, sign, x):
    """Add the amounts in the scratch (times `sign`) to the free amounts."""
    for k in range(filled):
        free[x.columns[k]] += sign * x.amounts[k]
    for q in range(sfree.shape[0]):
        sfree[q] += sign * x.samounts[q]
