"""The compiled player of one future: jobs start in their turn, and out of turn where that does not delay the head.

`futures.py` owns shapes, units and checks. Running jobs end when this future says so; the rule believes that they take
their walltimes. Within a second jobs end first, then others arrive, then there is one pass through the queue.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv import FOREVER, Array, Scratch, Tables, inner_kernel, instant_kernels, kernel, kernels

copy = kernels.copy
change, has_sums, map_late = instant_kernels.change, instant_kernels.has_sums, instant_kernels.map_late
map_now, spell_out = instant_kernels.map_now, instant_kernels.spell_out

#: The counters of a future: jobs of the queue, running jobs, taken rows of the pool, watched jobs without a start,
#: jobs that wait for a second, arrivals so far, passes, and whether the pool was too small.
N_QUEUE, N_RUNNING, N_POOL, N_WATCHED, N_PENDING, N_ARRIVED, N_PASSES, LACKS, COUNTERS = range(9)
END, BELIEVED, FIRST, COUNT, JOB = range(5)


class Crowd(NamedTuple):
    """The jobs that wait or will arrive, in the order of the queue; times in seconds from now on."""

    #: int32 (jobs,): its demand.
    demand: NDArray[Any]
    #: int64 (jobs,): when it may start at the earliest, apart from the jobs that it waits for.
    release: NDArray[Any]
    #: int64 (jobs,): how long the rule believes that it runs, and how long it does.
    walltime: NDArray[Any]
    length: NDArray[Any]
    #: int64 (·,): the jobs that wait for no other job, by their release.
    arrivals: NDArray[Any]
    #: int64 (jobs + 1,) and (·, 3): by job, who waits for it: (job, 1 if for its end and 0 if for its start, delay).
    links_of: NDArray[Any]
    links: NDArray[Any]
    #: int64 (jobs,): how many others each job waits for.
    missing: NDArray[Any]
    #: int64 (jobs,): its start, -1 as long as it has none.
    start: NDArray[Any]
    #: int64 (jobs,): 1 where the start is asked for.
    watched: NDArray[Any]
    #: int64 (systems,): the least that any of them takes of each system column.
    least: NDArray[Any]


class Walls(NamedTuple):
    """What is set aside for a time, as far as it is free then."""

    #: int64 (walls, 4): start, end, first row, number of rows.
    spans: NDArray[Any]
    #: int64 (·, 2): node column and amount.
    taken: NDArray[Any]
    #: int64 (walls, systems): amounts of licences.
    sums: NDArray[Any]


class Stage(NamedTuple):
    """The machine while a future is played, and what the pass writes into."""

    counters: NDArray[Any]
    #: int32 (columns,), int64 (systems,): free now; free at the start of the head's reservation, before and beside it;
    #: free both now and beside it; and beside walls.
    free: NDArray[Any]
    sfree: NDArray[Any]
    later: NDArray[Any]
    slater: NDArray[Any]
    low: NDArray[Any]
    slow: NDArray[Any]
    room: NDArray[Any]
    sroom: NDArray[Any]
    #: int64 (·, 5): the running jobs, by believed end: real end, believed end, first row, number of rows, job.
    running: NDArray[Any]
    #: int64 (·, systems): what these hold of the system columns.
    held: NDArray[Any]
    #: int64 (·, 2): node columns and amounts of all running jobs.
    pool: NDArray[Any]
    #: int64 (jobs,) and (jobs, 2): the waiting jobs; those that may start from a second on.
    queue: NDArray[Any]
    pending: NDArray[Any]
    #: int64 (demands, 2): the last pass in which a demand did not fit: a short job, a long one.
    failed: NDArray[Any]


@inner_kernel
def add_held(place: int, sign: int, free: Array, sfree: Array, stage: Stage) -> None:
    """Add what a running job holds (times `sign`) to free amounts."""
    for k in range(stage.running[place, FIRST], stage.running[place, FIRST] + stage.running[place, COUNT]):
        free[stage.pool[k, 0]] += sign * stage.pool[k, 1]
    for q in range(sfree.shape[0]):
        sfree[q] += sign * stage.held[place, q]


@inner_kernel
def close_pool(stage: Stage) -> None:
    """Move the rows of all running jobs together, in the order of their rows."""
    filled, least = 0, -1
    while True:
        found = -1
        for i in range(stage.counters[N_RUNNING]):
            first = stage.running[i, FIRST]
            if first > least and stage.running[i, COUNT] > 0 and (found < 0 or first < stage.running[found, FIRST]):
                found = i
        if found < 0:
            break
        least = stage.running[found, FIRST]
        for k in range(stage.running[found, COUNT]):
            for part in range(2):
                stage.pool[filled + k, part] = stage.pool[least + k, part]
        stage.running[found, FIRST] = filled
        filled += stage.running[found, COUNT]
    stage.counters[N_POOL] = filled


@inner_kernel
def begin(
    job: int, count: int, now: int, shadow: int, crowd: Crowd, stage: Stage, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job on the nodes to which it is mapped; tell whether the pool had room for it."""
    filled = spell_out(crowd.demand[job], scratch.entries, count, tables, scratch)
    if stage.counters[N_POOL] + filled > stage.pool.shape[0]:
        close_pool(stage)
        if stage.counters[N_POOL] + filled > stage.pool.shape[0]:
            stage.counters[LACKS] = 1
            return False
    first, believed = stage.counters[N_POOL], now + crowd.walltime[job]
    place = stage.counters[N_RUNNING]
    while place > 0 and stage.running[place - 1, BELIEVED] > believed:
        for part in range(5):
            stage.running[place, part] = stage.running[place - 1, part]
        for q in range(stage.held.shape[1]):
            stage.held[place, q] = stage.held[place - 1, q]
        place -= 1
    stage.running[place, END], stage.running[place, BELIEVED] = now + max(crowd.length[job], 1), believed
    stage.running[place, FIRST], stage.running[place, COUNT], stage.running[place, JOB] = first, filled, job
    for k in range(filled):
        stage.pool[first + k, 0], stage.pool[first + k, 1] = scratch.columns[k], scratch.amounts[k]
    for q in range(stage.held.shape[1]):
        stage.held[place, q] = scratch.samounts[q]
    stage.counters[N_POOL] += filled
    stage.counters[N_RUNNING] += 1
    change(stage.free, stage.sfree, filled, -1, scratch)
    if believed > shadow:
        change(stage.later, stage.slater, filled, -1, scratch)
    crowd.start[job] = now
    stage.counters[N_WATCHED] -= crowd.watched[job]
    let_go(job, 0, now, crowd, stage)
    return True


