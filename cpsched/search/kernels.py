"""Ruin and recreate on the planner's timeline, compiled: remove a few jobs, insert them again, keep what is better.

The insertion is the planner's own, so that every state of the search is a plan. A step that makes the plan worse is
kept with the probability of simulated annealing; the temperature is given, in units of the mean cost of a job.

There is one search for all jobs. Where none changes while it runs, `changes` is None: the same code is compiled for
jobs of one part alone.
"""

import numpy as np

from cpsched.rusv import FOREVER, NOWHERE, Array, inner_kernel, kernel, kernels
from cpsched.search import ruin_kernels
from cpsched.search.arrays import FAILED, FINES, KEPT, STEPS, VALUE, Changes, Jobs, Places, Step, Timeline
from cpsched.search.change_kernels import copy_parts, expand, is_slower_free, note_columns
from cpsched.search.count_kernels import keep_profile, restore_profile
from cpsched.search.place_kernels import (
    EXPANDED,
    LISTED,
    MOST_HELD,
    SHRUNK,
    below,
    book,
    copy_place,
    cost_of_place,
    find_counted,
    find_evolving,
    find_in_modes,
    last_end,
    leave_out,
    note_nodes,
    num_modes,
    release,
    take_out,
    uniform,
)

#: The most jobs that most steps remove, and the share of the other ones.
_FEW, _MANY = 8, 0.05
#: The shares of the steps in which evolving jobs may be held, and in which a job is shrunk for others.
_HELD, _LENT = 0.15, 0.25
#: The shares of the insertions in which a malleable job, or one with alternatives, tries all its modes, and in which it
#: takes a random one; else it keeps its own.
_ALL_SHARES, _OTHER_SHARE = 0.3, 0.2
_ALL_MODES, _OTHER_MODE = 0.05, 0.15


# --- whole plans -----------------------------------------------------------------------------------------------------


@inner_kernel
def has_space(jobs: int, plan: Places, timeline: Timeline | None) -> bool:
    """Tell whether the timeline has space for so many more bookings."""
    if timeline is None:
        return True
    head, room = timeline.state.head, 2 * jobs * plan.begins.shape[1]
    return head[kernels.H.SPARE_ROWS] >= room and head[kernels.H.SPARE_BLOCKS] >= room


@kernel
def clear(jobs: Jobs, plan: Places, timeline: Timeline | None, changes: Changes | None) -> None:
    """Remove all waiting jobs."""
    for job in range(jobs.least.shape[0]):
        if plan.starts[job] != NOWHERE:
            take_out(job, jobs, plan, timeline, changes)


@kernel
def book_all(
    rows: Array, jobs: Jobs, plan: Places, timeline: Timeline | None, changes: Changes | None
) -> tuple[int, int]:
    """Book some jobs at their places; return (`kernels.R.DONE` or `kernels.R.GROW_STATE`; how many are booked)."""
    for k in range(rows.shape[0]):
        if not has_space(1, plan, timeline):
            return kernels.R.GROW_STATE, k
        book(rows[k], jobs, plan, timeline, changes)
    return kernels.R.DONE, rows.shape[0]


@kernel
def settle(
    order: Array,
    begin: int,
    limit: float,
    known: Array,
    jobs: Jobs,
    plan: Places,
    step: Step,
    timeline: Timeline | None,
    changes: Changes | None,
) -> tuple[int, int, float]:
    """Insert the jobs of ``order[begin:]`` in turn, each as early as it fits beside the jobs already placed; one that
    changes while it runs in the mode and at the place that cost it least. A job without a place is left out, if it
    may be.

    `known` remembers the starts found for equal demands, as `place_jobs` of the timeline does.

    Returns (`kernels.R.DONE`, `kernels.R.GROW_STATE`, or `FAILED` if a job has no place or the list costs more than
    `limit`; index in the order that was reached; the rest of `limit`).
    """
    for k in range(begin, order.shape[0]):
        if not has_space(1, plan, timeline):
            return kernels.R.GROW_STATE, k, limit
        job = order[k]
        only = jobs.listed[job]
        mode = jobs.first_mode[job] + max(only, 0)
        released = kernels.earliest_after(job, jobs.earliest[job], jobs.linked)
        if released >= FOREVER:
            return FAILED, k, limit
        if timeline is None:
            is_found = find_counted(job, released, limit, jobs, plan)
        elif changes is not None and changes.sequence[job] >= 0:
            is_found = find_evolving(job, released, np.inf, MOST_HELD, jobs, plan, timeline, changes)
        else:
            demand, duration = jobs.demands[mode], jobs.durations[mode]
            is_known = only >= 0 and timeline.tables.demands[demand, kernels.D.FLAGS] & kernels.F.JOINT == 0
            earliest = kernels.remembered_start(known[demand], released, duration, FOREVER) if is_known else released
            is_found = find_in_modes(job, only, earliest, np.inf, LISTED, jobs, plan, step, timeline, changes)
            if is_found and is_known:
                kernels.remember_start(known[demand], released, duration, plan.starts[job])
        if not is_found and not leave_out(job, released, np.inf, jobs, plan):
            return FAILED, k, limit
        book(job, jobs, plan, timeline, changes)
        limit -= plan.paid[job]
        if limit < 0.0:
            return FAILED, k, limit
    return kernels.R.DONE, order.shape[0], limit


