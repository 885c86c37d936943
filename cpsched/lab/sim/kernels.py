"""The compiled event loop of queue rules. `rule_choice.py` owns shapes, units and checks.

Events are ends, corrections of estimates, deadlines, outages, changes of what is set aside, booked starts and arrivals,
in this order within a second. After all events of a second there is one pass through the queue.
"""

import numpy as np

from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import BY, C, J, R, enqueue, insert_end, place_in_queue, pop, push, remove_end, sort_by_key
from cpsched.lab.sim.easy_kernels import compare_waits, replay_easy
from cpsched.lab.sim.hold_kernels import (
    has_asides,
    hold_all,
    hold_columns,
    next_change,
    note_head,
    room_beside,
    room_between,
    room_from,
    room_until,
    set_aside,
    set_node_aside,
    shift_column,
)
from cpsched.lab.sim.queue_kernels import expect, key_of, sort_queue
from cpsched.lab.sim.reserving_kernels import can_any_start, pass_reserving
from cpsched.lab.sim.run_kernels import (
    asked_by,
    begin_run,
    close_gaps,
    end_run,
    map_first,
    map_from_now,
    move_until,
    num_choices,
    open_choice,
    spell_job,
    take_choice,
)
from cpsched.lab.sim.stop_kernels import cut_short, lose_suspended, resumes, serve_urgent
from cpsched.rusv import FOREVER, allocating_kernel, inner_kernel, instant_kernels, kernel, kernels

copy, lower_by_two = kernels.copy, kernels.lower_by_two
change, has_sums = instant_kernels.change, instant_kernels.has_sums
map_late, map_now, spell_out = instant_kernels.map_late, instant_kernels.map_now, instant_kernels.spell_out

# --- jobs that can start no more, and jobs with one start ------------------------------------------------------------


@inner_kernel
def expire(job, s):
    """Remove a job from the queue that can no longer meet its deadline."""
    for i in range(place_in_queue(job, s.keys, s.queue, s.clock), s.clock[C.QUEUED] - 1):
        s.queue[i] = s.queue[i + 1]
    s.clock[C.QUEUED] -= 1
    s.runs[job, R.ENDING] = arrays.REFUSED
    s.expired[s.clock[C.EXPIRED]] = job
    s.clock[C.EXPIRED] += 1
    s.clock[C.IS_FULL] = 1
    if s.clock[C.RESERVED] == job:
        s.clock[C.RESERVED] = -1


@inner_kernel
def start_or_refuse(job, now, s, m, t, x):
    """Start a job that may start only now, if it fits."""
    count = map_from_now(job, now, s, m, t, x)
    s.runs[job, R.COUNT] = 0
    if count > 0:
        begin_run(job, count, now, s, m, t, x)
    else:
        s.runs[job, R.ENDING] = arrays.REFUSED


@inner_kernel
def book_ahead(job, now, s, m, t, x):
    """Book nodes for a job that may start at one second only: they are set aside from then on for its walltime, where
    enough is free beside running jobs and what is set aside. If there are none, the job is refused.
    """
    s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
    start = s.start_at[job]
    end = start + s.jobs[job, J.WALLTIME]
    if start == now:
        start_or_refuse(job, now, s, m, t, x)
        return
    room_between(start, end, s, m, t)
    count = map_now(s.demand[job], m.room, m.sroom, t, x)
    if count == 0:
        s.runs[job, R.ENDING] = arrays.REFUSED
        return
    first = s.clock[C.POOL]
    for e in range(count):
        for part in range(3):
            s.pool[first + e, part] = x.entries[e, part]
    s.clock[C.POOL] += count
    s.runs[job, R.FIRST], s.runs[job, R.COUNT] = first, count
    set_aside(spell_out(s.demand[job], x.entries, count, t, x), 1, start, end, s, x)
    s.clock[C.BOOKINGS] += 1
    push(start, arrays.BOOKED, job, s.heap, s.clock)


