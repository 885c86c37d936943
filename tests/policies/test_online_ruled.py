"""Simulations of sites with limits, free pools, reservations and nodes of queues; the judge knows the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import (
    Access,
    Amounts,
    AreaScope,
    Consumer,
    ConsumerKind,
    FreePool,
    FrozenMap,
    Instance,
    ItemBound,
    Limit,
    Outage,
    Queue,
    Request,
    Reservation,
    ReservationKind,
    Validity,
    WaitingReason,
)
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Order, Prediction
from cpsched.metrics import Ending
from cpsched.planner import slices_of
from cpsched.problem import compiled
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.naive_simulator import play_naively
from tests.oracle.random_workloads import BusyMachine
from tests.sim.played import played, starts
from tests.sizes import seeds

ALL = ("fcfs", "first_fit", "easy", "conservative", "maui", "slurm", "static_backfill", "sd_10", "planner")

pytestmark = pytest.mark.kernels


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_queue_rules_keep_the_rules_of_a_site(first: int) -> None:
    """The judge finds no fault with what happened, and the naive twin starts the same jobs at the same seconds."""
    for seed in range(first, first + 20):
        drawn = BusyMachine(seed)
        instance, rule = drawn.ruled(), drawn.rule()
        predicts = (None, None, Prediction.ORDER)[seed % 3]
        runs = played(instance, rule, predicts=predicts).runs
        has_parts = bool(instance.outages and instance.reservations)
        if has_parts or rule.order in (Order.WSPT, Order.SMITH) or any(pool.nodes for pool in instance.free_pools):
            continue  # the twin knows neither parts of a node, nor shares of the stated machine, nor spread pools
        window_of_engines = compiled(instance, slices_of(instance), record=True).instance
        story = play_naively(window_of_engines, rule, predicts=predicts)
        assert {
            name: (start, end)
            for name, start, end, is_over in zip(
                runs.ids, runs.start.tolist(), runs.end.tolist(), runs.over, strict=True
            )
            if is_over
        } == {name: (run.start, run.end) for name, run in story.runs.items()}, (seed, rule)


@pytest.mark.parametrize("name", ALL[3:])
@pytest.mark.parametrize("seed", seeds(20))
def test_all_schedulers_keep_the_rules_of_a_site(name: str, seed: int) -> None:
    """So does the history of every other scheduler."""
    played(BusyMachine(seed).ruled(), make_scheduler(name, {}))


def limited(**limit: object) -> Instance:
    """Return two nodes of four cores, three jobs of alice that take two cores for 100 s, and one of bob."""
    jobs = [waiting(f"a{number}", 100, chunk(cores=2), user="alice") for number in range(3)]
    bounds = Limit(consumer=Consumer(kind=ConsumerKind.USER, name="alice"), resource="cores", **limit)  # type: ignore[arg-type]  # fields by name
    return window([nodes("n m", cores=4)], *jobs, waiting("b", 100, chunk(cores=2), user="bob"), limits=(bounds,))


@pytest.mark.parametrize("name", ALL)
def test_a_user_has_no_more_at_a_time_than_its_limit(name: str) -> None:
    """Two of alice's jobs run at a time, whatever else is free; bob's waits for the third one in strict order only."""
    found = starts(played(limited(items=ItemBound(least=4)), make_scheduler(name, {})))
    assert sorted(found[job] for job in ("a0", "a1", "a2")) == [0, 0, 100]
    assert found["b"] == (100 if name == "fcfs" else 0)


@pytest.mark.parametrize("name", ALL)
def test_a_limit_that_begins_later_is_kept_by_who_runs_then(name: str) -> None:
    """From 50 to 150 alice may have two cores: a job of 100 s that begins before runs into that time."""
    limit = limited(items=ItemBound(least=2), validity=Validity(from_=50, until=150))
    found = starts(played(limit, make_scheduler(name, {})))
    assert sorted(found[job] for job in ("a0", "a1", "a2")) == [0, 100, 150]


@pytest.mark.parametrize("name", ALL)
def test_an_area_is_that_of_the_jobs_that_run(name: str) -> None:
    """Each of alice's jobs has 200 core-seconds outstanding while it runs: of 399, one at a time."""
    limit = limited(area=399, area_scope=AreaScope.OUTSTANDING)
    found = starts(played(limit, make_scheduler(name, {})))
    assert sorted(found[job] for job in ("a0", "a1", "a2")) == [0, 100, 200]


