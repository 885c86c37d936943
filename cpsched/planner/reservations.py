"""The nodes of reservations: each gets its request beside running jobs and the others (OCCS-20, 42, MAUI-8)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cpsched.booking import Ledger, Mark
from cpsched.domain import (
    Instance,
    Job,
    NodeState,
    Placement,
    Request,
    Reservation,
    ReservationKind,
    ReservedSlice,
    SetAside,
    Step,
)
from cpsched.engine import Outcome
from cpsched.problem import Intervals, Problem, Refusal, compiled, held_by, occurrences, refusal

#: So many reservations that get nothing are tried once more, before all others.
_MOST_TRIED = 8

_TAKEN = "its nodes or licences are not free of running jobs and other reservations then"


def slices_of(instance: Instance) -> tuple[ReservedSlice, ...]:
    """Choose the nodes of reservations at their times that have not ended, in document order; one that gets nothing has
    a reason: too few nodes are up and free of running jobs and of other reservations then (OCCS-42).

    What a reservation has already, and downtimes of named nodes, come first; then those that begin first choose first.
    Where one gets nothing beside others, it is also tried whether more are had if it chooses before them.
    """
    wanted = [_Wanted(one, occurrences(one, instance)) for one in instance.reservations]
    order = sorted((number for number, one in enumerate(wanted) if one.times), key=lambda k: wanted[k].times[0])
    places = _Places(instance, wanted)
    found = _slices_in_order(places, wanted, order)
    for number in [number for number in order if _is_in_others_way(found, number)][:_MOST_TRIED]:
        other = [number, *(one for one in order if one != number)]
        places.clear()
        slices = _slices_in_order(places, wanted, other)
        if _num_had(slices) > _num_had(found):
            found, order = slices, other
    return tuple(slice_ for slices in found for slice_ in slices)


def _slices_in_order(places: "_Places", wanted: "Sequence[_Wanted]", order: Sequence[int]) -> list[list[ReservedSlice]]:
    """Choose the nodes of each reservation, in an order of their numbers."""
    found: list[list[ReservedSlice]] = []
    for one in wanted:
        kept = one.times if one.reservation.is_closure else one.times[:1] if one.reservation.allocation else ()
        found.append(list(places.kept(one.reservation, kept)))
    for number in order:
        found[number] += places.free(wanted[number].reservation, wanted[number].times[len(found[number]) :])
    return found


def _is_in_others_way(found: Sequence[Sequence[ReservedSlice]], number: int) -> bool:
    """Return whether a reservation gets nothing at a time at which others have got something."""
    had = [one for other, slices in enumerate(found) if other != number for one in slices if one.reason is None]
    taken = (one for one in found[number] if one.reason == _TAKEN)
    return any(one.start < other.end and other.start < one.end for one in taken for other in had)


def _num_had(found: Sequence[Sequence[ReservedSlice]]) -> int:
    return sum(one.reason is None for slices in found for one in slices)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A reservation, and its times that have not ended."""

    reservation: Reservation
    times: Intervals


