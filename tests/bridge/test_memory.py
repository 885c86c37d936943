"""The manager in memory: what its snapshots say, what each order does, and what its own scheduler does without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import NodeState
from cpsched.errors import BridgeError
from cpsched.site.bridge import Announce, Gate, HandBack, Hold, JobState, MemoryManager, Refusal, Result, Start
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, on, site, starts, world


def outcome_of(manager: MemoryManager, *orders: Start | Hold | Announce | HandBack | Gate) -> list[object]:
    """Return the refusal of each order, or its result."""
    return [receipt.refusal or receipt.result for receipt in manager.apply(orders)]


def test_an_ordered_job_starts_at_its_second_on_its_nodes() -> None:
    """A steered job waits for its order, starts at the second ordered on the nodes ordered, and ends by its runtime."""
    manager = MemoryManager(world(job("a", runtime=30)))
    revision = manager.snapshot().jobs["a"].revision
    assert outcome_of(manager, Start(job="a", at=10, allocation=on("n2"), revision=revision)) == [Result.DONE]
    assert manager.snapshot().jobs["a"].due == 10
    manager.world.advance(9)
    assert manager.snapshot().jobs["a"].state is JobState.WAITING
    manager.world.advance(10)
    facts = manager.snapshot().jobs["a"]
    assert (facts.state, facts.start, facts.nodes) == (JobState.RUNNING, 10, ("n2",))
    manager.world.advance(100)
    facts = manager.snapshot().jobs["a"]
    assert (facts.state, facts.end) == (JobState.COMPLETED, 40)


def test_nobody_learns_a_runtime() -> None:
    """No job of a snapshot says how long it really runs, whether it waits or runs."""
    manager = MemoryManager(world(job("a", runtime=30), job("b", runtime=7), gate_is_closed=False))
    assert [one.runtime for one in manager.snapshot().instance.jobs] == [None, None]


def test_orders_are_idempotent() -> None:
    """Each order given twice is done once, and the second receipt says so, also when the job runs by then."""
    manager = MemoryManager(world(job("a", runtime=30)))
    start = Start(job="a", at=5, allocation=on("n1"), revision=manager.snapshot().jobs["a"].revision)
    shown = Announce(job="a", start=5, nodes=("n1",), why="the first")
    assert outcome_of(manager, Gate(until=300), shown, shown) == [Result.ALREADY, Result.DONE, Result.ALREADY]
    assert outcome_of(manager, start, start) == [Result.DONE, Result.ALREADY]
    assert outcome_of(manager, Hold(job="a", until=300), Hold(job="a", until=300), start) == [
        Result.DONE,
        Result.ALREADY,
        Result.DONE,
    ]
    manager.world.advance(6)
    assert outcome_of(manager, start) == [Result.ALREADY]
    assert starts(manager.snapshot()) == {"a": 5}


@pytest.mark.parametrize(
    ("deed", "refusal"),
    [
        (lambda w: w.cancel("a"), Refusal.GONE),
        (lambda w: w.hold("a"), Refusal.HELD),
        (lambda w: w.start_by_hand("a"), Refusal.RUNNING),
        (lambda w: w.alter(replace(w.jobs["a"].job, steps=site(job("a", "ncpus=2")).jobs[0].steps)), Refusal.CHANGED),
        (lambda w: (w.hold("a"), w.release("a")), Refusal.CHANGED),
        (lambda w: w.set_node("n2", NodeState.DRAIN), Refusal.NODES),
    ],
)
def test_what_happened_meanwhile_is_respected(deed: object, refusal: Refusal) -> None:
    """A job that was cancelled, held, started or changed after it was planned is not started, nor on a drained node."""
    manager = MemoryManager(world(job("a")))
    start = Start(job="a", at=0, allocation=on("n2"), revision=manager.snapshot().jobs["a"].revision)
    deed(manager.world)  # type: ignore[operator]  # one of the functions above
    assert outcome_of(manager, start) == [refusal]


def test_an_impossible_allocation_is_refused() -> None:
    """A job does not start on an unknown node, nor with less than it asks for."""
    manager = MemoryManager(world(job("a", "2:ncpus=4")))
    revision = manager.snapshot().jobs["a"].revision
    orders = [Start(job="a", at=0, allocation=on(*nodes), revision=revision) for nodes in (["n7", "n1"], ["n1"])]
    assert outcome_of(manager, *orders) == [Refusal.NODES, Refusal.IMPOSSIBLE]
    assert outcome_of(manager, replace(orders[0], job="nobody")) == [Refusal.GONE]


def test_a_busy_node_lets_an_ordered_job_wait() -> None:
    """A job that is ordered onto a busy node starts there as soon as the node is free."""
    manager = MemoryManager(world(job("a", runtime=30), job("b")))
    for name in ("a", "b"):
        revision = manager.snapshot().jobs[name].revision
        assert outcome_of(manager, Start(job=name, at=0, allocation=on("n1"), revision=revision)) == [Result.DONE]
    manager.world.advance(31)
    assert starts(manager.snapshot()) == {"a": 0, "b": 30}


def test_what_is_handed_back_starts_in_turn() -> None:
    """The own scheduler serves in order: a job that fits waits while one ahead of it does not."""
    jobs = [job("a"), job("head", "2:ncpus=4"), job("long", walltime=200), job("short", walltime=50)]
    manager = MemoryManager(world(*jobs))
    manager.world.advance(5)
    assert set(starts(manager.snapshot()).values()) == {None}
    assert outcome_of(manager, *(HandBack(job=one["id"]) for one in jobs)) == [Result.DONE] * 4
    manager.world.advance(500)
    assert starts(manager.snapshot()) == {"a": 5, "head": 105, "long": 205, "short": 205}


def test_a_failed_node_lets_its_jobs_wait_again() -> None:
    """A job whose node fails waits again with another revision, and its earlier order does not hold any more."""
    manager = MemoryManager(world(job("a"), outages=[{"nodes": "n1", "start": 20, "end": 60}]))
    start = Start(job="a", at=0, allocation=on("n1"), revision=manager.snapshot().jobs["a"].revision)
    assert outcome_of(manager, start) == [Result.DONE]
    manager.world.advance(30)
    snapshot = manager.snapshot()
    facts = snapshot.jobs["a"]
    assert (facts.state, facts.restarts, facts.start, facts.due) == (JobState.WAITING, 1, None, None)
    assert [one.state for one in snapshot.instance.cluster.classes] == [NodeState.DOWN, NodeState.UP]
    assert snapshot.instance.cluster.node_names == ("n1", "n2")
    assert outcome_of(manager, start) == [Refusal.CHANGED]
    manager.world.advance(60)
    assert manager.snapshot().instance.cluster.classes == manager.world.site.cluster.classes


def test_jobs_that_cannot_be_planned_are_left() -> None:
    """Held jobs, those that wait for them, and those whose dependency is never met are left, each with a reason."""
    after = [{"job": "a", "type": "afterok"}]
    never = [{"job": "a", "type": "afternotok"}]
    there = world(job("a", runtime=10), job("b", after=after), job("c", after=never))
    manager = MemoryManager(there)
    there.hold("a")
    assert {one.id: one.reason.split(",")[0] for one in manager.snapshot().left} == {
        "a": "held by its user",
        "b": "waits for a",
        "c": "waits for a",
    }
    there.release("a")
    assert manager.snapshot().left == ()
    assert there.start_by_hand("a")
    there.advance(10)
    snapshot = manager.snapshot()
    assert [(one.id, one.after, one.not_before) for one in snapshot.instance.jobs] == [("b", (), 10)]
    assert [one.id for one in snapshot.left] == ["c"]


def test_a_job_may_wait_for_one_that_stands_after_it() -> None:
    """Of the jobs that a world begins with, one may wait for another that stands later in the document."""
    there = world(job("a", after=[{"job": "b", "type": "afterany"}]), job("b", runtime=10))
    manager = MemoryManager(there)
    assert [one.id for one in manager.snapshot().instance.jobs] == ["a", "b"]
    assert there.start_by_hand("b")
    there.advance(10)
    assert manager.snapshot().instance.jobs[0].after == ()


def test_an_open_gate_leaves_new_jobs_to_the_manager() -> None:
    """With the gate open a job that arrives starts by itself, and with the gate closed it waits for an order."""
    there = world()
    manager = MemoryManager(there)
    there.submit(site(job("a")).jobs[0])
    assert outcome_of(manager, Gate(until=None)) == [Result.DONE]
    there.submit(site(job("b")).jobs[0])
    assert starts(manager.snapshot()) == {"a": None, "b": 0}


def test_watching_lets_virtual_time_pass_to_the_next_change() -> None:
    """Virtual time passes in `watch` only: to the next change, or for as long as asked."""
    manager = MemoryManager(world(job("a", submit=50)))
    assert (manager.watch(30), manager.world.now) == (False, 30)
    assert (manager.watch(30), manager.world.now) == (True, 50)


def test_a_ticking_world_follows_the_clock() -> None:
    """With a speed, world seconds pass as the clock on the wall does, that many times as fast."""
    seconds = [100.0]
    manager = MemoryManager(world(), speed=60, clock=lambda: seconds[0])
    seconds[0] += 2
    assert manager.snapshot().taken_at == 120


def test_what_is_long_over_is_forgotten() -> None:
    """A job that ended longer ago than the manager remembers is not in the snapshot, and not in memory."""
    manager = MemoryManager(PlayedWorld(site(job("a", runtime=10)), remember=100))
    manager.world.advance(110)
    assert "a" in manager.snapshot().jobs
    manager.world.advance(111)
    assert manager.world.jobs == {}


def test_evolving_jobs_are_refused() -> None:
    """The world in memory has no evolving jobs, and says so."""
    steps = [{"walltime": 5, "request": "ncpus=1"}, {"walltime": 5, "request": "ncpus=2"}]
    with pytest.raises(BridgeError, match="the evolving job e"):
        world({"id": "e", "submit": 0, "queue": "q", "steps": steps})
