"""The worked examples of the vectors, to the number (OpenCCS, Keller, JSSPP 2017; OCCS-1 to 11, 23, 30, 43)."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cpsched.rusv import FOREVER
from tests.oracle.vector import FreeVector, Slot, UsedVector, WindowVector

Triple = tuple[int, int, int]
HOUR = 3600
DAY = 24 * HOUR


def used(*triples: Triple, avl: int = 16, min_dist: int = 1) -> UsedVector:
    """Return a `UsedVector` of (start, end, items)."""
    return UsedVector(tuple(Slot(*triple) for triple in triples), max_avl=avl, min_dist=min_dist)


def free(*triples: Triple, avl: int = 16, min_dist: int = 1) -> FreeVector:
    """Return a `FreeVector` of (start, end, items)."""
    return FreeVector(tuple(Slot(*triple) for triple in triples), max_avl=avl, min_dist=min_dist)


def windows(*triples: Triple) -> WindowVector:
    """Return a `WindowVector` of (start, end, items)."""
    return WindowVector(tuple(Slot(*triple) for triple in triples))


@pytest.mark.parametrize(
    ("slot", "closed"),
    [
        (Slot(0, 100, 4), (0, 99, 4)),
        (Slot(0, FOREVER, 4), (0, 0, 4)),
        (Slot(-5, FOREVER, 4), (-5, 0, 4)),
        (Slot(7, 8, 1), (7, 7, 1)),
    ],
)
def test_closed_notation(slot: Slot, closed: Triple) -> None:
    """A slot is printed with its last second, an open end as 0, and read back as the same slot (OCCS-1)."""
    assert slot.to_closed() == closed
    assert Slot.from_closed(*closed) == slot


def test_closed_notation_refuses_the_ambiguous_end() -> None:
    """A slot whose last second is second 0 would be read back as open ended, so it is not written."""
    with pytest.raises(ValueError, match="Expected an end other than 1"):
        Slot(-3, 1, 2).to_closed()


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (FOREVER, FOREVER), (0, FOREVER + 1)])
def test_slots_are_not_empty(start: int, end: int) -> None:
    """A slot covers at least one second and ends at the horizon at the latest."""
    with pytest.raises(ValueError, match="Expected start < end <= FOREVER"):
        Slot(start, end, 1)


def test_defect_items_are_not_available() -> None:
    """OCCS-2: of 32 GPUs, 3 defective, 29 are available."""
    assert UsedVector(max_avl=32, defect=3).avl == 29
    assert UsedVector(max_avl=32, defect=3).to_free().value_at(0) == 29


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"max_avl": 4, "defect": 5}, "Expected 0 <= defect <= max_avl"),
        ({"max_avl": -1}, "Expected 0 <= defect"),
        ({"max_avl": 4, "min_dist": 0}, "Expected min_dist >= 1"),
    ],
)
def test_impossible_amounts_are_refused(amounts: dict[str, int], message: str) -> None:
    """A vector knows how much there is, and cannot have more defects than that."""
    with pytest.raises(ValueError, match=message):
        UsedVector(**amounts)  # type: ignore[arg-type]  # wrong on purpose


def test_slots_in_disorder_are_refused() -> None:
    """Overlapping or unsorted slots are a mistake, not something to guess about, even where one says nothing."""
    with pytest.raises(ValueError, match="in time order without overlap"):
        used((0, 10, 4), (9, 12, 4))
    with pytest.raises(ValueError, match="in time order without overlap"):
        used((0, 10, 0), (5, 12, 4))


def test_normal_form_drops_what_a_gap_says() -> None:
    """OCCS-3: entirely free time is not stored, in any kind."""
    assert used((0, 10, 0), (20, 30, -2)).slots == ()
    assert free((0, 10, 16), (20, 30, 17)).slots == ()
    assert windows((0, 10, 0)).slots == ()


def test_normal_form_joins_near_neighbours() -> None:
    """OCCS-4: with minDist 60, a hole of 30 s between equal slots is closed; a window is never enlarged like that."""
    assert used((0, 100, 4), (130, 200, 4), min_dist=60) == used((0, 200, 4), min_dist=60)
    assert used((0, 100, 4), (130, 200, 4)).slots == (Slot(0, 100, 4), Slot(130, 200, 4))
    assert windows((0, 100, 4), (101, 200, 4)).slots == (Slot(0, 100, 4), Slot(101, 200, 4))
    assert windows((0, 100, 4), (100, 200, 4)) == windows((0, 200, 4))


@pytest.mark.parametrize(("hole", "slots"), [(59, 1), (60, 2)])
def test_min_dist_to_the_second(hole: int, slots: int) -> None:
    """In closed notation two slots are joined if next.start - prev.stop <= minDist: a hole of minDist - 1 at most."""
    assert len(used((0, 100, 4), (100 + hole, 300, 4), min_dist=60).slots) == slots


def test_min_dist_joins_a_chain() -> None:
    """Three near slots become one, and a slot with other items between keeps two apart."""
    assert used((0, 10, 4), (12, 20, 4), (22, 30, 4), min_dist=3).slots == (Slot(0, 30, 4),)
    assert len(used((0, 10, 4), (10, 12, 5), (12, 30, 4), min_dist=3).slots) == 3


def test_increment() -> None:
    """OCCS-5: two bookings that overlap add up where they do."""
    booked = used().increment(Slot(0, 100, 4)).increment(Slot(50, 150, 6))
    assert booked == used((0, 50, 4), (50, 100, 10), (100, 150, 6))


def test_decrement() -> None:
    """OCCS-6: revoking the first booking leaves the second, in one slot."""
    booked = used((0, 50, 4), (50, 100, 10), (100, 150, 6))
    assert booked.decrement(Slot(0, 100, 4)) == used((50, 150, 6))


@pytest.mark.parametrize(
    ("case", "new", "increased", "decreased"),
    [
        ("1", (5, 25, 3), [(5, 10, 3), (10, 20, 7), (20, 25, 3)], [(10, 20, 1)]),
        ("2", (12, 18, 3), [(10, 12, 4), (12, 18, 7), (18, 20, 4)], [(10, 12, 4), (12, 18, 1), (18, 20, 4)]),
        ("3", (5, 15, 3), [(5, 10, 3), (10, 15, 7), (15, 20, 4)], [(10, 15, 1), (15, 20, 4)]),
        ("4", (15, 25, 3), [(10, 15, 4), (15, 20, 7), (20, 25, 3)], [(10, 15, 4), (15, 20, 1)]),
        ("5", (10, 20, 3), [(10, 20, 7)], [(10, 20, 1)]),
        ("5, all of it", (10, 20, 4), [(10, 20, 8)], []),
        ("6", (10, 15, 3), [(10, 15, 7), (15, 20, 4)], [(10, 15, 1), (15, 20, 4)]),
        ("7", (10, 25, 3), [(10, 20, 7), (20, 25, 3)], [(10, 20, 1)]),
        ("8", (15, 20, 3), [(10, 15, 4), (15, 20, 7)], [(10, 15, 4), (15, 20, 1)]),
        ("9", (5, 20, 3), [(5, 10, 3), (10, 20, 7)], [(10, 20, 1)]),
        ("10, gap", (0, 5, 3), [(0, 5, 3), (10, 20, 4)], [(10, 20, 4)]),
        ("10, touching", (0, 10, 4), [(0, 20, 4)], [(10, 20, 4)]),
        ("11, gap", (25, 30, 3), [(10, 20, 4), (25, 30, 3)], [(10, 20, 4)]),
        ("11, touching", (20, 30, 4), [(10, 30, 4)], [(10, 20, 4)]),
        (
            "12",
            (15, FOREVER, 3),
            [(10, 15, 4), (15, 20, 7), (20, FOREVER, 3)],
            [(10, 15, 4), (15, 20, 1)],
        ),
    ],
)
def test_overlap_cases(case: str, new: Triple, increased: list[Triple], decreased: list[Triple]) -> None:
    """OCCS-7: every way in which a new slot can lie to [10, 20):4."""
    assert used((10, 20, 4)).increment(Slot(*new)) == used(*increased), case
    assert used((10, 20, 4)).decrement(Slot(*new)) == used(*decreased), case


def test_overlap_case_13() -> None:
    """OCCS-7, case 13: a new slot that spans several slots is applied piece by piece."""
    several = used((10, 20, 4), (30, 40, 2))
    assert several.increment(Slot(15, 35, 3)) == used((10, 15, 4), (15, 20, 7), (20, 30, 3), (30, 35, 5), (35, 40, 2))
    assert several.decrement(Slot(15, 35, 3)) == used((10, 15, 4), (15, 20, 1), (35, 40, 2))


def test_overlap_of_free_amounts() -> None:
    """OCCS-7: in a FREE vector the gaps hold all that is available."""
    act = free((10, 20, 4))
    assert act.decrement(Slot(5, 25, 3)) == free((5, 10, 13), (10, 20, 1), (20, 25, 13))
    assert act.increment(Slot(10, 20, 12)) == free()


def test_strict_mode_reveals_a_double_revoke() -> None:
    """Giving back more than was taken is cut off as in the paper, or refused if asked to be strict."""
    booked = used((0, 10, 4))
    assert booked.decrement(Slot(0, 10, 5)) == used()
    assert booked.decrement(Slot(0, 10, 4), strict=True) == used()
    with pytest.raises(ValueError, match="no more than was taken"):
        booked.decrement(Slot(0, 10, 5), strict=True)
    with pytest.raises(ValueError, match="no more than was taken"):
        booked.decrement(Slot(0, 11, 1), strict=True)
    assert free((0, 10, 4)).increment(Slot(0, 10, 12), strict=True) == free()
    with pytest.raises(ValueError, match="no more than was taken"):
        free((0, 10, 4)).increment(Slot(0, 10, 13), strict=True)


@pytest.mark.parametrize("change", [UsedVector.increment, UsedVector.decrement, FreeVector.increment])
def test_negative_bookings_are_refused(change: Callable[..., object]) -> None:
    """A slot with negative items is no booking."""
    vector = free() if change is FreeVector.increment else used()
    with pytest.raises(ValueError, match="Expected items >= 0"):
        change(vector, Slot(0, 10, -1))


def test_limit_less_own_use() -> None:
    """OCCS-8: of a limit of 30, 10 are in use during the first hour."""
    limit = free((0, FOREVER, 30), avl=100)
    own = used((0, 3600, 10), avl=100)
    assert limit - own == free((0, 3600, 20), (3600, FOREVER, 30), avl=100)


def test_an_exceeded_limit_is_below_zero() -> None:
    """A limit that was lowered below the present use stays negative, so that giving back leads to the limit again."""
    limit = free((0, FOREVER, 5))
    exceeded = limit - used((0, 10, 8))
    assert exceeded.value_at(3) == -3
    assert exceeded + used((0, 10, 8)) == limit


def test_min_free_of_a_limit() -> None:
    """OCCS-9, 22 and 23: usage and free pool, pressed down to what the consumer may still use, and the free windows."""
    system = used((0, 3600, 40), (3600, 7200, 70), avl=100)
    with_pool = system + used((0, 5400, 20), avl=100)
    assert with_pool == used((0, 3600, 60), (3600, 5400, 90), (5400, 7200, 70), avl=100)
    rest = free((0, FOREVER, 30), avl=100) - used((0, 3600, 10), avl=100)
    view = with_pool.min_free(rest)
    assert view == used((0, 3600, 80), (3600, 5400, 90), (5400, FOREVER, 70), avl=100)
    found = view.free_slots(20, 1800, 0, FOREVER)
    assert found == windows((0, 3600, 1), (5400, FOREVER, 1))
    with_memory = found & windows((5000, FOREVER, 1))
    assert with_memory.at_least(1, 1800) == windows((5400, FOREVER, 1))


def test_min_free_outside_of_the_limit() -> None:
    """OCCS-9: where the limit has no slot nothing changes; where the usage has none, the limit makes one."""
    limited = used((0, 10, 4), (30, 40, 2)).min_free(free((5, 20, 6)))
    assert limited == used((0, 5, 4), (5, 20, 10), (30, 40, 2))


def test_min_free_of_an_exceeded_limit() -> None:
    """A limit below 0 leaves nothing free, and no more than that."""
    assert used((0, 10, 4)).min_free(free((0, 10, -3))) == used((0, 10, 16))


def test_intersection() -> None:
    """OCCS-10: the smaller value, and nothing where one of them has nothing."""
    assert windows((0, 10, 3), (20, 30, 2)) & windows((5, 25, 2)) == windows((5, 10, 2), (20, 25, 2))


def test_free_slots() -> None:
    """OCCS-11: both examples of the paper's getFreeSlots."""
    booked = used((0, 3600, 80), (3600, 5400, 90), (5400, FOREVER, 70), avl=100)
    assert booked.free_slots(20, 1800, 0, 14400) == windows((0, 3600, 1), (5400, 14400, 1))
    assert booked.free_slots(25, 7200, 0, 14400) == windows((5400, 14400, 1))


