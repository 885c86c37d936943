"""Step sequences (jobs of several steps) on a timeline, and the tables of `step_kernels.py`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import step_kernels

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """A mapping order of a sequence: its layers, by number, in turn, and the nodes in filling order."""

    layers: tuple[int, ...]
    nodes: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepSequence:
    """A job of several steps, given by numbers of demands and of their kinds."""

    #: For each step (demand, seconds needed, seconds for which it may be held at the most).
    steps: tuple[tuple[int, int, int], ...]
    #: (demand, first step, last step): the demand fits from the begin of the first to the end of the last.
    conditions: tuple[tuple[int, int, int], ...]
    #: Chunk layers: (first step, last step, number of units, their kind in each step).
    layers: tuple[tuple[int, int, int, tuple[int, ...]], ...]
    #: Its mapping orders, tried one after the other until one succeeds.
    orders: tuple[Turns, ...]


class StepSequences:
    """Step sequences as tables for the kernels; each is known by its index.

    `sequences`: sequences on one timeline. `num_nodes`: the number of nodes of the timeline.
    """

    def __init__(self, sequences: Sequence[StepSequence], num_nodes: int) -> None:
        self.sequences = tuple(sequences)
        heads: list[tuple[int, ...]] = [(0, 0, 0, 0)]
        steps: list[tuple[int, ...]] = []
        conditions: list[tuple[int, ...]] = []
        layers: list[tuple[int, ...]] = []
        orders: list[tuple[int, ...]] = []
        layer_kinds: list[int] = []
        turns: list[int] = []
        fillings: list[Ints] = []
        filling_of: dict[bytes, int] = {}
        for sequence in sequences:
            steps.extend(sequence.steps)
            conditions.extend(sequence.conditions)
            for first, last, count, kinds in sequence.layers:
                layers.append((first, last, count, len(layer_kinds)))
                layer_kinds.extend(kinds)
            for order in sequence.orders:
                filling = filling_of.setdefault(order.nodes.tobytes(), len(fillings))
                if filling == len(fillings):
                    fillings.append(order.nodes)
                orders.append((len(turns), filling))
                turns.extend(order.layers)
            heads.append((len(steps), len(conditions), len(layers), len(orders)))
        self.tables = step_kernels.Sequences(
            heads=_table(heads, 4),
            steps=_table(steps, 3),
            conditions=_table(conditions, 3),
            layers=_table(layers, 4),
            layer_kinds=np.array(layer_kinds, dtype=np.int64),
            orders=_table(orders, 2),
            turns=np.array(turns, dtype=np.int64),
            fillings=np.array(fillings, dtype=np.int64).reshape(len(fillings), num_nodes),
        )
        self._num_nodes = num_nodes
        self._trial: step_kernels.Trial | None = None
        #: The number of steps of each sequence, and the most entries of its steps together.
        self.num_steps: list[int] = [len(sequence.steps) for sequence in sequences]
        self.most_entries: list[int] = [
            sum(min(count, num_nodes) * (last - first + 1) for first, last, count, _ in sequence.layers)
            for sequence in sequences
        ]

    def trial(self, num_columns: int, most_kinds: int) -> step_kernels.Trial:
        """Return a scratch for the kernels: on a timeline of so many node columns, whose demands have so many kinds."""
        if self._trial is None or self._trial.held.shape[1] < most_kinds:
            steps, conditions = max(self.num_steps, default=1), np.diff(self.tables.heads[:, step_kernels.C_CONDITION])
            self._trial = step_kernels.Trial(
                seen=np.zeros((int(conditions.max(initial=1)), 2), dtype=np.int64),
                tried=np.zeros(steps, dtype=np.int64),
                soonest=np.zeros(steps, dtype=np.int64),
                least=np.zeros((steps, num_columns), dtype=np.int32),
                free=np.zeros((steps, num_columns), dtype=np.int32),
                other=np.zeros(num_columns, dtype=np.int32),
                held=np.zeros((steps, most_kinds, self._num_nodes), dtype=np.int32),
                fits=np.zeros(self._num_nodes, dtype=np.int32),
                units=np.zeros(self._num_nodes, dtype=np.int32),
                place=step_kernels.Place(
                    begins=np.zeros(steps, dtype=np.int64),
                    found=np.zeros((max(self.most_entries, default=1), 3), dtype=np.int32),
                    spans=np.zeros(steps + 1, dtype=np.int64),
                ),
            )
        return self._trial


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