@inner_kernel
def let_go(job: int, is_end: int, now: int, crowd: Crowd, stage: Stage) -> None:
    """Release the jobs that wait for the start or the end of a job."""
    for k in range(crowd.links_of[job], crowd.links_of[job + 1]):
        if crowd.links[k, 1] == is_end:
            other = crowd.links[k, 0]
            crowd.missing[other] -= 1
            crowd.release[other] = max(crowd.release[other], now + crowd.links[k, 2])
            if crowd.missing[other] == 0:
                stage.pending[stage.counters[N_PENDING], 0] = crowd.release[other]
                stage.pending[stage.counters[N_PENDING], 1] = other
                stage.counters[N_PENDING] += 1


@inner_kernel
def end_jobs(now: int, crowd: Crowd, stage: Stage) -> bool:
    """End the jobs that end now; tell whether there are any."""
    kept, count = 0, stage.counters[N_RUNNING]
    for i in range(count):
        if stage.running[i, END] <= now:
            add_held(i, 1, stage.free, stage.sfree, stage)
            if stage.running[i, JOB] >= 0:
                let_go(stage.running[i, JOB], 1, now, crowd, stage)
            continue
        if kept < i:
            for part in range(5):
                stage.running[kept, part] = stage.running[i, part]
            for q in range(stage.held.shape[1]):
                stage.held[kept, q] = stage.held[i, q]
        kept += 1
    stage.counters[N_RUNNING] = kept
    return kept < count


@inner_kernel
def enqueue(job: int, stage: Stage) -> bool:
    """Insert a job into the queue; tell whether it is the first one."""
    place = stage.counters[N_QUEUE]
    while place > 0 and stage.queue[place - 1] > job:
        stage.queue[place] = stage.queue[place - 1]
        place -= 1
    stage.queue[place] = job
    stage.counters[N_QUEUE] += 1
    return place == 0


@inner_kernel
def let_come(now: int, new: Array, crowd: Crowd, stage: Stage) -> int:
    """Let jobs come that may start from now on, noted in `new`; return their number, negative if the head changes."""
    count, is_head = 0, False
    while stage.counters[N_ARRIVED] < crowd.arrivals.shape[0]:
        job = crowd.arrivals[stage.counters[N_ARRIVED]]
        if crowd.release[job] > now:
            break
        stage.counters[N_ARRIVED] += 1
        new[count] = job
        count += 1
        is_head = enqueue(job, stage) or is_head
    i = 0
    while i < stage.counters[N_PENDING]:
        if stage.pending[i, 0] > now:
            i += 1
            continue
        job = stage.pending[i, 1]
        stage.counters[N_PENDING] -= 1
        for part in range(2):
            stage.pending[i, part] = stage.pending[stage.counters[N_PENDING], part]
        new[count] = job
        count += 1
        is_head = enqueue(job, stage) or is_head
    return -count if is_head else count


