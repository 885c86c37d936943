"""The place of a job in a plan that is made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpsched.domain import Job, Placement, PlannedJob, Running, Segment

__all__ = ["placed_job"]


def placed_job(job: Job, hosts: Sequence[str], start: int, *, is_running: bool = False) -> tuple[Job, PlannedJob]:
    """Return a job of one step and one kind of chunks, and its place in a plan: one chunk on each of some nodes, from a
    second on. If it `is_running`, the job says so.
    """
    held = job.request.chunks[0].resources
    allocation = tuple(Placement(node=host, resources=held, chunk=0, count=1) for host in hosts)
    segments = (Segment(start=start, end=start + job.walltime, allocation=allocation),)
    running = Running(start=start, segments=segments) if is_running else None
    return replace(job, running=running), PlannedJob(
        id=job.id, start=start, end=start + job.walltime, segments=segments
    )
