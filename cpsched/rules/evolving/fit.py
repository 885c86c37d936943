"""The earliest completion of a sequence of steps beside what is busy (Klein and Pérez, algorithm 2; EVO-8)."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.rusv import Profile


def fit(
    steps: Sequence[tuple[int, int]], busy: Profile, capacity: int, *, longest: Sequence[int], earliest: int = 0
) -> tuple[int, ...]:
    """Return the starts of all steps of an application in a schedule that completes as early as any (EVO-2, EVO-5).

    Each step but the last may be held until the next one begins; to hold the first one is to delay it. Raises
    `ValueError` if a step asks for more than there is.

    `steps`: ``(duration, amount)`` of each, at least one; durations are positive. `busy`: the amounts that others hold,
    never more than `capacity`. `longest`: the most seconds that each step may be held, not less than its duration;
    `FOREVER`: no limit. `earliest`: the earliest begin of the first step.

    Notes
    -----
    The paper's recursion as a loop, with its misprints repaired (the previous step counts from the second step on, in
    both places; a failure returns the earliest start that is left to the previous step). Whether a step fails depends
    on its own start alone, so a start that was given up is never tried again: this keeps the work polynomial, and
    changes no result.
    """
    if any(amount > capacity for _, amount in steps):
        raise ValueError(f"Expected steps of at most {capacity}, got {max(amount for _, amount in steps)}")
    tried = [earliest] * len(steps)
    starts: list[int] = []
    while (place := len(starts)) < len(steps):
        duration, amount = steps[place]
        start = tried[place]
        while capacity - busy.max(start, start + duration) < amount:
            start = busy.loc(start, start + duration)
        tried[place] = start
        retry = _retry_of_previous(steps, busy, capacity, longest, starts, start) if place else None
        if retry is not None:
            starts.pop()
            tried[place - 1] = retry
            continue
        starts.append(start)
        if place + 1 < len(steps):
            tried[place + 1] = max(tried[place + 1], start + duration)
    if len(steps) > 1:
        starts[0] = starts[1] - steps[0][0]
    return tuple(starts)


def _retry_of_previous(
    steps: Sequence[tuple[int, int]],
    busy: Profile,
    capacity: int,
    longest: Sequence[int],
    starts: Sequence[int],
    start: int,
) -> int | None:
    """Return the earliest start that is left to the previous step if it cannot be held until `start`, else None."""
    previous = len(starts) - 1
    duration, amount = steps[previous]
    if starts[-1] + longest[previous] < start:
        return start - longest[previous]
    end = starts[-1] + duration
    if capacity - busy.max(end, start) < amount:
        return busy.loc(end, start)
    return None
