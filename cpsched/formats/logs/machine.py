"""The machine of a log that states the nodes of its jobs: the smallest one on which all of them could run."""

import re
from collections import defaultdict
from pathlib import Path

from cpsched.domain import MAX_AMOUNT, Amounts, Cluster, FrozenMap, Instance, NodeClass
from cpsched.errors import DocumentError, Fault
from cpsched.formats.hostlist import MAX_NODES
from cpsched.formats.logs.jobs import JobLog, LogJob, LogKind
from cpsched.formats.swf import AssumedMachine, most_at_once
from cpsched.text import natural

_SUFFIX = re.compile(r"(\.(acct|events|log|txt|json))?(\.gz)?$")
#: What the nodes are of a log that says only how many there are.
_HOSTS = {
    LogKind.BATSIM: "its hosts",
    LogKind.ELASTISIM: "those of ElastiSim's example project, of 1 Tflop/s each, by which run times are computed",
}


def name_of_log(log: JobLog) -> str:
    """Return the name of a log's file without suffixes."""
    return _SUFFIX.sub("", Path(log.source).name) or "log"


def machine_of_jobs(log: JobLog) -> AssumedMachine:
    """Return the nodes on which jobs of a log ran.

    A node has as many cores as its highest slot says, or as jobs ever held there at once. Of memory nodes with equally
    many cores have the same: the most that jobs held at once on one of them, where a node's share of a job's memory
    is its share of the job's cores. Of everything else (GPUs) a node has what jobs held on itself. A node has the
    properties that were asked for by the jobs that ran on it.

    Raises `DocumentError` if the log does not say where jobs ran: then a cluster file is needed.
    """
    seen: dict[str, _Node] = defaultdict(_Node)
    for job in log.jobs:
        _observe(job, seen)
    for node in seen.values():
        node.close()
    nodes = {name: node for name, node in seen.items() if node.cores}
    num_nodes = len(nodes) or log.hosts or 0
    if num_nodes > MAX_NODES:
        raise DocumentError(log.source, [Fault("", f"Expected at most {MAX_NODES} nodes, got {num_nodes}")])
    if not nodes and log.hosts is not None:
        hosts = NodeClass(names=tuple(f"host{number}" for number in range(log.hosts)), resources=Amounts({"cores": 1}))
        machine = Instance(name=name_of_log(log), cluster=Cluster(classes=(hosts,)))
        return AssumedMachine(machine, (f"{log.hosts} nodes of 1 core: {_HOSTS[log.kind]}",))
    if not nodes:
        message = f"{log.kind} as these do not say on which nodes jobs ran; a cluster file describes the machine"
        raise DocumentError(log.source, [Fault("", f"Expected a cluster file (--cluster): {message}")])
    memory: dict[int, int] = defaultdict(int)
    for node in nodes.values():
        memory[node.cores] = max(memory[node.cores], node.most.get("mem", 0))
    classes: dict[tuple[Amounts, FrozenMap[str, str]], list[str]] = {}
    for name in sorted(nodes, key=natural):
        node = nodes[name]
        most = (node.most | {"mem": memory[node.cores], "cores": 0}).items()
        has = Amounts({"cores": node.cores} | {name: amount for name, amount in most if amount})
        classes.setdefault((has, FrozenMap(node.properties)), []).append(name)
    cluster = Cluster(
        classes=tuple(
            NodeClass(names=tuple(names), resources=has, properties=properties)
            for (has, properties), names in classes.items()
        )
    )
    return AssumedMachine(Instance(name=name_of_log(log), cluster=cluster), _assumed(cluster))


class _Node:
    """Mutable: what was seen of one node."""

    def __init__(self) -> None:
        self.slots = 0
        self.properties: dict[str, str] = {}
        #: Times and amounts that were taken (above 0) or released there.
        self.changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.most: dict[str, int] = {}

    @property
    def cores(self) -> int:
        return max(self.slots, self.most.get("cores", 0))

    def hold(self, name: str, amount: int, start: int, end: int) -> None:
        self.changes[name] += [(start, amount), (end, -amount)]

    def close(self) -> None:
        """Find the most that was held at once."""
        for name, changes in self.changes.items():
            self.most[name] = min(most_at_once(changes), MAX_AMOUNT)
        self.changes.clear()


def _observe(job: LogJob, nodes: dict[str, _Node]) -> None:
    """Note what a job held, and where; of one of which the end is unknown only where it was."""
    totals = job.request.totals
    cores = sum(held.cores for held in job.allocation)
    for held in job.allocation:
        node = nodes[held.node]
        node.slots = max(node.slots, min(held.slots, MAX_AMOUNT))
        for chunk in job.request.chunks[:1] if len({chunk.where for chunk in job.request.chunks}) == 1 else ():
            node.properties |= dict(chunk.where)
        if job.start is not None and job.runtime:
            node.hold("cores", held.cores, job.start, job.start + job.runtime)
            for name, amount in (held.others or {}).items():
                node.hold(name, amount, job.start, job.start + job.runtime)
            for name, amount in totals.items():
                if name != "cores" and (name == "mem" or held.others is None):
                    node.hold(name, -(-amount * held.cores // cores), job.start, job.start + job.runtime)


def _assumed(cluster: Cluster) -> tuple[str, ...]:
    sizes: dict[Amounts, int] = defaultdict(int)
    owners: dict[str, int] = defaultdict(int)
    for node_class in cluster.classes:
        sizes[node_class.resources] += len(node_class.names)
        for name in node_class.properties:
            owners[name] += len(node_class.names)
    said = []
    for resources, number in sizes.items():
        has = ", ".join(f"{amount} {name}" for name, amount in resources.items())
        said.append(f"{number} nodes of {has}: the most that jobs of the log held at once on one of them")
    said += [f"{number} nodes have {name}: on them ran jobs that asked for it" for name, number in owners.items()]
    return tuple(said)
