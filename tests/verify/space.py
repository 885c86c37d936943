"""The free amounts beside a plan, over time: on groups of equal nodes, and of the cluster's licences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from cpsched.verify.case import Case, Holder, HolderUse
from cpsched.verify.model import Booking, NodeClass, Request, Slice
from cpsched.verify.rules.capacity import license_uses, overcommitted, slice_amounts, sort_out
from cpsched.verify.space import Room
from cpsched.verify.sweep import Use

__all__ = ["Levels", "Space"]

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

    def with_enough(self, needs: Mapping[str, int], duration: int, starts: Iterable[int]) -> Iterator[int]:
        """Yield those of some starts, which ascend, from which on for `duration` seconds at least `needs` are left."""
        times = self.times
        columns = [(self._left.get(name, [0] * len(times)), need) for name, need in needs.items() if need]
        lacking = [at for at in range(len(times)) if any(column[at] < need for column, need in columns)]
        ahead = 0
        for start in starts:
            while ahead < len(lacking) and lacking[ahead] + 1 < len(times) and times[lacking[ahead] + 1] <= start:
                ahead += 1
            if ahead == len(lacking) or times[lacking[ahead]] >= start + duration:
                yield start


class Group:
    """Nodes of one class on which the same amounts are held at the same times; what is free there is worked out once.

    Mutable only in its nodes.
    """

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

    def with_use(self, node: str, use: HolderUse) -> Group:
        """Return a group of one of the nodes, on which a job holds something besides."""
        self.nodes.remove(node)
        taken, jobs, others = [*self.taken, use], [*self.jobs, use], [*self.others, use]
        return Group(self.node_class, [node], self.capacity, taken, jobs, others)

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
    """The nodes that are up, and the licences, beside all that a plan books: of the cluster or `within` a reservation.

    Mutable: jobs may be added.
    """

    def __init__(self, case: Case, within: Slice | None) -> None:
        self._case, self._within = case, within
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
        self.groups = [group for group in groups.values() if group.capacity]
        self.total = Levels(
            (
                (use.start, use.end, {name: amount * len(group.nodes) for name, amount in use.amounts.items()})
                for group in self.groups
                for use in group.taken
            ),
            _sum((group.capacity, len(group.nodes)) for group in self.groups),
        )
        outside, inside = license_uses(case)
        self._license_uses = [
            (use.start, use.end, use.amounts) for use in (outside if within is None else inside.get(within.key, ()))
        ]
        self._has = case.instance.licenses if within is None else within.reservation.licenses
        self._licenses: Levels | None = None

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
        case, own = self._case, self._within
        jobs, closed = case.job_uses.get(node, []), case.closures.get(node, [])
        slices = [*case.slice_uses.get(node, []), *closed]
        outside, inside = sort_out(case, jobs)
        if own is None:
            return Group(node_class, [node], node_class.resources, [*outside, *slices], jobs, [*jobs, *slices])
        foreign = [use for use in slices if use.owner.who is not own]
        taken = [*inside.get(own.key, []), *closed]
        return Group(node_class, [node], slice_amounts(own, node), taken, jobs, [*jobs, *foreign])

    @property
    def nodes(self) -> Collection[str]:
        """The nodes."""
        return self._group_of.keys()

    def rooms(self, request: Request, start: int, end: int, among: Collection[str] | None) -> list[Room]:
        """Return the amounts that are left for a request during ``[start, end)``, on all nodes or `among` some."""
        names = request.names
        if among is None:
            found = (group.room(start, end, names, alone=request.exclusive) for group in self.groups)
            return [room for room in found if room is not None and room.nodes]
        rooms = []
        for node in among:
            room = self._group_of[node].room(start, end, names, alone=request.exclusive)
            if room is not None:
                rooms.append(room._replace(nodes=(node,)))
        return rooms

    def is_empty(self, node: str, start: int, end: int) -> bool:
        """Return whether a node is up and nothing is on it during ``[start, end)``."""
        group = self._group_of.get(node)
        return group is not None and not any(use.start < end and start < use.end for use in group.others)

    def has_licenses(self, licenses: Mapping[str, int], start: int, end: int) -> bool:
        """Return whether licences are left during ``[start, end)``."""
        if self._licenses is None:
            self._licenses = Levels(self._license_uses, self._has)
        return all(self._licenses.least(name, start, end) >= amount for name, amount in licenses.items())

    def add(self, booking: Booking) -> None:
        """Book one more job of the cluster, or of the reservation that this is of."""
        holder = Holder(booking, booking.job.is_exclusive)
        for segment in booking.segments:
            for placement in segment.allocation:
                use = Use(segment.start, segment.end, placement.resources, holder)
                group = self._group_of[placement.node].with_use(placement.node, use)
                self._group_of[placement.node] = group
                self.groups.append(group)
        self._license_uses.append((booking.start, booking.end, booking.job.licenses))
        self._licenses = None


def _sum(amounts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    """Add up amounts, each times its count."""
    total: dict[str, int] = {}
    for one, times in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + times * amount
    return total
