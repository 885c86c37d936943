"""The naive twin of `tests.oracle.vector`: one value per second, in plain lists.

A list has one entry for each second in `SECONDS`; the last entry stands for that second and for all time after it. So
nothing that is compared has a border after `LAST`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cpsched.rusv import FOREVER
from tests.oracle.vector import Rusv, Slot

#: The seconds that are looked at, the last one for all that come after.
FIRST, LAST = -4, 36
SECONDS = range(FIRST, LAST + 1)


def dense(vector: Rusv) -> list[int]:
    """Return the value of a vector in each second."""
    values = [vector.gap] * len(SECONDS)
    for slot in vector.slots:
        for second in range(slot.start, min(slot.end, LAST + 1)):
            values[second - FIRST] = slot.items
    return values


def stretches(values: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield each longest stretch of one value as (first index, index after the last, value)."""
    start = 0
    for index in range(1, len(values) + 1):
        if index == len(values) or values[index] != values[start]:
            yield start, index, values[start]
            start = index


def slots_of(values: list[int], gap: int) -> tuple[Slot, ...]:
    """Return the stretches that say more than `gap`, as slots."""
    return tuple(
        Slot(FIRST + start, FOREVER if end == len(values) else FIRST + end, value)
        for start, end, value in stretches(values)
        if value != gap
    )


def join(values: list[int], gap: int, min_dist: int) -> list[int]:
    """Fill each hole of less than `min_dist` seconds between two stretches of one value (OCCS-4)."""
    joined = list(values)
    for start, end, value in stretches(values):
        has_two_sides = start > 0 and end < len(values)
        if value == gap and has_two_sides and values[start - 1] == values[end] and end - start < min_dist:
            joined[start:end] = [values[end]] * (end - start)
    return joined


def combine(first: list[int], second: list[int], operation: Callable[[int, int], int]) -> list[int]:
    """Return the operation's result, second by second."""
    return [operation(here, there) for here, there in zip(first, second, strict=True)]


def windows(free: list[int], amount: int, duration: int, start: int, end: int) -> list[int]:
    """Return how many times `amount` is free, in the seconds of ``[start, end)`` within long enough runs (OCCS-11)."""
    multiples = [
        (1 if amount == 0 else max(value, 0) // amount) if start <= second < end else 0
        for second, value in zip(SECONDS, free, strict=True)
    ]
    return long_runs(multiples, 1, duration)


def long_runs(values: list[int], least: int, duration: int) -> list[int]:
    """Return the values with 0 wherever they are not at least `least` for `duration` seconds around that second."""
    kept = [0] * len(values)
    for start, end, is_enough in stretches([int(value >= least) for value in values]):
        if is_enough and (end == len(values) or end - start >= duration):
            kept[start:end] = values[start:end]
    return kept
