"""Projects by counts, compiled: lists of jobs whose last end counts, decoded on sums over nodes, justified, bred.

A *list* is a key for each job. It is decoded by serial insertion: of the jobs whose predecessors are placed, the one
with the smallest key is next, as early as the sums allow. Double justification (Valls, Ballestín and Quintanilla 2005)
then moves all jobs as late as the end allows, and as early as possible again: the same insertion, first with time
running backwards. New lists are bred from random keys (Gonçalves, Resende and Mendes 2011).
"""

from typing import NamedTuple

import numpy as np

from cpsched.rusv import Array, count_kernels, inner_kernel, kernel, kernels
from cpsched.search.place_kernels import below, uniform
from cpsched.search.ruin_kernels import sort_in

#: Of the lists of a generation: the part that is random; the part of its keys that a list has from its better parent.
RANDOM, INHERITED = 0.1, 0.7
#: Of the changes of a list that is polished: the part in which two jobs change places.
SWAPPED = 0.5
#: The weight of the mean start, as a part of the end, beside the makespan: it orders lists of the same makespan.
FINER = 0.9

# columns of the jobs
EARLIEST, LATEST, DURATION = 0, 1, 2


class Project(NamedTuple):
    """The jobs, and what they may use.

    Amounts are packed: each has some bits of a word, of which the highest, its guard, is 0. A job fits if all guards
    stay 1 where its needs are subtracted from what is free, with all guards set.
    """

    #: int64 (jobs, 3): see ``EARLIEST``, in units of time.
    jobs: Array
    #: int64 (jobs, words): what a job takes; and int64 (words,): the guards.
    needs: Array
    guards: Array
    #: float64 (jobs, ·): costs of starts, see `kernels.cost_of`.
    costs: Array
    #: float64 (1,): the price of a second of makespan; int64 (1,): the seconds of a unit of time.
    price: Array
    unit: Array
    #: int64 (slots,) and (slots, words): when slots begin, the first at 0, and what is free in them without these jobs,
    #: with guards; without times each slot is a unit of time.
    times: Array
    free: Array


class Followers(NamedTuple):
    """Who follows whom, with time running forwards or backwards."""

    #: int64 (jobs + 1,): where the pairs of each job begin, in int64 (·, 2): (job that follows it, least seconds or
    #: units of time between their starts).
    of: Array
    pairs: Array
    #: int64 (jobs,): the number of jobs that each follows.
    awaited: Array


class Desk(NamedTuple):
    """What decoding writes down."""

    #: What is free.
    profile: count_kernels.Profile
    #: int64 (jobs,): the number of jobs without a place that each follows; when it starts at the earliest.
    awaited: Array
    earliest: Array
    #: int64 and float64 (jobs,): the jobs that are next, and their keys.
    ready: Array
    ready_keys: Array
    #: float64 (jobs,): the keys by which justification decodes.
    keys: Array
    #: int64 (jobs,): starts with time running backwards; starts after justification; starts of the present list.
    mirrored: Array
    moved: Array
    starts: Array


class Lists(NamedTuple):
    """The present generation of lists, the best first, see `select`; and the next one."""

    #: float64 (lists, jobs) and (lists,): keys, and values with `FINER`.
    keys: Array
    values: Array
    next_keys: Array
    next_values: Array
    #: int64 (lists,): an order.
    order: Array
    #: int64 (jobs,) and float64 (1,): the starts of the best list of all, and their value.
    best: Array
    best_value: Array
    #: uint64 (1,): the state of the random numbers.
    random: Array


# --- what is free ----------------------------------------------------------------------------------------------------


@kernel
def fill(until: int, project: Project, desk: Desk) -> None:
    """Set the desk to what is free without the jobs; where slots are units of time, before `until`."""
    profile, slots = desk.profile, project.free.shape[0]
    if project.times.shape[0] == 0:
        slots = min(slots, until)
    for k in range(project.times.shape[0]):
        profile.times[k] = project.times[k]
    for k in range(slots):
        for word in range(project.free.shape[1]):
            profile.free[k, word] = project.free[k, word]
    profile.size[0] = slots


@inner_kernel
def fill_backwards(horizon: int, project: Project, desk: Desk) -> None:
    """Set the desk to what is free without the jobs, in time that runs from `horizon` back to 0."""
    count, last, profile = 0, project.free.shape[0] - 1, desk.profile
    if project.times.shape[0] == 0:
        for k in range(horizon):
            for word in range(project.free.shape[1]):
                profile.free[horizon - 1 - k, word] = project.free[k, word]
        profile.size[0] = horizon
        return
    while last > 0 and project.times[last] >= horizon:
        last -= 1
    for k in range(last, -1, -1):
        profile.times[count] = 0 if k == last else horizon - project.times[k + 1]
        kernels.copy(profile.free[count], project.free[k])
        count += 1
    profile.size[0] = count


