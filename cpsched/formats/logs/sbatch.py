"""Events of the Slurm simulator: the time of a call of sbatch, the job's run time, and all arguments.

Source of the format: Simakov et al., "A Slurm simulator: implementation and parametric analysis", PMBS 2017, and the
tools of its authors at the University at Buffalo (``slurm_sim_tools``, files ``*.events``).
"""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cpsched.domain import MAX_AMOUNT, MAX_COUNT, MAX_NAME, Amounts, Arrangement, Chunk, FrozenMap, Place, Request
from cpsched.formats.faults import UnusableLine, read_each, shown
from cpsched.formats.files import read_lines
from cpsched.formats.logs.jobs import FEATURE, JobLog, LogAnomaly, LogJob, LogKind, Note, log_of, read_dependencies
from cpsched.formats.logs.quantities import checked_name, count, mebibytes, slurm_seconds

#: Options with a value, by all their names: what they are called here.
_VALUED = {
    "-sim-walltime": "sim-walltime",
    "-cancel-in": "cancel-in",
    "-jid": "job-id",
    "-j": "job-id",
    "--job-id": "job-id",
    "--uid": "uid",
    "--gid": "gid",
    **dict.fromkeys(("-J", "--job-name"), "job-name"),
    **dict.fromkeys(("-t", "--time"), "time"),
    **dict.fromkeys(("-A", "--account"), "account"),
    **dict.fromkeys(("-p", "--partition"), "partition"),
    **dict.fromkeys(("-q", "--qos"), "qos"),
    **dict.fromkeys(("-N", "--nodes"), "nodes"),
    **dict.fromkeys(("-n", "--ntasks"), "ntasks"),
    **dict.fromkeys(("-c", "--cpus-per-task"), "cpus-per-task"),
    "--ntasks-per-node": "ntasks-per-node",
    "--mem": "mem",
    "--mem-per-cpu": "mem-per-cpu",
    "--gres": "gres",
    "--gpus-per-node": "gpus-per-node",
    **dict.fromkeys(("-C", "--constraint"), "constraint"),
    **dict.fromkeys(("-d", "--dependency"), "dependency"),
}
#: Options that say nothing about what is scheduled, with a value and without.
_IDLE = frozenset(
    {"-o", "--output", "-e", "--error", "-D", "--chdir", "--comment", "--mail-type", "--mail-user", "-sleep"}
)
_IDLE_FLAGS = frozenset({"--requeue", "--no-requeue", "--parsable", "-Q", "--quiet"})
_COUNTABLE = {"gpu": "gpus", "mic": "mics"}


def read_options(text: str) -> dict[str, str]:
    """Split the arguments of sbatch; an option that occurs twice has its last value, as in sbatch.

    ``--exclusive`` has the value of ``--exclusive=user``, or none. What follows the script is for the script.

    Raises `UnusableLine` if an option is none of those that are known here: it might ask for anything.
    """
    try:
        tokens = shlex.split(text) if {'"', "'", "\\"} & set(text) else text.split()
    except ValueError as error:
        raise UnusableLine(f"Expected the arguments of sbatch, got: {error}") from error
    found: dict[str, str] = {}
    rest = iter(tokens)
    for token in rest:
        name, sign, value = token.partition("=") if token.startswith("--") else (token, "", "")
        if name == "--exclusive":
            found["exclusive"] = value
        elif name in _VALUED or name in _IDLE:
            given = value if sign else next(rest, None)
            if given is None:
                raise UnusableLine(f"Expected a value of {name}, got the end of the line")
            found[_VALUED.get(name, name)] = given
        elif token[:2] in _VALUED and not token.startswith("--"):
            found[_VALUED[token[:2]]] = token[2:]
        elif token.startswith("-") and token not in _IDLE_FLAGS:
            raise UnusableLine(f"Expected an option that is simulated, got {shown(token)}")
        elif not token.startswith("-"):
            break
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _PerNode:
    """The amounts that a job takes on each of its nodes, besides cores, and the properties that these must have."""

    resources: dict[str, int]
    where: FrozenMap[str, str]
    memory_per_core: int


def read_request(options: Mapping[str, str]) -> tuple[Request, tuple[Note, ...]]:
    """Return the request of a job.

    On N nodes it is one chunk per node, on nodes of its own (``scatter``), over which the tasks are spread evenly:
    18 tasks on 4 nodes are two chunks of 5 cores and two of 4. Without ``-N`` each task is a chunk of its own that
    may lie anywhere, except where amounts per node (``--mem``, ``--gres``) are asked for: then all is on one node.
    Features (``-C a&b``) become properties of that name with the value ``yes``.

    Raises `UnusableLine` if one of the options is not understood, or asks for what a request cannot say.
    """
    notes: list[Note] = []
    per_node = _read_per_node(options, notes)
    cores = count(options.get("cpus-per-task", "1"), "-c", least=1)
    nodes, tasks = _read_size(options, per_node, notes)
    if nodes is None:
        kinds = [(tasks, 1)]
    else:
        least, more = divmod(tasks, nodes)
        kinds = [(number, size) for number, size in ((more, least + 1), (nodes - more, least)) if number]
    chunks = tuple(_chunk(number, size * cores, per_node) for number, size in kinds)
    scattered = nodes is not None and nodes > 1
    place = Place(
        arrangement=Arrangement.SCATTER if scattered else Arrangement.FREE, exclusive=_is_exclusive(options, notes)
    )
    return Request(chunks=chunks, place=place), tuple(notes)