@inner_kernel
def begin_booked(job, now, s, m, t, x):
    """Start a job on the nodes that are booked for it; where one of them has failed, on others, if it fits there."""
    first, count = s.runs[job, R.FIRST], s.runs[job, R.COUNT]
    entries = s.pool[first : first + count]
    filled = spell_out(s.demand[job], entries, count, t, x)
    set_aside(filled, -1, now, now + s.jobs[job, J.WALLTIME], s, x)
    hold_columns(filled, s, m, t, x)
    s.clock[C.BOOKINGS] += 1
    s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
    if fits_there(job, entries, s, m, t, x):
        begin_there(job, entries, now, s, m, t, x)
    else:
        start_or_refuse(job, now, s, m, t, x)


# --- estimates -------------------------------------------------------------------------------------------------------


@inner_kernel
def raise_estimate(job, s, m, t, x):
    """Raise the estimate of a job that has outrun it."""
    walltime, bump = s.jobs[job, J.WALLTIME], s.bumps[job]
    old = s.runs[job, R.END]
    s.estimate[job] = min(s.estimate[job] + s.steps[min(bump, s.steps.shape[0] - 1)], walltime)
    s.predicted[job] = s.estimate[job]
    s.bumps[job] += 1
    end = max(s.runs[job, R.START] + s.estimate[job], old + 1)
    remove_end(old, job, s.ends, s.clock)
    insert_end(end, job, s.ends, s.clock)
    s.runs[job, R.END] = end
    if old <= s.clock[C.UNTIL] < end:
        change(m.future, m.sfuture, spell_job(job, s, t, x), -1, x)
    s.clock[C.RESERVED] = -1
    if s.runs[job, R.START] + s.jobs[job, J.LENGTH] > end:
        push(end, arrays.EXCEEDED, job, s.heap, s.clock)
    s.clock[C.IS_FULL] = 1


# --- outages ---------------------------------------------------------------------------------------------------------


@inner_kernel
def stands_on(job, node, s, t):
    """Tell whether a running job holds something on a node."""
    for e in range(s.runs[job, R.FIRST], s.runs[job, R.FIRST] + s.runs[job, R.COUNT]):
        if s.pool[e, 0] == node:
            return True
    run = t.run_of[node]
    for k in range(s.fixed[job, 0], s.fixed[job, 0] + s.fixed[job, 1]):
        for c in range(t.runs[run, 2], t.runs[run + 1, 2]):
            if s.fixed_columns[k] == t.runcols[c] + node - t.runs[run, 0]:
                return True
    return False


@inner_kernel
def shift_node(node, sign, s, m, t):
    """Add the capacity of a node (times `sign`) to the free amounts, now and later."""
    run = t.run_of[node]
    if sign < 0:
        set_node_aside(node, sign, s, m, t)
    for k in range(t.runs[run, 2], t.runs[run + 1, 2]):
        column = t.runcols[k] + node - t.runs[run, 0]
        shift_column(column, sign * t.capacity[column], m.free, m.sfree, t)
        shift_column(column, sign * t.capacity[column], m.future, m.sfuture, t)
    if sign > 0:
        set_node_aside(node, sign, s, m, t)


@inner_kernel
def pass_outages(now, rule, s, m, t, x):
    """Apply the outages that begin or end now; outages of a node may overlap."""
    while s.clock[C.OUTAGE] < s.outages.shape[0] and s.outages[s.clock[C.OUTAGE], 0] <= now:
        outage = s.clock[C.OUTAGE]
        s.clock[C.OUTAGE] += 1
        s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
        sign = 1 if s.outages[outage, 1] == arrays.BREAKS else -1
        for k in range(s.outages[outage, 2], s.outages[outage, 3]):
            node = s.out[k]
            s.down[node] += sign
            if sign == 1 and s.down[node] == 1:
                i = 0
                while i < s.clock[C.RUNNING]:
                    if stands_on(s.ends[i, 1], node, s, t):
                        cut_short(s.ends[i, 1], False, now, rule, s, m, t, x)
                    else:
                        i += 1
                i = 0
                while i < s.clock[C.ASLEEP]:
                    if stands_on(s.asleep[i], node, s, t):
                        lose_suspended(i, now, rule, s, m, t, x)
                    else:
                        i += 1
                shift_node(node, -1, s, m, t)
            elif sign == -1 and s.down[node] == 0:
                shift_node(node, 1, s, m, t)


