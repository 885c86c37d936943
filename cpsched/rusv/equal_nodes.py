"""Interchangeable parts of equal nodes: where jobs can be counted, and need no nodes until they start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv.kernels.constants import D, F, K, S
from cpsched.rusv.timeline import Demands

Ints = NDArray[np.int64]


class Asks(NamedTuple):
    """The requests of the demands."""

    #: int64 (demands,): units.
    need: NDArray[Any]
    #: int64 (demands + 1,) and (·,): the pools that they may come from, in the order of filling.
    pools_of: NDArray[Any]
    pools: NDArray[Any]
    #: int64 (demands + 1,) and (·, 2): columns of licenses with amounts.
    licenses_of: NDArray[Any]
    licenses: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Nodes:
    """Equal nodes, and the units that they are counted in: whole nodes, or chunks of the one size asked for."""

    first_node: int
    length: int
    #: First column of each of a node's resources, and what a node has of it.
    columns: tuple[tuple[int, int], ...]
    #: First columns of what a chunk takes, with amounts; None: units are whole nodes, which must be idle.
    chunk: tuple[tuple[int, int], ...] | None

    def per_node(self, free: NDArray[Any]) -> Ints:
        """Return how many units are free on each node, where `free` is what each node column has."""
        if self.chunk is None:
            idle = [free[column : column + self.length] >= capacity for column, capacity in self.columns]
            found: Ints = np.logical_and.reduce(idle).astype(np.int64)
            return found
        fitting = [free[column : column + self.length] // amount for column, amount in self.chunk]
        chunks: Ints = np.maximum(np.min(fitting, axis=0), 0).astype(np.int64)
        return chunks


class EqualNodes:
    """The pools of a machine, and what each demand takes of them.

    A job counts if its chunks are of one kind. Equal nodes form a pool if all jobs that they admit ask there for
    chunks of one size, or each for so much that no other job fits beside it.
    """

    def __init__(
        self, demands: Demands, pools: Sequence[Sequence[_Nodes]], asks: Sequence[tuple[int, int, tuple[int, ...]]]
    ) -> None:
        self._demands, self._pools = demands, pools
        #: The most chunks of each demand that a unit holds.
        self._chunks = [chunks for _, chunks, _ in asks]
        tables = demands.tables()
        heads, sysreq = tables.demands, tables.sysreq
        spans = [(int(heads[d, D.LICENSE]), int(heads[d + 1, D.SYS])) for d in range(len(demands))]
        #: The system columns of the licenses that are asked for.
        self._licenses = sorted({int(q) for first, last in spans for q in sysreq[first:last, 0]})
        place = {q: len(pools) + k for k, q in enumerate(self._licenses)}
        licenses = [[(place[q], amount) for q, amount in sysreq[first:last].tolist()] for first, last in spans]
        self.asks = Asks(
            need=np.array([need for need, _, _ in asks], dtype=np.int64),
            pools_of=_ends(asked for _, _, asked in asks),
            pools=np.array([pool for _, _, asked in asks for pool in asked], dtype=np.int64),
            licenses_of=_ends(licenses),
            licenses=np.array([row for rows in licenses for row in rows], dtype=np.int64).reshape(-1, 2),
        )

    @property
    def num_pools(self) -> int:
        """The number of pools."""
        return len(self._pools)

    @property
    def is_apart(self) -> bool:
        """Whether each demand takes units of one pool only."""
        return bool((np.diff(self.asks.pools_of) == 1).all())

    @property
    def is_summed(self) -> bool:
        """Whether what all nodes have free together, of each resource, tells how many units are free: there is one
        class of nodes, and chunks of one size take all of some resource of a node that is full.
        """
        if len(self._demands.layout.runs) != 1 or not self._pools:
            return False
        nodes = self._pools[0][0]
        capacity = dict(nodes.columns)
        full = [] if nodes.chunk is None else [divmod(capacity[column], amount) for column, amount in nodes.chunk]
        return min(full, default=(0, 1))[1] == 0

    @property
    def num_columns(self) -> int:
        """The number of pools and licenses."""
        return len(self._pools) + len(self._licenses)

    def free(self, free: NDArray[Any], sums: NDArray[Any]) -> Ints:
        """Return the free units of each pool and licence, from the free amounts of the node and system columns."""
        units = [sum(int(nodes.per_node(free).sum()) for nodes in pool) for pool in self._pools]
        return np.array([*units, *(int(sums[q]) for q in self._licenses)], dtype=np.int64)

    def takes(self, demand: int, entries: NDArray[Any]) -> Ints:
        """Return the amounts of each column that a job on `entries`, rows of (node, kind, chunks), takes."""
        taken = np.zeros(self.num_columns, dtype=np.int64)
        for number, nodes in [(number, nodes) for number, pool in enumerate(self._pools) for nodes in pool]:
            inside = (entries[:, 0] >= nodes.first_node) & (entries[:, 0] < nodes.first_node + nodes.length)
            taken[number] += np.count_nonzero(inside) if nodes.chunk is None else entries[inside, 2].sum()
        first, last = self.asks.licenses_of[demand : demand + 2]
        for column, amount in self.asks.licenses[first:last].tolist():
            taken[column] += amount
        return taken

    def place(self, demand: int, takes: Ints, free: NDArray[Any]) -> NDArray[np.int32]:
        """Return the entries of a job with these numbers of units of each pool, the first nodes first; lower `free`.

        Raises `ValueError` if fewer units are free.
        """
        kind = int(self._demands.tables().demands[demand, D.KIND])
        chunks = int(self._demands.tables().kinds[kind, K.NEED])
        rows = []
        for pool, wanted in zip(self._pools, takes.tolist(), strict=False):
            left = wanted
            for nodes in pool if wanted else ():
                units = nodes.per_node(free)
                units = np.clip(left - (np.cumsum(units) - units), 0, units)
                left -= int(units.sum())
                for node in np.flatnonzero(units).tolist():
                    held = int(units[node]) if nodes.chunk is not None else min(chunks, self._chunks[demand])
                    chunks -= held
                    rows.append((nodes.first_node + node, kind, held))
                    for column, amount in nodes.columns if nodes.chunk is None else nodes.chunk:
                        free[column + node] -= amount * (1 if nodes.chunk is None else held)
            if left:
                raise ValueError(f"Expected {wanted} free units, {left} are missing")
        return np.array(rows, dtype=np.int32).reshape(-1, 3)

    @classmethod
    def of(cls, demands: Demands) -> "EqualNodes | None":
        """Return the units in which all demands of a machine can be counted, None if they cannot be."""
        by_demand = [list(_asked(demands, demand)) for demand in range(len(demands))]
        if not all(by_demand):
            return None
        asked: dict[int, list[tuple[int, _Asked]]] = {}
        for demand, rows in enumerate(by_demand):
            for place, row in rows:
                asked.setdefault(place, []).append((demand, row))
        #: The pools by the demands that ask for them, each with its number; and in which one each run is.
        pools: dict[tuple[int, ...], tuple[int, list[_Nodes]]] = {}
        nodes_of: dict[int, tuple[int, _Nodes]] = {}
        first = 0
        for number, run in enumerate(demands.layout.runs):
            if number in asked:
                columns = tuple(zip(demands.columns[number], run.capacity, strict=True))
                nodes = _counted(first, run.length, columns, [row for _, row in asked[number]])
                if nodes is None:
                    return None
                pool_number, pool = pools.setdefault(tuple(demand for demand, _ in asked[number]), (len(pools), []))
                pool.append(nodes)
                nodes_of[number] = pool_number, nodes
            first += run.length
        needs = []
        for rows in by_demand:
            found = {_in_units(row, nodes_of[place][1]) for place, row in rows}
            if len(found) != 1:
                return None
            needs.append((*found.pop(), tuple(dict.fromkeys(nodes_of[place][0] for place, _ in rows))))
        return cls(demands, [pool for _, pool in pools.values()], needs)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request of a demand on the nodes of a run."""

    need: int
    #: The most chunks of a node.
    most: int
    is_exclusive: bool
    #: First columns with amounts, ascending.
    chunk: tuple[tuple[int, int], ...]

    def fitting(self, columns: Sequence[tuple[int, int]]) -> int:
        """Return how many chunks fit on an empty node."""
        capacity = dict(columns)
        return min([self.most, *(capacity[column] // amount for column, amount in self.chunk)])


def _asked(demands: Demands, demand: int) -> Iterator[tuple[int, _Asked]]:
    """Yield the runs that may hold a demand, and what it asks for there; nothing for several kinds or groups."""
    tables, runs = demands.tables(), demands.layout.runs
    heads, kinds, segments, terms = tables.demands, tables.kinds, tables.segments, tables.terms
    kind = int(heads[demand, D.KIND])
    if heads[demand + 1, D.KIND] - kind != 1 or heads[demand, D.FLAGS] & F.WITHIN:
        return
    firsts = np.cumsum([0, *(run.length for run in runs)])
    is_exclusive = bool(heads[demand, D.FLAGS] & F.EXCLUSIVE)
    for segment in range(int(kinds[kind, K.SEG]), int(kinds[kind, K.BEHIND])):
        first, length, term = segments[segment].tolist()
        of_segment = terms[term : int(segments[segment + 1, S.TERM])].tolist()
        for run in range(int(np.searchsorted(firsts, first)), int(np.searchsorted(firsts, first + length))):
            chunk = tuple(sorted((column + int(firsts[run]) - first, amount) for column, amount in of_segment))
            need, most = int(kinds[kind, K.NEED]), int(kinds[kind, K.MOST])
            yield run, _Asked(need, most, is_exclusive, chunk)


def _counted(first: int, length: int, columns: tuple[tuple[int, int], ...], asked: Sequence[_Asked]) -> _Nodes | None:
    """Return the units of equal nodes, None if what is asked for there cannot be counted."""
    one = asked[0].chunk
    capacity = dict(columns)
    empty = min(capacity[column] // amount for column, amount in one)
    if all(row.chunk == one and not row.is_exclusive and row.most >= min(row.need, empty) for row in asked):
        return _Nodes(first_node=first, length=length, columns=columns, chunk=one)
    shared = [dict(row.chunk) for row in asked if not row.is_exclusive]
    if not shared or any(all(2 * chunk.get(column, 0) > most for chunk in shared) for column, most in columns):
        return _Nodes(first_node=first, length=length, columns=columns, chunk=None)
    return None


def _in_units(row: _Asked, nodes: _Nodes) -> tuple[int, int]:
    """Return how many units of some nodes a demand needs, and how many of its chunks a unit holds."""
    chunks = row.fitting(nodes.columns) if nodes.chunk is None else 1
    return -(-row.need // chunks), chunks


def _ends(groups: Any) -> Ints:
    """Return the offsets of consecutive groups, and the end of the last one."""
    return np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64)
