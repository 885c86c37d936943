"""The plan: when and where each job runs, which jobs have no start, and the value of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from enum import StrEnum
from html import escape
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

    Raises `ValueError` if a figure is not what its type says, or out of its limits; or `steps` are of no search.
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
        return plan_html(self)


#: Pixels: of the chart and of one row.
_WIDTH, _ROW = 640, 14
#: A chart has rows for so many nodes and at most so many bars: the page of ``cpsched show --html`` has all.
_MOST_NODES, _MOST_BARS = 24, 2000
#: Seconds between labels of the axis, the most of which there are, and the units in which they are said.
_STEPS = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800, 2_419_200)
_MOST_TICKS = 8
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
#: Fills that the colour-blind can tell apart (Okabe and Ito), by turns.
_FILLS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")


def plan_html(plan: Plan) -> str:
    """Return a plan in HTML; all names in it are escaped."""
    score = plan.objective
    figures = {
        "jobs": f"{len(plan.jobs):,}",
        "waiting room": f"{len(plan.waiting_room):,}",
        score.name: f"{score.value:,.6g}",
        "bound": "none" if score.bound is None else f"{score.bound:,.6g}",
        "gap": "unknown" if score.gap is None else f"{score.gap:.1%}",
        "engine": f"{plan.engine.name}, {plan.engine.elapsed:.1f} s, {plan.engine.stopped}",
    }
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in figures.items())
    return f"<div><b>{escape(plan.instance)}</b><table>{cells}</table>{_chart(plan)}</div>"


def _chart(plan: Plan) -> str:
    """Draw the jobs of the first nodes, by their names, as bars over a time axis; a tooltip names each."""
    nodes = sorted({node for job in plan.jobs for node in job.nodes}, key=natural)
    begin = min((job.start for job in plan.jobs), default=plan.now)
    span = max((job.end for job in plan.jobs), default=plan.now) - begin
    if not nodes or span <= 0:
        return ""
    rows, scale = {node: row for row, node in enumerate(nodes[:_MOST_NODES])}, _WIDTH / span
    bottom = len(rows) * _ROW
    bars = [bar for bar, _ in zip(_bars(plan, rows, begin, scale), range(_MOST_BARS), strict=False)]
    labels = [_text(_WIDTH + 4, row * _ROW + 10, node) for node, row in rows.items()]
    now = (plan.now - begin) * scale
    line = f'<line x1="{now:.1f}" x2="{now:.1f}" y1="0" y2="{bottom}" stroke="currentColor" stroke-dasharray="3 2"/>'
    axis = [_text(begin_of, bottom + 12, words) for begin_of, words in _ticks(plan.now, begin, span)]
    more = f"The first {len(rows)} of {len(nodes)} nodes. " if len(rows) < len(nodes) else ""
    legend = f"<p>{more}Each bar is a job on a node; point at it for its name. The dashed line is now.</p>"
    drawn = "".join([*bars, line, *labels, *axis])
    return f'<svg width="{_WIDTH + 120}" height="{bottom + 16}" role="img">{drawn}</svg>{legend}'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="9" fill="currentColor">{escape(words)}</text>'


def _ticks(now: int, begin: int, span: int) -> Iterator[tuple[float, str]]:
    """Yield where the axis is labelled, in pixels, and with what: whole steps before and after now."""
    step = next((step for step in _STEPS if span <= _MOST_TICKS * step), span)
    unit, name = next((unit, name) for unit, name in _UNITS if step % unit == 0)
    for count in range(-((now - begin) // step), (begin + span - now) // step + 1):
        at = (now + count * step - begin) * _WIDTH / span
        yield at, f"{count * step // unit:+,} {name}" if count else "now"


def _bars(plan: Plan, rows: dict[str, int], begin: int, scale: float) -> Iterator[str]:
    """Yield a bar for each job, segment and node."""
    for number, job in enumerate(plan.jobs):
        for segment in job.segments:
            for node in dict.fromkeys(place.node for place in segment.allocation):
                if node in rows:
                    x, width = (segment.start - begin) * scale, max((segment.end - segment.start) * scale, 0.5)
                    yield (
                        f'<rect x="{x:.1f}" y="{rows[node] * _ROW + 1}" width="{width:.1f}" height="{_ROW - 2}" '
                        f'fill="{_FILLS[number % len(_FILLS)]}" fill-opacity="0.7" stroke="#444" stroke-width="0.3">'
                        f"<title>{escape(job.id)}: {job.start} to {job.end} s</title></rect>"
                    )
