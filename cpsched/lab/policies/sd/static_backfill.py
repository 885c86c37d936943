"""Static backfilling, as SD-Policy's base has it (D'Amico et al., listing 1 without its else; SD-2)."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.policies.conservative import units_of
from cpsched.lab.sim import Decision, News, Outlook, Site, Start
from cpsched.rusv import NOWHERE, Booking, Counts, EqualNodes, JobTable


class _Future(Protocol):
    """What is free from now on beside running jobs and reservations; mutable."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """The start of each reserved job, `NOWHERE` for all others."""

    def follow(self, gone: Sequence[int]) -> bool:
        """Keep up with what has happened; return whether all reservations would be made again."""

    def clear(self, jobs: NDArray[np.int64]) -> None:
        """Take the reservations of these jobs back, which must be all."""

    def keep(self, job: int, entries: NDArray[np.int32], end: int) -> None:
        """Keep the nodes of entries for a running job from now until `end`, or until it is kept anew or gone."""

    def plan(self, jobs: NDArray[np.int64]) -> None:
        """Reserve the earliest place for each of these jobs, in turn, beside all that is reserved."""

    def start(self, job: int) -> Start:
        """Return the start of a job whose reservation begins now; it holds the reserved amounts from now on."""


class _OnNodes:
    """Reservations on concrete nodes."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._outlook = Outlook(site)
        self._table = JobTable([(demand, 0, site.latest(job), 1) for job, demand in enumerate(site.demand.tolist())])
        self._reserved: dict[int, Booking] = {}

    @property
    def starts(self) -> NDArray[np.int64]:
        return self._table.starts

    def follow(self, gone: Sequence[int]) -> bool:
        may_set_aside = self._outlook.may_set_aside
        if may_set_aside:
            self.clear(np.array(list(self._reserved), dtype=np.int64))
        changes = self._outlook.follow(gone)
        return not may_set_aside and not changes.has_taken and changes.freed_until <= self._site.now

    def clear(self, jobs: NDArray[np.int64]) -> None:
        for booking in self._reserved.values():
            self._outlook.timeline.release(booking)
        self._table.starts[jobs] = NOWHERE
        self._reserved.clear()

    def keep(self, job: int, entries: NDArray[np.int32], end: int) -> None:
        demand = int(self._site.demand[job])
        self._outlook.keep(job, self._outlook.timeline.booking_of(demand, entries, self._site.now, end))

    def plan(self, jobs: NDArray[np.int64]) -> None:
        table, timeline = self._table, self._outlook.timeline
        table.jobs[jobs, 1] = self._site.now
        table.jobs[jobs, 3] = self._site.estimates(jobs)
        timeline.plan(table, jobs)
        for job in jobs[table.starts[jobs] != NOWHERE].tolist():
            demand, _, _, seconds = table.jobs[job].tolist()
            start = int(table.starts[job])
            self._reserved[job] = timeline.booking_of(demand, table.entries(job), start, start + seconds)

    def start(self, job: int) -> Start:
        self._outlook.adopt(job, self._reserved.pop(job))
        entries = self._table.entries(job)
        self._table.starts[job] = NOWHERE
        return Start(job, entries)


class _Counted:
    """Reservations of numbers of units, where nodes are interchangeable: a job gets its nodes when it starts."""

    def __init__(self, site: Site, units: EqualNodes) -> None:
        self._site, self._units = site, units
        self._counts = Counts(units, site.demand)
        #: The expected end of each job that has units, `NOWHERE` for all others; and whether the scheduler has set it.
        self._ends = np.full(len(site.jobs), NOWHERE, dtype=np.int64)
        self._is_kept = np.zeros(len(site.jobs), dtype=np.bool_)
        self._num_outages = site.num_outages

    @property
    def starts(self) -> NDArray[np.int64]:
        return self._counts.reserved.starts

    def follow(self, gone: Sequence[int]) -> bool:
        site, ends, running = self._site, self._ends, self._site.running
        over = np.setdiff1d([*np.flatnonzero(ends != NOWHERE), *gone], running).astype(np.int64)
        holds = site.num_outages == self._num_outages and bool((ends[over] <= site.now).all())
        ends[over], self._is_kept[over], self._num_outages = NOWHERE, False, site.num_outages
        is_new = (ends[running] != site.ends) & ~self._is_kept[running]
        for job, end in zip(running[is_new].tolist(), site.ends[is_new].tolist(), strict=True):
            self._hold(job, site.entries_of(job), end)
        #: What is free now, by units and by node columns, without what starts in this second.
        self._free, self._columns = self._units.free(site.free, site.free_sums), site.free.copy()
        self._counts.forget(site.now)
        return holds and not is_new.any()

    def _hold(self, job: int, entries: NDArray[np.int32], end: int) -> None:
        self._ends[job] = end
        self._counts.reserved.takes[job] = self._units.takes(int(self._site.demand[job]), entries)

    def clear(self, jobs: NDArray[np.int64]) -> None:
        self._counts.clear(jobs)

    def keep(self, job: int, entries: NDArray[np.int32], end: int) -> None:
        self._hold(job, entries, end)
        self._is_kept[job] = True

    def plan(self, jobs: NDArray[np.int64]) -> None:
        if self._counts.is_empty:
            self._counts.begin(self._site.now, self._free, np.flatnonzero(self._ends > self._site.now), self._ends)
        self._counts.plan(jobs, self._site.estimates(jobs))

    def start(self, job: int) -> Start:
        reserved = self._counts.reserved
        self._ends[job], reserved.starts[job] = self._site.now + reserved.seconds[job], NOWHERE
        self._free -= reserved.takes[job]
        return Start(job, self._units.place(int(self._site.demand[job]), reserved.takes[job], self._columns))