@inner_kernel
def pass_changes(now, s, m, t):
    """Set other amounts aside from now on."""
    while next_change(s) <= now:
        s.clock[C.LEVEL] += 1
        s.clock[C.IS_FULL], s.clock[C.RESERVED] = 1, -1
        hold_all(s, m, t)


# --- the head's reservation ------------------------------------------------------------------------------------------


@inner_kernel
def has_sums_by(head, s, m, t):
    """Tell whether the sums `slow` suffice for some choice of a job that is open now."""
    for k in range(max(1, num_choices(head, s))):
        demand, _, is_open = asked_by(head, k, s)
        if is_open and has_sums(demand, m.slow, t.demands, t.sysreq):
            return True
    return False


@inner_kernel
def map_at(head, time, s, m, t, x):
    """Map a job at a later second, for which `future` is made, by the first of its open choices that fits then;
    note that as the one by which it is reserved. Returns the number of entries, 0: no fit.
    """
    for k in range(max(1, num_choices(head, s))):
        demand, walltime, is_open = asked_by(head, k, s)
        if not is_open:
            continue
        free, sfree = m.future, m.sfuture
        if has_asides(s) and has_sums(demand, sfree, t.demands, t.sysreq):
            room_from(time, time + walltime, s, m, t)
            free, sfree = m.room, m.sroom
        count = map_now(demand, free, sfree, t, x)
        if count > 0:
            s.clock[C.CHOICE] = k
            return count
    return 0


@kernel
def promise(head, s, m, t, x):
    """Return when the head of the queue can start if all jobs end as expected, by that of its open choices which starts
    first; set `after` to the amounts that are free beside it then. This can be when a job ends, or when less is set
    aside: then the head fits until its walltime is over. A start beyond its deadline is none.

    Choices that open later have no part in it: jobs end before their walltimes are over, and what the head would
    rather have is kept for it until it may have others.

    Where it can never start (nodes are out), no job can delay it. A reservation is kept as long as its job is the head,
    and no earlier end of a running job leaves the system enough of everything.
    """
    found = FOREVER
    is_kept, shadow = s.clock[C.RESERVED] == head, s.clock[C.SHADOW]
    s.clock[C.RESERVED] = head
    copy(m.slow, m.sfree)
    has_enough = has_asides(s)  # what is set aside changes the sums, too
    i, k = 0, s.clock[C.LEVEL] + 1
    while i < s.clock[C.RUNNING] or k < s.aside_times.shape[0]:
        time = s.ends[i, 0] if i < s.clock[C.RUNNING] else FOREVER
        if k < s.aside_times.shape[0]:
            time = min(time, s.aside_times[k])
        while i < s.clock[C.RUNNING] and s.ends[i, 0] == time:
            if not has_enough:
                for q in range(m.slow.shape[0]):
                    m.slow[q] += s.sums[s.ends[i, 1], q]
            i += 1
        while k < s.aside_times.shape[0] and s.aside_times[k] == time:
            k += 1
        has_enough = has_enough or has_sums_by(head, s, m, t)
        if not has_enough:
            continue
        if is_kept and time >= shadow:
            move_until(shadow, s, m, t, x)
            found = shadow
            break
        move_until(time, s, m, t, x)
        count = map_at(head, time, s, m, t, x)
        if count > 0:
            demand, _, _ = asked_by(head, s.clock[C.CHOICE], s)
            copy(m.after, m.future)
            copy(m.safter, m.sfuture)
            change(m.after, m.safter, spell_out(demand, x.entries, count, t, x), -1, x)
            found = time
            break
    if found == FOREVER or found > s.latest[head]:
        s.clock[C.RESERVED] = -1
        return FOREVER
    return found


