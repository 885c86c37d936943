"""The answer: when and where each job runs, which cannot, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from cpsched.domain.job import Job, Placement, Segment

__all__ = [
    "EngineReport",
    "Event",
    "Incumbent",
    "Plan",
    "PlannedJob",
    "ReservedSlice",
    "Score",
    "WaitingJob",
    "WaitingReason",
    "repeated",
]


class WaitingReason(StrEnum):
    """Why a job has no start; ``docs/formats.md`` says when each applies."""

    UNSATISFIABLE = "unsatisfiable"
    UNAVAILABLE = "unavailable"
    WALLTIME = "walltime"
    TOO_LATE = "too_late"
    NOT_MAPPED = "not_mapped"
    DEPENDENCY = "dependency"
    #: Of a record: nobody had started it when the record ends.
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job with its time ``[start, end)`` and nodes; its segments leave no hole."""

    id: str
    start: int
    end: int
    segments: tuple[Segment, ...]


def repeated(job: Job) -> PlannedJob:
    """Return a running job as a plan repeats it: with the allocation of the instance, but without its chunks.

    Raises
    ------
    ValueError
        If the job does not run.
    """
    if job.running is None:
        raise ValueError(f"job {job.id} does not run")
    segments = tuple(
        replace(segment, allocation=tuple(replace(held, chunk=None, count=None) for held in segment.allocation))
        for segment in job.running.segments
    )
    return PlannedJob(id=job.id, start=job.running.start, end=segments[-1].end, segments=segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job without a start, and why, in words (the waiting room of OCCS-37)."""

    id: str
    reason: WaitingReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedSlice:
    """What a reservation got."""

    id: str
    start: int
    end: int
    allocation: tuple[Placement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The plan's value and how far from the optimum it can be."""

    name: str
    value: float
    #: A proven lower bound on `value` over the planned jobs, or None.
    bound: float | None = None
    #: ``(value - bound) / value``, or None.
    gap: float | None = None
    #: The method that proves the bound, in words, or None.
    proof: str | None = None
    #: The value of the fallback's plan.
    planner: float
    #: The part of `value` that no plan can change.
    suffered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """Who made the plan, and in how many seconds of how many."""

    name: str
    version: str
    budget: float
    elapsed: float
    #: Why it stopped: ``done``, ``optimal``, ``budget``, ``interrupted`` or ``fallback``.
    stopped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A plan that was the best so far: when (s since the engine began), its value, and who found it."""

    at: float
    value: float
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something else that happened while a plan was made: when (s since the engine began), to whom, and what."""

    at: float
    by: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The second of the two public documents."""

    instance: str
    now: int
    objective: Score
    engine: EngineReport
    #: Running and planned jobs, in document order of the instance (array elements in the order of their indices).
    jobs: tuple[PlannedJob, ...]
    waiting_room: tuple[WaitingJob, ...] = ()
    reservations: tuple[ReservedSlice, ...] = ()
    incumbents: tuple[Incumbent, ...] = ()
    events: tuple[Event, ...] = ()
    #: Whether it tells what happened: a job took the lesser of its runtime and its walltime, not its walltime.
    record: bool = False
    #: Of a record: the runs that ended because a node of theirs failed, in order of time.
    attempts: tuple[PlannedJob, ...] = ()
