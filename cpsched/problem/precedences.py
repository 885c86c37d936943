"""Dependencies between jobs as distances between their starts (OCCS-49).

An array that waits for an array is not a distance for each pair of their elements, but one milestone between both: what
depends on dependencies takes time and memory for the elements, not for the pairs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from graphlib import TopologicalSorter
from operator import or_
from typing import NamedTuple

from cpsched.domain import Dependency, DependencyType, Instance, Job

#: Of more milestones none is left out: a set of bits for each takes memory for pairs of them.
_MOST_REDUCED = 10_000


class Lag(NamedTuple):
    """A job starts at least `seconds` after the start of another; both are indices."""

    before: int
    after: int
    seconds: int


class Milestone(NamedTuple):
    """Some jobs, by index, let others start when each of them has been running for its seconds."""

    #: (index, seconds).
    before: tuple[tuple[int, int], ...]
    #: (index, least seconds from the milestone to the start).
    after: tuple[tuple[int, int], ...]
    #: Whether it is reached when they end: if one takes longer than its walltime, or its shortest one, so much later.
    is_from_end: bool

    def lags(self) -> Iterator[Lag]:
        """Yield the distances between two jobs, pair by pair."""
        return (Lag(one, other, seconds + delay) for other, delay in self.after for one, seconds in self.before)

    def among(self, place: Mapping[int, int]) -> "Milestone":
        """Return the rest of a milestone between some jobs, which get other indices."""
        return Milestone(
            tuple((place[job], seconds) for job, seconds in self.before if job in place),
            tuple((place[job], delay) for job, delay in self.after if job in place),
            self.is_from_end,
        )


def by_job(entries: Iterable[Sequence[tuple[int, int]]]) -> dict[int, list[tuple[int, int]]]:
    """Return the entries of milestones, in their order, by job: (number of the milestone, seconds)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, of_milestone in enumerate(entries):
        for job, seconds in of_milestone:
            found.setdefault(job, []).append((number, seconds))
    return found


class LongestDelay(NamedTuple):
    """A job starts at most `seconds` after the start of another, or after its end; both are indices."""

    before: int
    after: int
    seconds: int
    is_from_end: bool


class _Awaited(NamedTuple):
    """The jobs of one name, which may be an array's, and the seconds from their starts that count."""

    #: Those that wait themselves: (index, seconds).
    waiting: tuple[tuple[int, int], ...]
    #: When the last of those that run has run for its seconds (s after `now`); None: none of them runs.
    passed: int | None
    #: Whether one of them has no start.
    is_lost: bool


class Precedences:
    """The dependencies of some waiting jobs on each other and on running jobs; mutable only in its cache.

    `instance`, `waiting`: the window, and some of its waiting jobs, whose indices count. What they wait
    for runs, is among them, or has no start.
    """

    def __init__(self, instance: Instance, waiting: Sequence[Job]) -> None:
        self._jobs, self._instance, self._now = waiting, instance, instance.now
        has_any = any(job.after for job in waiting)
        self._members = instance.members() if has_any else {}
        self._index = {job.id: index for index, job in enumerate(waiting)} if has_any else {}
        self._running = {job.id: job.running for job in instance.jobs if has_any and job.running is not None}
        self._known: dict[tuple[str, bool], _Awaited] = {}

    def _awaited(self, dependency: Dependency) -> _Awaited:
        """Return the jobs that a dependency means: on an array it is one on each of its elements."""
        key = _event_of(dependency)
        if key not in self._known:
            self._known[key] = self._resolved(*key)
        return self._known[key]

    def _resolved(self, entry: str, is_from_end: bool) -> _Awaited:
        waiting, passed, is_lost = list[tuple[int, int]](), list[int](), False
        for name in self._members[entry]:
            if name in self._index:
                index = self._index[name]
                waiting.append((index, self._jobs[index].shortest if is_from_end else 0))
            elif name in self._running:
                running = self._running[name]
                passed.append(running.segments[-1].end if is_from_end else running.start)
            else:
                is_lost = True
        return _Awaited(tuple(waiting), max(passed) - self._now if passed else None, is_lost)

    def milestones(self) -> tuple[Milestone, ...]:
        """Return the milestones between the jobs, `reduced`, in the order in which jobs wait for them."""
        after: dict[tuple[str, bool], list[tuple[int, int]]] = {}
        for index, job in enumerate(self._jobs):
            for dependency in job.after:
                if self._awaited(dependency).waiting:
                    after.setdefault(_event_of(dependency), []).append((index, dependency.delay))
        return reduced([Milestone(self._known[key].waiting, tuple(jobs), key[1]) for key, jobs in after.items()])

    def longest_delays(self) -> tuple[LongestDelay, ...]:
        """Return the longest delays between waiting jobs, in document order."""
        return tuple(
            LongestDelay(self._awaited(one).waiting[0][0], index, one.max_delay, one.type is not DependencyType.AFTER)
            for index, job in enumerate(self._jobs)
            for one in job.after
            if one.max_delay is not None and self._awaited(one).waiting
        )

    def latest(self, job: Job) -> int | None:
        """Return the latest start (s after `now`) that running jobs leave a job; None: any."""
        limits = ((self._awaited(one).passed, one.max_delay) for one in job.after if one.max_delay is not None)
        return min((time + most for time, most in limits if time is not None), default=None)

    def earliest(self, job: Job) -> int | None:
        """Return the earliest start (s after `now`) that its own times and running jobs leave a job; None: none."""
        released = self.released(job)
        if released is None:
            return None
        return max(released, own_start(self._instance, job) - self._now)

    def released(self, job: Job) -> int | None:
        """Return the earliest start (s after `now`) that all jobs allow that it waits for and that run; None: none."""
        earliest = 0
        for dependency in job.after:
            awaited = self._awaited(dependency)
            if awaited.is_lost:
                return None
            if awaited.passed is not None:
                earliest = max(earliest, awaited.passed + dependency.delay)
        return earliest


