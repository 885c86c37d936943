"""Ruin and recreate on the planner's timeline, compiled: remove a few jobs, insert them again, keep what is better.

The insertion is the planner's own (`earliest_fit` of the timeline's kernels), so that every state of the search is a
plan. What it costs is a sum over the jobs of a function of the start that never falls (`cost_of`), plus a price on
the end of the last. A step that makes the plan worse is kept with the probability of simulated annealing; the
temperature falls geometrically and is counted in units of the mean cost of a job.
"""

from __future__ import annotations

import numpy as np

from cpsched.rusv import FOREVER, kernel, kernels

#: The most jobs that one step removes.
MOST_REMOVED = 30

# columns of `costs`: cost per second of start, cost per second beyond a threshold, the threshold
RATE, EXTRA_RATE, THRESHOLD = 0, 1, 2
# places in `figures`
VALUE, STEPS, KEPT = 0, 1, 2


# --- random numbers and costs --------------------------------------------------------------------------------------


@kernel
def uniform(random):
    """Return the next number of ``[0, 1)`` (xorshift64*, Vigna 2016)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@kernel
def below(random, count):
    """Return a random integer of ``[0, count)``."""
    return np.int64(uniform(random) * count)


@kernel
def cost_of(job, start, costs):
    """Return what a start costs: so much a second, and so much more for each second beyond a threshold."""
    return costs[job, RATE] * start + costs[job, EXTRA_RATE] * max(0.0, start - costs[job, THRESHOLD])


@kernel
def latest_for(job, room, costs):
    """Return the latest start that costs no more than `room` (-1 if there is none)."""
    if room < 0.0:
        return np.int64(-1)
    rate, extra, threshold = costs[job, RATE], costs[job, EXTRA_RATE], costs[job, THRESHOLD]
    if extra > 0.0 and room >= rate * max(0.0, threshold):
        latest = (room + extra * threshold) / (rate + extra)
    elif rate > 0.0:
        latest = room / rate
    else:
        return FOREVER
    return np.int64(min(latest + 1e-6, 1e17))


# --- which jobs to remove ------------------------------------------------------------------------------------------


@kernel
def choose_near(wanted, starts, chosen, marks, random):
    """Choose a job, and others that start at about the same time: each the nearest of a few drawn."""
    count = starts.shape[0]
    chosen[0] = below(random, count)
    marks[chosen[0]] = marks[count]
    for place in range(1, wanted):
        nearest, distance = -1, FOREVER
        for _ in range(24):
            job = below(random, count)
            apart = abs(starts[job] - starts[chosen[0]])
            if marks[job] != marks[count] and apart < distance:
                nearest, distance = job, apart
        if nearest < 0:
            return place
        chosen[place] = nearest
        marks[nearest] = marks[count]
    return wanted


@kernel
def choose_any(wanted, starts, chosen, marks, random):
    """Choose jobs at random."""
    count = starts.shape[0]
    found = 0
    for _ in range(wanted):
        job = below(random, count)
        if marks[job] != marks[count]:
            marks[job] = marks[count]
            chosen[found] = job
            found += 1
    return found


@kernel
def choose_in_the_way(jobs, starts, costs, nodes_of, num_nodes, chosen, marks, random):
    """Choose a job that waits dearly, an earlier start for it, and the jobs that stand there on as many nodes as it
    has.

    Returns how many were chosen, 0 if nobody waits; the one for whom room is made stands first.
    """
    count = starts.shape[0]
    waiting, dearest = -1, 0.0
    for _ in range(3):
        job = below(random, count)
        cost = cost_of(job, starts[job], costs) - cost_of(job, jobs[job, 1], costs)
        if cost > dearest:
            waiting, dearest = job, cost
    if waiting < 0:
        return 0
    nearness = uniform(random)
    begin = max(
        jobs[waiting, 1], starts[waiting] - 1 - np.int64(nearness * nearness * (starts[waiting] - jobs[waiting, 1]))
    )
    end = begin + jobs[waiting, 3]
    chosen[0] = waiting
    marks[waiting] = marks[count]
    found = 1
    width = 0
    for word in range(nodes_of.shape[1]):
        bits = nodes_of[waiting, word]
        while bits != np.uint64(0):
            bits &= bits - np.uint64(1)
            width += 1
    node, offset = below(random, num_nodes), below(random, count)
    for _ in range(min(width, 8)):
        word, bit = node >> 6, np.uint64(1) << np.uint64(node & 63)
        for place in range(count):
            job = place + offset
            if job >= count:
                job -= count
            if marks[job] == marks[count] or nodes_of[job, word] & bit == np.uint64(0):
                continue
            if 0 <= starts[job] < end and starts[job] + jobs[job, 3] > begin:
                chosen[found] = job
                marks[job] = marks[count]
                found += 1
                if found == MOST_REMOVED:
                    return found
        node += 1
        if node == num_nodes:
            node = 0
    return found


# --- in which order they come back -----------------------------------------------------------------------------------


@kernel
def choose_order(found, is_way_made, jobs, starts, ranks, chosen, keys, sequence, random):
    """Set `sequence` to the order in which the removed jobs are inserted: by rank with noise, by old start, or at
    random.
    """
    style = uniform(random)
    noise = 0.3 if style < 0.4 else 1.5
    for place in range(found):
        job = chosen[place]
        if style < 0.15:
            key = uniform(random)
        elif style < 0.6:
            key = ranks[job] * (1.0 + noise * (2.0 * uniform(random) - 1.0))
        else:
            key = starts[job] * (1.0 + 0.3 * uniform(random)) + 0.3 * uniform(random) * jobs[job, 3]
        if place == 0 and is_way_made and uniform(random) < 0.9:
            key = -np.inf
        at = place
        while at > 0 and keys[at - 1] > key:
            keys[at], sequence[at] = keys[at - 1], sequence[at - 1]
            at -= 1
        keys[at], sequence[at] = key, place


# --- the search ------------------------------------------------------------------------------------------------------


@kernel
def note_nodes(job, spans, pool, nodes_of):
    """Set the bits of the nodes on which a job stands."""
    for word in range(nodes_of.shape[1]):
        nodes_of[job, word] = np.uint64(0)
    for e in range(spans[job, 0], spans[job, 0] + spans[job, 1]):
        node = pool[e, 0]
        nodes_of[job, node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@kernel
def last_end(jobs, starts):
    """Return the end of the last job."""
    latest = np.int64(0)
    for job in range(starts.shape[0]):
        latest = max(latest, starts[job] + jobs[job, 3])
    return latest


@kernel
def take_out(
    job, jobs, starts, spans, pool,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
    columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Give back what a job holds; its entries stay in the pool."""
    start, end, first, count = starts[job], starts[job] + jobs[job, 3], spans[job, 0], spans[job, 1]
    kernels.take_placement(
        jobs[job, 0], pool[first : first + count], count, start, end, 1,
        head, slots, order, members, rows, blk, srows, sblk, spare,
        demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
        columns, amounts, scolumns, samounts, stamps,
    )  # fmt: skip
    kernels.drop_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
    kernels.drop_break(end, head, slots, order, members, rows, blk, srows, sblk, spare)
    starts[job] = -1


