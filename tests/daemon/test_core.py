"""The core: against random sequences of events, and one case for each thing that it decides."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, NodeState, Plan, PlannedJob, Segment
from cpsched.engine import Outcome
from cpsched.portfolio import LivePlan, WindowPlanner, plan_of
from cpsched.site.bridge import Announce, Gate, HandBack, Hold, JobState, LeftJob, Refusal, Result, Start
from cpsched.site.daemon.core import step
from cpsched.site.daemon.orders import hand_back_orders
from cpsched.site.daemon.planning import plan_of_state
from cpsched.site.daemon.state import (
    Answered,
    Barred,
    CycleOver,
    JobStarted,
    Planned,
    Policy,
    PromiseMoved,
    Reloaded,
    Seen,
    State,
    Stopping,
    Unplanned,
    Vetoed,
)
from cpsched.site.daemon.window import Told, planning_window
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, on, site, world
from tests.daemon.loop import Loop
from tests.daemon.making import planner
from tests.sizes import examples

LIVE = Policy(is_dry_run=False, horizon=20, patience=30, grain=10)


def planned_by_engine(loop: Loop, lead: int) -> None:
    """Let the planner plan, as the daemon does."""
    window = planning_window(loop.state, lead=lead)
    previous = plan_of_state(loop.state, window.instance)
    engine = WindowPlanner(name="planner", budget=0.0)
    plan = engine.plan(window.instance, None) if previous is None else engine.follow(window.instance, previous)
    loop.take(Planned(plan=plan, revisions=window.revisions, why="a test"))


def planned_at_random(loop: Loop, rng: random.Random) -> None:
    """Let somebody plan who knows nothing: some jobs, at any time, on any nodes."""
    window = planning_window(loop.state)
    jobs = []
    for one in window.instance.jobs:
        if one.running is None and rng.random() < 0.7:
            start = window.instance.now + rng.choice([0, 0, 5, 50])
            chunk = one.request.chunks[0]
            nodes = rng.sample(["n1", "n2"], k=chunk.count)
            held = tuple(replace(on(node)[0], resources=chunk.resources) for node in nodes)
            segment = Segment(start=start, end=start + one.walltime, allocation=held)
            jobs.append(PlannedJob(id=one.id, start=start, end=segment.end, segments=(segment,)))
    outcome = Outcome(jobs=tuple(jobs), waiting_room=())
    plan = plan_of(window.instance, "test", outcome, budget=0, elapsed=0)
    loop.take(Planned(plan=plan, revisions=window.revisions, why="a test"))


_NAMES = (
    *("advance", "look", "plan") * 3,
    *("wild", "submit", "submit", "cancel", "hold", "release", "by_hand", "fail", "restore", "drain"),
    *("requeue", "alter", "lose", "mute", "crash", "hand_back", "gate"),
)
#: What may happen, each with a number that chooses among its cases.
DEEDS = st.tuples(
    st.sampled_from(_NAMES),
    st.integers(0, 30),
)


def do(loop: Loop, deed: str, number: int, rng: random.Random) -> None:
    """Let one thing happen."""
    ids = list(loop.world.jobs)
    one = ids[number % len(ids)] if ids else None
    node = f"n{1 + number % 2}"
    deeds: dict[str, Callable[[], object]] = {
        "advance": lambda: loop.world.advance(loop.world.now + 1 + 3 * number),
        "look": loop.look,
        "lose": lambda: loop.look(is_lost=True),
        "mute": lambda: loop.look(is_mute=True),
        "submit": lambda: loop.world.submit(new_job(loop, number)),
        "fail": lambda: loop.world.set_node(node, NodeState.DOWN),
        "restore": lambda: loop.world.set_node(node, NodeState.UP),
        "drain": lambda: loop.world.set_node(node, NodeState.DRAIN),
        "crash": loop.crash,
        "hand_back": lambda: loop.manager.apply(hand_back_orders(loop.manager.snapshot())),
        "gate": lambda: setattr(loop.world, "gate_is_closed", bool(number % 2)),
    }
    if loop.state.snapshot is not None:
        deeds |= {
            "plan": lambda: planned_by_engine(loop, lead=number % 3 * 5),
            "wild": lambda: planned_at_random(loop, rng),
        }
    if one is not None:
        entry = loop.world.jobs[one]
        shorter = tuple(replace(each, walltime=max(1, each.walltime // 2)) for each in entry.job.steps)
        deeds |= {
            "cancel": lambda: loop.world.cancel(one),
            "hold": lambda: loop.world.hold(one),
            "release": lambda: loop.world.release(one),
            "requeue": lambda: loop.world.requeue(one),
            "alter": lambda: loop.world.alter(replace(entry.job, steps=shorter)),
            "by_hand": lambda: loop.start_by_hand(one),
        }
    deeds.get(deed, lambda: None)()


def new_job(loop: Loop, number: int) -> Any:
    """Make a job that asks for something else with each number."""
    name = f"j{len(loop.world.jobs)}-{loop.world.now}-{number}"
    awaited = list(loop.world.jobs)[-1:] if number % 5 == 0 else []
    entry = job(
        name,
        ["ncpus=4", "ncpus=2", "2:ncpus=3", "ncpus=1,lic=matlab=1", "ncpus=2,place=pack:excl"][number % 5]
        if number % 5 != 3
        else "ncpus=1",
        walltime=20 + number,
        submit=loop.world.now,
        runtime=5 + 2 * number,
        **({"licenses": {"matlab": 1}} if number % 5 == 3 else {}),
    )
    read = site(entry).jobs[0]
    if awaited:
        kind = ["after", "afterok", "afterany"][number % 3]
        others = site(entry | {"after": [{"job": awaited[0], "type": kind}]}, job(awaited[0]))
        read = next(each for each in others.jobs if each.id == name)
    return read


def settle(loop: Loop) -> None:
    """Let the daemon work on as it does when nothing goes wrong any more."""
    for node in ("n1", "n2"):
        loop.world.set_node(node, NodeState.UP)
    for name in list(loop.world.jobs):
        loop.world.release(name)
    for _ in range(200):
        loop.look()
        planned_by_engine(loop, lead=0)
        loop.look()
        loop.check()
        if not any(entry.state in (JobState.WAITING, JobState.RUNNING) for entry in loop.world.jobs.values()):
            return
        if loop.manager.snapshot().instance.jobs == ():
            return
        loop.world.advance(loop.world.now + 20)


@pytest.mark.slow
@given(st.lists(DEEDS, min_size=5, max_size=40), st.integers(0, 1000))
@examples(100)
def test_whatever_happens_nothing_is_lost_doubled_or_overcommitted(deeds: list[tuple[str, int]], seed: int) -> None:
    """Users, failures, lost orders, crashes and mad plans: each run begins once, where the plan says, within capacity,
    and in the end all jobs have run that can.
    """
    rng = random.Random(seed)
    loop = Loop(
        PlayedWorld(site(job("a"), job("b", "2:ncpus=2", runtime=40)), gate_is_closed=True, remember=10**6), LIVE
    )
    for deed, number in deeds:
        do(loop, deed, number, rng)
        loop.check()
    settle(loop)
    left = {entry.job.id: entry for entry in loop.world.jobs.values() if not entry.state.is_over}
    assert all(entry.never or entry.job.after for entry in left.values()), left


@pytest.mark.slow
@given(st.lists(DEEDS, min_size=5, max_size=40), st.integers(0, 1000))
@examples(50)
def test_a_promise_is_kept_or_there_is_a_reason(deeds: list[tuple[str, int]], seed: int) -> None:
    """A job that starts after the last second that its user was told has a record that says why."""
    rng = random.Random(seed)
    loop = Loop(PlayedWorld(site(job("a"), job("b", runtime=40)), gate_is_closed=True, remember=10**6), LIVE)
    promised: dict[str, int] = {}
    for deed, number in [*deeds, ("look", 0)]:
        do(loop, deed, number, rng)
        promised |= {name: promise.start for name, promise in loop.promises.items()}
    loop.look()
    reasons = {(record.job, record.after): record.reason for record in loop.records if isinstance(record, PromiseMoved)}
    for record in loop.records:
        if isinstance(record, JobStarted) and record.promised is not None and record.at > record.promised:
            assert reasons[record.job, record.at]


class CountedPlan(LivePlan):
    """Counts how often a plan that lives is begun. Mutable."""

    made: ClassVar[list[int]] = []

    def __init__(self, window: Instance, plan: Plan) -> None:
        self.made.append(window.now)
        super().__init__(window, plan)


@pytest.mark.slow
@given(st.lists(DEEDS, min_size=5, max_size=40), st.integers(0, 1000))
@examples(50)
def test_a_plan_that_lives_is_one_made_anew(deeds: list[tuple[str, int]], seed: int) -> None:
    """Whatever happens between two plans: the planner that keeps its plan has the plan of one that has none."""
    rng, kept, told = random.Random(seed), planner(), Told()
    loop = Loop(PlayedWorld(site(job("a"), job("b", runtime=40)), gate_is_closed=True, remember=10**6), LIVE)
    for deed, number in deeds:
        do(loop, deed, number, rng)
        loop.look()
        window = planning_window(loop.state, lead=number % 3 * 5, told=told)
        previous = plan_of_state(loop.state, window.instance)
        one, other = (each.follow(window.instance, previous, "a test") for each in (kept, planner()))
        assert one is not None
        assert other is not None
        assert (one.plan.jobs, one.plan.waiting_room) == (other.plan.jobs, other.plan.waiting_room)
        loop.take(Planned(plan=one.plan, revisions=window.revisions, why="a test"))


def test_a_plan_lives_from_cycle_to_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs come, start and end: the plan follows. One of which a start was refused is made anew."""
    monkeypatch.setattr("cpsched.site.daemon.planning.LivePlan", CountedPlan)
    CountedPlan.made.clear()
    loop, kept, told = Loop(world(job("a", runtime=40), job("b"), job("c")), LIVE), planner(), Told()
    for number in range(6):
        loop.look()
        window = planning_window(loop.state, told=told)
        found = kept.follow(window.instance, plan_of_state(loop.state, window.instance), "a test")
        assert found is not None
        loop.take(Planned(plan=found.plan, revisions=window.revisions, why="a test"))
        loop.look()
        loop.world.advance(loop.world.now + 15)
        loop.world.submit(new_job(loop, number))
    assert len(CountedPlan.made) == 1
    loop.look()
    loop.take(Vetoed(jobs={next(iter(loop.state.plan)): "a test"}))
    window = planning_window(loop.state, told=told)
    kept.follow(window.instance, plan_of_state(loop.state, window.instance), "a test")
    assert len(CountedPlan.made) == 2


