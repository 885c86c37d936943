"""The naive twin of the planner: OpenCCS (Keller, JSSPP 2017) literally, on vector values, slow and plain.

Phase 1 finds the times at which the whole system has enough (OCCS-21, 23), phase 2 the nodes (OCCS-26 to 30). A node
has one `UsedVector` for each of its resources, and one more for each of its `keep_free` rules: what the chunks that do
not ask for the rule's beneficiary use together, of the amount less the items (OCCS-40). Two vectors of one item each
say whether any job holds the node, and whether a job has it exclusively (OCCS-18).

Candidate starts are the beginning of a window and every later second at which a booking ends (OCCS-29). For one kind
of chunk, or on one node, no second between them can be better; for several kinds one can: less room on a cheap node may
send a chunk elsewhere and leave that node to another kind. This planner does not look for such luck.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import permutations

from cpsched.domain import (
    Arrangement,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    Instance,
    Job,
    KeepFree,
    NodeClass,
    NodeState,
)
from cpsched.problem import refusal
from cpsched.rusv import FOREVER
from tests.oracle.vector import Slot, UsedVector, WindowVector

#: What a node counts: a resource, or what a rule keeps free.
Counter = str | KeepFree
#: Which chunks stand where: (node name, kind of the chunk, count).
Mapped = list[tuple[str, int, int]]


def plan_literally(instance: Instance) -> dict[str, tuple[int, Mapped] | None]:
    """Plan every waiting job, one after the other, each at its earliest start.

    Returns
    -------
    dict
        For each waiting job (the elements of an array by themselves) its start and where its chunks stand, sorted by
        node index and kind; None for a job that has no start.

    Raises
    ------
    ValueError
        If a job is not rigid, or the instance has rules that this planner does not know.
    """
    _refuse_what_is_not_rigid(instance)
    machine = Machine(instance.cluster)
    for job in instance.jobs:
        if job.running is not None:
            machine.book_running(job)
    plan: dict[str, tuple[int, Mapped] | None] = {job.id: None for job in instance.elements() if job.running is None}
    for job in planning_order(instance):
        start = start_after_awaited(instance, job, plan)
        if start is None:
            continue
        held_back = replace(job, not_before=max(start, instance.earliest_start(job)))
        interval = search_interval(instance, held_back)
        plan[job.id] = machine.place(job, *interval) if interval else None
    return plan


def awaited(instance: Instance, job: Job) -> list[tuple[Dependency, Job]]:
    """Return the jobs that a job waits for, one by one, each with the dependency that says so (OCCS-49)."""
    found = []
    for dependency in job.after:
        for entry in instance.jobs:
            indices: tuple[int | None, ...] = (None,) if entry.array is None else entry.array
            for index in indices:
                element = entry.id if index is None else f"{entry.id}[{index}]"
                if dependency.job in (entry.id, element):
                    found.append((dependency, replace(entry, id=element, array=None)))
    return found


def start_after_awaited(instance: Instance, job: Job, plan: Mapping[str, tuple[int, Mapped] | None]) -> int | None:
    """Return the first second that those for whom a job waits leave it, None if one of them has no start."""
    first = instance.now
    for dependency, other in awaited(instance, job):
        if other.running is not None:
            start, end = other.running.start, other.running.segments[-1].end
        elif (place := plan.get(other.id)) is not None:
            start, end = place[0], place[0] + other.walltime
        else:
            return None
        moment = start if dependency.type is DependencyType.AFTER else end
        first = max(first, moment + dependency.delay)
    return first


def _refuse_what_is_not_rigid(instance: Instance) -> None:
    if instance.limits or instance.free_pools or instance.reservations:
        raise ValueError("Expected an instance without limits, free pools and reservations")
    for job in instance.jobs:
        if job.is_evolving or job.malleability or job.reservation is not None:
            raise ValueError(f"Expected rigid jobs, got {job.id}")


def planning_order(instance: Instance) -> list[Job]:
    """Return the jobs that may be planned: fixed starts, deadlines, hard limits of waiting, overdue jobs, the rest;
    each by due time (of limits), priority, submit time and document order.

    A job comes when all that it waits for have come.
    """
    kinds = kinds_of_start(instance)
    left = [job for job in instance.elements() if job.id in kinds]
    left.sort(key=lambda job: (kinds[job.id], -instance.priority(job), job.submit))
    order: list[Job] = []
    while left:
        names = {job.id for job in left}
        order.append(next(job for job in left if not names & {other.id for _, other in awaited(instance, job)}))
        left.remove(order[-1])
    return order


def kinds_of_start(instance: Instance) -> dict[str, tuple[int, int]]:
    """Return kind and due time of each job that may be planned: its own, or the most urgent of those that wait for it,
    directly or not.
    """
    possible = [job for job in instance.elements() if job.running is None and refusal(instance, job) is None]
    kinds = {job.id: _kind_of_start(instance, job) for job in possible}
    for _ in possible:  # each round reaches at least one job further
        for job in possible:
            for _, other in awaited(instance, job):
                if other.id in kinds:
                    kinds[other.id] = min(kinds[other.id], kinds[job.id])
    return kinds


def _kind_of_start(instance: Instance, job: Job) -> tuple[int, int]:
    """Return the job's kind and, for limits of waiting, the second at which the job is or was due."""
    if job.start_at is not None:
        return 0, 0
    if job.deadline is not None:
        return 1, 0
    rule = None if job.queue is None else instance.queues[job.queue].max_wait
    if rule is not None and job.submit + rule.seconds < instance.now:
        return 3, job.submit + rule.seconds
    return (2, job.submit + rule.seconds) if rule is not None and rule.is_hard else (4, 0)