@inner_kernel
def beside_walls(free: Array, sfree: Array, start: int, end: int, walls: Walls, stage: Stage, tables: Tables) -> None:
    """Write to `room` what is free in a time beside what is set aside then."""
    copy(stage.room, free)
    copy(stage.sroom, sfree)
    for wall in range(walls.spans.shape[0]):
        if walls.spans[wall, 0] >= end or walls.spans[wall, 1] <= start:
            continue
        for k in range(walls.spans[wall, 2], walls.spans[wall, 2] + walls.spans[wall, 3]):
            column = walls.taken[k, 0]
            cut = min(walls.taken[k, 1], max(stage.room[column], 0))
            stage.room[column] -= cut
            for part in range(2):
                if tables.colsys[column, part] >= 0:
                    stage.sroom[tables.colsys[column, part]] -= cut
        for q in range(stage.sroom.shape[0]):
            stage.sroom[q] -= walls.sums[wall, q]


@inner_kernel
def map_for(
    job: int,
    free: Array,
    sfree: Array,
    start: int,
    crowd: Crowd,
    walls: Walls,
    stage: Stage,
    tables: Tables,
    scratch: Scratch,
) -> int:
    """Map a job to what is free for its walltime; return the number of entries, 0 if it does not fit."""
    if walls.spans.shape[0] == 0:
        return map_now(crowd.demand[job], free, sfree, tables, scratch)
    if not has_sums(crowd.demand[job], sfree, tables.demands, tables.sysreq):
        return 0
    beside_walls(free, sfree, start, start + crowd.walltime[job], walls, stage, tables)
    return map_now(crowd.demand[job], stage.room, stage.sroom, tables, scratch)


@inner_kernel
def next_wall(now: int, walls: Walls) -> int:
    """Return when what is set aside changes next, FOREVER if never."""
    found = FOREVER
    for wall in range(walls.spans.shape[0]):
        for part in range(2):
            if now < walls.spans[wall, part] < found:
                found = walls.spans[wall, part]
    return found


@inner_kernel
def reserve(head: int, now: int, crowd: Crowd, walls: Walls, stage: Stage, tables: Tables, scratch: Scratch) -> int:
    """Return when the head can start if all jobs take their walltimes; set `later` to what is free then, before it."""
    copy(stage.later, stage.free)
    copy(stage.slater, stage.sfree)
    copy(stage.slow, stage.sfree)
    i, moved, wall = 0, 0, next_wall(now, walls)
    count = stage.counters[N_RUNNING]
    while i < count or wall < FOREVER:
        time = max(stage.running[i, BELIEVED], now + 1) if i < count else FOREVER
        time = min(time, wall)
        while i < count and max(stage.running[i, BELIEVED], now + 1) <= time:
            for q in range(stage.slow.shape[0]):
                stage.slow[q] += stage.held[i, q]
            i += 1
        if wall == time:
            wall = next_wall(time, walls)
        if not has_sums(crowd.demand[head], stage.slow, tables.demands, tables.sysreq):
            continue
        while moved < i:
            add_held(moved, 1, stage.later, stage.slater, stage)
            moved += 1
        if map_for(head, stage.later, stage.slater, time, crowd, walls, stage, tables, scratch) > 0:
            return time
    return FOREVER


@inner_kernel
def choose_nodes(
    head: int, shadow: int, crowd: Crowd, walls: Walls, stage: Stage, tables: Tables, scratch: Scratch
) -> bool:
    """Choose nodes for the head so that others can start now, and set `low` to what is then free; tell if any are."""
    later = stage.later
    if walls.spans.shape[0] > 0:
        beside_walls(stage.later, stage.slater, shadow, shadow + crowd.walltime[head], walls, stage, tables)
        later = stage.room
    count = map_late(crowd.demand[head], stage.free, later, stage.low, tables, scratch)
    if count == 0:
        return False
    copy(stage.low, stage.later)
    copy(stage.slow, stage.slater)
    change(stage.low, stage.slow, spell_out(crowd.demand[head], scratch.entries, count, tables, scratch), -1, scratch)
    for k in range(stage.low.shape[0]):
        stage.low[k] = min(stage.low[k], stage.free[k])
    for q in range(stage.slow.shape[0]):
        stage.slow[q] = min(stage.slow[q], stage.sfree[q])
    return True