def test_free_slots_counts_multiples() -> None:
    """The value is how many times the amount is free; a run is as long as all of its pieces together."""
    assert used((0, 10, 8), (10, 20, 12)).free_slots(4, 25, 0, 30) == windows((0, 10, 2), (10, 20, 1), (20, 30, 4))


def test_free_slots_at_the_edges() -> None:
    """Nothing asked fits once; too long a run, an empty interval, a full machine give nothing; the end may be open."""
    busy = used((0, 10, 16))
    assert busy.free_slots(0, 5, 0, 20) == windows((0, 20, 1))
    assert busy.free_slots(0, 21, 0, 20) == windows()
    assert busy.free_slots(1, 11, 0, 20) == windows()
    assert busy.free_slots(1, 5, 0, 10) == windows()
    assert busy.free_slots(1, 5, 20, 20) == windows()
    assert busy.free_slots(16, 10**10, 0, FOREVER) == windows((10, FOREVER, 1))
    assert used((0, 10, 20)).free_slots(1, 5, 0, 10) == windows()
    with pytest.raises(ValueError, match="Expected amount >= 0"):
        busy.free_slots(-1, 5, 0, 10)
    with pytest.raises(ValueError, match="duration >= 1 s"):
        busy.free_slots(1, 0, 0, 10)