def search_interval(instance: Instance, job: Job) -> tuple[int, int] | None:
    """Return ``[T1, T2)``, in which the job must lie (OCCS-20), or None if nothing can lie there."""
    longest = None if job.queue is None else instance.queues[job.queue].max_walltime
    if longest is not None and job.walltime > longest:
        return None
    start, end = instance.earliest_start(job), FOREVER if job.deadline is None else job.deadline
    rule = None if job.queue is None else instance.queues[job.queue].max_wait
    if rule is not None and rule.is_hard and job.submit + rule.seconds >= instance.now:
        end = min(end, job.submit + rule.seconds + job.walltime)
    if job.start_at is not None:
        if job.start_at < start:
            return None
        start, end = job.start_at, min(end, job.start_at + job.walltime)
    return (start, end) if start + job.walltime <= end else None


def node_weight(cluster: Cluster, node_class: NodeClass) -> Fraction:
    """Return how expensive a node is: its largest share of the system in any resource, plus its priority (OCCS-26).

    The paper multiplies by the cores of the system, the same for all nodes, which leaves the order as it is.
    """
    shares = [Fraction(amount, cluster.totals[name]) for name, amount in node_class.resources.items() if amount]
    return max(shares, default=Fraction(0)) + node_class.priority


def chunk_weight(cluster: Cluster, chunk: Chunk) -> Fraction:
    """Return the largest share that a chunk takes of what any one node has of a resource (OCCS-27)."""
    return max(
        Fraction(amount, max(node_class.resources.get(name, 0) for node_class in cluster.classes))
        for name, amount in chunk.resources.items()
    )


def mapping_orders(cluster: Cluster, job: Job) -> list[tuple[tuple[int, ...], list[str]]]:
    """Return the (kinds, node names) orders in which a request is mapped, each tried where those before it fail.

    First the paper's (OCCS-26, 27). A request of several kinds is then tried with its kinds in all orders (beyond three
    in all rotations), the nodes first that the fewest of its kinds could use on an empty cluster.
    """
    chunks = job.request.chunks
    names = sorted(cluster.node_names, key=lambda name: node_weight(cluster, cluster.class_of[name]))
    expensive_first = tuple(sorted(range(len(chunks)), key=lambda kind: -chunk_weight(cluster, chunks[kind])))
    orders = [(expensive_first, names)]
    if len(chunks) > 1:
        empty = {name: Node.empty(name, 0, cluster.class_of[name]) for name in names}
        particular = sorted(names, key=lambda name: sum(empty[name].could_hold(job, chunk) for chunk in chunks))
        turned = (expensive_first[turn:] + expensive_first[:turn] for turn in range(len(chunks)))
        orders += [(kinds, particular) for kinds in (permutations(expensive_first) if len(chunks) <= 3 else turned)]
    return orders


