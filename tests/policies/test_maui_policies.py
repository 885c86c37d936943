"""Maui's short pool (MAUI-7), allocation bank (MAUI-9), and what its parameters may be."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cpsched.domain import Amounts, FrozenMap, Outage, Placement, Running, Segment
from cpsched.errors import EngineError
from cpsched.lab.policies.maui.allocation_bank import AllocationBank
from cpsched.lab.policies.maui.maui import Maui, maui
from cpsched.lab.policies.maui.params import Credits, Downtime, Fairshare, MauiParams, Qos, ShortPool, Weights
from cpsched.lab.policies.maui.short_pool import end_of_work
from cpsched.lab.sim import Decision, News, Site
from tests.policies.maui_runs import HOUR, MONDAY, job, judged, machine, played
from tests.sim.charged import Clock, charged

POOL = ShortPool(nodes=2)
MORNING = 9 * HOUR


def users(**credits: float) -> FrozenMap[str, float]:
    return FrozenMap(credits)


# --- short pool -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "hours", "expected"), [(0, 8, 10), (0, 17.99, 0.01), (0, 18, None), (0, 7.99, None), (5, 12, None)]
)
def test_working_hours(days: int, hours: float, expected: float | None) -> None:
    """They are from 8 to 18 from Monday to Friday, and end at 18."""
    now = round(days * 24 * HOUR + hours * HOUR)
    end = end_of_work(MONDAY + timedelta(seconds=now), now, 8, 18)
    assert end == (None if expected is None else now + round(expected * HOUR))


def test_working_hours_may_last_until_midnight() -> None:
    """Hour 24 is the midnight after."""
    assert end_of_work(MONDAY + timedelta(hours=23), 23 * HOUR, 8, 24) == 24 * HOUR


def test_long_jobs_leave_the_nodes_of_the_pool_alone_until_work_ends() -> None:
    """Of four nodes two are kept: the third long job waits until 18:00, short ones start on them."""
    now = MORNING
    long = [job(f"long{number}", 1, 4 * HOUR, submit=now, runtime=12 * HOUR) for number in range(3)]
    long = [replace(one, steps=(replace(one.steps[0], walltime=12 * HOUR),)) for one in long]
    short = [job(f"short{number}", 1, 2 * HOUR, submit=now + 1) for number in range(2)]
    starts, _ = played(replace(machine(4), now=now), [*long, *short], shortpool=POOL)
    assert starts == {"long0": now, "long1": now, "long2": 18 * HOUR, "short0": now + 1, "short1": now + 1}


def test_nobody_is_held_off_at_night() -> None:
    """Before eight all nodes are taken by long jobs, and these run on."""
    starts, _ = played(machine(2), [job("a", 2, 20 * HOUR)], shortpool=POOL)
    assert starts == {"a": 0}


@pytest.mark.parametrize(("left", "waits"), [(2 * HOUR + 1, False), (2 * HOUR + 2, True)])
def test_a_busy_node_counts_if_it_is_soon_idle(left: int, waits: bool) -> None:
    """A long job may take an idle node if another one will be idle within two hours, else it waits a second."""
    now = MORNING
    jobs = [job("busy", 1, left, submit=now), job("long", 1, 30 * HOUR, submit=now + 1)]
    pool = replace(POOL, nodes=1, longest=3 * HOUR)
    starts, _ = played(replace(machine(2), now=now), jobs, shortpool=pool)
    assert starts["long"] == now + 1 + waits


def test_a_quality_can_be_exempt_from_the_pool() -> None:
    """The boss's long job takes the node that is kept."""
    jobs = [job("long", 1, 5 * HOUR, submit=MORNING), job("boss", 1, 5 * HOUR, submit=MORNING, user="boss")]
    qos = FrozenMap({"boss": Qos(users=("boss",), exempt=("shortpool",))})
    starts, _ = played(replace(machine(1), now=MORNING), jobs, shortpool=replace(POOL, nodes=1), qos=qos)
    assert starts == {"boss": MORNING, "long": 18 * HOUR}


