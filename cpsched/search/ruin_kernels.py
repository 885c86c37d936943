"""Which jobs a step removes, and in which order it inserts them again, compiled."""

import numpy as np

from cpsched.rusv import FOREVER, Array, inner_kernel, kernels
from cpsched.search.arrays import FINES, NO_DEMAND, Changes, Jobs, Places, Step
from cpsched.search.change_kernels import find_slowest
from cpsched.search.place_kernels import below, demand_of, last_end, uniform

#: The most nodes that are cleared for a job.
_MOST_CLEARED = 8
#: Where jobs are left out, such a part of the steps makes room for one of them.
_RESCUED = 0.3


# --- which jobs ------------------------------------------------------------------------------------------------------


@inner_kernel
def choose(job: int, found: int, step: Step) -> int:
    """Add a job to the `found` removed ones, unless it is among them; return how many there are."""
    now = step.marks[step.marks.shape[0] - 1]
    if step.marks[job] == now:
        return found
    step.marks[job] = now
    step.chosen[found] = job
    return found + 1


@inner_kernel
def choose_near(wanted: int, starts: Array, step: Step) -> int:
    """Choose a job, and others that start at about the same time: each the nearest of a few drawn."""
    count = step.marks.shape[0] - 1
    first = below(step.random, count)
    found = choose(first, 0, step)
    while found < wanted:
        nearest, distance = -1, FOREVER
        for _ in range(24):
            job = below(step.random, count)
            apart = abs(starts[job] - starts[first])
            if step.marks[job] != step.marks[count] and apart < distance:
                nearest, distance = job, apart
        if nearest < 0:
            break
        found = choose(nearest, found, step)
    return found


@inner_kernel
def choose_any(wanted: int, step: Step) -> int:
    """Choose jobs at random."""
    found = 0
    for _ in range(wanted):
        found = choose(below(step.random, step.marks.shape[0] - 1), found, step)
    return found


@inner_kernel
def one_of(firsts: Array, entries: Array, milestone: int, random: Array) -> int:
    """Choose one of the jobs of a milestone at random."""
    first, count = firsts[milestone], firsts[milestone + 1] - firsts[milestone]
    return entries[first + (below(random, count) if count > 1 else 0), 0]


@inner_kernel
def choose_linked(wanted: int, jobs: Jobs, step: Step) -> int:
    """Choose a job, and others that wait for those chosen already or for which these wait, in a random walk."""
    links = jobs.linked.links
    found = choose(below(step.random, step.marks.shape[0] - 1), 0, step)
    for _ in range(3 * wanted):
        job = step.chosen[below(step.random, found)]
        before = links.waits_of[job + 1] - links.waits_of[job]
        after = links.leads_of[job + 1] - links.leads_of[job]
        if before + after == 0:
            continue
        link = below(step.random, before + after)
        if link < before:
            job = one_of(links.before_of, links.before, links.waits[links.waits_of[job] + link, 0], step.random)
        else:
            link -= before
            job = one_of(links.after_of, links.after, links.leads[links.leads_of[job] + link, 0], step.random)
        found = choose(job, found, step)
        if found == wanted:
            break
    return found


@inner_kernel
def left_out_from(first: int, jobs: Jobs, plan: Places) -> int:
    """Return the first job from `first` on, in a circle, that the plan leaves out; -1 if there is none."""
    count = jobs.least.shape[0]
    for place in range(count):
        job = (first + place) % count
        if demand_of(job, jobs, plan) == NO_DEMAND:
            return job
    return -1


@inner_kernel
def dearest_wait(jobs: Jobs, plan: Places, step: Step) -> int:
    """Return the job that pays most for its wait, out of three drawn that are not removed yet; -1 if none waits."""
    count, waiting, dearest = jobs.least.shape[0], -1, 0.0
    for _ in range(3):
        job = below(step.random, count)
        cost = plan.paid[job] - jobs.least[job]
        is_left = step.marks[job] != step.marks[count] and demand_of(job, jobs, plan) != NO_DEMAND
        if is_left and cost > dearest:
            waiting, dearest = job, cost
    return waiting


@inner_kernel
def widest(job: int, plan: Places) -> int:
    """Return the most entries that a job has at a time."""
    width = 1
    for k in range(plan.counts[job]):
        width = max(width, plan.entries[job, k])
    return width


