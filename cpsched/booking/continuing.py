"""The continuation of a running job with other steps than it was promised (EVO-4b): it keeps its nodes.

A job that waits may start later; one that runs holds its nodes until there is what its next step needs, however long
that takes. So each step begins as early as in any schedule, and is held until the next one begins.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.columns import WHOLE_REQUEST, Columns, MappingOrder, kind_of_units
from cpsched.booking.mapping import CheapFirst
from cpsched.booking.running import RunningJobs
from cpsched.domain import (
    Amounts,
    Chunk,
    ChunkLayer,
    Cluster,
    Instance,
    Job,
    NodeState,
    Placement,
    Request,
    Segment,
    chunk_layers,
)
from cpsched.problem import placements
from cpsched.rusv import FOREVER, Timeline

Ints = NDArray[np.int64]
#: The number of chunks of a job on a node, by kind (index in its request; `WHOLE_REQUEST`: all chunks together).
Units = Mapping[int, Mapping[str, int]]


def units_on(request: Request, allocation: Sequence[Placement], cluster: Cluster) -> Units | None:
    """Return which chunks of a request stand on each node of an allocation, or None if they cannot be all it holds.

    The chunks stand as the allocation states them. Where it does not state them, or states those of another request,
    they are guessed from the amounts: if possible so that each is on a node with the properties that it asks for.
    """
    held: dict[str, Counter[str]] = {}
    for placement in allocation:
        held.setdefault(placement.node, Counter()).update(placement.resources)
    if request.place.is_packed:
        is_packed = list(held.values()) == [Counter(request.totals)]
        return {WHOLE_REQUEST: dict.fromkeys(held, 1)} if is_packed else None
    units = _stated(request, allocation)
    if units is None:
        properties = {node: cluster.class_of[node].properties for node in held}
        kinds_on = {
            node: [chunk.where.items() <= properties[node].items() for chunk in request.chunks] for node in held
        }
        anywhere = dict.fromkeys(held, [True] * len(request.chunks))
        units = _guessed(request, held, kinds_on) or _guessed(request, held, anywhere)
    return units


def _stated(request: Request, allocation: Sequence[Placement]) -> Units | None:
    """Return the chunks that an allocation states, or None if these are not those of the request."""
    units: dict[int, dict[str, int]] = {kind: {} for kind in range(len(request.chunks))}
    for placement in allocation:
        kind, count = placement.chunk, placement.count
        if (
            kind is None
            or kind not in units
            or count is None
            or placement.resources != request.chunks[kind].taken(count)
        ):
            return None
        units[kind][placement.node] = units[kind].get(placement.node, 0) + count
    counts = [sum(on_nodes.values()) for on_nodes in units.values()]
    on_node = sum((Counter(on_nodes) for on_nodes in units.values()), Counter())
    is_arranged = not request.place.is_scattered or max(on_node.values()) <= 1
    return units if is_arranged and counts == [chunk.count for chunk in request.chunks] else None


def _guessed(
    request: Request, held: Mapping[str, Counter[str]], kinds_on: Mapping[str, Sequence[bool]]
) -> Units | None:
    """Return chunks of a request that have together what is held, each on a node where its kind may be, or None.

    `held`: the amounts on each node. `kinds_on`: which kinds of chunks may be on each node.
    """
    most = 1 if request.place.is_scattered else sum(chunk.count for chunk in request.chunks)
    # (chunks of each kind that have no node yet) -> the chunks on the nodes before
    found: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {tuple(chunk.count for chunk in request.chunks): ()}
    for node, amounts in held.items():
        on_node = list(_ways_to_make(Amounts(amounts), request.chunks, kinds_on[node]))
        found = {
            tuple(left - count for left, count in zip(lefts, counts, strict=True)): (*before, counts)
            for lefts, before in found.items()
            for counts in on_node
            if sum(counts) <= most
            if all(left >= count for left, count in zip(lefts, counts, strict=True))
        }
    of_nodes = found.get((0,) * len(request.chunks))
    if of_nodes is None:
        return None
    return {
        kind: {node: counts[kind] for node, counts in zip(held, of_nodes, strict=True) if counts[kind]}
        for kind in range(len(request.chunks))
    }


def _ways_to_make(amounts: Amounts, chunks: Sequence[Chunk], may_be: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """Yield how many chunks of each kind have these amounts together; of some kinds there may be none."""
    if not chunks:
        if not any(amounts.values()):
            yield ()
        return
    chunk = chunks[0]
    most = min(amounts.get(name, 0) // amount for name, amount in chunk.resources.items()) if may_be[0] else 0
    for count in range(min(most, chunk.count), -1, -1):
        taken = chunk.taken(count) if count else Amounts()
        left = Amounts({name: amount - taken.get(name, 0) for name, amount in amounts.items()})
        for others in _ways_to_make(left, chunks[1:], may_be[1:]):
            yield (count, *others)


def continuation(instance: Instance, job: Job, units: Units) -> tuple[Segment, ...] | None:
    """Return the segments of a running job from `now` on if it has other steps, one for each step; None: none found.

    Other running jobs keep what they hold and were promised. Chunks come and go in layers (`chunk_layers`): the chunk
    that came last goes first. Where all chunks of the job are equal, each step begins as early as in any such schedule
    that keeps the nodes; if nothing is found, there is none.

    `instance`: the window; waiting jobs do not count. `job`: one of its running jobs, with the remaining steps, which
    need no migration; the first one is what it holds. `units`: which of its chunks stand on each node (`units_on`).
    """
    others = tuple(other for other in instance.jobs if other.running is not None and other.id != job.id)
    on = {node for of_kind in units.values() for node in of_kind}
    grandfathered = frozenset(node for node in on if not instance.cluster.class_of[node].is_up)
    cluster = _opened(instance.cluster, grandfathered)
    there = {name for kind in cluster.classes if kind.is_up for name in kind.resources}
    if not all(name in there for step in job.steps for name in step.request.totals):
        return None
    search = _Search(replace(instance, jobs=others, cluster=cluster), job, units, grandfathered)
    if more := search.grandfathered_nodes():
        cluster = _opened(instance.cluster, grandfathered | more)
        search = _Search(replace(instance, jobs=others, cluster=cluster), job, units, grandfathered | more)
    return search.segments()


def _opened(cluster: Cluster, nodes: frozenset[str]) -> Cluster:
    """Return the cluster with some nodes as the jobs see them that are there already: up, without guards."""
    classes = []
    for node_class in cluster.classes:
        here = tuple(name for name in node_class.names if name in nodes)
        rest = tuple(name for name in node_class.names if name not in nodes)
        if rest:
            classes.append(replace(node_class, names=rest))
        if here:
            classes.append(replace(node_class, names=here, state=NodeState.UP, admits=(), keep_free=()))
    return replace(cluster, classes=tuple(classes))


class _Search:
    """Where the steps of one running job find place; on its clock `now` is second 0.

    `grandfathered`: nodes on which the job may keep what it has, and gets no more chunks: it could not come there now.
    """

    def __init__(self, instance: Instance, job: Job, units: Units, grandfathered: frozenset[str]) -> None:
        self._columns = Columns(instance.cluster, CheapFirst())
        self.timeline = Timeline(self._columns.demands)
        RunningJobs(instance, self._columns, self.timeline, frozenset())
        self._now, self.job = instance.now, job
        requests = [step.request for step in job.steps]
        self._durations = [step.walltime for step in job.steps]
        walltime = sum(self._durations)
        self._demands = [self._columns.compile(request, job.licenses, walltime) for request in requests]
        demands = self._columns.demands
        #: For each step, the kind of its demand for each kind of its chunks.
        self.number = [
            {self._columns.kind_of(kind): kind for kind, _ in demands.kinds_of(demand)} for demand in self._demands
        ]
        widest = max(requests, key=lambda request: len(request.chunks))
        self._orders = self._columns.mapping_orders(widest, walltime)
        self.held = {kind: self._by_number(on_nodes) for kind, on_nodes in units.items()}
        self.is_grandfathered = self._by_number(dict.fromkeys(grandfathered, 1)) > 0

    def _by_number(self, on_nodes: Mapping[str, int]) -> Ints:
        counts: Ints = np.zeros(len(self._columns.node_names), dtype=np.int64)
        for node, count in on_nodes.items():
            counts[self._columns.node_number[node]] = count
        return counts

    def grandfathered_nodes(self) -> frozenset[str]:
        """Return the nodes on which it could not have now what it has, or never what it asks for later."""
        demands, last = self._columns.demands, int(self.timeline.breakpoints()[-1])
        free, empty = (self.timeline.least_free(time, time + 1)[0] for time in (0, last))
        is_grandfathered = np.zeros(len(self._columns.node_names), dtype=bool)
        for kind, units in self.held.items():
            is_grandfathered |= demands.units_in(self.number[0][kind], free) < units
            demands.take(self.number[0][kind], np.where(is_grandfathered, 0, units), free)
            for number in (kinds[kind] for kinds in self.number if kind in kinds):
                is_grandfathered |= (units > 0) & (demands.units_in(number, empty) == 0)
        return frozenset(self._columns.node_names[node] for node in np.flatnonzero(is_grandfathered))

    def segments(self) -> tuple[Segment, ...] | None:
        """Return its segments from now on.

        The begins of the steps are bounds that only rise: what is ruled out is so in every schedule that begins no step
        earlier. When nothing is ruled out any more, they are a schedule.
        """
        begins = [sum(self._durations[:step]) for step in range(len(self._durations))]
        breaks = self.timeline.breakpoints()
        while self._raise(begins):
            times = list(zip(begins, [*begins[1:], begins[-1] + self._durations[-1]], strict=True))
            attempts = [_Attempt(self, order, times) for order in self._orders]
            late = [attempt.late_step() for attempt in attempts]
            if None in late:
                return self._said(attempts[late.index(None)].units, times)
            step = max(found for found in late if found is not None)
            later = breaks[breaks > begins[step]]
            if step == 0 or not len(later):
                return None
            begins[step] = int(later[0])
        return None

    def _raise(self, begins: list[int]) -> bool:
        """Raise begins to where each step finds room by itself, after the one before it; return whether all do."""
        for step in range(1, len(begins)):
            begins[step] = max(begins[step], begins[step - 1] + self._durations[step - 1])
            fit = self.timeline.earliest_fit(
                self._demands[step], earliest=begins[step], latest=FOREVER // 2, duration=self._durations[step]
            )
            if fit is None:
                return False
            begins[step] = fit.start
        return True

    def _said(self, units: Sequence[Mapping[int, Ints]], times: Sequence[tuple[int, int]]) -> tuple[Segment, ...]:
        """Return chunks on nodes as segments, as running jobs have them."""
        return tuple(
            Segment(
                start=self._now + start, end=self._now + end, allocation=self._allocation(step.request, units_of_step)
            )
            for step, units_of_step, (start, end) in zip(self.job.steps, units, times, strict=True)
        )

    def _allocation(self, request: Request, units: Mapping[int, Ints]) -> tuple[Placement, ...]:
        """Return the chunks on each node as placements, in the order of the document."""
        names = self._columns.node_names
        rows = (
            (names[node], kind, int(counts[node]))
            for kind, counts in units.items()
            for node in np.flatnonzero(counts).tolist()
        )
        held = placements(request.chunks, self._columns.in_chunks(request, rows))
        order = {name: place for place, name in enumerate(self._columns.cluster.node_names)}
        return tuple(sorted(held, key=lambda one: order[one.node]))


class _Attempt:
    """One trial to place all chunks of a running job whose steps have fixed times; mutable.

    Chunks that are there already are placed first, and chunks that stay longer before chunks that stay shorter:
    each kind comes and goes in layers, so that no chunk takes a place that another one of its kind needs.
    """

    def __init__(self, search: _Search, order: MappingOrder, times: Sequence[tuple[int, int]]) -> None:
        self._order, self._number = order, search.number
        self._demands = search.timeline.demands
        self._free = [search.timeline.least_free(start, end)[0] for start, end in times]
        place = search.job.steps[0].request.place
        self._is_scattered = place.is_scattered
        everywhere = np.ones(len(search.is_grandfathered), dtype=bool)
        self._usable = [
            search.timeline.idle_nodes(free) if place.exclusive and step else everywhere.copy()  # it is where it is
            for step, free in enumerate(self._free)
        ]
        self._layers = sorted(
            chunk_layers(search.job), key=lambda layer: (layer.first > 0, order.kinds.index(kind_of_units(layer)))
        )
        self._here = {kind: counts.copy() for kind, counts in search.held.items()}
        self._may_come = ~search.is_grandfathered
        #: The chunks on each node, by step and kind.
        self.units: list[dict[int, Ints]] = [
            {kind: np.zeros(len(everywhere), dtype=np.int64) for kind in kinds} for kinds in search.number
        ]

    def late_step(self) -> int | None:
        """Place all chunks; return a step that has to begin later, or None if all have a place."""
        for layer in self._layers:
            late = self._place(layer)
            if late is not None:
                return late
        return None

    def _place(self, layer: ChunkLayer) -> int | None:
        """Give the chunks of a layer their nodes; return the step that has to begin later if there are too few."""
        kind, steps = kind_of_units(layer), range(layer.first, layer.last + 1)
        at_most = self._here[kind] if layer.first == 0 else self._may_come * layer.count
        rooms = [np.minimum(self._room(step, kind), at_most) for step in steps]
        room = np.min(rooms, axis=0)
        if room.sum() < layer.count:
            return layer.first + _too_early(rooms, layer.count)
        in_order = room[self._order.nodes]
        units = np.zeros_like(room)
        units[self._order.nodes] = np.clip(layer.count - np.cumsum(in_order) + in_order, 0, in_order)
        for step in steps:
            self._demands.take(self._number[step][kind], units, self._free[step])
            self.units[step][kind] += units
            if self._is_scattered:
                self._usable[step] &= units == 0
        if layer.first == 0:
            self._here[kind] -= units
        return None

    def _room(self, step: int, kind: int) -> Ints:
        """Return how many more chunks of a kind have room on each node throughout a step."""
        room = self._demands.units_in(self._number[step][kind], self._free[step]) * self._usable[step]
        return np.minimum(room, 1) if self._is_scattered else room


def _too_early(rooms: Sequence[Ints], count: int) -> int:
    """Return which of the steps of a layer begins too early, if there are too few nodes with room in all of them.

    It is the last one with which what follows, up to the first moment at which too few are left, is too much: if all
    steps take the same of a node, no schedule begins that one so early.
    """
    last = next(step for step in range(len(rooms)) if np.min(rooms[: step + 1], axis=0).sum() < count)
    return next(step for step in range(last, -1, -1) if np.min(rooms[step : last + 1], axis=0).sum() < count)
