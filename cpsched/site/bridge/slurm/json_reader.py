"""Slurm's JSON, from 21.08 to 25.x, as records: ``squeue``, ``sinfo`` and ``scontrol --json``, and slurmrestd."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cpsched.domain import Amounts, NodeState
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import expand_hostlist, shown
from cpsched.site.bridge.answers import parse_object
from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.amounts import count_ids, gres_amounts, gres_of_node, license_amounts, tres_value
from cpsched.site.bridge.slurm.fields import Fields
from cpsched.site.bridge.slurm.records import (
    MANY_NODES,
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Share,
    SlurmRecords,
    hosts_of,
)
from cpsched.site.bridge.slurm.states import JOB_BASES, job_state, node_state, words_of
from cpsched.site.bridge.slurm.topology import BLOCK, LEAF
from cpsched.text import printable

_Record = TypeVar("_Record")
#: What becomes of a record with faults: of what was read of it, and its faults in words.
_Unread = Callable[[Fields, _Record | None, str], _Record | None]

_MINUTE = 60
_MOST_FAULTS = 100
#: Threads of a core, of any processor that there is.
_MOST_THREADS = 8
#: The key under which a reader says of an entry why it cannot be read.
UNREAD = "unread"
#: Keys in which many jobs are alike.
_SHARED = (
    "account", "array_job_id", "array_max_tasks", "array_task_string", "batch_flag", "burst_buffer",
    "cluster_features", "contiguous", "core_spec", "cores_per_socket", "cpus", "cpus_per_task", "cpus_per_tres",
    "deadline", "dependency", "excluded_nodes", "exclusive", "features", "group_id", "group_name", "het_job_id",
    "hold", "job_state", "licenses", "licenses_allocated", "max_nodes", "maximum_switch_wait_time", "memory_per_cpu",
    "memory_per_node", "memory_per_tres", "minimum_cpus_per_node", "minimum_switches", "minimum_tmp_disk_per_node",
    "node_count", "partition", "qos", "requeue", "required_nodes", "required_switches", "restart_cnt", "resv_name",
    "segment_size", "shared", "sockets_per_node", "state_description", "state_reason", "tasks", "tasks_per_board",
    "tasks_per_core", "tasks_per_node", "tasks_per_socket", "threads_per_core", "time_limit", "tres_per_job",
    "tres_per_node", "tres_per_socket", "tres_per_task", "tres_req_str", "user_id", "user_name",
)  # fmt: skip
#: Those that records have by the same name: texts, and numbers of which 0 says that there is none.
_TEXTS = (
    "account", "cpus_per_tres", "dependency", "excluded_nodes", "features", "memory_per_tres", "qos", "required_nodes",
    "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
)  # fmt: skip
_NUMBERS = "cpus_per_task", "memory_per_cpu", "memory_per_node", "tasks_per_node"
_HELD = frozenset({"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue"})


def parse_answer(text: str, source: str) -> Mapping[str, Any]:
    """Parse the text of one answer. Raises `DocumentError` if it is no JSON object, or tells of errors."""
    answer = parse_object(text, source)
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

    A record with a fault (a value of a wrong type, an unknown state, an amount that cannot be read) costs that record:
    the job is left out, the node counts as down. Raises `DocumentError` with all faults if no record of its kind can be
    read, or the answer as a whole is none.
    """
    faults, notes = list[Fault](), list[Fault]()
    top = Fields(answer, "", faults)

    def read(key: str, reader: Callable[[Fields], _Record], unread: _Unread[_Record] = _forget) -> tuple[_Record, ...]:
        return tuple(_read_each(top, key, reader, unread, faults, notes))

    licenses = read(
        "licenses", lambda entry: (entry.text("LicenseName"), entry.number("Total") or 0, entry.number("Free"))
    )
    groups = _groups(top.each("sinfo"))
    records = SlurmRecords(
        jobs=read("jobs", _JobReader(faults), _unread_job),
        nodes=read("nodes", _node, _unread_node) or groups[0],
        partitions=read("partitions", _partition) or groups[1],
        reservations=read("reservations", _reservation),
        licenses=Amounts({name: total for name, total, _ in licenses}),
        free_licenses=Amounts({name: free for name, _, free in licenses if free is not None}),
        notes=tuple(notes),
    )
    if faults:
        raise DocumentError(source, faults[:_MOST_FAULTS])
    return records


