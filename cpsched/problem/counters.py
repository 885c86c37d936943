"""Limits and free pools as counters: licences that only those jobs take that the rule is about (OCCS-15, 16, 22, 50).

A limit on items is a licence of its consumer; one on duration or area is a licence that only jobs take which are beyond
it, and of which there is none while the limit holds; a free pool is one that jobs without access take.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from cpsched.domain import (
    FOR_EVER,
    AreaScope,
    ConsumerKind,
    CountingRule,
    FreePool,
    Instance,
    ItemBound,
    Job,
    Limit,
    Validity,
    WaitingReason,
)
from cpsched.problem.amounts import Amount, Measures, Size, Supply
from cpsched.problem.calendar import MOST_INTERVALS, Intervals, intervals, minus, union
from cpsched.problem.choices import apart, at_most, choices_apart
from cpsched.problem.holds import Closed, closed
from cpsched.problem.queue import planning_order
from cpsched.problem.rule import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A rule as a licence."""

    rule: Rule
    #: The amount that each of these jobs takes from its start to its end, by the id of its entry; of a job with
    #: alternatives by each of its choices (`Choice`).
    takes: Mapping[str, int]
    total: int
    #: The amount that they may take together while the rule holds.
    left: int = 0
    #: Amounts that nobody can have for a time.
    closed: Closed = field(default_factory=Closed)
    #: Whether a plan that the counter forbids may be allowed by the rule.
    is_strict: bool = False
    #: Jobs that keep to the rule only if they are neither shrunk nor held.
    steady: frozenset[str] = frozenset()
    #: Whether it holds at no time that is only taken to be one of its times.
    is_followed: bool = True

    def last_chances(self, for_ever: int) -> Iterator[tuple[str, int]]:
        """Yield the jobs for which nothing is left from some second on, each with that second."""
        last = self.closed.last
        if last is not None and last[1] >= for_ever:
            left = self.total - last[2]
            yield from ((job_id, last[0]) for job_id, taken in self.takes.items() if left < taken)

    def cut_off(self, for_ever: int) -> Iterator[str]:
        """Yield the jobs for which nothing is left after the last second that its calendars are followed to."""
        if not self.is_followed:
            yield from (job_id for job_id, taken in self.takes.items() if taken > self.total)
            yield from (job_id for job_id, _ in self.last_chances(for_ever))


class Times:
    """The times from now on at which rules hold, enumerated once for all rules of the same validity.

    `instance`: has the clock. `until`: the end of the times that calendars are enumerated for: what holds then is taken
    to hold for ever, unless it ends before.
    """

    def __init__(self, instance: Instance, until: int) -> None:
        self._instance, self.until = instance, until
        self._found: dict[Validity, Intervals] = {}

    def of(self, validity: Validity) -> Intervals:
        """Return the times of a validity."""
        if validity not in self._found:
            self._found[validity] = self._enumerated(validity)
        return self._found[validity]

    def is_followed(self, validity: Validity) -> bool:
        """Return whether each of these times is one, and not only taken to be one."""
        is_short = validity.until is not None and validity.until <= self.until
        return validity.cron is None or (is_short and len(self.of(validity)) < MOST_INTERVALS)

    def followed(self, validity: Validity) -> Intervals:
        """Return the times of a validity that are not only taken to be some."""
        if self.is_followed(validity):
            return self.of(validity)
        found = intervals(validity, self._instance, self.until)
        return found if len(found) < MOST_INTERVALS else found[:-1]

    def _enumerated(self, validity: Validity) -> Intervals:
        until, end = self.until, self._instance.now + FOR_EVER
        found = intervals(validity, self._instance, until)
        since = max(until, validity.from_ or until)
        if validity.until is not None:
            end = min(end, validity.until)
        if since >= end:
            return found
        if found and found[-1][1] == since:
            return (*found[:-1], (found[-1][0], end))
        return (*found, (since, end))


