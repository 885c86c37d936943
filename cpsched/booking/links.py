"""Dependencies between jobs as milestones between the rows of the timeline's job table (OCCS-49), and the modes of a
job: as one block of time, on all its cores or, if it is malleable, on a share of them (SD-3); or by an alternative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched import rusv
from cpsched.booking.columns import Columns
from cpsched.domain import Instance, Job, Request, modes
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
    #: The latest start (s after `now`) that running jobs leave each job; `FOREVER`: any.
    latest: tuple[int, ...]

    @classmethod
    def of(cls, instance: Instance, waiting: Sequence[Job]) -> "Links":
        """Resolve the names in ``after``."""
        precedences = Precedences(instance, waiting)
        found = precedences.milestones()
        before, after = (
            np.array([(k, *entry) for k, part in enumerate(parts) for entry in part], dtype=np.int64).reshape(-1, 3)
            for parts in ([one.before for one in found], [one.after for one in found])
        )
        released = [FOREVER if (time := precedences.released(job)) is None else time for job in waiting]
        soon = np.array(
            [
                (one.after, one.before, one.seconds + (waiting[one.before].shortest if one.is_from_end else 0))
                for one in precedences.longest_delays()
            ],
            dtype=np.int64,
        ).reshape(-1, 3)
        latest = (precedences.latest(job) for job in waiting)
        return cls(
            links_of(len(waiting), before, after, soon),
            np.array(released, dtype=np.int64),
            tuple(FOREVER if last is None else last for last in latest),
        )


class CompiledMode(NamedTuple):
    """A mode of a job, compiled: how it is run from its start to its end."""

    #: The request, and its demand.
    request: Request
    demand: int
    #: The last start, in seconds from `now`.
    latest: int
    #: Seconds.
    duration: int


def compiled_modes(
    instance: Instance, job: Job, columns: Columns, *, is_awaited: bool, by: int = FOREVER
) -> tuple[CompiledMode, ...]:
    """Return the modes of a waiting job, that on all its cores first; of an evolving one that of its first step; of one
    with alternatives one for each of its choices, in their order.

    `instance`, `job`: the window, and one of its waiting jobs. `columns`: gets the demands. `is_awaited`: whether
    others wait for the job's end. Then it is not shrunk: its end is known from its start. `by`: the latest start
    (s after `now`) that running jobs leave it.
    """
    last, most = instance.latest_start(job), None
    until = by if last is None else min(by, last - instance.now)
    if job.alternatives:
        most = None if job.queue is None else instance.queues[job.queue].max_walltime
        # `Job.choices` would make a job of each
        asked = [(one.request, one.walltime, one.walltime) for one in (*job.steps, *job.alternatives)]
    elif job.is_evolving or job.malleability is None or is_awaited:
        asked = [(job.steps[0].request, job.walltime, job.walltime)]
    else:
        asked = [(mode.request, job.walltime, mode.time_for(job.walltime)) for mode in modes(job)]
    licenses = job.licenses_of_choices or (job.licenses,) * len(asked)

    def latest(duration: int) -> int:
        if most is not None and duration > most:
            return -1  # an alternative that is too long for the job's queue
        return until if job.deadline is None else min(until, job.deadline - duration - instance.now)

    return tuple(
        [
            CompiledMode(request, columns.compile(request, held, walltime), latest(duration), duration)
            for (request, walltime, duration), held in zip(asked, licenses, strict=True)
        ]
    )
