"""The case before the judge: instance and plan side by side, and the views of them that several rules need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cpsched.verify.model import Booking, Instance, Plan, Request, Segment, Slice
from cpsched.verify.shares import faults_of_change, held_by
from cpsched.verify.sweep import Use

__all__ = ["Case", "Holder", "requests_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """Who holds something on a node: a job or a reservation."""

    who: Booking | Slice
    exclusive: bool

    @property
    def is_fact(self) -> bool:
        """Whether this is running work, and no choice of the plan."""
        return isinstance(self.who, Booking) and self.who.is_fact

    def __str__(self) -> str:
        return f"job {self.who.id}" if isinstance(self.who, Booking) else f"reservation {self.who.reservation.id}"


HolderUse = Use[Holder]


@dataclass(frozen=True)
class Case:
    """What the rules judge.

    Running jobs count as the instance states them, whatever the plan says: what runs is a fact. Only where the plan
    changes the share of a malleable one as it may, the job counts as changed.
    """

    instance: Instance
    plan: Plan

    @cached_property
    def facts(self) -> Mapping[str, Booking]:
        """The running jobs by their ids, as the instance states them."""
        return {
            name: Booking(name, job, job.running[0].start, job.running[-1].end, job.running)
            for name, job in self.instance.jobs.items()
            if job.running
        }

    @cached_property
    def changes(self) -> Mapping[str, tuple[Booking, tuple[str, ...]]]:
        """The running jobs that the plan changes, by their ids: what it says, and what is wrong with that."""
        return {
            entry.id: (entry, tuple(faults_of_change(entry.job, fact, entry, self.instance.now)))
            for entry in self.plan.entries
            if entry.is_running and not _says_the_same(entry, fact := self.facts[entry.id])
        }

    @cached_property
    def changed(self) -> tuple[Booking, ...]:
        """The running jobs that the plan changes as it may."""
        return tuple(entry for entry, faults in self.changes.values() if not faults)

    @cached_property
    def running(self) -> tuple[Booking, ...]:
        """The running jobs, as the instance states them or as the plan rightly changes them."""
        changed = {entry.id: entry for entry in self.changed}
        return tuple(changed.get(name, fact) for name, fact in self.facts.items())

    @cached_property
    def planned(self) -> tuple[Booking, ...]:
        """The jobs to which the plan gives a start, each once."""
        first = {entry.id: entry for entry in reversed(self.plan.entries) if not entry.is_running}
        return tuple(entry for entry in self.plan.entries if first.get(entry.id) is entry)

    @cached_property
    def bookings(self) -> tuple[Booking, ...]:
        """Everything that takes resources: running and planned jobs, those that are changed in pieces of time."""
        pieces: list[Booking] = []
        for booking in self.running:
            fact = self.facts[booking.id]
            pieces += [fact] if booking is fact else _pieces(booking, fact)
        return (*pieces, *self.planned)

    @cached_property
    def by_id(self) -> Mapping[str, Booking]:
        """All bookings by the id of their job."""
        return {booking.id: booking for booking in (*self.running, *self.planned)}

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


def _says_the_same(entry: Booking, fact: Booking) -> bool:
    """Tell whether a plan states a running job as the instance does."""
    times = (entry.start, entry.end) == (fact.start, fact.end)
    return times and [(segment.start, segment.end, held_by(segment)) for segment in entry.segments] == [
        (segment.start, segment.end, held_by(segment)) for segment in fact.segments
    ]


def _pieces(changed: Booking, fact: Booking) -> Iterator[Booking]:
    """Cut a changed job where the instance would change it, and tell apart when it takes more than there."""
    for segment in changed.segments:
        time = segment.start
        for stated in (*fact.segments, Segment(fact.end, max(fact.end, changed.end) + 1, ())):
            end = min(segment.end, stated.end)
            if end > time:
                before = held_by(stated)
                is_more = any(amount > before.get(place, 0) for place, amount in held_by(segment).items())
                piece = segment._replace(start=time, end=end)
                yield Booking(changed.id, changed.job, time, end, (piece,), is_more)
                time = end


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
