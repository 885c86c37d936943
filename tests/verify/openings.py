"""The oracle of what a plan leaves out: a start and nodes at which a job of the waiting room fits, with every rule,
beside all that the plan books.

An opening proves that an engine has missed it. It is found by the verifier's own reading of the documents, and by none
of the engines' code. The search is bounded: `EFFORT` looks at groups of like nodes for each plan, of which each job of
the waiting room has an even part, but the first ones at least `SHARE` looks. For one kind of chunks it misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor

from cpsched.verify import Violation, verify
from cpsched.verify.case import Case
from cpsched.verify.instance import read_instance
from cpsched.verify.layouts import EmptyCluster, Layout, lay_in_groups, lay_steps
from cpsched.verify.model import (
    Booking,
    Chunk,
    Job,
    Placement,
    Request,
    Segment,
    Slice,
    SliceKey,
    Step,
    Waiting,
)
from cpsched.verify.plan import PlanReader
from cpsched.verify.rules.limits import _check_pool, _check_subject, _subject, is_let_in
from cpsched.verify.rules.timing import released_at
from cpsched.verify.shares import rate_of
from cpsched.verify.space import Room
from cpsched.verify.validity import ALWAYS, Validity
from tests.verify.small_documents import Document
from tests.verify.space import Space

__all__ = ["Openings", "openings_of", "strictly_verified"]

#: The reasons that an opening beside the plan proves wrong.
REFUTED = ("unsatisfiable", "unavailable", "too_late", "not_mapped", "limit", "free_pool", "reservation")
#: Looks at what a group of like nodes has left during a time: in each plan, and for each job while there are any left.
EFFORT, SHARE = 100_000, 10_000
#: The number of levels of the whole cluster that are checked in the time of one search.
LEVELS_PER_LOOK = 16
#: The number of times at which a rule begins or ceases to hold that are looked at.
CHANGES = 200


def strictly_verified(document: Document, plan: Document) -> tuple[Violation, ...]:
    """Return what the verifier finds wrong with a plan, and then the jobs that could start beside all that it books."""
    instance = read_instance(document, "instance")
    reader = PlanReader(plan, "plan", instance)
    case = Case(instance, reader.read())
    waiting = [entry for entry in case.plan.waiting if not entry.job.running and entry.reason in REFUTED]
    openings, found = Openings(case, len(waiting)), list[Violation]()
    for entry in waiting:
        booking = openings.of(entry)
        if booking is not None:
            nodes = ", ".join(dict.fromkeys(one.node for segment in booking.segments for one in segment.allocation))
            message = f"it could start at {booking.start} on {nodes}, beside all that is planned"
            found.append(Violation("waiting_room", entry.id, f"it is said to be {entry.reason}, but {message}"))
    known = {one.subject for one in found}
    said = verify(document, plan)
    return (*(one for one in said if one.rule != "waiting_room" or one.subject not in known), *found)


def openings_of(document: Document, plan: Document) -> tuple[Document, ...]:
    """Return entries for the ``jobs`` of a plan, beside each other: starts and nodes for jobs of its waiting room."""
    instance = read_instance(document, "instance")
    case = Case(instance, PlanReader(plan, "plan", instance).read())
    waiting = [entry for entry in case.plan.waiting if not entry.job.running]
    openings, found = Openings(case, len(waiting)), list[Document]()
    for entry in sorted(waiting, key=lambda one: one.reason == "dependency"):
        booking = openings.of(entry) if entry.reason in (*REFUTED, "dependency") else None
        if booking is not None:
            openings.take(booking)
            found.append(_entry(booking))
    return tuple(found)


def _entry(booking: Booking) -> Document:
    """Return the entry of a job in a plan."""
    segments = [
        {
            "start": segment.start,
            "end": segment.end,
            "allocation": [
                {"node": one.node, "chunk": one.chunk, "count": one.count, "resources": dict(one.resources)}
                for one in segment.allocation
            ],
        }
        for segment in booking.segments
    ]
    return {"id": booking.id, "start": booking.start, "end": booking.end, "segments": segments}


class EffortSpentError(Exception):
    """The share of the effort that one job has is spent."""


class Openings:
    """Finds openings beside a plan; mutable: those that are taken count from then on.

    Parameters
    ----------
    case
        The plan, with its instance.
    num_jobs
        How many jobs will be asked for.
    """

    def __init__(self, case: Case, num_jobs: int) -> None:
        self._case = case
        self._spaces: dict[SliceKey | None, Space] = {}
        self._taken: list[Booking] = []
        self._effort, self._to_ask = EFFORT, max(1, num_jobs)
        self._left = 0
        self._up = [(node_class, names) for node_class, names in case.instance.classes if node_class.state == "up"]
        self._empty: dict[str | None, EmptyCluster] = {}
        #: By what jobs ask for: within which earliest and latest starts nothing was found, beside what was taken.
        self._in_vain: dict[object, list[tuple[int, int | None]]] = {}

    def of(self, waiting: Waiting) -> Booking | None:
        """Return a start and nodes for a job of the waiting room, the earliest start that is found, or None."""
        share = max(self._effort // self._to_ask, min(self._effort, SHARE))
        self._to_ask = max(1, self._to_ask - 1)
        self._left = share
        try:
            places = (None,) if waiting.job.reservation is None else self._case.slices_for(waiting.job)
            found = (self._find(waiting, within) for within in places)
            return next((booking for booking in found if booking is not None), None)
        except EffortSpentError:
            return None
        finally:
            self._effort -= share - max(0, self._left)

    def take(self, booking: Booking) -> None:
        """Book an opening: those that are found from now on fit beside it, too."""
        self._taken.append(booking)
        self._ends = sorted({*self._ends, *(segment.end for segment in booking.segments)})
        for space in self._spaces.values():
            space.add(booking)

    def _find(self, waiting: Waiting, within: Slice | None) -> Booking | None:
        """Return a start and nodes for a job, `within` what its reservation got at one of its times."""
        job = waiting.job
        window = self._window(job, within)
        if window is None:
            return None
        earliest, latest = window
        queue_nodes = None if job.queue is None else self._case.instance.queues[job.queue].nodes
        alike = _alike(job), queue_nodes, None if within is None else within.key
        for first, last in self._in_vain.get(alike, ()):
            if first <= earliest and (last is None or (latest is not None and latest <= last)):
                return None
        self._in_vain.setdefault(alike, []).append(window)
        if job.queue not in self._empty:
            self._empty[job.queue] = EmptyCluster(self._up, job.queue)
        empty = self._empty[job.queue]
        for course in _courses(job):
            if job.reservation is None and lay_steps(course, job.walltime, 0, empty.rooms) is None:
                continue
            if not self._may_ever_join(waiting, course):
                continue
            for start in self._starts(job, within, course, earliest, latest):
                # rules are looked at first: what they ask for is found faster than nodes
                booking = self._at(waiting, within, course, start) if self._may_start(waiting, course, start) else None
                if booking is not None and self._may_join(booking):
                    self._in_vain[alike].pop()
                    return booking
        return None

    def _window(self, job: Job, within: Slice | None) -> tuple[int, int | None] | None:
        """Return the earliest and the latest start that a job's own times leave, or None; a record only after all."""
        case = self._case
        released = released_at(case, job)
        if released is None or case.instance.is_beyond_queue(job):
            return None
        earliest = max(released, job.submit, *([] if job.not_before is None else [job.not_before]))
        latest = [] if (by := case.instance.must_start_by(job)) is None else [by]
        if within is not None:
            users = within.reservation.users
            if users and job.user not in users:
                return None
            earliest = max(earliest, within.start)
        if case.plan.is_record:
            earliest = max(earliest, _horizon(case))
        if job.deadline is not None:
            latest.append(job.deadline - job.walltime)
        if job.start_at is not None:
            if job.start_at < earliest:
                return None
            earliest = job.start_at
            latest.append(job.start_at)
        if latest and min(latest) < earliest:
            return None
        return earliest, min(latest, default=None)

    def _starts(
        self, job: Job, within: Slice | None, course: Sequence[Step], earliest: int, latest: int | None
    ) -> Iterator[int]:
        """Yield starts at which the cluster as a whole has enough: `earliest`, and those at which something ends."""
        length = sum(step.walltime for step in course)
        ends = [] if job.deadline is None else [job.deadline]
        if within is not None:
            ends.append(within.end)
        last = min([*([] if latest is None else [latest]), *(end - length for end in ends)], default=None)
        if last is not None and last < earliest:
            return
        space = self._space(within)
        begins = [sum(step.walltime for step in course[:index]) for index in range(len(course))]
        self._charge(1 + (len(space.total.times) + len(course) * len(self._ends)) // LEVELS_PER_LOOK)
        starts = {end - begin for begin in begins for end in self._ends}
        ordered = sorted({earliest, *(one for one in starts if earliest < one and (last is None or one <= last))})
        totals = [step.request.totals() for step in course]
        needs = {name: min(total.get(name, 0) for total in totals) for name in totals[0]}
        yield from space.total.with_enough(needs, length, ordered)

    @cached_property
    def _ends(self) -> list[int]:
        """When something ends that can be in a job's way, or a rule changes: if the job fits at all, it does so from
        one of these on, or from its earliest start (or one of its steps does).
        """
        case = self._case
        ends = {segment.end for booking in case.bookings for segment in booking.segments}
        ends |= {slice_.end for slice_ in case.plan.slices}
        times = {limit.validity for limit in case.instance.limits} | {pool.validity for pool in case.instance.pools}
        for validity in times:
            ends.update(_changes(validity, case.instance.now, CHANGES))
        return sorted(ends)

    def _at(self, waiting: Waiting, within: Slice | None, course: Sequence[Step], start: int) -> Booking | None:
        """Return a job with nodes if it starts at a second, or None if none are found."""
        space, job = self._space(within), waiting.job

        def find(
            group: frozenset[str] | None, request: Request, begin: int, end: int, among: Collection[str] | None
        ) -> list[Room]:
            if among is None and group is not None:
                among = [node for node in space.nodes if node in group]
            self._charge(len(space.groups) if among is None else len(among))
            rooms = space.rooms(request, begin, end, among)
            return [room for room in rooms if job.queue not in room.node_class.closed_to]

        end = start + sum(step.walltime for step in course)
        if not space.has_licenses(job.licenses, start, end):
            return None
        request = course[0].request
        groups = self._case.instance.groups(request.within)
        tried: Iterator[list[Layout] | None]
        if request.segment is not None or request.spread is not None:
            rooms = [find(group, request, start, end, None) for group in groups]
            tried = ([layout] for layout in [lay_in_groups(request, job.walltime, rooms)] if layout is not None)
        else:
            tried = (lay_steps(course, job.walltime, start, partial(find, group)) for group in groups)
        layouts = next((found for found in tried if found is not None), None)
        if layouts is None:
            return None
        segments: list[Segment] = []
        for step, layout in zip(course, layouts, strict=True):
            begin = segments[-1].end if segments else start
            segments.append(Segment(begin, begin + step.walltime, placements(layout, step.request)))
        return Booking(waiting.id, job, start, end, tuple(segments))

    @cached_property
    def _steady(self) -> Case:
        return _with_steady_rules(self._case)

    def _may_ever_join(self, waiting: Waiting, course: Sequence[Step]) -> bool:
        """Return whether the rules that always hold admit a job after everything else: else they never do."""
        return _may_join_others(
            self._steady, (*self._case.bookings, *self._taken), _nowhere(waiting, course, _horizon(self._case))
        )

    def _may_start(self, waiting: Waiting, course: Sequence[Step], start: int) -> bool:
        """Return whether limits and free pools admit a job at a second, on some nodes at least."""
        return self._may_join(_nowhere(waiting, course, start))

    def _may_join(self, booking: Booking) -> bool:
        """Return whether limits and free pools admit a job."""
        case = self._case
        if not case.instance.limits and not case.instance.pools:
            return True
        self._charge(1 + len(case.bookings) // LEVELS_PER_LOOK)
        return _may_join_others(case, (*case.bookings, *self._taken), booking)

    def _space(self, within: Slice | None) -> Space:
        key = None if within is None else within.key
        if key not in self._spaces:
            if within is not None:  # one for each of its times
                self._charge(len(self._case.instance.nodes))
            space = self._spaces[key] = Space(self._case, within)
            for booking in self._taken:
                space.add(booking)
        return self._spaces[key]

    def _charge(self, looks: int) -> None:
        """Count looks, and give up when all that one job has are spent."""
        if self._left <= 0:
            raise EffortSpentError
        self._left -= looks


def _nowhere(waiting: Waiting, course: Sequence[Step], start: int) -> Booking:
    """Return a job with all that it asks for, on no node."""
    segments: list[Segment] = []
    for step in course:
        begin = segments[-1].end if segments else start
        held = Placement("", None, None, step.request.totals())
        segments.append(Segment(begin, begin + step.walltime, (held,)))
    return Booking(waiting.id, waiting.job, start, segments[-1].end, tuple(segments))


def _alike(job: Job) -> object:
    """Return the key by which jobs share openings, the limits of their starts apart."""
    steps = tuple(
        (
            step.walltime,
            step.request.arrangement,
            step.request.exclusive,
            (step.request.within, step.request.segment, step.request.spread),
            tuple((one.count, tuple(one.resources.items()), tuple(one.where.items())) for one in step.request.chunks),
        )
        for step in job.steps
    )
    others = (job.user, job.group, job.is_array, job.reservation, tuple(job.licenses.items()))
    return steps, others, None if job.malleable is None else (id(job.malleable), job.deadline)


def _courses(job: Job) -> Iterator[tuple[Step, ...]]:
    """Yield the ways in which a job may run: each step for its walltime, a malleable one on one share to its end."""
    yield job.steps
    if job.malleable is None or job.is_evolving:
        return
    request = job.steps[0].request
    for share in job.malleable.shares:
        for cores_on in (ceil, floor):
            smaller = replace(request, chunks=tuple(_on_share(chunk, share, cores_on) for chunk in request.chunks))
            everywhere = tuple(chunk.count for chunk in request.chunks)
            rate = rate_of(placements({"": everywhere}, smaller), request, job.malleable)
            if isinstance(rate, Fraction) and rate < 1:
                yield (Step(ceil(job.walltime / rate), smaller),)


def _on_share(chunk: Chunk, share: Fraction, cores_on: Callable[[Fraction], int]) -> Chunk:
    """Return a chunk with a share of its cores, rounded in one of two ways, at least one."""
    cores = chunk.resources.get("cores", 0)
    return replace(chunk, resources={**chunk.resources, "cores": max(1, cores_on(share * cores))}) if cores else chunk


def _may_join_others(case: Case, bookings: Sequence[Booking], candidate: Booking) -> bool:
    """Return whether one more job may be planned beside others as far as limits and free pools go.

    The answer is no, too, where the others break one of its limits or pools by themselves.
    """
    for kind in ("user", "group") if case.instance.limits else ():
        subject = _subject(kind, candidate.job)
        if subject is not None:
            own = [booking for booking in bookings if _subject(kind, booking.job) == subject]
            if any(_check_subject(case, kind, subject, [*own, candidate])):
                return False
    pools = (pool for pool in case.instance.pools if not is_let_in(pool, candidate.job))
    return not any(any(_check_pool(case, pool, [*bookings, candidate])) for pool in pools)


def _with_steady_rules(case: Case) -> Case:
    """Return a case of whose limits and free pools only those are left that hold at all times, on whichever nodes."""
    instance = case.instance
    limits = tuple(one for one in instance.limits if one.validity == ALWAYS and one.resource != "*")
    pools = tuple(one for one in instance.pools if one.validity == ALWAYS and one.nodes is None)
    return replace(case, instance=replace(instance, limits=limits, pools=pools))


def _changes(validity: Validity, start: int, most: int) -> list[int]:
    """Return the first seconds from `start` on at which the rule begins or ceases to hold: at most so many, those
    of ten years.
    """
    found: list[int] = []
    far = start + 3660 * 86_400
    begin = validity.first(start, far)
    while begin is not None and len(found) < most:
        end = validity.run_end(begin, far)
        found += [begin, end]
        begin = validity.first(end, far) if end < far else None
    return found[:most]


def _horizon(case: Case) -> int:
    """Return the moment after which nothing is booked or reserved."""
    ends = [booking.end for booking in case.bookings]
    ends += [slice_.end for slice_ in case.plan.slices]
    ends += [one.time[1] for one in case.instance.reservations.values() if one.time is not None]
    ends += [outage.end for outage in case.instance.outages if case.plan.is_record]
    return max([case.instance.now, *ends])


def placements(layout: Layout, request: Request) -> tuple[Placement, ...]:
    """Return a layout as an allocation."""
    return tuple(
        Placement(node, kind, count, {name: count * amount for name, amount in chunk.resources.items()})
        for node, counts in layout.items()
        for kind, (count, chunk) in enumerate(zip(counts, request.chunks, strict=True))
        if count
    )
