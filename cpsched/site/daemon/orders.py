"""The orders that make true what the plan wants: the difference between the plan and the last snapshot."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from cpsched.domain import Job
from cpsched.site.bridge import (
    Announce,
    Gate,
    HandBack,
    Hold,
    JobFacts,
    JobState,
    Note,
    Order,
    Rank,
    Requeue,
    Snapshot,
    Start,
)
from cpsched.site.daemon.standing import bands
from cpsched.site.daemon.state import PlannedStart, State

#: The most forecasts that are noted in a cycle, and the seconds by which they differ from what was noted.
_MOST_NOTES, _APART = 60, 300
#: Seconds for which nothing is noted after it was forbidden: the plan can do without.
NOT_NOTED = 3600


def wanted_orders(state: State) -> tuple[Order, ...]:
    """Return the orders for the state's plan; none in a dry run.

    First what takes jobs out of the way, then the starts in order of time. Waiting jobs that the plan starts later are
    held, for some minutes at a time, so that none starts before; what the plan has no place for, and what the instance
    cannot express, is the manager's. A job for which others are stopped starts once these have left, and what follows
    it on its nodes is ordered after that: it may be late.
    """
    snapshot = state.snapshot
    if snapshot is None or state.policy.is_dry_run:
        return ()
    if state.is_stopping or state.gave_up_at is not None:
        return hand_back_orders(snapshot)
    if state.policy.only_ranks:
        return tuple(rank_orders(state, snapshot))
    orders: list[Order] = []
    lease, until = state.policy.lease, snapshot.taken_at + state.policy.lease
    # new jobs are held until it opens
    is_due = state.gated_at is None or snapshot.taken_at - state.gated_at >= lease // 4
    is_well = not state.num_bad and not state.is_blind
    if is_well and (snapshot.gate_is_closed is False or (snapshot.gate_is_closed and is_due)):
        orders.append(Gate(until=until))
    starts: list[Start] = []
    stops: dict[str, Requeue] = {}
    taken: dict[str, int] = {}
    for entry in state.plan.values():
        if entry.stops and (waits := snapshot.jobs.get(entry.planned.id)) is not None and waits.due != entry.start:
            taken |= {node: min(entry.start, taken.get(node, entry.start)) for node in entry.nodes}
    soon = snapshot.taken_at + state.policy.horizon
    for job in snapshot.instance.jobs:
        if job.running is not None:
            continue
        facts = snapshot.jobs[job.id]
        planned = state.plan.get(job.id)
        if state.is_barred(job.id) or job.id in state.unplaced:
            orders += [HandBack(job=job.id)] if facts.is_steered else []
        elif planned is not None and planned.planned.start <= soon:
            in_the_way = planned.in_the_way(snapshot.jobs)
            is_behind = not planned.stops and any(planned.start >= taken.get(node, math.inf) for node in planned.nodes)
            if in_the_way or (taken and is_behind):
                orders += [Hold(job=job.id, until=until)] if _is_to_be_held(state, job, facts) else []
                runs = [one for one in in_the_way if snapshot.jobs[one.job].revision == one.revision]
                stops |= {one.job: one for one in runs if planned.stop_at(snapshot) <= snapshot.taken_at}
            elif (facts.due, facts.nodes) != (planned.start, planned.nodes):
                starts.append(start_order(planned))
        elif _is_to_be_held(state, job, facts):
            orders.append(Hold(job=job.id, until=until))
    for left in snapshot.left:
        facts = snapshot.jobs[left.id]
        if left.is_for_manager and facts.is_steered:
            orders.append(HandBack(job=left.id))
        elif facts.due is not None:
            # held when it had its order: it would start by it as soon as it is released
            orders.append(Hold(job=left.id, until=until))
    starts.sort(key=lambda start: (start.at, start.job))
    return (*orders, *stops.values(), *starts)


def start_order(entry: PlannedStart) -> Start:
    """Return the order to start a job as planned."""
    return Start(
        job=entry.planned.id,
        at=entry.start,
        allocation=entry.allocation,
        revision=entry.revision,
        alternative=entry.planned.alternative,
    )


def _is_to_be_held(state: State, job: Job, facts: JobFacts) -> bool:
    """Tell whether a job that starts later has to be held, or held for longer.

    Nothing is held anew, or for longer, while no plan can be made, nor what no plan was made with yet.
    """
    if facts.due is not None:
        return True
    if state.is_blind or job.id not in state.considered:
        return False
    lease = state.policy.lease
    if (job.not_before or 0) > state.now + lease:
        return False
    # a clock that was set back has left holds that are far too long
    return not facts.is_steered or (facts.until is not None and not lease // 2 < facts.until - state.now <= lease)


def announcements(state: State) -> tuple[Announce, ...]:
    """Return the promises that users are to be told, of jobs that do not start at once.

    Tasks that the manager does not tell apart are not told one by one: that would make as many jobs of them.
    """
    facts = {} if state.snapshot is None else state.snapshot.jobs
    return tuple(
        Announce(job=job, start=state.promises[job].start, nodes=state.plan[job].nodes, why=why)
        for job, why in sorted(state.unannounced.items())
        if job in state.promises and job in state.plan and state.promises[job].start > state.now
        if job in facts and not facts[job].batch
    )


def notes(state: State) -> Iterator[Note]:
    """Yield the forecasts that are to be noted, the first starts first: at most one each second, and `_MOST_NOTES`.

    What is noted of jobs that run, or whose start is not forecast any more, is taken away. Of tasks that the manager
    does not tell apart nothing is noted: that would make as many jobs of them.
    """
    if state.snapshot is None:
        return
    seen, now, is_noting = state.snapshot.jobs, state.now, state.policy.is_noting
    since = _MOST_NOTES if state.noted_at is None else now - state.noted_at
    if -NOT_NOTED <= since < 0:  # a clock may have been set back
        return
    for job, facts in seen.items():
        is_gone = state.forecasts and job not in state.forecasts
        if facts.noted is not None and (not is_noting or facts.state is JobState.RUNNING or is_gone):
            yield Note(job=job, forecast=None)
    if not is_noting:
        return
    changed = [
        (forecast[0], job)
        for job, forecast in state.forecasts.items()
        if (one := seen.get(job)) is not None and one.may_note and not one.batch
        if one.noted is None or _is_apart(one.noted, forecast, now)
    ]
    for _, job in sorted(changed)[: min(_MOST_NOTES, abs(since))]:
        yield Note(job=job, forecast=state.forecasts[job])


def _is_apart(noted: tuple[int, int | None], forecast: tuple[int, int | None], now: int) -> bool:
    """Tell whether a forecast says something else than what is noted: minutes of an hour, and an hour of a day."""
    for old, new in zip(noted, forecast, strict=True):
        if (old is None) is not (new is None):
            return True
        if old is not None and new is not None and abs(new - old) > max(_APART, (new - now) // 10):
            return True
    return False


def hand_back_orders(snapshot: Snapshot) -> tuple[Order, ...]:
    """Return the orders that leave everything to the manager's own scheduler."""
    gate = [] if snapshot.gate_is_closed is None else [Gate(until=None)]
    noted = [job for job, one in snapshot.jobs.items() if one.noted is not None and one.state is JobState.RUNNING]
    return (
        *gate,
        *(HandBack(job=job) for job in steered_jobs(snapshot)),
        *(Note(job=job, forecast=None) for job in noted),
    )


