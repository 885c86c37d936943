"""The modes of a job: as one block of time, on all its cores or, if it is malleable, on a share of them (SD-3); or by
one of its alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpsched.booking.columns import Columns
from cpsched.domain import Instance, Job, Request, modes
from cpsched.rusv import FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledMode:
    """A mode of a job, compiled: how it is run from its start to its end."""

    #: The request, and its demand.
    request: Request
    demand: int
    #: The last start, in seconds from `now`.
    latest: int
    #: Seconds.
    duration: int


def compiled_modes(instance: Instance, job: Job, columns: Columns, *, is_awaited: bool) -> tuple[CompiledMode, ...]:
    """Return the modes of a waiting job, that on all its cores first; of an evolving one that of its first step; of one
    with alternatives one for each of its choices, in their order.

    `instance`, `job`: the window, and one of its waiting jobs. `columns`: gets the demands. `is_awaited`: whether
    others wait for the job's end. Then it is not shrunk: its end is known from its start.
    """
    if job.alternatives:
        return tuple(_chosen(instance, one, columns) for one in job.choices)
    walltime, request = job.walltime, job.steps[0].request
    if job.is_evolving or job.malleability is None or is_awaited:
        return (_compiled(instance, job, request, columns, walltime),)
    return tuple(_compiled(instance, job, mode.request, columns, mode.time_for(walltime)) for mode in modes(job))


def _chosen(instance: Instance, job: Job, columns: Columns) -> CompiledMode:
    """Return the mode of a job by one of its alternatives; one that is too long for its queue has no start."""
    mode = _compiled(instance, job, job.request, columns, job.walltime)
    most = None if job.queue is None else instance.queues[job.queue].max_walltime
    return mode if most is None or job.walltime <= most else replace(mode, latest=-1)


def _compiled(instance: Instance, job: Job, request: Request, columns: Columns, duration: int) -> CompiledMode:
    """Return a mode of a job that takes `duration` seconds."""
    last = instance.latest_start(job)
    latest = FOREVER if last is None else last - instance.now
    if job.deadline is not None:
        latest = min(latest, job.deadline - duration - instance.now)
    demand = columns.compile(request, job.licenses, job.walltime)
    return CompiledMode(request=request, demand=demand, latest=latest, duration=duration)