# --- the search ------------------------------------------------------------------------------------------------------


@kernel
def insert(
    job: int,
    slot: int,
    limit: float,
    is_held: bool,
    jobs: Jobs,
    plan: Places,
    step: Step,
    timeline: Timeline | None,
    changes: Changes | None,
) -> bool:
    """Insert a removed job where it costs no more than `limit`; tell whether there is such a place.

    Of jobs with several modes some take the mode that costs least, some a random one, and the others keep theirs: what
    a job loses in another mode may be less than what others gain. Only the first expand at once, the others when all
    jobs have a place; until then their longer time is not counted. A job that fits nowhere is left out, if it may be.
    """
    earliest = kernels.earliest_after(job, jobs.earliest[job], jobs.linked)
    if earliest >= FOREVER:
        return False
    if timeline is None:
        is_found = find_counted(job, earliest, limit, jobs, plan)
    elif changes is not None and changes.sequence[job] >= 0:
        is_found = find_evolving(job, earliest, limit, MOST_HELD if is_held else 0, jobs, plan, timeline, changes)
    else:
        is_found = find_with_mode(job, slot, earliest, limit, jobs, plan, step, timeline, changes)
    if is_found:
        book(job, jobs, plan, timeline, changes)
    return is_found


@inner_kernel
def find_with_mode(
    job: int,
    slot: int,
    earliest: int,
    limit: float,
    jobs: Jobs,
    plan: Places,
    step: Step,
    timeline: Timeline,
    changes: Changes | None,
) -> bool:
    """Choose modes of a removed job, and find a place in one of them; tell whether there is one."""
    only, style, room, kept, modes = -1, EXPANDED, limit, step.old.numbers[slot, 0], num_modes(job, jobs)
    if modes > 1 and kept < modes:
        flip, most, other = uniform(step.random), _ALL_SHARES, _OTHER_SHARE
        if changes is None:
            # what the mode of before costs limits how far the others are searched
            only, most, other = ~kept, _ALL_MODES, _OTHER_MODE
        if flip >= most:
            only, style = kept if flip >= most + other else below(step.random, modes), SHRUNK
    if changes is not None and style == SHRUNK:
        room += changes.late[job] * (jobs.durations[jobs.first_mode[job] + only] - changes.durations[job])
    is_found = find_in_modes(job, only, earliest, room, style, jobs, plan, step, timeline, changes)
    if is_found or earliest > kernels.latest_before(job, FOREVER, jobs.linked):
        return is_found
    return leave_out(job, earliest, limit, jobs, plan)


@inner_kernel
def lend(job: int, jobs: Jobs, plan: Places, timeline: Timeline, changes: Changes) -> bool:
    """Run a malleable job as `slower` says, if that is free; tell whether it is."""
    release(job, jobs, plan, timeline, changes)
    note_columns(job, plan.pool[plan.spaces[job] :], plan.entries[job, 0], jobs, timeline, changes)
    is_free = is_slower_free(timeline.state, changes)
    if is_free:
        copy_parts(plan, job, changes.slower, 0)
    book(job, jobs, plan, timeline, changes)
    return is_free


@inner_kernel
def grow(job: int, jobs: Jobs, plan: Places, timeline: Timeline, changes: Changes) -> None:
    """Let a malleable job of the plan expand; see `expand`."""
    release(job, jobs, plan, timeline, changes)
    expand(job, plan, job, jobs, timeline, changes)
    plan.paid[job] = cost_of_place(job, plan, job, jobs, changes)
    book(job, jobs, plan, timeline, changes)


@inner_kernel
def least_paid(job: int, jobs: Jobs, plan: Places, changes: Changes) -> float:
    """Return what a malleable job pays at its start if it is never shrunk."""
    full = changes.rates[jobs.first_mode[job]]
    return plan.paid[job] - changes.late[job] * (
        plan.ends[job] - plan.starts[job] - (changes.units[job] + full - 1) // full
    )


@inner_kernel
def is_shrunk(job: int, plan: Places, changes: Changes) -> bool:
    """Tell whether a waiting job has one part on a smaller share."""
    return changes.sequence[job] < 0 and plan.counts[job] == 1 and plan.numbers[job, 0] > 0


