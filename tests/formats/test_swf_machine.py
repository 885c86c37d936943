"""The machine of a log: a cluster file, or what the log's header says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpsched.domain import Queue
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.formats.logs import LogOptions, log_to_instance
from cpsched.formats.swf import machine_of_log, read_machine, read_swf
from tests.formats.swf_logs import LOG, line, log_of, machine, write

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
    instance = log_to_instance(log, cluster, LogOptions(cores_per_chunk=4)).instance
    assert parse_instance(instance_to_document(instance)) == instance


@pytest.mark.parametrize(
    ("header", "nodes", "cores", "assumed"),
    [
        (("MaxNodes: 16", "MaxProcs: 64"), 16, 4, ["16 equal nodes of 4 cores each"]),
        (("MaxNodes: 338 (batch partition; 512 total)", "MaxProcs: 338"), 338, 1, ["338 equal nodes of 1 cores each"]),
        (
            ("MaxProcs: 8",),
            8,
            1,
            ["8 equal nodes of 1 cores", "each node has one core, for the header has no MaxNodes"],
        ),
        (
            ("MaxNodes: 8",),
            8,
            1,
            ["8 equal nodes of 1 cores", "each node has one core, for the header has no MaxProcs"],
        ),
    ],
)
def test_a_machine_of_equal_nodes_stands_in_the_header(
    tmp_path: Path, header: tuple[str, ...], nodes: int, cores: int, assumed: list[str]
) -> None:
    """What the header says of nodes and processors makes a machine, and all that was assumed is said."""
    read = machine_of_log(log_of(tmp_path, *(f"; {text}" for text in header), line()))
    (node_class,) = read.machine.cluster.classes
    assert (len(node_class.names), node_class.resources) == (nodes, {"cores": cores})
    assert node_class.names[0] == f"n{1:0{len(str(nodes))}d}"
    assert read.machine.name == "log"
    assert [text.startswith(start) for text, start in zip(read.assumed, assumed, strict=True)] == [True] * len(assumed)


@pytest.mark.parametrize(
    ("header", "kinds"),
    [
        (("MaxNodes: 184 ( 6, 171, 7)", "MaxProcs: 1664 (72, 1368, 224)"), [(6, 12), (171, 8), (7, 32)]),
        (("MaxNodes: 4 (2, 2)", "MaxProcs: 9 (4, 5)"), [(3, 2), (1, 3)]),
        (("MaxNodes: 4 (2, 3)", "MaxProcs: 8 (2, 6)"), [(4, 2)]),
        (("MaxNodes: 4 (0, 4)", "MaxProcs: 8 (0, 8)"), [(4, 2)]),
        (("MaxNodes: 5544", "MaxProcs: 93312"), [(5544 - 93312 % 5544, 16), (93312 % 5544, 17)]),
        (("MaxNodes: -1", "MaxProcs: 8"), [(8, 1)]),
        (("MaxNodes: 1,024", "MaxProcs: 2,048 in all"), [(1024, 2)]),
        (("MaxNodes: -1", "MaxProcs: -1"), [(2, 1)]),
    ],
)
def test_a_machine_of_several_kinds_stands_in_the_header(
    tmp_path: Path, header: tuple[str, ...], kinds: list[tuple[int, int]]
) -> None:
    """Parts of a machine have nodes of their own; else cores are shared out, and the header may begin with a mark."""
    log = tmp_path / "log.swf"
    log.write_text("\ufeff" + "".join(f"; {text}\n" for text in header) + line())
    classes = machine_of_log(read_swf(log)).machine.cluster.classes
    assert [(len(one.names), one.resources["cores"]) for one in classes] == kinds
    names = [name for one in classes for name in one.names]
    assert names == sorted(set(names))


def test_a_machine_that_only_jobs_describe(tmp_path: Path) -> None:
    """Without a header it has what jobs held at once: 3 and 4 processors in [20, 30); or what the widest asked for."""
    runs = [line(submit=0, run=30, got=3), line(submit=10, wait=10, run=30, got=4), line(submit=30, run=9, got=1)]
    for lines, processors in ((runs, 7), ([*runs, line(wait=-1, procs=9)], 9)):
        found = machine_of_log(log_of(tmp_path, *lines))
        assert found.machine.cluster.totals["cores"] == len(found.machine.cluster.node_names) == processors
        assert "jobs held at once" in found.assumed[0]
    with pytest.raises(DocumentError, match="a job of a size, got none"):
        machine_of_log(log_of(tmp_path, line(got=-1, procs=-1)))


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (("MaxNodes: 9", "MaxProcs: 8"), "header MaxProcs: Expected a number of cores that 9 equal nodes can share"),
        (("MaxNodes: 1,2",), 'header MaxNodes: Expected a number above 0, got "1,2"'),
        (("MaxNodes: many",), 'header MaxNodes: Expected a number above 0, got "many"'),
        (("MaxNodes: 0", "MaxProcs: 5"), 'header MaxNodes: Expected a number above 0, got "0"'),
        (("MaxNodes: 1000001",), "header MaxNodes: Expected at most 1000000 nodes, got 1000001"),
        (
            ("MaxNodes: 1", "MaxProcs: 2147483648"),
            "header MaxProcs: Expected a number of cores that 1 equal nodes can share",
        ),
    ],
)
def test_a_machine_that_the_header_does_not_describe(tmp_path: Path, header: tuple[str, ...], fault: str) -> None:
    """Where equal nodes cannot be, or nothing is said, a cluster file is asked for."""
    with pytest.raises(DocumentError) as caught:
        machine_of_log(log_of(tmp_path, *(f"; {text}" for text in header), line()))
    (found,) = caught.value.faults
    assert str(found).startswith(fault)
    assert "a cluster file can describe the machine" in str(found)
