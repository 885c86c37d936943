"""Logs in Standard Workload Format: read as they are, and made into windows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Instance, NodeClass, Queue
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.formats.swf import MemoryField, SwfLog, read_machine, read_swf, swf_to_instance

LOG = """\
; Version: 2.2
;  Computer: IBM SP2
; Queue: 1 express
; Queue: 2 normal
;
;   a line of prose
    7   100    5  300    4  142.00   -1    8   600  4096  1  12   3  5  1  -1 -1 -1
    8   160   -1   -1   -1     -1    -1    2  7200    -1  5  13  -1 -1  2  -1 -1 -1

    9   220    0   90    3     -1  12.5   -1    -1    -1  1  12   3  5 -1  -1 -1 -1 {4,5} q_1d
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def machine(*queues: str, mem: int | None = 4096) -> Instance:
    """Return 16 nodes of 4 cores without jobs."""
    resources = {"cores": 4} if mem is None else {"cores": 4, "mem": mem}
    nodes = NodeClass(names=tuple(f"n{number:02d}" for number in range(16)), resources=Amounts(resources))
    declared = {queue: Queue(expected_wait=99) for queue in queues}
    return Instance(name="machine", cluster=Cluster(classes=(nodes,)), queues=FrozenMap(declared))


def log_of(tmp_path: Path, *lines: str) -> SwfLog:
    return read_swf(write(tmp_path / "log.swf", "\n".join(lines)))


def line(**columns: int | float) -> str:
    """Return a job line; columns by their name here, all others plain."""
    values = {"number": 1, "submit": 0, "wait": 0, "run": 50, "got": 2, "cpu": -1, "used": -1, "procs": 2, "time": 60}
    values |= {
        "mem": -1,
        "status": 1,
        "user": 1,
        "group": 1,
        "exe": -1,
        "queue": -1,
        "part": -1,
        "prev": -1,
        "think": -1,
    }
    assert columns.keys() <= values.keys()
    return " ".join(str(value) for value in (values | columns).values())


def test_fields_and_header_are_read(tmp_path: Path) -> None:
    """Unknown fields are None, means stay floats, repeated keys keep all values, further columns stay text."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    assert log.header == {"Version": ("2.2",), "Computer": ("IBM SP2",), "Queue": ("1 express", "2 normal")}
    assert log.comments == ("a line of prose",)
    assert log.faults == ()
    first, second, third = log.jobs
    assert (first.number, first.submit, first.wait, first.run_time, first.processors) == (7, 100, 5, 300, 4)
    assert (first.cpu_time, first.used_memory, first.requested_processors) == (142.0, None, 8)
    assert (first.requested_time, first.requested_memory, first.status) == (600, 4096, 1)
    assert (first.user, first.group, first.executable, first.queue, first.partition) == (12, 3, 5, 1, None)
    assert (first.preceding_job, first.think_time, first.extra) == (None, None, ())
    assert (second.wait, second.run_time, second.processors) == (None, None, None)
    assert (third.used_memory, third.extra) == (12.5, ("{4,5}", "q_1d"))


def test_gzip_is_told_by_its_bytes(tmp_path: Path) -> None:
    """A compressed log reads the same, whatever it is called."""
    packed = tmp_path / "log.swf"
    packed.write_bytes(gzip.compress(LOG.encode()))
    assert read_swf(packed).jobs == read_swf(write(tmp_path / "plain.txt", LOG)).jobs


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1 2 3", "Expected 18 fields, got 3"),
        (line().replace("60", "1h"), "Expected a number in field 9, got '1h'"),
        (line(number=-1), "Expected a job number >= 0 in field 1, got -1"),
        (line(submit=-1), "Expected a submit time in field 2, got -1 (unknown)"),
        (line(run=float("nan")), "Expected a number within ±10^15 in field 4, got nan"),
        (line(procs=10**18), "Expected a number within ±10^15 in field 8, got 1000000000000000000"),
        (
            line(procs=10**400),
            "Expected a number within ±10^15 in field 8, got 1000000000000000000000000000000000000000",
        ),
    ],
)
def test_odd_lines_are_collected_with_line_and_reason(tmp_path: Path, bad: str, reason: str) -> None:
    """A line that is no job is a fault with its number, and the lines around it are read."""
    log = log_of(tmp_path, line(number=1), "; Note: x", bad, line(number=2))
    assert [job.number for job in log.jobs] == [1, 2]
    assert [(fault.path, fault.message) for fault in log.faults] == [("line 3", reason)]


def test_fractions_are_rounded_up(tmp_path: Path) -> None:
    """A run time of 12.2 s needs 13 whole seconds, and a float that is whole stays what it is."""
    (job,) = log_of(tmp_path, line(run=12.2, time=60.0)).jobs
    assert (job.run_time, job.requested_time) == (13, 60)


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b nonsense", gzip.compress(LOG.encode())[:-20], b"hello\n", b"\x00" * 100]
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes) -> None:
    """Damaged gzip files and files without a job line are a DocumentError that names the file."""
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"log\.swf"):
        read_swf(path)


def test_missing_log_is_refused(tmp_path: Path) -> None:
    """A file that is not there is a DocumentError, too."""
    with pytest.raises(DocumentError, match="No such file"):
        read_swf(tmp_path / "none.swf")


@given(content=st.binary(max_size=300) | st.text(alphabet="0123456789-.; e\n", max_size=300).map(str.encode))
@settings(max_examples=60)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever the file holds: each line is a job, a fault, a comment or empty, or the file is refused."""
    path = tmp_path_factory.getbasetemp() / "any.swf"
    path.write_bytes(content)
    try:
        log = read_swf(path)
    except DocumentError:
        return
    lines = [text for text in content.decode(errors="replace").split("\n") if text.strip()]
    comments = [text for text in lines if text.strip().startswith(";")]
    assert len(log.jobs) + len(log.faults) == len(lines) - len(comments)


