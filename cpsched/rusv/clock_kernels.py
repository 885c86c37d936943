"""The kernel that lets time pass on a timeline: what was before the new second 0 is gone.

Beside the arrays of a timeline's state (`s`) it takes nothing.
"""

from __future__ import annotations

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels.axis import locate, summarise_block
from cpsched.rusv.kernels.constants import BLOCK, H


@kernel
def pass_time(seconds, s):
    """Make second `seconds` the new second 0.

    No booking ends before it. The bookings that began before it begin at 0 now: the slot there takes over the uses of
    the slots that are gone.
    """
    place, index = locate(seconds, s)
    uses = 0
    for k in range(place + 1):
        block = s.order[k]
        count = s.members[block, BLOCK] if k < place else index
        for m in range(count):
            row = s.members[block, m]
            uses += s.slots[row, 1]
            s.spare[0, s.head[H.SPARE_ROWS]] = row
            s.head[H.SPARE_ROWS] += 1
        if k < place:
            s.spare[1, s.head[H.SPARE_BLOCKS]] = block
            s.head[H.SPARE_BLOCKS] += 1
    s.head[H.BLOCKS] -= place
    if place > 0:
        for k in range(s.head[H.BLOCKS]):
            s.order[k] = s.order[k + place]
    first = s.order[0]
    if index > 0:
        count = s.members[first, BLOCK] - index
        for m in range(count):
            s.members[first, m] = s.members[first, m + index]
        s.members[first, BLOCK] = count
        summarise_block(first, s)
    for k in range(s.head[H.BLOCKS]):
        block = s.order[k]
        for m in range(s.members[block, BLOCK]):
            s.slots[s.members[block, m], 0] -= seconds
    row = s.members[first, 0]
    s.slots[row, 0] = 0
    s.slots[row, 1] += uses
