"""The nouns of the daemon's core: its state, the events that it takes, and what it keeps as history. All frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpsched.domain import Placement, Plan, PlannedJob
from cpsched.site.bridge import JobFacts, JobState, Receipt, Refusal, Requeue, Snapshot

#: The states of ended jobs that say how long such jobs run.
LEARNT_FROM = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.TIMED_OUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of the site that the core needs; they change when the configuration is read again."""

    #: Plan and compare, but give no orders.
    is_dry_run: bool = True
    #: The plan is the order in which the manager's own scheduler looks at jobs, and nothing is held.
    only_ranks: bool = False
    #: Whether the manager's own priorities are weights of jobs, and those of queues are strict.
    counts_priorities: bool = False
    #: How far a plan may depart from the order of these priorities: by this share of the waiting jobs.
    influence: float = 1.0
    #: Jobs that start at most so many seconds from now are ordered to start.
    horizon: int = 30
    #: A job that has not started so many seconds after its ordered start is planned anew.
    patience: int = 60
    #: A promise moves earlier only if it moves by so many seconds; an earlier start is no breach.
    grain: int = 60
    #: So many refusals of the same job leave it to the manager's own scheduler.
    most_refusals: int = 3
    #: Seconds for which a job is held, or the gate is closed, unless it is done again before; and after which it is
    #: tried again where everything was handed back.
    lease: int = 300
    #: Whether forecasts of starts are noted at the manager.
    is_noting: bool = False
    #: After so many bad cycles in a row everything is handed back.
    most_bad: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStart:
    """A waiting job of the living plan."""

    planned: PlannedJob
    #: Of the job as it was planned.
    revision: str
    #: The running jobs that are stopped for it.
    stops: tuple[Requeue, ...] = ()

    def in_the_way(self, jobs: Mapping[str, JobFacts]) -> tuple[Requeue, ...]:
        """Return those of the stops whose jobs still have their nodes: until then it is not ordered to start.

        A manager that preempts would else stop others for it.
        """
        return tuple(
            stop
            for stop in self.stops
            if (facts := jobs.get(stop.job)) is not None
            if facts.is_leaving or (facts.state is JobState.RUNNING and facts.nodes == stop.nodes)
        )

    def stop_at(self, snapshot: Snapshot) -> int:
        """Return the second at which these jobs are told."""
        preemption = snapshot.instance.preemption
        return self.start - (0 if preemption is None else preemption.notice)

    @property
    def start(self) -> int:
        """The planned second."""
        return self.planned.start

    @property
    def allocation(self) -> tuple[Placement, ...]:
        """The nodes on which it starts, and how much of each."""
        return self.planned.segments[0].allocation

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of its nodes, ascending."""
        return tuple(sorted({one.node for one in self.allocation}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The start that a job's user was told last."""

    start: int
    #: When it was told.
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuffed:
    """How often the manager refused to start a job as it is."""

    revision: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that the core knows. Its maps are never changed in place."""

    policy: Policy = field(default_factory=Policy)
    snapshot: Snapshot | None = None
    #: By id: where and when each waiting job is to start.
    plan: Mapping[str, PlannedStart] = field(default_factory=dict)
    promises: Mapping[str, Promise] = field(default_factory=dict)
    rebuffed: Mapping[str, Rebuffed] = field(default_factory=dict)
    #: By id: the revision of each waiting job that the plan was made with, whether it has a start or not.
    considered: Mapping[str, str] = field(default_factory=dict)
    #: The jobs whose promises are to be shown to users, each with the reason in words.
    unannounced: Mapping[str, str] = field(default_factory=dict)
    #: Why the plan is out of date; empty where it is not.
    stale: str = ""
    is_stopping: bool = False
    #: Until the first snapshot: by id, the jobs whose end the daemon before did not see; whether it saw their start.
    unfinished: Mapping[str, bool] = field(default_factory=dict)
    #: When the gate was last ordered to be closed.
    gated_at: int | None = None
    #: The jobs for which the last plan has no place.
    unplaced: frozenset[str] = frozenset()
    #: Whether no plan could be made when one was last tried.
    is_blind: bool = False
    #: How many cycles in a row had no plan, or orders that cpsched may not give.
    num_bad: int = 0
    #: By job: the likely start, and that by which it starts with 80 %, as they were forecast last.
    forecasts: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    #: When forecasts were noted last; in the future: not before.
    noted_at: int | None = None
    #: Since when everything is handed back, as there were too many of them; None: it is not.
    gave_up_at: int | None = None

    @property
    def now(self) -> int:
        """The second of the last snapshot."""
        return 0 if self.snapshot is None else self.snapshot.taken_at

    def is_barred(self, job: str) -> bool:
        """Tell whether a job, as it is now, is left to the manager's own scheduler after too many refusals."""
        found = self.rebuffed.get(job) if self.rebuffed else None  # most often none is
        if found is None or self.snapshot is None or found.count < self.policy.most_refusals:
            return False
        facts = self.snapshot.jobs.get(job)
        return facts is not None and facts.revision == found.revision


