"""Kernels of running jobs: their starts and ends, and what they take and give back."""

from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import C, J, Machine, R, SimState, insert_end, place_of_end, push, remove_end
from cpsched.lab.sim.hold_kernels import follow_asides, has_asides, next_change, room_until
from cpsched.lab.sim.queue_kernels import learn
from cpsched.rusv import Array, Scratch, Tables, inner_kernel, instant_kernels, kernel

change, map_now, spell_out = instant_kernels.change, instant_kernels.map_now, instant_kernels.spell_out


@inner_kernel
def spell_job(job: int, state: SimState, tables: Tables, scratch: Scratch) -> int:
    """Write the amounts of a running job to the scratch; return the number of node columns."""
    filled = state.fixed[job, 1]
    if filled == 0:
        first, count = state.runs[job, R.FIRST], state.runs[job, R.COUNT]
        return spell_out(state.demand[job], state.pool[first : first + count], count, tables, scratch)
    for k in range(filled):
        scratch.columns[k] = state.fixed_columns[state.fixed[job, 0] + k]
        scratch.amounts[k] = state.fixed_amounts[state.fixed[job, 0] + k]
    for q in range(scratch.samounts.shape[0]):
        scratch.samounts[q] = state.sums[job, q]
    return filled


@inner_kernel
def num_choices(job: int, state: SimState) -> int:
    """Return the number of choices of a job, 0 if it has none."""
    return state.choices_of[job + 1] - state.choices_of[job]


@inner_kernel
def open_choice(job: int, number: int, state: SimState) -> int:
    """Return the first choice of a job from `number` on that is open now; the number of its choices if none is."""
    waited = state.clock[C.NOW] - state.jobs[job, J.SUBMIT]
    while number < num_choices(job, state) and state.choices[state.choices_of[job] + number, 5] > waited:
        number += 1
    return number


@inner_kernel
def asked_by(job: int, number: int, state: SimState) -> tuple[int, int, bool]:
    """Return demand and walltime of a job by one of its choices, and whether that is open now."""
    if num_choices(job, state) == 0:
        return state.demand[job], state.jobs[job, J.WALLTIME], True
    row = state.choices_of[job] + number
    return state.choices[row, 0], state.choices[row, 1], open_choice(job, number, state) == number


@kernel
def take_choice(job: int, number: int, state: SimState) -> None:
    """Let a job run by one of its choices; by the first one it waits. Does nothing to jobs without a choice."""
    if num_choices(job, state) == 0:
        return
    row = state.choices_of[job] + number
    state.demand[job], state.jobs[job, J.WALLTIME], state.jobs[job, J.LENGTH] = (
        state.choices[row, 0],
        state.choices[row, 1],
        state.choices[row, 2],
    )
    state.estimate[job], state.cores[job], state.choice[job] = (
        state.choices[row, 1],
        state.choices[row, 3],
        state.choices[row, 4],
    )