@kernel
def fits(needs: Array, guards: Array, free: Array) -> bool:
    """Tell whether a job fits into what is free in a slot."""
    for word in range(guards.shape[0]):
        if (free[word] - needs[word]) & guards[word] != guards[word]:
            return False
    return True


@inner_kernel
def place(start: int, duration: int, needs: Array, guards: Array, profile: count_kernels.Profile) -> int:
    """Book a job from `start` on, as early as it fits; return its start, or -1 if it does not fit."""
    slot = kernels.last_until(start, profile.times, profile.size[0])
    while slot < profile.size[0] and profile.times[slot] < start + duration:
        is_free = fits(needs, guards, profile.free[slot])
        slot += 1
        if not is_free:
            if slot == profile.size[0]:
                return -1
            start = profile.times[slot]
    count_kernels.shift(start, start + duration, needs, -1, profile)
    return start


@inner_kernel
def place_in_units(start: int, duration: int, needs: Array, guards: Array, free: Array) -> int:
    """Book a job where each slot is a unit of time, see `place`: the last conflict within its duration comes first."""
    slot = start + duration - 1
    while slot >= start:
        if slot >= free.shape[0]:
            return -1
        if not fits(needs, guards, free[slot]):
            start = slot + 1
            slot += 1 + duration
        slot -= 1
    for k in range(start, start + duration):
        for word in range(guards.shape[0]):
            free[k, word] -= needs[word]
    return start


# --- lists -----------------------------------------------------------------------------------------------------------


@kernel
def decode(keys: Array, starts: Array, is_backwards: bool, followers: Followers, project: Project, desk: Desk) -> bool:
    """Place all jobs on the desk, the smallest key first among those whose predecessors are placed (of equal keys
    the first job).

    Returns whether each job has a place, with time running forwards no later than it may start.
    """
    ready, is_in_units, units = 0, project.times.shape[0] == 0, desk.profile.free[: desk.profile.size[0]]
    for job in range(keys.shape[0]):
        desk.awaited[job] = followers.awaited[job]
        desk.earliest[job] = 0 if is_backwards else project.jobs[job, EARLIEST]
        if desk.awaited[job] == 0:
            desk.ready[ready], desk.ready_keys[ready] = job, keys[job]
            ready += 1
    while ready > 0:
        least, key = 0, desk.ready_keys[0]
        for k in range(1, ready):
            if desk.ready_keys[k] <= key and (desk.ready_keys[k] < key or desk.ready[k] < desk.ready[least]):
                least, key = k, desk.ready_keys[k]
        job = desk.ready[least]
        ready -= 1
        desk.ready[least], desk.ready_keys[least] = desk.ready[ready], desk.ready_keys[ready]
        duration, needs = project.jobs[job, DURATION], project.needs[job]
        if is_in_units:
            start = place_in_units(desk.earliest[job], duration, needs, project.guards, units)
        else:
            start = place(desk.earliest[job], duration, needs, project.guards, desk.profile)
        if start < 0 or (not is_backwards and start > project.jobs[job, LATEST]):
            return False
        starts[job] = start
        for k in range(followers.of[job], followers.of[job + 1]):
            after = followers.pairs[k, 0]
            desk.earliest[after] = max(desk.earliest[after], start + followers.pairs[k, 1])
            desk.awaited[after] -= 1
            if desk.awaited[after] == 0:
                desk.ready[ready], desk.ready_keys[ready] = after, keys[after]
                ready += 1
    return True


@inner_kernel
def last_end(starts: Array, project: Project) -> int:
    """Return the end of the last job."""
    last = 0
    for job in range(starts.shape[0]):
        last = max(last, starts[job] + project.jobs[job, DURATION])
    return last


@inner_kernel
def value_of(starts: Array, project: Project) -> float:
    """Return the cost of all starts and of the last end."""
    value, unit = project.price[0] * last_end(starts, project) * project.unit[0], project.unit[0]
    for job in range(starts.shape[0]):
        value += kernels.cost_of(job, starts[job] * unit, project.costs)
    return value


