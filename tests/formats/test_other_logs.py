"""What sacct prints, workloads of Batsim and ElastiSim, and the GPUs of nodes that an accounting log implies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import Instance
from cpsched.errors import DocumentError
from cpsched.formats.logs import JobLog, LogAnomaly, LogKind, LogOptions, kind_of, read_log, read_workload, take_jobs

CASES = Path(__file__).parents[1] / "cases" / "reports"


def workload(path: Path, cluster: Path | None = None) -> Instance:
    """Return the workload of a log."""
    return read_workload(path, LogOptions(cluster=cluster))[0]


def log_of(path: Path, kind: LogKind) -> JobLog:
    """Return a log of jobs of a resource manager."""
    log = read_log(path, kind)
    assert isinstance(log, JobLog)
    return log


def test_the_text_of_sacct_is_a_workload(tmp_path: Path) -> None:
    """Jobs have what they asked for in all, steps are no jobs, and one that waits has no run time."""
    log = CASES / "sacct.txt"
    assert kind_of(log) is LogKind.SACCT
    cluster = tmp_path / "cluster.json"
    nodes = [{"names": "n[1-4]", "resources": {"cores": 16, "mem": 64000, "gpus": 2, "gpus.a100": 2}}]
    cluster.write_text(json.dumps({"format": "cpsched-instance/1", "name": "m", "cluster": {"nodes": nodes}}))
    first, second = workload(log, cluster).jobs
    assert (first.id, first.walltime, first.runtime, first.user, first.project) == ("101", 3600, 1800, "ada", "phys")
    assert dict(first.request.totals) == {"cores": 8, "mem": 4096}
    assert (second.id, second.submit, second.runtime) == ("102_3", 60, 540)
    (chunk,) = second.request.chunks
    assert (chunk.count, dict(chunk.resources)) == (2, {"cores": 8, "mem": 16384})
    taken = take_jobs(log, LogOptions(cluster=cluster), arriving=False)
    assert [job.id for job in log_of(log, LogKind.SACCT).jobs] == ["101", "102_3", "103"]
    assert dict(log_of(log, LogKind.SACCT).jobs[2].request.totals)["gpus.a100"] == 1
    assert dict(taken.counts)[LogAnomaly.NO_WALLTIME] == 1


def test_a_job_that_was_cancelled_before_it_started_is_no_workload(tmp_path: Path) -> None:
    """It never ran: it is left out and counted; memory of a CPU and a raw limit are read."""
    log = tmp_path / "x.txt"
    log.write_text(
        "JobIDRaw|State|Submit|Start|End|ReqCPUS|ReqMem|NNodes|TimelimitRaw|NodeList|NCPUS\n"
        "1|CANCELLED by 5|100|None|200|1|1Gn|1|60|None assigned|0\n"
        "2|TIMEOUT|100|150|450|4|2Gc|2|5|n[1-2]|4\n"
        "2.0|COMPLETED|100|150|450|4|2Gc|2|||4\n"
        "3|RUNNING|soon|150|Unknown|4|2Gc|2|5|n[1-2]|4\n"
    )
    read = log_of(log, LogKind.SACCT)
    assert [anomaly for anomaly, _ in read.left_out] == [LogAnomaly.CANCELLED]
    assert [fault.path for fault in read.faults] == ["line 5"]
    (job,) = workload(log).jobs
    assert (job.id, job.walltime, job.runtime) == ("2", 300, 300)
    assert dict(job.request.totals) == {"cores": 4, "mem": 8192}
    assert workload(log).cluster.node_names == ("n1", "n2")


def entry(number: int, **fields: Any) -> dict[str, Any]:
    """Return a job as ``sacct --json`` of 23.11 has it."""
    tres = [("cpu", "", 4), ("mem", "", 2048), ("node", "", 2), ("gres", "gpu", 2), ("gres", "gpu:a100", 2)]
    return {
        "job_id": number,
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "user": "ada",
        "account": "phys",
        "partition": "work",
        "nodes": "n[1-2]",
        "required": {"CPUs": 4},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "submission": 1000, "eligible": 1000, "start": 1100, "end": 1200, "elapsed": 100,
            "limit": {"set": True, "infinite": False, "number": 10},
        },
        "tres": {"requested": [dict(zip(("type", "name", "count"), one, strict=True)) for one in tres]},
        **fields,
    }  # fmt: skip


def test_the_json_of_sacct_is_a_workload(tmp_path: Path) -> None:
    """Of 23.11 and before: numbers as objects or plain, the state in a list or as a word, tasks of arrays."""
    log = tmp_path / "log.json"
    task = {"job_id": 7, "task_id": {"set": True, "infinite": False, "number": 3}}
    old = entry(9, array=task, state={"current": "FAILED"})
    log.write_text(json.dumps({"meta": {}, "jobs": [entry(1), old]}, indent=1))
    assert kind_of(log) is LogKind.SACCT
    first, second = workload(log).jobs
    assert (first.id, second.id, first.walltime, first.runtime) == ("1", "7_3", 600, 100)
    assert dict(first.request.totals) == {"cores": 4, "mem": 2048, "gpus": 2, "gpus.a100": 2}


def test_what_is_no_log_is_not_taken_for_one(tmp_path: Path) -> None:
    """An instance stays one; a text with a header and no jobs is refused in words."""
    assert kind_of(CASES.parents[2] / "instances" / "tiny-bridi.json") is None
    empty = tmp_path / "x.txt"
    empty.write_text("JobID|State|Submit\n")
    with pytest.raises(DocumentError, match="Expected jobs of sacct"):
        read_log(empty, LogKind.SACCT)


def test_lines_of_sacct_with_other_columns_cost_themselves(tmp_path: Path) -> None:
    """A name with the sign between columns shifts all others, a line that was cut short has too few."""
    log = tmp_path / "x.txt"
    log.write_text(
        "JobID|Submit|Start|End|State|JobName|NNodes|NCPUS|Timelimit\n"
        "1|100|150|450|COMPLETED|x|1|4|1:00:00\n"
        "2|100|150|450|COMPLETED|x|y|1|4|1:00:00\n"
        "3|100|150|450|COMPL\n"
    )
    read = log_of(log, LogKind.SACCT)
    assert [job.id for job in read.jobs] == ["1"]
    assert [fault.path for fault in read.faults] == ["line 3", "line 4"]


@pytest.mark.parametrize("sign", [",", "\t", "  "])
def test_tables_of_sacct_with_other_signs_are_refused_as_such(tmp_path: Path, sign: str) -> None:
    """The refusal says which output is read."""
    log = tmp_path / "x.txt"
    log.write_text(sign.join(("JobID", "Submit", "State")) + "\n" + sign.join(("1", "100", "COMPLETED")) + "\n")
    kind = kind_of(log)
    assert kind is LogKind.SACCT
    with pytest.raises(DocumentError, match="sacct -P"):
        read_log(log, kind)


def test_a_workload_of_batsim_is_one(tmp_path: Path) -> None:
    """Its hosts are nodes of one core, a delay is a run time, and what has another profile is said."""
    instance = workload(CASES / "batsim.json")
    assert len(instance.cluster.node_names) == 4
    assert [(job.id, job.submit, job.walltime, job.runtime) for job in instance.jobs] == [
        ("1", 0, 100, 50),
        ("2", 5, 100, 50),
    ]
    assert [dict(job.request.totals) for job in instance.jobs] == [{"cores": 2}, {"cores": 4}]
    log = tmp_path / "w.json"
    jobs = [
        {"id": "w0!1", "subtime": 1.5, "walltime": -1, "res": 1, "profile": "a"},
        {"id": 2, "subtime": 3, "walltime": 9.5, "res": 1, "profile": "b"},
        {"id": 3, "subtime": "soon", "res": 1, "profile": "a"},
    ]
    profiles = {"a": {"type": "delay", "delay": 2.5}, "b": {"type": "parallel_homogeneous", "cpu": 1}}
    log.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    read = log_of(log, LogKind.BATSIM)
    assert [(job.id, job.walltime, job.runtime) for job in read.jobs] == [("w0!1", None, 3), ("2", 10, None)]
    assert [fault.path for fault in read.faults] == ["line 3"]


#: Of ElastiSim: 2e13 flop an iteration on one node, 6e11 bytes for a checkpoint, 3e12 for the model.
MODEL = {
    "iterations": 10,
    "flops": 2e13,
    "alpha": 0.5,
    "communication_size": 0,
    "checkpoint_size": 6e11,
    "model_size": 3e12,
}


def elastic(kind: str, submit: int, **others: object) -> dict[str, object]:
    """Return a job of ElastiSim."""
    return {"type": kind, "submit_time": submit, "application_model": "m.json", "arguments": MODEL, **others}


def test_jobs_of_elastisim_take_what_their_model_says(tmp_path: Path) -> None:
    """On n nodes: 10 s for reading the model and 240 s (n - 1) / n for scattering it, then ten times 20 s / sqrt(n) for
    computing and 2 s for a checkpoint. Where the exchange takes longer, it counts.
    """
    jobs = [
        elastic("rigid", 0, num_nodes=4),
        elastic("moldable", 5, num_nodes_min=1, num_nodes_max=4, walltime=1000),
        elastic("adaptive", 6, num_nodes_min=1, num_nodes_max=64),
        elastic("rigid", 7, num_nodes=4) | {"arguments": MODEL | {"communication_size": 4 * 12.5e9 * 30}},
    ]
    bad = [
        elastic("elastic", 0, num_nodes=1),
        elastic("moldable", 0, num_nodes_min=4, num_nodes_max=1),
        elastic("rigid", 0),
        elastic("rigid", -1, num_nodes=1),
        elastic("rigid", 0, num_nodes=1) | {"arguments": {"flops": 1}},
        elastic("rigid", 0, num_nodes=1) | {"arguments": MODEL | {"alpha": "x"}},
        7,
    ]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": [*jobs, *bad]}))
    assert kind_of(path) is LogKind.ELASTISIM
    assert [fault.path for fault in log_of(path, LogKind.ELASTISIM).faults] == [f"line {n}" for n in range(5, 12)]
    rigid, moldable, adaptive, coupled = workload(path).jobs
    assert (rigid.runtime, rigid.walltime) == (310, 310) == (10 + 180 + 100 + 20,) * 2
    assert coupled.runtime == 10 + 180 + 300 + 20
    assert (moldable.runtime, moldable.walltime, moldable.resizable) == (310, 1000, None)
    of_three, of_two, of_one = (10 + 240 * (n - 1) / n + 200 / n**0.5 + 20 for n in (3, 2, 1))
    assert of_one == 230
    assert [(choice.request.totals["cores"], choice.runtime) for choice in moldable.choices[1:]] == [
        (size, pytest.approx(takes, abs=2)) for size, takes in ((3, of_three), (2, of_two), (1, of_one))
    ]
    assert adaptive.resizable is not None
    assert [step.request.totals["cores"] for step in (*adaptive.steps, *adaptive.alternatives)][::15] == [64, 1]
    assert len(adaptive.choices) == 16


def test_what_is_wider_than_the_machine_runs_by_a_smaller_size(tmp_path: Path) -> None:
    """Of the sizes of a job those are left out that the machine does not have, and a simulation takes the others."""
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": [elastic("malleable", 0, num_nodes_min=2, num_nodes_max=5)]}))
    cluster = tmp_path / "cluster.json"
    nodes = [{"names": "n[1-3]", "resources": {"cores": 1}}]
    cluster.write_text(json.dumps({"format": "cpsched-instance/1", "name": "m", "cluster": {"nodes": nodes}}))
    taken = take_jobs(path, LogOptions(cluster=cluster), arriving=True)
    assert not taken.oversized
    assert [choice.request.totals["cores"] for choice in taken.instance.jobs[0].choices] == [5, 3, 2]


def test_gpus_are_on_the_nodes_that_had_them() -> None:
    """A node on which no job had GPUs has none, though it has as many cores as one that does."""
    cluster = workload(CASES / "log-gpu.acct").cluster
    assert cluster.class_of["g1"].resources["gpus"] == 2
    assert "gpus" not in cluster.class_of["c1"].resources
    assert cluster.class_of["c1"].resources["scratch_local"] == 10 * 1024


#: A pod on two whole GPUs, one on a part of one, one that still runs, one that never ran; two rows that are none.
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,12000,16384,2,1000,,LS,Running,0,500,20
b,1500,1000,1,460,V100M16,BE,Succeeded,100,400,100
c,1000,1000,0,0,,BE,Running,150,,160
d,1000,1000,0,0,,BE,Failed,150,200,
e,many,1000,0,0,,BE,Running,150,300,200
f,1000,1000,0,0,,BE,Running,,300,200
"""
TASKS = """\
job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
x,worker,3.0,Terminated,1000.0,1060.0,600.0,29.5,50.0,V100
y,tensorflow,1.0,Failed,1200.0,1300.0,,,,
"""


