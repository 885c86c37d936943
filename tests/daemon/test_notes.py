"""Forecasts that are noted at the manager: which ones, when again, and what takes them away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cpsched.site.bridge import JobState, MemoryManager, Note, Order, Receipt, Refusal, Result
from cpsched.site.daemon.core import step
from cpsched.site.daemon.state import Answered, Foretold, Reloaded, Seen, State, Stopping
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site, world
from tests.daemon.making import LIVE, daemon_on

NOTING = replace(LIVE.policy, is_dry_run=False, only_ranks=True, is_noting=True)


def given(manager: MemoryManager, state: State) -> tuple[State, dict[str, object]]:
    """Take a snapshot, carry out the notes that follow from it, and return them by job."""
    state, _, orders = step(state, Seen(snapshot=manager.snapshot()))
    noted = [order for order in orders if isinstance(order, Note)]
    assert {one.result for one in manager.apply(noted)} <= {Result.DONE}
    return state, {order.job: order.forecast for order in noted}


def test_a_forecast_is_noted_until_its_job_starts() -> None:
    """It is written once, again where it is minutes off, and taken away when the job runs or is not forecast."""
    there = world(job("a"), job("b"), job("c"), gate_is_closed=True)
    manager, state = MemoryManager(there), State(policy=NOTING)
    state, *_ = step(state, Foretold(forecasts={"a": (90, 200), "b": (100, None), "gone": (5, 6)}))
    state, notes = given(manager, state)
    assert notes == {"a": (90, 200), "b": (100, None)}
    there.advance(20)
    state, notes = given(manager, state)
    assert notes == {}
    state, *_ = step(state, Foretold(forecasts={"a": (300, 480), "b": (100, 2000), "c": (4000, 50_000)}))
    state, notes = given(manager, state)
    assert notes == {"b": (100, 2000), "c": (4000, 50_000)}
    there.advance(40)
    state, *_ = step(state, Foretold(forecasts={"a": (600, 700), "b": (100, 2000), "c": (4300, 54_000)}))
    state, notes = given(manager, state)
    assert notes == {"a": (600, 700)}
    assert there.start_by_hand("a")
    state, *_ = step(state, Foretold(forecasts={"b": (100, 2000)}))
    state, notes = given(manager, state)
    assert notes == {"a": None, "c": None}
    assert there.jobs["a"].noted is None


def test_few_are_noted_at_a_time() -> None:
    """The first starts come first; after them one each second."""
    there = world(*(job(f"j{number:03}") for number in range(100)))
    manager, state = MemoryManager(there), State(policy=NOTING)
    state, *_ = step(state, Foretold(forecasts={f"j{number:03}": (1000 - number, None) for number in range(100)}))
    state, notes = given(manager, state)
    assert sorted(notes) == [f"j{number:03}" for number in range(40, 100)]
    there.advance(7)
    state, notes = given(manager, state)
    assert sorted(notes) == [f"j{number:03}" for number in range(33, 40)]


def test_nothing_of_it_is_left() -> None:
    """A daemon that stops, or whose file says so, takes all notes away; a dry run writes none."""
    there = world(job("a"), job("b"))
    manager, state = MemoryManager(there), State(policy=NOTING)
    state, *_ = step(state, Foretold(forecasts={"a": (90, 200), "b": (100, None)}))
    state, notes = given(manager, state)
    assert set(notes) == {"a", "b"}
    there.start_by_hand("a")
    stopping, *_ = step(state, Stopping())
    *_, orders = step(stopping, Seen(snapshot=manager.snapshot()))
    assert {getattr(order, "job", None) for order in orders} >= {"a", "b"}
    off, *_ = step(state, Reloaded(policy=replace(NOTING, is_noting=False)))
    *_, orders = step(off, Seen(snapshot=manager.snapshot()))
    assert {order.job: order.forecast for order in orders if isinstance(order, Note)} == {"a": None, "b": None}
    dry = State(policy=replace(NOTING, is_dry_run=True), forecasts=state.forecasts)
    assert step(dry, Seen(snapshot=manager.snapshot()))[2] == ()


def test_who_may_not_note_plans_on(tmp_path: Path) -> None:
    """Where notes are forbidden the cycle is good, and they are tried again after an hour."""

    class Forbidding(MemoryManager):
        def apply(self, orders: tuple[Order, ...]) -> tuple[Receipt, ...]:  # type: ignore[override]  # of the daemon
            asked.append(sum(isinstance(one, Note) for one in orders))
            others = iter(super().apply([one for one in orders if not isinstance(one, Note)]))
            refused = Receipt(order=orders[0], result=Result.REFUSED, refusal=Refusal.FORBIDDEN)
            return tuple(replace(refused, order=one) if isinstance(one, Note) else next(others) for one in orders)

    asked: list[int] = []
    there = PlayedWorld(site(job("a", "2:ncpus=4", walltime=9000), job("b", "2:ncpus=4", walltime=9000)))
    settings = replace(LIVE, policy=NOTING, forecast_every=1)
    daemon, _ = daemon_on(there, tmp_path, settings, manager=Forbidding(there))
    for _ in range(4):
        assert daemon.cycle()
        there.advance(there.now + 5)
    assert [count for count in asked if count] == [1]
    assert daemon.state.gave_up_at is None
    there.advance(there.now + 3700)
    daemon.cycle()
    daemon.cycle()
    assert [count for count in asked if count] == [1, 1]
    assert there.jobs["b"].state is JobState.WAITING


def test_refused_notes_do_not_count_for_their_jobs() -> None:
    """A job whose note is refused is planned and ranked as before."""
    manager, state = MemoryManager(world(job("a"))), State(policy=NOTING)
    state, *_ = step(state, Seen(snapshot=manager.snapshot()))
    refused = Receipt(order=Note(job="a", forecast=(1, 2)), result=Result.REFUSED, refusal=Refusal.UNSUPPORTED)
    state, save, orders = step(state, Answered(receipts=(refused,)))
    assert (state.rebuffed, save.is_empty, orders, state.noted_at) == ({}, True, (), None)
