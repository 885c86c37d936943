"""What is known at one moment: the window, its plan, and a row for each job."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cpsched.answers import JobState
from cpsched.domain import Instance, Job, Placement, Plan, PlannedJob, WaitingJob
from cpsched.formats import fold_hostlist
from cpsched.report import request_text
from cpsched.site.serve.models import CycleModel, ForecastModel, MoveModel

#: The most moves of a planned start that a row has; the newest ones.
_MOST_MOVES = 8


@dataclass(frozen=True, slots=True)
class Left:
    """A waiting job that the plan leaves to the resource manager."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job as lists have it."""

    id: str
    status: JobState
    user: str | None = None
    group: str | None = None
    project: str | None = None
    queue: str | None = None
    submitted: int | None = None
    start: int | None = None
    end: int | None = None
    #: As the instance and the plan state it; None: it is left to the manager, or has no start.
    job: Job | None = None
    planned: PlannedJob | None = None
    walltime: int | None = None
    #: The newest last.
    moved: tuple[MoveModel, ...] = ()
    num_moves: int = 0
    #: None: there is none.
    forecast: ForecastModel | None = None
    #: Why it has no start, and that in words.
    reason: str | None = None
    detail: str | None = None

    # Written when they are read: of 10,000 rows a page has a hundred.

    @property
    def nodes(self) -> str:
        """Its nodes as a host list; empty: it has no start."""
        return "" if self.planned is None else fold_hostlist(self.planned.nodes)

    def has(self, node: str) -> bool:
        """Tell whether it has a node at some time."""
        segments = () if self.planned is None else self.planned.segments
        return any(one.node == node for segment in segments for one in segment.allocation)

    @property
    def request(self) -> str:
        """What it asks for, in the chunk syntax; empty: nobody but its manager knows."""
        return "" if self.job is None else request_text(self.job)


@dataclass(frozen=True, kw_only=True)
class View:
    """The window and its plan at one moment. Whatever is derived from them is made once, when it is first asked for."""

    #: Different for each view of a source.
    version: str
    instance: Instance
    plan: Plan
    #: The plan as its engine made it, whose bound and figures are known; of a store it may be without its jobs.
    made: Plan
    #: ``store`` or ``instance``.
    kind: str
    left: tuple[Left, ...] = ()
    #: By job: how its planned start was told and moved.
    moves: Mapping[str, Sequence[MoveModel]] = field(default_factory=dict)
    forecasts: Mapping[str, ForecastModel] = field(default_factory=dict)
    #: The last cycle of the daemon, without its lag, and when it ended in seconds of Unix time.
    cycle: CycleModel | None = None
    clock: float = 0.0

    @property
    def lag(self) -> float:
        """Seconds since the last cycle."""
        return max(0.0, time.time() - self.clock)

    @cached_property
    def entries(self) -> dict[str, Job]:
        """The jobs by id, elements of arrays one by one."""
        return {job.id: job for job in self.instance.elements()}

    @cached_property
    def planned(self) -> dict[str, PlannedJob]:
        """The jobs that run or have a start, by id; runs that are to be stopped end there."""
        return {job.id: job for job in (*self.plan.jobs, *self.plan.attempts)}

    @cached_property
    def rows(self) -> tuple[JobRow, ...]:
        """All jobs, in the order of the instance; those that are left to the manager last."""
        waiting = {job.id: job for job in self.plan.waiting_room}
        left = [one for one in self.left if one.id not in self.entries]
        return (
            *(self._row(job, waiting.get(job.id)) for job in self.entries.values()),
            *(JobRow(id=one.id, status=JobState.WAITING_ROOM, reason="left", detail=one.reason) for one in left),
        )

    def _row(self, job: Job, why: WaitingJob | None) -> JobRow:
        """Return the row of a job; `why` it has no start."""
        planned = self.planned.get(job.id)
        moves = self.moves.get(job.id, ())
        status = JobState.WAITING_ROOM if planned is None else JobState.PLANNED
        if job.running is not None:
            status = JobState.RUNNING
        reason, detail = ("not_planned", "the plan does not have it yet") if why is None else (why.reason, why.detail)
        has_none = status is JobState.WAITING_ROOM or why is not None  # it has none, or is to be stopped
        return JobRow(
            id=job.id,
            user=job.user,
            group=job.group,
            project=job.project,
            queue=job.queue,
            status=status,
            submitted=job.submit,
            start=None if planned is None else planned.start,
            end=None if planned is None else planned.end,
            job=job,
            planned=planned,
            walltime=job.walltime,
            moved=tuple(moves[-_MOST_MOVES:]),
            num_moves=max(0, len(moves) - 1),
            forecast=None if job.running is not None else self.forecasts.get(job.id),
            reason=str(reason) if has_none else None,
            detail=detail if has_none else None,
        )

    @cached_property
    def row_of(self) -> dict[str, JobRow]:
        """The rows by id."""
        return {row.id: row for row in self.rows}

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many jobs run, wait, have a start, have none."""
        of = [row.status for row in self.rows]
        planned, room = of.count(JobState.PLANNED), of.count(JobState.WAITING_ROOM)
        return {
            "running": of.count(JobState.RUNNING),
            "waiting": planned + room,
            "planned": planned,
            "not_planned": room,
        }

    @cached_property
    def used(self) -> dict[str, Counter[str]]:
        """The amounts that running jobs hold on each node now."""
        used = defaultdict[str, Counter[str]](Counter)
        for job in self.instance.jobs:
            for one in _held_by(job, self.instance.now):
                used[one.node].update(one.resources)
        return dict(used)

    @cached_property
    def num_running(self) -> Counter[str]:
        """How many jobs run on each node."""
        held = (_held_by(job, self.instance.now) for job in self.instance.jobs)
        return Counter(node for allocation in held for node in {one.node for one in allocation})


def _held_by(job: Job, now: int) -> tuple[Placement, ...]:
    """Return the amounts that a job holds now; none for one that waits."""
    if job.running is None:
        return ()
    segments = job.running.segments
    return next((one.allocation for one in segments if one.start <= now < one.end), segments[-1].allocation)
