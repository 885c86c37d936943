"""An earlier plan: the first incumbent of a window, as it is or brought up to date, before any engine plans it."""

from dataclasses import replace

from cpsched.domain import Event, Instance, Plan, PlannedJob, repeated, resumable
from cpsched.engine import Board, Improver, Outcome, Progress
from cpsched.planner import replanned
from cpsched.portfolio.classes import ByClass, rank
from cpsched.portfolio.leftovers import filled
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import with_jobs
from cpsched.portfolio.task import Task
from cpsched.problem import placeable

#: The name of an earlier plan among the finders of plans.
NAME = "warm"


class WarmStart(Improver):
    """Updates an earlier plan: an engine, and a solver that offers it once, or reports why it cannot."""

    name = NAME

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs as in the earlier plan, as far as possible."""
        return replanned(instance, self._plan)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer the updated plan, unless it has fewer jobs than the plan on the board."""
        outcome = self.plan(instance, None)
        lost = len(board.best.jobs) - len(outcome.jobs)
        if lost > 0:
            board.report(f"could not begin from the earlier plan: it leaves {lost} more without a start", by=self.name)
        else:
            board.offer(outcome.jobs, by=self.name)


def begun(task: Task, warm: Plan) -> tuple[Plan | None, tuple[Event, ...]]:
    """Return the plan that a window begins from, which the verifier has passed, and what is wrong with the earlier one.

    It is the earlier plan as it is, where that keeps every rule; brought up to date, where it does not, or where it
    leaves out jobs, unless it is better as it is. None: it cannot be brought up to date.
    """
    as_it_is, wrong = _as_it_is(task, warm)
    if as_it_is is not None and not wrong:
        return as_it_is, ()
    try:
        # in strict windows one class after the other
        outcome = ByClass(WarmStart(task.window.held(warm))).plan(task.window.instance, None)
        updated = _verified(task, task.plan_of(outcome, by=NAME))
    except Exception as error:
        updated, wrong = None, [*wrong, f"it cannot be brought up to date: {type(error).__name__}: {error}"]
    found = [plan for plan in (as_it_is, updated) if plan is not None]
    best = min(found, key=lambda plan: rank(task.instance, plan.jobs), default=None)
    use = "cannot be used" if best is None else "is used as it is" if best is as_it_is else "is brought up to date"
    return best, (task.event(NAME, f"the earlier plan {use}: {'; '.join(wrong)}"),) if wrong else ()


def _as_it_is(task: Task, warm: Plan) -> tuple[Plan | None, list[str]]:
    """Return the earlier plan, if it keeps every rule of the window, and what is wrong with it."""
    instance, (jobs, wrong) = task.instance, _still_ahead(task.instance, warm)
    plan = task.plan_of(Outcome(jobs=(), waiting_room=warm.waiting_room), by=NAME)
    plan = with_jobs(instance, plan, jobs)
    plan = replace(plan, incumbents=(replace(plan.incumbents[0], value=plan.objective.value, planned=len(jobs)),))
    faults = task.check.faults(plan, claims=False)
    if faults or not task.check.knows_rules:
        return None, [*wrong, *(f"it breaks a rule here: {one} ({len(faults)} in all)" for one in faults[:1])]
    if lacking := len(placeable(instance).difference(job.id for job in jobs)):
        wrong.append(f"{lacking} jobs have no start in it")
    return _verified(task, plan) if plan.waiting_room else plan, wrong


def _still_ahead(instance: Instance, warm: Plan) -> tuple[tuple[PlannedJob, ...], list[str]]:
    """Return the places that jobs of the window have in the earlier plan, running ones as the window states them unless
    a plan may change them, and what is wrong with the others.
    """
    now, places, found, passed = instance.now, {job.id: job for job in warm.jobs}, list[PlannedJob](), 0
    for job in instance.elements():
        place = places.get(job.id)
        if job.running is not None:
            found.append(repeated(job) if place is None or resumable(job, now) is None else place)
        elif place is not None and place.start < now:
            passed += 1
        elif place is not None:
            found.append(place)
    return tuple(found), [f"{passed} of its starts have passed"] if passed else []


def _verified(task: Task, plan: Plan) -> Plan:
    if task.has_all_plans:
        plan = filled(task.check, plan, at=task.elapsed, window=task.window)
    return verified(task.check, plan, engine=NAME, at=task.elapsed, claims=False)


def better(instance: Instance, earlier: Plan, plan: Plan) -> Plan:
    """Return the better of the plan that a window begins from and that of the first engine, with the log of both.

    `earlier`, `plan`: both have passed the verifier. Of equal ones the earlier one counts.
    """
    events = (*earlier.events, *plan.events)
    if rank(instance, plan.jobs) < rank(instance, earlier.jobs):
        return replace(plan, incumbents=(*earlier.incumbents, *plan.incumbents), events=events)
    score = replace(earlier.objective, planner=plan.objective.value)
    return replace(earlier, objective=score, events=events)
