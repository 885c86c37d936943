"""One scheduling window: the machine, the running and the waiting jobs, and the rules."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from cpsched.domain.annotations import Key, Name, Text, Time, Weight, Written
from cpsched.domain.cluster import Cluster, Outage
from cpsched.domain.fair_share import FairShare
from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.job import Job, Placement
from cpsched.domain.preemption import Preemption
from cpsched.domain.rules import AnyLimit, FreePool, Queue, Reservation, Usage

#: What is set aside for at least so many seconds from now on is set aside for ever.
FOR_EVER = 10**10

#: The fields of an instance that have rules of the site, in words: no engine knows them (`cpsched.problem.compiled`).
RULES = {"limits": "limits of consumers", "free_pools": "free pools", "reservations": "reservations and downtimes"}

#: Expected wait (s) of a job without queue (BRIDI-3).
DEFAULT_EXPECTED_WAIT = 1800


@lru_cache(maxsize=1024)
def _as_written(number: float) -> Fraction:
    """Return exactly what the decimals of a number say."""
    return Fraction(str(number))


class ObjectiveTerm(StrEnum):
    """The sums that an objective may be made of; ``docs/formats.md`` has the formulas."""

    WEIGHTED_WAIT = "weighted_wait"
    WAIT = "wait"
    SLOWDOWN = "slowdown"
    COMPLETION = "completion"
    MAKESPAN = "makespan"
    TARDINESS = "tardiness"
    WASTE = "waste"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The quantity to minimise: a weighted sum of terms. Where several aims are in order (BRIDI-12), it is the first.

    Among the plans that keep the aims before it, each within its tolerance, the next aim is to be small.
    """

    weights: FrozenMap[ObjectiveTerm, Weight] = FrozenMap({ObjectiveTerm.WEIGHTED_WAIT: 1.0})
    #: The part of this aim's best value by which the next ones may raise it.
    tolerance: float = 0.0
    then: "Objective | None" = None

    @property
    def aims(self) -> "tuple[Objective, ...]":
        """Each aim by itself, in order."""
        return (self,) if self.then is None else (replace(self, then=None), *self.then.aims)

    @property
    def name(self) -> str:
        """The term's name, or the sum as ``1*weighted_wait + 0.001*makespan``; of several aims ``wait > makespan``."""
        if self.then is not None:
            return " > ".join(aim.name for aim in self.aims)
        if len(self.weights) == 1 and next(iter(self.weights.values())) == 1:
            return str(next(iter(self.weights)))
        return " + ".join(f"{weight:g}*{term}" for term, weight in self.weights.items())


