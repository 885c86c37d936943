"""The laws of the vectors: each operation against one value per second, the algebra, and the laws that do not hold."""

from __future__ import annotations

import operator
from functools import reduce
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cpsched.rusv import FOREVER
from tests.oracle.dense_vector import FIRST, LAST, SECONDS, combine, dense, join, long_runs, slots_of
from tests.oracle.dense_vector import windows as dense_windows
from tests.oracle.vector import FreeVector, Slot, UsedVector, WindowVector

AVL = 6

# Few seconds and few amounts, so that borders meet and slots join often; the highest amounts exceed what there is.
TIMES = st.integers(FIRST, LAST)
AMOUNTS = st.integers(0, AVL + 2)
MIN_DISTS = st.sampled_from([1, 1, 2, 4])


@st.composite
def slot_lists(draw: st.DrawFn, amounts: st.SearchStrategy[int]) -> tuple[Slot, ...]:
    """Draw slots in time order, some of them touching, the last one sometimes open ended."""
    borders = sorted(draw(st.sets(TIMES, max_size=7)))
    is_open_ended = draw(st.booleans())
    if borders and is_open_ended:
        borders.append(FOREVER)
    return tuple(Slot(start, end, draw(amounts)) for start, end in pairwise(borders) if draw(st.integers(0, 3)))


def used_vectors(min_dist: int = 1) -> st.SearchStrategy[UsedVector]:
    """Draw usage of `AVL` items, sometimes of more than there are."""
    return slot_lists(AMOUNTS).map(lambda slots: UsedVector(slots, max_avl=AVL + 1, defect=1, min_dist=min_dist))


def free_vectors(min_dist: int = 1) -> st.SearchStrategy[FreeVector]:
    """Draw limits on `AVL` items, some of them exceeded."""
    amounts = st.integers(-2, AVL + 1)
    return slot_lists(amounts).map(lambda slots: FreeVector(slots, max_avl=AVL, min_dist=min_dist))


WINDOWS = slot_lists(AMOUNTS).map(WindowVector)
BOOKINGS = st.tuples(TIMES, TIMES, AMOUNTS).map(lambda drawn: Slot(min(drawn[:2]), max(drawn[:2]) + 1, drawn[2]))
LASTING = BOOKINGS.filter(lambda slot: slot.end <= LAST) | BOOKINGS.map(
    lambda slot: Slot(slot.start, FOREVER, slot.items)
)


def dense_booking(slot: Slot) -> list[int]:
    """Return the items of one slot in each second."""
    return [slot.items if slot.start <= second < slot.end else 0 for second in SECONDS]


# ---- one value per second says the same ----


@given(st.data(), LASTING, MIN_DISTS)
def test_changes_of_usage_second_by_second(data: st.DataObject, slot: Slot, min_dist: int) -> None:
    """⊕, ⊖, + and - of a USED vector are sums per second, cut off at 0, with near neighbours joined."""
    vector, other = data.draw(used_vectors(min_dist)), data.draw(used_vectors())
    here, more, there = dense(vector), dense_booking(slot), dense(other)
    for result, expected in [
        (vector.increment(slot), combine(here, more, operator.add)),
        (vector.decrement(slot), combine(here, more, lambda x, y: max(0, x - y))),
        (vector + other, combine(here, there, operator.add)),
        (vector - other, combine(here, there, lambda x, y: max(0, x - y))),
    ]:
        assert result.slots == slots_of(join(expected, 0, min_dist), gap=0)


@given(st.data(), LASTING, MIN_DISTS)
def test_changes_of_free_amounts_second_by_second(data: st.DataObject, slot: Slot, min_dist: int) -> None:
    """⊕, ⊖, + and - of a FREE vector are sums per second, cut off at what is available, with near neighbours joined."""
    vector, other = data.draw(free_vectors(min_dist)), data.draw(used_vectors())
    here, more, there = dense(vector), dense_booking(slot), dense(other)
    for result, expected in [
        (vector.increment(slot), combine(here, more, lambda x, y: min(AVL, x + y))),
        (vector.decrement(slot), combine(here, more, operator.sub)),
        (vector + other, combine(here, there, lambda x, y: min(AVL, x + y))),
        (vector - other, combine(here, there, operator.sub)),
    ]:
        assert result.slots == slots_of(join(expected, AVL, min_dist), gap=AVL)


