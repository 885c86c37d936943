"""The timeline against its naive twin: the same after every step, and the same answers."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.rusv import (
    FOREVER,
    NOWHERE,
    Demands,
    JobTable,
    KindDemand,
    Layout,
    Run,
    Timeline,
    instant_kernels,
    kernels,
)
from cpsched.rusv import timeline as timeline_module
from tests.rusv.linked_pairs import linked_pairs
from tests.rusv.timeline_cases import (
    LARGEST,
    SECONDS,
    UNITS,
    DrawnDemand,
    JobRow,
    Pair,
    job_rows,
    pairs,
)
from tests.sizes import examples

pytestmark = pytest.mark.kernels

#: (job, predecessor, lag), as rows of the links of a `JobTable`.
Link = tuple[int, int, int]
#: Interpreted kernels are a hundred times slower.
COMPILED = not os.environ.get("NUMBA_DISABLE_JIT")
EXAMPLES = 150 if COMPILED else 40


# ---- booking and releasing ----

#: (what to do, which booking, a job): see `perform`.
steps = st.lists(st.tuples(st.sampled_from("fffffhhrrs"), st.integers(0, 99), job_rows), max_size=30)


def perform(pair: Pair, step: tuple[str, int, JobRow]) -> None:
    """Do one step to both: ``f`` books a job where it fits, ``h`` holds parts of columns, ``r`` releases a booking,
    ``s`` spells out the rows of all nodes.
    """
    action, pick, drawn = step
    row = pair.row(drawn)
    if action == "f":
        found = pair.fit(row)
        if found is not None and found[0] + row[3] < SECONDS:
            pair.book(row[0], found[1], found[0], found[0] + row[3])
    elif action == "h":
        hold_parts(pair, pick, row)
    elif action == "s":
        pair.timeline.kernel_arguments()
    elif pair.booked:
        pair.release(pick % len(pair.booked))


def hold_parts(pair: Pair, pick: int, row: JobRow) -> None:
    """Hold some of what is free throughout: all of some columns, half of others; every fifth holding has no end."""
    start, end = row[1], row[1] + row[3] if pick % 5 else FOREVER
    free = pair.twin.free[start:end].min(axis=0).tolist()
    columns = {c: amount if (c + pick) % 3 else (amount + 1) // 2 for c, amount in enumerate(free) if (c * pick) % 4}
    licenses = {6: 1} if pair.twin.system[start:end, 6].min() > 0 else {}
    pair.hold(start, end, {c: amount for c, amount in columns.items() if amount}, licenses)


@examples(EXAMPLES)
@given(pairs(), steps)
def test_the_same_after_every_step(pair: Pair, history: list[tuple[str, int, JobRow]]) -> None:
    """After each booking and release, every second, every column, the breakpoints and each search are the twin's."""
    for step in history:
        perform(pair, step)
        pair.assert_same()


@examples(EXAMPLES)
@given(pairs(), steps, st.randoms(use_true_random=False))
def test_nothing_is_left_of_what_was_released(
    pair: Pair, history: list[tuple[str, int, JobRow]], order: random.Random
) -> None:
    """When all bookings are released, in any order, one slot is left, in which everything is free."""
    for step in history:
        perform(pair, step)
    while pair.booked:
        pair.release(order.randrange(len(pair.booked)))
        pair.assert_same()
    assert pair.timeline.breakpoints().tolist() == [0]
    free, system = pair.timeline.free_at(0)
    assert free.tolist() == pair.twin.capacity.tolist()
    assert system.tolist() == list(pair.twin.layout.system_capacity)


@examples(EXAMPLES)
@given(pairs(), steps, job_rows, st.integers(0, SECONDS - 10))
def test_what_is_free_is_known(pair: Pair, history: list[tuple[str, int, JobRow]], last: JobRow, start: int) -> None:
    """A demand fits where the search puts it; at any other start, on the same nodes, if the twin says so as well."""
    for step in history:
        perform(pair, step)
    found = pair.fit(row := pair.row(last))
    if found is not None and found[0] + row[3] < SECONDS:
        assert pair.is_free(row[0], found[1], found[0], found[0] + row[3])
        pair.is_free(row[0], found[1], start, start + row[3])
        pair.book(row[0], found[1], found[0], found[0] + row[3])
        pair.is_free(row[0], found[1], start, start + row[3])


def test_free_until_something_lacks() -> None:
    """Of 3 cores 2 are free until another job takes 2 of them, and the licence until another job takes it."""
    run = Run(length=1, resources=(0,), capacity=(3,), system=((0,),))
    timeline = Timeline(Demands(Layout(runs=(run,), system_capacity=(3, 1))))
    timeline.book(timeline.booking(20, 30, {0: 2}, {}))
    timeline.book(timeline.booking(10, 15, {}, {1: 1}))
    for start, cores, licenses, lacks in [(0, 1, {}, 50), (0, 2, {}, 20), (0, 2, {1: 1}, 10), (12, 2, {1: 1}, 12)]:
        booking = timeline.booking(start, start + 1, {0: cores}, licenses)
        assert timeline.free_until(booking, 50) == lacks
        assert timeline.free_until(booking, start + 1) == min(lacks, start + 1)