class SetAside(NamedTuple):
    """Amounts that no job can have during ``[start, end)``: set aside by a rule, not taken by a running job.

    Where running jobs already have some of them, only the rest is held. A calendar sets amounts aside many hundred
    times, so that these are tuples.
    """

    start: int
    end: int
    allocation: tuple[Placement, ...] = ()
    licenses: Amounts = Amounts()


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, repr=False)
class Instance:
    """One scheduling window: the machine, what runs, what waits, and the rules.

    The first of the two public documents, checked. Invariants, established where documents are read: ids are unique,
    names refer to what is declared, running jobs end after `now`. Whether they fit on their nodes together is not said.
    """

    name: Name
    #: None where no calendar is needed.
    epoch: Annotated[datetime | None, Key("Second 0: ISO-8601 with offset", examples=("2014-03-31T18:00Z",))] = None
    #: None: the epoch's fixed offset.
    time_zone: Annotated[
        Text | None, Key("IANA name of the zone in which calendars are read", examples=("Europe/Berlin",))
    ] = None
    now: Annotated[Time, Key("The current time, in seconds since the epoch", is_always=True)] = 0
    cluster: Cluster
    queues: Annotated[FrozenMap[Name, Queue], Key("By name")] = FrozenMap()
    jobs: Annotated[tuple[Job, ...], Key("Running and waiting")] = ()
    limits: Annotated[tuple[AnyLimit, ...], Key("What consumers may use at a time, for how long, how much in all")] = ()
    free_pools: Annotated[tuple[FreePool, ...], Key("What is left free for some")] = ()
    reservations: Annotated[tuple[Reservation, ...], Key("Slices of the cluster that are set aside")] = ()
    usage: Annotated[tuple[Usage, ...], Key("What consumers have used up, for area limits")] = ()
    fair_share: Annotated[
        FairShare | None, Key("What users may have and have had: a factor of the weights of their jobs")
    ] = None
    objective: Annotated[
        Objective, Key("What is to be small: a term, weights of terms, or a list of such aims in order")
    ] = field(default_factory=Objective)
    #: See `priority_classes`.
    has_strict_priorities: Annotated[
        bool,
        Written("strict"),
        Key(
            "strict: no job is later because of one of a lower priority; default: the objective alone",
            name="priorities",
        ),
    ] = False
    preemption: Annotated[Preemption | None, Key("Whose jobs may be stopped for whose; default: nobody's")] = None
    outages: Annotated[tuple[Outage, ...], Key("What will happen to nodes: for simulators only")] = ()
    #: Amounts that rules set aside; no document has them, `cpsched.problem.compiled` makes them of rules.
    set_aside: tuple[SetAside, ...] = ()

    @property
    def has_soft_limits(self) -> bool:
        """Whether a limit may be exceeded if no other job needs the resource."""
        return any(limit.soft for limit in self.limits)

    def local_time(self, time: int) -> datetime | None:
        """Return a second of the clock as the clocks of the site show it; None where there is no `epoch`.

        Raises
        ------
        OverflowError
            If the calendar does not go so far.
        """
        if self.epoch is None:
            return None
        moment = self.epoch + timedelta(seconds=time)
        return moment if self.time_zone is None else moment.astimezone(ZoneInfo(self.time_zone))

    def expected_wait(self, job: Job) -> int:
        """Return the seconds that a job may be expected to wait (``ewt`` of BRIDI-8)."""
        return DEFAULT_EXPECTED_WAIT if job.queue is None else self.queues[job.queue].expected_wait

    def priority(self, job: Job) -> int:
        """Return a job's own priority or, where it has none, its queue's."""
        if job.priority is not None:
            return job.priority
        return 0 if job.queue is None else self.queues[job.queue].priority

    def stop_level(self, job: Job) -> int:
        """Return how far a job is above those that it may stop: 0 if it may stop none."""
        if self.preemption is None:
            return 0
        if self.preemption.queues:
            return self.preemption.levels().get(job.queue or "", 0)
        return self.priority(job)

    def may_stop(self, job: Job, other: Job) -> bool:
        """Tell whether a job may stop another one, if that runs and can be stopped."""
        if self.preemption is None or other.preemptible is None:
            return False
        if self.preemption.queues:
            return other.queue in self.preemption.queues.get(job.queue or "", ())
        return self.priority(job) > self.priority(other)

    def kinds(self) -> Collection[Job]:
        """Return one job of each kind: `may_stop` does not tell the others apart."""
        return {(job.queue, job.priority, job.preemptible is None): job for job in self.jobs}.values()

    def weight(self, job: Job) -> Fraction:
        """Return the factor of a job's terms in the objective: `own_weight`, and what fair shares make of it."""
        own = self.own_weight(job)
        return own if self.fair_share is None else own * self.fair_share.weight(job.user, job.project)

    def own_weight(self, job: Job) -> Fraction:
        """Return a job's own weight or, where it has none, its queue's."""
        if job.weight is not None:
            return _as_written(job.weight)
        return _as_written(1 if job.queue is None else self.queues[job.queue].weight)

    def term_weight(self, term: ObjectiveTerm, job: Job) -> Fraction:
        """Return the weight of a term of the objective for one job: the term's times the job's; 0 without the term."""
        return Fraction(self.objective.weights.get(term, 0)) * self.weight(job)

    def earliest_start(self, job: Job) -> int:
        """Return the earliest second (on the instance's clock) at which a waiting job may start."""
        return max(self.now, job.submit, self.now if job.not_before is None else job.not_before)

    def latest_start(self, job: Job) -> int | None:
        """Return the last start of a waiting job by its own limits and its queue's, in its shortest form, or None."""
        by_deadline = None if job.deadline is None else job.deadline - job.shortest
        bounds = (job.start_at, by_deadline, self.must_start_by(job))
        return min((bound for bound in bounds if bound is not None), default=None)

    def due(self, job: Job) -> int | None:
        """Return the last start before a job's queue counts it as overdue (its ``max_wait``), or None."""
        max_wait = None if job.queue is None else self.queues[job.queue].max_wait
        return None if max_wait is None else job.submit + max_wait.seconds

    def must_start_by(self, job: Job) -> int | None:
        """Return the last start that a hard ``max_wait`` leaves a job, or None.

        The limit does not bind a job that is overdue already at `now`: it may start, and every second has its price.
        """
        due = self.due(job)
        if due is None or due < self.now or job.queue is None:
            return None
        max_wait = self.queues[job.queue].max_wait
        return due if max_wait is not None and max_wait.is_hard else None

    def last_end(self, idle: int, longest: int) -> int:
        """Return a second by which some optimal plan has ended, in seconds from now.

        Parameters
        ----------
        idle
            The second up to which a plan may be idle where nothing is set aside.
        longest
            The seconds that all jobs take one after another.
        """
        for aside in sorted(self.set_aside, key=lambda aside: aside.start):
            if aside.start - self.now < idle + longest and aside.end - self.now < FOR_EVER:
                idle = max(idle, aside.end - self.now)
        return idle + longest

    def elements(self) -> tuple[Job, ...]:
        """Return all jobs with each array replaced by its elements, in document order."""
        if all(job.array is None for job in self.jobs):
            return self.jobs
        return tuple(
            job if job.array is None else replace(job, id=element, array=None)
            for job in self.jobs
            for element in job.element_ids
        )

    def members(self) -> dict[str, tuple[str, ...]]:
        """Return the ids of the jobs behind each name that a dependency can give: a job, one element of an array, or
        all, also where each element is an entry of its own (with an empty `array`).
        """
        members: dict[str, tuple[str, ...]] = {one: (one,) for job in self.jobs for one in job.element_ids}
        members |= {job.id: job.element_ids for job in self.jobs}
        apart: dict[str, list[str]] = {}
        for job in self.jobs:
            if job.array is not None and not job.array:
                apart.setdefault(job.id.rpartition("[")[0], []).append(job.id)
        return {name: tuple(elements) for name, elements in apart.items()} | members

    def names(self) -> dict[str, list[str]]:
        """Return the names behind which a dependency means each job, by the id of the job."""
        found: dict[str, list[str]] = {}
        for name, elements in self.members().items():
            for element in elements:
                found.setdefault(element, []).append(name)
        return found

    def __repr__(self) -> str:
        nodes = len(self.cluster.node_names)
        return f"<Instance {self.name!r}: {len(self.jobs)} jobs on {nodes} nodes, now {self.now}>"


def priority_classes(instance: Instance) -> dict[str, int]:
    """Return the class of each job, array and element of an array, by its id: higher classes go first (BRIDI-9).

    The class of a job is its priority, or that of the highest job that waits for it, directly or not, if that is more:
    a job that waits for one of a lower class would be later because of it.
    """
    classes = {job.id: instance.priority(job) for job in instance.jobs}
    entry_of = {name: job.id for job in instance.jobs for name in (job.id, *job.element_ids)}
    if any(job.after for job in instance.jobs):
        awaited = {job.id: {entry_of.get(one.job, one.job) for one in job.after} for job in instance.jobs}
        arrays = {name: {*elements} for name, elements in instance.members().items() if name not in entry_of}
        classes |= dict.fromkeys(arrays, min(classes.values()))
        awaited |= arrays
        for waiting in reversed(list(TopologicalSorter(awaited).static_order())):
            for name in awaited[waiting]:
                classes[name] = max(classes[name], classes[waiting])
    return {name: classes[entry] for name, entry in entry_of.items()}
