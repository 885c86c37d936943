"""Chunks on nodes: how many fit into free amounts, where they are placed, and what they take there."""

import numpy as np

from cpsched.rusv.jit import inner_kernel, interpret_as, kernel
from cpsched.rusv.kernels.arrays import Array, Scratch, Tables
from cpsched.rusv.kernels.constants import INT32, INT64, PART, D, F, K, S


@inner_kernel
def sum_one(free0: Array, a0: float, b0: float, most: int) -> int:
    """Sum the chunks that one column allows over the nodes of a segment (in 32 bits, in parts that cannot overflow)."""
    total = 0
    for begin in range(0, len(free0), PART):
        part = INT32(0)
        for n in range(begin, min(len(free0), begin + PART)):
            part = INT32(part + min(INT32(free0[n] * a0 + b0), most))
        total += INT64(part)
    return total


@inner_kernel
def count_enough(free0: Array, amount: int) -> int:
    """Count the nodes of a segment on which a column has enough for one chunk."""
    total = INT32(0)
    for n in range(len(free0)):
        total = INT32(total + INT32(free0[n] >= amount))
    return INT64(total)


interpret_as(count_enough, lambda free0, amount: int(np.count_nonzero(np.asarray(free0) >= amount)))


@inner_kernel
def sum_two(free0: Array, a0: float, b0: float, free1: Array, a1: float, b1: float, most: int) -> int:
    """Sum the chunks that two columns allow together over the nodes of a segment."""
    total = 0
    for begin in range(0, len(free0), PART):
        part = INT32(0)
        for n in range(begin, min(len(free0), begin + PART)):
            part = INT32(part + min(INT32(min(free0[n] * a0 + b0, free1[n] * a1 + b1)), most))
        total += INT64(part)
    return total


@inner_kernel
def lower(least: Array, free0: Array, a0: float, b0: float) -> None:
    """Lower `least` to the chunks that one more column allows."""
    for n in range(len(free0)):
        least[n] = min(least[n], free0[n] * a0 + b0)


@kernel
def count_kind(kind: int, free: Array, buffer: Array, tables: Tables) -> int:
    """Return how many chunks of a kind fit into `free`, the free amounts of the node columns.

    ``floor(x / a)`` is taken as the whole part of ``x * (1 / a) + 0.5 / a``, which is exact for all 32-bit amounts and
    compiles to vector instructions, unlike a division of integers.
    """
    total = 0
    most = INT32(tables.kinds[kind, K.MOST])
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        length = tables.segments[segment, S.LENGTH]
        first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
        free0 = free[tables.terms[first, 0] : tables.terms[first, 0] + length]
        a0, b0 = tables.scale[first, 0], tables.scale[first, 1]
        if last - first == 1 and most == 1:
            total += count_enough(free0, INT32(tables.terms[first, 1]))
        elif last - first == 1:
            total += sum_one(free0, a0, b0, most)
        elif last - first == 2:
            free1 = free[tables.terms[first + 1, 0] : tables.terms[first + 1, 0] + length]
            total += sum_two(free0, a0, b0, free1, tables.scale[first + 1, 0], tables.scale[first + 1, 1], most)
        else:
            least = buffer[:length]
            for n in range(length):
                least[n] = free0[n] * a0 + b0
            for k in range(first + 1, last):
                lower(
                    least,
                    free[tables.terms[k, 0] : tables.terms[k, 0] + length],
                    tables.scale[k, 0],
                    tables.scale[k, 1],
                )
            for n in range(length):
                total += INT64(min(INT32(least[n]), most))
    return total


@inner_kernel
def suffices(demand: int, free: Array, buffer: Array, tables: Tables) -> bool:
    """Tell whether enough chunks of each kind fit into `free`, each kind by itself (necessary; sufficient for one
    kind); of a demand within one group of nodes, into that of some group.

    For an exclusive demand the columns of nodes that are not idle are set to zero first.
    """
    if tables.demands[demand, D.FLAGS] & F.EXCLUSIVE:
        for k in range(tables.demands[demand, D.REACH], tables.demands[demand + 1, D.REACH]):
            clear_busy(tables.reach[k], free, tables)
    if tables.demands[demand, D.FLAGS] & F.WITHIN:
        if tables.demands[demand, D.FLAGS] & F.PARTED:
            return is_in_groups(demand, free, buffer, tables)
        return group_for(demand, free, False, buffer, tables) >= 0
    return room_for(demand, free, buffer, tables) >= 0


@inner_kernel
def room_for(demand: int, free: Array, buffer: Array, tables: Tables) -> int:
    """Return how many chunks of its first kind fit, if enough of each kind do, else -1."""
    room = INT64(-1)
    for kind in range(tables.demands[demand, D.KIND], tables.demands[demand + 1, D.KIND]):
        count = count_kind(kind, free, buffer, tables)
        if count < tables.kinds[kind, K.NEED]:
            return INT64(-1)
        if room < 0:
            room = count
    return room


