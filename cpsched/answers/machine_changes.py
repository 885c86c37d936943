"""Other machines: nodes that are added to a cluster, or removed from it, as a user writes it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cpsched.domain import Amounts, Cluster, Instance, NodeClass
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist, fold_hostlist

_COUNTED = re.compile(r"(add|remove) +([0-9]{1,6}) +nodes?(?: +with +(.+))?")
_NAMED = re.compile(r"remove +(?:nodes? +)?(.+)")
#: What is written, in the words of faults.
EXPECTED_NODES = "'add 20 nodes with gpus=4', 'remove 20 nodes with gpus=4' or 'remove node[1-4]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What nodes have: amounts of resources, and properties."""

    resources: Mapping[str, int]
    properties: Mapping[str, str]

    def matches(self, nodes: NodeClass) -> bool:
        """Tell whether the nodes of a class have all of it."""
        return all(nodes.resources.get(name, 0) == amount for name, amount in self.resources.items()) and all(
            nodes.properties.get(name) == value for name, value in self.properties.items()
        )


def with_nodes(instance: Instance, text: str) -> Instance:
    """Return an instance with another machine; its queues have the new nodes where they have those of the same kind.

    New nodes are as those that the cluster has most of, of the ones that have what is asked for; where there are none,
    as those that it has most of, with what is asked for in addition. Of equal nodes the last ones are removed.

    Raises `ValueError` if the cluster has no such nodes, or no others. Raises `SyntaxFault` if the text is no change.
    """
    if (match := _COUNTED.fullmatch(text.strip())) is not None:
        verb, count, what = match.groups()
        kind = _kind(what or "")
        return _added(instance, int(count), kind) if verb == "add" else _fewer(instance, int(count), kind, what)
    if (match := _NAMED.fullmatch(text.strip())) is None:
        raise SyntaxFault(text, (0, len(text)), f"Expected {EXPECTED_NODES}")
    names = expand_hostlist(match[1])
    known = set(instance.cluster.node_names)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"Expected nodes of the cluster, got {fold_hostlist(unknown)}")
    return _without(instance, frozenset(names))


def _kind(text: str) -> _Kind:
    """``kind := NAME '=' VALUE (',' NAME '=' VALUE)*``; a number is an amount, anything else a property."""
    resources: dict[str, int] = {}
    properties: dict[str, str] = {}
    at = 0
    for part in text.split(",") if text else ():
        name, sign, value = (one.strip() for one in part.partition("="))
        if not (name and sign and value):
            raise SyntaxFault(text, (at, at + len(part)), "Expected a resource with an amount, as gpus=4")
        if value.isdecimal():
            resources[{"ncpus": "cores", "ngpus": "gpus"}.get(name, name)] = int(value)
        else:
            properties[name] = value
        at += len(part) + 1
    return _Kind(resources=resources, properties=properties)


def _added(instance: Instance, count: int, kind: _Kind) -> Instance:
    if count < 1:
        raise ValueError("Expected 1 node or more, got 0")
    classes = instance.cluster.classes
    matching = [one for one in classes if kind.matches(one)]
    like = max(matching or classes, key=lambda one: len(one.names))
    taken, number = set(instance.cluster.node_names), 0
    names: list[str] = []
    while len(names) < count:
        number += 1
        if (name := f"added{number}") not in taken:
            names.append(name)
    new = replace(
        like,
        names=tuple(names),
        resources=Amounts({**like.resources, **kind.resources}),
        properties=type(like.properties)({**like.properties, **kind.properties}),
    )
    cluster = replace(instance.cluster, classes=(*classes, new))
    return _on(cluster, instance, lambda nodes: (*nodes, *names) if set(like.names) <= set(nodes) else nodes)


def _fewer(instance: Instance, count: int, kind: _Kind, what: str | None) -> Instance:
    names = [name for one in instance.cluster.classes if kind.matches(one) for name in one.names]
    if not 1 <= count <= len(names):
        of_kind = "" if what is None else f" with {what}"
        raise ValueError(
            f"Expected at least 1 and at most {len(names)} nodes{of_kind}, as the cluster has, got {count}"
        )
    return _without(instance, frozenset(names[-count:]))


def _without(instance: Instance, gone: frozenset[str]) -> Instance:
    classes = [
        replace(one, names=left)
        for one in instance.cluster.classes
        if (left := tuple(name for name in one.names if name not in gone))
    ]
    if not classes:
        raise ValueError("Expected a cluster that keeps a node, got all of them to remove")
    cluster = instance.cluster.of(classes, instance.cluster.licenses)
    return _on(cluster, instance, lambda nodes: tuple(name for name in nodes if name not in gone))


def _on(cluster: Cluster, instance: Instance, nodes_of: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Instance:
    """Return an instance on another cluster. `nodes_of`: returns the nodes of a queue, given those that it had."""
    queues = {
        name: queue if queue.nodes is None else replace(queue, nodes=nodes_of(queue.nodes))
        for name, queue in instance.queues.items()
    }
    return replace(instance, cluster=cluster, queues=type(instance.queues)(queues))