def test_chunks_of_several_nodes() -> None:
    """OCCS-28 and 30: free chunks on the nodes A, B and C, their sum, and the sum with one chunk per node at most."""
    node_a = used((0, 1800, 12)).free_slots(8, 3600, 0, FOREVER)
    node_b = used().free_slots(8, 3600, 0, FOREVER)
    node_c = used((0, 7200, 16), avl=28).free_slots(8, 3600, 0, FOREVER)
    assert node_a == windows((1800, FOREVER, 2))
    assert node_b == windows((0, FOREVER, 2))
    assert node_c == windows((0, 7200, 1), (7200, FOREVER, 3))
    assert node_a + node_b + node_c == windows((0, 1800, 3), (1800, 7200, 5), (7200, FOREVER, 7))
    scattered = node_a.capped(1) + node_b.capped(1) + node_c.capped(1)
    assert scattered.at_least(3, 3600) == windows((1800, FOREVER, 3))


def test_the_sum_of_windows_is_necessary_only() -> None:
    """OCCS-29: a free chunk at every time is not a node that is free throughout: the starts 6 to 11 do not exist."""
    node_a = used((15, FOREVER, 1), avl=1).free_slots(1, 10, 0, FOREVER)
    node_b = used((0, 12, 1), (30, FOREVER, 1), avl=1).free_slots(1, 10, 0, FOREVER)
    assert (node_a + node_b).at_least(1, 10).runs() == ((0, 30),)
    feasible = [
        start
        for start in range(30)
        if min(node_a.values(start, start + 10)) + min(node_b.values(start, start + 10)) > 0
    ]
    assert feasible == [*range(6), *range(12, 21)]


