"""Kernels for evolving jobs, whose requests change from step to step and whose units stay on their nodes.

A *step sequence* is such a job, compiled: rows of tables that hold all sequences one after the other
(`step_sequences.py`).

=========== ======================== =================================================================================
heads       int64 (sequences + 1, 4) where the rows of each sequence begin in the other tables, see ``C_*``
steps       int64 (·, 3)             demand, seconds needed, and seconds for which the step may be held at the most
conditions  int64 (·, 3)             a demand that fits from the begin of one step to the end of another
layers      int64 (·, 4)             chunk layers: first step, last step, number of units, and where their kinds begin
layer_kinds int64 (·,)               which kind a layer's units are in each of its steps
orders      int64 (·, 2)             a mapping order: where its layers begin in `turns`, and which row of `fillings`
turns       int64 (·,)               layers of a sequence, counted from its first one
fillings    int64 (·, nodes)         all nodes, in the order in which they are filled
=========== ======================== =================================================================================

The tables are passed as one tuple, `sequences`; the arguments of `kernels.earliest_fit` after `latest` are passed as
another one, `world`. The place of a sequence is written to `begins` (the begin of each step), `found` (rows of node,
kind and chunks, step by step) and `spans` (the first row of each step, and the number of rows).
"""

from __future__ import annotations

import numpy as np

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import (
    BLOCK,
    D_FLAGS,
    D_KIND,
    D_RANGE,
    D_REACH,
    EXCLUSIVE,
    H_BLOCKS,
    K_MOST,
    K_SEG,
    S_FIRST,
    S_LENGTH,
    S_TERM,
    SCATTER,
    clear_busy,
    copy,
    earliest_fit,
    following,
    free_from,
    locate,
    take_slots,
)
from cpsched.rusv.vector import FOREVER

# columns of the tables
C_STEP, C_CONDITION, C_LAYER, C_ORDER = 0, 1, 2, 3
P_DEMAND, P_NEEDED, P_LONGEST = 0, 1, 2
N_DEMAND, N_FIRST, N_LAST = 0, 1, 2
L_FIRST, L_LAST, L_COUNT, L_KINDS = 0, 1, 2, 3
O_TURNS, O_FILLING = 0, 1


# --- when steps begin ------------------------------------------------------------------------------------------------


@kernel
def raise_all(begins, asked, is_held):
    """Raise the begins of steps to the bounds that follow from the begins of their neighbours."""
    last = asked.shape[0] - 1
    for step in range(last):
        begins[step + 1] = max(begins[step + 1], begins[step] + asked[step, P_NEEDED])
    for step in range(last - 1, -1, -1):
        longest = asked[step, P_LONGEST] if is_held else asked[step, P_NEEDED]
        begins[step] = max(begins[step], begins[step + 1] - longest)


@kernel
def earliest_begins(sequence, earliest, latest, end_by, is_held, begins, sequences, world):
    """Set `begins` to the schedule in which each step but the first begins as early as in any schedule; tell whether
    there is one.

    All conditions of the sequence hold in it. Its first step begins in ``[earliest, latest]``, its last one ends by
    `end_by`. The first step is never held but delayed: it begins as late as the second one allows.

    The algorithm of Klein and Pérez (EVO-8), with lower bounds that only rise. A step begins no earlier than the one
    before ends, and no earlier than its own longest hold before the next one begins. If a window lacks resources at
    some moment between its earliest begin and its earliest end, it begins after the last such moment. Begins that are
    ruled out are so in every schedule; when no more can be ruled out, the bounds are a schedule themselves, and no
    other one completes earlier. The original counts nodes; windows over several steps do the same node by node.
    """
    heads, steps, conditions = sequences[0], sequences[1], sequences[2]
    asked = steps[heads[sequence, C_STEP] : heads[sequence + 1, C_STEP]]
    windows = conditions[heads[sequence, C_CONDITION] : heads[sequence + 1, C_CONDITION]]
    behind = asked.shape[0] - 1
    seen = np.full((windows.shape[0], 2), -1, dtype=np.int64)  # the interval in which each condition is known to hold
    begins[0] = earliest
    for step in range(behind):
        begins[step + 1] = begins[step] + asked[step, P_NEEDED]
    has_risen = begins[0] <= latest and begins[behind] + asked[behind, P_NEEDED] <= end_by
    if not has_risen:
        return False
    while has_risen:
        has_risen = False
        for k in range(windows.shape[0]):
            first, last = windows[k, N_FIRST], windows[k, N_LAST]
            end = begins[last + 1] if last < behind else begins[last] + asked[last, P_NEEDED]
            if seen[k, 0] == begins[first] and seen[k, 1] == end:
                continue
            start = first_begin(windows[k], begins[first], end, end_by, asked, world)
            if start < 0:
                return False
            seen[k, 0], seen[k, 1] = begins[first], end
            if start > begins[first]:
                has_risen = True
                begins[first] = start
                raise_all(begins, asked, is_held)
                if begins[0] > latest or begins[behind] + asked[behind, P_NEEDED] > end_by:
                    return False
    if behind > 0:
        begins[0] = max(begins[0], min(latest, begins[1] - asked[0, P_NEEDED]))
    return True