@kernel
def group_for(demand: int, free: Array, tightly: bool, buffer: Array, tables: Tables) -> int:
    """Return the demand for the first group of nodes with enough for a demand within one, or `tightly` for that with
    the least room left; -1: none has enough.
    """
    found, least = INT64(-1), INT64(0)
    attempt = INT64(tables.demands[demand, D.OTHERWISE])
    while attempt >= 0:
        room = room_for(attempt, free, buffer, tables)
        if room >= 0 and (found < 0 or room < least):
            found, least = attempt, room
            if not tightly:
                break
        attempt = INT64(tables.demands[attempt, D.OTHERWISE])
    return found


@inner_kernel
def most_in_group(demand: int, left: int, fitting: int, tables: Tables) -> int:
    """Return how many of the chunks that are left may be in a group of nodes with room for so many."""
    most = min(left, fitting)
    if tables.demands[demand, D.SPREAD]:
        return min(most, tables.demands[demand, D.SPREAD])
    return most - most % tables.demands[demand, D.SEGMENT]


@inner_kernel
def is_in_groups(demand: int, free: Array, buffer: Array, tables: Tables) -> bool:
    """Tell whether enough chunks fit into several groups of nodes together, in each as many as may be there."""
    left = tables.kinds[tables.demands[demand, D.KIND], K.NEED]
    attempt = INT64(tables.demands[demand, D.OTHERWISE])
    while attempt >= 0 and left > 0:
        left -= most_in_group(demand, left, count_kind(tables.demands[attempt, D.KIND], free, buffer, tables), tables)
        attempt = INT64(tables.demands[attempt, D.OTHERWISE])
    return left <= 0


@inner_kernel
def map_in_groups(demand: int, free: Array, tables: Tables, scratch: Scratch) -> int:
    """Map a demand to several groups of nodes, as `map_chunks`: while none holds all that is left, to that which holds
    most, and then to that with the least room.
    """
    kind = tables.demands[demand, D.KIND]
    left, count = tables.kinds[kind, K.NEED], 0
    while left > 0:
        found, take, room = INT64(-1), INT64(0), INT64(0)
        attempt = INT64(tables.demands[demand, D.OTHERWISE])
        while attempt >= 0:
            fitting = count_kind(tables.demands[attempt, D.KIND], free, scratch.buffer, tables)
            here = most_in_group(demand, left, fitting, tables)
            if here > take or (here == take and here == left and fitting < room):
                found, take, room = attempt, here, fitting
            attempt = INT64(tables.demands[attempt, D.OTHERWISE])
        if found < 0:
            return 0
        of_group = tables.demands[found, D.KIND]
        count = map_kind(of_group, take, count, False, False, free, tables, scratch)
        for segment in range(tables.kinds[of_group, K.SEG], tables.kinds[of_group, K.BEHIND]):
            column = tables.terms[tables.segments[segment, S.TERM], 0]
            free[column : column + tables.segments[segment, S.LENGTH]] = 0  # the group is not taken again
        left -= take
    return count


@inner_kernel
def clear_busy(run: int, free: Array, tables: Tables) -> None:
    """Set the columns of a run of nodes to zero on each node of which one column is not wholly free."""
    first, last = tables.runs[run, 2], tables.runs[run + 1, 2]
    for n in range(tables.runs[run, 1]):
        idle = True
        for k in range(first, last):
            idle &= free[tables.runcols[k] + n] == tables.capacity[tables.runcols[k] + n]
        if not idle:
            for k in range(first, last):
                free[tables.runcols[k] + n] = 0


@inner_kernel
def map_kind(
    kind: int, need: int, count: int, is_joint: bool, is_scattered: bool, free: Array, tables: Tables, scratch: Scratch
) -> int:
    """Write where `need` chunks of a kind are to the scratch, behind `count` entries; return how many there are
    then, or 0 if the kind does not fit. `is_joint`: whether other kinds follow, so that `free` is lowered.
    """
    segment = tables.kinds[kind, K.SEG]
    while need > 0 and segment < tables.kinds[kind, K.BEHIND]:
        first, last = tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]
        column, least = tables.terms[first, 0], tables.terms[first, 1]
        for n in range(tables.segments[segment, S.LENGTH]):
            if free[column + n] < least:
                continue
            take = min(need, tables.kinds[kind, K.MOST])
            for k in range(first, last):
                value, amount = free[tables.terms[k, 0] + n], tables.terms[k, 1]
                if value < amount:
                    take = 0
                    break
                if value < take * amount:
                    take = value // amount
            if take > 0:
                scratch.entries[count, 0] = tables.segments[segment, S.FIRST] + n
                scratch.entries[count, 1] = kind
                scratch.entries[count, 2] = take
                count += 1
                need -= take
                if is_joint:
                    for k in range(first, last):
                        free[tables.terms[k, 0] + n] -= take * tables.terms[k, 1]
                    if is_scattered:
                        run = tables.run_of[scratch.entries[count - 1, 0]]
                        for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
                            free[tables.runcols[k] + scratch.entries[count - 1, 0] - tables.runs[run, 0]] = 0
                if need == 0:
                    break
        segment += 1
    return 0 if need > 0 else count


