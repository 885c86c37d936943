"""Kernels for evolving jobs, whose requests change from step to step and whose units stay on their nodes.

A *step sequence* is such a job, compiled: rows of tables that hold all sequences one after the other
(`step_sequences.py`).

The tables of the sequences are passed as `Sequences`, the timeline as `TimelineArrays`, what is written down on the way
as a `Trial`. The place of a sequence is written to a `Place`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Scratch, Tables, TimelineState
from cpsched.rusv.kernels.axis import copy, following, locate
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, INT64, D, F, H, K, S
from cpsched.rusv.kernels.mapping import clear_busy
from cpsched.rusv.kernels.windows import earliest_fit, first_window, free_from, take_slots

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


class TimelineArrays(NamedTuple):
    """A timeline, to be searched."""

    state: TimelineState
    tables: Tables
    scratch: Scratch


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
def raise_all(begins: Array, asked: Array) -> None:
    """Raise the begins of steps to the bounds that follow from the begins of their neighbours."""
    last = asked.shape[0] - 1
    for step in range(last):
        begins[step + 1] = max(begins[step + 1], begins[step] + asked[step, P_NEEDED])
    for step in range(last - 1, -1, -1):
        begins[step] = max(begins[step], begins[step + 1] - asked[step, P_LONGEST])


@inner_kernel
def earliest_begins(
    sequence: int,
    earliest: int,
    latest: int,
    end_by: int,
    begins: Array,
    sequences: Sequences,
    timeline: TimelineArrays,
    trial: Trial,
) -> bool:
    """Set `begins` to the schedule in which each step but the first begins earliest; tell whether there is one.

    All conditions of the sequence hold in it. Its first step begins in ``[earliest, latest]``, its last one ends by
    `end_by`. The first step is never held but delayed: it begins as late as the second one allows.

    The algorithm of Klein and Pérez (EVO-8), with lower bounds that only rise. A step begins no earlier than the one
    before ends, and no earlier than its own longest hold before the next one begins. If a window lacks resources at
    some moment between its earliest begin and its earliest end, it begins after the last such moment. Begins that are
    ruled out are so in every schedule; when no more can be ruled out, the bounds are a schedule themselves, and no
    other one completes earlier. The original counts nodes; windows over several steps do the same node by node.
    """
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    windows = sequences.conditions[sequences.heads[sequence, C_CONDITION] : sequences.heads[sequence + 1, C_CONDITION]]
    behind = asked.shape[0] - 1
    for k in range(windows.shape[0]):
        trial.seen[k, 0] = trial.seen[k, 1] = -1
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
            if trial.seen[k, 0] == begins[first] and trial.seen[k, 1] == end:
                continue
            start = first_begin(windows[k], begins[first], end, end_by, asked, timeline)
            if start < 0:
                return False
            trial.seen[k, 0], trial.seen[k, 1] = begins[first], end
            if start > begins[first]:
                has_risen = True
                begins[first] = start
                raise_all(begins, asked)
                if begins[0] > latest or begins[behind] + asked[behind, P_NEEDED] > end_by:
                    return False
    if behind > 0:
        begins[0] = max(begins[0], min(latest, begins[1] - asked[0, P_NEEDED]))
    return True


@inner_kernel
def first_begin(window: Array, begin: int, end: int, end_by: int, asked: Array, timeline: TimelineArrays) -> int:
    """Return the first begin of a condition's first step that the free amounts do not rule out, from there to the
    earliest end of its last step, which is at least `end`; -1 if there is none.
    """
    needed = INT64(0)
    for step in range(window[N_FIRST], window[N_LAST] + 1):
        needed += asked[step, P_NEEDED]
    after = INT64(0)
    for step in range(window[N_LAST] + 1, asked.shape[0]):
        after += asked[step, P_NEEDED]
    start, _ = earliest_fit(
        window[N_DEMAND], begin, needed, end_by - needed - after, timeline.state, timeline.tables, timeline.scratch
    )
    if start == begin and end > start + needed:
        start = free_from(window[N_DEMAND], start, end, timeline.state, timeline.tables, timeline.scratch)
    return start


@inner_kernel
def latest_begins(
    sequence: int, latest: int, begins: Array, sequences: Sequences, timeline: TimelineArrays, trial: Trial
) -> None:
    """Set `begins` to a schedule with the same end and the latest possible begin of the first step (EVO-9).

    The time between the begin and the end of a job, less its walltime, is wasted; this schedule wastes the least time.
    """
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    count, needed = asked.shape[0], INT64(0)
    for step in range(count):
        needed += asked[step, P_NEEDED]
    end = begins[count - 1] + asked[count - 1, P_NEEDED]
    low, high = begins[0], min(latest, end - needed)
    while low < high:
        middle = (low + high + 1) // 2
        if earliest_begins(sequence, middle, latest, end, trial.tried, sequences, timeline, trial):
            copy(begins[:count], trial.tried)
            low = begins[0]
        else:
            high = middle - 1


@inner_kernel
def next_change(begins: Array, count: int, timeline: TimelineArrays) -> int:
    """Return the shift after which one of `count` steps no longer meets some booking, FOREVER if there is none."""
    least, state = INT64(FOREVER), timeline.state
    for step in range(count):
        place, index = locate(begins[step], state)
        place, index = following(place, index, state)
        if place < state.head[H.BLOCKS]:
            least = min(least, state.slots[state.members[state.order[place], index], 0] - begins[step])
    return least


# --- nodes of units --------------------------------------------------------------------------------------------------


@inner_kernel
def least_free(demand: int, start: int, end: int, target: Array, other: Array, timeline: TimelineArrays) -> None:
    """Set `target` to the amounts free throughout ``[start, end)``, of the columns that a demand takes; to 0 on
    nodes that an exclusive demand cannot have. `other` is space for as many amounts.
    """
    place, index = locate(start, timeline.state)
    last_place, last_index = locate(end - 1, timeline.state)
    source, other_at = timeline.tables.capacity, 0
    for at in range(place, last_place + 1):
        block = timeline.state.order[at]
        low = index if at == place else 0
        high = last_index if at == last_place else timeline.state.members[block, BLOCK] - 1
        into = other if other_at == 0 else target
        take_slots(demand, block, low, high, source, into, timeline.state, timeline.tables)
        source, other_at = into, 1 - other_at
    if other_at == 1:
        copy(target, other)
    if timeline.tables.demands[demand, D.FLAGS] & F.EXCLUSIVE:
        for k in range(timeline.tables.demands[demand, D.REACH], timeline.tables.demands[demand + 1, D.REACH]):
            clear_busy(timeline.tables.reach[k], target, timeline.tables)


@inner_kernel
def lower_to_kind(kind: int, free: Array, fits: Array, units: Array, tables: Tables) -> None:
    """Lower `fits` to the number of chunks of a kind that fit on each node, given the free amounts in `free`."""
    most = np.int32(tables.kinds[kind, K.MOST])
    for n in range(units.shape[0]):
        units[n] = 0
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        node, length = tables.segments[segment, S.FIRST], tables.segments[segment, S.LENGTH]
        there = units[node : node + length]
        for n in range(length):
            there[n] = most
        for k in range(tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]):
            first = tables.terms[k, 0]
            lower_to_column(there, free[first : first + length], tables.scale[k, 0], tables.scale[k, 1])
    for n in range(fits.shape[0]):
        fits[n] = min(fits[n], units[n])


@inner_kernel
def lower_to_column(units: Array, free: Array, factor: float, summand: float) -> None:
    """Lower the numbers of chunks to what one column allows (`kernels.count_kind` explains the division)."""
    for n in range(units.shape[0]):
        units[n] = max(np.int32(0), min(units[n], np.int32(free[n] * factor + summand)))


@inner_kernel
def take_units(demand: int, kind: int, node: int, units: int, free: Array, tables: Tables) -> None:
    """Lower `free` by the amounts of some chunks of a kind on a node; chunks of a scattered demand take all of it."""
    if tables.demands[demand, D.FLAGS] & F.SCATTER:
        run = tables.run_of[node]
        for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
            free[tables.runcols[k] + node - tables.runs[run, 0]] = 0
        return
    for segment in range(tables.kinds[kind, K.SEG], tables.kinds[kind, K.BEHIND]):
        inside = node - tables.segments[segment, S.FIRST]
        if 0 <= inside < tables.segments[segment, S.LENGTH]:
            for k in range(tables.segments[segment, S.TERM], tables.segments[segment + 1, S.TERM]):
                free[tables.terms[k, 0] + inside] -= units * tables.terms[k, 1]
            return


@inner_kernel
def place_layer(
    layer: int, asked: Array, filling: Array, sequences: Sequences, timeline: TimelineArrays, trial: Trial
) -> bool:
    """Give the units of a layer the first nodes of `filling` with room throughout it; tell whether all have one."""
    layers = sequences.layers
    first, last, left = layers[layer, L_FIRST], layers[layer, L_LAST], layers[layer, L_COUNT]
    kinds = sequences.layer_kinds[sequences.layers[layer, L_KINDS] :]
    nodes = filling.shape[0]
    for node in range(nodes):
        trial.fits[node] = left
    for step in range(first, last + 1):
        lower_to_kind(kinds[step - first], trial.free[step], trial.fits, trial.units, timeline.tables)
    for place in range(nodes):
        node = filling[place]
        if trial.fits[node] == 0:
            continue
        take = min(left, INT64(trial.fits[node]))
        for step in range(first, last + 1):
            demand, kind = asked[step, P_DEMAND], kinds[step - first]
            take_units(demand, kind, node, take, trial.free[step], timeline.tables)
            trial.held[step, kind - timeline.tables.demands[demand, D.KIND], node] += take
        left -= take
        if left == 0:
            return True
    return False


@inner_kernel
def map_sequence(sequence: int, place: Place, sequences: Sequences, timeline: TimelineArrays, trial: Trial) -> bool:
    """Find nodes for all units of a sequence whose steps begin as `place` says; tell whether a mapping was found."""
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    count = asked.shape[0]
    for step in range(count):
        end = place.begins[step + 1] if step + 1 < count else place.begins[step] + asked[step, P_NEEDED]
        least_free(asked[step, P_DEMAND], place.begins[step], end, trial.least[step], trial.other, timeline)
    return map_layers(sequence, place, sequences, timeline, trial)


@inner_kernel
def map_layers(sequence: int, place: Place, sequences: Sequences, timeline: TimelineArrays, trial: Trial) -> bool:
    """Find nodes for all units of a sequence in what is free throughout each step, `least`; tell whether a mapping was
    found (EVO-4b).

    A unit has one node for its whole layer, so that nothing migrates. Longer layers are mapped first. For equal units
    of one kind this finds a mapping whenever there is one: a node that can hold a unit throughout a layer can also hold
    it for a part of it, so the layers mapped first take no more from the others than any mapping has to.
    """
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    first_layer, behind = sequences.heads[sequence, C_LAYER], sequences.heads[sequence + 1, C_LAYER]
    for order in range(sequences.heads[sequence, C_ORDER], sequences.heads[sequence + 1, C_ORDER]):
        for step in range(asked.shape[0]):
            demand = asked[step, P_DEMAND]
            copy_ranges(demand, trial.free[step], trial.least[step], timeline.tables)
            for kind in range(timeline.tables.demands[demand + 1, D.KIND] - timeline.tables.demands[demand, D.KIND]):
                for node in range(trial.held.shape[2]):
                    trial.held[step, kind, node] = 0
        turn, placed = sequences.orders[order, O_TURNS], 0
        filling = sequences.fillings[sequences.orders[order, O_FILLING]]
        while placed < behind - first_layer and place_layer(
            first_layer + sequences.turns[turn + placed], asked, filling, sequences, timeline, trial
        ):
            placed += 1
        if placed == behind - first_layer:
            write_entries(asked, trial.held, place.found, place.spans, timeline.tables.demands)
            return True
    return False


@inner_kernel
def copy_ranges(demand: int, target: Array, source: Array, tables: Tables) -> None:
    """Copy the amounts of the columns that a demand looks at."""
    for k in range(tables.demands[demand, D.RANGE], tables.demands[demand + 1, D.RANGE]):
        begin, end = tables.ranges[k, 0], tables.ranges[k, 1]
        copy(target[begin:end], source[begin:end])


@inner_kernel
def write_entries(asked: Array, held: Array, found: Array, spans: Array, demands: Array) -> None:
    """Write the number of chunks of each kind on each node, by step, then by kind, then ascending by node."""
    spans[0] = 0
    for step in range(asked.shape[0]):
        first_kind = demands[asked[step, P_DEMAND], D.KIND]
        rows = spans[step]
        for kind in range(demands[asked[step, P_DEMAND] + 1, D.KIND] - first_kind):
            for node in range(held.shape[2]):
                if held[step, kind, node] > 0:
                    found[rows, 0], found[rows, 1], found[rows, 2] = node, first_kind + kind, held[step, kind, node]
                    rows += 1
        spans[step + 1] = rows


# --- whole sequences -------------------------------------------------------------------------------------------------


@inner_kernel
def fit_steps(
    sequence: int,
    earliest: int,
    latest: int,
    place: Place,
    sequences: Sequences,
    timeline: TimelineArrays,
    trial: Trial,
) -> bool:
    """Set the begins to the earliest schedule without holds, from `earliest` on, in which each step fits by itself, and
    `least` to what is free throughout each; tell whether there is one that begins by `latest`.

    A step that does not fit begins after the last moment at which too little is free for it, and all others with it.
    """
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    count, begin, fitting, step, since = asked.shape[0], earliest, 0, asked.shape[0], INT64(0)
    state = timeline.state
    while fitting < count:
        if step == 0:
            step, since = count, INT64(0)
        if step == count:
            for k in range(count):
                since += asked[k, P_NEEDED]
        step -= 1
        since -= asked[step, P_NEEDED]
        demand = asked[step, P_DEMAND]
        start, side = first_window(
            demand, begin + since, asked[step, P_NEEDED], latest + since, state, timeline.tables, timeline.scratch
        )
        if start < 0:
            return False
        fitting = fitting + 1 if start == begin + since else 1
        begin = start - since
        copy_ranges(demand, trial.least[step], timeline.scratch.free[side], timeline.tables)
    for k in range(count):
        place.begins[k] = begin
        begin += asked[k, P_NEEDED]
    return True


@inner_kernel
def find_unheld(
    sequence: int,
    earliest: int,
    latest: int,
    end_by: int,
    place: Place,
    sequences: Sequences,
    timeline: TimelineArrays,
    trial: Trial,
) -> bool:
    """Find the earliest place of a sequence in which no step is held; tell whether there is one."""
    asked = sequences.steps[sequences.heads[sequence, C_STEP] : sequences.heads[sequence + 1, C_STEP]]
    last, is_known_to_map, walltime = asked.shape[0] - 1, False, INT64(0)
    for step in range(last + 1):
        walltime += asked[step, P_NEEDED]
    latest = min(latest, end_by - walltime)
    while fit_steps(sequence, earliest, latest, place, sequences, timeline, trial):
        if map_layers(sequence, place, sequences, timeline, trial):
            return True
        later = INT64(0)
        for k in range(sequences.heads[sequence, C_CONDITION], sequences.heads[sequence + 1, C_CONDITION]):
            first, behind = sequences.conditions[k, N_FIRST], sequences.conditions[k, N_LAST] + 1
            end = place.begins[behind] if behind <= last else place.begins[0] + walltime
            start = first_begin(sequences.conditions[k], place.begins[first], end, end_by, asked, timeline)
            if start < 0:
                return False
            later = max(later, start - place.begins[first])
        if later == 0:
            later = next_change(place.begins, last + 1, timeline)
            if later == FOREVER:
                return False
        earliest = place.begins[0] + later
        if not is_known_to_map:
            begin_when_all_is_over(asked, place.begins, timeline)
            if not map_sequence(sequence, place, sequences, timeline, trial):
                return False
            is_known_to_map = True
    return False


@inner_kernel
def begin_when_all_is_over(asked: Array, begins: Array, timeline: TimelineArrays) -> None:
    """Set the begins of the steps to times after the end of all bookings."""
    block = timeline.state.order[timeline.state.head[H.BLOCKS] - 1]
    begin = timeline.state.slots[timeline.state.members[block, timeline.state.members[block, BLOCK] - 1], 0]
    for step in range(asked.shape[0]):
        begins[step] = begin
        begin += asked[step, P_NEEDED]


@inner_kernel
def find_held(
    sequence: int,
    earliest: int,
    latest: int,
    end_by: int,
    tries: int,
    place: Place,
    sequences: Sequences,
    timeline: TimelineArrays,
    trial: Trial,
) -> bool:
    """Find a place with held steps whose last one ends as early as possible, in `tries` attempts; tell whether."""
    count = sequences.heads[sequence + 1, C_STEP] - sequences.heads[sequence, C_STEP]
    for _ in range(tries):
        if not earliest_begins(sequence, earliest, latest, end_by, trial.soonest, sequences, timeline, trial):
            return False
        copy(place.begins[:count], trial.soonest)
        latest_begins(sequence, latest, place.begins, sequences, timeline, trial)
        if map_sequence(sequence, place, sequences, timeline, trial):
            return True
        is_same = True
        for step in range(count):
            is_same &= place.begins[step] == trial.soonest[step]
            place.begins[step] = trial.soonest[step]
        if not is_same and map_sequence(sequence, place, sequences, timeline, trial):
            return True
        earliest = next_change(trial.soonest, count, timeline)
        if earliest == FOREVER:
            return False
        earliest += trial.soonest[0]
    return False


@inner_kernel
def may_hold(sequence: int, sequences: Sequences) -> bool:
    """Tell whether a sequence has a step that may be held beyond its walltime."""
    for step in range(sequences.heads[sequence, C_STEP], sequences.heads[sequence + 1, C_STEP]):
        if sequences.steps[step, P_LONGEST] > sequences.steps[step, P_NEEDED]:
            return True
    return False


@kernel
def find_sequence(
    sequence: int,
    earliest: int,
    latest: int,
    end_by: int,
    tries: int,
    place: Place,
    sequences: Sequences,
    timeline: TimelineArrays,
    trial: Trial,
) -> bool:
    """Find the place of a sequence of the earliest completion found and, for that, the latest start; tell if any.

    It starts in ``[earliest, latest]`` and ends by `end_by`. At most `tries` attempts are made to map a schedule whose
    steps are held so that it completes earlier.
    """
    is_found = find_unheld(sequence, earliest, latest, end_by, place, sequences, timeline, trial)
    if tries == 0 or not may_hold(sequence, sequences):
        return is_found
    count = sequences.heads[sequence + 1, C_STEP] - sequences.heads[sequence, C_STEP]
    if is_found:
        end_by = place.begins[count - 1] + sequences.steps[sequences.heads[sequence + 1, C_STEP] - 1, P_NEEDED] - 1
    held = trial.place
    if not find_held(sequence, earliest, latest, end_by, tries, held, sequences, timeline, trial):
        return is_found
    copy(place.begins[:count], held.begins)
    copy(place.spans[: count + 1], held.spans)
    for row in range(place.spans[count]):
        copy(place.found[row], held.found[row])
    return True
