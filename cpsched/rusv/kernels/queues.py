"""Whole jobs: queues are placed one job after another, each as early as it fits."""

import numpy as np

from cpsched.rusv.jit import inner_kernel, kernel
from cpsched.rusv.kernels.arrays import Array, Choices, Jobs, Nodes, Scratch, Tables, TimelineState
from cpsched.rusv.kernels.axis import add_break, drop_break, shift
from cpsched.rusv.kernels.constants import FIRST_KINK, FOREVER, LEVEL, RATE, D, F, H, R
from cpsched.rusv.kernels.mapping import placement_columns
from cpsched.rusv.kernels.nodes import earliest_fit_by_node, has_space, shift_nodes
from cpsched.rusv.kernels.windows import earliest_fit, remember_start, remembered_start


@kernel
def cost_of(row: int, start: int, costs: Array) -> float:
    """Return the cost of a start: a constant, a price per second, and a further price per second beyond each kink."""
    cost = costs[row, LEVEL] + costs[row, RATE] * start
    for k in range(FIRST_KINK, costs.shape[1], 2):
        cost += costs[row, k] * max(0.0, start - costs[row, k + 1])
    return cost


@kernel
def latest_for(row: int, room: float, costs: Array) -> int:
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


@kernel
def take_placement(
    demand: int,
    entries: Array,
    count: int,
    start: int,
    end: int,
    sign: int,
    timeline: TimelineState,
    tables: Tables,
    scratch: Scratch,
) -> None:
    """Take (sign -1) a placement in ``[start, end)``, or give it back (sign 1); breakpoints do not change."""
    filled, systems = placement_columns(demand, entries, count, tables, scratch)
    shift(
        start,
        end,
        sign,
        scratch.columns[:filled],
        scratch.amounts[:filled],
        scratch.scolumns[:systems],
        scratch.samounts[:systems],
        timeline,
    )


@inner_kernel
def keep_entries(pool: Array, first: int, entries: Array, count: int) -> None:
    """Copy entries into the pool."""
    for e in range(count):
        for part in range(3):
            pool[first + e, part] = entries[e, part]


@kernel
def earliest_after(job: int, earliest: int, jobs: Jobs) -> int:
    """Return the first start from `earliest` on that is late enough after all that a job waits for, and before all
    planned jobs that follow it within some time; FOREVER while one that it waits for has no place.
    """
    links = jobs.links
    for k in range(links.waits_of[job], links.waits_of[job + 1]):
        milestone, delay = links.waits[k, 0], links.waits[k, 1]
        for m in range(links.before_of[milestone], links.before_of[milestone + 1]):
            start = jobs.starts[links.before[m, 0]]
            if start < 0:
                return FOREVER
            earliest = max(earliest, start + links.before[m, 1] + delay)
    for k in range(links.hurries_of[job], links.hurries_of[job + 1]):
        start = jobs.starts[links.hurries[k, 0]]
        if start >= 0:
            earliest = max(earliest, start - links.hurries[k, 1])
    return earliest


@kernel
def latest_before(job: int, latest: int, jobs: Jobs) -> int:
    """Return the last start up to `latest` that keeps the distance of all planned jobs that wait for the job, and is
    within some time of those that it follows so.
    """
    links = jobs.links
    for k in range(links.leads_of[job], links.leads_of[job + 1]):
        milestone, seconds = links.leads[k, 0], links.leads[k, 1]
        for m in range(links.after_of[milestone], links.after_of[milestone + 1]):
            start = jobs.starts[links.after[m, 0]]
            if start >= 0:
                latest = min(latest, start - links.after[m, 1] - seconds)
    for k in range(links.soon_of[job], links.soon_of[job + 1]):
        start = jobs.starts[links.soon[k, 0]]
        if start >= 0:
            latest = min(latest, start + links.soon[k, 1])
    return latest


