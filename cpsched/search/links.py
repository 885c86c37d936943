"""Times that follow from the dependencies between jobs alone, without the machine."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import JobTable

__all__ = ["awaited_first", "heads", "tails"]

Ints = NDArray[np.int64]


def heads(table: JobTable) -> Ints:
    """Return the earliest start of each job that its dependencies allow, if nothing else delays it."""
    earliest = table.jobs[:, 1].copy()
    for job in awaited_first(table, np.arange(len(earliest))).tolist() if len(table.waits) else ():
        for before, lag in table.waits[table.waits_of[job] : table.waits_of[job + 1]].tolist():
            earliest[job] = max(earliest[job], earliest[before] + lag)
    return earliest


def tails(table: JobTable) -> Ints:
    """Return the seconds from the start of each job to the end of all jobs that wait for it, if nothing else delays
    them.
    """
    behind = table.jobs[:, 3].copy()
    for job in awaited_first(table, np.arange(len(behind)))[::-1].tolist() if len(table.waits) else ():
        for after, lag in table.followers[table.followers_of[job] : table.followers_of[job + 1]].tolist():
            behind[job] = max(behind[job], lag + behind[after])
    return behind


def awaited_first(table: JobTable, order: Ints) -> Ints:
    """Return rows in the given order, but each only after all rows that it waits for."""
    if not len(table.waits):
        return order
    missing = np.diff(table.waits_of)
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order))
    ready = [(int(turn[job]), int(job)) for job in np.flatnonzero(missing == 0)]
    heapify(ready)
    sorted_rows = []
    while ready:
        _, job = heappop(ready)
        sorted_rows.append(job)
        for after in table.followers[table.followers_of[job] : table.followers_of[job + 1], 0].tolist():
            missing[after] -= 1
            if missing[after] == 0:
                heappush(ready, (int(turn[after]), after))
    return np.array(sorted_rows, dtype=np.int64)
