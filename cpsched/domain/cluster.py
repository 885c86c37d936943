"""The machine: node classes, their guards, the licences of the whole cluster, and the outages of nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from cpsched.domain.annotations import (
    Amount,
    Bounds,
    Duration,
    Entries,
    Has,
    Key,
    Name,
    NodeNames,
    Priority,
    Resource,
    Text,
    Time,
    Written,
)
from cpsched.domain.frozen import Amounts, FrozenMap

#: A countable resource of nodes.
ResourceName = Annotated[Name, Resource()]


class NodeState(StrEnum):
    """The state of a node now."""

    UP = "up"
    DRAIN = "drain"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCondition:
    """One condition of a node's guard; all its parts must hold (OpenCCS, node specific limits: OCCS-41)."""

    min: Annotated[FrozenMap[ResourceName, Amount], Key("What one chunk must at least ask for, by resource")] = (
        Amounts()
    )
    #: None: any.
    max_walltime: Annotated[Duration | None, Key("The longest walltime (s) that is let in")] = None

    def admits(self, asked: Amounts, walltime: int) -> bool:
        """Return whether a chunk that asks for `asked`, of a job of `walltime` seconds, meets the condition."""
        if self.max_walltime is not None and walltime > self.max_walltime:
            return False
        return all(asked.get(name, 0) >= least for name, least in self.min.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepFree:
    """The amount of `resource` that chunks which do not ask for `beneficiary` must leave free on a node (OCCS-40)."""

    resource: Annotated[ResourceName, Key("The resource that is kept free")]
    items: Annotated[Amount, Key("How much of it is kept free on the node")]
    beneficiary: Annotated[ResourceName, Key("Chunks that ask for this resource may have all of it", name="for")]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """Nodes that differ in nothing but their names."""

    #: In the order of the document; each name occurs once in a cluster.
    names: Annotated[tuple[str, ...], Written("new nodes"), Key("A host list", examples=("node[001-032]",))]
    resources: Annotated[Has, Key("What one node has: cores, mem (MiB), gpus, mics and any name of the site")]
    properties: Annotated[FrozenMap[Name, Text], Key("Strings that a chunk may ask for (arch, rack, net, …)")] = (
        FrozenMap()
    )
    priority: Annotated[Priority, Key("The administrator's bias: higher is more expensive, used later")] = 0
    state: Annotated[NodeState, Key("drain: running work ends, nothing new")] = NodeState.UP
    #: Empty: every chunk may use the nodes.
    admits: Annotated[tuple[AdmitCondition, ...], Key("The node's guard: one of these conditions must hold")] = ()
    keep_free: Annotated[tuple[KeepFree, ...], Key("What is kept free for the users of another resource")] = ()

    @property
    def is_up(self) -> bool:
        """Whether new work may start on the nodes."""
        return self.state is NodeState.UP

    def is_admitted(self, asked: Amounts, walltime: int) -> bool:
        """Return whether the guard admits a chunk that asks for `asked`, of a job of `walltime` seconds."""
        return not self.admits or any(condition.admits(asked, walltime) for condition in self.admits)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """All nodes, and the countable resources that belong to no node."""

    classes: Annotated[tuple[NodeClass, ...], Entries(1), Key("In the order in which nodes are numbered", name="nodes")]
    licenses: Annotated[Has, Key("Cluster-wide countable resources")] = Amounts()
    consumed: Annotated[tuple[Name, ...], Key("Licences that do not come back when a job ends")] = ()
    #: By level and group; a node is in one group of a level, or in none.
    topology: FrozenMap[str, FrozenMap[str, tuple[str, ...]]] = FrozenMap()
    slowdown: Annotated[
        FrozenMap[Name, Annotated[int, Bounds(0, 10_000)]],
        Key("By level: percent by which a simulated job takes longer whose nodes are in several groups"),
    ] = FrozenMap()

    def of(self, classes: Iterable[NodeClass], licenses: Amounts) -> "Cluster":
        """Return the cluster with some of its nodes and licences, in classes."""
        kept = tuple(classes)
        names = {name for node_class in kept for name in node_class.names}
        topology = {
            level: FrozenMap(
                {
                    group: left
                    for group, nodes in groups.items()
                    if (left := tuple(node for node in nodes if node in names))
                }
            )
            for level, groups in self.topology.items()
        }
        levels = FrozenMap({level: groups for level, groups in topology.items() if groups})
        slowdown = FrozenMap({level: percent for level, percent in self.slowdown.items() if level in levels})
        return Cluster(classes=kept, licenses=licenses, consumed=self.consumed, topology=levels, slowdown=slowdown)

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of all nodes, in document order; a node's index is its place here."""
        return tuple(name for node_class in self.classes for name in node_class.names)

    @cached_property
    def class_of(self) -> dict[str, NodeClass]:
        """The class of each node, by name."""
        return {name: node_class for node_class in self.classes for name in node_class.names}

    @cached_property
    def totals(self) -> Amounts:
        """The sum over all nodes of each countable resource (drained and down nodes included; OCCS-53)."""
        return _totals(self.classes)

    @cached_property
    def up_totals(self) -> Amounts:
        """The same over the nodes that are up."""
        return _totals(one for one in self.classes if one.is_up)

    @cached_property
    def capacity(self) -> Amounts:
        """The total of each resource and licence of which there is any."""
        return Amounts({name: amount for name, amount in {**self.totals, **self.licenses}.items() if amount})


def _totals(classes: Iterable[NodeClass]) -> Amounts:
    totals: dict[str, int] = {}
    for node_class in classes:
        for name, amount in node_class.resources.items():
            totals[name] = totals.get(name, 0) + amount * len(node_class.names)
    return Amounts(totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Nodes that will fail, and return: they are down during ``[start, end)``."""

    #: In the order of the document, each once.
    nodes: Annotated[NodeNames, Key("A host list", examples=("cn[1-4]",))]
    start: Annotated[Time, Key("What runs on one of them then is cut short")]
    end: Annotated[Time, Key("When they are up again")]
