"""The judge's values of the two documents: plain and frozen, without checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cpsched.errors import Fault
from cpsched.verify.validity import Validity

if TYPE_CHECKING:
    from cpsched.verify.rules.limits import AnyLimit, Pool, Usage

#: The occurrences of a recurring reservation that are known at a time: so many, within ten years.
KNOWN_OCCURRENCES, KNOWN_SECONDS = 100, 3660 * 86_400
#: Expected wait (s) of a job without queue.
DEFAULT_EXPECTED_WAIT = 1800


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a node's guard."""

    least: Mapping[str, int]
    max_walltime: int | None

    def holds(self, chunk: Chunk, walltime: int) -> bool:
        """Return whether a chunk of a job of `walltime` seconds meets all parts of the condition."""
        short_enough = self.max_walltime is None or walltime <= self.max_walltime
        return short_enough and all(chunk.resources.get(name, 0) >= least for name, least in self.least.items())


@dataclass(frozen=True, slots=True)
class KeepFree:
    """The amount of a resource that chunks which do not ask for `beneficiary` leave free."""

    resource: str
    items: int
    beneficiary: str


@dataclass(frozen=True, slots=True)
class NodeClass:
    """The common properties of the nodes of one entry."""

    resources: Mapping[str, int]
    properties: Mapping[str, str]
    state: str
    admits: tuple[Condition, ...]
    keep_free: tuple[KeepFree, ...]
    #: The queues that have nodes of their own, none of which these are.
    closed_to: frozenset[str] = frozenset()

    def admits_chunk(self, chunk: Chunk, walltime: int) -> bool:
        """Return whether the guard admits the chunk."""
        return not self.admits or any(condition.holds(chunk, walltime) for condition in self.admits)

    def has_properties(self, chunk: Chunk) -> bool:
        """Return whether the node has every property that the chunk asks for."""
        return all(self.properties.get(name) == value for name, value in chunk.where.items())


@dataclass(frozen=True, slots=True)
class Chunk:
    """`count` equal units, each on one node."""

    count: int
    resources: Mapping[str, int]
    where: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """The chunks of a job or step, and how they may lie."""

    chunks: tuple[Chunk, ...]
    arrangement: str
    exclusive: bool
    #: The level of which all chunks are in one group; or in each group a multiple of `segment`, or at most `spread`.
    within: str | None = None
    segment: int | None = None
    spread: int | None = None

    def lies_like(self, other: Request) -> bool:
        """Return whether both have the same place."""
        return replace(self, chunks=()) == replace(other, chunks=())

    @property
    def names(self) -> set[str]:
        """The resources that it asks for."""
        return {name for chunk in self.chunks for name in chunk.resources}

    def totals(self) -> dict[str, int]:
        """Return the amounts that all chunks take together."""
        totals: dict[str, int] = {}
        for chunk in self.chunks:
            for name, amount in chunk.resources.items():
                totals[name] = totals.get(name, 0) + chunk.count * amount
        return totals


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an evolving job; a rigid job is one step."""

    walltime: int
    request: Request
    #: Of an alternative: the seconds of waiting that it costs.
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Dependency:
    """A start that waits for another job."""

    job: str
    type: str
    delay: int
    max_delay: int | None = None


@dataclass(frozen=True, slots=True)
class Malleable:
    """The shares of its cores on which a job can run, and how fast it is there."""

    shares: tuple[Fraction, ...]
    model: str
    stretch: Mapping[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Placement:
    """The amounts that a job holds on one node; `chunk` and `count` are None if a running job does not state them."""

    node: str
    chunk: int | None
    count: int | None
    resources: Mapping[str, int]


class PromisedStart(NamedTuple):
    """The start that a job's user was told, and the price of a later one."""

    start: int
    price: Fraction


class Resizable(NamedTuple):
    """That a job may change its number of chunks while it runs: the seconds without work after that, the least seconds
    from one change to the next, and what it asks for on each size; first by its own request, with its runtime.
    """

    cost: int
    interval: int
    sizes: Mapping[int, Step]
    runtime: int | None


class Preemptible(NamedTuple):
    """That a job may be stopped; of one with checkpoints what they cost, and the seconds between two (else None)."""

    cost: int
    interval: int | None
    #: Whether it waits on its nodes, where it keeps all but its cores.
    is_suspended: bool = False

    def kept(self, seconds: int, notice: int) -> int:
        """Return by how many seconds the next run is shorter, after one of some seconds that had notice (-1: none)."""
        if self.interval is None:
            return seconds if self.is_suspended and notice >= 0 else 0
        saved = seconds // self.interval * self.interval
        if notice >= self.cost:
            saved = max(saved, seconds - self.cost)
        return max(0, saved - self.cost)