def test_what_a_chunk_takes_of_each_column() -> None:
    """Of two runs only the first has memory: a chunk that asks for it takes nothing of the second."""
    runs = (
        Run(length=2, resources=(0, 1), capacity=(8, 64), system=((0,), (1,))),
        Run(length=1, resources=(0,), capacity=(4,), system=((0,),)),
    )
    demands = Demands(Layout(runs=runs, system_capacity=(20, 128)))
    demands.add([KindDemand(need=1, most=9, takes=((0, ((0, 2), (1, 5))),))])
    demands.add([KindDemand(need=1, most=9, takes=((0, ((0, 3),)), (1, ((0, 3),))))])
    assert demands.taken_by(0).tolist() == [2, 2, 0, 5, 5]
    assert demands.taken_by(1).tolist() == [3, 3, 3, 0, 0]


@pytest.mark.parametrize("is_spelled_out", [False, True])
def test_what_is_free_over_many_blocks(*, is_spelled_out: bool) -> None:
    """Of 2 cores one is taken now and then: 1 is free for all of the time, 2 between two takers, 3 never."""
    run = Run(length=1, resources=(0,), capacity=(2,), system=((0,),))
    layout = Layout(runs=(run,), system_capacity=(2,))
    pair = Pair(layout, [DrawnDemand((one_chunk(0, (0, 1)),), (), (), exclusive=False, scatter=False)], 400)
    for start in range(0, 390, 3):
        pair.hold(start, start + 1, {0: 1}, {})
    assert len(pair.twin.breakpoints()) > 6 * kernels.BLOCK
    if is_spelled_out:
        pair.timeline.kernel_arguments()
    for start, end, cores, expected in [
        (0, 390, 1, True), (0, 390, 2, False), (1, 3, 2, True), (1, 4, 2, False), (200, 202, 3, False),
        (389, 395, 2, True), (388, 395, 2, True), (387, 395, 2, False),
    ]:  # fmt: skip
        assert pair.is_free(0, [(0, 0, cores)], start, end) is expected


@examples(EXAMPLES)
@given(pairs(), steps, job_rows)
def test_release_is_the_inverse_of_book(pair: Pair, history: list[tuple[str, int, JobRow]], last: JobRow) -> None:
    """One more booking that is released again changes nothing."""
    for step in history:
        perform(pair, step)
    before = [pair.timeline.free_at(second) for second in range(SECONDS)]
    breaks = pair.timeline.breakpoints().tolist()
    found = pair.fit(row := pair.row(last))
    if found is not None:
        booking = pair.timeline.booking_of(row[0], np.array(found[1], np.int32), found[0], found[0] + row[3])
        pair.timeline.book(booking)
        pair.timeline.release(booking)
    for second, (free, system) in enumerate(before):
        assert np.array_equal(pair.timeline.free_at(second)[0], free)
        assert np.array_equal(pair.timeline.free_at(second)[1], system)
    assert pair.timeline.breakpoints().tolist() == breaks


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_blocks_split_and_join(unit: int) -> None:
    """150 bookings make many blocks; released at random, all join again.

    A booking takes its node whole (what is free goes from the largest amount there can be to 0) or in eight parts.
    """
    run = Run(length=2, resources=(0, 1), capacity=(LARGEST, 8 * unit), system=((0,), (1,)))
    layout = Layout(runs=(run,), system_capacity=(2 * LARGEST, 16 * unit))
    pair = Pair(layout, [DrawnDemand((one_chunk(0, (0, LARGEST)),), (), (), exclusive=False, scatter=False)], 200)
    order = random.Random(unit)
    for _ in range(150):
        start = order.randrange(190)
        end = order.randrange(start + 1, 199)
        free = pair.twin.free[start:end].min(axis=0).tolist()
        column = order.randrange(4)
        amount = free[column] if order.random() < 0.5 else free[column] // 8
        pair.hold(start, end, {column: amount} if amount else {}, {})
    pair.assert_same()
    assert len(pair.timeline.breakpoints()) > 4 * kernels.BLOCK
    while pair.booked:
        pair.release(order.randrange(len(pair.booked)))
        pair.assert_same()
        pair.fit((0, order.randrange(190), FOREVER, order.randrange(1, 20)))
    assert pair.timeline.breakpoints().tolist() == [0]


def one_chunk(run: int, *takes: tuple[int, int]) -> KindDemand:
    """Return the demand for one chunk on a node of one run."""
    return KindDemand(need=1, most=1, takes=((run, takes),))