def test_pods_of_alibaba_are_a_workload(tmp_path: Path) -> None:
    """Milli-CPUs become cores, rounded up, part of a GPU a whole one; a run time is the walltime; faults are named."""
    table, cluster = tmp_path / "pods.csv", tmp_path / "cluster.json"
    table.write_text(PODS)
    nodes = [{"names": "n[1-2]", "resources": {"cores": 32, "mem": 64000, "gpus": 2}}]
    cluster.write_text(json.dumps({"format": "cpsched-instance/1", "name": "m", "cluster": {"nodes": nodes}}))
    assert kind_of(table) is LogKind.SACCT
    instance = workload(table, cluster)
    first, second = instance.jobs
    assert instance.epoch is None
    assert (first.id, first.submit, first.walltime, first.runtime) == ("a", 0, 480, 480)
    assert dict(first.request.totals) == {"cores": 12, "mem": 16384, "gpus": 2}
    assert (second.id, second.submit, second.runtime) == ("b", 100, 300)
    assert dict(second.request.totals) == {"cores": 2, "mem": 1000, "gpus": 1}
    read = log_of(table, LogKind.SACCT)
    assert [anomaly for anomaly, _ in read.left_out] == [LogAnomaly.CANCELLED]
    assert [(fault.path, fault.message) for fault in read.faults] == [
        ("line 6", 'Expected a number in the column cpu_milli, got "many"'),
        ("line 7", "Expected a time of submission (the column Submit), got none"),
    ]


def test_tasks_of_alibaba_are_a_workload(tmp_path: Path) -> None:
    """Hundredths become cores and GPUs of each instance, which have a node each."""
    table = tmp_path / "tasks.csv"
    table.write_text(TASKS)
    first, second = log_of(table, LogKind.SACCT).jobs
    assert (first.id, first.submit, first.start, first.runtime) == ("x.worker", 1001, 1001, 60)
    (chunk,) = first.request.chunks
    assert (chunk.count, dict(chunk.resources)) == (3, {"cores": 6, "mem": 30208, "gpus": 1})
    assert (second.id, dict(second.request.totals)) == ("y.tensorflow", {"cores": 1})
