"""The compiled player of one future: jobs start in their turn, and out of turn where that does not delay the head.

`futures.py` owns shapes, units and checks. Running jobs end when this future says so; the rule believes that they take
their walltimes. Within a second jobs end first, then others arrive, then there is one pass through the queue.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from cpsched.rusv import FOREVER, inner_kernel, instant_kernels, kernel, kernels

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
def add_held(place, sign, free, sfree, s):
    """Add what a running job holds (times `sign`) to free amounts."""
    for k in range(s.running[place, FIRST], s.running[place, FIRST] + s.running[place, COUNT]):
        free[s.pool[k, 0]] += sign * s.pool[k, 1]
    for q in range(sfree.shape[0]):
        sfree[q] += sign * s.held[place, q]


@inner_kernel
def close_pool(s):
    """Move the rows of all running jobs together, in the order of their rows."""
    filled, least = 0, -1
    while True:
        found = -1
        for i in range(s.counters[N_RUNNING]):
            first = s.running[i, FIRST]
            if first > least and s.running[i, COUNT] > 0 and (found < 0 or first < s.running[found, FIRST]):
                found = i
        if found < 0:
            break
        least = s.running[found, FIRST]
        for k in range(s.running[found, COUNT]):
            for part in range(2):
                s.pool[filled + k, part] = s.pool[least + k, part]
        s.running[found, FIRST] = filled
        filled += s.running[found, COUNT]
    s.counters[N_POOL] = filled


@inner_kernel
def begin(job, count, now, shadow, c, s, t, x):
    """Start a job on the nodes to which it is mapped; tell whether the pool had room for it."""
    filled = spell_out(c.demand[job], x.entries, count, t, x)
    if s.counters[N_POOL] + filled > s.pool.shape[0]:
        close_pool(s)
        if s.counters[N_POOL] + filled > s.pool.shape[0]:
            s.counters[LACKS] = 1
            return False
    first, believed = s.counters[N_POOL], now + c.walltime[job]
    place = s.counters[N_RUNNING]
    while place > 0 and s.running[place - 1, BELIEVED] > believed:
        for part in range(5):
            s.running[place, part] = s.running[place - 1, part]
        for q in range(s.held.shape[1]):
            s.held[place, q] = s.held[place - 1, q]
        place -= 1
    s.running[place, END], s.running[place, BELIEVED] = now + max(c.length[job], 1), believed
    s.running[place, FIRST], s.running[place, COUNT], s.running[place, JOB] = first, filled, job
    for k in range(filled):
        s.pool[first + k, 0], s.pool[first + k, 1] = x.columns[k], x.amounts[k]
    for q in range(s.held.shape[1]):
        s.held[place, q] = x.samounts[q]
    s.counters[N_POOL] += filled
    s.counters[N_RUNNING] += 1
    change(s.free, s.sfree, filled, -1, x)
    if believed > shadow:
        change(s.later, s.slater, filled, -1, x)
    c.start[job] = now
    s.counters[N_WATCHED] -= c.watched[job]
    let_go(job, 0, now, c, s)
    return True


@inner_kernel
def let_go(job, is_end, now, c, s):
    """Release the jobs that wait for the start or the end of a job."""
    for k in range(c.links_of[job], c.links_of[job + 1]):
        if c.links[k, 1] == is_end:
            other = c.links[k, 0]
            c.missing[other] -= 1
            c.release[other] = max(c.release[other], now + c.links[k, 2])
            if c.missing[other] == 0:
                s.pending[s.counters[N_PENDING], 0] = c.release[other]
                s.pending[s.counters[N_PENDING], 1] = other
                s.counters[N_PENDING] += 1


@inner_kernel
def end_jobs(now, c, s):
    """End the jobs that end now; tell whether there are any."""
    kept, count = 0, s.counters[N_RUNNING]
    for i in range(count):
        if s.running[i, END] <= now:
            add_held(i, 1, s.free, s.sfree, s)
            if s.running[i, JOB] >= 0:
                let_go(s.running[i, JOB], 1, now, c, s)
            continue
        if kept < i:
            for part in range(5):
                s.running[kept, part] = s.running[i, part]
            for q in range(s.held.shape[1]):
                s.held[kept, q] = s.held[i, q]
        kept += 1
    s.counters[N_RUNNING] = kept
    return kept < count


@inner_kernel
def enqueue(job, s):
    """Insert a job into the queue; tell whether it is the first one."""
    place = s.counters[N_QUEUE]
    while place > 0 and s.queue[place - 1] > job:
        s.queue[place] = s.queue[place - 1]
        place -= 1
    s.queue[place] = job
    s.counters[N_QUEUE] += 1
    return place == 0


@inner_kernel
def let_come(now, new, c, s):
    """Let jobs come that may start from now on, noted in `new`; return their number, negative if the head changes."""
    count, is_head = 0, False
    while s.counters[N_ARRIVED] < c.arrivals.shape[0]:
        job = c.arrivals[s.counters[N_ARRIVED]]
        if c.release[job] > now:
            break
        s.counters[N_ARRIVED] += 1
        new[count] = job
        count += 1
        is_head = enqueue(job, s) or is_head
    i = 0
    while i < s.counters[N_PENDING]:
        if s.pending[i, 0] > now:
            i += 1
            continue
        job = s.pending[i, 1]
        s.counters[N_PENDING] -= 1
        for part in range(2):
            s.pending[i, part] = s.pending[s.counters[N_PENDING], part]
        new[count] = job
        count += 1
        is_head = enqueue(job, s) or is_head
    return -count if is_head else count


@inner_kernel
def beside_walls(free, sfree, start, end, w, s, t):
    """Write to `room` what is free in a time beside what is set aside then."""
    copy(s.room, free)
    copy(s.sroom, sfree)
    for wall in range(w.spans.shape[0]):
        if w.spans[wall, 0] >= end or w.spans[wall, 1] <= start:
            continue
        for k in range(w.spans[wall, 2], w.spans[wall, 2] + w.spans[wall, 3]):
            column = w.taken[k, 0]
            cut = min(w.taken[k, 1], max(s.room[column], 0))
            s.room[column] -= cut
            for part in range(2):
                if t.colsys[column, part] >= 0:
                    s.sroom[t.colsys[column, part]] -= cut
        for q in range(s.sroom.shape[0]):
            s.sroom[q] -= w.sums[wall, q]


@inner_kernel
def map_for(job, free, sfree, start, c, w, s, t, x):
    """Map a job to what is free for its walltime; return the number of entries, 0 if it does not fit."""
    if w.spans.shape[0] == 0:
        return map_now(c.demand[job], free, sfree, t, x)
    if not has_sums(c.demand[job], sfree, t.demands, t.sysreq):
        return 0
    beside_walls(free, sfree, start, start + c.walltime[job], w, s, t)
    return map_now(c.demand[job], s.room, s.sroom, t, x)


@inner_kernel
def next_wall(now, w):
    """Return when what is set aside changes next, FOREVER if never."""
    found = FOREVER
    for wall in range(w.spans.shape[0]):
        for part in range(2):
            if now < w.spans[wall, part] < found:
                found = w.spans[wall, part]
    return found


@inner_kernel
def reserve(head, now, c, w, s, t, x):
    """Return when the head can start if all jobs take their walltimes; set `later` to what is free then, before it."""
    copy(s.later, s.free)
    copy(s.slater, s.sfree)
    copy(s.slow, s.sfree)
    i, moved, wall = 0, 0, next_wall(now, w)
    count = s.counters[N_RUNNING]
    while i < count or wall < FOREVER:
        time = max(s.running[i, BELIEVED], now + 1) if i < count else FOREVER
        time = min(time, wall)
        while i < count and max(s.running[i, BELIEVED], now + 1) <= time:
            for q in range(s.slow.shape[0]):
                s.slow[q] += s.held[i, q]
            i += 1
        if wall == time:
            wall = next_wall(time, w)
        if not has_sums(c.demand[head], s.slow, t.demands, t.sysreq):
            continue
        while moved < i:
            add_held(moved, 1, s.later, s.slater, s)
            moved += 1
        if map_for(head, s.later, s.slater, time, c, w, s, t, x) > 0:
            return time
    return FOREVER


@inner_kernel
def choose_nodes(head, shadow, c, w, s, t, x):
    """Choose nodes for the head so that others can start now, and set `low` to what is then free; tell if any are."""
    later = s.later
    if w.spans.shape[0] > 0:
        beside_walls(s.later, s.slater, shadow, shadow + c.walltime[head], w, s, t)
        later = s.room
    count = map_late(c.demand[head], s.free, later, s.low, t, x)
    if count == 0:
        return False
    copy(s.low, s.later)
    copy(s.slow, s.slater)
    change(s.low, s.slow, spell_out(c.demand[head], x.entries, count, t, x), -1, x)
    for k in range(s.low.shape[0]):
        s.low[k] = min(s.low[k], s.free[k])
    for q in range(s.slow.shape[0]):
        s.slow[q] = min(s.slow[q], s.sfree[q])
    return True


@inner_kernel
def start_heads(now, c, w, s, t, x):
    """Start jobs from the front of the queue up to the first one that does not fit, and take them out."""
    started = 0
    while started < s.counters[N_QUEUE]:
        job = s.queue[started]
        count = map_for(job, s.free, s.sfree, now, c, w, s, t, x)
        if count == 0 or not begin(job, count, now, FOREVER, c, s, t, x):
            break
        started += 1
    if started > 0:
        for i in range(started, s.counters[N_QUEUE]):
            s.queue[i - started] = s.queue[i]
        s.counters[N_QUEUE] -= started


@inner_kernel
def is_full_up(c, s):
    """Tell whether too little is free for any job."""
    for q in range(c.least.shape[0]):
        if s.sfree[q] < c.least[q]:
            return True
    return False


@inner_kernel
def start_behind(candidates, now, shadow, c, w, s, t, x):
    """Start those of some jobs behind the head that fit and do not delay it."""
    stamp, head = s.counters[N_PASSES], s.queue[0]
    is_chosen, has_nodes, has_started = False, False, False
    for i in range(candidates.shape[0]):
        if is_full_up(c, s):
            break
        job = candidates[i]
        if c.start[job] >= 0 or job == head:
            continue
        demand, is_long = c.demand[job], now + c.walltime[job] > shadow
        place = 1 if is_long else 0
        if s.failed[demand, 0] == stamp or s.failed[demand, place] == stamp:
            continue
        if not has_sums(demand, s.sfree, t.demands, t.sysreq):
            s.failed[demand, 0] = stamp
            continue
        if is_long and not is_chosen:
            has_nodes, is_chosen = choose_nodes(head, shadow, c, w, s, t, x), True
        if is_long and not has_nodes:
            continue
        if is_long:
            count = map_for(job, s.low, s.slow, now, c, w, s, t, x)
        else:
            count = map_for(job, s.free, s.sfree, now, c, w, s, t, x)
        if count == 0:
            if w.spans.shape[0] == 0:  # a shorter job may end before what is set aside
                s.failed[demand, place] = stamp
            continue
        if not begin(job, count, now, shadow, c, s, t, x):
            break
        is_chosen, has_started = False, True
    if has_started:
        kept = 0
        for i in range(s.counters[N_QUEUE]):
            if c.start[s.queue[i]] < 0:
                s.queue[kept] = s.queue[i]
                kept += 1
        s.counters[N_QUEUE] = kept


@kernel
def play(c, w, s, new, t, x):
    """Play a future until all watched jobs have started, or nothing happens any more."""
    shadow, is_full, now = FOREVER, True, -1
    while s.counters[N_WATCHED] > 0 and s.counters[LACKS] == 0:
        time = FOREVER
        if s.counters[N_ARRIVED] < c.arrivals.shape[0]:
            time = c.release[c.arrivals[s.counters[N_ARRIVED]]]
        for i in range(s.counters[N_PENDING]):
            time = min(time, s.pending[i, 0])
        for i in range(s.counters[N_RUNNING]):
            time = min(time, s.running[i, END])
        if s.counters[N_QUEUE] > 0:
            wall = next_wall(now, w)
            is_full = is_full or wall <= time
            time = min(time, wall)
        if time == FOREVER:
            break
        now = max(time, now)
        is_full = end_jobs(now, c, s) or is_full
        count = let_come(now, new, c, s)
        is_full = is_full or count < 0
        if s.counters[N_QUEUE] == 0:
            is_full = True
            continue
        if is_full_up(c, s):
            is_full = True
            continue
        s.counters[N_PASSES] += 1
        if is_full:
            start_heads(now, c, w, s, t, x)
            if s.counters[N_QUEUE] == 0 or s.counters[LACKS]:
                continue
            if s.counters[N_QUEUE] > 1 and not is_full_up(c, s):
                shadow = reserve(s.queue[0], now, c, w, s, t, x)
                start_behind(s.queue[1 : s.counters[N_QUEUE]], now, shadow, c, w, s, t, x)
                is_full = False
        else:
            start_behind(new[:count], now, shadow, c, w, s, t, x)
