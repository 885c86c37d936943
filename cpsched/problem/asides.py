"""Amounts that are set aside although others may have some of them already: in pieces, of each what is left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from cpsched.domain import Amounts, Cluster, Job, Placement, SetAside
from cpsched.problem.amounts import Amount

__all__ = ["beside", "closed", "closed_within", "held_by", "merged"]


def held_by(jobs: Sequence[Job]) -> Iterator[SetAside]:
    """Yield what running jobs have, segment by segment."""
    for job in jobs:
        for segment in job.running.segments if job.running is not None else ():
            yield SetAside(start=segment.start, end=segment.end, allocation=segment.allocation, licenses=job.licenses)


def beside(aside: SetAside, held: Sequence[SetAside], cluster: Cluster) -> Iterator[SetAside]:
    """Yield what is left of an amount to be set aside where others have some of the same nodes or licences.

    A node occurs once in `aside`.
    """
    near = [one for one in held if one.start < aside.end and one.end > aside.start]
    inside = (time for one in near for time in (one.start, one.end) if aside.start < time < aside.end)
    wanted = {placement.node: placement.resources for placement in aside.allocation}
    for start, end in pairwise(sorted({aside.start, aside.end, *inside})):
        taken: dict[str, dict[str, int]] = {}
        loans: dict[str, int] = {}
        for one in near:
            if one.start <= start < one.end:
                _add(loans, one.licenses)
                for placement in one.allocation:
                    if placement.node in wanted:
                        _add(taken.setdefault(placement.node, {}), placement.resources)
        allocation = tuple(
            Placement(node=node, resources=left)
            for node, amounts in wanted.items()
            if (left := _left(amounts, cluster.class_of[node].resources, taken.get(node, {})))
        )
        yield SetAside(
            start=start, end=end, allocation=allocation, licenses=_left(aside.licenses, cluster.licenses, loans)
        )


def closed(total: int, left: int, times: Sequence[tuple[int, int]], taken: Sequence[Amount]) -> Iterator[Amount]:
    """Yield the amounts to be set aside so that `left` of `total` are there at some times, but for what running jobs
    have (`taken`).
    """
    borders = {time for start, end, _ in taken for time in (start, end)}
    last_border = max(borders, default=-1)
    after = bisect_left(times, (last_border,))  # nothing is taken any more
    for first, last in times[:after]:
        cuts = sorted({first, last, *(time for time in borders if first < time < last)})
        for start, end in pairwise(cuts):
            used = sum(amount for begin, stop, amount in taken if begin <= start < stop)
            if (amount := total - max(left, used)) > 0:
                yield start, end, amount
    if total > left:
        yield from [(first, last, total - left) for first, last in times[after:]]


def closed_within(first: int, last: int, most: int, left: int, taken: Sequence[Amount]) -> Iterator[Amount]:
    """Yield what is to be set aside of `most` in ``[first, last)``, piece by piece, so that others (`taken`) and what
    is there have `left` together; 0 where there is enough.
    """
    borders = {time for start, end, _ in taken for time in (start, end) if first < time < last}
    for start, end in pairwise(sorted({first, last, *borders})):
        used = sum(amount for begin, stop, amount in taken if begin <= start < stop)
        yield start, end, most - max(0, min(most, left - used))


def merged(asides: Iterable[SetAside], closed: Mapping[str, Iterable[Amount]]) -> tuple[SetAside, ...]:
    """Return amounts with all that is set aside for the same time in one, and each node once in it.

    Parameters
    ----------
    asides
        Amounts that are set aside.
    closed
        Amounts of other licences that are set aside, too: when, and how much, by the name of the licence, each at most
        once for the same time.
    """
    nodes: dict[tuple[int, int], dict[str, Placement]] = {}
    licenses: dict[tuple[int, int], dict[str, int]] = {}
    for aside in asides:
        time = aside.start, aside.end
        if aside.allocation:
            of_nodes = nodes.setdefault(time, {})
            for placement in aside.allocation:
                here = of_nodes.get(placement.node)
                of_nodes[placement.node] = placement if here is None else _together(here, placement)
        _add(licenses.setdefault(time, {}), aside.licenses)
    loans: dict[tuple[int, int], list[tuple[str, int]]] = {time: list(of.items()) for time, of in licenses.items()}
    for name, parts in closed.items():
        for start, end, amount in parts:
            if (start, end) in loans:
                loans[start, end].append((name, amount))
            else:
                loans[start, end] = [(name, amount)]
    # the same few amounts are set aside at many times: one value serves them all
    values: dict[tuple[tuple[str, int], ...], Amounts] = {}
    allocations: dict[tuple[int, ...], tuple[Placement, ...]] = {}
    found = []
    for time in sorted(loans):
        key = tuple(loans[time])
        if key not in values:
            values[key] = Amounts(key)
        held: tuple[Placement, ...] = ()
        if time in nodes:
            held = tuple(nodes[time].values())
            held = allocations.setdefault(tuple(map(id, held)), held)
        found.append(SetAside(start=time[0], end=time[1], allocation=held, licenses=values[key]))
    return tuple(found)


def _together(one: Placement, other: Placement) -> Placement:
    """Return two amounts of a node as one."""
    total: dict[str, int] = {}
    _add(total, one.resources)
    _add(total, other.resources)
    return Placement(node=one.node, resources=Amounts(total))


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _left(wanted: Amounts, has: Amounts, taken: Mapping[str, int]) -> Amounts:
    """Return how much of what is wanted is left beside what is taken of what there is."""
    left = {name: min(amount, has.get(name, 0) - taken.get(name, 0)) for name, amount in wanted.items()}
    return Amounts({name: amount for name, amount in left.items() if amount > 0})
