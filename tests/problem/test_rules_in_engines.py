"""Worked examples of the rules of a site, planned by each engine; the verifier passes every plan."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Instance
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import solve
from cpsched.verify import verify

ENGINES = ("planner", "search", "cp", "minizinc", "easy", "conservative")


def instance_of(jobs: list[dict[str, Any]], nodes: str = "n[1-4]", **rules: Any) -> Instance:
    """Return a window of nodes with four cores and a GPU each, at eight o'clock on a Monday."""
    cluster = {"nodes": [{"names": nodes, "resources": {"cores": 4, "gpus": 1}}], "licenses": {"lic": 4}}
    head = {"format": "cpsched-instance/1", "name": "rules", "epoch": "2026-11-23T08:00:00+01:00", "now": 0}
    document = {**head, "cluster": cluster, "jobs": jobs, **rules}
    return parse_instance(document, source="test")


def job(name: str, user: str, request: str, walltime: int, **more: Any) -> dict[str, Any]:
    """Return a waiting job."""
    return {"id": name, "user": user, "submit": 0, "walltime": walltime, "request": request, **more}


def planned(instance: Instance, engine: str) -> tuple[dict[str, int], dict[str, str]]:
    """Return the starts, and the reasons of the waiting room, of a plan that the verifier passes."""
    plan = solve(instance, engine=engine, budget=0.5)
    running = {one.id for one in instance.jobs if one.running is not None}
    return (
        {one.id: one.start for one in plan.jobs if one.id not in running},
        {one.id: str(one.reason) for one in plan.waiting_room},
    )


each_engine = pytest.mark.parametrize("engine", ENGINES)


# --- limits (OCCS-15) ---


@each_engine
def test_items_at_a_time(engine: str) -> None:
    """A user with a limit of eight cores runs two of three jobs of four cores at a time; a neighbour is free."""
    jobs = [job(f"a{i}", "alice", "ncpus=4", 100) for i in range(3)] + [job("b", "bob", "ncpus=4", 100)]
    limits = [{"consumer": {"user": "alice"}, "resource": "cores", "items": "8"}]
    starts, _ = planned(instance_of(jobs, limits=limits), engine)
    assert sorted(starts[f"a{i}"] for i in range(3)) == [0, 0, 100]
    assert starts["b"] == 0


@each_engine
def test_percent_of_what_is_up(engine: str) -> None:
    """`30/45%` of 16 cores is 30: no limit here; `5/45%` is 7: one job of four cores at a time."""
    jobs = [job(f"a{i}", "alice", "ncpus=4", 100) for i in range(2)]
    for items, last in (("30/45%", 0), ("5/45%", 100)):
        limits = [{"consumer": {"each": "user"}, "resource": "cores", "items": items}]
        starts, _ = planned(instance_of(jobs, limits=limits), engine)
        assert max(starts.values()) == last


@pytest.mark.slow
@each_engine
def test_jobs_and_elements_of_arrays(engine: str) -> None:
    """A limit on `jobs` counts elements of arrays too, one on `arrayjobs` only them."""
    jobs = [job("a", "alice", "ncpus=1", 10, array={"indices": "1-3"}), job("s", "alice", "ncpus=1", 10)]
    for resource, last in (("jobs", 10), ("arrayjobs", 10)):
        limits = [{"consumer": {"user": "alice"}, "resource": resource, "items": "2"}]
        starts, _ = planned(instance_of(jobs, limits=limits), engine)
        assert max(starts.values()) == last
        assert sum(start == 0 for start in starts.values()) == (2 if resource == "jobs" else 3)


@each_engine
def test_a_limit_of_a_group_joins_that_of_a_user(engine: str) -> None:
    """Both limits hold: at each time the stricter one."""
    jobs = [job(f"{user}{i}", user, "ncpus=4", 100, group="g") for user in ("alice", "bob") for i in range(2)]
    limits = [
        {"consumer": {"user": "alice"}, "resource": "cores", "items": "4"},
        {"consumer": {"group": "g"}, "resource": "cores", "items": "12"},
    ]
    starts, _ = planned(instance_of(jobs, limits=limits), engine)
    assert sorted(starts.values()) == [0, 0, 0, 100]
    assert {starts["alice0"], starts["alice1"]} == {0, 100}


@each_engine
def test_an_own_limit_overrides_star_while_it_holds(engine: str) -> None:
    """`*` allows four of everything, an own limit 16 cores in the first hour: two jobs run, later one (OCCS-22)."""
    jobs = [job(f"a{i}", "alice", "ncpus=4", 3600) for i in range(4)]
    limits = [
        {"consumer": {"user": "alice"}, "resource": "*", "items": "4"},
        {
            "consumer": {"user": "alice"},
            "resource": "cores",
            "items": "8",
            "validity": {"from": 0, "until": 3600},
        },
    ]
    starts, _ = planned(instance_of(jobs, limits=limits), engine)
    assert sorted(starts.values()) == [0, 0, 3600, 7200]


