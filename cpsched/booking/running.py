"""A ledger before any job is planned: running jobs, continuations of malleable ones, and what is set aside."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, pairwise
from math import floor

import numpy as np

from cpsched.booking.columns import Columns
from cpsched.domain import (
    FOR_EVER,
    Instance,
    Job,
    Mode,
    Placement,
    PlannedJob,
    Remaining,
    Segment,
    SetAside,
    repeated,
    resumable,
    resumed_plan,
)
from cpsched.rusv import FOREVER, Booking, Timeline


def amounts_aside(aside: SetAside, columns: Columns) -> tuple[dict[int, int], dict[int, int]]:
    """Return the amounts that are set aside, of node columns and of system columns."""
    return columns.amounts_of(aside.allocation), columns.licenses_of(aside.licenses)


def book_asides(timeline: Timeline, asides: Sequence[SetAside], columns: Columns, now: int) -> None:
    """Book all amounts that are set aside from `now` on, second 0 of the timeline; where less is free, what is.

    A site's rules set the same few amounts aside many hundred times; each is looked up once.
    """
    coming = [aside for aside in asides if aside.end > max(now, aside.start)]
    if not coming:
        return
    keys = [(id(aside.allocation), id(aside.licenses)) for aside in coming]
    distinct = dict(zip(keys, coming, strict=True))
    amounts = [amounts_aside(aside, columns) for aside in distinct.values()]
    number = {key: place for place, key in enumerate(distinct)}
    starts = np.array([aside.start for aside in coming]) - now
    ends = np.array([aside.end for aside in coming]) - now
    numbers = np.array([number[key] for key in keys])
    spans = np.column_stack([np.maximum(starts, 0), np.where(ends < FOR_EVER, ends, FOREVER), numbers])
    spans = spans[np.lexsort(spans.T[::-1])]
    for index in timeline.book_all(spans, amounts):
        start, end, which = spans[index].tolist()
        booked_remainder(timeline, start, end, *amounts[which])


def booked_remainder(
    timeline: Timeline, start: int, end: int, amounts: Mapping[int, int], sums: Mapping[int, int]
) -> tuple[list[Booking], bool]:
    """Book amounts in ``[start, end)``; where less is free, what is.

    `timeline`: the timeline, on which the bookings are made. `amounts`, `sums`: what is to be booked of node columns
    and of system columns. Returns the bookings, and whether less was free at some second.
    """
    whole = timeline.booking(
        start, end, *({at: some for at, some in one.items() if some > 0} for one in (amounts, sums))
    )
    if timeline.is_free(whole):
        timeline.book(whole)
        return [whole], False

    def is_short(first: int, last: int) -> bool:
        free, left = timeline.least_free(first, last)
        return any(free[column] < amount for column, amount in amounts.items()) or any(
            left[column] < amount for column, amount in sums.items()
        )

    breaks, has_less = [start, end], is_short(start, end)
    if has_less:
        breaks = sorted({*breaks, *(time for time in timeline.breakpoints().tolist() if start < time < end)})
    bookings = []
    for first, last in pairwise(breaks):
        free, left = timeline.least_free(first, last)
        mine = {column: some for column, amount in amounts.items() if (some := min(amount, int(free[column]))) > 0}
        loans = {column: some for column, amount in sums.items() if (some := min(amount, int(left[column]))) > 0}
        bookings.append(timeline.booking(first, last, mine, loans))
        timeline.book(bookings[-1])
    return bookings, has_less


def fastest_changes(
    timeline: Timeline, start: int, work: Fraction | int, modes: Sequence[Mode], bookings: Sequence[Booking | None]
) -> list[tuple[int, int]] | None:
    """Return the changes of mode (`stretches_of`) with which a job that starts at `start` ends earliest: in each second
    the fastest of its modes whose amounts are free then. None if in some second none of them is.

    `timeline`: without the job. `start`: second of the timeline, also of the changes. `work`, `modes`: the job's work,
    in seconds at full share, and its modes. `bookings`: what it holds in each of its modes, at any time; None for a
    mode in which it may not have these nodes.
    """
    allowed = {mode: booking for mode, booking in enumerate(bookings) if booking is not None}
    times, found = timeline.free_slots(start, list(allowed.values()))
    is_free = dict(zip(allowed, found, strict=True))
    by_speed = sorted(allowed, key=lambda mode: (-modes[mode].rate, mode))
    changes: list[tuple[int, int]] = []
    left = Fraction(work)
    for place, time in enumerate(times.tolist()):
        mode = next((mode for mode in by_speed if is_free[mode][place]), None)
        if mode is None:
            return None
        if not changes or changes[-1][1] != mode:
            changes.append((time, mode))
        if place + 1 < len(times):
            left -= modes[mode].rate * int(times[place + 1] - time)
        if left <= 0:
            break
    return changes


class RunningJobs:
    """The bookings of all running jobs on a timeline; mutable for jobs that can continue in several modes.

    Running work is a fact, even where it breaks a rule: at no time all of it together takes more of a column than is
    there, and an exclusive job leaves nothing of its nodes. What was promised them for later is theirs as well.

    `instance`, `columns`, `timeline`: the window, its columns, and an empty timeline for it. `awaited`: the jobs for
    whose end others wait: these continue unchanged.
    """

    def __init__(self, instance: Instance, columns: Columns, timeline: Timeline, awaited: frozenset[str]) -> None:
        self._now, self._columns, self._timeline = instance.now, columns, timeline
        self._jobs = {job.id: job for job in instance.jobs if job.running is not None}
        #: The continuations of jobs that a plan may change, by id.
        self.changeable: dict[str, Remaining] = {
            job.id: remaining
            for job in self._jobs.values()
            if job.id not in awaited and not job.steps[0].request.place.exclusive
            if (remaining := resumable(job, instance.now)) is not None
        }
        self._bookings: dict[str, list[Booking]] = {name: [] for name in self.changeable}
        #: Those of all other jobs, on the instance's clock.
        self._fixed: dict[str, list[Booking]] = {}
        #: Those that have been changed, as they are in the plan.
        self.changed: dict[str, PlannedJob] = {}
        short = self._hold()
        for name in self._short(short):
            del self.changeable[name], self._bookings[name]
        #: Whether all that running jobs hold is booked.
        self.is_whole = not short
        book_asides(timeline, instance.set_aside, columns, instance.now)

    def _hold(self) -> set[int]:
        """Book what running jobs hold until they end; return the columns that have not all of it."""
        now = self._now
        held = [
            (job, segment)
            for job in self._jobs.values()
            if job.running is not None
            for segment in job.running.segments
            if segment.end > now
        ]
        capacity, _ = self._timeline.free_at(0)
        taken: dict[int, int] = {}  # by those that hold something from now on, and for longer
        short: set[int] = set()
        for job, segment in sorted(held, key=lambda pair: (pair[1].start > now, -pair[1].end, pair[0].id)):
            amounts = self._held_by(job, segment)
            if segment.start > now:
                short |= self._hold_later(job, amounts, segment.start - now, segment.end - now)
                continue
            left = {
                column: min(amount, int(capacity[column]) - taken.get(column, 0)) for column, amount in amounts.items()
            }
            short |= {column for column, amount in amounts.items() if left[column] < amount}
            mine = {column: amount for column, amount in left.items() if amount > 0}
            for column, amount in mine.items():
                taken[column] = taken.get(column, 0) + amount
            self._book(job, self._timeline.booking(0, segment.end - now, mine, self._columns.licenses_of(job.licenses)))
        return short

    def _short(self, columns: set[int]) -> list[str]:
        """Return those that could be changed, but hold something of columns of which not all that is held is booked:
        what they give up there is not free. So it is with columns of nothing, which no node has.
        """

        def is_short(held: Placement) -> bool:
            node_class = self._columns.cluster.class_of[held.node]
            return any(
                column in columns for column, _, _ in self._columns.columns_on(held.node, held.resources, whole=False)
            ) or any(
                rule.beneficiary not in held.resources
                and 0 < node_class.resources.get(rule.resource, 0) <= rule.items
                and rule.resource in held.resources
                for rule in node_class.keep_free
            )

        return [name for name, remaining in self.changeable.items() if any(map(is_short, remaining.allocations[0]))]

    def _hold_later(self, job: Job, amounts: dict[int, int], start: int, end: int) -> set[int]:
        """Book what a running job will hold, or what is free of it; return the columns of which less is free."""
        breaks = [start, end]
        free, _ = self._timeline.least_free(start, end)
        short = {column for column, amount in amounts.items() if free[column] < amount}
        if short:
            breaks = sorted({*breaks, *(time for time in self._timeline.breakpoints().tolist() if start < time < end)})
        for first, last in pairwise(breaks):
            free, _ = self._timeline.least_free(first, last)
            left = {column: min(amount, int(free[column])) for column, amount in amounts.items()}
            mine = {column: amount for column, amount in left.items() if amount > 0}
            self._book(job, self._timeline.booking(first, last, mine, self._columns.licenses_of(job.licenses)))
        return short

    def _book(self, job: Job, booking: Booking) -> None:
        """Book what a running job holds; remember what may be given back."""
        self._timeline.book(booking)
        if job.id in self._bookings:
            self._bookings[job.id].append(booking)
        else:
            self._fixed.setdefault(job.id, []).append(
                replace(booking, start=booking.start + self._now, end=booking.end + self._now)
            )

    def _held_by(self, job: Job, segment: Segment) -> dict[int, int]:
        """Return the amounts of each column that a running job holds in one of its segments."""
        return self._columns.amounts_of(segment.allocation, whole=job.steps[0].request.place.exclusive)

    # --- jobs that start and end, while time passes ---------------------------------------------------------------

    def bookings_of(self, job: Job) -> list[Booking]:
        """Return the continuation of a running job that cannot change."""
        return [] if job.running is None else self._bookings_of(job, repeated(job))

    def hold(self, job: Job, bookings: Sequence[Booking]) -> None:
        """Book a job that runs by now, and cannot change; the caller guarantees that all of it is free."""
        self._jobs[job.id] = job
        for booking in bookings:
            self._book(job, booking)

    def let_go(self, job_id: str) -> list[Booking]:
        """Release what a running job holds that cannot change; return what of it was for later than now."""
        del self._jobs[job_id]
        coming = []
        for booking in self._fixed.pop(job_id, ()):
            if booking.end > self._now:
                start = max(booking.start, self._now)
                coming.append(replace(booking, start=start - self._now, end=booking.end - self._now))
                self._timeline.release(coming[-1])
        return coming

    def keep(self, job: Job) -> None:
        """Take a running job for another one of the same id, which holds the same."""
        self._jobs[job.id] = job

    def pass_time(self, now: int) -> None:
        """Advance the clock; no job that is still booked has ended by then."""
        self._now = now

    # --- other continuations ------------------------------------------------------------------------------------

    def change(self, planned: PlannedJob) -> bool:
        """Continue a changeable job as in a plan; return whether the resources are free."""
        job = self._jobs[planned.id]
        if planned.end > self.latest_end(planned.id):
            return False
        bookings = self._bookings_of(job, planned)
        self.lift(planned.id)
        is_free = all(map(self._timeline.is_free, bookings))
        if is_free:
            self._bookings[planned.id], self.changed[planned.id] = bookings, planned
            if planned == repeated(job):
                del self.changed[planned.id]
        self.put_back(planned.id)
        return is_free

    def _bookings_of(self, job: Job, planned: PlannedJob) -> list[Booking]:
        """Return the bookings of what a running job holds from now on in a plan."""
        return [
            self._timeline.booking(
                max(0, segment.start - self._now),
                segment.end - self._now,
                self._held_by(job, segment),
                self._columns.licenses_of(job.licenses),
            )
            for segment in planned.segments
            if segment.end > self._now
        ]

    def expand(self, job_id: str) -> bool:
        """Continue a changeable job, in each second on the fastest share that is free; tell whether that changes it."""
        remaining, before, in_modes = self.changeable[job_id], self.planned(job_id), self.amounts(job_id)
        self.lift(job_id)
        changes = fastest_changes(self._timeline, 0, remaining.work, remaining.modes, in_modes)
        self.put_back(job_id)
        if changes is None:
            return False
        planned = self.resumed_plan(job_id, [(self._now + time, mode) for time, mode in changes])
        return planned != before and self.change(planned)

    def latest_end(self, job_id: str) -> int:
        """Return when a job has to end: by its deadline, unless it ends later in the instance."""
        deadline = self._jobs[job_id].deadline
        return FOREVER if deadline is None else max(deadline, repeated(self._jobs[job_id]).end)

    def restore(self, plan: Sequence[PlannedJob]) -> bool:
        """Continue all jobs as in a plan, all at once; return whether that is allowed and free."""
        running = [planned for planned in plan if planned.id in self._jobs]
        if any(one.id not in self.changeable and one != repeated(self._jobs[one.id]) for one in running):
            return False
        plans = [planned for planned in running if planned.id in self.changeable]
        if all(self.planned(planned.id) == planned for planned in plans):
            return True
        old, changed = dict(self._bookings), dict(self.changed)
        for planned in plans:
            self.lift(planned.id)
            self._bookings[planned.id] = []
        if all(map(self.change, plans)):
            return True
        for booking in chain.from_iterable(self._bookings.values()):
            self._timeline.release(booking)
        for booking in chain.from_iterable(old.values()):
            self._timeline.book(booking)
        self._bookings, self.changed = old, changed
        return False

    # --- for chains of a search, which book on the timeline themselves ------------------------------------------

    def shares(self, job_id: str) -> list[tuple[int, int, int]] | None:
        """Return how a changeable job continues as (start, end, mode); None if it is in none of its modes."""
        in_modes = [set(allocation) for allocation in self.changeable[job_id].allocations]
        coming = [segment for segment in self.planned(job_id).segments if segment.end > self._now]
        if any(set(segment.allocation) not in in_modes for segment in coming):
            return None
        return [
            (max(0, one.start - self._now), one.end - self._now, in_modes.index(set(one.allocation))) for one in coming
        ]

    def amounts(self, job_id: str) -> list[Booking]:
        """Return what a changeable job takes in each of its modes; the times of the bookings do not matter."""
        job, modes = self._jobs[job_id], self.changeable[job_id].modes
        plans = [self.resumed_plan(job_id, [(self._now, mode)]) for mode in range(len(modes))]
        return [self._bookings_of(job, planned)[0] for planned in plans]

    def lift(self, job_id: str) -> None:
        """Release what a changeable job holds; its continuation stays recorded."""
        for booking in self._bookings[job_id]:
            self._timeline.release(booking)

    def put_back(self, job_id: str) -> None:
        """Book what a changeable job holds in the recorded continuation: the inverse of `lift`."""
        for booking in self._bookings[job_id]:
            self._timeline.book(booking)

    def planned(self, job_id: str) -> PlannedJob:
        """Return a running job as the plan has it."""
        return self.changed.get(job_id) or repeated(self._jobs[job_id])

    def plans(self) -> list[PlannedJob]:
        """Return all that may be changed as they are in the plan."""
        return [self.planned(name) for name in self.changeable]

    def resumed_plan(self, job_id: str, changes: Sequence[tuple[int, int]]) -> PlannedJob:
        """Return the resumed plan of a changeable job (`resumed_plan`)."""
        return resumed_plan(self._jobs[job_id], self.changeable[job_id], self._now, changes)

    def resumed(self, plan: Sequence[PlannedJob]) -> list[PlannedJob]:
        """Return the continuations of changeable jobs as in an earlier plan, with the work that is left by now."""
        found = []
        for planned in plan:
            coming = [segment for segment in planned.segments if segment.end > self._now]
            if planned.id not in self.changeable or not coming:
                continue
            held_in_modes = [set(allocation) for allocation in self.changeable[planned.id].allocations]
            held = [set(segment.allocation) for segment in coming]
            if all(one in held_in_modes for one in held):
                times = [self._now, *(segment.end for segment in coming[:-1])]
                changes = [(time, held_in_modes.index(one)) for time, one in zip(times, held, strict=True)]
                found.append(self.resumed_plan(planned.id, changes))
        return found

    def slowest(self, job_id: str, mode: int) -> PlannedJob | None:
        """Return the plan of a changeable job that stays in a mode for as long as possible: to its end, or until it
        needs all its cores to end in time. None if that is not possible.
        """
        slow = self.resumed_plan(job_id, [(self._now, mode)])
        latest = self.latest_end(job_id)
        if slow.end <= latest:
            return slow
        remaining = self.changeable[job_id]
        spare = latest - self._now - remaining.work
        until = self._now + floor(spare / (1 - remaining.modes[mode].rate))
        return self.resumed_plan(job_id, [(self._now, mode), (until, 0)]) if until > self._now else None

    def state(self) -> tuple[dict[str, list[Booking]], dict[str, PlannedJob]]:
        """Return the bookings of changeable jobs, for `set_state`."""
        return dict(self._bookings), dict(self.changed)

    def set_state(self, state: tuple[dict[str, list[Booking]], dict[str, PlannedJob]]) -> None:
        """Restore the record of bookings; the caller restores the timeline."""
        self._bookings, self.changed = dict(state[0]), dict(state[1])
