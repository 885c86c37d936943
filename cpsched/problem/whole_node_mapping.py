"""Which nodes those are: a schedule of numbers becomes one of nodes, without migration (EVO-4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush

from cpsched.domain import Amounts, Chunk, Instance, Job, Placement, PlannedJob, Segment
from cpsched.problem.whole_nodes import Machine


@dataclass(frozen=True, slots=True)
class Hold:
    """An amount over ``[start, end)``: of nodes, or of what a pool has."""

    start: int
    end: int
    amount: int


class _Event(IntEnum):
    """The kinds of events, in their order within one second."""

    GIVE = 0
    TAKE = 1


def map_to_nodes(holds: Sequence[Sequence[Hold]], free_from: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """Return the nodes of each hold, ascending: a growing job keeps its nodes, a shrinking one keeps some of them.

    At each second, first shrinking and ending jobs release nodes; then growing and beginning jobs take the first
    free nodes. All nodes are equal, so there are always enough if the numbers never exceed the capacity.

    `holds`: of each application, in time order without holes. `free_from`: when each node becomes free for good.
    """
    nodes: list[list[tuple[int, ...]]] = [[] for _ in holds]
    free: list[int] = []
    events = [(time, _Event.GIVE, -1, node) for node, time in enumerate(free_from)]
    for who, held in enumerate(holds):
        before = 0
        for place, hold in enumerate(held):
            events.append((hold.start, _Event.TAKE if hold.amount > before else _Event.GIVE, who, place))
            before = hold.amount
        events.append((held[-1].end, _Event.GIVE, who, len(held)))
    heapify(events)
    while events:
        _, event, who, place = heappop(events)
        if who < 0:
            heappush(free, place)
            continue
        had = nodes[who][place - 1] if place else ()
        amount = holds[who][place].amount if place < len(holds[who]) else 0
        if event is _Event.GIVE:
            for node in had[amount:]:
                heappush(free, node)
            has = had[:amount]
        else:
            has = tuple(sorted((*had, *(heappop(free) for _ in range(amount - len(had))))))
        if place < len(holds[who]):
            nodes[who].append(has)
    return nodes


def planned_on_nodes(
    instance: Instance, job: Job, machine: Machine, steps: Sequence[Hold], nodes: Sequence[tuple[int, ...]]
) -> PlannedJob:
    """Return a planned job.

    `steps`: when its steps are, in seconds from now, each until the next one begins. `nodes`: what it may have in each
    of them: it takes the first of these.
    """
    (chunk, *_) = job.steps[0].request.chunks
    segments = (
        Segment(
            start=instance.now + step.start,
            end=instance.now + step.end,
            allocation=placements([chunk], ((machine.names[node], 0, 1) for node in held[: step.amount])),
        )
        for step, held in zip(steps, nodes, strict=True)
    )
    return in_segments(job.id, segments)


def placements(
    chunks: Sequence[Chunk] | Mapping[int, Chunk], units: Iterable[tuple[str, int, int]]
) -> tuple[Placement, ...]:
    """Return an allocation, which has one entry for each node and kind of chunks.

    `chunks`: the chunks by kind. `units`: (node, kind, how many chunks of it).
    """
    counts: dict[tuple[str, int], int] = {}
    for node, kind, count in units:
        counts[node, kind] = counts.get((node, kind), 0) + count
    taken: dict[tuple[int, int], Amounts] = {}  # most nodes hold the same: one value serves them all
    found = []
    for (node, kind), count in counts.items():
        if (kind, count) not in taken:
            taken[kind, count] = chunks[kind].taken(count)
        found.append(Placement(node=node, chunk=kind, count=count, resources=taken[kind, count]))
    return tuple(found)


def in_segments(job_id: str, segments: Iterable[Segment], alternative: int = 0) -> PlannedJob:
    """Return the planned job of some segments, one after the other, by one of the job's alternatives."""
    held = tuple(segments)
    return PlannedJob(id=job_id, start=held[0].start, end=held[-1].end, segments=held, alternative=alternative)