def planned(loop: Loop, name: str, start: int, *nodes: str) -> Planned:
    """Make the event of a plan with one job."""
    window = planning_window(loop.state)
    waiting = next(one for one in window.instance.jobs if one.id == name)
    segment = Segment(start=start, end=start + waiting.walltime, allocation=on(*nodes))
    jobs = (PlannedJob(id=name, start=start, end=segment.end, segments=(segment,)),)
    plan = plan_of(window.instance, "test", Outcome(jobs=jobs, waiting_room=()), budget=0, elapsed=0)
    return Planned(plan=plan, revisions=window.revisions, why="a test")


def test_a_dry_run_gives_no_orders() -> None:
    """In a dry run the core plans and keeps its plan, and no order leaves it, not even for the gate."""
    loop = Loop(world(job("a"), gate_is_closed=False), Policy())
    loop.world.set_node("n2", NodeState.DOWN)
    loop.world.submit(site(job("b")).jobs[0])
    loop.look()
    planned_by_engine(loop, lead=0)
    state, _, orders = step(loop.state, Seen(snapshot=loop.manager.snapshot()))
    assert set(state.plan) == {"b"}
    assert orders == ()
    assert loop.promises == {}


def test_a_live_core_that_becomes_dry_hands_everything_back() -> None:
    """When the site's file makes a dry run of it, all jobs go back to the manager, and the gate opens."""
    loop = Loop(world(job("a")), LIVE)
    loop.look()
    loop.take(Reloaded(policy=Policy()))
    assert loop.world.gate_is_closed is False
    assert loop.world.jobs["a"].state is JobState.RUNNING