def test_what_was_promised_at_night_is_no_part_of_the_pool() -> None:
    """A reservation from before eight holds in working hours."""
    jobs = [job("a", 2, 10 * HOUR), job("long", 2, 10 * HOUR, submit=1), job("come", 1, 1, submit=9 * HOUR)]
    starts, scheduler = played(machine(2), jobs, shortpool=POOL)
    assert scheduler.promised[1] == starts["long"] == 10 * HOUR


def test_working_hours_need_a_date() -> None:
    """A short pool on a clock that has none is refused."""
    instance = replace(machine(1), epoch=None, jobs=(job("a", 1, 1),))
    with pytest.raises(EngineError, match="Expected an epoch"):
        judged(instance, Maui(MauiParams(shortpool=POOL)))


# --- allocation bank --------------------------------------------------------------------------------------------------


def test_a_job_holds_its_price_and_gets_back_what_it_did_not_use() -> None:
    """Of 1000 h a job of 16 cores and 10 h holds 160; after 4 h it has cost 64, and 936 are left (MAUI-9's example)."""
    bank = AllocationBank(Credits(users=users(ann=1000)))
    assert bank.can_pay("ann", 16, 10 * HOUR, 1.0)
    bank.hold(7, "ann", 16, 10 * HOUR, 1.0)
    assert bank.balance("ann") == 840
    bank.settle(7, 4 * HOUR)
    assert bank.balance("ann") == 936


def test_the_rate_is_in_the_price() -> None:
    """At half the rate a job costs half as much, and what costs nothing may run at 0."""
    bank = AllocationBank(Credits(users=users(ann=10)))
    assert not bank.can_pay("ann", 20, HOUR, 1.0)
    assert bank.can_pay("ann", 20, HOUR, 0.5)
    bank.hold(1, "ann", 20, HOUR, 0.5)
    assert bank.balance("ann") == 0
    assert not bank.can_pay("ann", 1, 60, 0.5)
    assert bank.can_pay("ann", 1, 60, 0.0)


def test_who_is_not_in_the_bank_is_not_charged() -> None:
    """Unless there is something that all others have."""
    bank = AllocationBank(Credits(users=users(ann=10)))
    bank.hold(1, "bob", 20, HOUR, 1.0)
    bank.hold(2, None, 20, HOUR, 1.0)
    assert not bank.holds(1)
    assert not bank.holds(2)
    assert bank.balance("bob") is None
    assert not AllocationBank(Credits(others=1)).can_pay("bob", 2, HOUR, 1.0)
    assert AllocationBank(Credits(others=1)).can_pay(None, 2, HOUR, 1.0)


def test_a_whole_run_is_accounted_for() -> None:
    """The example of MAUI-9 in a simulation: the job ends after 4 h, and 936 h are left at the next look."""
    jobs = [job("a", 16, 10 * HOUR, runtime=4 * HOUR, user="ann"), job("later", 1, 1, submit=5 * HOUR)]
    _, scheduler = played(machine(16), jobs, bank=Credits(users=users(ann=1000)))
    assert scheduler.bank is not None
    assert scheduler.bank.balance("ann") == 936


def test_who_has_used_up_everything_cannot_run_until_something_comes_back() -> None:
    """Ann's second job waits for the refund of the first, bob's goes before it; her third never can."""
    jobs = [
        job("first", 1, 2 * HOUR, runtime=HOUR, user="ann"),
        job("second", 1, HOUR, user="ann"),
        job("bob", 1, 10 * HOUR, user="bob"),
        job("third", 1, HOUR, submit=2 * HOUR, user="ann"),
        job("end", 1, 1, submit=12 * HOUR),
    ]
    starts, scheduler = played(machine(2), jobs, bank=Credits(users=users(ann=2)))
    assert starts == {"first": 0, "second": HOUR, "bob": 0, "third": -1, "end": 12 * HOUR}
    assert scheduler.bank is not None
    assert scheduler.bank.balance("ann") == 0


def test_a_reservation_holds_money_against_backfilling() -> None:
    """Ann's wide job waits for nodes; her narrow one, which comes after it, may not spend its money first."""
    jobs = [job("a", 1, HOUR), job("wide", 2, HOUR, user="ann"), job("narrow", 1, HOUR, user="ann")]
    starts, _ = played(machine(2), jobs, bank=Credits(users=users(ann=2.5)))
    assert starts == {"a": 0, "wide": HOUR, "narrow": -1}


