"""In which order waiting jobs are planned."""

from __future__ import annotations

from cpsched.domain import Instance, Job

__all__ = ["planning_order"]


def planning_order(instance: Instance, jobs: tuple[Job, ...]) -> list[Job]:
    """Order waiting jobs: fixed starts, then deadlines, then the rest; each by priority, then by submission, then as
    given.

    The job types come first as in OpenCCS, section 5 (OCCS-35): who can run at one time only is served before those
    who can wait.
    """

    def key(job: Job) -> tuple[int, int, int]:
        kind = 0 if job.start_at is not None else 1 if job.deadline is not None else 2
        return kind, -instance.priority(job), job.submit

    return sorted(jobs, key=key)