@given(st.data(), MIN_DISTS)
def test_min_free_second_by_second(data: st.DataObject, min_dist: int) -> None:
    """In each second mf leaves free what both leave free, and never less than nothing because of the limit."""
    vector, limit = data.draw(used_vectors(min_dist)), data.draw(free_vectors())
    expected = combine(dense(vector), dense(limit), lambda used, free: max(used, AVL - max(0, free)))
    assert vector.min_free(limit).slots == slots_of(join(expected, 0, min_dist), gap=0)


@given(
    used_vectors() | free_vectors(),
    st.integers(0, AVL + 1),
    st.integers(1, 12),
    TIMES,
    st.integers(FIRST, LAST) | st.just(FOREVER),
)
def test_free_slots_second_by_second(
    vector: UsedVector | FreeVector, amount: int, duration: int, start: int, end: int
) -> None:
    """A search for free slots finds in each second how often the amount is free, in runs that are long enough."""
    free = dense(vector) if isinstance(vector, FreeVector) else [vector.avl - used for used in dense(vector)]
    expected = dense_windows(free, amount, duration, start, end)
    assert vector.free_slots(amount, duration, start, end).slots == slots_of(expected, gap=0)


@given(WINDOWS, WINDOWS, st.integers(1, AVL), st.integers(1, 12))
def test_windows_second_by_second(first: WindowVector, second: WindowVector, items: int, duration: int) -> None:
    """∩, sum, mask, cap and filter of windows are what they are in each second."""
    here, there = dense(first), dense(second)
    for result, expected in [
        (first & second, combine(here, there, min)),
        (first + second, combine(here, there, operator.add)),
        (first.within(second), combine(here, there, lambda x, y: x * (y > 0))),
        (first.capped(items), [min(value, items) for value in here]),
        (first.at_least(items, duration), long_runs(here, items, duration)),
    ]:
        assert result.slots == slots_of(expected, gap=0)


@given(used_vectors() | free_vectors() | WINDOWS, TIMES, TIMES)
def test_values_second_by_second(vector: UsedVector | FreeVector | WindowVector, one: int, other: int) -> None:
    """`value_at` and `values` read the step function."""
    start, end = min(one, other), max(one, other) + 1
    assert [vector.value_at(second) for second in SECONDS] == dense(vector)
    per_second = [vector.value_at(second) for second in range(start, end)]
    assert set(vector.values(start, end)) == set(per_second)
    assert min(vector.values(start, end)) == min(per_second)


# ---- one form for one meaning ----


@given(used_vectors(), st.sets(TIMES))
def test_normal_form_is_canonical(vector: UsedVector, cuts: set[int]) -> None:
    """However the slots are cut, the vector is the same."""
    pieces = [
        Slot(start, end, slot.items)
        for slot in vector.slots
        for start, end in pairwise(
            sorted({slot.start, slot.end, *(cut for cut in cuts if slot.start < cut < slot.end)})
        )
    ]
    again = UsedVector(tuple(pieces), max_avl=vector.max_avl, defect=vector.defect)
    assert again == vector
    assert hash(again) == hash(vector)


@given(used_vectors(), used_vectors())
def test_equal_means_equal_in_each_second(first: UsedVector, second: UsedVector) -> None:
    """Two vectors are equal if and only if they say the same in each second."""
    assert (first == second) == (dense(first) == dense(second))


@given(slot_lists(AMOUNTS), MIN_DISTS)
def test_joining_is_conservative(slots: tuple[Slot, ...], min_dist: int) -> None:
    """With a minDist, never less counts as used than is, and never more as free (OCCS-4)."""
    exact, joined = UsedVector(slots, max_avl=AVL), UsedVector(slots, max_avl=AVL, min_dist=min_dist)
    assert all(more >= less for more, less in zip(dense(joined), dense(exact), strict=True))
    assert all(less <= more for less, more in zip(dense(joined.to_free()), dense(exact.to_free()), strict=True))


@given(st.data(), MIN_DISTS)
def test_used_and_free_are_two_sides(data: st.DataObject, min_dist: int) -> None:
    """Used and free convert into each other without loss, and to book in one is to book in the other."""
    vector, other = data.draw(used_vectors(min_dist)), data.draw(used_vectors())
    assert vector.to_free().to_used() == vector
    assert (vector + other).to_free() == vector.to_free() - other
    assert (vector - other).to_free() == vector.to_free() + other


