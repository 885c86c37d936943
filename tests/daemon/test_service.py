"""The daemon on the manager in memory: cycles in virtual time, with everything that may fail failing now and then."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from cpsched.domain import FrozenMap, Instance, NodeState, Plan
from cpsched.errors import BridgeError, EngineError, Fault, StoreError
from cpsched.portfolio import LivePlan, WindowPlanner
from cpsched.site.bridge import Gate, HandBack, JobState, MemoryManager, Order, Receipt, Refusal, Result, Snapshot
from cpsched.site.daemon import Planner, Policy, Store
from tests.bridge.small_world import job, on, site, world
from tests.daemon.making import LIVE, daemon_on, finish, planner
from tests.daemon.stored_orders import orders_in
from tests.sizes import seeds

BUSY = [
    job(f"j{number}", ["ncpus=4", "2:ncpus=2", "ncpus=2"][number % 3], walltime=60, submit=number * 7, runtime=40)
    for number in range(12)
]


def test_every_job_runs_once_where_and_when_planned(tmp_path: Path) -> None:
    """In a live world all jobs run, each once, on the nodes and not before the second of the plan."""
    daemon, lines = daemon_on(world(*BUSY, gate_is_closed=False), tmp_path)
    finish(daemon)
    started = [line for line in lines.read() if line["event"] == "JobStarted"]
    # the first one runs when the daemon begins
    assert sorted(line["job"] for line in started) == sorted(one["id"] for one in BUSY[1:])
    assert all(line["is_as_planned"] for line in started)
    over = [record for record in daemon.store.history() if record.kind == "JobOver"]
    assert {record.content["state"] for record in over} == {"completed"}
    assert len(over) == len(BUSY)


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    """A new installation plans, and the world is as it would be without it; no order is in the store."""
    alone = world(*BUSY, gate_is_closed=False)
    alone.advance(2000)
    watched = world(*BUSY, gate_is_closed=False)
    daemon, _ = daemon_on(watched, tmp_path, replace(LIVE, policy=Policy()))
    finish(daemon)
    starts = [{name: entry.start for name, entry in one.jobs.items()} for one in (alone, watched)]
    assert starts[0] == starts[1]
    assert orders_in(daemon.store) == ()
    assert any(cycle.planned for cycle in daemon.store.cycles())


def test_a_stopped_daemon_leaves_the_manager_to_itself(tmp_path: Path) -> None:
    """After a clean stop the manager's own scheduler runs all jobs, also those that arrive later."""
    there = world(*BUSY)
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    daemon.stop()
    there.advance(2000)
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}


def test_what_a_snapshot_notes_is_logged_once(tmp_path: Path) -> None:
    """What is not as the manager said it is in the log, when it is seen first, and again when it comes back."""
    there = world(*BUSY)
    manager = MemoryManager(there)
    daemon, lines = daemon_on(there, tmp_path, manager=manager)
    look, notes = manager.snapshot, [Fault("node n9", "counts as down: HAPPY")]
    manager.snapshot = lambda: replace(look(), notes=tuple(notes))  # type: ignore[method-assign]  # a test's
    for _ in range(2):
        daemon.cycle()
    said = [(line["level"], line["what"], line["why"]) for line in lines.read() if "why" in line and "what" in line]
    assert said == [("warning", "node n9", "counts as down: HAPPY")]
    notes.clear()
    daemon.cycle()
    notes.append(Fault("node n9", "counts as down: HAPPY"))
    daemon.cycle()
    assert [line["what"] for line in lines.read() if line.get("what") == "node n9"] == ["node n9"] * 2