class Preemption(NamedTuple):
    """Whose jobs may be stopped for whose (none named: those of lower priority for those of higher)."""

    queues: Mapping[str, tuple[str, ...]]
    stops: int | None
    notice: int
    exempt: int
    resume: bool


class Segment(NamedTuple):
    """A time ``[start, end)`` with one allocation."""

    start: int
    end: int
    allocation: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of ``jobs``; the elements of an array share it."""

    entry: str
    submit: int
    steps: tuple[Step, ...]
    is_evolving: bool = False
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    licenses: Mapping[str, int] = field(default_factory=dict)
    not_before: int | None = None
    start_at: int | None = None
    deadline: int | None = None
    after: tuple[Dependency, ...] = ()
    told: PromisedStart | None = None
    is_array: bool = False
    expand_limit: Fraction | None = Fraction(1)
    malleable: Malleable | None = None
    #: What it can run with in place of its own walltime and request.
    alternatives: tuple[Step, ...] = ()
    #: The licences of each of these.
    alternative_licenses: tuple[Mapping[str, int], ...] = ()
    resizable: Resizable | None = None
    running: tuple[Segment, ...] = ()
    reservation: str | None = None
    expected: int | None = None
    runtime: int | None = None
    weight: Fraction | None = None
    project: str | None = None
    priority: int | None = None
    preemptible: Preemptible | None = None
    #: Of a job that a plan runs in one of its choices: the walltime that it asks for itself (s).
    usual: int | None = None

    def chosen(self, number: int) -> Job:
        """Return the job as it is run by one of its alternatives, from 1 on, or by its own request, 0."""
        if not self.alternatives:
            return self
        (step,) = (self.steps[0], *self.alternatives)[number : number + 1]
        # what it really takes is that of its own request, as much longer or shorter as its walltime
        runtime = None if self.runtime is None else ceil(Fraction(self.runtime * step.walltime, self.walltime))
        licenses = self.alternative_licenses[number - 1] if number and self.alternative_licenses else self.licenses
        chosen = replace(self, steps=(step,), alternatives=(), usual=self.walltime, runtime=runtime)
        return replace(chosen, licenses=licenses)

    @property
    def walltime(self) -> int:
        """The requested duration over all steps, in seconds."""
        return sum(step.walltime for step in self.steps)

    @property
    def seconds(self) -> int:
        """The real duration of the job at full share, in seconds: it is stopped at its walltime."""
        return self.walltime if self.runtime is None else min(self.runtime, self.walltime)

    @property
    def is_exclusive(self) -> bool:
        """Whether the job wants its nodes for itself; all steps say the same."""
        return self.steps[0].request.exclusive

    def asks_for(self, resource: str) -> bool:
        """Return whether the job asks for a licence, or any of its chunks for a resource."""
        chunks = (chunk for step in self.steps for chunk in step.request.chunks)
        return resource in self.licenses or any(resource in chunk.resources for chunk in chunks)

    def peak(self, resource: str) -> int:
        """Return the most that the job takes at a time of a resource or licence."""
        return max(self.licenses.get(resource, 0), *(step.request.totals().get(resource, 0) for step in self.steps))


@dataclass(frozen=True, slots=True)
class MaxWait:
    """A wait (s) beyond which a job of a queue pays, or which it must not have."""

    seconds: int
    price: Fraction
    hard: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: the waits that it promises, and the jobs that it accepts."""

    expected_wait: int
    max_walltime: int | None
    max_wait: MaxWait | None = None
    weight: Fraction = Fraction(1)
    #: The nodes that its jobs run on; None: all.
    nodes: frozenset[str] | None = None
    priority: int = 0


