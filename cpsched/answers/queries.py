"""A job as a timeline is asked for it: one block of time in one of its modes, or a row of steps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.answers.counters import Gate
from cpsched.booking import ChangingJobs, Columns, CompiledMode, Shape, compiled_modes
from cpsched.domain import Instance, Job, Request, Segment
from cpsched.rusv import FOREVER, Booking, Fit, Timeline

#: No rules.
OPEN = Gate()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreePlace:
    """A place for a job on a timeline, on whose clock `now` is second 0; nothing is booked."""

    #: What the job would book, in order of time, with the request and the entries of its demand for each.
    bookings: tuple[Booking, ...]
    held: tuple[tuple[Request, NDArray[np.int32]], ...]
    #: Which of the job's modes it is in.
    mode: int = 0

    @property
    def start(self) -> int:
        """The second at which the job starts."""
        return self.bookings[0].start

    @property
    def end(self) -> int:
        """The second at which the job ends."""
        return self.bookings[-1].end

    @property
    def nodes(self) -> set[int]:
        """The numbers of the nodes that the job would hold."""
        return {node for _, entries in self.held for node in entries[:, 0].tolist()}

    def last_start(self, timeline: Timeline, most: int, gate: Gate) -> int:
        """Return the last start, at most `most`, up to which the job can have the same nodes at any second.

        `timeline`: the one on which the place was found, with the same bookings. `most`: the place's own start, or
        later. `gate`: the rules that allow the place.
        """
        gate = gate.of_mode(self.mode)
        most = min(most, gate.last(self.start, self.end - self.start)) if gate.counters else most
        for booking in self.bookings:
            most = self.start + timeline.free_until(booking, booking.end + most - self.start) - booking.end
        return most

    def segments(self, columns: Columns, now: int) -> tuple[Segment, ...]:
        """Return the place as a plan has it, on the instance's clock."""
        return tuple(
            Segment(
                start=now + booking.start, end=now + booking.end, allocation=columns.allocation_of(request, entries)
            )
            for booking, (request, entries) in zip(self.bookings, self.held, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """A job with one allocation from its start to its end, in any of its modes."""

    modes: tuple[CompiledMode, ...]

    @property
    def duration(self) -> int:
        """The seconds that the job takes in its first mode, on all its cores."""
        return self.modes[0].duration

    @property
    def asked(self) -> tuple[tuple[int, Request], ...]:
        """The demand and the request of its first mode."""
        return ((self.modes[0].demand, self.modes[0].request),)

    def for_a_second(self) -> "Block":
        """Return the same for one second: what the job needs when it starts."""
        return Block(modes=tuple(mode._replace(duration=1, latest=FOREVER) for mode in self.modes))

    def find(self, timeline: Timeline, earliest: int, latest: int = FOREVER, gate: Gate = OPEN) -> FreePlace | None:
        """Return the place with the first start in ``[earliest, latest]`` that rules allow; None: there is none."""
        best: FreePlace | None = None
        for number, mode in enumerate(self.modes):
            last = min(latest, mode.latest) if best is None else min(best.start - 1, mode.latest)
            fit = _first_fit(timeline, mode, earliest, last, gate.of_mode(number))
            if fit is not None:
                booking = timeline.booking_of(mode.demand, fit.entries, fit.start, fit.start + mode.duration)
                best = FreePlace(bookings=(booking,), held=((mode.request, fit.entries),), mode=number)
        return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """An evolving job whose steps follow each other without being held."""

    columns: Columns
    shape: Shape
    #: The last start, and the first step alone.
    latest: int
    first: Block

    @property
    def duration(self) -> int:
        """The seconds of all steps."""
        return sum(duration for _, duration, _ in self.shape.sequence.steps)

    @property
    def asked(self) -> tuple[tuple[int, Request], ...]:
        """The demand and the request of each step."""
        demands = [demand for demand, *_ in self.shape.sequence.steps]
        return tuple(zip(demands, self.shape.requests, strict=True))

    def for_a_second(self) -> Block:
        """Return the first second of the first step."""
        return self.first.for_a_second()

    def find(self, timeline: Timeline, earliest: int, latest: int = FOREVER, gate: Gate = OPEN) -> FreePlace | None:
        """Return the place with the first start in ``[earliest, latest]`` that rules allow; None: there is none."""
        latest = min(latest, self.latest)
        changing = ChangingJobs(self.columns, timeline, {0: self.shape})
        while True:
            earliest = gate.first(earliest, self.duration)
            if earliest > latest or earliest >= FOREVER:
                return None
            parts = changing.find(0, earliest=earliest, latest=latest, end_by=FOREVER, is_held=False)
            if parts is None:
                return None
            if gate.first(parts[0].start, self.duration) == parts[0].start:
                break
            earliest = parts[0].start
        return FreePlace(
            bookings=tuple(part.booking for part in parts),
            held=tuple((request, part.entries) for request, part in zip(self.shape.requests, parts, strict=True)),
        )


Form = Block | Steps


def _first_fit(timeline: Timeline, mode: CompiledMode, earliest: int, latest: int, gate: Gate) -> Fit | None:
    """Return the first place of a mode with a start in ``[earliest, latest]`` that rules allow; None: there is none."""
    while True:
        earliest = gate.first(earliest, mode.duration)
        if earliest > latest or earliest >= FOREVER:
            return None
        fit = timeline.earliest_fit(mode.demand, earliest=earliest, latest=latest, duration=mode.duration)
        if fit is None or fit.start >= FOREVER:
            return None
        if gate.first(fit.start, mode.duration) == fit.start:
            return fit
        earliest = fit.start


def form_of(instance: Instance, job: Job, columns: Columns) -> Form:
    """Return the form in which a waiting job is looked for; `refusal` has found no fault with it.

    A malleable job keeps one share from its start to its end, any of those that it can run on; the steps of an evolving
    job are not held: so the verifier looks for free starts too.
    """
    block = Block(modes=compiled_modes(instance, job, columns, is_awaited=False))
    if not job.is_evolving:
        return block
    shape = Shape.of(job, columns, is_held=False)
    return Steps(columns=columns, shape=shape, latest=block.modes[0].latest, first=block)