def test_window_has_all_that_a_planner_needs(tmp_path: Path) -> None:
    """Job 7 asks for 8 processors of 4096 KB for 600 s; of job 9 only what it got and how long it ran is known."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    window = swf_to_instance(log, machine("q1", "q2"))
    first, second, third = window.instance.jobs
    assert (first.id, first.user, first.group, first.queue, first.submit) == ("7", "u12", "g3", "q1", 0)
    assert (first.walltime, first.runtime) == (600, 300)
    (chunk,) = first.request.chunks
    assert chunk == Chunk(count=8, resources=Amounts({"cores": 1, "mem": 4}))
    assert (second.queue, second.submit, second.group, second.runtime) == ("q2", 60, None, None)
    assert (third.queue, third.walltime, third.request.chunks[0].count) == ("short", 90, 3)
    assert window.instance.now == 120
    assert window.instance.queues["short"].expected_wait == 1800
    assert window.left_out == ()
    assert [str(fault) for fault in window.adjusted] == [
        "job 8: run time is unknown: runtime is left out",
        "job 9: requested time is unknown: the run time 90 is its walltime",
        "job 9: requested processors are unknown: the 3 that it got are its size",
    ]


def test_queue_classes_follow_the_walltime(tmp_path: Path) -> None:
    """Up to an hour is short, up to six hours medium, beyond long, with 1800, 21600 and 86400 s of expected wait."""
    walltimes = (3600, 3601, 21600, 21601)
    log = log_of(tmp_path, *(line(number=number, time=time, queue=3) for number, time in enumerate(walltimes)))
    instance = swf_to_instance(log, machine("q1")).instance
    assert [job.queue for job in instance.jobs] == ["short", "medium", "medium", "long"]
    assert [instance.expected_wait(job) for job in instance.jobs] == [1800, 21600, 21600, 86400]


def test_declared_class_keeps_its_expected_wait(tmp_path: Path) -> None:
    """Where the cluster file declares ``short``, its own figure holds."""
    instance = swf_to_instance(log_of(tmp_path, line()), machine("short")).instance
    assert instance.queues == {"short": Queue(expected_wait=99)}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"procs": 0, "got": -1}, "requested processors are 0 and processors are unknown: no size"),
        ({"time": -1, "run": 0}, "requested time is unknown and run time is 0: no walltime"),
        ({"status": 3}, "status 3: a part of a job that was swapped or checkpointed, not a job"),
        ({"procs": 2_000_000}, "Expected at most 1000000 chunks, got 2000000"),
        ({"mem": 10**14}, "Expected at most 2147483647 MiB of memory per chunk, got 97656250000"),
    ],
)
def test_unusable_jobs_are_left_out_in_words(tmp_path: Path, columns: dict[str, int], reason: str) -> None:
    """A job without size or time, or beyond the bounds of the documents, is reported; the others are taken."""
    window = swf_to_instance(log_of(tmp_path, line(number=1, **columns), line(number=2)), machine())
    assert [job.id for job in window.instance.jobs] == ["2"]
    assert list(window.instance.queues) == ["short"]
    assert [str(fault) for fault in window.left_out] == [f"job 1: {reason}"]


def test_job_far_beyond_the_others_is_left_out(tmp_path: Path) -> None:
    """Submit times that lie 10^13 s apart cannot stand in one document."""
    window = swf_to_instance(log_of(tmp_path, line(), line(number=2, submit=10**13)), machine())
    assert [job.id for job in window.instance.jobs] == ["1"]
    assert "within 10^12 s" in window.left_out[0].message


def test_second_job_of_a_number_is_left_out(tmp_path: Path) -> None:
    """Ids are unique in an instance, so the second line of a number is reported."""
    window = swf_to_instance(log_of(tmp_path, line(), line(submit=5)), machine())
    assert [job.submit for job in window.instance.jobs] == [0]
    assert "stands twice" in window.left_out[0].message


def test_whole_node_chunks_hold_all_processors(tmp_path: Path) -> None:
    """9 processors at 4 cores per chunk are 3 chunks; 1000 KB per processor are 4000 KB per chunk, 4 MiB rounded up."""
    window = swf_to_instance(log_of(tmp_path, line(procs=9, mem=1000)), machine(), cores_per_chunk=4)
    (chunk,) = window.instance.jobs[0].request.chunks
    assert chunk == Chunk(count=3, resources=Amounts({"cores": 4, "mem": 4}))


def test_memory_as_bytes_per_job(tmp_path: Path) -> None:
    """64 GiB for 64 processors are 1024 MiB for each; on nodes without ``mem`` memory does not count."""
    log = log_of(tmp_path, line(procs=64, mem=64 * 2**30))
    window = swf_to_instance(log, machine(), memory_field=MemoryField.BYTES_PER_JOB)
    assert window.instance.jobs[0].request.chunks[0].resources == {"cores": 1, "mem": 1024}
    without = swf_to_instance(log, machine(mem=None), memory_field=MemoryField.BYTES_PER_JOB)
    assert without.instance.jobs[0].request.chunks[0].resources == {"cores": 1}


def test_window_is_chosen_by_index_and_by_submit_time(tmp_path: Path) -> None:
    """Of submits 0, 10, …, 90 the range [20, 80) has 20 … 70; three of them from the second on are 30, 40, 50."""
    log = log_of(tmp_path, *(line(number=number, submit=10 * number) for number in range(10)))
    window = swf_to_instance(log, machine(), submitted=(20, 80), first=1, jobs=3)
    assert [job.id for job in window.instance.jobs] == ["3", "4", "5"]
    assert [job.submit for job in window.instance.jobs] == [0, 10, 20]
    assert window.instance.now == 20
    assert swf_to_instance(log, machine(), jobs=2, now=100).instance.now == 100
    assert swf_to_instance(log, machine(), first=10).instance.jobs == ()


def test_senseless_choices_are_refused(tmp_path: Path) -> None:
    """Negative indices, empty ranges and a machine with jobs are a programmer's mistakes."""
    log = log_of(tmp_path, line())
    for choice in ({"first": -1}, {"jobs": 0}, {"cores_per_chunk": 0}, {"submitted": (5, 5)}):
        with pytest.raises(ValueError, match="need"):
            swf_to_instance(log, machine(), **choice)
    with pytest.raises(ValueError, match="already has jobs"):
        swf_to_instance(log, swf_to_instance(log, machine()).instance)


