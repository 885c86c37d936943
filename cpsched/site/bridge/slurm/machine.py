"""The machine of a Slurm as an instance has it: nodes in classes, queues, and what requests are read with."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from cpsched.domain import Amounts, Cluster, FrozenMap, Job, NodeClass, Queue
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.slurm.features import feature_property
from cpsched.site.bridge.slurm.records import NodeRecord, SlurmRecords
from cpsched.site.bridge.slurm.requests import HOST, YES, Site
from cpsched.site.bridge.slurm.site import SlurmModel


def site_of(records: SlurmRecords) -> Site:
    """Return what requests of jobs are read with."""
    config = records.config
    nodes = {node.name: node for node in records.nodes}
    partitions: dict[str, Sequence[str]] = {}
    for partition in records.partitions:
        try:
            partitions[partition.name] = (
                tuple(dict.fromkeys(expand_hostlist(partition.nodes))) if partition.nodes else ()
            )
        except SyntaxFault:
            partitions[partition.name] = ()
    if not partitions:
        of_nodes: dict[str, list[str]] = defaultdict(list)
        for node in records.nodes:
            for partition_name in node.partitions:
                of_nodes[partition_name].append(node.name)
        partitions.update(of_nodes)
    selects = config.get("SelectTypeParameters", "")
    return Site(
        nodes=nodes,
        partitions=partitions,
        described={partition.name: partition for partition in records.partitions},
        counts_memory=not config or "MEMORY" in selects.upper(),
        gives_whole_nodes=config.get("SelectType") == "select/linear",
        gives_whole_sockets="SOCKET" in selects.upper(),
        is_configured=bool(config),
        topology=records.topology,
    )


def unions_of(jobs: Iterable[Job], queues: Mapping[str, Queue], site: Site) -> dict[str, Queue]:
    """Return the queues of jobs that may run in several partitions: as the first of them, with the nodes of all."""
    found: dict[str, Queue] = {}
    for name in {job.queue for job in jobs if job.queue is not None} - queues.keys():
        first = max((queues[one] for one in name.split(",")), key=attrgetter("priority"))
        nodes = tuple(node for node in site.partitions[name] if node in site.nodes)
        limits = [queues[one].max_walltime for one in name.split(",")]
        longest = None if None in limits else max(limit for limit in limits if limit is not None)
        found[name] = replace(first, nodes=nodes if len(nodes) < len(site.nodes) else None, max_walltime=longest)
    return found


def cluster_of(
    nodes: Sequence[NodeRecord],
    hosts: Collection[str],
    marked: Mapping[str, Collection[str]],
    either: Collection[str],
    counters: Mapping[tuple[str, str], int],
    licenses: Amounts,
) -> Cluster:
    """Return the nodes in classes.

    Those in `hosts`, and those with one of several features (`either`, ``a|b``), have properties that say so. `marked`:
    the nodes that have other ones. `counters`: resources of nodes that are limits.
    """
    limits: dict[str, dict[str, int]] = defaultdict(dict)
    for (node_name, counter), most in counters.items():
        limits[node_name][counter] = most

    def kind(node: NodeRecord) -> tuple[object, ...]:
        properties = {feature_property(feature): YES for feature in node.features}
        if node.name in hosts:
            properties[HOST] = node.name
        properties |= {name: YES for name, names in marked.items() if node.name in names}
        properties |= {
            feature_property(text): YES for text in either if not frozenset(text.split("|")).isdisjoint(node.features)
        }
        amounts = Amounts({"cores": node.cpus, "mem": node.memory, **node.gres, **limits.get(node.name, {})})
        return amounts, FrozenMap(properties), node.weight, node.state

    classes = []
    for (amounts, properties, weight, state), group in groupby(nodes, kind):
        names = tuple(node.name for node in group)
        classes.append(NodeClass(names=names, resources=amounts, properties=properties, priority=weight, state=state))  # type: ignore[arg-type]  # parts of a key
    return Cluster(classes=tuple(classes), licenses=licenses)


def queues_of(site: Site, choices: SlurmModel) -> dict[str, Queue]:
    """Return the queue of each partition."""
    queues = {}
    for name, names in site.partitions.items():
        known = tuple(one for one in names if one in site.nodes)
        partition = site.limits(name)
        queues[name] = replace(
            choices.queue(name),
            priority=partition.tier,
            max_walltime=partition.max_time,
            nodes=known if known and len(known) < len(site.nodes) else None,
        )
    return queues
