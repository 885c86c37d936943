"""The modes of a job: how long each of its segments may take, and what it asks for in them (EVO-17, SD-3).

A malleable job has a mode on all of its cores, and *flexible* ones, in which it runs on one share after the other: on
all of its cores, then on its shares from the smallest one up, to each of them. Segments of these may take no time. So a
job can keep any share to its end, or shrink for guests, and expand again step by step as they end. An exclusive one has
no guests, and keeps one share.

A job with alternatives has a mode of one segment for each of its choices, in their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TypeVar

from cpsched.domain import Job, Mode, Placement, Request, modes

T = TypeVar("T")

_CORES = "cores"

#: The largest amount of work in whole numbers; beyond it a job has no flexible modes.
_MOST_WORK = 1 << 44


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the most seconds that a segment takes."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ModeWork:
    """``amount <= sum of rates * seconds < amount + rates[-1]``: it is done in the last second (SD-3)."""

    amount: int
    rates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskMode:
    """One mode of a job: a rigid job has one, of one segment; an evolving one has one, with a segment for each of
    its steps; a malleable one has several (see above).
    """

    spans: tuple[Span, ...]
    #: The request of the job in each segment.
    requests: tuple[Request, ...]
    #: Of a running job: its allocation in each segment.
    allocations: tuple[tuple[Placement, ...], ...] = ()
    #: Of a flexible mode: the work that all segments do.
    work: ModeWork | None = None
    #: Of an alternative: the seconds of waiting that it costs.
    cost: int = 0

    @property
    def least(self) -> int:
        """Seconds that all segments take together at least."""
        shortest = sum(span.least for span in self.spans)
        return shortest if self.work is None else max(shortest, -(-self.work.amount // max(self.work.rates)))

    @property
    def most(self) -> int:
        """The most seconds that all segments take together."""
        longest = sum(span.most for span in self.spans)
        if self.work is None:
            return longest
        return min(longest, (self.work.amount + self.work.rates[-1] - 1) // min(self.work.rates))

    @property
    def cores(self) -> tuple[int, ...]:
        """How many cores the job asks for in each segment."""
        return tuple(request.totals.get(_CORES, 0) for request in self.requests)

    def least_of(self, first: int, last: int) -> int:
        """Return the seconds that the segments from `first` to `last` take at least."""
        return sum(span.least for span in self.spans[first : last + 1])

    def is_fixed(self, first: int, last: int) -> bool:
        """Return whether the segments from `first` to `last` have fixed durations."""
        return all(span.least == span.most for span in self.spans[first : last + 1])


def waiting_modes(
    job: Job, *, is_awaited: bool, longest: int, known: Sequence[Sequence[int]] = ()
) -> tuple[TaskMode, ...]:
    """Return the modes of a waiting job.

    `is_awaited`: whether others wait for its end: a malleable job is then not shrunk. `longest`: seconds that a step
    may be held which nothing limits. `known`: of a malleable job: sequences of shares, counted from the full one, that
    it has flexible modes for as well.
    """
    if job.is_evolving:
        spans = tuple(
            Span(step.walltime, max(step.walltime, longest if most is None else most))
            for step, most in zip(job.steps, job.longest_steps, strict=True)
        )
        return (TaskMode(spans, tuple(step.request for step in job.steps)),)
    if job.alternatives:
        steps = (one.steps[0] for one in job.choices)
        return tuple(TaskMode((Span(one.walltime, one.walltime),), (one.request,), cost=one.cost) for one in steps)
    job_modes = modes(job)[: 1 if is_awaited else None]
    return malleable_modes(job.walltime, job_modes, None, known)


def malleable_modes(
    work: Fraction | int,
    job_modes: Sequence[Mode],
    allocations: Sequence[tuple[Placement, ...]] | None,
    known: Sequence[Sequence[int]],
) -> tuple[TaskMode, ...]:
    """Return the mode at full share, and the flexible ones: up to each share, and with the known sequences; a mode for
    each share where there are no flexible ones.
    """

    def mode_of(shares: Sequence[int], spans: Sequence[Span], work: ModeWork | None) -> TaskMode:
        held = () if allocations is None else tuple(allocations[share] for share in shares)
        return TaskMode(tuple(spans), tuple(job_modes[share].request for share in shares), held, work)

    seconds = [mode.time_for(work) for mode in job_modes]
    steady = [mode_of([share], [Span(time, time)], None) for share, time in enumerate(seconds)]
    unit = lcm(Fraction(work).denominator, *(mode.rate.denominator for mode in job_modes))
    if len(job_modes) == 1 or work * unit > _MOST_WORK or job_modes[0].request.place.exclusive:
        return tuple(steady)
    up = range(len(job_modes) - 1, -1, -1)
    sequences = [(0, *(share for share in up if share >= last)) for last in range(len(job_modes))]
    sequences += [tuple(one) for one in known if not any(_places_in(one, other) for other in sequences)]
    found = steady[:1]
    for shares in dict.fromkeys(sequences):
        spans = [Span(0, seconds[share]) for share in shares[:-1]]
        done = ModeWork(int(work * unit), tuple(int(job_modes[share].rate * unit) for share in shares))
        found.append(mode_of(shares, [*spans, Span(1, seconds[shares[-1]])], done))
    return tuple(found)


def _places_in(part: Sequence[T], whole: Sequence[T]) -> list[int] | None:
    """Return where a sequence is in another one, in its order and up to the end; None if it does not."""
    places: list[int] = []
    behind = len(whole)
    for one in reversed(part):
        at = next((place for place in range(behind - 1, -1, -1) if whole[place] == one), -1)
        if at < 0 or (not places and at != len(whole) - 1):
            return None
        places.append(at)
        behind = at
    return places[::-1]


def lengths_in(mode: TaskMode, held: Sequence[T], of_mode: Sequence[T], lengths: Sequence[int]) -> list[int] | None:
    """Return how long each segment of a mode is in a plan; None if the plan runs the job in another one.

    `held`, `of_mode`: what the job has in the segments of the plan, and what it has in those of the mode. `lengths`:
    seconds of the plan's segments.
    """
    places = _places_in(held, of_mode)
    if places is None:
        return None
    found = [0] * len(of_mode)
    for place, seconds in zip(places, lengths, strict=True):
        found[place] = seconds
    is_allowed = all(span.least <= seconds <= span.most for span, seconds in zip(mode.spans, found, strict=True))
    return found if is_allowed else None