def test_windows_within_others() -> None:
    """A window keeps its values where the other one is open at all."""
    assert windows((0, 10, 3), (12, 20, 5)).within(windows((5, 15, 1))) == windows((5, 10, 3), (12, 15, 5))


def test_runs_and_at_least() -> None:
    """A run goes on while something fits; a higher demand may tear it into runs that are too short."""
    found = windows((0, 10, 3), (10, 14, 1), (14, 18, 2), (30, FOREVER, 1))
    assert found.runs() == ((0, 18), (30, FOREVER))
    assert found.at_least(2, 4) == windows((0, 10, 3), (14, 18, 2))
    assert found.at_least(2, 5) == windows((0, 10, 3))
    assert found.at_least(1, 19) == windows((30, FOREVER, 1))


def test_values() -> None:
    """The values of an interval come in time order, gaps included, and only those of that interval."""
    booked = used((0, 10, 3), (20, 30, 5))
    assert booked.values(5, 25) == (3, 0, 5)
    assert booked.values(10, 20) == (0,)
    assert booked.values(40, FOREVER) == (0,)
    assert free((0, 10, 3)).values(9, 11) == (3, 16)
    assert [booked.value_at(time) for time in (-1, 0, 9, 10, 29, 30)] == [0, 3, 3, 0, 5, 0]


