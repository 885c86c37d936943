"""The manager behind a directory: an instance comes in, orders go out, both whole or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import Amounts, Placement
from cpsched.errors import BridgeError
from cpsched.formats import parse_instance, write_instance
from cpsched.site.bridge import (
    Announce,
    FilesManager,
    Gate,
    HandBack,
    Hold,
    JobState,
    Order,
    Refusal,
    Result,
    Start,
)

DOCUMENT = {
    "format": "cpsched-instance/1",
    "name": "site",
    "now": 100,
    "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
    "jobs": [
        {"id": "1", "submit": 0, "walltime": 60, "request": "ncpus=4",
         "running": {"start": 90, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}},
        {"id": "2", "submit": 0, "walltime": 60, "request": "ncpus=2"},
        {"id": "3", "submit": 0, "walltime": 60, "request": "ncpus=2", "array": {"indices": "0-1"}},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with an instance of a running job, a waiting one and an array."""
    write_instance(parse_instance(DOCUMENT, source="test"), tmp_path / "instance.json")
    return tmp_path


def start(manager: FilesManager, job: str, at: int = 100) -> Start:
    """Return the order to start a job on n2."""
    allocation = (Placement(node="n2", resources=Amounts({"cores": 2})),)
    return Start(job=job, at=at, allocation=allocation, revision=manager.snapshot().jobs[job].revision)


def test_the_snapshot_is_the_instance(folder: Path) -> None:
    """Jobs are those of the instance, tasks of arrays one by one; what waits is steered."""
    snapshot = FilesManager(folder).snapshot()
    assert [job.id for job in snapshot.instance.jobs] == ["1", "2", "3[0]", "3[1]"]
    assert (snapshot.taken_at, snapshot.gate_is_closed) == (100, False)
    assert (snapshot.jobs["1"].state, snapshot.jobs["1"].nodes) == (JobState.RUNNING, ("n1",))
    assert snapshot.jobs["2"].is_steered


def test_orders_are_written_and_hold_until_others_come(folder: Path) -> None:
    """The file has one entry for each job; the same orders again change nothing, another one takes its place."""
    manager = FilesManager(folder)
    orders: list[Order] = [
        Gate(until=300),
        start(manager, "2"),
        Announce(job="3[0]", start=150, nodes=("n1",), why="n1 is busy"),
    ]
    assert [receipt.result for receipt in manager.apply(orders)] == [Result.DONE] * 3
    before = (folder / "orders.json").read_bytes()
    assert [receipt.result for receipt in manager.apply(orders)] == [Result.ALREADY] * 3
    assert (folder / "orders.json").read_bytes() == before
    document = json.loads(before)
    assert (document["format"], document["now"], document["gate"]) == ("cpsched-orders/1", 100, "closed")
    assert document["orders"] == [
        {"job": "2", "order": "start", "at": 100, "allocation": [{"node": "n2", "resources": {"cores": 2}}]},
        {"job": "3[0]", "order": "hold", "announced": 150, "nodes": ["n1"], "why": "n1 is busy"},
    ]
    facts = FilesManager(folder).snapshot().jobs["2"]
    assert (facts.due, facts.nodes, facts.is_steered) == (100, ("n2",), True)
    manager.apply([Hold(job="2", until=300), HandBack(job="3[0]")])
    facts_after = manager.snapshot().jobs
    assert (facts_after["2"].due, facts_after["3[0]"].is_steered) == (None, False)


def test_what_must_not_be_ordered_is_refused(folder: Path) -> None:
    """A job that runs, is gone or has changed is not ordered; the others are."""
    manager = FilesManager(folder)
    changed = replace(start(manager, "3[1]"), revision="old")
    orders: list[Order] = [replace(changed, job="1"), Hold(job="9", until=300), changed, start(manager, "2")]
    receipts = manager.apply(orders)
    assert [receipt.refusal for receipt in receipts] == [Refusal.RUNNING, Refusal.GONE, Refusal.CHANGED, None]
    assert [entry["job"] for entry in json.loads((folder / "orders.json").read_text())["orders"]] == ["2"]


def test_orders_of_jobs_that_are_gone_are_dropped(folder: Path) -> None:
    """When a job has left the instance, its order leaves the file with the next orders."""
    manager = FilesManager(folder)
    manager.apply([start(manager, "2")])
    later = DOCUMENT | {"now": 110, "jobs": DOCUMENT["jobs"][:1]}  # type: ignore[index]  # a list
    write_instance(parse_instance(later, source="test"), folder / "instance.json")
    manager.apply([Gate(until=300)])
    assert json.loads((folder / "orders.json").read_text())["orders"] == []


def test_garbage_is_told(folder: Path) -> None:
    """A directory without an instance, half an instance, and orders of another format are errors of the bridge."""
    manager = FilesManager(folder)
    manager.apply([Gate(until=300)])
    (folder / "orders.json").write_text('{"format": "other"}')
    with pytest.raises(BridgeError, match="cpsched-orders/1"):
        manager.snapshot()
    (folder / "orders.json").unlink()
    (folder / "instance.json").write_text('{"format": ')
    with pytest.raises(BridgeError, match="Expected an instance"):
        manager.snapshot()
    (folder / "instance.json").unlink()
    with pytest.raises(BridgeError, match="Expected an instance"):
        manager.snapshot()


def test_watching_tells_of_another_instance(folder: Path) -> None:
    """A new file ends the watch; without one it ends in time."""
    manager = FilesManager(folder)
    assert manager.watch(0.3) is False
    seen = iter([False, True])

    class Renaming(FilesManager):
        def _stamp(self) -> tuple[int, int] | None:
            if next(seen, False):
                write_instance(parse_instance(DOCUMENT, source="test"), folder / "instance.json")
            return super()._stamp()

    assert Renaming(folder).watch(5) is True