def _read_size(options: Mapping[str, str], per_node: _PerNode, notes: list[Note]) -> tuple[int | None, int]:
    """Return the number of nodes, None where it does not matter, and that of tasks."""
    most = options.get("ntasks-per-node")
    tasks_per_node = None if most is None else count(most, "--ntasks-per-node", least=1)
    nodes = None
    if "nodes" in options:
        fewest, dash, _ = options["nodes"].partition("-")
        nodes = count(fewest, "-N", least=1)
        if dash:
            notes.append((LogAnomaly.NOT_SIMULATED, f"asks for -N {shown(options['nodes'])[1:-1]}: {nodes} are taken"))
    tasks = count(options["ntasks"], "-n", least=1) if "ntasks" in options else (nodes or 1) * (tasks_per_node or 1)
    if nodes is None and tasks_per_node is not None:
        nodes = -(-tasks // tasks_per_node)
    if nodes is None and (tasks == 1 or per_node.resources):
        nodes = 1
        if tasks > 1:
            notes.append((LogAnomaly.ON_ONE_NODE, "has no -N, but amounts per node: one node"))
    if nodes is not None and nodes > tasks:
        notes.append((LogAnomaly.NOT_SIMULATED, f"asks for {nodes} nodes for {tasks} tasks: for each task a node"))
        nodes = tasks
    if max(nodes or 0, tasks) > MAX_COUNT:
        raise UnusableLine(f"Expected at most {MAX_COUNT} nodes and tasks, got {max(nodes or 0, tasks)}")
    return nodes, tasks


def _chunk(number: int, cores: int, per_node: _PerNode) -> Chunk:
    resources = {"cores": cores} | per_node.resources
    if per_node.memory_per_core:
        resources["mem"] = per_node.memory_per_core * cores
    if max(resources.values()) > MAX_AMOUNT:
        raise UnusableLine(f"Expected at most {MAX_AMOUNT} of a resource on a node, got more")
    return Chunk(count=number, resources=Amounts(resources), where=per_node.where)


def _read_per_node(options: Mapping[str, str], notes: list[Note]) -> _PerNode:
    resources: dict[str, int] = {}
    each = 0
    if "mem" in options:
        resources["mem"] = mebibytes(options["mem"], default="m")
    elif "mem-per-cpu" in options:
        each = mebibytes(options["mem-per-cpu"], default="m")
    else:
        notes.append((LogAnomaly.NO_MEMORY, "asks for no memory: none is booked"))
    for entry in options["gres"].split(",") if "gres" in options else ():
        _take_gres(entry.removeprefix("gres:").removeprefix("gres/"), resources, notes)
    if "gpus-per-node" in options:
        _take_gres(f"gpu:{options['gpus-per-node']}", resources, notes)
    # all features, joined by &: other forms (one of several, counts) no request can say
    features = options.get("constraint") or ""
    named = (checked_name(name, "features joined by &") for name in features.split("&") if features)
    where = FrozenMap(dict.fromkeys(named, FEATURE))
    return _PerNode(
        resources={name: amount for name, amount in resources.items() if amount}, where=where, memory_per_core=each
    )


def _take_gres(entry: str, resources: dict[str, int], notes: list[Note]) -> None:
    """``gres := NAME [':' TYPE] [':' COUNT]``; the type is no part of a request."""
    name, *rest = entry.split(":")
    number = count(rest.pop(), "an amount in gres") if rest and rest[-1].isdecimal() else 1
    if len(rest) > 1:
        raise UnusableLine(f"Expected a resource such as gpu:2, got {shown(entry)}")
    if rest:
        notes.append((LogAnomaly.NOT_SIMULATED, f"asks for {shown(entry)[1:-1]}: of any type"))
    resource = _COUNTABLE.get(name, checked_name(name, "a resource in gres"))
    resources[resource] = max(resources.get(resource, 0), number)


def _is_exclusive(options: Mapping[str, str], notes: list[Note]) -> bool:
    sharing = options.get("exclusive")
    if sharing:
        notes.append(
            (LogAnomaly.NOT_SIMULATED, f"asks for --exclusive={shown(sharing)[1:-1]}: not shared with other jobs")
        )
    takes_all = options.get("mem") == "0"
    if takes_all:
        notes.append((LogAnomaly.NOT_SIMULATED, "asks for --mem=0, all of a node: not shared with other jobs"))
    return sharing is not None or takes_all


#: ``-dt SECONDS -e TYPE | arguments``, the two in either order.
EVENT = re.compile(r"(?=[^|]*-dt\s+(?P<time>\S+))(?=[^|]*-e\s+(?P<kind>\w+))[^|]*\|(?P<arguments>.*)")
_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{0,9})?")
#: The simulator knows a job by the number in its name.
_NUMBERED = re.compile(r"job(?:id)?_0*([0-9]{1,18})")
_WITHOUT_LIMIT = frozenset({"0", "-1", "infinite", "unlimited"})
#: The options that determine the request.
_ASKING = frozenset({"nodes", "ntasks", "cpus-per-task", "ntasks-per-node", "mem", "mem-per-cpu", "gres"})
_ASKING |= {"gpus-per-node", "constraint", "exclusive"}
#: Equal requests, each once.
_Requests = dict[frozenset[tuple[str, str]], tuple[Request, tuple[Note, ...]]]


