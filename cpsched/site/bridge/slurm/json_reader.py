"""Slurm's JSON, from 21.08 to 25.x, as records: ``squeue``, ``sinfo`` and ``scontrol --json``, and slurmrestd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from cpsched.domain import Amounts
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.amounts import gres_amounts, tres_value
from cpsched.site.bridge.slurm.fields import FaultList, Fields, shown
from cpsched.site.bridge.slurm.records import (
    MANY_NODES,
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Share,
    SlurmRecords,
)
from cpsched.site.bridge.slurm.states import job_state, node_state, words_of

_Record = TypeVar("_Record")

_MINUTE = 60
#: Keys in which many jobs are alike.
_SHARED = (
    "account", "array_job_id", "array_max_tasks", "array_task_string", "burst_buffer", "cluster_features",
    "contiguous", "core_spec", "cores_per_socket", "cpus", "cpus_per_task", "cpus_per_tres", "deadline", "dependency",
    "excluded_nodes", "exclusive", "features", "group_id", "group_name", "het_job_id", "hold", "job_state", "licenses",
    "max_nodes", "memory_per_cpu", "memory_per_node", "memory_per_tres", "minimum_cpus_per_node", "minimum_switches",
    "minimum_tmp_disk_per_node", "node_count", "partition", "qos", "required_nodes", "required_switches",
    "restart_cnt", "resv_name", "shared", "sockets_per_node", "state_description", "state_reason", "tasks",
    "tasks_per_board", "tasks_per_core", "tasks_per_node", "tasks_per_socket", "threads_per_core", "time_limit",
    "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "tres_req_str", "user_id", "user_name",
)  # fmt: skip
_HELD = frozenset({"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue"})


def parse_answer(text: str, source: str) -> Mapping[str, Any]:
    """Parse the text of one answer. Raises `DocumentError` if it is no JSON object, or tells of errors."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [Fault("", f"Expected JSON, got: {error}")]) from None
    if not isinstance(answer, dict):
        raise DocumentError(source, [Fault("", f"Expected a JSON object, got {shown(answer)}")])
    errors = answer.get("errors")
    if isinstance(errors, list) and errors:
        raise DocumentError(source, [Fault(f"errors[{at}]", _words(error)) for at, error in enumerate(errors[:10])])
    return answer


def _words(error: object) -> str:
    """Return Slurm's words about an error, which comes with status 200."""
    if isinstance(error, Mapping):
        said = [str(error[key]) for key in ("description", "error") if error.get(key)]
        return "Expected no errors, got: " + (", ".join(said) or shown(error))
    return f"Expected no errors, got: {shown(error)}"


def read_answer(answer: Mapping[str, Any], source: str) -> SlurmRecords:
    """Read all records of one answer: of jobs, nodes, partitions, reservations or licences.

    Raises `DocumentError` with all faults: values of a wrong type, unknown states, amounts that cannot be read.
    """
    faults = FaultList(source)
    top = Fields(answer, "", faults)

    def read(key: str, reader: Callable[[Fields], _Record]) -> tuple[_Record, ...]:
        return tuple(_read_each(top, key, reader))

    records = SlurmRecords(
        jobs=read("jobs", _JobReader(faults)),
        nodes=read("nodes", _node),
        partitions=read("partitions", _partition),
        reservations=read("reservations", _reservation),
        licenses=Amounts(dict(read("licenses", _license))),
    )
    faults.raise_if_any()
    return records


def _read_each(top: Fields, key: str, reader: Callable[[Fields], _Record]) -> Iterator[_Record]:
    for entry in top.each(key):
        try:
            yield reader(entry)
        except SyntaxFault as error:
            entry.fault("", error.message)
        except ValueError as error:
            entry.fault("", str(error))


def _required(entry: Fields, key: str) -> int:
    number = entry.number(key)
    if number is None:
        raise ValueError(f"Expected {key}, got none")
    return number


def _state_words(entry: Fields, *keys: str) -> tuple[str, ...]:
    return tuple(word for key in keys for part in entry.texts(key) for word in words_of(part))


def _time(entry: Fields, key: str) -> int | None:
    """Return a time; 0 says that there is none."""
    return entry.number(key) or None


def _minutes(entry: Fields, *keys: str) -> int | None:
    number = entry.number(*keys)
    return None if number is None else number * _MINUTE


