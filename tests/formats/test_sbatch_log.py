"""Events of the Slurm simulator: sbatch lines, what they ask for, and the workload that follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    NodeClass,
    Place,
    Queue,
)
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.formats.logs import (
    LogAnomaly,
    LogKind,
    LogOptions,
    Selection,
    kind_of,
    log_to_instance,
    machine_of_jobs,
    read_log,
    read_sbatch,
)
from cpsched.formats.swf import read_machine
from tests.formats.job_logs import event, sbatch
from tests.sizes import examples

_UB_HPC = Path(__file__).parents[2] / "instances" / "machines" / "ub-hpc.json"


def _machine(**properties: str) -> Instance:
    """Return eight nodes of 16 cores and 2 GPUs."""
    nodes = NodeClass(
        names=tuple(f"n{number}" for number in range(8)),
        resources=Amounts({"cores": 16, "mem": 64_000, "gpus": 2}),
        properties=FrozenMap(properties),
    )
    queues = FrozenMap({"urgent": Queue(expected_wait=60), "normal": Queue(expected_wait=600)})
    return Instance(name="machine", cluster=Cluster(classes=(nodes,)), queues=queues)


def test_an_event_is_a_job(tmp_path: Path) -> None:
    """Times are whole seconds, the limit whole minutes; the number in the name is the id."""
    line = (
        "-dt         10.50 -e submit_batch_job | -sim-walltime   84805.20 --uid=u001 -J jobid_00017 -N    2 -n     32 "
        "-t 3-00:00:30 -A lab -q high -p general --mem=500G --constraint=CPU&IB --gres=gpu:2 --exclusive pseudo.job"
    )
    (job,) = sbatch(tmp_path, "# a comment", "", line).jobs
    assert (job.id, job.line, job.submit, job.runtime, job.walltime) == ("17", 3, 10, 84806, 259260)
    assert (job.user, job.project, job.queue, job.partition) == ("u001", "lab", "high", "general")
    assert job.request.place == Place(arrangement=Arrangement.SCATTER, exclusive=True)
    where = FrozenMap({"CPU": "yes", "IB": "yes"})
    resources = Amounts({"cores": 16, "mem": 512_000, "gpus": 2})
    assert job.request.chunks == (Chunk(count=2, resources=resources, where=where),)
    assert job.notes == ()


@pytest.mark.parametrize(
    ("arguments", "chunks", "scattered"),
    [
        ("-n 18 -N 4 --mem=1G", [(2, {"cores": 5, "mem": 1024}), (2, {"cores": 4, "mem": 1024})], True),
        ("-N2 -n18 -c2 --mem=1G", [(2, {"cores": 18, "mem": 1024})], True),
        ("-n 6 --mem-per-cpu=100", [(6, {"cores": 1, "mem": 100})], False),
        ("-n 6 -c 2 --mem-per-cpu=100", [(6, {"cores": 2, "mem": 200})], False),
        ("-n 6 --mem=2G", [(1, {"cores": 6, "mem": 2048})], False),
        ("-n 6 --ntasks-per-node=4 --mem=2G", [(2, {"cores": 3, "mem": 2048})], True),
        ("-N 3 --ntasks-per-node 4 --mem 2G", [(3, {"cores": 4, "mem": 2048})], True),
        ("-N 3 --mem=1048576K", [(3, {"cores": 1, "mem": 1024})], True),
        ("-N 2-4 -n 4 --mem=7", [(2, {"cores": 2, "mem": 7})], True),
        ("-N 4 -n 2 --mem=7", [(2, {"cores": 1, "mem": 7})], True),
        ("--gres=gpu:v100:2,bandwidth:3 --mem=7", [(1, {"cores": 1, "mem": 7, "gpus": 2, "bandwidth": 3})], False),
        ("--gres=gpu --mem=0", [(1, {"cores": 1, "gpus": 1})], False),
        ("--gpus-per-node=4", [(1, {"cores": 1, "gpus": 4})], False),
        ("", [(1, {"cores": 1})], False),
    ],
)
def test_what_jobs_ask_for(
    tmp_path: Path, arguments: str, chunks: list[tuple[int, dict[str, int]]], scattered: bool
) -> None:
    """Tasks are spread evenly over so many nodes, or lie anywhere where no number of nodes is asked for."""
    (job,) = sbatch(tmp_path, event(arguments)).jobs
    assert job.request.chunks == tuple(Chunk(count=count, resources=Amounts(taken)) for count, taken in chunks)
    assert (job.request.place.arrangement is Arrangement.SCATTER) == scattered
    assert job.request.place.exclusive == ("--mem=0" in arguments)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("10:30", 660),
        ("01:00:00", 3600),
        ("2-12", 216_000),
        ("1-00:30", 88_200),
        ("3-00:00:00", 259_200),
        ("UNLIMITED", None),
    ],
)
def test_time_limits(tmp_path: Path, text: str, seconds: int | None) -> None:
    """All notations of sbatch; half a minute is a whole one."""
    (job,) = sbatch(tmp_path, event(f"-t {text}")).jobs
    assert job.walltime == seconds


def test_what_is_not_simulated_is_told(tmp_path: Path) -> None:
    """A job is taken with what can be done for it, and each thing that cannot is said."""
    arguments = "-t 5 -N 1-2 --mem=1 --gres=gpu:v100:1 --exclusive=user -p a,b -cancel-in 30 -d singleton,afterok:7"
    log = sbatch(tmp_path, event(arguments, runs="-1"))
    window = log_to_instance(log, _machine())
    assert [fault.message.removeprefix("job 1: ") for fault in window.adjusted] == [
        "asks for gpu:v100:1: of any type",
        "asks for -N 1-2: 1 are taken",
        "asks for --exclusive=user: not shared with other jobs",
        "has a run time of -1: its walltime is",
        'waits for "singleton": done without',
        "asks for one of several partitions: the first one",
        "is cancelled by its user some time: left to itself",
        'waits for "7", which is no job above that was taken: done without',
    ]
    assert window.counts == {LogAnomaly.NOT_SIMULATED: 7, LogAnomaly.RUNS_TO_THE_LIMIT: 1}
    assert window.instance.jobs[0].runtime == 300


def test_a_workload_has_its_queues_and_what_came_before(tmp_path: Path) -> None:
    """The queue is the QOS, else the partition, else a class of walltime; ids that stand twice count once."""
    log = sbatch(
        tmp_path,
        event("-t 5 --mem=1 -q urgent -p normal", at="100", name="jobid_1"),
        event("-t 5 --mem=1 -q other -p normal -d afterok:1", at="90.75", name="jobid_0002"),
        event("-t 5 --mem=1 -q other -p other", at="101", name="third"),
        event("-t 5 --mem=1", at="102", name="jobid_2"),
        event("-t 5 --mem=1", at="103", runs=None, name="jobid_4"),
        event("--mem=1", at="104", runs="0", name="jobid_5"),
    )
    window = log_to_instance(log, _machine(), arriving=True)
    jobs = {job.id: job for job in window.instance.jobs}
    assert [(job.id, job.submit, job.queue) for job in jobs.values()] == [
        ("2", 0, "normal"),
        ("1", 10, "urgent"),
        ("third", 11, "short"),
    ]
    assert jobs["2"].after == (Dependency(job="1", type=DependencyType.AFTEROK),)
    assert window.counts == {
        LogAnomaly.OUT_OF_ORDER: 1,
        LogAnomaly.TWICE: 1,
        LogAnomaly.NO_RUNTIME: 1,
        LogAnomaly.NO_WALLTIME: 1,
    }
    assert [fault.path for fault in window.left_out] == ["line 4", "line 5", "line 6"]
    assert window.instance.epoch is None


def test_partitions_and_features_are_properties_of_nodes(tmp_path: Path) -> None:
    """A partition is asked for where nodes have one; what no node has, is more than all have, or none, is too large."""
    log = sbatch(
        tmp_path,
        event("-t 5 --mem=1 -p main", name="a"),
        event("-t 5 --mem=1 -p other", name="b"),
        event("-t 5 --mem=1 -p main -C fast", name="c"),
        event("-t 5 --mem=1 -N 9", name="d"),
        event("-t 5 -n 129", name="e"),
        event("-t 5 --mem=1 --gres=fpga:1", name="f"),
        event("-t 5 -n 128", name="g"),
    )
    window = log_to_instance(log, _machine(partition="main"))
    assert window.instance.jobs[0].request.chunks[0].where == {"partition": "main"}
    assert [str(fault).split(":")[1].strip() for fault in window.oversized] == [
        "job b",
        "job c",
        "job d",
        "job e",
        "job f",
    ]
    assert str(window.oversized[2]) == "line 4: job d: asks for 9 chunks of cores=1:mem=1, of which 8 have room"
    assert window.counts[LogAnomaly.TOO_LARGE] == 5
    assert log_to_instance(log, _machine()).instance.jobs[1].request.chunks[0].where == {}


def test_jobs_are_chosen_by_names(tmp_path: Path) -> None:
    """Queues and partitions of such logs have names, -1 being unknown."""
    log = sbatch(
        tmp_path, event("-t 5 -q x -p p", name="a"), event("-t 5 -p p", name="b"), event("-t 5", name="c", at="9")
    )

    def chosen(selection: Selection) -> list[str]:
        return [job.id for job in log_to_instance(log, _machine(), LogOptions(selection=selection)).instance.jobs]

    assert chosen(Selection(queues=("x",))) == ["a"]
    assert chosen(Selection(partitions=("p",))) == ["a", "b"]
    assert chosen(Selection(partitions=(-1,))) == ["c"]
    assert chosen(Selection(submitted=(0, 9))) == ["a", "b"]
    assert log_to_instance(log, _machine(), LogOptions(selection=Selection(first=2))).kept_out == {"first and jobs": 2}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sbatch -n 4", 'Expected -dt SECONDS -e submit_batch_job | arguments of sbatch, got "sbatch -n 4"'),
        ("-dt 5 -e cancel_job | 7", 'Expected the event submit_batch_job, got "cancel_job", which is not simulated'),
        (event(at="soon"), 'Expected -dt in seconds, got "soon"'),
        (event(runs="1e9"), 'Expected -sim-walltime in seconds, got "1e9"'),
        (event("--wait-all-nodes=1"), 'Expected an option that is simulated, got "--wait-all-nodes=1"'),
        (event("-G 4"), 'Expected an option that is simulated, got "-G"'),
        (event('--comment="no end'), "Expected the arguments of sbatch, got: No closing quotation"),
        ("-dt 5 -e submit_batch_job | -n", "Expected a value of -n, got the end of the line"),
        (event("-n 0"), 'Expected -n, a number from 1 to 2147483647, got "0"'),
        (event("-N x"), 'Expected -N, a number from 1 to 2147483647, got "x"'),
        (event("-n 2000000"), "Expected at most 1000000 nodes and tasks, got 2000000"),
        (event("-c 2000000000 -n 8 -N 1"), "Expected at most 2147483647 of a resource on a node, got more"),
        (event("-t tomorrow"), 'Expected a duration such as 08:00:00, got "tomorrow"'),
        (event("--mem=lots"), 'Expected a size such as 8gb, got "lots"'),
        (event("-C a|b"), 'Expected features joined by &, letters and digits, got "a|b"'),
        (event("-C [rack1*2]"), 'Expected features joined by &, letters and digits, got "[rack1*2]"'),
        (event("--gres=gpu:a:b:1"), 'Expected a resource such as gpu:2, got "gpu:a:b:1"'),
        (event("-q " + "q" * 257), "Expected a qos of 1 to 256 characters, got 257"),
    ],
)
def test_odd_lines_are_told_with_their_number(tmp_path: Path, line: str, reason: str) -> None:
    """A line that asks for what is not understood costs its job only, and says where, what was expected and got."""
    log = sbatch(tmp_path, event(name="jobid_7"), line, event(name="jobid_8"))
    assert [job.id for job in log.jobs] == ["7", "8"]
    assert [str(fault) for fault in log.faults] == [f"line 2: {reason}"]


def test_what_is_no_such_log_is_refused(tmp_path: Path) -> None:
    """A file without a job is a DocumentError with its first odd lines."""
    with pytest.raises(DocumentError, match="Expected sbatch events, got none\n  line 1: Expected -dt SECONDS"):
        sbatch(tmp_path, "hello")


def test_a_cluster_file_is_needed(tmp_path: Path) -> None:
    """The lines do not say what nodes there are, and the error says what to give."""
    with pytest.raises(DocumentError, match=r"Expected a cluster file \(--cluster\): sbatch events"):
        machine_of_jobs(sbatch(tmp_path, event()))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("log.events", "", LogKind.SBATCH),
        ("log.acct.gz", "", LogKind.TORQUE),
        ("20200301", "\n03/01/2020 00:00:05;Q;1.server;queue=batch\n", LogKind.TORQUE),
        ("jobs.txt", "# mine\n-dt 1 -e submit_batch_job | pseudo.job\n", LogKind.SBATCH),
        ("jobs.json", '{"format": "cpsched-instance/1"}', None),
        ("jobs.json", "\x1f\x8b", None),
    ],
)
def test_the_kind_of_a_log_is_told_by_name_or_lines(tmp_path: Path, name: str, text: str, kind: LogKind | None) -> None:
    """Suffixes first, then the first lines; what is none of these is for others to read."""
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
    assert kind_of(path) is kind


_words = ["-N", "-n", "-c", "-t", "--mem=", "--mem-per-cpu=", "--gres=", "-C", "-q", "-p", "-d", "--exclusive", "-J"]
_words += ["--exclusive=", "-sim-walltime", "1", "2", "0", "-1", "3-00", "1:2", "8G", "gpu:2", "a&b", "afterok:1", "|"]


@given(
    lines=st.lists(
        st.lists(st.sampled_from(_words) | st.text(max_size=5), max_size=6).map(" ".join), min_size=1, max_size=5
    )
)
@examples(150)
def test_whatever_a_log_says_what_is_taken_of_it_is_a_document(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Each line is a job or an odd line, and what is taken of the jobs is a valid instance."""
    path = tmp_path_factory.getbasetemp() / "any.events"
    texts = [event(" ".join(line.split()), name=f"jobid_{number}") for number, line in enumerate(lines)]
    path.write_bytes("\n".join(texts).encode("utf-8", errors="replace"))
    try:
        log = read_sbatch(path)
    except DocumentError:
        return
    assert len(log.jobs) + len(log.faults) == len(lines)
    for arriving in (False, True):
        window = log_to_instance(log, _machine(partition="1"), arriving=arriving)
        assert len(window.instance.jobs) + len(window.left_out) == len(log.jobs)
        assert parse_instance(instance_to_document(window.instance), source="any").jobs == window.instance.jobs


def test_the_machine_of_ub_hpc_has_its_217_nodes() -> None:
    """As in the configuration that its events were published with: 87 + 96 + 24 + 8 + 2 nodes, 20 GPUs."""
    machine = read_machine(_UB_HPC)
    assert len(machine.cluster.node_names) == 217
    assert machine.cluster.totals["gpus"] == 20
    assert machine.cluster.totals["cores"] == 89 * 32 + 128 * 40


def test_a_real_log_is_read_whole(shared_data: Path) -> None:
    """Three days of UB-HPC: each line is a job, and each job finds room on the machine that is shipped."""
    path = shared_data / "logs" / "UB-HPC_week_days1-3.events.gz"
    log = read_log(path, LogKind.SBATCH)
    assert (len(log.jobs), len(log.faults)) == (4218, 0)
    window = log_to_instance(log, read_machine(_UB_HPC), arriving=True)
    assert (len(window.instance.jobs), window.oversized) == (4218, ())
    assert set(window.instance.queues) == {"general-compute", "supporters", "priority", "priority-supporters", "debug"}