def counters_of(
    instance: Instance,
    times: Times,
    measures: Measures,
    *,
    soft: bool,
    record: bool = False,
    about: Job | None = None,
    hopeless: Callable[[], frozenset[str]] = frozenset,
) -> Iterator[Counter]:
    """Yield the counters of all limits and free pools that can bind (OCCS-50).

    `measures`: the amounts of the window's jobs. `soft`: whether soft limits are kept, too. `record`: whether the jobs
    are played, see `compiled`. `about`: the only job whose limits matter; None: all. `hopeless`: returns the waiting
    jobs that can never start, by id: no outstanding area is spent on them.
    """
    limits = _Limits(instance, times, measures, soft=soft, record=record, about=about, hopeless=hopeless)
    yield from limits.counters()
    jobs, up = apart(instance.jobs), Supply(instance).of
    names = None if about is None else {one.id for one in choices_apart(about)}

    def most_of(some: Iterable[Job], resource: str) -> dict[str, int]:
        return {name: size.most for name, size in measures.of_all(some, resource).items() if size.most}

    for path, reason, rule in _counting_rules(instance):
        found, is_followed = times.of(rule.validity), times.is_followed(rule.validity)
        for words, takes, most in rule.counts(jobs, most_of, up) if found else ():
            if names is None or not names.isdisjoint(takes):
                yield from _counter(
                    instance,
                    Rule(words, path, reason),
                    jobs,
                    takes,
                    most,
                    found,
                    is_followed=is_followed,
                    is_strict=any(job.changes for job in jobs if job.id in takes),
                    record=record,
                )


def _counting_rules(instance: Instance) -> Iterator[tuple[str, WaitingReason, CountingRule]]:
    """Yield the rules that say themselves what they count: the path, and the reason of a job that waits for it."""
    for section, reason in (("limits", WaitingReason.LIMIT), ("free_pools", WaitingReason.FREE_POOL)):
        for number, rule in enumerate(getattr(instance, section)):
            is_of_nodes = isinstance(rule, FreePool) and is_spread(instance, rule)
            if isinstance(rule, CountingRule) and not is_of_nodes:
                yield f"{section}[{number}]", reason, rule


def is_spread(instance: Instance, pool: FreePool) -> bool:
    """Tell whether a free pool is one of some nodes, over which it is spread (`nodes.py`)."""
    return pool.nodes is not None and pool.resource not in instance.cluster.licenses


def _counter(
    instance: Instance,
    rule: Rule,
    jobs: Sequence[Job],
    takes: Mapping[str, int],
    left: int,
    times: Intervals,
    *,
    is_strict: bool = False,
    steady: frozenset[str] = frozenset(),
    is_followed: bool = True,
    record: bool = False,
) -> Iterator[Counter]:
    """Yield the counter of which no more than `left` are there at some times; nothing if that never binds.

    `jobs` are those that the rule is about, `takes` has the amounts that they take.
    """
    if not times or not (takes or steady):
        return
    total, is_waiting, running = 0, False, list[Amount]()
    for job in jobs:
        taken = takes.get(job.id)
        if taken:
            total += taken * job.num_elements
            if job.running is None:
                is_waiting = True
            else:
                running.append((job.running.start, job.running.segments[-1].end, taken))
    if total <= left or not (record or is_waiting):
        if steady:
            yield Counter(rule=rule, takes={}, total=0, is_strict=True, steady=steady)
        return
    is_strict = is_strict or bool(steady)
    amounts = Closed()
    if times == ((instance.now, instance.now + FOR_EVER),):
        total = left
    else:
        amounts = closed(total, left, times, running)
    yield Counter(
        rule=rule,
        takes=takes,
        total=total,
        left=left,
        closed=amounts,
        is_strict=is_strict,
        steady=steady,
        is_followed=is_followed,
    )


