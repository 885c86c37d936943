"""Reservations of named nodes, recurring ones, and those that have nodes already, planned by each engine."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.planner import PlannerEngine, problem_of
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.oracle.random_reservations import reserved_window
from tests.problem.test_rules_in_engines import ENGINES, instance_of, job
from tests.sizes import seeds

RUNNING = {"start": -50, "allocation": [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]}


def _planned(
    engine: str, jobs: list[dict[str, Any]], reservations: list[dict[str, Any]], **rules: Any
) -> tuple[dict[str, int], dict[tuple[str, int], set[str] | str]]:
    """Return the starts of a plan that the verifier passes, and the nodes that reservations got or why they did not."""
    plan = solve(instance_of(jobs, reservations=reservations, **rules), engine=engine, budget=0.5)
    got = {(one.id, one.start): one.reason or {held.node for held in one.allocation} for one in plan.reservations}
    return {one.id: one.start for one in plan.jobs}, got


@pytest.mark.parametrize("engine", ENGINES)
class TestReservations:
    """OCCS-20, 42, 43."""

    def test_a_maintenance_of_named_nodes(self, engine: str) -> None:
        """What runs there goes on; nothing new is there in its time, nor in that of a second one that overlaps."""
        jobs = [
            job("r", "alice", "ncpus=2", 150, running=RUNNING),
            job("wide", "alice", "4:ncpus=2", 60, place="scatter"),
            *(job(f"a{number}", "alice", "ncpus=4", 100) for number in range(2)),
        ]
        downtimes = [
            {"id": "m", "kind": "downtime", "start": 50, "end": 150, "nodes": "n[1-2]"},
            {"id": "n", "kind": "downtime", "start": 120, "end": 170, "nodes": "n[2-3]"},
        ]
        starts, got = _planned(engine, jobs, downtimes)
        assert got == {("m", 50): {"n1", "n2"}, ("n", 120): {"n2", "n3"}}
        assert starts == {"r": -50, "wide": 170, "a0": 0, "a1": 0}

    def test_one_that_cannot_be_had(self, engine: str) -> None:
        """Named nodes on which a job runs cannot be had, nor can too many: data, not an exception."""
        jobs = [
            job("r", "alice", "ncpus=2", 150, running=RUNNING),
            job("guest", "alice", "ncpus=1", 10, reservation="x"),
        ]
        reservations = [
            {"id": "x", "start": 50, "end": 150, "nodes": "n1"},
            {"id": "y", "start": 50, "end": 150, "request": "5:ncpus=4"},
            {"id": "z", "start": 50, "end": 150, "nodes": "n2"},
        ]
        starts, got = _planned(engine, jobs, reservations)
        assert starts == {"r": -50}
        assert got["z", 50] == {"n2"}
        assert isinstance(got["x", 50], str)
        assert isinstance(got["y", 50], str)

    def test_a_recurring_one(self, engine: str) -> None:
        """The first five minutes of each hour of the morning: jobs of it run in them, and others around."""
        hourly = {"id": "h", "nodes": "n[1-4]", "validity": {"cron": "0-4 * * * *", "until": 3 * 3600}}
        jobs = [
            job("guest", "alice", "4:ncpus=4", 300, reservation="h", not_before=10),
            job("short", "bob", "4:ncpus=4", 3300),
            job("long", "bob", "4:ncpus=4", 3400),
        ]
        starts, got = _planned(engine, jobs, [hourly])
        assert list(got) == [("h", 0), ("h", 3600), ("h", 7200)]
        assert starts == {"guest": 3600, "short": 300, "long": 7500}

    def test_jobs_of_a_recurring_one_share_its_times(self, engine: str) -> None:
        """A job for which one time has no room left is planned in the next one."""
        hourly = {"id": "h", "nodes": "n[1-4]", "validity": {"cron": "0-4 * * * *", "until": 3 * 3600}}
        jobs = [job(f"g{number}", "alice", "4:ncpus=4", 200, reservation="h") for number in range(3)]
        starts, _ = _planned(engine, jobs, [hourly])
        assert sorted(starts.values()) == [0, 3600, 7200]

    def test_a_recurring_one_that_asks(self, engine: str) -> None:
        """An occurrence is had where there is room, and the others are not lost for one that is not."""
        hourly = {"id": "h", "request": "4:ncpus=4", "validity": {"cron": "0-4 * * * *", "until": 2 * 3600}}
        full = [{"node": f"n{number}", "chunk": 0, "count": 1, "resources": {"cores": 4}} for number in range(1, 5)]
        jobs = [
            job("r", "alice", "4:ncpus=4", 200, running={"start": -50, "allocation": full}),
            job("wide", "bob", "4:ncpus=4", 3450),
        ]
        starts, got = _planned(engine, jobs, [hourly])
        assert isinstance(got["h", 0], str)
        assert got["h", 3600] == {"n1", "n2", "n3", "n4"}
        assert starts == {"r": -50, "wide": 150}

    def test_what_it_has_already(self, engine: str) -> None:
        """It keeps its node, though a downtime begins there, and its jobs run there, outside that time."""
        held = [{"node": "n4", "chunk": 0, "count": 1, "resources": {"cores": 4}}]
        reservations = [
            {"id": "k", "start": -10, "end": 300, "request": "ncpus=4", "allocation": held},
            {"id": "m", "kind": "downtime", "start": 100, "end": 150, "nodes": "n4"},
        ]
        jobs = [job("guest", "alice", "ncpus=4", 110, reservation="k"), job("b", "bob", "4:ncpus=4", 50)]
        starts, got = _planned(engine, jobs, reservations)
        assert got == {("k", -10): {"n4"}, ("m", 100): {"n4"}}
        assert starts == {"guest": 150, "b": 300}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("request_", "others", "start"),
        [
            ("ncpus=2", [job("r", "bob", "ncpus=2", 100, running=RUNNING)], 50),
            ("ncpus=2", [job("o", "bob", "ncpus=1", 100, reservation="t")], 0),
            ("ncpus=2", [job("o", "bob", "ncpus=2", 100, reservation="t")], 100),
            ("ncpus=4:ngpus=1", [job("o", "bob", "ncpus=3", 100)], 100),
            ("ncpus=8:ngpus=1", [], 0),
        ],
        ids=["running job", "small reservation", "reservation", "reservation of what is kept for", "whole node"],
    )
    def test_what_a_node_keeps_free(self, engine: str, request_: str, others: list[dict[str, Any]], start: int) -> None:
        """Jobs without GPUs may have three cores together, inside of reservations and elsewhere."""
        keep_free = [{"resource": "cores", "items": 5, "for": "gpus"}]
        node = {"names": "n1", "resources": {"cores": 8, "gpus": 1}, "keep_free": keep_free}
        reservations = [{"id": "s", "start": 0, "end": 200, "request": request_}]
        if others and "reservation" in others[0]:
            reservations.insert(0, {"id": "t", "start": 0, "end": 200, "request": "ncpus=2"})
        instance = instance_of([*others, job("g", "alice", "ncpus=2", 100, reservation="s")], reservations=reservations)
        document = instance_to_document(instance) | {"cluster": {"nodes": [node]}}
        plan = solve(parse_instance(document), engine=engine, budget=0.5)
        assert {one.id: one.start for one in plan.jobs}.get("g") == start
        assert not verify(document, plan_to_document(plan))

    def test_a_job_of_a_reservation_that_runs_before_it(self, engine: str) -> None:
        """Job r has its node for itself until 150, also from the second on at which its reservation gets the node."""
        held = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
        runs = job("r", "alice", "ncpus=2", 200, place="excl", reservation="s")
        jobs = [
            runs | {"running": {"start": -50, "allocation": held}},
            job("g", "alice", "ncpus=1", 10, reservation="s"),
        ]
        here = {"id": "s", "start": 100, "end": 300, "request": "ncpus=4", "allocation": held}
        starts, got = _planned(engine, jobs, [here | {"request": "ncpus=2"}])
        assert got == {("s", 100): {"n1"}}
        assert starts == {"r": -50, "g": 150}

    @pytest.mark.parametrize(
        ("place", "others", "start"),
        [
            ("free", [], 0),
            ("free", [job("r", "bob", "ncpus=2", 100, running=RUNNING)], 50),
            ("free", [job("o", "bob", "ncpus=1", 100, reservation="t")], 100),
            ("excl", [job("o", "bob", "ncpus=1", 100)], 0),
        ],
        ids=["nobody", "running job", "reservation", "exclusive reservation"],
    )
    def test_a_part_of_a_node_for_itself(
        self, engine: str, place: str, others: list[dict[str, Any]], start: int
    ) -> None:
        """A job has its node for itself in a reservation of two cores, when nobody else is on the rest; until the
        reservation ends, the rest is nobody's.
        """
        reservations = [{"id": "s", "start": 0, "end": 200, "request": f"ncpus=2,place={place}"}]
        if others and "reservation" in others[0]:
            reservations.append({"id": "t", "start": 0, "end": 100, "request": "ncpus=2"})
        guests = [job("g", "alice", "ncpus=1", 60, reservation="s", place="excl")]
        instance = instance_of([*others, *guests, job("x", "bob", "ncpus=1", 200)], "n1", reservations=reservations)
        starts = {one.id: one.start for one in solve(instance, engine=engine, budget=0.5).jobs}
        assert starts["g"] == start
        assert starts["x"] == 200

    def test_the_rest_of_a_node_that_a_running_job_has_for_itself(self, engine: str) -> None:
        """What a job in a reservation has for itself is nobody else's, also when the reservation has ended."""
        held = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
        runs = job("r", "alice", "ncpus=2", 150, place="excl", reservation="s")
        jobs = [runs | {"running": {"start": -50, "allocation": held}}, job("o", "bob", "ncpus=1", 10)]
        instance = instance_of(
            jobs, "n1", reservations=[{"id": "s", "start": -50, "end": 50, "request": "ncpus=2", "allocation": held}]
        )
        plan = solve(instance, engine=engine, budget=0.5)
        assert {one.id: one.start for one in plan.jobs} == {"r": -50, "o": 100}
        assert plan.events == ()

    def test_a_job_that_outlasts_its_reservation(self, engine: str) -> None:
        """What runs in a reservation beyond its end stays on its node, which is not free before."""
        full = {"start": -50, "allocation": [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 4}}]}
        reservation = {"id": "k", "start": -50, "end": 100, "request": "ncpus=4", "allocation": full["allocation"]}
        jobs = [
            job("r", "alice", "ncpus=4", 350, running=full, reservation="k"),
            job("wide", "bob", "4:ncpus=4", 50),
        ]
        starts, _ = _planned(engine, jobs, [reservation])
        assert starts == {"r": -50, "wide": 300}

    def test_guests_of_an_exclusive_reservation(self, engine: str) -> None:
        """It has its nodes for itself, but its jobs have no more of them than it asks for."""
        reservation = {"id": "x", "start": 0, "end": 100, "request": "ncpus=2,place=excl"}
        jobs = [
            job("guest", "alice", "ncpus=2", 50, reservation="x"),
            job("big", "alice", "ncpus=3", 50, reservation="x"),
            job("wide", "bob", "4:ncpus=2", 50, place="scatter"),
        ]
        starts, _ = _planned(engine, jobs, [reservation])
        assert starts == {"guest": 0, "wide": 100}