def test_periodic_copies() -> None:
    """OCCS-43: Mondays and Fridays 7 to 11 (epoch 0 is a Thursday), 2018 to 2026: 835 slots, and the right days."""
    week = used((DAY + 7 * HOUR, DAY + 11 * HOUR, 1), (4 * DAY + 7 * HOUR, 4 * DAY + 11 * HOUR, 1), avl=100)
    assert [slot.start for slot in week.slots] == [111600, 370800]
    filled = week.repeated(25, 7 * DAY, 1514764800, int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()))
    assert len(filled.slots) == 835
    assert filled.slots[0] == Slot(1514790000, 1514790000 + 4 * HOUR, 25)
    days = [datetime.fromtimestamp(slot.start, UTC) for slot in filled.slots]
    assert {(day.strftime("%a"), day.hour) for day in days} == {("Mon", 7), ("Fri", 7)}


def test_periodic_copies_are_clipped_and_joined() -> None:
    """Copies are cut at both ends, also before second 0; those that touch become one slot."""
    assert used((1, 4, 1)).repeated(5, 10, -8, 12) == used((-8, -6, 5), (1, 4, 5), (11, 12, 5))
    assert used((0, 10, 1)).repeated(5, 10, -8, 32) == used((-8, 32, 5))
    assert used().repeated(5, 10, 0, 100) == used()
    with pytest.raises(ValueError, match="before FOREVER"):
        used((1, 4, 1)).repeated(5, 10, 0, FOREVER)
    with pytest.raises(ValueError, match="Expected a template within"):
        used((1, 11, 1)).repeated(5, 10, 0, 100)


@pytest.mark.parametrize(
    ("operation", "left", "right"),
    [
        (operator.add, used(), free()),
        (operator.sub, used(), free()),
        (operator.add, free(), free()),
        (operator.sub, free(), free()),
        (operator.add, used(), windows()),
        (operator.add, windows(), used()),
        (operator.and_, windows(), used()),
        (operator.and_, used(), used()),
        (operator.sub, windows(), windows()),
        (UsedVector.min_free, used(), used()),
        (UsedVector.min_free, used(), windows()),
        (WindowVector.within, windows(), used()),
    ],
)
def test_kinds_do_not_mix(operation: Callable[[object, object], object], left: object, right: object) -> None:
    """What has no meaning between two kinds is a type error, not a number."""
    with pytest.raises(TypeError):
        operation(left, right)


def test_kinds_are_never_equal() -> None:
    """An empty FREE vector says the opposite of an empty window, and other amounts are another vector."""
    assert len({free(), windows(), used(), used(avl=17)}) == 4


def test_vectors_are_frozen() -> None:
    """A vector can be shared and hashed, because nothing changes it."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        used().slots = ()  # type: ignore[misc]  # frozen, which is what is tested
    assert len({used((0, 5, 1), (5, 9, 1)), used((0, 9, 1))}) == 1


def test_fewer_items_after_a_defect() -> None:
    """OCCS-45: the same use of fewer items leaves less free, down to nothing, and never lets anything in."""
    booked = dataclasses.replace(used((0, 10, 12)), defect=6)
    assert booked.avl == 10
    assert booked.free_slots(1, 5, 0, 20) == windows((10, 20, 10))
