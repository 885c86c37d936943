"""What a waiting job of Slurm asks for, as a request of cpsched; or why that cannot be said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cpsched.domain import Amounts, Arrangement, Chunk, FrozenMap, Place, Request, Step
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.slurm.amounts import license_amounts, tres_requests
from cpsched.site.bridge.slurm.records import JobRecord, NodeRecord

#: The property that names a node which some job requires.
HOST = "host"
#: The value of the properties that a node has or has not.
YES = "yes"
#: Generic resources that are parts of a GPU which others cannot have then.
_PARTS = frozenset({"mps", "shard"})
#: The fields of a record on which its request rests, beside the partition.
_ASKED = slice(JobRecord._fields.index("nodes"), JobRecord._fields.index("others") + 1)
_FEATURE = re.compile(r"[^&|,\[\]()*\s]+")


class Inexpressible(Exception):  # noqa: N818 - no error: such a job stays Slurm's
    """The job asks for something that an instance cannot say; the message says what, in words.

    Attributes
    ----------
    is_for_manager : bool
        Whether Slurm's own scheduler is to start it.
    """

    def __init__(self, reason: str, *, is_for_manager: bool = True) -> None:
        self.is_for_manager = is_for_manager
        super().__init__(reason)


def feature_property(feature: str) -> str:
    """Return the property of nodes that have a feature."""
    return f"feature.{feature}"


def outside_property(excluded: str) -> str:
    """Return the property of all nodes but some that a job excludes, given as a host list."""
    return f"outside.{excluded}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is known of the machine when the request of a job is read."""

    #: By name.
    nodes: Mapping[str, NodeRecord]
    #: The nodes of each partition.
    partitions: Mapping[str, Sequence[str]]
    #: Partitions whose jobs have their nodes for themselves.
    exclusive: frozenset[str] = frozenset()
    #: Whether Slurm counts memory; where it does, a job without any takes all that a node has.
    counts_memory: bool = True
    #: Whether Slurm gives whole nodes only (select/linear).
    gives_whole_nodes: bool = False
    #: Whether it is known how Slurm selects.
    is_configured: bool = False
    #: What was found already, by partition, features and excluded nodes: many jobs ask alike. Mutable: a cache.
    sizes: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)
    #: The steps and licences of jobs, by all that these rest on. Mutable: a cache.
    steps: dict[tuple[object, ...], tuple[Step, Amounts]] = field(default_factory=dict, compare=False, repr=False)


def step_of(job: JobRecord, walltime: int, site: Site) -> tuple[Step, Amounts]:
    """Return the request of a waiting job with its walltime (s), and its licences; of jobs that ask alike the same.

    Raises `Inexpressible` if they cannot be said.
    """
    asked = (walltime, job.partitions, *tuple(job)[_ASKED])
    if asked not in site.steps:
        step = Step(walltime=max(1, walltime), request=request_of(job, site))
        site.steps[asked] = step, licenses_of(job)
    return site.steps[asked]


def licenses_of(job: JobRecord) -> Amounts:
    """Return the licences that a job asks for. Raises `Inexpressible` if it asks for one of several."""
    try:
        return license_amounts(job.licenses)
    except ValueError as error:
        raise Inexpressible(f"its licences cannot be read: {error}") from None