@inner_kernel
def map_beside(
    job: int, free: Array, sfree: Array, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> int:
    """Map a job to what is and stays free until its walltime is over; return the number of entries, 0: no fit."""
    end = now + state.jobs[job, J.WALLTIME]
    if end <= next_change(state):
        return map_now(state.demand[job], free, sfree, tables, scratch)
    room_until(end, free, sfree, state, machine, tables)
    return map_now(state.demand[job], machine.room, machine.sroom, tables, scratch)


@inner_kernel
def map_from_now(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Map a job to what is free from now until its walltime is over; return the number of entries, 0: no fit."""
    return map_beside(job, machine.free, machine.sfree, now, state, machine, tables, scratch)


@inner_kernel
def map_first(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> int:
    """Map a job as `map_from_now` by the first of its open choices that fits."""
    count, k = map_from_now(job, now, state, machine, tables, scratch), open_choice(job, 1, state)
    while count == 0 and k < num_choices(job, state):
        take_choice(job, k, state)
        count, k = map_from_now(job, now, state, machine, tables, scratch), open_choice(job, k + 1, state)
    if count == 0:
        take_choice(job, 0, state)
    return count


@inner_kernel
def slow_down(job: int, state: SimState) -> None:
    """Make a job longer, at most its walltime, that starts on nodes of several groups."""
    first, last, percent = state.runs[job, R.FIRST], state.runs[job, R.FIRST] + state.runs[job, R.COUNT], 0
    for level in range(state.slowdown.shape[0]):
        for e in range(first + 1, last):
            if state.near[level, state.pool[e, 0]] != state.near[level, state.pool[first, 0]]:
                percent = max(percent, state.slowdown[level])
                break
    if state.base[job, 0] < 0:
        return
    seconds = state.jobs[job, J.LENGTH] + (state.jobs[job, J.LENGTH] * percent + 99) // 100
    state.jobs[job, J.LENGTH] = min(seconds, state.jobs[job, J.WALLTIME])
    if seconds > state.jobs[job, J.WALLTIME]:
        state.jobs[job, J.ENDING] = arrays.KILLED


@inner_kernel
def begin_run(
    job: int, count: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch
) -> bool:
    """Start a job on the nodes that it is mapped to; tell whether the arrays had room for it."""
    first = state.clock[C.POOL]
    if state.pool.shape[0] - first < count:
        state.clock[C.LACKS] = 1
        take_choice(job, 0, state)
        return False
    for e in range(count):
        for part in range(3):
            state.pool[first + e, part] = scratch.entries[e, part]
    state.clock[C.POOL] += count
    state.runs[job, R.START], state.runs[job, R.FIRST], state.runs[job, R.COUNT] = now, first, count
    state.runs[job, R.STARTS] += 1
    if state.slowdown.shape[0] > 0:
        slow_down(job, state)
    book_run(job, now, state, machine, tables, scratch)
    if state.runs[job, R.STARTS] == 1:
        let_go_at_start(job, now, state)
    return True


@kernel
def let_go_at_start(job: int, now: int, state: SimState) -> None:
    """Release the jobs that wait for a job's (first) start."""
    for k in range(state.links_of[job], state.links_of[job + 1]):
        if state.links[k, 1] == arrays.AFTER_START:
            pass_milestone(state.links[k, 0], state.runs[job, R.START], now, state)


@inner_kernel
def change_later(filled: int, sign: int, state: SimState, machine: Machine, scratch: Scratch) -> None:
    """Add the amounts in the scratch (times `sign`) to those free later, and to those beside the head's reservation."""
    change(machine.future, machine.sfuture, filled, sign, scratch)
    change(machine.after, machine.safter, filled, sign, scratch)


@kernel
def book_run(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Take the amounts of a job from the free ones, and enter its expected end."""
    filled = spell_job(job, state, tables, scratch)
    for q in range(state.sums.shape[1]):
        state.sums[job, q] = scratch.samounts[q]
    start, length = state.runs[job, R.START], state.jobs[job, J.LENGTH]
    end = max(start + state.estimate[job], now + 1)
    change(machine.free, machine.sfree, filled, -1, scratch)
    if end > state.clock[C.UNTIL]:
        change_later(filled, -1, state, machine, scratch)
    if has_asides(state):
        follow_asides(filled, -1, end, state, machine, tables, scratch)
    state.runs[job, R.END] = end
    insert_end(end, job, state.ends, state.clock)
    push(max(start + length, now + 1), arrays.ENDED, job, state.heap, state.clock)
    if start + length > end:
        push(end, arrays.EXCEEDED, job, state.heap, state.clock)


@inner_kernel
def pass_milestone(milestone: int, time: int, now: int, state: SimState) -> None:
    """Note that a job has passed a milestone at `time`; after the last one, release the jobs that wait for it."""
    state.missing[milestone] -= 1
    state.passed[milestone] = max(state.passed[milestone], time)
    if state.missing[milestone] > 0:
        return
    for k in range(state.after_of[milestone], state.after_of[milestone + 1]):
        job = state.after[k, 0]
        state.awaited[job] -= 1
        state.release[job] = max(state.release[job], state.passed[milestone] + state.after[k, 1])
        if state.awaited[job] == 0:
            push(max(state.release[job], now), arrays.RELEASED, job, state.heap, state.clock)


@kernel
def give_back(job: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Give back the amounts of a running job, now and at its expected end."""
    filled = spell_job(job, state, tables, scratch)
    change(machine.free, machine.sfree, filled, 1, scratch)
    if state.runs[job, R.END] > state.clock[C.UNTIL]:
        change_later(filled, 1, state, machine, scratch)
    if has_asides(state):
        follow_asides(filled, 1, state.runs[job, R.END], state, machine, tables, scratch)
    remove_end(state.runs[job, R.END], job, state.ends, state.clock)


@inner_kernel
def leave(job: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Remove a running job from the machine, and note that."""
    give_back(job, state, machine, tables, scratch)
    state.gone[state.clock[C.GONE]] = job
    state.clock[C.GONE] += 1
    state.clock[C.IS_FULL] = 1


@inner_kernel
def end_run(job: int, now: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """End a job, release the jobs that wait for its end, and note its length for predictions for its user."""
    leave(job, state, machine, tables, scratch)
    ending = state.jobs[job, J.ENDING]
    state.runs[job, R.END], state.runs[job, R.ENDING] = now, ending
    state.clock[C.DONE] += 1
    for k in range(state.links_of[job], state.links_of[job + 1]):
        kind = state.links[k, 1]
        if kind == arrays.AFTER_ANY or kind == (arrays.AFTER_OK if ending == arrays.COMPLETED else arrays.AFTER_NOT_OK):
            pass_milestone(state.links[k, 0], now, now, state)
    learn(job, now - state.runs[job, R.START], state)


@inner_kernel
def move_until(target: int, state: SimState, machine: Machine, tables: Tables, scratch: Scratch) -> None:
    """Set `future` to the amounts that are free after all ends that are expected by `target`."""
    old = state.clock[C.UNTIL]
    low, high = min(old, target), max(old, target)
    for i in range(place_of_end(low + 1, -1, state.ends, state.clock[C.RUNNING]), state.clock[C.RUNNING]):
        if state.ends[i, 0] > high:
            break
        change(
            machine.future,
            machine.sfuture,
            spell_job(state.ends[i, 1], state, tables, scratch),
            1 if target > old else -1,
            scratch,
        )
    state.clock[C.UNTIL] = target


@kernel
def close_gaps(state: SimState) -> None:
    """Remove the jobs that have started from the queue."""
    kept = 0
    for i in range(state.clock[C.QUEUED]):
        if state.runs[state.queue[i], R.START] < 0:
            state.queue[kept] = state.queue[i]
            kept += 1
    state.clock[C.QUEUED] = kept
