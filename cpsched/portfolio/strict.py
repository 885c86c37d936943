"""`solve` where priorities are strict: each class gets its part of the budget, and beside its plan the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cpsched.domain import Event, Incumbent, Instance, Plan, PlannedJob, WaitingJob, WaitingReason
from cpsched.engine import Board, Budget, Outcome
from cpsched.formats import plan_to_document
from cpsched.metrics import least_value, objective_value
from cpsched.planner import placeable_beside, stated_outcome
from cpsched.portfolio.classes import ByClass, Classes, Opened, class_values, is_plain, rank
from cpsched.portfolio.lanes import run_lanes
from cpsched.portfolio.scoring import faults_of, judge_of, plan_of, with_openings
from cpsched.portfolio.teams import Team
from cpsched.portfolio.warm_start import WarmStart
from cpsched.problem import Problem
from cpsched.verify import Judge

__all__ = ["Strict", "compared"]

#: The least seconds for which solvers work on a class.
_LEAST = 0.3
#: The finder of plans whose classes were improved one after the other.
_NAME = "classes"


@dataclass(frozen=True, kw_only=True)
class Strict:
    """A strict window, and all that it takes to plan its classes one after the other."""

    instance: Instance
    #: As engines plan it.
    window: Problem
    #: The document of the instance, None: it is written anew.
    document: object | None
    #: The engine's name for users, and its team.
    engine: str
    team: Team
    clock: Budget

    @cached_property
    def judge(self) -> Judge:
        """The verifier."""
        return judge_of(self.instance, self.document)

    @property
    def first(self) -> ByClass:
        """The engine that makes the first plan, class by class."""
        return ByClass(self.team.first, self._opener)

    @property
    def _opener(self) -> Opened | None:
        """What finds starts beside a class before the next one is planned; none where a start may be one that the
        engines' window does not have: such starts are given last of all.
        """
        return self._opened if self.window.has_all_plans else None

    def improved(
        self, plan: Plan, *, reserve: float, seed: int, warm: Plan | None, watch: Callable[[Board], None] | None
    ) -> tuple[Plan, str, list[Event]]:
        """Return a plan that is no worse in the highest class in which it differs, why the solvers stopped (nothing
        where there are none), and those events that tell of solvers that died.

        From the highest class on, each gets a part of the time that is left, by the number of its jobs, while that is
        worth a try. The engine of the first plan plans the classes that are left then beside them.

        Parameters
        ----------
        plan
            The first plan, which the verifier has passed.
        reserve
            The seconds that planning all classes once more, and the verifier, take.
        seed, warm, watch
            As `solve` has them.
        """
        if not self.team.lanes:
            return plan, "", []
        classes = Classes(self.window.instance, self._opener)
        events, failures = list[Event](), list[Event]()
        stopped, given_up = "done", list[bool]()
        while classes.left and stopped != "interrupted":
            entries, seconds = classes.left[0], self.clock.remaining - reserve
            if seconds < _LEAST:
                stopped = "budget"
                break
            share = Budget(max(_LEAST, seconds * classes.size(entries) / classes.size(*classes.left)))
            began, window = self.clock.elapsed, classes.window(entries)
            outcome = self.team.first.plan(window, None)
            board = self._board(classes, window, outcome, share)
            if board is None:
                words = "not improved: a plan of a class breaks a rule"
                return _with_events(plan, self._event(words)), "fallback", failures
            if not is_plain(window) or classes.size(entries) > 1:
                lanes = self.team.able(window)
                if warm is not None:
                    lanes = ((WarmStart(self.window.held(warm)), *lanes[0]), *lanes[1:])
                is_interrupted = run_lanes(lanes, window, board, seed=seed, deadline=share, watch=watch)
                if is_interrupted or (board.budget.remaining <= 0 and not board.is_optimal):
                    stopped = "interrupted" if is_interrupted else "budget"
                board.close()
                given_up.append(board.is_given_up)
                failures += board.failures
                events += (replace(event, at=round(began + event.at, 3)) for event in board.events)
                events.append(self._event(_result(classes.priority(entries), board)))
            classes.add(entries, replace(outcome, jobs=board.best.jobs))
        self.first.finish(classes)
        stopped = "fallback" if given_up and all(given_up) else stopped
        return self._whole(plan, classes.outcome(), events), stopped, failures

    def _board(self, classes: Classes, window: Instance, outcome: Outcome, share: Budget) -> Board | None:
        """Return the board for the plans of a class, None if the first one breaks a rule.

        Its values and proofs are those of the class alone.
        """
        settled, began = classes.waiting_jobs, share.elapsed

        def stated(jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
            return self.window.to_stated((*settled, *jobs))

        begin = stated(outcome.jobs)
        violations = faults_of(self.judge, self.instance, self._partial(begin))
        if violations(begin):
            return None
        reserve = 0.05 + 3 * (share.elapsed - began)
        board = Board(
            outcome.jobs,
            by=self.team.first.name,
            budget=share.more(-min(reserve, 0.25 * share.seconds)),
            value_of=lambda jobs: objective_value(window, jobs),
            judge=lambda jobs: violations(stated(jobs)),
            placeable=placeable_beside(window, {job.id for job in outcome.jobs}),
            least_of=lambda jobs: least_value(window, jobs),
        )
        board.takes_proofs = self.window.has_all_plans
        return board

    def _partial(self, jobs: Sequence[PlannedJob]) -> Plan:
        """Return a plan in which all other jobs wait, for a verifier that does not ask why."""
        planned = {job.id for job in jobs}
        others = tuple(
            WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail="its class has no plan yet")
            for job in self.instance.elements()
            if job.id not in planned
        )
        return self._plan_of(Outcome(jobs=tuple(jobs), waiting_room=others))

    def _plan_of(self, outcome: Outcome) -> Plan:
        slices, seconds = self.window.slices, self.clock.seconds
        return plan_of(self.instance, self.engine, outcome, slices=slices, budget=seconds, elapsed=self.clock.elapsed)

    def _opened(self, jobs: Sequence[PlannedJob], waiting: Sequence[WaitingJob]) -> Outcome:
        """Return a plan of some classes with starts for those waiting jobs for which the verifier finds one."""
        outcome = Outcome(jobs=tuple(jobs), waiting_room=tuple(waiting))
        plan = self._plan_of(stated_outcome(self.window, outcome))
        opened = with_openings(self.judge, self.instance, plan, elapsed=self.clock.elapsed)
        if opened is plan:
            return outcome
        return Outcome(jobs=self.window.to_held(opened.jobs), waiting_room=opened.waiting_room)

    def _whole(self, first: Plan, outcome: Outcome, events: Sequence[Event]) -> Plan:
        """Return the plan of all classes, or the first plan if that is the same, or if it breaks a rule."""
        plan = self._plan_of(stated_outcome(self.window, outcome))
        if {job.id: job for job in plan.jobs} == {job.id: job for job in first.jobs}:
            return _with_events(first, *events)
        are_all = self.window.has_all_plans
        if are_all:
            plan = with_openings(self.judge, self.instance, plan, elapsed=self.clock.elapsed)
        faults = self.judge.violations(plan_to_document(plan), claims=are_all)
        if faults:
            return _with_events(first, *events, self._event(f"not improved: {faults[0]}"))
        if rank(self.instance, first.jobs) <= rank(self.instance, plan.jobs):
            return _with_events(first, *events)
        at = Incumbent(at=round(self.clock.elapsed, 3), value=plan.objective.value, by=_NAME, planned=len(plan.jobs))
        score = replace(plan.objective, planner=first.objective.planner)
        events = (*first.events, *events, *plan.events)
        return replace(plan, objective=score, incumbents=(*first.incumbents, at), events=events)

    def _event(self, what: str) -> Event:
        return Event(at=round(self.clock.elapsed, 3), by=_NAME, what=what)


def compared(instance: Instance, first: Sequence[PlannedJob], plan: Plan, *, by: str) -> str:
    """Return the values of the classes of a plan, the highest first, beside those of the plan of the first engine.

    Parameters
    ----------
    first, by
        The jobs of the first plan, and its engine.
    """
    before = class_values(instance, first)
    said = []
    for priority, (count, value) in class_values(instance, plan.jobs).items():
        jobs, least = before[priority]
        more = f" of {count} jobs in place of {jobs}" if count != jobs else ""
        said.append(f"priority {priority} {value:.6g}{more} ({by}: {least:.6g})")
    return f"compared class by class, the highest first: {', '.join(said)}"


def _with_events(plan: Plan, *events: Event) -> Plan:
    return replace(plan, events=(*plan.events, *events))


def _result(priority: int, board: Board) -> str:
    """Return the outcome of a class."""
    best, proof = board.best, board.proof
    known = f", at least {proof.value:.6g}" if proof is not None else ""
    return f"priority {priority}: value {best.value:.6g}{', optimal' if board.is_optimal else known} ({best.by})"
