"""Kernels of reservations by counts: what is free of each pool of interchangeable units, over time.

A profile is a list of seconds, ascending from now on. Each has the amounts that are free from it to the next one: the
units of each pool, then the licenses. The last interval has no end.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.axis import last_until
from cpsched.rusv.kernels.constants import FOREVER, NOWHERE


class Profile(NamedTuple):
    """The free amounts over time; the arrays have room for two seconds of each job."""

    #: int64 (1,): the number of seconds in the profile.
    size: NDArray[Any]
    #: int64 (·,): the seconds, ascending.
    times: NDArray[Any]
    #: int64 (·, columns): the free amount of each pool and license.
    free: NDArray[Any]


class Reservations(NamedTuple):
    """The reservations of the jobs."""

    #: int64 (jobs,): its demand; its earliest start; its length in seconds; its start, or `NOWHERE`.
    demand: NDArray[Any]
    released: NDArray[Any]
    seconds: NDArray[Any]
    starts: NDArray[Any]
    #: int64 (jobs, columns): the amount that it takes of each column.
    takes: NDArray[Any]


@kernel
def cut(time, p):
    """Make `time` a breakpoint of the profile; return its index."""
    at = last_until(time, p.times, p.size[0])
    if p.times[at] == time:
        return at
    for k in range(p.size[0], at + 1, -1):
        p.times[k] = p.times[k - 1]
        for c in range(p.free.shape[1]):
            p.free[k, c] = p.free[k - 1, c]
    p.times[at + 1] = time
    for c in range(p.free.shape[1]):
        p.free[at + 1, c] = p.free[at, c]
    p.size[0] += 1
    return at + 1


@kernel
def shift(begin, end, takes, sign, p):
    """Add the amounts of a job (times `sign`) to the free amounts in ``[begin, end)``."""
    first, last = cut(begin, p), cut(end, p)
    for k in range(first, last):
        for c in range(p.free.shape[1]):
            p.free[k, c] += sign * takes[c]


@kernel
def forget(now, p):
    """Drop the profile before `now`, and the breakpoints at which no amount changes."""
    first = 0
    while first + 1 < p.size[0] and p.times[first + 1] <= now:
        first += 1
    kept = 0
    for k in range(first, p.size[0]):
        is_new = kept == 0
        for c in range(p.free.shape[1]):
            is_new |= p.free[k, c] != p.free[kept - 1, c]
        if is_new:
            p.times[kept] = p.times[k]
            for c in range(p.free.shape[1]):
                p.free[kept, c] = p.free[k, c]
            kept += 1
    p.times[0] = now
    p.size[0] = kept


@inner_kernel
def has_room(demand, free, a):
    """Tell whether a demand fits into the free amounts of the columns."""
    total = 0
    for k in range(a.pools_of[demand], a.pools_of[demand + 1]):
        total += free[a.pools[k]]
    if total < a.need[demand]:
        return False
    for k in range(a.licenses_of[demand], a.licenses_of[demand + 1]):
        if free[a.licenses[k, 0]] < a.licenses[k, 1]:
            return False
    return True


@inner_kernel
def begin_in(i, released, p):
    """Return the first second, from `released` on, of interval `i` of the profile; -1 if it ends before that."""
    if i + 1 < p.size[0] and p.times[i + 1] <= released:
        return NOWHERE
    return max(p.times[i], released)


@inner_kernel
def earliest_of_one(need, released, seconds, before, p):
    """Return the first second in ``[released, before)`` from which `need` units of the only column are free for
    `seconds`, or -1. From `before` on the job holds them already.
    """
    i = 0
    while i < p.size[0] and p.times[i] < before:
        begin = begin_in(i, released, p)
        if begin < 0:
            i += 1
            continue
        if begin >= before:
            break
        end = min(begin + seconds, before)
        k = i
        while k < p.size[0] and p.times[k] < end and p.free[k, 0] >= need:
            k += 1
        if k > i and (k == p.size[0] or p.times[k] >= end):
            return begin
        i = k + 1
    return NOWHERE


@kernel
def earliest(job, before, p, a, r, least, here):
    """Return the first second before `before` from which a job fits for its whole length, -1 if there is none.

    From `before` on the job holds its amounts already. `least` is set to the least free amount of each column over that
    time; `here` is scratch.
    """
    demand, seconds, own = r.demand[job], r.seconds[job], r.takes[job]
    i = 0
    while i < p.size[0] and p.times[i] < before:
        begin = begin_in(i, r.released[job], p)
        if begin >= before:
            break
        for c in range(least.shape[0]):
            least[c] = p.free[i, c]
        if begin < 0 or not has_room(demand, least, a):
            i += 1
            continue
        end, k, blocked = begin + seconds, i + 1, -1
        while k < p.size[0] and p.times[k] < end and blocked < 0:
            for c in range(least.shape[0]):
                here[c] = p.free[k, c] + (own[c] if p.times[k] >= before else 0)
                least[c] = min(least[c], here[c])
            if not has_room(demand, least, a):
                blocked = i + 1 if has_room(demand, here, a) else k + 1
            k += 1
        if blocked < 0:
            return begin
        i = blocked
    return NOWHERE


@inner_kernel
def reserve(job, start, p, a, r, least):
    """Book a job: it takes units from the first pools that it may use, as far as `least` says that they are free."""
    demand, left = r.demand[job], a.need[r.demand[job]]
    for c in range(p.free.shape[1]):
        r.takes[job, c] = 0
    for k in range(a.pools_of[demand], a.pools_of[demand + 1]):
        pool = a.pools[k]
        r.takes[job, pool] = min(left, least[pool])
        left -= r.takes[job, pool]
    for k in range(a.licenses_of[demand], a.licenses_of[demand + 1]):
        r.takes[job, a.licenses[k, 0]] += a.licenses[k, 1]
    r.starts[job] = start
    shift(start, start + r.seconds[job], r.takes[job], -1, p)


@kernel
def find(job, before, p, a, r, least, here):
    """Return the first second before `before` at which a job can start, -1 if there is none; see `earliest`."""
    if p.free.shape[1] > 1:
        return earliest(job, before, p, a, r, least, here)
    least[0] = a.need[r.demand[job]]
    return earliest_of_one(least[0], r.released[job], r.seconds[job], before, p)


@kernel
def plan(queue, p, a, r, least, here):
    """Reserve for each job of the queue, in turn, its earliest start beside all reservations."""
    for job in queue:
        start = find(job, FOREVER, p, a, r, least, here)
        if start != NOWHERE:
            reserve(job, start, p, a, r, least)


@kernel
def compress(queue, p, a, r, least, here):
    """Move each reserved job of the queue to an earlier start, where there is one; return how many jobs moved."""
    moved = 0
    for job in queue:
        old = r.starts[job]
        start = find(job, old, p, a, r, least, here)
        if start != NOWHERE:
            shift(old, old + r.seconds[job], r.takes[job], 1, p)
            reserve(job, start, p, a, r, least)
            moved += 1
    return moved
