"""The timeline against its naive twin: the same after every step, and the same answers."""

from __future__ import annotations

import random
from unittest.mock import patch

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpsched.rusv import FOREVER, NOWHERE, Demands, JobTable, KindDemand, Layout, Run, Timeline, kernels
from cpsched.rusv import timeline as timeline_module
from tests.rusv.timeline_cases import (
    NARROW,
    SECONDS,
    UNITS,
    WIDE,
    DrawnDemand,
    JobRow,
    Pair,
    job_rows,
    pairs,
)

pytestmark = pytest.mark.kernels

#: Interpreted kernels are a hundred times slower.
COMPILED = not numba.config.DISABLE_JIT
EXAMPLES = 150 if COMPILED else 40


# ---- booking and releasing ----

#: (what to do, which booking, a job): see `perform`.
steps = st.lists(st.tuples(st.sampled_from("fffhr"), st.integers(0, 99), job_rows), max_size=30)


def perform(pair: Pair, step: tuple[str, int, JobRow]) -> None:
    """Do one step to both: ``f`` books a job where it fits, ``h`` holds parts of columns, ``r`` releases a booking."""
    action, pick, drawn = step
    row = pair.row(drawn)
    if action == "f":
        found = pair.fit(row)
        if found is not None and found[0] + row[3] < SECONDS:
            pair.book(row[0], found[1], found[0], found[0] + row[3])
    elif action == "h":
        hold_parts(pair, pick, row)
    elif pair.booked:
        pair.release(pick % len(pair.booked))


