"""The orders that make true what the plan wants: the difference between the plan and the last snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from cpsched.domain import Job
from cpsched.site.bridge import Announce, Gate, HandBack, Hold, JobFacts, JobState, Order, Snapshot, Start
from cpsched.site.daemon.ranking import rank_orders
from cpsched.site.daemon.state import State


def wanted_orders(state: State) -> tuple[Order, ...]:
    """Return the orders for the state's plan; none in a dry run.

    First what takes jobs out of the way, then the starts in order of time. Waiting jobs that the plan starts later are
    held, for some minutes at a time, so that none starts before; what the plan has no place for, and what the instance
    cannot express, is the manager's.
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
    soon = snapshot.taken_at + state.policy.horizon
    for job in snapshot.instance.jobs:
        if job.running is not None:
            continue
        facts = snapshot.jobs[job.id]
        planned = state.plan.get(job.id)
        if state.is_barred(job.id) or job.id in state.unplaced:
            orders += [HandBack(job=job.id)] if facts.is_steered else []
        elif planned is not None and planned.planned.start <= soon:
            if (facts.due, facts.nodes) != (planned.start, planned.nodes):
                starts.append(
                    Start(job=job.id, at=planned.start, allocation=planned.allocation, revision=planned.revision)
                )
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
    return (*orders, *starts)


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


def hand_back_orders(snapshot: Snapshot) -> tuple[Order, ...]:
    """Return the orders that leave everything to the manager's own scheduler."""
    return tuple(_hand_back(snapshot))


def _hand_back(snapshot: Snapshot) -> Iterator[Order]:
    if snapshot.gate_is_closed is not None:
        yield Gate(until=None)
    for job in steered_jobs(snapshot):
        yield HandBack(job=job)


def steered_jobs(snapshot: Snapshot) -> Iterator[str]:
    """Yield the waiting jobs that are not wholly the manager's own."""
    for job, facts in snapshot.jobs.items():
        is_waiting = facts.state in (JobState.WAITING, JobState.HELD)
        if is_waiting and (facts.is_steered or facts.is_marked or facts.due is not None):
            yield job
