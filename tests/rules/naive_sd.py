"""The slow twin of SD-Policy: second by second, all reservations made anew in each, all sets of mates tried.

Knows jobs of whole nodes on nodes of one kind, half shares, and the worst case model; work is counted in halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any


@dataclass
class Task:
    """A job, and what became of it."""

    name: str
    submit: int
    walltime: int
    count: int
    is_malleable: bool
    work: int = 0
    nodes: list[int] = field(default_factory=list)
    start: int = -1
    end: int = -1
    mates: list[Task] = field(default_factory=list)
    guest: Task | None = None

    def predicted(self, now: int) -> int:
        """Return when a running one ends as it runs now, and at full speed when its guest has ended."""
        if self.mates:
            return now + self.work
        if self.guest is None:
            return now + -(-self.work // 2)
        until = self.guest.predicted(now)
        left = self.work - (until - now)
        return now + self.work if left <= 0 else until + -(-left // 2)


def sd_by_the_second(tasks: Sequence[Task], num_nodes: int, limit: float | None, most: int, *, by_nodes: bool) -> None:
    """Run all tasks; each gets its start, its end, its nodes and its mates."""
    waiting = sorted(tasks, key=lambda task: task.submit)
    running: list[Task] = []
    now = 0
    while waiting or running:
        for task in [task for task in running if task.work <= 0]:
            running.remove(task)
            task.end = now
            for mate in task.mates:
                mate.guest = None
        while go_through(now, waiting, running, num_nodes, limit, most, by_nodes=by_nodes):
            pass
        for task in running:
            task.work -= 1 if task.mates or task.guest else 2
        now += 1


def go_through(
    now: int,
    waiting: list[Task],
    running: list[Task],
    num_nodes: int,
    limit: float | None,
    most: int,
    *,
    by_nodes: bool,
) -> bool:
    """Go through the queue until a guest starts; tell whether anybody has started, after which it begins again."""
    below: float | Fraction | None = limit
    if below is None:
        slow = [Fraction(task.predicted(now) - task.submit, task.walltime) for task in running]
        below = sum(slow, Fraction(0)) / max(1, len(slow))
    places = reserve(now, waiting, running, num_nodes)
    before = len(waiting)
    for task in list(waiting):
        start, nodes = places[task.name]
        if start == now:
            waiting.remove(task)
            running.append(task)
            task.start, task.nodes, task.work = now, nodes, 2 * task.walltime
            continue
        if not task.is_malleable or task.submit > now or start + task.walltime <= now + 2 * task.walltime:
            continue
        mates = best_mates(now, task, running, below, most, by_nodes=by_nodes)
        if mates:
            waiting.remove(task)
            running.append(task)
            task.start, task.mates, task.work = now, mates, 2 * task.walltime
            for mate in mates:
                mate.guest = task
            break
    return len(waiting) < before


def reserve(
    now: int, waiting: Sequence[Task], running: Sequence[Task], num_nodes: int
) -> dict[str, tuple[int, list[int]]]:
    """Give each task the earliest start, and the first nodes there, beside those before it."""
    busy = [(node, now, task.predicted(now)) for task in running for node in task.nodes]
    places = {}
    for task in waiting:
        start = max(now, task.submit)
        while True:
            end = start + task.walltime
            taken = {node for node, first, last in busy if first < end and start < last}
            free = [node for node in range(num_nodes) if node not in taken]
            if len(free) >= task.count:
                break
            start += 1
        places[task.name] = start, free[: task.count]
        busy += [(node, start, end) for node in free[: task.count]]
    return places


def best_mates(
    now: int, task: Any, running: Sequence[Any], below: float | Fraction, most: int, *, by_nodes: bool
) -> list[Any]:
    """Choose the mates with the least impact, or none; tasks of this twin or of the one on-line."""
    found = []
    for mate in running:
        if (
            mate.is_malleable
            and not mate.mates
            and mate.guest is None
            and mate.nodes
            and mate.work >= 2 * task.walltime
        ):
            end = now + 2 * task.walltime + -(-(mate.work - 2 * task.walltime) // 2)
            penalty = Fraction(end - mate.submit, mate.walltime)
            if penalty < below:
                found.append((penalty, mate.name, mate))
    found.sort(key=lambda entry: entry[:2])
    sets = [
        (sum(found[rank][0] * (found[rank][2].count if by_nodes else 1) for rank in ranks), size, ranks)
        for size in range(1, most + 1)
        for ranks in combinations(range(len(found)), size)
        if sum(found[rank][2].count for rank in ranks) == task.count
    ]
    return [found[rank][2] for rank in min(sets)[2]] if sets else []
