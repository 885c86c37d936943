"""The own scheduler of the manager in memory: first come, first served, on the first nodes.

It knows requests, queues' nodes and licences; limits, free pools, guards and reservations it does not know.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from cpsched.domain import Arrangement, Chunk, Cluster, Instance, Job, NodeState, Placement


class Shop:
    """The free amounts of each node now. Mutable."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.state = {name: one.state for one in cluster.classes for name in one.names}
        self.free = {name: Counter(one.resources) for one in cluster.classes for name in one.names}
        #: How many jobs hold something of each node.
        self.holders = dict.fromkeys(self.free, 0)
        #: Nodes that one job has for itself.
        self.exclusive: set[str] = set()
        self.licenses = Counter(cluster.licenses)

    def take(self, job: Job, allocation: Iterable[Placement]) -> None:
        """Give a job its allocation and its licences."""
        self._change(job, allocation, 1)

    def give_back(self, job: Job, allocation: Iterable[Placement]) -> None:
        """Take back what a job had."""
        self._change(job, allocation, -1)

    def _change(self, job: Job, allocation: Iterable[Placement], sign: int) -> None:
        for node, amounts in by_node(allocation).items():
            self.free[node].subtract({name: sign * amount for name, amount in amounts.items()})
            self.holders[node] += sign
            if job.request.place.exclusive:
                (self.exclusive.add if sign > 0 else self.exclusive.discard)(node)
        self.licenses.subtract({name: sign * amount for name, amount in job.licenses.items()})

    def fits(self, job: Job, allocation: Iterable[Placement]) -> bool:
        """Tell whether a job can have these nodes now."""
        if not self._has_licenses(job):
            return False
        return all(
            self._is_open(job, node) and all(amount <= self.free[node][name] for name, amount in taken.items())
            for node, taken in by_node(allocation).items()
        )

    def first_fit(self, job: Job, allowed: frozenset[str] | None = None) -> tuple[Placement, ...] | None:
        """Return the first nodes on which a job fits now, or None."""
        if not self._has_licenses(job):
            return None
        request, is_single = job.request, job.request.place.arrangement is Arrangement.SCATTER
        nodes = [
            name
            for one in self.cluster.classes
            for name in one.names
            if (allowed is None or name in allowed) and self._is_open(job, name)
        ]
        if request.place.arrangement is Arrangement.PACK:
            for node in nodes:
                found = self._on(request.chunks, [node], is_single=False)
                if found is not None:
                    return found
            return None
        return self._on(request.chunks, nodes, is_single=is_single)

    def _has_licenses(self, job: Job) -> bool:
        return all(amount <= self.licenses[name] for name, amount in job.licenses.items())

    def _is_open(self, job: Job, node: str) -> bool:
        """Tell whether a node is up, and whether those that hold it let another job in."""
        if self.state.get(node) is not NodeState.UP or node in self.exclusive:
            return False
        return not (job.request.place.exclusive and self.holders[node])

    def _on(self, chunks: Sequence[Chunk], nodes: Sequence[str], *, is_single: bool) -> tuple[Placement, ...] | None:
        """Place all chunks on the first nodes that have room, at most one on each if `is_single`; None: no room."""
        taken, placements = dict[str, Counter[str]](), list[Placement]()
        for kind, chunk in enumerate(chunks):
            missing = chunk.count
            for node in nodes:
                if not missing:
                    break
                if is_single and node in taken:
                    continue
                properties = self.cluster.class_of[node].properties
                if any(properties.get(name) != value for name, value in chunk.where.items()):
                    continue
                gone, has = taken.get(node, Counter[str]()), self.free[node]
                room = min((has[name] - gone[name]) // one for name, one in chunk.resources.items())
                count = min(missing, room, 1 if is_single else missing)
                if count > 0:
                    amounts = chunk.taken(count)
                    taken.setdefault(node, Counter()).update(amounts)
                    placements.append(Placement(node=node, resources=amounts, chunk=kind, count=count))
                    missing -= count
            if missing:
                return None
        return tuple(placements)


def queue_nodes(site: Instance, job: Job) -> frozenset[str] | None:
    """Return the nodes of a job's queue; None: all."""
    nodes = None if job.queue is None else site.queues[job.queue].nodes
    return None if nodes is None else frozenset(nodes)


def by_node(allocation: Iterable[Placement]) -> dict[str, Counter[str]]:
    """Return the amounts that an allocation takes of each node."""
    found = defaultdict[str, Counter[str]](Counter)
    for one in allocation:
        found[one.node].update(one.resources)
    return found
