"""One small cluster as generations of Slurm tell of it: documents of our own, with the shapes of real ones.

Those of 25.11 follow its documented types (data_parser v0.0.44) alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Document = dict[str, Any]

#: The second at which the small cluster is looked at.
NOW = 1_800_000_000


def meta(release: str) -> Document:
    """Return what an answer says of its maker."""
    return {
        "slurm": {
            "release": release,
            "version": dict(zip(("major", "minor", "micro"), release.split("."), strict=True)),
        }
    }


def number(value: int | None, *, infinite: bool = False) -> Document:
    """Return a number as Slurm writes it from 23.02 on."""
    return {"set": value is not None and not infinite, "infinite": infinite, "number": value or 0}


def waiting(number: int, **fields: Any) -> Document:
    """Return a waiting job as ``squeue --json`` of 22.05 has it, with other fields instead."""
    return {
        "job_id": number,
        "job_state": "PENDING",
        "state_reason": "Priority",
        "state_description": "",
        "name": "job",
        "user_name": "ada",
        "user_id": 1001,
        "group_name": "users",
        "account": "physics",
        "partition": "normal",
        "submit_time": NOW - 600,
        "eligible_time": NOW - 600,
        "start_time": 0,
        "end_time": 0,
        "time_limit": 10,
        "priority": 1000,
        "node_count": 1,
        "max_nodes": 0,
        "cpus": 1,
        "tasks": 1,
        "cpus_per_task": None,
        "minimum_cpus_per_node": 1,
        "memory_per_cpu": 100,
        "memory_per_node": None,
        "tres_req_str": f"cpu={fields.get('cpus', 1)},mem=100M,node={fields.get('node_count', 1)},billing=1",
        "array_job_id": 0,
        "array_task_id": None,
        "array_task_string": "",
        "array_max_tasks": 0,
        "shared": None,
        "job_resources": {},
        **fields,
    }


def running(number: int, nodes: str, held: Mapping[str, tuple[int, int]], **fields: Any) -> Document:
    """Return a job that runs on some nodes since a minute, with CPUs and MiB on each."""
    allocated = [
        {
            "nodename": node,
            "memory_allocated": memory,
            "sockets": {"0": {"cores": {str(core): "allocated" for core in range(cpus)}}},
        }
        for node, (cpus, memory) in held.items()
    ]
    return waiting(
        number,
        **{
            "job_state": "RUNNING",
            "state_reason": "None",
            "start_time": NOW - 60,
            "end_time": NOW + 540,
            "nodes": nodes,
            "cpus": sum(cpus for cpus, _ in held.values()),
            "job_resources": {"nodes": nodes, "allocated_nodes": allocated},
            **fields,
        },
    )


def node(name: str, state: str = "idle", **fields: Any) -> Document:
    """Return a node as ``sinfo --json`` of 22.05 has it."""
    return {
        "name": name,
        "state": state,
        "state_flags": [],
        "cpus": 16,
        "threads": 1,
        "real_memory": 64000,
        "gres": "",
        "features": "",
        "active_features": "",
        "weight": 1,
        "partitions": ["normal"],
        **fields,
    }


def gpu_node(name: str, state: str = "idle", **fields: Any) -> Document:
    """Return a node with two GPUs and features."""
    given = {"gres": "gpu:k20:2(S:0-1)", "features": "gpu,rack1", "active_features": "gpu,rack1", "weight": 10}
    return node(name, state, **{**given, "partitions": ["normal", "gpuq"], **fields})


#: The small cluster in the words of 22.05: two nodes with GPUs, two without, one of them drained.
JOBS_2205 = [
    running(3, "g1", {"g1": (8, 800)}),
    running(4, "g[1-2]", {"g1": (3, 300), "g2": (1, 100)}, gres_detail=["gpu:k20:1(IDX:0)", "gpu:k20:2(IDX:0-1)"]),
    waiting(8, cpus=4, tasks=2, features="gpu&rack1", tres_per_task="gres:gpu:1", minimum_cpus_per_node=2),
    waiting(9, licenses="matlab:2", partition="gpuq", eligible_time=NOW + 3600, start_time=NOW + 3600),
    waiting(10, node_count=2, max_nodes=2, cpus=16, tasks=16, dependency="afterany:3(unfulfilled)"),
    waiting(12, state_reason="JobHeldUser", priority=0),
    waiting(17, array_job_id=17, array_task_string="2-3", shared="none"),
]
NODES_2205 = [
    gpu_node("g1", "mixed"),
    gpu_node("g2", "mixed"),
    node("m1"),
    node("m2", state_flags=["DRAIN"]),
]
PARTITIONS_2205: list[Document] = [
    {
        "name": "normal",
        "nodes": "g[1-2],m[1-2]",
        "max_time_limit": -1,
        "default_time_limit": 10,
        "priority_tier": 10,
        "state": "UP",
        "flags": ["default"],
    },
    {
        "name": "gpuq",
        "nodes": "g[1-2]",
        "max_time_limit": 120,
        "default_time_limit": None,
        "priority_tier": 20,
        "state": "UP",
        "flags": [],
    },
]
RESERVATIONS_2205: list[Document] = [
    {
        "name": "maint",
        "start_time": NOW + 7200,
        "end_time": NOW + 9000,
        "node_list": "m1",
        "users": "root",
        "flags": ["MAINT", "SPEC_NODES"],
    },
]
LICENSES_2205 = [{"LicenseName": "matlab", "Total": 4, "Used": 0, "Free": 4, "Remote": False}]


def answers_2205() -> dict[str, Document]:
    """Return the answers of 22.05 by the names of files."""
    said = {"meta": meta("22.5.8"), "errors": []}
    return {
        "squeue.json": {**said, "jobs": JOBS_2205},
        "sinfo.json": {**said, "nodes": NODES_2205},
        "partitions.json": {**said, "partitions": PARTITIONS_2205},
        "reservations.json": {**said, "reservations": RESERVATIONS_2205},
        "licenses.json": {**said, "licenses": LICENSES_2205},
    }


def answers_2108() -> dict[str, Document]:
    """Return the answers of 21.08: no names of groups, and the nodes of a job by their number."""

    def older(job: Document) -> Document:
        job = {key: value for key, value in job.items() if key != "group_name"} | {"group_id": 100}
        if job["job_resources"]:
            held = job["job_resources"]["allocated_nodes"]
            by_number = {
                str(index): {
                    "sockets": {"0": "unassigned"},
                    "cores": {"0": "unassigned"},
                    "memory": entry["memory_allocated"],
                    "cpus": len(entry["sockets"]["0"]["cores"]),
                }
                for index, entry in enumerate(held)
            }
            job["job_resources"] = {**job["job_resources"], "allocated_nodes": by_number}
        return job

    answers = answers_2205()
    return {**answers, "squeue.json": {"errors": [], "jobs": [older(job) for job in JOBS_2205]}}


def answers_2405() -> dict[str, Document]:
    """Return the answers of 24.05 (v0.0.41): numbers as objects, states as lists, other places for many things."""
    plain = ("job_id", "user_id", "restart_cnt")

    def newer(job: Document) -> Document:
        said = {
            key: number(value) if (isinstance(value, int) or value is None) and key not in plain else value
            for key, value in job.items()
        }
        said |= {"job_state": [job["job_state"]], "shared": [job["shared"]] if job["shared"] else [], "hold": False}
        said |= {key: value.replace("gres:", "gres/") for key, value in job.items() if key.startswith("tres_per")}
        if job["job_resources"]:
            allocation = [
                {
                    "index": index,
                    "name": entry["nodename"],
                    "cpus": {"count": len(entry["sockets"]["0"]["cores"]), "used": 0},
                    "memory": {"used": 0, "allocated": entry["memory_allocated"]},
                }
                for index, entry in enumerate(job["job_resources"]["allocated_nodes"])
            ]
            said["job_resources"] = {"cpus": 1, "nodes": {"list": job["nodes"], "allocation": allocation}}
        else:
            said["job_resources"] = None
        return said

    def newer_node(one: Document) -> Document:
        state = [one["state"].upper(), *one["state_flags"]]
        features = [word for word in one["features"].split(",") if word]
        rest = {key: value for key, value in one.items() if key != "state_flags"}
        return rest | {"state": state, "features": features, "active_features": features, "effective_cpus": one["cpus"]}

    def newer_partition(one: Document) -> Document:
        limit = one["max_time_limit"]
        return {
            "name": one["name"],
            "nodes": {"configured": one["nodes"], "total": 2},
            "maximums": {
                "time": number(limit, infinite=limit == -1),
                "shares": 1,
                "oversubscribe": {"jobs": 1, "flags": []},
            },
            "defaults": {"time": number(one["default_time_limit"])},
            "priority": {"job_factor": 1, "tier": one["priority_tier"]},
            "partition": {"state": ["UP"]},
        }

    reservation = {**RESERVATIONS_2205[0], "start_time": number(NOW + 7200), "end_time": number(NOW + 9000)}
    said = {"meta": meta("24.05.3"), "errors": [], "warnings": []}
    return {
        "slurm-jobs.json": {**said, "jobs": [newer(job) for job in JOBS_2205]},
        "slurm-nodes.json": {**said, "nodes": [newer_node(one) for one in NODES_2205]},
        "slurm-partitions.json": {**said, "partitions": [newer_partition(one) for one in PARTITIONS_2205]},
        "slurm-reservations.json": {**said, "reservations": [reservation]},
        "slurm-licenses.json": {**said, "licenses": LICENSES_2205},
    }


def answers_2311() -> dict[str, Document]:
    """Return the answers of 23.11 (v0.0.40): those of 24.05, but for what a job holds."""

    def older(job: Document, before: Document) -> Document:
        if not before["job_resources"]:
            return job
        held = before["job_resources"]["allocated_nodes"]
        nodes = [{**entry, "sockets": {"1": {**entry["sockets"]["0"]}}, "cpus_used": 0} for entry in held]
        counts = {"allocated_cores": job["cpus"]["number"], "allocated_cpus": 0, "allocated_hosts": len(held)}
        return {**job, "job_resources": {"nodes": job["nodes"], **counts, "allocated_nodes": nodes}}

    answers = answers_2405()
    jobs = [older(*pair) for pair in zip(answers["slurm-jobs.json"]["jobs"], JOBS_2205, strict=True)]
    return {**answers, "slurm-jobs.json": {"meta": meta("23.11.1"), "errors": [], "jobs": jobs}}


def answers_2505() -> dict[str, Document]:
    """Return the answers of 25.05 (v0.0.43): more ids are numbers as objects, and more is said of licences."""

    def newer(job: Document) -> Document:
        ids = {key: number(0) for key in ("het_job_id", "het_job_offset")}
        return {
            **job,
            **ids,
            "licenses_allocated": job.get("licenses", "") if job["job_state"] == ["RUNNING"] else "",
            "segment_size": 0,
            "priority_by_partition": [],
            "required_switches": 0,
            "core_spec": None,
        }

    answers = answers_2405()
    nodes = [
        {**one, "gres_drained": "N/A", "gres_used": "", "topology": "", "specialized_memory": 0, "gpu_spec": ""}
        for one in answers["slurm-nodes.json"]["nodes"]
    ]
    said = {"meta": meta("25.05.4"), "errors": [], "warnings": []}
    return {
        **answers,
        "slurm-jobs.json": {**said, "jobs": [newer(job) for job in answers["slurm-jobs.json"]["jobs"]]},
        "slurm-nodes.json": {**said, "nodes": nodes},
    }


def answers_2511() -> dict[str, Document]:
    """Return the answers of 25.11 (v0.0.44): steps have ids, licences nodes, and partitions a topology."""
    answers = answers_2505()
    jobs = [
        {**job, "step_id": {"job_id": job["job_id"], "sluid": "s1", "step_id": "batch"}, "submit_line": "sbatch x"}
        for job in answers["slurm-jobs.json"]["jobs"]
    ]
    nodes = [
        {**one, "cert_flags": [], "tls_cert_last_renewal": number(0)} for one in answers["slurm-nodes.json"]["nodes"]
    ]
    partitions = [{**one, "topology": "default"} for one in answers["slurm-partitions.json"]["partitions"]]
    licenses = [{**one, "Nodes": "", "LastDeficit": 0} for one in LICENSES_2205]
    said = {"meta": meta("25.11.0"), "errors": [], "warnings": []}
    return {
        **answers,
        "slurm-jobs.json": {**said, "jobs": jobs},
        "slurm-nodes.json": {**said, "nodes": nodes},
        "slurm-partitions.json": {**said, "partitions": partitions},
        "slurm-licenses.json": {**said, "licenses": licenses},
    }


_JOB_TEXT = """JobId={job_id}{array} JobName={name}
   UserId={user_name}(1001) GroupId={group_name}(100) MCS_label=N/A
   Priority={priority} Nice=0 Account={account} QOS=(null)
   JobState={job_state} Reason={state_reason} Dependency={dependency}
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=00:{time_limit:02d}:00 TimeMin=N/A
   SubmitTime={submit_time} EligibleTime={eligible_time}
   StartTime={start} EndTime={end} Deadline=N/A
   Partition={partition} AllocNode:Sid=localhost:4135
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList={nodes}
   NumNodes={span} NumCPUs={cpus} NumTasks={tasks} CPUs/Task={per_task} ReqB:S:C:T=0:0:*:*
   TRES=cpu={cpus},mem=100M,node={node_count},billing=1
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=(null)
{details}   MinCPUsNode={minimum_cpus_per_node} MinMemoryCPU=100M MinTmpDiskNode=0
   Features={features} DelayBoot=00:00:00
   OverSubscribe={oversubscribe} Contiguous=0 Licenses={licenses} Network=(null)
   Command=(null)
{tres}
"""


def text_2205() -> dict[str, str]:
    """Return what ``scontrol show`` of 22.05 prints, with times in Unix seconds."""

    def paragraph(job: Document) -> str:
        fewest, most = job["node_count"], job["max_nodes"]
        gres = dict(enumerate(job.get("gres_detail", ())))
        details = "".join(
            f"     Nodes={entry['nodename']} CPU_IDs=0-{len(entry['sockets']['0']['cores']) - 1}"
            f" Mem={entry['memory_allocated']} GRES={gres.get(index, '')}\n"
            for index, entry in enumerate(job["job_resources"].get("allocated_nodes", ()))
        )
        has_array = job["array_job_id"] != 0
        defaults = {"dependency": "(null)", "nodes": "", "features": "(null)", "licenses": "(null)"}
        return _JOB_TEXT.format(
            **{
                **defaults,
                **job,
                "array": f" ArrayJobId={job['array_job_id']} ArrayTaskId={job['array_task_string']}"
                if has_array
                else "",
                "start": job["start_time"] or "Unknown",
                "end": job["end_time"] or "Unknown",
                "span": f"{fewest}-{most}" if most else str(fewest),
                "per_task": job["minimum_cpus_per_node"],
                "details": details,
                "oversubscribe": "NO" if job["shared"] == "none" else "OK",
                "tres": f"   TresPerTask={job['tres_per_task']}\n" if "tres_per_task" in job else "",
            }
        )

    def node_text(one: Document) -> str:
        state = "+".join([one["state"].upper(), *one["state_flags"]])
        return (
            f"NodeName={one['name']} Arch=x86_64 CoresPerSocket=8 \n   CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=2.67\n"
            f"   AvailableFeatures={one['features'] or '(null)'}\n   ActiveFeatures={one['features'] or '(null)'}\n"
            f"   Gres={one['gres'] or '(null)'}\n   RealMemory=64000 AllocMem=0 FreeMem=22133 Sockets=2 Boards=1\n"
            f"   State={state} ThreadsPerCore=1 TmpDisk=0 Weight={one['weight']} Owner=N/A MCS_label=N/A\n"
            f"   Partitions={','.join(one['partitions'])} \n\n"
        )

    return {
        "jobs.txt": "\n".join(map(paragraph, JOBS_2205)),
        "nodes.txt": "".join(map(node_text, NODES_2205)),
        "partitions.txt": (
            "PartitionName=normal\n   AllowGroups=ALL Default=YES\n   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0\n"
            "   Nodes=g[1-2],m[1-2]\n   PriorityJobFactor=10 PriorityTier=10 OverSubscribe=NO\n   State=UP\n\n"
            "PartitionName=gpuq\n   MaxTime=02:00:00\n   Nodes=g[1-2]\n   PriorityTier=20\n   State=UP\n"
        ),
        "reservations.txt": (
            f"ReservationName=maint StartTime={NOW + 7200} EndTime={NOW + 9000} Duration=00:30:00\n"
            "   Nodes=m1 NodeCnt=1 Flags=MAINT,SPEC_NODES\n   Users=root Groups=(null) State=INACTIVE\n"
        ),
        "licenses.txt": "LicenseName=matlab\n    Total=4 Used=0 Free=4 Reserved=0 Remote=no\n",
    }


def one_line(text: str) -> str:
    """Return paragraphs as ``scontrol -o`` prints them."""
    parts = (part.split() for part in text.split("\n\n"))
    return "\n".join(" ".join(words) for words in parts if words)


def write_answers(folder: Path, answers: Mapping[str, Document | str]) -> Path:
    """Write answers into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, answer in answers.items():
        (folder / name).write_text(answer if isinstance(answer, str) else json.dumps(answer))
    return folder


GENERATIONS: dict[str, Callable[[], Mapping[str, Document | str]]] = {
    "21.08": answers_2108,
    "22.05": answers_2205,
    "23.11": answers_2311,
    "24.05": answers_2405,
    "25.05": answers_2505,
    "25.11": answers_2511,
    "text": text_2205,
    "text -o": lambda: {name: one_line(text) for name, text in text_2205().items()},
}
