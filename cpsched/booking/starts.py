"""When the steps of a job begin: the earliest starts that its steps, their holds and its windows leave (EVO-8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from cpsched.booking.shapes import Shape
from cpsched.rusv import Timeline

__all__ = ["earliest_starts", "latest_starts"]


def earliest_starts(
    timeline: Timeline, shape: Shape, *, earliest: int, latest: int, end_by: int, is_held: bool
) -> tuple[int, ...] | None:
    """Return the starts of all steps in the schedule in which each begins as early as in any, the first one excepted;
    None if there is none.

    All conditions of the shape hold in it. To hold the first step is to delay it, so that it begins as late as the
    second one allows.

    Parameters
    ----------
    earliest, latest
        When the first step may begin.
    end_by
        When the last one must have ended.
    is_held
        Whether steps may be held for as long as the shape allows; else each follows the one before at once.

    Notes
    -----
    The algorithm of Klein and Pérez (EVO-8) as bounds that only rise. A step begins no earlier than the one before
    ends, and no earlier than its own longest hold before the next one begins; and if too little is free of what a
    window needs, from its earliest begin to its earliest end, it begins after the last moment at which that is so. What
    is ruled out holds in every schedule, and when nothing more is ruled out the bounds are a schedule themselves: no
    other one completes earlier. With windows that reach over several steps, it knows of nodes what the original knows
    of numbers.
    """
    durations = shape.durations
    longest = shape.longest if is_held else durations
    starts = [earliest + before for before in accumulate(durations[:-1], initial=0)]
    has_risen = True
    while has_risen:
        has_risen = False
        for condition in shape.conditions:
            first, last = condition.first, condition.last
            least = sum(durations[first : last + 1])
            fit = timeline.earliest_fit(condition.demand, earliest=starts[first], latest=end_by - least, duration=least)
            if fit is None:
                return None
            start = fit.start
            end = starts[last + 1] if last + 1 < len(starts) else starts[last] + durations[last]
            if start == starts[first] and end > start + least:
                start = timeline.free_from(condition.demand, start, end)
            if start > starts[first]:
                has_risen = True
                starts[first] = start
                _raise_all(starts, durations, longest)
                if starts[0] > latest or starts[-1] + durations[-1] > end_by:
                    return None
    if len(starts) > 1:
        starts[0] = max(starts[0], min(latest, starts[1] - durations[0]))
    return tuple(starts)


def _raise_all(starts: list[int], durations: Sequence[int], longest: Sequence[int]) -> None:
    """Raise starts to what those of their neighbours leave them."""
    for step in range(len(starts) - 1):
        starts[step + 1] = max(starts[step + 1], starts[step] + durations[step])
    for step in reversed(range(len(starts) - 1)):
        starts[step] = max(starts[step], starts[step + 1] - longest[step])


def latest_starts(timeline: Timeline, shape: Shape, starts: Sequence[int], *, latest: int) -> tuple[int, ...]:
    """Return starts that end when the given ones do, with the first step as late as in any such schedule (EVO-9).

    What is between the begin of a job and its end, less its walltime, is wasted: so this wastes least time.
    """
    end = starts[-1] + shape.durations[-1]
    low, high = starts[0], min(latest, end - sum(shape.durations))
    found = tuple(starts)
    while low < high:
        middle = (low + high + 1) // 2
        later = earliest_starts(timeline, shape, earliest=middle, latest=latest, end_by=end, is_held=True)
        if later is None:
            high = middle - 1
        else:
            low, found = later[0], later
    return found
