"""The site's rules: queues, limits, free pools, reservations and the times at which they hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, ClassVar, NamedTuple

from cpsched.domain.annotations import (
    Amount,
    Asks,
    Duration,
    Entries,
    Key,
    Name,
    NodeNames,
    Price,
    Priority,
    Resource,
    Text,
    Time,
    UnitSeconds,
    Weight,
    Written,
)
from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.job import Job, Placement
from cpsched.domain.request import Request

#: A countable resource, or a licence.
ResourceName = Annotated[Name, Resource(("licenses",))]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxWait:
    """The longest wait of a queue's jobs, against starvation: each second beyond it has a price of its own."""

    seconds: Annotated[Duration, Key("From submission to the latest start that costs nothing more")]
    price: Annotated[Price, Key("Added to the objective for each expected wait (s) beyond it")] = 10
    #: A job that is overdue already has only the price.
    is_hard: Annotated[bool, Key("Whether a job that can still start in time must", name="hard")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue, and the wait that its users expect (BRIDI-3)."""

    expected_wait: Annotated[Duration, Key("Seconds that its jobs may be expected to wait: the ewt of the objective")]
    priority: Annotated[Priority, Key("Higher first")] = 0
    weight: Annotated[Weight, Key("Multiplies what its jobs add to the objective")] = 1
    max_walltime: Annotated[Duration | None, Key("The longest walltime (s) that is planned")] = None
    max_wait: Annotated[MaxWait | None, Key("Against starvation")] = None
    nodes: Annotated[tuple[str, ...] | None, Written("nodes or properties"), Key("Left out: all nodes")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The times at which a rule holds: always by default; in ``[from_, until)``; in the minutes that `cron` matches."""

    from_: Annotated[Time | None, Key(name="from")] = None
    until: Time | None = None
    cron: Annotated[Text | None, Key("Five fields", examples=("* 8-17 * * mon-fri",))] = None


#: As rules have it: ``always``, or times.
RuleValidity = Annotated[Validity, Written("always or times")]


class ConsumerKind(StrEnum):
    """The field of a job by which a rule tells whose it is."""

    USER = "user"
    GROUP = "group"

    def of(self, job: Job) -> str | None:
        """Return whose job it is."""
        name: str | None = getattr(job, self.value)
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A user or a group; without `name`, each of them separately."""

    kind: ConsumerKind
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBound:
    """An amount ``min/max%``: the larger of `least` and `percent` of what is available (OCCS-15)."""

    least: int | None = None
    percent: Fraction | None = None

    def of(self, available: int) -> int:
        """Return the amount when `available` is up; percent round down."""
        percent = self.percent
        share = 0 if percent is None else percent.numerator * available // (100 * percent.denominator)
        return max(self.least or 0, share)


class CountedJobs(NamedTuple):
    """The amounts that some jobs have, and the most that they may have together at a time."""

    #: What it allows, to whom; no other count of the same rule says the same.
    words: str
    #: By the id of a job: what it has from its start to its end.
    takes: Mapping[str, int]
    most: int


#: Returns the most that each of some jobs has of a resource or licence at a time, by id; of ``jobs``, 1.
Most = Callable[[Iterable[Job], str], Mapping[str, int]]


class CountingRule:
    """A rule that says itself what it counts: engines have a licence for each count, and know no more of it."""

    __slots__ = ()
    validity: Validity
    #: None may be exceeded; a `Limit` may.
    soft: ClassVar[bool] = False

    def counts(self, jobs: Sequence[Job], most: Most, up: Callable[[str], int]) -> Iterator[CountedJobs]:
        """Yield what may be had at the times at which the rule holds.

        `jobs`: those that run or wait; the choices of a job have ids of their own. `most`: what they have.
        `up`: returns how much there is of a resource on the nodes that are up, or of a licence.
        """
        raise NotImplementedError


class AreaScope(StrEnum):
    """The jobs' areas that an area limit adds up."""

    REQUEST = "request"
    OUTSTANDING = "outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on a consumer's use of a resource: at a time, in duration, and in area (amount times time; OCCS-15)."""

    consumer: Consumer
    resource: Annotated[
        Name,
        Resource(("licenses", "jobs", "arrayjobs", "*")),
        Key("A countable resource, a licence, jobs, arrayjobs, or * for all without own limit"),
    ]
    items: Annotated[ItemBound | None, Key("min/max%: the larger of the two", examples=("30/45%",))] = None
    duration: Annotated[Duration | None, Key("The longest use by one request (s)")] = None
    area: Annotated[UnitSeconds | None, Key("Resource x walltime")] = None
    area_scope: Annotated[AreaScope, Key("What the area adds up")] = AreaScope.REQUEST
    validity: RuleValidity = Validity()
    soft: Annotated[bool, Key("May be exceeded if no other job needs the resource")] = False


#: The nouns of ``limits``: `Limit`, which `cpsched.problem` compiles; another one is a `CountingRule` with a `kind`.
AnyLimit = Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The jobs to which a free pool is open (OCCS-16)."""

    users: Annotated[tuple[Name, ...], Key("Each of them is let in")] = ()
    groups: Annotated[tuple[Name, ...], Key("The users of each of them are let in")] = ()
    asks_for: Annotated[tuple[ResourceName, ...], Key("Resources; a job that asks for one of them has access")] = ()
    max: Annotated[FrozenMap[ResourceName, Amount] | None, Key("Job totals; with max_walltime, where both hold")] = None
    max_walltime: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FreePool(CountingRule):
    """The amount that all jobs without access must leave free together (OCCS-16)."""

    resource: ResourceName
    items: Annotated[ItemBound, Key("min/max%: the larger of the two", examples=("10/20%",))]
    open_to: Access = Access()
    validity: RuleValidity = Validity()
    nodes: Annotated[NodeNames | None, Key("A host list; left out: the whole cluster")] = None
    otherwise_max_walltime: Annotated[
        Duration | None,
        Key("The others may use the pool up to this walltime (s)", name="otherwise", inside="max_walltime"),
    ] = None

    def counts(self, jobs: Sequence[Job], most: Most, up: Callable[[str], int]) -> Iterator[CountedJobs]:
        """Yield what jobs without access may have."""
        left = self.left_of(up(self.resource))
        words = f"jobs that are not let in may have {left} {self.resource} at a time"
        yield CountedJobs(words, most((job for job in jobs if not self.lets_in(job)), self.resource), left)

    def left_of(self, available: int) -> int:
        """Return the amount that jobs without access may have together when `available` is up."""
        return max(0, available - self.items.of(available))

    def lets_in(self, job: Job) -> bool:
        """Tell whether it is open to a job: by user, group, request or size, or by the rule for all others."""
        access = self.open_to
        if job.user in access.users or job.group in access.groups:
            return True
        if any(name in job.licenses or job.asks_for(name) for name in access.asks_for):
            return True
        if access.max is not None or access.max_walltime is not None:
            is_short = access.max_walltime is None or job.walltime <= access.max_walltime
            if is_short and all(_peak(job, name) <= amount for name, amount in (access.max or {}).items()):
                return True
        return self.otherwise_max_walltime is not None and job.walltime <= self.otherwise_max_walltime


def _peak(job: Job, resource: str) -> int:
    return max(job.licenses.get(resource, 0), *(step.request.totals.get(resource, 0) for step in job.steps))


class ReservationKind(StrEnum):
    """The purpose of a reservation."""

    USERS = "users"
    DOWNTIME = "downtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A slice of the cluster, set aside for a time or for recurring times (OCCS-42, MAUI-8)."""

    id: Name
    start: Time | None = None
    end: Time | None = None
    #: With a cron expression: each interval is an occurrence.
    validity: Annotated[Validity | None, Key("In place of start and end, with cron: recurring times")] = None
    #: What it asks for as a job does.
    request: Request | None = None
    nodes: Annotated[NodeNames | None, Key("In place of request, a host list: these nodes as a whole")] = None
    #: Of a recurring one in its first occurrence that has not ended; empty: nothing.
    allocation: Annotated[tuple[Placement, ...], Entries(1), Key("What it has got already, and keeps")] = ()
    licenses: Asks = Amounts()
    users: Annotated[tuple[Name, ...], Key("The users who may use it")] = ()
    kind: Annotated[ReservationKind, Key("A downtime is a reservation that no job may use")] = ReservationKind.USERS

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else has anything on its nodes."""
        return self.request is None or self.request.place.exclusive

    @property
    def is_downtime(self) -> bool:
        """Whether no job may use it."""
        return self.kind is ReservationKind.DOWNTIME

    @property
    def is_closure(self) -> bool:
        """Whether it is a downtime of named nodes, which is had whatever runs there: nothing new does."""
        return self.is_downtime and self.nodes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The area (resource x seconds) that a consumer has used already, for area limits."""

    consumer: Consumer
    resource: ResourceName
    area: Annotated[UnitSeconds, Key("Resource x seconds")]
