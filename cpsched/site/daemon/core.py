"""`step`: from a state and an event to the next state and to orders. Pure: no clock, no file, no manager.

The plan is what is wanted, the last snapshot is what is true, and the orders are the difference (`orders.py`). So what
was lost on the way, by whomever, is ordered again, and what is true already is not ordered. Nothing has to be
remembered of orders: a daemon that was killed goes on from its plan and a snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cpsched.domain import RULES, Job, Plan, PlannedJob
from cpsched.site.bridge import (
    Gate,
    JobFacts,
    JobState,
    Note,
    Order,
    Receipt,
    Refusal,
    Requeue,
    Result,
    Snapshot,
    Start,
)
from cpsched.site.daemon.orders import NOT_NOTED, announcements, hand_back_orders, notes, wanted_orders
from cpsched.site.daemon.state import (
    Answered,
    Barred,
    CycleOver,
    Event,
    Foretold,
    JobOver,
    JobQueuedAgain,
    JobStarted,
    JobStopped,
    Planned,
    PlannedStart,
    Promise,
    PromiseMoved,
    Rebuffed,
    Record,
    Reloaded,
    Save,
    Seen,
    State,
    Stopping,
    Unplanned,
    Vetoed,
)

T = TypeVar("T")

#: Refusals that count: after too many the job is left to the manager. The others say that the job is not what it was.
_COUNTED = frozenset({Refusal.NODES, Refusal.IMPOSSIBLE, Refusal.FORBIDDEN, Refusal.UNSUPPORTED, Refusal.OTHER})

#: So many reasons for another plan are told.
_MOST_REASONS = 3


@dataclass(slots=True, kw_only=True)
class _Changes:
    """The parts of the state that a step changes. Mutable."""

    plan: dict[str, PlannedStart | None] = field(default_factory=dict)
    promises: dict[str, Promise | None] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    #: The jobs that have started later than planned, each with its seconds and the plan's entry.
    late: list[tuple[str, int, PlannedStart]] = field(default_factory=list)


def step(state: State, event: Event) -> tuple[State, Save, tuple[Order, ...]]:
    """Take an event.

    Orders follow from snapshots alone: other events change what the next snapshot is held against.

    Returns the next state, what is to be written down, and the orders that are to be given after that. If the state is
    stale, another plan is wanted.
    """
    changes = _Changes()
    orders: tuple[Order, ...] = ()
    if isinstance(event, Seen):
        new = _seen(state, event.snapshot, changes)
    elif isinstance(event, Planned):
        new = _planned(state, event, changes)
    elif isinstance(event, Answered):
        new = _answered(state, event.receipts, changes)
    elif isinstance(event, Vetoed):
        new = _vetoed(state, event.jobs, changes)
    elif isinstance(event, Foretold):
        new = replace(state, forecasts=event.forecasts)
    elif isinstance(event, Unplanned):
        new = replace(state, is_blind=True)
    elif isinstance(event, CycleOver):
        new = _cycle_over(state, is_bad=event.is_bad)
        if new.gave_up_at is not None and state.gave_up_at is None and new.snapshot is not None:
            orders = wanted_orders(new)
    elif isinstance(event, Reloaded):
        changes.stale.append("the configuration was read again")
        new = replace(state, policy=event.policy)
        if event.policy.is_dry_run and not state.policy.is_dry_run and state.snapshot is not None:
            orders = hand_back_orders(state.snapshot)
    else:
        new = replace(state, is_stopping=True)
    reasons = dict.fromkeys([*filter(None, [new.stale]), *changes.stale])
    new = replace(
        new,
        plan=_merged(new.plan, changes.plan),
        promises=_merged(new.promises, changes.promises),
        stale="; ".join(list(reasons)[:_MOST_REASONS]),
    )
    if isinstance(event, Seen | Stopping):
        is_silent = new.policy.is_dry_run or new.gave_up_at is not None or new.is_stopping
        noted = () if is_silent else tuple(notes(new))
        told = () if is_silent or new.policy.only_ranks else announcements(new)
        orders = (*noted, *told, *wanted_orders(new))
        new = replace(new, unannounced={}, noted_at=new.now if noted else new.noted_at)
        if any(isinstance(order, Gate) and order.is_closed for order in orders):
            new = replace(new, gated_at=new.now)
    return new, Save(plan=changes.plan, promises=changes.promises, records=tuple(changes.records)), orders


def _merged(old: Mapping[str, T], changes: Mapping[str, T | None]) -> Mapping[str, T]:
    """Return a map with some entries replaced, and those that are None removed."""
    if not changes:
        return old
    return {name: value for name, value in {**old, **changes}.items() if value is not None}


# --- a snapshot ---


def _seen(state: State, snapshot: Snapshot, changes: _Changes) -> State:
    """Take a snapshot: note what happened, and give up what cannot be any more."""
    before: Mapping[str, JobFacts] = {} if state.snapshot is None else state.snapshot.jobs
    for job, facts in snapshot.jobs.items() if snapshot.jobs is not before else ():
        if facts is not (old := before.get(job)) and facts != old:
            _job_changed(state, job, old, facts, changes)
    for job in sorted(before.keys() - snapshot.jobs.keys()):
        facts = before[job]
        if not facts.state.is_over:
            changes.records.append(JobOver(job=job, state=None, start=facts.start, end=None, nodes=facts.nodes))
            changes.stale.append(f"job {job} is gone")
    for job in sorted(state.unfinished.keys() - snapshot.jobs.keys()):
        changes.records.append(JobOver(job=job, state=None, start=None, end=None))
    plannable = {job.id: job for job in snapshot.instance.jobs if job.running is None}
    _give_up(state, snapshot, plannable, changes)
    _push(state, changes)
    if state.snapshot is not None:
        was, now = state.snapshot.instance, snapshot.instance
        if was.cluster != now.cluster:
            changes.stale.append("nodes have changed their state")
        # queues that jobs have in common come and go with these
        are_other = any(was.queues.get(name, queue) != queue for name, queue in now.queues.items())
        if are_other or any(getattr(was, name) != getattr(now, name) for name in (*RULES, "preemption")):
            changes.stale.append("queues or rules have changed")
    rebuffed = {job: one for job, one in state.rebuffed.items() if job in snapshot.jobs}
    state = replace(state, snapshot=snapshot, rebuffed=rebuffed, unfinished={})
    considered, seen = state.considered, snapshot.jobs
    unplanned = [job for job in plannable if considered.get(job) != seen[job].revision]
    count = sum(not state.is_barred(job) for job in unplanned)
    if count:
        changes.stale.append(f"{count} job{'s' if count > 1 else ''} without a plan")
    return state


def _job_changed(state: State, job: str, old: JobFacts | None, facts: JobFacts, changes: _Changes) -> None:
    """Note what happened to one job since the last snapshot."""
    is_ours = old is not None or job in state.plan or job in state.promises or job in state.unfinished
    if not is_ours:
        return
    if is_again := old is not None and facts.restarts > old.restarts:
        changes.records.append(JobQueuedAgain(job=job, restarts=facts.restarts))
    has_run = old is not None and old.start is not None and old.restarts == facts.restarts
    has_run |= state.unfinished.get(job, False)
    if facts.start is not None and not has_run and not (is_again and facts.is_leaving):
        _note_start(state, job, old, facts, facts.start, changes)
    if facts.state.is_over and not (old is not None and old.state.is_over):
        over = JobOver(job=job, state=facts.state, start=facts.start, end=facts.end, nodes=facts.nodes)
        changes.records.append(over)
        changes.stale.append(f"job {job} is over")


def _note_start(state: State, job: str, old: JobFacts | None, facts: JobFacts, start: int, changes: _Changes) -> None:
    """Note that a job has started, and whether as planned, or as an earlier plan had ordered, and as promised."""
    entry, promise = state.plan.get(job), state.promises.get(job)
    is_as_planned = entry is not None and entry.nodes == facts.nodes and start >= entry.start
    if old is not None and old.due is not None:
        is_as_planned |= old.nodes == facts.nodes and start >= old.due
    changes.records.append(
        JobStarted(
            job=job,
            at=start,
            nodes=facts.nodes,
            planned=None if entry is None else entry.start,
            promised=None if promise is None else promise.start,
            is_as_planned=is_as_planned,
        )
    )
    if promise is not None and start > promise.start:
        late = start - promise.start
        planned = "" if entry is None else f", its planned start was {entry.start}"
        reason = f"it started {late} s after the promised second{planned}"
        changes.records.append(PromiseMoved(job=job, before=promise.start, after=start, reason=reason))
    if not is_as_planned and not state.policy.is_dry_run:
        changes.stale.append(f"job {job} was started otherwise than planned")
    if entry is not None and entry.nodes == facts.nodes and start > entry.start:
        changes.late.append((job, start - entry.start, entry))


def _push(state: State, changes: _Changes) -> None:
    """Note which planned starts do not hold any more, since a job that started late has the nodes for longer."""
    if not changes.late:
        return
    first = min(entry.planned.end for _, _, entry in changes.late)
    last = max(entry.planned.end + seconds for _, seconds, entry in changes.late)
    behind = [(job, entry) for job, entry in state.plan.items() if first <= entry.start < last]
    for job, seconds, entry in changes.late:
        end, nodes = entry.planned.end, set(entry.nodes)
        for other, after in behind:
            if end <= after.start < end + seconds and not nodes.isdisjoint(after.nodes):
                changes.stale.append(f"job {job} started {seconds} s late, and job {other} was to follow it at once")
                break


def _give_up(state: State, snapshot: Snapshot, plannable: Mapping[str, Job], changes: _Changes) -> None:
    """Take those jobs from the plan that it cannot start any more, and their promises back."""
    why_left = {left.id: left.reason for left in snapshot.left}
    seen, due = snapshot.jobs, snapshot.taken_at - state.policy.patience
    # what was planned after the last look is ordered in this one, however long looks take
    last = snapshot.taken_at if state.snapshot is None else state.snapshot.taken_at
    latest = max(due, last)  # most start after it
    for job, entry in state.plan.items():
        facts, asked, planned = seen.get(job), plannable.get(job), entry.planned
        if asked is None or facts is None:
            changes.plan[job] = None
        elif facts.revision != entry.revision or planned.alternative > len(asked.alternatives):
            changes.plan[job] = None
            changes.stale.append(f"job {job} has changed")
        elif planned.start < latest and planned.start < (due if facts.due is not None else min(due, last)):
            changes.plan[job] = None
            changes.stale.append(f"job {job} has not started at its second")
    for job in [job for job in state.promises if job not in plannable]:
        promise = state.promises[job]
        changes.promises[job] = None
        facts = snapshot.jobs.get(job)
        if facts is not None and facts.state in (JobState.WAITING, JobState.HELD):
            reason = why_left.get(job, "it cannot be planned any more")
            changes.records.append(PromiseMoved(job=job, before=promise.start, after=None, reason=reason))


# --- a plan, and what became of orders ---


def _planned(state: State, event: Planned, changes: _Changes) -> State:
    """Take a plan of the jobs that it was made with; the others, which it saw as started, keep their places."""
    starts = {job.id: job for job in event.plan.jobs if job.id in event.revisions}
    details = {job.id: job.detail for job in event.plan.waiting_room}
    # of many jobs an engine plans the most urgent ones: the promises of the others are not touched
    looked_at = starts.keys() | details.keys()
    unannounced = dict(state.unannounced)
    is_told = event.is_told and not state.policy.is_dry_run
    for job, revision in event.revisions.items():
        planned, old = starts.get(job), state.plan.get(job)
        if old is not None and old.planned is planned and old.revision == revision:
            entry: PlannedStart | None = old
        else:
            entry = None
            if planned is not None:
                stops = _stops(state, event.plan, planned) if event.plan.attempts else ()
                entry = PlannedStart(planned=planned, revision=revision, stops=stops)
            if entry != old:
                changes.plan[job] = entry
        if not is_told or job not in looked_at:
            continue
        moved = _promise(state, job, entry, event.why if entry is not None else details.get(job, event.why))
        if moved is not None:
            changes.records.append(moved)
            changes.promises[job] = None if moved.after is None else Promise(start=moved.after, since=state.now)
            if moved.after is not None:
                unannounced[job] = moved.reason
    kept = {job: entry.revision for job, entry in state.plan.items() if job not in event.revisions}
    return replace(
        state,
        considered={**kept, **event.revisions},
        unannounced=unannounced,
        stale="",
        unplaced=frozenset(details),
        is_blind=False,
    )


def _stops(state: State, plan: Plan, planned: PlannedJob) -> tuple[Requeue, ...]:
    """Return the stops of running jobs in whose place a job starts that may stop them."""
    if state.snapshot is None:
        return ()
    facts, instance = state.snapshot.jobs, state.snapshot.instance
    jobs, nodes = {job.id: job for job in instance.jobs}, {one.node for one in planned.segments[0].allocation}
    return tuple(
        Requeue(job=one.id, urgent=planned.id, revision=facts[one.id].revision, nodes=facts[one.id].nodes)
        for one in plan.attempts
        if one.end == planned.start and not nodes.isdisjoint(facts[one.id].nodes)
        if instance.may_stop(jobs[planned.id], jobs[one.id])
    )


def _cycle_over(state: State, *, is_bad: bool) -> State:
    """Count bad cycles: after too many in a row everything is handed back, and after a while it is tried again."""
    num_bad = state.num_bad + 1 if is_bad else 0
    if state.gave_up_at is None:
        has_to = num_bad >= state.policy.most_bad and not state.policy.is_dry_run
        return replace(state, num_bad=num_bad, gave_up_at=state.now if has_to else None)
    if state.is_blind or 0 <= state.now - state.gave_up_at < state.policy.lease:
        return state
    # one more bad cycle is too many
    return replace(state, num_bad=state.policy.most_bad - 1, gave_up_at=None)


def _promise(state: State, job: str, entry: PlannedStart | None, reason: str) -> PromiseMoved | None:
    """Return how a job's promise moves, or None if it stays."""
    promise = state.promises.get(job)
    if promise is None:
        if entry is None:
            return None
        return PromiseMoved(job=job, before=None, after=entry.start, reason="its first place in a plan")
    if entry is None:
        return PromiseMoved(job=job, before=promise.start, after=None, reason=reason)
    if promise.start - state.policy.grain < entry.planned.start <= promise.start:
        return None
    return PromiseMoved(job=job, before=promise.start, after=entry.start, reason=reason)