def _read_each(
    top: Fields,
    key: str,
    reader: Callable[[Fields], _Record],
    unread: _Unread[_Record],
    faults: list[Fault],
    notes: list[Fault],
) -> Iterator[_Record]:
    """Yield the records of a kind; faults are told as such only if each of several has one."""
    entries, bad, lost = top.each(key), list[Fault](), 0
    for entry in entries:
        before = len(faults)
        record: _Record | None = None
        try:
            if said := entry.text(UNREAD):
                raise ValueError(said)
            record = reader(entry)
        except SyntaxFault as error:
            entry.fault("", error.message)
        except ValueError as error:
            entry.fault("", str(error))
        if len(faults) > before:
            taken = faults[before:]
            del faults[before:]
            bad += taken
            lost += 1
            words = "; ".join(f"{fault.path.rpartition('].')[2]}: {fault.message}" for fault in taken)
            record = unread(entry, record, words)
            if record is None:
                quiet = entry.quiet()
                name = quiet.text("name", "LicenseName") or str(quiet.number("job_id") or "without a name")
                notes.append(Fault(f"{key} {printable(name)}", f"cannot be read: {words}"))
        if record is not None:
            yield record
    if 1 < len(entries) == lost:
        faults += bad


def _forget(entry: Fields, record: object, words: str) -> None:
    """Do without a record that cannot be read."""


