"""The states of a request from its submission to its end (OCCS-37)."""

from enum import StrEnum

from cpsched.domain.instance import Instance
from cpsched.domain.plan import Plan


class RequestState(StrEnum):
    """The state of a request."""

    SUBMITTED = "submitted"
    PLANNED = "planned"
    #: Its planned start has come: the resource manager makes its nodes ready.
    ALLOCATING = "allocating"
    RUNNING = "running"
    RELEASING = "releasing"
    DONE = "done"
    #: Accepted, but without a start: in the waiting room.
    WAITING = "waiting"
    CANCELLED = "cancelled"
    FAILED = "failed"


def state_of(instance: Instance, plan: Plan, job_id: str) -> RequestState | None:
    """Return the state of a job, or of an element of an array, at `now`; None if the instance does not have it.

    `plan`: the last plan. A job that it does not have is `SUBMITTED`.
    """
    job = next((job for job in instance.elements() if job.id == job_id), None)
    if job is None:
        return None
    if job.running is not None:
        return RequestState.RUNNING
    planned = next((planned for planned in plan.jobs if planned.id == job_id), None)
    if planned is not None:
        return RequestState.PLANNED if planned.start > instance.now else RequestState.ALLOCATING
    is_waiting = any(waiting.id == job_id for waiting in plan.waiting_room)
    return RequestState.WAITING if is_waiting else RequestState.SUBMITTED
