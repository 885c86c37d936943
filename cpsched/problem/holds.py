"""Amounts that are set aside although others may have some of them already: in pieces, of each what is left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from cpsched.domain import Amounts, Cluster, Job, Placement, SetAside
from cpsched.problem.amounts import Amount, added, by_node
from cpsched.problem.calendar import Intervals


def held_by(jobs: Sequence[Job]) -> Iterator[SetAside]:
    """Yield what running jobs have, segment by segment."""
    for job in jobs:
        for segment in job.running.segments if job.running is not None else ():
            yield SetAside(start=segment.start, end=segment.end, allocation=segment.allocation, licenses=job.licenses)


def beside(aside: SetAside, held: Sequence[SetAside], cluster: Cluster) -> Iterator[SetAside]:
    """Yield what is left of `aside`, which has a node once, where others have some of the same."""
    near = [one for one in held if one.start < aside.end and one.end > aside.start]
    inside = (time for one in near for time in (one.start, one.end) if aside.start < time < aside.end)
    wanted = {placement.node: placement.resources for placement in aside.allocation}
    for start, end in pairwise(sorted({aside.start, aside.end, *inside})):
        present = [one for one in near if one.start <= start < one.end]
        loans, taken = added(one.licenses for one in present), by_node(chain(*(one.allocation for one in present)))
        allocation = tuple(
            Placement(node=node, resources=left)
            for node, amounts in wanted.items()
            if (left := _left(amounts, cluster.class_of[node].resources, taken.get(node, {})))
        )
        yield SetAside(
            start=start, end=end, allocation=allocation, licenses=_left(aside.licenses, cluster.licenses, loans)
        )


@dataclass(frozen=True, slots=True)
class Closed:
    """Amounts that nobody can have at some times."""

    #: Those at times at which running jobs have some.
    pieces: tuple[Amount, ...] = ()
    #: The times at which a rule holds, as many rules have them, and the first one of these at which the same amount is
    #: closed from then on.
    times: Intervals = ()
    first: int = 0
    amount: int = 0

    def __iter__(self) -> Iterator[Amount]:
        """Yield all amounts in the order of time."""
        yield from self.pieces
        yield from ((start, end, self.amount) for start, end in self.times[self.first :])

    @property
    def last(self) -> Amount | None:
        """The last amount."""
        if self.first < len(self.times):
            return (*self.times[-1], self.amount)
        return self.pieces[-1] if self.pieces else None


def closed(total: int, left: int, times: Intervals, taken: Sequence[Amount]) -> Closed:
    """Return what to set aside so that `left` of `total` are there at some times, but for what is `taken`."""
    borders = {time for start, end, _ in taken for time in (start, end)}
    after = bisect_left(times, (max(borders, default=-1),))  # nothing is taken any more
    pieces = []
    for first, last in times[:after]:
        cuts = sorted({first, last, *(time for time in borders if first < time < last)})
        for start, end in pairwise(cuts):
            used = sum(amount for begin, stop, amount in taken if begin <= start < stop)
            if (amount := total - max(left, used)) > 0:
                pieces.append((start, end, amount))
    return Closed(tuple(pieces), times, after if total > left else len(times), total - left)


def closed_within(first: int, last: int, most: int, left: int, taken: Sequence[Amount]) -> Iterator[Amount]:
    """Yield what is to be set aside of `most` in ``[first, last)``, piece by piece, so that others (`taken`) and what
    is there have `left` together; 0 where there is enough.
    """
    borders = {time for start, end, _ in taken for time in (start, end) if first < time < last}
    for start, end in pairwise(sorted({first, last, *borders})):
        used = sum(amount for begin, stop, amount in taken if begin <= start < stop)
        yield start, end, most - max(0, min(most, left - used))


def merged(asides: Sequence[SetAside], closed: Mapping[str, Closed]) -> tuple[SetAside, ...]:
    """Return amounts with all that is set aside for the same time in one, and each node once in it.

    `asides`: amounts that are set aside. `closed`: amounts of other licences that are set aside, too, by the name of
    the licence.
    """
    held: dict[tuple[int, int], tuple[tuple[Placement, ...], ...]] = {}
    loans: dict[tuple[int, int], tuple[tuple[str, int], ...]] = {}
    for aside in asides:
        time = aside.start, aside.end
        if aside.allocation:
            held[time] = (*held.get(time, ()), aside.allocation)
        loans[time] = (*loans.get(time, ()), *aside.licenses.items())
    sharing: dict[int, list[tuple[int, tuple[str, int]]]] = {}  # the same times
    for name, one in closed.items():
        for start, end, amount in one.pieces:
            loans[start, end] = (*loans.get((start, end), ()), (name, amount))
        sharing.setdefault(id(one.times), []).append((one.first, (name, one.amount)))
    all_times = {id(one.times): one.times for one in closed.values()}
    for key, parts in sharing.items():
        times, loan = all_times[key], tuple[tuple[str, int], ...]()
        parts.sort()
        for (first, part), (until, _) in pairwise([*parts, (len(times), ("", 0))]):
            loan += (part,)
            for time in times[first:until]:
                loans[time] = loans.get(time, ()) + loan
    # the same few amounts are set aside at many times: one value serves them all
    distinct = {id(loan): loan for loan in loans.values()}
    values = {loan: Amounts(added({name: amount} for name, amount in loan)) for loan in set(distinct.values())}
    known = {key: values[loan] for key, loan in distinct.items()}
    allocations: dict[tuple[int, ...], tuple[Placement, ...]] = {}
    found = []
    for time in sorted(loans):
        allocation: tuple[Placement, ...] = ()
        if time in held:
            nodes = tuple(map(id, held[time]))
            if nodes not in allocations:
                allocations[nodes] = _put_together(held[time])
            allocation = allocations[nodes]
        start, end = time
        found.append(SetAside(start, end, allocation, known[id(loans[time])]))
    return tuple(found)


def _put_together(allocations: Iterable[Sequence[Placement]]) -> tuple[Placement, ...]:
    """Return amounts of nodes with each node once."""
    found: dict[str, Placement] = {}
    for placement in chain.from_iterable(allocations):
        here = found.get(placement.node)
        found[placement.node] = placement if here is None else _together(here, placement)
    return tuple(found.values())


def _together(one: Placement, other: Placement) -> Placement:
    """Return two amounts of a node as one."""
    return Placement(node=one.node, resources=Amounts(added((one.resources, other.resources))))


def _left(wanted: Amounts, has: Amounts, taken: Mapping[str, int]) -> Amounts:
    """Return how much of what is wanted is left beside what is taken of what there is."""
    left = {name: min(amount, has.get(name, 0) - taken.get(name, 0)) for name, amount in wanted.items()}
    return Amounts({name: amount for name, amount in left.items() if amount > 0})