def _unread_job(entry: Fields, record: JobRecord | None, words: str) -> JobRecord | None:
    """Return a job with the reason why it cannot be planned; one that may run keeps its nodes."""
    entry = entry.quiet()
    reason = f"its record cannot be read ({words})"
    if record is not None:
        return record.but(others=(reason, *record.others))
    number = entry.number("job_id")
    if number is None:
        return None
    states = {JOB_BASES.get(word, JobState.RUNNING) for word in _state_words(entry, "job_state")}
    names = hosts_of(entry.text("nodes")) if states <= {JobState.RUNNING} else ()
    shares = tuple(Share(node=name, cpus=-(-(entry.number("cpus") or 1) // len(names))) for name in names)
    state = JobState.RUNNING if shares else JobState.WAITING
    return JobRecord(number=number, state=state, others=(reason,), shares=shares, start=_time(entry, "start_time"))


def _unread_node(entry: Fields, record: NodeRecord | None, words: str) -> NodeRecord | None:
    """Return a node that counts as down."""
    entry = entry.quiet()
    if record is None:
        cpus, memory = entry.number("effective_cpus", "cpus") or 0, entry.number("real_memory") or 0
        record = NodeRecord(name=entry.text("name"), state=NodeState.DOWN, cpus=cpus, memory=memory)
    return replace(record, state=NodeState.DOWN, fault=f"counts as down: {words}") if record.name else None


def _groups(groups: Sequence[Fields]) -> tuple[tuple[NodeRecord, ...], tuple[PartitionRecord, ...]]:
    """Return the nodes and partitions of ``sinfo --json`` from 23.11 on: groups of nodes that are alike."""
    nodes: dict[str, NodeRecord] = {}
    partitions: dict[str, PartitionRecord] = {}
    for group in groups:
        partition = _partition(group.inside("partition"))
        partitions[partition.name] = partition
        memory = group.inside("memory")
        record = NodeRecord(
            name="",
            state=node_state(_state_words(group.inside("node"), "state")),
            cpus=group.inside("cpus").number("minimum") or 0,
            threads=group.inside("threads").number("maximum") or 1,
            sockets=group.inside("sockets").number("maximum") or 1,
            memory=memory.number("minimum") or 0,
            gres=gres_of_node(group.inside("gres").text("total"), used=group.inside("gres").text("used"))[0],
            features=tuple(part for part in group.inside("features").text("total").split(",") if part),
            weight=group.inside("weight").number("minimum") or 0,
        )
        for name in group.inside("nodes").texts("nodes"):
            of = nodes[name].partitions if name in nodes else ()
            nodes[name] = replace(record, name=name, partitions=(*of, partition.name))
    return tuple(nodes.values()), tuple(partitions.values())


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

    def __init__(self, faults: list[Fault]) -> None:
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
    most, licenses = entry.number("max_nodes"), entry.text("licenses")
    if "|" in licenses and state is JobState.RUNNING:  # it had a choice; what it has is said from 25.05 on
        licenses = entry.text("licenses_allocated") or licenses
    is_near = bool(entry.number("required_switches", "minimum_switches"))
    job = JobRecord(
        number=0,
        state=state,
        is_suspended="SUSPENDED" in words,
        is_completing="COMPLETING" in words,
        reason=reason if not entry.text("state_description") else f"{reason}: {entry.text('state_description')}",
        user=entry.text("user_name") or str(entry.number("user_id") or 0),
        group=entry.text("group_name") or str(entry.number("group_id") or 0),
        partitions=entry.texts("partition"),
        array=entry.number("array_job_id") or None,
        tasks_text=entry.text("array_task_string"),
        throttle=entry.number("array_max_tasks") or None,
        time_limit=_minutes(entry, "time_limit"),
        is_unlimited=entry.is_infinite("time_limit"),
        deadline=_time(entry, "deadline"),
        nodes=nodes,
        max_nodes=most if most and most < MANY_NODES else None,
        cpus=entry.number("cpus") or 1,
        tasks=entry.number("tasks") or 1,
        cpus_per_node=entry.number("minimum_cpus_per_node") or 1,
        licenses=licenses,
        reservation=entry.text("resv_name"),
        exclusive=_exclusive(entry),
        threads_per_core=entry.number("threads_per_core") or None,
        tasks_per_core=entry.number("tasks_per_core") or None,
        others=tuple(_others(entry)),
        within=LEAF if is_near else BLOCK if entry.number("segment_size") else "",
        segment=entry.number("segment_size") or None,
        within_for=entry.number("maximum_switch_wait_time") if is_near else None,
        can_requeue=entry.flag("requeue") and entry.flag("batch_flag"),
        het=entry.number("het_job_id") or None,
        restarts=entry.number("restart_cnt") or 0,
    )
    job = job.but(**{key: entry.text(key) for key in _TEXTS}, **{key: entry.number(key) or None for key in _NUMBERS})
    return job, entry.flag("hold") or reason in _HELD


def _exclusive(entry: Fields) -> str:
    """Return how a job has its nodes for itself: ``shared`` says "none", ``exclusive`` says "true"."""
    words = {*entry.texts("shared"), *entry.texts("exclusive")} - {"oversubscribe", "shared", "false", ""}
    if words & {"none", "true"}:
        return "node"
    return min(words, default="")


def _others(entry: Fields) -> Iterator[str]:
    """Yield what a job asks for that cpsched cannot say."""
    if entry.flag("contiguous"):
        yield "it asks for neighbouring nodes (--contiguous)"
    if entry.number("core_spec"):
        yield "it asks for specialised cores (--core-spec)"
    if (entry.number("required_switches", "minimum_switches") or 1) > 1:
        yield "it asks for several switches (--switches)"
    if (entry.number("node_count") or 0) % (entry.number("segment_size") or 1):
        yield "it asks for segments that its nodes do not divide into (--segment)"
    if entry.text("burst_buffer"):
        yield "it asks for a burst buffer"
    if entry.text("cluster_features"):
        yield "it asks for a cluster by its features (--cluster-constraint)"
    if entry.number("minimum_tmp_disk_per_node"):
        yield "it asks for temporary disk space (--tmp)"
    if any(entry.number(key) for key in ("sockets_per_node", "cores_per_socket")):
        yield "it asks for sockets or for cores of a socket"
    if any((entry.number(key) or 0) > 0 for key in ("tasks_per_socket", "tasks_per_board")):
        yield "it asks for tasks per socket or board"


def _shares(entry: Fields) -> Iterator[Share]:
    """Yield what a running job holds on each node: three forms of ``job_resources``, and none."""
    held = entry.inside("job_resources")
    gres = entry.texts("gres_detail", has_gaps=True) if "gres_detail" in entry else ()
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
            cpus = node.number("cpus") or 0
            cores = 0 if cpus else sum(socket.count("cores") for socket in node.each("sockets"))
            memory = node.number("memory_allocated", "memory") or 0
            name = node.text("nodename") or name
            yield Share(node=name, cpus=cpus or cores, are_cores=cores > 0, memory=memory, gres=gres_at(index))
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
    gres, wrong = gres_of_node(entry.text("gres"), entry.text("gres_drained"), entry.text("gres_used"))
    memory = (entry.number("real_memory") or 0) - (entry.number("specialized_memory") or 0)
    threads, most = entry.number("threads") or 1, max(_MOST_THREADS, entry.number("cpus") or 0)
    if threads > most:  # which would count for the jobs of all its partitions
        entry.fault("threads", f"Expected at most {most} threads of a core, got {shown(threads)}")
        threads = 1
    return NodeRecord(
        name=entry.text("name"),
        state=node_state(_state_words(entry, "state", "state_flags")),
        cpus=entry.number("effective_cpus", "cpus") or 0,
        threads=threads,
        sockets=entry.number("sockets") or 1,
        memory=max(0, memory),
        gres=gres,
        fault=wrong,
        features=tuple(features),
        weight=entry.number("weight") or 0,
        partitions=entry.texts("partitions"),
    )


def _partition(entry: Fields) -> PartitionRecord:
    if entry.is_object("maximums"):
        most = entry.inside("maximums")
        shared = most.inside("oversubscribe") if most.is_object("oversubscribe") else None
        flags = shared.texts("flags") if shared else ()
        return PartitionRecord(
            name=entry.text("name"),
            nodes=entry.inside("nodes").text("configured"),
            max_time=_minutes(most, "time"),
            default_time=_minutes(entry.inside("defaults"), "time"),
            tier=entry.inside("priority").number("tier") or 0,
            state=entry.inside("partition").text("state"),
            is_exclusive="exclusive" in flags or most.number("shares") == 0,
            is_of_one_user=_is_of_one_user(entry),
            shares=(shared.number("jobs") or 1) if shared and "force" in flags else 1,
            max_nodes=most.number("nodes") or None,
            min_nodes=entry.inside("minimums").number("nodes") or 1,
            cpus_per_node=most.number("cpus_per_node") or None,
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
        is_of_one_user=_is_of_one_user(entry),
        shares=entry.number("shares") or 1,
        max_nodes=entry.number("max_nodes_per_job", "maximum_nodes_per_job") or None,
        min_nodes=entry.number("min_nodes_per_job", "min nodes per job") or 1,
        cpus_per_node=entry.number("max_cpus_per_node", "maximum_cpus_per_node") or None,
        qos=entry.text("qos"),
        preemption=entry.text("preempt_mode"),
        grace=entry.number("grace_time") or 0,
    )


def _is_of_one_user(entry: Fields) -> bool:
    words = (*entry.texts("flags"), *entry.inside("partition").texts("flags"))
    return any(word.lower().replace("_", " ") == "exclusive user" for word in words)


def _reservation(entry: Fields) -> ReservationRecord:
    cores = {part.text("node"): count_ids(part.text("core")) for part in entry.each("core_specializations")}
    return ReservationRecord(
        name=entry.text("name"),
        start=_required(entry, "start_time"),
        end=_required(entry, "end_time"),
        nodes=entry.text("node_list"),
        users=tuple(dict.fromkeys(entry.texts("users"))),
        accounts=tuple(dict.fromkeys(entry.texts("accounts"))),
        groups=tuple(dict.fromkeys(entry.texts("groups"))),
        flags=entry.texts("flags"),
        licenses=license_amounts(entry.text("licenses")),
        cores=Amounts(cores) if cores else None,
        core_count=entry.number("core_count"),
    )
