"""Accounting logs of Torque and PBS: ``date;type;id;key=value key=value …``, a record each time something happens.

Source of the format: Torque Administrator Guide, "Accounting records"; PBS Professional writes the same with more keys.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cpsched.domain import MAX_AMOUNT, MAX_COUNT, MAX_NAME, Amounts, Arrangement, Chunk, FrozenMap, Place, Request
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats.faults import UnusableLine, read_each, shown
from cpsched.formats.files import read_lines
from cpsched.formats.logs.jobs import (
    FEATURE,
    Held,
    JobLog,
    LogAnomaly,
    LogJob,
    LogKind,
    Note,
    log_of,
    read_dependencies,
)
from cpsched.formats.logs.quantities import checked_name, count, mebibytes, torque_seconds
from cpsched.formats.notations import parse_place
from cpsched.formats.request_text import parse_request

#: Countable in a chunk of ``select``; every other item is a property of the node.
_COUNTABLE = frozenset({"cores", "mem", "gpus", "mics"})
#: Items of ``select`` about the start of a job's processes, which take no resources.
_PROCESSES = frozenset({"mpiprocs", "mpihosts", "mpiprogs", "ompthreads", "mpiranks"})
#: Modes of the GPUs of a node specification: how they are shared, not which nodes have them.
_GPU_MODES = frozenset({"default", "exclusive", "exclusive_process", "exclusive_thread", "reseterr", "shared"})
_COUNTED_ITEMS = {"ppn": "cores", "gpus": "gpus", "mics": "mics"}
_COUNTED_VNODE = {"ncpus": "cores", "ngpus": "gpus", "nmics": "mics"}
#: A group of ``exec_vnode``, and an item of it or of ``select``; sizes count in MiB.
_VNODES = re.compile(r"\(([^()]*)\)")
_HELD = re.compile(r":(\w+)=([^:+()]+)")
_SIZED = re.compile(r"[0-9]{1,15}[kmgt]?b", re.IGNORECASE)
#: A slot, a range of slots, or (PBS Pro) a task and how many cores it has.
_SLOTS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|\*([0-9]{1,9}))?")


@dataclass(slots=True)
class _Kind:
    """Mutable: like chunks of a request that is being read."""

    count: int
    resources: dict[str, int] = field(default_factory=lambda: {"cores": 1})
    where: dict[str, str] = field(default_factory=dict)


def read_request(asked: Mapping[str, str], allocation: Sequence[Held]) -> tuple[Request, tuple[Note, ...]]:
    """Return the request of a job.

    ``select`` (PBS) counts first, then ``nodes``, then ``procs`` and ``ncpus``; without any of these, the allocation
    of the job is its request. N nodes of P processors are N chunks of P cores that may share a node, as is Torque's
    default. Memory of the whole job (``mem``, and where that is missing ``vmem``) is shared out
    by cores; memory of a process (``pmem``, ``pvmem``) counts per core, and the larger one of both holds.

    `asked`: without ``Resource_List.``. `allocation`: where the job ran. Raises `UnusableLine` if one is unknown.
    """
    notes: list[Note] = []
    if "select" in asked:
        return _read_select(asked["select"], asked.get("place"), notes), tuple(notes)
    exclusive = asked.get("naccesspolicy", "").lower() in ("singlejob", "singletask")
    if "nodes" in asked:
        kinds, is_marked = _read_nodes(asked["nodes"])
        exclusive |= is_marked
    elif "procs" in asked:
        kinds = [_Kind(count(asked["procs"], "processors", least=1))]
    elif "ncpus" in asked:
        kinds = [_Kind(1, {"cores": count(asked["ncpus"], "processors", least=1)})]
    else:
        got = Counter(held.cores for held in allocation) or Counter({1: 1})
        kinds = [_Kind(number, {"cores": cores}) for cores, number in got.items()]
        said = " and ".join(f"{number} x {cores} cores" for cores, number in got.items())
        notes.append((LogAnomaly.SIZE_IS_WHAT_IT_GOT, f"asks for no nodes: {said} are its size"))
    _share_memory(asked, kinds, notes)
    return Request(chunks=_chunks(kinds), place=Place(exclusive=exclusive)), tuple(notes)


def _read_nodes(text: str) -> tuple[list[_Kind], bool]:
    """``nodes := segment ('+' segment)* ['#' ('shared' | 'excl')]``; return kinds, and whether they are exclusive."""
    body, mark, sharing = text.partition("#")
    if mark and sharing not in ("shared", "excl"):
        raise UnusableLine(f"Expected #shared or #excl, got {shown(sharing)}")
    return [_read_segment(segment) for segment in body.split("+")], sharing == "excl"


def _read_segment(text: str) -> _Kind:
    """``segment := (COUNT | NAME) (':' (ppn=N | gpus=N | mics=N | NAME))*``; names are properties, or the node's."""
    first, *items = text.split(":")
    kind = _Kind(count(first, "nodes", least=1) if first.isdecimal() else 1)
    if not first.isdecimal():
        kind.where[checked_name(first, "a number of nodes or a name")] = FEATURE
    for item in items:
        name, sign, value = item.partition("=")
        if sign and name not in _COUNTED_ITEMS:
            raise UnusableLine(f"Expected ppn, gpus, mics or a property in nodes, got {shown(item)}")
        if sign:
            kind.resources[_COUNTED_ITEMS[name]] = count(value, name, least=1)
        elif not ("gpus" in kind.resources and item in _GPU_MODES):
            kind.where[checked_name(item, "a property in nodes")] = FEATURE
    return kind


