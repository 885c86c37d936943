"""What the planner cannot honour yet, and therefore refuses by name."""

from __future__ import annotations

from cpsched.domain import Instance, Job

__all__ = ["unsupported"]


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return what an instance asks for and the planner cannot honour, each with the place that asks for it."""
    features = [
        f"{key}: {what}"
        for key, what, present in (
            ("limits", "limits of consumers", instance.limits),
            ("free_pools", "free pools", instance.free_pools),
            ("reservations", "reservations and downtimes", instance.reservations),
        )
        if present
    ]
    for job in instance.jobs:
        features.extend(f"job {job.id}: {what}" for what in _unsupported_of(job))
    return tuple(features)


def _unsupported_of(job: Job) -> list[str]:
    """Return what one job asks for and the planner cannot honour."""
    asked = {
        "evolves over several steps": job.is_evolving,
        "malleable": job.malleability is not None,
        "depends on other jobs": bool(job.after),
        "runs inside a reservation": job.reservation is not None,
        "its running allocation has changed over time": job.running is not None and len(job.running.segments) > 1,
    }
    return [what for what, is_asked in asked.items() if is_asked]