# --- limits ----------------------------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """How much of a resource the jobs of a consumer have."""

    jobs: Sequence[Job]
    #: Of each job that has something of it, by id.
    sizes: Mapping[str, Size]
    #: The most at a time, all elements together, and whether a waiting job has any.
    total: int
    is_waiting: bool
    #: Of the jobs that may be started: the longest time, and the largest area.
    longest: int
    largest: int
    #: Those that may have less at some time than they have at most.
    uneven: frozenset[str]


class _Bound(NamedTuple):
    """A limit applied to one consumer and one resource."""

    limit: Limit
    path: str
    #: ``user alice``.
    consumer: str
    resource: str
    times: Intervals
    #: Whether each of these is one, and not only taken to be one.
    is_followed: bool
    asked: _Asked


class _Limits:
    """The limits of a window."""

    def __init__(
        self,
        instance: Instance,
        times: Times,
        measures: Measures,
        *,
        soft: bool,
        record: bool,
        about: Job | None,
        hopeless: Callable[[], frozenset[str]],
    ) -> None:
        self._instance, self._times, self._measures = instance, times, measures
        self._jobs, self._supply = apart(instance.jobs), Supply(instance)
        self._soft, self._record, self._about, self._hopeless = soft, record, about, hopeless
        stated = enumerate(instance.limits)
        self._limits = [(f"limits[{number}]", limit) for number, limit in stated if isinstance(limit, Limit)]
        #: What jobs have, by consumer and resource, and when a limit does not hold, by its path, consumer and resource.
        self._found: dict[tuple[ConsumerKind, str, str], _Asked] = {}
        self._pauses: dict[tuple[str, str, str], Intervals] = {}

    def counters(self) -> Iterator[Counter]:
        """Yield the counters of all limits that can bind."""
        for bound in self._bounds():
            limit = bound.limit
            if limit.items is not None:
                yield from self._items(bound, limit.items)
            if limit.duration is not None or limit.area is not None:
                yield from self._requests(bound)
                yield from self._outstanding(bound)

    def _bounds(self) -> Iterator[_Bound]:
        """Yield each limit for each consumer that has jobs, ``*`` once for each resource, where it can bind."""
        about = self._about
        by_subject: dict[ConsumerKind, dict[str, list[Job]]] = {limit.consumer.kind: {} for _, limit in self._limits}
        for kind, found in by_subject.items():
            for job in self._jobs:
                subject = kind.of(job)
                if subject is not None and (about is None or subject == kind.of(about)):
                    found.setdefault(subject, []).append(job)
        for path, limit in self._limits:
            if limit.soft and not self._soft:
                continue
            kind, name = limit.consumer.kind, limit.consumer.name
            resources = (limit.resource,) if limit.resource != "*" else self._supply.names
            for subject in by_subject[kind] if name is None else (name,):
                jobs = by_subject[kind].get(subject)
                for resource in resources if jobs else ():
                    asked = self._asked_by(kind, subject, resource, jobs or ())
                    if not self._can_bind(limit, resource, asked):
                        continue
                    times, is_followed = self._times_of(limit, subject, resource)
                    if times:
                        consumer = f"{kind} {subject}"
                        yield _Bound(limit, path, consumer, resource, times, is_followed, asked)

    def _times_of(self, limit: Limit, subject: str, resource: str) -> tuple[Intervals, bool]:
        """Return when a limit holds for a consumer and a resource, ``*`` where no limit on that resource does; and
        whether its calendars are followed that far.
        """
        kind, times = limit.consumer.kind, self._times
        others = [
            other.validity
            for _, other in self._limits
            if limit.resource == "*"
            and other.resource == resource
            and other.consumer.kind is kind
            and other.consumer.name in (None, subject)
        ]
        found = minus(times.of(limit.validity), union(chain.from_iterable(map(times.followed, others))))
        return found, all(map(times.is_followed, (limit.validity, *others)))

    def _can_bind(self, limit: Limit, resource: str, asked: _Asked) -> bool:
        """Tell whether what the jobs of a consumer have of a resource can be more than a limit allows."""
        if (
            limit.items is not None
            and (self._record or asked.is_waiting)
            and asked.total > limit.items.of(self._supply.of(resource))
        ):
            return True
        if limit.duration is not None and (asked.uneven or asked.longest > limit.duration):
            return True
        if limit.area is None:
            return False
        return limit.area_scope is AreaScope.OUTSTANDING or bool(asked.uneven) or asked.largest > limit.area

    def _asked_by(self, kind: ConsumerKind, subject: str, resource: str, jobs: Sequence[Job]) -> _Asked:
        """Add up what the jobs of a consumer have of a resource; once for all limits of them."""
        key = kind, subject, resource
        if key not in self._found:
            sizes = self._measures.of_all(jobs, resource)
            having = [(job, sizes[job.id]) for job in jobs if job.id in sizes]
            starting = [size for job, size in having if self._starts(job)]
            self._found[key] = _Asked(
                jobs=jobs,
                sizes=sizes,
                total=sum(size.most * job.num_elements for job, size in having),
                is_waiting=any(size.most and job.running is None for job, size in having),
                longest=max((size.seconds for size in starting), default=0),
                largest=max((size.area for size in starting), default=0),
                uneven=self._uneven.intersection(sizes),
            )
        return self._found[key]

    def _rule(self, bound: _Bound, words: str) -> Rule:
        return Rule(f"{bound.consumer} {words}", bound.path, WaitingReason.LIMIT)

    def _items(self, bound: _Bound, items: ItemBound) -> Iterator[Counter]:
        most, asked = items.of(self._supply.of(bound.resource)), bound.asked
        takes = {name: size.most for name, size in asked.sizes.items() if size.most}
        rule = self._rule(bound, f"may have {most} {bound.resource} at a time")
        is_strict = any(job_id in takes for job_id in asked.uneven)
        if self._record and bound.limit.soft:
            takes = {name: min(amount, most) for name, amount in takes.items()}
        yield from _counter(
            self._instance,
            rule,
            asked.jobs,
            takes,
            most,
            bound.times,
            is_followed=bound.is_followed,
            is_strict=is_strict,
            record=self._record,
        )

    def _requests(self, bound: _Bound) -> Iterator[Counter]:
        """Yield the counters of limits on the duration and the area of a request."""
        limit, resource, asked = bound.limit, bound.resource, bound.asked
        if self._record and limit.soft:
            return
        measures = [(limit.duration, "seconds", f"may use {resource} for {limit.duration} s in a job")]
        if limit.area_scope is AreaScope.REQUEST:
            measures.append((limit.area, "area", f"may ask for {limit.area} {resource} x s in a job"))
        for most, measure, words in measures:
            if most is None:
                continue
            starting = [
                (job, getattr(asked.sizes[job.id], measure))
                for job in asked.jobs
                if job.id in asked.sizes and self._starts(job)
            ]
            beyond = {job.id: 1 for job, size in starting if size > most}
            steady = frozenset(job.id for job, _ in starting if job.id in asked.uneven and job.id not in beyond)
            yield from _counter(
                self._instance,
                self._rule(bound, words),
                asked.jobs,
                beyond,
                0,
                bound.times,
                is_followed=bound.is_followed,
                steady=steady,
                record=self._record,
            )

    def _starts(self, job: Job) -> bool:
        """Tell whether a job may be started: if it is played, also one that runs, when it has been cut short."""
        return self._record or job.running is None

    @cached_property
    def _turns(self) -> Mapping[str, int]:
        """The places of waiting jobs in the order in which they are planned: those that can be too late come first."""
        waiting = [job for job in self._instance.jobs if job.running is None]
        return {job.id: place for place, job in enumerate(planning_order(self._instance, waiting))}

    def _meets(self, job: Job, bound: _Bound) -> bool:
        """Tell whether a running job runs, or a waiting one can, at some second at which a limit holds."""
        instance = self._instance
        if job.running is not None:
            end = job.running.segments[-1].end
            if any(start < end for start, _ in bound.times):
                return True
            begun = replace(instance, now=job.running.start)
            return bool(intervals(bound.limit.validity, begun, end))
        first, end = self._span(job)
        return any(start < end and stop > first for start, stop in bound.times)

    def _avoids(self, job: Job, bound: _Bound) -> bool:
        """Tell whether a waiting job has time to run while a limit does not hold."""
        (first, end), walltime = self._span(job), job.walltime
        key = bound.path, bound.consumer, bound.resource
        if key not in self._pauses:
            self._pauses[key] = minus(((self._instance.now, self._instance.now + FOR_EVER),), bound.times)
        return any(min(stop, end) - max(start, first) >= walltime for start, stop in self._pauses[key])

    @cached_property
    def _uneven(self) -> frozenset[str]:
        """The jobs that may have less at some time than they have at most."""
        return frozenset(job.id for job in self._jobs if job.changes)

    def _span(self, job: Job) -> tuple[int, int]:
        """Return the seconds within which a waiting job runs."""
        first, last = self._instance.earliest_start(job), self._instance.latest_start(job)
        # a job that is held or shrunk ends later than its walltime says
        end = self._instance.now + FOR_EVER if last is None or job.id in self._uneven else last + job.walltime
        return first, max(first, end)

    def _outstanding(self, bound: _Bound) -> Iterator[Counter]:
        """Yield the counter of a limit on the outstanding area: jobs are admitted in the order in which they are
        planned, as long as the area lasts; first those that can only run while the limit holds.
        """
        limit, instance, asked = bound.limit, self._instance, bound.asked
        if limit.area is None or limit.area_scope is not AreaScope.OUTSTANDING:
            return
        left = limit.area - sum(
            usage.area
            for usage in instance.usage
            if usage.resource == bound.resource
            and usage.consumer.kind is limit.consumer.kind
            and usage.consumer.name in (None, bound.consumer.partition(" ")[2])
        )
        rule = self._rule(bound, f"may have {limit.area} {bound.resource} x s outstanding")
        if self._record:
            # an area beyond the limit never fits, by however much it is beyond
            most = max(0, left)
            capped = {job_id: min(size.area, most + (not limit.soft)) for job_id, size in asked.sizes.items()}
            yield from _counter(instance, rule, asked.jobs, capped, most, bound.times, record=True)
            return
        areas = {job_id: size.area for job_id, size in asked.sizes.items()}
        is_enough = at_most(asked.jobs, lambda job: areas.get(job.id, 0)) <= left
        meeting = [
            job
            for job in asked.jobs
            if job.id in areas and (not is_enough or job.id in self._uneven) and self._meets(job, bound)
        ]
        left -= sum(areas[job.id] for job in meeting if job.running is not None)
        beyond: dict[str, int] = {}
        steady: set[str] = set()
        given: dict[str, int] = {}  # of each job, what its choices have together: a plan takes one of them
        hopeless = self._hopeless()
        waiting = [job for job in meeting if job.running is None and hopeless.isdisjoint((job.id, str(job.id)))]
        first = {str(job.id): job for job in reversed(waiting)}

        def turn(job: Job) -> tuple[bool, bool, int]:
            return first[str(job.id)] is not job, self._avoids(job, bound), self._turns[str(job.id)]

        for job in sorted(waiting, key=turn):
            name = str(job.id)
            more = max(0, areas[job.id] - given.get(name, 0))
            if more <= left:
                left -= more
                given[name] = given.get(name, 0) + more
                steady |= {job.id} & self._uneven
            else:
                beyond[job.id] = 1
        yield from _counter(
            instance, rule, asked.jobs, beyond, 0, bound.times, is_strict=bool(beyond), steady=frozenset(steady)
        )