@kernel
def limits(
    job: int, released: int, bounds: Array, jobs: Jobs, timeline: TimelineState, tables: Tables
) -> tuple[int, int]:
    """Return the first and the last start that are worth a search for a job that may start from `released` on.

    A job with a place looks only for an earlier one, which keeps its distance to the jobs that wait for it.

    While nothing is given back, a job cannot start before the start found for an equal demand that was at most as long:
    `bounds` remembers that (`remembered_start`). The resources that a job gives back open only windows that reach into
    its old interval.
    """
    demand, duration, old = jobs.jobs[job, 0], jobs.jobs[job, 3], jobs.starts[job]
    earliest = released
    latest = latest_before(job, jobs.jobs[job, 2], jobs) if old < 0 else min(jobs.jobs[job, 2], old - 1)
    if tables.demands[demand, D.FLAGS] & F.JOINT == 0:
        known = remembered_start(bounds[demand], earliest, duration, timeline.head[H.FREED])
        if old >= 0:
            known = min(known, old - duration + 1)
        earliest = max(earliest, known)
    return earliest, latest


@inner_kernel
def keep_place(job: int, start: int, found: int, jobs: Jobs, timeline: TimelineState, scratch: Scratch) -> None:
    """Record the new place of a job, with `found` entries that are in the scratch, and move its breakpoints."""
    old, duration = jobs.starts[job], jobs.jobs[job, 3]
    if found > jobs.spans[job, 2]:
        jobs.spans[job, 0], jobs.spans[job, 2] = jobs.used[0], found
        jobs.used[0] += found
    jobs.starts[job], jobs.spans[job, 1] = start, found
    keep_entries(jobs.pool, jobs.spans[job, 0], scratch.entries, found)
    add_break(start, timeline)
    add_break(start + duration, timeline)
    if old >= 0:
        drop_break(old, timeline)
        drop_break(old + duration, timeline)
        timeline.head[H.FREED] = min(timeline.head[H.FREED], old)


@inner_kernel
def take_job(
    job: int, sign: int, jobs: Jobs, timeline: TimelineState, nodes: Nodes | None, tables: Tables, scratch: Scratch
) -> None:
    """Take (sign -1) what a job holds at its place from the free amounts, or give it back (sign 1)."""
    start, first = jobs.starts[job], jobs.spans[job, 0]
    end = start + jobs.jobs[job, 3]
    held = jobs.pool[first : first + jobs.spans[job, 1]]
    if nodes is None:
        take_placement(jobs.jobs[job, 0], held, len(held), start, end, sign, timeline, tables, scratch)
    else:
        filled, systems = placement_columns(jobs.jobs[job, 0], held, len(held), tables, scratch)
        shift(
            start,
            end,
            sign,
            scratch.columns[:0],
            scratch.amounts[:0],
            scratch.scolumns[:systems],
            scratch.samounts[:systems],
            timeline,
        )
        shift_nodes(start, end, sign, scratch.columns, scratch.amounts, filled, nodes)


@inner_kernel
def fit(
    demand: int,
    earliest: int,
    duration: int,
    latest: int,
    timeline: TimelineState,
    nodes: Nodes | None,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int]:
    """Find the earliest start in ``[earliest, latest]``, on rows of all nodes or on the steps of each node."""
    if nodes is None:
        return earliest_fit(demand, earliest, duration, latest, timeline, tables, scratch)
    return earliest_fit_by_node(demand, earliest, duration, latest, timeline, nodes, tables, scratch)