class _JobReader:
    """Reads the jobs of one answer; mutable. What many of them have in common is read once."""

    def __init__(self, faults: FaultList) -> None:
        self._faults = faults
        #: By the text of their keys: jobs with what is in these keys, and whether Slurm holds them.
        self._alike: dict[bytes, tuple[JobRecord, bool]] = {}

    def __call__(self, entry: Fields) -> JobRecord:
        """Return a job."""
        text = entry.text_of(_SHARED)
        if (known := self._alike.get(text)) is None:
            before = len(self._faults)
            known = _shared(entry.only(_SHARED))
            if len(self._faults) == before:  # a fault is told of each job
                self._alike[text] = known
        job, is_held = known
        state = job.state
        if state is JobState.WAITING and (is_held or ("priority" in entry and entry.number("priority") == 0)):
            state = JobState.HELD
        return job.but(
            number=_required(entry, "job_id"),
            state=state,
            name=entry.text("name"),
            task=entry.number("array_task_id"),
            submit=entry.number("submit_time") or 0,
            begin=_time(entry, "eligible_time"),
            start=_time(entry, "start_time"),
            end=_time(entry, "end_time"),
            admin_comment=entry.text("admin_comment"),
            comment=entry.text("comment"),
            priority=entry.number("priority") or 0,
            shares=tuple(_shares(entry)) if state is JobState.RUNNING else (),
            ran_on=entry.text("nodes"),
        )


def _shared(entry: Fields) -> tuple[JobRecord, bool]:
    """Return a job with what is in the keys that many jobs have in common, and whether Slurm holds it."""
    words = _state_words(entry, "job_state")
    state = job_state(words)
    reason = entry.text("state_reason")
    requested = tres_value(entry.text("tres_req_str"), "node")
    nodes = entry.number("node_count") or 1
    if requested is not None and requested.isdecimal() and state in (JobState.WAITING, JobState.HELD):
        nodes = int(requested)  # node_count of a waiting job may be an estimate
    job = JobRecord(
        number=0,
        state=state,
        is_suspended="SUSPENDED" in words,
        is_completing="COMPLETING" in words,
        reason=reason if not entry.text("state_description") else f"{reason}: {entry.text('state_description')}",
        user=entry.text("user_name") or str(entry.number("user_id") or 0),
        group=entry.text("group_name") or str(entry.number("group_id") or 0),
        account=entry.text("account"),
        qos=entry.text("qos"),
        partitions=entry.texts("partition"),
        array=entry.number("array_job_id") or None,
        tasks_text=entry.text("array_task_string"),
        throttle=entry.number("array_max_tasks") or None,
        time_limit=_minutes(entry, "time_limit"),
        deadline=_time(entry, "deadline"),
        nodes=nodes,
        max_nodes=_most_nodes(entry.number("max_nodes")),
        cpus=entry.number("cpus") or 1,
        tasks=entry.number("tasks") or 1,
        cpus_per_task=entry.number("cpus_per_task") or None,
        tasks_per_node=entry.number("tasks_per_node") or None,
        cpus_per_node=entry.number("minimum_cpus_per_node") or 1,
        memory_per_cpu=entry.number("memory_per_cpu") or None,
        memory_per_node=entry.number("memory_per_node") or None,
        tres_per_job=entry.text("tres_per_job"),
        tres_per_node=entry.text("tres_per_node"),
        tres_per_socket=entry.text("tres_per_socket"),
        tres_per_task=entry.text("tres_per_task"),
        cpus_per_tres=entry.text("cpus_per_tres"),
        memory_per_tres=entry.text("memory_per_tres"),
        features=entry.text("features"),
        required_nodes=entry.text("required_nodes"),
        excluded_nodes=entry.text("excluded_nodes"),
        licenses=entry.text("licenses"),
        dependency=entry.text("dependency"),
        reservation=entry.text("resv_name"),
        exclusive=_exclusive(entry),
        others=tuple(_others(entry)),
        restarts=entry.number("restart_cnt") or 0,
    )
    return job, entry.flag("hold") or reason in _HELD


def _most_nodes(number: int | None) -> int | None:
    return number if number and number < MANY_NODES else None


def _exclusive(entry: Fields) -> str:
    """Return how a job has its nodes for itself: ``shared`` says "none", ``exclusive`` says "true"."""
    words = {*entry.texts("shared"), *entry.texts("exclusive")} - {"oversubscribe", "false", ""}
    if words & {"none", "true"}:
        return "node"
    return min(words, default="")


