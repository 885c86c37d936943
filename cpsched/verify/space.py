"""What running jobs and reservations leave of nodes and licences to a reservation that is said not to be had."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cpsched.verify.case import Case, HolderUse
from cpsched.verify.model import NodeClass, Request
from cpsched.verify.rules.capacity import license_uses, overcommitted, sort_out
from cpsched.verify.sweep import overloads


class Room(NamedTuple):
    """The amounts that are left on each of some equal nodes during an interval."""

    node_class: NodeClass
    free: Mapping[str, int]
    #: For each entry of the class's `keep_free`: what is left to chunks that do not ask for what it is for.
    to_others: Sequence[int]
    nodes: Sequence[str]


class Space:
    """The nodes that are up, without guards, and the licences, beside all that a plan books during ``[start, end)``."""

    def __init__(self, case: Case, start: int, end: int) -> None:
        self._case, self._start, self._end = case, start, end

    def _during(self, uses: Sequence[HolderUse]) -> list[HolderUse]:
        return [use for use in uses if use.start < self._end and self._start < use.end]

    def _left(self, uses: Sequence[HolderUse], capacity: Mapping[str, int]) -> dict[str, int]:
        """Return the least that uses leave of each resource at some second."""
        left = dict(capacity)
        for one in overloads(self._during(uses), {}):
            if one.start < self._end and self._start < one.end:
                left[one.resource] = min(left.get(one.resource, 0), capacity.get(one.resource, 0) - one.level)
        return left

    def _reserved(self, node: str) -> list[HolderUse]:
        return [*self._case.slice_uses.get(node, ()), *self._case.closures.get(node, ())]

    def rooms(self, request: Request) -> list[Room]:
        """Return what is left for a request of each node that it may have."""
        found = []
        for node, node_class in self._case.instance.nodes.items():
            jobs, slices = self._case.job_uses.get(node, []), self._reserved(node)
            others = self._during([*jobs, *slices])
            # nothing new comes to a node while more runs there than it has
            more = overcommitted(jobs, node_class.resources)
            if (
                node_class.state != "up"
                or any(use.owner.exclusive for use in others)
                or (request.exclusive and others)
                or any(start < self._end and self._start < end for start, end in more)
            ):
                continue
            left = self._left([*sort_out(self._case, jobs)[0], *slices], node_class.resources)
            free = {name: left.get(name, 0) for name in request.names}
            if any(amount > 0 for amount in free.values()):
                found.append(Room(node_class, free, (), (node,)))
        return found

    def is_empty(self, node: str) -> bool:
        """Return whether a node is up and nothing is on it."""
        uses = [*self._case.job_uses.get(node, ()), *self._reserved(node)]
        return self._case.instance.nodes[node].state == "up" and not self._during(uses)

    def has_licenses(self, licenses: Mapping[str, int]) -> bool:
        """Return whether licences are left."""
        left = self._left(license_uses(self._case)[0], self._case.instance.licenses)
        return all(left.get(name, 0) >= amount for name, amount in licenses.items())
