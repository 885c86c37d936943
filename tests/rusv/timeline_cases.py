"""Random layouts, demands and jobs for the timeline, and `Pair`: a timeline beside its naive twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, Booking, Demands, JobTable, KindDemand, Layout, Run, Timeline, kernels
from cpsched.rusv.kernels import Nodes
from tests.oracle.dense_timeline import DenseBooking, DenseTimeline, Entry

#: Seconds that the twins look at; nothing that is drawn ends later.
SECONDS = 64
#: The largest amount of a document, and what small multiples are drawn of.
LARGEST = 2**31 - 1
UNITS = (1, LARGEST // 8)

#: (demand, earliest start, latest start, duration), as rows of a `JobTable`.
JobRow = tuple[int, int, int, int]


@dataclass(frozen=True)
class DrawnDemand:
    """What `Demands.add` is called with, once for `otherwise` if that is not empty, and once for `kinds`."""

    kinds: tuple[KindDemand, ...]
    system: tuple[tuple[int, int], ...]
    licenses: tuple[tuple[int, int], ...]
    exclusive: bool
    scatter: bool
    #: The same kinds in another order, tried where this order fails.
    otherwise: tuple[KindDemand, ...] = ()
    #: The same kind on the nodes of each group, within one of which it is; empty: it may be on all nodes.
    groups: tuple[KindDemand, ...] = ()
    #: How many chunks are in each of several groups, as `Demands.add` is called with it.
    parts: tuple[tuple[str, int], ...] = ()


@st.composite
def layouts(draw: st.DrawFn, unit: int) -> Layout:
    """Draw runs of nodes that have some of three resources.

    System column r sums up resource r; the columns of the first run have a sum of their own as well; the last system
    column is a licence. Amounts are small multiples of `unit`, or the largest that there can be.
    """
    amounts = st.sampled_from([4 * unit, 2 * unit, 8 * unit, 3 * unit, unit, LARGEST])
    shapes = draw(
        st.lists(
            st.tuples(st.integers(1, 3), st.sets(st.integers(0, 2), min_size=1).map(sorted)), min_size=1, max_size=4
        )
    )
    system = [0] * 6 + [3]
    runs = []
    for place, (length, resources) in enumerate(shapes):
        capacity = tuple(draw(amounts) for _ in resources)
        sums = tuple((r, 3 + r) if place == 0 else (r,) for r in resources)
        runs.append(Run(length=length, resources=tuple(resources), capacity=capacity, system=sums))
        for amount, columns in zip(capacity, sums, strict=True):
            for column in columns:
                system[column] += amount * length
    return Layout(runs=tuple(runs), system_capacity=tuple(system))


@st.composite
def kind_demands(draw: st.DrawFn, layout: Layout, unit: int, *, scatter: bool) -> tuple[KindDemand, dict[int, int]]:
    """Draw a kind of chunk that at least one run can hold, and what one chunk takes by resource."""
    model = draw(st.sampled_from(layout.runs))
    has = dict(zip(model.resources, model.capacity, strict=True))
    chosen = draw(st.sets(st.sampled_from(model.resources), min_size=1))
    takes = {r: min(has[r], unit * draw(st.sampled_from([1, 2, 3, 1, 8]))) for r in sorted(chosen)}
    if draw(st.sampled_from([False] * 5 + [True])):
        takes = {r: max(1, amount - 1) for r, amount in takes.items()}
    able = [
        number
        for number, run in enumerate(layout.runs)
        if all(r in run.resources and run.capacity[run.resources.index(r)] >= amount for r, amount in takes.items())
    ]
    runs = draw(st.sets(st.sampled_from(able), min_size=1))
    need = draw(st.integers(1, 4))
    return (
        KindDemand(
            need=need,
            most=1 if scatter else draw(st.integers(1, need)),
            takes=tuple(
                (run, tuple((layout.runs[run].resources.index(r), amount) for r, amount in takes.items()))
                for run in draw(st.permutations(sorted(runs)))
            ),
        ),
        takes,
    )


@st.composite
def demands(draw: st.DrawFn, layout: Layout, unit: int) -> DrawnDemand:
    """Draw a demand of one to three kinds."""
    scatter = draw(st.sampled_from([False, False, False, True]))
    drawn = [draw(kind_demands(layout, unit, scatter=scatter)) for _ in range(draw(st.sampled_from([1, 1, 2, 3])))]
    kinds = tuple(kind for kind, _ in drawn)
    total: dict[int, int] = {}
    for kind, takes in drawn:
        for resource, amount in takes.items():
            total[resource] = total.get(resource, 0) + kind.need * amount
    only_first = all(run == 0 for kind in kinds for run, _ in kind.takes)
    system = [(3 + r if only_first else r, amount) for r, amount in total.items()] if draw(st.booleans()) else []
    turned: tuple[KindDemand, ...] = ()
    if len(kinds) > 1 and draw(st.booleans()):
        turned = tuple(
            replace(kind, takes=tuple(draw(st.permutations(kind.takes)))) for kind in draw(st.permutations(kinds))
        )
    groups: list[KindDemand] = []
    if len(kinds) == 1 and len(kinds[0].takes) > 1 and draw(st.booleans()):
        parts = [[one for one in kinds[0].takes if one[0] % 2 == number] for number in (0, 1)]
        groups = [replace(kinds[0], takes=tuple(part)) for part in parts if part]
    sizes = [("segment", size) for size in (1, 2) if kinds[0].need % size == 0] + [("spread", 1), ("spread", 2)]
    return DrawnDemand(
        groups=tuple(groups),
        parts=(draw(st.sampled_from(sizes)),) if len(groups) > 0 and draw(st.booleans()) else (),
        kinds=kinds,
        system=tuple(system),
        licenses=((6, draw(st.integers(1, 3))),) if draw(st.sampled_from([False, False, True])) else (),
        exclusive=draw(st.sampled_from([False, False, False, True])),
        scatter=scatter,
        otherwise=turned,
    )


@st.composite
def pairs(draw: st.DrawFn, seconds: int = SECONDS) -> Pair:
    """Draw a layout and up to four demands; on the timeline and its twin nothing is booked.

    The rows of half of the timelines are spelled out already.
    """
    unit = draw(st.sampled_from(UNITS))
    layout = draw(layouts(unit))
    pair = Pair(layout, draw(st.lists(demands(layout, unit), min_size=1, max_size=4)), seconds)
    if draw(st.booleans()):
        pair.timeline.kernel_arguments()
    return pair


#: Rows for `JobTable`, whose demands are to be taken modulo the number of demands.
job_rows = st.tuples(
    st.integers(0, 3),
    st.integers(0, 12),
    st.sampled_from([FOREVER, FOREVER, FOREVER, 5, 11]),
    st.sampled_from([3, 1, 2, 5, 3, 7]),
)


class Pair:
    """A timeline and its naive twin, to which the same is done; mutable."""

    def __init__(self, layout: Layout, drawn: Sequence[DrawnDemand], seconds: int = SECONDS) -> None:
        table = Demands(layout)
        self.twin = DenseTimeline(layout, seconds)
        self.numbers = []
        for demand in drawn:
            number = -1
            options: dict[str, Any] = {
                "system": demand.system,
                "licenses": demand.licenses,
                "exclusive": demand.exclusive,
                "scatter": demand.scatter,
            }
            for group in demand.groups:
                assert table.add([group], otherwise=number, **options) == len(self.twin.demands)
                number = self.twin.add([group], otherwise=number, **options)
            if demand.groups:
                options |= {"within": True, **dict(demand.parts)}
            for kinds in (demand.otherwise, demand.kinds):
                if kinds:
                    assert table.add(kinds, otherwise=number, **options) == len(self.twin.demands)
                    number = self.twin.add(kinds, otherwise=number, **options)
            self.numbers.append(number)
        self.timeline = Timeline(table)
        #: What is booked, the same in both.
        self.booked: list[tuple[Booking, DenseBooking]] = []

    def row(self, drawn: JobRow) -> JobRow:
        """Return a drawn row with the number of one of the demands."""
        return self.numbers[drawn[0] % len(self.numbers)], *drawn[1:]

    def fit(self, row: JobRow) -> tuple[int, tuple[Entry, ...]] | None:
        """Search in both, and return what both found."""
        demand, earliest, latest, duration = row
        found = self.timeline.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration)
        got = found and (found.start, as_entries(found.entries))
        assert got == self.twin.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration)
        return got

    def book(self, demand: int, entries: Sequence[Entry], start: int, end: int) -> None:
        """Book a demand where it stands, in both."""
        booking = self.timeline.booking_of(demand, np.array(entries, dtype=np.int32), start, end)
        twin = self.twin.booking_of(demand, entries, start, end)
        assert totals(booking) == (twin.columns, {q: amount for q, amount in twin.system.items() if amount})
        self._book(booking, twin)

    def hold(self, start: int, end: int, columns: dict[int, int], licenses: dict[int, int]) -> None:
        """Book amounts of columns, in both."""
        booking = self.timeline.booking(start, end, columns, licenses)
        self._book(booking, self.twin.booking(start, end, columns, licenses))

    def _book(self, booking: Booking, twin: DenseBooking) -> None:
        self.timeline.book(booking)
        self.twin.book(twin)
        self.booked.append((booking, twin))

    def is_free(self, demand: int, entries: Sequence[Entry], start: int, end: int) -> bool:
        """Ask both whether a demand could stand somewhere, and up to when, and return whether it could."""
        booking = self.timeline.booking_of(demand, np.array(entries, dtype=np.int32), start, end)
        twin = self.twin.booking_of(demand, entries, start, end)
        answer = self.timeline.is_free(booking)
        assert answer == self.twin.is_free(twin)
        for last in (end, len(self.twin.free)):
            assert self.timeline.free_until(booking, last) == self.twin.free_until(twin, last)
        return answer

    def release(self, place: int) -> None:
        """Release one of the bookings, in both."""
        booking, twin = self.booked.pop(place)
        self.timeline.release(booking)
        self.twin.release(twin)

    def plan_twin(self, rows: Sequence[JobRow]) -> list[tuple[int, tuple[Entry, ...]]]:
        """Plan and book jobs in the twin one by one; return starts and entries."""
        placed = []
        for demand, earliest, latest, duration in rows:
            start, entries = self.twin.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration) or (
                NOWHERE,
                (),
            )
            if entries:
                self.twin.book(self.twin.booking_of(demand, entries, start, start + duration))
            placed.append((start, entries))
        return placed

    def placed(self, table: JobTable) -> list[tuple[int, tuple[Entry, ...]]]:
        """Return starts and entries of the jobs of a table."""
        return [
            (int(start), as_entries(table.entries(job)) if start != NOWHERE else ())
            for job, start in enumerate(table.starts)
        ]

    def assert_same(self) -> None:
        """Compare every second of every column, and the breakpoints; check that the summaries of blocks are exact."""
        assert self.timeline.breakpoints().tolist() == self.twin.breakpoints()
        assert len(self.timeline.breakpoints()) == len(self.twin.breakpoints())
        for second in range(self.twin.seconds):
            free, system = self.timeline.free_at(second)
            assert np.array_equal(free, self.twin.free[second])
            assert np.array_equal(system, self.twin.system[second])
        assert_summaries(self.timeline)


def as_entries(rows: np.ndarray) -> tuple[Entry, ...]:
    """Return entries as tuples."""
    return tuple((node, kind, chunks) for node, kind, chunks in rows.tolist())


def totals(booking: Booking) -> tuple[dict[int, int], dict[int, int]]:
    """Return what a booking takes, by node column and by system column."""
    columns: dict[int, int] = {}
    for column, amount in zip(booking.columns.tolist(), booking.amounts.tolist(), strict=True):
        columns[column] = columns.get(column, 0) + amount
    return columns, dict(zip(booking.system_columns.tolist(), booking.system_amounts.tolist(), strict=True))


def assert_summaries(timeline: Timeline) -> None:
    """Check minima and maxima of each block against its rows, and that no slot or block is lost; and the steps of the
    nodes, where these have their own.
    """
    if timeline._nodes is not None:
        assert_steps(timeline._nodes.arrays)
    head, _, order, members, rows, blk, srows, sblk, spare = timeline._state
    used = order[: head[kernels.H.BLOCKS]].tolist()
    slots = [members[block, : members[block, -1]].tolist() for block in used]
    for block, own in zip(used, slots, strict=True):
        assert 0 < len(own) <= kernels.BLOCK
        free = rows[own].astype(np.int64) + blk[block, kernels.LAZY]
        system = srows[own] + sblk[block, kernels.LAZY]
        assert np.array_equal(blk[block, kernels.LOW], free.min(axis=0))
        assert np.array_equal(sblk[block, kernels.LOW], system.min(axis=0))
        assert np.array_equal(sblk[block, kernels.HIGH], system.max(axis=0))
    for stack, taken, counter, count in (
        (0, [row for own in slots for row in own], kernels.H.SPARE_ROWS, len(rows)),
        (1, used, kernels.H.SPARE_BLOCKS, len(order)),
    ):
        assert sorted(taken + spare[stack, : head[counter]].tolist()) == list(range(count))


def assert_steps(arrays: Nodes) -> None:
    """Check that the steps of each node begin at 0, ascend, and differ from their neighbours, in rows of its own; and
    that each stretch of time in which it has something of its first resource is one that its gaps allow, which say
    since when it is idle for good.
    """
    taken: list[tuple[int, int]] = []
    for (first, count, room), gaps, whole in zip(arrays.spans.tolist(), arrays.gaps.tolist(), arrays.idle, strict=True):
        steps, (soon, longest, last, idle) = arrays.steps[first : first + count], gaps
        assert idle == (steps[-1, 0] if np.array_equal(steps[-1, 1:], whole[1:]) else FOREVER)
        assert 0 < count <= room
        assert steps[0, 0] == 0
        assert (np.diff(steps[:, 0]) > 0).all()
        assert (steps[1:, 1:] != steps[:-1, 1:]).any(axis=1).all()
        taken.append((first, first + room))
        for begin, end in stretches(steps[:, 0].tolist(), (steps[:, 1] > 0).tolist()):
            assert begin >= soon
            assert end - begin <= longest or (begin >= last and end == FOREVER)
    taken.sort()
    assert all(end <= begin for (_, end), (begin, _) in pairwise([*taken, (int(arrays.used[0]), 0)]))
    assert arrays.used[0] <= len(arrays.steps)


def stretches(begins: Sequence[int], flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return from when to when a flag is set, where each holds from its begin to the next one."""
    found: list[tuple[int, int]] = []
    for begin, end, flag in zip(begins, [*begins[1:], FOREVER], flags, strict=True):
        if flag and found and found[-1][1] == begin:
            found[-1] = found[-1][0], end
        elif flag:
            found.append((begin, end))
    return found