class ItemBound(NamedTuple):
    """``min/max%``: the larger of an amount and a share of what is up."""

    least: int | None
    percent: Fraction | None

    @property
    def is_unlimited(self) -> bool:
        """Whether it bounds nothing."""
        return self.least is None and self.percent is None

    def of(self, available: int) -> int:
        """Return the bound when `available` is up; percent are rounded down."""
        share = 0
        if self.percent is not None:  # in whole numbers: this is asked for each start that is tried
            share = self.percent.numerator * available // (100 * self.percent.denominator)
        return max(self.least or 0, share)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A slice of the cluster set aside for a time, or for recurring times."""

    id: str
    #: Its one time, or None.
    time: tuple[int, int] | None
    #: The times of a recurring one.
    validity: Validity
    #: What it asks for, or None where it has whole nodes.
    request: Request | None
    nodes: tuple[str, ...]
    #: What it has got already, at the first of its times that has not ended.
    allocation: tuple[Placement, ...]
    licenses: Mapping[str, int]
    users: tuple[str, ...]
    is_downtime: bool

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else has anything on its nodes."""
        return self.request is None or self.request.exclusive

    @property
    def is_closure(self) -> bool:
        """Whether it is a downtime of named nodes, which no running job prevents."""
        return self.is_downtime and self.request is None

    def times(self, now: int) -> tuple[tuple[int, int], ...]:
        """Return its times that have not ended; of a recurring one the first occurrences, from `now` on."""
        if self.time is not None:
            return (self.time,) if self.time[1] > now else ()
        found: list[tuple[int, int]] = []
        begin = self.validity.first(now, now + KNOWN_SECONDS)
        while begin is not None and len(found) < KNOWN_OCCURRENCES:
            found.append((begin, self.validity.run_end(begin, now + KNOWN_SECONDS)))
            begin = self.validity.first(found[-1][1], now + KNOWN_SECONDS)
        return tuple(found)


#: The id of a reservation, and one of its starts.
SliceKey = tuple[str, int]


class Outage(NamedTuple):
    """Nodes that are down during ``[start, end)``."""

    nodes: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Instance:
    """The first document, as the judge understood it."""

    name: str
    now: int
    #: The class of each node, by name, in document order.
    nodes: Mapping[str, NodeClass]
    licenses: Mapping[str, int]
    queues: Mapping[str, Queue]
    #: Every job or array element by its id, in document order.
    jobs: Mapping[str, Job]
    #: The ids that a dependency on an entry or an element means.
    members: Mapping[str, tuple[str, ...]]
    limits: tuple[AnyLimit, ...]
    pools: tuple[Pool, ...]
    reservations: Mapping[str, Reservation]
    usage: tuple[Usage, ...]
    #: The terms and weights of the objective, or of its first aim.
    weights: Mapping[str, Fraction]
    #: Those of the aims after it.
    later_aims: tuple[Mapping[str, Fraction], ...] = ()
    #: The licences that do not come back.
    consumed: frozenset[str] = frozenset()
    #: What fair shares make of the weights of a user's jobs in an account.
    factors: Mapping[tuple[str | None, str | None], Fraction] = field(default_factory=dict)
    #: The outages of nodes during a record.
    outages: tuple[Outage, ...] = ()
    preemption: Preemption | None = None
    #: What is odd about the running jobs.
    warnings: tuple[Fault, ...] = ()
    #: By level, the group of each node that is in one.
    topology: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: By level, the percent by which a job in several groups takes longer in a record.
    slowdown: Mapping[str, int] = field(default_factory=dict)

    def slowed(self, seconds: int, nodes: Collection[str]) -> int:
        """Return how long some work takes on these nodes: longer by the most that a level says which they cross."""
        crossed = [
            percent
            for level, percent in self.slowdown.items()
            if len({self.topology[level].get(node, (node,)) for node in nodes}) > 1
        ]
        return seconds + ceil(Fraction(seconds * max(crossed, default=0), 100))

    def groups(self, level: str | None) -> list[frozenset[str] | None]:
        """Return the nodes of each group of a level; None for no level: all nodes."""
        if level is None:
            return [None]
        nodes: dict[str, set[str]] = {}
        for node, group in self.topology[level].items():
            nodes.setdefault(group, set()).add(node)
        return [frozenset(group) for group in nodes.values()]

    def expected_wait(self, job: Job) -> int:
        """Return the seconds that a job may be expected to wait."""
        return DEFAULT_EXPECTED_WAIT if job.queue is None else self.queues[job.queue].expected_wait

    def weight(self, job: Job) -> Fraction:
        """Return the factor of what a job adds to the objective: its own, or its queue's, times that of its user."""
        own = Fraction(1) if job.queue is None else self.queues[job.queue].weight
        own = own if job.weight is None else job.weight
        return own * self.factors.get((job.user, job.project), 1)

    def priority(self, job: Job) -> int:
        """Return a job's own priority, or its queue's."""
        if job.priority is not None:
            return job.priority
        return 0 if job.queue is None else self.queues[job.queue].priority

    def is_beyond_queue(self, job: Job) -> bool:
        """Return whether a job's walltime is longer than its queue accepts."""
        most = None if job.queue is None else self.queues[job.queue].max_walltime
        return most is not None and job.walltime > most

    def max_wait(self, job: Job) -> MaxWait | None:
        """Return the longest wait that a job's queue wants."""
        return None if job.queue is None else self.queues[job.queue].max_wait

    def must_start_by(self, job: Job) -> int | None:
        """Return the last start that a hard ``max_wait`` allows; it does not bind a job that is overdue at `now`."""
        bound = self.max_wait(job)
        if bound is None or not bound.hard or job.submit + bound.seconds < self.now:
            return None
        return job.submit + bound.seconds

    def up_amount(self, resource: str, among: frozenset[str] | None = None) -> int:
        """Return how much of a resource or licence is up now, on all nodes or `among` some."""
        if resource in self.licenses:
            return self.licenses[resource]
        if among is None:
            return self._up_totals.get(resource, 0)
        return sum(
            node.resources.get(resource, 0) for name, node in self.nodes.items() if node.state == "up" and name in among
        )

    @cached_property
    def classes(self) -> tuple[tuple[NodeClass, tuple[str, ...]], ...]:
        """Each class of nodes with their names, in document order."""
        names: dict[int, list[str]] = {}
        for name, node_class in self.nodes.items():
            names.setdefault(id(node_class), []).append(name)
        of_id = {id(node_class): node_class for node_class in self.nodes.values()}
        return tuple((of_id[key], tuple(listed)) for key, listed in names.items())

    @cached_property
    def _up_totals(self) -> Mapping[str, int]:
        """The amounts that all nodes that are up have together."""
        totals: dict[str, int] = {}
        for node in self.nodes.values():
            for name, amount in node.resources.items():
                totals[name] = totals.get(name, 0) + (amount if node.state == "up" else 0)
        return totals

    @cached_property
    def reserved_times(self) -> Mapping[str, tuple[tuple[int, int], ...]]:
        """The times of each reservation that have not ended, by its id."""
        return {name: reservation.times(self.now) for name, reservation in self.reservations.items()}

    @property
    def limited_by_star(self) -> tuple[str, ...]:
        """The resources that ``*`` means: all that nodes have, and the licences that come back."""
        return (*self._up_totals, *(name for name in self.licenses if name not in self.consumed))


