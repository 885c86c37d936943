"""The features and sizes that the models do not have, and that are therefore refused by name."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched import planner
from cpsched.domain import Instance, Job, ObjectiveTerm, modes, resumable
from cpsched.mzn.evolving import can_be_held
from cpsched.mzn.prices import MOST_INTEGER
from cpsched.mzn.times import Times
from cpsched.problem import Precedences, awaited_ends

#: A model has a number for each kind of chunks and each node, and a distance for each two jobs of which one waits for
#: the other; with more of them MiniZinc takes minutes to read it.
_MOST_PLACEMENTS = 100_000


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that the models do not have, each with its path.

    They have all features of the planner but these. Sizes are checked last, since they need the others.
    """
    others = (
        *planner.unsupported(instance),
        *planner.within_groups(instance),
        *_changed(instance),
        *_malleable(instance),
        *_slowed(instance),
    )
    return others or tuple(_too_large(instance))


def has_evolving(instance: Instance) -> bool:
    """Return whether any waiting job evolves: the model for such windows is another one."""
    return any(job.is_evolving for job in instance.jobs if job.running is None)


def _malleable(instance: Instance) -> list[str]:
    """Return the jobs that a plan may run or continue on a share of their cores: the models have all cores only."""
    return [
        f"job {job.id}: can run on fewer cores"
        for job in instance.jobs
        if (not job.is_evolving and len(modes(job)) > 1 if job.running is None else resumable(job, instance.now))
    ]


def _changed(instance: Instance) -> list[str]:
    """Return the running jobs whose allocation changes between now and their end."""
    return [
        f"job {job.id}: its running allocation changes over time"
        for job in instance.jobs
        if job.running is not None and sum(segment.end > instance.now for segment in job.running.segments) > 1
    ]


def _slowed(instance: Instance) -> list[str]:
    """Return the jobs whose steps can be held where that changes their slowdown, which is then not linear."""
    if ObjectiveTerm.SLOWDOWN not in instance.objective.weights:
        return []
    awaited = awaited_ends(instance)
    return [
        f"job {job.id}: slowdown of a job whose steps can be held"
        for job in instance.elements()
        if job.running is None and can_be_held(job, is_awaited=job.id in awaited)
    ]


def _too_large(instance: Instance) -> list[str]:
    """Return the figures that exceed the size or the integers of a model."""
    elements = (job for job in instance.elements() if job.running is None)
    jobs = [max(job.choices, key=lambda one: one.walltime) for job in elements]
    requests = [step.request for job in jobs for step in job.steps]
    placements = sum(len(request.chunks) for request in requests) * len(instance.cluster.node_names)
    amounts = [*instance.cluster.totals.values(), *instance.cluster.licenses.values()]
    if placements > _MOST_PLACEMENTS:
        return [f"jobs: {placements} pairs of a kind of chunks and a node; the model takes {_MOST_PLACEMENTS}"]
    pairs = sum(len(one.before) * len(one.after) for one in Precedences(instance, jobs).milestones())
    if pairs > _MOST_PLACEMENTS:
        return [f"jobs: {pairs} pairs of jobs of which one waits for the other; the model takes {_MOST_PLACEMENTS}"]
    features = []
    if max(amounts, default=0) > MOST_INTEGER:
        features.append(f"cluster: {max(amounts)} of one resource; the model takes {MOST_INTEGER}")
    horizon = _horizon(instance, jobs)
    if horizon > MOST_INTEGER:
        features.append(f"jobs: together they may take {horizon} s; the model takes {MOST_INTEGER} s")
    return features


def _horizon(instance: Instance, jobs: Sequence[Job]) -> int:
    """Return the seconds of the longest plan of a model."""
    held = sum(seconds or 0 for job in jobs for seconds in job.longest_steps) if has_evolving(instance) else 0
    return Times.of(instance, jobs, longer=held).horizon
