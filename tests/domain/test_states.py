"""The states of a request, and what may follow what."""

from __future__ import annotations

from itertools import product

import pytest

from cpsched.domain import TRANSITIONS, RequestState, may_become, state_of
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


@pytest.mark.parametrize(("state", "other"), list(product(S, S)))
def test_exactly_these_transitions_are_allowed(state: RequestState, other: RequestState) -> None:
    """What is drawn, and from everything that has not ended to cancelled and failed."""
    may_end = state not in (S.DONE, S.CANCELLED, S.FAILED) and other in (S.CANCELLED, S.FAILED)
    assert (other in TRANSITIONS[state]) == ((state, other) in DRAWN or may_end)


def test_what_has_ended_remains_so() -> None:
    """All states lead to an end, and no end leads anywhere."""
    assert all(may_become(state, S.CANCELLED) for state in S if TRANSITIONS[state])
    assert may_become(S.SUBMITTED, S.DONE)
    assert not any(may_become(end, other) for end in (S.DONE, S.CANCELLED, S.FAILED) for other in S)
    assert not may_become(S.RELEASING, S.RUNNING)


def test_events_follow_the_transitions() -> None:
    """Each event leads from each state in which it may happen to one that may follow it, at once or later."""
    for expected, becomes in EXPECTED_STATES.values():
        assert all(may_become(state, becomes) for state in expected)


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
