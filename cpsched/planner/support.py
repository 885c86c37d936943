"""The features that the planner cannot honour yet, and therefore refuses by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cpsched.domain import RULES, Instance, Job, needs_migration
from cpsched.problem import level_rule, levels_of


def uncompiled(instance: Instance) -> tuple[str, ...]:
    """Return the rules of an instance that was not made for engines, each with its path: no engine knows rules."""
    return tuple(
        f"{key}: {what}, which engines know only as `cpsched.problem.compiled` has them"
        for key, what in RULES.items()
        if getattr(instance, key)
    ) + tuple(
        f"cluster.topology.{level}: a level, by which engines know nodes only as `cpsched.problem.compiled` has them"
        for level in levels_of(instance)
        if not any(level_rule(level) in one.properties for one in instance.cluster.classes)
    )


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that the planner cannot honour, each with its path."""
    features = [*uncompiled(instance)]
    for job in instance.jobs:
        features.extend(f"job {job.id}: {what}" for what in _unsupported_of(job))
    return tuple(features)


def _unsupported_of(job: Job) -> Iterator[str]:
    """Yield the features of a job that lists of jobs cannot honour."""
    if job.running is not None:
        return
    if (moves := needs_migration(job.steps)) is not None:
        yield f"cannot keep its nodes from step to step: {moves}"
    if any(one.max_delay is not None for one in job.after):
        yield "starts at most some time after another (max_delay)"


def without_longest_delays(instance: Instance) -> Instance:
    """Return an instance in which jobs may wait for each other as long as they like."""
    if not any(one.max_delay is not None for job in instance.jobs for one in job.after):
        return instance
    jobs = (replace(job, after=tuple(replace(one, max_delay=None) for one in job.after)) for job in instance.jobs)
    return replace(instance, jobs=tuple(jobs))


def within_groups(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines cannot honour which know no groups of nodes."""
    return tuple(f"job {job.id}: within one {level}" for job in instance.jobs for level in sorted(job.levels))


def changing(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines for rigid waiting jobs cannot honour."""
    return tuple(
        f"job {job.id}: evolves over several steps" for job in instance.jobs if job.is_evolving and job.running is None
    )