class Failing(MemoryManager):
    """A manager that does not answer now and then. Mutable."""

    #: Calls that fail: before they do anything, or after.
    plan: tuple[str, ...] = ()
    calls = 0

    def _fails(self, when: str) -> None:
        if self.calls < len(self.plan) and self.plan[self.calls] == when:
            raise BridgeError(("scontrol",), "timed out")

    def snapshot(self) -> Snapshot:
        """Take a snapshot, or fail."""
        self.calls += 1
        self._fails("before")
        return super().snapshot()

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, or fail before it, after half of them, or after all of them."""
        self.calls += 1
        self._fails("before")
        if self.calls < len(self.plan) and self.plan[self.calls] == "half":
            super().apply(orders[: len(orders) // 2])
            raise BridgeError(("scontrol",), "timed out in the middle")
        receipts = super().apply(orders)
        self._fails("after")
        return receipts


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "half", "after"])
@pytest.mark.parametrize("seed", seeds(10))
def test_a_manager_that_fails_now_and_then_loses_no_job(tmp_path: Path, kind: str, seed: int) -> None:
    """Whenever a call of the manager fails, before or after it did its work, all jobs run once: as was ordered, or by
    the manager's own rules where the daemon gave up for a while.
    """
    there = world(*BUSY)
    manager = Failing(there)
    rng = random.Random(seed)
    manager.plan = tuple(kind if rng.random() < 0.4 else "" for _ in range(2000))
    daemon, lines = daemon_on(there, tmp_path, manager=manager)
    finish(daemon)
    said = lines.read()
    started = [line for line in said if line["event"] == "JobStarted"]
    assert sorted(line["job"] for line in started) == sorted(one["id"] for one in BUSY)
    ordered = {
        (order.job, tuple(sorted({one["node"] for one in order.content["allocation"]})))
        for order in orders_in(daemon.store)
        if order.kind == "Start"
    }
    has_given_up = any(line["event"].startswith("gave up") for line in said)
    assert has_given_up or {(line["job"], tuple(line["nodes"])) for line in started} <= ordered


def test_without_a_store_there_are_no_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing can be written no order is given and the heart does not beat; then what was missed is written."""
    there = world(job("a"), job("b"))
    heart = tmp_path / "heart"
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, heartbeat=heart))

    def refuse(*_: object) -> None:
        raise StoreError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(daemon.store, "save", refuse)
        assert not daemon.cycle()
    assert not any(entry.due is not None or entry.start is not None for entry in there.jobs.values())
    assert not heart.exists()
    assert daemon.cycle()
    assert heart.exists()
    assert heart.stat().st_mode & 0o077 == 0
    assert {entry.state for entry in there.jobs.values()} == {JobState.RUNNING}
    assert {record.job for record in daemon.store.history()} == {"a", "b"}


def test_orders_that_cannot_be_written_are_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that cannot be written down before it is given is not given."""
    there = world(job("a"))
    daemon, _ = daemon_on(there, tmp_path)

    def refuse(*_: object) -> tuple[int, ...]:
        raise StoreError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(daemon.store, "begin", refuse)
        assert not daemon.cycle()
    assert there.jobs["a"].start is None
    assert daemon.cycle()
    assert there.jobs["a"].start == 0


class Broken(WindowPlanner):
    """An engine that fails in both of its ways."""

    def plan(self, window: Instance, previous: Plan | None, longest: int | None = None) -> Plan:
        """Fail."""
        raise EngineError("no plan today")

    def follow(self, window: Instance, previous: Plan | LivePlan) -> Plan:
        """Fail as a bug does."""
        raise ZeroDivisionError


def test_where_the_engine_fails_the_planner_plans(tmp_path: Path) -> None:
    """An engine that raises costs no start: the planner plans, and each failure is counted and stands in the log."""
    failed: list[str] = []
    engine = Broken(name="portfolio", budget=1.0)
    fallback = Planner(engine, gain=0.01, report=lambda what, error: failed.append(f"{what}: {error!r}"))
    daemon, _ = daemon_on(world(*BUSY[:3]), tmp_path, replace(LIVE, budget=2.0), planner=fallback)
    finish(daemon)
    assert any("portfolio: EngineError" in words for words in failed)
    assert any("ZeroDivisionError" in words for words in failed)
    assert daemon.metrics.registry.get_sample_value("cpsched_fallbacks_total") == len(failed)
    assert any(cycle.is_fallback for cycle in daemon.store.cycles())


def test_where_even_the_planner_fails_the_plan_before_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no way to plan, what is planned starts as planned, and the failure is counted."""
    there = world(job("a"), job("b", submit=5))
    silent = Planner(WindowPlanner(name="planner", budget=0.0), gain=0.01, report=lambda what, error: None)
    daemon, _ = daemon_on(there, tmp_path, planner=silent)
    daemon.cycle()
    there.advance(6)

    def fail(*_: object) -> Plan:
        raise EngineError("none")

    monkeypatch.setattr(WindowPlanner, "plan", fail)
    monkeypatch.setattr(WindowPlanner, "follow", fail)
    daemon.cycle()
    assert daemon.metrics.registry.get_sample_value("cpsched_failures_total", {"what": "planning"}) == 1
    assert there.jobs["a"].state is JobState.RUNNING
    assert there.jobs["b"].state is JobState.WAITING