def request_of(job: JobRecord, site: Site) -> Request:
    """Return the chunks of a job, one for each node, and how they are placed.

    A job that says only how many tasks it has gets as few nodes as can hold them, and on each as many tasks at most as
    an even division gives: this is what `scontrol` is told when the job is started. Raises `Inexpressible` if it cannot
    be said.
    """
    if job.others:
        raise Inexpressible("; ".join(job.others))
    if len(job.partitions) != 1:
        raise Inexpressible(f"it may run in several partitions ({','.join(job.partitions)})")
    if job.exclusive not in ("", "node"):
        raise Inexpressible(f"it shares its nodes with some jobs only (--exclusive={job.exclusive})")
    required = _names(job.required_nodes)
    most, threads = _largest(job, site)
    where = dict(_where(job))
    nodes, tasks = _layout(job, most, len(required))
    gres = _gres(job, nodes, tasks)
    cpus = -(-_cpus(job, nodes, tasks, gres) // threads) * threads
    is_exclusive = job.exclusive == "node" or job.partitions[0] in site.exclusive or site.gives_whole_nodes
    memory = _memory(job, cpus, gres)
    if not memory and site.counts_memory and site.is_configured:
        is_exclusive = True
    amounts = {"cores": cpus, **gres}
    if memory and site.counts_memory:
        amounts["mem"] = memory
    place = Place(arrangement=Arrangement.SCATTER if nodes > 1 else Arrangement.FREE, exclusive=is_exclusive)
    chunks = [Chunk(count=1, resources=Amounts(amounts), where=FrozenMap({**where, HOST: name})) for name in required]
    if nodes > len(required):
        chunks.append(Chunk(count=nodes - len(required), resources=Amounts(amounts), where=FrozenMap(where)))
    return Request(chunks=tuple(chunks), place=place)


def _names(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        return tuple(dict.fromkeys(expand_hostlist(text)))
    except SyntaxFault as error:
        raise Inexpressible(f"its list of nodes cannot be read: {error.message}") from None


def _largest(job: JobRecord, site: Site) -> tuple[int, int]:
    """Return the most CPUs, and the most threads of a core, of the nodes on which a job may be."""
    key = (job.partitions[0], job.features, job.excluded_nodes)
    if key not in site.sizes:
        usable = [site.nodes[name] for name in site.partitions.get(job.partitions[0], ()) if name in site.nodes]
        if not usable:
            raise Inexpressible(f"its partition {job.partitions[0]} has no nodes")
        excluded, features = frozenset(_names(job.excluded_nodes)), _features(job)
        usable = [node for node in usable if node.name not in excluded and features <= {*node.features}] or usable
        site.sizes[key] = max(node.cpus for node in usable), max(node.threads for node in usable)
    return site.sizes[key]


def _layout(job: JobRecord, most_cpus: int, required: int) -> tuple[int, int]:
    """Return how many nodes the job gets, and the most tasks on one of them."""
    per_task = job.cpus_per_task or max(1, job.cpus // job.tasks)
    nodes = max(1, job.nodes, required)
    if job.tasks_per_node:
        nodes = max(nodes, -(-job.tasks // job.tasks_per_node))
        tasks = job.tasks_per_node if job.tasks >= job.tasks_per_node else job.tasks
    else:
        most = max(1, most_cpus // per_task)
        nodes = max(nodes, -(-job.tasks // most))
        tasks = -(-job.tasks // nodes)
    if job.max_nodes is not None and nodes > job.max_nodes:
        raise Inexpressible(f"it needs {nodes} nodes for its tasks, and asks for at most {job.max_nodes}")
    return nodes, tasks


def _gres(job: JobRecord, nodes: int, tasks: int) -> dict[str, int]:
    """Return the generic resources that the job needs on each node."""
    if job.tres_per_socket:
        raise Inexpressible(f"it asks for resources per socket ({job.tres_per_socket})")
    found: dict[str, int] = {}
    for text, times in ((job.tres_per_node, 1), (job.tres_per_task, tasks), (job.tres_per_job, 1)):
        try:
            amounts = tres_requests(text)
        except ValueError as error:
            raise Inexpressible(f"its resources cannot be read: {error}") from None
        for name, count in amounts.items():
            if name.partition(".")[0] in _PARTS:
                raise Inexpressible(f"it asks for parts of a GPU ({name})")
            if text == job.tres_per_job and nodes > 1:
                raise Inexpressible(
                    f"it asks for {text} in all of its {nodes} nodes, and Slurm chooses how many in each"
                )
            found[name] = max(found.get(name, 0), count * times)
    return found


def _of_tres(text: str, gres: Mapping[str, int]) -> int:
    """Return the amount of something that is given for each of a generic resource, ``gres:gpu:4``."""
    total = 0
    for name, each in tres_requests(text).items():
        total += each * gres.get(name, 0)
    return total


def _cpus(job: JobRecord, nodes: int, tasks: int, gres: Mapping[str, int]) -> int:
    per_task = job.cpus_per_task or max(1, job.cpus // job.tasks)
    cpus = max(tasks * per_task, job.cpus_per_node)
    if nodes == 1:
        cpus = max(cpus, job.cpus)
    try:
        return max(cpus, _of_tres(job.cpus_per_tres, gres))
    except ValueError:
        raise Inexpressible(f"its cores per resource cannot be read ({job.cpus_per_tres})") from None


def _memory(job: JobRecord, cpus: int, gres: Mapping[str, int]) -> int:
    if job.memory_per_tres:
        try:
            return _of_tres(job.memory_per_tres, gres)
        except ValueError:
            raise Inexpressible(f"its memory per resource cannot be read ({job.memory_per_tres})") from None
    return job.memory_per_node or (job.memory_per_cpu or 0) * cpus


def _features(job: JobRecord) -> frozenset[str]:
    """Return the features that each node of the job has."""
    features = job.features.split("&") if job.features else []
    if not all(_FEATURE.fullmatch(feature) for feature in features):
        raise Inexpressible(f"it asks for one of several features ({job.features})")
    return frozenset(features)


def _where(job: JobRecord) -> Iterator[tuple[str, str]]:
    """Yield the properties that each node of the job has."""
    for feature in sorted(_features(job)):
        yield feature_property(feature), YES
    if job.excluded_nodes:
        yield outside_property(job.excluded_nodes), YES
