"""The free amounts beside a plan, over time: on groups of equal nodes, and of the cluster's licences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cpsched.verify.case import Case, HolderUse
from cpsched.verify.model import Booking, NodeClass, Request
from cpsched.verify.rules.capacity import license_uses, overcommitted, sort_out

#: Before all times of a plan.
FIRST = -(10**18)
#: The counters of a `Group` on a node: all jobs that hold something there, and the exclusive ones.
HOLDERS, ALONE = "holders", "alone"


class Levels:
    """The amounts that uses leave free: a step function of time for each resource."""

    def __init__(self, uses: Iterable[tuple[int, int, Mapping[str, int]]], capacity: Mapping[str, int]) -> None:
        changes: dict[int, dict[str, int]] = {}
        for start, end, amounts in uses:
            for time, sign in ((start, -1), (end, 1)):
                change = changes.setdefault(time, {})
                for name, amount in amounts.items():
                    change[name] = change.get(name, 0) + sign * amount
        #: The seconds from which each level holds, ascending; the first one is before all others.
        self.times = [FIRST, *sorted(changes)]
        names = {*capacity, *(name for change in changes.values() for name in change)}
        self._left = {name: [capacity.get(name, 0)] for name in names}
        for time in self.times[1:]:
            change = changes[time]
            for name, levels in self._left.items():
                levels.append(levels[-1] + change.get(name, 0))

    def least(self, name: str, start: int, end: int) -> int:
        """Return the least that is left of a resource at some second of ``[start, end)``."""
        levels = self._left.get(name)
        if levels is None:
            return 0
        return min(levels[bisect_right(self.times, start) - 1 : bisect_left(self.times, end)])


class Room(NamedTuple):
    """The amounts that are left on each of some equal nodes during an interval."""

    node_class: NodeClass
    free: Mapping[str, int]
    #: For each entry of the class's `keep_free`: what is left to chunks that do not ask for what it is for.
    to_others: Sequence[int]
    nodes: Sequence[str]


class Group:
    """Nodes of one class with the same amounts held at the same times; mutable only in its nodes."""

    def __init__(
        self,
        node_class: NodeClass,
        nodes: list[str],
        capacity: Mapping[str, int],
        taken: Sequence[HolderUse],
        jobs: Sequence[HolderUse],
        others: Sequence[HolderUse],
    ) -> None:
        self.node_class, self.nodes = node_class, nodes
        self.capacity, self.taken, self.jobs, self.others = capacity, taken, jobs, others
        self._levels: tuple[Levels, Levels, list[Levels]] | None = None
        self._has_loners = False

    def room(self, start: int, end: int, names: Collection[str], *, alone: bool) -> Room | None:
        """Return the amounts of some resources that are left during ``[start, end)``; None if nothing is left, if no
        job may use the nodes, or if they are used and the job wants to be `alone`.
        """
        free, crowd, kept = self._all_levels()
        if (self._has_loners and crowd.least(ALONE, start, end) < 0) or (
            alone and crowd.least(HOLDERS, start, end) < 0
        ):
            return None
        left = {name: free.least(name, start, end) for name in names}
        if not any(amount > 0 for amount in left.values()):
            return None
        to_others = [
            levels.least(entry.resource, start, end)
            for entry, levels in zip(self.node_class.keep_free, kept, strict=True)
        ]
        return Room(self.node_class, left, to_others, self.nodes)

    def _all_levels(self) -> tuple[Levels, Levels, list[Levels]]:
        if self._levels is None:
            free = Levels(((use.start, use.end, use.amounts) for use in self.taken), self.capacity)
            crowd = [(use.start, use.end, {HOLDERS: 1, ALONE: int(use.owner.exclusive)}) for use in self.others]
            # nothing new comes to a node while more runs there than it has
            crowd += [(start, end, {ALONE: 1}) for start, end in overcommitted(self.jobs, self.node_class.resources)]
            self._has_loners = any(amounts[ALONE] for _, _, amounts in crowd)
            kept = [
                Levels(
                    (
                        (use.start, use.end, {entry.resource: use.amounts.get(entry.resource, 0)})
                        for use in self.jobs
                        if entry.beneficiary not in use.amounts
                    ),
                    {entry.resource: max(0, self.node_class.resources.get(entry.resource, 0) - entry.items)},
                )
                for entry in self.node_class.keep_free
            ]
            self._levels = free, Levels(crowd, {HOLDERS: 0, ALONE: 0}), kept
        return self._levels


class Space:
    """The nodes that are up, and the licences, beside all that a plan books."""

    def __init__(self, case: Case) -> None:
        self._case = case
        groups: dict[object, Group] = {}
        self._group_of: dict[str, Group] = {}
        for node, node_class in case.instance.nodes.items():
            if node_class.state != "up":
                continue
            key = (id(node_class), tuple(sorted(self._keys_of(node))))
            if key not in groups:
                groups[key] = self._group(node, node_class)
            else:
                groups[key].nodes.append(node)
            self._group_of[node] = groups[key]
        self._groups = [group for group in groups.values() if group.capacity]
        uses, _ = license_uses(case)
        self._licenses = Levels(((use.start, use.end, use.amounts) for use in uses), case.instance.licenses)

    def _keys_of(self, node: str) -> Iterator[tuple[object, ...]]:
        """Yield the differences between nodes of one class: holders, amounts, times and kinds of use."""
        case = self._case
        for uses in (case.job_uses.get(node, ()), case.slice_uses.get(node, ()), case.closures.get(node, ())):
            for use in uses:
                who = use.owner.who
                inside = who.job.reservation if isinstance(who, Booking) else f"[{who.reservation.id}]"
                amounts = tuple(sorted(use.amounts.items()))
                yield use.start, use.end, use.owner.exclusive, use.owner.is_fact, inside or "", amounts

    def _group(self, node: str, node_class: NodeClass) -> Group:
        """Return the group of which a node is the first one."""
        jobs = self._case.job_uses.get(node, [])
        slices = [*self._case.slice_uses.get(node, []), *self._case.closures.get(node, [])]
        outside, _ = sort_out(self._case, jobs)
        return Group(node_class, [node], node_class.resources, [*outside, *slices], jobs, [*jobs, *slices])

    def rooms(self, request: Request, start: int, end: int) -> list[Room]:
        """Return the amounts that are left for a request during ``[start, end)``."""
        found = (group.room(start, end, request.names, alone=request.exclusive) for group in self._groups)
        return [room for room in found if room is not None]

    def is_empty(self, node: str, start: int, end: int) -> bool:
        """Return whether a node is up and nothing is on it during ``[start, end)``."""
        group = self._group_of.get(node)
        return group is not None and not any(use.start < end and start < use.end for use in group.others)

    def has_licenses(self, licenses: Mapping[str, int], start: int, end: int) -> bool:
        """Return whether licences are left during ``[start, end)``."""
        return all(self._licenses.least(name, start, end) >= amount for name, amount in licenses.items())