def test_stopping_hands_everything_back() -> None:
    """After the end of the core nothing waits for an order, and the gate is open."""
    loop = Loop(world(job("a"), job("b"), job("c")), LIVE)
    loop.look()
    planned_by_engine(loop, lead=0)
    loop.look()
    loop.take(Stopping())
    loop.look()
    assert not any(facts.is_steered for facts in loop.manager.snapshot().jobs.values())
    assert loop.world.gate_is_closed is False


def test_the_same_is_not_ordered_twice() -> None:
    """Where the snapshot shows that all is as planned, there is nothing to do."""
    loop = Loop(world(job("a", runtime=100), job("b", "2:ncpus=4")), LIVE)
    loop.look()
    planned_by_engine(loop, lead=0)
    loop.look()
    loop.look()
    state, save, orders = step(loop.state, Seen(snapshot=loop.manager.snapshot()))
    assert (save.is_empty, orders, state.stale) == (True, (), "")


def test_a_closed_gate_is_closed_again_now_and_then() -> None:
    """A manager that opens the gate when it hears nothing hears of it when a quarter of the time is over."""
    loop = Loop(world(), LIVE)
    orders = []
    for second in (0, 40, 75, 80, 150):
        loop.world.advance(second)
        loop.state, _, given = step(loop.state, Seen(snapshot=loop.manager.snapshot()))
        orders.append(given)
    closed = ((Gate(until=at + LIVE.lease),) for at in (0, 75, 150))
    assert orders == [next(closed), (), next(closed), (), next(closed)]


