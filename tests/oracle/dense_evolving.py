"""The naive twin of evolution profiles and of fitting them: one value per second, and every schedule tried."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from cpsched.rusv import Profile

Steps = Sequence[tuple[int, int]]


def dense(steps: Steps, seconds: int) -> list[int]:
    """Return the value in each of the first seconds."""
    values = [amount for duration, amount in steps for _ in range(duration)]
    return (values + [0] * seconds)[:seconds]


def profile_of(values: Sequence[int]) -> Profile:
    """Return the profile that has these values, second by second."""
    return Profile(tuple((1, value) for value in values))


def best_schedule(
    steps: Steps, busy: Steps, capacity: int, longest: Sequence[int], earliest: int = 0
) -> tuple[int, int]:
    """Try all schedules: return the earliest completion, and the latest start with that completion."""
    horizon = max(earliest, sum(duration for duration, _ in busy)) + sum(duration for duration, _ in steps)
    taken = dense(busy, horizon)

    @cache
    def completion(place: int, start: int) -> int | None:
        """Return the earliest completion if this step begins then, None if it cannot."""
        duration, amount = steps[place]
        if start + duration > horizon or any(
            taken[second] + amount > capacity for second in range(start, start + duration)
        ):
            return None
        if place + 1 == len(steps):
            return start + duration
        found = []
        for end in range(start + duration, min(start + longest[place], horizon) + 1):
            if end > start + duration and taken[end - 1] + amount > capacity:
                break
            found.append(completion(place + 1, end))
        return min((end for end in found if end is not None), default=None)

    ends = {start: end for start in range(earliest, horizon) if (end := completion(0, start)) is not None}
    best = min(ends.values())
    return best, max(start for start, end in ends.items() if end == best)


def fit_literally(
    steps: Steps, busy: Profile, capacity: int, longest: Sequence[int], place: int = 0, at: int = 0
) -> tuple[int, list[int] | None]:
    """Return the paper's recursion as it is printed, its misprints repaired (EVO-8): a time, and the starts from there.

    Without starts, the time is the earliest one left to the step before. `at` is where that step ends if not held.
    """
    if place == len(steps):
        return at, []
    duration, amount = steps[place]
    start = at
    while True:
        if capacity - busy.max(start, start + duration) < amount:
            start = busy.loc(start, start + duration)
            continue
        if place > 0:
            before, held = steps[place - 1]
            earliest = start - longest[place - 1]
            if earliest > at - before:
                return earliest, None
            if capacity - busy.max(at, start) < held:
                return busy.loc(at, start), None
        tail, starts = fit_literally(steps, busy, capacity, longest, place + 1, start + duration)
        if starts is None:
            start = tail
        elif place > 0:
            return start, [start, *starts]
        else:
            return tail - duration, [tail - duration, *starts]


def area_of(profile: Profile) -> int:
    """Return amount times seconds of a profile, over all time."""
    return sum(duration * amount for duration, amount in profile.steps)
