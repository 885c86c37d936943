"""Kernels of running jobs: their starts and ends, and what they take and give back."""

from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import C, J, R, insert_end, place_of_end, push, remove_end
from cpsched.lab.sim.hold_kernels import follow_asides, has_asides, next_change, room_until
from cpsched.lab.sim.queue_kernels import learn
from cpsched.rusv import inner_kernel, instant_kernels, kernel

change, map_now, spell_out = instant_kernels.change, instant_kernels.map_now, instant_kernels.spell_out


@inner_kernel
def spell_job(job, s, t, x):
    """Write the amounts of a running job to the scratch; return the number of node columns."""
    filled = s.fixed[job, 1]
    if filled == 0:
        first, count = s.runs[job, R.FIRST], s.runs[job, R.COUNT]
        return spell_out(s.demand[job], s.pool[first : first + count], count, t, x)
    for k in range(filled):
        x.columns[k] = s.fixed_columns[s.fixed[job, 0] + k]
        x.amounts[k] = s.fixed_amounts[s.fixed[job, 0] + k]
    for q in range(x.samounts.shape[0]):
        x.samounts[q] = s.sums[job, q]
    return filled


@inner_kernel
def num_choices(job, s):
    """Return the number of choices of a job, 0 if it has none."""
    return s.choices_of[job + 1] - s.choices_of[job]


@inner_kernel
def open_choice(job, k, s):
    """Return the first choice of a job from `k` on that is open now; the number of its choices if none is."""
    waited = s.clock[C.NOW] - s.jobs[job, J.SUBMIT]
    while k < num_choices(job, s) and s.choices[s.choices_of[job] + k, 5] > waited:
        k += 1
    return k


@inner_kernel
def asked_by(job, k, s):
    """Return demand and walltime of a job by one of its choices, and whether that is open now."""
    if num_choices(job, s) == 0:
        return s.demand[job], s.jobs[job, J.WALLTIME], True
    row = s.choices_of[job] + k
    return s.choices[row, 0], s.choices[row, 1], open_choice(job, k, s) == k


@kernel
def take_choice(job, k, s):
    """Let a job run by one of its choices; by the first one it waits. Does nothing to jobs without a choice."""
    if num_choices(job, s) == 0:
        return
    row = s.choices_of[job] + k
    s.demand[job], s.jobs[job, J.WALLTIME], s.jobs[job, J.LENGTH] = (
        s.choices[row, 0],
        s.choices[row, 1],
        s.choices[row, 2],
    )
    s.estimate[job], s.cores[job], s.choice[job] = s.choices[row, 1], s.choices[row, 3], s.choices[row, 4]


@inner_kernel
def map_beside(job, free, sfree, now, s, m, t, x):
    """Map a job to what is and stays free until its walltime is over; return the number of entries, 0: no fit."""
    end = now + s.jobs[job, J.WALLTIME]
    if end <= next_change(s):
        return map_now(s.demand[job], free, sfree, t, x)
    room_until(end, free, sfree, s, m, t)
    return map_now(s.demand[job], m.room, m.sroom, t, x)


@inner_kernel
def map_from_now(job, now, s, m, t, x):
    """Map a job to what is free from now until its walltime is over; return the number of entries, 0: no fit."""
    return map_beside(job, m.free, m.sfree, now, s, m, t, x)


@inner_kernel
def map_first(job, now, s, m, t, x):
    """Map a job as `map_from_now` by the first of its open choices that fits."""
    count, k = map_from_now(job, now, s, m, t, x), open_choice(job, 1, s)
    while count == 0 and k < num_choices(job, s):
        take_choice(job, k, s)
        count, k = map_from_now(job, now, s, m, t, x), open_choice(job, k + 1, s)
    if count == 0:
        take_choice(job, 0, s)
    return count


@inner_kernel
def slow_down(job, s):
    """Make a job longer, at most its walltime, that starts on nodes of several groups."""
    first, last, percent = s.runs[job, R.FIRST], s.runs[job, R.FIRST] + s.runs[job, R.COUNT], 0
    for level in range(s.slowdown.shape[0]):
        for e in range(first + 1, last):
            if s.near[level, s.pool[e, 0]] != s.near[level, s.pool[first, 0]]:
                percent = max(percent, s.slowdown[level])
                break
    if s.base[job, 0] < 0:
        return
    seconds = s.jobs[job, J.LENGTH] + (s.jobs[job, J.LENGTH] * percent + 99) // 100
    s.jobs[job, J.LENGTH] = min(seconds, s.jobs[job, J.WALLTIME])
    if seconds > s.jobs[job, J.WALLTIME]:
        s.jobs[job, J.ENDING] = arrays.KILLED


