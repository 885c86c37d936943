"""The ledger: who holds what, when. Booking and releasing are exact inverses of each other.

A ledger is made for one cluster and one set of waiting jobs; running jobs are booked at once and stay. Each waiting
job is one row of the timeline's job table, so that whole queues are planned in one kernel; a single job can be
released and planned again at any time.

Places left for what is to come: a consumer's own view of the system (OCCS-22) is one more system column; a
reservation is booked like a running job and is a cluster of its own for its jobs; a job of several segments is
several bookings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.columns import WHOLE_REQUEST, Columns
from cpsched.booking.links import Links
from cpsched.booking.mapping import CheapFirst, Mapping
from cpsched.domain import Amounts, Instance, Job, Placement, PlannedJob, Running, Segment
from cpsched.rusv import FOREVER, NOWHERE, JobTable, Timeline

__all__ = ["Ledger"]

Progress = Callable[[int, int], None]


class Ledger:
    """Bookings of running and waiting jobs on one cluster; mutable.

    A job that waits for others is booked at its distance from them, and finds no place while one of them has none; who
    is booked again, keeps the distance of those that wait for him (OCCS-49).

    Parameters
    ----------
    instance
        Gives the cluster, `now`, and the running jobs, which are booked.
    waiting
        Rigid jobs that may be booked; each has passed `refusal`. They are known by their ids. One that waits for a job
        that neither runs nor is among them finds no place.
    mapping
        The order in which nodes are filled and chunks are placed.
    """

    def __init__(self, instance: Instance, waiting: Sequence[Job], mapping: Mapping | None = None) -> None:
        running = [(job, _current(job.running, instance.now)) for job in instance.jobs if job.running is not None]
        self.instance = instance
        self.jobs = tuple(waiting)
        self._columns = Columns(instance.cluster, mapping or CheapFirst())
        self.timeline = Timeline(self._columns.demands)
        self._hold(running)
        self._row = {job.id: row for row, job in enumerate(waiting)}
        links = Links.of(instance, waiting)
        self.table = JobTable([self._table_row(job) for job in waiting], links.between)
        self.table.jobs[:, 1] = np.maximum(self.table.jobs[:, 1], links.released)

    def _table_row(self, job: Job) -> tuple[int, int, int, int]:
        """Return a waiting job as (demand, earliest start, latest start, duration) on the timeline's clock, which
        begins at `now`.
        """
        earliest, latest = self.instance.earliest_start(job), self.instance.latest_start(job)
        if job.start_at is not None:
            earliest = max(earliest, job.start_at)
        now = self.instance.now
        return self._columns.compile(job), earliest - now, FOREVER if latest is None else latest - now, job.walltime

    def _hold(self, running: Sequence[tuple[Job, Segment]]) -> None:
        """Book what running jobs hold until they end.

        Running work is a fact, even where it breaks a rule: together with those that end later nobody takes more of a
        column than is there, and an exclusive job leaves nothing of its nodes.
        """
        now = self.instance.now
        taken: dict[int, int] = {}
        for job, segment in sorted(running, key=lambda pair: (-pair[1].end, pair[0].id)):
            mine: dict[int, int] = {}
            for held in segment.allocation:
                columns = self._columns.columns_on(held.node, held.resources, whole=job.request.place.exclusive)
                for column, amount, capacity in columns:
                    left = min(amount, capacity - taken.get(column, 0))
                    if left > 0:
                        taken[column] = taken.get(column, 0) + left
                        mine[column] = mine.get(column, 0) + left
            licenses = {self._columns.license_number[name]: amount for name, amount in job.licenses.items()}
            self.timeline.book(self.timeline.booking(0, segment.end - now, mine, licenses))

    # --- waiting jobs -------------------------------------------------------------------------------------------

    def plan(self, ids: Sequence[str], progress: Progress | None = None) -> None:
        """Book waiting jobs that have no place, in this order, each as early as it fits beside all that is booked.

        Nobody who is booked is moved (OCCS-21 to 33). A job that fits nowhere stays without a place.
        """
        self.timeline.plan(self.table, self._rows(ids), progress)

    def place(self, ids: Sequence[str], *, earliest: int, latest: int = FOREVER) -> dict[str, int]:
        """Book waiting jobs that have no place, in this order, each as early as it fits with a start in
        ``[earliest, latest]``; return the starts of those that found one.

        All times are on the instance's clock; what a job itself asks of its start holds too.
        """
        rows = self._rows(ids)
        own = self.table.jobs[rows, 1:3]
        self.table.jobs[rows, 1] = np.maximum(own[:, 0], earliest - self.instance.now)
        self.table.jobs[rows, 2] = np.minimum(own[:, 1], latest - self.instance.now)
        self.timeline.plan(self.table, rows)
        self.table.jobs[rows, 1:3] = own
        starts = self.table.starts[rows].tolist()
        return {
            job_id: start + self.instance.now for job_id, start in zip(ids, starts, strict=True) if start != NOWHERE
        }

    def restore(self, planned: PlannedJob) -> bool:
        """Book a waiting job that has no place where it stands in another plan; tell whether it may stand there still.

        It may if it asks for the same as then, its nodes may hold it, and nobody else is booked there.
        """
        row, table = self._row[planned.id], self.table
        demand, _, _, duration = (int(value) for value in table.jobs[row])
        earliest, latest = table.window(row)
        start, (segment, *more) = planned.start - self.instance.now, planned.segments
        if more or planned.end - planned.start != duration or not earliest <= start <= latest:
            return False
        entries = self._columns.entries_of(demand, self.jobs[row], segment.allocation)
        if entries is None:
            return False
        booking = self.timeline.booking_of(demand, entries, start, start + duration)
        if not self.timeline.is_free(booking):
            return False
        self.timeline.book(booking)
        table.keep(row, start, entries)
        return True

    def backfill(self, ids: Sequence[str], progress: Progress | None = None) -> int:
        """Try once, in this order, to give each job an earlier start, or one at all; return how many got it (OCCS-34).

        Nobody's start gets later.
        """
        return self.timeline.backfill(self.table, self._rows(ids), progress)

    def release(self, job_id: str) -> None:
        """Take a waiting job's booking back; what it held is free again.

        Raises
        ------
        ValueError
            If the job is not booked.
        """
        if job_id not in self._row or not self.is_booked(job_id):
            raise ValueError(f"job {job_id} is not booked")
        row = self._row[job_id]
        demand, _, _, duration = (int(value) for value in self.table.jobs[row])
        start = int(self.table.starts[row])
        entries = self.table.entries(row)
        self.timeline.release(self.timeline.booking_of(demand, entries, start, start + duration))
        self.table.starts[row] = NOWHERE

    def earliest_start(self, job_id: str) -> int | None:
        """Return the first second that its own times and the places of all that it waits for leave a waiting job.

        None while one of those has no place.
        """
        released, _ = self.table.window(self._row[job_id])
        return None if released >= FOREVER else self.instance.now + released

    def followers(self, job_id: str) -> tuple[str, ...]:
        """Return the waiting jobs that wait for another one, each once."""
        row, table = self._row[job_id], self.table
        rows = table.followers[table.followers_of[row] : table.followers_of[row + 1], 0]
        return tuple(self.jobs[row].id for row in dict.fromkeys(rows.tolist()))

    def is_booked(self, job_id: str) -> bool:
        """Tell whether a waiting job has a place."""
        return bool(self.table.starts[self._row[job_id]] != NOWHERE)

    def _rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self._row[job_id] for job_id in ids], dtype=np.int64)

    # --- what it says -------------------------------------------------------------------------------------------

    def planned(self, job_id: str) -> PlannedJob | None:
        """Return when and where a waiting job stands, or None if it has no place."""
        if not self.is_booked(job_id):
            return None
        row = self._row[job_id]
        job = self.jobs[row]
        start = self.instance.now + int(self.table.starts[row])
        chunks = job.request.chunks
        taken: dict[tuple[int, int], Amounts] = {}  # most nodes hold the same: one value serves them all
        allocation: list[Placement] = []
        for number, kind_number, units in self.table.entries(row).tolist():
            node, kind = self._columns.node_names[number], self._columns.kind_of(kind_number)
            held = [(kind, units)] if kind != WHOLE_REQUEST else [(k, chunk.count) for k, chunk in enumerate(chunks)]
            for place, count in held:
                if (place, count) not in taken:
                    taken[place, count] = chunks[place].taken(count)
                allocation.append(Placement(node=node, chunk=place, count=count, resources=taken[place, count]))
        segment = Segment(start=start, end=start + job.walltime, allocation=tuple(allocation))
        return PlannedJob(id=job.id, start=start, end=segment.end, segments=(segment,))

    @property
    def num_slots(self) -> int:
        """How many pieces the time axis has between breakpoints."""
        return self.timeline.num_slots


def _current(running: Running, now: int) -> Segment:
    """Return the segment in which a running job is."""
    return next(segment for segment in running.segments if segment.end > now)