# --- the pass through the queue --------------------------------------------------------------------------------------


@inner_kernel
def choose_nodes(head, s, m, t, x):
    """Choose the nodes of the head's reservation so that other jobs can start now: it takes nodes that are not free yet
    before those that are. `low` is set to the amounts that are free both now and beside the reservation.

    Equal nodes are interchangeable: as many are left as by a reservation of mere counts. Tells whether nodes were
    found. They may not be where several kinds of chunks compete; then no job starts that runs beyond the head's start.
    """
    demand, walltime, _ = asked_by(head, s.clock[C.CHOICE], s)
    later = m.future
    if has_asides(s):
        shadow = s.clock[C.SHADOW]
        room_from(shadow, shadow + walltime, s, m, t)
        later = m.room
    count = map_late(demand, m.free, later, m.low, t, x)
    if count == 0:
        return False
    copy(m.after, m.future)
    copy(m.safter, m.sfuture)
    filled = spell_out(demand, x.entries, count, t, x)
    change(m.after, m.safter, filled, -1, x)
    if has_asides(s):
        note_head(filled, s, x)
    lower_by_two(m.low, m.free, m.after)
    lower_by_two(m.slow, m.sfree, m.safter)
    return True


@inner_kernel
def start_beside(job, is_long, now, stamp, s, m, t, x):
    """Start a job if it fits: anywhere if it ends before the head starts, else beside the head's reservation. Tells
    whether it has started; if not, its demand is marked with `stamp`.
    """
    demand, place = s.demand[job], 1 if is_long else 0
    end = now + s.jobs[job, J.WALLTIME]
    is_bounded = has_asides(s) and (is_long or end > next_change(s))
    if not is_bounded:
        count = map_now(demand, m.low, m.slow, t, x) if is_long else map_now(demand, m.free, m.sfree, t, x)
        if count == 0:
            s.failed[demand, place] = stamp
            return False
        return begin_run(job, count, now, s, m, t, x)
    if s.bounded[demand, place] == stamp and end - now >= s.bounded[demand, 2 + place]:
        return False
    if is_long:
        _, walltime, _ = asked_by(s.clock[C.HEAD], s.clock[C.CHOICE], s)
        room_beside(s.clock[C.SHADOW] + walltime, end, s, m, t)
    else:
        room_until(end, m.free, m.sfree, s, m, t)
    count = map_now(demand, m.room, m.sroom, t, x)
    if count == 0:
        s.bounded[demand, place], s.bounded[demand, 2 + place] = stamp, end - now
        return False
    return begin_run(job, count, now, s, m, t, x)


@inner_kernel
def chooses_anew(rule):
    """Tell whether a start may make room for another job, beside other nodes of the head's reservation."""
    return rule.backfill == arrays.NOT_DELAYING and not rule.is_counted


@inner_kernel
def next_choice(i, k, candidates, s):
    """Return the candidate and the choice that are tried after others: another choice, or else the next candidate."""
    if i < 0 or s.choices.shape[0] == 0:
        return i + 1, 0
    k = open_choice(candidates[i], k + 1, s)
    if s.runs[candidates[i], R.START] < 0 and k < num_choices(candidates[i], s):
        take_choice(candidates[i], k, s)
        return i, k
    if s.runs[candidates[i], R.START] < 0:
        take_choice(candidates[i], 0, s)
    return i + 1, 0


