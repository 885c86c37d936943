"""The compiled event loop of queue rules. `rule_choice.py` owns shapes, units and checks.

Events are ends, corrections of estimates, deadlines, outages, changes of what is set aside, booked starts and arrivals,
in this order within a second. After all events of a second there is one pass through the queue.
"""

import numpy as np

from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import (
    BY,
    C,
    J,
    Machine,
    R,
    RuleNumbers,
    SimState,
    enqueue,
    insert_end,
    place_in_queue,
    pop,
    push,
    remove_end,
    sort_by_key,
)
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
from cpsched.rusv import (
    FOREVER,
    Array,
    Scratch,
    Tables,
    allocating_kernel,
    inner_kernel,
    instant_kernels,
    kernel,
    kernels,
)

copy, lower_by_two = kernels.copy, kernels.lower_by_two
change, has_sums = instant_kernels.change, instant_kernels.has_sums
map_late, map_now, spell_out = instant_kernels.map_late, instant_kernels.map_now, instant_kernels.spell_out

# --- jobs that can start no more, and jobs with one start ------------------------------------------------------------


@inner_kernel
def expire(job: int, state: SimState) -> None:
    """Remove a job from the queue that can no longer meet its deadline."""
    for i in range(place_in_queue(job, state.keys, state.queue, state.clock), state.clock[C.QUEUED] - 1):
        state.queue[i] = state.queue[i + 1]
    state.clock[C.QUEUED] -= 1
    state.runs[job, R.ENDING] = arrays.REFUSED
    state.expired[state.clock[C.EXPIRED]] = job
    state.clock[C.EXPIRED] += 1
    state.clock[C.IS_FULL] = 1
    if state.clock[C.RESERVED] == job:
        state.clock[C.RESERVED] = -1