def test_tasks_that_are_one_job_are_not_told_one_by_one() -> None:
    """A promise is announced, but not to a task of an array that its manager does not tell apart."""
    loop = Loop(world(job("a"), job("b")), LIVE)
    loop.look()
    snapshot = loop.manager.snapshot()
    facts = {**snapshot.jobs, "b": replace(snapshot.jobs["b"], batch="7")}
    told = []
    for name in "ab":
        state, *_ = step(loop.state, planned(loop, name, 90, "n1"))
        *_, orders = step(state, Seen(snapshot=replace(snapshot, jobs=facts)))
        told += [order.job for order in orders if isinstance(order, Announce)]
    assert told == ["a"]


def test_a_lost_order_is_given_again() -> None:
    """An order that the manager has forgotten, as after a crash of it, is given again."""
    loop = Loop(world(job("a")), LIVE)
    loop.look()
    loop.take(planned(loop, "a", 10, "n1"))
    loop.look()
    loop.world.jobs["a"].due = None
    loop.look()
    assert loop.manager.snapshot().jobs["a"].due == 10


def test_a_job_that_does_not_start_is_planned_again() -> None:
    """A job that has not started long after its second loses its order and its place in the plan."""
    loop = Loop(world(job("a"), job("b")), LIVE)
    loop.look()
    loop.take(planned(loop, "a", 10, "n1"))
    loop.look()
    loop.by_others.add("b")
    loop.world.order(loop.world.jobs["b"], 0, on("n1"))
    loop.world.advance(41)
    state, *_ = step(loop.state, Seen(snapshot=loop.manager.snapshot()))
    assert "a" not in state.plan
    assert "has not started" in state.stale


def test_a_job_that_is_refused_too_often_is_left_to_the_manager() -> None:
    """After three refusals of a job as it is, it goes back to the manager; once it changes it is planned again."""
    loop = Loop(world(job("a")), LIVE)
    for _ in range(3):
        loop.look()
        event = planned(loop, "a", loop.world.now, "n1")
        loop.take(event)
        start = Start(job="a", at=0, allocation=on("n1"), revision=loop.state.plan["a"].revision)
        receipt = loop.manager.apply([HandBack(job="nobody")])[0]
        refused = replace(receipt, order=start, result=Result.REFUSED, refusal=Refusal.OTHER, detail="no")
        loop.take(Answered(receipts=(refused,)))
    assert [record.job for record in loop.records if isinstance(record, Barred)] == ["a"]
    loop.world.set_node("n1", NodeState.DOWN)
    loop.world.set_node("n2", NodeState.DOWN)
    loop.look()
    assert not loop.world.jobs["a"].is_steered
    assert planning_window(loop.state).revisions == {}
    loop.world.alter(site(job("a", "ncpus=2")).jobs[0])
    loop.look()
    assert planning_window(loop.state).revisions != {}


