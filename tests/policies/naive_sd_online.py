"""The slow twin of SD-Policy on-line: second by second, jobs unknown before they come, and over when they really are.

Knows jobs of whole nodes on nodes of one kind, half shares, and the worst case model; work is counted in halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations


@dataclass
class Task:
    """A job, and what became of it."""

    name: str
    submit: int
    walltime: int
    runtime: int
    count: int
    is_malleable: bool
    #: What is left to do: as its walltime has it, and really.
    work: int = 0
    left: int = 0
    #: Its own nodes, and those that it stands on.
    nodes: list[int] = field(default_factory=list)
    stands: list[int] = field(default_factory=list)
    start: int = -1
    end: int = -1
    mates: list[Task] = field(default_factory=list)
    guest: Task | None = None
    was_guest: bool = False
    has_lent: bool = False

    def predicted(self, now: int) -> int:
        """Return when a running one ends as it runs now, and at full speed when its guest has ended."""
        if self.mates:
            return now + self.work
        if self.guest is None:
            return now + -(-self.work // 2)
        until = self.guest.predicted(now)
        left = self.work - (until - now)
        return now + self.work if left <= 0 else until + -(-left // 2)


def sd_online_by_the_second(
    tasks: Sequence[Task], num_nodes: int, limit: float | None, most: int, depth: int | None, *, by_nodes: bool
) -> None:
    """Run all tasks as they arrive; each gets its start, its end and its nodes."""
    coming = sorted(tasks, key=lambda task: task.submit)
    waiting: list[Task] = []
    running: list[Task] = []
    now = 0
    while coming or waiting or running:
        for task in [task for task in running if task.left <= 0]:
            running.remove(task)
            task.end = now
            for mate in task.mates:
                mate.guest = None
            if task.guest is not None:  # who has all of its nodes then
                task.guest.mates.remove(task)
                task.guest.nodes += task.nodes
        while coming and coming[0].submit <= now:
            waiting.append(coming.pop(0))
        while go_through(now, waiting, running, num_nodes, limit, most, depth, by_nodes=by_nodes):
            pass
        for task in running:
            speed = 1 if task.mates or task.guest else 2
            task.work -= speed
            task.left -= speed
        now += 1


def go_through(
    now: int,
    waiting: list[Task],
    running: list[Task],
    num_nodes: int,
    limit: float | None,
    most: int,
    depth: int | None,
    *,
    by_nodes: bool,
) -> bool:
    """Go through the queue until a guest starts; tell whether anybody has started, after which it begins again."""
    below: float | Fraction | None = limit
    if below is None:
        slow = [Fraction(task.predicted(now) - task.submit, task.walltime) for task in running]
        below = sum(slow, Fraction(0)) / max(1, len(slow))
    first = waiting[:depth]
    places = reserve(now, first, running, num_nodes)
    before = len(waiting)
    for task in first:
        start, nodes = places[task.name]
        if start == now:
            begin(task, now, waiting, running)
            task.nodes, task.stands = nodes, nodes
            continue
        if not task.is_malleable or start + task.walltime <= now + 2 * task.walltime:
            continue
        owners = [one for one in running if not one.was_guest]
        mates = best_mates(now, task, owners, below, most, by_nodes=by_nodes)
        if mates:
            begin(task, now, waiting, running)
            task.was_guest = True
            task.mates, task.stands = mates, sorted(node for mate in mates for node in mate.nodes)
            for mate in mates:
                mate.guest, mate.has_lent = task, True
            break
    return len(waiting) < before


def begin(task: Task, now: int, waiting: list[Task], running: list[Task]) -> None:
    """Start a task."""
    waiting.remove(task)
    running.append(task)
    task.start, task.work, task.left = now, 2 * task.walltime, 2 * min(task.runtime, task.walltime)


def reserve(
    now: int, waiting: Sequence[Task], running: Sequence[Task], num_nodes: int
) -> dict[str, tuple[int, list[int]]]:
    """Give each task the earliest start, and the first nodes there, beside those before it."""
    busy = [(node, now, task.predicted(now)) for task in running for node in task.nodes]
    places = {}
    for task in waiting:
        start = now
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
    now: int, task: Task, running: Sequence[Task], below: float | Fraction, most: int, *, by_nodes: bool
) -> list[Task]:
    """Choose the mates with the least impact, or none."""
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
