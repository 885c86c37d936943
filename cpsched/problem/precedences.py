"""Dependencies between jobs as distances between their starts (OCCS-49)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cpsched.domain import Dependency, DependencyType, Instance, Job

__all__ = ["Awaited", "Lag", "Precedences", "awaited_ends"]


class Lag(NamedTuple):
    """A job starts at least `seconds` after the start of another; both are indices."""

    before: int
    after: int
    seconds: int
    #: Whether it waits for the other's end: if that takes longer than its walltime, so much longer.
    is_from_end: bool


class Awaited(NamedTuple):
    """The jobs that a dependency means: on an array it is one on each of its elements."""

    #: Those that wait themselves: (index, least seconds from its start).
    waiting: tuple[tuple[int, int], ...]
    #: The earliest start (s after `now`) that running jobs allow; None: a job has no start, so that there is none.
    released: int | None


class Precedences:
    """The dependencies of some waiting jobs on each other and on running jobs; mutable only in its cache.

    Parameters
    ----------
    instance, waiting
        The window, and some of its waiting jobs, whose indices count. What they wait for runs, is among them, or has no
        start.
    """

    def __init__(self, instance: Instance, waiting: Sequence[Job]) -> None:
        self._jobs, self._now = waiting, instance.now
        has_any = any(job.after for job in waiting)
        self._members = instance.members() if has_any else {}
        self._index = {job.id: index for index, job in enumerate(waiting)} if has_any else {}
        self._running = {job.id: job.running for job in instance.jobs if has_any and job.running is not None}
        self._known: dict[Dependency, Awaited] = {}

    def awaited(self, dependency: Dependency) -> Awaited:
        """Return the jobs that a dependency means, with the distances from their starts."""
        if dependency not in self._known:
            self._known[dependency] = self._resolve(dependency)
        return self._known[dependency]

    def _resolve(self, dependency: Dependency) -> Awaited:
        waiting, released = list[tuple[int, int]](), 0
        for name in self._members[dependency.job]:
            if name in self._index:
                index = self._index[name]
                waiting.append((index, dependency.lag(self._jobs[index].walltime)))
            elif name in self._running:
                running = self._running[name]
                lag = dependency.lag(running.segments[-1].end - running.start)
                released = max(released, running.start + lag - self._now)
            else:
                return Awaited(tuple(waiting), None)
        return Awaited(tuple(waiting), released)

    def lags(self) -> Iterator[Lag]:
        """Yield the distances between two of the jobs."""
        for after, job in enumerate(self._jobs):
            for dependency in job.after:
                is_from_end = dependency.type is not DependencyType.AFTER
                for before, seconds in self.awaited(dependency).waiting:
                    yield Lag(before, after, seconds, is_from_end)

    def released(self, job: Job) -> int | None:
        """Return the earliest start (s after `now`) that all jobs allow that it waits for and that run; None: none."""
        found = [self.awaited(dependency).released for dependency in job.after]
        known = [time for time in found if time is not None]
        return max(known, default=0) if len(known) == len(found) else None


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
