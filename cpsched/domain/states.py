"""The states of a request from its submission to its end, and which may follow which (OCCS-37)."""

from __future__ import annotations

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


_S = RequestState
_ENDED = frozenset({_S.CANCELLED, _S.FAILED})

#: The states that may follow each one; from `DONE`, `CANCELLED` and `FAILED` there is no way back.
TRANSITIONS: dict[RequestState, frozenset[RequestState]] = {
    _S.SUBMITTED: frozenset({_S.PLANNED, _S.WAITING}) | _ENDED,
    _S.PLANNED: frozenset({_S.ALLOCATING, _S.WAITING}) | _ENDED,
    _S.ALLOCATING: frozenset({_S.RUNNING, _S.WAITING}) | _ENDED,
    # a job whose node fails begins anew
    _S.RUNNING: frozenset({_S.RELEASING, _S.WAITING}) | _ENDED,
    _S.RELEASING: frozenset({_S.DONE}) | _ENDED,
    _S.WAITING: frozenset({_S.PLANNED, _S.ALLOCATING}) | _ENDED,
    _S.DONE: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.FAILED: frozenset(),
}


def may_become(state: RequestState, other: RequestState) -> bool:
    """Return whether a request in one state may be in another one later."""
    reached, pending = set[RequestState](), [state]
    while pending:
        for follower in TRANSITIONS[pending.pop()] - reached:
            reached.add(follower)
            pending.append(follower)
    return other in reached


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