@kernel
def first_begin(window, begin, end, end_by, asked, world):
    """Return the first begin of a condition's first step that the free amounts do not rule out, from there to the
    earliest end of its last step, which is at least `end`; -1 if there is none.
    """
    needed = np.int64(0)
    for step in range(window[N_FIRST], window[N_LAST] + 1):
        needed += asked[step, P_NEEDED]
    after = np.int64(0)
    for step in range(window[N_LAST] + 1, asked.shape[0]):
        after += asked[step, P_NEEDED]
    start, _ = earliest_fit(window[N_DEMAND], begin, needed, end_by - needed - after, *world)
    if start == begin and end > start + needed:
        start = free_from(window[N_DEMAND], start, end, *(world[:19] + world[20:22]))
    return start


@kernel
def latest_begins(sequence, latest, begins, sequences, world):
    """Set `begins` to a schedule with the same end and the latest possible begin of the first step (EVO-9).

    The time between the begin and the end of a job, less its walltime, is wasted; this schedule wastes the least time.
    """
    heads, steps = sequences[0], sequences[1]
    asked = steps[heads[sequence, C_STEP] : heads[sequence + 1, C_STEP]]
    end = begins[-1] + asked[-1, P_NEEDED]
    low, high = begins[0], min(latest, end - asked[:, P_NEEDED].sum())
    tried = np.empty_like(begins)
    while low < high:
        middle = (low + high + 1) // 2
        if earliest_begins(sequence, middle, latest, end, True, tried, sequences, world):
            copy(begins, tried)
            low = begins[0]
        else:
            high = middle - 1


@kernel
def next_change(begins, world):
    """Return the shift after which one step no longer meets some booking; FOREVER if there is no such shift.

    Windows that only reach further have less free.
    """
    head, slots, order, members = world[0], world[1], world[2], world[3]
    least = np.int64(FOREVER)
    for step in range(begins.shape[0]):
        place, index = locate(head, slots, order, members, begins[step])
        place, index = following(place, index, order, members)
        if place < head[H_BLOCKS]:
            least = min(least, slots[members[order[place], index], 0] - begins[step])
    return least


# --- nodes of units --------------------------------------------------------------------------------------------------


@kernel
def least_free(demand, start, end, target, world):
    """Set `target` to the amounts free throughout ``[start, end)``, of the columns that a demand takes; to 0 on
    nodes that an exclusive demand cannot have.
    """
    head, slots, order, members, rows, blk = world[0], world[1], world[2], world[3], world[4], world[5]
    demands, ranges, reach, runs, runcols, capacity = world[8], world[14], world[15], world[16], world[17], world[18]
    place, index = locate(head, slots, order, members, start)
    last_place, last_index = locate(head, slots, order, members, end - 1)
    first, last = demands[demand, D_RANGE], demands[demand + 1, D_RANGE]
    source, other, other_at = capacity, np.empty_like(target), 0
    for at in range(place, last_place + 1):
        block = order[at]
        low = index if at == place else 0
        high = last_index if at == last_place else members[block, BLOCK] - 1
        into = other if other_at == 0 else target
        take_slots(block, low, high, source, into, members, rows, blk, ranges, first, last)
        source, other_at = into, 1 - other_at
    if other_at == 1:
        copy(target, other)
    if demands[demand, D_FLAGS] & EXCLUSIVE:
        for k in range(demands[demand, D_REACH], demands[demand + 1, D_REACH]):
            clear_busy(reach[k], target, runs, runcols, capacity)