def hold_parts(pair: Pair, pick: int, row: JobRow) -> None:
    """Hold some of what is free throughout: all of some columns, half of others; every fifth holding has no end."""
    start, end = row[1], row[1] + row[3] if pick % 5 else FOREVER
    free = pair.twin.free[start:end].min(axis=0).tolist()
    columns = {c: amount if (c + pick) % 3 else (amount + 1) // 2 for c, amount in enumerate(free) if (c * pick) % 4}
    licenses = {6: 1} if pair.twin.system[start:end, 6].min() > 0 else {}
    pair.hold(start, end, {c: amount for c, amount in columns.items() if amount}, licenses)


@settings(max_examples=EXAMPLES)
@given(pairs(), steps)
def test_the_same_after_every_step(pair: Pair, history: list[tuple[str, int, JobRow]]) -> None:
    """After each booking and release, every second, every column, the breakpoints and each search are the twin's."""
    for step in history:
        perform(pair, step)
        pair.assert_same()


@settings(max_examples=EXAMPLES)
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


@settings(max_examples=EXAMPLES)
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


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_blocks_split_and_join(unit: int) -> None:
    """150 bookings of all amounts up to the whole node make many blocks; released at random, all join again.

    A booking takes its node whole (the free amount goes from the largest of the row type to 0) or in eight parts.
    """
    largest = UNITS[unit]
    run = Run(length=2, resources=(0, 1), capacity=(largest, 8 * unit), system=((0,), (1,)))
    layout = Layout(runs=(run,), system_capacity=(2 * largest, 16 * unit, 0, 0, 0, 0, 3))
    pair = Pair(layout, [DrawnDemand((one_chunk(0, (0, largest)),), (), (), exclusive=False, scatter=False)], 200)
    order = random.Random(unit)
    for _ in range(150):
        start = order.randrange(190)
        end = order.randrange(start + 1, 199)
        free = pair.twin.free[start:end].min(axis=0).tolist()
        column = order.randrange(4)
        amount = free[column] if order.random() < 0.5 else free[column] // 8
        pair.hold(start, end, {column: amount} if amount else {}, {})
    pair.assert_same()
    assert pair.timeline.num_slots > 5 * kernels.BLOCK
    while pair.booked:
        pair.release(order.randrange(len(pair.booked)))
        pair.assert_same()
        pair.fit((0, order.randrange(190), FOREVER, order.randrange(1, 20)))
    assert pair.timeline.breakpoints().tolist() == [0]


def one_chunk(run: int, *takes: tuple[int, int]) -> KindDemand:
    """Return the demand for one chunk on a node of one run."""
    return KindDemand(need=1, most=1, takes=((run, takes),))


@pytest.mark.parametrize("largest", [NARROW, WIDE])
def test_full_blocks_join_idle_ones(largest: int) -> None:
    """Blocks of which one was booked whole and the other is idle can join at the largest amount of the row type."""
    run = Run(length=1, resources=(0,), capacity=(largest,), system=((0,),))
    layout = Layout(runs=(run,), system_capacity=(largest,))
    pair = Pair(layout, [DrawnDemand((one_chunk(0, (0, largest)),), (), (), exclusive=False, scatter=False)])
    for time in range(1, 25):
        pair.hold(time, time + 1, {}, {})  # nothing is taken: breakpoints only
    pair.hold(0, 9, {0: largest}, {})  # the first block of 8 slots and one slot of the next
    while len(pair.booked) > 1:
        pair.release(len(pair.booked) // 2 - 1 if len(pair.booked) > 2 else 0)
        pair.assert_same()
        assert pair.fit((0, 0, FOREVER, 5)) == (9, ((0, 0, 1),))


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
    assert pair.timeline.num_slots == 1


# ---- searching ----


@settings(max_examples=2 * EXAMPLES)
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


@settings(max_examples=EXAMPLES)
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
        fits = [t.earliest_fit(demand, earliest=earliest, latest=latest, duration=duration) for t in (fresh, pair.timeline)]
        first, second = (fit and (fit.start, fit.entries.tolist()) for fit in fits)
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


def test_other_orders_are_booked_where_they_stand() -> None:
    """Kinds that are mapped against the order of the runs hold the columns of the nodes on which they stand.

    The wide kind (2 chunks) may stand on both runs, the other one on the first only, whose node holds one chunk. In the
    order of the runs the wide kind takes the first run's node and leaves none; in the other order it fills the two
    nodes of the second run, and the other kind comes to the first.
    """
    runs = (
        Run(length=1, resources=(0,), capacity=(1,), system=((0,),)),
        Run(length=2, resources=(0,), capacity=(1,), system=((0,),)),
    )
    wide, narrow = KindDemand(need=2, most=1, takes=((0, ((0, 1),)), (1, ((0, 1),)))), one_chunk(0, (0, 1))
    turned = KindDemand(need=2, most=1, takes=tuple(reversed(wide.takes)))
    demand = DrawnDemand((wide, narrow), (), (), exclusive=False, scatter=False, otherwise=(turned, narrow))
    pair = Pair(Layout(runs=runs, system_capacity=(3,)), [demand])
    assert pair.fit((1, 0, FOREVER, 5)) == (0, ((1, 0, 1), (2, 0, 1), (0, 1, 1)))
    pair.hold(0, 7, {1: 1}, {})  # now the wide kind needs the first run's node too, and the narrow one waits for it
    found = pair.fit((1, 0, FOREVER, 5))
    assert found == (7, ((1, 0, 1), (2, 0, 1), (0, 1, 1)))
    both = DrawnDemand((replace_need(turned, 3),), (), (), exclusive=False, scatter=False)
    pair = Pair(Layout(runs=runs, system_capacity=(3,)), [both])
    assert pair.fit((0, 0, FOREVER, 5)) == (0, ((1, 0, 1), (2, 0, 1), (0, 0, 1)))
    pair.book(0, ((1, 0, 1), (2, 0, 1), (0, 0, 1)), 0, 5)
    pair.assert_same()


def replace_need(kind: KindDemand, need: int) -> KindDemand:
    """Return a kind of which more chunks are needed."""
    return KindDemand(need=need, most=kind.most, takes=kind.takes)


# ---- the reciprocal ----


def one_column(length: int, largest: int) -> Demands:
    """Return the table of demands for `length` nodes of one column."""
    run = Run(length=length, resources=(0,), capacity=(largest,), system=((),))
    return Demands(Layout(runs=(run,), system_capacity=()))


def counted(demands: Demands, kind: int, free: np.ndarray) -> int:
    """Return how many chunks `count_kind` finds."""
    real = np.float32 if free.dtype == np.int16 else np.float64
    table = demands.tables(real)
    buffer = np.zeros(len(free), dtype=real)
    return int(kernels.count_kind(kind, free, buffer, *(table[n] for n in ("kinds", "segments", "terms", "scale"))))


def test_reciprocals_of_narrow_rows_are_exact() -> None:
    """Over all free amounts up to 32767 and all amounts of a chunk, the counts add up to those of a division."""
    amounts = range(1, NARROW + 1) if COMPILED else (1, 2, 3, 7, 181, 182, 255, 16383, 16384, 32766, NARROW)
    free = np.arange(NARROW + 1, dtype=np.int16)
    if not COMPILED:
        free = free[np.random.default_rng(0).permutation(NARROW + 1)[:500]]
    demands = one_column(len(free), NARROW)
    for amount in amounts:
        demands.add([KindDemand(need=1, most=10**6, takes=((0, ((0, amount),)),))])
    for kind, amount in enumerate(amounts):
        assert counted(demands, kind, free) == int((free // amount).sum())


@pytest.mark.parametrize(("real", "largest"), [(np.float32, NARROW), (np.float64, WIDE)])
def test_reciprocals_are_exact_where_a_quotient_changes(real: type, largest: int) -> None:
    """The formula steps from k - 1 to k between ``k*a - 1`` and ``k*a`` for all amounts of a chunk: it is the quotient.

    The formula is monotone in the free amount, so that nothing can go wrong between two steps. Of the wide type, all
    small and some large amounts are tried with the smallest, the largest and some other quotients.
    """
    draws = np.random.default_rng(1)
    amounts = np.arange(1, NARROW + 1)
    if largest == WIDE:
        amounts = np.concatenate([amounts, WIDE - amounts, draws.integers(1, WIDE, 3000)])
    for amount in amounts.tolist()[:: 1 if COMPILED else 50]:
        most = largest // amount
        times = np.arange(1, most + 1) if most < 60 or largest == NARROW else draws.integers(1, most + 1, 60)
        times[-1] = most
        inverse = 1.0 / np.float64(amount)
        scale, offset = real(inverse), real(0.5 * inverse)
        for less in (0, 1):
            free = (times * amount - less).astype(np.int16 if largest == NARROW else np.int32)
            assert np.array_equal((free * scale + offset).astype(np.int32), times - less if amount == 1 else times - less)


@pytest.mark.parametrize(("row", "largest"), [(np.int16, NARROW), (np.int32, WIDE)])
def test_count_kind(row: type, largest: int) -> None:
    """Counts over one, two and three columns, several runs and a bound per node are those of divisions."""
    draws = np.random.default_rng(2)
    for _ in range(300 if COMPILED else 60):
        lengths = draws.integers(1, 6, 2).tolist()
        runs = tuple(
            Run(length=length, resources=(0, 1, 2), capacity=(largest,) * 3, system=((),) * 3) for length in lengths
        )
        demands = Demands(Layout(runs=runs, system_capacity=()))
        width = int(draws.integers(1, 4))
        bits = int(largest).bit_length()
        amounts = [min(largest, int(2.0 ** draws.uniform(0, bits))) for _ in range(width)]
        takes = tuple(enumerate(amounts))
        most = int(draws.choice([1, 3, 10**6]))
        chosen = [0, 1] if draws.random() < 0.7 else [1]
        demands.add([KindDemand(need=1, most=most, takes=tuple((run, takes) for run in chosen))])
        free = np.zeros((3, sum(lengths)), dtype=row)
        for place, amount in enumerate((amounts * 3)[:3]):
            near = draws.integers(0, largest // amount + 1, free.shape[1]) * amount - draws.integers(0, 2, free.shape[1])
            free[place] = np.clip(near, 0, largest)
        nodes = range(0 if 0 in chosen else lengths[0], sum(lengths))
        expected = sum(min(most, *(int(free[place, n]) // amount for place, amount in takes)) for n in nodes)
        assert counted(demands, 0, free.reshape(-1)) == expected


def test_counts_do_not_overflow() -> None:
    """10,000 nodes that each hold a million chunks are counted in parts that stay within 32 bits."""
    size = 10_000 if COMPILED else 4_200
    demands = one_column(size, WIDE)
    demands.add([KindDemand(need=1, most=10**6, takes=((0, ((0, 1),)),))])
    assert counted(demands, 0, np.full(size, WIDE, dtype=np.int32)) == size * 10**6


# ---- many jobs ----


@settings(max_examples=EXAMPLES)
@given(pairs(), steps, st.lists(job_rows, max_size=14), st.lists(job_rows, max_size=6), st.integers(1, 20))
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
        table = JobTable.of(rows)
        with patch.object(timeline_module, "PORTION", portion):
            pair.timeline.plan(table, np.arange(len(rows)))
        assert pair.placed(table) == pair.plan_twin(rows)
        pair.assert_same()
        if pair.booked:
            pair.release(0)


@settings(max_examples=EXAMPLES)
@given(pairs(), st.lists(job_rows, min_size=1, max_size=14), st.permutations(range(14)), st.data())
def test_backfill(pair: Pair, drawn: list[JobRow], shuffled: list[int], data: st.DataObject) -> None:
    """A pass moves exactly the jobs that fit earlier without themselves, nobody to a later start, until none can move."""
    rows = [pair.row(row) for row in drawn]
    table = JobTable.of(rows)
    pair.timeline.plan(table, np.arange(len(rows)))
    placed = pair.plan_twin(rows)
    for job in data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3)):
        if placed[job][0] != NOWHERE:
            release_job(pair, table, job)
            placed[job] = (NOWHERE, ())
    queue = [job for job in shuffled if job < len(rows) and placed[job][0] != NOWHERE]
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
    start, entries = int(table.starts[job]), pair.timeline.entries_of(table, job)
    pair.timeline.release(pair.timeline.booking_of(demand, entries, start, start + duration))
    pair.twin.release(pair.twin.booking_of(demand, entries.tolist(), start, start + duration))
    table.starts[job] = NOWHERE


def backfill_twin(pair: Pair, rows: list[JobRow], placed: list, queue: list[int]) -> int:
    """Do one pass of OCCS-34 in the twin: revoke, plan again, keep what is earlier; return how many moved."""
    moves = 0
    for job in queue:
        demand, earliest, _, duration = rows[job]
        start, entries = placed[job]
        pair.twin.release(pair.twin.booking_of(demand, entries, start, start + duration))
        found = pair.twin.earliest_fit(demand, earliest=earliest, latest=start - 1, duration=duration)
        if found is not None:
            assert found[0] < start
            moves += 1
            placed[job] = start, entries = found
        pair.twin.book(pair.twin.booking_of(demand, entries, start, start + duration))
    return moves


def long_queue(nodes: int, jobs: int) -> tuple[Timeline, JobTable]:
    """Return jobs that each need all of several nodes, and so have a start of their own."""
    run = Run(length=nodes, resources=(0,), capacity=(2,), system=((0,),))
    demands = Demands(Layout(runs=(run,), system_capacity=(2 * nodes,)))
    demands.add([KindDemand(need=nodes, most=1, takes=((0, ((0, 2),)),))], system=[(0, 2 * nodes)])
    return Timeline(demands), JobTable.of([(0, 0, FOREVER, 1 + job % 7) for job in range(jobs)])


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
    assert all(len(timeline.entries_of(table, job)) == nodes for job in range(jobs))
    for job in random.Random(3).sample(range(jobs), jobs):
        entries, start = timeline.entries_of(table, job), int(table.starts[job])
        timeline.release(timeline.booking_of(0, entries, start, start + int(table.jobs[job, 3])))
    assert timeline.breakpoints().tolist() == [0]
    assert timeline.free_at(0)[0].tolist() == [2] * nodes


def test_backfill_moves_everybody_up() -> None:
    """When the first of 300 jobs in a row goes, one pass moves all others up by its length, and the next none."""
    timeline, table = long_queue(2, 300)
    timeline.plan(table, np.arange(300))
    timeline.release(timeline.booking_of(0, timeline.entries_of(table, 0), 0, 1))
    before = table.starts.copy()
    calls: list[tuple[int, int]] = []
    assert timeline.backfill(table, np.arange(1, 300), lambda done, total: calls.append((done, total))) == 299
    assert (before[1:] - table.starts[1:]).tolist() == [1] * 299
    assert timeline.backfill(table, np.arange(1, 300)) == 0
    assert calls[-1] == (299, 299)


def test_progress() -> None:
    """Progress is told after each portion of 500 jobs at the most, in ascending order, up to all of them."""
    timeline, table = long_queue(1, 1200)
    calls: list[tuple[int, int]] = []
    timeline.plan(table, np.arange(1200), lambda done, total: calls.append((done, total)))
    done = [0, *(count for count, _ in calls)]
    assert {total for _, total in calls} == {1200}
    assert done[-1] == 1200
    assert all(0 < after - before <= 500 for before, after in zip(done, done[1:], strict=False))


def test_empty_queue() -> None:
    """With no jobs nothing happens, and no progress is told."""
    timeline, table = long_queue(1, 0)
    timeline.plan(table, np.arange(0), lambda done, total: pytest.fail("nothing was done"))
    assert timeline.backfill(table, np.arange(0)) == 0
    assert timeline.num_slots == 1