# ---- the algebra ----


@given(used_vectors(), used_vectors(), used_vectors())
def test_addition(first: UsedVector, second: UsedVector, third: UsedVector) -> None:
    """Addition is commutative and associative, and nothing added changes nothing."""
    nothing = UsedVector(max_avl=first.max_avl, defect=first.defect)
    assert first + nothing == first == nothing + first
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)


@given(used_vectors(), used_vectors(), used_vectors())
def test_subtraction(first: UsedVector, second: UsedVector, third: UsedVector) -> None:
    """Subtraction undoes addition, one by one or together, and leaves nothing of itself."""
    nothing = UsedVector(max_avl=first.max_avl, defect=first.defect)
    assert first - nothing == first
    assert first - first == nothing
    assert (first + second) - second == first
    assert first - second - third == first - third - second == first - (second + third)


@given(used_vectors(), LASTING)
def test_revoking_undoes_booking(vector: UsedVector, slot: Slot) -> None:
    """(R ⊕ s) ⊖ s = R, even when asked to be strict."""
    assert vector.increment(slot).decrement(slot, strict=True) == vector


@given(free_vectors(), LASTING)
def test_giving_back_undoes_taking(vector: FreeVector, slot: Slot) -> None:
    """(F ⊖ s) ⊕ s = F, even when asked to be strict: a limit may be exceeded and recovers."""
    assert vector.decrement(slot).increment(slot, strict=True) == vector


@given(used_vectors(), used_vectors())
def test_addition_is_the_fold_of_increments(first: UsedVector, second: UsedVector) -> None:
    """OCCS-8: R1 + R2 is R1 ⊕ all slots of R2, R1 - R2 is R1 ⊖ all slots of R2."""
    assert first + second == reduce(UsedVector.increment, second.slots, first)
    assert first - second == reduce(UsedVector.decrement, second.slots, first)


@given(used_vectors(), LASTING, st.integers(0, AVL), st.integers(1, 8))
def test_more_use_means_fewer_windows(vector: UsedVector, slot: Slot, amount: int, duration: int) -> None:
    """Booking never opens a window; asking for more, or for longer, never does either."""
    here = dense(vector.free_slots(amount, duration, FIRST, FOREVER))
    for harder in (
        vector.increment(slot).free_slots(amount, duration, FIRST, FOREVER),
        vector.free_slots(amount, duration + 1, FIRST, FOREVER),
        vector.free_slots(amount, duration, FIRST + 1, LAST),
    ):
        assert all(less <= more for less, more in zip(dense(harder), here, strict=True))
    if amount:
        more = dense(vector.free_slots(amount + 1, duration, FIRST, FOREVER))
        assert all(less <= value for less, value in zip(more, here, strict=True))


@given(used_vectors(), free_vectors(), free_vectors())
def test_min_free_laws(vector: UsedVector, limit: FreeVector, other: FreeVector) -> None:
    """A limit (mf) never lowers the usage, twice is once, their order does not matter, and no limit is no change."""
    limited = vector.min_free(limit)
    assert all(more >= less for more, less in zip(dense(limited), dense(vector), strict=True))
    assert limited.min_free(limit) == limited
    assert limited.min_free(other) == vector.min_free(other).min_free(limit)
    assert vector.min_free(FreeVector(max_avl=AVL)) == vector


@given(WINDOWS, WINDOWS, WINDOWS)
def test_window_laws(first: WindowVector, second: WindowVector, third: WindowVector) -> None:
    """∩ and + of windows are commutative and associative; ∩ with itself and + with nothing change nothing."""
    assert first & second == second & first
    assert (first & second) & third == first & (second & third)
    assert first & first == first
    assert first & WindowVector() == WindowVector()
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first + WindowVector() == first


@given(WINDOWS, st.integers(1, AVL), st.integers(1, 8))
def test_filtering_twice_is_filtering_once(windows: WindowVector, items: int, duration: int) -> None:
    """`at_least` is idempotent, and what it keeps consists of runs that are long enough."""
    kept = windows.at_least(items, duration)
    assert kept.at_least(items, duration) == kept
    assert all(end - start >= duration for start, end in kept.runs())
    assert kept & windows == kept


