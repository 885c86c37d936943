"""Laying the chunks of a job on nodes that have room for them, and those of its steps on nodes that it keeps.

What is found is a proof that it fits. That nothing is found proves something only of one kind of chunk, and of `pack`.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from cpsched.verify.model import Chunk, Job, NodeClass, Request, Step
from cpsched.verify.space import Room

#: The number of chunks of each kind on each node.
Layout = dict[str, tuple[int, ...]]

#: Returns what is left during ``[start, end)`` for a request, on all nodes or among some.
Finder = Callable[[Request, int, int, Collection[str] | None], list[Room]]


def lay(request: Request, walltime: int, rooms: Sequence[Room]) -> Layout | None:
    """Lay all chunks of a job of `walltime` s on nodes, in a few orders (one does for one kind or `pack`), or None."""
    wanted = [chunk.count for chunk in request.chunks]
    for kinds in _orders(request, walltime, rooms):
        for ordered in (rooms, rooms[::-1]) if len(wanted) > 1 else (rooms,):
            layout = _lay_in_order(request, walltime, ordered, kinds, wanted)
            if layout is not None:
                return layout
    return None


def lay_in_groups(request: Request, walltime: int, groups: Iterable[Sequence[Room]]) -> Layout | None:
    """Lay chunks of one kind on the nodes of groups, in each whole segments or no more than may be there; None if
    they do not fit. Each group takes as many as it can, which leaves least for the others.
    """
    (chunk,), layout = request.chunks, Layout()
    left, size = chunk.count, request.segment or 1
    for rooms in groups:

        def laid(times: int, rooms: Sequence[Room] = rooms) -> Layout | None:
            return lay(replace(request, chunks=(replace(chunk, count=times * size),)), walltime, rooms)

        most = (left if request.spread is None else min(left, request.spread)) // size
        times = bisect_left(range(1, most + 1), True, key=lambda times: laid(times) is None)
        layout |= (laid(times) or {}) if times else {}
        left -= times * size
    return layout if left == 0 else None


def _orders(request: Request, walltime: int, rooms: Sequence[Room]) -> Iterator[tuple[int, ...]]:
    """Yield orders of the kinds of chunks: that with fewest hosts first, that with the largest part of a node first."""
    kinds = range(len(request.chunks))
    if len(kinds) == 1 or request.arrangement == "pack":
        yield tuple(kinds)
        return

    def hosts(kind: int) -> int:
        return sum(len(room.nodes) for room in rooms if _may_host(room, request, request.chunks[kind], walltime))

    def size(kind: int) -> float:
        amounts = request.chunks[kind].resources.items()
        return max(amount / max(1, *(room.free[name] for room in rooms)) for name, amount in amounts) if rooms else 0

    rarest_first = tuple(sorted(kinds, key=hosts))
    largest_first = tuple(sorted(kinds, key=size, reverse=True))
    yield from dict.fromkeys([rarest_first, largest_first, tuple(kinds), tuple(reversed(kinds))])


def _lay_in_order(
    request: Request, walltime: int, rooms: Sequence[Room], kinds: Sequence[int], wanted: Sequence[int]
) -> Layout | None:
    """Lay chunks on one node after the other, kind after kind."""
    left, layout = list(wanted), Layout()
    for room in rooms:
        first = 0
        while first < len(room.nodes):
            laid = _fill(room, request, kinds, left, walltime)
            if request.arrangement == "pack":
                if laid == left:
                    return {room.nodes[0]: tuple(laid)}
                break
            if not any(laid):
                break
            # as many of the like nodes as take the same
            last = first + min(count // here for count, here in zip(left, laid, strict=True) if here)
            nodes = room.nodes[first:last]
            layout.update(dict.fromkeys(nodes, tuple(laid)))
            left = [count - len(nodes) * here for count, here in zip(left, laid, strict=True)]
            if not any(left):
                return layout
            first = last
    return None


def _may_host(room: Room, request: Request, chunk: Chunk, walltime: int) -> bool:
    """Return whether a chunk of a job of `walltime` seconds may be on the nodes, free amounts ignored."""
    node = room.node_class
    if request.exclusive and any(one.beneficiary not in chunk.resources for one in node.keep_free):
        return False
    return node.has_properties(chunk) and node.admits_chunk(chunk, walltime)


def _fill(room: Room, request: Request, kinds: Sequence[int], wanted: Sequence[int], walltime: int) -> list[int]:
    """Return how many chunks of each kind one of the nodes takes, if the kinds come in this order."""
    free, to_others = dict(room.free), list(room.to_others)
    laid = [0] * len(wanted)
    for kind in kinds:
        chunk = request.chunks[kind]
        if not wanted[kind] or not _may_host(room, request, chunk, walltime):
            continue
        here = min([wanted[kind], *(max(0, free[name]) // amount for name, amount in chunk.resources.items())])
        foreign = [
            (index, chunk.resources[entry.resource])
            for index, entry in enumerate(room.node_class.keep_free)
            if entry.beneficiary not in chunk.resources and entry.resource in chunk.resources
        ]
        here = min([here, *(max(0, to_others[index]) // amount for index, amount in foreign)])
        if request.arrangement == "scatter":
            here = min(here, 1 - sum(laid))
        for name, amount in chunk.resources.items():
            free[name] -= here * amount
        for index, amount in foreign:
            to_others[index] -= here * amount
        laid[kind] = here
    return laid


def lay_steps(steps: Sequence[Step], walltime: int, start: int, find: Finder) -> list[Layout] | None:
    """Lay the steps of a job one after the other from `start` on, each for its walltime; None if nothing is found.

    A job keeps its nodes as the rule ``evolving`` has it. Begun is with the largest step, or with the first one; on
    nodes that are free for the whole job, or only for the step.
    """
    starts = [start]
    for step in steps:
        starts.append(starts[-1] + step.walltime)
    if len(steps) == 1:
        layout = lay(steps[0].request, walltime, find(steps[0].request, start, starts[1], None))
        return None if layout is None else [layout]
    largest = max(range(len(steps)), key=lambda index: sum(steps[index].request.totals().values()))
    for begin in dict.fromkeys((largest, 0)):
        for window in ((start, starts[-1]), (starts[begin], starts[begin + 1])):
            request = steps[begin].request
            first = lay(request, walltime, find(request, *window, None))
            laid = None if first is None else _lay_beside(steps, walltime, starts, begin, first, find)
            if laid is not None:
                return laid
    return None


def _lay_beside(
    steps: Sequence[Step], walltime: int, starts: Sequence[int], begin: int, first: Layout, find: Finder
) -> list[Layout] | None:
    """Lay all other steps, outwards from one that is laid."""
    laid = {begin: first}
    for index, neighbour in (
        *((index, index - 1) for index in range(begin + 1, len(steps))),
        *((index, index + 1) for index in range(begin - 1, -1, -1)),
    ):
        before, after = steps[min(index, neighbour)].request.totals(), steps[max(index, neighbour)].request.totals()
        names = {*before, *after}
        grows = any(after.get(name, 0) > before.get(name, 0) for name in names)
        shrinks = any(after.get(name, 0) < before.get(name, 0) for name in names)
        within, around = True, True
        if grows != shrinks:
            # the nodes of the smaller one are nodes of the larger one
            within = shrinks == (index > neighbour)
            around = not within
        request, window = steps[index].request, (starts[index], starts[index + 1])
        layout = None
        if within:
            layout = lay(request, walltime, find(request, *window, laid[neighbour]))
        if layout is None and around:
            layout = _lay_around(request, walltime, laid[neighbour], find(request, *window, None))
        if layout is None:
            return None
        laid[index] = layout
    return [laid[index] for index in range(len(steps))]


def _lay_around(request: Request, walltime: int, kept: Layout, rooms: Sequence[Room]) -> Layout | None:
    """Lay all chunks of a request so that each of some nodes has at least one; None if nothing is found."""
    own: dict[str, Room] = {}
    others: list[Room] = []
    for room in rooms:
        own.update((node, room._replace(nodes=(node,))) for node in room.nodes if node in kept)
        others.append(room._replace(nodes=[node for node in room.nodes if node not in kept]))
    if len(own) < len(kept):
        return None
    kinds = range(len(request.chunks))
    left, layout = [chunk.count for chunk in request.chunks], Layout()
    for number, node in enumerate(kept):
        behind = len(kept) - number - 1
        spare = sum(left) - behind  # so many that one is left for each of the others
        laid = [0] * len(left)
        for kind, most in enumerate(_fill(own[node], request, kinds, left, walltime)):
            laid[kind] = min(most, spare - sum(laid))
        if not any(laid):
            return None
        layout[node] = tuple(laid)
        left = [count - here for count, here in zip(left, laid, strict=True)]
    if any(left):
        if request.arrangement == "pack":
            return None
        rest = _lay_in_order(request, walltime, others, kinds, left)
        return None if rest is None else {**layout, **rest}
    return layout


class EmptyCluster:
    """The nodes of an instance, or those that are up, without any job.

    `classes`: classes of nodes with their names. `queue`: the queue for the jobs of which they are empty: other nodes
    than its own are left out.
    """

    def __init__(self, classes: Iterable[tuple[NodeClass, Sequence[str]]], queue: str | None) -> None:
        self._classes = [one for one in classes if queue not in one[0].closed_to]

    def rooms(self, request: Request, start: int, end: int, among: Collection[str] | None) -> list[Room]:
        """Return the amounts of the nodes for a request, at any time."""
        rooms = []
        for node_class, names in self._classes:
            nodes = names if among is None else [name for name in names if name in among]
            if nodes:
                free = {name: node_class.resources.get(name, 0) for name in request.names}
                kept = [
                    max(0, node_class.resources.get(entry.resource, 0) - entry.items) for entry in node_class.keep_free
                ]
                rooms.append(Room(node_class, free, kept, nodes))
        return rooms

    def layouts(self, job: Job, among: Collection[str] | None) -> list[Layout] | None:
        """Return nodes for each step of a job at full share, all or `among` some, or None if none are found."""
        return lay_steps(
            job.steps,
            job.walltime,
            0,
            lambda request, start, end, kept: self.rooms(request, start, end, among if kept is None else kept),
        )
