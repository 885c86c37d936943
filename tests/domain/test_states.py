"""The states of a request, and what may follow what."""

from __future__ import annotations

from cpsched.domain import AllocationFailed, JobAltered, JobEnded, JobExtended, RequestState, state_of
from cpsched.planner import EXPECTED_STATES
from cpsched.portfolio import solve
from tests.booking.small_windows import chunk, nodes, running, waiting, window

S = RequestState

#: The diagram of the paper, as far as it is drawn, and the way back of a job whose node fails.
DRAWN = {
    (S.SUBMITTED, S.PLANNED), (S.SUBMITTED, S.WAITING), (S.PLANNED, S.ALLOCATING), (S.ALLOCATING, S.RUNNING),
    (S.RUNNING, S.RELEASING), (S.RELEASING, S.DONE), (S.PLANNED, S.WAITING), (S.WAITING, S.PLANNED),
    (S.ALLOCATING, S.WAITING), (S.WAITING, S.ALLOCATING), (S.RUNNING, S.WAITING),
}  # fmt: skip


#: The state of a job after an event of it.
BECOMES = {JobEnded: S.DONE, JobAltered: S.WAITING, JobExtended: S.RELEASING, AllocationFailed: S.WAITING}


def may_become(state: RequestState, other: RequestState) -> bool:
    """Return whether the diagram leads from one state to another one, at once or later."""
    reached = {state}
    while more := {after for before, after in DRAWN if before in reached} - reached:
        reached |= more
    return other in reached


def test_events_follow_the_diagram() -> None:
    """Each event leads from each state in which it may happen to one that may follow it, and none has ended."""
    assert EXPECTED_STATES.keys() == BECOMES.keys()
    for event, expected in EXPECTED_STATES.items():
        assert all(may_become(state, BECOMES[event]) for state in expected)
        assert not expected & {S.DONE, S.CANCELLED, S.FAILED}


def test_the_state_of_a_job_is_that_of_its_window_and_plan() -> None:
    """A job runs, is to start now or later, waits in vain, is new, or is not there."""
    one = window(
        [nodes("a", cores=4)],
        running("r", 10, a={"cores": 2}),
        waiting("now", 5, chunk(cores=2)),
        waiting("later", 5, chunk(cores=4)),
        waiting("never", 5, chunk(cores=9)),
    )
    plan = solve(one, engine="planner", budget=0)
    states = {name: state_of(one, plan, name) for name in ("r", "now", "later", "never", "gone")}
    assert states == {"r": S.RUNNING, "now": S.ALLOCATING, "later": S.PLANNED, "never": S.WAITING, "gone": None}
    new = window([nodes("a", cores=4)], waiting("new", 5, chunk(cores=4)))
    assert state_of(new, plan, "new") is S.SUBMITTED
