"""A job that runs in the plan, and changes its cores on the way (SD-3, SD-10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from cpsched.domain import Job, Placement, PlannedJob, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Work per second, in seconds at full share; in (0, 1]."""

    #: By the job's own model.
    real: Fraction
    #: The policy's runtime model: the worst case, or the job's own model if that is even slower.
    cautious: Fraction


FULL_PACE = Pace(real=Fraction(1), cautious=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job on its present cores; a change of them gives another one."""

    job: Job
    #: The segments that are over.
    past: tuple[Segment, ...] = ()
    #: The begin of the current segment.
    begin: int
    allocation: tuple[Placement, ...]
    #: Up to when its work is accounted for, and how much is left to do then (s at full share).
    since: int
    work: Fraction
    pace: Pace = FULL_PACE

    @property
    def end(self) -> int:
        """When it ends if nothing changes any more."""
        return self.since + ceil(self.work / self.pace.real)

    @property
    def planned(self) -> PlannedJob:
        """The planned job if nothing changes any more."""
        segments = (*self.past, Segment(start=self.begin, end=self.end, allocation=self.allocation))
        return PlannedJob(id=self.job.id, start=segments[0].start, end=self.end, segments=segments)

    def work_at(self, time: int) -> Fraction:
        """Return how much is left to do at a later time."""
        return self.work - self.pace.real * (time - self.since)

    def on(self, allocation: tuple[Placement, ...], pace: Pace, time: int) -> Run:
        """Return the job on other cores from `time` on, before its end: a segment for each change."""
        changed = replace(self, allocation=allocation, pace=pace, since=time, work=self.work_at(time))
        past = self.past
        if self.begin < time:
            past = (*past, Segment(start=self.begin, end=time, allocation=self.allocation))
        if past and set(past[-1].allocation) == set(allocation):
            return replace(changed, past=past[:-1], begin=past[-1].start)
        return replace(changed, past=past, begin=time)

    def predicted_end(self, time: int, until: int | None = None) -> int:
        """Return when the job ends at its cautious pace from `time` on, and at full share from `until` on (SD-11)."""
        work = self.work_at(time)
        end = time + ceil(work / self.pace.cautious)
        if until is None or end <= until:
            return end
        return until + ceil(work - self.pace.cautious * (until - time))