def steered_jobs(snapshot: Snapshot) -> Iterator[str]:
    """Yield the waiting jobs that are not wholly the manager's own."""
    for job, facts in snapshot.jobs.items():
        is_waiting = facts.state in (JobState.WAITING, JobState.HELD)
        is_touched = facts.is_steered or facts.is_marked or facts.due is not None or facts.noted is not None
        if is_waiting and is_touched:
            yield job


#: Between two priorities that follow each other, where they are given anew.
_GAP = 100
#: Seconds up to which each planned start counts as it is; later ones count in steps that double.
_NEAR = 600
#: In place of such a start: that of a job that waits behind all planned ones.
_LAST = 1 << 62


def rank_orders(state: State, snapshot: Snapshot) -> Iterator[Order]:
    """Yield the orders by which jobs that the plan starts first come first.

    Nothing is held, and what others have set lately stays. Tasks of an array that the manager does not tell apart have
    one priority, by the first of them. Jobs of different bands (`standing.py`) keep the order that they have by the
    manager's own priorities; so do jobs that are too many to be planned, behind those that are.
    """
    if snapshot.gate_is_closed:
        yield Gate(until=None)
    wanted: dict[str, tuple[tuple[int, int, int, int], str, int]] = {}
    own = [left.id for left in snapshot.left if left.is_for_manager]
    waiting = [job.id for job in snapshot.instance.jobs if job.running is None]
    influence = state.policy.influence if state.policy.counts_priorities else 1.0
    merits = {job: snapshot.jobs[job].own_priority for job in waiting}
    band = bands(waiting, merits, influence)
    for arrival, job in enumerate(waiting):
        facts, planned = snapshot.jobs[job], state.plan.get(job)
        if facts.is_steered:
            yield HandBack(job=job)
        elif facts.is_foreign:
            continue
        elif influence <= 0 or job in state.unplaced or state.is_barred(job):
            own.append(job)
        elif planned is None and (state.stale or job not in state.considered):
            continue  # a plan of it is about to be made
        elif facts.priority > 0:
            place = -facts.priority if planned is not None else -facts.own_priority
            start = _LAST if planned is None else _step(planned.start - snapshot.taken_at)
            key = band[job], start, place, arrival
            name = facts.batch or job
            if name not in wanted or key < wanted[name][0]:
                wanted[name] = key, job, facts.priority
    for job in own:
        facts = snapshot.jobs[job]
        is_ours = facts.is_steered or (facts.is_marked and not facts.is_foreign)
        if is_ours and (facts.batch or job) not in wanted:
            yield HandBack(job=job)
    if state.is_blind:
        return
    in_order = sorted(wanted.values())
    arrivals = [key[-1] for key, *_ in in_order]
    for place, priority in changed_priorities([priority for *_, priority in in_order], arrivals).items():
        yield Rank(job=in_order[place][1], priority=priority)


