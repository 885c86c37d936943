"""Whole nodes of one kind, compiled: they are only counted.

A job is given by its `pieces`, without holes and in time order. No piece is held longer than it asks for (the noX of
Klein and Pérez, EVO-11), so that the start of a job determines its place.

The nodes in use form a profile, a step function: ``times[i]`` ascends from 0 on, and ``used[i]`` nodes are held in
``[times[i], times[i + 1])``. The last entry of `used` is 0 and has no end. ``size[0]`` counts the breakpoints: 0, the
ends of running jobs, and the times at which a piece begins or ends. The arrays have room for all of these.
"""

from cpsched.rusv import NOWHERE, inner_kernel, kernel, kernels
from cpsched.search.arrays import Counted


@kernel
def earliest_start(job: int, earliest: int, latest: int, counted: Counted) -> int:
    """Return the first start from `earliest` on at which all pieces fit; `NOWHERE` if it is after `latest`.

    Where a piece does not fit, no start fits before the piece begins after the last breakpoint with too few free nodes:
    the start jumps there. The start is found when all pieces in turn fit.
    """
    first, behind = counted.first_piece[job], counted.first_piece[job + 1]
    start, piece, content = earliest, first, 0
    while content < behind - first:
        if start > latest:
            return NOWHERE
        since, room = start + counted.since[piece], counted.capacity[0] - counted.amounts[piece]
        at = kernels.last_until(start + counted.until[piece] - 1, counted.times, counted.size[0])
        while counted.used[at] <= room and counted.times[at] > since:
            at -= 1
        if counted.used[at] > room:
            start = counted.times[at + 1] - counted.since[piece]
            content = 0
        else:
            content += 1
            piece = piece + 1 if piece + 1 < behind else first
    return start


@inner_kernel
def border_of(piece: int, behind: int, start: int, counted: Counted) -> int:
    """Return when a piece of a job begins; the one behind its last begins when that ends."""
    return start + (counted.since[piece] if piece < behind else counted.until[behind - 1])


@kernel
def count_in(job: int, start: int, sign: int, counted: Counted) -> int:
    """Add the nodes of a job that begins at `start` (`sign` 1), or subtract them (-1); return the index of the
    breakpoint at `start`.

    Breakpoints that are no longer needed stay.
    """
    first, behind = counted.first_piece[job], counted.first_piece[job + 1]
    new = 0
    for piece in range(first, behind + 1):
        border = border_of(piece, behind, start, counted)
        if counted.times[kernels.last_until(border, counted.times, counted.size[0])] != border:
            new += 1
    at, to, piece = counted.size[0] - 1, counted.size[0] - 1 + new, behind
    counted.size[0] += new
    while at < to:  # an entry moves by the number of new breakpoints before it
        border = border_of(piece, behind, start, counted)
        while counted.times[at] > border:
            counted.times[to], counted.used[to] = counted.times[at], counted.used[at]
            at -= 1
            to -= 1
        if counted.times[at] < border:
            counted.times[to], counted.used[to] = border, counted.used[at]
            to -= 1
        piece -= 1
    begin = kernels.last_until(start, counted.times, counted.size[0])
    at = begin
    for piece in range(first, behind):
        while counted.times[at] < start + counted.until[piece]:
            counted.used[at] += sign * counted.amounts[piece]
            at += 1
    return begin


@kernel
def count_out(job: int, start: int, counted: Counted) -> None:
    """Remove a job that begins at `start` from the profile, with the breakpoints that only it needs."""
    at = count_in(job, start, -1, counted)
    end = start + counted.until[counted.first_piece[job + 1] - 1]
    to = at
    while at < counted.size[0] and (counted.times[at] <= end or to < at):
        if to == 0 or counted.used[to - 1] != counted.used[at]:
            counted.times[to], counted.used[to] = counted.times[at], counted.used[at]
            to += 1
        at += 1
    if to < at:
        counted.size[0] = to


@inner_kernel
def keep_profile(counted: Counted) -> None:
    """Write the profile down."""
    count = counted.size[0]
    counted.kept_size[0] = count
    kernels.copy(counted.kept_times[:count], counted.times)
    kernels.copy(counted.kept_used[:count], counted.used)


@inner_kernel
def restore_profile(counted: Counted) -> None:
    """Return to the profile that was written down last."""
    count = counted.kept_size[0]
    counted.size[0] = count
    kernels.copy(counted.times[:count], counted.kept_times)
    kernels.copy(counted.used[:count], counted.kept_used)