@inner_kernel
def start_out_of_turn(candidates, now, rule, s, m, t, x):
    """Start the jobs after the head that fit and do not delay it, and count them.

    Within a pass nothing becomes free: a demand that did not fit does not fit later on. Beside the head's reservation
    this holds until its nodes are chosen anew, which happens after each start; where jobs are counted, it always holds.
    """
    stamp, shadow = s.clock[C.STAMP], s.clock[C.SHADOW]
    failed, demands, sysreq = s.failed, t.demands, t.sysreq
    is_alike = t.runs.shape[0] == 2  # the sums left do not depend on which nodes the head takes
    is_chosen, has_nodes, chosen_stamp = False, False, stamp
    i, k = -1, 0
    while True:
        i, k = next_choice(i, k, candidates, s)
        if i == candidates.shape[0]:
            break
        job = candidates[i]
        demand = s.demand[job]
        is_long = now + s.estimate[job] > shadow
        if failed[demand, 0] == stamp or s.runs[job, R.START] >= 0:
            continue
        if not has_sums(demand, m.sfree, demands, sysreq):
            failed[demand, 0] = stamp
            continue
        if is_long:
            if is_alike and not has_sums(demand, m.safter, demands, sysreq):
                continue
            if not is_chosen:
                if chosen_stamp == stamp or not rule.is_counted:
                    s.clock[C.STAMP] += 1
                is_chosen, chosen_stamp = True, s.clock[C.STAMP]
                has_nodes = choose_nodes(s.clock[C.HEAD], s, m, t, x)
            if not has_nodes or failed[demand, 1] == chosen_stamp:
                continue
        if start_beside(job, is_long, now, chosen_stamp if is_long else stamp, s, m, t, x):
            s.clock[C.OVERTAKING] += 1
            is_chosen = False
        if s.clock[C.LACKS]:
            s.clock[C.RESUME] = job
            break


@inner_kernel
def start_behind_head(first, last, now, rule, s, m, t, x):
    """Look through the queue from index `first` to `last`, and, unless jobs are counted, again from the head on until
    no job starts: after each start the head's nodes are chosen anew, which may make room for a job that did not fit.
    """
    while True:
        number = s.clock[C.OVERTAKING]
        start_out_of_turn(s.queue[first:last], now, rule, s, m, t, x)
        is_settled = first == 1 and s.clock[C.OVERTAKING] == number
        if is_settled or s.clock[C.LACKS] or not chooses_anew(rule):
            break
        first = 1


@inner_kernel
def start_starving(now, max_starve, s, m, t, x):
    """Start the jobs that could have started for more than `max_starve` seconds, the longest starving first (PBS-2).

    Tells whether one is left; all other jobs have to wait for it.
    """
    while True:
        found = -1
        for i in range(s.clock[C.QUEUED]):
            job = s.queue[i]
            if s.runs[job, R.START] >= 0 or now - s.release[job] <= max_starve:
                continue
            if found < 0 or (s.release[job], job) < (s.release[found], found):
                found = job
        if found < 0:
            return False
        count = map_first(found, now, s, m, t, x)
        if count == 0 or not begin_run(found, count, now, s, m, t, x):
            return True
        s.clock[C.RESERVED] = -1


@inner_kernel
def start_heads(now, s, m, t, x):
    """Start jobs from the front of the queue, up to the first one that does not fit; return the index of that one."""
    place = 0
    while place < s.clock[C.QUEUED]:
        job = s.queue[place]
        count = map_first(job, now, s, m, t, x)
        if count == 0 or not begin_run(job, count, now, s, m, t, x):
            break
        place += 1
    return place


@inner_kernel
def close_overtaken(last, rule, s):
    """Close the gaps of jobs that have started ahead of the head; `last` of the queue were within the depth."""
    if s.clock[C.OVERTAKING] > 0:
        if last < s.clock[C.QUEUED] or chooses_anew(rule):
            # other jobs are now within the depth, or may fit beside the nodes that the head takes now
            s.clock[C.HEAD] = -1
        close_gaps(s)