@kernel
def lower_to_kind(kind, free, fits, units, world):
    """Lower `fits` to the number of chunks of a kind that fit on each node, given the free amounts in `free`."""
    kinds, segments, terms, scale = world[9], world[10], world[11], world[12]
    most = np.int32(kinds[kind, K_MOST])
    for n in range(units.shape[0]):
        units[n] = 0
    for segment in range(kinds[kind, K_SEG], kinds[kind + 1, K_SEG]):
        node, length = segments[segment, S_FIRST], segments[segment, S_LENGTH]
        there = units[node : node + length]
        for n in range(length):
            there[n] = most
        for k in range(segments[segment, S_TERM], segments[segment + 1, S_TERM]):
            lower_to_column(there, free[terms[k, 0] : terms[k, 0] + length], scale[k, 0], scale[k, 1])
    for n in range(fits.shape[0]):
        fits[n] = min(fits[n], units[n])


@kernel
def lower_to_column(units, free, a, b):
    """Lower the numbers of chunks to what one column allows (`kernels.count_kind` explains the division)."""
    for n in range(units.shape[0]):
        units[n] = max(np.int32(0), min(units[n], np.int32(free[n] * a + b)))


@kernel
def take_units(demand, kind, node, units, free, world):
    """Lower `free` by the amounts of some chunks of a kind on a node; chunks of a scattered demand take all of it."""
    demands, kinds, segments, terms = world[8], world[9], world[10], world[11]
    if demands[demand, D_FLAGS] & SCATTER:
        runs, runcols, run_of = world[16], world[17], world[19]
        run = run_of[node]
        for k in range(runs[run, 2], runs[run + 1, 2]):
            free[runcols[k] + node - runs[run, 0]] = 0
        return
    for segment in range(kinds[kind, K_SEG], kinds[kind + 1, K_SEG]):
        inside = node - segments[segment, S_FIRST]
        if 0 <= inside < segments[segment, S_LENGTH]:
            for k in range(segments[segment, S_TERM], segments[segment + 1, S_TERM]):
                free[terms[k, 0] + inside] -= units * terms[k, 1]
            return


@kernel
def place_layer(layer, asked, filling, free, held, sequences, world):
    """Give the units of a layer the first nodes, in the order `filling`, that have room throughout it; tell whether
    there are enough.
    """
    layers, layer_kinds, demands = sequences[3], sequences[4], world[8]
    first, last, left = layers[layer, L_FIRST], layers[layer, L_LAST], layers[layer, L_COUNT]
    kinds = layer_kinds[layers[layer, L_KINDS] :]
    nodes = filling.shape[0]
    fits, units = np.full(nodes, left, dtype=np.int32), np.empty(nodes, dtype=np.int32)
    for step in range(first, last + 1):
        lower_to_kind(kinds[step - first], free[step], fits, units, world)
    for place in range(nodes):
        node = filling[place]
        if fits[node] == 0:
            continue
        take = min(left, np.int64(fits[node]))
        for step in range(first, last + 1):
            demand, kind = asked[step, P_DEMAND], kinds[step - first]
            take_units(demand, kind, node, take, free[step], world)
            held[step, kind - demands[demand, D_KIND], node] += take
        left -= take
        if left == 0:
            return True
    return False


@kernel
def map_sequence(sequence, begins, found, spans, sequences, world):
    """Find nodes for all units of a sequence whose steps begin at `begins`; tell whether a mapping was found (EVO-4b).

    A unit has one node for its whole layer, so that nothing migrates. Longer layers are mapped first. For equal units
    of one kind this finds a mapping whenever there is one: a node that can hold a unit throughout a layer can also hold
    it for a part of it, so the layers mapped first take no more from the others than any mapping has to.
    """
    heads, steps, orders, turns, fillings = sequences[0], sequences[1], sequences[5], sequences[6], sequences[7]
    demands, capacity = world[8], world[18]
    asked = steps[heads[sequence, C_STEP] : heads[sequence + 1, C_STEP]]
    first_layer, behind = heads[sequence, C_LAYER], heads[sequence + 1, C_LAYER]
    count, most_kinds = asked.shape[0], np.int64(0)
    least = np.empty((count, capacity.shape[0]), dtype=np.int32)
    for step in range(count):
        demand = asked[step, P_DEMAND]
        most_kinds = max(most_kinds, demands[demand + 1, D_KIND] - demands[demand, D_KIND])
        end = begins[step + 1] if step + 1 < count else begins[step] + asked[step, P_NEEDED]
        least_free(demand, begins[step], end, least[step], world)
    free = np.empty_like(least)
    for order in range(heads[sequence, C_ORDER], heads[sequence + 1, C_ORDER]):
        for step in range(count):
            copy(free[step], least[step])
        held = np.zeros((count, most_kinds, fillings.shape[1]), dtype=np.int32)
        turn, placed = orders[order, O_TURNS], 0
        while placed < behind - first_layer and place_layer(
            first_layer + turns[turn + placed], asked, fillings[orders[order, O_FILLING]], free, held, sequences, world
        ):
            placed += 1
        if placed == behind - first_layer:
            write_entries(asked, held, found, spans, demands)
            return True
    return False