def test_full_blocks_join_idle_ones() -> None:
    """A block that was booked as a whole and one that is idle join at the largest amount there can be."""
    run = Run(length=1, resources=(0,), capacity=(LARGEST,), system=((0,),))
    layout = Layout(runs=(run,), system_capacity=(LARGEST,))
    pair = Pair(layout, [DrawnDemand((one_chunk(0, (0, LARGEST)),), (), (), exclusive=False, scatter=False)])
    for time in range(1, 25):
        pair.hold(time, time + 1, {}, {})  # nothing is taken: breakpoints only
    pair.hold(0, 9, {0: LARGEST}, {})  # the first block of 8 slots and one slot of the next
    while len(pair.booked) > 1:
        pair.release(len(pair.booked) // 2 - 1 if len(pair.booked) > 2 else 0)
        pair.assert_same()
        assert pair.fit((0, 0, FOREVER, 5)) == (9, ((0, 0, 1),))


def test_whole_nodes_are_spelled_out_after_a_booking() -> None:
    """A timeline and the kernels of one instant number their placements together, so that no node is left out of one as
    if it were in it already.
    """
    run = Run(length=2, resources=(0,), capacity=(4,), system=((0,),))
    demands = Demands(Layout(runs=(run,), system_capacity=(8,)))
    demand = demands.add([one_chunk(0, (0, 1))], exclusive=True)
    timeline, entries = Timeline(demands), np.array([(0, 0, 1)], dtype=np.int32)
    assert timeline.booking_of(demand, entries, 0, 1).amounts.tolist() == [4]
    tables, scratch = timeline.instant_views()
    filled = instant_kernels.spell_out(demand, entries, len(entries), tables, scratch)
    assert scratch.amounts[:filled].tolist() == [4]


def test_bookings_need_a_time() -> None:
    """A booking that begins before second 0, or does not end after it began, is refused."""
    pair = Pair(Layout(runs=(), system_capacity=(3,)), [])
    for start, end in ((-1, 5), (5, 5), (6, 5)):
        with pytest.raises(ValueError, match=rf"Expected 0 <= start < end, got a booking of \[{start}, {end}\)"):
            pair.timeline.book(pair.timeline.booking(start, end, {}, {}))


def test_no_nodes() -> None:
    """A timeline of licences only books, searches and plans as any other."""
    pair = Pair(Layout(runs=(), system_capacity=(0, 0, 0, 0, 0, 0, 3)), [])
    pair.hold(2, 5, {}, {6: 2})
    pair.assert_same()
    pair.release(0)
    assert len(pair.timeline.breakpoints()) == 1


@examples(EXAMPLES)
@given(pair=pairs(), done=steps, data=st.data(), is_spelled_out=st.booleans())
def test_booking_many_at_once(
    pair: Pair, done: list[tuple[str, int, JobRow]], data: st.DataObject, *, is_spelled_out: bool
) -> None:
    """Many bookings at once are those that are free, one after the other, in as many slots; the others are told. So it
    is with rows of all nodes, and with steps of each node.
    """
    for step in done:
        perform(pair, step)
    timeline, widest = pair.timeline, pair.timeline.free_at(0)[0]
    amounts = data.draw(st.lists(st.dictionaries(st.integers(0, len(widest) - 1), st.integers(1, 2)), min_size=1))
    taken = [(of_columns, {6: 1} if number % 3 else {}) for number, of_columns in enumerate(amounts)]
    spans = data.draw(
        st.lists(
            st.tuples(st.integers(0, 40), st.integers(1, 30) | st.just(FOREVER), st.integers(0, len(amounts) - 1)),
            max_size=100,
        )
    )
    rows = [(start, start + length, number) for start, length, number in spans]
    mark = timeline.marked()
    refused = []
    for index, (start, end, number) in enumerate(rows):
        booking = timeline.booking(start, end, *taken[number])
        if timeline.is_free(booking):
            timeline.book(booking)
        else:
            refused.append(index)

    def seen() -> list[object]:
        free = [(time, *map(list, timeline.free_at(time))) for time in timeline.breakpoints().tolist()]
        fits = [
            timeline.earliest_fit(demand, earliest=0, latest=50, duration=duration)
            for demand in range(len(timeline.demands))
            for duration in (1, 9)
        ]
        return [*free, *(fit and (fit.start, fit.entries.tolist()) for fit in fits)]

    expected = seen()
    timeline.back_to(mark)
    with patch("cpsched.rusv.timeline._SPELLED_OUT", 10**9 if is_spelled_out else 0):
        assert list(timeline.book_all(np.array(rows, dtype=np.int64).reshape(-1, 3), taken)) == refused
    assert seen() == expected
    of_windows = [timeline.least_free(start, start + 9)[0].tolist() for start in range(0, 40, 7)]
    second_by_second = [
        np.min([timeline.free_at(time)[0] for time in range(start, start + 9)], axis=0).tolist()
        for start in range(0, 40, 7)
    ]
    assert of_windows == second_by_second


# ---- windows ----


@examples(EXAMPLES)
@given(pair=pairs(), done=steps, start=st.integers(0, 30), length=st.integers(1, 30), pick=st.integers(0, 3))
def test_windows(pair: Pair, done: list[tuple[str, int, JobRow]], start: int, length: int, pick: int) -> None:
    """What is free throughout a window, what fits there on which node, and from when on: as second by second."""
    for step in done:
        perform(pair, step)
    timeline, twin, end = pair.timeline, pair.twin, start + length
    free, system = timeline.least_free(start, end)
    assert np.array_equal(free, twin.free[start:end].min(axis=0))
    assert np.array_equal(system, twin.system[start:end].min(axis=0))
    idle = timeline.idle_nodes(free)
    assert idle.tolist() == [twin.is_idle(node, free) for node in range(len(twin.run_of))]
    number = pair.numbers[pick % len(pair.numbers)]
    assert timeline.free_from(number, start, end) == twin.free_from(number, start, end)
    demand = twin.demands[number]
    for place, kind in enumerate(demand.kinds, demand.first_kind):
        units = timeline.demands.units_in(place, free) * (idle if demand.exclusive else 1)
        assert units.tolist() == twin.units_in(demand, kind, free)


@examples(EXAMPLES)
@given(pair=pairs(), data=st.data())
def test_units_take_what_their_booking_takes(pair: Pair, data: st.DataObject) -> None:
    """Some units of a kind lower what is free by what a booking of them lowers it."""
    number = data.draw(st.sampled_from(pair.numbers))
    demand = pair.twin.demands[number]
    before, _ = pair.timeline.least_free(0, 1)
    left = before.copy()
    place = data.draw(st.integers(0, len(demand.kinds) - 1))
    kind = demand.first_kind + place
    most = pair.timeline.demands.units_in(kind, before)
    units = np.array([data.draw(st.integers(0, count)) for count in most.tolist()], dtype=np.int64)
    pair.timeline.demands.take(kind, units, left)
    in_order = [node for run, _ in demand.kinds[place].takes for node in pair.twin.nodes_of(run)]
    entries = [(node, kind, int(units[node])) for node in in_order if units[node]]
    assert pair.timeline.demands.kinds_of(number)[place][0] == kind
    if entries and not demand.exclusive:
        pair.book(number, entries, 0, 1)
        assert np.array_equal(left, pair.timeline.free_at(0)[0])


@examples(EXAMPLES)
@given(pair=pairs(), data=st.data())
def test_chunks_may_be_on_nodes_that_have_all_that_they_take_together(pair: Pair, data: st.DataObject) -> None:
    """Chunks of any kinds, of one demand or several: each on a node for its kind, and on no node too many."""
    left: Counter[int] = Counter(dict(enumerate(pair.twin.capacity.tolist())))
    rows, is_allowed = list[tuple[int, int, int]](), True
    for _ in range(data.draw(st.integers(1, 4))):
        demand = pair.twin.demands[data.draw(st.sampled_from(pair.numbers))]
        place = data.draw(st.integers(0, len(demand.kinds) - 1))
        node, count = data.draw(st.integers(0, len(pair.twin.run_of) - 1)), data.draw(st.integers(1, 2))
        rows.append((node, demand.first_kind + place, count))
        takes = pair.twin.takes(demand.kinds[place], node)
        is_allowed &= bool(takes)
        left.subtract({column: count * amount for column, amount in takes.items()})
    entries = np.array(rows, dtype=np.int32)
    assert pair.timeline.demands.may_have(entries) == (is_allowed and min(left.values()) >= 0)


# ---- searching ----


@examples(2 * EXAMPLES)
@given(pairs(), steps, st.lists(job_rows, min_size=1, max_size=8))
def test_earliest_fit(pair: Pair, history: list[tuple[str, int, JobRow]], wanted: list[JobRow]) -> None:
    """Start and entries are the twin's, also before a latest start, whatever happened before."""
    for step in history:
        perform(pair, step)
    for drawn in wanted:
        row = pair.row(drawn)
        found = pair.fit(row)
        if found is not None:
            assert row[1] <= found[0] <= row[2]
            if found[0] > row[1]:
                assert pair.fit((row[0], row[1], found[0] - 1, row[3])) is None


@examples(EXAMPLES)
@given(pairs(), steps, st.lists(job_rows, min_size=1, max_size=4))
def test_history_is_forgotten(pair: Pair, history: list[tuple[str, int, JobRow]], wanted: list[JobRow]) -> None:
    """A timeline with the same bookings, made in one go, answers alike."""
    for step in history:
        perform(pair, step)
    fresh = Timeline(pair.timeline.demands)
    for booking, _ in reversed(pair.booked):
        fresh.book(booking)
    assert fresh.breakpoints().tolist() == pair.timeline.breakpoints().tolist()
    for drawn in wanted:
        demand, earliest, latest, duration = pair.row(drawn)
        found = [
            timeline.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration)
            for timeline in (fresh, pair.timeline)
        ]
        first, second = (fit and (fit.start, fit.entries.tolist()) for fit in found)
        assert first == second


