"""Answers of Slurm become the same instance, whichever version and form they have."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest

from cpsched.domain import NodeState, ReservationKind
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.site.bridge import JobState
from cpsched.site.bridge.slurm import make_snapshot, read_directory
from cpsched.site.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.site.bridge.slurm.text_reader import read_text
from tests.bridge.slurm.answers import (
    GENERATIONS,
    NODES_2205,
    NOW,
    PARTITIONS_2205,
    answers_2205,
    running,
    text_2205,
    waiting,
    write_answers,
)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_tells_of_the_same_cluster(generation: str, tmp_path: Path) -> None:
    """Answers from 21.08 to 25.11 and the texts of scontrol give the same instance, left jobs and facts."""
    reading = read_directory(write_answers(tmp_path / "x", GENERATIONS[generation]()))
    base = read_directory(write_answers(tmp_path / "base", answers_2205()))
    got = make_snapshot(reading.records, NOW)
    wanted = make_snapshot(base.records, NOW)
    jobs = tuple(replace(job, group="users") for job in got.instance.jobs)  # 21.08 knows no names of groups
    assert replace(got.instance, jobs=jobs) == wanted.instance
    assert got.left == wanted.left
    assert got.jobs == wanted.jobs


def test_what_newer_slurms_say_besides() -> None:
    """From 25.05 on segments are asked for, and a running job that had a choice of licences says which it has."""
    held = {"licenses": "matlab:2|ansys:1", "licenses_allocated": "ansys:1"}
    jobs = [running(3, "m1", {"m1": (1, 100)}, **held), waiting(8, segment_size=2), waiting(9, segment_size=0)]
    licenses = [{"LicenseName": "ansys", "Total": 2, "Free": 1}]
    answer = {"jobs": jobs, "nodes": NODES_2205, "partitions": PARTITIONS_2205, "licenses": licenses}
    snapshot = make_snapshot(read_answer(answer, "test"), NOW)
    assert {job.id: dict(job.licenses) for job in snapshot.instance.jobs} == {"3": {"ansys": 1}, "9": {}}
    (left,) = snapshot.left
    assert (left.id, "--segment" in left.reason) == ("8", True)


def test_the_small_cluster_is_what_slurm_said(tmp_path: Path) -> None:
    """Nodes, gres, features, states, queues, licences, reservations and jobs come through."""
    records = read_directory(write_answers(tmp_path, answers_2205())).records
    snapshot = make_snapshot(records, NOW)
    instance = snapshot.instance
    gpus, first, second = instance.cluster.classes
    assert gpus.names == ("g1", "g2")
    assert gpus.resources == {"cores": 16, "mem": 64000, "gpus": 2, "gpus.k20": 2}
    assert gpus.properties == {"feature.gpu": "yes", "feature.rack1": "yes"}
    assert (first.names, first.state, second.names, second.state) == (("m1",), NodeState.UP, ("m2",), NodeState.DRAIN)
    assert instance.queues["normal"].nodes is None
    assert instance.queues["gpuq"].nodes == ("g1", "g2")
    assert (instance.queues["gpuq"].max_walltime, instance.queues["gpuq"].priority) == (7200, 20)
    assert instance.cluster.licenses == {"matlab": 4}
    (downtime,) = instance.reservations
    assert (downtime.id, downtime.nodes, downtime.kind) == ("maint", ("m1",), ReservationKind.DOWNTIME)
    jobs = {job.id: job for job in instance.jobs}
    assert list(jobs) == ["3", "4", "8", "9", "10", "17_2", "17_3"]
    assert jobs["4"].running is not None
    held = {place.node: dict(place.resources) for place in jobs["4"].running.segments[0].allocation}
    assert held == {
        "g1": {"cores": 3, "mem": 300, "gpus": 1, "gpus.k20": 1},
        "g2": {"cores": 1, "mem": 100, "gpus": 2, "gpus.k20": 2},
    }
    (chunk,) = jobs["8"].request.chunks
    assert (chunk.count, dict(chunk.resources)) == (1, {"cores": 4, "gpus": 2, "mem": 400})
    assert chunk.where == {"feature.gpu": "yes", "feature.rack1": "yes"}
    assert (jobs["9"].not_before, dict(jobs["9"].licenses)) == (NOW + 3600, {"matlab": 2})
    (chunk,) = jobs["10"].request.chunks
    assert (chunk.count, chunk.resources["cores"]) == (2, 8)
    assert [link.job for link in jobs["10"].after] == ["3"]
    assert jobs["17_2"].request.place.exclusive
    assert [(left.id, left.reason) for left in snapshot.left] == [("12", "it is held (JobHeldUser)")]
    assert snapshot.jobs["12"].state is JobState.HELD


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_instance_passes_the_reader_of_documents(generation: str, tmp_path: Path) -> None:
    """The instance, which is trusted, is what the reader makes of its document."""
    records = read_directory(write_answers(tmp_path, GENERATIONS[generation]())).records
    instance = make_snapshot(records, NOW).instance
    assert parse_instance(instance_to_document(instance), source="test") == instance


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expected JSON"),
        ('{"jobs": [{"job_id": 1', "Expected JSON"),
        ("slurm_load_jobs error", "Expected JSON"),
        ("[]", "Expected a JSON object"),
        ("[" * 100_000, "Expected JSON"),
        ('{"errors": [{"error": "boom", "error_number": 1}]}', "Expected no errors, got: boom"),
    ],
)
def test_garbage_is_refused(text: str, message: str) -> None:
    """Half a document, another text, and an answer with errors are refused with a message."""
    with pytest.raises(DocumentError, match="Expected") as caught:
        parse_answer(text, "squeue --json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"job_state": "DANCING"}, "DANCING"),
        ({"job_state": ""}, "got none"),
        ({"job_id": None}, "Expected job_id"),
        ({"time_limit": "soon"}, 'time_limit: Expected a whole number, got "soon"'),
        ({"name": 5}, "name: Expected a text, got 5"),
        ({"partition": {"a": 1}}, "partition: Expected a list of texts"),
    ],
)
def test_faults_of_a_job_are_told_with_their_place(fields: dict[str, object], message: str) -> None:
    """A value of a wrong type or an unknown state costs its job; an answer in which each job has one is refused."""
    bad = [waiting(2, **fields), waiting(3, **fields)]
    records = read_answer({"jobs": [waiting(1), *bad]}, "squeue")
    left = [job for job in records.jobs if job.others]
    assert [job.number for job in records.jobs if not job.others] == [1]
    assert all(message in reason for job in left for reason in job.others)
    assert len(left) + len(records.notes) == 2
    with pytest.raises(DocumentError) as caught:
        read_answer({"jobs": bad}, "squeue")
    assert message in str(caught.value)
    assert len(caught.value.faults) == 2


def test_a_job_that_cannot_be_read_keeps_its_nodes() -> None:
    """A running job with a fault holds what it runs on; a node with one counts as down, and both are said."""
    bad = running(2, "m1", {"m1": (3, 300)}, gres_detail=["gpu:a:b:c:2"])
    records = read_answer({"jobs": [waiting(1), bad], "nodes": [*NODES_2205, {**NODES_2205[0], "state": "ODD"}]}, "x")
    assert [(share.node, share.cpus) for share in records.jobs[1].shares] == [("m1", 3)]
    assert (records.nodes[-1].state, bool(records.nodes[-1].fault)) == (NodeState.DOWN, True)


def test_a_node_with_absurd_threads_costs_no_job() -> None:
    """It counts as down; jobs of its partition are planned on others."""
    odd = {**NODES_2205[0], "name": "odd", "threads": 2**40}
    records = read_answer({"jobs": [waiting(1)], "nodes": [*NODES_2205, odd]}, "x")
    assert (records.nodes[-1].state, bool(records.nodes[-1].fault)) == (NodeState.DOWN, True)
    assert [job.id for job in make_snapshot(records, 1_800_000_000).instance.jobs] == ["1"]


def test_jobs_that_are_alike_but_for_a_type_are_told_apart() -> None:
    """A value that equals that of another job and has a wrong type is a fault; jobs with the right one are read."""
    jobs = read_answer({"jobs": [waiting(1, cpus=1), waiting(2, cpus=True), waiting(3, cpus=1.0)]}, "squeue").jobs
    assert [job.number for job in jobs if job.others] == [2]
    jobs = read_answer({"jobs": [waiting(1, cpus=1), waiting(2, cpus=1.0), waiting(3, cpus="1")]}, "squeue").jobs
    assert [repr(job.cpus) for job in jobs] == ["1", "1", "1"]


def test_numbers_that_mean_no_value_in_sixteen_bits_are_numbers_in_more() -> None:
    """Job 65534 and a memory of 65535 MiB are what they say; so many tasks per node are none."""
    job = waiting(65534, memory_per_node=65535, tasks_per_node=65534)
    (record,) = read_answer({"jobs": [job]}, "squeue").jobs
    assert (record.number, record.memory_per_node, record.tasks_per_node) == (65534, 65535, None)
    (node,) = read_answer({"nodes": [{**NODES_2205[0], "real_memory": 65535}]}, "sinfo").nodes
    assert node.memory == 65535


@pytest.mark.parametrize(
    ("drained", "left"),
    [
        ("N/A", {"gpus": 3, "gpus.k20": 2, "gpus.p4": 1}),
        ("gpu:k20:1", {"gpus": 2, "gpus.k20": 1, "gpus.p4": 1}),
        ("gpu:1(S:0)", {"gpus": 2, "gpus.k20": 1}),
        ("gpu:k20:2,gpu:p4:1", {}),
    ],
)
def test_drained_gpus_are_not_free(drained: str, left: dict[str, int]) -> None:
    """What is drained of a node no job gets, in JSON and in text; where no type is said, none of each type."""
    node = {**NODES_2205[0], "gres": "gpu:k20:2(S:0-1),gpu:p4:1", "gres_drained": drained}
    text = f"NodeName=g1 CPUTot=16 RealMemory=9 State=IDLE Gres=gpu:k20:2(S:0-1),gpu:p4:1 GresDrain={drained}\n"
    assert read_answer({"nodes": [node]}, "sinfo").nodes[0].gres == left
    assert read_text(text, "scontrol").nodes[0].gres == left


@pytest.mark.parametrize(
    ("used", "left"),
    [
        ("gpu:k20:1(IDX:0),mps:0", {"gpus": 4, "gpus.k20": 2, "gpus.p4": 2}),
        ("gpu:0,mps:k20:10(IDX:1)", {"gpus": 3, "gpus.k20": 1, "gpus.p4": 2}),
        ("gpu:0,mps:k20:101", {"gpus": 2, "gpus.p4": 2}),
        ("gpu:0,shard:p4:2(1/4,1/4)", {"gpus": 2, "gpus.k20": 2}),
        ("gpu:0,shard:p4:5(4/4,1/4,0/4)", {"gpus": 2, "gpus.k20": 2}),
        ("gpu:0,shard:p4:2(IDX:2-3),mps:k20:1(IDX:0)", {"gpus": 1, "gpus.k20": 1}),
        ("gpu:0,shard:p4:1(IDX:N/A)", {"gpus": 3, "gpus.k20": 2, "gpus.p4": 1}),
    ],
)
def test_gpus_of_which_jobs_have_parts_are_not_free(used: str, left: dict[str, int]) -> None:
    """As many as it takes, or as are told, in JSON and in text: nobody else gets the whole of one."""
    gres = "gpu:k20:2(S:0-1),gpu:p4:2,mps:k20:200,shard:p4:8"
    node = {**NODES_2205[0], "gres": gres, "gres_used": used}
    text = f"NodeName=g1 CPUTot=16 RealMemory=9 State=IDLE Gres={gres} GresUsed={used}\n"
    for found in (read_answer({"nodes": [node]}, "sinfo").nodes[0], read_text(text, "scontrol").nodes[0]):
        assert {name: amount for name, amount in found.gres.items() if name.startswith("gpus")} == left


def test_a_name_that_reads_like_fields_costs_its_job_in_text_and_is_harmless_in_json() -> None:
    """In a text a name can forge fields, so that the job is left out, and holds what it held; JSON has no doubt."""
    evil = "x UserId=root(0) JobState=RUNNING NodeList=g1"
    text = text_2205()["jobs.txt"].replace("JobName=job", f"JobName={evil}", 1)
    (left,) = (job for job in read_text(text, "scontrol show job").jobs if "twice" in "".join(job.others))
    assert "JobState, NodeList, UserId twice" in left.others[0]
    plain = next(job for job in read_text(text_2205()["jobs.txt"], "x").jobs if job.number == left.number)
    assert (left.state, left.shares) == (plain.state, plain.shares)
    (job,) = read_answer({"jobs": [waiting(1, name=evil)]}, "squeue").jobs
    assert (job.name, job.state, job.shares) == (evil, JobState.WAITING, ())


def test_dates_of_a_text_are_in_its_zone(tmp_path: Path) -> None:
    """A date without an offset is read in the zone that is given."""
    text = text_2205()["jobs.txt"].replace(f"SubmitTime={NOW - 600}", "SubmitTime=2027-01-15T08:00:00")
    utc, east = (read_text(text, "x", zone).jobs[0].submit for zone in (UTC, timezone(timedelta(hours=1))))
    assert utc - east == 3600


def test_a_directory_says_what_it_did_not_use(tmp_path: Path) -> None:
    """Files with less of a kind, of another kind, or of an accounting database are skipped, each with a reason."""
    answers = answers_2205()
    folder = write_answers(
        tmp_path,
        {
            **answers,
            "one.json": {"jobs": answers["squeue.json"]["jobs"][:1]},
            "sacct.json": {"jobs": [{"job_id": 1, "state": {"current": "COMPLETED"}}]},
            "half.json": '{"jobs": [',
            "notes.txt": "what I did today",
            "jobcomp.txt": "JobId=1 UserId=root(0) TimeLimit=1",
            "picture.png": "",
        },
    )
    reading = read_directory(folder)
    assert set(reading.used) == set(answers)
    assert [line.split(":")[0] for line in reading.skipped] == [
        "half.json", "sacct.json", "jobcomp.txt", "notes.txt", "picture.png", "one.json",
    ]  # fmt: skip
    assert reading.latest == NOW - 60


def test_a_directory_without_nodes_is_refused(tmp_path: Path) -> None:
    """Without nodes there is no machine to plan."""
    (tmp_path / "squeue.json").write_text(json.dumps({"jobs": []}))
    with pytest.raises(DocumentError, match="Expected the nodes of a Slurm cluster"):
        read_directory(tmp_path)


def test_real_answers_of_every_version_are_read(shared_data: Path) -> None:
    """Every folder of real answers, 21.08 to 25.05, makes an instance that the reader of documents accepts."""
    folders = sorted((shared_data / "slurm-json").iterdir())
    assert len(folders) == 5
    for folder in folders:
        reading = read_directory(folder)
        snapshot = make_snapshot(reading.records, reading.latest, name=folder.name)
        assert reading.records.nodes, folder
        assert snapshot.instance.jobs or snapshot.left, folder
        assert parse_instance(instance_to_document(snapshot.instance), source=folder.name) == snapshot.instance
        alive = {one for one, facts in snapshot.jobs.items() if not facts.state.is_over}
        assert alive == {job.id for job in snapshot.instance.jobs} | {left.id for left in snapshot.left}


def test_real_text_and_real_json_of_22_05_agree(shared_data: Path, tmp_path: Path) -> None:
    """The texts of scontrol and the JSON of squeue, taken at one moment from one Slurm, make the same instance."""
    folder = shared_data / "slurm-json" / "22.05-scontrol-rest"
    for file in folder.glob("scontrol_show_*.txt"):
        (tmp_path / file.name).write_text(file.read_text())
    by_text, by_json = read_directory(tmp_path, UTC), read_directory(folder)
    one, other = (make_snapshot(reading.records, reading.latest) for reading in (by_text, by_json))
    assert one.instance == other.instance
    assert [left.id for left in one.left] == [left.id for left in other.left]
    assert {key: facts.revision for key, facts in one.jobs.items()} == {
        key: facts.revision for key, facts in other.jobs.items()
    }
