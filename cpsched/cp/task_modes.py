"""The modes of a job: how long each of its segments may take, and what it asks for in them (EVO-17, SD-3)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, lcm

from cpsched.domain import Job, Placement, Remaining, Request, modes

__all__ = ["Span", "TaskMode", "Work", "continuation_modes", "waiting_modes"]

_CORES = "cores"


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the most seconds that a segment takes."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Work:
    """``amount <= sum of rates * seconds < amount + rates[-1]``: it is done in the last second (SD-3)."""

    amount: int
    rates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskMode:
    """One mode of a job: a rigid job has one, of one segment; an evolving one has one, with a segment for each of
    its steps; a malleable one has one for each share of its cores.
    """

    spans: tuple[Span, ...]
    #: The request of the job in each segment.
    requests: tuple[Request, ...]
    #: Of a running job: its allocation in each segment, and the work that all segments do, if their durations can vary.
    allocations: tuple[tuple[Placement, ...], ...] = ()
    work: Work | None = None

    @property
    def least(self) -> int:
        """Seconds that all segments take together at least."""
        return sum(span.least for span in self.spans)

    @property
    def most(self) -> int:
        """The most seconds that all segments take together."""
        return sum(span.most for span in self.spans)

    @property
    def cores(self) -> tuple[int, ...]:
        """How many cores the job asks for in each segment."""
        return tuple(request.totals.get(_CORES, 0) for request in self.requests)

    @property
    def soonest(self) -> tuple[int, ...]:
        """Seconds that each segment takes if the first takes the least: the others do what work is left."""
        if self.work is None:
            return tuple(span.least for span in self.spans)
        return (self.spans[0].least, self.spans[1].most)

    def is_fixed(self, first: int, last: int) -> bool:
        """Return whether the segments from `first` to `last` have fixed durations."""
        return all(span.least == span.most for span in self.spans[first : last + 1])


def waiting_modes(job: Job, *, is_awaited: bool, longest: int) -> tuple[TaskMode, ...]:
    """Return the modes of a waiting job.

    Parameters
    ----------
    is_awaited
        Whether others wait for its end: a malleable job is then not shrunk.
    longest
        Seconds that a step may be held which nothing limits.
    """
    if job.is_evolving:
        spans = tuple(
            Span(step.walltime, max(step.walltime, longest if most is None else most))
            for step, most in zip(job.steps, job.longest_steps, strict=True)
        )
        return (TaskMode(spans, tuple(step.request for step in job.steps)),)
    found = []
    for mode in modes(job):
        seconds = mode.time_for(job.walltime)
        found.append(TaskMode((Span(seconds, seconds),), (mode.request,)))
    return tuple(found[:1]) if is_awaited else tuple(found)


def continuation_modes(left: Remaining) -> tuple[TaskMode, ...]:
    """Return the modes in which a running job can continue: on one of its shares till the end, or until it takes all of
    its cores.
    """
    full, whole = left.modes[0], left.allocations[0]
    found = []
    for mode, allocation in zip(left.modes, left.allocations, strict=True):
        seconds = mode.time_for(left.work)
        found.append(TaskMode((Span(seconds, seconds),), (mode.request,), (allocation,)))
        if mode is not full and seconds > 1:
            rest = Span(ceil(left.work - mode.rate * (seconds - 1)), ceil(left.work - mode.rate))
            unit = lcm(left.work.denominator, mode.rate.denominator)
            work = Work(int(left.work * unit), (int(mode.rate * unit), unit))
            found.append(
                TaskMode((Span(1, seconds - 1), rest), (mode.request, full.request), (allocation, whole), work)
            )
    return tuple(found)