@inner_kernel
def start_heads(now: int, crowd: Crowd, walls: Walls, stage: Stage, tables: Tables, scratch: Scratch) -> None:
    """Start jobs from the front of the queue up to the first one that does not fit, and take them out."""
    started = 0
    while started < stage.counters[N_QUEUE]:
        job = stage.queue[started]
        count = map_for(job, stage.free, stage.sfree, now, crowd, walls, stage, tables, scratch)
        if count == 0 or not begin(job, count, now, FOREVER, crowd, stage, tables, scratch):
            break
        started += 1
    if started > 0:
        for i in range(started, stage.counters[N_QUEUE]):
            stage.queue[i - started] = stage.queue[i]
        stage.counters[N_QUEUE] -= started


@inner_kernel
def is_full_up(crowd: Crowd, stage: Stage) -> bool:
    """Tell whether too little is free for any job."""
    for q in range(crowd.least.shape[0]):
        if stage.sfree[q] < crowd.least[q]:
            return True
    return False


@inner_kernel
def start_behind(
    candidates: Array, now: int, shadow: int, crowd: Crowd, walls: Walls, stage: Stage, tables: Tables, scratch: Scratch
) -> None:
    """Start those of some jobs behind the head that fit and do not delay it."""
    stamp, head = stage.counters[N_PASSES], stage.queue[0]
    is_chosen, has_nodes, has_started = False, False, False
    for i in range(candidates.shape[0]):
        if is_full_up(crowd, stage):
            break
        job = candidates[i]
        if crowd.start[job] >= 0 or job == head:
            continue
        demand, is_long = crowd.demand[job], now + crowd.walltime[job] > shadow
        place = 1 if is_long else 0
        if stage.failed[demand, 0] == stamp or stage.failed[demand, place] == stamp:
            continue
        if not has_sums(demand, stage.sfree, tables.demands, tables.sysreq):
            stage.failed[demand, 0] = stamp
            continue
        if is_long and not is_chosen:
            has_nodes, is_chosen = choose_nodes(head, shadow, crowd, walls, stage, tables, scratch), True
        if is_long and not has_nodes:
            continue
        if is_long:
            count = map_for(job, stage.low, stage.slow, now, crowd, walls, stage, tables, scratch)
        else:
            count = map_for(job, stage.free, stage.sfree, now, crowd, walls, stage, tables, scratch)
        if count == 0:
            if walls.spans.shape[0] == 0:  # a shorter job may end before what is set aside
                stage.failed[demand, place] = stamp
            continue
        if not begin(job, count, now, shadow, crowd, stage, tables, scratch):
            break
        is_chosen, has_started = False, True
    if has_started:
        kept = 0
        for i in range(stage.counters[N_QUEUE]):
            if crowd.start[stage.queue[i]] < 0:
                stage.queue[kept] = stage.queue[i]
                kept += 1
        stage.counters[N_QUEUE] = kept


@kernel
def play(crowd: Crowd, walls: Walls, stage: Stage, new: Array, tables: Tables, scratch: Scratch) -> None:
    """Play a future until all watched jobs have started, or nothing happens any more."""
    shadow, is_full, now = FOREVER, True, -1
    while stage.counters[N_WATCHED] > 0 and stage.counters[LACKS] == 0:
        time = FOREVER
        if stage.counters[N_ARRIVED] < crowd.arrivals.shape[0]:
            time = crowd.release[crowd.arrivals[stage.counters[N_ARRIVED]]]
        for i in range(stage.counters[N_PENDING]):
            time = min(time, stage.pending[i, 0])
        for i in range(stage.counters[N_RUNNING]):
            time = min(time, stage.running[i, END])
        if stage.counters[N_QUEUE] > 0:
            wall = next_wall(now, walls)
            is_full = is_full or wall <= time
            time = min(time, wall)
        if time == FOREVER:
            break
        now = max(time, now)
        is_full = end_jobs(now, crowd, stage) or is_full
        count = let_come(now, new, crowd, stage)
        is_full = is_full or count < 0
        if stage.counters[N_QUEUE] == 0:
            is_full = True
            continue
        if is_full_up(crowd, stage):
            is_full = True
            continue
        stage.counters[N_PASSES] += 1
        if is_full:
            start_heads(now, crowd, walls, stage, tables, scratch)
            if stage.counters[N_QUEUE] == 0 or stage.counters[LACKS]:
                continue
            if stage.counters[N_QUEUE] > 1 and not is_full_up(crowd, stage):
                shadow = reserve(stage.queue[0], now, crowd, walls, stage, tables, scratch)
                start_behind(
                    stage.queue[1 : stage.counters[N_QUEUE]], now, shadow, crowd, walls, stage, tables, scratch
                )
                is_full = False
        else:
            start_behind(new[:count], now, shadow, crowd, walls, stage, tables, scratch)
