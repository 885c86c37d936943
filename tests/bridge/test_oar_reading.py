"""Answers of OAR's own commands (2.5.9 of Debian, with resources and jobs of ours) become instances."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cpsched
from cpsched.cli import main
from cpsched.domain import NodeState, Request
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.site.bridge import JobState, Snapshot
from cpsched.site.bridge.oar import JOB_STATES, make_snapshot, read_directory
from cpsched.verify import verify

CASE = Path(__file__).parents[1] / "cases" / "oar"
NOW = 1_795_760_200


def look(change: Callable[[dict[str, Any], dict[str, Any]], object] = lambda jobs, resources: None) -> Snapshot:
    """Return the snapshot of the saved answers after a change; the verifier finds no fault in a plan of it."""
    jobs, resources = (json.loads((CASE / f"{name}.json").read_text()) for name in ("oarstat", "oarnodes"))
    change(jobs, resources)
    snapshot = make_snapshot(jobs, resources, now=NOW)
    plan = cpsched.solve(snapshot.instance, engine="planner", budget=0)
    assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
    assert {job.id for job in snapshot.instance.jobs} | {one.id for one in snapshot.left} == {*jobs}
    return snapshot


def shape(request: Request) -> list[tuple[int, int, bool]]:
    """Return how many chunks of how many cores there are, and whether each kind is for some nodes only."""
    return [(one.count, one.resources["cores"], bool(one.where)) for one in request.chunks]


def test_nodes_and_jobs_come_through() -> None:
    """Cores, moldable choices, filters, dependencies, reservations and running jobs are what OAR said."""
    snapshot = look()
    nodes = {node.names[0]: node for node in snapshot.instance.cluster.classes}
    assert {name: node.resources["cores"] for name, node in nodes.items()} == {
        "node1": 4, "node2": 4, "node3": 3, "node4": 4,
    }  # fmt: skip
    jobs = {job.id: job for job in snapshot.instance.jobs}
    assert jobs["2"].running is not None
    assert [(place.node, place.resources["cores"]) for place in jobs["2"].running.segments[0].allocation] == [
        ("node2", 2), ("node3", 1),
    ]  # fmt: skip
    assert [(one.walltime, shape(one.request)) for one in jobs["3"].choices] == [
        (3600, [(2, 3, False)]), (6600, [(1, 3, False)]),
    ]  # fmt: skip
    assert jobs["3"].request.place.exclusive  # node3 lacks a core: whole nodes differ
    assert shape(jobs["4"].request) == [(1, 2, True), (1, 1, True)]
    assert dict(nodes["node4"].properties) == dict(jobs["4"].request.chunks[0].where)
    assert [link.job for link in jobs["5"].after] == ["1"]
    assert jobs["6"].start_at == 1893492000
    assert shape(jobs["7"].request) == [(1, 2, True)]  # a cpu is two cores
    assert snapshot.instance.may_stop(jobs["3"], jobs["2"])
    assert {one.id for one in snapshot.left} == {"8", "9", "10"}


def test_states_of_resources() -> None:
    """A node sleeps and is woken, drains below a running job, or is down; a core of an unlisted job is gone."""

    def change(jobs: dict[str, Any], resources: dict[str, Any]) -> None:
        for one in resources.values():
            if one["network_address"] in ("node1", "node2", "node4"):
                up = {"node1": ("Absent", 0), "node2": ("Absent", 2**31 - 1), "node4": ("Dead", 2**31 - 1)}
                one["state"], one["available_upto"] = up[one["network_address"]]
        resources["10"]["jobs"] = "77"

    snapshot = look(change)
    states = {node.names[0]: (node.state, node.resources["cores"]) for node in snapshot.instance.cluster.classes}
    assert states == {
        "node1": (NodeState.DRAIN, 4),
        "node2": (NodeState.UP, 4),
        "node3": (NodeState.UP, 2),
        "node4": (NodeState.DOWN, 4),
    }
    assert any("77" in note.message for note in snapshot.notes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("wanted_resources", None),
        ("wanted_resources", "-l soon"),
        ("wanted_resources", '-l "/switch=1/network_address=1,walltime=1:0:0" '),
        ("wanted_resources", '-l "/network_address=1/host=1,walltime=1:0:0" '),
        ("wanted_resources", '-l "/network_address=2/core=1+/core=1,walltime=1:0:0" '),
        ("properties", "gpu = 'MAYBE'"),
        ("properties", "core = 1"),
        ("properties", "gpu ~ 'Y'"),
        ("properties", "1 IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n)"),
        ("types", ["timesharing=*,*"]),
        ("submissionTime", "yesterday"),
        ("state", "Dreaming"),
    ],
)
def test_what_cannot_be_said_costs_its_job(field: str, value: object) -> None:
    """A request, a filter, a type or a date that an instance cannot say leaves one job out, with a reason."""
    snapshot = look(lambda jobs, _: jobs["3"].update({field: value}))
    assert {one.id for one in snapshot.left} == {"3", "8", "9", "10"}


def test_one_choice_that_cannot_be_said_leaves_the_others() -> None:
    """Of a moldable job one choice is left out with a note; two choices that are the same count once."""
    wanted = '-l "/switch=1,walltime=1:0:0" -l "/core=2,walltime=2:0:0" -l "/core=2,walltime=2:0:0" '
    snapshot = look(lambda jobs, _: jobs["3"].update(wanted_resources=wanted))
    job = next(job for job in snapshot.instance.jobs if job.id == "3")
    assert [(one.walltime, shape(one.request)) for one in job.choices] == [(7200, [(2, 1, False)])]
    assert any(note.path == "job 3" for note in snapshot.notes)


def test_answers_that_are_none(tmp_path: Path) -> None:
    """A directory without oarnodes, and answers of which no record can be read, are refused."""
    (tmp_path / "oarstat.json").write_text((CASE / "oarstat.json").read_text())
    with pytest.raises(DocumentError):
        read_directory(tmp_path)
    with pytest.raises(DocumentError):
        make_snapshot({"1": {"state": "Dreaming"}}, read_directory(CASE)[1])
    (tmp_path / "oarstat.json").write_text("")
    (tmp_path / "oarnodes.json").write_text((CASE / "oarnodes.json").read_text())
    assert read_directory(tmp_path)[0] == {}
    assert {*JOB_STATES.values()} >= {JobState.WAITING, JobState.HELD, JobState.RUNNING}


def test_the_command(tmp_path: Path) -> None:
    """``convert --oar`` writes the instance; a plan runs the moldable job by one of its choices."""
    result = CliRunner().invoke(main, ["convert", "--oar", str(CASE), "-o", str(tmp_path / "window.json")])
    assert result.exit_code == 0, result.output
    assert len(json.loads((tmp_path / "window.json").read_text())["jobs"]) == 7
