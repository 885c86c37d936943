"""The naive twin of the kernels for jobs of several steps: the same bounds and the same mapping, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import StepSequence, Timeline, Turns, kernels

__all__ = ["find_literally"]

Ints = NDArray[np.int64]
#: Begin and entries of each step, as (node, kind, chunks).
Found = list[tuple[int, list[tuple[int, int, int]]]]


def find_literally(
    timeline: Timeline, sequence: StepSequence, *, earliest: int, latest: int, end_by: int, tries: int
) -> Found | None:
    """Return what `Timeline.find_sequence` does."""
    found = _without_holds(timeline, sequence, earliest, latest, end_by)
    if all(longest == needed for _, needed, longest in sequence.steps):
        return found
    if found is not None:
        end_by = found[-1][0] + sequence.steps[-1][1] - 1
    for _ in range(tries):
        begins = _earliest_begins(timeline, sequence, earliest, latest, end_by, is_held=True)
        if begins is None:
            break
        late = _latest_begins(timeline, sequence, begins, latest)
        held = _mapped(timeline, sequence, late) or _mapped(timeline, sequence, begins)
        if held is not None:
            return held
        if (later := _next_change(timeline, begins)) is None:
            break
        earliest = begins[0] + later
    return found


def _without_holds(timeline: Timeline, sequence: StepSequence, earliest: int, latest: int, end_by: int) -> Found | None:
    """Return the earliest place in which each step follows the one before at once."""
    while (begins := _earliest_begins(timeline, sequence, earliest, latest, end_by, is_held=False)) is not None:
        found = _mapped(timeline, sequence, begins)
        if found is not None:
            return found
        if (later := _next_change(timeline, begins)) is None:
            return None
        earliest = begins[0] + later
    return None


def _next_change(timeline: Timeline, begins: Sequence[int]) -> int | None:
    """Return by how much steps must be shifted before one of them begins with another slot."""
    breaks = timeline.breakpoints().tolist()
    return min((time - begin for begin in begins for time in breaks if time > begin), default=None)


def _earliest_begins(
    timeline: Timeline, sequence: StepSequence, earliest: int, latest: int, end_by: int, *, is_held: bool
) -> list[int] | None:
    """Return the bounds that only rise (EVO-8); None if nothing is left."""
    needed = [seconds for _, seconds, _ in sequence.steps]
    longest = [most if is_held else seconds for _, seconds, most in sequence.steps]
    begins = [earliest + before for before in accumulate(needed[:-1], initial=0)]
    has_risen = True
    while has_risen:
        has_risen = False
        if begins[0] > latest or begins[-1] + needed[-1] > end_by:
            return None
        for demand, first, last in sequence.conditions:
            least = sum(needed[first : last + 1])
            fit = timeline.earliest_fit(demand, earliest=begins[first], latest=end_by - least, duration=least)
            if fit is None:
                return None
            start, end = fit.start, [*begins, begins[-1] + needed[-1]][last + 1]
            if start == begins[first] and end > start + least:
                start = timeline.free_from(demand, start, end)
            if start > begins[first]:
                has_risen = True
                begins[first] = start
                for step in range(len(begins) - 1):
                    begins[step + 1] = max(begins[step + 1], begins[step] + needed[step])
                for step in reversed(range(len(begins) - 1)):
                    begins[step] = max(begins[step], begins[step + 1] - longest[step])
                break
    if len(begins) > 1:
        begins[0] = max(begins[0], min(latest, begins[1] - needed[0]))
    return begins


def _latest_begins(timeline: Timeline, sequence: StepSequence, begins: list[int], latest: int) -> list[int]:
    """Return begins with the same end, the first one as late as in any of them (EVO-9)."""
    end, needed = begins[-1] + sequence.steps[-1][1], sum(seconds for _, seconds, _ in sequence.steps)
    low, high = begins[0], min(latest, end - needed)
    while low < high:
        middle = (low + high + 1) // 2
        later = _earliest_begins(timeline, sequence, middle, latest, end, is_held=True)
        if later is None:
            high = middle - 1
        else:
            low, begins = later[0], later
    return begins


def _mapped(timeline: Timeline, sequence: StepSequence, begins: Sequence[int]) -> Found | None:
    """Return where all units stand whose steps begin then, by the first order that finds nodes for all of them."""
    ends = [*begins[1:], begins[-1] + sequence.steps[-1][1]]
    free = [timeline.least_free(begin, end)[0] for begin, end in zip(begins, ends, strict=True)]
    for order in sequence.orders:
        held = _mapped_in_order(timeline, sequence, order, [amounts.copy() for amounts in free])
        if held is not None:
            return [(begin, sorted(rows)) for begin, rows in zip(begins, held, strict=True)]
    return None


def _mapped_in_order(
    timeline: Timeline, sequence: StepSequence, order: Turns, free: list[Ints]
) -> list[list[tuple[int, int, int]]] | None:
    """Return (node, kind, units) of each step; None if a layer finds too few nodes."""
    demands = timeline.demands
    flags = [int(demands.tables().demands[demand, kernels.D.FLAGS]) for demand, _, _ in sequence.steps]
    usable = [
        timeline.idle_nodes(amounts) if flag & kernels.F.EXCLUSIVE else np.ones(len(order.nodes), dtype=bool)
        for flag, amounts in zip(flags, free, strict=True)
    ]
    held: list[dict[tuple[int, int], int]] = [{} for _ in sequence.steps]
    for place in order.layers:
        first, last, left, kinds = sequence.layers[place]
        steps = list(zip(range(first, last + 1), kinds, strict=True))
        fits = np.min([demands.units_in(kind, free[step]) * usable[step] for step, kind in steps], axis=0)
        for node in order.nodes.tolist():
            units = min(left, int(fits[node]), 1 if flags[first] & kernels.F.SCATTER else left)
            left -= units
            taken = np.zeros_like(fits)
            taken[node] = units
            for step, kind in steps if units else ():
                demands.take(kind, taken, free[step])
                usable[step][node] &= not flags[step] & kernels.F.SCATTER
                held[step][node, kind] = held[step].get((node, kind), 0) + units
        if left:
            return None
    return [[(node, kind, units) for (node, kind), units in of_step.items()] for of_step in held]
