"""Booking amounts that are set aside: as far as nobody has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cpsched.booking.columns import Columns
from cpsched.domain import FOR_EVER, SetAside
from cpsched.rusv import FOREVER, Booking, Timeline


def amounts_aside(aside: SetAside, columns: Columns) -> tuple[dict[int, int], dict[int, int]]:
    """Return the amounts that are set aside, of node columns and of system columns."""
    return columns.amounts_of(aside.allocation), columns.licenses_of(aside.licenses)


def book_asides(timeline: Timeline, asides: Sequence[SetAside], columns: Columns, now: int) -> None:
    """Book all amounts that are set aside from `now` on, second 0 of the timeline; where less is free, what is.

    A site's rules set the same few amounts aside many hundred times; each is looked up once.
    """
    coming = [aside for aside in asides if aside.end > max(now, aside.start)]
    if not coming:
        return
    keys = [(id(aside.allocation), id(aside.licenses)) for aside in coming]
    distinct = dict(zip(keys, coming, strict=True))
    amounts = [amounts_aside(aside, columns) for aside in distinct.values()]
    number = {key: place for place, key in enumerate(distinct)}
    starts = np.array([aside.start for aside in coming]) - now
    ends = np.array([aside.end for aside in coming]) - now
    numbers = np.array([number[key] for key in keys])
    spans = np.column_stack([np.maximum(starts, 0), np.where(ends < FOR_EVER, ends, FOREVER), numbers])
    spans = spans[np.lexsort(spans.T[::-1])]
    for index in timeline.book_all(spans, amounts):
        start, end, which = spans[index].tolist()
        booked_remainder(timeline, start, end, *amounts[which])


def booked_remainder(
    timeline: Timeline, start: int, end: int, amounts: Mapping[int, int], sums: Mapping[int, int]
) -> tuple[list[Booking], bool]:
    """Book amounts in ``[start, end)``; where less is free, what is.

    `timeline`: the timeline, on which the bookings are made. `amounts`, `sums`: what is to be booked of node columns
    and of system columns. Returns the bookings, and whether less was free at some second.
    """
    whole = timeline.booking(
        start, end, *({at: some for at, some in one.items() if some > 0} for one in (amounts, sums))
    )
    if timeline.is_free(whole):
        timeline.book(whole)
        return [whole], False

    def is_short(first: int, last: int) -> bool:
        free, left = timeline.least_free(first, last)
        return any(free[column] < amount for column, amount in amounts.items()) or any(
            left[column] < amount for column, amount in sums.items()
        )

    breaks, has_less = [start, end], is_short(start, end)
    if has_less:
        breaks = sorted({*breaks, *(time for time in timeline.breakpoints().tolist() if start < time < end)})
    bookings = []
    for first, last in pairwise(breaks):
        free, left = timeline.least_free(first, last)
        mine = {column: some for column, amount in amounts.items() if (some := min(amount, int(free[column]))) > 0}
        loans = {column: some for column, amount in sums.items() if (some := min(amount, int(left[column]))) > 0}
        bookings.append(timeline.booking(first, last, mine, loans))
        timeline.book(bookings[-1])
    return bookings, has_less