def test_a_start_that_the_verifier_refuses_is_not_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the planner says, two jobs do not start on the same cores, nor one on too small a node."""
    there = world(job("a"), job("b"))
    daemon, lines = daemon_on(there, tmp_path)
    follow = daemon.planner.follow

    def twice(window: Instance, previous: Plan | None, why: str) -> Any:
        made = follow(window, previous, why)
        assert made is not None
        same = tuple(
            replace(one, start=0, end=100, segments=(replace(one.segments[0], start=0, end=100, allocation=on("n1")),))
            for one in made.plan.jobs
        )
        return replace(made, plan=replace(made.plan, jobs=same))

    monkeypatch.setattr(daemon.planner, "follow", twice)
    daemon.cycle()
    assert sum(entry.start is not None for entry in there.jobs.values()) == 0
    assert {line["job"] for line in lines.read() if "verifier" in line["event"]} == {"a", "b"}
    monkeypatch.undo()
    daemon.cycle()
    assert {entry.start for entry in there.jobs.values()} == {0}


def test_a_late_start_moves_the_job_that_was_to_follow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that starts late has its nodes for longer: the next one is planned anew, and not when it is refused."""
    there = world(job("a"), job("b"), nodes="n1")
    daemon, lines = daemon_on(there, tmp_path)
    apply = daemon.manager.apply

    def slowly(orders: Sequence[Order]) -> tuple[Receipt, ...]:
        there.advance(there.now + 7)
        return apply(orders)

    monkeypatch.setattr(daemon.manager, "apply", slowly)
    daemon.cycle()
    monkeypatch.undo()
    finish(daemon)
    first, second = (there.jobs[name].start or 0 for name in "ab")
    assert 0 < first == second - 100
    assert not [line for line in lines.read() if "verifier" in line["event"]]


def test_reading_the_file_again_changes_what_can_change(tmp_path: Path) -> None:
    """On the signal a dry run becomes live before the next cycle, and the other way round everything is handed back."""
    there = world(*BUSY[:4], gate_is_closed=False)
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, policy=Policy()))
    wanted: list[Policy] = [LIVE.policy, Policy()]
    daemon.reread = lambda: (replace(LIVE, policy=wanted.pop(0)), planner())
    daemon.cycle()
    assert not there.gate_is_closed
    daemon.read_again()
    daemon.reload()
    daemon.cycle()
    assert there.gate_is_closed
    daemon.read_again()
    daemon.reload()
    assert not there.gate_is_closed
    assert not any(entry.is_steered for entry in there.jobs.values() if entry.state is JobState.WAITING)