# --- events: what happens to the core ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A snapshot was taken."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan was made, of the window that `cpsched.site.daemon.window` makes of a snapshot."""

    plan: Plan
    #: By id: the revision of each waiting job when the plan was made.
    revisions: Mapping[str, str]
    #: The reason for which promises move.
    why: str
    #: Whether users are told of it; not of one that a better plan follows at once.
    is_told: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplanned:
    """No plan could be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOver:
    """A cycle is over."""

    #: Whether it had no plan, or orders that cpsched may not give.
    is_bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The manager answered orders."""

    receipts: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """Starts were forecast."""

    #: As the state has them.
    forecasts: Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vetoed:
    """The verifier refused to let jobs start as planned."""

    #: By id, the violation in words.
    jobs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The configuration was read again."""

    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The daemon is about to end: everything goes back to the manager."""


Event = Seen | Planned | Foretold | Unplanned | CycleOver | Answered | Vetoed | Reloaded | Stopping


# --- records: what is kept as history ---


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted:
    """A job was seen to run for the first time since it waited."""

    job: str
    at: int
    nodes: tuple[str, ...]
    #: The start of the living plan; None where the plan had none for it.
    planned: int | None
    promised: int | None
    #: Whether it is where and not before when the plan says.
    is_as_planned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOver:
    """A job ended, or is not known to the manager any more."""

    job: str
    #: None: the manager does not know it any more.
    state: JobState | None
    start: int | None
    end: int | None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueuedAgain:
    """A job that ran waits again."""

    job: str
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopped:
    """A running job was stopped for a more urgent one."""

    job: str
    urgent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseMoved:
    """A promised start was made, moved or broken, and the reason."""

    job: str
    #: None: it is the first one.
    before: int | None
    #: None: it is taken back, since the plan has no start for the job.
    after: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Barred:
    """A job is left to the manager's own scheduler, since its start was refused too often."""

    job: str
    refusal: Refusal | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChosen:
    """The site's past was played again, and an engine chosen."""

    engine: str
    #: That of the site's file, which stays where no other one wins.
    usual: str
    #: Since when the engine is in use.
    since: int
    #: How many jobs of the past were played, at the most.
    jobs: int
    #: By engine: the figures relative to the usual one, and whether it won, as `cpsched replay --choose` prints them.
    trials: Mapping[str, Mapping[str, Any]]
    #: It is about none.
    job: str = ""


Record = JobStarted | JobOver | JobQueuedAgain | JobStopped | PromiseMoved | Barred | EngineChosen


# --- what the core wants written down ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """Write down what changed, before anything else is done."""

    #: By id; None: the job left the plan.
    plan: Mapping[str, PlannedStart | None] = field(default_factory=dict)
    #: By id; None: forgotten.
    promises: Mapping[str, Promise | None] = field(default_factory=dict)
    records: tuple[Record, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.plan or self.promises or self.records)
