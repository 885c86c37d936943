"""The orders that make true what the plan wants: the difference between the plan and the last snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from cpsched.site.bridge import Announce, Gate, HandBack, Hold, JobState, Order, Snapshot, Start
from cpsched.site.daemon.state import State

#: Seconds after which the gate is closed again: a manager may open it when it hears nothing for long.
_RENEWAL = 120
#: Seconds before the start that users are shown from which on a job without an order is held: by then it has an order
#: or another start, and a manager that hears nothing would start it.
_NOTICE = 300


def wanted_orders(state: State) -> tuple[Order, ...]:
    """Return the orders for the state's plan; none in a dry run.

    First what takes jobs out of the way, then the starts in order of time. All waiting jobs that may be planned are
    steered, so that none starts that the plan does not name; jobs that the instance cannot express are the manager's.
    """
    snapshot = state.snapshot
    if snapshot is None or state.policy.is_dry_run:
        return ()
    if state.is_stopping:
        return hand_back_orders(snapshot)
    orders: list[Order] = []
    is_due = state.gated_at is None or snapshot.taken_at - state.gated_at >= _RENEWAL
    if snapshot.gate_is_closed is False or (snapshot.gate_is_closed and is_due):
        orders.append(Gate(is_closed=True))
    starts: list[Start] = []
    soon = snapshot.taken_at + state.policy.horizon
    for job in snapshot.instance.jobs:
        if job.running is not None:
            continue
        facts = snapshot.jobs[job.id]
        if state.is_barred(job.id):
            orders += [HandBack(job=job.id)] if facts.is_steered else []
            continue
        planned = state.plan.get(job.id)
        if planned is not None and planned.planned.start <= soon:
            if (facts.due, facts.nodes) != (planned.start, planned.nodes):
                starts.append(
                    Start(job=job.id, at=planned.start, allocation=planned.allocation, revision=planned.revision)
                )
        elif (
            facts.due is not None
            or not facts.is_steered
            or (facts.shown is not None and _is_near(state, job.id, facts.shown, snapshot.taken_at))
        ):
            orders.append(Hold(job=job.id))
    for left in snapshot.left:
        facts = snapshot.jobs[left.id]
        if left.is_for_manager and facts.is_steered:
            orders.append(HandBack(job=left.id))
        elif facts.due is not None or (
            facts.shown is not None and _is_near(state, left.id, facts.shown, snapshot.taken_at)
        ):
            # held when it had its order, or was shown its start: it would start by it as soon as it is released
            orders.append(Hold(job=left.id))
    starts.sort(key=lambda start: (start.at, start.job))
    return (*orders, *starts)


def _is_near(state: State, job: str, shown: int, now: int) -> bool:
    """Tell whether the start that a job's users are shown comes soon, and no other one is announced at once."""
    return shown < now + _NOTICE and job not in state.unannounced


def announcements(state: State) -> tuple[Announce, ...]:
    """Return the promises that users are to be told, of jobs that do not start at once."""
    return tuple(
        Announce(job=job, start=state.promises[job].start, nodes=state.plan[job].nodes, why=why)
        for job, why in sorted(state.unannounced.items())
        if job in state.promises and job in state.plan and state.promises[job].start > state.now
    )


def hand_back_orders(snapshot: Snapshot) -> tuple[Order, ...]:
    """Return the orders that leave everything to the manager's own scheduler."""
    return tuple(_hand_back(snapshot))


def _hand_back(snapshot: Snapshot) -> Iterator[Order]:
    if snapshot.gate_is_closed is not False:
        yield Gate(is_closed=False)
    for job, facts in snapshot.jobs.items():
        if facts.state in (JobState.WAITING, JobState.HELD) and (facts.is_steered or facts.due is not None):
            yield HandBack(job=job)