@inner_kernel
def pass_queue(now, rule, s, m, t, x):
    """Start the jobs that the rule starts now; the queue is looked through as far as the rule's depth."""
    if rule.backfill == arrays.RESERVING:
        pass_reserving(now, rule, s, m, t, x)
        close_gaps(s)
        return
    s.clock[C.STAMP] += 1
    s.clock[C.HEAD] = -1
    if rule.max_starve >= 0:
        is_blocked = start_starving(now, rule.max_starve, s, m, t, x)
        close_gaps(s)
        if is_blocked:
            return
    if start_heads(now, s, m, t, x) > 0:  # the old head has started, or was not the head for a moment
        close_gaps(s)
        s.clock[C.RESERVED] = -1
    last = min(s.clock[C.QUEUED], 1 + rule.depth - s.clock[C.OVERTAKING])
    if s.clock[C.LACKS] or last == 0 or (last == 1 and rule.backfill == arrays.NOT_DELAYING):
        return  # without a reservation of the head, an arrival causes a full pass
    s.clock[C.HEAD] = s.queue[0]
    if rule.backfill == arrays.NOBODY:
        return
    s.clock[C.SHADOW] = FOREVER if rule.backfill == arrays.ANYBODY else promise(s.queue[0], s, m, t, x)
    resumed = s.clock[C.RESUME]
    first = 1 if resumed < 0 else place_in_queue(resumed, s.keys, s.queue, s.clock)
    start_behind_head(first, last, now, rule, s, m, t, x)
    close_overtaken(last, rule, s)


@allocating_kernel
def pass_arrivals(now, rule, count, s, m, t, x):
    """Start the jobs that the rule starts now, where nothing has become free since the last pass.

    Of the waiting jobs only those that have just arrived can start, in the order of the queue. If one of them does, all
    jobs are considered again, since the nodes of the head's reservation are then chosen anew.
    """
    if rule.backfill == arrays.NOBODY:
        return
    s.clock[C.STAMP] += 1
    sort_by_key(s.arrived, count, s.keys, np.empty(count, dtype=np.int64))
    places = np.empty(count, dtype=np.int64)
    for k in range(count):
        places[k] = place_in_queue(s.arrived[k], s.keys, s.queue, s.clock)
    last = min(s.clock[C.QUEUED], 1 + rule.depth)
    for k in range(count):
        if places[k] >= last:
            break
        start_out_of_turn(s.queue[places[k] : places[k] + 1], now, rule, s, m, t, x)
        if s.clock[C.LACKS]:
            break
        if s.clock[C.OVERTAKING] > 0 and chooses_anew(rule):
            start_behind_head(places[k] + 1, last, now, rule, s, m, t, x)
            break
    close_overtaken(last, rule, s)


# --- the event loop --------------------------------------------------------------------------------------------------


@kernel
def next_event(s):
    """Return the time of the next event, FOREVER if there is none."""
    now, is_alive = FOREVER, s.clock[C.QUEUED] + s.clock[C.RUNNING] + s.clock[C.HEAP] > 0
    submitted = s.clock[C.SUBMITTED]
    while submitted < s.jobs.shape[0] and s.jobs[submitted, J.ARRIVAL] < 0:
        submitted += 1
    s.clock[C.SUBMITTED] = submitted
    if submitted < s.jobs.shape[0]:
        now = s.jobs[submitted, J.ARRIVAL]
    if s.clock[C.HEAP] > 0:
        now = min(now, s.heap[0, 0])
    if (is_alive or now < FOREVER) and s.clock[C.OUTAGE] < s.outages.shape[0]:
        now = min(now, s.outages[s.clock[C.OUTAGE], 0])
    if is_alive or now < FOREVER:
        now = min(now, next_change(s))
    if s.clock[C.NOTICE] >= 0:
        now = min(now, s.clock[C.NOTICE])
    now = min(now, s.clock[C.EXEMPT])
    return now if now == FOREVER else max(now, s.clock[C.NOW])