@dataclass(frozen=True)
class Booking:
    """A job of the plan, or a running job of the instance, with its time and nodes."""

    id: str
    job: Job
    start: int
    end: int
    segments: tuple[Segment, ...]
    #: Whether this is a time of a running job in which the plan gives it more than the instance does.
    is_more: bool = False
    #: Whether this is an attempt: a run that ended before its work was done.
    is_cut: bool = False

    @cached_property
    def totals(self) -> tuple[Mapping[str, int], ...]:
        """The amounts that the job has on all nodes together, in each of its segments."""
        found: list[Mapping[str, int]] = []
        for segment in self.segments:
            total: dict[str, int] = {}
            for placement in segment.allocation:
                for name, amount in placement.resources.items():
                    total[name] = total.get(name, 0) + amount
            found.append(total)
        return tuple(found)

    @property
    def is_running(self) -> bool:
        """Whether the job had started before the plan was made."""
        return bool(self.job.running)

    @property
    def is_fact(self) -> bool:
        """Whether this is a running job's fixed allocation, or less: no decision that could break a rule."""
        return self.is_running and not self.is_more


@dataclass(frozen=True, slots=True)
class Slice:
    """The allocation of a reservation at one of its times; empty where it is said that it could not be had."""

    reservation: Reservation
    start: int
    end: int
    allocation: tuple[Placement, ...]
    #: Whether this is what it had got already, and no choice of the plan.
    is_fact: bool = False

    @property
    def key(self) -> SliceKey:
        """The id of the reservation, and when this begins."""
        return self.reservation.id, self.start

    @property
    def is_closure(self) -> bool:
        """Whether nodes are closed whatever runs there."""
        return self.reservation.is_closure


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job in the waiting room."""

    id: str
    job: Job
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The second document, as far as it could be read."""

    #: All readable entries of ``jobs``, in the plan's order; a job may wrongly occur twice.
    entries: tuple[Booking, ...]
    waiting: tuple[Waiting, ...]
    #: What reservations got, in order of time.
    slices: tuple[Slice, ...]
    #: Times at which reservations are said to have got nothing.
    refused: tuple[Slice, ...]
    #: The number of entries of each id in ``jobs`` and in ``waiting_room``, readable or not, known or not.
    mentions: Mapping[str, int]
    #: The ``objective`` as written, of which the rules check each number.
    score: Mapping[str, Fraction | str | None]
    #: Those of ``objective.then``, which are about the later aims.
    later_scores: tuple[Mapping[str, Fraction | str | None], ...] = ()
    #: Whether this is a record of what happened.
    is_record: bool = False
    #: The runs that were cut short, in order of their starts; the first one of a running job is what ran at `now`.
    attempts: tuple[Booking, ...] = ()