@inner_kernel
def choose_in_the_way(jobs: Jobs, plan: Places, step: Step) -> int:
    """Choose a job whose wait costs much, an earlier start for it, and the jobs that run then on some consecutive
    nodes, as many as it holds. Or, where the plan leaves out jobs, one of them, a start in time, and some nodes.

    Returns how many were chosen, 0 if no job waits; the job for which room is made is the first.
    """
    count, num_nodes = jobs.least.shape[0], step.fits.shape[0]
    waiting, width = -1, min(num_nodes, _MOST_CLEARED)
    if step.figures[FINES] > 0.0 and uniform(step.random) < _RESCUED:
        waiting = left_out_from(below(step.random, count), jobs, plan)
    if waiting >= 0:
        full = jobs.first_mode[waiting]
        begin = kernels.earliest_after(waiting, jobs.earliest[waiting], jobs.linked)
        latest = kernels.latest_before(waiting, jobs.latest[full], jobs.linked)
        if latest < begin:
            return 0
        begin += below(step.random, min(latest, max(begin, last_end(jobs, plan))) - begin + 1)
        end, width = begin + jobs.durations[full], 1 + below(step.random, width)
    else:
        waiting = dearest_wait(jobs, plan, step)
        if waiting < 0:
            return 0
        nearness, earliest, start = uniform(step.random), jobs.earliest[waiting], plan.starts[waiting]
        begin = max(earliest, start - 1 - int(nearness * nearness * (start - earliest)))
        end, width = begin + plan.ends[waiting] - start, min(width, widest(waiting, plan))
    found = choose(waiting, 0, step)
    node, offset = below(step.random, num_nodes), below(step.random, count)
    for place in range(count):
        job = place + offset
        if job >= count:
            job -= count
        if plan.starts[job] >= end or plan.ends[job] <= begin:
            continue
        for k in range(width):
            at = (node + k) % num_nodes
            if step.nodes_of[job, at >> 6] & (np.uint64(1) << np.uint64(at & 63)) != np.uint64(0):
                found = choose(job, found, step)
                break
        if found == step.chosen.shape[0]:
            break
    return found


@inner_kernel
def choose_to_lend(wanted: int, jobs: Jobs, plan: Places, step: Step, changes: Changes) -> tuple[int, int]:
    """Choose a malleable job, a mode for it (`slower`), the jobs that are in the way of its running longer, and some
    others that start later than it does.

    Returns (how many were chosen, the malleable job); 0 if nothing was found.
    """
    count, most = jobs.least.shape[0], step.chosen.shape[0]
    lender = changes.lenders[below(step.random, changes.lenders.shape[0])]
    if plan.counts[lender] == 0:
        return 0, 0
    number = 1 + below(step.random, jobs.first_mode[lender + 1] - jobs.first_mode[lender] - 1)
    if not find_slowest(lender, number, jobs, plan, changes):
        return 0, 0
    end, found = changes.slower.ends[0], 0
    for job in range(count):
        if job != lender and plan.starts[job] < end and plan.ends[job] > plan.ends[lender]:
            is_there = False
            for word in range(step.nodes_of.shape[1]):
                is_there |= step.nodes_of[job, word] & step.nodes_of[lender, word] != np.uint64(0)
            if is_there:
                if found == most:
                    return 0, 0
                found = choose(job, found, step)
    most = min(found + wanted, most)
    for _ in range(3 * wanted):
        if found == most:
            break
        job = dearest_wait(jobs, plan, step)
        if job >= 0 and job != lender and plan.starts[job] > plan.starts[lender]:
            found = choose(job, found, step)
    return found, lender


# --- in which order --------------------------------------------------------------------------------------------------


@inner_kernel
def sort_in(key: float, item: int, place: int, keys: Array, items: Array) -> None:
    """Insert an item into the first `place` items, which ascend by key."""
    while place > 0 and keys[place - 1] > key:
        keys[place], items[place] = keys[place - 1], items[place - 1]
        place -= 1
    keys[place], items[place] = key, item


@inner_kernel
def choose_order(found: int, is_way_made: bool, jobs: Jobs, plan: Places, step: Step) -> None:
    """Set `order` to that in which the removed jobs are inserted: at random, by rank with noise, or by old start."""
    style, noise = uniform(step.random), 0.0
    if style < 0.6:
        noise = 0.3 if style < 0.4 else 1.5
    for slot in range(found):
        job = step.chosen[slot]
        if style < 0.15:
            key = uniform(step.random)
        elif style < 0.6:
            key = jobs.ranks[job] * (1.0 + noise * (2.0 * uniform(step.random) - 1.0))
        else:
            duration = plan.ends[job] - plan.starts[job]
            key = plan.starts[job] * (1.0 + 0.3 * uniform(step.random)) + 0.3 * uniform(step.random) * duration
        if slot == 0 and is_way_made and uniform(step.random) < 0.9:
            key = -np.inf
        sort_in(key, slot, slot, step.keys, step.order)


@inner_kernel
def bring_forward(turn: int, found: int, jobs: Jobs, step: Step) -> None:
    """Make the first removed job that waits for none of the others the next one to be inserted."""
    at = turn
    while at < found - 1 and kernels.earliest_after(step.chosen[step.order[at]], 0, jobs.linked) >= FOREVER:
        at += 1
    slot = step.order[at]
    for k in range(at, turn, -1):
        step.order[k] = step.order[k - 1]
    step.order[turn] = slot
