"""The contents of one node: units, node shapes, and exact knapsacks over them.

A *unit* is on one node and is never split: a chunk, or all chunks of a packed request. A *shape* is a kind of node:
its resources, and the units that it admits. Give each kind of unit any size: the sum of sizes of all units on a node
is at most the largest sum that fits on the node, a knapsack. So each
vector of sizes gives a valid aggregated resource, the sum over the nodes: a *surrogate* (dual-feasible functions of
Fekete and Schepers 2001 are the vectors that are known in closed form).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Job, NodeClass

#: States of the largest knapsack table.
MOST_STATES = 6000
#: The most levels of one resource in a table; more are counted in steps of this many parts.
_MOST_LEVELS = 65


@dataclass(frozen=True, slots=True)
class Unit:
    """Amounts that are on one node together; `classes` are the numbers of the node classes that admit them."""

    amounts: Amounts
    classes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Shape:
    """The amounts of a node, and the units that it admits (indices)."""

    resources: FrozenMap[str, int]
    units: tuple[int, ...]


def units_of(cluster: Cluster, job: Job) -> list[tuple[Unit, int]]:
    """Return the units that a job holds while it runs (an evolving one: during its first step), and how many of each.

    A unit of an exclusive job takes an equal part of its whole node: with at most k chunks on a node, each takes a k-th
    of all the node has, on the node where that is least.
    """
    request = job.steps[0].request
    place = request.place
    if place.is_packed:
        wheres = [_classes(cluster, job, chunk.resources, chunk.where) for chunk in request.chunks]
        total = Amounts(request.totals)
        whole = Chunk(count=1, resources=total)
        classes = frozenset.intersection(*wheres) & _classes(cluster, job, total, FrozenMap(), guarded=False)
        pairs = [(whole, classes)]
    else:
        pairs = [(chunk, _classes(cluster, job, chunk.resources, chunk.where)) for chunk in request.chunks]
    if not place.exclusive:
        return [(Unit(chunk.resources, classes), chunk.count) for chunk, classes in pairs]
    chunks = [chunk for chunk, _ in pairs]
    at_most_one = place.is_packed or place.is_scattered
    return [
        (Unit(_share_of_node(cluster, chunk, classes, chunks, at_most_one=at_most_one), classes), chunk.count)
        for chunk, classes in pairs
    ]


def _classes(
    cluster: Cluster, job: Job, asked: Amounts, where: Mapping[str, str], *, guarded: bool = True
) -> frozenset[int]:
    """Return the node classes that admit a request for `asked`."""
    return frozenset(
        number
        for number, node_class in enumerate(cluster.classes)
        if node_class.is_up
        and all(node_class.properties.get(name) == value for name, value in where.items())
        and all(node_class.resources.get(name, 0) >= amount for name, amount in asked.items())
        and (not guarded or (node_class.is_admitted(asked, job.walltime) and _leaves_free(node_class, asked)))
    )


def _leaves_free(node_class: NodeClass, asked: Amounts) -> bool:
    """Return whether one chunk leaves what the node keeps free for others."""
    return all(
        rule.beneficiary in asked
        or not asked.get(rule.resource)
        or asked[rule.resource] <= node_class.resources.get(rule.resource, 0) - rule.items
        for rule in node_class.keep_free
    )


def _share_of_node(
    cluster: Cluster, chunk: Chunk, classes: frozenset[int], chunks: Sequence[Chunk], *, at_most_one: bool
) -> Amounts:
    """Return the least amount of each resource that a chunk of an exclusive job takes."""
    shares: dict[str, int] = {}
    for number in classes:
        node = cluster.classes[number].resources
        most = 1 if at_most_one else sum(min(each.count, _fitting(node, each.resources)) for each in chunks)
        here = {name: amount // max(1, most) for name, amount in node.items()}
        shares = (
            {name: min(amount, shares.get(name, amount)) for name, amount in here.items()}
            if not shares
            else {name: min(amount, here.get(name, 0)) for name, amount in shares.items()}
        )
    names = {*shares, *chunk.resources}
    amounts = {name: max(shares.get(name, 0), chunk.resources.get(name, 0)) for name in sorted(names)}
    return Amounts({name: amount for name, amount in amounts.items() if amount})


def _fitting(node: Mapping[str, int], asked: Mapping[str, int]) -> int:
    return min(node.get(name, 0) // amount for name, amount in asked.items())


def shapes_of(cluster: Cluster, units: Sequence[Unit]) -> list[Shape | None]:
    """Return the shape of each node class; None where nothing new may start."""
    return [
        Shape(
            node_class.resources,
            tuple(place for place, unit in enumerate(units) if number in unit.classes),
        )
        if node_class.is_up
        else None
        for number, node_class in enumerate(cluster.classes)
    ]


class Knapsack:
    """The largest sums of sizes that fit on nodes of one shape, for any free part of the node.

    Exact where the amounts of a resource add up to at most `_MOST_LEVELS` different sums, which is the rule; otherwise
    amounts are rounded down, which makes the sums larger and never smaller.

    `shape`: the node. `units`: all units. `counts`: how many of each unit there are. `most_states`: size of its table.
    """

    def __init__(
        self, shape: Shape, units: Sequence[Unit], counts: Sequence[int], *, most_states: int = MOST_STATES
    ) -> None:
        self.shape = shape
        members = [units[place].amounts for place in shape.units]
        self._names = [name for name, amount in shape.resources.items() if any(m.get(name) for m in members)]
        axes = [_Axis.of(shape.resources[name], {m.get(name, 0) for m in members}) for name in self._names]
        self._axes = _within(axes, most_states)
        self._shape = tuple(axis.num_levels for axis in self._axes)
        copies = [min(counts[place], _fitting(shape.resources, units[place].amounts)) for place in shape.units]
        grids = [
            axis.below({m.get(name, 0) for m in members}) for axis, name in zip(self._axes, self._names, strict=True)
        ]
        sources = [[grid[m.get(name, 0)] for grid, name in zip(grids, self._names, strict=True)] for m in members]
        self._num_states = int(np.prod(self._shape, dtype=np.int64))
        self._moves_of = {
            place: self._portions(place, self._step(source), most)
            for place, source, most in zip(shape.units, sources, copies, strict=True)
        }

    def table(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the largest sum of sizes for each state of free resources.

        `sizes`: shape (vectors, units). Returns a table of shape (states, vectors); the last state is the idle node.
        """
        best = np.zeros((self._num_states, len(sizes)), dtype=sizes.dtype)
        for move in self._moves(sizes):
            best[move.fits] = np.maximum(best[move.fits], best[move.left] + move.portion * sizes[:, move.unit])
        return best

    def packings(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many of each unit an idle node holds where the sum of their sizes is largest.

        `sizes`: shape (vectors, units), and so is what is returned.
        """
        best = np.zeros((self._num_states, len(sizes)))
        moves = list(self._moves(sizes))
        taken = np.zeros((len(moves), self._num_states, len(sizes)), dtype=bool)
        for place, move in enumerate(moves):
            before, after = best[move.fits], best[move.left] + move.portion * sizes[:, move.unit]
            best[move.fits] = np.maximum(before, after)
            taken[place, move.fits] = after > before
        held = np.zeros(sizes.shape)
        vectors, state = np.arange(len(sizes)), np.full(len(sizes), self.idle)
        for place, move in reversed(list(enumerate(moves))):
            chosen = vectors[taken[place, state, vectors]]
            held[chosen, move.unit] += move.portion
            state[chosen] = move.left[np.searchsorted(move.fits, state[chosen])]
        return held

    def _moves(self, sizes: NDArray[np.generic]) -> "Iterator[_Move]":
        """Yield the moves of all units that any vector gives a size."""
        for place in self.shape.units:
            if sizes[:, place].any():
                yield from self._moves_of[place]

    @property
    def idle(self) -> int:
        """The state of a node of which all is free."""
        return self._num_states - 1

    def state_of(self, free: Mapping[str, int]) -> int:
        """Return the state of a node that has `free` left."""
        levels = [axis.level(free.get(name, 0)) for axis, name in zip(self._axes, self._names, strict=True)]
        return int(np.ravel_multi_index(levels, self._shape)) if levels else 0

    def _portions(self, unit: int, step: NDArray[np.int64], copies: int) -> "list[_Move]":
        """Return moves of which any number of a unit up to its copies is a sum: portions 1, 2, 4, ... and the rest."""
        moves, portion = [], 1
        while copies:
            take = min(portion, copies)
            left = self._repeat(step, take)
            fits = np.flatnonzero(left >= 0)
            moves.append(_Move(unit, take, fits, left[fits]))
            copies -= take
            portion *= 2
        return moves

    def _step(self, source: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return for each state the state that is left when one unit has been placed, or -1."""
        origin = np.zeros((1,), dtype=np.int64)
        fits = np.ones((1,), dtype=bool)
        for axis_source in source:
            origin = (origin[:, None] * len(axis_source) + np.maximum(axis_source, 0)[None, :]).ravel()
            fits = (fits[:, None] & (axis_source >= 0)[None, :]).ravel()
        return np.where(fits, origin, -1)

    @staticmethod
    def _repeat(step: NDArray[np.int64], times: int) -> NDArray[np.int64]:
        result = np.arange(len(step))
        power = step
        while times:
            if times & 1:
                result = np.where(result >= 0, power[result], -1)
            times >>= 1
            if times:
                power = np.where(power >= 0, power[power], -1)
        return result


@dataclass(frozen=True, slots=True)
class _Move:
    """Some copies of a unit are placed, in the states that have room for them, `fits`: the states `left` remain."""

    unit: int
    portion: int
    fits: NDArray[np.int64]
    left: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Axis:
    """The levels of one resource: the sums that amounts can add up to, or equal parts of the node."""

    capacity: int
    #: Ascending, begins with 0; None: `parts` equal parts.
    sums: NDArray[np.int64] | None
    parts: int

    @classmethod
    def of(cls, capacity: int, amounts: set[int]) -> "_Axis":
        sums = _sums(capacity, amounts)
        return cls(capacity, sums, _MOST_LEVELS - 1 if sums is None else len(sums) - 1)

    @property
    def num_levels(self) -> int:
        return self.parts + 1

    def coarser(self) -> "_Axis":
        """Return the axis in half as many parts, an odd number (so that more than a half stays more than a half)."""
        return _Axis(self.capacity, None, max(1, (self.parts // 2) | 1))

    def level(self, free: int) -> int:
        if self.sums is not None:
            return int(np.searchsorted(self.sums, free, side="right")) - 1
        return min(free, self.capacity) * self.parts // self.capacity

    def below(self, amounts: set[int]) -> dict[int, NDArray[np.int64]]:
        """Return for each amount the level that is left of each level, -1 where it does not fit."""
        if self.sums is not None:
            return {amount: np.searchsorted(self.sums, self.sums - amount, side="right") - 1 for amount in amounts}
        levels = np.arange(self.num_levels)
        return {amount: np.maximum(levels - amount * self.parts // self.capacity, -1) for amount in amounts}


def _sums(capacity: int, amounts: set[int]) -> NDArray[np.int64] | None:
    """Return all sums of amounts up to the capacity, or None if there are too many."""
    sums = {0}
    for amount in sorted(amounts - {0}):
        if amount > capacity:
            continue
        pending = list(sums)
        while pending:
            pending = [total + amount for total in pending if total + amount <= capacity and total + amount not in sums]
            sums.update(pending)
            if len(sums) > _MOST_LEVELS:
                return None
    return np.array(sorted(sums), dtype=np.int64)


def _within(axes: Sequence[_Axis], most: int) -> list[_Axis]:
    """Make the longest axes coarser until the table is small enough."""
    axes = list(axes)
    while np.prod([float(axis.num_levels) for axis in axes]) > most:
        longest = max(range(len(axes)), key=lambda place: axes[place].num_levels)
        axes[longest] = axes[longest].coarser()
    return axes
