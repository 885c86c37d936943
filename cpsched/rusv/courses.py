"""Jobs of several steps as a timeline understands them: what they are, and the tables of `course_kernels.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Course", "Courses", "Turns"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """A way to map a course: its lives, by number, in the order in which they get nodes, and the nodes in theirs."""

    lives: tuple[int, ...]
    nodes: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """A job of several steps, in numbers of demands and of their kinds."""

    #: For each step (demand, seconds needed, seconds for which it may be held at the most).
    steps: tuple[tuple[int, int, int], ...]
    #: (demand, first step, last step): what fits from the begin of the one to the end of the other wherever it does.
    conditions: tuple[tuple[int, int, int], ...]
    #: (first step, last step, how many) units that stay together on their nodes, and which kind they are in each step.
    lives: tuple[tuple[int, int, int, tuple[int, ...]], ...]
    #: The ways to map it, one after the other until one succeeds.
    orders: tuple[Turns, ...]


class Courses:
    """Some courses as the kernels see them; each is known by its place.

    Parameters
    ----------
    courses
        All of one timeline.
    num_nodes
        How many nodes that has.
    """

    def __init__(self, courses: Sequence[Course], num_nodes: int) -> None:
        self.courses = tuple(courses)
        heads: list[tuple[int, ...]] = [(0, 0, 0, 0)]
        steps: list[tuple[int, ...]] = []
        conditions: list[tuple[int, ...]] = []
        lives: list[tuple[int, ...]] = []
        orders: list[tuple[int, ...]] = []
        life_kinds: list[int] = []
        turns: list[int] = []
        fillings: list[Ints] = []
        filling_of: dict[bytes, int] = {}
        for course in courses:
            steps.extend(course.steps)
            conditions.extend(course.conditions)
            for first, last, count, kinds in course.lives:
                lives.append((first, last, count, len(life_kinds)))
                life_kinds.extend(kinds)
            for order in course.orders:
                filling = filling_of.setdefault(order.nodes.tobytes(), len(fillings))
                if filling == len(fillings):
                    fillings.append(order.nodes)
                orders.append((len(turns), filling))
                turns.extend(order.lives)
            heads.append((len(steps), len(conditions), len(lives), len(orders)))
        #: The tables, in the order of the kernels.
        self.tables: tuple[NDArray[Any], ...] = (
            _table(heads, 4),
            _table(steps, 3),
            _table(conditions, 3),
            _table(lives, 4),
            np.array(life_kinds, dtype=np.int64),
            _table(orders, 2),
            np.array(turns, dtype=np.int64),
            np.array(fillings, dtype=np.int64).reshape(len(fillings), num_nodes),
        )
        #: How many steps each has, and how many entries the demands of all of them together may have.
        self.num_steps: list[int] = [len(course.steps) for course in courses]
        self.most_entries: list[int] = [
            sum(min(count, num_nodes) * (last - first + 1) for first, last, count, _ in course.lives)
            for course in courses
        ]


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
