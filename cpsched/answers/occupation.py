"""The machine as a plan books it: what each job holds, so that a job can be taken away for a question."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import CheapFirst, Columns, amounts_aside, booked_remainder
from cpsched.domain import FOR_EVER, Instance, Job, PlannedJob, Segment
from cpsched.errors import DocumentError, Fault
from cpsched.problem import stated_node, without_rules
from cpsched.rusv import FOREVER, Booking, Timeline

Ints = NDArray[np.int64]
#: Amounts of columns that a running job would have by itself in ``[start, end)``.
_Wanted = tuple[int, int, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uses:
    """The uses of nodes, or of what is counted, by jobs: one row for each; times are in seconds from `now`."""

    #: int64 (uses,): the job (in `Occupation.ids`), what it uses (node number, or amount), and when.
    job: Ints
    used: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int]]) -> "Uses":
        """Make the table of rows."""
        job, used, start, end = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return cls(job=job, used=used, start=start, end=end)

    def during(self, start: int, end: int, *, after: int = -1) -> "Uses":
        """Return the uses that overlap ``[start, end)``, of those that begin later than `after`."""
        return self._at(np.flatnonzero((self.start < end) & (self.end > start) & (self.start > after)))

    def but(self, jobs: Collection[int]) -> "Uses":
        """Return the uses by all but some jobs."""
        if not jobs:
            return self
        return self._at(np.flatnonzero(~np.isin(self.job, list(jobs))))

    def _at(self, rows: Ints) -> "Uses":
        return Uses(job=self.job[rows], used=self.used[rows], start=self.start[rows], end=self.end[rows])


@dataclass(slots=True, kw_only=True, eq=False)
class _Known:
    """A timeline, and what it has; mutable."""

    timeline: Timeline
    #: The jobs that it does not have, and the version of the occupation of which that is true.
    away: frozenset[int] = frozenset()
    version: int = 0


class Occupation:
    """All that a plan books on nodes; mutable: jobs are taken away for a question, and put back after it.

    Raises `DocumentError` if the plan has jobs that the instance lacks, or that do not fit together. `instance`: that
    of a `cpsched.problem.Problem`, without licences. `planned`: the jobs of a plan of it, running ones included.
    """

    def __init__(self, instance: Instance, planned: Sequence[PlannedJob]) -> None:
        self.instance = instance
        self.columns = Columns(instance.cluster, CheapFirst())
        self._timeline = Timeline(self.columns.demands)
        #: What is left by the rules when no job holds anything.
        self.bare = Timeline(self.columns.demands)
        self.ids: list[str] = []
        self.place_of: dict[str, int] = {}
        self._bookings: list[list[Booking]] = []
        self._away: set[int] = set()
        #: How many blocks of `without` are open, and a timeline for each depth of them at which it was asked for: one
        #: question after the other takes away almost the same jobs at the same depth.
        self._depth = 0
        self._known = [_Known(timeline=self._timeline)]
        #: How often jobs were taken away or put back.
        self.version = 0
        #: bool (jobs + 1,): which jobs are taken away; the last one, also at -1, is no job, and is not.
        self.is_away: NDArray[np.bool_] = np.zeros(len(planned) + 1, dtype=bool)
        #: Running jobs that together take more of a column than there is, and those beside them on its nodes, with what
        #: each would have by itself, in the order in which they get what is left.
        self._crowd: dict[int, list[_Wanted]] = {}
        self._book(planned)
        for one in instance.set_aside:  # after the jobs: engines set aside more than documents state
            amounts, _ = amounts_aside(one, self.columns)
            start, end = max(0, one.start - instance.now), one.end - instance.now
            if end > start:
                for timeline in (self._timeline, self.bare):
                    booked_remainder(timeline, start, end if end < FOR_EVER else FOREVER, amounts, {})

    def _book(self, planned: Sequence[PlannedJob]) -> None:
        """Book all jobs of a plan: running ones first, as far as what they hold is free; the others as a whole."""
        now = self.instance.now
        entries = {job.id: job for job in self.instance.elements()}
        faults = [
            Fault(f"jobs[{index}].id", f"Expected a job of the instance, got {job.id!r}")
            for index, job in enumerate(planned)
            if job.id not in entries
        ]
        faults += [
            Fault(f"jobs[{index}].alternative", f"Expected at most {most}, the job's last one, got {job.alternative}")
            for index, job in enumerate(planned)
            if job.id in entries and job.alternative > (most := len(entries[job.id].alternatives))
        ]
        faults += [
            Fault(f"jobs[{index}].segments", f"Expected nodes of the cluster, got {placement.node!r}")
            for index, job in enumerate(planned)
            for segment in job.segments
            for placement in segment.allocation
            if placement.node not in self.columns.node_number
        ]
        if faults:
            raise DocumentError("plan", faults)
        nodes: list[tuple[int, int, int, int]] = []
        running = [job for job in planned if entries[job.id].running is not None]
        waiting = [job for job in planned if entries[job.id].running is None]
        wanted: dict[int, list[_Wanted]] = {}
        clipped: set[int] = set()
        for one in sorted(running, key=lambda one: (-one.end, one.id)) + waiting:
            place, job = len(self.ids), entries[one.id].choices[one.alternative]
            self.ids.append(one.id)
            self.place_of[one.id] = place
            bookings: list[Booking] = []
            for segment in one.segments:
                start, end = max(0, segment.start - now), segment.end - now
                if end <= start:
                    continue
                amounts = self._amounts(job, segment)
                pieces, is_less = booked_remainder(self._timeline, start, end, amounts, {})
                if job.running is None and is_less and not self._is_stated_free(job, segment, start, end, pieces):
                    faults.append(Fault(f"job {one.id}", "Expected resources that are free beside the other jobs"))
                    continue
                bookings += pieces
                if job.running is not None:
                    wanted.setdefault(place, []).append((start, end, amounts))
                    clipped |= {place} if is_less else set()
                held = {self.columns.node_number[placement.node] for placement in segment.allocation}
                nodes.extend((place, number, start, end) for number in sorted(held))
            self._bookings.append(bookings)
        if faults:
            raise DocumentError("plan", faults)
        self.on_nodes = Uses.of(nodes)  # those of one job after the other
        #: The last answer of `near`, with its window.
        self._near = (0, FOREVER), self.on_nodes
        if clipped:
            uses = self.on_nodes
            beside = set(uses.job[np.isin(uses.used, uses.used[np.isin(uses.job, list(clipped))])].tolist())
            self._crowd = {place: pieces for place, pieces in wanted.items() if place in beside}

    def _is_stated_free(self, job: Job, segment: Segment, start: int, end: int, pieces: Sequence[Booking]) -> bool:
        """Return whether a waiting job, of which less was booked than it holds, can have at least all of it that
        documents state: engines keep some rules more strictly than they are. Where it cannot, nothing of it is booked.
        """
        for piece in pieces:
            self._timeline.release(piece)
        stated = self._amounts(job, segment, is_stated=True)
        if not self._timeline.is_free(self._timeline.booking(start, end, stated, {})):
            return False
        for piece in pieces:
            self._timeline.book(piece)
        return True

    def _amounts(self, job: Job, segment: Segment, *, is_stated: bool = False) -> dict[int, int]:
        """Return what a job holds of each column in a segment; with `is_stated`, of stated resources alone."""
        if is_stated:
            stated = (replace(held, resources=without_rules(held.resources)) for held in segment.allocation)
            return self.columns.amounts_of(stated)
        return self.columns.amounts_of(segment.allocation, whole=job.steps[0].request.place.exclusive)

    def take_away(self, jobs: Collection[int]) -> None:
        """Take away what some jobs hold, given by their places in `ids`; each is there."""
        self.version += 1
        self._away.update(jobs)
        self.is_away[list(jobs)] = True

    def put_back(self, jobs: Collection[int]) -> None:
        """Put back what some jobs hold, which were taken away."""
        self.version += 1
        self._away.difference_update(jobs)
        self.is_away[list(jobs)] = False

    @property
    def timeline(self) -> Timeline:
        """The nodes with what the jobs hold that are there, brought up to date when it is asked for."""
        known = self._known_here()
        if known.version != self.version:
            gone, back = self._away - known.away, known.away - self._away
            with self._crowd_apart(gone | back):
                for job in gone:
                    for booking in self._bookings[job]:
                        known.timeline.release(booking)
                for job in back:
                    for booking in self._bookings[job]:
                        known.timeline.book(booking)
            known.away, known.version = self.away, self.version
        return known.timeline

    def _known_here(self) -> _Known:
        """Return the timeline of this depth; the job in question alone makes no difference."""
        depth = 0 if self._crowd else max(0, self._depth - 1)
        while depth >= len(self._known):
            last = self._known[-1]
            copy = Timeline(self.columns.demands)
            copy.back_to(last.timeline.marked())
            self._known.append(_Known(timeline=copy, away=last.away, version=last.version))
        return self._known[depth]

    @contextmanager
    def _crowd_apart(self, jobs: Collection[int]) -> Iterator[None]:
        """Release the whole crowd for a block, if it has one of some jobs; then book each as far as others let it."""
        if self._crowd.keys().isdisjoint(jobs):
            yield
            return
        for job in self._crowd:
            for booking in self._bookings[job] if job not in self._known[0].away else ():
                self._timeline.release(booking)
            self._bookings[job] = []
        yield
        for job, pieces in self._crowd.items():
            for start, end, amounts in pieces if job not in self._away else ():
                self._bookings[job] += booked_remainder(self._timeline, start, end, amounts, {})[0]

    @property
    def away(self) -> frozenset[int]:
        """The jobs that are taken away."""
        return frozenset(self._away)

    @contextmanager
    def without(self, jobs: Collection[int]) -> Iterator[None]:
        """Take some jobs away for the time of a block; what else it takes away is put back too."""
        before = self.away
        self._depth += 1
        self.take_away([job for job in jobs if job not in before])
        try:
            yield
        finally:
            self.put_back(self.away - before)
            self._depth -= 1

    def near(self, start: int, end: int) -> Uses:
        """Return the uses of nodes that overlap ``[start, end)``; questions ask for those of one window many times."""
        (first, last), uses = self._near
        if (first, last) != (start, end):
            is_inside = first <= start and end <= last
            self._near = (start, end), (uses if is_inside else self.on_nodes).during(start, end)
        return self._near[1]

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes of the timeline, by their numbers, as documents state them."""
        return tuple(map(stated_node, self.columns.node_names))

    @cached_property
    def node_of(self) -> Ints:
        """The number of the node that each column of the timeline belongs to."""
        demands = self.columns.demands
        found: Ints = np.zeros(demands.num_columns, dtype=np.int64)
        node = 0
        for firsts, run in zip(demands.columns, demands.layout.runs, strict=True):
            for first in firsts:
                found[first : first + run.length] = np.arange(node, node + run.length)
            node += run.length
        return found

    def taken(self, job: int, start: int, end: int) -> Booking | None:
        """Return the amounts that a job takes in ``[start, end)``; None if it takes nothing, or changes meanwhile."""
        near = [one for one in self._bookings[job] if one.start < end and one.end > start]
        return near[0] if len(near) == 1 else None

    def counts(self, resource: str) -> NDArray[np.bool_]:
        """Return which columns of the timeline count a resource."""
        demands = self.columns.demands
        found: NDArray[np.bool_] = np.zeros(demands.num_columns, dtype=bool)
        for firsts, keys, run in zip(demands.columns, self.columns.run_columns, demands.layout.runs, strict=True):
            for first, (name, _) in zip(firsts, keys, strict=True):
                found[first : first + run.length] |= name == resource
        return found

    def nodes_of(self, job: int, start: int, end: int) -> set[int]:
        """Return the nodes that a job holds in ``[start, end)``."""
        uses = self.on_nodes
        rows = slice(*np.searchsorted(uses.job, [job, job + 1]).tolist())
        return set(uses.used[rows][(uses.start[rows] < end) & (uses.end[rows] > start)].tolist())