@inner_kernel
def map_chunks(demand: int, free: Array, tables: Tables, scratch: Scratch) -> int:
    """Phase 2: cheap nodes first, as many chunks as fit (OCCS-30); kinds in the order of the table.

    Writes (node, kind, chunks) to the scratch and returns how many, or 0 if some kind does not fit beside the
    others. A demand within one group of nodes is mapped to that which then has the least room left.
    """
    if tables.demands[demand, D.FLAGS] & F.WITHIN:
        if tables.demands[demand, D.FLAGS] & F.PARTED:
            return map_in_groups(demand, free, tables, scratch)
        demand = group_for(demand, free, True, scratch.buffer, tables)
        if demand < 0:
            return 0
    count = 0
    is_joint = tables.demands[demand, D.FLAGS] & F.JOINT != 0
    is_scattered = tables.demands[demand, D.FLAGS] & F.SCATTER != 0
    for kind in range(tables.demands[demand, D.KIND], tables.demands[demand + 1, D.KIND]):
        count = map_kind(kind, tables.kinds[kind, K.NEED], count, is_joint, is_scattered, free, tables, scratch)
        if count == 0:
            return 0
    return count


@kernel
def placement_columns(demand: int, entries: Array, count: int, tables: Tables, scratch: Scratch) -> tuple[int, int]:
    """Write the amounts of a placement to the scratch: node columns with amounts, system columns with amounts.

    An exclusive demand takes its nodes whole. Returns the numbers of node and of system columns.
    """
    filled = 0
    systems = 0
    for q in range(scratch.samounts.shape[0]):
        scratch.samounts[q] = 0
    exclusive = tables.demands[demand, D.FLAGS] & F.EXCLUSIVE
    scratch.stamp[0] += 1
    before, segment = -1, 0  # entries are in the order of kinds and of their segments
    for e in range(count):
        node, kind, chunks = entries[e, 0], entries[e, 1], entries[e, 2]
        if exclusive:
            if scratch.stamps[node] == scratch.stamp[0]:
                continue
            scratch.stamps[node] = scratch.stamp[0]
            run = tables.run_of[node]
            inside = node - tables.runs[run, 0]
            for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
                column = tables.runcols[k] + inside
                scratch.columns[filled] = column
                scratch.amounts[filled] = tables.capacity[column]
                filled += 1
        else:
            if kind != before:
                segment = tables.kinds[kind, K.SEG]
                before = kind
            inside = node - tables.segments[segment, S.FIRST]
            while not 0 <= inside < tables.segments[segment, S.LENGTH]:
                segment += 1
                inside = node - tables.segments[segment, S.FIRST]
            for k in range(tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]):
                scratch.columns[filled] = tables.terms[k, 0] + inside
                scratch.amounts[filled] = chunks * tables.terms[k, 1]
                filled += 1
    for k in range(filled):
        for part in range(2):
            q = tables.colsys[scratch.columns[k], part]
            if q >= 0:
                scratch.samounts[q] += scratch.amounts[k]
    for k in range(tables.demands[demand, D.LICENSE], tables.demands[demand + 1, D.SYS]):
        scratch.samounts[tables.sysreq[k, 0]] += tables.sysreq[k, 1]
    for q in range(scratch.samounts.shape[0]):
        if scratch.samounts[q] != 0:
            scratch.scolumns[systems] = q
            scratch.samounts[systems] = scratch.samounts[q]
            systems += 1
    return filled, systems


@kernel
def may_have(entries: Array, count: int, free: Array, tables: Tables) -> bool:
    """Tell whether each chunk is on a node that may hold its kind, and the nodes, with nothing booked, have what chunks
    of all kinds take of them together: an exclusive demand is booked as the whole of its nodes, whatever they have.

    `free`, int32 (W,), is scratch.
    """
    for is_counted in (False, True):
        for e in range(count):
            node, kind, chunks = entries[e, 0], entries[e, 1], entries[e, 2]
            segment, behind = tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]
            while (
                segment < behind
                and not 0 <= node - tables.segments[segment, S.FIRST] < tables.segments[segment, S.LENGTH]
            ):
                segment += 1
            if segment == behind:
                return False
            inside = node - tables.segments[segment, S.FIRST]
            for k in range(tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]):
                column = tables.terms[k, 0] + inside
                left = INT64(tables.capacity[column])
                if is_counted:
                    left = free[column] - chunks * tables.terms[k, 1]
                if left < 0:
                    return False
                free[column] = left
    return True