@kernel
def write_entries(asked, held, found, spans, demands):
    """Write the number of chunks of each kind on each node, by step, then by kind, then ascending by node."""
    spans[0] = 0
    for step in range(asked.shape[0]):
        first_kind = demands[asked[step, P_DEMAND], D_KIND]
        rows = spans[step]
        for kind in range(demands[asked[step, P_DEMAND] + 1, D_KIND] - first_kind):
            for node in range(held.shape[2]):
                if held[step, kind, node] > 0:
                    found[rows, 0], found[rows, 1], found[rows, 2] = node, first_kind + kind, held[step, kind, node]
                    rows += 1
        spans[step + 1] = rows


# --- whole sequences -------------------------------------------------------------------------------------------------


@kernel
def find_unheld(sequence, earliest, latest, end_by, begins, found, spans, sequences, world):
    """Find the earliest place of a sequence in which no step is held; tell whether there is one."""
    asked = sequences[1][sequences[0][sequence, C_STEP] : sequences[0][sequence + 1, C_STEP]]
    is_known_to_map = False
    while earliest_begins(sequence, earliest, latest, end_by, False, begins, sequences, world):
        if map_sequence(sequence, begins, found, spans, sequences, world):
            return True
        earliest = next_change(begins, world)
        if earliest == FOREVER:
            return False
        earliest += begins[0]
        if not is_known_to_map:
            begin_when_all_is_over(asked, begins, world)
            if not map_sequence(sequence, begins, found, spans, sequences, world):
                return False
            is_known_to_map = True
    return False


@kernel
def begin_when_all_is_over(asked, begins, world):
    """Set the begins of the steps to times after the end of all bookings."""
    head, slots, order, members = world[0], world[1], world[2], world[3]
    block = order[head[H_BLOCKS] - 1]
    begin = slots[members[block, members[block, BLOCK] - 1], 0]
    for step in range(asked.shape[0]):
        begins[step] = begin
        begin += asked[step, P_NEEDED]


@kernel
def find_held(sequence, earliest, latest, end_by, tries, begins, found, spans, sequences, world):
    """Find a place of a sequence in which steps are held so that the last one ends as early as possible; tell whether
    one was found within `tries` attempts.
    """
    soonest = np.empty_like(begins)
    for _ in range(tries):
        if not earliest_begins(sequence, earliest, latest, end_by, True, soonest, sequences, world):
            return False
        copy(begins, soonest)
        latest_begins(sequence, latest, begins, sequences, world)
        if map_sequence(sequence, begins, found, spans, sequences, world):
            return True
        is_same = True
        for step in range(begins.shape[0]):
            is_same &= begins[step] == soonest[step]
            begins[step] = soonest[step]
        if not is_same and map_sequence(sequence, begins, found, spans, sequences, world):
            return True
        earliest = next_change(soonest, world)
        if earliest == FOREVER:
            return False
        earliest += soonest[0]
    return False


@kernel
def may_hold(sequence, sequences):
    """Tell whether a sequence has a step that may be held beyond its walltime."""
    heads, steps = sequences[0], sequences[1]
    for step in range(heads[sequence, C_STEP], heads[sequence + 1, C_STEP]):
        if steps[step, P_LONGEST] > steps[step, P_NEEDED]:
            return True
    return False


@kernel
def find_sequence(sequence, earliest, latest, end_by, tries, begins, found, spans, sequences, world):
    """Find the place of a sequence with the earliest completion found and, for that, the latest start; tell whether
    there is one.

    It starts in ``[earliest, latest]`` and ends by `end_by`. At most `tries` attempts are made to map a schedule whose
    steps are held so that it completes earlier.
    """
    is_found = find_unheld(sequence, earliest, latest, end_by, begins, found, spans, sequences, world)
    if tries == 0 or not may_hold(sequence, sequences):
        return is_found
    if is_found:
        end_by = begins[-1] + sequences[1][sequences[0][sequence + 1, C_STEP] - 1, P_NEEDED] - 1
    held_begins, held_found, held_spans = np.empty_like(begins), np.empty_like(found), np.empty_like(spans)
    if not find_held(
        sequence, earliest, latest, end_by, tries, held_begins, held_found, held_spans, sequences, world
    ):  # fmt: skip
        return is_found
    copy(begins, held_begins)
    copy(spans, held_spans)
    for row in range(spans[-1]):
        copy(found[row], held_found[row])
    return True