@each_engine
def test_a_long_job_waits_until_a_limit_on_duration_ends(engine: str) -> None:
    """A limit of 1,000 s until 500 moves a job of 2,000 s to 500; without an end it never starts."""
    jobs = [job("long", "alice", "ncpus=1", 2000), job("short", "alice", "ncpus=1", 1000)]
    limit = {"consumer": {"user": "alice"}, "resource": "cores", "duration": 1000}
    until = {"validity": {"from": 0, "until": 500}}
    assert planned(instance_of(jobs, limits=[limit | until]), engine)[0] == {"long": 500, "short": 0}
    starts, reasons = planned(instance_of(jobs, limits=[limit]), engine)
    assert starts == {"short": 0}
    assert reasons == {"long": "limit"}


@each_engine
def test_the_area_of_a_request(engine: str) -> None:
    """480 GPU seconds are within a limit of 500, 504 are beyond (OCCS-15)."""
    jobs = [
        job("ok", "alice", "4:ncpus=1:ngpus=1", 120),
        job("no", "alice", "4:ncpus=1:ngpus=1", 126),
    ]
    limits = [{"consumer": {"user": "alice"}, "resource": "gpus", "area": 500}]
    starts, reasons = planned(instance_of(jobs, limits=limits), engine)
    assert starts == {"ok": 0}
    assert reasons == {"no": "limit"}


@each_engine
def test_an_outstanding_area_with_what_is_used_up(engine: str) -> None:
    """Of 1,000 core seconds 300 are used up: two jobs of 300 fit, the third waits; the first ones first."""
    jobs = [job(f"a{i}", "alice", "ncpus=3", 100, submit=-10 + i) for i in range(3)]
    limits = [
        {"consumer": {"user": "alice"}, "resource": "cores", "area": 1000, "area_scope": "outstanding"},
    ]
    usage = [{"consumer": {"user": "alice"}, "resource": "cores", "area": 300}]
    starts, reasons = planned(instance_of(jobs, limits=limits, usage=usage), engine)
    assert starts == {"a0": 0, "a1": 0}
    assert reasons == {"a2": "limit"}


@each_engine
def test_a_limit_by_the_calendar(engine: str) -> None:
    """From eight to ten a user has no cores: the job starts at ten."""
    limits = [
        {
            "consumer": {"user": "alice"},
            "resource": "cores",
            "items": "0",
            "validity": {"cron": "* 8-9 * * mon"},
        }
    ]
    starts, _ = planned(instance_of([job("a", "alice", "ncpus=1", 100)], limits=limits), engine)
    assert starts == {"a": 7200}


@each_engine
def test_a_job_ends_before_a_limit_begins(engine: str) -> None:
    """From nine to ten a user has no cores: a job of an hour runs before, a longer one after."""
    limits = [{"consumer": {"user": "alice"}, "resource": "cores", "items": "0", "validity": {"cron": "* 9 * * *"}}]
    jobs = [job("hour", "alice", "ncpus=1", 3600), job("more", "alice", "ncpus=1", 3601)]
    assert planned(instance_of(jobs, limits=limits), engine)[0] == {"hour": 0, "more": 7200}


@each_engine
def test_running_jobs_count_and_are_facts(engine: str) -> None:
    """A running job beyond a limit stays; the next one of its user waits until it ends."""
    runs = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
    jobs = [job("r", "alice", "ncpus=4", 100, running=runs), job("a", "alice", "ncpus=2", 10)]
    limits = [{"consumer": {"user": "alice"}, "resource": "cores", "items": "2"}]
    assert planned(instance_of(jobs, limits=limits), engine)[0] == {"a": 50}


@each_engine
def test_a_limit_on_a_licence(engine: str) -> None:
    """A user may have one of four licences at a time."""
    jobs = [job(f"a{i}", "alice", "ncpus=1", 10, licenses={"lic": 1}) for i in range(2)]
    limits = [{"consumer": {"user": "alice"}, "resource": "lic", "items": "1"}]
    assert sorted(planned(instance_of(jobs, limits=limits), engine)[0].values()) == [0, 10]


@pytest.mark.slow
@each_engine
def test_a_soft_limit_is_exceeded_where_nobody_else_waits_for_it(engine: str) -> None:
    """With a soft limit of four cores a user's second job starts at once on a free node, but not before others."""
    limits = [{"consumer": {"user": "alice"}, "resource": "cores", "items": "4", "soft": True}]
    alone = [job(f"a{i}", "alice", "ncpus=4", 100) for i in range(2)]
    assert set(planned(instance_of(alone, limits=limits), engine)[0].values()) == {0}
    beside = [*alone, job("b", "bob", "ncpus=4", 100)]
    starts, _ = planned(instance_of(beside, "n[1-2]", limits=limits), engine)
    assert starts["b"] == 0
    assert sorted([starts["a0"], starts["a1"]]) == [0, 100]


# --- free pools (OCCS-16) ---