class _Places:
    """Running jobs and the reservations that have got something; mutable.

    Reservations that ask for nodes are booked on a ledger: one for all whose nodes nobody else's jobs run on.

    `instance`, `wanted`: the window, and its reservations.
    """

    def __init__(self, instance: Instance, wanted: Sequence[_Wanted]) -> None:
        self._window = replace(instance, jobs=tuple(job for job in instance.jobs if job.running is not None))
        #: What reservations have got so far, as nobody else can have it.
        self._got: list[SetAside] = []
        self._hosts = {job.reservation for job in self._window.jobs}
        self._has_others = any(not one.is_up for one in instance.cluster.classes)
        self._jobs: dict[tuple[str | None, bool], dict[tuple[str, int], Job]] = {}
        for one in wanted:
            reservation, request = one.reservation, one.reservation.request
            if request is not None:
                jobs = self._jobs.setdefault(self._key(reservation), {})
                for start, end in one.times:
                    jobs[reservation.id, start] = self._job(reservation, request, start, end)
        #: Each with the mark at which no reservation has got anything.
        self._ledgers: dict[tuple[str | None, bool], tuple[Ledger, Mark]] = {}
        self._refused: dict[str, Refusal | None] = {}

    def clear(self) -> None:
        """Take back what reservations have got."""
        self._got.clear()
        for ledger, mark in self._ledgers.values():
            ledger.back_to(mark)

    def _key(self, reservation: Reservation) -> tuple[str | None, bool]:
        """Return the key of a reservation's ledger: without its running jobs; a downtime may have any nodes."""
        is_downtime = reservation.kind is ReservationKind.DOWNTIME
        return reservation.id if reservation.id in self._hosts else None, is_downtime and self._has_others

    def _job(self, reservation: Reservation, request: Request, start: int, end: int) -> Job:
        begin = max(self._window.now, start)
        step = Step(walltime=end - begin, request=request)
        name = f"{reservation.id} {start}"
        return Job(id=name, submit=begin, steps=(step,), licenses=reservation.licenses, start_at=begin)

    def kept(self, reservation: Reservation, times: Sequence[tuple[int, int]]) -> Iterator[ReservedSlice]:
        """Yield what a reservation has whatever else there is."""
        for start, end in times:
            allocation = reservation.allocation or self._whole(reservation.nodes or ())
            yield self._book(reservation, ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation))

    def free(self, reservation: Reservation, times: Sequence[tuple[int, int]]) -> Iterator[ReservedSlice]:
        """Yield what a reservation gets at its times, in order."""
        for start, end in times:
            ledger = None
            if reservation.request is None:
                slice_ = self._named(reservation, reservation.nodes or (), start, end)
            else:
                ledger = self._ledger(reservation)
                slice_ = self._asked(reservation, start, end, ledger)
            yield slice_ if slice_.reason is not None else self._book(reservation, slice_, ledger)

    def _book(self, reservation: Reservation, slice_: ReservedSlice, booked: Ledger | None = None) -> ReservedSlice:
        """Leave to nobody else what a reservation has got; it may be booked on a ledger already."""
        allocation = slice_.allocation
        if reservation.is_exclusive:
            allocation = self._whole(dict.fromkeys(held.node for held in allocation))
        aside = SetAside(start=slice_.start, end=slice_.end, allocation=allocation, licenses=reservation.licenses)
        self._got.append(aside)
        for ledger, _ in self._ledgers.values():
            if ledger is not booked:
                ledger.set_aside([aside])
        return slice_

    def _whole(self, nodes: Sequence[str] | dict[str, None]) -> tuple[Placement, ...]:
        """Return all that some nodes have."""
        classes = self._window.cluster.class_of
        return tuple(Placement(node=node, resources=classes[node].resources) for node in nodes)

    def _others(self, reservation: Reservation) -> tuple[Job, ...]:
        """Return the running jobs but those of a reservation, which run where it is."""
        return tuple(job for job in self._window.jobs if job.reservation != reservation.id)

    def _held_beside(self, reservation: Reservation) -> Iterator[SetAside]:
        """Yield what running jobs that are not in a reservation have: an exclusive one all of its nodes."""
        for job in self._others(reservation):
            for held in held_by([job]):
                if job.steps[0].request.place.exclusive:
                    held = held._replace(allocation=self._whole(dict.fromkeys(one.node for one in held.allocation)))
                yield held

    def _ledger(self, reservation: Reservation) -> Ledger:
        """Return the ledger of a reservation, without guards; a downtime may have nodes that are not up."""
        key = self._key(reservation)
        if key not in self._ledgers:
            classes = tuple(
                replace(one, admits=(), keep_free=(), state=NodeState.UP if key[1] else one.state)
                for one in self._window.cluster.classes
            )
            cluster = replace(self._window.cluster, classes=classes)
            first = min(start for _, start in self._jobs[key])
            held = (one for one in self._held_beside(reservation) if one.end > first)
            window = replace(self._window, jobs=(), cluster=cluster, set_aside=(*self._window.set_aside, *held))
            jobs = [job for job in self._jobs[key].values() if self._refusal(window, job) is None]
            ledger = Ledger(window, jobs)
            self._ledgers[key] = ledger, ledger.marked()
            ledger.set_aside(self._got)
        return self._ledgers[key][0]

    def _refusal(self, window: Instance, job: Job) -> Refusal | None:
        """Return why one time of a reservation cannot be had on its empty ledger."""
        if job.id not in self._refused:
            self._refused[job.id] = refusal(window, job)
        return self._refused[job.id]

    def _asked(self, reservation: Reservation, start: int, end: int, ledger: Ledger) -> ReservedSlice:
        """Book what a reservation gets by its request, and return it."""
        job = self._jobs[self._key(reservation)][reservation.id, start]
        allocation, reason = tuple[Placement, ...](), self._refusal(ledger.instance, job)
        if reason is None:
            ledger.plan([job.id])
            planned = ledger.planned(job.id)
            if planned is not None:
                allocation = planned.segments[0].allocation
        got = None if allocation else _TAKEN if reason is None else reason[1]
        return ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation, reason=got)

    def _named(self, reservation: Reservation, nodes: Sequence[str], start: int, end: int) -> ReservedSlice:
        """Return the named nodes of a reservation, if they are up and nothing else is there."""
        window, among = self._window, set(nodes)
        held = (*held_by(self._others(reservation)), *window.set_aside, *self._got)
        meant = [one for one in held if one.start < end and one.end > max(start, window.now)]
        reason = None
        down = [node for node in nodes if not window.cluster.class_of[node].is_up]
        if down:
            reason = f"{down[0]} is {window.cluster.class_of[down[0]].state}"
        elif any(placement.node in among for one in meant for placement in one.allocation):
            reason = _TAKEN
        for name, amount in reservation.licenses.items():
            # the most at a time is reached when something begins
            levels = [
                sum(one.licenses.get(name, 0) for one in meant if one.start <= begin < one.end)
                for begin in {max(start, window.now), *(one.start for one in meant if one.start > start)}
            ]
            if max(levels) + amount > window.cluster.licenses.get(name, 0):
                reason = _TAKEN
        allocation = self._whole(nodes) if reason is None else ()
        return ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation, reason=reason)


def problem_of(instance: Instance, *, slices: Sequence[ReservedSlice] | None = None, soft: bool = True) -> Problem:
    """Return the problem of a window, with `soft` limits too, and its `slices` of reservations or chosen ones."""
    return compiled(instance, slices_of(instance) if slices is None else slices, soft=soft)


def stated_outcome(problem: Problem, outcome: Outcome) -> Outcome:
    """Return the outcome of an engine as one of the stated window, with the rules for which jobs wait as reasons."""
    waiting_room = problem.reasons(outcome.waiting_room)
    return replace(outcome, jobs=problem.to_stated(outcome.jobs), waiting_room=waiting_room)
