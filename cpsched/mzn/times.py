"""When each job may start, and who waits for whom; in seconds from now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cpsched.domain import Dependency, DependencyType, Instance, Job

__all__ = ["Times"]


class _Lag(NamedTuple):
    """A job (by its place in the list) starts `seconds` or more after the start of another."""

    first: int
    then: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The starts that are allowed, job by job."""

    earliest: tuple[int, ...]
    latest: tuple[int, ...]
    lags: tuple[_Lag, ...]
    #: No job of a best plan ends later.
    horizon: int

    @classmethod
    def of(cls, instance: Instance, jobs: Sequence[Job]) -> Times:
        """Return the times of some waiting jobs of an instance; those that they depend on run, or are among them.

        In a best plan each job starts as early as it may by itself, or when another ends, or a lag after another's
        start, and so on, back to a first one or to the end of a running job: no two of these steps are the same, which
        gives the horizon.
        """
        now = instance.now
        places = {job.id: place for place, job in enumerate(jobs)}
        lags: list[_Lag] = []
        earliest = [_first(instance, job) - now for job in jobs]
        for place, job in enumerate(jobs):
            for other, dependency in _awaited(instance, job):
                if other.running is None:
                    lags.append(_Lag(places[other.id], place, _lag(other, dependency)))
                else:
                    earliest[place] = max(earliest[place], other.running.start + _lag(other, dependency) - now)
        ends = [job.running.segments[-1].end - now for job in instance.jobs if job.running is not None]
        horizon = max([0, *ends, *earliest]) + sum(job.walltime for job in jobs) + sum(lag.seconds for lag in lags)
        latest = tuple(min(_last(instance, job) - now, horizon - job.walltime) for job in jobs)
        return cls(earliest=tuple(earliest), latest=latest, lags=tuple(lags), horizon=horizon)

    @property
    def data(self) -> dict[str, Any]:
        """What a model is told of it."""
        return {
            "earliest": list(self.earliest),
            "latest": list(self.latest),
            "num_dependencies": len(self.lags),
            "first_job": [lag.first + 1 for lag in self.lags],
            "then_job": [lag.then + 1 for lag in self.lags],
            "lag": [lag.seconds for lag in self.lags],
            "horizon": self.horizon,
        }


def _first(instance: Instance, job: Job) -> int:
    """Return the earliest start that the job's own times leave."""
    return instance.earliest_start(job) if job.start_at is None else job.start_at


def _last(instance: Instance, job: Job) -> int | float:
    """Return the latest one; infinity where nothing bounds it."""
    by_deadline = None if job.deadline is None else job.deadline - job.walltime
    bounds = (job.start_at, by_deadline, instance.must_start_by(job))
    return min((bound for bound in bounds if bound is not None), default=float("inf"))


def _awaited(instance: Instance, job: Job) -> Iterator[tuple[Job, Dependency]]:
    """Yield the jobs that a job waits for; one that waits for an array waits for each of its elements."""
    if not job.after:
        return
    members = {entry.id: entry.element_ids for entry in instance.jobs}
    elements = {element.id: element for element in instance.elements()}
    for dependency in job.after:
        for name in members.get(dependency.job, (dependency.job,)):
            yield elements[name], dependency


def _lag(awaited: Job, dependency: Dependency) -> int:
    """Return the seconds from the start of the job that is waited for to the first start of the one that waits."""
    if dependency.type is DependencyType.AFTER:
        return dependency.delay
    if awaited.running is not None:
        return awaited.running.segments[-1].end - awaited.running.start + dependency.delay
    return awaited.walltime + dependency.delay
