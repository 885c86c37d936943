"""What rules set aside for a time, as arrays: see `hold_kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import amounts_aside
from cpsched.domain import FOR_EVER
from cpsched.rusv import FOREVER

if TYPE_CHECKING:
    from cpsched.lab.sim.load import Load


def asides_of(load: Load) -> dict[str, NDArray[Any]]:
    """Return the columns of which something is set aside, and how much, from each second on at which that changes: the
    arrays of the beginning by their names in `SimState`.

    A job with one start is given nodes when it comes: these are set aside, of any column, at times that are known.
    """
    capacity, whole = load.timeline.free_at(0)
    spans = [
        # what no plan knows the end of has none
        (max(aside.start, load.now), aside.end if aside.end < load.now + FOR_EVER else FOREVER, amounts)
        for aside in load.instance.set_aside
        if aside.end > load.now
        for of_nodes, sums in [amounts_aside(aside, load.columns)]
        for amounts in [of_nodes | {-1 - number: amount for number, amount in sums.items()}]
    ]
    booked = np.flatnonzero((load.start_at >= 0) & (load.demand >= 0))
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    edges |= set(load.start_at[booked].tolist()) | set((load.start_at + load.walltime)[booked].tolist())
    touched = sorted({column for _, _, amounts in spans for column in amounts})
    if len(booked):
        licenses = load.columns.license_number.values()
        touched = [*(-1 - number for number in licenses), *range(len(capacity))]
    place = {column: index for index, column in enumerate(touched)}
    times = np.array(sorted({load.now, *edges} if edges else ()), dtype=np.int64)
    room = np.array([capacity[column] if column >= 0 else whole[-1 - column] for column in touched], dtype=np.int64)
    levels = np.zeros((len(times), len(touched)), dtype=np.int64)
    for start, end, amounts in spans:
        first, last = np.searchsorted(times, (start, end))
        for column, amount in amounts.items():
            levels[first:last, place[column]] += amount
    levels, columns = np.minimum(levels, room), np.array(touched, dtype=np.int64)
    return {
        "aside_times": times,
        "aside_columns": columns,
        "aside_of": _indices(columns, len(capacity)),
        "aside_of_sums": _indices(-1 - columns, len(whole)),
        "aside_levels": levels,
        "aside_ahead": room - levels,
        "aside_held": np.zeros_like(columns),
        "aside_head": np.zeros_like(columns),
        "ahead": np.zeros_like(levels),
        "whole": whole,
    }


def _indices(columns: Sequence[int] | NDArray[Any], length: int) -> NDArray[np.int64]:
    """Return for each of so many columns its index among some, -1 if it is none of them."""
    found = np.full(length, -1, dtype=np.int64)
    for index, column in enumerate(columns):
        if column >= 0:
            found[column] = index
    return found