def reduced(milestones: Sequence[Milestone]) -> tuple[Milestone, ...]:
    """Return milestones without the waits that others imply: their transitive reduction, where there is no delay.

    A milestone is *ahead* of another one, for which a job waits that waits for it, directly or not. A job that waits
    for both needs no wait without a delay for the first. *Proof*: between two milestones there is a job that starts
    after the one, and the other is not before its start, however long it takes. No delay is negative, so the second is
    not earlier than the first. All these waits may go at once: the last milestone of such a chain stays, for there is
    no cycle.

    milestones: At most `_MOST_REDUCED`; more are returned as they are.
    """
    waiting = [job for one in milestones for job, _ in one.after]
    if len(milestones) > _MOST_REDUCED or len(set(waiting)) == len(waiting):
        return tuple(milestones)
    leads, waits = by_job(one.before for one in milestones), by_job(one.after for one in milestones)
    following = {
        number: {other for job, _ in one.after for other, _ in leads.get(job, ())}
        for number, one in enumerate(milestones)
    }
    ahead_of: dict[int, int] = {}  # the milestones after each one, as bits
    for number in TopologicalSorter(following).static_order():
        ahead_of[number] = reduce(or_, (1 << other | ahead_of[other] for other in following[number]), 0)
    waited = {job: reduce(or_, (1 << number for number, _ in of_job)) for job, of_job in waits.items()}
    left = (
        one._replace(after=tuple(wait for wait in one.after if wait[1] or not ahead_of[number] & waited[wait[0]]))
        for number, one in enumerate(milestones)
    )
    return tuple(one for one in left if one.after)


def _event_of(dependency: Dependency) -> tuple[str, bool]:
    """Return the job or array that a dependency names, and whether it is their end that counts."""
    return dependency.job, dependency.type is not DependencyType.AFTER


def own_start(instance: Instance, job: Job) -> int:
    """Return the earliest second at which a waiting job may start by its own times alone."""
    earliest = instance.earliest_start(job)
    return earliest if job.start_at is None else max(earliest, job.start_at)


def awaited_ends(instance: Instance) -> frozenset[str]:
    """Return the jobs for whose end others wait, by id."""
    members = instance.members() if any(job.after for job in instance.jobs) else {}
    return frozenset(
        name
        for job in instance.jobs
        for dependency in job.after
        if dependency.type is not DependencyType.AFTER
        for name in members.get(dependency.job, ())
    )


def missing_from(instance: Instance, found: Collection[str]) -> Callable[[str], str | None]:
    """Return a function that tells, of the jobs behind a name that dependencies give, the first that is not `found`."""
    members = instance.members()

    @cache
    def missing(entry: str) -> str | None:
        return next((name for name in members[entry] if name not in found), None)

    return missing


def left_without(instance: Instance, lost: Collection[str]) -> frozenset[str]:
    """Return the ids of all jobs but some, without those that wait for one of these, directly or not."""
    jobs, gone = instance.elements(), set(lost)
    left = {job.id for job in jobs}
    while gone:
        left -= gone
        missing = missing_from(instance, left)
        gone = {
            job.id
            for job in jobs
            if job.id in left and job.running is None and any(missing(one.job) for one in job.after)
        }
    return frozenset(left)