def test_the_daemon_takes_back_what_the_watchdog_gave_away(tmp_path: Path) -> None:
    """A daemon that was only slow finds jobs handed back, and steers them again."""
    there = world(job("big", "2:ncpus=4"), job("a"), job("b"), job("c"))
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    daemon.manager.apply([HandBack(job="c")])
    assert not there.jobs["c"].is_steered
    daemon.cycle()
    assert there.jobs["c"].is_steered


def test_nodes_that_fail_under_the_daemon(tmp_path: Path) -> None:
    """Jobs whose node fails run again elsewhere; planned ones go elsewhere too; all end."""
    there = world(*BUSY, outages=[{"nodes": "n1", "start": 30, "end": 200}])
    daemon, lines = daemon_on(there, tmp_path)
    finish(daemon)
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}
    assert any(line["event"] == "JobQueuedAgain" for line in lines.read())
    assert there.shop.state["n1"] is NodeState.UP


class Slow(MemoryManager):
    """A manager that takes its time by a clock that stands still otherwise. Mutable."""

    seconds = 0.0

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""
        self.seconds += 0.4
        return super().snapshot()

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders."""
        self.seconds += 0.2
        return super().apply(orders)


def test_reservations_and_queues_that_change_under_the_daemon(tmp_path: Path) -> None:
    """A job moves up as soon as the downtime before it is deleted, and to the nodes that its queue has left."""
    works = {"id": "works", "kind": "downtime", "nodes": "n[1-2]", "start": 50, "end": 5000}
    there = world(job("all", "2:ncpus=4"), job("one"), reservations=[works])
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    assert {name: entry.start for name, entry in daemon.state.plan.items()} == {"all": 5000, "one": 5100}
    there.site = replace(there.site, reservations=())
    daemon.cycle()
    assert there.jobs["all"].start == 0
    (before,) = daemon.state.plan["one"].nodes
    (other,) = {"n1", "n2"} - {before}
    queues = there.site.queues
    there.site = replace(there.site, queues=FrozenMap({"q": replace(queues["q"], nodes=(other,))}))
    daemon.cycle()
    assert daemon.state.plan["one"].nodes == (other,)
    finish(daemon)
    assert there.jobs["one"].nodes == (other,)


@pytest.mark.parametrize("budget", [4.0, 10.0])
def test_a_budget_includes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: float) -> None:
    """Snapshots, orders and writing take their time, planning more than it was given: planning gets what is left."""
    there = world(*BUSY, gate_is_closed=True)
    manager = Slow(there)
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, budget=budget), manager=manager, clock=lambda: manager.seconds)
    monkeypatch.setattr(daemon.planner, "engine", WindowPlanner(name="portfolio", budget=budget))
    follow, present, given = daemon.planner.follow, daemon.store.set_present, list[float]()

    def improve(window: Instance, previous: Plan | None, why: str, *, seconds: float) -> Any:
        assert gc.isenabled()  # a search may leave cyclic garbage; the rest of a cycle leaves none
        given.append(seconds)
        manager.seconds += seconds + 0.1
        return follow(window, previous, why)

    def presenting(*what: Any) -> None:
        assert not gc.isenabled()
        manager.seconds += 0.3
        present(*what)

    monkeypatch.setattr(daemon.planner, "improve", improve)
    monkeypatch.setattr(daemon.store, "set_present", presenting)
    for cycle in range(8):
        there.submit(site(job(f"new{cycle}", submit=there.now)).jobs[0])
        began = manager.seconds
        assert daemon.cycle()
        assert manager.seconds - began <= budget
        assert len(given) == cycle + 1
        manager.seconds += 60
        there.advance(there.now + 10)
    assert min(given) > budget - 3.1
    assert min(given[1:]) > budget - 2.8
    assert daemon.metrics.registry.get_sample_value("cpsched_cycle_overruns_total") == 0


def test_after_a_slow_cycle_planning_gets_time_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that hung once, for longer than a budget, does not keep later cycles from planning."""
    there = world(*BUSY, gate_is_closed=True)
    manager = Slow(there)
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, budget=6.0), manager=manager, clock=lambda: manager.seconds)
    monkeypatch.setattr(daemon.planner, "engine", WindowPlanner(name="portfolio", budget=6.0))
    follow, hangs, given = daemon.planner.follow, [18.0], list[float]()

    def improve(window: Instance, previous: Plan | None, why: str, *, seconds: float) -> Any:
        given.append(seconds)
        manager.seconds += seconds + (hangs.pop() if hangs else 0.0)
        return follow(window, previous, why)

    monkeypatch.setattr(daemon.planner, "improve", improve)
    for cycle in range(20):
        there.submit(site(job(f"new{cycle}", submit=there.now)).jobs[0])
        assert daemon.cycle()
        manager.seconds += 60
        there.advance(there.now + 10)
    assert len(given) > 8
    assert given[-1] > 2.0


