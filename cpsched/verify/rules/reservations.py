"""Reservations: the plan has them as requested, and only jobs that may run in them do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cpsched.verify.case import Case
from cpsched.verify.layouts import lay
from cpsched.verify.model import Reservation
from cpsched.verify.rules.allocation import check_slice
from cpsched.verify.space import Space
from cpsched.verify.violation import Violation

__all__ = ["check_guests", "check_slices"]


#: The most nodes that a message names.
NAMED = 5


def check_slices(case: Case) -> Iterator[Violation]:
    """Every reservation that has not ended is in the plan with its times and all of its chunks.

    One may be left out for which no nodes are found beside running jobs and the plan's other reservations.
    """
    for name, reservation in case.instance.reservations.items():
        slice_ = case.plan.slices.get(name)
        if slice_ is None:
            if reservation.end > case.instance.now and (nodes := _nodes_for(case, reservation)):
                named = ", ".join(nodes[:NAMED]) + (f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else "")
                message = f"expected its allocation in reservations, got none, but it could have {named}"
                yield Violation("reservation", name, message)
            continue
        if (slice_.start, slice_.end) != (reservation.start, reservation.end):
            message = f"expected {reservation.start} to {reservation.end}, got {slice_.start} to {slice_.end}"
            yield Violation("reservation", name, message)
        yield from check_slice(case, slice_)


def _nodes_for(case: Case, reservation: Reservation) -> list[str]:
    """Return nodes for a reservation that the plan leaves out, beside running jobs and other reservations, if found.

    Jobs that run inside it already are where it would be.
    """
    instance = case.instance
    bare = {
        id(one): replace(one, admits=(), keep_free=(), state="up" if reservation.is_downtime else one.state)
        for one, _ in instance.classes
    }
    nodes = {name: bare[id(one)] for name, one in instance.nodes.items()}
    jobs = {name: job for name, job in instance.jobs.items() if job.reservation != reservation.id}
    fixed = tuple(entry for entry in case.plan.entries if entry.is_running and entry.id in jobs)
    alone = Case(replace(instance, nodes=nodes, jobs=jobs), replace(case.plan, entries=fixed, attempts=()))
    space = Space(alone, None)
    start, end, request = max(instance.now, reservation.start), reservation.end, reservation.request
    if not space.has_licenses(reservation.licenses, start, end):
        return []
    return list(lay(request, end - start, space.rooms(request, start, end, None)) or ())


def check_guests(case: Case) -> Iterator[Violation]:
    """Check that a job that names a reservation runs inside its time, and is of one of its users.

    A running one is not changed so that it ends after its reservation.
    """
    for booking in case.changed:
        if booking.job.reservation is not None:
            latest = max(case.instance.reservations[booking.job.reservation].end, case.facts[booking.id].end)
            if booking.end > latest:
                message = f"ends at {booking.end}, expected {latest} or earlier, for its reservation"
                yield Violation("reservation", booking.id, message)
    for booking in case.runs:
        if booking.job.reservation is None:
            continue
        reservation = case.instance.reservations[booking.job.reservation]
        if booking.job.reservation not in case.plan.slices:
            yield Violation("reservation", booking.id, f"its reservation {reservation.id} has no nodes in this plan")
        if booking.start < reservation.start or booking.end > reservation.end:
            message = (
                f"runs from {booking.start} to {booking.end}, expected inside {reservation.start} to "
                f"{reservation.end}, the time of {reservation.id}"
            )
            yield Violation("reservation", booking.id, message)
        if reservation.users and booking.job.user not in reservation.users:
            message = f"is of user {booking.job.user}, expected one of the users of {reservation.id}"
            yield Violation("reservation", booking.id, message)
