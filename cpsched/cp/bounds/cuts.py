"""New surrogates where the relaxation packs more on the nodes than they hold.

What the relaxed jobs demand at a time is a point in the space of units. Either it is a mixture of packings of the
nodes, or a vector of sizes separates it: the demand measures more than the best packings. The most violated one is the
dual of a linear program over packings, which are generated as they are needed (Gilmore and Gomory 1961). Any vector
gives a valid surrogate, so nothing here has to be exact: the knapsacks are coarse, and running jobs are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cpsched.cp.bounds.packing import Knapsack, Shape, Unit, shapes_of
from cpsched.cp.bounds.surrogates import WHOLE, Floats, Ints
from cpsched.domain import Cluster

__all__ = ["Separation"]

#: States of a knapsack that only proposes packings.
_COARSE = 900
#: Packings that are generated for one demand at the most, of each shape.
_MOST_PACKINGS = 150
#: A demand that measures less than this times the capacity is not cut off.
_VIOLATION = 1.002
#: Less of a unit than this counts as none.
_TRACE = 1e-3
#: A unit measures at most as much as so many nodes: this bounds the linear program.
_MOST_NODES = 4.0


class Separation:
    """Finds vectors of sizes; mutable: it remembers the packings that it has met.

    Parameters
    ----------
    cluster, units, counts
        The nodes, what stands on them, and how many of each unit there are.
    """

    def __init__(self, cluster: Cluster, units: Sequence[Unit], counts: Sequence[int]) -> None:
        nodes: dict[Shape, int] = {}
        for node_class, shape in zip(cluster.classes, shapes_of(cluster, units), strict=True):
            if shape is not None:
                nodes[shape] = nodes.get(shape, 0) + len(node_class.names)
        self._knapsacks = [Knapsack(shape, units, counts, most_states=_COARSE) for shape in nodes]
        self._nodes = np.array(list(nodes.values()), dtype=np.float64)
        self._packings: list[dict[bytes, Floats]] = [{} for _ in nodes]

    def cut(self, demand: Floats, is_over: Callable[[], bool]) -> Ints | None:
        """Return sizes of the units by which a demand measures more than all nodes hold, or None.

        Parameters
        ----------
        demand
            How many of each unit are there at a time.
        """
        members = np.flatnonzero(demand > _TRACE)
        best, best_sizes = _VIOLATION, None
        for _ in range(_MOST_PACKINGS):
            if is_over() or not len(members):
                break
            claimed, member_sizes, values = self._most_violated(demand[members], members)
            sizes = np.zeros(len(demand))
            sizes[members] = member_sizes
            capacity, is_new = self._capacity(sizes, values)
            ratio = float(sizes @ demand) / capacity if capacity > 0 else 0.0
            if ratio > best:
                best, best_sizes = ratio, sizes
            if not is_new or claimed < _VIOLATION or ratio > claimed - 0.005:
                break
        if best_sizes is None:
            return None
        return np.asarray(np.floor(best_sizes / best_sizes.max() * WHOLE), dtype=np.int64)

    def _most_violated(self, demand: Floats, members: Ints) -> tuple[float, Floats, Floats]:
        """Solve the linear program over the packings known so far.

        Returns
        -------
        claimed, sizes, values
            What the demand measures while all nodes together measure 1, the sizes of the members, and what a node of
            each shape measures; a packing that is not known yet can measure more.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix

        num_shapes = len(self._nodes)
        rows = [np.concatenate([np.zeros(len(members)), self._nodes])]
        for shape, known in enumerate(self._packings):
            distinct = np.unique(
                np.array([packing[members] for packing in known.values()]).reshape(-1, len(members)), axis=0
            )
            marks = np.zeros((len(distinct), num_shapes))
            marks[:, shape] = -1.0
            rows.extend(np.concatenate([distinct, marks], axis=1))
        limits = np.zeros(len(rows))
        limits[0] = 1.0
        most = _MOST_NODES / float(self._nodes.sum())
        solved = linprog(
            np.concatenate([-demand, np.zeros(num_shapes)]),
            A_ub=csr_matrix(np.array(rows)),
            b_ub=limits,
            bounds=[(0.0, most)] * len(members) + [(0.0, None)] * num_shapes,
            method="highs-ds",
        )
        if solved.x is None:
            return 0.0, np.zeros(len(members)), np.zeros(num_shapes)
        return -float(solved.fun), np.maximum(0.0, solved.x[: len(members)]), solved.x[len(members) :]

    def _capacity(self, sizes: Floats, values: Floats) -> tuple[float, bool]:
        """Return what all nodes can measure, and whether that needs a packing which was not known."""
        capacity, is_new = 0.0, False
        for shape, knapsack in enumerate(self._knapsacks):
            packing = knapsack.packing(sizes)
            value = float(packing @ sizes)
            capacity += self._nodes[shape] * value
            if value > values[shape] + 1e-9:
                is_new = is_new or packing.tobytes() not in self._packings[shape]
                self._packings[shape][packing.tobytes()] = packing
        return capacity, is_new
