"""Surrogates: aggregated resources that no plan can overload, made of sizes of units; and their capacity over time."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.bounds.packing import Knapsack, Shape, Unit, shapes_of
from cpsched.domain import Cluster, Instance
from cpsched.problem import free_over_time, held_until

#: Parts that a whole node is counted in: divisible by 1 to 10, so that cores and thresholds stay exact.
WHOLE = 5040
#: The most groups of node classes for which surrogates are restricted to the units that only these classes hold.
_MOST_GROUPS = 4
#: Capacities of one resource that thresholds are made for: those of the most nodes.
_MOST_CAPACITIES = 2
#: Measures of whole jobs: the surrogates, of which the jobs need most, that get some; of these the part that some job
#: takes, without which there are none; the most steps that are tried, and the most measures that are made.
_MOST_MEASURED, _WIDE, _MOST_STEPS, _MOST_MEASURES = 2, 0.25, 128, 3

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Profile:
    """A capacity over time that never sinks: `amounts[i]` from ``times[i]`` on; `times` begins with 0 (now)."""

    times: Ints
    amounts: Ints

    def area(self, until: Ints) -> Ints:
        """Return the capacity times time up to each of some seconds."""
        areas = np.concatenate([[0], np.cumsum(self.amounts[:-1] * np.diff(self.times))])
        piece = np.searchsorted(self.times, until, side="right") - 1
        return np.asarray(areas[piece] + self.amounts[piece] * (until - self.times[piece]))


def size_vectors(cluster: Cluster, units: Sequence[Unit], most: int) -> Ints:
    """Return at most `most` vectors of sizes, shape (vectors, units): each gives a valid surrogate.

    For each resource its share of a node, unchanged (linear), and rounded by dual-feasible functions; the larger
    of the shares of two resources; all of these again for the units that only some node classes admit. Later steps
    decide which of them get a price.
    """
    names = sorted({name for unit in units for name in unit.amounts})
    rows: dict[bytes, Ints] = {}

    def add(vector: NDArray[np.float64]) -> None:
        row = np.floor(vector * WHOLE + 1e-6).astype(np.int64)
        if row.any():
            rows.setdefault(row.tobytes(), row)

    every = np.ones(len(units))
    groups = [every, *(_members(units, group) for group in _groups(units))]
    shares = {name: _shares(cluster, units, name) for name in names}
    for mask in groups:
        for of_name in shares.values():
            add(of_name[0] * mask)
        for of_name in shares.values():
            for share in of_name:
                for rounded in _dual_feasible(share):
                    add(rounded * mask)
        for first, second in combinations(names, 2):
            share, other = shares[first][0], shares[second][-1]
            for factor in (0.5, 0.6, 0.8, 1.0):
                for large in (other, 1.0 * (other > 0.5), 1.0 * (other > 0.9)):
                    add(np.maximum(share, factor * large) * mask)
            add(np.maximum(_above(share, 1), _above(other, 1)) * mask)
            add((share + other) / 2 * mask)
    return np.array(list(rows.values())[:most], dtype=np.int64).reshape(-1, len(units))


def _groups(units: Sequence[Unit]) -> list[frozenset[int]]:
    """Return the sets of classes that some units are bound to, those of the most units first."""
    bound: defaultdict[frozenset[int], int] = defaultdict(int)
    for unit in units:
        bound[unit.classes] += 1
    largest: frozenset[int] = frozenset().union(*bound)
    ranked = sorted((classes for classes in bound if classes != largest), key=lambda c: (-bound[c], sorted(c)))
    return ranked[:_MOST_GROUPS]


def _members(units: Sequence[Unit], group: frozenset[int]) -> NDArray[np.float64]:
    return np.array([float(unit.classes <= group) for unit in units])


def _shares(cluster: Cluster, units: Sequence[Unit], name: str) -> list[NDArray[np.float64]]:
    """Return the part of a node that each unit takes, for the capacities that the most nodes have; the largest
    first.
    """
    nodes: defaultdict[int, int] = defaultdict(int)
    used: frozenset[int] = frozenset().union(*(unit.classes for unit in units))
    for number in sorted(used):
        node_class = cluster.classes[number]
        if node_class.resources.get(name, 0):
            nodes[node_class.resources[name]] += len(node_class.names)
    ranked = sorted(nodes, key=lambda capacity: (-nodes[capacity], capacity))[:_MOST_CAPACITIES]
    amounts = np.array([unit.amounts.get(name, 0) for unit in units], dtype=np.float64)
    if not nodes:
        return [np.zeros(len(units))]
    # relative to the largest node first: the linear surrogate must not count a large unit as a whole small node
    return [amounts / max(nodes)] + [np.minimum(1.0, amounts / capacity) for capacity in ranked]


def _above(share: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Round to k parts, u^(k) of Fekete and Schepers (2001): x where (k + 1) x is whole, else floor((k + 1) x) / k."""
    scaled = (parts + 1) * share
    whole = np.abs(scaled - np.round(scaled)) < 1e-9
    return np.where(whole, share, np.floor(scaled) / parts)


