"""What of nodes and licences is taken in every plan: by running jobs as they continue, and by what is set aside, which
may be amounts of which others have some already: in pieces, of each what is left.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from cpsched.domain import Amounts, Chunk, Cluster, Instance, Job, NodeClass, Placement, PlannedJob, SetAside
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
    #: The times at which a rule holds, shared by many, and the first one from which on the same amount is closed.
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
    """Return amounts with all that is set aside for the same time in one, and in it each node once with the same
    resources: what counts for what a node keeps free stays apart from what does not.

    `asides`: amounts that are set aside. `closed`: the same of other licences, by name.
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
    """Return amounts of nodes with each node once with the same resources."""
    found: dict[tuple[str, frozenset[str]], Placement] = {}
    for placement in chain.from_iterable(allocations):
        key = placement.node, frozenset(placement.resources)
        here = found.get(key)
        found[key] = placement if here is None else _together(here, placement)
    return tuple(found.values())


def _together(one: Placement, other: Placement) -> Placement:
    """Return two amounts of a node as one."""
    return Placement(node=one.node, resources=Amounts(added((one.resources, other.resources))))


def _left(wanted: Amounts, has: Amounts, taken: Mapping[str, int]) -> Amounts:
    """Return how much of what is wanted is left beside what is taken of what there is."""
    left = {name: min(amount, has.get(name, 0) - taken.get(name, 0)) for name, amount in wanted.items()}
    return Amounts({name: amount for name, amount in left.items() if amount > 0})


#: A resource of a node; with a beneficiary, the part of it that chunks which do not ask for the beneficiary may have
#: together (``keep_free``).
Column = tuple[str, str | None]


class TakenOnNode(NamedTuple):
    """Amounts of a node that are taken in ``[start, end)``, in seconds from now."""

    node: str
    resources: Amounts
    start: int
    end: int
    #: Whether nothing else may be on the node then.
    is_exclusive: bool


class TakenLicense(NamedTuple):
    """An amount of a licence that is taken in ``[start, end)``, in seconds from now."""

    name: str
    amount: int
    start: int
    end: int


def taken_on_nodes(instance: Instance, running: Sequence[PlannedJob]) -> Iterator[TakenOnNode]:
    """Yield the amounts of nodes that running jobs take from now on, and those that are set aside.

    `running`: running jobs as they continue.
    """
    now = instance.now
    exclusive = {element: job.steps[0].request.place.exclusive for job in instance.jobs for element in job.element_ids}
    for planned in running:
        for segment in planned.segments:
            for held in segment.allocation if segment.end > now else ():
                start, end = max(0, segment.start - now), segment.end - now
                yield TakenOnNode(held.node, held.resources, start, end, exclusive.get(planned.id, False))
    for aside in instance.set_aside:
        for held in aside.allocation if aside.end > now else ():
            yield TakenOnNode(held.node, held.resources, max(0, aside.start - now), aside.end - now, False)


def taken_licenses(instance: Instance, running: Sequence[PlannedJob]) -> Iterator[TakenLicense]:
    """Yield the licences that running jobs take from now on, and those that are set aside."""
    now = instance.now
    asked = {element: job.licenses for job in instance.jobs for element in job.element_ids}
    spans: list[tuple[int, int, Mapping[str, int]]] = [
        *((planned.start, planned.end, asked[planned.id]) for planned in running),
        *((aside.start, aside.end, aside.licenses) for aside in instance.set_aside),
    ]
    for start, end, amounts in spans:
        for name, amount in amounts.items() if end > now else ():
            if amount:
                yield TakenLicense(name, amount, max(0, start - now), end - now)


def amount_of(column: Column, unit: Sequence[tuple[Chunk, int]]) -> int:
    """Return the amount of a column that a unit, some chunks together on a node, takes."""
    name, kept_for = column
    return sum(count * chunk.resources.get(name, 0) for chunk, count in unit if kept_for not in chunk.resources)


def columns_of(node_class: NodeClass) -> dict[Column, int]:
    """Return the capacity of each column of a node."""
    columns: dict[Column, int] = {(name, None): amount for name, amount in node_class.resources.items()}
    for rule in node_class.keep_free:
        key = (rule.resource, rule.beneficiary)
        left = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
        columns[key] = min(left, columns.get(key, left))
    return columns


def held_until(instance: Instance) -> dict[str, list[tuple[int, Mapping[str, int] | None]]]:
    """Return for each busy node until when (seconds from now) running jobs hold what they have in their present
    segments; None: all of it.
    """
    busy: defaultdict[str, list[tuple[int, Mapping[str, int] | None]]] = defaultdict(list)
    for job in instance.jobs:
        if job.running is None:
            continue
        segment = next(segment for segment in job.running.segments if segment.end > instance.now)
        is_exclusive = job.steps[0].request.place.exclusive
        for placement in segment.allocation:
            held = None if is_exclusive else placement.resources
            busy[placement.node].append((segment.end - instance.now, held))
    return dict(busy)


def free_over_time(
    resources: Mapping[str, int], held: Sequence[tuple[int, Mapping[str, int] | None]]
) -> list[tuple[int, Mapping[str, int]]]:
    """Return (second, free amounts) of a node of which so much is held (`held_until`): from 0 on, and from each end of
    a running job on.
    """
    steps: list[tuple[int, Mapping[str, int]]] = []
    for time in sorted({0, *(end for end, _ in held)}):
        present = [amounts for end, amounts in held if end > time]
        if any(amounts is None for amounts in present):
            free = dict.fromkeys(resources, 0)
        else:
            free = {
                name: max(0, amount - sum(amounts.get(name, 0) for amounts in present if amounts is not None))
                for name, amount in resources.items()
            }
        steps.append((time, free))
    return steps
