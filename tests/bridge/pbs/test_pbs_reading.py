"""Answers of PBS, documents of our own with the shapes of OpenPBS 20 to 23, become instances."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.domain import Arrangement, NodeState
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.site.bridge import Snapshot
from cpsched.site.bridge.pbs import JOB_STATES, NODE_STATES, make_snapshot, read_directory

NOW = 1_800_000_000  # Fri Jan 15 08:00:00 2027 UTC
BEFORE = "Fri Jan 15 07:50:00 2027"


def job(**fields: Any) -> dict[str, Any]:
    """Return a job as ``qstat -f -F json`` has it, with other attributes instead."""
    listed = {"select": "1:ncpus=2:mem=1gb", "place": "free", "walltime": "01:00:00", **fields.pop("listed", {})}
    return {
        "Job_Name": "x",
        "Job_Owner": "ada@login",
        "job_state": "Q",
        "queue": "workq",
        "ctime": BEFORE,
        "qtime": BEFORE,
        "egroup": "users",
        "Resource_List": {key: value for key, value in listed.items() if value is not None},
        **fields,
    }


def node(state: str = "free", **has: Any) -> dict[str, Any]:
    """Return a node as ``pbsnodes -a -F json`` has it."""
    return {"state": state, "resources_available": {"arch": "linux", "ncpus": 16, "mem": "65536000kb", **has}}


NODES = {"n1": node(ngpus=2), "n2": node(), "n3": node("down,offline")}


def look(**jobs: dict[str, Any]) -> Snapshot:
    """Return the snapshot of three nodes with these jobs, named j1 and so on; its instance passes the reader."""
    qstat = {"timestamp": NOW, "Jobs": {name.replace("j", "") + ".srv": one for name, one in jobs.items()}}
    snapshot = make_snapshot(qstat, {"timestamp": NOW, "nodes": NODES}, zone=UTC)
    assert parse_instance(instance_to_document(snapshot.instance), source="test") == snapshot.instance
    return snapshot


def test_nodes_and_jobs_come_through() -> None:
    """Resources, properties, states, chunks, place, times and dependencies are what PBS said."""
    snapshot = look(
        j1=job(
            job_state="R",
            stime="Fri Jan 15 07:55:00 2027",
            exec_vnode="(n1:ncpus=4:mem=1048576kb:ngpus=1+n2:ncpus=2)+(n1:ncpus=1)",
            run_count=2,
        ),
        j2=job(
            listed={"select": "2:ncpus=4:mem=1gb:arch=linux+1:ncpus=1", "place": "scatter:excl"},
            depend="afterany:1.srv@srv,beforeok:9.srv@srv",
        ),
        j3=job(Execution_Time="Fri Jan 15 09:00:00 2027"),
        j4=job(job_state="F", Exit_status=1, mtime=BEFORE),
    )
    first, second, third = snapshot.instance.cluster.classes
    assert (dict(first.resources), dict(first.properties)) == (
        {"cores": 16, "mem": 64000, "gpus": 2},
        {"arch": "linux"},
    )
    assert (second.state, third.state) == (NodeState.UP, NodeState.DOWN)
    jobs = {one.id: one for one in snapshot.instance.jobs}
    assert list(jobs) == ["1.srv", "2.srv", "3.srv"]
    running = jobs["1.srv"].running
    assert running is not None
    assert {place.node: dict(place.resources) for place in running.segments[0].allocation} == {
        "n1": {"cores": 5, "mem": 1024, "gpus": 1},
        "n2": {"cores": 2},
    }
    assert (running.start, running.segments[0].end) == (NOW - 300, NOW + 3300)
    request = jobs["2.srv"].request
    assert [(one.count, dict(one.resources), dict(one.where)) for one in request.chunks] == [
        (2, {"cores": 4, "mem": 1024}, {"arch": "linux"}),
        (1, {"cores": 1}, {}),
    ]
    assert (request.place.arrangement, request.place.exclusive) == (Arrangement.SCATTER, True)
    assert [(link.job, link.type) for link in jobs["2.srv"].after] == [("1.srv", "afterany")]
    assert (jobs["3.srv"].not_before, jobs["3.srv"].submit, jobs["3.srv"].user) == (NOW + 3600, NOW - 600, "ada")


def test_tasks_of_arrays_are_jobs() -> None:
    """What remains of an array is told task by task."""
    qstat = {"timestamp": NOW, "Jobs": {"7[].srv": job(job_state="B", array_indices_remaining="2-3,7")}}
    snapshot = make_snapshot(qstat, {"nodes": NODES}, zone=UTC)
    assert [one.id for one in snapshot.instance.jobs] == ["7[2].srv", "7[3].srv", "7[7].srv"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"job_state": "H"}, "held"),
        ({"listed": {"walltime": None}}, "no walltime"),
        ({"listed": {"select": None}}, "no select"),
        ({"listed": {"select": "1:ncpus="}}, "its request cannot be read"),
        ({"listed": {"place": "scatter:group=rack"}}, "alike"),
        ({"depend": "on:2"}, "in a way that cannot be said"),
        ({"depend": "afterok:99.srv@srv"}, "it waits for job 99.srv"),
        ({"job_state": "R", "exec_vnode": "(n9:ncpus=1)"}, "a node that is not known (n9)"),
        ({"job_state": "R"}, "PBS does not say where"),
    ],
)
def test_what_cannot_be_said_is_left_with_a_reason(fields: dict[str, Any], reason: str) -> None:
    """Nothing is guessed: the job is left, and the others are in the instance."""
    snapshot = look(j1=job(**fields), j2=job())
    assert [(left.id, reason in left.reason) for left in snapshot.left] == [("1.srv", True)]
    assert [one.id for one in snapshot.instance.jobs] == ["2.srv"]


def test_every_state_is_mapped() -> None:
    """The tables have each state of the reference guide, and no others."""
    assert set(JOB_STATES) == set("BEFHMQRSTUWX")
    states = (
        "free job-busy job-exclusive resv-exclusive busy maintenance offline provisioning sleep wait-provisioning "
        "initializing down stale state-unknown unresolvable"
    )
    assert set(NODE_STATES) == set(states.split())


def test_unknown_states_and_values_are_told_all_at_once() -> None:
    """A state that is in no table, a date and a walltime that are none refuse the answers, each with its job."""
    qstat = {"timestamp": NOW, "Jobs": {"1": job(job_state="Z"), "2": job(qtime="soon"), "3": "x"}}
    with pytest.raises(DocumentError) as caught:
        make_snapshot(qstat, {"nodes": {"n1": node("dancing"), "n2": node()}}, zone=UTC)
    assert [fault.path for fault in caught.value.faults] == ["nodes.n1", "Jobs.1", "Jobs.2", "Jobs.3"]


def test_convert_reads_a_directory(tmp_path: Path) -> None:
    """``cpsched convert --pbs`` writes the instance; a directory without nodes, or with half a file, is refused."""
    folder, output = tmp_path / "answers", tmp_path / "now.json"
    folder.mkdir()
    (folder / "qstat.json").write_text(json.dumps({"timestamp": NOW, "Jobs": {"1.srv": job()}}))
    command = ["convert", "--pbs", str(folder), "--time-zone", "UTC", "-o", str(output)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "pbsnodes -a -F json" in result.stderr
    (folder / "pbsnodes.json").write_text(json.dumps({"timestamp": NOW, "nodes": NODES}))
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert "0 running and 1 waiting jobs" in result.stdout
    (folder / "half.json").write_text('{"Jobs": ')
    with pytest.raises(DocumentError, match="Expected JSON"):
        read_directory(folder)