def test_exact_start() -> None:
    """OCCS-29: A is free in [0, 15), B in [12, 30): 10 s start in 0…5 or 12…20, never in 6…11."""
    run = Run(length=2, resources=(0,), capacity=(1,), system=((0,),))
    demand = DrawnDemand((one_chunk(0, (0, 1)),), ((0, 1),), (), exclusive=False, scatter=False)
    pair = Pair(Layout(runs=(run,), system_capacity=(2,)), [demand])
    pair.hold(15, FOREVER, {0: 1}, {})
    pair.hold(0, 12, {1: 1}, {})
    pair.hold(30, FOREVER, {1: 1}, {})
    starts = [pair.fit((0, earliest, FOREVER, 10)) for earliest in (0, 5, 6, 11, 12, 20, 21)]
    on_a, on_b = ((0, 0, 1),), ((1, 0, 1),)
    assert starts == [(0, on_a), (5, on_a), (12, on_b), (12, on_b), (12, on_b), (20, on_b), None]


@pytest.mark.parametrize("is_spelled_out", [False, True])
def test_the_tightest_group_is_taken(*, is_spelled_out: bool) -> None:
    """Of groups of three nodes, one, and two, a chunk takes that with the least room left; two chunks wait for both."""
    runs = tuple(Run(length=length, resources=(0,), capacity=(1,), system=((0,),)) for length in (3, 1, 2))
    takes = tuple((run, ((0, 1),)) for run in range(3))
    demands = [
        DrawnDemand(
            (KindDemand(need=need, most=1, takes=takes),),
            (),
            (),
            exclusive=False,
            scatter=False,
            groups=tuple(KindDemand(need=need, most=1, takes=(of_run,)) for of_run in takes),
        )
        for need in (1, 2)
    ]
    pair = Pair(Layout(runs=runs, system_capacity=(6,)), demands)
    if is_spelled_out:
        pair.timeline.kernel_arguments()
    one, two = pair.numbers
    nodes = []
    for until in (9, 8, 7, 6):
        fit = pair.fit((one, 0, FOREVER, until))
        assert fit is not None
        assert fit[0] == 0
        nodes.append(fit[1][0][0])
        pair.book(one, fit[1], 0, until)
    assert nodes == [3, 4, 5, 0]
    fit = pair.fit((two, 0, FOREVER, 5))
    assert fit is not None
    assert (fit[0], [node for node, _, _ in fit[1]]) == (0, [1, 2])
    pair.book(two, fit[1], 0, 5)
    fit = pair.fit((two, 0, FOREVER, 5))
    assert fit is not None
    assert (fit[0], [node for node, _, _ in fit[1]]) == (5, [1, 2])


