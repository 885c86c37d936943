"""Reservations: the plan has them as requested, and only jobs that may run in them do."""

from collections.abc import Iterator
from dataclasses import replace

from cpsched.verify.case import Case, Violation, named
from cpsched.verify.layouts import lay
from cpsched.verify.model import Reservation, Slice
from cpsched.verify.rules.allocation import check_slice
from cpsched.verify.space import Space


def check_slices(case: Case) -> Iterator[Violation]:
    """Every reservation is in the plan at each of its times that has not ended: with all that it asked for, with what
    it had already, or with the reason why it could not be had.
    """
    stated = {slice_.key: slice_ for slice_ in (*case.plan.slices, *case.plan.refused)}
    for name, times in case.instance.reserved_times.items():
        for start, end in times:
            if (name, start) not in stated:
                message = f"expected its allocation or a reason in reservations from {start} to {end}, got none"
                yield Violation("reservation", name, message)
    for (name, start), slice_ in stated.items():
        times = case.instance.reserved_times[name]
        if (start, slice_.end) not in times and (start, slice_.end) != slice_.reservation.time:
            expected = ", ".join(f"{begin} to {end}" for begin, end in times[:2]) or "none, since it has ended"
            message = f"expected {expected}{', …' if len(times) > 2 else ''}, got {start} to {slice_.end}"
            yield Violation("reservation", name, message)
    for slice_ in case.plan.slices:
        kept = slice_.reservation.allocation
        times = case.instance.reserved_times[slice_.reservation.id]
        if not kept or (slice_.start, slice_.end) not in times[:1]:
            yield from check_slice(case, slice_)
        elif not slice_.is_fact:
            yield Violation("reservation", slice_.reservation.id, "expected the allocation that it has already")


def check_refused(case: Case) -> Iterator[Violation]:
    """No reservation is said not to be had for which nodes are found beside running jobs and other reservations."""
    cases: dict[str, Case] = {}
    for slice_ in case.plan.refused:
        name = slice_.reservation.id
        if name not in cases:
            cases[name] = _without_jobs(case, slice_.reservation)
        denial = _denial(case, cases[name], slice_)
        if denial is not None:
            message = f"from {slice_.start} to {slice_.end} it is said not to be had, but {denial}"
            yield Violation("reservation", name, message)


def _without_jobs(case: Case, reservation: Reservation) -> Case:
    """Return the case of running jobs, as the instance states them, and of reservations alone, for a reservation.

    Jobs that run inside it already are where it would be. Guards are about jobs, and so is what nodes keep free.
    """
    instance = case.instance
    bare = {
        id(one): replace(one, admits=(), keep_free=(), state="up" if reservation.is_downtime else one.state)
        for one, _ in instance.classes
    }
    nodes = {name: bare[id(one)] for name, one in instance.nodes.items()}
    jobs = {name: job for name, job in instance.jobs.items() if job.reservation != reservation.id}
    alone = replace(case.plan, entries=(), attempts=())
    return Case(replace(instance, nodes=nodes, jobs=jobs), alone)


def _denial(case: Case, alone: Case, slice_: Slice) -> str | None:
    """Return why a reservation could be had, or None if that is not found out."""
    reservation, start, end = slice_.reservation, max(slice_.start, case.instance.now), slice_.end
    if reservation.is_closure:
        return "a downtime of nodes is had whatever runs there"
    if reservation.allocation and (slice_.start, end) in case.instance.reserved_times[reservation.id][:1]:
        return "it has its allocation already"
    space = Space(alone, start, end)
    if case.plan.is_record or start >= end or not space.has_licenses(reservation.licenses):
        return None  # in a record running jobs may have ended sooner than was known when it was decided
    if reservation.request is None:
        is_free = all(space.is_empty(node) for node in reservation.nodes)
        return "its nodes are up, and nothing is on them" if is_free else None
    layout = lay(reservation.request, end - start, space.rooms(reservation.request))
    if layout is None:
        return None
    return f"it could have {named(layout)}, beside what runs and is reserved"


def check_guests(case: Case) -> Iterator[Violation]:
    """Check that a job that names a reservation is in its time, then and after a change, and of one of its users."""
    for booking in case.changed:
        name = booking.job.reservation
        if name is not None:
            now = case.instance.now
            ends = [end for start, end in case.instance.reserved_times[name] if start <= now]
            latest = max([now, *ends, case.facts[booking.id].end])
            if booking.end > latest:
                message = f"ends at {booking.end}, expected {latest} or earlier, for its reservation"
                yield Violation("reservation", booking.id, message)
    for booking in case.runs:
        if booking.job.reservation is None:
            continue
        reservation = case.instance.reservations[booking.job.reservation]
        times = [(slice_.start, slice_.end) for slice_ in case.slices_for(booking.job)]
        if not any(start <= booking.start and booking.end <= end for start, end in times):
            listed = ", ".join(f"{start} to {end}" for start, end in times[:5]) or "not at all"
            message = (
                f"runs from {booking.start} to {booking.end}, expected inside the time of {reservation.id} ({listed})"
            )
            yield Violation("reservation", booking.id, message)
        if reservation.users and booking.job.user not in reservation.users:
            message = f"is of user {booking.job.user}, expected one of the users of {reservation.id}"
            yield Violation("reservation", booking.id, message)
