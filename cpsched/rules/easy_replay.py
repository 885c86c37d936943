"""A replay under EASY backfilling of what windows tell: how long jobs would have waited, had nobody planned.

It has one machine without nodes that has as much as all of them. It takes jobs as they come, for as long as they really
run, and so it lags: where it depends on the end of a job that nobody knows yet, it waits until that job has ended, but
not for ever for one that does not start. Nothing else in it is expected, so no wrong expectation stays in its longest
wait.
"""

from bisect import insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Cluster, Instance, Job

#: For so many seconds beyond its walltime the replay waits for the start of a job that has started in it.
_LONGEST_HOLD = 2 * 86_400

_Amounts = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class _Known:
    """A job that has been seen, and is still of use. Mutable."""

    #: When it came.
    since: int
    walltime: int
    asked: _Amounts
    #: When it really started, and for how long it ran; None: not yet.
    start: int | None = None
    runtime: int | None = None
    #: When it started in the replay.
    replayed: int | None = None


class EasyReplay:
    """Follows windows, one after the other; mutable. It begins with the first one: what runs there runs in it too."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Know no job, and no wait."""
        #: The longest wait (s) so far, also of a job that still waits.
        self.longest = 0
        #: The last window, None if there was none yet; and the second of the replay.
        self._window: Instance | None = None
        self._clock = 0
        self._known: dict[str, _Known] = {}
        #: Those that have come since the last window or later than the replay is, and those that wait in it, in turn.
        self._coming: list[tuple[int, str]] = []
        self._queue: list[str] = []
        #: Those that run in it, by the end of their walltimes.
        self._running: list[tuple[int, str]] = []
        self._columns: dict[str, int] = {}
        self._total = self._free = np.zeros(0, dtype=np.int64)

    def follow(self, window: Instance) -> int:
        """Replay what is known by now, and return the longest wait so far (s)."""
        if window is self._window:  # a cycle asks more than once
            return self.longest
        now = window.now
        if self._window is not None and now < self._window.now:  # the clock went back: what was known is of no use
            self.begin()
        is_first, before = self._window is None, now if self._window is None else self._window.now
        self._clock = now if is_first else self._clock
        self._measure(window.cluster)
        seen = set[str]()
        for job in window.jobs:
            for name in job.element_ids:
                seen.add(name)
                self._see(name, job, window, before, is_first=is_first)
        for name, known in self._known.items():
            if known.runtime is not None:
                continue
            if name not in seen:  # one that waited before has run since then at most, or nobody wants it any more
                known.runtime = now - (before if known.start is None else known.start)
            elif known.start is None and known.replayed is not None:
                is_held_up = now - known.replayed > known.walltime + _LONGEST_HOLD
                known.runtime = known.walltime if is_held_up else None
        self._window = window
        self._replay(now)
        running = {name for _, name in self._running}
        self._known = {
            name: known
            for name, known in self._known.items()
            if name in running or known.replayed is None or known.runtime is None
        }
        return self.longest

    def _measure(self, cluster: Cluster) -> None:
        """Take up what the machine has."""
        for name in cluster.capacity:
            self._columns.setdefault(name, len(self._columns))
        total = np.array([cluster.capacity.get(name, 0) for name in self._columns], dtype=np.int64)
        missing = len(total) - len(self._total)
        if missing:
            for known in self._known.values():
                known.asked = np.pad(known.asked, (0, missing))
            self._total, self._free = np.pad(self._total, (0, missing)), np.pad(self._free, (0, missing))
        self._free = self._free + (total - self._total)
        self._total = total

    def _asked(self, job: Job) -> _Amounts:
        """Return the most that a job asks for, of each resource that there is."""
        asked = np.zeros(len(self._columns), dtype=np.int64)
        for step in job.steps:
            for name, amount in {**step.request.totals, **job.licenses}.items():
                if name in self._columns:
                    asked[self._columns[name]] = max(asked[self._columns[name]], amount)
        return np.minimum(asked, self._total)

    def _see(self, name: str, job: Job, window: Instance, before: int, *, is_first: bool) -> None:
        """Note a job of the window: that it has come since `before`, has started, or has to start again."""
        known = self._known.get(name)
        start = None if job.running is None else job.running.start
        if known is None:
            if start is None and (job.after or window.earliest_start(job) > window.now):
                return  # it has not come yet
            since = min(window.now, max(before, job.submit))
            known = _Known(since=since, walltime=job.walltime, asked=self._asked(job))
            self._known[name] = known
            if is_first and start is not None:
                self._begin(name, start)
            else:
                insort(self._coming, (since, name), key=lambda one: one[0])
        known.start = start

    def _begin(self, name: str, start: int) -> None:
        """Start a job in the replay."""
        known = self._known[name]
        known.replayed = start
        self._free = self._free - known.asked
        insort(self._running, (start + known.walltime, name), key=lambda one: one[0])

    def _is_over(self, known: _Known) -> bool:
        """Tell whether a job that has ended has ended in the replay too."""
        return known.replayed is not None and known.replayed + (known.runtime or 0) <= self._clock

    def _next(self, now: int) -> int | None:
        """Return the second of the next event; now, if nothing happens until then; None: it is not known yet."""
        at, unknown = min(now, self._coming[0][0]) if self._coming else now, now
        for _, name in self._running:
            known = self._known[name]
            start = known.replayed or 0
            if known.runtime is not None:
                at = min(at, start + known.runtime)
            else:
                unknown = min(unknown, start + (0 if known.start is None else now - known.start))
        at = max(at, self._clock)
        return at if at <= unknown else None

    def _replay(self, now: int) -> None:
        while (at := self._next(now)) is not None:
            self._clock = at
            over = [one for one in self._running if self._known[one[1]].runtime is not None]
            over = [one for one in over if self._is_over(self._known[one[1]])]
            for one in over:
                self._running.remove(one)
                self._free = self._free + self._known[one[1]].asked
            is_new = bool(over)
            while self._coming and self._coming[0][0] <= at:
                self._queue.append(self._coming.pop(0)[1])
                is_new = True
            if is_new and self._queue:
                self._backfill(at)
            if self._queue:
                self.longest = max(self.longest, at - self._known[self._queue[0]].since)
            if not is_new:
                return

    def _backfill(self, at: int) -> None:
        """Start the jobs that EASY starts at a second."""
        jobs = [self._known[name] for name in self._queue]
        asked, ends = np.array([job.asked for job in jobs]), at + np.array([job.walltime for job in jobs])
        started, place = set[int](), 0
        head_start, beside = -1, self._free
        while place < len(jobs):
            fits: NDArray[np.bool_] = np.logical_and.reduce(asked[place:] <= self._free, axis=1)
            if head_start >= 0:
                fits &= (ends[place:] <= head_start) | np.logical_and.reduce(asked[place:] <= beside, axis=1)
            elif not fits[0]:
                head_start, beside = self._reservation(jobs[place])
                place += 1
                continue
            if not fits.any():
                break
            place += int(fits.argmax())
            started.add(place)
            self._begin(self._queue[place], at)
            self.longest = max(self.longest, at - jobs[place].since)
            if head_start >= 0 and ends[place] > head_start:
                beside = beside - jobs[place].asked
            place += 1
        self._queue = [name for place, name in enumerate(self._queue) if place not in started]

    def _reservation(self, head: _Known) -> tuple[int, _Amounts]:
        """Return when the first blocked job can start, by walltimes, and what is free beside it then."""
        room, start = self._free, 0
        for end, name in self._running:
            if end != start and (head.asked <= room).all():
                break
            room, start = room + self._known[name].asked, end
        return start, room - head.asked