#: Jobs of the logs here, none of them faulty, and how many of the first thousand cannot be taken.
REAL = {
    "CEA-Curie-2011-2.1-cln.firsthalf": 99765,
    "CTC-SP2-1996-3.1-cln.firsthalf": 39791,
    "HPC2N-2002-2.2-cln.firsthalf": 90204,
    "KTH-SP2-1996-2.1-cln.firsthalf": 13651,
    "MetaCentrum-wagap-2013.firsthalf": 5801,
    "RICC-2010-2.firsthalf": 150328,
    "SDSC-SP2-1998-4.2-cln.firsthalf": 37201,
    "Theta-2023-jan": 2849,
    "Theta-2023.firsthalf": 8978,
    "lublin_256": 10000,
}


@pytest.mark.parametrize("name", REAL)
def test_real_logs_are_read_whole(shared_data: Path, name: str) -> None:
    """Every line is a job, and of a thousand consecutive jobs each is taken or left out with a reason."""
    log = read_swf(shared_data / "logs" / f"{name}.swf.gz")
    assert (len(log.jobs), log.faults) == (REAL[name], ())
    metacentrum = name.startswith("MetaCentrum")
    memory_field = MemoryField.BYTES_PER_JOB if metacentrum else MemoryField.KB_PER_PROCESSOR
    window = swf_to_instance(log, machine(), first=500, jobs=1000, memory_field=memory_field)
    assert len(window.instance.jobs) + len(window.left_out) == 1000
    assert len(window.instance.jobs) >= 990
    assert window.instance.now == max(job.submit for job in window.instance.jobs)