# ---- laws that do not hold: whoever relies on one of them breaks a test here ----


def lone(*triples: tuple[int, int, int], min_dist: int = 1) -> UsedVector:
    """Return a `UsedVector` of (start, end, items) on 16 items."""
    return UsedVector(tuple(Slot(*triple) for triple in triples), max_avl=16, min_dist=min_dist)


def test_no_law_revoking_with_min_dist() -> None:
    """With a minDist above 1, revoking does not undo booking: the hole that was closed stays closed."""
    booked = lone((0, 100, 4), min_dist=60).increment(Slot(130, 200, 4))
    assert booked == lone((0, 200, 4), min_dist=60)
    assert booked.decrement(Slot(130, 200, 4)) == lone((0, 130, 4), min_dist=60)


def test_no_law_associative_addition_with_min_dist() -> None:
    """With a minDist above 1, addition is not associative, and the order of bookings matters."""
    first, second, third = lone((0, 100, 4), min_dist=60), lone((130, 200, 4)), lone((100, 130, 4))
    early = first + second + third
    assert early == lone((0, 100, 4), (100, 130, 8), (130, 200, 4), min_dist=60)
    assert early != first + (second + third) == lone((0, 200, 4), min_dist=60)
    assert early != first + third + second


def test_no_law_associative_free_amounts_with_min_dist() -> None:
    """The same holds for FREE vectors: a limit with a minDist depends on the order in which it is used up."""
    limit = FreeVector(max_avl=16, min_dist=60)
    first, second, third = lone((0, 100, 4)), lone((130, 200, 4)), lone((100, 130, 4))
    assert (limit - first - second - third).value_at(110) == 8
    assert (limit - first - third - second).value_at(110) == 12


def test_no_law_addition_as_a_fold_with_min_dist() -> None:
    """With a minDist above 1, adding at once is not the fold: the fold joins too early and counts more as used."""
    vector, other = lone((200, 300, 4), min_dist=60), lone((100, 180, 4), (200, 300, 2))
    assert vector + other == lone((100, 180, 4), (200, 300, 6), min_dist=60)
    folded = reduce(UsedVector.increment, other.slots, vector)
    assert folded == lone((100, 200, 4), (200, 300, 6), min_dist=60)


def test_no_law_booking_after_revoking() -> None:
    """(R ⊖ s) ⊕ s is not R where s is more than there was: the cut at 0 forgets."""
    assert lone((0, 10, 4)).decrement(Slot(0, 10, 5)).increment(Slot(0, 10, 5)) == lone((0, 10, 5))


def test_no_law_taking_after_giving_back() -> None:
    """(F ⊕ s) ⊖ s is not F where s is more than was taken: the cut at what is available forgets."""
    taken = FreeVector((Slot(0, 10, 14),), max_avl=16)
    assert taken.increment(Slot(0, 10, 5)).decrement(Slot(0, 10, 5)) == FreeVector((Slot(0, 10, 11),), max_avl=16)


def test_no_law_filter_before_intersection() -> None:
    """Filtering by duration does not pass through ∩: two runs of 6 s may share only 2 (why OCCS-23 filters again)."""
    first, second = WindowVector((Slot(0, 6, 1),)), WindowVector((Slot(4, 10, 1),))
    assert first.at_least(1, 5) & second.at_least(1, 5) == WindowVector((Slot(4, 6, 1),))
    assert (first & second).at_least(1, 5) == WindowVector()


def test_no_law_windows_of_a_sum() -> None:
    """Two amounts may have a window each and none together: jobs do not fit because each of them alone does."""
    vector = lone((0, 10, 8))
    alone = vector.free_slots(5, 1, 0, 10) & vector.free_slots(6, 1, 0, 10)
    assert alone == WindowVector((Slot(0, 10, 1),))
    assert vector.free_slots(11, 1, 0, 10) == WindowVector()


def test_no_law_addition_commutes_in_its_frame() -> None:
    """The result has the amounts of the left operand, so operands of different resources do not commute."""
    large, small = UsedVector((Slot(0, 5, 1),), max_avl=16), UsedVector((Slot(0, 5, 1),), max_avl=4)
    assert (large + small).max_avl == 16
    assert (small + large).max_avl == 4
