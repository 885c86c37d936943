"""What starts cost: the kernels of the columns ``RATE``, ``LEVEL`` and ``FIRST_KINK``."""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels.constants import FIRST_KINK, FOREVER, LEVEL, RATE


@kernel
def cost_of(row, start, costs):
    """Return the cost of a start: a constant, a price per second, and a further price per second beyond each kink."""
    cost = costs[row, LEVEL] + costs[row, RATE] * start
    for k in range(FIRST_KINK, costs.shape[1], 2):
        cost += costs[row, k] * max(0.0, start - costs[row, k + 1])
    return cost


@kernel
def latest_for(row, room, costs):
    """Return the latest start that costs no more than `room` (-1 if there is none)."""
    room -= costs[row, LEVEL]
    if room < 0.0:
        return -1
    rate, at = costs[row, RATE], 0.0
    for k in range(FIRST_KINK, costs.shape[1], 2):
        until = max(at, costs[row, k + 1])
        if rate * (until - at) > room:
            break
        room -= rate * (until - at)
        rate += costs[row, k]
        at = until
    return int(min(at + room / rate + 1e-6, 1e17)) if rate > 0.0 else FOREVER
