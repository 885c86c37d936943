"""The fastest way for a malleable job to do its work on the nodes that it has, beside all that is booked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cpsched.domain import Mode
from cpsched.rusv import Booking, Timeline


def fastest_changes(
    timeline: Timeline, start: int, work: Fraction | int, modes: Sequence[Mode], bookings: Sequence[Booking | None]
) -> list[tuple[int, int]] | None:
    """Return the changes of mode (`stretches_of`) with which a job that starts at `start` ends earliest: in each second
    the fastest of its modes whose amounts are free then. None if in some second none of them is.

    `timeline`: without the job. `start`: second of the timeline, also of the changes. `work`, `modes`: the job's work,
    in seconds at full share, and its modes. `bookings`: what it holds in each of its modes, at any time; None for a
    mode in which it may not have these nodes.
    """
    allowed = {mode: booking for mode, booking in enumerate(bookings) if booking is not None}
    times, found = timeline.free_slots(start, list(allowed.values()))
    is_free = dict(zip(allowed, found, strict=True))
    by_speed = sorted(allowed, key=lambda mode: (-modes[mode].rate, mode))
    changes: list[tuple[int, int]] = []
    left = Fraction(work)
    for place, time in enumerate(times.tolist()):
        mode = next((mode for mode in by_speed if is_free[mode][place]), None)
        if mode is None:
            return None
        if not changes or changes[-1][1] != mode:
            changes.append((time, mode))
        if place + 1 < len(times):
            left -= modes[mode].rate * int(times[place + 1] - time)
        if left <= 0:
            break
    return changes
