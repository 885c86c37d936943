"""Projects by counts, compiled: lists of jobs that wait for each other, decoded on sums over nodes, justified, bred.

A *list* is a key for each job. It is decoded by serial insertion: of the jobs whose predecessors are placed, the one
with the smallest key is next, as early as the sums allow. Double justification (Valls, Ballestín and Quintanilla 2005)
then moves all jobs as late as the end allows, and as early as possible again: the same insertion, first with time
running backwards. New lists are bred from random keys (Gonçalves, Resende and Mendes 2011).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import FOREVER, inner_kernel, kernel
from cpsched.search.place_kernels import below, cost_of, uniform

#: Of the lists of a generation: the part that is random; the part of its keys that a list has from its better parent.
RANDOM, INHERITED = 0.1, 0.7
#: The weight of the mean start, as a part of the end, beside the makespan: it orders lists of the same makespan.
FINER = 0.9

# columns of the jobs
EARLIEST, LATEST, DURATION = 0, 1, 2


class Project(NamedTuple):
    """The jobs, and what they may use."""

    #: int64 (jobs, 3): see ``EARLIEST``.
    jobs: NDArray[Any]
    #: int64 (jobs, sums): what a job takes.
    needs: NDArray[Any]
    #: float64 (jobs, ·): costs of starts, see `kernels.cost_of`.
    costs: NDArray[Any]
    #: float64 (1,): the price of a second of makespan.
    price: NDArray[Any]
    #: int64 (slots,) and (slots, sums): when slots begin, the first at 0, and what is free in them without these jobs.
    times: NDArray[Any]
    free: NDArray[Any]


class Desk(NamedTuple):
    """What decoding writes down."""

    #: int64 (1,): the number of slots; (·,) and (·, sums): when they begin, and what is free in them.
    count: NDArray[Any]
    times: NDArray[Any]
    free: NDArray[Any]
    #: int64 (milestones,): the number of jobs without a place before each; and by when those with one have passed it.
    missing: NDArray[Any]
    passed: NDArray[Any]
    #: int64 (jobs,): the number of milestones that are still to be passed before each; the jobs that are next.
    closed: NDArray[Any]
    ready: NDArray[Any]
    #: float64 (jobs,): the keys by which justification decodes.
    keys: NDArray[Any]
    #: int64 (jobs,): starts with time running backwards; starts after justification; starts of the present list.
    mirrored: NDArray[Any]
    moved: NDArray[Any]
    starts: NDArray[Any]


class Lists(NamedTuple):
    """The present generation of lists, the best first; and the next one."""

    #: float64 (lists, jobs) and (lists,): keys, and values with `FINER`.
    keys: NDArray[Any]
    values: NDArray[Any]
    next_keys: NDArray[Any]
    next_values: NDArray[Any]
    #: int64 (lists,): an order.
    order: NDArray[Any]
    #: int64 (jobs,) and float64 (1,): the starts of the best list of all, and their value.
    best: NDArray[Any]
    best_value: NDArray[Any]
    #: uint64 (1,): the state of the random numbers.
    random: NDArray[Any]


# --- what is free ----------------------------------------------------------------------------------------------------


@kernel
def fill(p, d):
    """Set the desk to what is free without the jobs."""
    d.count[0] = p.times.shape[0]
    for k in range(p.times.shape[0]):
        d.times[k] = p.times[k]
        for q in range(p.free.shape[1]):
            d.free[k, q] = p.free[k, q]


@inner_kernel
def fill_backwards(horizon, p, d):
    """Set the desk to what is free without the jobs, in time that runs from `horizon` back to 0."""
    count, last = 0, p.times.shape[0] - 1
    while last > 0 and p.times[last] >= horizon:
        last -= 1
    for k in range(last, -1, -1):
        d.times[count] = 0 if k == last else horizon - p.times[k + 1]
        for q in range(p.free.shape[1]):
            d.free[count, q] = p.free[k, q]
        count += 1
    d.count[0] = count


@inner_kernel
def find_slot(time, d):
    """Return the slot that holds a time."""
    low, high = 0, d.count[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if d.times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inner_kernel
def add_slot(time, d):
    """Return the slot that begins at a time; it is made if there is none."""
    at = find_slot(time, d)
    if d.times[at] == time:
        return at
    for k in range(d.count[0], at + 1, -1):
        d.times[k] = d.times[k - 1]
        for q in range(d.free.shape[1]):
            d.free[k, q] = d.free[k - 1, q]
    d.times[at + 1] = time
    for q in range(d.free.shape[1]):
        d.free[at + 1, q] = d.free[at, q]
    d.count[0] += 1
    return at + 1


@kernel
def place(job, start, p, d):
    """Book a job from `start` on, as early as it fits; return its start, or -1 if it does not fit."""
    slot = find_slot(start, d)
    while slot < d.count[0] and d.times[slot] < start + p.jobs[job, DURATION]:
        fits = True
        for q in range(d.free.shape[1]):
            fits &= d.free[slot, q] >= p.needs[job, q]
        slot += 1
        if not fits:
            if slot == d.count[0]:
                return np.int64(-1)
            start = d.times[slot]
    first, last = add_slot(start, d), add_slot(start + p.jobs[job, DURATION], d)
    for k in range(first, last):
        for q in range(d.free.shape[1]):
            d.free[k, q] -= p.needs[job, q]
    return start


# --- lists -----------------------------------------------------------------------------------------------------------


@kernel
def decode(keys, starts, is_backwards, links, p, d):
    """Place all jobs on the desk, the smallest key first among those whose predecessors are placed (of equal keys
    the first job).

    Returns whether each job has a place, with time running forwards no later than it may start.
    """
    ready = 0
    for milestone in range(d.missing.shape[0]):
        d.missing[milestone] = links.before_of[milestone + 1] - links.before_of[milestone]
        d.passed[milestone] = -FOREVER
    for job in range(keys.shape[0]):
        d.closed[job] = links.waits_of[job + 1] - links.waits_of[job]
        if d.closed[job] == 0:
            d.ready[ready] = job
            ready += 1
    while ready > 0:
        least = 0
        for k in range(1, ready):
            job, first = d.ready[k], d.ready[least]
            if keys[job] < keys[first] or (keys[job] == keys[first] and job < first):
                least = k
        job = d.ready[least]
        ready -= 1
        d.ready[least] = d.ready[ready]
        earliest = np.int64(0) if is_backwards else p.jobs[job, EARLIEST]
        for k in range(links.waits_of[job], links.waits_of[job + 1]):
            earliest = max(earliest, d.passed[links.waits[k, 0]] + links.waits[k, 1])
        starts[job] = place(job, earliest, p, d)
        if starts[job] < 0 or (not is_backwards and starts[job] > p.jobs[job, LATEST]):
            return False
        for k in range(links.leads_of[job], links.leads_of[job + 1]):
            milestone = links.leads[k, 0]
            d.passed[milestone] = max(d.passed[milestone], starts[job] + links.leads[k, 1])
            d.missing[milestone] -= 1
            if d.missing[milestone] == 0:
                for m in range(links.after_of[milestone], links.after_of[milestone + 1]):
                    after = links.after[m, 0]
                    d.closed[after] -= 1
                    if d.closed[after] == 0:
                        d.ready[ready] = after
                        ready += 1
    return True


@kernel
def last_end(starts, p):
    """Return the end of the last job."""
    last = np.int64(0)
    for job in range(starts.shape[0]):
        last = max(last, starts[job] + p.jobs[job, DURATION])
    return last


@kernel
def value_of(starts, p):
    """Return the cost of all starts and of the last end."""
    value = p.price[0] * last_end(starts, p)
    for job in range(starts.shape[0]):
        value += cost_of(job, starts[job], p.costs)
    return value


@kernel
def justify(starts, ahead, back, p, d):
    """Move all jobs to the right and then to the left, again and again while that lowers the value; return the value.

    `ahead` and `back` are the links (`rusv.Links`) with time running forwards and backwards.
    """
    value = value_of(starts, p)
    while True:
        horizon = last_end(starts, p)
        for job in range(starts.shape[0]):
            d.keys[job] = -(starts[job] + p.jobs[job, DURATION])
        fill_backwards(horizon, p, d)
        if not decode(d.keys, d.mirrored, True, back, p, d):
            return value
        for job in range(starts.shape[0]):
            d.keys[job] = horizon - d.mirrored[job] - p.jobs[job, DURATION]
        fill(p, d)
        if not decode(d.keys, d.moved, False, ahead, p, d):
            return value
        moved = value_of(d.moved, p)
        if moved > value:
            return value
        for job in range(starts.shape[0]):
            starts[job] = d.moved[job]
        if moved == value:
            return value
        value = moved


@inner_kernel
def assess(row, ahead, back, p, d, b):
    """Decode and justify a list of the next generation, and value it; its keys become the order of the starts."""
    keys = b.next_keys[row]
    fill(p, d)
    if not decode(keys, d.starts, False, ahead, p, d):
        b.next_values[row] = np.inf
        return
    value = justify(d.starts, ahead, back, p, d)
    last, mean = last_end(d.starts, p) + 1.0, 0.0
    for job in range(keys.shape[0]):
        mean += d.starts[job] / keys.shape[0]
        keys[job] = (d.starts[job] + 0.5 * uniform(b.random)) / last
    b.next_values[row] = value + FINER * p.price[0] * mean / last
    if value < b.best_value[0]:
        b.best_value[0] = value
        for job in range(keys.shape[0]):
            b.best[job] = d.starts[job]


# --- breeding --------------------------------------------------------------------------------------------------------


@kernel
def begin(first, last, ahead, back, p, d, b):
    """Value the lists ``[first, last)`` of a first generation, whose keys are given."""
    for row in range(first, last):
        assess(row, ahead, back, p, d, b)


@kernel
def breed(first, last, elite, ahead, back, p, d, b):
    """Make the lists ``[first, last)`` of the next generation: the first `elite` are kept, some are random, and each of
    the others has keys of one of the `elite` and of one that is worse.
    """
    size, count = b.values.shape[0], b.keys.shape[1]
    for row in range(first, last):
        if row < elite:
            b.next_values[row] = b.values[row]
            for job in range(count):
                b.next_keys[row, job] = b.keys[row, job]
            continue
        if uniform(b.random) < RANDOM:
            for job in range(count):
                b.next_keys[row, job] = uniform(b.random)
        else:
            better, worse = below(b.random, elite), elite + below(b.random, size - elite)
            for job in range(count):
                b.next_keys[row, job] = b.keys[better if uniform(b.random) < INHERITED else worse, job]
        assess(row, ahead, back, p, d, b)


@kernel
def select(b):
    """Make the next generation the present one, the best first."""
    for k in range(b.values.shape[0]):
        at = k
        while at > 0 and b.next_values[b.order[at - 1]] > b.next_values[k]:
            b.order[at] = b.order[at - 1]
            at -= 1
        b.order[at] = k
    for k in range(b.values.shape[0]):
        b.values[k] = b.next_values[b.order[k]]
        for job in range(b.keys.shape[1]):
            b.keys[k, job] = b.next_keys[b.order[k], job]