@pytest.mark.parametrize(
    ("more", "guests", "start"),
    [({}, [], 0), ({"kind": "downtime"}, [], 0), ({}, [job("g", "alice", "ncpus=2", 100, reservation="s")], 200)],
    ids=["reservation", "downtime", "with a job"],
)
def test_what_a_reservation_takes_of_what_nodes_leave(
    more: dict[str, Any], guests: list[dict[str, Any]], start: int
) -> None:
    """Its amounts do not count for what a node keeps free, its jobs do, also beside a reservation of what it is for."""
    keep_free = [{"resource": "cores", "items": 4, "for": "gpus"}]
    node = {"names": "n1", "resources": {"cores": 8, "gpus": 1}, "keep_free": keep_free}
    times = {"start": 0, "end": 200}
    reservations = [
        {"id": "s", **times, "request": "ncpus=2", **more},
        *({"id": "t", **times, "request": "ncpus=2:ngpus=1"} for _ in guests),
    ]
    window = instance_of([*guests, job("o", "bob", "ncpus=4", 100)], reservations=reservations)
    window = parse_instance(instance_to_document(window) | {"cluster": {"nodes": [node]}})
    found = PlannerEngine().plan(problem_of(window).instance, None)
    assert {one.id: one.start for one in found.jobs} == {"o": start, **{one["id"]: 0 for one in guests}}


@pytest.mark.parametrize("seed", seeds(50))
def test_random_windows(seed: int) -> None:
    """A window with reservations of every kind survives its document, and the planner's plan passes the verifier."""
    document = reserved_window(Random(seed))
    instance = parse_instance(document)
    assert parse_instance(instance_to_document(instance)) == instance
    plan = solve(instance, engine="planner", budget=0)
    assert verify(document, plan_to_document(plan)) == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_that_a_calendar_shuts_out(engine: str) -> None:
    """A job for which no pause of a limit is long enough waits for the limit, not for a deadline that it never had."""
    limit = {"consumer": {"user": "alice"}, "resource": "cores", "items": "2", "validity": {"cron": "0-29 * * * *"}}
    instance = instance_of([job("a", "alice", "ncpus=4", 3000)], limits=[limit])
    (waiting,) = solve(instance, engine=engine, budget=0.5).waiting_room
    assert str(waiting.reason) == "limit"
