"""Dependencies between jobs as milestones between the rows of the timeline's job table (OCCS-49)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched import rusv
from cpsched.domain import Instance, Job
from cpsched.problem import Precedences
from cpsched.rusv import FOREVER, links_of


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The dependencies of some waiting jobs."""

    #: Those on each other, as a `JobTable` takes them.
    between: rusv.Links
    #: int64 (jobs,): the earliest start (s after `now`) that running jobs allow a job that waits for them;
    #: `FOREVER` if it waits for a job that neither runs nor is among these jobs.
    released: NDArray[np.int64]

    @classmethod
    def of(cls, instance: Instance, waiting: Sequence[Job]) -> Links:
        """Resolve the names in ``after``."""
        precedences = Precedences(instance, waiting)
        found = precedences.milestones()
        before, after = (
            np.array([(k, *entry) for k, part in enumerate(parts) for entry in part], dtype=np.int64).reshape(-1, 3)
            for parts in ([one.before for one in found], [one.after for one in found])
        )
        released = [FOREVER if (time := precedences.released(job)) is None else time for job in waiting]
        return cls(links_of(len(waiting), before, after), np.array(released, dtype=np.int64))
