"""The nodes of reservations: each gets its request at its time, beside running jobs and other reservations (OCCS-20,
42, MAUI-8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cpsched.booking import Ledger
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
from cpsched.problem import occurrences, refusal

__all__ = ["slices_of"]

_TAKEN = "its nodes or licences are not free of running jobs and other reservations then"


def slices_of(instance: Instance) -> tuple[ReservedSlice, ...]:
    """Return what reservations get at their times that have not ended, in document order, each with a reason if that
    is nothing: too few nodes are up and free of running jobs and of other reservations then.

    What a reservation has already, and downtimes of named nodes, come first; then those that begin first choose first.
    """
    times = [(number, one, occurrences(one, instance)) for number, one in enumerate(instance.reservations)]
    found: dict[int, list[ReservedSlice]] = {}
    places = _Places(replace(instance, jobs=tuple(job for job in instance.jobs if job.running is not None)))
    for number, reservation, own in times:
        own = own if reservation.is_closure else own[:1] if reservation.allocation else ()
        found[number] = list(places.kept(reservation, own))
    for number, reservation, own in sorted((one for one in times if one[2]), key=lambda one: one[2][0]):
        found[number] += places.free(reservation, own[len(found[number]) :])
    return tuple(slice_ for number in sorted(found) for slice_ in found[number])


@dataclass(slots=True)
class _Places:
    """Running jobs and the reservations that have got something; mutable."""

    window: Instance

    def kept(self, reservation: Reservation, times: Sequence[tuple[int, int]]) -> Iterator[ReservedSlice]:
        """Yield what a reservation has whatever else there is."""
        for start, end in times:
            allocation = reservation.allocation or self._whole(reservation.nodes or ())
            yield self._book(reservation, ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation))

    def free(self, reservation: Reservation, times: Sequence[tuple[int, int]]) -> Iterator[ReservedSlice]:
        """Yield what a reservation gets at its times, in order."""
        request, nodes = reservation.request, reservation.nodes or ()
        named = (self._named(reservation, nodes, start, end) for start, end in times)
        for slice_ in named if request is None else self._asked(reservation, request, times):
            yield slice_ if slice_.reason is not None else self._book(reservation, slice_)

    def _book(self, reservation: Reservation, slice_: ReservedSlice) -> ReservedSlice:
        """Leave to nobody else what a reservation has got."""
        allocation = slice_.allocation
        if reservation.is_exclusive:
            allocation = self._whole(dict.fromkeys(held.node for held in allocation))
        aside = SetAside(start=slice_.start, end=slice_.end, allocation=allocation, licenses=reservation.licenses)
        self.window = replace(self.window, set_aside=(*self.window.set_aside, aside))
        return slice_

    def _whole(self, nodes: Sequence[str] | dict[str, None]) -> tuple[Placement, ...]:
        """Return all that some nodes have."""
        classes = self.window.cluster.class_of
        return tuple(Placement(node=node, resources=classes[node].resources) for node in nodes)

    def _others(self, reservation: Reservation) -> tuple[Job, ...]:
        """Return the running jobs but those of a reservation, which run where it is."""
        return tuple(job for job in self.window.jobs if job.reservation != reservation.id)

    def _asked(
        self, reservation: Reservation, request: Request, times: Sequence[tuple[int, int]]
    ) -> Iterator[ReservedSlice]:
        """Yield the nodes that a reservation gets by its request.

        Guards are about jobs, and so is what nodes keep free; a downtime may have nodes that are not up.
        """
        is_downtime = reservation.kind is ReservationKind.DOWNTIME
        classes = tuple(
            replace(one, admits=(), keep_free=(), state=NodeState.UP if is_downtime else one.state)
            for one in self.window.cluster.classes
        )
        cluster = replace(self.window.cluster, classes=classes)
        window = replace(self.window, jobs=self._others(reservation), cluster=cluster)
        jobs = []
        for start, end in times:
            begin = max(window.now, start)
            step = Step(walltime=end - begin, request=request)
            jobs.append(Job(id=str(start), submit=begin, steps=(step,), licenses=reservation.licenses, start_at=begin))
        refused = [refusal(window, job) for job in jobs]
        ledger = Ledger(window, [job for job, reason in zip(jobs, refused, strict=True) if reason is None])
        for (start, end), job, reason in zip(times, jobs, refused, strict=True):
            allocation, words = tuple[Placement, ...](), _TAKEN if reason is None else reason[1]
            if reason is None:
                ledger.plan([job.id])
                planned = ledger.planned(job.id)
                allocation = () if planned is None else planned.segments[0].allocation
            got = None if allocation else words
            yield ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation, reason=got)

    def _named(self, reservation: Reservation, nodes: Sequence[str], start: int, end: int) -> ReservedSlice:
        """Return the named nodes of a reservation, if they are up and nothing else is there."""
        window, among = self.window, set(nodes)
        held = [
            (segment.start, segment.end, segment.allocation, job.licenses)
            for job in self._others(reservation)
            for segment in (job.running.segments if job.running is not None else ())
        ]
        held += [(aside.start, aside.end, aside.allocation, aside.licenses) for aside in window.set_aside]
        meant = [one for one in held if one[0] < end and one[1] > max(start, window.now)]
        reason = None
        down = [node for node in nodes if window.cluster.class_of[node].state is not NodeState.UP]
        if down:
            reason = f"{down[0]} is {window.cluster.class_of[down[0]].state}"
        elif any(placement.node in among for one in meant for placement in one[2]):
            reason = _TAKEN
        for name, amount in reservation.licenses.items():
            # the most at a time is reached when something begins
            levels = [
                sum(one[3].get(name, 0) for one in meant if one[0] <= begin < one[1])
                for begin in {max(start, window.now), *(one[0] for one in meant if one[0] > start)}
            ]
            if max(levels) + amount > window.cluster.licenses.get(name, 0):
                reason = _TAKEN
        allocation = self._whole(nodes) if reason is None else ()
        return ReservedSlice(id=reservation.id, start=start, end=end, allocation=allocation, reason=reason)