@inner_kernel
def begin_run(job, count, now, s, m, t, x):
    """Start a job on the nodes that it is mapped to; tell whether the arrays had room for it."""
    first = s.clock[C.POOL]
    if s.pool.shape[0] - first < count:
        s.clock[C.LACKS] = 1
        take_choice(job, 0, s)
        return False
    for e in range(count):
        for part in range(3):
            s.pool[first + e, part] = x.entries[e, part]
    s.clock[C.POOL] += count
    s.runs[job, R.START], s.runs[job, R.FIRST], s.runs[job, R.COUNT] = now, first, count
    s.runs[job, R.STARTS] += 1
    if s.slowdown.shape[0] > 0:
        slow_down(job, s)
    book_run(job, now, s, m, t, x)
    if s.runs[job, R.STARTS] == 1:
        let_go_at_start(job, now, s)
    return True


@kernel
def let_go_at_start(job, now, s):
    """Release the jobs that wait for a job's (first) start."""
    for k in range(s.links_of[job], s.links_of[job + 1]):
        if s.links[k, 1] == arrays.AFTER_START:
            pass_milestone(s.links[k, 0], s.runs[job, R.START], now, s)


@inner_kernel
def change_later(filled, sign, s, m, x):
    """Add the amounts in the scratch (times `sign`) to those free later, and to those beside the head's reservation."""
    change(m.future, m.sfuture, filled, sign, x)
    change(m.after, m.safter, filled, sign, x)


@kernel
def book_run(job, now, s, m, t, x):
    """Take the amounts of a job from the free ones, and enter its expected end."""
    filled = spell_job(job, s, t, x)
    for q in range(s.sums.shape[1]):
        s.sums[job, q] = x.samounts[q]
    start, length = s.runs[job, R.START], s.jobs[job, J.LENGTH]
    end = max(start + s.estimate[job], now + 1)
    change(m.free, m.sfree, filled, -1, x)
    if end > s.clock[C.UNTIL]:
        change_later(filled, -1, s, m, x)
    if has_asides(s):
        follow_asides(filled, -1, end, s, m, t, x)
    s.runs[job, R.END] = end
    insert_end(end, job, s.ends, s.clock)
    push(max(start + length, now + 1), arrays.ENDED, job, s.heap, s.clock)
    if start + length > end:
        push(end, arrays.EXCEEDED, job, s.heap, s.clock)


@inner_kernel
def pass_milestone(milestone, time, now, s):
    """Note that a job has passed a milestone at `time`; after the last one, release the jobs that wait for it."""
    s.missing[milestone] -= 1
    s.passed[milestone] = max(s.passed[milestone], time)
    if s.missing[milestone] > 0:
        return
    for k in range(s.after_of[milestone], s.after_of[milestone + 1]):
        job = s.after[k, 0]
        s.awaited[job] -= 1
        s.release[job] = max(s.release[job], s.passed[milestone] + s.after[k, 1])
        if s.awaited[job] == 0:
            push(max(s.release[job], now), arrays.RELEASED, job, s.heap, s.clock)


@kernel
def give_back(job, s, m, t, x):
    """Give back the amounts of a running job, now and at its expected end."""
    filled = spell_job(job, s, t, x)
    change(m.free, m.sfree, filled, 1, x)
    if s.runs[job, R.END] > s.clock[C.UNTIL]:
        change_later(filled, 1, s, m, x)
    if has_asides(s):
        follow_asides(filled, 1, s.runs[job, R.END], s, m, t, x)
    remove_end(s.runs[job, R.END], job, s.ends, s.clock)


@inner_kernel
def leave(job, s, m, t, x):
    """Remove a running job from the machine, and note that."""
    give_back(job, s, m, t, x)
    s.gone[s.clock[C.GONE]] = job
    s.clock[C.GONE] += 1
    s.clock[C.IS_FULL] = 1


@inner_kernel
def end_run(job, now, s, m, t, x):
    """End a job, release the jobs that wait for its end, and note its length for predictions for its user."""
    leave(job, s, m, t, x)
    ending = s.jobs[job, J.ENDING]
    s.runs[job, R.END], s.runs[job, R.ENDING] = now, ending
    s.clock[C.DONE] += 1
    for k in range(s.links_of[job], s.links_of[job + 1]):
        kind = s.links[k, 1]
        if kind == arrays.AFTER_ANY or kind == (arrays.AFTER_OK if ending == arrays.COMPLETED else arrays.AFTER_NOT_OK):
            pass_milestone(s.links[k, 0], now, now, s)
    learn(job, now - s.runs[job, R.START], s)


@inner_kernel
def move_until(target, s, m, t, x):
    """Set `future` to the amounts that are free after all ends that are expected by `target`."""
    old = s.clock[C.UNTIL]
    low, high = min(old, target), max(old, target)
    for i in range(place_of_end(low + 1, -1, s.ends, s.clock[C.RUNNING]), s.clock[C.RUNNING]):
        if s.ends[i, 0] > high:
            break
        change(m.future, m.sfuture, spell_job(s.ends[i, 1], s, t, x), 1 if target > old else -1, x)
    s.clock[C.UNTIL] = target


@kernel
def close_gaps(s):
    """Remove the jobs that have started from the queue."""
    kept = 0
    for i in range(s.clock[C.QUEUED]):
        if s.runs[s.queue[i], R.START] < 0:
            s.queue[kept] = s.queue[i]
            kept += 1
    s.clock[C.QUEUED] = kept