def test_a_job_beyond_a_limit_is_refused_with_the_rule() -> None:
    """A limit of 99 s leaves none of alice's jobs a start; the document's words say so, and bob's job runs."""
    history = played(limited(duration=99), make_scheduler("fcfs"))
    assert starts(history) == {"b": 0}
    room = history.record().waiting_room
    assert [one.reason for one in room] == [WaitingReason.LIMIT] * 3
    assert all("user alice may use cores for 99 s" in one.detail and "limits[0]" in one.detail for one in room)


@pytest.mark.parametrize("name", ALL)
def test_a_free_pool_is_left_to_those_whom_it_is_open_to(name: str) -> None:
    """Four of eight cores are left to jobs of bob: alice's have four together."""
    pool = FreePool(resource="cores", items=ItemBound(least=4), open_to=Access(users=("bob",)))
    instance = replace(limited(items=ItemBound(least=8)), limits=(), free_pools=(pool,))
    found = starts(played(instance, make_scheduler(name, {})))
    assert sorted(found[job] for job in ("a0", "a1", "a2")) == [0, 0, 100]


def reserved(kind: ReservationKind = ReservationKind.USERS) -> Instance:
    """Return two nodes, of which one is reserved from 100 to 200; jobs of 100 s outside, and one inside."""
    request = Request(chunks=(chunk(cores=4),))
    inside = waiting("in", 60, chunk(cores=4), reservation="r" if kind is ReservationKind.USERS else None)
    jobs = [waiting("long", 120, chunk(2, cores=4)), waiting("fits", 100, chunk(cores=4)), inside]
    reservation = Reservation(id="r", start=100, end=200, request=request, kind=kind)
    return window([nodes("n m", cores=4)], *jobs, reservations=(reservation,))


@pytest.mark.parametrize("name", ALL)
def test_a_reservation_is_a_cluster_of_its_own(name: str) -> None:
    """The job inside begins with it; the one that asks for both nodes for longer than that waits for its end."""
    history = played(reserved(), make_scheduler(name, {}))
    found = starts(history)
    assert found["long"] == 200
    if name == "fcfs":
        assert "in" not in found  # it waits behind the others until its reservation has ended
    else:
        assert (found["in"], found["fits"]) == (100, 0)
    (slice_,) = history.record().reservations
    assert (slice_.id, slice_.start, slice_.end) == ("r", 100, 200)


def test_what_is_reserved_breaks_with_its_node() -> None:
    """The node of the reservation fails at 120: the job inside ends then, and cannot start again before the end."""
    (slice_,) = played(reserved(), make_scheduler("easy")).record().reservations
    node = slice_.allocation[0].node
    broken = replace(reserved(), outages=(Outage(nodes=(node,), start=120, end=150),))
    history = played(broken, make_scheduler("easy"))
    assert [(one.id, one.start, one.end) for one in history.record().attempts] == [("in", 100, 120)]
    endings = dict(zip(history.runs.ids, history.runs.ending.tolist(), strict=True))
    assert endings["in"] == Ending.REFUSED


@pytest.mark.parametrize("name", ALL)
def test_a_queue_keeps_to_its_nodes(name: str) -> None:
    """Three jobs of a queue of one node run one after the other, though another node is free."""
    jobs = [waiting(f"q{number}", 10, chunk(cores=4), queue="small") for number in range(3)]
    queues = FrozenMap({"small": Queue(expected_wait=60, nodes=("m",))})
    instance = window([nodes("n m", cores=4)], *jobs, queues=queues)
    assert sorted(starts(played(instance, make_scheduler(name, {}))).values()) == [0, 10, 20]
    assert Amounts({"cores": 4}) == instance.cluster.class_of["n"].resources


def test_a_reservation_is_decided_by_the_walltimes_of_running_jobs() -> None:
    """The only node is promised to a job until 120, so that there is none to reserve from 100 on; it ends at 50."""
    on = replace(running("on", 120, n={"cores": 4}), runtime=50)
    reservation = Reservation(id="r", start=100, end=200, request=Request(chunks=(chunk(cores=4),)))
    instance = window([nodes("n", cores=4)], on, waiting("next", 100, chunk(cores=4)), reservations=(reservation,))
    history = played(instance, make_scheduler("easy"))
    assert starts(history)["next"] == 50
    assert [slice_.reason is None for slice_ in history.record().reservations] == [False]