@dataclass
class Node:
    """One node, and what is booked on it. Mutable: the vectors are replaced as jobs are booked."""

    name: str
    index: int
    node_class: NodeClass
    used: dict[Counter, UsedVector]
    #: One item, in use while any job has anything on the node.
    holders: UsedVector
    #: One item, in use while a job has the node exclusively.
    closed: UsedVector

    @classmethod
    def empty(cls, name: str, index: int, node_class: NodeClass) -> Node:
        """Return a node on which nothing is booked."""
        amounts: dict[Counter, int] = {}
        amounts.update(node_class.resources)
        for rule in node_class.keep_free:
            amounts[rule] = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
        used = {counter: UsedVector(max_avl=amount) for counter, amount in amounts.items()}
        return cls(name, index, node_class, used, UsedVector(max_avl=1), UsedVector(max_avl=1))

    def demands(self, resources: Mapping[str, int]) -> dict[Counter, int]:
        """Return what `resources` take of each counter; nothing of a rule whose beneficiary is among them."""
        demands: dict[Counter, int] = {name: amount for name, amount in resources.items() if amount}
        for rule in self.node_class.keep_free:
            if resources.get(rule.resource, 0) and not resources.get(rule.beneficiary, 0):
                demands[rule] = resources[rule.resource]
        return demands

    def admits(self, job: Job, chunk: Chunk) -> bool:
        """Return whether the node is a candidate: state, guard, properties and exclusive use (OCCS-28.1, 40, 41)."""
        node_class = self.node_class
        return (
            node_class.state is NodeState.UP
            and node_class.is_admitted(chunk.resources, job.walltime)
            and all(node_class.properties.get(name) == value for name, value in chunk.where.items())
            and all(name in node_class.resources for name in chunk.resources)
            and not (
                job.request.place.exclusive
                and any(rule.beneficiary not in chunk.resources for rule in node_class.keep_free)
            )
        )

    def could_hold(self, job: Job, chunk: Chunk) -> bool:
        """Return whether one such chunk could stand here if the node were empty."""
        return self.admits(job, chunk) and all(
            amount <= self.used[counter].max_avl for counter, amount in self.demands(chunk.resources).items()
        )

    def free_chunks(self, job: Job, chunk: Chunk, start: int, end: int) -> WindowVector:
        """Return how many such chunks are free, and when for as long as the job lasts (FCN, OCCS-28.2)."""
        if not self.admits(job, chunk):
            return WindowVector()
        place = job.request.place
        gate = self.holders if place.exclusive else self.closed
        chunks = reduce(
            operator.and_,
            (
                self.used[counter].free_slots(amount, job.walltime, start, end)
                for counter, amount in self.demands(chunk.resources).items()
            ),
        ).within(gate.free_slots(1, job.walltime, start, end))
        if place.arrangement is Arrangement.SCATTER:
            chunks = chunks.capped(1)
        return chunks.at_least(1, job.walltime)

    def hold(self, start: int, end: int, *, exclusive: bool) -> None:
        """Book the node for a job during ``[start, end)``."""
        self.holders = self.holders.increment(Slot(start, end, 1))
        if exclusive:
            self.closed = self.closed.increment(Slot(start, end, 1))


