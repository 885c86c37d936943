"""Reservations: the plan has them as requested, and only jobs that may run in them do."""

from __future__ import annotations

from collections.abc import Iterator

from cpsched.verify.case import Case
from cpsched.verify.rules.allocation import check_slice
from cpsched.verify.violation import Violation

__all__ = ["check_guests", "check_slices"]


def check_slices(case: Case) -> Iterator[Violation]:
    """Every reservation that has not ended is in the plan with its times and all of its chunks."""
    for name, reservation in case.instance.reservations.items():
        slice_ = case.plan.slices.get(name)
        if slice_ is None:
            if reservation.end > case.instance.now:
                yield Violation("reservation", name, "expected its allocation in reservations, got none")
            continue
        if (slice_.start, slice_.end) != (reservation.start, reservation.end):
            message = f"expected {reservation.start} to {reservation.end}, got {slice_.start} to {slice_.end}"
            yield Violation("reservation", name, message)
        yield from check_slice(case, slice_)


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
        if booking.start < reservation.start or booking.end > reservation.end:
            message = (
                f"runs from {booking.start} to {booking.end}, expected inside {reservation.start} to "
                f"{reservation.end}, the time of {reservation.id}"
            )
            yield Violation("reservation", booking.id, message)
        if reservation.users and booking.job.user not in reservation.users:
            message = f"is of user {booking.job.user}, expected one of the users of {reservation.id}"
            yield Violation("reservation", booking.id, message)