def _answered(state: State, receipts: tuple[Receipt, ...], changes: _Changes) -> State:
    """Take the manager's answers: a refused start is planned again, and after too many refusals the job is left.

    A refused stop is a refusal of the start for which it is.
    """
    rebuffed, noted_at = dict(state.rebuffed), state.noted_at
    for receipt in receipts:
        order = receipt.order
        if isinstance(order, Note) and receipt.refusal is Refusal.FORBIDDEN:
            noted_at = state.now + NOT_NOTED
        if isinstance(order, Requeue) and receipt.result is Result.DONE:
            changes.records.append(JobStopped(job=order.job, urgent=order.urgent))
        if receipt.result is not Result.REFUSED or not isinstance(order, Start | Requeue):
            continue
        job, revision = order.job, order.revision
        if isinstance(order, Requeue):
            job = order.urgent
            revision = state.plan[job].revision if job in state.plan else ""
        changes.plan[job] = None
        changes.stale.append(f"job {job} could not be started: {receipt.detail or receipt.refusal}")
        if receipt.refusal in _COUNTED:
            old = rebuffed.get(job)
            count = 1 + (old.count if old is not None and old.revision == revision else 0)
            rebuffed[job] = Rebuffed(revision=revision, count=count)
            if count == state.policy.most_refusals:
                changes.records.append(Barred(job=job, refusal=receipt.refusal, detail=receipt.detail))
    return replace(state, rebuffed=rebuffed, noted_at=noted_at)


def _vetoed(state: State, jobs: Mapping[str, str], changes: _Changes) -> State:
    """Take back the starts that the verifier refused."""
    for job, violation in jobs.items():
        if job in state.plan:
            changes.plan[job] = None
            changes.stale.append(f"the verifier refused the start of job {job}: {violation}")
    return state
