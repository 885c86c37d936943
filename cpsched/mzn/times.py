"""The allowed starts of each job, and the dependencies between jobs; in seconds from now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cpsched.domain import Instance, Job
from cpsched.problem import Lag, Precedences


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The starts that are allowed, job by job."""

    earliest: tuple[int, ...]
    latest: tuple[int, ...]
    lags: tuple[Lag, ...]
    #: No job of a best plan ends later.
    horizon: int

    @classmethod
    def of(cls, instance: Instance, jobs: Sequence[Job], longer: int = 0) -> Times:
        """Return the times of some waiting jobs of an instance; those that they depend on run, or are among them.

        A job that waits for an array waits for each of its elements.

        In a best plan each job starts as early as it may by itself, or when another ends, or a lag after another's
        start, and so on, back to a first one, or to the end of a running job or of something set aside: no two of these
        steps are the same, which gives the horizon. `longer`: the most seconds by which all jobs together, running ones
        too, may take longer than the instance states.
        """
        now = instance.now
        precedences = Precedences(instance, jobs)
        lags = tuple(lag for milestone in precedences.milestones() for lag in milestone.lags())
        earliest = [precedences.earliest(job) or 0 for job in jobs]
        ends = [job.running.segments[-1].end - now for job in instance.jobs if job.running is not None]
        longest = longer + sum(job.walltime for job in jobs) + sum(lag.seconds for lag in lags)
        horizon = instance.last_end(max([0, *ends, *earliest]), longest)
        last = [instance.latest_start(job) for job in jobs]
        latest = tuple(
            horizon - job.walltime if bound is None else min(bound - now, horizon - job.walltime)
            for job, bound in zip(jobs, last, strict=True)
        )
        return cls(earliest=tuple(earliest), latest=latest, lags=lags, horizon=horizon)

    @property
    def data(self) -> dict[str, Any]:
        """The times as data of a model."""
        return {
            "earliest": list(self.earliest),
            "latest": list(self.latest),
            "num_dependencies": len(self.lags),
            "first_job": [lag.before + 1 for lag in self.lags],
            "then_job": [lag.after + 1 for lag in self.lags],
            "lag": [lag.seconds for lag in self.lags],
            "horizon": self.horizon,
        }