def _step(seconds: int) -> int:
    """Return the seconds to a start as far as they count: an hour is no other than an hour and a minute."""
    if seconds <= _NEAR:
        return max(0, seconds)
    return _NEAR << (seconds // _NEAR).bit_length()


def changed_priorities(priorities: Sequence[int], arrivals: Sequence[int]) -> Mapping[int, int]:
    """Return other priorities for a few of some jobs, by place, so that each is less than the one before it.

    It may be the same where the job arrived later: managers look at those first that came first.
    What is in order already stays, as much as possible of it (a longest increasing subsequence); the others get
    priorities in between. Where there is no room, all are given anew, around the middle of those that there were.
    """
    kept = _longest_increasing([(-priority, arrival) for priority, arrival in zip(priorities, arrivals, strict=True)])
    if len(kept) == len(priorities):
        return {}
    found: dict[int, int] = {}
    first = priorities[kept[0]] + _GAP * (kept[0] + 1)
    last = priorities[kept[-1]] - _GAP * (len(priorities) - kept[-1])
    ends = [(-1, first), *((place, priorities[place]) for place in kept), (len(priorities), last)]
    for (before, high), (after, low) in pairwise(ends):
        count = after - before
        if count > 1 and (high - low < count or low < 1 - (after == len(priorities))):
            return _anew(priorities)
        found |= {before + each: high - (high - low) * each // count for each in range(1, count)}
    return found


def _anew(priorities: Sequence[int]) -> Mapping[int, int]:
    count = len(priorities)
    gap = max(_GAP, (max(priorities) - min(priorities)) // max(1, count - 1))
    last = max(1, (max(priorities) + min(priorities) - gap * (count - 1)) // 2)
    new = {place: last + gap * (count - 1 - place) for place in range(count)}
    return {place: priority for place, priority in new.items() if priority != priorities[place]}


def _longest_increasing(values: Sequence[tuple[int, int]]) -> list[int]:
    """Return the places of a longest strictly increasing subsequence (patience sorting)."""
    ends: list[tuple[int, int]] = []
    at: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        length = bisect_left(ends, value)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        at[length : length + 1] = [place]
    found = []
    place = at[-1] if at else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]
