"""The offered load of a workload, and the same jobs at a higher or lower rate of arrival."""

from __future__ import annotations

import math
from dataclasses import replace

from cpsched.domain import Instance, Job, NodeState


def offered_load(workload: Instance) -> float:
    """Return the offered load: the jobs' core seconds, as a share of the machine's from the first to the last
    submission.

    A job runs for its `runtime`, but at most for its walltime, and for its walltime where no runtime is known. The
    steps of an evolving job that ends early are assumed to end early in proportion. Nodes that are not up do not
    count.

    Raises `ValueError` if all jobs come at once, or the machine has no cores.
    """
    submits = [job.submit for job in workload.jobs]
    span = max(submits, default=0) - min(submits, default=0)
    cores = sum(
        len(node_class.names) * node_class.resources.get("cores", 0)
        for node_class in workload.cluster.classes
        if node_class.state is NodeState.UP
    )
    if not span or not cores:
        raise ValueError(f"Expected jobs that come one after the other and cores, got {span} s and {cores} cores")
    return sum(map(_core_seconds, workload.jobs)) / (span * cores)


def scaled(workload: Instance, load: float) -> Instance:
    """Return a workload with another rate of arrival, so that its offered load is `load`, up to whole seconds.

    The distances to the first submission are multiplied by one factor; so days are longer or shorter than they were.
    A job's own times (`not_before`, `start_at`, `deadline`) move with it.

    Raises `ValueError` if `load` is not positive, if all jobs come at once or there are no cores, or if jobs run or
    something else than jobs has times on the same clock: a reservation, an outage, or `now` between the submissions.
    """
    if not 0 < load < math.inf:
        raise ValueError(f"Expected a load > 0, got {load}")
    factor = offered_load(workload) / load
    first = min(job.submit for job in workload.jobs)
    is_fixed = workload.now > first or any(job.running is not None for job in workload.jobs)
    if is_fixed or workload.reservations or workload.outages:
        raise ValueError("Expected jobs that all arrive from now on, and no reservations or outages")

    def moved(job: Job) -> Job:
        return later(job, first + math.floor((job.submit - first) * factor) - job.submit)

    return replace(workload, jobs=tuple(moved(job) for job in workload.jobs))


def later(job: Job, seconds: int) -> Job:
    """Return a job that comes so much later, or earlier if negative, with all of its own times."""
    times = {name: getattr(job, name) for name in ("not_before", "start_at", "deadline")}
    moved = {name: time + seconds for name, time in times.items() if time is not None}
    return replace(job, submit=job.submit + seconds, **moved)


def _core_seconds(job: Job) -> float:
    """Return the core seconds of a job, over all elements of an array."""
    full = sum(step.walltime * step.request.totals.get("cores", 0) for step in job.steps)
    part = 1.0 if job.runtime is None else min(1.0, job.runtime / job.walltime)
    return full * part * len(job.element_ids)
