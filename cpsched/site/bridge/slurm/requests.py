"""What a waiting job of Slurm asks for, as a request of cpsched; or why that cannot be said."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, repeat
from operator import itemgetter
from typing import NamedTuple

from cpsched.domain import MAX_COUNT, Amounts, Arrangement, Chunk, FrozenMap, Job, Place, Request, Step
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.slurm.amounts import PARTS, license_amounts, tres_requests
from cpsched.site.bridge.slurm.features import ALIKE, counted_features, feature_property, features_of
from cpsched.site.bridge.slurm.records import JobRecord, NodeRecord, PartitionRecord
from cpsched.site.bridge.slurm.states import CLOSED
from cpsched.site.bridge.slurm.topology import BLOCK, FLAT, Topology

_NOTHING = Amounts()
#: The property that names a node which some job requires.
HOST = "host"
#: The value of the properties that a node has or has not.
YES = "yes"
#: The most requests that one job has.
_MOST_CHOICES = 8
#: The fields of a record on which its request rests, beside the partition.
_ASKED = slice(JobRecord._fields.index("nodes"), JobRecord._fields.index("others") + 1)


def partition_property(partition: str) -> str:
    """Return the property of the nodes of a partition, for jobs that may run in one of several."""
    return f"partition.{partition}"


def outside_property(excluded: str) -> str:
    """Return the property of all nodes but some that a job excludes, given as a host list."""
    return f"outside.{excluded}"


#: What a running job has on each of its nodes, with the kind of its chunk there; and the request of all of it.
Holding = tuple[Sequence[tuple[Amounts, int]], tuple[Step, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is known of the machine when the request of a job is read."""

    #: By name.
    nodes: Mapping[str, NodeRecord]
    #: The nodes of each partition, and of those that are planned as one. Mutable: these come with the jobs.
    partitions: dict[str, Sequence[str]]
    #: Whether Slurm counts memory; where it does, a job without any takes all that a node has.
    counts_memory: bool = True
    #: Whether Slurm gives whole nodes only (select/linear).
    gives_whole_nodes: bool = False
    #: Whether it gives whole sockets only.
    gives_whole_sockets: bool = False
    #: Whether it is known how Slurm selects.
    is_configured: bool = False
    described: Mapping[str, PartitionRecord] = field(default_factory=dict)
    topology: Topology = FLAT
    #: What was found already, by partition, features and excluded nodes: many jobs ask alike. Mutable: a cache.
    usable: dict[tuple[str, str, str], Sequence[tuple[NodeRecord, int]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    #: The steps and licences of jobs, by all that these rest on. Mutable: a cache.
    steps: dict[tuple[object, ...], tuple[Sequence[Step], Amounts]] = field(
        default_factory=dict, compare=False, repr=False
    )
    requests: dict[tuple[object, ...], Sequence[Request]] = field(default_factory=dict, compare=False, repr=False)
    #: What running jobs hold, by all that it rests on. Mutable: a cache.
    holding: dict[tuple[object, ...], Holding] = field(default_factory=dict, compare=False, repr=False)

    def limits(self, partition: str) -> PartitionRecord:
        """Return what Slurm says of a partition; of one that it does not describe nothing is limited."""
        return self.described.get(partition) or PartitionRecord(name=partition)

    def queues_of(self, job: JobRecord) -> Sequence[str]:
        """Return the queues in which a job can be planned, the best first: its partitions, or all of them as one.

        They are one where nothing but their nodes tells them apart.
        """
        if len(job.partitions) < 2 or not all(name in self.described for name in job.partitions):
            return job.partitions[:1]
        open_ = [one for name in job.partitions if (one := self.described[name]).state not in CLOSED]
        if len({replace(one, name="", nodes="") for one in open_}) == 1 and open_[0].cpus_per_node is None:
            return (self.union([one.name for one in open_]),)
        return [one.name for one in sorted(open_ or [self.described[job.partitions[0]]], key=lambda one: -one.tier)]

    def union(self, names: Sequence[str]) -> str:
        """Return the queue of the jobs that may run in any of these partitions; it has the nodes of all."""
        name = ",".join(sorted(names))
        nodes = (node for one in names for node in self.partitions[one])
        self.partitions.setdefault(name, tuple(dict.fromkeys(nodes)))
        return name

    def has_room(self, partition: str, request: Request) -> bool:
        """Tell whether each chunk of a request fits on some node of a partition that has nothing else."""
        nodes = [self.nodes[name] for name in self.partitions[partition] if name in self.nodes]
        has = [{"cores": node.cpus, "mem": node.memory, **node.gres} for node in nodes]
        return all(
            any(
                all(
                    one.get(name, amount if name.startswith("cores.") else 0) >= amount
                    for name, amount in chunk.resources.items()
                )
                for one in has
            )
            for chunk in request.chunks
        )


def steps_of(job: JobRecord, walltime: int, site: Site) -> tuple[Sequence[Step], Amounts]:
    """Return the requests of a waiting job with its walltime (s), and its licences; of jobs that ask alike the same.

    Slurm runs it by one of them. `job`: its first partition is that in which it runs; with others it asks for the nodes
    of that one. Raises `Inexpressible` if they cannot be said.
    """
    asked = (walltime, job.partitions, *tuple(job)[_ASKED])
    if asked not in site.steps:
        requests = site.requests.get(asked[1:])
        if requests is None:
            requests = site.requests[asked[1:]] = _requests_of(job, site)
        steps = tuple(Step(walltime=max(1, walltime), request=request) for request in requests)
        site.steps[asked] = steps, licenses_of(job)
    return site.steps[asked]


def partition_of(job: Job) -> str:
    """Return the partition in which a waiting job runs by its own request."""
    start = partition_property("")
    named = (name.removeprefix(start) for name in job.request.chunks[0].where if name.startswith(start))
    return next(named, (job.queue or "").partition(",")[0])


def licenses_of(job: JobRecord) -> Amounts:
    """Return the licences that a job asks for. Raises `Inexpressible` if it asks for one of several."""
    try:
        return license_amounts(job.licenses)
    except ValueError as error:
        raise Inexpressible(f"its licences cannot be read: {error}") from None


def _requests_of(job: JobRecord, site: Site) -> Sequence[Request]:
    """Return the requests of a job: one for each of the features that all of its nodes have alike (``[a|b]``), and for
    each number of nodes that it allows (``-N2-4``) and on which it has fewer tasks on each.
    """
    found: list[Request] = []
    reason: Inexpressible | None = None
    for alike in _of_one_feature(job, site):
        try:
            first = request_of(alike, site)
            found.append(first)
            nodes = sum(chunk.count for chunk in first.chunks)
            found += [request_of(alike.but(nodes=number), site) for number in _sizes(job, nodes, first, site)]
        except Inexpressible as error:
            reason = reason or error
    if not found and reason is not None:
        raise reason
    return tuple(dict.fromkeys(found))[:_MOST_CHOICES]


def _of_one_feature(job: JobRecord, site: Site) -> Sequence[JobRecord]:
    """Return a job that asks for alike nodes by each of their features; one on a single node may have any of them."""
    if not ALIKE.fullmatch(job.features):
        return (job,)
    one = job.but(features=job.features.strip("[]"))
    if sum(chunk.count for chunk in request_of(one, site).chunks) == 1:
        return (one,)
    return [job.but(features=feature) for feature in one.features.split("|")]


def _sizes(job: JobRecord, nodes: int, request: Request, site: Site) -> Sequence[int]:
    """Return on how many nodes a job may be besides: on any fewer nodes it has more tasks on each."""
    found: list[int] = []
    each = -(-job.tasks // nodes)
    partition = next(iter(job.partitions), "")
    limits = (
        job.max_nodes or 0,
        job.tasks,
        len(site.partitions[partition]),
        site.limits(partition).max_nodes or job.tasks,
    )
    for number in range(nodes + 1, 0 if job.tasks_per_node or request.place.exclusive else min(limits) + 1):
        if -(-job.tasks // number) < each:
            each = -(-job.tasks // number)
            found.append(number)
    return found[:: -max(1, -(-len(found) // (_MOST_CHOICES - 1)))][::-1]


def request_of(job: JobRecord, site: Site) -> Request:
    """Return the chunks of a job, one for each node, and how they are placed.

    A job that says only how many tasks it has gets as few nodes as can hold them, and on each as many tasks at most as
    an even division gives: this is what `scontrol` is told when the job is started. Where no even division fits, the
    largest nodes are filled. Raises `Inexpressible` if it cannot be said.
    """
    if job.others:
        raise Inexpressible("; ".join(job.others))
    if job.exclusive not in ("", "node", "user"):
        raise Inexpressible(f"it shares its nodes with some jobs only (--exclusive={job.exclusive})")
    partition = next(iter(job.partitions), "")
    required = _names(job.required_nodes)
    need = _needs(job)
    counted = counted_features(job.features)
    if counted and required:
        raise Inexpressible(f"it asks for nodes, and for others by counts of features ({job.features})")
    view = job.but(features="" if counted else job.features)
    nodes = _usable(view, partition, site)
    parts = _layout(job, need, nodes, partition, site, required or counted)
    if job.features.startswith("[") and not counted and len(parts) > 1:
        raise Inexpressible(f"it asks for nodes that all have the same of some features ({job.features})")
    is_exclusive = job.exclusive != "" or site.limits(partition).is_alone or site.gives_whole_nodes
    if site.counts_memory and site.is_configured and not (need.memory or need.of_gres_memory):
        is_exclusive = True
    where = dict(_where(view))
    limit = site.limits(partition).cpus_per_node
    named = [(HOST, name) for name in required] or [(feature_property(name), YES) for name in counted]
    counts = Counter(zip(parts, chain(named, repeat(None)), strict=False))
    kinds = Counter[tuple[Amounts, FrozenMap[str, str]]]()
    for (part, name), number in counts.items():
        amounts = _amounts(job, need, part, len(parts), nodes, site)
        if limit is not None:
            if amounts["cores"] > limit:
                reason = f"it takes {amounts['cores']} CPUs of a node, and MaxCPUsPerNode of {partition} is {limit}"
                raise Inexpressible(reason, is_for_manager=False)
            amounts[counter_of(partition)] = amounts["cores"]
        kind = Amounts(amounts), FrozenMap({**where, name[0]: name[1]} if name else where)
        kinds[kind] += number
    arrangement = Arrangement.SCATTER if len(parts) > 1 else Arrangement.FREE
    within = job.within or (BLOCK if len(parts) <= site.topology.block_size else "") if len(parts) > 1 else ""
    segment = job.segment if within == BLOCK and job.segment is not None and job.segment < len(parts) else None
    if segment is not None and len(kinds) > 1:
        raise Inexpressible("it asks for segments of nodes that differ (--segment)")
    place = Place(arrangement=arrangement, exclusive=is_exclusive, within=within or None, segment=segment)
    groups = site.topology.levels.get(within, FrozenMap()).values()
    sizes = (len({*group}.intersection(site.partitions[partition])) for group in groups)
    if within and not groups and site.topology.notes:
        raise Inexpressible(f"no {within} is known: {site.topology.notes[0]}")
    if within and sum(place.most_in_group(len(parts), size) for size in sizes) < len(parts):
        asked = f"{len(parts)} nodes that it asks for under one" if segment is None else f"segments of {segment} nodes"
        raise Inexpressible(f"no {within} has the {asked}")
    chunks = tuple(Chunk(count=count, resources=amounts, where=at) for (amounts, at), count in kinds.items())
    return Request(chunks=chunks, place=place)


def counter_of(partition: str) -> str:
    """Return the resource of nodes of which all jobs of a partition together have so many CPUs of a node."""
    return f"cores.{partition}"


class _Need(NamedTuple):
    #: CPUs of a task; 0: its tasks share the CPUs that it has in all.
    cpus: int
    #: Generic resources of a task, of a node, and of the job.
    of_task: Amounts
    of_node: Amounts
    of_job: Amounts
    #: Whether it asks for memory, and of this what is for each of a generic resource.
    memory: int
    of_gres_memory: bool


class _Part(NamedTuple):
    """What of a job is on one node."""

    tasks: int
    gres: Amounts


def _needs(job: JobRecord) -> _Need:
    if job.tres_per_socket:
        raise Inexpressible(f"it asks for resources per socket ({job.tres_per_socket})")
    try:
        of_task, of_node, of_job = map(tres_requests, (job.tres_per_task, job.tres_per_node, job.tres_per_job))
    except ValueError as error:
        raise Inexpressible(f"its resources cannot be read: {error}") from None
    for name in (*of_task, *of_node, *of_job):
        if name.partition(".")[0] in PARTS:
            raise Inexpressible(f"it asks for parts of a GPU ({name})")
    cpus = job.cpus_per_task or of_task.get("cores") or job.cpus // job.tasks
    memory = job.memory_per_node or job.memory_per_cpu or of_task.get("mem") or 0
    return _Need(
        cpus=0 if job.tasks > job.cpus else max(1, cpus),
        of_task=_gres(of_task),
        of_node=_gres(of_node),
        of_job=_gres(of_job),
        memory=memory,
        of_gres_memory=bool(job.memory_per_tres),
    )


def _gres(amounts: Amounts) -> Amounts:
    return Amounts({name: count for name, count in amounts.items() if name not in ("cores", "mem")})


def _names(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        return tuple(dict.fromkeys(expand_hostlist(text)))
    except SyntaxFault as error:
        raise Inexpressible(f"its list of nodes cannot be read: {error.message}") from None


def _usable(job: JobRecord, partition: str, site: Site) -> Sequence[tuple[NodeRecord, int]]:
    """Return the kinds of nodes on which a job may be: a node of each, and how many there are."""
    key = (partition, job.features, job.excluded_nodes)
    if key not in site.usable:
        usable = [site.nodes[name] for name in site.partitions.get(partition, ()) if name in site.nodes]
        if not usable:
            raise Inexpressible(f"its partition {partition} has no nodes")
        excluded, has = frozenset(_names(job.excluded_nodes)), features_of(job.features)
        usable = [node for node in usable if node.name not in excluded and has(node.features)] or usable
        alike: dict[object, tuple[NodeRecord, int]] = {}
        for node in usable:
            kind = node.cpus, node.threads, node.sockets, node.memory, node.gres
            alike[kind] = alike.get(kind, (node, 0))[0], alike.get(kind, (node, 0))[1] + 1
        site.usable[key] = tuple(alike.values())
    return site.usable[key]


def _layout(
    job: JobRecord,
    need: _Need,
    usable: Sequence[tuple[NodeRecord, int]],
    partition: str,
    site: Site,
    named: Sequence[str],
) -> list[_Part]:
    """Return the parts of a job, one for each node. `named`: the nodes, or features of nodes, that it asks for."""
    fewest = max(job.nodes, site.limits(partition).min_nodes, len(named))
    if job.tasks_per_node:
        fewest = max(fewest, -(-job.tasks // job.tasks_per_node))
    of_partition = site.limits(partition).max_nodes
    most = min((limit for limit in (job.max_nodes, of_partition) if limit is not None), default=None)
    kinds = sorted(
        ((_room(job, need, node, partition, site), node, count) for node, count in usable), key=itemgetter(0)
    )
    total = sum(count for _, _, count in kinds)
    least = -(-job.tasks // max(1, kinds[-1][0]))
    number = max(fewest, least)
    if number > MAX_COUNT:
        raise Inexpressible(f"it needs {number} nodes")
    required = [_room(job, need, site.nodes[name], partition, site) for name in named if name in site.nodes]
    room = min(required, default=job.tasks)

    def fits(number: int) -> bool:
        """Tell whether so many nodes, and those that are required, have room for equal parts of the job."""
        part = _even(job, need, number)[0]
        is_by_gres = job.cpus_per_tres or job.memory_per_tres
        amounts = _amounts(job, need, part, number, usable, site) if is_by_gres else {}
        cores, memory = amounts.get("cores", 0), amounts.get("mem", 0)
        return part.tasks <= room and number <= sum(
            count
            for tasks, node, count in kinds
            if tasks >= part.tasks and node.cpus >= cores and node.memory >= memory
            if all(node.gres.get(name, 0) >= each for name, each in part.gres.items())
        )

    smallest = max((job.tasks, *need.of_job.values()))  # on more nodes no part is smaller
    while number < min(total, most or total, smallest) and not fits(number):
        number += 1
    parts = _even(job, need, number)
    if not job.tasks_per_node and not fits(number):
        parts = _uneven(job, need, fewest, kinds) or _even(job, need, max(fewest, least))
    if most is not None and len(parts) > most:
        whose = "it asks for" if most == job.max_nodes else f"MaxNodes of its partition {partition} is"
        raise Inexpressible(f"it needs {len(parts)} nodes for its tasks, and {whose} at most {most}")
    return parts


def _even(job: JobRecord, need: _Need, number: int) -> list[_Part]:
    """Return equal parts of a job, its tasks rounded up; what it asks for in all is in parts that differ by one."""
    tasks = min(job.tasks, job.tasks_per_node) if job.tasks_per_node else -(-job.tasks // number)
    if not need.of_job:
        return [_Part(tasks, _NOTHING)] * number
    shares = {name: divmod(count, number) for name, count in need.of_job.items()}
    return [
        _Part(tasks, Amounts({name: each + (at < more) for name, (each, more) in shares.items() if each + (at < more)}))
        for at in range(number)
    ]


def _uneven(job: JobRecord, need: _Need, fewest: int, kinds: Sequence[tuple[int, NodeRecord, int]]) -> list[_Part]:
    """Return parts of a job with which the largest nodes are filled, by the generic resource that it asks for in all,
    or else by its tasks; none if they are too few.
    """
    for name, count in (*(need.of_job.items() if len(need.of_job) == 1 else ()), ("", job.tasks)):
        sizes = ((node.gres.get(name, 0) if name else tasks, tasks, number) for tasks, node, number in kinds)
        each = ((size, tasks) for size, tasks, number in sizes if size for _ in range(min(number, count)))
        nodes = sorted(each, reverse=True)
        sums = accumulate(size for size, _ in nodes)
        filled = next((at for at, total in enumerate(sums, 1) if at >= fewest and total >= count), None)
        if filled is None:
            continue
        parts = _even(job, need, filled)
        shares = _filled(count, [size for size, _ in nodes[:filled]])
        if not name:
            return [part._replace(tasks=mine) for part, mine in zip(parts, shares, strict=True)]
        if all(parts[0].tasks <= tasks for _, tasks in nodes[:filled]):
            return [part._replace(gres=Amounts({name: mine})) for part, mine in zip(parts, shares, strict=True)]
    return []


def _filled(tasks: int, room: Sequence[int]) -> Iterator[int]:
    """Yield how many of some tasks are on each node if the largest are filled first, and each has one."""
    for at, most in enumerate(room):
        mine = min(most, tasks - (len(room) - at - 1))
        tasks -= mine
        yield mine


def _room(job: JobRecord, need: _Need, node: NodeRecord, partition: str, site: Site) -> int:
    """Return how many tasks of a job a node can have."""
    cpus = min(node.cpus, site.limits(partition).cpus_per_node or node.cpus)
    if job.threads_per_core and job.threads_per_core < node.threads:
        cpus = cpus // node.threads * job.threads_per_core
    found = [job.tasks]
    if need.cpus and job.tasks_per_core and not job.threads_per_core:
        found = [cpus // node.threads // -(-need.cpus // node.threads) * _sharing(job, need, node.threads)]
    elif need.cpus:
        found = [cpus // need.cpus]
    found += [node.gres.get(name, 0) // count for name, count in need.of_task.items()]
    of_cpu = (job.memory_per_cpu or 0) * need.cpus
    if site.counts_memory and node.memory and of_cpu:
        found.append(node.memory // of_cpu)
    if any(node.gres.get(name, 0) < count for name, count in need.of_node.items()):
        return 0
    return min(found)


def _amounts(
    job: JobRecord, need: _Need, part: _Part, nodes: int, usable: Sequence[tuple[NodeRecord, int]], site: Site
) -> dict[str, int]:
    gres: dict[str, int] = {name: count * part.tasks for name, count in need.of_task.items()}
    for amounts in (need.of_node, part.gres):
        gres |= {name: max(gres.get(name, 0), count) for name, count in amounts.items()}
    threads = max(node.threads for node, _ in usable)
    cpus = max(part.tasks * need.cpus, job.cpus_per_node)
    if need.cpus and job.tasks_per_core and not job.threads_per_core:
        cpus = max(cpus, -(-part.tasks // _sharing(job, need, threads)) * -(-need.cpus // threads) * threads)
    if nodes == 1 or not need.cpus:
        cpus = max(cpus, -(-job.cpus // nodes))
    try:
        cpus = max(cpus, _of_tres(job.cpus_per_tres, gres))
    except ValueError:
        raise Inexpressible(f"its cores per resource cannot be read ({job.cpus_per_tres})") from None
    used = threads if job.threads_per_core is None else job.threads_per_core
    if used > threads:
        raise Inexpressible(f"it asks for {used} threads of a core (--threads-per-core), and there are {threads}")
    cores = -(-cpus // used)
    if site.gives_whole_sockets:
        of_socket = max(node.cpus // node.threads // node.sockets for node, _ in usable) or 1
        cores = -(-cores // of_socket) * of_socket
    cpus = cores * threads
    memory = job.memory_per_node or (job.memory_per_cpu or 0) * cores * used or (need.memory * part.tasks)
    if job.memory_per_tres:
        try:
            memory = _of_tres(job.memory_per_tres, gres)
        except ValueError:
            raise Inexpressible(f"its memory per resource cannot be read ({job.memory_per_tres})") from None
    return {"cores": cpus, **gres, **({"mem": memory} if memory and site.counts_memory else {})}


def _sharing(job: JobRecord, need: _Need, threads: int) -> int:
    """Return how many tasks of a job are on one core."""
    return min(job.tasks_per_core or threads, max(1, threads // max(1, need.cpus)))


def _of_tres(text: str, gres: Mapping[str, int]) -> int:
    """Return the amount of something that is given for each of a generic resource, ``gres:gpu:4``."""
    return sum(each * gres.get(name, 0) for name, each in tres_requests(text).items())


def _where(job: JobRecord) -> Iterator[tuple[str, str]]:
    """Yield the properties that each node of the job has."""
    features_of(job.features)
    for feature in sorted({*job.features.strip("[]").split("&")} - {""}):
        yield feature_property(feature.strip("()")), YES
    if len(job.partitions) > 1:
        yield partition_property(job.partitions[0]), YES
    if job.excluded_nodes:
        yield outside_property(job.excluded_nodes), YES