def read_sbatch(path: str | Path) -> JobLog:
    """Read the events of a simulation, plain or gzip.

    Submissions are rounded down to whole seconds, run times up. A run time below 0 is without end: it is the walltime.
    The queue is the QOS, and the partition where there is none.

    Raises `DocumentError` if the file cannot be read or holds not one job.
    """
    jobs = list[LogJob]()
    requests: _Requests = {}
    lines = enumerate(read_lines(Path(path)), start=1)
    events = ((number, text) for number, text in lines if text and not text.startswith("#"))
    faults = read_each(events, lambda text, line: jobs.append(_job(text, line, requests)))
    return log_of(path, LogKind.SBATCH, jobs, faults, expected="sbatch events")


def _job(text: str, line: int, requests: _Requests) -> LogJob:
    match = EVENT.fullmatch(text)
    if match is None or not text.replace("\t", " ").isprintable():
        raise UnusableLine(f"Expected -dt SECONDS -e submit_batch_job | arguments of sbatch, got {shown(text)}")
    if match["kind"] != "submit_batch_job":
        raise UnusableLine(f"Expected the event submit_batch_job, got {shown(match['kind'])}, which is not simulated")
    submit = math.floor(_number(match["time"], "-dt"))
    options = read_options(match["arguments"])
    notes: list[Note] = []
    key = frozenset((name, value) for name, value in options.items() if name in _ASKING)
    if key not in requests:
        requests[key] = read_request(options)
    request, said = requests[key]
    limit = options.get("time")
    walltime = None if limit is None or limit.lower() in _WITHOUT_LIMIT else slurm_seconds(limit)
    runtime = _read_runtime(options, walltime, notes)

    def number_of(job: str) -> str:
        return job.lstrip("0") or "0"

    after = read_dependencies(options.get("dependency"), notes, number_of, is_whole=True)
    partition, _, others = options.get("partition", "").partition(",")
    if others:
        notes.append((LogAnomaly.NOT_SIMULATED, "asks for one of several partitions: the first one"))
    if "cancel-in" in options:
        notes.append((LogAnomaly.NOT_SIMULATED, "is cancelled by its user some time: left to itself"))
    return LogJob(
        id=_read_id(options, line),
        line=line,
        submit=submit,
        request=request,
        walltime=walltime,
        runtime=runtime,
        user=_name(options, "uid"),
        group=_name(options, "gid"),
        project=_name(options, "account"),
        queue=_name(options, "qos") or partition or None,
        partition=partition or None,
        after=after,
        notes=(*said, *notes),
    )


def _number(text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UnusableLine(f"Expected {what} in seconds, got {shown(text)}")
    return float(text)


def _name(options: Mapping[str, str], key: str) -> str | None:
    name = options.get(key)
    if name is not None and not 0 < len(name) <= MAX_NAME:
        raise UnusableLine(f"Expected a {key} of 1 to {MAX_NAME} characters, got {len(name)}")
    return name


def _read_id(options: Mapping[str, str], line: int) -> str:
    """Return the job's number from its option or its name; else its name; else its line."""
    written = _name(options, "job-id") or _name(options, "job-name") or f"line{line}"
    match = _NUMBERED.fullmatch(written)
    return match[1] if match else written


def _read_runtime(options: Mapping[str, str], walltime: int | None, notes: list[Note]) -> int | None:
    if "sim-walltime" not in options:
        return None
    seconds = math.ceil(_number(options["sim-walltime"], "-sim-walltime"))
    if seconds < 0:
        notes.append((LogAnomaly.RUNS_TO_THE_LIMIT, f"has a run time of {seconds}: its walltime is"))
        return walltime
    return seconds
