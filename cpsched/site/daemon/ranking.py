"""The order of the plan as priorities of the manager's own scheduler, with as few changes as that takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from cpsched.domain import Instance
from cpsched.site.bridge import Gate, HandBack, Order, Rank, Snapshot
from cpsched.site.daemon.standing import bands
from cpsched.site.daemon.state import State

#: Between two priorities that follow each other, where they are given anew.
_GAP = 100
#: Seconds up to which each planned start counts as it is; later ones count in steps that double.
_NEAR = 600


def rank_orders(state: State, snapshot: Snapshot) -> Iterator[Order]:
    """Yield the orders by which jobs that the plan starts first come first.

    Nothing is held. Tasks of an array that the manager does not tell apart have one priority, by the first of them.
    Jobs of different bands (`standing.py`) keep the order that they have by the manager's own priorities.
    """
    if snapshot.gate_is_closed:
        yield Gate(until=None)
    wanted: dict[str, tuple[tuple[int, int, int, int], str, int]] = {}
    own = [left.id for left in snapshot.left if left.is_for_manager]
    waiting = list(_waiting(snapshot.instance))
    influence = state.policy.influence if state.policy.counts_priorities else 1.0
    merits = {job: snapshot.jobs[job].own_priority for job in waiting}
    band = bands(waiting, merits, influence)
    for arrival, job in enumerate(waiting):
        facts, planned = snapshot.jobs[job], state.plan.get(job)
        if facts.is_steered:
            yield HandBack(job=job)
        elif influence <= 0:
            own.append(job)
        elif planned is None or state.is_barred(job):
            own += [job] if job in state.unplaced or planned is not None else []
        elif facts.priority > 0:
            key = band[job], _step(planned.start - snapshot.taken_at), -facts.priority, arrival
            name = facts.batch or job
            if name not in wanted or key < wanted[name][0]:
                wanted[name] = key, job, facts.priority
    for job in own:
        facts = snapshot.jobs[job]
        if (facts.is_marked or facts.is_steered) and (facts.batch or job) not in wanted:
            yield HandBack(job=job)
    if state.is_blind:
        return
    in_order = sorted(wanted.values())
    arrivals = [key[-1] for key, *_ in in_order]
    for place, priority in changed_priorities([priority for *_, priority in in_order], arrivals).items():
        yield Rank(job=in_order[place][1], priority=priority)


def _waiting(instance: Instance) -> Iterator[str]:
    return (job.id for job in instance.jobs if job.running is None)


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
