"""The judge on what a site says of its nodes: states of single nodes, and the nodes of queues."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.verify import verify
from tests.verify.openings import strictly_verified
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan, planned, segment, waiting

RACKS = cluster({"names": "n1", "properties": {"rack": "1"}}, {"names": "n2", "properties": {"rack": "2"}})
ON_2 = on("n2", cores=2)


def _rules(document: Document, answer: Document) -> list[str]:
    return [violation.rule for violation in verify(document, answer)]


def _queues(nodes: object) -> Document:
    return {"q": {"expected_wait": 1800, "nodes": nodes}, "r": {"expected_wait": 1800}}


@pytest.mark.parametrize("nodes", ["n2", {"rack": "2"}])
def test_a_queue_has_nodes(nodes: object) -> None:
    """A job of the queue runs on its nodes only, by name or by property; jobs of other queues run anywhere."""
    document = instance(job(queue="q"), job("b", queue="r"), cluster=RACKS, queues=_queues(nodes))
    assert _rules(document, plan([at("a", 0, ON_2), at("b", 0)])) == []
    assert _rules(document, plan([at("a", 0, ON_2), at("b", 0, ON_2)])) == []
    assert _rules(document, plan([at("a", 0), at("b", 0, ON_2)])) == ["queue"]


def test_running_work_may_be_on_other_nodes_than_its_queue_s() -> None:
    """What runs is a fact."""
    running = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}
    document = instance(job(queue="q", running=running), cluster=RACKS, queues=_queues("n2"))
    assert _rules(document, plan([planned("a", segment(-50, 50, on("n1", None, None, cores=2)))])) == []


BOTH: dict[str, Any] = {"request": "2:ncpus=3", "queue": "q"}


@pytest.mark.parametrize(
    ("reason", "entry", "extra", "rules"),
    [
        ("unsatisfiable", BOTH, {}, []),
        ("unsatisfiable", {**BOTH, "request": "1:ncpus=3"}, {}, ["waiting_room"]),
        ("unsatisfiable", {**BOTH, "queue": "r"}, {}, ["waiting_room"]),
        ("not_mapped", {"queue": "q"}, {}, ["waiting_room"]),
        ("not_mapped", {**BOTH, "steps": [{"walltime": 5, "request": "2:ncpus=3"}], "request": None, "walltime": None},
         {}, []),
        ("unavailable", {"queue": "q"}, {"states": {"n2": "down"}}, []),
        ("unavailable", {"queue": "q"}, {"states": {"n1": "down"}}, ["waiting_room"]),
        ("unavailable", {"queue": "r"}, {"states": {"n2": "down"}}, ["waiting_room"]),
        ("unavailable", BOTH, {"states": {"n2": "drain"}}, ["waiting_room"]),
    ],
)  # fmt: skip
def test_claims_about_jobs_of_a_queue_with_nodes(
    reason: str, entry: Document, extra: Document, rules: list[str]
) -> None:
    """The evidence against a claim is looked for on the nodes of the queue alone."""
    document = instance(job(**entry), cluster={**RACKS, **extra}, queues=_queues("n2"))
    said = strictly_verified(document, plan([], [waiting("a", reason)]))
    assert [violation.rule for violation in said] == rules


def test_openings_of_like_jobs_of_other_queues() -> None:
    """That there is no opening for a job says nothing of a like job whose queue has other nodes."""
    first = at("c", 0, on("n2", cores=4), walltime=100)
    document = instance(
        job("c", "1:ncpus=4", start_at=0), job("a", queue="q", start_at=0), job("b", queue="r", start_at=0),
        cluster=RACKS, queues=_queues("n2"),
    )  # fmt: skip
    answer = plan([first], [waiting("a", "too_late"), waiting("b", "too_late")])
    assert [(one.rule, one.subject) for one in strictly_verified(document, answer)] == [("waiting_room", "b")]


def test_states_of_single_nodes() -> None:
    """Nothing is planned on a node whose own state is not up; a state of its own overrides that of its entry."""
    nodes = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}, "state": "drain"}], "states": {"n2": "up"}}
    document = instance(job(), cluster=nodes)
    assert _rules(document, plan([at("a", 0, ON_2)])) == []
    assert _rules(document, plan([at("a", 0)])) == ["state"]
    down = instance(job(), cluster={**cluster({"names": "n[1-2]"}), "states": {"n[1-2]": "down"}})
    assert _rules(down, plan([], [waiting("a", "unavailable")])) == []


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"cluster": {**RACKS, "states": {"n3": "down"}}}, "cluster.states.n3"),
        ({"cluster": {**RACKS, "states": {"n1": "off"}}}, "cluster.states.n1"),
        ({"cluster": {**RACKS, "states": {"n1": "up", "n[1-2]": "up"}}}, "cluster.states.n[1-2]"),
        ({"cluster": {**RACKS, "states": {"n[": "up"}}}, "cluster.states.n["),
        ({"queues": _queues("n3")}, "queues.q.nodes"),
        ({"queues": _queues({})}, "queues.q.nodes"),
        ({"queues": _queues({"rack": "3"})}, "queues.q.nodes"),
        ({"queues": _queues({"rack": 2})}, "queues.q.nodes.rack"),
    ],
)
def test_faults(changed: Document, path: str) -> None:
    """What is wrong is named with its path."""
    with pytest.raises(DocumentError) as caught:
        verify({**instance(job(), cluster=RACKS), **changed}, plan([at("a", 0)]))
    assert [fault.path for fault in caught.value.faults] == [path]


def _limited(validity: object, *more: Document) -> Document:
    """Return an instance in which alice has no job in some times, at eight o'clock on a Monday in Berlin."""
    none = {"consumer": {"user": "alice"}, "resource": "*", "items": "0", "validity": validity}
    return instance(
        job(user="alice", walltime=7200), epoch="2026-06-01T08:00:00+02:00", time_zone="Europe/Berlin",
        limits=[none, *more],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("validity", "start"),
    [
        ({"cron": "* 0-17 * * *"}, 36_000),
        ({"cron": "* 8-9,11-17 * * *"}, 36_000),
        ({"cron": "* * * * mon-fri"}, 4 * 86_400 + 16 * 3600),
        ({"until": 500}, 500),
        ({"cron": "* 0-17 * * *", "until": 500}, 500),
    ],
)
def test_openings_after_a_calendar_has_changed(validity: Document, start: int) -> None:
    """That a limit leaves a job no start is false where it does so only at some times of the day."""
    said = strictly_verified(_limited(validity), plan([], [waiting("a", "limit")]))
    assert [one.message for one in said] == [
        f"it is said to be limit, but it could start at {start} on n1, beside all that is planned"
    ]


def test_openings_where_an_own_limit_begins() -> None:
    """A limit on all resources gives way to one of its own for cores as soon as that holds."""
    own = {"consumer": {"user": "alice"}, "resource": "cores", "items": "2", "validity": {"from": 700}}
    said = strictly_verified(_limited("always", own), plan([], [waiting("a", "limit")]))
    assert [one.rule for one in said] == ["waiting_room"]
    assert "start at 700 on n1" in said[0].message
    assert verify(_limited("always"), plan([], [waiting("a", "limit")])) == ()