def test_a_run_that_was_cut_short_costs_what_it_took() -> None:
    """A job whose node breaks after half an hour, and that runs again for an hour, has cost an hour and a half."""
    jobs = [job("a", 1, HOUR, user="ann"), job("end", 1, 1, submit=9 * HOUR)]
    instance = replace(machine(2), outages=(Outage(nodes=("n0", "n1"), start=HOUR // 2, end=HOUR),))
    starts, scheduler = played(instance, [*jobs, job("tick", 1, 1, submit=HOUR)], bank=Credits(users=users(ann=10)))
    assert starts["a"] == HOUR
    assert scheduler.bank is not None
    assert scheduler.bank.balance("ann") == 8.5


def test_who_ran_before_the_beginning_pays_for_the_whole_run() -> None:
    """A job that has run for an hour and ends after another one costs two, whatever is left."""
    held = Placement(node="n0", resources=Amounts({"cores": 1}))
    segment = Segment(start=-HOUR, end=3 * HOUR, allocation=(held,))
    jobs = [
        job(
            "a",
            1,
            4 * HOUR,
            submit=-HOUR,
            runtime=2 * HOUR,
            user="ann",
            running=Running(start=-HOUR, segments=(segment,)),
        ),
        job("b", 1, 4 * HOUR, user="ann"),
        job("end", 1, 1, submit=9 * HOUR),
    ]
    starts, scheduler = played(machine(2), jobs, bank=Credits(users=users(ann=6)))
    assert starts == {"a": -HOUR, "b": HOUR, "end": 9 * HOUR}
    assert scheduler.bank is not None
    assert scheduler.bank.balance("ann") == 0


def test_what_is_charged_for_a_decision_is_no_part_of_a_run() -> None:
    """A scheduler whose decisions take a second debits what the jobs have run from when they really began."""
    clock = Clock()

    class Slow(Maui):
        def decide(self, site: Site, news: News) -> Decision:
            clock.seconds += 1.01
            return super().decide(site, news)

    scheduler = Slow(MauiParams(bank=Credits(users=users(ann=1)), weights=Weights(fairshare_user=1)))
    instance = replace(machine(1), jobs=(job("a", 1, 1800, user="ann"), job("b", 1, 1800, submit=9, user="ann")))
    runs = charged(instance, scheduler, clock).runs
    assert runs.start[0] == 1
    assert scheduler.bank is not None
    assert scheduler.bank.balance("ann") == 0


def test_a_quality_can_be_exempt_from_the_bank_or_cheap() -> None:
    """With nothing left, a job runs if its quality is exempt, or bills nothing."""
    for qos in (Qos(users=("ann",), exempt=("bank",)), Qos(users=("ann",), billing_rate=0)):
        starts, _ = played(
            machine(1), [job("a", 1, 5, user="ann")], bank=Credits(others=0), qos=FrozenMap({"free": qos})
        )
        assert starts == {"a": 0}
    starts, _ = played(machine(1), [job("a", 1, 5, user="ann")], bank=Credits(others=0))
    assert starts == {"a": -1}


# --- parameters -------------------------------------------------------------------------------------------------------


def test_tables_stand_for_parameters() -> None:
    """What a campaign's file says in tables is what the dataclasses say."""
    made = maui(
        reservation_depth=3,
        backfill=False,
        weights={"xfactor": 2},
        priorities={"user": {"ann": 5}},
        fairshare={"depth": 3, "targets": {"group": {"g": "25+"}}},
        qos={"gold": {"users": ("ann",), "priority": 7}},
        downtimes=[{"start": 5, "end": 9, "nodes": ("n1",)}],
        shortpool={"nodes": 4},
        bank={"users": {"ann": 5.0}},
    )
    assert made.params == MauiParams(
        reservation_depth=3,
        backfill=False,
        weights=Weights(xfactor=2),
        priorities=FrozenMap({"user": FrozenMap({"ann": 5.0})}),
        fairshare=Fairshare(depth=3, targets=FrozenMap({"group": FrozenMap[str, str | float]({"g": "25+"})})),
        qos=FrozenMap({"gold": Qos(users=("ann",), priority=7)}),
        downtimes=(Downtime(start=5, end=9, nodes=("n1",)),),
        shortpool=ShortPool(nodes=4),
        bank=Credits(users=FrozenMap({"ann": 5.0})),
    )
    assert maui().params == MauiParams()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"reservation_depth": -1}, "Expected a reservation_depth of 0 or more, got -1"),
        ({"fairshare": {"targets": 3}}, "Expected a table of names in targets, got 3"),
        ({"qos": {"a": {"users": 3}}}, "Expected a list in users, got 3"),
        ({"weights": {"usr": 1}}, "in a table for Weights, got usr"),
        ({"priorities": {"users": {}}}, "Expected priorities of user, group, account, queue, qos, got 'users'"),
        ({"priorities": {"qos": {}}}, "Expected the priority of a qos in qos"),
        ({"fairshare": {"depth": 0}}, "Expected windows of fairshare, got 0 of 86400 s"),
        ({"fairshare": {"decay": 0}}, "Expected a decay of fairshare in"),
        ({"fairshare": {"targets": {"user": {"ann": "25x"}}}}, "Expected a fairshare target"),
        ({"fairshare": {"targets": {"usr": {}}}}, "Expected fairshare targets of user"),
        ({"qos": {"a": {"users": ["ann"]}, "b": {"users": ["ann"]}}}, "one qos for each of the users, got several"),
        ({"qos": {"a": {"billing_rate": -1}}}, "Expected a billing rate of 0 or more"),
        ({"qos": {"a": {"target_xfactor": 1}}}, "Expected a target over 1"),
        ({"qos": {"a": {"target_queue_time": 0}}}, "Expected a target > 0"),
        ({"qos": {"a": {"exempt": ["all"]}}}, "Expected exemptions of depth, shortpool, bank, fairshare, got 'all'"),
        ({"downtimes": [{"start": 5, "end": 5}]}, "Expected a downtime that begins before its end"),
        ({"downtimes": [{"start": 5}]}, "Expected end in a table for Downtime, got "),
        ({"shortpool": {"nodes": 0}}, "Expected nodes of the short pool > 0"),
        ({"shortpool": {"nodes": 1, "begin_hour": 9, "end_hour": 9}}, "Expected hours of a day"),
        ({"shortpool": {"nodes": 1, "longest": 0}}, "Expected longest > 0"),
        ({"weights": {"user": "much"}}, "user: Expected a number, got 'much'"),
        ({"reservation_depth": 1.5}, "reservation_depth: Expected an integer, got 1.5"),
        ({"reservation_depth": True}, "reservation_depth: Expected an integer, got True"),
        ({"priorities": {"user": {"ann": "high"}}}, "priorities: Expected a number, got 'high'"),
        ({"downtimes": ["tonight"]}, "Expected a table for Downtime, got 'tonight'"),
        ({"bank": {"users": {"ann": -1.0}}}, "Expected credits of 0 or more"),
    ],
)
def test_what_cannot_be_set_is_refused(tables: dict[str, Any], message: str) -> None:
    """The message says what was expected and what was got."""
    with pytest.raises(ValueError, match=message):
        maui(**tables)


def test_an_epoch_in_another_zone_shifts_working_hours() -> None:
    """Hours are those of the workload's own clock."""
    local = MONDAY + timedelta(hours=10)
    assert end_of_work(local, 0, 8, 18) == 8 * HOUR


def test_working_hours_follow_the_clocks_of_the_site() -> None:
    """In Cairo the last hour of the last Thursday of October comes twice; without a date there are no working hours."""
    thursday = datetime(2026, 10, 29, 22, 30, tzinfo=ZoneInfo("Africa/Cairo"))
    assert end_of_work(thursday, 0, 8, 24) == round(2.5 * HOUR)
    assert end_of_work(thursday - timedelta(days=7), 0, 8, 24) == round(1.5 * HOUR)
    assert end_of_work(None, 0, 8, 18) is None