def _share_memory(asked: Mapping[str, str], kinds: Sequence[_Kind], notes: list[Note]) -> None:
    of_job = asked.get("mem") or asked.get("vmem")
    of_core = asked.get("pmem") or asked.get("pvmem")
    if of_job is None and of_core is None:
        notes.append((LogAnomaly.NO_MEMORY, "asks for no memory: none is booked"))
        return
    if "mem" not in asked and "pmem" not in asked:
        said = f"vmem={of_job}" if of_job else f"pvmem={of_core}"
        notes.append((LogAnomaly.VIRTUAL_MEMORY, f"asks for no mem: {shown(said)[1:-1]} is its memory"))
    total = mebibytes(of_job) if of_job else 0
    each = mebibytes(of_core) if of_core else 0
    cores = sum(kind.count * kind.resources["cores"] for kind in kinds)
    for kind in kinds:
        own = kind.resources["cores"]
        memory = max(-(-total * own // cores), each * own)
        if memory:
            kind.resources["mem"] = memory


def _chunks(kinds: Sequence[_Kind]) -> tuple[Chunk, ...]:
    for kind in kinds:
        if kind.count > MAX_COUNT or max(kind.resources.values()) > MAX_AMOUNT:
            raise UnusableLine(f"Expected at most {MAX_COUNT} nodes and {MAX_AMOUNT} of a resource, got more")
    return tuple(
        Chunk(count=kind.count, resources=Amounts(kind.resources), where=FrozenMap(kind.where)) for kind in kinds
    )


def _read_select(text: str, place: str | None, notes: list[Note]) -> Request:
    """Return a request in the chunk syntax, which PBS Pro and OpenCCS share."""
    sized = {name for name, value in _HELD.findall(text) if _SIZED.fullmatch(value)}
    try:
        request = parse_request(text, countable=_COUNTABLE | sized).request
    except SyntaxFault as fault:
        raise UnusableLine(f"{fault.message} in select, {shown(text)}") from fault
    chunks = []
    for chunk in request.chunks:
        where = {name: value for name, value in chunk.where.items() if name not in _PROCESSES}
        cores = {} if "cores" in chunk.resources else {"cores": 1}
        chunks.append(
            Chunk(count=chunk.count, resources=Amounts(cores | dict(chunk.resources)), where=FrozenMap(where))
        )
    try:
        placed = Place(arrangement=Arrangement.FREE) if place is None else parse_place(place)
    except SyntaxFault:
        notes.append((LogAnomaly.NOT_SIMULATED, f"asks for place={shown(place)[1:-1]}: placed freely"))
        placed = Place()
    return Request(chunks=tuple(chunks), place=placed)


def with_vnodes(allocation: tuple[Held, ...], fields: Mapping[str, str]) -> tuple[Held, ...]:
    """Return where a job was with what ``exec_vnode`` (PBS) says that it held there besides cores and memory.

    Its groups, ``(n1:ncpus=8:ngpus=2)+(n2:ncpus=8)``, are in the order of the parts of ``exec_host``.
    """
    groups = _VNODES.findall(fields.get("exec_vnode", ""))
    hosts = [part.partition("/")[0] for part in fields.get("exec_host", "").split("+")]
    if not groups or len(groups) != len(hosts):
        return allocation
    others: dict[str, dict[str, int]] = {host: {} for host in hosts}
    for host, group in zip(hosts, groups, strict=True):
        for name, value in _HELD.findall(group):
            ours = _COUNTED_VNODE.get(name, name)
            if ours not in ("cores", "mem") and (value.isdecimal() or _SIZED.fullmatch(value)):
                amount = int(value) if value.isdecimal() else mebibytes(value)
                others[host][ours] = others[host].get(ours, 0) + amount
    return tuple(replace(held, others=Amounts(others.get(held.node, {}))) for held in allocation)


def read_exec_host(text: str) -> tuple[Held, ...]:
    """``exec_host := part ('+' part)*;  part := NODE '/' slot (',' slot)*;  slot := N | N '-' M | N '*' CORES``.

    Returns each node once, in the order of the text. Raises `UnusableLine` if it is something else.
    """
    cores: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for part in text.split("+"):
        node, _, listed = part.partition("/")
        checked_name(node, "a node in exec_host")
        for slot in listed.split(","):
            match = _SLOTS.fullmatch(slot)
            if match is None or (match[2] and int(match[2]) < int(match[1])):
                raise UnusableLine(f"Expected node/slot in exec_host, got {shown(part)}")
            first, last = int(match[1]), int(match[2] or match[1])
            cores[node] += int(match[3]) if match[3] else last - first + 1
            slots[node] = max(slots[node], 0 if match[3] else last + 1)
    return tuple(Held(node=node, cores=number, slots=slots[node]) for node, number in cores.items() if number)


#: A record: its time, type, job, and further fields.
RECORD = re.compile(r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};([A-Za-z]);([^;]*);(.*)")
_TIME = re.compile(r"[0-9]{1,15}")
_STATUS = re.compile(r"-?[0-9]{1,9}")
_LIST = "Resource_List."
#: Beyond it (256 + the number of a signal) a job was killed.
_SIGNALS = 256
_FAILED, _COMPLETED, _CANCELLED = 0, 1, 5


def read_torque(path: str | Path) -> JobLog:
    """Read an accounting log, plain or gzip; a file may have several days.

    A job is read from its last ``E`` (ended) record, or from its ``S`` (started) record if it did not end in the log:
    its run time is unknown then. The log does not have the request of a job with only ``Q`` (queued) and ``D``
    (deleted) records: it is left out. Of other records (aborted, rerun, checkpointed, reservations) nothing is needed.

    Raises `DocumentError` if the file cannot be read or holds not one job.
    """
    reader = _Reader()
    lines = enumerate(read_lines(Path(path)), start=1)
    faults = read_each(((number, text) for number, text in lines if text), reader.read)
    faults += reader.close()
    expected = "an accounting log with started or ended jobs (records S and E)"
    others = {"left_out": tuple(reader.left_out), "has_unix_times": True}
    return log_of(path, LogKind.TORQUE, reader.jobs.values(), faults, expected=expected, **others)


class _Reader:
    """Mutable: the records so far."""

    def __init__(self) -> None:
        self.jobs: dict[str, LogJob] = {}
        self.left_out: list[tuple[LogAnomaly, Fault]] = []
        #: Lines of the first record of each job, and of started jobs with their fields.
        self._first: dict[str, int] = {}
        self._started: dict[str, tuple[int, str]] = {}
        #: Jobs with a record S or E, understood or not.
        self._told: set[str] = set()
        self._deleted: set[str] = set()
        #: Equal requests, each once.
        self._requests: dict[tuple[object, ...], tuple[Request, tuple[Note, ...]]] = {}

    def read(self, text: str, line: int) -> None:
        """Take one record."""
        match = RECORD.fullmatch(text)
        if match is None or not text.replace("\t", " ").isprintable():
            raise UnusableLine(f"Expected date;type;id;key=value, got {shown(text)}")
        kind, written, pairs = match.groups()
        job = written.partition(".")[0]
        if kind in "QSED" and not 0 < len(job) <= MAX_NAME:
            raise UnusableLine(f"Expected a job id, got {shown(written)}")
        if kind in "QSED":
            self._first.setdefault(job, line)
        if kind == "D":
            self._deleted.add(job)
        elif kind in "SE":
            self._told.add(job)
            if kind == "S":
                self._started[job] = line, pairs
            else:
                self._end(job, line, pairs)

    def _end(self, job: str, line: int, pairs: str) -> None:
        self._started.pop(job, None)
        before = self.jobs.get(job)
        notes: tuple[Note, ...] = ()
        if before is not None:
            notes = ((LogAnomaly.RAN_AGAIN, f"ended in line {before.line} before: this run is taken"),)
        ended = self._job(job, line, pairs, notes, has_ended=True)
        self.jobs.pop(job, None)
        self.jobs[job] = ended

    def close(self) -> list[Fault]:
        """Look at the jobs that did not end; return the lines of them that are not understood."""

        def read(started: tuple[str, str], line: int) -> None:
            job, pairs = started
            self.jobs[job] = self._job(job, line, pairs, (), has_ended=False)

        left = [(line, (job, pairs)) for job, (line, pairs) in self._started.items() if job not in self.jobs]
        faults = read_each(left, read)
        for job, line in self._first.items():
            if job not in self._told:
                anomaly = LogAnomaly.DELETED if job in self._deleted else LogAnomaly.NOT_STARTED
                self.left_out.append((anomaly, Fault(f"line {line}", f"job {shown(job)[1:-1]}: has no record S or E")))
        return faults

    def _job(self, job: str, line: int, pairs: str, notes: tuple[Note, ...], *, has_ended: bool) -> LogJob:
        fields = _fields(pairs)
        submit = _time(fields, "ctime" if "ctime" in fields else "qtime")
        start = _time(fields, "start")
        end = _time(fields, "end") if has_ended else None
        if end is not None and end < start:
            raise UnusableLine(f"Expected an end >= start={start}, got {end}")
        eligible = _time(fields, "etime") if "etime" in fields else submit
        walltime = fields.get(f"{_LIST}walltime")
        ignored: list[Note] = []
        after = read_dependencies(fields.get("depend"), ignored, lambda job: job.partition(".")[0])
        request, said = self._request(fields)
        return LogJob(
            id=job,
            line=line,
            submit=submit,
            request=request,
            walltime=None if walltime is None else torque_seconds(walltime),
            runtime=None if end is None else end - start,
            eligible=eligible if eligible > submit else None,
            start=start,
            user=_name(fields, "user"),
            group=_name(fields, "group"),
            project=_name(fields, "account") or _name(fields, "project"),
            queue=_name(fields, "queue"),
            status=_status(fields.get("Exit_status")),
            after=after,
            allocation=with_vnodes(read_exec_host(fields["exec_host"]), fields) if "exec_host" in fields else (),
            notes=(*notes, *said, *ignored),
        )

    def _request(self, fields: Mapping[str, str]) -> tuple[Request, tuple[Note, ...]]:
        """Return the request, the same object for equal requests."""
        asked = {key.removeprefix(_LIST): value for key, value in fields.items() if key.startswith(_LIST)}
        asked.pop("walltime", None)
        has_size = not asked.keys().isdisjoint({"select", "nodes", "procs", "ncpus"})
        got = () if has_size or "exec_host" not in fields else read_exec_host(fields["exec_host"])
        key = (*asked.items(), *got)
        if key not in self._requests:
            self._requests[key] = read_request(asked, got)
        return self._requests[key]


def _fields(pairs: str) -> dict[str, str]:
    """Split ``key=value key=value``; what has no ``=`` belongs to the value before."""
    fields: dict[str, list[str]] = {}
    words: list[str] = []
    for token in pairs.split():
        key, sign, value = token.partition("=")
        if not sign and not fields:
            raise UnusableLine(f"Expected key=value, got {shown(token)}")
        if not sign:
            words.append(token)
            continue
        if key in fields:
            raise UnusableLine(f"Expected {shown(key)[1:-1]} once, got it twice")
        fields[key] = words = [value]
    return {key: " ".join(values) for key, values in fields.items()}


def _time(fields: Mapping[str, str], key: str) -> int:
    text = fields.get(key, "")
    if not _TIME.fullmatch(text):
        raise UnusableLine(f"Expected {key} in seconds since 1970, got {shown(text) if text else 'nothing'}")
    return int(text)


def _name(fields: Mapping[str, str], key: str) -> str | None:
    name = fields.get(key, "").strip('"')
    if len(name) > MAX_NAME:
        raise UnusableLine(f"Expected a {key} of at most {MAX_NAME} characters, got {len(name)}")
    return name or None


def _status(text: str | None) -> int | None:
    """Return the status of the Standard Workload Format that an exit status is.

    0 is completed; 256 and more is killed by a signal (271: deleted with SIGTERM), cancelled; -11, -10 and -12 (over
    the limit of walltime, memory, CPU time), other negative ones (the node could not start it) and those of the job's
    own script are failed.
    """
    if text is None:
        return None
    if not _STATUS.fullmatch(text):
        raise UnusableLine(f"Expected a number as Exit_status, got {shown(text)}")
    code = int(text)
    if code == 0:
        return _COMPLETED
    return _CANCELLED if code >= _SIGNALS else _FAILED