@kernel
def justify(starts: Array, ahead: Followers, back: Followers, project: Project, desk: Desk) -> float:
    """Move all jobs to the right and then to the left, again and again while that lowers the value; return the value.

    `ahead` and `back`: who follows whom, with time running forwards and backwards.
    """
    value = value_of(starts, project)
    while True:
        horizon = last_end(starts, project)
        for job in range(starts.shape[0]):
            desk.keys[job] = -(starts[job] + project.jobs[job, DURATION])
        fill_backwards(horizon, project, desk)
        if not decode(desk.keys, desk.mirrored, True, back, project, desk):
            return value
        for job in range(starts.shape[0]):
            desk.keys[job] = horizon - desk.mirrored[job] - project.jobs[job, DURATION]
        fill(horizon, project, desk)
        if not decode(desk.keys, desk.moved, False, ahead, project, desk):
            return value
        moved = value_of(desk.moved, project)
        if moved > value:
            return value
        kernels.copy(starts, desk.moved)
        if moved == value:
            return value
        value = moved


@inner_kernel
def assess(row: int, ahead: Followers, back: Followers, project: Project, desk: Desk, lists: Lists) -> None:
    """Decode and justify a list of the next generation, and value it; its keys become the order of the starts."""
    keys = lists.next_keys[row]
    fill(project.free.shape[0], project, desk)
    if not decode(keys, desk.starts, False, ahead, project, desk):
        lists.next_values[row] = np.inf
        return
    value = justify(desk.starts, ahead, back, project, desk)
    last, mean = last_end(desk.starts, project) + 1.0, 0.0
    for job in range(keys.shape[0]):
        mean += desk.starts[job] / keys.shape[0]
        keys[job] = (desk.starts[job] + 0.5 * uniform(lists.random)) / last
    lists.next_values[row] = value + FINER * project.price[0] * project.unit[0] * mean / last
    if value < lists.best_value[0]:
        lists.best_value[0] = value
        kernels.copy(lists.best, desk.starts)


# --- breeding --------------------------------------------------------------------------------------------------------


@kernel
def begin(first: int, last: int, ahead: Followers, back: Followers, project: Project, desk: Desk, lists: Lists) -> None:
    """Value the lists ``[first, last)`` of a first generation, whose keys are given."""
    for row in range(first, last):
        assess(row, ahead, back, project, desk, lists)


@kernel
def breed(
    first: int, last: int, elite: int, ahead: Followers, back: Followers, project: Project, desk: Desk, lists: Lists
) -> None:
    """Make the lists ``[first, last)`` of the next generation: the first `elite` are kept, some are random, and each of
    the others has keys of one of the `elite` and of one that is worse.
    """
    size, count = lists.values.shape[0], lists.keys.shape[1]
    for row in range(first, last):
        if row < elite:
            lists.next_values[row] = lists.values[row]
            kernels.copy(lists.next_keys[row], lists.keys[row])
            continue
        if uniform(lists.random) < RANDOM:
            for job in range(count):
                lists.next_keys[row, job] = uniform(lists.random)
        else:
            better, worse = below(lists.random, elite), elite + below(lists.random, size - elite)
            for job in range(count):
                lists.next_keys[row, job] = lists.keys[better if uniform(lists.random) < INHERITED else worse, job]
        assess(row, ahead, back, project, desk, lists)


@kernel
def polish(count: int, ahead: Followers, back: Followers, project: Project, desk: Desk, lists: Lists) -> None:
    """Change the first list so often: one to three times two jobs change places in it, or one gets any place. What is
    no worse is kept.
    """
    keys, jobs = lists.next_keys[0], lists.keys.shape[1]
    for _ in range(count):
        kernels.copy(keys, lists.keys[0])
        for _ in range(1 + below(lists.random, 3)):
            one, other = below(lists.random, jobs), below(lists.random, jobs)
            key = keys[one]
            if uniform(lists.random) < SWAPPED:
                keys[one] = keys[other]
                keys[other] = key
            else:
                keys[one] = uniform(lists.random)
        assess(0, ahead, back, project, desk, lists)
        if lists.next_values[0] <= lists.values[0]:
            lists.values[0] = lists.next_values[0]
            kernels.copy(lists.keys[0], keys)


@kernel
def select(is_distinct: bool, lists: Lists) -> None:
    """Make the next generation the present one, the best first; lists of equal values are the same plan as a rule, so
    the second one of a value comes after all first ones if `is_distinct`.
    """
    size, place = lists.values.shape[0], 0
    for k in range(size):
        sort_in(lists.next_values[k], k, k, lists.values, lists.order)
    for is_again in range(2):
        for k in range(size):
            row = lists.order[k]
            is_same = is_distinct and k > 0 and lists.next_values[row] == lists.next_values[lists.order[k - 1]]
            if is_same == (is_again == 1):
                lists.values[place] = lists.next_values[row]
                kernels.copy(lists.keys[place], lists.next_keys[row])
                place += 1