def test_a_window_ahead_has_the_jobs_that_start_until_then() -> None:
    """Seen from some seconds ahead, a job that starts until then runs, and one that should be over runs on a second."""
    loop = Loop(world(job("a", walltime=8, runtime=8), job("b"), job("c", "2:ncpus=4")), LIVE)
    loop.look()
    loop.take(planned(loop, "a", 0, "n1"))
    loop.look()
    loop.take(planned(loop, "b", 3, "n2"))
    loop.look()
    window = planning_window(loop.state, lead=10)
    running = {one.id: one.running for one in window.instance.jobs}
    assert window.instance.now == 10
    assert running["a"] is not None
    assert running["a"].segments[-1].end == 11
    assert running["b"] is not None
    assert (running["b"].start, running["b"].segments[-1].end) == (3, 103)
    assert running["c"] is None
    assert set(window.revisions) == {"c"}


@pytest.mark.parametrize("seconds", [0, 3, 4])
def test_what_the_manager_is_just_starting_stays_where_it_is(seconds: int) -> None:
    """A job whose ordered second has come counts as running for three seconds, and is planned anew after them."""
    loop = Loop(world(job("a", walltime=8, runtime=8), job("b"), job("c", "2:ncpus=4")), LIVE)
    loop.look()
    loop.take(planned(loop, "a", 0, "n1"))
    loop.look()
    loop.take(planned(loop, "b", 1, "n1"))
    snapshot = loop.manager.snapshot()
    # its node is still busy, and the order is given
    facts = replace(snapshot.jobs["b"], due=1, nodes=("n1",), is_steered=True)
    at = 1 + seconds
    instance = replace(snapshot.instance, now=at)
    late = replace(snapshot, taken_at=at, instance=instance, jobs={**snapshot.jobs, "b": facts})
    state = replace(loop.state, snapshot=late)
    window = planning_window(state)
    running = {one.id for one in window.instance.jobs if one.running is not None}
    assert running == ({"a", "b"} if seconds <= 3 else {"a"})
    previous = plan_of_state(state, window.instance)
    assert previous is not None
    for engine in ("planner", "wspt_list"):
        assert WindowPlanner(name=engine, budget=0.0).follow(window.instance, previous).jobs


@pytest.mark.parametrize("grain", [0, 10])
def test_a_promise_moves_earlier_by_a_grain_only(grain: int) -> None:
    """A start that moves earlier by less than the grain is no news for users; a later one always is."""
    loop = Loop(world(job("a")), replace(LIVE, grain=grain))
    loop.look()
    starts = []
    for second in (50, 45, 20, 21):
        loop.take(planned(loop, "a", second, "n1"))
        starts.append(loop.promises["a"].start)
    assert starts == ([50, 45, 20, 21] if grain == 0 else [50, 50, 20, 21])


def test_a_job_that_starts_after_its_promise_has_a_record() -> None:
    """A job whose nodes are not free at the promised second starts later, and the record says by how much."""
    loop = Loop(world(job("a"), job("b", runtime=10)), LIVE)
    loop.look()
    loop.by_others.add("b")
    loop.world.order(loop.world.jobs["b"], 0, on("n1"))
    loop.take(planned(loop, "a", 5, "n1"))
    loop.manager.apply([Start(job="a", at=5, allocation=on("n1"), revision=loop.state.plan["a"].revision)])
    loop.world.advance(12)
    loop.look()
    broken = [
        one for one in loop.records if isinstance(one, PromiseMoved) and one.job == "a" and one.before is not None
    ]
    assert [(one.before, one.after) for one in broken] == [(5, 10)]
    assert "5 s after the promised second" in broken[0].reason


def test_ends_that_the_daemon_before_did_not_see_are_noted_once() -> None:
    """Jobs that ended between two daemons, and one that the manager has forgotten, have an end in the history."""
    world_now = world(job("a", walltime=8, runtime=8), job("b", walltime=8, runtime=8), job("c"))
    for name in ("a", "b"):
        world_now.order(world_now.jobs[name], 0, on("n1" if name == "a" else "n2"))
    world_now.advance(20)
    loop = Loop(world_now, LIVE)
    loop.state = replace(loop.state, unfinished={"a": True, "b": False, "c": False, "gone": True})
    loop.look()
    loop.look()
    noted = [(type(one).__name__, one.job) for one in loop.records if not isinstance(one, PromiseMoved)]
    assert sorted(noted) == [("JobOver", "a"), ("JobOver", "b"), ("JobOver", "gone"), ("JobStarted", "b")]


