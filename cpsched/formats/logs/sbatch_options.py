"""The options of an sbatch line: which there are, what the line says by them, and what the job asks for (sbatch(1))."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from cpsched.domain import MAX_AMOUNT, MAX_COUNT, Amounts, Arrangement, Chunk, FrozenMap, Place, Request
from cpsched.formats.faults import shown
from cpsched.formats.logs.jobs import FEATURE, LogAnomaly, Note, UnusableLine
from cpsched.formats.logs.quantities import checked_name, count, mebibytes

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