class Machine:
    """Everything that is booked: the nodes, the system's sums over the nodes that are up, and the licences. Mutable."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.nodes = [Node.empty(name, i, cluster.class_of[name]) for i, name in enumerate(cluster.node_names)]
        self.by_weight = sorted(self.nodes, key=lambda node: (node_weight(cluster, node.node_class), node.index))
        down = {
            name: sum(
                node.node_class.resources.get(name, 0) for node in self.nodes if node.node_class.state != NodeState.UP
            )
            for name in cluster.totals
        }
        self.system = {name: UsedVector(max_avl=amount, defect=down[name]) for name, amount in cluster.totals.items()}
        self.licenses = {name: UsedVector(max_avl=amount) for name, amount in cluster.licenses.items()}
        #: When bookings end.
        self.releases: set[int] = set()

    # ---- booking (OCCS-33) ----

    def book_running(self, job: Job) -> None:
        """Book a running job on the nodes that it has, whatever the rules say about that."""
        assert job.running is not None
        for segment in job.running.segments:
            for node in self.nodes:
                held = [placement.resources for placement in segment.allocation if placement.node == node.name]
                if held:
                    demands = node.demands(_total(held))
                    self._book_node(node, [demands], segment.start, segment.end, job.request.place.exclusive)
            self._book_licenses(job, segment.start, segment.end)

    def book(self, job: Job, start: int, mapped: Mapped) -> None:
        """Book a job from its start on, where its chunks stand."""
        end = start + job.walltime
        for node in self.nodes:
            demands = [
                {
                    counter: count * amount
                    for counter, amount in node.demands(job.request.chunks[kind].resources).items()
                }
                for name, kind, count in mapped
                if name == node.name
            ]
            if demands:
                self._book_node(node, demands, start, end, job.request.place.exclusive)
        self._book_licenses(job, start, end)

    def _book_node(
        self, node: Node, demands: Iterable[Mapping[Counter, int]], start: int, end: int, exclusive: bool
    ) -> None:
        """Book what one job takes of one node, and what of that counts for the system."""
        node.hold(start, end, exclusive=exclusive)
        for counter, amount in (item for demand in demands for item in demand.items()):
            node.used[counter] = node.used[counter].increment(Slot(start, end, amount))
            if isinstance(counter, str) and node.node_class.state is NodeState.UP:
                self.system[counter] = self.system[counter].increment(Slot(start, end, amount))
        self.releases.add(end)

    def _book_licenses(self, job: Job, start: int, end: int) -> None:
        for name, amount in job.licenses.items():
            if amount:
                self.licenses[name] = self.licenses[name].increment(Slot(start, end, amount))

    # ---- planning (phase 1: OCCS-21 to 23; phase 2: OCCS-26 to 30) ----

    def place(self, job: Job, start: int, end: int) -> tuple[int, Mapped] | None:
        """Book the job at its earliest start in ``[start, end)``; return when and where, None if it has no start."""
        chunks = dict(enumerate(job.request.chunks))
        fitting = self._fitting(job, start, end)
        if not all(fitting[kind] for kind in chunks):
            return None
        windows = self._system_windows(job, start, end)
        for kind, chunk in chunks.items():
            windows &= sum(fitting[kind].values(), WindowVector()).at_least(chunk.count, job.walltime)
        for first, last in windows.at_least(1, job.walltime).runs():
            for second in sorted({first, *self.releases}):
                if first <= second and second + job.walltime <= last:
                    mapped = self._mapped(job, fitting, second)
                    if mapped is not None:
                        self.book(job, second, mapped)
                        return second, mapped
        return None

    def _system_windows(self, job: Job, start: int, end: int) -> WindowVector:
        """Return when the system has enough of all that the job asks for (R_freeSlots, OCCS-23)."""
        windows = WindowVector((Slot(start, end, 1),))
        for vectors, totals in ((self.system, job.request.totals), (self.licenses, job.licenses)):
            for name, amount in totals.items():
                vector = vectors.get(name, UsedVector(max_avl=0))
                windows = windows.within(vector.free_slots(amount, job.walltime, start, end))
        return windows.at_least(1, job.walltime)

    def _fitting(self, job: Job, start: int, end: int) -> dict[int, dict[int, WindowVector]]:
        """Return for each kind of chunk the windows of the nodes that have any, by node index, cheap nodes first."""
        return {
            kind: {
                node.index: windows
                for node in self.by_weight
                if (windows := node.free_chunks(job, chunk, start, end)).slots
            }
            for kind, chunk in enumerate(job.request.chunks)
        }

    def _mapped(self, job: Job, fitting: dict[int, dict[int, WindowVector]], start: int) -> Mapped | None:
        """Return where the chunks stand if the job starts at `start` (OCCS-29, 30), or None."""
        if job.request.place.arrangement is Arrangement.PACK:
            kinds = tuple(range(len(job.request.chunks)))
            tries = [(kinds, [node]) for node in self.by_weight]
        else:
            named = {node.name: node for node in self.nodes}
            tries = [(kinds, [named[name] for name in names]) for kinds, names in mapping_orders(self.cluster, job)]
        mappings = (self._greedily_mapped(job, fitting, kinds, nodes, start) for kinds, nodes in tries)
        return next((mapped for mapped in mappings if mapped is not None), None)

    def _greedily_mapped(
        self,
        job: Job,
        fitting: dict[int, dict[int, WindowVector]],
        kinds: tuple[int, ...],
        nodes: list[Node],
        start: int,
    ) -> Mapped | None:
        """Put kinds and nodes together in these orders, as many chunks as fit throughout; None if some are left."""
        end = start + job.walltime
        room = {
            node.index: {counter: vector.avl - max(vector.values(start, end)) for counter, vector in node.used.items()}
            for node in nodes
        }
        is_scattered = job.request.place.arrangement is Arrangement.SCATTER
        mapped: list[tuple[int, int, int]] = []
        for kind in kinds:
            chunk = job.request.chunks[kind]
            missing = chunk.count
            for node in nodes:
                if node.index not in fitting[kind] or (
                    is_scattered and node.index in {index for index, _, _ in mapped}
                ):
                    continue
                demands = node.demands(chunk.resources)
                alone = min(fitting[kind][node.index].values(start, end))
                count = min(missing, alone, *(room[node.index][name] // amount for name, amount in demands.items()))
                if count > 0:
                    mapped.append((node.index, kind, count))
                    missing -= count
                    for counter, amount in demands.items():
                        room[node.index][counter] -= count * amount
            if missing:
                return None
        return [(self.nodes[index].name, kind, count) for index, kind, count in sorted(mapped)]


def _total(held: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of several amounts."""
    total: dict[str, int] = {}
    for resources in held:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total