@inner_kernel
def pass_ends(now, rule, s, m, t, x):
    """End the jobs that end now, correct the estimates of the jobs that should have ended, and give up the jobs that
    can no longer meet their deadlines. A choice that opens to a job that waits causes a full pass.
    """
    while s.clock[C.HEAP] > 0 and s.heap[0, 0] == now and s.heap[0, 1] <= arrays.OPENED:
        _, kind, job = pop(s.heap, s.clock)
        if kind in (arrays.OPENED, arrays.EXPIRED):
            is_waiting = s.runs[job, R.START] < 0 and s.runs[job, R.ENDING] == arrays.WAITING
            if is_waiting and kind == arrays.EXPIRED:
                expire(job, s)
            elif is_waiting:
                s.clock[C.OPENS] += 1
                s.clock[C.IS_FULL] = 1
            continue
        if s.runs[job, R.END] < 0 or s.runs[job, R.ENDING] != arrays.WAITING:
            continue  # an event of a run that was cut short
        if kind == arrays.ENDED and s.runs[job, R.START] + s.jobs[job, J.LENGTH] <= now:
            if resumes(job, s):
                cut_short(job, True, now, rule, s, m, t, x)
            else:
                end_run(job, now, s, m, t, x)
        elif kind == arrays.EXCEEDED and s.runs[job, R.END] == now:
            raise_estimate(job, s, m, t, x)


@inner_kernel
def let_come(now, rule, s, m, t, x):
    """Start booked jobs, and enqueue those that arrive now; return how many. One at the head causes a full pass."""
    arrivals = 0
    while s.clock[C.HEAP] > 0 and s.heap[0, 0] == now:
        _, kind, job = pop(s.heap, s.clock)
        if kind == arrays.BOOKED:
            begin_booked(job, now, s, m, t, x)
        else:
            s.arrived[arrivals] = job
            arrivals += 1
    job = s.clock[C.SUBMITTED]
    while job < s.jobs.shape[0] and s.jobs[job, J.ARRIVAL] <= now:
        if s.jobs[job, J.ARRIVAL] >= 0:
            s.arrived[arrivals] = job
            arrivals += 1
        job += 1
    s.clock[C.SUBMITTED] = job
    count = 0
    for k in range(arrivals):
        job = s.arrived[k]
        if s.jobs[job, J.ARRIVAL] == arrays.SUBMITTED_LATER:
            s.jobs[job, J.SUBMIT] = now
        if now > s.latest[job]:
            s.runs[job, R.ENDING] = arrays.REFUSED
        elif s.start_at[job] >= 0:
            book_ahead(job, now, s, m, t, x)
        else:
            s.arrived[count] = job
            count += 1
            let_wait(job, now, rule, s)
    return count


@inner_kernel
def let_wait(job, now, rule, s):
    """Put a job into the queue."""
    expect(job, rule, s)
    if rule.predicts == arrays.PREDICTS_ALL:
        s.estimate[job] = s.predicted[job]
    s.turns[s.clock[C.COME]] = job
    s.clock[C.COME] += 1
    s.keys[job] = key_of(rule, job, now, s)
    is_first = enqueue(job, s.keys, s.queue, s.clock) == 0
    if is_first or s.clock[C.HEAD] < 0 or rule.backfill == arrays.RESERVING:
        s.clock[C.IS_FULL] = 1
    if s.latest[job] < FOREVER:
        push(s.latest[job] + 1, arrays.EXPIRED, job, s.heap, s.clock)
    for row in range(s.choices_of[job], s.choices_of[job + 1]):
        second = s.jobs[job, J.SUBMIT] + s.choices[row, 5]
        if second > now and s.runs[job, R.STARTS] == 0:
            push(second, arrays.OPENED, job, s.heap, s.clock)


@kernel
def step(now, rule, s, m, t, x):
    """Process all events at `now`, arrivals included; return the number of arrivals. `serve_urgent` follows."""
    s.clock[C.NOW] = now
    pass_ends(now, rule, s, m, t, x)
    pass_outages(now, rule, s, m, t, x)
    pass_changes(now, s, m, t)
    return let_come(now, rule, s, m, t, x)


