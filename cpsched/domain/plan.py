"""The plan: when and where each job runs, which jobs have no start, and the value of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cpsched.domain.job import Job, Placement, Segment

if TYPE_CHECKING:
    import pandas as pd

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
    "Work",
    "repeated",
]

#: So many nodes are named where a job shows itself in a line.
_FEW = 3


class WaitingReason(StrEnum):
    """The reason for which a job has no start; ``docs/formats.md`` says when each applies."""

    UNSATISFIABLE = "unsatisfiable"
    UNAVAILABLE = "unavailable"
    WALLTIME = "walltime"
    TOO_LATE = "too_late"
    NOT_MAPPED = "not_mapped"
    DEPENDENCY = "dependency"
    LIMIT = "limit"
    FREE_POOL = "free_pool"
    RESERVATION = "reservation"
    #: In a record only: the job had not been started when the record ends.
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedJob:
    """A job with its interval ``[start, end)`` and its nodes; its segments leave no gap."""

    id: str
    start: int
    end: int
    segments: tuple[Segment, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes that it ever has, in the order in which it gets them."""
        return tuple(dict.fromkeys(place.node for segment in self.segments for place in segment.allocation))

    def __repr__(self) -> str:
        return f"<PlannedJob {self.id!r}: {self.start} to {self.end} s on {_some(self.nodes)}>"


def _some(nodes: Sequence[str]) -> str:
    """Return the first few names, and how many there are."""
    return ", ".join(nodes) if len(nodes) <= _FEW else f"{', '.join(nodes[:_FEW])} and {len(nodes) - _FEW} more nodes"


def repeated(job: Job) -> PlannedJob:
    """Return a running job as a plan repeats it: with the segments of the instance.

    Raises
    ------
    ValueError
        If the job does not run.
    """
    if job.running is None:
        raise ValueError(f"job {job.id} does not run")
    segments = job.running.segments
    return PlannedJob(id=job.id, start=job.running.start, end=segments[-1].end, segments=segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job without a start: the reason, and the same in words (the waiting room of OCCS-37)."""

    id: str
    reason: WaitingReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedSlice:
    """The nodes of a reservation at its time; of a recurring one, in one occurrence."""

    id: str
    start: int
    end: int
    #: Empty where it could not be had.
    allocation: tuple[Placement, ...] = ()
    #: Why it could not be had, in words; None where it could.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The plan's value, and its largest possible distance from the optimum."""

    name: str
    value: float
    #: A proven lower bound on `value` over the planned jobs, or None.
    bound: float | None = None
    #: ``(value - bound) / value``, or None.
    gap: float | None = None
    #: The method that proves the bound, in words, or None.
    proof: str | None = None
    #: The value of the planner's own plan, which is the fallback.
    planner: float
    #: The part of `value` that no plan can change.
    suffered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """The engine that made the plan, and the seconds that it took of its budget."""

    name: str
    version: str
    budget: float
    elapsed: float
    #: Why the engine stopped: ``done``, ``optimal``, ``budget``, ``interrupted`` or ``fallback``.
    stopped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A plan that was the best so far: when it was found (s since the engine began), its value, and its finder."""

    at: float
    value: float
    by: str
    #: The number of its jobs, running ones included; None where that is not known.
    planned: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Another event while a plan was made: when (s since the engine began), in which part, and what happened."""

    at: float
    by: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of one solver while a plan was made, better plans or not."""

    by: str
    #: Seconds for which it worked.
    seconds: float
    #: What it did, in words; None where it does not say.
    what: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """The second of the two public documents; ``plan["job-7"].start`` is the start of a job."""

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
    #: By solver, in the order in which they began.
    work: tuple[Work, ...] = ()
    #: Whether this is a record of what happened: a job then took the lesser of its runtime and its walltime.
    record: bool = False
    #: In a record only: the runs that ended because one of their nodes failed, in order of time.
    attempts: tuple[PlannedJob, ...] = ()

    def __getitem__(self, job_id: str) -> PlannedJob:
        """Return a job that runs or is planned.

        Raises
        ------
        KeyError
            If the plan has no such job; of one in the waiting room it says the reason.
        """
        for job in self.jobs:
            if job.id == job_id:
                return job
        for waiting in self.waiting_room:
            if waiting.id == job_id:
                raise KeyError(f"job {job_id} has no start ({waiting.reason}): {waiting.detail}")
        raise KeyError(f"there is no job {job_id} in the plan of {self.instance}")

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each job, those of the waiting room last.

        Its columns are ``id``; ``start`` and ``end`` in seconds, missing in the waiting room; ``nodes``, the names of
        all nodes that the job ever has; ``segments``, how many it has; ``reason`` and ``detail`` of a job without a
        start.
        """
        import pandas as pd

        rows: list[tuple[str, int | None, int | None, tuple[str, ...], int, str | None, str | None]] = [
            (job.id, job.start, job.end, job.nodes, len(job.segments), None, None) for job in self.jobs
        ]
        rows += [(job.id, None, None, (), 0, str(job.reason), job.detail) for job in self.waiting_room]
        frame = pd.DataFrame(rows, columns=["id", "start", "end", "nodes", "segments", "reason", "detail"])
        return frame.astype({"start": "Int64", "end": "Int64"})

    def __repr__(self) -> str:
        score, waiting = self.objective, len(self.waiting_room)
        gap = "" if score.gap is None else f", gap {score.gap:.1%}"
        room = f", {waiting} in the waiting room" if waiting else ""
        return f"<Plan of {self.instance!r}: {len(self.jobs)} jobs{room}, {score.name} {score.value:,.6g}{gap}>"

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: the summary, and a small Gantt chart."""
        from cpsched.domain.plan_html import plan_html

        return plan_html(self)
