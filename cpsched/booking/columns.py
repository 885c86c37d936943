"""From cluster and requests to the columns and demands of the timeline.

Nodes are numbered in the filling order of the mapping policy; neighbours that differ in nothing but their names form
a run. A node has one column for each resource, and one more for each ``keep_free`` rule: the part of the resource
that chunks without the beneficiary may have together. The system has one column for each resource over all nodes that
are up, one for each resource and group of equal nodes, and one for each license.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, permutations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cpsched import problem
from cpsched.booking.mapping import Mapping
from cpsched.domain import Amounts, Chunk, ChunkLayer, Cluster, FrozenMap, Place, Placement, Request
from cpsched.rusv import Demands, KindDemand, Layout, Run

#: The kind of a packed request, all chunks of which are on one node.
WHOLE_REQUEST = -1

#: With more groups of equal nodes than this, only the sums over the whole system are kept.
MOST_GROUPS = 8
#: The most kinds of chunks of a request for which all orders of the kinds are tried before a start is given up.
MOST_PERMUTED = 3

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MappingOrder:
    """A way to map a request: which of its kinds come first, and which nodes are filled first."""

    kinds: tuple[int, ...]
    #: All node numbers.
    nodes: NDArray[np.int64]


class Columns:
    """The layout for one cluster, and the demands that have been compiled for it.

    `cluster`, `mapping`: the machine, and the order in which it is filled.
    """

    def __init__(self, cluster: Cluster, mapping: Mapping) -> None:
        self.cluster = cluster
        self.mapping = mapping
        class_of = [kind for c in cluster.classes for kind in [replace(c, names=())] * len(c.names)]
        order = mapping.node_order(cluster)
        self.node_names = [cluster.node_names[index] for index in order]
        self.node_number = {name: number for number, name in enumerate(self.node_names)}
        self.run_class = [key for key, _ in groupby(class_of[index] for index in order)]
        self._run_length = [len(list(nodes)) for _, nodes in groupby(class_of[index] for index in order)]
        self._run_first = [0, *accumulate(self._run_length)][:-1]
        #: The capacity of each column of the nodes of a run; those without any are left out.
        self.run_columns: list[dict[problem.Column, int]] = [
            {column: amount for column, amount in problem.columns_of(node_class).items() if amount > 0}
            for node_class in self.run_class
        ]
        self._number_system()
        self.demands = Demands(self._layout())
        self._compiled: dict[object, int] = {}
        #: What requests of one kind of chunks ask for but its number, numbered; and the last that was asked.
        self._parts: dict[tuple[Amounts, FrozenMap[str, str], Place, Amounts], int] = {}
        self._last: tuple[tuple[object, ...], int] = (None, None, None, None), -1
        #: The demands of what is asked and, where guards ask for it, the walltime; the runs for each kind of chunks;
        #: and what a chunk takes of the nodes of runs.
        self._asked: dict[object, int] = {}
        self._runs_of: dict[object, tuple[int, ...]] = {}
        self._takes: dict[object, tuple[tuple[int, tuple[tuple[int, int], ...]], ...]] = {}
        self._has_guards = any(node_class.admits for node_class in cluster.classes)
        self._kinds: list[int] = []
        #: By level of the topology.
        self._groups_of: dict[str, list[str]] = {}
        #: The demands for one kind of chunks, or for the groups of a level, and the sums of what one chunk asks for.
        self._of_one: dict[object, tuple[range, list[tuple[int, int]]]] = {}

    # --- node columns -------------------------------------------------------------------------------------------

    def columns_on(self, node: str, held: Amounts, *, whole: bool) -> list[tuple[int, int, int]]:
        """Return (column, amount, capacity) of what is held on a node; with `whole`, each column at its capacity."""
        number = self.node_number[node]
        run = bisect_right(self._run_first, number) - 1
        found = []
        for place, ((name, kept_for), capacity) in enumerate(self.run_columns[run].items()):
            amount = 0 if kept_for in held else held.get(name, 0)
            if whole or amount:
                column = self.demands.columns[run][place] + number - self._run_first[run]
                found.append((column, capacity if whole else amount, capacity))
        return found

    def is_of(self, resource: str) -> NDArray[np.bool_]:
        """Return which node columns are of a resource, as free as it is or kept for others."""
        found = np.zeros(self.demands.num_columns, dtype=np.bool_)
        for run, columns in enumerate(self.run_columns):
            for place, (name, _) in enumerate(columns):
                first = self.demands.columns[run][place]
                found[first : first + self._run_length[run]] = name == resource
        return found

    def amounts_of(self, allocation: Iterable[Placement], *, whole: bool = False) -> dict[int, int]:
        """Return the amount of each column that an allocation takes; with `whole`, all of its nodes."""
        amounts: dict[int, int] = {}
        for held in allocation:
            for column, amount, _ in self.columns_on(held.node, held.resources, whole=whole):
                amounts[column] = amount if whole else amounts.get(column, 0) + amount
        return amounts

    def allocation_on(self, amounts: MappingType[int, int]) -> tuple[Placement, ...]:
        """Return amounts of node columns as what is held on each node, without what is kept for others."""
        found: dict[str, dict[str, int]] = {}
        for run, columns in enumerate(self.run_columns):
            for place, (name, kept_for) in enumerate(columns):
                first = self.demands.columns[run][place]
                for node in range(self._run_length[run]) if kept_for is None else ():
                    if amounts.get(first + node):
                        of_node = found.setdefault(self.node_names[self._run_first[run] + node], {})
                        of_node[name] = amounts[first + node]
        return tuple(Placement(node=node, resources=Amounts(held)) for node, held in found.items())

    # --- system columns -----------------------------------------------------------------------------------------

    def _number_system(self) -> None:
        """Give each system column its number, and add up what it has."""
        up = [node_class for node_class in self.run_class if node_class.is_up]
        groups = list(dict.fromkeys(up))
        is_told = 1 < len(groups) <= MOST_GROUPS
        #: Of each run: the group of equal nodes, None: it is not added up by itself.
        self._group_of = [groups.index(one) if is_told and one.is_up else None for one in self.run_class]
        capacity: dict[tuple[str, int | None], int] = {}
        for run, (length, columns) in enumerate(zip(self._run_length, self.run_columns, strict=True)):
            for (name, kept_for), amount in columns.items():
                if self.run_class[run].is_up and kept_for is None:
                    for key in self._system_keys(name, run):
                        capacity[key] = capacity.get(key, 0) + amount * length
        self._system_number = {key: number for number, key in enumerate(capacity)}
        self.license_number = {name: len(capacity) + place for place, name in enumerate(self.cluster.licenses)}
        self._system_capacity = [*capacity.values(), *self.cluster.licenses.values()]

    def totals_of(self, sums: NDArray[np.int64]) -> dict[str, int]:
        """Return the amounts of the system columns by resource, over all nodes, and by licence."""
        of_nodes = {name: int(sums[number]) for (name, group), number in self._system_number.items() if group is None}
        return of_nodes | {name: int(sums[number]) for name, number in self.license_number.items()}

    def _system_keys(self, name: str, run: int) -> list[tuple[str, int | None]]:
        """Return which sums a resource of a node of a run counts for."""
        group = self._group_of[run]
        return [(name, None)] if group is None else [(name, None), (name, group)]

    def _layout(self) -> Layout:
        keys = sorted({key for columns in self.run_columns for key in columns}, key=lambda key: (key[1] or "", key[0]))
        number = {key: place for place, key in enumerate(keys)}
        runs = []
        for run, (length, columns) in enumerate(zip(self._run_length, self.run_columns, strict=True)):
            counted = self.run_class[run].is_up
            system = [
                tuple(self._system_number[key] for key in self._system_keys(name, run))
                if counted and kept_for is None
                else ()
                for name, kept_for in columns
            ]
            runs.append(
                Run(
                    length=length,
                    resources=tuple(number[key] for key in columns),
                    capacity=tuple(columns.values()),
                    system=tuple(system),
                )
            )
        return Layout(runs=tuple(runs), system_capacity=tuple(self._system_capacity))

    # --- demands ------------------------------------------------------------------------------------------------

    def compile(self, request: Request, licenses: Amounts, walltime: int) -> int:
        """Return the number of the demand for a request whose job takes `walltime`, and has passed `admission.refusal`.

        Jobs with equal requests and the same admissible nodes share a demand.
        """
        asked = self._asking(request, licenses), walltime if self._has_guards else None
        number = self._asked.get(asked)
        if number is None:
            runs = (
                (self._runs_packing(request, walltime),)
                if request.place.is_packed
                else tuple(self._runs_for(chunk, request, walltime) for chunk in request.chunks)
            )
            if request.place.within is not None:
                groups = self._groups(request.place.within)
                runs = tuple(tuple(run for run in of_kind if groups[run]) for of_kind in runs)
            number = self._compiled.get(key := (asked[0], runs))
            if number is None:
                number = self._compiled[key] = self._add_demand(request, licenses, runs, asked[0][0])
            self._asked[asked] = number
        return number

    def _asking(self, request: Request, licenses: Amounts) -> tuple[object, object]:
        """Return what equal requests with equal licences have in common, and no others; first what those for other
        numbers of the same chunks have in common, too: the alternatives of a job ask for these, and whole requests take
        long to compare.
        """
        if len(request.chunks) > 1:
            return request, licenses
        chunk = request.chunks[0]
        parts, (last, number) = (chunk.resources, chunk.where, request.place, licenses), self._last
        if not (parts[0] is last[0] and parts[1] is last[1] and parts[2] is last[2] and parts[3] is last[3]):
            number = self._parts.setdefault(parts, len(self._parts))
            self._last = parts, number
        return number, chunk.count

    def compile_common(
        self, requests: Sequence[Request], kind: int | None, need: int, licenses: Amounts, walltime: int
    ) -> int | None:
        """Return the number of a demand for what units that stay on their nodes take of them all the time.

        It is for `need` units of one kind of chunks, or for one of all chunks together where `kind` is None; of each
        column a unit takes the least that it takes in any of the requests. None if that is nothing on some nodes.
        """
        place = requests[0].place
        units = [
            [(chunk, chunk.count) for chunk in request.chunks] if kind is None else [(request.chunks[kind], 1)]
            for request in requests
        ]
        allowed = [
            self._runs_packing(request, walltime)
            if kind is None
            else self._runs_for(request.chunks[kind], request, walltime)
            for request in requests
        ]
        runs = [run for run in allowed[0] if all(run in others for others in allowed)]
        most = 1 if place.is_packed or place.is_scattered else need
        parts = [self._kind(unit, need, most, runs).takes for unit in units]
        takes = tuple(
            (of_run[0][0], tuple(_least([dict(taken) for _, taken in of_run]).items()))
            for of_run in zip(*parts, strict=True)
        )
        if not all(taken for _, taken in takes):
            return None
        key = (takes, need, most, place.exclusive, licenses)
        if key not in self._compiled:
            totals = [
                {name: amount for chunk, count in unit for name, amount in chunk.taken(count * need).items()}
                if kind is not None
                else dict(request.totals)
                for unit, request in zip(units, requests, strict=True)
            ]
            self._kinds.append(WHOLE_REQUEST if kind is None else kind)
            self._compiled[key] = self.demands.add(
                [KindDemand(need=need, most=most, takes=takes)],
                system=self._system_needs(_least(totals), [runs]),
                licenses=list(self.licenses_of(licenses).items()),
                exclusive=place.exclusive,
            )
        return self._compiled[key]

    def _runs_packing(self, request: Request, walltime: int) -> tuple[int, ...]:
        """Return the runs whose nodes may hold a whole request."""
        return tuple(run for run in self._up_runs() if problem.packs(self.run_class[run], request, walltime))

    def licenses_of(self, licenses: Amounts) -> dict[int, int]:
        """Return amounts of licences by the system column of each."""
        return {self.license_number[name]: amount for name, amount in licenses.items()}

    def _up_runs(self) -> list[int]:
        return [run for run, node_class in enumerate(self.run_class) if node_class.is_up]

    def _runs_for(self, chunk: Chunk, request: Request, walltime: int) -> tuple[int, ...]:
        """Return the runs whose nodes may hold a chunk."""
        exclusive = request.place.exclusive
        key = chunk.resources, chunk.where, exclusive, walltime if self._has_guards else None
        if key not in self._runs_of:
            self._runs_of[key] = tuple(
                run
                for run in self._up_runs()
                if problem.chunks_on_empty_node(self.run_class[run], chunk, walltime, exclusive=exclusive)
            )
        return self._runs_of[key]

    def _add_demand(self, request: Request, licenses: Amounts, runs: Sequence[Sequence[int]], like: object) -> int:
        """Add a demand to the table; `runs` has those of each kind, or of the whole request if it is packed. `like`:
        what it has in common with requests for other numbers of the same chunks.
        """
        place, chunk = request.place, request.chunks[0]
        held, is_near = list(self.licenses_of(licenses).items()), place.within is not None
        if place.is_packed:
            self._kinds.append(WHOLE_REQUEST)
            needs = self._system_needs(request.totals, runs)
            whole = self._kind([(chunk, chunk.count) for chunk in request.chunks], 1, 1, runs[0])
            return self.demands.add([whole], system=needs, licenses=held, exclusive=place.exclusive)
        known, of_one = self._of_one.get((like, runs), (None, ()))
        if known is not None:
            self._kinds.extend([0] * len(known))
            needs = [(sums, amount * chunk.count) for sums, amount in of_one]
            most = 1 if place.is_scattered else chunk.count
            number = self.demands.repeat(known, chunk.count, most, *(((), ()) if is_near else (needs, held)))
        else:
            first, number, needs = len(self.demands), -1, self._system_needs(request.totals, runs)
            for part in self._parts_by_group(place.within, runs) if place.within is not None else ():
                number = self._add_orders(request, (), (), part, otherwise=number)
            if not is_near:
                number = self._add_orders(request, held, needs, runs)
            if number >= 0 and len(runs) == 1:
                self._of_one[like, runs] = range(first, number + 1), self._system_needs(chunk.resources, runs)
        return self._add_orders(request, held, needs, runs, otherwise=number, place=place) if is_near else number

    def _parts_by_group(self, level: str, runs: Sequence[Sequence[int]]) -> Iterator[list[list[int]]]:
        """Yield the runs of each kind in a group of a level, of groups that have some of each, the largest first."""
        groups = self._groups(level)
        parts: dict[str, list[list[int]]] = {}
        for kind, of_kind in enumerate(runs):
            for run in of_kind:
                parts.setdefault(groups[run], [[] for _ in runs])[kind].append(run)
        sizes = Counter[str]()
        for group, length in zip(groups, self._run_length, strict=True):
            sizes[group] += length
        for group in sorted(parts, key=sizes.__getitem__)[::-1]:
            if all(parts[group]):
                yield parts[group]

    def _groups(self, level: str) -> list[str]:
        """Return the group of each run of nodes of a level of the topology; empty: none."""
        if level not in self._groups_of:
            rule = problem.level_rule(level)
            self._groups_of[level] = [node_class.properties.get(rule, "") for node_class in self.run_class]
        return self._groups_of[level]

    def fitting(self, request: Request, need: int, units: NDArray[np.int64]) -> int:
        """Return how many of `need` chunks of one kind find place, in the groups of nodes that the request may have.

        `units`: how many fit on each node, int64 (nodes,).
        """
        place = request.place
        if place.within is None:
            return min(need, int(units.sum()))
        rooms = Counter[str]()
        for group, first, length in zip(self._groups(place.within), self._run_first, self._run_length, strict=True):
            rooms[group] += int(units[first : first + length].sum())
        if place.segment is None and place.spread is None:
            return min(need, max(room for group, room in rooms.items() if group))
        return min(need, sum(place.most_in_group(need, room) for group, room in rooms.items() if group))

    def _add_orders(
        self,
        request: Request,
        held: Sequence[tuple[int, int]],
        needs: Sequence[tuple[int, int]],
        runs: Sequence[Sequence[int]],
        *,
        otherwise: int = -1,
        place: Place | None = None,
    ) -> int:
        """Add the orders of mapping a request to some runs; `otherwise` is for where all fail, or of a request with a
        `place` in groups the first of these, of which what is `held` and needed besides is not asked again.
        """
        is_scattered, number = request.place.is_scattered, otherwise
        for order, fill in reversed(self._orders(request, runs)[: None if place is None else 1]):
            kinds = []
            for kind in order:
                chunk = request.chunks[kind]
                most = 1 if is_scattered else chunk.count
                kinds.append(self._kind([(chunk, 1)], chunk.count, most, sorted(runs[kind], key=fill.__getitem__)))
            self._kinds.extend(order)
            number = self.demands.add(
                kinds,
                system=needs,
                licenses=held,
                exclusive=request.place.exclusive,
                scatter=is_scattered,
                within=place is not None,
                segment=place.segment or 0 if place is not None else 0,
                spread=place.spread or 0 if place is not None else 0,
                otherwise=number,
            )
        return number

    def _orders(self, request: Request, runs: Sequence[Sequence[int]]) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the orders of mapping a request, (kinds, rank of each run), each for where the one before fails.

        First that of the policy. It can fail although the request fits (a chunk that fits anywhere takes the
        only nodes of another). A request of several kinds is then mapped in each order of its kinds (in each rotation,
        beyond `MOST_PERMUTED` kinds), first on the nodes that the fewest of its kinds may use.
        """
        policy = list(self.mapping.chunk_order(self.cluster, request)) if len(request.chunks) > 1 else [0]
        count = len(self.run_class)
        orders: list[tuple[Sequence[int], Sequence[int]]] = [(policy, range(count))]
        if len(policy) > 1:
            kinds_on = [sum(run in of_kind for of_kind in runs) for run in range(count)]
            fill = sorted(range(count), key=lambda run: (kinds_on[run], run))
            rank = sorted(range(count), key=fill.__getitem__)
            others = (
                permutations(policy)
                if len(policy) <= MOST_PERMUTED
                else (policy[turn:] + policy[:turn] for turn in range(len(policy)))
            )
            orders.extend((list(other), rank) for other in others)
        return orders

    def mapping_orders(self, request: Request, walltime: int) -> tuple[MappingOrder, ...]:
        """Return the orders of the kinds of a request and their nodes; each is for where the one before fails."""
        if request.place.is_packed:
            return (MappingOrder(kinds=(WHOLE_REQUEST,), nodes=np.arange(len(self.node_names))),)
        runs = [self._runs_for(chunk, request, walltime) for chunk in request.chunks]
        return tuple(
            MappingOrder(
                kinds=tuple(kinds), nodes=np.argsort(np.repeat(np.array(fill), self._run_length), kind="stable")
            )
            for kinds, fill in self._orders(request, runs)
        )

    def _kind(self, unit: Sequence[tuple[Chunk, int]], need: int, most: int, runs: Sequence[int]) -> KindDemand:
        """Return the demand for `need` units, each of a number of chunks of some kinds together on one node."""
        key = tuple((chunk.resources, count) for chunk, count in unit), tuple(runs)
        if key not in self._takes:
            takes = []
            for run in runs:
                amounts = (problem.amount_of(column, unit) for column in self.run_columns[run])
                takes.append((run, tuple((place, amount) for place, amount in enumerate(amounts) if amount)))
            self._takes[key] = tuple(takes)
        return KindDemand(need=need, most=most, takes=self._takes[key])

    def _system_needs(self, totals: MappingType[str, int], runs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Return the amounts that must be free in the system at every moment of a window, by the narrowest sums that
        contain all admissible nodes. A mode of which some kind has no admissible node is counted over all nodes: the
        mapping refuses it (a guard may admit a chunk, and not the chunk with fewer cores), and so it does where no node
        that is up has something of a resource at all.

        An exclusive request is counted with what its chunks take: a lower bound; the mapping decides (OCCS-25).
        """
        groups = {self._group_of[run] for kind in runs for run in kind}
        group = groups.pop() if len(groups) == 1 and all(runs) else None
        asked = (((name, group), amount) for name, amount in totals.items() if not problem.is_optional(name))
        return [(self._system_number[key], amount) for key, amount in asked if key in self._system_number]

    def entries_of(self, number: int, request: Request, allocation: Sequence[Placement]) -> NDArray[np.int32] | None:
        """Return the entries of a demand for the chunks of `allocation`; None if that is not allowed.

        `number`: the demand for the request, as `compile` gave it. `allocation`: of a planned job.
        """
        entries = self.entries_anywhere(number, request, allocation)
        return entries if entries is not None and self.demands.may_have(entries) else None

    def entries_anywhere(
        self, number: int, request: Request, allocation: Sequence[Placement]
    ) -> NDArray[np.int32] | None:
        """Return the entries of a demand for the chunks of `allocation`, whether the nodes may have them or not; None
        if these are not the chunks of the request in its arrangement. See `entries_of`.
        """
        chunks, place = request.chunks, request.place
        held: list[dict[int, int]] = [{} for _ in chunks]
        for part in allocation:
            node = self.node_number.get(part.node)
            if node is None or part.chunk is None or part.count is None or part.chunk >= len(chunks):
                return None
            if part.resources != chunks[part.chunk].taken(part.count):
                return None
            held[part.chunk][node] = held[part.chunk].get(node, 0) + part.count
        used = [node for counts in held for node in counts]
        if [sum(counts.values()) for counts in held] != [chunk.count for chunk in chunks]:
            return None
        if place.is_packed and len(set(used)) > 1:
            return None
        if place.is_scattered and len(set(used)) < sum(chunk.count for chunk in chunks):
            return None
        if place.within is not None:
            groups, there, need = self._groups(place.within), Counter[str](), sum(chunk.count for chunk in chunks)
            for of_kind in held:
                for node, count in of_kind.items():
                    there[groups[bisect_right(self._run_first, node) - 1]] += count
            if any(place.most_in_group(need, count) != count for count in there.values()):
                return None
        rows: list[tuple[int, int, int]] = []
        for kind, _ in self.demands.kinds_of(number):
            counts = {used[0]: 1} if self._kinds[kind] == WHOLE_REQUEST else held[self._kinds[kind]]
            rows.extend((node, kind, count) for node, count in sorted(counts.items()))
        return np.array(rows, dtype=np.int32)

    def kind_of(self, number: int) -> int:
        """Return which kind of chunk (index in its request) a kind of the demand table is, or `WHOLE_REQUEST`."""
        return self._kinds[number]

    def allocation_of(self, request: Request, entries: NDArray[np.int32]) -> tuple[Placement, ...]:
        """Return entries of a demand for a request as placements on nodes with names."""
        rows = ((self.node_names[number], self.kind_of(kind), units) for number, kind, units in entries.tolist())
        return problem.placements(request.chunks, self.in_chunks(request, rows))

    @staticmethod
    def in_chunks(request: Request, units: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
        """Yield units on nodes as chunks: the unit of a packed request is all of them."""
        for node, kind, count in units:
            if kind != WHOLE_REQUEST:
                yield node, kind, count
            else:
                yield from ((node, place, chunk.count) for place, chunk in enumerate(request.chunks))


def kind_of_units(layer: ChunkLayer) -> int:
    """Return the kind of a layer's units, as a request is asked for it: `WHOLE_REQUEST` for those of a packed one."""
    return WHOLE_REQUEST if layer.kind is None else layer.kind


def _least(amounts: Sequence[MappingType[K, int]]) -> dict[K, int]:
    """Return the least of each amount, without those that some do not have."""
    return {key: min(one[key] for one in amounts) for key in amounts[0] if all(key in one for one in amounts)}