@each_engine
def test_cores_for_small_jobs(engine: str) -> None:
    """Of 16 cores at least 20 %, and 6, are kept for jobs of less than four cores and an hour: 10 are left."""
    jobs = [job(f"big{i}", "alice", "ncpus=4", 7200) for i in range(3)] + [job("small", "bob", "ncpus=2", 1800)]
    pools = [{"resource": "cores", "items": "6/20%", "open_to": {"max": {"cores": 3}, "max_walltime": 3600}}]
    starts, _ = planned(instance_of(jobs, free_pools=pools), engine)
    assert sorted(starts[f"big{i}"] for i in range(3)) == [0, 0, 7200]
    assert starts["small"] == 0


@each_engine
def test_gpus_for_groups(engine: str) -> None:
    """All GPUs are kept for a group and a user; others may have them for two hours."""
    jobs = [
        job("member", "bob", "4:ncpus=1:ngpus=1", 9000, group="G1"),
        job("alice", "alice", "4:ncpus=1:ngpus=1", 9000),
        job("short", "eve", "4:ncpus=1:ngpus=1", 7200),
        job("long", "eve", "4:ncpus=1:ngpus=1", 7201),
    ]
    pools = [
        {
            "resource": "gpus",
            "items": "100%",
            "open_to": {"groups": ["G1", "G2"], "users": ["alice"]},
            "otherwise": {"max_walltime": 7200},
        }
    ]
    starts, reasons = planned(instance_of(jobs, free_pools=pools), engine)
    assert starts.keys() == {"member", "alice", "short"}
    assert reasons == {"long": "free_pool"}


@each_engine
def test_nodes_for_maintenance_by_the_calendar(engine: str) -> None:
    """Nodes are kept for nobody from nine to ten: a job on all nodes of two hours starts at ten (OCCS-50)."""
    jobs = [job("all", "alice", "4:ncpus=4", 7200), job("some", "alice", "2:ncpus=4", 3600)]
    pools = [
        {
            "resource": "cores",
            "items": "100%",
            "open_to": {"users": []},
            "nodes": "n[1-2]",
            "validity": {"cron": "* 9 * * mon"},
        }
    ]
    assert planned(instance_of(jobs, free_pools=pools), engine)[0]["all"] == 7200


@each_engine
def test_a_part_of_some_nodes(engine: str) -> None:
    """Of two nodes' eight cores five are kept: others have three of them, and the other nodes."""
    jobs = [job(f"a{i}", "alice", "ncpus=3", 100) for i in range(4)] + [job("m", "bob", "ncpus=4", 100)]
    pools = [{"resource": "cores", "items": "5", "open_to": {"users": ["bob"]}, "nodes": "n[1-2]"}]
    starts, _ = planned(instance_of(jobs, free_pools=pools), engine)
    assert sorted(starts[f"a{i}"] for i in range(4)) == [0, 0, 0, 100]
    assert starts["m"] == 0


# --- reservations (OCCS-20, 42) ---


@pytest.mark.slow
@each_engine
def test_a_downtime_and_a_reservation(engine: str) -> None:
    """A downtime of two nodes and a reservation of two leave nothing to others; guests run inside (OCCS-42)."""
    jobs = [
        job("other", "bob", "ncpus=4", 60),
        job("guest", "alice", "2:ncpus=4", 50, reservation="r"),
        job("second", "alice", "2:ncpus=4", 50, reservation="r"),
        job("third", "alice", "ncpus=1", 50, reservation="r"),
        job("stranger", "bob", "ncpus=1", 50, reservation="r"),
    ]
    reservations = [
        {"id": "r", "start": 50, "end": 150, "request": "2:ncpus=4", "users": ["alice"]},
        {"id": "d", "kind": "downtime", "start": 50, "end": 200, "request": "2:ncpus=4"},
    ]
    instance = instance_of(jobs, reservations=reservations)
    starts, reasons = planned(instance, engine)
    assert starts["other"] == 150
    assert sorted(starts[name] for name in ("guest", "second") if name in starts) in ([50, 100], [50], [100])
    assert reasons["stranger"] == "reservation"
    plan = solve(instance, engine=engine, budget=0.2)
    assert {(one.id, one.start, one.end) for one in plan.reservations} == {("r", 50, 150), ("d", 50, 200)}


@each_engine
def test_licences_of_a_reservation(engine: str) -> None:
    """A reservation has its licences for itself: guests take them, others what is left."""
    jobs = [
        job("guest", "alice", "ncpus=1", 50, reservation="r", licenses={"lic": 3}),
        job("other", "bob", "ncpus=1", 100, licenses={"lic": 2}),
    ]
    reservations = [{"id": "r", "start": 50, "end": 150, "request": "ncpus=1", "licenses": {"lic": 3}}]
    assert planned(instance_of(jobs, reservations=reservations), engine)[0] == {"guest": 50, "other": 150}


def test_verify_agrees() -> None:
    """The plan document with reservations passes the verifier by itself."""
    jobs = [job("guest", "alice", "ncpus=4", 50, reservation="r")]
    instance = instance_of(jobs, reservations=[{"id": "r", "start": 50, "end": 150, "request": "ncpus=4"}])
    plan = solve(instance, engine="planner", budget=0)
    assert not verify(instance_to_document(instance), plan_to_document(plan))
