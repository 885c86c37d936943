"""The part of a free pool of some nodes that is left to jobs without access: so much on each node."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from cpsched.domain import Amounts, Job, NodeClass, Placement, Request, ReservedSlice, SetAside
from cpsched.problem.admission import chunks_on_empty_node, packs
from cpsched.problem.amounts import Amount
from cpsched.problem.calendar import Intervals


def quotas(has: Mapping[str, int], first: Mapping[str, int], up: Sequence[str], left: int) -> dict[str, int]:
    """Return how much jobs without access may have on each node of a pool.

    `has`: the amount of the resource on each node of the pool, in document order. `first`: what they have already or
    are to have in reservations, by node: the quotas begin with these. `up`: the nodes that get more, in order. `left`:
    how much they may have in all.
    """
    quota: dict[str, int] = {}
    for node, most in has.items():
        quota[node] = min(left, most, first.get(node, 0))
        left -= quota[node]
    for node in up:
        more = min(left, has[node] - quota[node])
        quota[node] += more
        left -= more
    return quota


def most_held(amounts: Sequence[Amount]) -> int:
    """Return the most of some amounts that are held at the same time."""
    if len(amounts) == 1:
        return amounts[0][2]
    return max(sum(one for first, last, one in amounts if first <= start < last) for start, _, _ in amounts)


def orders(nodes: Sequence[str]) -> Iterator[list[str]]:
    """Yield some nodes in their order, and then with each of the others first."""
    yield list(nodes)
    for node in nodes[1:]:
        yield [node, *(other for other in nodes if other != node)]


def has_room(job: Job, resource: str, room: Mapping[str, int], classes: Mapping[str, NodeClass]) -> bool:
    """Tell whether each kind of chunks of a job (all of a packed one) has room on the nodes that are up.

    `job`: a waiting job. `resource`, `room`: how much each node has of this resource. `classes`: the class of each
    node, which has the other resources; nothing else is there.
    """
    up = [(classes[node], amount) for node, amount in room.items() if classes[node].is_up]

    def nodes() -> Iterator[NodeClass]:
        for node_class, amount in up:
            yield replace(node_class, names=(), resources=Amounts({**node_class.resources, resource: amount}))

    return all(_has_room_for(step.request, job.walltime, nodes) for step in job.steps)


def _has_room_for(request: Request, walltime: int, nodes: Callable[[], Iterator[NodeClass]]) -> bool:
    """Tell whether each kind of chunks of a request has room on some nodes, each a class of its own."""
    place = request.place
    if place.is_packed:
        return any(packs(node, request, walltime) for node in nodes())
    for chunk in request.chunks:
        left = chunk.count
        for node in nodes():
            count = chunks_on_empty_node(node, chunk, walltime, exclusive=place.exclusive)
            left -= min(count, 1) if place.is_scattered else count
            if left <= 0:
                break
        else:
            return False
    return True


class Spread:
    """What is set aside on the nodes of a free pool, so that its quotas are kept; mutable.

    `resource`: the rule as a resource. `times`: when the pool is kept free. `quota`: how much there is for jobs without
    access on each node. `taken`: how much running jobs have outside of reservations, by node.
    """

    def __init__(
        self, resource: str, times: Intervals, quota: Mapping[str, int], taken: Mapping[str, Sequence[Amount]]
    ) -> None:
        self._resource, self._times, self._quota, self._taken = resource, times, quota, taken
        self._parts: dict[str, list[Amount]] = {}
        self._aside: dict[tuple[int, int], list[tuple[Placement, ...]]] = {}

    def close(self, nodes: Sequence[str], amounts: Iterable[Amount]) -> None:
        """Set amounts aside on each of some nodes."""
        held: dict[int, tuple[Placement, ...]] = {}  # the same few amounts are set aside at many times
        for start, end, amount in amounts:
            if amount not in held:
                resources = Amounts({self._resource: amount})
                held[amount] = tuple(Placement(node=node, resources=resources) for node in nodes)
            self._aside.setdefault((start, end), []).append(held[amount])

    def part(self, slice_: ReservedSlice, node: str, name: str, amount: int) -> None:
        """Give a part of a node's quota, at most `amount`, to the jobs of a reservation, whose node is `name`."""
        beside = [*self._taken.get(node, ()), *self._parts.get(node, ())]
        used = sum(here for start, end, here in beside if start < slice_.end and end > slice_.start)
        most = max(0, min(amount, self._quota[node] - used))
        self._parts.setdefault(node, []).append((slice_.start, slice_.end, most))
        for start, end in self._times:
            start, end = max(start, slice_.start), min(end, slice_.end)
            if start < end:
                self.close([node], [(start, end, most)] if most else [])
                self.close([name], [(start, end, amount - most)] if most < amount else [])

    def asides(self) -> Iterator[SetAside]:
        """Yield all of it, of one time together."""
        known: dict[tuple[int, ...], tuple[Placement, ...]] = {}
        for (start, end), parts in self._aside.items():
            key = tuple(map(id, parts))
            if key not in known:
                known[key] = tuple(chain.from_iterable(parts))
            yield SetAside(start=start, end=end, allocation=known[key])
