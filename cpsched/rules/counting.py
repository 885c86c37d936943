"""Serving a queue by counts: each job is reserved so many nodes, and gets them in the order of the starts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Job
from cpsched.engine import Progress
from cpsched.rusv import FOREVER, NOWHERE, EqualNodes, count_kernels


def insert_by_counts(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> bool:
    """Give each job the earliest start beside those before it, if enough is free at each second, on whichever nodes.

    Tells whether that can be done: all that jobs ask for is counted in one kind of units, no job waits for another one,
    has alternatives or a latest start, nothing is booked but running jobs, and what they have is only given back. Else
    nothing is booked.
    """
    if ledger.has_choices:
        return False
    rows = {job.id: row for row, job in enumerate(ledger.jobs)}
    chosen = np.array([rows[job.id] for job in queue], dtype=np.int64)
    units = _units(ledger, chosen)
    profile = None if units is None else _profile(ledger, units, len(queue))
    if units is None or profile is None:
        return False
    jobs, columns = ledger.table.jobs, units.num_columns
    reserved = count_kernels.Reservations(
        demand=jobs[:, 0].copy(),
        released=np.maximum(jobs[:, 1], 0),
        seconds=jobs[:, 3].copy(),
        starts=np.full(len(jobs), count_kernels.NOWHERE, dtype=np.int64),
        takes=np.zeros((len(jobs), columns), dtype=np.int64),
    )
    scratch = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    count_kernels.plan(chosen, profile, units.asks, reserved, *scratch)
    starts = reserved.starts[chosen].tolist()
    in_turn = sorted((start, place) for place, start in enumerate(starts) if start != count_kernels.NOWHERE)
    for done, (start, place) in enumerate(in_turn):
        second = start + ledger.instance.now
        ledger.place([queue[place].id], earliest=second, latest=second)
        if progress is not None:
            progress(done + 1, len(queue))
    if progress is not None:
        progress(len(queue), len(queue))
    return True


def _units(ledger: Ledger, chosen: NDArray[np.int64]) -> EqualNodes | None:
    """Return the one kind of units in which all jobs of the ledger are counted, None if there is more to it."""
    table = ledger.table
    is_bound = table.is_linked or (table.starts != NOWHERE).any() or (table.jobs[chosen, 2] < FOREVER).any()
    if is_bound or any(len(of_job) > 1 for of_job in ledger.modes):
        return None
    units = EqualNodes.of(ledger.timeline.demands)
    return units if units is not None and units.num_pools == 1 else None


def _profile(ledger: Ledger, units: EqualNodes, count: int) -> count_kernels.Profile | None:
    """Return the free units beside the running jobs, None if those of a node decrease; with room for `count` jobs."""
    times = ledger.timeline.breakpoints()
    amounts = [ledger.timeline.free_at(time) for time in times.tolist()]
    if any((after[0] < before[0]).any() for before, after in pairwise(amounts)):
        return None
    profile = count_kernels.Profile(
        size=np.array([len(times)], dtype=np.int64),
        times=np.zeros(len(times) + 2 * count + 2, dtype=np.int64),
        free=np.zeros((len(times) + 2 * count + 2, units.num_columns), dtype=np.int64),
    )
    profile.times[: len(times)] = times
    profile.free[: len(times)] = [units.free(*free) for free in amounts]
    return profile
