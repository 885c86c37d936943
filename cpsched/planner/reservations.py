"""The nodes of reservations: each gets its request at its time, beside running jobs and other reservations (OCCS-20,
42, MAUI-8).
"""

from __future__ import annotations

from dataclasses import replace

from cpsched.booking import Ledger
from cpsched.domain import (
    Instance,
    Job,
    NodeState,
    Placement,
    Reservation,
    ReservationKind,
    ReservedSlice,
    SetAside,
    Step,
)
from cpsched.problem import refusal

__all__ = ["slices_of"]


def slices_of(instance: Instance) -> tuple[ReservedSlice, ...]:
    """Return what the reservations of an instance get that have not ended, in document order.

    Those that begin first choose first. One that cannot be had is left out: too few nodes are up and free of running
    jobs and of other reservations then.
    """
    coming = [one for one in instance.reservations if one.end > instance.now]
    found: dict[str, ReservedSlice] = {}
    window = replace(instance, jobs=tuple(job for job in instance.jobs if job.running is not None))
    for reservation in sorted(coming, key=lambda one: one.start):
        # jobs inside it run where it is
        others = tuple(job for job in window.jobs if job.reservation != reservation.id)
        slice_ = _slice_of(replace(window, jobs=others), reservation)
        if slice_ is not None:
            found[slice_.id] = slice_
            window = replace(window, set_aside=(*window.set_aside, _set_aside(window, reservation, slice_)))
    return tuple(found[one.id] for one in coming if one.id in found)


def _slice_of(window: Instance, reservation: Reservation) -> ReservedSlice | None:
    """Return the nodes that a reservation gets; None if they are not free.

    Guards are about jobs, and so is what nodes keep free; a downtime may have nodes that are not up.
    """
    is_downtime = reservation.kind is ReservationKind.DOWNTIME
    classes = tuple(
        replace(one, admits=(), keep_free=(), state=NodeState.UP if is_downtime else one.state)
        for one in window.cluster.classes
    )
    window = replace(window, cluster=replace(window.cluster, classes=classes))
    start = max(window.now, reservation.start)
    step = Step(walltime=reservation.end - start, request=reservation.request)
    job = Job(id=reservation.id, submit=start, steps=(step,), licenses=reservation.licenses, start_at=start)
    if refusal(window, job) is not None:
        return None
    ledger = Ledger(window, [job])
    ledger.plan([job.id])
    planned = ledger.planned(job.id)
    if planned is None:
        return None
    (segment,) = planned.segments
    return ReservedSlice(id=reservation.id, start=reservation.start, end=reservation.end, allocation=segment.allocation)


def _set_aside(window: Instance, reservation: Reservation, slice_: ReservedSlice) -> SetAside:
    """Return what a reservation leaves to no other."""
    classes = window.cluster.class_of
    allocation = slice_.allocation
    if reservation.request.place.exclusive:
        nodes = dict.fromkeys(held.node for held in allocation)
        allocation = tuple(Placement(node=node, resources=classes[node].resources) for node in nodes)
    return SetAside(start=slice_.start, end=slice_.end, allocation=allocation, licenses=reservation.licenses)