JOB = {"id": "1", "submit": 0, "walltime": 60, "request": "1:ncpus=1"}
CLUSTER = {"nodes": [{"names": "n[00-15]", "resources": {"cores": 4, "mem": 4096}}]}


def test_cluster_file_becomes_a_machine(tmp_path: Path) -> None:
    """Cluster, queues and objective are read as in an instance; the name is the file's where it has none."""
    document = {"cluster": CLUSTER, "queues": {"q1": {"expected_wait": 99}}, "objective": "wait"}
    read = read_machine(write(tmp_path / "tiny.json", json.dumps(document)))
    assert (read.name, read.now, read.jobs) == ("tiny", 0, ())
    assert read.cluster == machine().cluster
    assert read.queues == {"q1": Queue(expected_wait=99)}
    assert read.objective.name == "wait"
    assert read_machine(write(tmp_path / "tiny.json", json.dumps(document | {"name": "mine"}))).name == "mine"


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"cluster": CLUSTER, "jobs": [JOB]}, "jobs: Expected no jobs in a cluster file, got 1"),
        ({"cluster": CLUSTER, "ques": {}}, "ques: unknown key, did you mean queues"),
        ({"queues": {}}, "cluster"),
        ({"cluster": CLUSTER, "queues": {"q1": {"expected_wait": 0}}}, r"queues\.q1\.expected_wait"),
    ],
)
def test_faulty_cluster_file_is_refused(tmp_path: Path, document: dict[str, object], fault: str) -> None:
    """Jobs, unknown keys, a missing cluster and a faulty queue are faults with their path."""
    with pytest.raises(DocumentError, match=fault):
        read_machine(write(tmp_path / "tiny.json", json.dumps(document)))


def test_window_is_a_valid_document(tmp_path: Path) -> None:
    """What is made of a log and a cluster file can be written, and reads back as it was."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    cluster = read_machine(write(tmp_path / "tiny.json", json.dumps({"cluster": CLUSTER})))
    instance = swf_to_instance(log, cluster, cores_per_chunk=4).instance
    assert parse_instance(instance_to_document(instance)) == instance