@kernel
def put_in(
    job, start, entries, count, jobs, starts, spans, pool,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
    columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Let a job stand at these entries from `start` on."""
    kernels.keep_entries(pool, spans[job, 0], entries, count)
    starts[job], spans[job, 1] = start, count
    kernels.add_break(start, head, slots, order, members, rows, blk, srows, sblk, spare)
    kernels.add_break(start + jobs[job, 3], head, slots, order, members, rows, blk, srows, sblk, spare)
    kernels.take_placement(
        jobs[job, 0], entries, count, start, start + jobs[job, 3], -1,
        head, slots, order, members, rows, blk, srows, sblk, spare,
        demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
        columns, amounts, scolumns, samounts, stamps,
    )  # fmt: skip


@kernel
def ruin_and_recreate(
    steps, random, hot, cold, begin, until, end_price, figures,
    jobs, starts, spans, pool, costs, ranks, nodes_of, marks, chosen, keys, sequence, old, old_pool,
    head, slots, order, members, rows, blk, srows, sblk, spare,
    demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, colsys, run_of,
    free, buffer, entries, columns, amounts, scolumns, samounts, stamps,
):  # fmt: skip
    """Do so many steps of simulated annealing between the shares `begin` and `until` of the whole cooling.

    `figures` is carried from call to call. Returns `kernels.DONE`, or `kernels.GROW_STATE` before a step that could
    find no room.
    """
    count = starts.shape[0]
    room = 2 * MOST_REMOVED + 2
    for step in range(steps):
        if head[kernels.H_SPARE_ROWS] < room or head[kernels.H_SPARE_BLOCKS] < room:
            return kernels.GROW_STATE
        figures[STEPS] += 1
        marks[count] += 1
        style = uniform(random)
        most = MOST_REMOVED if uniform(random) < 0.05 else 8
        wanted = 2 + below(random, min(most, count) - 1)
        is_way_made = 0.35 <= style < 0.8
        if style < 0.35:
            found = choose_near(wanted, starts, chosen, marks, random)
        elif is_way_made:
            found = choose_in_the_way(jobs, starts, costs, nodes_of, run_of.shape[0], chosen, marks, random)
        else:
            found = choose_any(wanted, starts, chosen, marks, random)
        if found < 2:
            continue
        choose_order(found, is_way_made, jobs, starts, ranks, chosen, keys, sequence, random)
        before, least = 0.0, 0.0
        end_before = last_end(jobs, starts)
        for place in range(found):
            job = chosen[place]
            before += cost_of(job, starts[job], costs)
            least += cost_of(job, jobs[job, 1], costs)
            old[place, 0], old[place, 1] = starts[job], spans[job, 1]
            for e in range(spans[job, 1]):
                for part in range(3):
                    old_pool[place, e, part] = pool[spans[job, 0] + e, part]
            take_out(
                job, jobs, starts, spans, pool,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
        warmth = hot * (cold / hot) ** (begin + (until - begin) * step / steps)
        limit = before - warmth * max(figures[VALUE], 0.0) / count * np.log(max(uniform(random), 1e-300))
        after, inserted = 0.0, 0
        for turn in range(found):  # as long as the limit can still be kept
            job = chosen[sequence[turn]]
            least -= cost_of(job, jobs[job, 1], costs)
            latest = min(jobs[job, 2], latest_for(job, limit - after - least, costs))
            if latest < jobs[job, 1]:
                break
            start, held = kernels.earliest_fit(
                jobs[job, 0], jobs[job, 1], jobs[job, 3], latest,
                head, slots, order, members, rows, blk, srows, sblk,
                demands, kinds, segments, terms, scale, sysreq, ranges, reach, runs, runcols, capacity, run_of,
                free, buffer, entries,
            )  # fmt: skip
            if start < 0:
                break
            after += cost_of(job, start, costs)
            put_in(
                job, start, entries, held, jobs, starts, spans, pool,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
            inserted += 1
        if inserted == found:
            after += end_price * (last_end(jobs, starts) - end_before)
            if after <= limit:
                figures[VALUE] += after - before
                figures[KEPT] += 1
                for place in range(found):
                    note_nodes(chosen[place], spans, pool, nodes_of)
                continue
        for turn in range(inserted):  # not kept: everything goes back to where it was
            take_out(
                chosen[sequence[turn]], jobs, starts, spans, pool,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
        for place in range(found):
            put_in(
                chosen[place], old[place, 0], old_pool[place], old[place, 1], jobs, starts, spans, pool,
                head, slots, order, members, rows, blk, srows, sblk, spare,
                demands, kinds, segments, terms, sysreq, runs, runcols, capacity, colsys, run_of,
                columns, amounts, scolumns, samounts, stamps,
            )  # fmt: skip
    return kernels.DONE
