"""A ledger that follows its window: waiting jobs come and go, running jobs start and end, and time passes."""

from collections.abc import Iterable, Sequence

import numpy as np

from cpsched.booking.ledger import Ledger, Mark
from cpsched.booking.links import Links, compiled_modes
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.rusv import FOREVER, NOWHERE, Booking, Compression, kernels

#: Demands of jobs that are gone, at the most, beside as many as there are jobs: then the ledger is made anew.
_MOST_UNUSED = 1000


class LiveLedger(Ledger):
    """A ledger whose window changes; mutable.

    It has the bookings of a ledger made anew for the window of that moment with the same places. It can follow windows
    of one cluster in which no job changes while it runs and nothing is set aside (`can_follow`).

    `instance`, `waiting`: as `Ledger` has them.
    """

    def __init__(self, instance: Instance, waiting: Sequence[Job]) -> None:
        super().__init__(instance, waiting)
        self._compression: Compression | None = None
        self._has_one_mode = all(len(modes) == 1 for modes in self.modes)
        #: The places of waiting jobs as plans have them, as far as they were asked for, where no job changes.
        self._known: dict[str, PlannedJob] = {}

    def planned(self, job_id: str) -> PlannedJob | None:
        """Return the planned job of a waiting job, or None if it has no place."""
        start, known = int(self.table.starts[self._row[job_id]]), self._known.get(job_id)
        if known is not None and start != NOWHERE and known.start == start + self.instance.now:
            return known
        planned = super().planned(job_id)
        if planned is not None and self.is_rigid:
            self._known[job_id] = planned
        return planned

    def release(self, job_id: str) -> None:
        """Take a waiting job's booking back; what it held is free again."""
        self._known.pop(job_id, None)
        if self._compression is not None:
            self._give_back([self._booking_at(job_id, self.place_of(job_id))])
            self._compression.retry(np.array([self._row[job_id]]))
        super().release(job_id)

    def back_to(self, mark: Mark) -> None:
        """Restore the bookings at the time of the mark."""
        self._known.clear()
        self._compression = None
        super().back_to(mark)

    @property
    def is_rigid(self) -> bool:
        """Whether no job changes while it runs, or could."""
        return self._has_one_mode and not (self._shapes or self._parts or self.running.changeable)

    @property
    def can_follow(self) -> bool:
        """Whether changes of the window can be booked, so that no new ledger is needed."""
        return (
            self.is_rigid
            and self.running.is_whole
            and not self.instance.set_aside
            and len(self.timeline.demands) <= 2 * len(self.jobs) + _MOST_UNUSED
        )

    def end(self, job_id: str, *, now: int) -> None:
        """Release what a running job holds; what it was to hold after `now` is new room for others."""
        self._give_back(self.running.let_go(job_id), since=now - self.instance.now)

    def hold(self, job: Job) -> bool:
        """Book a job that runs now; return whether all that it holds is there, and free."""
        bookings = self.running.bookings_of(job)
        if not self._has_nodes(job) or not all(map(self.timeline.is_free, bookings)):
            return False
        self.running.hold(job, bookings)
        return True

    def _has_nodes(self, job: Job) -> bool:
        """Return whether the nodes of a running job have the resources that it holds of them."""
        classes = self._columns.cluster.class_of
        return job.running is None or not any(
            held.resources.keys() - classes[held.node].resources.keys()
            for segment in job.running.segments
            for held in segment.allocation
        )

    def in_the_way(self, job: Job) -> list[str]:
        """Return the waiting jobs that are booked on nodes of a running job, or on licences of it, while it runs."""
        if job.running is None:
            return []
        found: dict[str, None] = {}
        for segment in job.running.segments:
            nodes = {self._columns.node_number[held.node] for held in segment.allocation}
            for name in self.booked_between(segment.start, segment.end):
                is_met = not nodes.isdisjoint(self.table.entries(self._row[name])[:, 0].tolist())
                if is_met or job.licenses.keys() & self.job_of(name).licenses.keys():
                    found[name] = None
        return list(found)

    def starts_as_planned(self, job: Job) -> bool:
        """Hold for a running job the place that it has as a waiting one; return whether that is what it holds."""
        place = self.place_of(job.id)
        planned, bookings = self._booking_at(job.id, place), self.running.bookings_of(job)
        if len(bookings) != 1 or not self._has_nodes(job) or not planned.is_same(bookings[0]):
            return False
        self._known.pop(job.id, None)
        super().release(job.id)
        self.running.hold(job, bookings)
        return True

    def booked_between(self, first: int, last: int) -> list[str]:
        """Return the waiting jobs that are booked at some second of ``[first, last)`` on the instance's clock."""
        now, starts = self.instance.now, self.table.starts
        is_then = (starts != NOWHERE) & (starts < last - now) & (starts + self.table.jobs[:, 3] > first - now)
        return [self.jobs[row].id for row in np.flatnonzero(is_then).tolist()]

    def times_of(self, job_id: str) -> tuple[int, int]:
        """Return the first second at which a waiting job may run by itself, and the second by which it has ended."""
        _, earliest, latest, duration = (int(value) for value in self.table.jobs[self._row[job_id]])
        return self.instance.now + earliest, self.instance.now + latest + duration

    def bounded(self) -> list[str]:
        """Return the waiting jobs that have a latest start."""
        return [self.jobs[row].id for row in np.flatnonzero(self.table.jobs[:, 2] < FOREVER).tolist()]

    def starts(self) -> dict[str, int]:
        """Return the starts of waiting jobs on the instance's clock."""
        starts = self.table.starts.tolist()
        return {
            job.id: start + self.instance.now for job, start in zip(self.jobs, starts, strict=True) if start != NOWHERE
        }

    def is_allowed(self, job_id: str) -> bool:
        """Return whether the place of a waiting job keeps its own times, and its distance to what it waits for."""
        row = self._row[job_id]
        earliest, _ = self.table.window(row)
        return earliest <= int(self.table.starts[row]) <= int(self.table.jobs[row, 2])

    def exchange(self, leaving: Iterable[str], arriving: Sequence[Job]) -> None:
        """Take waiting jobs without a place out, and others in."""
        jobs, modes = list(self.jobs), list(self.modes)
        for name in leaving:
            row = self._row.pop(name)
            last, last_modes = jobs.pop(), modes.pop()
            if row < len(jobs):
                jobs[row], modes[row], self._row[last.id] = last, last_modes, row
            self.table.drop(row)
            if self._compression is not None:
                self._compression.drop(row)
        if arriving:
            for job in arriving:
                self._row[job.id] = len(jobs)
                jobs.append(job)
                modes.append(compiled_modes(self.instance, job, self._columns, is_awaited=False))
            self.table.append([self._table_row(job, *modes[self._row[job.id]]) for job in arriving])
            if self._compression is not None:
                self._compression.append(len(arriving))
        self.jobs, self.modes = tuple(jobs), tuple(modes)

    def renew(self, names: Iterable[str]) -> None:
        """Compute the times of waiting jobs anew that depend on the second it is, or on other jobs."""
        has_links = any(job.after for job in self.jobs)
        links = Links.of(self.instance, self.jobs) if has_links else None
        self.table.link(None if links is None else links.between)
        rows = range(len(self.jobs)) if has_links else [self._row[name] for name in names]
        modes = list(self.modes)
        for row in rows:
            job, before = self.jobs[row], self.table.jobs[row].tolist()
            modes[row] = compiled_modes(self.instance, job, self._columns, is_awaited=False)
            own = list(self._table_row(job, *modes[row]))
            if links is not None:
                own[1] = max(own[1], int(links.released[row]))
            self.table.jobs[row] = own
            if own != before and self._compression is not None:
                self._compression.retry(np.array([row]))
        self.modes = tuple(modes)

    def pass_time(self, instance: Instance) -> None:
        """Advance the clock to the `now` of another window; each place of a waiting job begins then or later."""
        seconds = instance.now - self.instance.now
        self.instance = instance
        self.running.pass_time(instance.now)
        self.timeline.pass_time(seconds)
        self.table.pass_time(seconds)

    def compress(self, ids: Sequence[str], depth: int) -> bool:
        """Try once, in this order, to give each job an earlier start, or one, as `backfill` does; but of jobs that have
        a start only the first `depth` to any earlier start, and the others to a start now. Return whether one got it.
        """
        if self._compression is None:
            self._compression = Compression(self.timeline, self.table)
        rows = self._rows(ids)
        # demands for chunks of several kinds may fit later without any release
        flags = self.timeline.demands.tables().demands[self.table.jobs[:, 0], kernels.D.FLAGS]
        is_joint = np.flatnonzero(flags & kernels.F.JOINT)
        first = 0
        before = self.table.starts.copy()
        is_left = before[rows] == NOWHERE
        for place in [*np.flatnonzero(is_left).tolist(), len(rows)]:
            part = rows[first:place]
            soon, later = part[: max(0, depth - first)], part[max(0, depth - first) :]
            self._compression.retry(is_joint)
            may_start_now = later[self.table.jobs[later, 1] == 0]
            self._compression.compress(np.concatenate([soon, may_start_now]), len(soon))
            self.timeline.plan(self.table, rows[place : place + 1])
            first = place + 1
        return not np.array_equal(before, self.table.starts)

    def _give_back(self, released: Sequence[Booking], since: int = 0) -> None:
        """Note that something was released from a second on, of this ledger's clock."""
        if self._compression is not None:
            nodes = sum(max(1, len(booking.columns)) for booking in released if booking.end > since)
            self._compression.give_back(nodes)
