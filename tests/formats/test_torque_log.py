"""Accounting logs of Torque and PBS: records, requests, where jobs ran, and the machine that follows from that."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Arrangement, Chunk, Dependency, DependencyType, FrozenMap, Place
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.formats.logs import Held, LogAnomaly, kind_of, log_to_instance, machine_of_jobs, read_torque
from tests.formats.job_logs import TORQUE, ended, torque
from tests.sizes import examples


def test_records_of_a_job_are_put_together(tmp_path: Path) -> None:
    """Of 1 and 2 the last record says all, of 6 the second one; 5 has only started, and 3 and 4 say nothing."""
    log = torque(tmp_path, TORQUE)
    jobs = {job.id: job for job in log.jobs}
    assert list(jobs) == ["1", "2", "6", "5"]
    first = jobs["1"]
    assert (first.line, first.submit, first.start, first.runtime, first.walltime) == (5, 100, 110, 60, 3600)
    assert (first.user, first.group, first.project, first.queue, first.status) == ("ann", "g", "p", "batch", 1)
    assert first.request.chunks == (Chunk(count=2, resources=Amounts({"cores": 2, "mem": 2048})),)
    assert first.allocation == (Held(node="a", cores=2, slots=2), Held(node="b", cores=2, slots=2))
    assert (first.eligible, first.notes) == (None, ())
    second = jobs["2"]
    assert (second.eligible, second.status, second.walltime) == (120, 0, 60)
    (chunk,) = second.request.chunks
    assert (chunk.resources, chunk.where) == ({"cores": 2, "mem": 2048}, {"fast": "yes"})
    assert (jobs["6"].start, jobs["6"].runtime, jobs["6"].notes[0][0]) == (160, 0, LogAnomaly.RAN_AGAIN)
    assert (jobs["5"].runtime, jobs["5"].status) == (None, None)
    assert [(anomaly, fault.path) for anomaly, fault in log.left_out] == [
        (LogAnomaly.DELETED, "line 2"),
        (LogAnomaly.NOT_STARTED, "line 6"),
    ]
    assert log.faults == ()


def test_the_machine_is_the_least_on_which_the_log_could_happen(tmp_path: Path) -> None:
    """Slot 3 is the highest of both nodes; on b two jobs had 2 GiB each at once, one of which was for fast nodes."""
    found = machine_of_jobs(torque(tmp_path, TORQUE))
    assert found.machine.name == "log"
    plain, fast = found.machine.cluster.classes
    assert (plain.names, plain.resources, plain.properties) == (("a",), {"cores": 4, "mem": 4096}, {})
    assert (fast.names, fast.resources, fast.properties) == (("b",), {"cores": 4, "mem": 4096}, {"fast": "yes"})
    assert found.assumed == (
        "2 nodes of 4 cores, 4096 mem: the most that jobs of the log held at once on one of them",
        "1 nodes have fast: on them ran jobs that asked for it",
    )


def test_nodes_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """C10 follows c9; cores without slots (PBS Pro) are those held at once: 4 and then 2, not 6."""
    log = torque(
        tmp_path,
        ended("1", exec_host="c10/0*4+c9/0*4", nodes="2:ppn=4")
        + ended("2", exec_host="c10/0*2", start="170", end="180"),
    )
    (node_class,) = machine_of_jobs(log).machine.cluster.classes
    assert (node_class.names, node_class.resources["cores"]) == (("c9", "c10"), 4)


def test_a_log_becomes_a_workload(tmp_path: Path) -> None:
    """Second 0 is the first submission; who was not eligible has to wait, who has no run time is left out, in words."""
    log = torque(tmp_path, TORQUE)
    window = log_to_instance(log, machine_of_jobs(log).machine, arriving=True)
    instance = window.instance
    assert [(job.id, job.submit, job.not_before, job.walltime, job.runtime) for job in instance.jobs] == [
        ("2", 0, 30, 60, 60),
        ("1", 10, None, 3600, 60),
    ]
    assert (instance.now, instance.epoch.isoformat() if instance.epoch else "") == (0, "1970-01-01T00:01:30+00:00")
    assert [str(fault) for fault in window.left_out] == [
        "line 2: job 3: has no record S or E",
        "line 6: job 4: has no record S or E",
        "line 11: job 6: requests no walltime, and has no run time",
        "line 8: job 5: nothing says how long to simulate it",
    ]
    assert [str(fault) for fault in window.adjusted] == [
        "line 7: job 2: asks for no mem: vmem=2gb is its memory",
    ]
    assert sum(window.counts.values()) == 5
    planned = log_to_instance(log, machine_of_jobs(log).machine)
    assert [job.id for job in planned.instance.jobs] == ["2", "1", "5"]
    assert planned.instance.now == 30


@pytest.mark.parametrize(
    ("asked", "chunks"),
    [
        ({"nodes": "1"}, [(1, {"cores": 1, "mem": 2048}, {})]),
        ({"nodes": "4:ppn=8"}, [(4, {"cores": 8, "mem": 512}, {})]),
        ({"nodes": "bigmem:ppn=4"}, [(1, {"cores": 4, "mem": 2048}, {"bigmem": "yes"})]),
        (
            {"nodes": "2:ppn=16:gpus=2:shared:ib+1:ppn=32", "mem": "6gb"},
            [(2, {"cores": 16, "gpus": 2, "mem": 1536}, {"ib": "yes"}), (1, {"cores": 32, "mem": 3072}, {})],
        ),
        ({"nodes": "2:ppn=2:mics=1", "mem": None, "pmem": "100mb"}, [(2, {"cores": 2, "mics": 1, "mem": 200}, {})]),
        ({"nodes": "2:ppn=2", "mem": "1gb", "pmem": "300mb"}, [(2, {"cores": 2, "mem": 600}, {})]),
        ({"nodes": "1:ppn=3", "mem": None}, [(1, {"cores": 3}, {})]),
        ({"nodes": "3", "mem": "1000001kb"}, [(3, {"cores": 1, "mem": 326}, {})]),
        ({"nodes": None, "procs": "6", "mem": None}, [(6, {"cores": 1}, {})]),
        ({"nodes": None, "ncpus": "6"}, [(1, {"cores": 6, "mem": 2048}, {})]),
        (
            {"nodes": None, "exec_host": "a/0-3+b/0-3+c/0", "mem": "9gb"},
            [(2, {"cores": 4, "mem": 4096}, {}), (1, {"cores": 1, "mem": 1024}, {})],
        ),
        (
            {"nodes": None, "select": "2:ncpus=4:mem=3gb:mpiprocs=4:arch=x+1:ngpus=1"},
            [(2, {"cores": 4, "mem": 3072}, {"arch": "x"}), (1, {"cores": 1, "gpus": 1}, {})],
        ),
    ],
)
def test_what_jobs_ask_for(
    tmp_path: Path, asked: dict[str, Any], chunks: list[tuple[int, dict[str, int], dict[str, str]]]
) -> None:
    """Node specifications, processors and select of PBS become chunks; memory of the job is shared out by cores."""
    (job,) = torque(tmp_path, ended(**asked)).jobs
    assert job.request.chunks == tuple(
        Chunk(count=count, resources=Amounts(resources), where=FrozenMap(where)) for count, resources, where in chunks
    )


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"nodes": "2:ppn=2#excl"}, Place(exclusive=True)),
        ({"nodes": "2:ppn=2#shared"}, Place()),
        ({"naccesspolicy": "SINGLEJOB"}, Place(exclusive=True)),
        (
            {"nodes": None, "select": "2:ncpus=4", "place": "scatter:excl"},
            Place(arrangement=Arrangement.SCATTER, exclusive=True),
        ),
        ({"nodes": None, "select": "2:ncpus=4", "place": "group=rack"}, Place()),
    ],
)
def test_how_jobs_are_placed(tmp_path: Path, asked: dict[str, Any], place: Place) -> None:
    """Torque's own marks, Moab's access policy, and the place of PBS; one that is not simulated is told."""
    (job,) = torque(tmp_path, ended(**asked)).jobs
    assert job.request.place == place
    assert (LogAnomaly.NOT_SIMULATED in dict(job.notes)) == (asked.get("place") == "group=rack")


@pytest.mark.parametrize(
    ("text", "status"), [("0", 1), ("1", 0), ("255", 0), ("-11", 0), ("-2", 0), ("271", 5), ("256", 5)]
)
def test_exit_statuses_are_those_of_the_standard_format(tmp_path: Path, text: str, status: int) -> None:
    """0 is completed, 256 and more is killed by a signal, all others failed: a limit, the node, the script."""
    (job,) = torque(tmp_path, ended(Exit_status=text)).jobs
    assert job.status == status


def test_dependencies_are_on_jobs_above(tmp_path: Path) -> None:
    """What waits for a job that is not above in the log, or by a rule of its own, does without, and that is told."""
    text = ended("1") + ended("2", depend="afterok:1.server:9.server,before:3")
    window = log_to_instance(torque(tmp_path, text), machine_of_jobs(torque(tmp_path, text)).machine)
    assert window.instance.jobs[1].after == (Dependency(job="1", type=DependencyType.AFTEROK),)
    assert [str(fault) for fault in window.adjusted] == [
        'line 2: job 2: waits for "before:3": done without',
        'line 2: job 2: waits for "9", which is no job above that was taken: done without',
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", 'Expected date;type;id;key=value, got "nonsense"'),
        ("03/01/2020 00:00:09;EE;1;user=x", 'Expected date;type;id;key=value, got "03/01/2020 00:00:09;EE;1;user=x"'),
        ("03/01/2020 00:00:09;E;.server;user=x", 'Expected a job id, got ".server"'),
        ("03/01/2020 00:00:09;E;1;lonely", 'Expected key=value, got "lonely"'),
        ("03/01/2020 00:00:09;E;1;a=1 a=2", "Expected a once, got it twice"),
        (ended(ctime="soon"), 'Expected ctime in seconds since 1970, got "soon"'),
        (ended(start=None), "Expected start in seconds since 1970, got nothing"),
        (ended(end="109"), "Expected an end >= start=110, got 109"),
        (ended(walltime="1:2:3:4:5"), 'Expected a duration such as 08:00:00, got "1:2:3:4:5"'),
        (ended(mem="much"), 'Expected a size such as 8gb, got "much"'),
        (ended(mem="9999999999gb"), 'Expected at most 2147483647 MiB, got "9999999999gb"'),
        (ended(nodes="0"), 'Expected nodes, a number from 1 to 2147483647, got "0"'),
        (ended(nodes="1:ppn=x"), 'Expected ppn, a number from 1 to 2147483647, got "x"'),
        (ended(nodes="1:cpus=4"), 'Expected ppn, gpus, mics or a property in nodes, got "cpus=4"'),
        (ended(nodes="1:a b"), 'Expected a property in nodes, letters and digits, got "a b"'),
        (ended(nodes="2000000"), "Expected at most 1000000 nodes and 2147483647 of a resource, got more"),
        (ended(nodes="1#mine"), 'Expected #shared or #excl, got "mine"'),
        (ended(nodes=None, select="2:"), 'Expected a name, got the end in select, "2:"'),
        (ended(exec_host="../etc/0"), 'Expected a node in exec_host, letters and digits, got ".."'),
        (ended(exec_host="a/5-2"), 'Expected node/slot in exec_host, got "a/5-2"'),
        (ended(exec_host="a"), 'Expected node/slot in exec_host, got "a"'),
        (ended(Exit_status="bad"), 'Expected a number as Exit_status, got "bad"'),
        (ended(user="u" * 257), "Expected a user of at most 256 characters, got 257"),
        (
            "03/01/2020 00:00:09;E;1;\x1b[31m",
            'Expected date;type;id;key=value, got "03/01/2020 00:00:09;E;1;\\x1b[31m"',
        ),
    ],
)
def test_odd_lines_are_told_with_their_number(tmp_path: Path, line: str, reason: str) -> None:
    """A line that is not understood costs its job only, and says where, what was expected and what was got."""
    log = torque(tmp_path, ended("7") + line.rstrip("\n") + "\n\n" + ended("8"))
    assert [job.id for job in log.jobs] == ["7", "8"]
    assert [str(fault) for fault in log.faults] == [f"line 2: {reason}"]


def test_a_bad_second_run_does_not_lose_the_first(tmp_path: Path) -> None:
    """The last run that is understood is taken."""
    log = torque(tmp_path, ended("7") + ended("7", end="3"))
    assert [(job.id, job.line) for job in log.jobs] == [("7", 1)]
    assert [fault.path for fault in log.faults] == ["line 2"]


def test_words_without_a_sign_belong_to_the_value_before(tmp_path: Path) -> None:
    """Some sites have blanks in the names of accounts."""
    (job,) = torque(tmp_path, ended().replace("user=ann", "account=our own project user=ann")).jobs
    assert (job.project, job.user) == ("our own project", "ann")


def test_what_does_not_say_where_jobs_ran_needs_a_cluster_file(tmp_path: Path) -> None:
    """Without exec_host there is no machine."""
    with pytest.raises(DocumentError, match=r"Expected a cluster file .* do not say on which nodes jobs ran"):
        machine_of_jobs(torque(tmp_path, ended(exec_host=None)))


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"\x1f\x8b nonsense", gzip.compress(TORQUE.encode(), mtime=0)[:-20]]
)
def test_what_is_no_accounting_log_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty and damaged files, and those without a job, are a DocumentError that names the file."""
    path = tmp_path / "log.acct.gz"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"log\.acct\.gz"):
        read_torque(path)


