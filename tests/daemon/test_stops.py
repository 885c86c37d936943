"""The daemon stops running jobs for urgent ones, on a machine in memory: which, when, how often, and when not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import Preemptible, StopKind
from cpsched.errors import BridgeError
from cpsched.formats import parse_instance
from cpsched.site.bridge import JobState, MemoryManager, Order, Receipt, Refusal, Requeue, Result, Snapshot, Start
from cpsched.site.daemon import Daemon
from cpsched.site.daemon.core import step
from cpsched.site.daemon.judging import vetoes
from cpsched.site.daemon.orders import start_order, wanted_orders
from cpsched.site.daemon.state import Seen
from cpsched.site.daemon.window import planning_window
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site, world
from tests.daemon.making import Lines, daemon_on, finish, planner

ENGINES = pytest.mark.parametrize("engine", ["planner", "wspt_list"])
RULES: dict[str, Any] = {
    "queues": {
        "low": {"expected_wait": 1000},
        "top": {"expected_wait": 10},
        "apart": {"expected_wait": 10, "nodes": "n2"},
    },
    "preemption": {"queues": {"top": ["low"], "apart": ["low"]}, "notice": 1},
}


def low(name: str, request: str = "ncpus=4", **more: Any) -> dict[str, Any]:
    """Write the entry of a job that may be stopped."""
    return job(name, request, **{"walltime": 120, "queue": "low", "preemptible": {"by": "requeue"}, **more})


def top(name: str, request: str = "ncpus=4", **more: Any) -> dict[str, Any]:
    """Write the entry of a job that may stop others."""
    return job(name, request, **{"walltime": 20, "queue": "top", **more})


def submit(there: PlayedWorld, *entries: dict[str, Any]) -> None:
    """Submit jobs now."""
    for one in site(*entries, **RULES).jobs:
        there.submit(replace(one, submit=there.now))


def busy(
    folder: Path, *more: dict[str, Any], engine: str = "planner", **others: Any
) -> tuple[PlayedWorld, Daemon, Lines]:
    """Return a world whose two nodes jobs `a` and `b` have had for some seconds, and its daemon."""
    there = world(low("a"), low("b"), *more, **RULES)
    daemon, lines = daemon_on(there, folder, planner=planner(engine=engine), **others)
    daemon.cycle()
    there.advance(10)
    assert [there.jobs[name].state for name in "ab"] == [JobState.RUNNING] * 2
    return there, daemon, lines


def stops_in(lines: Lines) -> list[tuple[str, str]]:
    """Return which jobs the log says were stopped for which."""
    return [(line["job"], line["urgent"]) for line in lines.read() if line["event"] == "JobStopped"]


@ENGINES
def test_a_running_job_gives_way_once_and_comes_again(tmp_path: Path, engine: str) -> None:
    """The urgent job starts a second later in its place; the log and the history say so; it runs again afterwards."""
    there, daemon, lines = busy(tmp_path, engine=engine)
    submit(there, top("u"))
    daemon.cycle()
    (stopped,) = [name for name in "ab" if there.jobs[name].restarts]
    assert there.jobs[stopped].state is JobState.WAITING
    there.advance(there.now + 1)
    daemon.cycle()
    assert there.jobs["u"].start == 11
    finish(daemon)
    assert stops_in(lines) == [(stopped, "u")]
    assert [(one.job, one.content) for one in daemon.store.history() if one.kind == "JobStopped"] == [
        (stopped, {"urgent": "u"})
    ]
    assert {name: entry.state for name, entry in there.jobs.items()} == dict.fromkeys("abu", JobState.COMPLETED)
    assert {name: entry.restarts for name, entry in there.jobs.items()} == {"a": 0, "b": 0, "u": 0, stopped: 1}


@pytest.mark.parametrize("case", range(2))
def test_whatever_comes_nothing_is_stopped_in_vain(tmp_path: Path, case: int) -> None:
    """At random: all jobs end, only those of the lower queue are stopped, and once for each run of an urgent one."""
    rng = random.Random(case)
    there = world(low("a", walltime=60), low("b", "ncpus=2", walltime=80), top("keep", "ncpus=2"), **RULES)
    ended: list[str] = []
    there.listeners.append(lambda entry: ended.append(entry.job.id) if entry.state.is_over else None)
    daemon, lines = daemon_on(there, tmp_path, planner=planner(engine=rng.choice(["planner", "wspt_list"])))
    for number in range(10):
        kind = rng.choice([low, top])
        submit(there, kind(f"j{number}", rng.choice(["ncpus=1", "ncpus=4", "2:ncpus=2"]), walltime=rng.randint(5, 40)))
        if rng.random() < 0.3:
            there.requeue(rng.choice(list(there.jobs)))
        for _ in range(rng.randint(1, 4)):
            daemon.cycle()
            there.advance(there.now + rng.randint(0, 9))
    finish(daemon)
    assert sorted(ended) == sorted(["a", "b", "keep", *(f"j{number}" for number in range(10))])
    stops = stops_in(lines)
    assert all(there.jobs[one].job.queue == "low" and there.jobs[urgent].job.queue == "top" for one, urgent in stops)
    assert all(stops.count(pair) <= 1 + there.jobs[pair[1]].restarts for pair in stops)


def planned_stop(folder: Path, **others: Any) -> tuple[PlayedWorld, Daemon, Lines, Requeue]:
    """Return a world, a daemon whose plan has a stop that is not ordered yet, and that stop."""
    there, daemon, lines = busy(folder, **others)
    submit(there, top("u"))
    manager = daemon.manager

    class Mute(MemoryManager):
        """A manager that does not answer orders, and does nothing."""

        def apply(self, orders: Any) -> tuple[Receipt, ...]:
            raise BridgeError(("memory",), "no answer")

    daemon.manager = Mute(there)
    daemon.cycle()
    daemon.manager = manager
    (stop,) = daemon.state.plan["u"].stops
    assert there.jobs[stop.job].state is JobState.RUNNING
    return there, daemon, lines, stop


def test_a_run_that_is_not_the_planned_one_is_not_stopped(tmp_path: Path) -> None:
    """A job that has ended, or was queued again and runs anew, is refused, and the urgent one planned anew."""
    there, daemon, lines, stop = planned_stop(tmp_path)
    there.requeue(stop.job)
    there.start_by_hand(stop.job)
    assert there.jobs[stop.job].nodes == stop.nodes
    (receipt,) = daemon.manager.apply([stop])
    assert receipt.refusal is Refusal.CHANGED
    there.cancel(stop.job)
    (receipt,) = daemon.manager.apply([stop])
    assert receipt.refusal is Refusal.GONE
    daemon.cycle()
    there.advance(there.now + 1)
    daemon.cycle()
    assert there.jobs["u"].state is JobState.RUNNING
    assert stops_in(lines) == []


def test_a_stop_is_judged_with_the_start_for_which_it_is(tmp_path: Path) -> None:
    """The verifier refuses one that the newest snapshot no longer allows; then neither is ordered."""
    _, daemon, _, stop = planned_stop(tmp_path)
    snapshot = daemon.manager.snapshot()
    state, start = daemon.state, start_order(daemon.state.plan["u"])
    assert vetoes(snapshot, [start], [], [stop]) == {}
    assert vetoes(snapshot, [start], []).keys() == {"u"}

    def but(**fields: Any) -> Snapshot:
        return replace(snapshot, instance=replace(snapshot.instance, **fields))

    jobs = tuple(replace(one, preemptible=None) for one in snapshot.instance.jobs)
    rules = parse_instance({**document(), "preemption": {"queues": {"top": ["low"]}, "exempt": 99}}, source="t")
    for other in (but(jobs=jobs), but(preemption=None), but(preemption=rules.preemption)):
        assert vetoes(other, [start], [], [stop]).keys() == {"u"}
        daemon._snapshot = other
        assert daemon._judged([stop]) == ()
        assert "u" not in daemon.state.plan
        daemon.state = state


def document() -> dict[str, Any]:
    """Write an instance with the queues of the tests."""
    nodes = [{"names": "n[1-2]", "resources": {"cores": 4}}]
    return {"format": "cpsched-instance/1", "name": "small", "cluster": {"nodes": nodes}, "jobs": [], **RULES}


def test_while_a_stopped_job_leaves_nothing_else_is_stopped_or_started_there(tmp_path: Path) -> None:
    """The urgent job runs in the window in place of the other, and has no order until that has left its nodes."""
    there, daemon, _, stop = planned_stop(tmp_path)
    snapshot = daemon.manager.snapshot()
    facts = {**snapshot.jobs, stop.job: replace(snapshot.jobs[stop.job], revision="another", is_leaving=True)}
    state = replace(daemon.state, snapshot=replace(snapshot, jobs=facts, taken_at=there.now + 20))
    window = planning_window(state).instance
    by_id = {one.id: one for one in window.jobs}
    assert by_id["u"].running is not None
    assert stop.job not in by_id
    assert not [one for one in wanted_orders(state) if isinstance(one, Requeue | Start)]
    left = {**facts, stop.job: replace(facts[stop.job], is_leaving=False, state=JobState.WAITING, nodes=())}
    orders = wanted_orders(replace(state, snapshot=replace(snapshot, jobs=left)))
    assert [one.job for one in orders if isinstance(one, Start)] == ["u"]


def test_a_daemon_that_begins_waits_for_a_stopped_job_to_leave_too(tmp_path: Path) -> None:
    """What is stopped for a job is in the store: the start has no order while the other still has its nodes."""
    there, before, _, stop = planned_stop(tmp_path)
    entry = before.state.plan["u"]
    before.close()
    daemon, _ = daemon_on(there, tmp_path)
    assert daemon.state.plan["u"] == entry
    snapshot = daemon.manager.snapshot()
    leaving = replace(snapshot.jobs[stop.job], restarts=1, revision="another", is_leaving=True)
    seen = replace(snapshot, jobs={**snapshot.jobs, stop.job: leaving}, taken_at=there.now + 20)
    state, _, orders = step(daemon.state, Seen(snapshot=seen))
    assert not [one for one in orders if isinstance(one, Requeue | Start)]
    assert {one.id for one in planning_window(state).instance.jobs if one.running is not None} == {"u", "b"}


def test_what_follows_an_urgent_job_is_not_ordered_before_it(tmp_path: Path) -> None:
    """A daemon that looks late starts the urgent job all the same, though its planned end has nearly come."""
    there, daemon, lines = busy(tmp_path, engine="wspt_list")
    submit(there, top("u", walltime=6), low("c", walltime=5))
    daemon.cycle()
    (stop,) = daemon.state.plan["u"].stops
    behind = [one.planned.id for one in daemon.state.plan.values() if one.nodes == stop.nodes and one.start == 17]
    assert len(behind) == 1
    assert there.jobs[behind[0]].due is None
    there.advance(16)
    daemon.cycle()
    assert there.jobs["u"].start == 16
    assert stops_in(lines) == [(stop.job, "u")]


def test_neither_a_dry_run_nor_ranks_stop_anything(tmp_path: Path) -> None:
    """The plan may have stops: nothing is ordered."""
    _, daemon, _, _ = planned_stop(tmp_path)
    for policy in ({"is_dry_run": True}, {"only_ranks": True}):
        state = replace(daemon.state, policy=replace(daemon.state.policy, **policy))
        assert not [one for one in wanted_orders(state) if isinstance(one, Requeue)]
    assert [one for one in wanted_orders(daemon.state) if isinstance(one, Requeue)]


def test_a_stop_that_is_refused_again_and_again_leaves_the_urgent_job_to_the_manager(tmp_path: Path) -> None:
    """A cycle in which stops are forbidden is not good; after three refusals the job is the manager's own."""

    class Refusing(MemoryManager):
        """A manager that stops no job."""

        def apply(self, orders: Any) -> tuple[Receipt, ...]:
            return tuple(self._answer(order) for order in orders)

        def _answer(self, order: Order) -> Receipt:
            if isinstance(order, Requeue):
                return Receipt(order=order, result=Result.REFUSED, refusal=Refusal.FORBIDDEN)
            return super().apply([order])[0]

    there = world(low("a"), low("b"), **RULES)
    daemon, lines = daemon_on(there, tmp_path, manager=Refusing(there))
    daemon.cycle()
    there.advance(10)
    submit(there, top("u"))
    assert not daemon.cycle()
    for _ in range(4):
        daemon.cycle()
        there.advance(there.now + 1)
    assert [one["job"] for one in lines.read() if one["event"] == "Barred"] == ["u"]
    assert {there.jobs[name].restarts for name in "ab"} == {0}
    assert not there.jobs["u"].is_steered


def test_a_world_in_memory_has_no_other_stops() -> None:
    """A job that is suspended, or writes checkpoints, is refused by name."""
    there = world(**RULES)
    one = site(low("a"), **RULES).jobs[0]
    with pytest.raises(BridgeError, match="checkpoint of the job a"):
        there.submit(replace(one, preemptible=Preemptible(by=StopKind.CHECKPOINT, cost=1, interval=60)))