@pytest.mark.slow
def test_a_cycle_keeps_its_budget_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    """Real engines end in time, everything included: in one of several cycles at least, since others use the machine.

    Each of them has a plan to improve. A cycle that is late is counted.
    """
    budget = 1.5
    there = world(*(job(f"j{number}", "ncpus=2", walltime=50 + number) for number in range(60)), nodes="n[1-4]")
    engine = WindowPlanner(name="portfolio", budget=budget, most=100)
    engine.prepare()
    made = Planner(engine, gain=0.01, report=lambda what, error: pytest.fail(f"{what}: {error!r}"))
    daemon, _ = daemon_on(there, tmp_path, replace(LIVE, budget=budget), planner=made)
    for _ in range(6):
        daemon.cycle()
        there.advance(there.now + 10)
        there.submit(site(job(f"new{there.now}", submit=there.now)).jobs[0])
    seconds = [cycle.seconds for cycle in daemon.store.cycles()]
    assert min(seconds) <= budget
    # a busy machine can shorten the engine's part of a cycle, not that of each
    assert max(seconds) > budget / 2, "the engine has not used its time"
    late = daemon.metrics.registry.get_sample_value("cpsched_cycle_overruns_total")
    assert late is not None
    assert late >= sum(one > budget for one in seconds)


def test_a_promise_moves_later_only_for_a_gain_that_is_worth_it() -> None:
    """Of two plans, the one that moves a told start later needs the stated share of gain."""
    told = {"start": 0, "price": 0.0}
    window = site(job("long", walltime=200, told=told), job("short", walltime=10), nodes="n1")
    followed, better = (_sequence(window, *order) for order in (("long", "short"), ("short", "long")))
    gain = (followed.objective.value - better.objective.value) / followed.objective.value
    assert gain > 0
    for share, winner in ((gain * 0.9, better), (gain * 1.1, followed)):
        chosen, why = planner(gain=share)._chosen(window, followed, better, "why")
        assert chosen is winner
        assert ("better plan" in why) is (winner is better)


