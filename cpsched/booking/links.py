"""Dependencies between jobs as links between the rows of the timeline's job table (OCCS-49)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Dependency, Instance, Job
from cpsched.problem import Precedences
from cpsched.rusv import FOREVER

__all__ = ["Links"]


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
        precedences = Precedences(instance, waiting)
        rows_of: dict[Dependency, NDArray[np.int64]] = {}  # the same for all elements of an array
        for row, job in enumerate(waiting):
            for dependency in job.after:
                awaited = precedences.awaited(dependency)
                if dependency not in rows_of:
                    rows_of[dependency] = np.array(awaited.waiting, dtype=np.int64).reshape(-1, 2)
                between.append(np.insert(rows_of[dependency], 0, row, axis=1))
                released[row] = max(released[row], FOREVER if awaited.released is None else awaited.released)
        return cls(np.concatenate(between), released)
