"""The machine: node classes, their guards, the licences of the whole cluster, and the outages of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from cpsched.domain.frozen import Amounts, FrozenMap

__all__ = ["AdmitCondition", "Cluster", "KeepFree", "NodeClass", "NodeState", "Outage"]


class NodeState(StrEnum):
    """The state of a node now."""

    UP = "up"
    DRAIN = "drain"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCondition:
    """One condition of a node's guard; all its parts must hold (OpenCCS, node specific limits: OCCS-41)."""

    #: The least amounts that one chunk must ask for.
    min: Amounts = Amounts()
    #: The longest walltime (s) of a job that meets this condition; None: any.
    max_walltime: int | None = None

    def admits(self, asked: Amounts, walltime: int) -> bool:
        """Return whether a chunk that asks for `asked`, of a job of `walltime` seconds, meets the condition."""
        if self.max_walltime is not None and walltime > self.max_walltime:
            return False
        return all(asked.get(name, 0) >= least for name, least in self.min.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepFree:
    """The amount of `resource` that chunks which do not ask for `beneficiary` must leave free on a node (OCCS-40)."""

    resource: str
    items: int
    #: Chunks that ask for this resource may take all of `resource` (``for`` in the document).
    beneficiary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """Nodes that differ in nothing but their names: one entry of the document's ``cluster.nodes``."""

    #: In the order of the document; each name occurs once in a cluster.
    names: tuple[str, ...]
    #: The amounts that each of the nodes has.
    resources: Amounts
    properties: FrozenMap[str, str] = FrozenMap()
    #: The administrator's bias: nodes with a higher value are filled later.
    priority: int = 0
    state: NodeState = NodeState.UP
    #: A chunk that meets one of these may use the nodes; empty: every chunk may.
    admits: tuple[AdmitCondition, ...] = ()
    keep_free: tuple[KeepFree, ...] = ()

    def is_admitted(self, asked: Amounts, walltime: int) -> bool:
        """Return whether the guard admits a chunk that asks for `asked`, of a job of `walltime` seconds."""
        return not self.admits or any(condition.admits(asked, walltime) for condition in self.admits)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """All nodes, and the countable resources that belong to no node."""

    classes: tuple[NodeClass, ...]
    licenses: Amounts = Amounts()

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
        """The sum over all nodes of each countable resource (drained and down nodes included)."""
        totals: dict[str, int] = {}
        for node_class in self.classes:
            for name, amount in node_class.resources.items():
                totals[name] = totals.get(name, 0) + amount * len(node_class.names)
        return Amounts(totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Nodes that are down during ``[start, end)``; jobs that run on them at `start` are cut short."""

    #: In the order of the document, each once.
    nodes: tuple[str, ...]
    start: int
    end: int
