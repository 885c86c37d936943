"""An earlier plan: the first incumbent of a window, as it is or brought up to date, before any engine plans it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpsched.domain import Event, Instance, Plan, PlannedJob, repeated, resumable
from cpsched.engine import LONGEST_EVENT, Board, Budget, Outcome, Progress
from cpsched.formats import plan_to_document
from cpsched.planner import replanned, stated_outcome
from cpsched.portfolio.classes import ByClass, rank
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import Trusting, plan_of, with_jobs
from cpsched.problem import Problem, placeable
from cpsched.verify import Judge

__all__ = ["Earlier", "WarmStart", "better"]

#: The name of an earlier plan among the finders of plans.
NAME = "warm"


class WarmStart:
    """Updates an earlier plan: an engine, and a solver that offers it once."""

    name = NAME

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def prepare(self) -> None:
        """Prepare nothing: the planner has prepared everything."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return no features: a plan that cannot be updated is reported on the board."""
        return ()

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


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """An earlier plan, and the window that begins from it."""

    instance: Instance
    #: As engines plan it.
    window: Problem
    judge: Judge
    #: The engine's name for users, and its clock.
    engine: str
    clock: Budget
    warm: Plan

    def begun(self) -> tuple[Plan | None, tuple[Event, ...]]:
        """Return the plan that the window begins from, which the verifier has passed, and what is wrong with the
        earlier one.

        It is the earlier plan as it is, where that keeps every rule; brought up to date, where it does not, or where it
        leaves out jobs, unless it is better as it is. None: it cannot be brought up to date.
        """
        as_it_is, wrong = self._as_it_is()
        if as_it_is is not None and not wrong:
            return as_it_is, ()
        try:
            # in strict windows one class after the other
            outcome = ByClass(WarmStart(self.window.held(self.warm))).plan(self.window.instance, None)
            updated = self._verified(self._plan_of(stated_outcome(self.window, outcome)))
        except Exception as error:
            updated, wrong = None, [*wrong, f"it cannot be brought up to date: {type(error).__name__}: {error}"]
        found = [plan for plan in (as_it_is, updated) if plan is not None]
        best = min(found, key=lambda plan: rank(self.instance, plan.jobs), default=None)
        use = "cannot be used" if best is None else "is used as it is" if best is as_it_is else "is brought up to date"
        said = f"the earlier plan {use}: {'; '.join(wrong)}"
        return best, (Event(at=round(self.clock.elapsed, 3), by=NAME, what=said[:LONGEST_EVENT]),) if wrong else ()

    def _as_it_is(self) -> tuple[Plan | None, list[str]]:
        """Return the earlier plan, if it keeps every rule of the window, and what is wrong with it."""
        jobs, wrong = self._still_ahead()
        plan = self._plan_of(Outcome(jobs=jobs, waiting_room=self.warm.waiting_room))
        plan = with_jobs(self.instance, replace(plan, jobs=()), jobs)
        faults = self.judge.violations(plan_to_document(plan), claims=False)
        if faults or isinstance(self.judge, Trusting):
            return None, [*wrong, *(f"it breaks a rule here: {one} ({len(faults)} in all)" for one in faults[:1])]
        if lacking := len(placeable(self.instance).difference(job.id for job in jobs)):
            wrong.append(f"{lacking} jobs have no start in it")
        return self._verified(plan) if plan.waiting_room else plan, wrong

    def _still_ahead(self) -> tuple[tuple[PlannedJob, ...], list[str]]:
        """Return the places that jobs of the window have in the earlier plan, running ones as the window states them
        unless a plan may change them, and what is wrong with the others.
        """
        now, places, found, passed = self.instance.now, {job.id: job for job in self.warm.jobs}, list[PlannedJob](), 0
        for job in self.instance.elements():
            place = places.get(job.id)
            if job.running is not None:
                found.append(repeated(job) if place is None or resumable(job, now) is None else place)
            elif place is not None and place.start < now:
                passed += 1
            elif place is not None:
                found.append(place)
        return tuple(found), [f"{passed} of its starts have passed"] if passed else []

    def _plan_of(self, outcome: Outcome) -> Plan:
        slices, seconds, elapsed = self.window.slices, self.clock.seconds, self.clock.elapsed
        return plan_of(self.instance, self.engine, outcome, slices=slices, budget=seconds, elapsed=elapsed, by=NAME)

    def _verified(self, plan: Plan) -> Plan:
        are_all = self.window.has_all_plans
        return verified(self.judge, self.instance, plan, engine=NAME, elapsed=self.clock.elapsed, claims=are_all)


def better(instance: Instance, earlier: Plan, plan: Plan) -> Plan:
    """Return the better of the plan that a window begins from and that of the first engine, with the log of both.

    Parameters
    ----------
    earlier, plan
        Both have passed the verifier. Of equal ones the earlier one counts.
    """
    events = (*earlier.events, *plan.events)
    if rank(instance, plan.jobs) < rank(instance, earlier.jobs):
        return replace(plan, incumbents=(*earlier.incumbents, *plan.incumbents), events=events)
    score = replace(earlier.objective, planner=plan.objective.value)
    return replace(earlier, objective=score, events=events)