@inner_kernel
def start_or_refuse(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Start a job that may start only now, if it fits."""
    count = map_from_now(job, now, state, machine, tables, scratch)
    state.runs[job, R.COUNT] = 0
    if count > 0:
        begin_run(job, count, now, state, machine, tables, scratch)
    else:
        state.runs[job, R.ENDING] = arrays.REFUSED


@inner_kernel
def book_ahead(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Book nodes for a job that may start at one second only: they are set aside from then on for its walltime, where
    enough is free beside running jobs and what is set aside. If there are none, the job is refused.
    """
    state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
    start = state.start_at[job]
    end = start + state.jobs[job, J.WALLTIME]
    if start == now:
        start_or_refuse(job, now, state, machine, tables, scratch)
        return
    room_between(start, end, state, machine, tables)
    count = map_now(state.demand[job], machine.room, machine.sroom, tables, scratch)
    if count == 0:
        state.runs[job, R.ENDING] = arrays.REFUSED
        return
    first = state.clock[C.POOL]
    for e in range(count):
        for part in range(3):
            state.pool[first + e, part] = scratch.entries[e, part]
    state.clock[C.POOL] += count
    state.runs[job, R.FIRST], state.runs[job, R.COUNT] = first, count
    set_aside(spell_out(state.demand[job], scratch.entries, count, tables, scratch), 1, start, end, state, scratch)
    state.clock[C.BOOKINGS] += 1
    push(start, arrays.BOOKED, job, state.heap, state.clock)


@inner_kernel
def begin_booked(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Start a job on the nodes that are booked for it; where one of them has failed, on others, if it fits there."""
    first, count = state.runs[job, R.FIRST], state.runs[job, R.COUNT]
    entries = state.pool[first : first + count]
    filled = spell_out(state.demand[job], entries, count, tables, scratch)
    set_aside(filled, -1, now, now + state.jobs[job, J.WALLTIME], state, scratch)
    hold_columns(filled, state, machine, tables, scratch)
    state.clock[C.BOOKINGS] += 1
    state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
    if fits_there(job, entries, state, machine, tables, scratch):
        begin_there(job, entries, now, state, machine, tables, scratch)
    else:
        start_or_refuse(job, now, state, machine, tables, scratch)


# --- estimates -------------------------------------------------------------------------------------------------------


@inner_kernel
def raise_estimate(job: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Raise the estimate of a job that has outrun it."""
    walltime, bump = state.jobs[job, J.WALLTIME], state.bumps[job]
    old = state.runs[job, R.END]
    state.estimate[job] = min(state.estimate[job] + state.steps[min(bump, state.steps.shape[0] - 1)], walltime)
    state.predicted[job] = state.estimate[job]
    state.bumps[job] += 1
    end = max(state.runs[job, R.START] + state.estimate[job], old + 1)
    remove_end(old, job, state.ends, state.clock)
    insert_end(end, job, state.ends, state.clock)
    state.runs[job, R.END] = end
    if old <= state.clock[C.UNTIL] < end:
        change(machine.future, machine.sfuture, spell_job(job, state, tables, scratch), -1, scratch)
    state.clock[C.RESERVED] = -1
    if state.runs[job, R.START] + state.jobs[job, J.LENGTH] > end:
        push(end, arrays.EXCEEDED, job, state.heap, state.clock)
    state.clock[C.IS_FULL] = 1


# --- outages ---------------------------------------------------------------------------------------------------------


@inner_kernel
def stands_on(job: int, node: int, state: SimState, tables: Tables) -> bool:
    """Tell whether a running job holds something on a node; what an evolving one started on it may have given back."""
    if state.fixed[job, 1] == 0:
        for e in range(state.runs[job, R.FIRST], state.runs[job, R.FIRST] + state.runs[job, R.COUNT]):
            if state.pool[e, 0] == node:
                return True
    run = tables.run_of[node]
    for k in range(state.fixed[job, 0], state.fixed[job, 0] + state.fixed[job, 1]):
        for c in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
            if state.fixed_columns[k] == tables.runcols[c] + node - tables.runs[run, 0]:
                return True
    return False


@inner_kernel
def shift_node(node: int, sign: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Add the capacity of a node (times `sign`) to the free amounts, now and later."""
    run = tables.run_of[node]
    if sign < 0:
        set_node_aside(node, sign, state, machine, tables)
    for k in range(tables.runs[run, 2], tables.runs[run + 1, 2]):
        column = tables.runcols[k] + node - tables.runs[run, 0]
        shift_column(column, sign * tables.capacity[column], machine.free, machine.sfree, tables)
        shift_column(column, sign * tables.capacity[column], machine.future, machine.sfuture, tables)
    if sign > 0:
        set_node_aside(node, sign, state, machine, tables)


@inner_kernel
def pass_outages(
    now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Apply the outages that begin or end now; outages of a node may overlap."""
    while state.clock[C.OUTAGE] < state.outages.shape[0] and state.outages[state.clock[C.OUTAGE], 0] <= now:
        outage = state.clock[C.OUTAGE]
        state.clock[C.OUTAGE] += 1
        state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
        sign = 1 if state.outages[outage, 1] == arrays.BREAKS else -1
        for k in range(state.outages[outage, 2], state.outages[outage, 3]):
            node = state.out[k]
            state.down[node] += sign
            if sign == 1 and state.down[node] == 1:
                i = 0
                while i < state.clock[C.RUNNING]:
                    if stands_on(state.ends[i, 1], node, state, tables):
                        cut_short(state.ends[i, 1], False, now, rule, state, machine, tables, scratch)
                    else:
                        i += 1
                i = 0
                while i < state.clock[C.ASLEEP]:
                    if stands_on(state.asleep[i], node, state, tables):
                        lose_suspended(i, now, rule, state, machine, tables, scratch)
                    else:
                        i += 1
                shift_node(node, -1, state, machine, tables)
            elif sign == -1 and state.down[node] == 0:
                shift_node(node, 1, state, machine, tables)


@inner_kernel
def pass_changes(now: int, state: SimState, machine: Machine, tables: Tables) -> None:
    """Set other amounts aside from now on."""
    while next_change(state) <= now:
        state.clock[C.LEVEL] += 1
        state.clock[C.IS_FULL], state.clock[C.RESERVED] = 1, -1
        hold_all(state, machine, tables)


# --- the head's reservation ------------------------------------------------------------------------------------------


@inner_kernel
def has_sums_by(head: int, state: SimState, machine: Machine, tables: Tables) -> bool:
    """Tell whether the sums `slow` suffice for some choice of a job that is open now."""
    for k in range(max(1, num_choices(head, state))):
        demand, _, is_open = asked_by(head, k, state)
        if is_open and has_sums(demand, machine.slow, tables.demands, tables.sysreq):
            return True
    return False


@inner_kernel
def map_at(head: int, time: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Map a job at a later second, for which `future` is made, by the first of its open choices that fits then;
    note that as the one by which it is reserved. Returns the number of entries, 0: no fit.
    """
    for k in range(max(1, num_choices(head, state))):
        demand, walltime, is_open = asked_by(head, k, state)
        if not is_open:
            continue
        free, sfree = machine.future, machine.sfuture
        if has_asides(state) and has_sums(demand, sfree, tables.demands, tables.sysreq):
            room_from(time, time + walltime, state, machine, tables)
            free, sfree = machine.room, machine.sroom
        count = map_now(demand, free, sfree, tables, scratch)
        if count > 0:
            state.clock[C.CHOICE] = k
            return count
    return 0


@kernel
def promise(head: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Return when the head of the queue can start if all jobs end as expected, by that of its open choices which starts
    first; set `after` to the amounts that are free beside it then. This can be when a job ends, or when less is set
    aside: then the head fits until its walltime is over. A start beyond its deadline is none.

    Choices that open later have no part in it: jobs end before their walltimes are over, and what the head would
    rather have is kept for it until it may have others.

    Where it can never start (nodes are out), no job can delay it. A reservation is kept as long as its job is the head,
    and no earlier end of a running job leaves the system enough of everything.
    """
    found = FOREVER
    is_kept, shadow = state.clock[C.RESERVED] == head, state.clock[C.SHADOW]
    state.clock[C.RESERVED] = head
    copy(machine.slow, machine.sfree)
    has_enough = has_asides(state)  # what is set aside changes the sums, too
    i, k = 0, state.clock[C.LEVEL] + 1
    while i < state.clock[C.RUNNING] or k < state.aside_times.shape[0]:
        time = state.ends[i, 0] if i < state.clock[C.RUNNING] else FOREVER
        if k < state.aside_times.shape[0]:
            time = min(time, state.aside_times[k])
        while i < state.clock[C.RUNNING] and state.ends[i, 0] == time:
            if not has_enough:
                for q in range(machine.slow.shape[0]):
                    machine.slow[q] += state.sums[state.ends[i, 1], q]
            i += 1
        while k < state.aside_times.shape[0] and state.aside_times[k] == time:
            k += 1
        has_enough = has_enough or has_sums_by(head, state, machine, tables)
        if not has_enough:
            continue
        if is_kept and time >= shadow:
            move_until(shadow, state, machine, tables, scratch)
            found = shadow
            break
        move_until(time, state, machine, tables, scratch)
        count = map_at(head, time, state, machine, tables, scratch)
        if count > 0:
            demand, _, _ = asked_by(head, state.clock[C.CHOICE], state)
            copy(machine.after, machine.future)
            copy(machine.safter, machine.sfuture)
            change(
                machine.after, machine.safter, spell_out(demand, scratch.entries, count, tables, scratch), -1, scratch
            )
            found = time
            break
    if found == FOREVER or found > state.latest[head]:
        state.clock[C.RESERVED] = -1
        return FOREVER
    return found


# --- the pass through the queue --------------------------------------------------------------------------------------


@inner_kernel
def choose_nodes(head: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> bool:
    """Choose the nodes of the head's reservation so that other jobs can start now: it takes nodes that are not free yet
    before those that are. `low` is set to the amounts that are free both now and beside the reservation.

    Equal nodes are interchangeable: as many are left as by a reservation of mere counts. Tells whether nodes were
    found. They may not be where several kinds of chunks compete; then no job starts that runs beyond the head's start.
    """
    demand, walltime, _ = asked_by(head, state.clock[C.CHOICE], state)
    later = machine.future
    if has_asides(state):
        shadow = state.clock[C.SHADOW]
        room_from(shadow, shadow + walltime, state, machine, tables)
        later = machine.room
    count = map_late(demand, machine.free, later, machine.low, tables, scratch)
    if count == 0:
        return False
    copy(machine.after, machine.future)
    copy(machine.safter, machine.sfuture)
    filled = spell_out(demand, scratch.entries, count, tables, scratch)
    change(machine.after, machine.safter, filled, -1, scratch)
    if has_asides(state):
        note_head(filled, state, scratch)
    lower_by_two(machine.low, machine.free, machine.after)
    lower_by_two(machine.slow, machine.sfree, machine.safter)
    return True


@inner_kernel
def start_beside(
    job: int, is_long: bool, now: int, stamp: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job if it fits: anywhere if it ends before the head starts, else beside the head's reservation. Tells
    whether it has started; if not, its demand is marked with `stamp`.
    """
    demand, place = state.demand[job], 1 if is_long else 0
    end = now + state.jobs[job, J.WALLTIME]
    is_bounded = has_asides(state) and (is_long or end > next_change(state))
    if not is_bounded:
        count = (
            map_now(demand, machine.low, machine.slow, tables, scratch)
            if is_long
            else map_now(demand, machine.free, machine.sfree, tables, scratch)
        )
        if count == 0:
            state.failed[demand, place] = stamp
            return False
        return begin_run(job, count, now, state, machine, tables, scratch)
    if state.bounded[demand, place] == stamp and end - now >= state.bounded[demand, 2 + place]:
        return False
    if is_long:
        _, walltime, _ = asked_by(state.clock[C.HEAD], state.clock[C.CHOICE], state)
        room_beside(state.clock[C.SHADOW] + walltime, end, state, machine, tables)
    else:
        room_until(end, machine.free, machine.sfree, state, machine, tables)
    count = map_now(demand, machine.room, machine.sroom, tables, scratch)
    if count == 0:
        state.bounded[demand, place], state.bounded[demand, 2 + place] = stamp, end - now
        return False
    return begin_run(job, count, now, state, machine, tables, scratch)


@inner_kernel
def chooses_anew(rule: RuleNumbers) -> bool:
    """Tell whether a start may make room for another job, beside other nodes of the head's reservation."""
    return rule.backfill == arrays.NOT_DELAYING and not rule.is_counted


@inner_kernel
def next_choice(candidate: int, number: int, candidates: Array, state: SimState) -> tuple[int, int]:
    """Return the candidate and the choice that are tried after others: another choice, or else the next candidate."""
    if candidate < 0 or state.choices.shape[0] == 0:
        return candidate + 1, 0
    number = open_choice(candidates[candidate], number + 1, state)
    if state.runs[candidates[candidate], R.START] < 0 and number < num_choices(candidates[candidate], state):
        take_choice(candidates[candidate], number, state)
        return candidate, number
    if state.runs[candidates[candidate], R.START] < 0:
        take_choice(candidates[candidate], 0, state)
    return candidate + 1, 0


@inner_kernel
def start_out_of_turn(
    candidates: Array, now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Start the jobs after the head that fit and do not delay it, and count them.

    Within a pass nothing becomes free: a demand that did not fit does not fit later on. Beside the head's reservation
    this holds until its nodes are chosen anew, which happens after each start; where jobs are counted, it always holds.
    """
    stamp, shadow = state.clock[C.STAMP], state.clock[C.SHADOW]
    failed, demands, sysreq = state.failed, tables.demands, tables.sysreq
    is_alike = tables.runs.shape[0] == 2  # the sums left do not depend on which nodes the head takes
    is_chosen, has_nodes, chosen_stamp = False, False, stamp
    i, k = -1, 0
    while True:
        i, k = next_choice(i, k, candidates, state)
        if i == candidates.shape[0]:
            break
        job = candidates[i]
        demand = state.demand[job]
        is_long = now + state.estimate[job] > shadow
        if failed[demand, 0] == stamp or state.runs[job, R.START] >= 0:
            continue
        if not has_sums(demand, machine.sfree, demands, sysreq):
            failed[demand, 0] = stamp
            continue
        if is_long:
            if is_alike and not has_sums(demand, machine.safter, demands, sysreq):
                continue
            if not is_chosen:
                if chosen_stamp == stamp or not rule.is_counted:
                    state.clock[C.STAMP] += 1
                is_chosen, chosen_stamp = True, state.clock[C.STAMP]
                has_nodes = choose_nodes(state.clock[C.HEAD], state, machine, tables, scratch)
            if not has_nodes or failed[demand, 1] == chosen_stamp:
                continue
        if start_beside(job, is_long, now, chosen_stamp if is_long else stamp, state, machine, tables, scratch):
            state.clock[C.OVERTAKING] += 1
            is_chosen = False
        if state.clock[C.LACKS]:
            state.clock[C.RESUME] = job
            break


@inner_kernel
def start_behind_head(
    first: int,
    last: int,
    now: int,
    rule: RuleNumbers,
    state: SimState,
    machine: Machine,
    tables: Tables,
    scratch: Scratch,
) -> None:
    """Look through the queue from index `first` to `last`, and, unless jobs are counted, again from the head on until
    no job starts: after each start the head's nodes are chosen anew, which may make room for a job that did not fit.
    """
    while True:
        number = state.clock[C.OVERTAKING]
        start_out_of_turn(state.queue[first:last], now, rule, state, machine, tables, scratch)
        is_settled = first == 1 and state.clock[C.OVERTAKING] == number
        if is_settled or state.clock[C.LACKS] or not chooses_anew(rule):
            break
        first = 1


@inner_kernel
def start_starving(
    now: int, max_starve: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start the jobs that could have started for more than `max_starve` seconds, the longest starving first (PBS-2).

    Tells whether one is left; all other jobs have to wait for it.
    """
    while True:
        found = -1
        for i in range(state.clock[C.QUEUED]):
            job = state.queue[i]
            if state.runs[job, R.START] >= 0 or now - state.release[job] <= max_starve:
                continue
            if found < 0 or (state.release[job], job) < (state.release[found], found):
                found = job
        if found < 0:
            return False
        count = map_first(found, now, state, machine, tables, scratch)
        if count == 0 or not begin_run(found, count, now, state, machine, tables, scratch):
            return True
        state.clock[C.RESERVED] = -1


@inner_kernel
def start_heads(now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Start jobs from the front of the queue, up to the first one that does not fit; return the index of that one."""
    place = 0
    while place < state.clock[C.QUEUED]:
        job = state.queue[place]
        count = map_first(job, now, state, machine, tables, scratch)
        if count == 0 or not begin_run(job, count, now, state, machine, tables, scratch):
            break
        place += 1
    return place


@inner_kernel
def close_overtaken(last: int, rule: RuleNumbers, state: SimState) -> None:
    """Close the gaps of jobs that have started ahead of the head; `last` of the queue were within the depth."""
    if state.clock[C.OVERTAKING] > 0:
        if last < state.clock[C.QUEUED] or chooses_anew(rule):
            # other jobs are now within the depth, or may fit beside the nodes that the head takes now
            state.clock[C.HEAD] = -1
        close_gaps(state)


@inner_kernel
def pass_queue(
    now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Start the jobs that the rule starts now; the queue is looked through as far as the rule's depth."""
    if rule.backfill == arrays.RESERVING:
        pass_reserving(now, rule, state, machine, tables, scratch)
        close_gaps(state)
        return
    state.clock[C.STAMP] += 1
    state.clock[C.HEAD] = -1
    if rule.max_starve >= 0:
        is_blocked = start_starving(now, rule.max_starve, state, machine, tables, scratch)
        close_gaps(state)
        if is_blocked:
            return
    if (
        start_heads(now, state, machine, tables, scratch) > 0
    ):  # the old head has started, or was not the head for a moment
        close_gaps(state)
        state.clock[C.RESERVED] = -1
    last = min(state.clock[C.QUEUED], 1 + rule.depth - state.clock[C.OVERTAKING])
    if state.clock[C.LACKS] or last == 0 or (last == 1 and rule.backfill == arrays.NOT_DELAYING):
        return  # without a reservation of the head, an arrival causes a full pass
    state.clock[C.HEAD] = state.queue[0]
    if rule.backfill == arrays.NOBODY:
        return
    state.clock[C.SHADOW] = (
        FOREVER if rule.backfill == arrays.ANYBODY else promise(state.queue[0], state, machine, tables, scratch)
    )
    resumed = state.clock[C.RESUME]
    first = 1 if resumed < 0 else place_in_queue(resumed, state.keys, state.queue, state.clock)
    start_behind_head(first, last, now, rule, state, machine, tables, scratch)
    close_overtaken(last, rule, state)


@allocating_kernel
def pass_arrivals(
    now: int, rule: RuleNumbers, count: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> None:
    """Start the jobs that the rule starts now, where nothing has become free since the last pass.

    Of the waiting jobs only those that have just arrived can start, in the order of the queue. If one of them does, all
    jobs are considered again, since the nodes of the head's reservation are then chosen anew.
    """
    if rule.backfill == arrays.NOBODY:
        return
    state.clock[C.STAMP] += 1
    sort_by_key(state.arrived, count, state.keys, np.empty(count, dtype=np.int64))
    places = np.empty(count, dtype=np.int64)
    for k in range(count):
        places[k] = place_in_queue(state.arrived[k], state.keys, state.queue, state.clock)
    last = min(state.clock[C.QUEUED], 1 + rule.depth)
    for k in range(count):
        if places[k] >= last:
            break
        start_out_of_turn(state.queue[places[k] : places[k] + 1], now, rule, state, machine, tables, scratch)
        if state.clock[C.LACKS]:
            break
        if state.clock[C.OVERTAKING] > 0 and chooses_anew(rule):
            start_behind_head(places[k] + 1, last, now, rule, state, machine, tables, scratch)
            break
    close_overtaken(last, rule, state)


# --- the event loop --------------------------------------------------------------------------------------------------


@kernel
def next_event(state: SimState) -> int:
    """Return the time of the next event, FOREVER if there is none."""
    now, is_alive = FOREVER, state.clock[C.QUEUED] + state.clock[C.RUNNING] + state.clock[C.HEAP] > 0
    submitted = state.clock[C.SUBMITTED]
    while submitted < state.jobs.shape[0] and state.jobs[submitted, J.ARRIVAL] < 0:
        submitted += 1
    state.clock[C.SUBMITTED] = submitted
    if submitted < state.jobs.shape[0]:
        now = state.jobs[submitted, J.ARRIVAL]
    if state.clock[C.HEAP] > 0:
        now = min(now, state.heap[0, 0])
    if (is_alive or now < FOREVER) and state.clock[C.OUTAGE] < state.outages.shape[0]:
        now = min(now, state.outages[state.clock[C.OUTAGE], 0])
    if is_alive or now < FOREVER:
        now = min(now, next_change(state))
    if state.clock[C.NOTICE] >= 0:
        now = min(now, state.clock[C.NOTICE])
    now = min(now, state.clock[C.EXEMPT])
    return now if now == FOREVER else max(now, state.clock[C.NOW])


@inner_kernel
def pass_ends(now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """End the jobs that end now, correct the estimates of the jobs that should have ended, and give up the jobs that
    can no longer meet their deadlines. A choice that opens to a job that waits causes a full pass.
    """
    while state.clock[C.HEAP] > 0 and state.heap[0, 0] == now and state.heap[0, 1] <= arrays.OPENED:
        _, kind, job = pop(state.heap, state.clock)
        if kind in (arrays.OPENED, arrays.EXPIRED):
            is_waiting = state.runs[job, R.START] < 0 and state.runs[job, R.ENDING] == arrays.WAITING
            if is_waiting and kind == arrays.EXPIRED:
                expire(job, state)
            elif is_waiting:
                state.clock[C.OPENS] += 1
                state.clock[C.IS_FULL] = 1
            continue
        if state.runs[job, R.END] < 0 or state.runs[job, R.ENDING] != arrays.WAITING:
            continue  # an event of a run that was cut short
        if kind == arrays.ENDED and state.runs[job, R.START] + state.jobs[job, J.LENGTH] <= now:
            if resumes(job, state):
                cut_short(job, True, now, rule, state, machine, tables, scratch)
            else:
                end_run(job, now, state, machine, tables, scratch)
        elif kind == arrays.EXCEEDED and state.runs[job, R.END] == now:
            raise_estimate(job, state, machine, tables, scratch)


@inner_kernel
def let_come(now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Start booked jobs, and enqueue those that arrive now; return how many. One at the head causes a full pass."""
    arrivals = 0
    while state.clock[C.HEAP] > 0 and state.heap[0, 0] == now:
        _, kind, job = pop(state.heap, state.clock)
        if kind == arrays.BOOKED:
            begin_booked(job, now, state, machine, tables, scratch)
        else:
            state.arrived[arrivals] = job
            arrivals += 1
    job = state.clock[C.SUBMITTED]
    while job < state.jobs.shape[0] and state.jobs[job, J.ARRIVAL] <= now:
        if state.jobs[job, J.ARRIVAL] >= 0:
            state.arrived[arrivals] = job
            arrivals += 1
        job += 1
    state.clock[C.SUBMITTED] = job
    count = 0
    for k in range(arrivals):
        job = state.arrived[k]
        if state.jobs[job, J.ARRIVAL] == arrays.SUBMITTED_LATER:
            state.jobs[job, J.SUBMIT] = now
        if now > state.latest[job]:
            state.runs[job, R.ENDING] = arrays.REFUSED
        elif state.start_at[job] >= 0:
            book_ahead(job, now, state, machine, tables, scratch)
        else:
            state.arrived[count] = job
            count += 1
            let_wait(job, now, rule, state)
    return count


@inner_kernel
def let_wait(job: int, now: int, rule: RuleNumbers, state: SimState) -> None:
    """Put a job into the queue."""
    expect(job, rule, state)
    if rule.predicts == arrays.PREDICTS_ALL:
        state.estimate[job] = state.predicted[job]
    state.turns[state.clock[C.COME]] = job
    state.clock[C.COME] += 1
    state.keys[job] = key_of(rule, job, now, state)
    is_first = enqueue(job, state.keys, state.queue, state.clock) == 0
    if is_first or state.clock[C.HEAD] < 0 or rule.backfill == arrays.RESERVING:
        state.clock[C.IS_FULL] = 1
    if state.latest[job] < FOREVER:
        push(state.latest[job] + 1, arrays.EXPIRED, job, state.heap, state.clock)
    for row in range(state.choices_of[job], state.choices_of[job + 1]):
        second = state.jobs[job, J.SUBMIT] + state.choices[row, 5]
        if second > now and state.runs[job, R.STARTS] == 0:
            push(second, arrays.OPENED, job, state.heap, state.clock)


@kernel
def step(now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Process all events at `now`, arrivals included; return the number of arrivals. `serve_urgent` follows."""
    state.clock[C.NOW] = now
    pass_ends(now, rule, state, machine, tables, scratch)
    pass_outages(now, rule, state, machine, tables, scratch)
    pass_changes(now, state, machine, tables)
    return let_come(now, rule, state, machine, tables, scratch)


@kernel
def advance(
    rule: RuleNumbers, most_passes: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> int:
    """Process events until there are no more, for at most `most_passes` passes, or until an array has to grow.

    Returns ``PAUSED``, ``FINISHED`` or ``LACKS_ROOM``; after the last one the pass is repeated.
    """
    passes = 0
    while passes < most_passes:
        count = 0
        if state.clock[C.LACKS]:
            state.clock[C.LACKS], state.clock[C.IS_FULL] = 0, 1
            now = state.clock[C.NOW]  # jobs that this pass has already backfilled count for the depth
        else:
            now = next_event(state)
            if now == FOREVER:
                return arrays.FINISHED
            if (state.clock[C.OUTAGE] < state.outages.shape[0] or state.stops.shape[0] > 0) and (
                state.attempts.shape[0] < state.clock[C.ATTEMPTS] + 2 * state.clock[C.RUNNING]
            ):
                return arrays.LACKS_ROOM
            if state.pool.shape[0] < state.clock[C.POOL] + state.clock[C.SPARE]:
                return arrays.LACKS_ROOM
            state.clock[C.IS_FULL], state.clock[C.GONE], state.clock[C.OVERTAKING] = 0, 0, 0
            state.clock[C.RESUME], state.clock[C.EXPIRED], state.clock[C.HORIZON] = -1, 0, -1
            count = step(now, rule, state, machine, tables, scratch)
            if rule.due_after >= 0:
                replay_easy(now, state)
                compare_waits(now, rule, state)
        if not serve_urgent(now, rule, state, machine, tables, scratch):
            if state.clock[C.LACKS]:
                return arrays.LACKS_ROOM
            continue
        if state.clock[C.QUEUED] == 0 or (count == 0 and not state.clock[C.IS_FULL]):
            continue
        if rule.backfill == arrays.RESERVING and not can_any_start(state, machine, tables):
            continue
        if rule.order >= BY.WFP3:
            state.clock[C.IS_FULL] = 1  # keys change with time
        is_changing = rule.order >= BY.SMITH or rule.expects == arrays.EXPECTS_CLASSES or rule.due_after >= 0
        if state.clock[C.IS_FULL] and is_changing:
            sort_queue(rule, now, state)
        passes += 1
        state.clock[C.PASSES] += 1
        if state.clock[C.IS_FULL] or rule.max_starve >= 0:
            pass_queue(now, rule, state, machine, tables, scratch)
        else:
            pass_arrivals(now, rule, count, state, machine, tables, scratch)
        if state.clock[C.LACKS]:
            return arrays.LACKS_ROOM
    return arrays.PAUSED


# --- one step of a scheduler that is not compiled --------------------------------------------------------------------


@kernel
def serve_waiting(
    count: int, now: int, rule: RuleNumbers, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> int:
    """Start jobs that may stop others; return how many of the first that have arrived wait still."""
    serve_urgent(now, rule, state, machine, tables, scratch)
    left = 0
    for k in range(count):
        if state.runs[state.arrived[k], R.START] < 0:
            state.arrived[left] = state.arrived[k]
            left += 1
    return left


@kernel
def fits_there(job: int, entries: Array, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> bool:
    """Tell whether the amounts that a job takes on these nodes are free now, and until its walltime is over."""
    end, free, sfree = state.clock[C.NOW] + state.jobs[job, J.WALLTIME], machine.free, machine.sfree
    if end > next_change(state):
        room_until(end, machine.free, machine.sfree, state, machine, tables)
        free, sfree = machine.room, machine.sroom
    filled = spell_out(state.demand[job], entries, entries.shape[0], tables, scratch)
    for k in range(filled):
        if free[scratch.columns[k]] < scratch.amounts[k]:
            return False
    for q in range(sfree.shape[0]):
        if sfree[q] < scratch.samounts[q]:
            return False
    return True


@kernel
def begin_there(
    job: int, entries: Array, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a waiting job on these nodes; tell whether the arrays had room for it."""
    for e in range(entries.shape[0]):
        for part in range(3):
            scratch.entries[e, part] = entries[e, part]
    return begin_run(job, entries.shape[0], now, state, machine, tables, scratch)
