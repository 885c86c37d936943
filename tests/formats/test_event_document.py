"""Documents of events: what they say, and everything that is wrong with them, at once."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import (
    AllocationFailed,
    Amounts,
    CapacityChanged,
    FrozenMap,
    Instance,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    NodesChanged,
    NodeState,
    ReservationDropped,
    ReservationMade,
)
from cpsched.errors import DocumentError
from cpsched.formats import parse_events, parse_instance

DOCUMENT: dict[str, Any] = {
    "format": "cpsched-instance/1", "name": "events", "now": 10,
    "cluster": {"nodes": [{"names": "n[1-4]", "resources": {"cores": 4}}], "licenses": {"lic": 3}},
    "queues": {"q": {"expected_wait": 100}},
    "jobs": [
        {"id": "x", "submit": 0, "walltime": 10, "request": "2:ncpus=2", "place": "scatter", "licenses": {"lic": 1}},
        {"id": "many", "submit": 0, "walltime": 10, "request": "ncpus=1", "array": {"indices": "0-9"}},
        {"id": "steps", "submit": 0, "expand_limit": 2, "steps": [
            {"walltime": 10, "request": "ncpus=1"}, {"walltime": 5, "request": "2:ncpus=1"}]},
        {"id": "m", "submit": 0, "walltime": 10, "request": "2:ncpus=2", "malleable": {"shares": [0.5]}},
    ],
}  # fmt: skip


@pytest.fixture
def instance() -> Instance:
    """Return the window of the events."""
    return parse_instance(DOCUMENT)


def test_each_event(instance: Instance) -> None:
    """A list has one event of each kind that needs no request."""
    written = [
        {"event": "ended", "job": "x"},
        {"event": "ended", "job": "x", "outcome": "failed"},
        {"event": "cancelled", "job": "many[3]"},
        {"event": "extended", "job": "x", "seconds": 60},
        {"event": "allocation_failed", "job": "x", "nodes": "n[1-2]"},
        {"event": "allocation_failed", "job": "x"},
        {"event": "node_down", "nodes": "n3,n1"},
        {"event": "node_drained", "nodes": "n3"},
        {"event": "node_up", "nodes": "n3"},
        {"event": "capacity", "nodes": "n1", "resources": {"cores": 2, "gpus": 1}, "licenses": {"lic": 0}},
        {"event": "reservation_dropped", "reservation": "s"},
    ]
    assert parse_events(written, instance) == (
        JobEnded(job="x"),
        JobEnded(job="x", is_success=False),
        JobCancelled(job="many[3]"),
        JobExtended(job="x", seconds=60),
        AllocationFailed(job="x", nodes=("n1", "n2")),
        AllocationFailed(job="x"),
        NodesChanged(nodes=("n3", "n1"), state=NodeState.DOWN),
        NodesChanged(nodes=("n3",), state=NodeState.DRAIN),
        NodesChanged(nodes=("n3",), state=NodeState.UP),
        CapacityChanged(
            nodes=("n1",), resources=Amounts({"cores": 2, "gpus": 1}), licenses=Amounts({"lic": 0})
        ),
        ReservationDropped(reservation="s"),
    )  # fmt: skip
    assert parse_events(written[0], instance) == (JobEnded(job="x"),)


def test_a_reservation_is_one_of_an_instance(instance: Instance) -> None:
    """What an instance may say of a reservation an event may say, too."""
    document = {"id": "s", "start": 20, "end": 30, "request": "2:ncpus=4", "kind": "downtime"}
    (event,) = parse_events({"event": "reservation_made", "reservation": document}, instance)
    assert isinstance(event, ReservationMade)
    assert event.reservation == parse_instance({**DOCUMENT, "reservations": [document]}).reservations[0]


@pytest.mark.parametrize(
    ("job", "changes"),
    [
        ("x", {"walltime": 20}),
        ("x", {"request": "3:ncpus=1"}),
        ("x", {"request": "3:ncpus=1,place=pack"}),
        ("x", {"place": "pack", "licenses": {"lic": 2}, "priority": 4, "queue": "q"}),
        ("x", {"licenses": None, "deadline": 400, "not_before": 30}),
        ("x", {"steps": [{"walltime": 10, "request": "ncpus=1"}, {"walltime": 5, "request": "2:ncpus=1"}]}),
        ("x", {"malleable": {"shares": [0.5]}, "after": [{"job": "many", "type": "afterok"}]}),
        ("steps", {"walltime": 7, "request": "ncpus=2"}),
        ("m", {"malleable": None, "weight": 3}),
        ("many", {"request": "ncpus=3"}),
    ],
)
def test_alterations_are_those_of_the_document(instance: Instance, job: str, changes: dict[str, Any]) -> None:
    """The fields that change are what the document with the changes has; all others are as they were."""
    (event,) = parse_events({"event": "altered", "job": job, "changes": changes}, instance)
    assert isinstance(event, JobAltered)
    (old,) = (one for one in DOCUMENT["jobs"] if one["id"] == job)
    gone = {"steps", "expand_limit"} if "walltime" in changes else set()
    gone |= {"walltime", "request"} if "steps" in changes else set()
    gone |= {"place"} if ",place=" in str(changes.get("request")) else set()
    new = {
        key: value for key, value in {**old, **changes}.items() if value is not None and key not in gone - {*changes}
    }
    (expected,) = parse_instance({**DOCUMENT, "jobs": [*(j for j in DOCUMENT["jobs"] if j is not old), new]}).jobs[-1:]
    (before,) = (one for one in instance.jobs if one.id == job)
    for field in type(before).__dataclass_fields__:
        value = event.changes.get(field, getattr(before, field))
        assert value == getattr(expected, field), field
    assert isinstance(event.changes, FrozenMap)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (5, "document: Expected an event, an object, got 5"),
        ({"job": "x"}, "event: Expected a known event, got"),
        ({"event": "node_dwon", "nodes": "n1"}, "did you mean node_down?"),
        ({"event": "ended", "jop": "x"}, "jop: unknown key, did you mean job?"),
        ({"event": "ended", "job": "x", "outcome": "ok"}, "outcome: Expected 'completed' or 'failed', got \"ok\""),
        ({"event": "ended", "job": "X"}, 'job: Expected a known job, got "X", did you mean x?'),
        ({"event": "extended", "job": "x", "seconds": 0}, "seconds: Expected an integer > 0 (seconds), got 0"),
        ({"event": "node_up", "nodes": "n[1-"}, "nodes: "),
        ({"event": "node_up", "nodes": "n9"}, 'nodes: Expected a known node, got "n9"'),
        ({"event": "capacity"}, "Expected nodes and resources, or licenses, got neither"),
        ({"event": "capacity", "nodes": "n1"}, "Expected nodes and resources together, or neither"),
        ({"event": "capacity", "nodes": "n1", "resources": {"corse": 1}}, "resources.corse: Expected a known resource"),
        ({"event": "capacity", "licenses": {"lik": 1}}, "licenses.lik: Expected a known licence"),
        ({"event": "altered", "job": "x", "changes": {}}, "changes: Expected at least 1 entries"),
        ({"event": "altered", "job": "many[0]", "changes": {"priority": 1}}, "job: Expected a known job, or array"),
        ({"event": "altered", "job": "x", "changes": {"id": "y"}}, "changes.id: Expected a key that can be altered"),
        (
            {"event": "altered", "job": "x", "changes": {"wallime": 4}},
            "changes.wallime: unknown key, did you mean wall",
        ),
        ({"event": "altered", "job": "x", "changes": {"walltime": None}}, "Expected walltime and request, or steps"),
        ({"event": "altered", "job": "x", "changes": {"queue": "Q"}}, "changes.queue: Expected a known queue"),
        ({"event": "reservation_made", "reservation": {"id": "s", "start": 5}}, "reservation"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(instance: Instance, event: object, said: str) -> None:
    """Every fault has its place in the document and what was expected."""
    with pytest.raises(DocumentError) as caught:
        parse_events(event, instance)
    assert any(said in str(fault) for fault in caught.value.faults), str(caught.value)


def test_all_faults_are_told_at_once(instance: Instance) -> None:
    """Each event of a list is looked at, whatever is wrong with those before it."""
    written = [
        {"event": "ended", "job": "nobody"},
        {"event": "node_up", "nodes": "n8"},
        {"event": "ended", "job": "x"},
        {"event": "altered", "job": "x", "changes": {"walltime": 0, "priority": "high"}},
    ]
    with pytest.raises(DocumentError) as caught:
        parse_events(written, instance)
    assert [fault.path for fault in caught.value.faults] == [
        "[0].job", "[1].nodes", "[3].changes.walltime", "[3].changes.priority",
    ]  # fmt: skip