@kernel
def ruin_and_recreate(
    steps: int,
    temperature: float,
    end_price: float,
    jobs: Jobs,
    plan: Places,
    step: Step,
    timeline: Timeline | None,
    changes: Changes | None,
) -> int:
    """Do a number of steps of simulated annealing at a `temperature` in mean costs of a job.

    In some steps a malleable job is shrunk first, for those that are removed. At the end of a step it expands again as
    soon as it can, and so do those that were inserted on a smaller share. Returns `kernels.R.DONE`, or
    `kernels.R.GROW_STATE` before a step for which an array is too small.
    """
    count, most, is_linked = jobs.least.shape[0], step.chosen.shape[0], jobs.linked.links.waits.shape[0] > 0
    found, lender, has_lenders, is_held = 0, -1, False, False
    if changes is not None:
        has_lenders = changes.lenders.shape[0] > 0
    if timeline is None:
        keep_profile(jobs.counted)
    for _ in range(steps):
        if not has_space(most + 2, plan, timeline):
            return kernels.R.GROW_STATE
        step.figures[STEPS] += 1
        step.marks[count] += 1
        wanted = 2 + below(step.random, min(most if uniform(step.random) < _MANY else _FEW, count) - 1)
        style, is_lent = uniform(step.random), has_lenders and uniform(step.random) < _LENT
        is_way_made = timeline is not None and not is_lent and 0.35 <= style < 0.8
        if changes is not None:
            is_held = uniform(step.random) < _HELD
        if is_way_made:
            found = ruin_kernels.choose_in_the_way(jobs, plan, step)
        elif not is_lent and style < (0.5 if timeline is None else 0.35):
            found = ruin_kernels.choose_near(wanted, plan.starts, step)
        elif not is_lent and is_linked:
            found = ruin_kernels.choose_linked(wanted, jobs, step)
        elif not is_lent:
            found = ruin_kernels.choose_any(wanted, step)
        elif changes is not None:
            found, lender = ruin_kernels.choose_to_lend(wanted, jobs, plan, step, changes)
        if found < 2 - is_lent:
            continue
        ruin_kernels.choose_order(found, is_way_made, jobs, plan, step)
        end_before = last_end(jobs, plan) if end_price > 0.0 else 0
        before, least = 0.0, 0.0
        for slot in range(found):
            job = step.chosen[slot]
            before += plan.paid[job]
            least += jobs.least[job]
            copy_place(step.old, slot, plan, job)
            take_out(job, jobs, plan, timeline, changes)
        after, inserted, is_possible = 0.0, 0, True
        if timeline is not None and changes is not None and is_lent:
            before += plan.paid[lender]
            after = least_paid(lender, jobs, plan, changes)
            copy_place(step.old, found, plan, lender)
            is_possible = lend(lender, jobs, plan, timeline, changes)
        mean = max(step.figures[VALUE] - step.figures[FINES], 0.0) / count
        limit = before - temperature * mean * np.log(max(uniform(step.random), 1e-300))
        while is_possible and inserted < found:  # as long as the limit can still be kept
            if is_linked:
                ruin_kernels.bring_forward(inserted, found, jobs, step)
            slot = step.order[inserted]
            job = step.chosen[slot]
            least -= jobs.least[job]
            is_possible = insert(job, slot, limit - after - least, is_held, jobs, plan, step, timeline, changes)
            if is_possible:
                paid = plan.paid[job]
                if changes is not None and is_shrunk(job, plan, changes):
                    paid = least_paid(job, jobs, plan, changes)
                after += paid
                inserted += 1
        if is_possible:
            if timeline is not None and changes is not None:
                after = 0.0
                if is_lent:
                    grow(lender, jobs, plan, timeline, changes)
                    after += plan.paid[lender]
                for turn in range(found):
                    job = step.chosen[step.order[turn]]
                    if is_shrunk(job, plan, changes):
                        grow(job, jobs, plan, timeline, changes)
                    after += plan.paid[job]
            if end_price > 0.0:
                after += end_price * (last_end(jobs, plan) - end_before)
            if after <= limit:
                step.figures[VALUE] += after - before
                step.figures[KEPT] += 1
                for slot in range(found):
                    note_nodes(step.chosen[slot], plan, step.nodes_of)
                if timeline is None:
                    keep_profile(jobs.counted)
                continue
        if timeline is None:  # not kept: all jobs return to their old places
            restore_profile(jobs.counted)
            inserted = 0
        for turn in range(inserted):
            take_out(step.chosen[step.order[turn]], jobs, plan, timeline, changes)
        if is_lent:
            release(lender, jobs, plan, timeline, changes)
            copy_place(plan, lender, step.old, found)
            book(lender, jobs, plan, timeline, changes)
        for slot in range(found):  # in any order: their distances held before
            copy_place(plan, step.chosen[slot], step.old, slot)
            if timeline is not None:
                book(step.chosen[slot], jobs, plan, timeline, changes)
    return kernels.R.DONE
