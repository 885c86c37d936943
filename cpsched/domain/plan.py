"""The plan: when and where each job runs, which jobs have no start, and the value of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from cpsched.arguments import Seconds, Seed, Steps, Workers, plain_argument
from cpsched.domain.annotations import Bounds, Entries, Key, Name, Number, PlanTime, Price, Time, Words
from cpsched.domain.job import Job, Placement, Segment
from cpsched.doors import later
from cpsched.text import natural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveParams:
    """How `solve` was called. With the same figures it makes the same plan if no clock decides: with no budget, or with
    `steps` that are done before the budget ends.

    Raises `ValueError` if a figure is not what its type says, or out of its limits; or there are `steps` of another
    engine than search.
    """

    engine: Annotated[Name, Key("One of the engines", is_always=True)] = "portfolio"
    budget: Annotated[Seconds, Key("Seconds, without those that check and compile", is_always=True)] = 10.0
    seed: Annotated[Seed, Key(is_always=True)] = 0
    workers: Annotated[Workers, Key("The number of CPU cores to use", is_always=True)] = 2
    bound: Annotated[Seconds, Key("Seconds, after the budget, for proving a bound", is_always=True)] = 0.0
    solver: Annotated[Name, Key("The MiniZinc solver, of the engine minizinc only", is_always=True)] = "gecode"

    steps: Annotated[Steps | None, Key("Steps after which the engine search ends, on one core")] = None

    def __post_init__(self) -> None:
        """Check the figures."""
        hints = get_type_hints(type(self), include_extras=True)
        for one in fields(self):
            object.__setattr__(self, one.name, plain_argument(getattr(self, one.name), hints[one.name], name=one.name))
        if self.steps is not None and self.engine != "search":
            raise ValueError(f"steps: Expected the engine 'search' beside a number of steps, got {self.engine!r}")


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

    id: Name
    start: PlanTime
    end: PlanTime
    segments: Annotated[tuple[Segment, ...], Entries(1), Key("In time order, without holes")]
    #: Of the job's `choices`, by index.
    alternative: Annotated[
        int, Bounds(0, below=10**6), Key("Which of its alternatives was chosen, from 1 on; 0: its own request")
    ] = 0

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
    """Return a running job with the segments of the instance; `ValueError` if the job does not run."""
    if job.running is None:
        raise ValueError(f"job {job.id} does not run")
    segments = job.running.segments
    return PlannedJob(id=job.id, start=job.running.start, end=segments[-1].end, segments=segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job without a start: the reason, and the same in words (the waiting room of OCCS-37)."""

    id: Name
    reason: WaitingReason
    detail: Annotated[Words, Key("The reason in words")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedSlice:
    """The nodes of a reservation at its time; of a recurring one, in one occurrence."""

    id: Name
    start: PlanTime
    end: PlanTime
    #: Empty where it could not be had.
    allocation: Annotated[tuple[Placement, ...], Entries(1)] = ()
    reason: Annotated[Words | None, Key("In place of allocation: why it could not be had, in words")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AimScore:
    """The value of an aim, and its largest possible distance from the optimum among plans that keep those before it."""

    name: Name
    value: Number
    bound: Annotated[Number | None, Key("A proven lower bound, or null", is_nullable=True, is_needed=True)] = None
    gap: Annotated[Number | None, Key("(value - bound) / abs(value)", is_nullable=True, is_needed=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(AimScore):
    """The plan's value, and its largest possible distance from the optimum: that of the first aim, with the others."""

    proof: Annotated[Words | None, Key("How the bound was proven, in words")] = None
    planner: Annotated[Number, Key("The value of the fallback's plan")]
    suffered: Annotated[Number, Key("The part of the value that no plan can change")]
    then: Annotated[tuple[AimScore, ...], Entries(1), Key("The later aims, where the objective has several")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """The engine that made the plan, and the seconds that it took of its budget."""

    name: Name
    version: Name
    budget: Price
    elapsed: Price
    stopped: Annotated[Name, Key("Why it stopped: done, optimal, budget, interrupted or fallback")]
    params: Annotated[SolveParams | None, Key("How solve was called, where it made the plan")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A plan that was the best so far: when it was found (s since the engine began), its value, and its finder."""

    at: Annotated[Price, Key("Seconds since the engine began")]
    value: Number
    by: Name
    planned: Annotated[int | None, Bounds(0, below=2**31), Key("How many jobs it has, with running ones")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Another event while a plan was made: when (s since the engine began), in which part, and what happened."""

    at: Annotated[Price, Key("Seconds since the engine began")]
    by: Annotated[Name, Key("The engine or solver that it is about")]
    what: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverWork:
    """The work of one solver while a plan was made, better plans or not."""

    by: Name
    seconds: Annotated[float, Bounds(0, 1e100, unit="seconds"), Key("Seconds for which it worked")]
    what: Annotated[Words | None, Key("What it did")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the verifier found when it judged a plan."""

    #: The number of violations.
    violations: int
    #: The names of the rules to which the plan was held.
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """When and where each job runs, which jobs cannot, and how good that is.

    This is the second of the two public documents. It is a collection of the jobs that have a start:
    ``plan["job-7"].start``, ``len(plan)``, ``for job in plan``, ``"job-7" in plan``.
    """

    instance: Annotated[Name, Key("Name of the instance")]
    now: Time
    objective: Score
    engine: EngineReport
    #: In document order of the instance (array elements in the order of their indices).
    jobs: Annotated[tuple[PlannedJob, ...], Key("Running and planned jobs")]
    waiting_room: Annotated[tuple[WaitingJob, ...], Key("Jobs without a start", is_always=True)] = ()
    reservations: Annotated[tuple[ReservedSlice, ...], Key("What each reservation got")] = ()
    incumbents: Annotated[tuple[Incumbent, ...], Key("How the plan was found")] = ()
    events: Annotated[tuple[Event, ...], Key("What else happened meanwhile")] = ()
    #: By solver, in the order in which they began.
    work: Annotated[tuple[SolverWork, ...], Key("What each solver did, better plans or not")] = ()
    record: Annotated[bool, Key("Whether this is a record of what happened: jobs took their real run times")] = False
    #: In order of time.
    attempts: Annotated[
        tuple[PlannedJob, ...], Key("Runs that are cut short: by an outage (in a record only), or for other jobs")
    ] = ()
    #: Of this very plan; one that is read, or changed with `dataclasses.replace`, has none. No document has it.
    judgement: Judgement | None = field(default=None, init=False, compare=False)

    def judged(self, judgement: Judgement) -> Plan:
        """Return the plan with a judgement of it."""
        plan = copy(self)
        object.__setattr__(plan, "judgement", judgement)
        return plan

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[PlannedJob]:
        return iter(self.jobs)

    def __contains__(self, job: object) -> bool:
        return any(job in (one, one.id) for one in self.jobs)

    def __getitem__(self, job_id: str) -> PlannedJob:
        """Return a job that runs or is planned.

        Raises `KeyError` if the plan has no such job; of one in the waiting room it says the reason.
        """
        for job in self.jobs:
            if job.id == job_id:
                return job
        for waiting in self.waiting_room:
            if waiting.id == job_id:
                raise KeyError(f"job {job_id} has no start ({waiting.reason}): {waiting.detail}")
        raise KeyError(f"there is no job {job_id} in the plan of {self.instance}")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as its document has it: values of JSON."""
        return dict(later("formats", "plan_to_document")(self))

    def plot(self) -> Figure:
        """Draw the plan by nodes over time as a figure of matplotlib: ``plan.plot().savefig("plan.png")``.

        Raises `ReportError` if matplotlib is not installed.
        """
        bars = [
            (number, node, segment.start, segment.end)
            for number, job in enumerate(self.jobs)
            for segment in job.segments
            for node in dict.fromkeys(place.node for place in segment.allocation)
        ]
        nodes = sorted({node for _, node, _, _ in bars}, key=natural)
        title = f"{self.instance}: {self.objective.name} {self.objective.value:,.6g}"
        figure: Figure = later("charts", "gantt_figure")(title, nodes, bars, now=self.now)
        return figure

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
