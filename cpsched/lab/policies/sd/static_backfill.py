"""Static backfilling, as SD-Policy's base has it (D'Amico et al., listing 1 without its else; SD-2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import Decision, News, Outlook, Site, Start
from cpsched.rusv import NOWHERE, Booking, JobTable


class FutureMap:
    """Reservations of the first jobs of the queue, each the earliest place beside those before it; mutable.

    All are made anew after each release or start that the map does not have; a new job is added behind the others.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._outlook = Outlook(site)
        self._table = JobTable([(demand, 0, site.latest(job), 1) for job, demand in enumerate(site.demand.tolist())])
        self._reserved: dict[int, Booking] = {}
        #: The jobs for which no place on this map was found.
        self._placeless: set[int] = set()
        #: Whether nothing is reserved any more of what was.
        self.is_void = True

    def follow(self, gone: Sequence[int]) -> None:
        """Keep up with what has happened."""
        if self._outlook.may_set_aside:
            self.clear()
        changes = self._outlook.follow(gone)
        now = self._site.now
        # no decision was made in that second
        is_missed = any(booking.start < now for booking in self._reserved.values())
        if changes.has_taken or changes.freed_until > now or is_missed:
            self.clear()

    def clear(self) -> None:
        """Take all reservations back."""
        for booking in self._reserved.values():
            self._outlook.timeline.release(booking)
        self._table.starts[list(self._reserved)] = NOWHERE
        self._reserved.clear()
        self._placeless.clear()
        self.is_void = True

    def keep(self, job: int, booking: Booking) -> None:
        """Set the booking of a running job, until its end or its next booking; all reservations become void."""
        self.clear()
        self._outlook.keep(job, booking)

    def whole(self, job: int, entries: NDArray[np.int32], end: int) -> Booking:
        """Return the booking of a job at full share on some entries from now until some second."""
        return self._outlook.timeline.booking_of(int(self._site.demand[job]), entries, self._site.now, end)

    def reserve(self, jobs: Sequence[int]) -> None:
        """Reserve a place for each of these jobs, beside those before it, and for no other."""
        has_place = [job in self._reserved or job in self._placeless for job in jobs]
        if len(self._reserved) + len(self._placeless) > sum(has_place) or has_place != sorted(has_place, reverse=True):
            self.clear()
            has_place = [False] * len(jobs)
        self.is_void = False
        asking = [job for job, has_one in zip(jobs, has_place, strict=True) if not has_one]
        if not asking:
            return
        table, timeline = self._table, self._outlook.timeline
        table.jobs[asking, 1] = self._site.now
        table.jobs[asking, 3] = [self._site.estimate(job) for job in asking]
        timeline.plan(table, np.array(asking, dtype=np.int64))
        for job in asking:
            demand, _, _, seconds = table.jobs[job].tolist()
            start = int(table.starts[job])
            if start == NOWHERE:
                self._placeless.add(job)
            else:
                self._reserved[job] = timeline.booking_of(demand, table.entries(job), start, start + seconds)

    def start_of(self, job: int) -> int | None:
        """Return when a job that waits starts by its reservation, None if it has none."""
        found = self._reserved.get(job)
        return None if found is None else found.start

    def next_start(self) -> int | None:
        """Return when the next reservation begins."""
        return min((booking.start for booking in self._reserved.values()), default=None)

    def start(self, job: int) -> Start:
        """Return the start of a job whose reservation begins now; it holds the reserved amounts from now on."""
        self._outlook.adopt(job, self._reserved.pop(job))
        entries = self._table.entries(job)
        self._table.starts[job] = NOWHERE
        return Start(job, entries)


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
            due = [job for job in first if self._map.start_of(job) == news.now]
            starts += [self._map.start(job) for job in due]
            if not due:
                return Decision(starts=starts, wake=self._map.next_start())
            waiting = [job for job in waiting if job not in set(due)]


def checked_depth(depth: int | None) -> int | None:
    """Return how many jobs are looked at, if that is possible. Raises `ValueError` if it is less than 1."""
    if depth is not None and depth < 1:
        raise ValueError(f"Expected depth >= 1, got {depth}")
    return depth