def _dual_feasible(share: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return roundings: u^(1) to u^(3), and U^(e), which counts small units as nothing and large ones as all."""
    rounded = [_above(share, k) for k in (1, 2, 3)]
    for threshold in (1 / 8, 1 / 4, 3 / 8):
        rounded.append(np.where(share > 1 - threshold, 1.0, np.where(share < threshold, 0.0, share)))
    return rounded


def measures_of_jobs(usage: Ints, seconds: Ints, profiles: Sequence[Profile]) -> tuple[Ints, list[Profile]]:
    """Return more surrogates, on which whole jobs are measured anew by what they take of one that there is: those on
    which they need more of the machine.

    `usage`: what a job of each kind takes: shape (kinds, surrogates). `seconds`: how long all jobs of each kind run,
    added up. `profiles`: the capacity of each surrogate. Returns the same of the new surrogates.
    """
    most = np.array([max(1, int(profile.amounts[-1])) for profile in profiles], dtype=np.int64)
    run = seconds.astype(np.float64)
    needed = run @ usage / most
    wide = [row for row in np.argsort(-needed, kind="stable") if usage[:, row].max(initial=0) > _WIDE * most[row]]
    columns, made = [np.zeros((len(usage), 0), dtype=np.int64)], list[Profile]()
    for row in wide[:_MOST_MEASURED]:
        takes, whole = usage[:, row], int(most[row])
        steps = np.unique(np.concatenate([takes[2 * takes <= whole], whole - takes[2 * takes > whole] + 1]))
        steps = steps[(steps > 0) & (2 * steps <= whole)]
        areas = {
            step: float(run @ measured(takes, step, whole)) / float(2 * (whole // step))
            for step in steps[:: len(steps) // _MOST_STEPS + 1].tolist()
        }
        best = sorted((step for step, area in areas.items() if area > needed[row]), key=lambda step: -areas[step])
        for step in best[:_MOST_MEASURES]:
            columns.append(measured(takes, step, whole)[:, None])
            made.append(Profile(profiles[row].times, measured(profiles[row].amounts, step, whole)))
    return np.concatenate(columns, axis=1), made


def measured(amounts: Ints, step: int, most: int) -> Ints:
    """Measure amounts up to `most` in steps, of which a pair counts 2: small ones rounded down, and large ones by what
    they leave (Carlier, Clautiaux and Moukrim 2007).

    This rises with the amount, and is superadditive: amounts that fit in a capacity measure together no more than it
    does. With the step p, a job that takes more than most - p has all for itself as far as jobs are concerned that take
    p or more; and if p is more than a third, no three of these run together.
    """
    amounts = np.minimum(amounts, most)
    large = 2 * (most // step) - 2 * ((most - amounts) // step)
    return np.select([2 * amounts > most, 2 * amounts == most], [large, most // step], 2 * (amounts // step))


class Capacities:
    """The capacity of all nodes over time beside the running jobs, for any sizes of the units.

    Each node gives what its knapsack says for what the running jobs leave of it, from each of their ends on more.
    Nodes of the same resources that let in the same units share one knapsack, and in the same state one look at it.

    `instance`, `units`, `counts`: the nodes and the running jobs, the units of jobs, and the number of each unit.
    """

    def __init__(self, instance: Instance, units: Sequence[Unit], counts: Sequence[int]) -> None:
        self._knapsacks: dict[Shape, Knapsack] = {}
        #: By second and shape: how many nodes enter each state then, less those that leave it.
        self._changes: defaultdict[int, Counter[tuple[Shape, int]]] = defaultdict(Counter, {0: Counter()})
        busy = held_until(instance)
        for node_class, shape in zip(instance.cluster.classes, shapes_of(instance.cluster, units), strict=True):
            if shape is None:
                continue
            if shape not in self._knapsacks:
                self._knapsacks[shape] = Knapsack(shape, units, counts)
            knapsack = self._knapsacks[shape]
            self._changes[0][shape, knapsack.idle] += sum(name not in busy for name in node_class.names)
            for name in node_class.names:
                if name in busy:
                    self._follow(shape, free_over_time(node_class.resources, busy[name]))

    def _follow(self, shape: Shape, steps: Sequence[tuple[int, Mapping[str, int]]]) -> None:
        """Note the states of one busy node."""
        states = [(time, self._knapsacks[shape].state_of(free)) for time, free in steps]
        for place, (time, state) in enumerate(states):
            self._changes[time][shape, state] += 1
            if place:
                self._changes[time][shape, states[place - 1][1]] -= 1

    def profiles(self, sizes: Ints) -> list[Profile]:
        """Return the capacity of each surrogate over time; `sizes` has a row for each, shape (surrogates, units)."""
        tables = {shape: knapsack.table(sizes) for shape, knapsack in self._knapsacks.items()}
        times = sorted(self._changes)
        changes = np.zeros((len(times), len(sizes)), dtype=np.int64)
        for row, time in enumerate(times):
            for (shape, state), nodes in self._changes[time].items():
                changes[row] += nodes * tables[shape][state]
        amounts = np.cumsum(changes, axis=0)
        return [
            Profile(np.array(times, dtype=np.int64), np.ascontiguousarray(amounts[:, row])) for row in range(len(sizes))
        ]
