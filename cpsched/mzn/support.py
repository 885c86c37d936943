"""The features and sizes that the models do not have, and that are therefore refused by name."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched import planner
from cpsched.domain import Instance, Job, ObjectiveTerm, modes, resumable
from cpsched.mzn.evolving import can_be_held
from cpsched.mzn.malleable import lending, longer_by, parts_of
from cpsched.mzn.prices import MOST_INTEGER
from cpsched.mzn.times import Times
from cpsched.problem import Precedences, awaited_ends

__all__ = ["model_for", "unsupported"]

#: A model has a number for each kind of chunks and each node, and a distance for each two jobs of which one waits for
#: the other; with more of them MiniZinc takes minutes to read it.
_MOST_PLACEMENTS = 100_000


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that the models do not have, each with its path.

    They have all features of the planner but these. Sizes are checked last, since they need the others.
    """
    others = (*planner.unsupported(instance), *_changed(instance), *_mixed(instance), *_slowed(instance))
    return others or tuple(_too_large(instance))


def model_for(instance: Instance) -> str:
    """Return the name of the model for an instance."""
    if any(job.is_evolving for job in instance.jobs if job.running is None):
        return "evolving"
    return "malleable" if any(_can_shrink(instance, job) for job in instance.jobs) else "window"


def _can_shrink(instance: Instance, job: Job) -> bool:
    """Return whether a plan may run or continue a job on a share of its cores."""
    if job.running is not None:
        return resumable(job, instance.now) is not None
    return not job.is_evolving and len(modes(job)) > 1


def _changed(instance: Instance) -> list[str]:
    """Return the running jobs whose allocation changes between now and their end, and that no model may change."""
    changeable = lending(instance)
    return [
        f"job {job.id}: its running allocation changes over time"
        for job in instance.jobs
        if job.running is not None and sum(segment.end > instance.now for segment in job.running.segments) > 1
        if job.id not in changeable or model_for(instance) != "malleable"
    ]


def _mixed(instance: Instance) -> list[str]:
    """Return the jobs that can run on fewer cores beside jobs that evolve: each kind has a model, but no model has
    both.
    """
    if model_for(instance) != "evolving":
        return []
    return [
        f"job {job.id}: can run on fewer cores, beside jobs that evolve"
        for job in instance.jobs
        if _can_shrink(instance, job)
    ]


def _slowed(instance: Instance) -> list[str]:
    """Return the jobs whose steps can be held where that changes their slowdown, which is then not linear in
    integers.
    """
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
    jobs = [job for job in instance.elements() if job.running is None]
    requests = [step.request for job in jobs for step in job.steps for _ in range(_num_modes(job))]
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


def _num_modes(job: Job) -> int:
    return 1 if job.is_evolving else len(modes(job))


def _horizon(instance: Instance, jobs: Sequence[Job]) -> int:
    """Return the seconds of the longest plan of a model; where it counts work, in units of work, and from the
    submission of the job that has waited longest, on which slowdowns depend.
    """
    match model_for(instance):
        case "evolving":
            held = sum(seconds or 0 for job in jobs for seconds in job.longest_steps)
            return Times.of(instance, jobs, longer=held).horizon
        case "malleable":
            parts = max((parts_of(left) for left in lending(instance).values()), default=1)
            waited = max((instance.now - job.submit for job in jobs if job.malleability is not None), default=0)
            return Times.of(instance, jobs, longer=longer_by(instance, jobs)).horizon * parts + max(0, waited)
    return Times.of(instance, jobs).horizon