def test_an_order_on_a_job_that_is_held_is_taken_back() -> None:
    """A job that was held just before its order arrived would start by it as soon as it is released."""
    loop = Loop(world(job("a"), job("b")), LIVE)
    loop.look()
    snapshot = loop.manager.snapshot()
    left = LeftJob(id="a", reason="it is held")
    facts = replace(snapshot.jobs["a"], state=JobState.HELD, due=5, nodes=("n1",), is_steered=True)
    waiting = tuple(one for one in snapshot.instance.jobs if one.id != "a")
    held = replace(
        snapshot,
        instance=replace(snapshot.instance, jobs=waiting),
        left=(left,),
        jobs={**snapshot.jobs, "a": facts},
    )
    *_, orders = step(loop.state, Seen(snapshot=held))
    assert orders == (Hold(job="a", until=snapshot.taken_at + LIVE.lease),)


def orders_of(loop: Loop, state: State, **facts: object) -> list[object]:
    """Return the orders after a snapshot in which job b has these facts."""
    snapshot = loop.manager.snapshot()
    jobs = {**snapshot.jobs, "b": replace(snapshot.jobs["b"], **facts)}  # type: ignore[arg-type]  # names of fields
    *_, orders = step(state, Seen(snapshot=replace(snapshot, jobs=jobs)))
    return list(orders)


def test_a_hold_is_renewed_while_there_is_a_plan() -> None:
    """A job that starts later is held for some minutes, again and again; while no plan can be made it is not."""
    loop = Loop(world(job("a", runtime=100), job("b")), LIVE)
    loop.look()
    loop.take(planned(loop, "b", 4000, "n1"))
    now, lease = loop.state.now, LIVE.lease
    held = Hold(job="b", until=now + lease)
    assert held in orders_of(loop, loop.state, is_steered=False)
    cases = ((now + lease, False), (now + lease // 2 + 1, False), (now + lease // 2, True), (now + lease + 1, True))
    for until, is_due in cases:
        assert (held in orders_of(loop, loop.state, is_steered=True, until=until)) is is_due
    blind, *_ = step(replace(loop.state, unannounced={}), Unplanned())
    for is_steered in (False, True):
        assert orders_of(loop, blind, is_steered=is_steered, until=now + 1) == []
    fresh = replace(loop.state, considered={})
    assert held not in orders_of(loop, fresh, is_steered=False)


def test_what_has_no_place_is_never_held() -> None:
    """A job of the waiting room is the manager's own."""
    loop = Loop(world(job("a", runtime=100), job("b")), LIVE)
    loop.look()
    loop.take(planned(loop, "b", 4000, "n1"))
    state = replace(loop.state, plan={}, unplaced=frozenset({"b"}))
    assert HandBack(job="b") in orders_of(loop, state, is_steered=True)
    orders = orders_of(loop, state, is_steered=False)
    assert not [order for order in orders if isinstance(order, Hold)]


def test_after_three_bad_cycles_everything_is_handed_back() -> None:
    """Nothing is steered then for some minutes; one more bad cycle is enough after them, a good one begins anew."""
    loop = Loop(world(job("a", runtime=1000), job("b", walltime=900), job("c", walltime=900)), LIVE)
    loop.look()
    planned_by_engine(loop, lead=0)
    loop.look()
    for number in range(3):
        assert loop.world.gate_is_closed
        assert loop.state.num_bad == number
        loop.take(CycleOver(is_bad=True))
    assert loop.world.gate_is_closed is False
    assert not any(facts.is_steered for facts in loop.manager.snapshot().jobs.values())
    loop.look()
    assert loop.world.gate_is_closed is False
    loop.take(CycleOver(is_bad=False))
    assert loop.state.gave_up_at is not None
    loop.world.advance(loop.world.now + LIVE.lease)
    loop.look()
    loop.take(CycleOver(is_bad=False))
    assert loop.state.gave_up_at is None
    again, *_ = step(loop.state, CycleOver(is_bad=True))
    assert again.gave_up_at is not None
    loop.take(CycleOver(is_bad=False))
    assert loop.state.num_bad == 0