@kernel
def advance(rule, most_passes, s, m, t, x):
    """Process events until there are no more, for at most `most_passes` passes, or until an array has to grow.

    Returns ``PAUSED``, ``FINISHED`` or ``LACKS_ROOM``; after the last one the pass is repeated.
    """
    passes = 0
    while passes < most_passes:
        count = 0
        if s.clock[C.LACKS]:
            s.clock[C.LACKS], s.clock[C.IS_FULL] = 0, 1
            now = s.clock[C.NOW]  # jobs that this pass has already backfilled count for the depth
        else:
            now = next_event(s)
            if now == FOREVER:
                return arrays.FINISHED
            if (s.clock[C.OUTAGE] < s.outages.shape[0] or s.stops.shape[0] > 0) and (
                s.attempts.shape[0] < s.clock[C.ATTEMPTS] + 2 * s.clock[C.RUNNING]
            ):
                return arrays.LACKS_ROOM
            if s.pool.shape[0] < s.clock[C.POOL] + s.clock[C.SPARE]:
                return arrays.LACKS_ROOM
            s.clock[C.IS_FULL], s.clock[C.GONE], s.clock[C.OVERTAKING] = 0, 0, 0
            s.clock[C.RESUME], s.clock[C.EXPIRED], s.clock[C.HORIZON] = -1, 0, -1
            count = step(now, rule, s, m, t, x)
            if rule.due_after >= 0:
                replay_easy(now, s)
                compare_waits(now, rule, s)
        if not serve_urgent(now, rule, s, m, t, x):
            if s.clock[C.LACKS]:
                return arrays.LACKS_ROOM
            continue
        if s.clock[C.QUEUED] == 0 or (count == 0 and not s.clock[C.IS_FULL]):
            continue
        if rule.backfill == arrays.RESERVING and not can_any_start(s, m, t):
            continue
        if rule.order >= BY.WFP3:
            s.clock[C.IS_FULL] = 1  # keys change with time
        is_changing = rule.order >= BY.SMITH or rule.expects == arrays.EXPECTS_CLASSES or rule.due_after >= 0
        if s.clock[C.IS_FULL] and is_changing:
            sort_queue(rule, now, s)
        passes += 1
        s.clock[C.PASSES] += 1
        if s.clock[C.IS_FULL] or rule.max_starve >= 0:
            pass_queue(now, rule, s, m, t, x)
        else:
            pass_arrivals(now, rule, count, s, m, t, x)
        if s.clock[C.LACKS]:
            return arrays.LACKS_ROOM
    return arrays.PAUSED


# --- one step of a scheduler that is not compiled --------------------------------------------------------------------


@kernel
def serve_waiting(count, now, rule, s, m, t, x):
    """Start jobs that may stop others; return how many of the first that have arrived wait still."""
    serve_urgent(now, rule, s, m, t, x)
    left = 0
    for k in range(count):
        if s.runs[s.arrived[k], R.START] < 0:
            s.arrived[left] = s.arrived[k]
            left += 1
    return left


@kernel
def fits_there(job, entries, s, m, t, x):
    """Tell whether the amounts that a job takes on these nodes are free now, and until its walltime is over."""
    end, free, sfree = s.clock[C.NOW] + s.jobs[job, J.WALLTIME], m.free, m.sfree
    if end > next_change(s):
        room_until(end, m.free, m.sfree, s, m, t)
        free, sfree = m.room, m.sroom
    filled = spell_out(s.demand[job], entries, entries.shape[0], t, x)
    for k in range(filled):
        if free[x.columns[k]] < x.amounts[k]:
            return False
    for q in range(sfree.shape[0]):
        if sfree[q] < x.samounts[q]:
            return False
    return True


@kernel
def begin_there(job, entries, now, s, m, t, x):
    """Start a waiting job on these nodes; tell whether the arrays had room for it."""
    for e in range(entries.shape[0]):
        for part in range(3):
            x.entries[e, part] = entries[e, part]
    return begin_run(job, entries.shape[0], now, s, m, t, x)