def _others(entry: Fields) -> Iterator[str]:
    """Yield what a job asks for that cpsched cannot say."""
    if entry.number("het_job_id"):
        yield "it is a part of a heterogeneous job"
    if entry.flag("contiguous"):
        yield "it asks for neighbouring nodes (--contiguous)"
    if entry.number("core_spec"):
        yield "it asks for specialised cores (--core-spec)"
    if entry.number("required_switches", "minimum_switches"):
        yield "it asks for few switches (--switches)"
    if entry.text("burst_buffer"):
        yield "it asks for a burst buffer"
    if entry.text("cluster_features"):
        yield "it asks for a cluster by its features (--cluster-constraint)"
    if entry.number("minimum_tmp_disk_per_node"):
        yield "it asks for temporary disk space (--tmp)"
    if any(entry.number(key) for key in ("sockets_per_node", "cores_per_socket")):
        yield "it asks for sockets or for cores of a socket"
    if (entry.number("threads_per_core") or 0) > 1:
        yield "it asks for threads of a core (--threads-per-core)"
    if any((entry.number(key) or 0) > 0 for key in ("tasks_per_core", "tasks_per_socket", "tasks_per_board")):
        yield "it asks for tasks per core, socket or board"


def _shares(entry: Fields) -> Iterator[Share]:
    """Yield what a running job holds on each node: three forms of ``job_resources``, and none."""
    held = entry.inside("job_resources")
    gres = entry.texts("gres_detail") if "gres_detail" in entry else ()
    names = expand_hostlist(entry.text("nodes")) if entry.text("nodes") else ()
    in_order = len(gres) == len(names)

    def gres_at(index: int) -> Amounts:
        return gres_amounts(gres[index]) if in_order and index < len(gres) else Amounts()

    if held.is_object("nodes"):
        for index, node in enumerate(held.inside("nodes").each("allocation")):
            cpus = node.inside("cpus").number("count") or 0
            memory = node.inside("memory").number("allocated") or 0
            yield Share(node=node.text("name"), cpus=cpus, memory=memory, gres=gres_at(index))
        return
    per_node = held.each("allocated_nodes")
    if len(per_node) == len(names):
        for index, (name, node) in enumerate(zip(names, per_node, strict=True)):
            cpus = node.number("cpus") or sum(socket.count("cores") for socket in node.each("sockets"))
            memory = node.number("memory_allocated", "memory") or 0
            yield Share(node=node.text("nodename") or name, cpus=cpus, memory=memory, gres=gres_at(index))
        return
    if names:
        total = entry.number("cpus") or len(names)
        memory = entry.number("memory_per_node") or 0
        for index, name in enumerate(names):
            cpus = -(-total // len(names))
            of_cpus = (entry.number("memory_per_cpu") or 0) * cpus
            yield Share(node=name, cpus=cpus, memory=memory or of_cpus, gres=gres_at(index))


def _node(entry: Fields) -> NodeRecord:
    features = [part for text in entry.texts("active_features") or entry.texts("features") for part in text.split(",")]
    memory = (entry.number("real_memory") or 0) - (entry.number("specialized_memory") or 0)
    return NodeRecord(
        name=entry.text("name"),
        state=node_state(_state_words(entry, "state", "state_flags")),
        cpus=entry.number("effective_cpus", "cpus") or 0,
        threads=entry.number("threads") or 1,
        memory=max(0, memory),
        gres=gres_amounts(entry.text("gres")),
        features=tuple(features),
        weight=entry.number("weight") or 0,
        partitions=entry.texts("partitions"),
    )


def _partition(entry: Fields) -> PartitionRecord:
    if entry.is_object("maximums"):
        most = entry.inside("maximums")
        flags = most.inside("oversubscribe").texts("flags") if most.is_object("oversubscribe") else ()
        return PartitionRecord(
            name=entry.text("name"),
            nodes=entry.inside("nodes").text("configured"),
            max_time=_minutes(most, "time"),
            default_time=_minutes(entry.inside("defaults"), "time"),
            tier=entry.inside("priority").number("tier") or 0,
            state=entry.inside("partition").text("state"),
            is_exclusive="exclusive" in flags or most.number("shares") == 0,
            qos=entry.inside("qos").text("assigned"),
        )
    return PartitionRecord(
        name=entry.text("name"),
        nodes=entry.text("nodes"),
        max_time=_minutes(entry, "max_time_limit"),
        default_time=_minutes(entry, "default_time_limit"),
        tier=entry.number("priority_tier") or 0,
        state=entry.text("state"),
        is_exclusive="exclusive" in entry.texts("flags"),
        qos=entry.text("qos"),
    )


def _reservation(entry: Fields) -> ReservationRecord:
    return ReservationRecord(
        name=entry.text("name"),
        start=_required(entry, "start_time"),
        end=_required(entry, "end_time"),
        nodes=entry.text("node_list"),
        users=tuple(dict.fromkeys(entry.texts("users"))),
        flags=entry.texts("flags"),
    )


def _license(entry: Fields) -> tuple[str, int]:
    return entry.text("LicenseName"), entry.number("Total") or 0
