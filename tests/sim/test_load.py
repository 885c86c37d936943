"""A workload as arrays: who is refused before anything has happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import FrozenMap, MaxWait, NodeState, Outage, Queue, WaitingReason
from cpsched.lab.sim import BackfillRule, QueueRule
from cpsched.metrics import Ending
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sim.played import played, starts

FCFS = QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)


def test_kinds_of_chunks_that_never_fit_together_are_refused() -> None:
    """Each of two chunks fits, both do not: a job that asks for them is refused with the reason, and no job waits
    behind it.
    """
    odd = waiting("odd", 10, chunk(cores=3), chunk(cores=2))
    others = waiting("even", 10, chunk(cores=2), chunk(cores=2)), waiting("last", 10, chunk(cores=1), submit=1)
    history = played(window([nodes("n", cores=4)], odd, *others), FCFS)
    assert [Ending(code) for code in history.runs.ending] == [Ending.REFUSED, Ending.COMPLETED, Ending.COMPLETED]
    (refused,) = history.record().waiting_room
    assert (refused.id, refused.reason) == ("odd", WaitingReason.NOT_STARTED)
    assert "on the empty machine" in refused.detail


def test_who_runs_and_could_never_start_again_is_refused_when_he_is_cut_short() -> None:
    """A job that runs on two nodes, one of which is drained, asks for more than the other one has."""
    on = running("on", 20, n={"cores": 3}, m={"cores": 2})
    machine = [nodes("n", cores=4), nodes("m", cores=4, state=NodeState.DRAIN)]
    history = played(window(machine, on, outages=(Outage(nodes=("n",), start=5, end=8),)), FCFS)
    assert [Ending(code) for code in history.runs.ending] == [Ending.REFUSED]
    assert [(attempt.id, attempt.end) for attempt in history.record().attempts] == [("on", 5)]


@pytest.mark.parametrize("state", [NodeState.DRAIN, NodeState.DOWN])
def test_drained_nodes_break_like_others(state: NodeState) -> None:
    """A job that runs on a node that is to be emptied is cut short when it fails, and starts again elsewhere."""
    machine = [nodes("n", cores=1), nodes("m", cores=1, state=state)]
    instance = window(machine, running("on", 20, m={"cores": 1}), outages=(Outage(nodes=("m",), start=5, end=8),))
    history = played(instance, FCFS)
    assert starts(history) == {"on": 5}
    assert [(attempt.start, attempt.end) for attempt in history.record().attempts] == [(0, 5)]


def test_a_drained_node_stays_so_when_it_returns() -> None:
    """The end of an outage does not open a drained node: the second job waits for the first one."""
    machine = [nodes("n", cores=1), nodes("m", cores=1, state=NodeState.DRAIN)]
    jobs = [waiting(name, 10, chunk(cores=1), submit=9) for name in "ab"]
    assert starts(played(window(machine, *jobs, outages=(Outage(nodes=("m",), start=5, end=8),)), FCFS)) == {
        "a": 9,
        "b": 19,
    }


def test_only_who_may_not_start_in_time_is_too_late() -> None:
    """Of two jobs that share a request and a queue with a hard max_wait, only that is refused which may start too
    late.
    """
    first = waiting("first", 10, chunk(cores=1), queue="short", not_before=60)
    second = replace(first, id="second", not_before=None)
    queues = FrozenMap({"short": Queue(expected_wait=10, max_wait=MaxWait(seconds=50, is_hard=True))})
    history = played(window([nodes("n", cores=1)], first, second, queues=queues), FCFS)
    assert starts(history) == {"second": 0}
    assert [waiting.reason for waiting in history.record().waiting_room] == [WaitingReason.TOO_LATE]
