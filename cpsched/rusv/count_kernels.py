"""Kernels of reservations by counts: what is free of each pool of interchangeable units, over time.

A profile is a list of seconds, ascending from now on. Each has the amounts that are free from it to the next one: the
units of each pool, then the licenses. The last interval has no end.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv.equal_nodes import Asks
from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array
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
def cut(time: int, profile: Profile) -> int:
    """Make `time` a breakpoint of the profile; return its index."""
    at = last_until(time, profile.times, profile.size[0])
    if profile.times[at] == time:
        return at
    for k in range(profile.size[0], at + 1, -1):
        profile.times[k] = profile.times[k - 1]
        for c in range(profile.free.shape[1]):
            profile.free[k, c] = profile.free[k - 1, c]
    profile.times[at + 1] = time
    for c in range(profile.free.shape[1]):
        profile.free[at + 1, c] = profile.free[at, c]
    profile.size[0] += 1
    return at + 1


@kernel
def shift(begin: int, end: int, takes: Array, sign: int, profile: Profile) -> None:
    """Add the amounts of a job (times `sign`) to the free amounts in ``[begin, end)``."""
    first, last = cut(begin, profile), cut(end, profile)
    for k in range(first, last):
        for c in range(profile.free.shape[1]):
            profile.free[k, c] += sign * takes[c]


@kernel
def forget(now: int, profile: Profile) -> None:
    """Drop the profile before `now`, and the breakpoints at which no amount changes."""
    first = 0
    while first + 1 < profile.size[0] and profile.times[first + 1] <= now:
        first += 1
    kept = 0
    for k in range(first, profile.size[0]):
        is_new = kept == 0
        for c in range(profile.free.shape[1]):
            is_new |= profile.free[k, c] != profile.free[kept - 1, c]
        if is_new:
            profile.times[kept] = profile.times[k]
            for c in range(profile.free.shape[1]):
                profile.free[kept, c] = profile.free[k, c]
            kept += 1
    profile.times[0] = now
    profile.size[0] = kept


@inner_kernel
def has_room(demand: int, free: Array, asks: Asks) -> bool:
    """Tell whether a demand fits into the free amounts of the columns."""
    total = 0
    for k in range(asks.pools_of[demand], asks.pools_of[demand + 1]):
        total += free[asks.pools[k]]
    if total < asks.need[demand]:
        return False
    for k in range(asks.licenses_of[demand], asks.licenses_of[demand + 1]):
        if free[asks.licenses[k, 0]] < asks.licenses[k, 1]:
            return False
    return True


@inner_kernel
def begin_in(interval: int, released: int, profile: Profile) -> int:
    """Return the first second, from `released` on, of an interval of the profile; -1 if it ends before that."""
    if interval + 1 < profile.size[0] and profile.times[interval + 1] <= released:
        return NOWHERE
    return max(profile.times[interval], released)


@inner_kernel
def earliest_of_one(need: int, released: int, seconds: int, before: int, profile: Profile) -> int:
    """Return the first second in ``[released, before)`` from which `need` units of the only column are free for
    `seconds`, or -1. From `before` on the job holds them already.
    """
    i = 0
    while i < profile.size[0] and profile.times[i] < before:
        begin = begin_in(i, released, profile)
        if begin < 0:
            i += 1
            continue
        if begin >= before:
            break
        end = min(begin + seconds, before)
        k = i
        while k < profile.size[0] and profile.times[k] < end and profile.free[k, 0] >= need:
            k += 1
        if k > i and (k == profile.size[0] or profile.times[k] >= end):
            return begin
        i = k + 1
    return NOWHERE


@kernel
def earliest(
    job: int, before: int, profile: Profile, asks: Asks, reserved: Reservations, least: Array, here: Array
) -> int:
    """Return the first second before `before` from which a job fits for its whole length, -1 if there is none.

    From `before` on the job holds its amounts already. `least` is set to the least free amount of each column over that
    time; `here` is scratch.
    """
    demand, seconds, own = reserved.demand[job], reserved.seconds[job], reserved.takes[job]
    i = 0
    while i < profile.size[0] and profile.times[i] < before:
        begin = begin_in(i, reserved.released[job], profile)
        if begin >= before:
            break
        for c in range(least.shape[0]):
            least[c] = profile.free[i, c]
        if begin < 0 or not has_room(demand, least, asks):
            i += 1
            continue
        end, k, blocked = begin + seconds, i + 1, -1
        while k < profile.size[0] and profile.times[k] < end and blocked < 0:
            for c in range(least.shape[0]):
                here[c] = profile.free[k, c] + (own[c] if profile.times[k] >= before else 0)
                least[c] = min(least[c], here[c])
            if not has_room(demand, least, asks):
                blocked = i + 1 if has_room(demand, here, asks) else k + 1
            k += 1
        if blocked < 0:
            return begin
        i = blocked
    return NOWHERE


@inner_kernel
def reserve(job: int, start: int, profile: Profile, asks: Asks, reserved: Reservations, least: Array) -> None:
    """Book a job: it takes units from the first pools that it may use, as far as `least` says that they are free."""
    demand, left = reserved.demand[job], asks.need[reserved.demand[job]]
    for c in range(profile.free.shape[1]):
        reserved.takes[job, c] = 0
    for k in range(asks.pools_of[demand], asks.pools_of[demand + 1]):
        pool = asks.pools[k]
        reserved.takes[job, pool] = min(left, least[pool])
        left -= reserved.takes[job, pool]
    for k in range(asks.licenses_of[demand], asks.licenses_of[demand + 1]):
        reserved.takes[job, asks.licenses[k, 0]] += asks.licenses[k, 1]
    reserved.starts[job] = start
    shift(start, start + reserved.seconds[job], reserved.takes[job], -1, profile)


@kernel
def find(job: int, before: int, profile: Profile, asks: Asks, reserved: Reservations, least: Array, here: Array) -> int:
    """Return the first second before `before` at which a job can start, -1 if there is none; see `earliest`."""
    if profile.free.shape[1] > 1:
        return earliest(job, before, profile, asks, reserved, least, here)
    least[0] = asks.need[reserved.demand[job]]
    return earliest_of_one(least[0], reserved.released[job], reserved.seconds[job], before, profile)


@kernel
def plan(queue: Array, profile: Profile, asks: Asks, reserved: Reservations, least: Array, here: Array) -> None:
    """Reserve for each job of the queue, in turn, its earliest start beside all reservations."""
    for job in queue:
        start = find(job, FOREVER, profile, asks, reserved, least, here)
        if start != NOWHERE:
            reserve(job, start, profile, asks, reserved, least)


@kernel
def compress(queue: Array, profile: Profile, asks: Asks, reserved: Reservations, least: Array, here: Array) -> int:
    """Move each reserved job of the queue to an earlier start, where there is one; return how many jobs moved."""
    moved = 0
    for job in queue:
        old = reserved.starts[job]
        start = find(job, old, profile, asks, reserved, least, here)
        if start != NOWHERE:
            shift(old, old + reserved.seconds[job], reserved.takes[job], 1, profile)
            reserve(job, start, profile, asks, reserved, least)
            moved += 1
    return moved
