"""The ledger: which job holds which resources when. Booking and releasing are exact inverses of each other.

A ledger is made for one cluster and one set of waiting jobs; running jobs are booked at once and stay. Each waiting
job is one row of the timeline's job table, so that whole queues are planned in one kernel; a single job can be
released and planned again at any time. A job that changes while it runs has a row as well, for those that wait for it,
but is planned by itself (`changing.py`), and is several bookings.

Places left for what is to come: a consumer's own view of the system (OCCS-22) is one more system column; a
reservation is booked like a running job and is a cluster of its own for its jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.changing import ChangingJobs, Part
from cpsched.booking.columns import Columns
from cpsched.booking.links import Links
from cpsched.booking.mapping import CheapFirst, Mapping
from cpsched.booking.modes import CompiledMode, compiled_modes
from cpsched.booking.remainder import book_asides
from cpsched.booking.running import RunningJobs
from cpsched.booking.shapes import Shape
from cpsched.domain import Instance, Job, PlannedJob, Segment, SetAside
from cpsched.problem import awaited_ends
from cpsched.rusv import FOREVER, NOWHERE, Booking, JobTable, State, Timeline

__all__ = ["Ledger", "Mark", "Place"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """The place of a waiting job on a ledger, on whose clock `now` is second 0."""

    start: int
    end: int
    #: Core seconds that its steps are held beyond what they need.
    waste: int
    #: Which of its modes it has, and what it holds: the entries of its demand, or parts.
    number: int
    held: NDArray[np.int32] | tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mark:
    """All that was booked on a ledger at some time."""

    timeline: State
    table: tuple[NDArray[Any], ...]
    parts: dict[int, list[Part]]
    running: tuple[dict[str, list[Booking]], dict[str, PlannedJob]]


class Ledger:
    """Bookings of running and waiting jobs on one cluster; mutable.

    A job that waits for others is booked at its distance from them, and finds no place while one of them has none.
    A job that is booked again keeps its distance to the jobs that wait for it (OCCS-49).

    Parameters
    ----------
    instance
        Gives the cluster, `now`, and the running jobs, which are booked.
    waiting
        Jobs that may be booked; each has passed `refusal`, and the units of jobs of several steps form layers. They
        are known by their ids. A job that waits for one that neither runs nor is among them finds no place.
    mapping
        The order in which nodes are filled and chunks are placed.
    """

    def __init__(self, instance: Instance, waiting: Sequence[Job], mapping: Mapping | None = None) -> None:
        self.instance = instance
        self.jobs = tuple(waiting)
        self._columns = Columns(instance.cluster, mapping or CheapFirst())
        self.timeline = Timeline(self._columns.demands)
        awaited = awaited_ends(instance)
        self.running = RunningJobs(instance, self._columns, self.timeline, awaited)
        self._row = {job.id: row for row, job in enumerate(waiting)}
        #: The modes of each waiting job, in the order of `jobs`; one has its first one until it is given another.
        self.modes = tuple(
            compiled_modes(instance, job, self._columns, is_awaited=job.id in awaited) for job in self.jobs
        )
        self._shapes = self._compile_shapes(awaited)
        self._changing = ChangingJobs(self._columns, self.timeline, self._shapes)
        self._parts: dict[int, list[Part]] = {}
        links = Links.of(instance, waiting)
        self.table = JobTable(
            [self._table_row(job, *of_job) for job, of_job in zip(waiting, self.modes, strict=True)], links.between
        )
        self.table.jobs[:, 1] = np.maximum(self.table.jobs[:, 1], links.released)

    def _table_row(self, job: Job, mode: CompiledMode, *_: CompiledMode) -> tuple[int, int, int, int]:
        """Return a waiting job as (demand, earliest start, latest start, duration) on the timeline's clock, which
        begins at `now`.
        """
        earliest = self.instance.earliest_start(job)
        if job.start_at is not None:
            earliest = max(earliest, job.start_at)
        return mode.demand, earliest - self.instance.now, mode.latest, mode.duration

    def _compile_shapes(self, awaited: frozenset[str]) -> dict[int, Shape]:
        """Return the waiting jobs that change, by row; a job for whose end others wait holds no step (so that its end
        follows from its start).
        """
        changing = {row: job for row, job in enumerate(self.jobs) if job.is_evolving}
        return {row: Shape.of(job, self._columns, is_held=job.id not in awaited) for row, job in changing.items()}

    # --- waiting jobs -------------------------------------------------------------------------------------------

    def plan(self, ids: Sequence[str], progress: Progress | None = None, *, is_held: bool = True) -> None:
        """Book waiting jobs that have no place, in this order, each as early as it fits beside all that is booked.

        No booked job is moved (OCCS-21 to 33). A job that fits nowhere remains without a place. Unless it
        `is_held`, no step of a job that changes is held.
        """
        for rows, told in self._stretches(self._rows(ids), progress):
            if self._is_changing(rows):
                self._plan_changing(int(rows[0]), is_held=is_held)
            else:
                self.timeline.plan(self.table, rows, told)

    def _stretches(
        self, rows: NDArray[np.int64], progress: Progress | None
    ) -> Iterator[tuple[NDArray[np.int64], Progress | None]]:
        """Yield a queue in parts, jobs that change one by one, each with its callback for progress."""
        if not self._shapes:
            yield rows, progress
            return
        done = 0
        for _, group in groupby(rows.tolist(), key=lambda row: row if row in self._shapes else -1):
            part = np.array(list(group), dtype=np.int64)

            def told(count: int, _: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + count, len(rows))

            yield part, told
            if self._is_changing(part):
                told(1, 1)
            done += len(part)

    def _is_changing(self, rows: NDArray[np.int64]) -> bool:
        """Return whether a part of a queue is a job that changes."""
        return len(rows) == 1 and int(rows[0]) in self._shapes

    def plan_soon(self, job_id: str, *, latest: int, end_by: int, is_held: bool = True) -> bool:
        """Book a waiting job that has no place as `plan` does, if it can start by `latest` and end by `end_by` (s after
        now); return whether it can.

        Parameters
        ----------
        job_id, latest, end_by
            The job, and what is still worth while.
        is_held
            Whether steps of one that changes may be held.
        """
        row = self._row[job_id]
        if row in self._shapes:
            return self._plan_changing(row, latest=latest, end_by=end_by, is_held=is_held)
        jobs = self.table.jobs
        own = int(jobs[row, 2])
        jobs[row, 2] = min(own, latest, end_by - int(jobs[row, 3]))
        self.timeline.plan(self.table, np.array([row]))
        jobs[row, 2] = own
        return bool(self.table.starts[row] != NOWHERE)

    def _plan_changing(self, row: int, *, latest: int = FOREVER, end_by: int = FOREVER, is_held: bool = True) -> bool:
        """Book a job that changes where it ends earliest; return whether it found a place."""
        earliest, last = self.table.window(row)
        latest = min(latest, last)
        if row in self._parts or earliest > latest:
            return False
        deadline = self.jobs[row].deadline
        if deadline is not None:
            end_by = min(end_by, deadline - self.instance.now)
        parts = self._changing.find(row, earliest=earliest, latest=latest, end_by=end_by, is_held=is_held)
        if parts is None:
            return False
        self._book_changing(row, parts)
        return True

    def _book_changing(self, row: int, parts: list[Part]) -> None:
        """Book the place of a job that changes, and record its start for the jobs that wait for it."""
        self._changing.book(parts)
        self._parts[row] = parts
        self.table.keep(row, parts[0].start, np.zeros((0, 3), dtype=np.int32))

    def place(self, ids: Sequence[str], *, earliest: int, latest: int = FOREVER) -> dict[str, int]:
        """Book waiting jobs that have no place, in this order, each as early as it fits with a start in
        ``[earliest, latest]``; return the starts of those that found one.

        All times are on the instance's clock; what a job itself asks of its start holds too.
        """
        rows = self._rows(ids)
        own = self.table.jobs[rows, 1:3]
        self.table.jobs[rows, 1] = np.maximum(own[:, 0], earliest - self.instance.now)
        self.table.jobs[rows, 2] = np.minimum(own[:, 1], latest - self.instance.now)
        self.plan(ids)
        self.table.jobs[rows, 1:3] = own
        starts = self.table.starts[rows].tolist()
        return {
            job_id: start + self.instance.now for job_id, start in zip(ids, starts, strict=True) if start != NOWHERE
        }

    def set_aside(self, asides: Sequence[SetAside]) -> None:
        """Book amounts that no job can have any more; where less is free, what is."""
        book_asides(self.timeline, asides, self._columns, self.instance.now)

    def stand_aside(self, job_id: str, now: int) -> None:
        """Move a booked rigid job that starts after `now` to nodes that are not free now, at the same start: jobs that
        start now then find as many free nodes as possible.
        """
        place, demand = self.place_of(job_id), int(self.table.jobs[self._row[job_id], 0])
        if isinstance(place.held, tuple):
            raise ValueError(f"job {job_id} changes while it runs")
        held = self.timeline.booking_of(demand, place.held, place.start, place.end)
        entries = self.timeline.fit_late(demand, held, now - self.instance.now)
        if entries is not None and not np.array_equal(entries, place.held):
            self.release(job_id)
            self.put_back(job_id, replace(place, held=entries))

    def restore(self, planned: PlannedJob) -> bool:
        """Book a waiting job without a place at its place in another plan; return whether that is still allowed.

        It is if the job has the same request as then, its nodes admit it, and no other job is booked there.
        """
        row, table = self._row[planned.id], self.table
        if row in self._shapes:
            return self._restore_changing(row, planned)
        start, duration = planned.start - self.instance.now, planned.end - planned.start
        for number, mode in enumerate(self.modes[row]):
            entries = None
            if len(planned.segments) == 1 and mode.duration == duration:
                entries = self._columns.entries_of(mode.demand, mode.request, planned.segments[0].allocation)
            if entries is None:
                continue
            self.take_mode(planned.id, number)
            earliest, latest = table.window(row)
            booking = self.timeline.booking_of(mode.demand, entries, start, start + duration)
            if not earliest <= start <= latest or not self.timeline.is_free(booking):
                self.take_mode(planned.id, 0)
                return False
            self.timeline.book(booking)
            table.keep(row, start, entries)
            return True
        return False

    def _restore_changing(self, row: int, planned: PlannedJob) -> bool:
        """Book a job that changes at its place in another plan; return whether that is still allowed."""
        now, deadline = self.instance.now, self.jobs[row].deadline
        earliest, latest = self.table.window(row)
        if not earliest <= planned.start - now <= latest or (deadline is not None and planned.end > deadline):
            return False
        parts = self._changing.restored(self._shapes[row], planned, now)
        if parts is None:
            return False
        self._book_changing(row, parts)
        return True

    def backfill(self, ids: Sequence[str], progress: Progress | None = None) -> int:
        """Try once, in this order, to give each job an earlier start, or one at all; return how many got it (OCCS-34).

        No start gets later.
        """
        moved = 0
        for rows, told in self._stretches(self._rows(ids), progress):
            if self._is_changing(rows):
                moved += self._move_up(int(rows[0]))
            else:
                moved += self.timeline.backfill(self.table, rows, told)
        return moved

    def _move_up(self, row: int) -> bool:
        """Move a job that changes to an earlier end and no later start, if possible; return whether it moved."""
        if row not in self._parts:
            return self._plan_changing(row)
        old = self._release_changing(row)
        earliest, _ = self.table.window(row)
        found = None
        if earliest <= old[0].start:
            found = self._changing.find(row, earliest=earliest, latest=old[0].start, end_by=old[-1].end - 1)
        self._book_changing(row, found or old)
        return found is not None

    def _release_changing(self, row: int) -> list[Part]:
        """Take back what a job that changes has booked, and return it."""
        parts = self._parts.pop(row)
        self._changing.release(parts)
        self.table.starts[row] = NOWHERE
        return parts

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
        if row in self._parts:
            self._release_changing(row)
            return
        demand, _, _, duration = (int(value) for value in self.table.jobs[row])
        start = int(self.table.starts[row])
        entries = self.table.entries(row)
        self.timeline.release(self.timeline.booking_of(demand, entries, start, start + duration))
        self.table.starts[row] = NOWHERE

    def place_of(self, job_id: str) -> Place:
        """Return the place of a waiting job, for `put_back` after its release."""
        row, table = self._row[job_id], self.table
        start = int(table.starts[row])
        parts = self._parts.get(row)
        if parts is None:
            end = start + int(table.jobs[row, 3])
            return Place(start=start, end=end, waste=0, number=self.mode(job_id), held=table.entries(row))
        return Place(
            start=start, end=parts[-1].end, waste=_wasted(self._shapes[row], parts), number=0, held=tuple(parts)
        )

    def put_back(self, job_id: str, place: Place) -> None:
        """Book a waiting job at its earlier place; the caller guarantees that all of it is free."""
        row = self._row[job_id]
        if isinstance(place.held, tuple):
            self._book_changing(row, list(place.held))
            return
        self.take_mode(job_id, place.number)
        demand = int(self.table.jobs[row, 0])
        self.timeline.book(self.timeline.booking_of(demand, place.held, place.start, place.end))
        self.table.keep(row, place.start, place.held)

    def standing_on(self, nodes: Collection[str], until: int) -> set[str]:
        """Return the waiting jobs that are booked on some nodes and start before a second of the instance's clock."""
        numbers = {self._columns.node_number[node] for node in nodes}
        found = set()
        starts = self.table.starts
        for row in np.flatnonzero((starts != NOWHERE) & (starts < until - self.instance.now)).tolist():
            parts = self._parts.get(row)
            entries = [self.table.entries(row)] if parts is None else [part.entries for part in parts]
            if not all(numbers.isdisjoint(held[:, 0].tolist()) for held in entries):
                found.add(self.jobs[row].id)
        return found

    def marked(self) -> Mark:
        """Return all that is booked now, to come back to it."""
        table = self.table
        arrays = (table.jobs, table.starts, table.spans, table.pool, table.used)
        return Mark(
            timeline=self.timeline.marked(),
            table=tuple(array.copy() for array in arrays),
            parts=dict(self._parts),
            running=self.running.state(),
        )

    def back_to(self, mark: Mark) -> None:
        """Restore the bookings at the time of the mark."""
        table = self.table
        self.timeline.back_to(mark.timeline)
        table.jobs, table.starts, table.spans, table.pool, table.used = (array.copy() for array in mark.table)
        self._parts = dict(mark.parts)
        self.running.set_state(mark.running)

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
        """Return whether a waiting job has a place."""
        return bool(self.table.starts[self._row[job_id]] != NOWHERE)

    def mode(self, job_id: str) -> int:
        """Return which of its modes a waiting job has."""
        row = self._row[job_id]
        demand, _, _, duration = (int(value) for value in self.table.jobs[row])
        return next(
            number for number, mode in enumerate(self.modes[row]) if (mode.demand, mode.duration) == (demand, duration)
        )

    def take_mode(self, job_id: str, number: int) -> None:
        """Set the mode of a waiting job that has no place."""
        row = self._row[job_id]
        mode = self.modes[row][number]
        self.table.jobs[row, [0, 2, 3]] = mode.demand, mode.latest, mode.duration

    def _rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self._row[job_id] for job_id in ids], dtype=np.int64)

    # --- what it says -------------------------------------------------------------------------------------------

    def planned(self, job_id: str) -> PlannedJob | None:
        """Return the planned job of a waiting job, or None if it has no place."""
        if not self.is_booked(job_id):
            return None
        row = self._row[job_id]
        if row in self._parts:
            segments = self._changing.segments(self._shapes[row], self._parts[row], self.instance.now)
        else:
            mode = self.modes[row][self.mode(job_id)]
            start = self.instance.now + int(self.table.starts[row])
            allocation = self._columns.allocation_of(mode.request, self.table.entries(row))
            segments = (Segment(start=start, end=start + mode.duration, allocation=allocation),)
        return PlannedJob(id=job_id, start=segments[0].start, end=segments[-1].end, segments=segments)

    @property
    def num_slots(self) -> int:
        """How many pieces the time axis has between breakpoints."""
        return self.timeline.num_slots


def _wasted(shape: Shape, parts: Sequence[Part]) -> int:
    """Return the core seconds for which steps are held beyond what they need."""
    steps = zip(parts, shape.durations, shape.cores, strict=True)
    return sum((part.end - part.start - duration) * cores for part, duration, cores in steps)