def test_other_orders_are_booked_where_they_stand() -> None:
    """A kind that fills the runs in another order than theirs holds the columns of the nodes on which it stands.

    Three chunks need the nodes of the last run (2, 3) and then the one of the first (0); the run between has another
    resource.
    """
    runs = tuple(
        Run(length=length, resources=(resource,), capacity=(1,), system=((resource,),))
        for length, resource in ((1, 0), (1, 1), (2, 0))
    )
    last_first = KindDemand(need=3, most=1, takes=((2, ((0, 1),)), (0, ((0, 1),))))
    demand = DrawnDemand((last_first,), (), (), exclusive=False, scatter=False)
    pair = Pair(Layout(runs=runs, system_capacity=(3, 1)), [demand])
    assert pair.fit((0, 0, FOREVER, 5)) == (0, ((2, 0, 1), (3, 0, 1), (0, 0, 1)))
    pair.book(0, ((2, 0, 1), (3, 0, 1), (0, 0, 1)), 0, 5)
    pair.assert_same()
    assert pair.timeline.free_at(0)[0].tolist() == [0, 0, 0, 1]


# ---- the reciprocal ----


def one_column(length: int, largest: int) -> Demands:
    """Return the table of demands for `length` nodes of one column."""
    run = Run(length=length, resources=(0,), capacity=(largest,), system=((),))
    return Demands(Layout(runs=(run,), system_capacity=()))


def counted(demands: Demands, kind: int, free: np.ndarray) -> int:
    """Return how many chunks `count_kind` finds."""
    return int(kernels.count_kind(kind, free, np.zeros(len(free)), demands.tables()))


def chunk_amounts() -> list[int]:
    """Return amounts of a chunk: all small ones, all powers of two and their neighbours, the largest, many others."""
    powers = [2**power + more for power in range(2, 31) for more in (-1, 0, 1)]
    others = np.random.default_rng(1).integers(1, LARGEST, 5000).tolist()
    amounts = [*range(1, 5000), *powers, *(LARGEST - less for less in range(100)), *others]
    return amounts if COMPILED else amounts[::50]