_likely = ["", "0", "1", "-1", "2:ppn=4", "1:x+2:gpus=1", "8gb", "1kb", "01:00:00", "9" * 15, "a/0-3+b/2", "a/0*2"]
_likely += ["afterok:1", "x y", "\x00", "é", "c" * 300]
_values = st.sampled_from(_likely) | st.text(max_size=12)
_keys = ["user", "group", "queue", "ctime", "etime", "start", "end", "exec_host", "nodes", "mem", "pmem", "walltime"]
_keys += ["procs", "ncpus", "select", "place", "depend", "Exit_status", "vmem"]


@given(
    records=st.lists(
        st.tuples(
            st.sampled_from("QSEDARx"),
            st.sampled_from("12345"),
            st.dictionaries(st.sampled_from(_keys), _values, max_size=3),
        ),
        min_size=1,
        max_size=8,
    )
)
@examples(150)
def test_whatever_a_log_says_what_is_taken_of_it_is_a_document(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str, dict[str, str]]]
) -> None:
    """Each job of a log is taken, told as left out or stands in an odd line; what is taken is a valid instance."""
    path = tmp_path_factory.getbasetemp() / "any.acct"
    lines = [
        ended(job, **changed).replace("\n", " ").replace(";E;", f";{kind};", 1) + "\n" for kind, job, changed in records
    ]
    path.write_bytes("".join(lines).encode("utf-8", errors="replace"))
    try:
        log = read_torque(path)
        machine = machine_of_jobs(log).machine
    except DocumentError:
        return
    named = {job for kind, job, _ in records if kind in "QSED"}
    taken = {job.id for job in log.jobs} | {fault.message.split()[1].rstrip(":") for _, fault in log.left_out}
    at = {int(fault.path.removeprefix("line ")) - 1 for fault in log.faults}
    assert named <= taken | {records[line][1] for line in at if line < len(records)} or "\r" in path.read_text()
    for arriving in (False, True):
        window = log_to_instance(log, machine, arriving=arriving)
        assert len(window.instance.jobs) + len(window.left_out) == len(log.jobs) + len(log.left_out)
        assert parse_instance(instance_to_document(window.instance), source="any").jobs == window.instance.jobs


@pytest.mark.slow
def test_a_real_log_is_read_whole(shared_data: Path) -> None:
    """Two months of IU Mason: 18 nodes of 32 cores and 512 GB, as the machine had, and every line is understood."""
    path = shared_data / "logs" / "IU-Mason_pbs_201710-11.acct.gz"
    assert kind_of(path) is not None
    log = read_torque(path)
    assert (len(log.jobs), len(log.faults)) == (12_152, 0)
    assert Counter(anomaly for anomaly, _ in log.left_out) == {LogAnomaly.DELETED: 710, LogAnomaly.NOT_STARTED: 31}
    machine = machine_of_jobs(log).machine
    assert len(machine.cluster.node_names) == 18
    assert {node_class.resources for node_class in machine.cluster.classes} == {Amounts({"cores": 32, "mem": 524_288})}
    window = log_to_instance(log, machine, arriving=True)
    assert len(window.instance.jobs) == 12_135
    assert window.oversized == ()
