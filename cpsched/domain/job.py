"""Jobs: rigid, evolving, malleable; waiting or running."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import floor

from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.request import Request

__all__ = [
    "Dependency",
    "DependencyType",
    "Job",
    "Malleability",
    "Placement",
    "PromisedStart",
    "Running",
    "RuntimeModel",
    "Segment",
    "Step",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The amounts that a job holds on one node during a segment."""

    node: str
    #: The sum over the job's chunks on this node.
    resources: Amounts
    #: The kind of the chunks (index in the request) and how many of them; None where a running job does not say.
    chunk: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A time ``[start, end)`` during which a job's allocation does not change."""

    start: int
    end: int
    allocation: tuple[Placement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that has started: fixed, and never moved."""

    start: int
    #: In order of time, without gaps; the last one ends when the job is expected to end, which is after ``now``.
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an evolving job; a rigid job has exactly one."""

    walltime: int
    request: Request


class RuntimeModel(StrEnum):
    """How the runtime of a shrunk job stretches (SD-3)."""

    IDEAL = "ideal"
    WORST = "worst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Malleability:
    """The shares of its cores on which a job can run, and how much slower it is on them."""

    #: Shares in (0, 1), descending; the full share is always possible.
    shares: tuple[float, ...]
    model: RuntimeModel = RuntimeModel.IDEAL
    #: Runtime factor for each share of which it is known; overrides the model.
    stretch: FrozenMap[float, float] = FrozenMap()


class DependencyType(StrEnum):
    """The event of another job that a dependency waits for."""

    AFTER = "after"
    AFTEROK = "afterok"
    AFTERANY = "afterany"
    AFTERNOTOK = "afternotok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """The job may start `delay` seconds after another one has started (`after`) or ended (all others)."""

    job: str
    type: DependencyType
    delay: int = 0

    def lag(self, walltime: int) -> int:
        """Return the least time (s) from the start of the awaited job, which takes `walltime`, to the job's own."""
        return self.delay + (0 if self.type is DependencyType.AFTER else walltime)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedStart:
    """The start that a job's user was told: a later start has a price."""

    start: int
    #: Added to the objective for each expected wait (s) of postponement, at least 0.
    price: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One entry of the document's ``jobs``."""

    id: str
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    project: str | None = None
    #: When the job arrived (s); its wait is counted from here.
    submit: int
    #: At least one; more than one makes the job evolving.
    steps: tuple[Step, ...]
    #: Cluster-wide resources, held for the job's whole life.
    licenses: Amounts = Amounts()
    #: Higher first; None: the queue's.
    priority: int | None = None
    #: The factor of the job's terms in the objective, positive; None: the queue's.
    weight: float | None = None
    not_before: int | None = None
    start_at: int | None = None
    deadline: int | None = None
    after: tuple[Dependency, ...] = ()
    #: Of an array: the promise to the user of each element. None for running jobs.
    told: PromisedStart | None = None
    #: Indices of a job array, ascending; None for a single job; empty for an element that is planned by itself.
    array: tuple[int, ...] | None = None
    #: The most time that a step of an evolving job may be held, as a multiple of its walltime; None: no limit.
    expand_limit: float | None = 1
    malleability: Malleability | None = None
    running: Running | None = None
    #: How long it is expected to run (s), at most its walltime; None: its walltime. None where a plan chooses how long
    #: the job takes: it is evolving or malleable.
    expected: int | None = None
    #: The real duration (s): for simulators only.
    runtime: int | None = None
    reservation: str | None = None

    @property
    def walltime(self) -> int:
        """The requested duration in seconds, over all steps."""
        steps = self.steps
        return steps[0].walltime if len(steps) == 1 else sum(step.walltime for step in steps)

    @property
    def expected_runtime(self) -> int:
        """How long the job is expected to run, in seconds: its walltime where it says nothing else."""
        return self.walltime if self.expected is None else self.expected

    @property
    def request(self) -> Request:
        """The request of a job of one step.

        Raises
        ------
        ValueError
            If the job is evolving: each of its steps has a request of its own.
        """
        if len(self.steps) != 1:
            raise ValueError(f"job {self.id} has {len(self.steps)} steps, each with its own request")
        return self.steps[0].request

    @property
    def is_evolving(self) -> bool:
        """Whether the job has several steps."""
        return len(self.steps) > 1

    @property
    def changes(self) -> bool:
        """Whether the job may change what it holds while it runs: it evolves, or is malleable."""
        return self.is_evolving or self.malleability is not None

    @property
    def longest_steps(self) -> tuple[int | None, ...]:
        """For how many seconds each step may be held while the next one waits (EVO-6); None: without limit.

        The last one takes its walltime. The limit is exactly what its decimals say.
        """
        limit = None if self.expand_limit is None else Fraction(str(self.expand_limit))
        held = (None if limit is None else floor(limit * step.walltime) for step in self.steps[:-1])
        return (*held, self.steps[-1].walltime)

    @property
    def num_elements(self) -> int:
        """How many jobs it has in a plan: the elements of an array, or itself."""
        return len(self.array) if self.array else 1

    @property
    def element_ids(self) -> tuple[str, ...]:
        """The ids that the job has in a plan: its own, or one for each element of an array."""
        if not self.array:
            return (self.id,)
        return tuple(f"{self.id}[{index}]" for index in self.array)
