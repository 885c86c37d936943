"""How long the plan must last at least: the longest job, and the area of all jobs on each surrogate."""

from __future__ import annotations

import numpy as np

from cpsched.cp.bounds.surrogates import Ints, Profile
from cpsched.cp.bounds.tasks import Relaxation

#: Earliest starts from which on the area of what is left is looked at.
_MOST_HEADS = 32


def shortest_makespan(relaxation: Relaxation) -> int:
    """Return seconds from now before which not all tasks can have ended, by area.

    What starts at `head` or later has its whole area after it, for each of some heads: the capacity from there on must
    hold it.
    """
    tasks = relaxation.tasks
    heads = np.unique(tasks.earliest)
    heads = heads[:: max(1, -(-len(heads) // _MOST_HEADS))]
    longest = 0
    for row, profile in enumerate(relaxation.profiles):
        areas = tasks.usage[tasks.kinds, row] * tasks.durations * tasks.counts
        for head in heads:
            area = int(areas[tasks.earliest >= head].sum())
            if area:
                longest = max(longest, _first_second(profile, area + int(profile.area(np.array([head]))[0])))
    return longest


def _first_second(profile: Profile, area: int) -> int:
    """Return the first whole second until which the capacity times time is at least `area`; 0 if it never is."""
    reached: Ints = profile.area(profile.times)
    piece = int(np.searchsorted(reached, area, side="left")) - 1
    amount = int(profile.amounts[piece])
    if not amount:
        return 0
    return int(profile.times[piece]) + -(-(area - int(reached[piece])) // amount)