@inner_kernel
def choose_mode(
    job: int,
    released: int,
    bounds: Array,
    choices: Choices,
    jobs: Jobs,
    timeline: TimelineState,
    nodes: Nodes | None,
    tables: Tables,
    scratch: Scratch,
) -> int:
    """Give a job without a place the mode whose earliest place costs least, of equal ones that which ends first; return
    its start, FOREVER if the job fits in none.

    A mode is searched only up to the last start with which it is still the best.
    """
    room, end, found = np.inf, FOREVER, FOREVER
    for mode in range(choices.first[job], choices.first[job + 1]):
        demand, own, duration = choices.modes[mode, 0], choices.modes[mode, 1], choices.modes[mode, 2]
        latest = latest_before(job, min(own, latest_for(mode, room, choices.costs)), jobs)
        earliest, is_joint = released, tables.demands[demand, D.FLAGS] & F.JOINT != 0
        if not is_joint:
            earliest = remembered_start(bounds[demand], released, duration, timeline.head[H.FREED])
        if earliest > latest:
            continue
        start, _ = fit(demand, earliest, duration, latest, timeline, nodes, tables, scratch)
        if not is_joint:
            remember_start(bounds[demand], released, duration, start if start >= 0 else latest + 1)
        if start < 0:
            continue
        cost = cost_of(mode, start, choices.costs)
        if cost < room or start + duration < end:
            room, end, found = min(cost, room), start + duration, start
            jobs.jobs[job, 0], jobs.jobs[job, 2], jobs.jobs[job, 3] = demand, own, duration
    return found


@kernel
def place_jobs(
    queue: Array,
    begin: int,
    end: int,
    bounds: Array,
    choices: Choices | None,
    jobs: Jobs,
    timeline: TimelineState,
    nodes: Nodes | None,
    tables: Tables,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Place the jobs of ``queue[begin:end]`` in turn, each as early as it fits beside all others.

    A job without a place gets one, if there is one. A job with a place is unbooked and planned again; it takes the new
    place only if it starts earlier (OCCS-34). Each job keeps its distance to the jobs that it waits for, and to those
    that wait for it. Where a job that it waits for has no place, it gets none, or keeps the one that it has.

    `choices` are the modes of which a job without a place gets one; None: each keeps its own. `nodes` are the
    steps of the nodes; None: the timeline has rows of all nodes.

    Returns (R.DONE or what must grow, index in the queue that was reached, number of jobs with a new place).
    """
    moved = 0
    for k in range(begin, end):
        job = queue[k]
        if timeline.head[H.SPARE_ROWS] < 2 or timeline.head[H.SPARE_BLOCKS] < 2:
            return R.GROW_STATE, k, moved
        if jobs.pool.shape[0] - jobs.used[0] < scratch.entries.shape[0]:
            return R.GROW_POOL, k, moved
        released = earliest_after(job, jobs.jobs[job, 1], jobs)
        since = released
        if choices is not None and jobs.starts[job] < 0:
            since = choose_mode(job, released, bounds, choices, jobs, timeline, nodes, tables, scratch)
        demand, duration = jobs.jobs[job, 0], jobs.jobs[job, 3]
        earliest, latest = limits(job, since, bounds, jobs, timeline, tables)
        if earliest > latest or since >= FOREVER:
            continue
        if jobs.starts[job] >= 0:
            if nodes is not None and not has_space(jobs.pool[jobs.spans[job, 0] :], jobs.spans[job, 1], nodes):
                return R.GROW_NODES, k, moved
            take_job(job, 1, jobs, timeline, nodes, tables, scratch)
        start, found = fit(demand, earliest, duration, latest, timeline, nodes, tables, scratch)
        if nodes is not None and start >= 0 and not has_space(scratch.entries, found, nodes):
            if jobs.starts[job] >= 0:
                take_job(job, -1, jobs, timeline, nodes, tables, scratch)
            return R.GROW_NODES, k, moved
        if start >= 0:
            moved += 1
            keep_place(job, start, found, jobs, timeline, scratch)
        if jobs.starts[job] >= 0:
            if tables.demands[demand, D.FLAGS] & F.JOINT == 0:
                remember_start(bounds[demand], released, duration, start if start >= 0 else latest + 1)
            take_job(job, -1, jobs, timeline, nodes, tables, scratch)
    return R.DONE, end, moved
