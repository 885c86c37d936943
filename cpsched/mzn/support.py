"""What the models do not say, or not in this size, and what is therefore refused by name."""

from __future__ import annotations

from cpsched import planner
from cpsched.domain import Instance, Job, modes, resumable
from cpsched.mzn.prices import MOST_INTEGER
from cpsched.mzn.times import Times

__all__ = ["unsupported"]

#: A model has a number for each kind of chunks and each node, and with more of them MiniZinc takes minutes to read it.
_MOST_PLACEMENTS = 100_000


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return what an instance asks for and the models do not know, each with the place that asks for it.

    They know what the planner does of rigid jobs; sizes are those of rigid jobs: where there are others, these come
    first.
    """
    others = (*planner.unsupported(instance), *planner.changing(instance), *_changed(instance), *_malleable(instance))
    return others or tuple(_too_large(instance))


def _changed(instance: Instance) -> list[str]:
    """Return the running jobs that do not hold the same from now to their end."""
    return [
        f"job {job.id}: its running allocation changes over time"
        for job in instance.jobs
        if job.running is not None and (job.is_evolving or len(job.running.segments) > 1)
    ]


def _malleable(instance: Instance) -> list[str]:
    """Return the jobs of which a plan may choose the share: a plan that shrinks one could be better than any here."""
    return [f"job {job.id}: can run on less cores" for job in instance.jobs if _can_shrink(instance, job)]


def _can_shrink(instance: Instance, job: Job) -> bool:
    """Tell whether a plan may run a job, or let it go on, with a share of its cores."""
    if job.running is not None:
        return resumable(job, instance.now) is not None
    return not job.is_evolving and len(modes(job)) > 1


def _too_large(instance: Instance) -> list[str]:
    """Return what is beyond the size or the integers of a model."""
    jobs = [job for job in instance.elements() if job.running is None]
    placements = sum(len(job.request.chunks) for job in jobs) * len(instance.cluster.node_names)
    amounts = [*instance.cluster.totals.values(), *instance.cluster.licenses.values()]
    if placements > _MOST_PLACEMENTS:
        return [f"jobs: {placements} pairs of a kind of chunks and a node; the model takes {_MOST_PLACEMENTS}"]
    features = []
    if max(amounts, default=0) > MOST_INTEGER:
        features.append(f"cluster: {max(amounts)} of one resource; the model takes {MOST_INTEGER}")
    horizon = Times.of(instance, jobs).horizon
    if horizon > MOST_INTEGER:
        features.append(f"jobs: together they may take {horizon} s; the model takes {MOST_INTEGER} s")
    return features