class FutureMap:
    """Reservations of the first jobs of the queue, each the earliest place beside those before it; mutable.

    All are made anew after each release or start that the map does not have; a new job is added behind the others.
    Where nodes are interchangeable (see `units_of`) reservations are numbers of units, elsewhere on concrete nodes.
    """

    def __init__(self, site: Site) -> None:
        units = units_of(site)
        self._site = site
        self._future: _Future = _OnNodes(site) if units is None else _Counted(site, units)
        #: The jobs that were tried, in their order.
        self._tried: list[int] = []
        #: Whether nothing is reserved any more of what was.
        self.is_void = True

    def follow(self, gone: Sequence[int]) -> None:
        """Keep up with what has happened."""
        holds, starts = self._future.follow(gone), self._future.starts[self._tried]
        # no decision was made in that second
        is_missed = bool(((starts != NOWHERE) & (starts < self._site.now)).any())
        if is_missed or not holds:
            self.clear()

    def clear(self) -> None:
        """Take all reservations back."""
        self._future.clear(np.array(self._tried, dtype=np.int64))
        self._tried = []
        self.is_void = True

    def keep(self, job: int, entries: NDArray[np.int32], end: int) -> None:
        """Keep the nodes of some entries for a running job until `end`, or until it is gone or kept anew.

        All reservations become void.
        """
        self.clear()
        self._future.keep(job, entries, end)

    def reserve(self, jobs: Sequence[int]) -> None:
        """Reserve a place for each of these jobs, beside those before it, and for no other."""
        if list(jobs[: len(self._tried)]) != self._tried:
            self.clear()
        self.is_void = False
        asking = np.array(jobs[len(self._tried) :], dtype=np.int64)
        if len(asking):
            self._future.plan(asking)
            self._tried = list(jobs)

    def start_of(self, job: int) -> int | None:
        """Return when a job that waits starts by its reservation, None if it has none."""
        start = int(self._future.starts[job])
        return None if start == NOWHERE else start

    def due(self) -> list[int]:
        """Return the jobs whose reservations begin now, in their order."""
        tried = np.array(self._tried, dtype=np.int64)
        due: list[int] = tried[self._future.starts[tried] == self._site.now].tolist()
        return due

    def next_start(self) -> int | None:
        """Return when the next reservation begins."""
        starts = self._future.starts[self._tried]
        starts = starts[starts != NOWHERE]
        return int(starts.min()) if len(starts) else None

    def start(self, job: int) -> Start:
        """Return the start of a job whose reservation begins now; it holds the reserved amounts from now on."""
        self._tried.remove(job)
        return self._future.start(job)


#: The number of jobs that Slurm's backfilling tries by default (``bf_max_job_test``).
DEPTH = 500


class StaticBackfill:
    """The first jobs of the queue have reservations, made anew at every event; a due one starts.

    `depth`: the number of waiting jobs that have reservations, and may start: Slurm's ``bf_max_job_test``. None: all.
    Raises `ValueError` if the depth is less than 1.
    """

    name = "static_backfill"

    def __init__(self, depth: int | None = DEPTH) -> None:
        self._depth = checked_depth(depth)

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._map = FutureMap(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        self._map.follow(news.gone)
        waiting, starts = site.queue.tolist(), []
        while True:
            first = waiting[: self._depth]
            self._map.reserve(first)
            due = self._map.due()
            starts += [self._map.start(job) for job in due]
            if not due:
                return Decision(starts=starts, wake=self._map.next_start())
            waiting = [job for job in waiting if job not in set(due)]


def checked_depth(depth: int | None) -> int | None:
    """Return how many jobs are looked at, if that is possible. Raises `ValueError` if it is less than 1."""
    if depth is not None and depth < 1:
        raise ValueError(f"Expected depth >= 1, got {depth}")
    return depth
