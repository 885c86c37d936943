"""Mapping policies: in which order nodes are filled, and in which order the kinds of chunks of a request are placed.

The search fills the nodes in the order of the policy, as many chunks on each as fit (OpenCCS, phase 2: OCCS-26, 27,
30, 31). Another policy is another pair of orders; `CheapFirst` is the paper's.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from cpsched.domain import Cluster, NodeClass, Request


class Mapping(Protocol):
    """The orders in which nodes are filled and chunks are placed (OCCS-31)."""

    def node_order(self, cluster: Cluster) -> Sequence[int]:
        """Return all node indices, those to be filled first in front."""

    def chunk_order(self, cluster: Cluster, request: Request) -> Sequence[int]:
        """Return all kinds of chunks of a request (indices), those to be placed first in front."""


def node_weight(node_class: NodeClass, cluster: Cluster) -> Fraction:
    """Return the weight of a node: (largest share of any resource of the cluster + priority) x all cores (OCCS-26).

    A step of priority outweighs every share, since shares are at most 1.
    """
    share = max(
        (Fraction(amount, cluster.totals[name]) for name, amount in node_class.resources.items() if amount),
        default=Fraction(0),
    )
    return (share + node_class.priority) * cluster.totals.get("cores", 1)


class CheapFirst:
    """Cheap nodes first, so that rare resources stay free for jobs that ask for them; demanding chunks first."""

    def node_order(self, cluster: Cluster) -> list[int]:
        """Order nodes by ascending weight; equal ones as the document has them (MAUI-10)."""
        weights = [node_weight(node_class, cluster) for node_class in cluster.classes]
        rank = {weight: place for place, weight in enumerate(sorted(set(weights)))}
        ranks = [
            place
            for node_class, place in zip(cluster.classes, [rank[weight] for weight in weights], strict=True)
            for _ in range(len(node_class.names))
        ]
        return sorted(range(len(ranks)), key=ranks.__getitem__)

    def chunk_order(self, cluster: Cluster, request: Request) -> list[int]:
        """Order kinds by descending largest share of what the best node has; equal ones as asked (OCCS-27)."""
        largest: dict[str, int] = {}
        for node_class in cluster.classes:
            for name, amount in node_class.resources.items():
                largest[name] = max(amount, largest.get(name, 0))

        def weight(kind: int) -> Fraction:
            return max(
                Fraction(amount, largest.get(name) or 1) for name, amount in request.chunks[kind].resources.items()
            )

        return sorted(range(len(request.chunks)), key=weight, reverse=True)
