"""A stage of `solve` where priorities are strict: each class gets its part of the budget."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cpsched.domain import Event, Incumbent, Instance, Plan, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Board, Budget, Outcome
from cpsched.planner import placeable_beside
from cpsched.portfolio.classes import ByClass, Classes, class_values, is_plain, rank
from cpsched.portfolio.lanes import run_lanes
from cpsched.portfolio.task import Task
from cpsched.portfolio.warm_start import WarmStart

#: The least seconds for which solvers work on a class.
_LEAST = 0.3
#: The finder of plans whose classes were improved one after the other.
_NAME = "classes"


@dataclass(kw_only=True)
class _Log:
    """What the classes have to tell; mutable."""

    stopped: str = "done"
    events: list[Event] = field(default_factory=list)
    #: Those of solvers that died.
    failures: list[Event] = field(default_factory=list)
    #: Of each class that was improved: whether all its solvers died.
    given_up: list[bool] = field(default_factory=list)


def by_class(task: Task, plan: Plan, *, reserve: float) -> tuple[Plan, list[Event]]:
    """Return a plan that is no worse in the highest class in which it differs, and the events of solvers that died.

    From the highest class on, each gets a part of the time that is left, by the number of its jobs, while that is worth
    a try. The engine of the first plan plans the classes that are left then beside them.

    `plan`: the first plan, which the verifier has passed. `reserve`: the seconds that planning all classes once more,
    and the verifier, take. Raises `KeyboardInterrupt` if the user interrupts before there is a better plan.
    """
    classes, log = Classes(task.window.instance), _Log()
    try:
        task.load()
        while classes.left and log.stopped != "interrupted":
            entries, seconds = classes.left[0], task.clock.remaining - reserve
            if seconds < _LEAST:
                log.stopped = "budget"
                break
            share = Budget(max(_LEAST, seconds * classes.size(entries) / classes.size(*classes.left)))
            window = classes.window(entries)
            outcome = task.team.first.plan(window, None)
            board = _board(task, classes, window, outcome, share)
            if board is None:
                return _left(plan, "fallback", task.event(_NAME, "not improved: a plan of a class breaks a rule")), []
            if not is_plain(window) or classes.size(entries) > 1:
                _improve(task, board, window, share, log)
                log.events.append(task.event(_NAME, _result(classes.priority(entries), board)))
            classes.add(entries, replace(outcome, jobs=board.best.jobs))
    except KeyboardInterrupt:
        if not log.given_up:
            raise
        log.stopped = "interrupted"
    ByClass(task.team.first).finish(classes)
    stopped = "fallback" if log.given_up and all(log.given_up) else log.stopped
    return _better(task, plan, task.plan_of(classes.outcome()), stopped, log.events), log.failures


def _improve(task: Task, board: Board, window: Instance, share: Budget, log: _Log) -> None:
    """Let the solvers improve the plan of a class."""
    lanes, began = task.team.able(window), task.clock.elapsed
    if task.warm is not None:
        lanes = ((WarmStart(task.window.held(task.warm)), *lanes[0]), *lanes[1:])
    is_interrupted = run_lanes(lanes, window, board, seed=task.params.seed, deadline=share, on_plan=task.on_plan)
    if is_interrupted or (board.budget.remaining <= 0 and not board.is_optimal):
        log.stopped = "interrupted" if is_interrupted else "budget"
    board.close()
    log.given_up.append(board.is_given_up)
    log.failures += board.failures
    log.events += (replace(event, at=round(began + event.at, 3)) for event in board.events)


def _board(task: Task, classes: Classes, window: Instance, outcome: Outcome, share: Budget) -> Board | None:
    """Return the board for the plans of a class, None if the first one breaks a rule.

    Its values and proofs are those of the class alone.
    """
    settled, began = classes.waiting_jobs, share.elapsed
    violations = task.check.of_jobs(_partial(task, (*settled, *outcome.jobs)))
    if violations(task.window.to_stated((*settled, *outcome.jobs))):
        return None
    reserve = 0.05 + 3 * (share.elapsed - began)
    return task.board(
        window,
        outcome.jobs,
        violations,
        by=task.team.first.name,
        budget=share.more(-min(reserve, 0.25 * share.seconds)),
        beside=settled,
        placeable=placeable_beside(window, {job.id for job in outcome.jobs}),
    )


def _partial(task: Task, jobs: Sequence[PlannedJob]) -> Plan:
    """Return a plan in which all other jobs wait, for a verifier that does not ask why."""
    planned = {job.id for job in jobs}
    others = tuple(
        WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail="its class has no plan yet")
        for job in task.instance.elements()
        if job.id not in planned
    )
    plan = task.plan_of(Outcome(jobs=tuple(jobs), waiting_room=()))
    return replace(plan, waiting_room=others)


def _better(task: Task, first: Plan, plan: Plan, stopped: str, events: Sequence[Event]) -> Plan:
    """Return the plan of all classes, or the first plan if that is the same or better, or if it breaks a rule."""
    if {job.id: job for job in plan.jobs} == {job.id: job for job in first.jobs}:
        return _left(first, stopped, *events)
    if faults := task.check.faults(plan, claims=False):
        return _left(first, stopped, *events, task.event(_NAME, f"not improved: {faults[0]}"))
    if rank(task.instance, first.jobs) <= rank(task.instance, plan.jobs):
        return _left(first, stopped, *events)
    found = Incumbent(at=task.elapsed, value=plan.objective.value, by=_NAME, planned=len(plan.jobs))
    score = replace(plan.objective, planner=first.objective.planner)
    plan = replace(plan, objective=score, incumbents=(*first.incumbents, found), events=first.events)
    return _left(plan, stopped, *events)


def compared(instance: Instance, first: Sequence[PlannedJob], plan: Plan, *, by: str) -> str:
    """Return the values of the classes of a plan, the highest first, beside those of the plan of the first engine.

    `first`, `by`: the jobs of the first plan, and its engine.
    """
    before = class_values(instance, first)
    said = []
    for priority, (count, value) in class_values(instance, plan.jobs).items():
        jobs, least = before[priority]
        more = f" of {count} jobs in place of {jobs}" if count != jobs else ""
        said.append(f"priority {priority} {value:.6g}{more} ({by}: {least:.6g})")
    return f"compared class by class, the highest first: {', '.join(said)}"


def _left(plan: Plan, stopped: str, *events: Event) -> Plan:
    """Return a plan as the classes leave it."""
    return replace(plan, engine=replace(plan.engine, stopped=stopped), events=(*plan.events, *events))


def _result(priority: int, board: Board) -> str:
    """Return the outcome of a class."""
    best, proof = board.best, board.proof
    known = f", at least {proof.value:.6g}" if proof is not None else ""
    return f"priority {priority}: value {best.value:.6g}{', optimal' if board.is_optimal else known} ({best.by})"
