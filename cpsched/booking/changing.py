"""Jobs that change while they run, on a ledger: where they find place, and what they have booked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.columns import Columns
from cpsched.booking.layers import mapped
from cpsched.booking.shapes import Shape
from cpsched.booking.starts import earliest_starts, latest_starts
from cpsched.domain import PlannedJob, Segment
from cpsched.rusv import Timeline

__all__ = ["ChangingJobs", "Part"]

#: So many schedules with held steps are tried to be mapped before a job is planned without any.
MOST_HELD = 3


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a job holds from one change to the next: the entries of a demand, in ``[start, end)``."""

    demand: int
    entries: NDArray[np.int32]
    start: int
    end: int


class ChangingJobs:
    """Books jobs of several steps on a timeline, piece by piece; mutable.

    Times are the timeline's. Nothing is booked that is not free: what lives beside each other in a job is told apart
    before any of it is booked.
    """

    def __init__(self, columns: Columns, timeline: Timeline) -> None:
        self._columns, self._timeline = columns, timeline

    def find(self, shape: Shape, *, earliest: int, latest: int, end_by: int) -> list[Part] | None:
        """Return the place of a job that completes as early as is found, and then starts as late; None if none is.

        Parameters
        ----------
        shape
            The job.
        earliest, latest
            When it may start.
        end_by
            When it must have ended.
        """
        found = self._without_holds(shape, earliest=earliest, latest=latest, end_by=end_by)
        if shape.longest == shape.durations:
            return found
        sooner = end_by if found is None else found[-1].end - 1
        return self._with_holds(shape, earliest=earliest, latest=latest, end_by=sooner) or found

    def _without_holds(self, shape: Shape, *, earliest: int, latest: int, end_by: int) -> list[Part] | None:
        """Return the earliest place in which each step follows the one before at once."""
        is_known_to_map = False
        while True:
            starts = earliest_starts(
                self._timeline, shape, earliest=earliest, latest=latest, end_by=end_by, is_held=False
            )
            if starts is None:
                return None
            parts = self._mapped(shape, starts)
            if parts is not None:
                return parts
            if not is_known_to_map and self._mapped(shape, self._when_all_is_over(shape)) is None:
                return None
            is_known_to_map = True
            later = self._next_change(starts)
            if later is None:
                return None
            earliest = starts[0] + later

    def _with_holds(self, shape: Shape, *, earliest: int, latest: int, end_by: int) -> list[Part] | None:
        """Return a place in which steps are held so that the last one ends as early as it may, if one is found soon."""
        for _ in range(MOST_HELD):
            starts = earliest_starts(
                self._timeline, shape, earliest=earliest, latest=latest, end_by=end_by, is_held=True
            )
            if starts is None:
                return None
            last = latest_starts(self._timeline, shape, starts, latest=latest)
            parts = self._mapped(shape, last) or (None if last == starts else self._mapped(shape, starts))
            if parts is not None:
                return parts
            later = self._next_change(starts)
            if later is None:
                return None
            earliest = starts[0] + later
        return None

    def _mapped(self, shape: Shape, starts: Sequence[int]) -> list[Part] | None:
        """Return where a job stands whose steps begin then."""
        ends = [*starts[1:], starts[-1] + shape.durations[-1]]
        entries = mapped(self._timeline, self._columns, shape, list(zip(starts, ends, strict=True)))
        if entries is None:
            return None
        return [Part(*part) for part in zip(shape.demands, entries, starts, ends, strict=True)]

    def _when_all_is_over(self, shape: Shape) -> list[int]:
        """Return starts of all steps at which nothing that is booked goes on."""
        start = int(self._timeline.breakpoints()[-1])
        return [start + sum(shape.durations[:step]) for step in range(len(shape.durations))]

    def _next_change(self, starts: Sequence[int]) -> int | None:
        """Return by how much steps must be shifted before one of them is rid of something booked; None if nothing is.

        Windows that only reach further have less.
        """
        breaks = self._timeline.breakpoints()
        places = np.searchsorted(breaks, starts, side="right")
        coming = [
            int(breaks[place]) - start for place, start in zip(places, starts, strict=True) if place < len(breaks)
        ]
        return min(coming, default=None)

    # --- what is booked -----------------------------------------------------------------------------------------

    def book(self, parts: Sequence[Part]) -> None:
        """Book what a job holds."""
        for part in parts:
            self._timeline.book(self._timeline.booking_of(part.demand, part.entries, part.start, part.end))

    def release(self, parts: Sequence[Part]) -> None:
        """Give back what a job holds: the exact inverse of `book`."""
        for part in parts:
            self._timeline.release(self._timeline.booking_of(part.demand, part.entries, part.start, part.end))

    def segments(self, shape: Shape, parts: Sequence[Part], now: int) -> tuple[Segment, ...]:
        """Return what a job holds as a plan has it, whose clock says `now` where the timeline's says 0."""
        return tuple(
            Segment(
                start=now + part.start,
                end=now + part.end,
                allocation=self._columns.allocation_of(request, part.entries),
            )
            for request, part in zip(shape.requests, parts, strict=True)
        )

    def restored(self, shape: Shape, planned: PlannedJob, now: int) -> list[Part] | None:
        """Return where a job stands in another plan, if it may stand there still and all of it is free; else None."""
        if len(planned.segments) != len(shape.requests):
            return None
        parts = []
        for step, segment in enumerate(planned.segments):
            if not shape.durations[step] <= segment.end - segment.start <= shape.longest[step]:
                return None
            entries = self._columns.entries_of(shape.demands[step], shape.requests[step], segment.allocation)
            if entries is None:
                return None
            parts.append(Part(shape.demands[step], entries, segment.start - now, segment.end - now))
        if any(_migrates(before, after) for before, after in zip(planned.segments, planned.segments[1:], strict=False)):
            return None
        bookings = [self._timeline.booking_of(part.demand, part.entries, part.start, part.end) for part in parts]
        return parts if all(map(self._timeline.is_free, bookings)) else None


def _migrates(before: Segment, after: Segment) -> bool:
    """Tell whether chunks of one kind come to some nodes while others leave some, which no layers do."""
    had, has = (
        {(part.node, part.chunk): part.count or 0 for part in segment.allocation} for segment in (before, after)
    )
    changes = [(kind, has.get((node, kind), 0) - had.get((node, kind), 0)) for node, kind in {*had, *has}]
    return any({one > 0 for kind, one in changes if kind == of_kind and one} == {True, False} for of_kind, _ in changes)
