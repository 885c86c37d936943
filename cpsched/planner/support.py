"""The features that the planner cannot honour yet, and therefore refuses by name."""

from __future__ import annotations

from cpsched.domain import RULES, Instance, Job, needs_migration


def uncompiled(instance: Instance) -> tuple[str, ...]:
    """Return the rules of an instance that was not made for engines, each with its path: no engine knows rules."""
    return tuple(
        f"{key}: {what}, which engines know only as `cpsched.problem.compiled` has them"
        for key, what in RULES.items()
        if getattr(instance, key)
    )


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that the planner cannot honour, each with its path."""
    features = [*uncompiled(instance)]
    for job in instance.jobs:
        features.extend(f"job {job.id}: {what}" for what in _unsupported_of(job))
    return tuple(features)


def _unsupported_of(job: Job) -> list[str]:
    """Return the features of a job that the planner cannot honour."""
    moves = needs_migration(job.steps) if job.running is None else None
    asked = {
        f"cannot keep its nodes from step to step: {moves}": moves is not None,
    }
    return [what for what, is_asked in asked.items() if is_asked]


def changing(instance: Instance) -> tuple[str, ...]:
    """Return the features of an instance that engines for rigid waiting jobs cannot honour."""
    return tuple(
        f"job {job.id}: evolves over several steps" for job in instance.jobs if job.is_evolving and job.running is None
    )
