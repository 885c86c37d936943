"""What is free beside the tasks that stay: units that fit, and the first second from which a part fits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpsched.cp.encoding import Alternative, Part
from cpsched.cp.neighbourhoods.occupation import Free
from cpsched.cp.neighbourhoods.restriction import first_fit
from cpsched.problem import Column

CORES: Column = ("ncpus", None)
MEMORY: Column = ("mem", None)


@st.composite
def sites_in_time(draw: st.DrawFn) -> tuple[Free, Part]:
    """Draw what is free of some sites in time, a site without memory among them, and a part that could be on some."""
    count, slots = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(1, 4), min_size=slots - 1, max_size=slots - 1))
    times = np.cumsum([0, *lengths])
    cores = draw(st.lists(st.lists(st.integers(-1, 6), min_size=slots, max_size=slots), min_size=count, max_size=count))
    memory = [[draw(st.integers(0, 4))] * slots for _ in range(count - 1)] + [[-1] * slots]
    amounts = {CORES: np.array(cores, np.int64), MEMORY: np.array(memory, np.int64)}
    each = draw(st.integers(1, 3))
    alternatives = []
    for site in range(count):
        takes = {CORES: each, MEMORY: draw(st.integers(1, 2))} if site < count - 1 else {CORES: each}
        alternatives.append(Alternative(site, draw(st.integers(1, 3)), (takes,)))
    return Free(times, amounts), Part((((0, 1),),), draw(st.integers(1, 4)), tuple(alternatives))


def naive_units(free: Free, alternative: Alternative, second: int) -> int:
    """Return how many units of a part fit on a site at a second."""
    slot = max(place for place, time in enumerate(free.times.tolist()) if time <= second)
    fitting = (int(free.amounts[column][alternative.site, slot]) // n for column, n in alternative.takes[0].items())
    return max(0, min(alternative.most, *fitting))


@given(sites_in_time(), st.integers(0, 12), st.integers(0, 12), st.integers(1, 6))
def test_a_part_fits_first_where_a_look_at_each_second_says(
    case: tuple[Free, Part], earliest: int, more: int, seconds: int
) -> None:
    """The first second from which all units fit, each on one site for the whole time; later than `latest` if none."""
    free, part = case
    latest = earliest + more

    def fits(start: int) -> bool:
        units = (
            min(naive_units(free, alternative, second) for second in range(start, start + seconds))
            for alternative in part.alternatives
        )
        return sum(units) >= part.need

    expected = next((start for start in range(earliest, latest + 1) if fits(start)), latest + 1)
    assert first_fit(free, part, earliest, latest, seconds) == expected


@given(sites_in_time(), st.data())
def test_units_in_a_stretch_of_time_are_those_of_its_slots(case: tuple[Free, Part], data: st.DataObject) -> None:
    """Only the slots that are asked for are looked at, and no number is below 0."""
    free, part = case
    first = data.draw(st.integers(0, len(free.times) - 1))
    last = data.draw(st.integers(first, len(free.times)))
    found = free.units(part.alternatives, [a.takes[0] for a in part.alternatives], (first, last))
    times = free.times[first:last].tolist()
    assert found.tolist() == [[naive_units(free, a, time) for time in times] for a in part.alternatives]
