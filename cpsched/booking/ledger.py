"""The ledger: which job holds which resources when. Booking and releasing are exact inverses of each other.

A ledger is made for one cluster and one set of waiting jobs; running jobs are booked at once and stay. Each waiting
job is one row of the timeline's job table, so that whole queues are planned in one kernel; a single job can be
released and planned again at any time. A job that changes while it runs has a row as well, for those that wait for it,
but is planned by itself (`changing.py`), and is several bookings.

Places left for what is to come: a consumer's own view of the system (OCCS-22) is one more system column; a
reservation is booked like a running job and is a cluster of its own for its jobs.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.changing import ChangingJobs, Part, Shape
from cpsched.booking.columns import Columns
from cpsched.booking.links import CompiledMode, Links, compiled_modes
from cpsched.booking.mapping import CheapFirst, Mapping
from cpsched.booking.running import RunningJobs, book_asides, fastest_changes
from cpsched.domain import Instance, Job, PlannedJob, Segment, SetAside, stretches_of
from cpsched.domain import modes as domain_modes
from cpsched.problem import awaited_ends, in_segments, own_start
from cpsched.rusv import FOREVER, NOWHERE, Booking, Choices, JobTable, StepSequences, Timeline, TimelineMark, behind

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """The place of a waiting job on a ledger, on whose clock `now` is second 0."""

    start: int
    end: int
    #: Core seconds that its steps are held beyond what they need.
    waste: int
    #: Which of its modes it has, and what it holds: the entries of its demand; or parts, if it changes while it runs.
    number: int
    held: NDArray[np.int32] | tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mark:
    """All that was booked on a ledger at some time."""

    timeline: TimelineMark
    table: tuple[NDArray[Any], ...]
    parts: dict[int, list[Part]]
    running: tuple[dict[str, list[Booking]], dict[str, PlannedJob]]


class Ledger:
    """Bookings of running and waiting jobs on one cluster; mutable (OCCS-20, BRIDI-4).

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
    has_parts
        Whether a malleable job may change its share while it runs; if not, it keeps one to its end.
    """

    def __init__(
        self, instance: Instance, waiting: Sequence[Job], mapping: Mapping | None = None, *, has_parts: bool = True
    ) -> None:
        self.instance = instance
        self.jobs = tuple(waiting)
        self._columns = Columns(instance.cluster, mapping or CheapFirst())
        self.timeline = Timeline(self._columns.demands)
        awaited = awaited_ends(instance)
        self.running = RunningJobs(instance, self._columns, self.timeline, awaited)
        self._row = {job.id: row for row, job in enumerate(waiting)}
        #: Whether any of its jobs has alternatives.
        self.has_choices = any(job.alternatives for job in self.jobs)
        links = Links.of(instance, waiting)
        #: The modes of each waiting job, in the order of `jobs`; one has its first one until it is given another.
        self.modes = tuple(
            compiled_modes(instance, job, self._columns, is_awaited=job.id in awaited, by=latest)
            for job, latest in zip(self.jobs, links.latest, strict=True)
        )
        #: The waiting jobs that change, by row; one for whose end others wait holds no step.
        self._shapes = {
            row: Shape.of(job, self._columns, is_held=job.id not in awaited)
            for row, job in enumerate(self.jobs)
            if job.is_evolving
        }
        self._changing = ChangingJobs(self._columns, self.timeline, self._shapes)
        self._parts: dict[int, list[Part]] = {}
        self._has_parts = has_parts
        self.table = JobTable(
            [self._table_row(job, *of_job) for job, of_job in zip(waiting, self.modes, strict=True)], links.between
        )
        self.table.jobs[:, 1] = np.maximum(self.table.jobs[:, 1], links.released)

    def _table_row(self, job: Job, mode: CompiledMode, *_: CompiledMode) -> tuple[int, int, int, int]:
        """Return a waiting job as (demand, earliest start, latest start, duration), from `now` on."""
        earliest = own_start(self.instance, job) - self.instance.now
        return mode.demand, earliest, mode.latest, mode.duration

    # --- waiting jobs -------------------------------------------------------------------------------------------

    def plan(
        self,
        ids: Sequence[str],
        progress: Progress | None = None,
        *,
        is_held: bool = True,
        choices: Choices | None = None,
    ) -> None:
        """Book waiting jobs that have no place, in this order, each as early as it fits beside all that is booked.

        No booked job is moved (OCCS-21, OCCS-23, OCCS-29). A job that fits nowhere remains without a place. Unless it
        `is_held`, no step of a job that changes is held. With `choices`, of the rows of the ledger, each job gets the
        mode that costs it least; else it keeps its own.
        """
        for rows, tell in self._stretches(self._rows(ids), progress):
            if self._is_changing(rows):
                self._plan_changing(int(rows[0]), is_held=is_held)
            else:
                self.timeline.plan(self.table, rows, tell, choices)

    def _stretches(
        self, rows: NDArray[np.int64], progress: Progress | None
    ) -> Iterator[tuple[NDArray[np.int64], Progress | None]]:
        """Yield a queue in parts, jobs that change one by one, each with its callback for progress."""
        if not self._shapes and not self._parts:
            yield rows, progress
            return
        done = 0
        for _, group in groupby(rows.tolist(), key=lambda row: row if self._changes(row) else -1):
            part = np.array(list(group), dtype=np.int64)

            def tell(count: int, _: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + count, len(rows))

            yield part, tell
            if self._is_changing(part):
                tell(1, 1)
            done += len(part)

    def _is_changing(self, rows: NDArray[np.int64]) -> bool:
        """Return whether a part of a queue is a job that changes."""
        return len(rows) == 1 and self._changes(int(rows[0]))

    def _changes(self, row: int) -> bool:
        """Return whether a job changes while it runs: an evolving one, or one that is booked on several shares."""
        return row in self._shapes or row in self._parts

    def _plan_changing(self, row: int, *, is_held: bool = True) -> bool:
        """Book a job that changes where it ends earliest; return whether it found a place."""
        if row in self._parts:
            return False
        earliest, latest = self.table.window(row)
        if earliest > latest:
            return False
        deadline = self.jobs[row].deadline
        end_by = FOREVER if deadline is None else deadline - self.instance.now
        parts = self._changing.find(row, earliest=earliest, latest=latest, end_by=end_by, is_held=is_held)
        if parts is None:
            return False
        self._book_changing(row, parts)
        return True

    def _book_changing(self, row: int, parts: list[Part]) -> None:
        """Book the place of a job that changes, and record its start for the jobs that wait for it."""
        for part in parts:
            self.timeline.book(part.booking)
        self._parts[row] = parts
        self.table.keep(row, parts[0].start, np.zeros((0, 3), dtype=np.int32))

    def place(
        self, ids: Sequence[str], *, earliest: int, latest: int = FOREVER, choices: Choices | None = None
    ) -> dict[str, int]:
        """Book waiting jobs that have no place, in this order, each as early as it fits with a start in
        ``[earliest, latest]``; return the starts of those that found one.

        All times are on the instance's clock; what a job itself asks of its start holds too. With `choices`, which end
        at `latest`, each job gets the mode that costs it least; one that finds no place has to be given its mode again.
        """
        rows = self._rows(ids)
        own = self.table.jobs[rows, 1:3]
        self.table.jobs[rows, 1] = np.maximum(own[:, 0], earliest - self.instance.now)
        self.table.jobs[rows, 2] = np.minimum(own[:, 1], latest - self.instance.now)
        self.plan(ids, choices=choices)
        self.table.jobs[rows, 1] = own[:, 0]
        has_one = slice(None) if choices is None else np.diff(choices.first)[rows] == 1
        self.table.jobs[rows[has_one], 2] = own[has_one, 1]
        starts = self.table.starts[rows].tolist()
        return {
            job_id: start + self.instance.now for job_id, start in zip(ids, starts, strict=True) if start != NOWHERE
        }

    def set_aside(self, asides: Sequence[SetAside]) -> None:
        """Book amounts that no job can have any more; where less is free, what is."""
        book_asides(self.timeline, asides, self._columns, self.instance.now)

    def stand_aside(self, job_id: str, now: int) -> None:
        """Move a booked rigid job to nodes that are not free now, at the same start: jobs that start now find more."""
        place, row = self.place_of(job_id), self._row[job_id]
        held = self._booking_at(job_id, place)
        entries = self.timeline.fit_late(int(self.table.jobs[row, 0]), held, now - self.instance.now)
        if entries is not None and not np.array_equal(entries, self.table.entries(row)):
            self.release(job_id)
            self.put_back(job_id, replace(place, held=entries))

    def restore(self, planned: PlannedJob) -> bool:
        """Book a waiting job without a place at its place in another plan; return whether that is still allowed.

        It is if the job has the same request as then, its nodes admit it, and no other job is booked there.
        """
        row, table = self._row[planned.id], self.table
        if row in self._shapes:
            if not self._may_be_at(row, planned):
                return False
            parts = self._changing.restored(self._shapes[row], planned, self.instance.now)
            if parts is None:
                return False
            self._book_changing(row, parts)
            return True
        start, duration = planned.start - self.instance.now, planned.end - planned.start
        alternative = planned.alternative if self.jobs[row].alternatives else None
        for number, mode in enumerate(self.modes[row]):
            entries = None
            if len(planned.segments) == 1 and mode.duration == duration and alternative in (None, number):
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
        is_on_shares = self._has_parts and len(planned.segments) > 1 and alternative is None
        return is_on_shares and self._restore_shares(row, planned)

    def _restore_shares(self, row: int, planned: PlannedJob) -> bool:
        """Book a malleable job that changes its share at its place in another plan; return whether that is allowed."""
        now = self.instance.now
        if not self._may_be_at(row, planned):
            return False
        changes: list[tuple[int, int]] = []
        held: list[NDArray[np.int32]] = []
        for segment in planned.segments:
            found = (
                (number, self._columns.entries_of(mode.demand, mode.request, segment.allocation))
                for number, mode in enumerate(self.modes[row])
            )
            number, entries = next(((number, one) for number, one in found if one is not None), (-1, None))
            if entries is None or (held and self._chunks_in(held[0]) != self._chunks_in(entries)):
                return False
            changes.append((segment.start - now, number))
            held.append(entries)
        parts = self._parts_on_shares(row, changes, self._on_shares(row, held[0]))
        if parts[-1].end != planned.end - now or len(parts) != len(planned.segments):
            return False
        if not all(self.timeline.is_free(part.booking) for part in parts):
            return False
        self._book_changing(row, parts)
        return True

    def _parts_on_shares(
        self, row: int, changes: Sequence[tuple[int, int]], held: Sequence[NDArray[np.int32] | None]
    ) -> list[Part]:
        """Return the parts of a malleable job that changes its mode at given times, on the nodes that it holds.

        `changes`: see `stretches_of`, on the ledger's clock. `held`: its entries in each mode (`_on_shares`).
        """
        job, modes = self.jobs[row], self.modes[row]
        return [
            self._changing.part(modes[mode].request, modes[mode].demand, entries, start, end)
            for start, end, mode in stretches_of(job.walltime, domain_modes(job), changes)
            if (entries := held[mode]) is not None
        ]

    def _chunks_in(self, entries: NDArray[np.int32]) -> list[tuple[int, int, int]]:
        """Return (node, kind of chunk, number of chunks) of entries, in an order that depends on no mode."""
        return sorted((node, self._columns.kind_of(kind), count) for node, kind, count in entries.tolist())

    def _on_shares(self, row: int, held: NDArray[np.int32]) -> list[NDArray[np.int32] | None]:
        """Return entries of one of a job's modes as those of each mode, on the same nodes; None: it may not."""
        columns, found = self._columns, list[NDArray[np.int32] | None]()
        for mode in self.modes[row]:
            kinds = {columns.kind_of(kind): kind for kind, _ in columns.demands.kinds_of(mode.demand)}
            entries = held.copy()
            entries[:, 1] = [kinds[columns.kind_of(kind)] for kind in held[:, 1].tolist()]
            found.append(entries if columns.demands.may_have(entries) else None)
        return found

    def _may_be_at(self, row: int, planned: PlannedJob) -> bool:
        """Return whether its own times, and the jobs that it waits for, let a job be at a time."""
        deadline, (earliest, latest) = self.jobs[row].deadline, self.table.window(row)
        is_late = deadline is not None and planned.end > deadline
        return not is_late and earliest <= planned.start - self.instance.now <= latest

    def backfill(self, ids: Sequence[str], progress: Progress | None = None) -> int:
        """Try once, in this order, to start each job earlier, none later; return how many got a start (OCCS-34)."""
        moved = 0
        for rows, tell in self._stretches(self._rows(ids), progress):
            if self._is_changing(rows):
                moved += self._move_up(int(rows[0]))
            else:
                moved += self.timeline.backfill(self.table, rows, tell)
        return moved

    def _move_up(self, row: int) -> bool:
        """Move a job that changes to an earlier end and no later start, if possible; return whether it moved."""
        if row not in self._parts:
            return self._plan_changing(row)
        old = self._release_changing(row)
        if row not in self._shapes:
            # on its full share it starts no later, and ends earlier; its own end is what stretches cost
            name, now = self.jobs[row].id, self.instance.now
            self.take_mode(name, 0)
            latest = min(old[0].start, old[-1].end - 1 - int(self.table.jobs[row, 3]))
            if self.place([name], earliest=now, latest=now + latest):
                return True
            self._book_changing(row, old)
            return False
        earliest, _ = self.table.window(row)
        found = None
        if earliest <= old[0].start:
            found = self._changing.find(row, earliest=earliest, latest=old[0].start, end_by=old[-1].end - 1)
        self._book_changing(row, found or old)
        return found is not None

    def _release_changing(self, row: int) -> list[Part]:
        """Take back what a job that changes has booked, and return it."""
        parts = self._parts.pop(row)
        for part in parts:
            self.timeline.release(part.booking)
        self.table.starts[row] = NOWHERE
        return parts

    def release(self, job_id: str) -> None:
        """Take a waiting job's booking back, whose amounts are free again; `ValueError` if it is not booked."""
        if job_id not in self._row or not self.is_booked(job_id):
            raise ValueError(f"job {job_id} is not booked")
        row = self._row[job_id]
        if row in self._parts:
            self._release_changing(row)
            return
        self.timeline.release(self._booking_at(job_id, self.place_of(job_id)))
        self.table.starts[row] = NOWHERE

    def place_of(self, job_id: str) -> Place:
        """Return the place of a waiting job, for `put_back` after its release."""
        row, table = self._row[job_id], self.table
        start = int(table.starts[row])
        parts = self._parts.get(row)
        if parts is None:
            end = start + int(table.jobs[row, 3])
            return Place(start=start, end=end, waste=0, number=self.mode(job_id), held=table.entries(row))
        waste = _wasted(self._shapes[row], parts) if row in self._shapes else 0  # malleable jobs waste nothing
        return Place(start=start, end=parts[-1].end, waste=waste, number=0, held=tuple(parts))

    def _booking_at(self, job_id: str, place: Place) -> Booking:
        """Return the amounts that a waiting job holds at a place where it does not change."""
        if isinstance(place.held, tuple):
            raise ValueError(f"job {job_id} changes while it runs")
        demand = self.modes[self._row[job_id]][place.number].demand
        return self.timeline.booking_of(demand, place.held, place.start, place.end)

    def put_back(self, job_id: str, place: Place) -> None:
        """Book a waiting job at its earlier place; the caller guarantees that all of it is free."""
        row = self._row[job_id]
        if isinstance(place.held, tuple):
            self._book_changing(row, list(place.held))
            return
        self.take_mode(job_id, place.number)
        self.timeline.book(self._booking_at(job_id, place))
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
        """Return the first second that its own times, and all that it waits for, leave a waiting job, or None."""
        released, _ = self.table.window(self._row[job_id])
        return None if released >= FOREVER else self.instance.now + released

    def behind(self, job_id: str) -> tuple[str, ...]:
        """Return a waiting job and all that wait for it, directly or not, in the order in which they are found."""
        return tuple(self.jobs[row].id for row in behind(self.table.links, [self._row[job_id]]))

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

    def job_of(self, job_id: str) -> Job:
        """Return a waiting job as it is compiled."""
        return self.jobs[self._row[job_id]]

    # --- malleable jobs -----------------------------------------------------------------------------------------

    @property
    def in_parts(self) -> list[int]:
        """The rows of the booked jobs that change while they run."""
        return list(self._parts)

    def num_modes(self, job_id: str) -> int:
        """Return how many modes a waiting job has."""
        return len(self.modes[self._row[job_id]])

    def nodes_of(self, job_id: str) -> set[str]:
        """Return the nodes on which a waiting job is booked."""
        return {self._columns.node_names[node] for node in self._held(self._row[job_id])[:, 0].tolist()}

    def is_free(self, job_id: str, place: Place) -> bool:
        """Return whether all of a place in one mode of a waiting job is free."""
        if isinstance(place.held, tuple):
            return all(self.timeline.is_free(part.booking) for part in place.held)
        return self.timeline.is_free(self._booking_at(job_id, place))

    def shrunk(self, job_id: str, number: int) -> Place | None:
        """Return the place of a booked malleable job if it runs in a mode from its start to its end, on the same nodes;
        None if it would end after its deadline, or may not have these nodes. Whether that is free is not asked.
        """
        row = self._row[job_id]
        mode, start = self.modes[row][number], int(self.table.starts[row])
        if start > mode.latest:
            return None
        entries = self._on_shares(row, self._held(row))[number]
        if entries is None:
            return None
        return Place(start=start, end=start + mode.duration, waste=0, number=number, held=entries)

    def _held(self, row: int) -> NDArray[np.int32]:
        """Return the entries of a booked malleable job at its start."""
        parts = self._parts.get(row)
        return self.table.entries(row) if parts is None else parts[0].entries

    def expand(self, job_id: str) -> bool:
        """Run a booked malleable job, where it is, on the fastest share free in each second; tell if it ends sooner."""
        row = self._row[job_id]
        if len(self.modes[row]) < 2 or self.jobs[row].alternatives or not self._has_parts:
            return False
        place, held = self.place_of(job_id), self._on_shares(row, self._held(row))
        self.release(job_id)
        parts = None
        bookings = [
            None
            if entries is None
            else self.timeline.booking_of(mode.demand, entries, place.start, place.start + mode.duration)
            for mode, entries in zip(self.modes[row], held, strict=True)
        ]
        job = self.jobs[row]
        changes = fastest_changes(self.timeline, place.start, job.walltime, domain_modes(job), bookings)
        if changes is not None:
            parts = self._parts_on_shares(row, changes, held)
        if parts is None or parts[-1].end >= place.end:
            self.put_back(job_id, place)
            return False
        if len(parts) > 1:
            self._book_changing(row, parts)
            return True
        share = [mode.request for mode in self.modes[row]].index(parts[0].request)
        self.put_back(job_id, replace(place, end=parts[0].end, number=share, held=parts[0].entries))
        return True

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
        return self.planned_on(job_id, self.pieces(job_id)) if self.is_booked(job_id) else None

    # --- for chains of a search, which book on the timeline themselves ------------------------------------------

    @property
    def sequences(self) -> StepSequences:
        """The step sequences of the evolving jobs."""
        return self._changing.sequences

    def steps_of(self, row: int) -> tuple[int, tuple[int, ...]]:
        """Return which step sequence an evolving job is, and the cores of its steps; -1 and none of any other job."""
        if row not in self._shapes:
            return -1, ()
        return self._changing.sequence_of[row], self._shapes[row].cores

    @property
    def node_number(self) -> MappingType[str, int]:
        """The numbers of the nodes on the timeline."""
        return self._columns.node_number

    def chunk_kinds(self) -> NDArray[np.int64]:
        """Return which kind of chunks of its request each kind of the demand table is; 0 for a packed request."""
        kinds = [
            kind for demand in range(len(self._columns.demands)) for kind, _ in self._columns.demands.kinds_of(demand)
        ]
        return np.array([max(0, self._columns.kind_of(kind)) for kind in kinds], dtype=np.int64)

    def kinds_of(self, demand: int) -> list[int]:
        """Return the kinds of the demand table that a demand has, in the order of mapping."""
        return [kind for kind, _ in self._columns.demands.kinds_of(demand)]

    def pieces(self, job_id: str) -> list[tuple[int, int, int, NDArray[np.int32]]]:
        """Return the place of a booked waiting job as (start, end, step or mode, entries), one after the other."""
        row, place = self._row[job_id], self.place_of(job_id)
        if not isinstance(place.held, tuple):
            return [(place.start, place.end, place.number, place.held)]
        numbers = list(range(len(place.held)))
        if row not in self._shapes:
            requests = [mode.request for mode in self.modes[row]]
            numbers = [requests.index(part.request) for part in place.held]
        return [(part.start, part.end, number, part.entries) for number, part in zip(numbers, place.held, strict=True)]

    def planned_on(self, job_id: str, pieces: Sequence[tuple[int, int, int, NDArray[np.int32]]]) -> PlannedJob:
        """Return the planned job of a waiting job with such a place; whether that is free is not asked."""
        row, now = self._row[job_id], self.instance.now
        requests = self._shapes[row].requests if row in self._shapes else [mode.request for mode in self.modes[row]]
        segments = tuple(
            Segment(start=now + start, end=now + end, allocation=self._columns.allocation_of(requests[number], entries))
            for start, end, number, entries in pieces
        )
        return in_segments(job_id, segments, pieces[0][2] if self.jobs[row].alternatives else 0)


def _wasted(shape: Shape, parts: Sequence[Part]) -> int:
    """Return the core seconds for which steps are held beyond what they need."""
    steps = zip(parts, shape.sequence.steps, shape.cores, strict=True)
    return sum((part.end - part.start - duration) * cores for part, (_, duration, _), cores in steps)
