"""The text of ``scontrol show``, one record a line (``-o``) or a paragraph, as records.

Its fields get the keys that they have in JSON, so that one reader (`json_reader.py`) knows what they mean.

Names and comments stand in it as their users wrote them, and may read like fields. A job in which a field occurs twice
is left out, and if it runs it keeps its nodes. JSON has no such doubt.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.slurm.amounts import count_ids, memory, minutes
from cpsched.site.bridge.slurm.json_reader import UNREAD, read_answer
from cpsched.site.bridge.slurm.records import SlurmRecords

_Entry = dict[str, Any]

#: What a record of each kind begins with, and the list of an answer in JSON that has such records.
_LISTS = {
    "JobId": "jobs",
    "NodeName": "nodes",
    "PartitionName": "partitions",
    "ReservationName": "reservations",
    "LicenseName": "licenses",
}
_RECORD = re.compile(rf"^(?=(?:{'|'.join(_LISTS)})=)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z/:_]*)=(\S*)")
#: Fields that occur once for each group of nodes of a job.
_REPEATED = frozenset({"Nodes", "CPU_IDs", "Mem", "GRES", "Allocated", "NodeName", "CoreIDs"})
_NONE = ("", "(null)", "N/A", "None", "Unknown", "NONE")
_NUMBER = re.compile(r"\d+")
_DETAIL = re.compile(r"(?<=\s)Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
#: What Slurm writes after the name of a job; a name has not all of it.
_OWN = re.compile(
    r"\sUserId=\S+\s+GroupId=\S+\s+(?:MCS_label=\S+\s+)?Priority=\d+\s+Nice=\S+\s+Account=\S*\s+QOS=\S*\s+"
    r"(?:WCKey=\S*\s+)?JobState="
)
_RESERVED = re.compile(r"(?<=\s)NodeName=(\S+) CoreIDs=(\S+)")
_CONFIG = re.compile(r"^([A-Za-z][A-Za-z0-9_ ]*?)\s*= (.*)$", re.MULTILINE)

#: By kind: the keys of JSON, and the fields with the same texts.
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "jobs": {
        "account": "Account", "admin_comment": "AdminComment", "burst_buffer": "BurstBuffer", "comment": "Comment",
        "cpus_per_tres": "CpusPerTres", "dependency": "Dependency", "excluded_nodes": "ExcNodeList",
        "features": "Features", "job_state": "JobState", "licenses": "Licenses", "memory_per_tres": "MemPerTres",
        "name": "JobName", "nodes": "NodeList", "partition": "Partition", "qos": "QOS",
        "required_nodes": "ReqNodeList", "resv_name": "Reservation", "state_reason": "Reason",
        "tres_per_job": "TresPerJob", "tres_per_node": "TresPerNode", "tres_per_socket": "TresPerSocket",
        "tres_per_task": "TresPerTask",
    },
    "nodes": {
        "active_features": "ActiveFeatures", "features": "AvailableFeatures", "gres": "Gres",
        "gres_drained": "GresDrain", "gres_used": "GresUsed", "name": "NodeName", "partitions": "Partitions",
        "state": "State",
    },
    "partitions": {"name": "PartitionName", "nodes": "Nodes", "preempt_mode": "PreemptMode", "qos": "QoS"},
    "reservations": {
        "accounts": "Accounts", "flags": "Flags", "groups": "Groups", "licenses": "Licenses",
        "name": "ReservationName", "node_list": "Nodes", "users": "Users",
    },
    "licenses": {"LicenseName": "LicenseName"},
}  # fmt: skip
#: The same of fields that begin with a whole number, and of times.
_NUMBERS: Mapping[str, Mapping[str, str]] = {
    "jobs": {
        "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle", "batch_flag": "BatchFlag",
        "cpus": "NumCPUs", "requeue": "Requeue",
        "cpus_per_task": "CPUs/Task", "het_job_id": "HetJobId", "job_id": "JobId",
        "minimum_cpus_per_node": "MinCPUsNode", "minimum_tmp_disk_per_node": "MinTmpDiskNode",
        "core_spec": "CoreSpec", "priority": "Priority", "restart_cnt": "Restarts", "segment_size": "SegmentSize",
        "sockets_per_node": "Socks/Node", "tasks": "NumTasks", "tasks_per_node": "NtasksPerN:B:S:C",
    },
    "nodes": {
        "cpus": "CPUTot", "effective_cpus": "CPUEfctv", "real_memory": "RealMemory",
        "sockets": "Sockets", "specialized_memory": "MemSpecLimit", "threads": "ThreadsPerCore",
        "weight": "Weight",
    },
    "partitions": {
        "grace_time": "GraceTime", "max_cpus_per_node": "MaxCPUsPerNode", "max_nodes_per_job": "MaxNodes",
        "min_nodes_per_job": "MinNodes", "priority_tier": "PriorityTier",
    },
    "reservations": {"core_count": "CoreCnt"},
    "licenses": {"Free": "Free", "Total": "Total"},
}  # fmt: skip
_TIMES: Mapping[str, Mapping[str, str]] = {
    "jobs": {
        "deadline": "Deadline", "eligible_time": "EligibleTime", "end_time": "EndTime", "start_time": "StartTime",
        "submit_time": "SubmitTime",
    },
    "reservations": {"end_time": "EndTime", "start_time": "StartTime"},
}  # fmt: skip


class _Record:
    def __init__(self, text: str) -> None:
        self.text = text
        pairs = _FIELD.findall(text)
        self._fields = dict(reversed(pairs))
        counts = Counter(key for key, _ in pairs if key not in _REPEATED)
        self.doubled = sorted(key for key, count in counts.items() if count > 1)

    def __getitem__(self, key: str) -> str:
        value = self._fields.get(key, "")
        return "" if value in _NONE else value

    def number(self, key: str) -> int | None:
        match = _NUMBER.match(self[key])
        return int(match.group()) if match else None

    def entry(self, kind: str, zone: tzinfo | None) -> _Entry:
        """Return the record as JSON has it; if a value of it cannot be read, that is said in place of it."""
        found: _Entry = {key: self[name] or None for key, name in _TEXTS[kind].items()}
        found |= {key: self.number(name) for key, name in _NUMBERS[kind].items()}
        try:
            found |= {key: _time(self[name], zone) for key, name in _TIMES.get(kind, {}).items()}
            found |= _OTHERS[kind](self) if kind in _OTHERS else {}
        except SyntaxFault as error:
            found[UNREAD] = error.message
        except ValueError as error:
            found[UNREAD] = str(error)
        return found


def _time(value: str, zone: tzinfo | None) -> int | None:
    """Return a time in Unix seconds: digits, or a date in the zone of the text."""
    if not value or value.isdecimal():
        return int(value or 0) or None
    moment = datetime.fromisoformat(value)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def read_text(text: str, source: str, zone: tzinfo | None = None) -> SlurmRecords:
    """Read the records of ``scontrol show job``, ``node``, ``partition``, ``reservation`` or ``license``.

    A record with a fault costs that record. Raises `DocumentError` with all faults if each record has one.

    `text`: what scontrol printed; with ``-d`` the running jobs say what they hold on each node.
    `source`: the name of the text in messages.
    `zone`: the zone of dates without offset; None: that of this machine. With ``SLURM_TIME_FORMAT=%s`` there are none.
    """
    answer: dict[str, list[_Entry]] = {}
    doubts: dict[int, str] = {}
    for piece in _RECORD.split(text):
        kind = _LISTS.get(piece.partition("=")[0])
        if kind is None:
            continue
        record = _Record(piece)
        if record.doubled:
            said = f"{', '.join(record.doubled)} twice: a name or a comment has it too"
            begins = [match.start() for match in _OWN.finditer(piece)]
            if kind == "jobs" and len(begins) == 1:  # Slurm's own fields, and what is before them is the name
                record = _Record(piece.partition(" JobName=")[0] + piece[begins[0] :])
                doubts[record.number("JobId") or 0] = f"its record has {said}"
            else:
                key, name = ("job_id", "JobId") if kind == "jobs" else ("name", piece.partition("=")[0])
                answer.setdefault(kind, []).append({key: record[name], UNREAD: f"Expected each field once, got {said}"})
                continue
        answer.setdefault(kind, []).append(record.entry(kind, zone))
    records = read_answer(answer, source)
    jobs = (job.but(others=(doubts[job.number], *job.others)) if job.number in doubts else job for job in records.jobs)
    return replace(records, jobs=tuple(jobs)) if doubts else records


def read_config(text: str) -> dict[str, str]:
    """Read ``scontrol show config`` by key."""
    return {key: value.strip() for key, value in _CONFIG.findall(text)}


def _job(record: _Record) -> _Entry:
    fewest, _, most = record["NumNodes"].partition("-")
    per_cpu, per_node = record["MinMemoryCPU"], record["MinMemoryNode"]
    task, limit = record["ArrayTaskId"], record["TimeLimit"]
    seconds = minutes(limit)
    *sockets, threads = record["ReqB:S:C:T"].split(":")
    switches, _, longest = record["Switches"].partition("@")
    tasks = dict(zip(("board", "socket", "core"), record["NtasksPerN:B:S:C"].split(":")[1:], strict=False))
    return {
        "user_name": record["UserId"].partition("(")[0],
        "group_name": record["GroupId"].partition("(")[0],
        "array_task_id": task if task.isdecimal() else None,
        "array_task_string": None if task.isdecimal() else task,
        "time_limit": {"set": False, "infinite": True} if limit == "UNLIMITED" else seconds and seconds // 60,
        "node_count": fewest if fewest.isdecimal() else None,
        "max_nodes": most if most.isdecimal() else None,
        "tres_req_str": record["TRES"] or record["ReqTRES"],
        "memory_per_cpu": memory(per_cpu) if per_cpu else None,
        "memory_per_node": memory(per_node) if per_node else None,
        "shared": {"NO": "none", "EXCLUSIVE": "none", "USER": "user", "MCS": "mcs"}.get(record["OverSubscribe"]),
        "threads_per_core": threads if threads.isdecimal() else None,
        "contiguous": record["Contiguous"] == "1",
        "required_switches": switches,
        "maximum_switch_wait_time": minutes(longest),
        "cores_per_socket": None if set(sockets) <= {"", "0", "*", "1"} else 1,
        **{f"tasks_per_{part}": number if number.isdecimal() else None for part, number in tasks.items()},
        **_held(record),
    }


def _held(record: _Record) -> _Entry:
    """Return what a job holds on each node, where its details are shown."""
    details = [
        (name, cpus, int(held), gres)
        for nodes, cpus, held, gres in _DETAIL.findall(record.text)
        for name in expand_hostlist(nodes)
    ]
    if not details:
        return {}
    nodes = [
        {"name": name, "cpus": {"count": count_ids(cpus)}, "memory": {"allocated": held}}
        for name, cpus, held, _ in details
    ]
    return {"job_resources": {"nodes": {"allocation": nodes}}, "gres_detail": [gres for *_, gres in details]}


def _partition(record: _Record) -> _Entry:
    longest, default = minutes(record["MaxTime"]), minutes(record["DefaultTime"])
    flags = {"exclusive": record["OverSubscribe"] == "EXCLUSIVE", "exclusive user": record["ExclusiveUser"] == "YES"}
    return {
        "state": record["State"] or "UP",
        "max_time_limit": longest and longest // 60,
        "default_time_limit": default and default // 60,
        "flags": [flag for flag, is_set in flags.items() if is_set],
        "shares": int(forced) if (forced := record["OverSubscribe"].removeprefix("FORCE:")).isdecimal() else 1,
    }


def _reservation(record: _Record) -> _Entry:
    cores = [
        {"node": name, "core": cores}
        for names, cores in _RESERVED.findall(record.text)
        for name in expand_hostlist(names)
    ]
    return {"core_specializations": cores}


_OTHERS: Mapping[str, Callable[[_Record], _Entry]] = {
    "jobs": _job,
    "partitions": _partition,
    "reservations": _reservation,
}
