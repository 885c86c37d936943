"""The case before the judge: instance and plan side by side, and the views of them that several rules need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cpsched.verify.model import Booking, Instance, Plan, Request, Segment, Slice
from cpsched.verify.sweep import Use

__all__ = ["Case", "Holder", "requests_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """Who holds something on a node: a job or a reservation."""

    who: Booking | Slice
    exclusive: bool

    @property
    def is_running(self) -> bool:
        """Whether this is running work: a fact, not a choice of the plan."""
        return isinstance(self.who, Booking) and self.who.is_running

    def __str__(self) -> str:
        return f"job {self.who.id}" if isinstance(self.who, Booking) else f"reservation {self.who.reservation.id}"


HolderUse = Use[Holder]


@dataclass(frozen=True)
class Case:
    """What the rules judge.

    Running jobs count as the instance states them, whatever the plan says: what runs is a fact.
    """

    instance: Instance
    plan: Plan

    @cached_property
    def running(self) -> tuple[Booking, ...]:
        """The running jobs, as the instance states them."""
        return tuple(
            Booking(name, job, job.running[0].start, job.running[-1].end, job.running)
            for name, job in self.instance.jobs.items()
            if job.running
        )

    @cached_property
    def planned(self) -> tuple[Booking, ...]:
        """The jobs to which the plan gives a start, each once."""
        first = {entry.id: entry for entry in reversed(self.plan.entries) if not entry.is_running}
        return tuple(entry for entry in self.plan.entries if first.get(entry.id) is entry)

    @cached_property
    def bookings(self) -> tuple[Booking, ...]:
        """Everything that takes resources: running and planned jobs."""
        return self.running + self.planned

    @cached_property
    def by_id(self) -> Mapping[str, Booking]:
        """All bookings by the id of their job."""
        return {booking.id: booking for booking in self.bookings}

    @cached_property
    def horizon(self) -> int:
        """The moment after which nothing is booked or reserved."""
        ends = [booking.end for booking in self.bookings]
        ends += [reservation.end for reservation in self.instance.reservations.values()]
        return max([self.instance.now, *ends])

    def slice_of(self, booking: Booking) -> Slice | None:
        """Return what the job's reservation got, or None where it names none or that got nothing."""
        return None if booking.job.reservation is None else self.plan.slices.get(booking.job.reservation)

    @cached_property
    def job_uses(self) -> Mapping[str, list[HolderUse]]:
        """What jobs take on each node."""
        uses: dict[str, list[HolderUse]] = {}
        for booking in self.bookings:
            holder = Holder(booking, booking.job.is_exclusive)
            for segment in booking.segments:
                for placement in segment.allocation:
                    uses.setdefault(placement.node, []).append(
                        Use(segment.start, segment.end, placement.resources, holder)
                    )
        return uses

    @cached_property
    def slice_uses(self) -> Mapping[str, list[HolderUse]]:
        """What reservations take on each node."""
        uses: dict[str, list[HolderUse]] = {}
        for slice_ in self.plan.slices.values():
            holder = Holder(slice_, slice_.reservation.request.exclusive)
            for placement in slice_.allocation:
                uses.setdefault(placement.node, []).append(Use(slice_.start, slice_.end, placement.resources, holder))
        return uses


def requests_of(booking: Booking) -> Iterator[tuple[Segment, Request]]:
    """Yield each segment of a planned job with the request that it answers.

    An evolving job whose segments are not one per step yields nothing: the rule ``evolving`` speaks of that.
    """
    steps = booking.job.steps
    if not booking.job.is_evolving:
        for segment in booking.segments:
            yield segment, steps[0].request
    elif len(steps) == len(booking.segments):
        for segment, step in zip(booking.segments, steps, strict=True):
            yield segment, step.request
