"""Times that follow from the dependencies between jobs alone, without the machine."""

from functools import cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import Countdown, JobTable

Ints = NDArray[np.int64]


def heads(table: JobTable) -> Ints:
    """Return the earliest start of each job that its dependencies allow, if nothing else delays it."""
    earliest, links = table.jobs[:, 1].copy(), table.links
    if not table.is_linked:
        return earliest

    @cache
    def passed(milestone: int) -> int:
        """Return the earliest second of a milestone; asked when those of its jobs are known."""
        before = links.before[links.before_of[milestone] : links.before_of[milestone + 1]]
        return int((earliest[before[:, 0]] + before[:, 1]).max())

    for job in awaited_first(table, np.arange(len(earliest))).tolist():
        for milestone, delay in links.waits[links.waits_of[job] : links.waits_of[job + 1]].tolist():
            earliest[job] = max(earliest[job], passed(milestone) + delay)
    return earliest


def tails(table: JobTable) -> Ints:
    """Return the seconds from the start of each job to the end of all that wait for it, by dependencies alone."""
    tail, links = table.jobs[:, 3].copy(), table.links
    if not table.is_linked:
        return tail

    @cache
    def behind(milestone: int) -> int:
        """Return the seconds from a milestone to the end; asked when those from the starts behind it are known."""
        after = links.after[links.after_of[milestone] : links.after_of[milestone + 1]]
        return int((after[:, 1] + tail[after[:, 0]]).max())

    for job in awaited_first(table, np.arange(len(tail)))[::-1].tolist():
        for milestone, seconds in links.leads[links.leads_of[job] : links.leads_of[job + 1]].tolist():
            tail[job] = max(tail[job], seconds + behind(milestone))
    return tail


def awaited_first(table: JobTable, order: Ints) -> Ints:
    """Return rows in the given order, but each only after all rows that it waits for."""
    if not table.is_linked:
        return order
    turns = np.empty(len(order), dtype=np.int64)
    turns[order] = np.arange(len(order))
    turn, left = turns.tolist(), Countdown(table.links)
    ready = [(turn[job], job) for job in order.tolist() if left.is_over(job)]
    sorted_rows = []
    while ready:
        _, job = heappop(ready)
        sorted_rows.append(job)
        for after in left.passed(job):
            heappush(ready, (turn[after], after))
    return np.array(sorted_rows, dtype=np.int64)
