"""The text of ``scontrol show``, one record a line (``-o``) or a paragraph, as records.

Names and comments stand in it as their users wrote them, and may read like fields. A job in which a field occurs twice
is left out, and if it runs it keeps its nodes. JSON has no such doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple, TypeVar

from cpsched.domain import Amounts, NodeState
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.amounts import (
    count_ids,
    gres_amounts,
    gres_of_node,
    license_amounts,
    memory,
    minutes,
    tres_value,
)
from cpsched.site.bridge.slurm.fields import FaultList
from cpsched.site.bridge.slurm.records import (
    MANY_NODES,
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Share,
    SlurmRecords,
)
from cpsched.site.bridge.slurm.states import JOB_BASES, job_state, node_state, words_of
from cpsched.text import printable

#: What a record of each kind begins with.
_HEADS = ("JobId", "NodeName", "PartitionName", "ReservationName", "LicenseName")
_RECORD = re.compile(rf"^(?=(?:{'|'.join(_HEADS)})=)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z/:_]*)=(\S*)")
#: Fields that occur once for each group of nodes of a job.
_REPEATED = frozenset({"Nodes", "CPU_IDs", "Mem", "GRES", "Allocated", "NodeName", "CoreIDs"})
_NONE = ("", "(null)", "N/A", "None", "Unknown", "NONE")
#: States of jobs that hold nothing.
_OVER = frozenset(word for word, state in JOB_BASES.items() if state is not JobState.RUNNING)
_NUMBER = re.compile(r"\d+")
_DETAIL = re.compile(r"(?<=\s)Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
#: What Slurm writes after the name of a job; a name has not all of it.
_OWN = re.compile(
    r"\sUserId=\S+\s+GroupId=\S+\s+(?:MCS_label=\S+\s+)?Priority=\d+\s+Nice=\S+\s+Account=\S*\s+QOS=\S*\s+"
    r"(?:WCKey=\S*\s+)?JobState="
)
_RESERVED = re.compile(r"(?<=\s)NodeName=(\S+) CoreIDs=(\S+)")
_CONFIG = re.compile(r"^([A-Za-z][A-Za-z0-9_ ]*?)\s*= (.*)$", re.MULTILINE)


class _License(NamedTuple):
    name: str
    total: int
    free: int | None


_Kind = TypeVar("_Kind")


class _Record:
    """The fields of one record."""

    def __init__(self, text: str, zone: tzinfo | None) -> None:
        self.text, self.zone = text, zone
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

    def time(self, key: str) -> int | None:
        """Return a time in Unix seconds: digits, or a date in the zone of the text."""
        value = self[key]
        if not value:
            return None
        if value.isdecimal():
            return int(value) or None
        moment = datetime.fromisoformat(value)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=self.zone)).timestamp())


def read_text(text: str, source: str, zone: tzinfo | None = None) -> SlurmRecords:
    """Read the records of ``scontrol show job``, ``node``, ``partition``, ``reservation`` or ``license``.

    A record with a fault costs that record. Raises `DocumentError` with all faults if each record has one.

    `text`: what scontrol printed; with ``-d`` the running jobs say what they hold on each node.
    `source`: the name of the text in messages.
    `zone`: the zone of dates without offset; None: that of this machine. With ``SLURM_TIME_FORMAT=%s`` there are none.
    """
    faults, notes = FaultList(source), list[Fault]()
    found: list[object] = []
    pieces = [piece for piece in _RECORD.split(text) if piece.startswith(_HEADS)]
    for index, piece in enumerate(pieces):
        head = piece.partition("=")[0]
        record = _Record(piece, zone)
        try:
            found.append(_doubled_job(record) if record.doubled else _READERS[head](record))
        except (SyntaxFault, ValueError) as error:
            message = error.message if isinstance(error, SyntaxFault) else str(error)
            faults.add(f"{head}[{index}]", message)
            found += _unread(record, head, message, notes)
    if len(faults) < len(pieces):
        faults.take(0)
    faults.raise_if_any()
    return SlurmRecords(
        jobs=_of(found, JobRecord),
        nodes=_of(found, NodeRecord),
        partitions=_of(found, PartitionRecord),
        reservations=_of(found, ReservationRecord),
        licenses=Amounts({license.name: license.total for license in _of(found, _License)}),
        free_licenses=Amounts({one.name: one.free for one in _of(found, _License) if one.free is not None}),
        notes=tuple(notes),
    )


def _doubled_job(record: _Record) -> JobRecord:
    """Return a job of which some field occurs twice: left out, but on its nodes if it runs.

    Slurm's own fields begin with a long sequence of them, and what is before it is the name. Raises `ValueError` if it
    is another record.
    """
    twice = f"{', '.join(record.doubled)} twice: a name or a comment has it too"
    begins = [match.start() for match in _OWN.finditer(record.text)]
    if not record["JobId"]:
        raise ValueError(f"Expected each field once, got {twice}")
    if len(begins) != 1:
        return JobRecord(
            number=record.number("JobId") or 0, state=JobState.WAITING, others=(f"its record has {twice}",)
        )
    head = record.text.partition(" JobName=")[0]
    job = _job(_Record(head + record.text[begins[0] :], record.zone))
    return job.but(others=(f"its record has {twice}", *job.others))


def _unread(record: _Record, head: str, message: str, notes: list[Fault]) -> Iterator[JobRecord | NodeRecord]:
    """Yield what a record becomes that cannot be read: a job that is left out, or a node that counts as down."""
    number, name = record.number("JobId"), record["NodeName"]
    if number:
        names = expand_hostlist(record["NodeList"]) if record["JobState"] not in _OVER and record["NodeList"] else ()
        yield JobRecord(
            number=number,
            state=JobState.RUNNING if names else JobState.WAITING,
            others=(f"its record cannot be read ({message})",),
            shares=tuple(Share(node=one, cpus=-(-(record.number("NumCPUs") or 1) // len(names))) for one in names),
        )
    elif name:
        cpus, fault = record.number("CPUTot") or 0, f"counts as down: {message}"
        yield NodeRecord(name=name, state=NodeState.DOWN, cpus=cpus, fault=fault)
    else:
        notes.append(Fault(f"{head} {printable(record[head])}", f"cannot be read: {message}"))


def _of(found: Sequence[object], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(entry for entry in found if isinstance(entry, kind))


def read_config(text: str) -> dict[str, str]:
    """Read ``scontrol show config`` by key."""
    return {key: value.strip() for key, value in _CONFIG.findall(text)}


def _job(record: _Record) -> JobRecord:
    words = words_of(record["JobState"])
    state = job_state(words)
    if state is JobState.WAITING and record.number("Priority") == 0:
        state = JobState.HELD
    fewest, _, most = record["NumNodes"].partition("-")
    per_cpu, per_node = record["MinMemoryCPU"], record["MinMemoryNode"]
    task = record["ArrayTaskId"]
    threads = "1" if _has_core_each(record) else record["ReqB:S:C:T"].rpartition(":")[2]
    if state in (JobState.WAITING, JobState.HELD):
        fewest = tres_value(record["TRES"] or record["ReqTRES"], "node") or fewest  # NumNodes may be an estimate
    return JobRecord(
        number=record.number("JobId") or 0,
        state=state,
        is_suspended="SUSPENDED" in words,
        is_completing="COMPLETING" in words,
        reason=record["Reason"],
        user=record["UserId"].partition("(")[0],
        group=record["GroupId"].partition("(")[0],
        account=record["Account"],
        qos=record["QOS"],
        name=record["JobName"],
        partitions=tuple(part for part in record["Partition"].split(",") if part),
        array=record.number("ArrayJobId"),
        task=int(task) if task.isdecimal() else None,
        tasks_text="" if task.isdecimal() else task,
        throttle=record.number("ArrayTaskThrottle"),
        submit=record.time("SubmitTime") or 0,
        begin=record.time("EligibleTime"),
        start=record.time("StartTime"),
        end=record.time("EndTime"),
        time_limit=minutes(record["TimeLimit"]),
        is_unlimited=record["TimeLimit"] == "UNLIMITED",
        deadline=record.time("Deadline"),
        nodes=int(fewest) if fewest.isdecimal() else 1,
        max_nodes=int(most) if most.isdecimal() and int(most) < MANY_NODES else None,
        cpus=record.number("NumCPUs") or 1,
        tasks=record.number("NumTasks") or 1,
        cpus_per_task=record.number("CPUs/Task"),
        tasks_per_node=(record.number("NtasksPerN:B:S:C") or None),
        cpus_per_node=record.number("MinCPUsNode") or 1,
        memory_per_cpu=memory(per_cpu) or None if per_cpu else None,
        memory_per_node=memory(per_node) or None if per_node else None,
        tres_per_job=record["TresPerJob"],
        tres_per_node=record["TresPerNode"],
        tres_per_socket=record["TresPerSocket"],
        tres_per_task=record["TresPerTask"],
        cpus_per_tres=record["CpusPerTres"],
        memory_per_tres=record["MemPerTres"],
        features=record["Features"],
        required_nodes=record["ReqNodeList"],
        excluded_nodes=record["ExcNodeList"],
        licenses=record["Licenses"],
        dependency=record["Dependency"],
        reservation=record["Reservation"],
        exclusive={"NO": "node", "EXCLUSIVE": "node", "USER": "user", "MCS": "mcs"}.get(record["OverSubscribe"], ""),
        threads_per_core=int(threads) if threads.isdecimal() and threads != "0" else None,
        others=tuple(_others(record)),
        het=record.number("HetJobId"),
        restarts=record.number("Restarts") or 0,
        admin_comment=record["AdminComment"],
        comment=record["Comment"],
        priority=record.number("Priority") or 0,
        shares=tuple(_shares(record)) if state is JobState.RUNNING else (),
        ran_on=record["NodeList"],
    )


def _others(record: _Record) -> Iterator[str]:
    """Yield what a job asks for that cpsched cannot say."""
    if record["Contiguous"] == "1":
        yield "it asks for neighbouring nodes (--contiguous)"
    if record["CoreSpec"] not in ("", "*", "0"):
        yield "it asks for specialised cores (--core-spec)"
    if record["Switches"] or record["ReqSwitch"] not in ("", "0"):
        yield "it asks for few switches (--switches)"
    if record["SegmentSize"] not in ("", "0"):
        yield "it asks for segments of nodes (--segment)"
    if record["BurstBuffer"]:
        yield "it asks for a burst buffer"
    if record["MinTmpDiskNode"] not in ("", "0"):
        yield "it asks for temporary disk space (--tmp)"
    if record["Socks/Node"] not in ("", "*"):
        yield "it asks for sockets"
    if not set(record["ReqB:S:C:T"].split(":")[:3]) <= {"", "0", "*", "1"}:
        yield "it asks for sockets or cores of a socket"
    tasks = record["NtasksPerN:B:S:C"].split(":")[1 : -1 if _has_core_each(record) else None]
    if any(part not in ("0", "*") for part in tasks):
        yield "it asks for tasks per core, socket or board"


def _has_core_each(record: _Record) -> bool:
    """Tell whether each task has a CPU, and a core for itself."""
    return record["NtasksPerN:B:S:C"].endswith(":1") and (record.number("CPUs/Task") or 1) == 1


def _shares(record: _Record) -> Iterator[Share]:
    """Yield what a running job holds on each node, from its details or as equal parts of its totals."""
    details = _DETAIL.findall(record.text)
    for nodes, cpus, held, gres in details:
        for name in expand_hostlist(nodes):
            yield Share(node=name, cpus=count_ids(cpus), memory=int(held), gres=gres_amounts(gres))
    if details or not record["NodeList"]:
        return
    names = expand_hostlist(record["NodeList"])
    cpus_each = -(-(record.number("NumCPUs") or 1) // len(names))
    asked = record["MinMemoryNode"]
    each = memory(asked) if asked else cpus_each * (memory(record["MinMemoryCPU"]) if record["MinMemoryCPU"] else 0)
    for name in names:
        yield Share(node=name, cpus=cpus_each, memory=each)


def _node(record: _Record) -> NodeRecord:
    features = record["ActiveFeatures"] or record["AvailableFeatures"]
    spared = record.number("MemSpecLimit") or 0
    gres, wrong = gres_of_node(record["Gres"])
    return NodeRecord(
        name=record["NodeName"],
        state=node_state(words_of(record["State"])),
        cpus=record.number("CPUEfctv") or record.number("CPUTot") or 0,
        threads=record.number("ThreadsPerCore") or 1,
        memory=max(0, (record.number("RealMemory") or 0) - spared),
        gres=gres,
        fault=wrong,
        features=tuple(part for part in features.split(",") if part),
        weight=record.number("Weight") or 0,
        partitions=tuple(part for part in record["Partitions"].split(",") if part),
    )


def _partition(record: _Record) -> PartitionRecord:
    return PartitionRecord(
        name=record["PartitionName"],
        nodes=record["Nodes"],
        max_time=minutes(record["MaxTime"]),
        default_time=minutes(record["DefaultTime"]),
        tier=record.number("PriorityTier") or 0,
        state=record["State"] or "UP",
        is_exclusive=record["OverSubscribe"] == "EXCLUSIVE",
        is_of_one_user=record["ExclusiveUser"] == "YES",
        max_nodes=record.number("MaxNodes"),
        cpus_per_node=record.number("MaxCPUsPerNode"),
        qos=record["QoS"],
        preemption=record["PreemptMode"],
    )


def _reservation(record: _Record) -> ReservationRecord:
    start, end = record.time("StartTime"), record.time("EndTime")
    if start is None or end is None:
        raise ValueError(f"Expected the times of reservation {record['ReservationName']}, got none")
    return ReservationRecord(
        name=record["ReservationName"],
        start=start,
        end=end,
        nodes=record["Nodes"],
        users=_words(record["Users"]),
        accounts=_words(record["Accounts"]),
        groups=_words(record["Groups"]),
        flags=_words(record["Flags"]),
        licenses=license_amounts(record["Licenses"]),
        cores=Amounts(_reserved_cores(record.text)) or None,
        core_count=record.number("CoreCnt"),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in text.split(",") if part))


def _reserved_cores(text: str) -> dict[str, int]:
    """Return how many cores of each node are reserved; empty where that is not said."""
    return {name: count_ids(cores) for names, cores in _RESERVED.findall(text) for name in expand_hostlist(names)}


def _license(record: _Record) -> _License:
    return _License(record["LicenseName"], record.number("Total") or 0, record.number("Free"))


_READERS: dict[str, Callable[[_Record], object]] = {
    "JobId": _job,
    "NodeName": _node,
    "PartitionName": _partition,
    "ReservationName": _reservation,
    "LicenseName": _license,
}
