"""Resource usage vectors as values: how much of a resource is used or free, or how often a request fits, over all time.

The algebra of OpenCCS (Keller, JSSPP 2017), OCCS-1 to 11: a vector is a step function, kept as the slots where it says
something; everywhere else, in its gaps, it says "completely free" (or, for windows, "not possible"). The three kinds
are three types, so that mixing them wrongly is a `TypeError`:

========================  ==========================  ==========  ===========================
type                      items of a slot             a gap says  slots that are dropped
========================  ==========================  ==========  ===========================
`UsedVector`              amount in use               0           ``items <= 0``
`FreeVector`              amount that is free         ``avl``     ``items >= avl``
`WindowVector`            how often a request fits    0           ``items <= 0``
========================  ==========================  ==========  ===========================

Vectors are frozen and always in normal form: two that mean the same compare equal. Every operation is one `merge` of
two step functions, followed by one `normal_form`. Times are whole seconds, intervals are half-open, and `FOREVER` ends
what has no end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

from cpsched.rusv import FOREVER

__all__ = [
    "AmountVector",
    "FreeVector",
    "Rusv",
    "Slot",
    "UsedVector",
    "WindowVector",
    "merge",
    "normal_form",
]


@dataclass(frozen=True, slots=True)
class Slot:
    """A constant amount over the seconds ``[start, end)`` (OpenCCS, Keller, JSSPP 2017; OCCS-1).

    Raises
    ------
    ValueError
        If the interval is empty or ends after `FOREVER`.
    """

    start: int
    #: Excluded; `FOREVER` if the slot is open ended.
    end: int
    items: int

    def __post_init__(self) -> None:
        if not self.start < self.end <= FOREVER:
            raise ValueError(f"Expected start < end <= FOREVER, got [{self.start}, {self.end})")

    def to_closed(self) -> tuple[int, int, int]:
        """Return ``(start, stop, items)`` as the paper prints it: `stop` is included, and 0 means open ended.

        Raises
        ------
        ValueError
            If the last second is second 0, which that notation cannot tell from an open end.
        """
        if self.end == FOREVER:
            return self.start, 0, self.items
        if self.end == 1:
            raise ValueError(f"Expected an end other than 1 (stop 0 means open ended), got [{self.start}, 1)")
        return self.start, self.end - 1, self.items

    @classmethod
    def from_closed(cls, start: int, stop: int, items: int) -> Slot:
        """Return the slot that the paper prints as ``(start, stop, items)``; the inverse of `to_closed`."""
        return cls(start, FOREVER if stop == 0 else stop + 1, items)


def merge(
    first: Sequence[Slot], second: Sequence[Slot], combine: Callable[[int, int], int], *, gaps: tuple[int, int]
) -> tuple[Slot, ...]:
    """Combine two step functions point by point.

    Both are cut at each other's borders (the rule behind all cases of OCCS-7); `combine` computes the value of each
    piece.

    Parameters
    ----------
    first, second
        Slots in time order, without overlap.
    combine
        Takes the value of the first and of the second function on a piece.
    gaps
        The values of the two functions outside their slots.

    Returns
    -------
    tuple of Slot
        All pieces from the first border to the last, not in normal form; beyond them both functions are in a gap.
    """
    borders = sorted({border for slot in (*first, *second) for border in (slot.start, slot.end)})
    pieces = zip(pairwise(borders), _sampled(first, borders, gaps[0]), _sampled(second, borders, gaps[1]), strict=True)
    return tuple(Slot(start, end, combine(here, there)) for (start, end), here, there in pieces)


def _sampled(slots: Sequence[Slot], borders: Sequence[int], gap: int) -> Iterator[int]:
    """Yield the value of a step function on each piece between two neighbours in `borders`."""
    remaining = iter(slots)
    slot = next(remaining, None)
    for start in borders[:-1]:
        while slot is not None and slot.end <= start:
            slot = next(remaining, None)
        yield slot.items if slot is not None and slot.start <= start else gap


def normal_form(slots: Iterable[Slot], *, is_stored: Callable[[int], bool], min_dist: int) -> tuple[Slot, ...]:
    """Return the canonical slots of a step function (OCCS-4).

    Parameters
    ----------
    slots
        In time order, without overlap.
    is_stored
        Returns whether items differ from the value of a gap; all other slots are dropped.
    min_dist
        Neighbours with equal items are joined if at most ``min_dist - 1`` seconds lie between them.

    Raises
    ------
    ValueError
        If the slots are out of order or overlap.
    """
    joined: list[Slot] = []
    last_end = None
    for slot in slots:
        if last_end is not None and slot.start < last_end:
            raise ValueError(
                f"Expected slots in time order without overlap, got {slot} after one that ends at {last_end}"
            )
        last_end = slot.end
        if not is_stored(slot.items):
            continue
        if joined and joined[-1].items == slot.items and slot.start - joined[-1].end < min_dist:
            joined[-1] = replace(joined[-1], end=slot.end)
        else:
            joined.append(slot)
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Rusv(ABC):
    """The common part of the three kinds of vectors: a step function in normal form (OCCS-2, OCCS-3)."""

    #: In time order, without overlap, in normal form; given in any cut, they are brought into it.
    slots: tuple[Slot, ...] = ()

    @property
    @abstractmethod
    def gap(self) -> int:
        """The value at all times that no slot covers."""

    @abstractmethod
    def _is_stored(self, items: int) -> bool:
        """Return whether these items differ from the value of a gap."""

    def _settle(self, min_dist: int) -> None:
        """Bring the slots into normal form; called once, at the end of construction."""
        object.__setattr__(self, "slots", normal_form(self.slots, is_stored=self._is_stored, min_dist=min_dist))

    def value_at(self, time: int) -> int:
        """Return the value in the second that begins at `time`."""
        return next((slot.items for slot in self.slots if slot.start <= time < slot.end), self.gap)

    def values(self, start: int, end: int) -> tuple[int, ...]:
        """Return the values that the vector takes in ``[start, end)``, gaps included, in time order.

        The smallest of them is the window minimum by which a start is checked (OCCS-29).
        """
        pieces = merge(self.slots, (Slot(start, end, 0),), lambda here, _: here, gaps=(self.gap, 0))
        return tuple(piece.items for piece in pieces if start <= piece.start < end)


@dataclass(frozen=True, slots=True)
class AmountVector(Rusv):
    """A vector that counts the items of a resource: `UsedVector` or `FreeVector`.

    Results of the operators have the amounts and `min_dist` of the left operand.

    Raises
    ------
    ValueError
        If `defect` is not in ``[0, max_avl]``, or `min_dist` is not positive.
    """

    #: The installed amount.
    max_avl: int = field(kw_only=True)
    #: The part of it that cannot be used now.
    defect: int = field(default=0, kw_only=True)
    #: Equal neighbours less than this many seconds apart are one slot; the time between counts as busy as they are.
    min_dist: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 <= self.defect <= self.max_avl:
            raise ValueError(f"Expected 0 <= defect <= max_avl, got defect {self.defect}, max_avl {self.max_avl}")
        if self.min_dist < 1:
            raise ValueError(f"Expected min_dist >= 1 s, got {self.min_dist}")
        self._settle(self.min_dist)

    @property
    def avl(self) -> int:
        """The items that can be used now: the installed amount less the defect part."""
        return self.max_avl - self.defect

    def increment(self, slot: Slot, *, strict: bool = False) -> Self:
        """Return the vector with `slot.items` more during the slot (R ⊕ s, OCCS-5).

        Parameters
        ----------
        slot
            With items >= 0.
        strict
            For a `FreeVector`: refuse to return more than was taken. Otherwise the excess over `avl` is cut off.

        Raises
        ------
        ValueError
            If the slot's items are negative, or if `strict` is violated.
        """
        return self._changed((_checked(slot),), 1, strict=strict)

    def decrement(self, slot: Slot, *, strict: bool = False) -> Self:
        """Return the vector with `slot.items` less during the slot (R ⊖ s, OCCS-6).

        A `FreeVector` may fall below 0: more is in use than is allowed. A `UsedVector` never falls below 0.

        Parameters
        ----------
        slot
            With items >= 0.
        strict
            For a `UsedVector`: refuse to revoke more than is booked (a double revoke). Otherwise an amount below 0
            is cut off.

        Raises
        ------
        ValueError
            If the slot's items are negative, or if `strict` is violated.
        """
        return self._changed((_checked(slot),), -1, strict=strict)

    def __add__(self, other: UsedVector) -> Self:
        """Increment by all slots of a `UsedVector` at once (OCCS-8).

        With ``min_dist`` 1 that is the paper's fold of ⊕ over the slots; with more, it joins once, at the end, and so
        counts less as busy that is not.
        """
        return self._changed(other.slots, 1) if isinstance(other, UsedVector) else NotImplemented

    def __sub__(self, other: UsedVector) -> Self:
        """Decrement by all slots of a `UsedVector` at once: usage less usage, or a limit less its use (OCCS-8)."""
        return self._changed(other.slots, -1) if isinstance(other, UsedVector) else NotImplemented

    def _changed(self, slots: tuple[Slot, ...], sign: int, *, strict: bool = False) -> Self:
        """Return the vector with `sign` times the items of `slots` added."""
        pieces = merge(self.slots, slots, lambda here, there: here + sign * there, gaps=(self.gap, 0))
        if strict:
            for piece in pieces:
                if piece.items != self.gap and not self._is_stored(piece.items):
                    raise ValueError(
                        f"Expected to give back no more than was taken, got {piece} where {self.gap} is all free"
                    )
        return replace(self, slots=pieces)

    def repeated(self, items: int, period: int, start: int, end: int) -> Self:
        """Return copies of this template, one per period, with `items` in each slot (cronToRUSV, OCCS-43).

        Parameters
        ----------
        items
            The items of every slot of the result.
        period
            Seconds; copy k is shifted by ``k * period``.
        start, end
            The copies fill ``[start, end)`` and are clipped to it.

        Raises
        ------
        ValueError
            If the template reaches out of ``[0, period)``, or `end` is `FOREVER`.
        """
        if end >= FOREVER:
            raise ValueError("Expected an end before FOREVER: a repetition without end has no finite vector")
        if self.slots and not 0 <= self.slots[0].start < self.slots[-1].end <= period:
            raise ValueError(f"Expected a template within [0, {period}), got {self.slots}")
        copies = [
            (max(start, slot.start + offset), min(end, slot.end + offset))
            for offset in range(start // period * period, end, period)
            for slot in self.slots
        ]
        return replace(self, slots=tuple(Slot(first, last, items) for first, last in copies if first < last))


@dataclass(frozen=True, slots=True)
class UsedVector(AmountVector):
    """The used amount of a resource; 0 in a gap. Items may exceed `avl` (running jobs on defect parts)."""

    @property
    def gap(self) -> int:
        """Nothing is in use where there is no slot."""
        return 0

    def _is_stored(self, items: int) -> bool:
        return items > 0

    def to_free(self) -> FreeVector:
        """Return the free amounts for this usage; the inverse of `FreeVector.to_used`."""
        slots = tuple(replace(slot, items=self.avl - slot.items) for slot in self.slots)
        return FreeVector(slots, max_avl=self.max_avl, defect=self.defect, min_dist=self.min_dist)

    def min_free(self, limit: FreeVector) -> UsedVector:
        """Merge a limit into the usage: the result leaves free only what both leave free (mf, OCCS-9).

        In the limit's slots ``used = max(used, avl - limit)``, where a limit below 0 counts as 0; outside them nothing
        changes: no limit holds there. (The paper prints R2 as the first argument of that maximum; R1 is meant.)

        Raises
        ------
        TypeError
            If `limit` is no `FreeVector`.
        """
        if not isinstance(limit, FreeVector):
            raise TypeError(f"Expected a FreeVector as limit, got {type(limit).__name__}")
        pieces = merge(
            self.slots, limit.slots, lambda used, free: max(used, self.avl - max(free, 0)), gaps=(0, self.avl)
        )
        return replace(self, slots=pieces)

    def free_slots(self, amount: int, duration: int, start: int, end: int) -> WindowVector:
        """Return where and how often `amount` is free; see `FreeVector.free_slots`."""
        return self.to_free().free_slots(amount, duration, start, end)


@dataclass(frozen=True, slots=True)
class FreeVector(AmountVector):
    """The free amount of a resource; in a gap all of `avl` is free. Items below 0 are the excess over a limit."""

    @property
    def gap(self) -> int:
        """All that is available is free where there is no slot."""
        return self.avl

    def _is_stored(self, items: int) -> bool:
        return items < self.avl

    def to_used(self) -> UsedVector:
        """Return the usage for these free amounts; the inverse of `UsedVector.to_free`."""
        slots = tuple(replace(slot, items=self.avl - slot.items) for slot in self.slots)
        return UsedVector(slots, max_avl=self.max_avl, defect=self.defect, min_dist=self.min_dist)

    def free_slots(self, amount: int, duration: int, start: int, end: int) -> WindowVector:
        """Return the runs inside ``[start, end)`` in which `amount` is free for `duration` or longer.

        This is getFreeSlots of the paper (OCCS-11).

        Parameters
        ----------
        amount
            Items asked for, >= 0; 0 fits once at any time.
        duration
            Seconds, positive; tested against the length of a whole run, not of each of its slots.
        start, end
            The search interval; `end` may be `FOREVER`.

        Returns
        -------
        WindowVector
            How many times `amount` is free, at each time of such a run.

        Raises
        ------
        ValueError
            If `amount` is negative or `duration` not positive.
        """
        if amount < 0 or duration < 1:
            raise ValueError(f"Expected amount >= 0 and duration >= 1 s, got {amount} and {duration}")
        if start >= end:
            return WindowVector()
        pieces = merge(
            self.slots,
            (Slot(start, end, 1),),
            lambda free, inside: inside * (free // amount if amount else 1),
            gaps=(self.avl, 0),
        )
        return WindowVector(pieces).at_least(1, duration)


@dataclass(frozen=True, slots=True)
class WindowVector(Rusv):
    """How often a request fits (or how many of its chunks do); in a gap it does not.

    Slots are joined only if they touch: to join over a gap would make the window larger than it is (OCCS-4).
    """

    def __post_init__(self) -> None:
        self._settle(min_dist=1)

    @property
    def gap(self) -> int:
        """Nothing fits where there is no slot."""
        return 0

    def _is_stored(self, items: int) -> bool:
        return items > 0

    def __and__(self, other: WindowVector) -> WindowVector:
        """Return the smaller value at each time (R1 ∩ R2, OCCS-10).

        A run may get shorter than the duration asked for: filter by `at_least` again (OCCS-23).
        """
        return self._with(other, min) if isinstance(other, WindowVector) else NotImplemented

    def __add__(self, other: WindowVector) -> WindowVector:
        """Return the sum at each time: the chunks that fit on two nodes together (FCJ, OCCS-28)."""
        return (
            self._with(other, lambda here, there: here + there) if isinstance(other, WindowVector) else NotImplemented
        )

    def within(self, other: WindowVector) -> WindowVector:
        """Return this vector where `other` has a window, and 0 elsewhere.

        Raises
        ------
        TypeError
            If `other` is no `WindowVector`.
        """
        if not isinstance(other, WindowVector):
            raise TypeError(f"Expected a WindowVector, got {type(other).__name__}")
        return self._with(other, lambda here, there: here if there else 0)

    def _with(self, other: WindowVector, combine: Callable[[int, int], int]) -> WindowVector:
        return WindowVector(merge(self.slots, other.slots, combine, gaps=(0, 0)))

    def capped(self, most: int) -> WindowVector:
        """Return the vector with no value above `most` (one chunk per node: scatter, OCCS-28)."""
        return WindowVector(tuple(replace(slot, items=min(slot.items, most)) for slot in self.slots))

    def runs(self) -> tuple[tuple[int, int], ...]:
        """Return the longest intervals ``[start, end)`` without a gap, in time order."""
        return tuple((slot.start, slot.end) for slot in self.capped(1).slots)

    def at_least(self, items: int, duration: int) -> WindowVector:
        """Return the runs in which the value is `items` or more for `duration` seconds or longer (OCCS-11, OCCS-28)."""
        high_enough = WindowVector(tuple(slot for slot in self.slots if slot.items >= items))
        long_enough = [Slot(start, end, 1) for start, end in high_enough.runs() if end - start >= duration]
        return high_enough.within(WindowVector(tuple(long_enough)))


def _checked(slot: Slot) -> Slot:
    """Return a slot that can be booked or revoked; raise `ValueError` on negative items."""
    if slot.items < 0:
        raise ValueError(f"Expected items >= 0, got {slot}")
    return slot
