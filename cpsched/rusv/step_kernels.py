"""Kernels for evolving jobs, whose requests change from step to step and whose units stay on their nodes.

A *step sequence* is such a job, compiled: rows of tables that hold all sequences one after the other
(`step_sequences.py`).

The tables of the sequences are passed as `Sequences` (`q`), the timeline as one `World` (`w`), what is written down on
the way as `Trial` (`y`). The place of a sequence is written to a `Place`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.jit import inner_kernel, kernel
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
    Scratch,
    State,
    Tables,
    clear_busy,
    copy,
    earliest_fit,
    following,
    free_from,
    locate,
    next_window,
    scan_window,
    take_slots,
)
from cpsched.rusv.kernels.arrays import FOREVER

# columns of the tables
C_STEP, C_CONDITION, C_LAYER, C_ORDER = 0, 1, 2, 3
P_DEMAND, P_NEEDED, P_LONGEST = 0, 1, 2
N_DEMAND, N_FIRST, N_LAST = 0, 1, 2
L_FIRST, L_LAST, L_COUNT, L_KINDS = 0, 1, 2, 3
O_TURNS, O_FILLING = 0, 1


class Sequences(NamedTuple):
    """The tables of all sequences, one after the other."""

    #: int64 (sequences + 1, 4): where the rows of each sequence begin in the other tables, see ``C_*``.
    heads: NDArray[Any]
    #: int64 (·, 3): demand, seconds needed, and seconds for which the step may be held at the most.
    steps: NDArray[Any]
    #: int64 (·, 3): a demand that fits from the begin of one step to the end of another.
    conditions: NDArray[Any]
    #: int64 (·, 4): chunk layers: first step, last step, number of units, and where their kinds begin.
    layers: NDArray[Any]
    #: int64 (·,): which kind a layer's units are in each of its steps.
    layer_kinds: NDArray[Any]
    #: int64 (·, 2): a mapping order: where its layers begin in `turns`, and which row of `fillings`.
    orders: NDArray[Any]
    #: int64 (·,): layers of a sequence, counted from its first one.
    turns: NDArray[Any]
    #: int64 (·, nodes): all nodes, in the order in which they are filled.
    fillings: NDArray[Any]


class World(NamedTuple):
    """A timeline, to be searched."""

    s: State
    t: Tables
    x: Scratch


class Place(NamedTuple):
    """Where and when the steps of a sequence run; arrays may be longer than needed."""

    #: int64 (steps,): the begin of each step.
    begins: NDArray[Any]
    #: int32 (·, 3): rows of (node, kind, chunks), step by step.
    found: NDArray[Any]
    #: int64 (steps + 1,): the first row of each step, and the number of rows.
    spans: NDArray[Any]


class Trial(NamedTuple):
    """What the search for a place writes down, with space for the longest sequence."""

    #: int64 (conditions, 2): the interval in which each condition is known to hold.
    seen: NDArray[Any]
    #: int64 (steps,): begins of steps that are tried.
    tried: NDArray[Any]
    soonest: NDArray[Any]
    #: int32 (steps, W): what is free throughout each step, and what is left of it.
    least: NDArray[Any]
    free: NDArray[Any]
    #: int32 (W,)
    other: NDArray[Any]
    #: int32 (steps, kinds, nodes): the chunks on each node.
    held: NDArray[Any]
    #: int32 (nodes,): how many chunks fit.
    fits: NDArray[Any]
    units: NDArray[Any]
    #: A place with held steps.
    place: Place


# --- when steps begin ------------------------------------------------------------------------------------------------


@inner_kernel
def raise_all(begins, asked, is_held):
    """Raise the begins of steps to the bounds that follow from the begins of their neighbours."""
    last = asked.shape[0] - 1
    for step in range(last):
        begins[step + 1] = max(begins[step + 1], begins[step] + asked[step, P_NEEDED])
    for step in range(last - 1, -1, -1):
        longest = asked[step, P_LONGEST] if is_held else asked[step, P_NEEDED]
        begins[step] = max(begins[step], begins[step + 1] - longest)


@inner_kernel
def earliest_begins(sequence, earliest, latest, end_by, is_held, begins, q, w, y):
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
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    windows = q.conditions[q.heads[sequence, C_CONDITION] : q.heads[sequence + 1, C_CONDITION]]
    behind = asked.shape[0] - 1
    for k in range(windows.shape[0]):
        y.seen[k, 0] = y.seen[k, 1] = -1
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
            if y.seen[k, 0] == begins[first] and y.seen[k, 1] == end:
                continue
            start = first_begin(windows[k], begins[first], end, end_by, asked, w)
            if start < 0:
                return False
            y.seen[k, 0], y.seen[k, 1] = begins[first], end
            if start > begins[first]:
                has_risen = True
                begins[first] = start
                raise_all(begins, asked, is_held)
                if begins[0] > latest or begins[behind] + asked[behind, P_NEEDED] > end_by:
                    return False
    if behind > 0:
        begins[0] = max(begins[0], min(latest, begins[1] - asked[0, P_NEEDED]))
    return True


@inner_kernel
def first_begin(window, begin, end, end_by, asked, w):
    """Return the first begin of a condition's first step that the free amounts do not rule out, from there to the
    earliest end of its last step, which is at least `end`; -1 if there is none.
    """
    needed = np.int64(0)
    for step in range(window[N_FIRST], window[N_LAST] + 1):
        needed += asked[step, P_NEEDED]
    after = np.int64(0)
    for step in range(window[N_LAST] + 1, asked.shape[0]):
        after += asked[step, P_NEEDED]
    start, _ = earliest_fit(window[N_DEMAND], begin, needed, end_by - needed - after, w.s, w.t, w.x)
    if start == begin and end > start + needed:
        start = free_from(window[N_DEMAND], start, end, w.s, w.t, w.x)
    return start


@inner_kernel
def latest_begins(sequence, latest, begins, q, w, y):
    """Set `begins` to a schedule with the same end and the latest possible begin of the first step (EVO-9).

    The time between the begin and the end of a job, less its walltime, is wasted; this schedule wastes the least time.
    """
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    count, needed = asked.shape[0], np.int64(0)
    for step in range(count):
        needed += asked[step, P_NEEDED]
    end = begins[count - 1] + asked[count - 1, P_NEEDED]
    low, high = begins[0], min(latest, end - needed)
    while low < high:
        middle = (low + high + 1) // 2
        if earliest_begins(sequence, middle, latest, end, True, y.tried, q, w, y):
            copy(begins[:count], y.tried)
            low = begins[0]
        else:
            high = middle - 1


@kernel
def next_change(begins, count, w):
    """Return the shift after which one of `count` steps no longer meets some booking; FOREVER if there is none.

    Windows that only reach further have less free.
    """
    least = np.int64(FOREVER)
    for step in range(count):
        place, index = locate(begins[step], w.s)
        place, index = following(place, index, w.s)
        if place < w.s.head[H_BLOCKS]:
            least = min(least, w.s.slots[w.s.members[w.s.order[place], index], 0] - begins[step])
    return least


# --- nodes of units --------------------------------------------------------------------------------------------------


@kernel
def least_free(demand, start, end, target, other, w):
    """Set `target` to the amounts free throughout ``[start, end)``, of the columns that a demand takes; to 0 on
    nodes that an exclusive demand cannot have. `other` is space for as many amounts.
    """
    place, index = locate(start, w.s)
    last_place, last_index = locate(end - 1, w.s)
    source, other_at = w.t.capacity, 0
    for at in range(place, last_place + 1):
        block = w.s.order[at]
        low = index if at == place else 0
        high = last_index if at == last_place else w.s.members[block, BLOCK] - 1
        into = other if other_at == 0 else target
        take_slots(demand, block, low, high, source, into, w.s, w.t)
        source, other_at = into, 1 - other_at
    if other_at == 1:
        copy(target, other)
    if w.t.demands[demand, D_FLAGS] & EXCLUSIVE:
        for k in range(w.t.demands[demand, D_REACH], w.t.demands[demand + 1, D_REACH]):
            clear_busy(w.t.reach[k], target, w.t)


@inner_kernel
def lower_to_kind(kind, free, fits, units, w):
    """Lower `fits` to the number of chunks of a kind that fit on each node, given the free amounts in `free`."""
    most = np.int32(w.t.kinds[kind, K_MOST])
    for n in range(units.shape[0]):
        units[n] = 0
    for segment in range(w.t.kinds[kind, K_SEG], w.t.kinds[kind + 1, K_SEG]):
        node, length = w.t.segments[segment, S_FIRST], w.t.segments[segment, S_LENGTH]
        there = units[node : node + length]
        for n in range(length):
            there[n] = most
        for k in range(w.t.segments[segment, S_TERM], w.t.segments[segment + 1, S_TERM]):
            lower_to_column(there, free[w.t.terms[k, 0] : w.t.terms[k, 0] + length], w.t.scale[k, 0], w.t.scale[k, 1])
    for n in range(fits.shape[0]):
        fits[n] = min(fits[n], units[n])


@inner_kernel
def lower_to_column(units, free, a, b):
    """Lower the numbers of chunks to what one column allows (`kernels.count_kind` explains the division)."""
    for n in range(units.shape[0]):
        units[n] = max(np.int32(0), min(units[n], np.int32(free[n] * a + b)))


@inner_kernel
def take_units(demand, kind, node, units, free, w):
    """Lower `free` by the amounts of some chunks of a kind on a node; chunks of a scattered demand take all of it."""
    if w.t.demands[demand, D_FLAGS] & SCATTER:
        run = w.t.run_of[node]
        for k in range(w.t.runs[run, 2], w.t.runs[run + 1, 2]):
            free[w.t.runcols[k] + node - w.t.runs[run, 0]] = 0
        return
    for segment in range(w.t.kinds[kind, K_SEG], w.t.kinds[kind + 1, K_SEG]):
        inside = node - w.t.segments[segment, S_FIRST]
        if 0 <= inside < w.t.segments[segment, S_LENGTH]:
            for k in range(w.t.segments[segment, S_TERM], w.t.segments[segment + 1, S_TERM]):
                free[w.t.terms[k, 0] + inside] -= units * w.t.terms[k, 1]
            return


@inner_kernel
def place_layer(layer, asked, filling, q, w, y):
    """Give the units of a layer the first nodes, in the order `filling`, that have room throughout it; tell whether
    there are enough.
    """
    first, last, left = q.layers[layer, L_FIRST], q.layers[layer, L_LAST], q.layers[layer, L_COUNT]
    kinds = q.layer_kinds[q.layers[layer, L_KINDS] :]
    nodes = filling.shape[0]
    for node in range(nodes):
        y.fits[node] = left
    for step in range(first, last + 1):
        lower_to_kind(kinds[step - first], y.free[step], y.fits, y.units, w)
    for place in range(nodes):
        node = filling[place]
        if y.fits[node] == 0:
            continue
        take = min(left, np.int64(y.fits[node]))
        for step in range(first, last + 1):
            demand, kind = asked[step, P_DEMAND], kinds[step - first]
            take_units(demand, kind, node, take, y.free[step], w)
            y.held[step, kind - w.t.demands[demand, D_KIND], node] += take
        left -= take
        if left == 0:
            return True
    return False


@inner_kernel
def map_sequence(sequence, p, q, w, y):
    """Find nodes for all units of a sequence whose steps begin as `p` says; tell whether a mapping was found."""
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    count = asked.shape[0]
    for step in range(count):
        end = p.begins[step + 1] if step + 1 < count else p.begins[step] + asked[step, P_NEEDED]
        least_free(asked[step, P_DEMAND], p.begins[step], end, y.least[step], y.other, w)
    return map_layers(sequence, p, q, w, y)


@inner_kernel
def map_layers(sequence, p, q, w, y):
    """Find nodes for all units of a sequence in what is free throughout each step, `least`; tell whether a mapping was
    found (EVO-4b).

    A unit has one node for its whole layer, so that nothing migrates. Longer layers are mapped first. For equal units
    of one kind this finds a mapping whenever there is one: a node that can hold a unit throughout a layer can also hold
    it for a part of it, so the layers mapped first take no more from the others than any mapping has to.
    """
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    first_layer, behind = q.heads[sequence, C_LAYER], q.heads[sequence + 1, C_LAYER]
    for order in range(q.heads[sequence, C_ORDER], q.heads[sequence + 1, C_ORDER]):
        for step in range(asked.shape[0]):
            demand = asked[step, P_DEMAND]
            copy_ranges(demand, y.free[step], y.least[step], w)
            for kind in range(w.t.demands[demand + 1, D_KIND] - w.t.demands[demand, D_KIND]):
                for node in range(y.held.shape[2]):
                    y.held[step, kind, node] = 0
        turn, placed = q.orders[order, O_TURNS], 0
        while placed < behind - first_layer and place_layer(
            first_layer + q.turns[turn + placed], asked, q.fillings[q.orders[order, O_FILLING]], q, w, y
        ):
            placed += 1
        if placed == behind - first_layer:
            write_entries(asked, y.held, p.found, p.spans, w.t.demands)
            return True
    return False


@inner_kernel
def copy_ranges(demand, target, source, w):
    """Copy the amounts of the columns that a demand looks at."""
    for k in range(w.t.demands[demand, D_RANGE], w.t.demands[demand + 1, D_RANGE]):
        begin, end = w.t.ranges[k, 0], w.t.ranges[k, 1]
        copy(target[begin:end], source[begin:end])


@inner_kernel
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


@inner_kernel
def fit_steps(sequence, earliest, latest, p, q, w, y):
    """Set the begins to the earliest schedule without holds, from `earliest` on, in which each step fits by itself, and
    `least` to what is free throughout each; tell whether there is one that begins by `latest`.

    A step that does not fit begins after the last moment at which too little is free for it, and all others with it.
    """
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    count, begin, fitting, step, since = asked.shape[0], earliest, 0, asked.shape[0], np.int64(0)
    while fitting < count:
        if step == 0:
            step, since = count, np.int64(0)
        if step == count:
            for k in range(count):
                since += asked[k, P_NEEDED]
        step -= 1
        since -= asked[step, P_NEEDED]
        start, side = first_window(
            asked[step, P_DEMAND], begin + since, asked[step, P_NEEDED], latest + since, w.s, w.t, w.x
        )
        if start < 0:
            return False
        fitting = fitting + 1 if start == begin + since else 1
        begin = start - since
        copy_ranges(asked[step, P_DEMAND], y.least[step], w.x.free[side], w)
    for k in range(count):
        p.begins[k] = begin
        begin += asked[k, P_NEEDED]
    return True


@inner_kernel
def first_window(demand, start, duration, latest, s, t, x):
    """Find the earliest start in ``[start, latest]`` at which each kind of a demand fits by itself for `duration`.
    Returns (start or -1, the half of `free` with the amounts free all the time).
    """
    place, index = locate(start, s)
    known_place, known_index = place, index
    while True:
        start, place, index, last_place, last_index = next_window(
            demand, start, duration, latest, place, index, known_place, known_index, s, t
        )
        if start < 0:
            return np.int64(-1), 0
        side, at, blocked = scan_window(demand, place, index, last_place, last_index, t.capacity, s, t, x)
        if at < 0:
            return start, side
        place, index = following(at, blocked, s)
        if place == s.head[H_BLOCKS]:
            return np.int64(-1), 0
        start = s.slots[s.members[s.order[place], index], 0]
        known_place, known_index = following(last_place, last_index, s)


@inner_kernel
def find_unheld(sequence, earliest, latest, end_by, p, q, w, y):
    """Find the earliest place of a sequence in which no step is held; tell whether there is one."""
    asked = q.steps[q.heads[sequence, C_STEP] : q.heads[sequence + 1, C_STEP]]
    last, is_known_to_map, walltime = asked.shape[0] - 1, False, np.int64(0)
    for step in range(last + 1):
        walltime += asked[step, P_NEEDED]
    latest = min(latest, end_by - walltime)
    while fit_steps(sequence, earliest, latest, p, q, w, y):
        if map_layers(sequence, p, q, w, y):
            return True
        later = np.int64(0)
        for k in range(q.heads[sequence, C_CONDITION], q.heads[sequence + 1, C_CONDITION]):
            first, behind = q.conditions[k, N_FIRST], q.conditions[k, N_LAST] + 1
            end = p.begins[behind] if behind <= last else p.begins[0] + walltime
            start = first_begin(q.conditions[k], p.begins[first], end, end_by, asked, w)
            if start < 0:
                return False
            later = max(later, start - p.begins[first])
        if later == 0:
            later = next_change(p.begins, last + 1, w)
            if later == FOREVER:
                return False
        earliest = p.begins[0] + later
        if not is_known_to_map:
            begin_when_all_is_over(asked, p.begins, w)
            if not map_sequence(sequence, p, q, w, y):
                return False
            is_known_to_map = True
    return False


@inner_kernel
def begin_when_all_is_over(asked, begins, w):
    """Set the begins of the steps to times after the end of all bookings."""
    block = w.s.order[w.s.head[H_BLOCKS] - 1]
    begin = w.s.slots[w.s.members[block, w.s.members[block, BLOCK] - 1], 0]
    for step in range(asked.shape[0]):
        begins[step] = begin
        begin += asked[step, P_NEEDED]


@inner_kernel
def find_held(sequence, earliest, latest, end_by, tries, p, q, w, y):
    """Find a place of a sequence in which steps are held so that the last one ends as early as possible; tell whether
    one was found within `tries` attempts.
    """
    count = q.heads[sequence + 1, C_STEP] - q.heads[sequence, C_STEP]
    for _ in range(tries):
        if not earliest_begins(sequence, earliest, latest, end_by, True, y.soonest, q, w, y):
            return False
        copy(p.begins[:count], y.soonest)
        latest_begins(sequence, latest, p.begins, q, w, y)
        if map_sequence(sequence, p, q, w, y):
            return True
        is_same = True
        for step in range(count):
            is_same &= p.begins[step] == y.soonest[step]
            p.begins[step] = y.soonest[step]
        if not is_same and map_sequence(sequence, p, q, w, y):
            return True
        earliest = next_change(y.soonest, count, w)
        if earliest == FOREVER:
            return False
        earliest += y.soonest[0]
    return False


@inner_kernel
def may_hold(sequence, q):
    """Tell whether a sequence has a step that may be held beyond its walltime."""
    for step in range(q.heads[sequence, C_STEP], q.heads[sequence + 1, C_STEP]):
        if q.steps[step, P_LONGEST] > q.steps[step, P_NEEDED]:
            return True
    return False


@kernel
def find_sequence(sequence, earliest, latest, end_by, tries, p, q, w, y):
    """Find the place of a sequence with the earliest completion found and, for that, the latest start; tell whether
    there is one.

    It starts in ``[earliest, latest]`` and ends by `end_by`. At most `tries` attempts are made to map a schedule whose
    steps are held so that it completes earlier.
    """
    is_found = find_unheld(sequence, earliest, latest, end_by, p, q, w, y)
    if tries == 0 or not may_hold(sequence, q):
        return is_found
    count = q.heads[sequence + 1, C_STEP] - q.heads[sequence, C_STEP]
    if is_found:
        end_by = p.begins[count - 1] + q.steps[q.heads[sequence + 1, C_STEP] - 1, P_NEEDED] - 1
    held = y.place
    if not find_held(sequence, earliest, latest, end_by, tries, held, q, w, y):
        return is_found
    copy(p.begins[:count], held.begins)
    copy(p.spans[: count + 1], held.spans)
    for row in range(p.spans[count]):
        copy(p.found[row], held.found[row])
    return True
