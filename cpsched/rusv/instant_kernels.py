"""Kernels for one moment: what is free now, or will be at one later second, without a time axis.

`free` has what is free of every node column, `sfree` of every system column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels import (
    D_FLAGS,
    D_OTHERWISE,
    D_SYS,
    EXCLUSIVE,
    JOINT,
    copy,
    map_chunks,
    placement_columns,
    suffices,
)


class Tables(NamedTuple):
    """What may be asked for, and on which machine: the tables of `Demands` and of the layout."""

    demands: NDArray[Any]
    kinds: NDArray[Any]
    segments: NDArray[Any]
    terms: NDArray[Any]
    scale: NDArray[Any]
    sysreq: NDArray[Any]
    reach: NDArray[Any]
    runs: NDArray[Any]
    runcols: NDArray[Any]
    capacity: NDArray[Any]
    colsys: NDArray[Any]
    run_of: NDArray[Any]


class Scratch(NamedTuple):
    """What the kernels write into: where a demand was mapped to, and what something takes."""

    copied: NDArray[Any]
    buffer: NDArray[Any]
    entries: NDArray[Any]
    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]
    stamps: NDArray[Any]
    head: NDArray[Any]


@kernel
def has_sums(demand, sfree, demands, sysreq):
    """Tell whether the sums over the system, and the licenses, suffice for a demand (necessary)."""
    for k in range(demands[demand, D_SYS], demands[demand + 1, D_SYS]):
        if sfree[sysreq[k, 0]] < sysreq[k, 1]:
            return False
    return True


@kernel
def has_nodes(demand, free, t, x):
    """Tell whether enough chunks of each kind fit (necessary). An exclusive demand clears what is not idle."""
    return suffices(
        demand, free, x.buffer, t.demands, t.kinds, t.segments, t.terms, t.scale, t.reach, t.runs, t.runcols, t.capacity
    )


@kernel
def map_now(demand, free, sfree, t, x):
    """Map a demand to nodes that have what it needs, cheap ones first; return how many entries it takes, 0 if it does
    not fit. The entries are in the scratch `x`.
    """
    if not has_sums(demand, sfree, t.demands, t.sysreq):
        return 0
    if t.demands[demand, D_FLAGS] & (EXCLUSIVE | JOINT) == 0:
        if not has_nodes(demand, free, t, x):
            return 0
        return map_chunks(demand, free, x.entries, t.demands, t.kinds, t.segments, t.terms, t.runs, t.runcols, t.run_of)
    attempt = demand
    while attempt >= 0:  # mapping uses up what it maps to
        copy(x.copied, free)
        if not has_nodes(demand, x.copied, t, x):
            return 0
        count = map_chunks(
            attempt, x.copied, x.entries, t.demands, t.kinds, t.segments, t.terms, t.runs, t.runcols, t.run_of
        )
        if count > 0:
            return count
        attempt = t.demands[attempt, D_OTHERWISE]
    return 0


@kernel
def spell_out(demand, entries, count, t, x):
    """Write to the scratch `x` what a placement takes: node columns with amounts, and the sum for every system column.

    Returns the number of node columns.
    """
    filled, systems = placement_columns(
        demand, entries, count, 1,
        t.demands, t.kinds, t.segments, t.terms, t.sysreq, t.runs, t.runcols, t.capacity, t.colsys, t.run_of,
        x.columns, x.amounts, x.scolumns, x.samounts, x.stamps, x.head,
    )  # fmt: skip
    for k in range(systems, x.samounts.shape[0]):
        x.samounts[k] = 0
    for k in range(systems - 1, -1, -1):  # from the compact form to one amount for each column, in place
        amount = x.samounts[k]
        x.samounts[k] = 0
        x.samounts[x.scolumns[k]] = amount
    return filled


@kernel
def change(free, sfree, filled, sign, x):
    """Add what is spelled out (times `sign`) to what is free."""
    for k in range(filled):
        free[x.columns[k]] += sign * x.amounts[k]
    for q in range(sfree.shape[0]):
        sfree[q] += sign * x.samounts[q]
