"""What jobs of Slurm ask for, as instances say it; and what they cannot say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import cpsched
from cpsched.domain import Arrangement, Job
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.site.bridge import Snapshot
from cpsched.site.bridge.slurm import make_snapshot
from cpsched.site.bridge.slurm.amounts import gres_amounts, license_amounts, memory, minutes, tres_requests
from cpsched.site.bridge.slurm.json_reader import read_answer
from cpsched.verify import verify
from tests.bridge.slurm.answers import LICENSES_2205, NODES_2205, NOW, PARTITIONS_2205, node, running, waiting


def look(*jobs: dict[str, Any], config: dict[str, str] | None = None, nodes: Any = None) -> Snapshot:
    """Return the snapshot of the small cluster with these jobs; its instance passes the reader of documents."""
    answer = {"jobs": jobs, "nodes": nodes or NODES_2205, "partitions": PARTITIONS_2205, "licenses": LICENSES_2205}
    records = read_answer({key: list(value) for key, value in answer.items()}, "test")
    snapshot = make_snapshot(replace(records, config=config or {}), NOW)
    assert parse_instance(instance_to_document(snapshot.instance), source="test") == snapshot.instance
    return snapshot


def only(*jobs: dict[str, Any], **given: Any) -> Job:
    """Return the last job of the instance of a snapshot in which none is left."""
    snapshot = look(*jobs, **given)
    assert not snapshot.left
    return snapshot.instance.jobs[-1]


def chunks(job: Job) -> list[tuple[int, dict[str, int], dict[str, str]]]:
    """Return the chunks of a job as plain values."""
    return [(one.count, dict(one.resources), dict(one.where)) for one in job.request.chunks]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cpus": 4, "tasks": 4}, [(1, {"cores": 4, "mem": 400}, {})]),
        ({"cpus": 20, "tasks": 20}, [(2, {"cores": 10, "mem": 1000}, {})]),
        ({"cpus": 12, "tasks": 12, "node_count": 2}, [(2, {"cores": 6, "mem": 600}, {})]),
        ({"cpus": 13, "tasks": 13, "node_count": 2}, [(2, {"cores": 7, "mem": 700}, {})]),
        ({"cpus": 12, "tasks": 4, "tasks_per_node": 2}, [(2, {"cores": 6, "mem": 600}, {})]),
        ({"memory_per_cpu": None, "memory_per_node": 2000}, [(1, {"cores": 1, "mem": 2000}, {})]),
        ({"tres_per_node": "gres:gpu:2"}, [(1, {"cores": 1, "mem": 100, "gpus": 2}, {})]),
        ({"tres_per_job": "gres/gpu:k20:2"}, [(1, {"cores": 1, "mem": 100, "gpus": 2, "gpus.k20": 2}, {})]),
        (
            {"tres_per_node": "gres:gpu:1", "cpus_per_tres": "gres:gpu:4"},
            [(1, {"cores": 4, "mem": 400, "gpus": 1}, {})],
        ),
        ({"minimum_cpus_per_node": 8}, [(1, {"cores": 8, "mem": 800}, {})]),
        ({"features": "gpu"}, [(1, {"cores": 1, "mem": 100}, {"feature.gpu": "yes"})]),
        ({"excluded_nodes": "g[1-2]"}, [(1, {"cores": 1, "mem": 100}, {"outside.g[1-2]": "yes"})]),
        (
            {"required_nodes": "m1", "node_count": 2, "cpus": 4, "tasks": 4},
            [(1, {"cores": 2, "mem": 200}, {"host": "m1"}), (1, {"cores": 2, "mem": 200}, {})],
        ),
    ],
)
def test_requests_are_chunks(fields: dict[str, Any], expected: list[Any]) -> None:
    """Tasks, nodes, memory, gres, features, required and excluded nodes are said as chunks of one node each."""
    job = only(waiting(1, **fields))
    assert chunks(job) == expected
    assert job.request.place.arrangement is (
        Arrangement.SCATTER if sum(one.count for one in job.request.chunks) > 1 else Arrangement.FREE
    )


def choices(job: Job) -> list[tuple[int, int, set[str]]]:
    """Return the chunks, their cores and their properties of each choice of a job whose chunks are alike."""
    found = []
    for one in job.choices:
        (chunk,) = one.request.chunks
        found.append((chunk.count, chunk.resources["cores"], set(chunk.where)))
    return found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"node_count": 2, "max_nodes": 4, "tasks": 8, "cpus": 8}, [(2, 4, ()), (3, 3, ()), (4, 2, ())]),
        ({"node_count": 1, "max_nodes": 9, "tasks": 4, "cpus": 4}, [(1, 4, ()), (2, 2, ()), (4, 1, ())]),
        ({"node_count": 1, "max_nodes": 4, "tasks": 40, "cpus": 40}, [(3, 14, ()), (4, 10, ())]),
        ({"node_count": 2, "max_nodes": 4}, [(2, 1, ())]),
        ({"node_count": 1, "max_nodes": 4, "tasks": 4, "cpus": 4, "shared": "none"}, [(1, 4, ())]),
        ({"node_count": 1, "max_nodes": 4, "tasks": 4, "cpus": 4, "tasks_per_node": 4}, [(1, 4, ())]),
        ({"features": "[gpu|rack1]"}, [(1, 1, ("feature.gpu|rack1",))]),
        (
            {"features": "[gpu|rack1]", "node_count": 2, "tasks": 2, "cpus": 2},
            [(2, 1, ("feature.gpu",)), (2, 1, ("feature.rack1",))],
        ),
        (
            {"partition": "normal,gpuq", "tasks": 4, "cpus": 4, "max_nodes": 2},
            [
                (1, 4, ("partition.gpuq",)),
                (2, 2, ("partition.gpuq",)),
                (1, 4, ("partition.normal",)),
                (2, 2, ("partition.normal",)),
            ],
        ),
        ({"partition": "normal,gpuq", "excluded_nodes": "g[1-2]", "time_limit": 2000}, [(1, 1, ("outside.g[1-2]",))]),
    ],
)
def test_what_slurm_would_choose_is_a_choice(fields: dict[str, Any], expected: list[Any]) -> None:
    """Ranges of nodes with fewer tasks on each, features that all nodes have alike, and several partitions that are not
    alike are alternatives, as far as they are any.
    """
    job = only(waiting(1, **fields))
    assert choices(job) == [(count, cores, set(where)) for count, cores, where in expected]


def test_a_plan_chooses_what_can_start_first() -> None:
    """Where the preferred partition and the fewest nodes are taken, the job starts at once in another one on more."""
    snapshot = look(
        *(running(number, name, {name: (10, 1000)}) for number, name in enumerate(("g1", "g2", "m1"), 1)),
        waiting(5, partition="normal,gpuq", tasks=12, cpus=12, max_nodes=3),
        waiting(6, partition="normal,gpuq", tasks=7, cpus=7),
    )
    document = instance_to_document(snapshot.instance)
    plan = cpsched.solve(snapshot.instance, engine="planner")
    assert verify(document, plan_to_document(plan)) == ()
    (job,) = (one for one in plan.jobs if one.id == "5")
    assert (job.start, len(job.segments[0].allocation)) == (NOW, 2)


def test_properties_of_nodes_say_who_is_required_and_excluded() -> None:
    """A required node has a property of its own, and all but the excluded ones have one that says so."""
    snapshot = look(waiting(1, required_nodes="m1"), waiting(2, excluded_nodes="g1,m1"))
    found = {name: dict(one.properties) for one in snapshot.instance.cluster.classes for name in one.names}
    assert found["m1"] == {"host": "m1"}
    assert "outside.g1,m1" in found["m2"]
    assert "outside.g1,m1" not in found["g1"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"priority": 0}, "it is held"),
        ({"hold": True, "state_reason": "JobHeldAdmin"}, "it is held (JobHeldAdmin)"),
        ({"partition": "gone"}, "has no nodes"),
        ({"features": "[rack1|rack2*2]", "node_count": 2, "tasks": 2, "cpus": 2}, "in a way that cannot be said"),
        ({"features": "[gpu&rack1]", "node_count": 2, "tasks": 2, "cpus": 2}, "the same of some features"),
        ({"features": "gpu*2", "required_nodes": "g1"}, "by counts of features"),
        ({"features": "a&b|c"}, "features in a way that cannot be said"),
        ({"licenses": "matlab:1|ansys:1"}, "its licences cannot be read"),
        ({"tres_per_socket": "gres:gpu:1"}, "per socket"),
        ({"tres_per_node": "gres:shard:1"}, "parts of a GPU"),
        ({"tres_per_node": "bb:1"}, "its resources cannot be read"),
        ({"shared": "mcs"}, "--exclusive=mcs"),
        ({"contiguous": True}, "--contiguous"),
        ({"core_spec": 2}, "--core-spec"),
        ({"minimum_switches": 2}, "--switches"),
        ({"burst_buffer": "x"}, "burst buffer"),
        ({"cluster_features": "x"}, "--cluster-constraint"),
        ({"minimum_tmp_disk_per_node": 10}, "--tmp"),
        ({"sockets_per_node": 2}, "sockets"),
        ({"threads_per_core": 4}, "--threads-per-core"),
        ({"state_reason": "BadConstraints"}, "Slurm says that it cannot start"),
        ({"state_reason": "InvalidQOS", "state_description": "x"}, "InvalidQOS"),
        ({"tasks_per_socket": 2}, "per socket or board"),
        ({"time_limit": 2**32 - 1}, "no time limit"),
        ({"resv_name": "gone"}, "its reservation gone is not known"),
        ({"array_job_id": 1, "array_task_string": "1-9,..."}, "tasks cannot be read"),
        ({"dependency": "afterok:3(failed)"}, "never comes"),
        ({"dependency": "afterok:77(unfulfilled)"}, "neither waits nor runs"),
        ({"dependency": "afterok:2?afterok:3"}, "one of several jobs"),
        ({"dependency": "afterburst:2(unfulfilled)"}, "in a way that cannot be said"),
        ({"dependency": "expand;2"}, "cannot be read"),
        ({"cpus": 99, "tasks": 99, "max_nodes": 2}, "asks for at most 2"),
        ({"required_nodes": "m["}, "its list of nodes cannot be read"),
    ],
)
def test_what_cannot_be_said_is_left_with_a_reason(fields: dict[str, Any], reason: str) -> None:
    """A job that an instance cannot say is not in it, and its reason is told; the other jobs are."""
    snapshot = look(waiting(2), waiting(5, **fields))
    assert {left.id.partition("_")[0] for left in snapshot.left} <= {"5", "1"}
    assert snapshot.left
    assert all(reason in left.reason for left in snapshot.left)
    assert [job.id for job in snapshot.instance.jobs] == ["2"]


def test_who_waits_for_a_left_job_is_left_too() -> None:
    """A chain behind a job that is left is left, with the job that each waits for."""
    snapshot = look(
        waiting(1, priority=0),
        waiting(2, dependency="afterok:1(unfulfilled)"),
        waiting(3, dependency="afterany:2+5(unfulfilled)"),
        waiting(4),
    )
    assert [(left.id, left.reason) for left in snapshot.left] == [
        ("1", "it is held (Priority)"),
        ("2", "it waits for job 1, which cannot be planned"),
        ("3", "it waits for job 2, which cannot be planned"),
    ]
    assert [job.id for job in snapshot.instance.jobs] == ["4"]


def test_dependencies() -> None:
    """Delays are minutes, an array is all of its tasks, a singleton waits for the earlier jobs of its name."""
    array = waiting(20, array_job_id=20, array_task_string="1-2", name="a")
    job = only(array, waiting(21, dependency="after:20_*+5(unfulfilled),afterok:9(fulfilled)", name="b"))
    assert [(link.job, link.type, link.delay) for link in job.after] == [("20_1", "after", 300), ("20_2", "after", 300)]
    job = only(array, waiting(21, dependency="afterok:20_2(unfulfilled)"))
    assert [link.job for link in job.after] == ["20_2"]
    job = only(waiting(1), waiting(2), waiting(3, name="x"), waiting(4, dependency="singleton(unfulfilled)"))
    assert [(link.job, link.type) for link in job.after] == [("1", "afterany"), ("2", "afterany")]


def test_memory_counts_as_the_configuration_says() -> None:
    """Without memory in SelectTypeParameters it is not asked for; with it, a job without any has its node alone."""
    without, with_it = {"SelectTypeParameters": "CR_CPU"}, {"SelectTypeParameters": "CR_CORE_MEMORY"}
    assert chunks(only(waiting(1), config=without)) == [(1, {"cores": 1}, {})]
    assert not only(waiting(1), config=with_it).request.place.exclusive
    assert only(waiting(1, memory_per_cpu=None), config=with_it).request.place.exclusive
    assert only(waiting(1), config={"SelectType": "select/linear"}).request.place.exclusive


def test_whole_cores_are_given() -> None:
    """On nodes with two threads a core, amounts are rounded up to whole cores."""
    nodes = [node("t1", threads=2), node("t2", threads=2)]
    job = only(waiting(1, cpus=3, tasks=3), nodes=[*NODES_2205, *nodes])
    assert chunks(job) == [(1, {"cores": 3, "mem": 300}, {})]
    partition = waiting(1, cpus=3, tasks=3)
    records = read_answer({"jobs": [partition], "nodes": nodes}, "test")
    assert make_snapshot(records, NOW).instance.jobs[0].request.chunks[0].resources["cores"] == 4


@pytest.mark.parametrize(
    ("fields", "selects", "cpus", "memory"),
    [
        ({"tasks": 4, "cpus": 4, "tasks_per_core": 1}, "CR_CORE", 8, 800),
        ({"tasks": 2, "cpus": 4, "tasks_per_core": 1}, "CR_CORE", 4, 400),
        ({"tasks": 2, "cpus": 6, "tasks_per_core": 1}, "CR_CORE", 8, 800),
        ({"tasks": 4, "cpus": 4, "tasks_per_core": 2}, "CR_CORE", 4, 400),
        ({"tasks": 2, "cpus": 4, "tasks_per_core": 1, "threads_per_core": 1}, "CR_CORE", 8, 400),
        ({"tasks": 3, "cpus": 3, "tasks_per_core": 1, "threads_per_core": 1}, "CR_CORE", 6, 300),
        ({"tasks": 1, "cpus": 1}, "CR_Socket", 8, 800),
        ({"tasks": 9, "cpus": 9}, "CR_Socket", 16, 1600),
    ],
)
def test_cpus_of_cores_and_sockets_are_those_that_slurm_gave(
    fields: dict[str, Any], selects: str, cpus: int, memory: int
) -> None:
    """As 22.05 gave them on two sockets of four cores with two threads each: memory is for the threads in use."""
    nodes = [node("t1", threads=2, sockets=2)]
    found = read_answer({"jobs": [waiting(1, **fields)], "nodes": nodes}, "test")
    config = {"SelectTypeParameters": f"{selects}_MEMORY"}
    made = make_snapshot(replace(found, config=config), NOW)
    assert chunks(made.instance.jobs[0]) == [(1, {"cores": cpus, "mem": memory}, {})]


def test_a_running_job_has_all_threads_of_its_cores() -> None:
    """22.05 names cores: half of a node with two threads a core is not taken for a quarter."""
    held = running(1, "t1", {"t1": (4, 800)}, cpus=8)
    found = read_answer({"jobs": [held, waiting(2)], "nodes": [node("t1", threads=2)]}, "test")
    job, _ = make_snapshot(found, NOW).instance.jobs
    assert job.running is not None
    assert job.running.segments[0].allocation[0].resources == {"cores": 8, "mem": 800}


def test_running_jobs_are_facts() -> None:
    """Suspended, completing, late and unlimited jobs hold their nodes; on unknown nodes they are told of."""
    held = {"m1": (4, 400)}
    late = only(running(1, "m1", held, start_time=NOW - 9000))
    assert late.running is not None
    assert late.running.segments[-1].end == NOW + 1
    endless = only(running(1, "m1", held, time_limit=None))
    assert endless.walltime == 365 * 86400
    suspended = only(running(1, "m1", held, job_state="SUSPENDED", end_time=NOW + 4000))
    assert suspended.running is not None
    assert suspended.running.segments[-1].end == NOW + 4000
    completing = only(running(1, "m1", held, job_state="COMPLETING"))
    assert completing.running is not None
    assert completing.running.segments[-1].end == NOW + 1
    (left,) = look(running(1, "x1", {"x1": (1, 1)})).left
    assert left.reason == "it runs on nodes that are not known (x1)"


def test_hostile_names_come_to_nothing() -> None:
    """Names with control characters, escapes and other tongues stay names, on one line and not too long."""
    evil = "\x1b[31mroot\n; rm -rf / <script>" + "x" * 400
    job = only(waiting(1, user_name=evil, account=evil, group_name=evil, name=evil))
    for name in (job.user, job.group, job.project):
        assert name is not None
        assert name.isprintable()
        assert len(name) <= 256


def test_amounts() -> None:
    """The texts for gres, memory, licences and times are read as Slurm writes them."""
    assert gres_amounts("gpu:k20:2(IDX:0-1),mic:0") == {"gpus": 2, "gpus.k20": 2}
    assert gres_amounts("mic(CNT:1)") == {"mics": 1}
    assert gres_amounts("gpu:1g.10gb:21(S:1,3),gpu:a100:1") == {"gpus": 22, "gpus.1g.10gb": 21, "gpus.a100": 1}
    assert gres_amounts("gpu,craynetwork:4K") == {"gpus": 1, "craynetwork": 4096}
    assert gres_amounts("(null)") == {}
    assert tres_requests("gres/gpu=2,gres:mic:1") == {"gpus": 2, "mics": 1}
    assert [memory(text) for text in ("62.50G", "100M", "1T", "2048K", "1K", "7", "4Gn")] == [
        64000, 100, 1048576, 2, 1, 7, 4096,
    ]  # fmt: skip
    assert license_amounts("matlab:2;ansys,rtl@r,matlab=1") == {"matlab": 3, "ansys": 1, "rtl@r": 1}
    assert [minutes(text) for text in ("00:05:00", "1-00:30:00", "UNLIMITED")] == [300, 88200, None]


@pytest.mark.parametrize(
    ("reader", "text"),
    [(gres_amounts, "a:b:c:2"), (gres_amounts, ":2"), (memory, "lots"), (license_amounts, "a|b"), (minutes, "soon")],
)
def test_amounts_that_cannot_be_read_are_refused(reader: Any, text: str) -> None:
    """Another text is refused with what was expected."""
    with pytest.raises(ValueError, match="Expected"):
        reader(text)


@pytest.mark.slow
def test_many_jobs_on_many_nodes() -> None:
    """3,000 waiting jobs on 5,000 nodes become a snapshot."""
    nodes = [node(f"n{index}") for index in range(5000)]
    answer = {"jobs": [waiting(index + 1, cpus=index % 64 + 1) for index in range(3000)], "nodes": nodes}
    records = read_answer(answer, "test")
    snapshot = make_snapshot(records, NOW)
    assert len(snapshot.instance.jobs) == 3000