def test_a_job_that_has_waited_too_long_comes_first_whatever_the_plan_loses() -> None:
    """Beside a stream of short jobs, each of which is worth more, the long one is due after 1.25 times their work; then
    no gain is asked for, though their promises move.
    """
    made, found = planner(gain=0.0, engine="wspt_list"), dict[int, tuple[int, bool]]()
    plan: Plan | None = None
    for now in range(0, 100, 10):
        planned = () if plan is None else plan.jobs
        told: dict[str, object] = {one.id: {"start": one.start, "price": 0.0} for one in planned}
        shorts = (
            job(f"s{n}", walltime=10, submit=max(0, 10 * n - 10), told=told.get(f"s{n}"))
            for n in range(now // 10, now // 10 + 2)
        )
        entries = [job("long", walltime=200, told=told.get("long")), *shorts]
        window = site(*({k: v for k, v in one.items() if v is not None} for one in entries), nodes="n1", now=now)
        followed = made.follow(window, plan, "why")
        assert followed is not None
        plan = followed.plan
        start = next(one.start for one in plan.jobs if one.id == "long")
        found[now] = start - now, "waited too long" in followed.why
    assert found[20][0] > 0
    assert found[30] == (0, True)


def _sequence(window: Instance, *order: str) -> Plan:
    """Plan jobs one after the other."""
    from cpsched.domain import PlannedJob, Segment
    from cpsched.engine import Outcome
    from cpsched.portfolio import plan_of

    at, jobs = window.now, []
    for name in order:
        end = at + next(one.walltime for one in window.jobs if one.id == name)
        segment = Segment(start=at, end=end, allocation=on("n1"))
        jobs.append(PlannedJob(id=name, start=at, end=end, segments=(segment,)))
        at = end
    return plan_of(window, "test", Outcome(jobs=tuple(jobs), waiting_room=()), budget=0, elapsed=0)


class Forbidding(MemoryManager):
    """A manager that lets nobody change a job, while that is so; the gate is a file that cpsched may write. Mutable."""

    is_strict = True

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Refuse all orders but those for the gate."""
        return tuple(
            Receipt(order=one, result=Result.REFUSED, refusal=Refusal.FORBIDDEN, detail="denied")
            if self.is_strict and not isinstance(one, Gate)
            else super(Forbidding, self).apply([one])[0]
            for one in orders
        )


def test_refused_orders_are_no_good_cycle(tmp_path: Path) -> None:
    """Without rights the heart stands still, and after three cycles the gate is open; with them all goes on."""
    long = [job(name, "2:ncpus=4", walltime=1000, runtime=1000) for name in "abc"]
    there = world(*long, gate_is_closed=False)
    manager, heart = Forbidding(there), tmp_path / "heart"
    daemon, lines = daemon_on(there, tmp_path, replace(LIVE, heartbeat=heart), manager=manager)
    for _ in range(3):
        there.advance(there.now + 8)
        assert not daemon.cycle()
        heart.unlink(missing_ok=True)  # it beats before the first orders
    assert daemon.cycle() is False
    assert not heart.exists()
    assert there.gate_is_closed is False
    assert any(line["event"].startswith("gave up") for line in lines.read())
    assert daemon.metrics.registry.get_sample_value("cpsched_gave_up") == 1
    manager.is_strict = False
    there.advance(there.now + 8)
    daemon.cycle()
    assert there.gate_is_closed is False
    assert not any(facts.is_steered for facts in manager.snapshot().jobs.values())
    there.advance(there.now + LIVE.policy.lease)
    for _ in range(3):
        daemon.cycle()
    assert there.gate_is_closed
    assert daemon.metrics.registry.get_sample_value("cpsched_gave_up") == 0


def test_without_a_plan_nothing_is_held(tmp_path: Path) -> None:
    """Where planning always fails, every job runs by the manager's own rules, and the cycle is not good."""
    there = world(*BUSY, gate_is_closed=False)
    broken = planner()
    broken.follow = lambda *_: None  # type: ignore[method-assign]
    broken.improve = lambda *_, **__: None  # type: ignore[method-assign]
    daemon, _ = daemon_on(there, tmp_path, planner=broken)
    were_good = []
    for _ in range(200):
        were_good.append(daemon.cycle())
        there.advance(there.now + 5)
    assert were_good.count(False) > 3
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}


def test_two_daemons_on_one_store(tmp_path: Path) -> None:
    """The second process is told who has the store, and begins when the first one is gone."""
    url = f"sqlite:///{tmp_path}/cpsched.db"
    program = (
        f"from cpsched.site.daemon import Store; store = Store({url!r}); store.lock(); print('locked', flush=True)"
    )
    program += "; input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as other:  # noqa: S603
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        store = Store(url)
        with pytest.raises(StoreError, match=f"process {other.pid}"):
            store.lock()
        other.kill()
    store.lock()
    store.close()
