"""Dependencies between jobs as links between the rows of the timeline's job table (OCCS-49)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Dependency, DependencyType, Instance, Job
from cpsched.rusv import FOREVER

__all__ = ["Links", "awaited_ends"]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The dependencies of some waiting jobs."""

    #: int64 (links, 3): (job, predecessor, lag) between two of these jobs, as a `JobTable` takes them.
    between: NDArray[np.int64]
    #: int64 (jobs,): the earliest start (s after `now`) that running jobs allow a job that waits for them;
    #: `FOREVER` if it waits for a job that neither runs nor is among these jobs.
    released: NDArray[np.int64]

    @classmethod
    def of(cls, instance: Instance, waiting: Sequence[Job]) -> Links:
        """Resolve the names in ``after``: a dependency on an array is one on each of its elements."""
        between: list[NDArray[np.int64]] = [np.zeros((0, 3), dtype=np.int64)]
        released = np.zeros(len(waiting), dtype=np.int64)
        if not any(job.after for job in waiting):
            return cls(between[0], released)
        resolver = _Resolver(instance, waiting)
        for row, job in enumerate(waiting):
            for dependency in job.after:
                lags, first = resolver.resolve(dependency)
                between.append(np.insert(lags, 0, row, axis=1))
                released[row] = max(released[row], first)
        return cls(np.concatenate(between), released)


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


class _Resolver:
    """Finds the jobs that dependencies mean, once for all elements of an array; mutable only in its cache."""

    def __init__(self, instance: Instance, waiting: Sequence[Job]) -> None:
        self._now = instance.now
        self._members = instance.members()
        self._waiting = {job.id: (row, job.walltime) for row, job in enumerate(waiting)}
        self._running = {job.id: job.running for job in instance.jobs if job.running is not None}
        self._known: dict[Dependency, tuple[NDArray[np.int64], int]] = {}

    def resolve(self, dependency: Dependency) -> tuple[NDArray[np.int64], int]:
        """Return (predecessor, lag) of those that wait themselves, and the first start (s after `now`) that all others
        leave.
        """
        if dependency not in self._known:
            lags: list[tuple[int, int]] = []
            first = 0
            for name in self._members[dependency.job]:
                if name in self._waiting:
                    row, walltime = self._waiting[name]
                    lags.append((row, dependency.lag(walltime)))
                elif name in self._running:
                    running = self._running[name]
                    lag = dependency.lag(running.segments[-1].end - running.start)
                    first = max(first, running.start + lag - self._now)
                else:
                    first = FOREVER
            self._known[dependency] = np.array(lags, dtype=np.int64).reshape(-1, 2), first
        return self._known[dependency]
