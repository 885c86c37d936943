"""New surrogates where the relaxation packs more on the nodes than they hold.

What the relaxed jobs demand at a time is a point in the space of units. Either it is a mixture of packings of the
nodes, or a vector of sizes separates it: the demand measures more than the best packings. The most violated one is the
dual of a linear program over packings, which are generated as they are needed (Gilmore and Gomory 1961). Any vector
gives a valid surrogate, so nothing here has to be exact: the knapsacks are coarse, and running jobs are left out.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.bounds.packing import Knapsack, Shape, Unit, shapes_of
from cpsched.cp.bounds.surrogates import WHOLE, Floats, Ints
from cpsched.domain import Cluster

#: States of a knapsack that only proposes packings: the coarser, the more violated packings stay unseen.
_COARSE = 3000
#: The most packings that are generated for one demand, of each shape.
_MOST_PACKINGS = 150
#: A demand that measures less than this times the capacity is not cut off.
_VIOLATION = 1.002
#: A demand is left alone as soon as this part of what it can measure too much is found.
_ENOUGH = 0.2
#: Less of a unit than this counts as none.
_TRACE = 1e-3
#: The largest size of a unit, in nodes: this bounds the linear program.
_MOST_NODES = 4.0


class Separation:
    """Finds vectors of sizes; mutable: it remembers the packings that it has met.

    `cluster`, `units`, `counts`: the nodes, the units of jobs, and the number of each unit.
    """

    def __init__(self, cluster: Cluster, units: Sequence[Unit], counts: Sequence[int]) -> None:
        nodes: dict[Shape, int] = {}
        for node_class, shape in zip(cluster.classes, shapes_of(cluster, units), strict=True):
            if shape is not None:
                nodes[shape] = nodes.get(shape, 0) + len(node_class.names)
        self._knapsacks = [Knapsack(shape, units, counts, most_states=_COARSE) for shape in nodes]
        self._nodes = np.array(list(nodes.values()), dtype=np.float64)
        self._known: set[tuple[int, bytes]] = set()
        self._program = _Program(len(units), self._nodes)

    def cuts(self, demands: Floats, is_over: Callable[[], bool]) -> Ints:
        """Return sizes of the units by which demands measure more than all nodes hold: shape (found, units).

        `demands`: how many of each unit are there at some times: shape (times, units).
        """
        best = np.full(len(demands), _VIOLATION)
        best_sizes = np.zeros(demands.shape)
        pending = [time for time, demand in enumerate(demands) if (demand > _TRACE).any()]
        for _ in range(_MOST_PACKINGS):
            if is_over() or not pending:
                break
            solved = [self._program.most_violated(demands[time]) for time in pending]
            sizes = np.array([of_time for _, of_time, _ in solved])
            capacities, are_new = self._capacities(sizes, np.array([values for _, _, values in solved]))
            measured = (sizes * demands[pending]).sum(axis=1)
            ratios = np.divide(measured, capacities, out=np.zeros(len(pending)), where=capacities > 0)
            rest = []
            for place, (time, (claimed, of_time, _)) in enumerate(zip(pending, solved, strict=True)):
                if ratios[place] > best[time]:
                    best[time], best_sizes[time] = ratios[place], of_time
                if are_new[place] and claimed >= _VIOLATION and ratios[place] <= claimed - _ENOUGH * (claimed - 1.0):
                    rest.append(time)
            pending = rest
        found = best_sizes[best > _VIOLATION]
        return np.asarray(np.floor(found / found.max(axis=1, initial=0.0)[:, None] * WHOLE), dtype=np.int64)

    def _capacities(self, sizes: Floats, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the largest measure of all nodes, and whether that needs packings which were not known, for each
        time.
        """
        capacities, are_new = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=bool)
        for shape, knapsack in enumerate(self._knapsacks):
            packings = knapsack.packings(sizes)
            measured = (packings * sizes).sum(axis=1)
            capacities += self._nodes[shape] * measured
            for place in np.flatnonzero(measured > values[:, shape] + 1e-9):
                key = shape, packings[place].tobytes()
                if key not in self._known:
                    self._known.add(key)
                    self._program.add(packings[place], shape)
                    are_new[place] = True
        return capacities, are_new


class _Program:
    """The linear program over the packings known so far; mutable.

    Its variables are the sizes of the units, and what a node of each shape measures: at least as much as each packing
    that is known, and all nodes together 1. It is solved for one demand after the other, each from the last solution.

    `num_units`: the number of units. `nodes`: the number of nodes of each shape.
    """

    def __init__(self, num_units: int, nodes: Floats) -> None:
        from ortools.linear_solver import pywraplp

        self._optimal = pywraplp.Solver.OPTIMAL
        self._solver = pywraplp.Solver("packings", pywraplp.Solver.GLOP_LINEAR_PROGRAMMING)
        self._most = _MOST_NODES / float(nodes.sum())
        self._sizes = [self._solver.NumVar(0.0, self._most, "") for _ in range(num_units)]
        self._values = [self._solver.NumVar(0.0, self._solver.infinity(), "") for _ in nodes]
        self._solver.Objective().SetMaximization()
        whole = self._solver.Constraint(-self._solver.infinity(), 1.0)
        for value, count in zip(self._values, nodes.tolist(), strict=True):
            whole.SetCoefficient(value, count)

    def add(self, packing: Floats, shape: int) -> None:
        """Add a packing, how many of each unit it holds on a node of a shape."""
        row = self._solver.Constraint(-self._solver.infinity(), 0.0)
        row.SetCoefficient(self._values[shape], -1.0)
        for unit in np.flatnonzero(packing).tolist():
            row.SetCoefficient(self._sizes[unit], float(packing[unit]))

    def most_violated(self, demand: Floats) -> tuple[float, Floats, Floats]:
        """Return sizes by which a demand measures most.

        Returns what the demand measures while all nodes together measure 1, the sizes of the units, and what a node of
        each shape measures; a packing that is not known yet can measure more.
        """
        for variable, amount in zip(self._sizes, demand.tolist(), strict=True):
            is_there = amount > _TRACE
            self._solver.Objective().SetCoefficient(variable, amount if is_there else 0.0)
            variable.SetUb(self._most if is_there else 0.0)
        if self._solver.Solve() != self._optimal:
            return 0.0, np.zeros(len(demand)), np.zeros(len(self._values))
        sizes = np.array([max(0.0, variable.solution_value()) for variable in self._sizes])
        values = np.array([variable.solution_value() for variable in self._values])
        return float(self._solver.Objective().Value()), sizes, values