def test_reciprocals_are_exact() -> None:
    """The count of each node is the quotient where it changes: between ``k*a - 1`` and ``k*a``, up to the largest k.

    The formula is monotone in the free amount, so that nothing can go wrong between two such steps. Nodes are counted
    one by one, so that errors cannot cancel each other, and all together, as the vector instructions do it.
    """
    amounts, draws = chunk_amounts(), np.random.default_rng(2)
    demands = one_column(16, LARGEST)
    for amount in amounts:
        demands.add([KindDemand(need=1, most=10**6, takes=((0, ((0, amount),)),))])
    for kind, amount in enumerate(amounts):
        most = min(10**6, LARGEST // amount)
        times = np.concatenate([[1, (most + 1) // 2, most - 1, most], draws.integers(1, most + 1, 12)]).clip(1)
        for less in (0, 1):
            free = (times * amount - less).astype(np.int32)
            assert counted(demands, kind, free) == int((free // amount).sum())
            one = np.zeros(16, dtype=np.int32)
            for place in (0, 1, 2, 3) if kind % 10 == 0 else (3,):
                one[:] = 0
                one[place] = free[place]
                assert counted(demands, kind, one) == free[place] // amount


@pytest.mark.parametrize("width", [1, 2, 3])
def test_count_kind(width: int) -> None:
    """Counts over one, two and three columns, several runs and a bound per node are those of divisions (OCCS-28)."""
    draws = np.random.default_rng(width)
    for _ in range(100 if COMPILED else 40):
        lengths = draws.integers(1, 6, 2).tolist()
        runs = tuple(
            Run(length=length, resources=(0, 1, 2), capacity=(LARGEST,) * 3, system=((),) * 3) for length in lengths
        )
        demands = Demands(Layout(runs=runs, system_capacity=()))
        amounts = [min(LARGEST, int(2.0 ** draws.uniform(0, 31))) for _ in range(width)]
        takes = tuple(enumerate(amounts))
        most = int(draws.choice([1, 3, 10**6]))
        chosen = [0, 1] if draws.random() < 0.7 else [1]
        demands.add([KindDemand(need=1, most=most, takes=tuple((run, takes) for run in chosen))])
        free = np.zeros((3, sum(lengths)), dtype=np.int32)
        for place, amount in takes:
            steps_up = draws.integers(0, LARGEST // amount + 1, free.shape[1])
            free[place] = np.maximum(0, steps_up * amount - draws.integers(0, 2, free.shape[1]))
        nodes = range(0 if 0 in chosen else lengths[0], sum(lengths))
        expected = sum(min(most, *(int(free[place, n]) // amount for place, amount in takes)) for n in nodes)
        assert counted(demands, 0, free.reshape(-1)) == expected


def test_counts_do_not_overflow() -> None:
    """Thousands of nodes that each hold a million chunks are counted in parts that stay within 32 bits."""
    size = 10_000 if COMPILED else 4_200
    demands = one_column(size, LARGEST)
    demands.add([KindDemand(need=1, most=10**6, takes=((0, ((0, 1),)),))])
    assert counted(demands, 0, np.full(size, LARGEST, dtype=np.int32)) == size * 10**6


# ---- many jobs ----


@examples(EXAMPLES)
@given(pairs(seconds=320), steps, st.lists(job_rows, max_size=14), st.lists(job_rows, max_size=6), st.integers(1, 20))
def test_plan_is_one_by_one(
    pair: Pair,
    history: list[tuple[str, int, JobRow]],
    drawn: list[JobRow],
    more: list[JobRow],
    portion: int,
) -> None:
    """Planning in portions, with remembered starts, is the same as searching and booking job by job without memory.

    In between a booking is released, after which what was remembered no longer holds.
    """
    for step in history[:8]:
        perform(pair, step)
    for rows in ([pair.row(row) for row in drawn], [pair.row(row) for row in more]):
        table = JobTable(rows)
        with patch.object(timeline_module, "PORTION", portion):
            pair.timeline.plan(table, np.arange(len(rows)))
        assert pair.placed(table) == pair.plan_twin(rows)
        pair.assert_same()
        if pair.booked:
            pair.release(0)


@pytest.mark.parametrize(
    ("rows", "starts"),
    [
        ([(0, 0, FOREVER, 7), (0, 0, FOREVER, 2)], [10, 0]),  # a long job says nothing about a shorter one
        ([(0, 12, FOREVER, 2), (0, 0, FOREVER, 2)], [12, 0]),  # nor a late search about an earlier one
        ([(0, 0, FOREVER, 3), (0, 0, FOREVER, 4), (0, 2, FOREVER, 3)], [0, 10, 14]),
        ([(0, 0, FOREVER, 4), (0, 0, 9, 4), (0, 0, 2, 3)], [10, NOWHERE, 0]),
    ],
)
def test_what_is_remembered(rows: list[JobRow], starts: list[int]) -> None:
    """One node is free in [0, 3) and from 10 on: only equal demands, no longer and no later, tell where to begin."""
    run = Run(length=1, resources=(0,), capacity=(1,), system=((0,),))
    demand = DrawnDemand((one_chunk(0, (0, 1)),), ((0, 1),), (), exclusive=False, scatter=False)
    pair = Pair(Layout(runs=(run,), system_capacity=(1,)), [demand])
    pair.hold(3, 10, {0: 1}, {})
    table = JobTable(rows)
    pair.timeline.plan(table, np.arange(len(rows)))
    assert table.starts.tolist() == starts
    assert pair.placed(table) == pair.plan_twin(rows)
    pair.release(0)
    later = JobTable([(0, 3, FOREVER, 4)])
    pair.timeline.plan(later, np.arange(1))
    assert pair.placed(later) == pair.plan_twin([(0, 3, FOREVER, 4)])
    assert later.starts[0] < 10  # what was released is free: nothing is remembered


@examples(EXAMPLES)
@given(pairs(seconds=112), st.lists(job_rows, min_size=1, max_size=14), st.permutations(range(14)), st.data())
def test_backfill(pair: Pair, drawn: list[JobRow], shuffled: list[int], data: st.DataObject) -> None:
    """A pass moves exactly the jobs that fit earlier without themselves, or that have no place and now find one."""
    rows = [pair.row(row) for row in drawn]
    table = JobTable(rows)
    pair.timeline.plan(table, np.arange(len(rows)))
    placed = pair.plan_twin(rows)
    for job in data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3)):
        if placed[job][0] != NOWHERE:
            release_job(pair, table, job)
            placed[job] = (NOWHERE, ())
    queue = [job for job in shuffled if job < len(rows)]
    moved = -1
    while moved:
        moves = backfill_twin(pair, rows, placed, queue)
        moved = pair.timeline.backfill(table, np.array(queue, dtype=np.int64))
        assert moved == moves
        assert pair.placed(table) == placed
        pair.assert_same()


def release_job(pair: Pair, table: JobTable, job: int) -> None:
    """Take a planned job out of both."""
    demand, _, _, duration = table.jobs[job].tolist()
    start, entries = int(table.starts[job]), table.entries(job)
    pair.timeline.release(pair.timeline.booking_of(demand, entries, start, start + duration))
    pair.twin.release(pair.twin.booking_of(demand, entries.tolist(), start, start + duration))
    table.starts[job] = NOWHERE


def backfill_twin(
    pair: Pair, rows: list[JobRow], placed: list[Any], queue: Sequence[int], links: Sequence[Link] = ()
) -> int:
    """Do one pass of OCCS-34 in the twin: revoke, plan again, keep what is earlier; return how many moved.

    Whoever has no place is planned. A job keeps its distance to all that it is linked with (OCCS-49).
    """
    moves = 0
    for job in queue:
        demand, earliest, latest, duration = rows[job]
        start, entries = placed[job]
        before = [(placed[other][0], lag) for follower, other, lag in links if follower == job]
        behind = [(placed[follower][0], lag) for follower, other, lag in links if other == job]
        if any(other == NOWHERE for other, _ in before):
            continue
        earliest = max([earliest, *(other + lag for other, lag in before)])
        latest = min([latest, *(other - lag for other, lag in behind if other != NOWHERE)])
        if start != NOWHERE:
            pair.twin.release(pair.twin.booking_of(demand, entries, start, start + duration))
            latest = start - 1
        found = pair.twin.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration)
        if found is not None:
            moves += 1
            placed[job] = start, entries = found
        if start != NOWHERE:
            pair.twin.book(pair.twin.booking_of(demand, entries, start, start + duration))
    return moves


@examples(EXAMPLES)
@given(pairs(seconds=160), st.lists(job_rows, min_size=2, max_size=12), st.permutations(range(12)), st.data())
def test_linked_jobs(pair: Pair, drawn: list[JobRow], shuffled: list[int], data: st.DataObject) -> None:
    """Whatever is planned first, and whoever leaves: each job keeps its distance to those with which it is linked.

    A job is planned when all that it waits for have a place; those that wait for it already leave it its latest start.
    """
    rows = [pair.row(row) for row in drawn]
    jobs = st.integers(0, len(rows) - 1)
    drawn_links = data.draw(st.lists(st.tuples(jobs, jobs, st.integers(0, 5)), max_size=8))
    links = [(max(a, b), min(a, b), lag) for a, b, lag in drawn_links if a != b]
    table = JobTable(rows, linked_pairs(len(rows), links))
    queue = [job for job in shuffled if job < len(rows)]
    placed: list[Any] = [(NOWHERE, ())] * len(rows)
    for _ in range(2):
        waiting = [job for job in queue if placed[job][0] == NOWHERE]
        pair.timeline.plan(table, np.array(waiting, dtype=np.int64))
        backfill_twin(pair, rows, placed, waiting, links)
        assert pair.placed(table) == placed
    for job in data.draw(st.sets(jobs, max_size=3)):
        if placed[job][0] != NOWHERE:
            release_job(pair, table, job)
            placed[job] = (NOWHERE, ())
    moved = -1
    while moved:
        moves = backfill_twin(pair, rows, placed, queue, links)
        moved = pair.timeline.backfill(table, np.array(queue, dtype=np.int64))
        assert moved == moves
        assert pair.placed(table) == placed
        pair.assert_same()
    for job, other, lag in links:
        assert NOWHERE in (placed[job][0], placed[other][0]) or placed[job][0] >= placed[other][0] + lag


def test_no_room_is_no_start() -> None:
    """One node: b waits for a, which ends at 7; c, which must start by 5 and waits for b, finds no start."""
    timeline, _ = long_queue(1, 0)
    table = JobTable([(0, 0, FOREVER, 7), (0, 0, FOREVER, 2), (0, 0, 5, 1)], linked_pairs(3, [(1, 0, 7), (2, 1, 2)]))
    timeline.plan(table, np.array([1, 0, 2]))
    assert table.starts.tolist() == [0, NOWHERE, NOWHERE]
    assert timeline.backfill(table, np.array([2, 1, 0])) == 1
    assert table.starts.tolist() == [0, 7, NOWHERE]


@pytest.mark.parametrize(("lag", "start"), [(4, 6), (5, NOWHERE)])
def test_who_has_followers_comes_before_them(lag: int, start: int) -> None:
    """One node: b follows a, at 10; when a has lost its place to c, it finds one in [6, 10), but only for 4 s."""
    timeline, _ = long_queue(1, 0)
    rows = [(0, 0, FOREVER, 4), (0, 10, FOREVER, 1), (0, 0, FOREVER, 6)]
    table = JobTable(rows, linked_pairs(len(rows), [(1, 0, lag)]))
    timeline.plan(table, np.array([0, 1]))
    assert table.starts.tolist() == [0, 10, NOWHERE]
    timeline.release(timeline.booking_of(0, table.entries(0), 0, 4))
    table.starts[0] = NOWHERE
    timeline.plan(table, np.array([2, 0]))
    assert table.starts.tolist() == [start, 10, 0]


def long_queue(nodes: int, jobs: int) -> tuple[Timeline, JobTable]:
    """Return jobs that each need all of several nodes, and so have a start of their own."""
    run = Run(length=nodes, resources=(0,), capacity=(2,), system=((0,),))
    demands = Demands(Layout(runs=(run,), system_capacity=(2 * nodes,)))
    demands.add([KindDemand(need=nodes, most=1, takes=((0, ((0, 2),)),))], system=[(0, 2 * nodes)])
    return Timeline(demands), JobTable([(0, 0, FOREVER, 1 + job % 7) for job in range(jobs)])


@pytest.mark.parametrize(("nodes", "jobs"), [(2, 600), (30, 80), (1500, 3)])
def test_arrays_grow(nodes: int, jobs: int) -> None:
    """More slots than there was room for, more entries, and more nodes than there was room for entries.

    The jobs follow each other without a hole; when the first is gone, all move up by its second, and back to nothing.
    """
    timeline, table = long_queue(nodes, jobs)
    timeline.plan(table, np.arange(jobs))
    ends = np.cumsum(table.jobs[:, 3])
    assert table.starts.tolist() == [0, *ends[:-1].tolist()]
    assert timeline.breakpoints().tolist() == [0, *ends.tolist()]
    assert all(len(table.entries(job)) == nodes for job in range(jobs))
    for job in random.Random(3).sample(range(jobs), jobs):
        entries, start = table.entries(job), int(table.starts[job])
        timeline.release(timeline.booking_of(0, entries, start, start + int(table.jobs[job, 3])))
    assert timeline.breakpoints().tolist() == [0]
    assert timeline.free_at(0)[0].tolist() == [2] * nodes


def test_backfill_moves_everybody_up() -> None:
    """When the first of 300 jobs in a row goes, one pass moves all others up by its length, and the next none."""
    timeline, table = long_queue(2, 300)
    timeline.plan(table, np.arange(300))
    timeline.release(timeline.booking_of(0, table.entries(0), 0, 1))
    before = table.starts.copy()
    calls: list[tuple[int, int]] = []
    assert timeline.backfill(table, np.arange(1, 300), lambda done, total: calls.append((done, total))) == 299
    assert (before[1:] - table.starts[1:]).tolist() == [1] * 299
    assert timeline.backfill(table, np.arange(1, 300)) == 0
    assert calls[-1] == (299, 299)


def test_progress() -> None:
    """Progress is told after each portion of 500 jobs, also where the arrays grow within one."""
    timeline, table = long_queue(1, 1200)
    calls: list[tuple[int, int]] = []
    timeline.plan(table, np.arange(1200), lambda done, total: calls.append((done, total)))
    assert calls == [(500, 1200), (1000, 1200), (1200, 1200)]


def test_empty_queue() -> None:
    """With no jobs nothing happens, and no progress is told."""
    timeline, table = long_queue(1, 0)
    timeline.plan(table, np.arange(0), lambda done, total: pytest.fail("nothing was done"))
    assert timeline.backfill(table, np.arange(0)) == 0
    assert len(timeline.breakpoints()) == 1
