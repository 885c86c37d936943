"""Backfilling as the textbooks have it, on a machine of so many equal processors: no node, only counts.

Lifka, JSSPP 1995 (EASY) and Mu'alem and Feitelson, TPDS 2001 (both). Everything is worked out anew at every event.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cpsched.domain import Instance

__all__ = ["Item", "conservative_by_counts", "easy_by_counts", "items_of", "reserving_by_counts"]


class Item(NamedTuple):
    """A job: when it comes, what it asks for, and for how long it really runs: a second or more, up to its walltime."""

    submit: int
    width: int
    walltime: int
    runtime: int


def easy_by_counts(
    items: Sequence[Item], size: int, key: Callable[[Item], float] = lambda item: item.submit
) -> list[int]:
    """Return the start of each job by EASY backfilling, the queue sorted by `key`, then by submission.

    The first job that does not fit has a reservation (the shadow time) at the first second at which enough are free if
    all end as their walltimes say; what is free then beside it is extra. A job behind it starts if it fits now, and
    either ends by the shadow time or takes no more than is extra.
    """
    starts = [-1] * len(items)
    coming = sorted(range(len(items)), key=lambda job: (items[job].submit, job))
    queue: list[tuple[float, int]] = []
    ends: list[tuple[int, int]] = []
    running: list[tuple[int, int]] = []
    free, arrived = size, 0

    def start(job: int, now: int) -> None:
        nonlocal free
        starts[job] = now
        free -= items[job].width
        insort(ends, (now + items[job].runtime, job))
        insort(running, (now + items[job].walltime, job))

    while arrived < len(items) or ends:
        now = min([items[job].submit for job in coming[arrived : arrived + 1]] + [end for end, _ in ends[:1]])
        while ends and ends[0][0] == now:
            _, job = ends.pop(0)
            free += items[job].width
            running.remove((starts[job] + items[job].walltime, job))
        while arrived < len(items) and items[coming[arrived]].submit == now:
            insort(queue, (key(items[coming[arrived]]), coming[arrived]))
            arrived += 1
        while queue and items[queue[0][1]].width <= free:
            start(queue.pop(0)[1], now)
        if len(queue) < 2:
            continue
        need, there, shadow = items[queue[0][1]].width, free, now
        for end, job in running:
            if there >= need and end > shadow:
                break
            there, shadow = there + items[job].width, end
        extra = there - need
        for entry in queue[1:]:
            item = items[entry[1]]
            ends_in_time = now + item.walltime <= shadow
            if item.width <= free and (ends_in_time or item.width <= extra):
                start(entry[1], now)
                extra -= 0 if ends_in_time else item.width
        queue[1:] = [entry for entry in queue[1:] if starts[entry[1]] < 0]
    return starts


class _Profile:
    """How many are free from each of some seconds on; mutable."""

    def __init__(self, size: int) -> None:
        self.times, self.free = [0], [size]

    def shift(self, begin: int, end: int, amount: int) -> None:
        """Add an amount in ``[begin, end)``."""
        for index in range(self._cut(begin), self._cut(end)):
            self.free[index] += amount

    def _cut(self, time: int) -> int:
        index = bisect_left(self.times, time)
        if index == len(self.times) or self.times[index] != time:
            self.times.insert(index, time)
            self.free.insert(index, self.free[index - 1])
        return index

    def forget(self, now: int) -> None:
        """Drop what is past, and cuts at which nothing changes."""
        first = self._cut(now)
        kept = [k for k in range(first, len(self.times)) if k == first or self.free[k] != self.free[k - 1]]
        self.times, self.free = [self.times[k] for k in kept], [self.free[k] for k in kept]

    def earliest(self, width: int, length: int) -> int:
        """Return the first second from which on so many are free for so long."""
        begin = None
        for time, free in zip(self.times, self.free, strict=True):
            if begin is not None and time >= begin + length:
                return begin
            if free < width:
                begin = None
            elif begin is None:
                begin = time
        assert begin is not None
        return begin


def conservative_by_counts(items: Sequence[Item], size: int) -> list[int]:
    """Return the start of each job by conservative backfilling.

    A job that comes is reserved the earliest time at which it delays no reservation. At each event, before that, all
    reservations are compressed: in the order of submission each is taken out and put back at the earliest time, which
    is never later.
    """
    starts = [-1] * len(items)
    coming = sorted(range(len(items)), key=lambda job: (items[job].submit, job))
    reserved: dict[int, int] = {}  # in the order of submission
    ends: list[tuple[int, int]] = []
    profile, arrived = _Profile(size), 0
    while arrived < len(items) or ends or reserved:
        now = min(
            [items[job].submit for job in coming[arrived : arrived + 1]]
            + [end for end, _ in ends[:1]]
            + list(reserved.values())
        )
        profile.forget(now)
        while ends and ends[0][0] == now:
            _, job = ends.pop(0)
            if now < starts[job] + items[job].walltime:
                profile.shift(now, starts[job] + items[job].walltime, items[job].width)
        for job in reserved:
            item = items[job]
            profile.shift(reserved[job], reserved[job] + item.walltime, item.width)
            reserved[job] = profile.earliest(item.width, item.walltime)
            profile.shift(reserved[job], reserved[job] + item.walltime, -item.width)
        while arrived < len(items) and items[coming[arrived]].submit == now:
            job = coming[arrived]
            item = items[job]
            reserved[job] = profile.earliest(item.width, item.walltime)
            profile.shift(reserved[job], reserved[job] + item.walltime, -item.width)
            arrived += 1
        for job in [job for job, start in reserved.items() if start == now]:
            starts[job] = reserved.pop(job)
            insort(ends, (now + items[job].runtime, job))
    return starts


def reserving_by_counts(items: Sequence[Item], size: int, key: Callable[[Item], float]) -> list[int]:
    """Return the start of each job where the jobs that have to wait are reserved a time, anew at each event: in the
    order of the queue, by `key`, then by submission, a job starts or is reserved the earliest time beside those before
    it, if by then not all could have ended that wait.
    """
    starts = [-1] * len(items)
    coming = sorted(range(len(items)), key=lambda job: (items[job].submit, job))
    queue: list[tuple[float, int]] = []
    ends: list[tuple[int, int]] = []
    arrived = 0
    while arrived < len(items) or ends:
        now = min([items[job].submit for job in coming[arrived : arrived + 1]] + [end for end, _ in ends[:1]])
        while ends and ends[0][0] == now:
            ends.pop(0)
        while arrived < len(items) and items[coming[arrived]].submit == now:
            insort(queue, (key(items[coming[arrived]]), coming[arrived]))
            arrived += 1
        profile = _Profile(size)
        horizon = now + max((items[job].walltime for _, job in queue), default=0)
        for _, job in ends:
            profile.shift(0, starts[job] + items[job].walltime, -items[job].width)
        profile.forget(now)
        for _, job in queue:
            item = items[job]
            start = profile.earliest(item.width, item.walltime)
            if start == now:
                starts[job] = now
                insort(ends, (now + item.runtime, job))
            elif start >= horizon:
                continue
            profile.shift(start, start + item.walltime, -item.width)
        queue = [entry for entry in queue if starts[entry[1]] < 0]
    return starts


def items_of(instance: Instance) -> list[Item]:
    """Return the jobs of a workload in the order of submission, as wide as they ask for cores."""
    return [
        Item(
            job.submit,
            job.request.totals["cores"],
            job.walltime,
            max(1, min(job.walltime if job.runtime is None else job.runtime, job.walltime)),
        )
        for job in sorted(instance.jobs, key=lambda job: job.submit)
    ]
