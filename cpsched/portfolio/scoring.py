"""The value of a plan, its plan document, and its check by the judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from cpsched.arguments import at_the_door
from cpsched.domain import (
    AimScore,
    EngineReport,
    Event,
    Incumbent,
    Instance,
    Job,
    Judgement,
    Plan,
    PlannedJob,
    ReservedSlice,
    WaitingJob,
    WaitingReason,
)
from cpsched.engine import LONGEST_EVENT, Board, Outcome
from cpsched.formats import checked, instance_to_document, plan_to_document
from cpsched.metrics import honest_gap, later_scores, objective_value, score_of, suffered
from cpsched.problem import is_compiled, missing_from, waits
from cpsched.verify import Judge, Violation

#: The largest gap that rounding explains.
_ROUNDING = 1e-9
#: A bound that leaves more than this part of the avoidable cost unproven says nothing of the plan.
_NOTHING_PROVEN = 0.99


def with_jobs(instance: Instance, plan: Plan, jobs: Sequence[PlannedJob]) -> Plan:
    """Return a plan with other places for its jobs, or with places for other jobs: these leave the waiting room, and
    jobs that have no place any more enter it. Its value and what was suffered are those of these jobs.
    """
    found, known = {job.id: job for job in jobs}, {job.id for job in plan.jobs}
    then = later_scores(instance, jobs)
    if found.keys() >= known and len(then) == len(plan.objective.then):
        # no further job makes a plan cheaper
        then = tuple(map(bounded, then, (aim.bound for aim in plan.objective.then)))
    score = replace(plan.objective, value=objective_value(instance, jobs), then=then)
    if found.keys() == known:
        return replace(plan, jobs=tuple(jobs), objective=score)
    before = {job.id: job for job in plan.waiting_room}
    missing, waiting = missing_from(instance, found), list[WaitingJob]()
    for job in instance.elements():
        if job.id not in found:
            waiting.append(_waiting(instance, job, before.get(job.id), missing))
    score = replace(score, suffered=suffered(instance, jobs))
    return replace(plan, jobs=tuple(jobs), objective=score, waiting_room=tuple(waiting))


def bounded(aim: AimScore, bound: float | None) -> AimScore:
    """Return the value of a later aim with a bound, unless that says hardly anything."""
    if bound is None:
        return aim
    least = min(bound, aim.value)
    gap = _gap(aim.value, least)
    return aim if gap > _NOTHING_PROVEN else replace(aim, bound=least, gap=gap)


def _gap(value: float, bound: float) -> float:
    return (value - bound) / abs(value) if value else 0.0


def _waiting(
    instance: Instance, job: Job, before: WaitingJob | None, missing: Callable[[str], str | None]
) -> WaitingJob:
    """Return why a job has no place in a plan from which others are `missing`.

    `before`: why it had none in another plan; None if it had one.
    """
    beside = "beside the planned jobs" if before is None else "after those of the jobs that it waits for"
    found = waits(instance, job, missing, f"no start was found for it {beside}")
    if before is not None and WaitingReason.DEPENDENCY not in (before.reason, found.reason):
        return before
    return found


def changed(instance: Instance, plan: Plan, jobs: Sequence[PlannedJob], *, at: float, by: str, what: str) -> Plan:
    """Return a plan with other jobs, or other places for its jobs, in document order; an event says what has changed.

    A bound stays one, since no further job makes a plan cheaper, but not where jobs have lost their places. The
    fallback's value grows as much as the plan's where it has other jobs, so that both are values of the same jobs.
    """
    new, old = with_jobs(instance, plan, jobs), plan.objective
    value, before, after = new.objective.value, {job.id for job in plan.jobs}, {job.id for job in jobs}
    score = replace(new.objective, planner=old.planner if before == after else old.planner + value - old.value)
    if not before <= after:
        score = replace(score, bound=None, gap=None, proof=None)
    elif old.bound is not None:
        score = replace(score, gap=_gap(value, old.bound))
    is_optimal = score.gap is not None and score.gap <= _ROUNDING
    stopped = "done" if plan.engine.stopped == "optimal" and not is_optimal else plan.engine.stopped
    found = Incumbent(at=round(at, 3), value=value, by=by, planned=len(jobs))
    return replace(
        new,
        objective=score,
        engine=replace(plan.engine, stopped=stopped),
        incumbents=(*plan.incumbents, found),
        events=(*plan.events, Event(at=round(at, 3), by=by, what=what[:LONGEST_EVENT])),
    )


def plan_of(
    instance: Instance,
    engine: str,
    outcome: Outcome,
    *,
    slices: tuple[ReservedSlice, ...] = (),
    budget: float,
    elapsed: float,
    by: str | None = None,
) -> Plan:
    """Return the plan of an engine's outcome after `elapsed` of `budget` seconds, without solvers.

    `by`: its finder, None: the engine.
    """
    score = score_of(instance, outcome.jobs)
    return Plan(
        instance=instance.name,
        now=instance.now,
        objective=score,
        engine=EngineReport(
            name=engine, version=version("cpsched"), budget=budget, elapsed=round(elapsed, 3), stopped="done"
        ),
        jobs=outcome.jobs,
        waiting_room=outcome.waiting_room,
        reservations=slices,
        incumbents=(Incumbent(at=round(elapsed, 3), value=score.value, by=by or engine, planned=len(outcome.jobs)),),
    )


def scored(
    instance: Instance, plan: Plan, board: Board, jobs: Sequence[PlannedJob], *, stopped: str, elapsed: float
) -> Plan:
    """Return the first plan with other jobs, and the bound of the board in place of its own. A bound that says hardly
    more than what was already suffered is left out.

    `jobs`: those of the board's best plan, or what later aims made of them, as a plan of the stated window has them.
    """
    plan = with_jobs(instance, plan, jobs)
    value, proof = board.best.value, board.proof
    if instance.objective.then is not None:
        value = plan.objective.value
        proof = proof if proof is not None and proof.holds_for({job.id for job in jobs}) else None
    score = replace(plan.objective, value=value)
    if proof is not None:
        bound = min(proof.value, value)  # the two may be rounded differently; more than that the board refuses
        proven = replace(score, bound=bound, gap=_gap(value, bound), proof=proof.how)
        unproven = honest_gap(proven)
        score = score if unproven is not None and unproven > _NOTHING_PROVEN else proven
    return replace(
        plan,
        objective=score,
        engine=replace(plan.engine, stopped=stopped, elapsed=round(elapsed, 3)),
        incumbents=(*plan.incumbents, *board.incumbents[1:]),
        work=board.work,
        events=(*plan.events, *board.events),
    )


@dataclass(frozen=True, slots=True)
class Check:
    """Holds plans of one window to the rules."""

    instance: Instance
    #: None: no document says what the window has, as in a simulation that has made licences of the rules.
    _judge: Judge | None

    @classmethod
    def of(cls, instance: Instance, document: object | None = None) -> "Check":
        """Return the check of a window: on the document that it was read from, or else on one written anew."""
        if is_compiled(instance):
            return cls(instance, None)
        return cls(instance, Judge(instance_to_document(instance) if document is None else document))

    @property
    def knows_rules(self) -> bool:
        """Whether a document says what the window has; if not, no fault is ever found."""
        return self._judge is not None

    def faults(self, plan: Plan, *, claims: bool = True) -> tuple[Violation, ...]:
        """Return everything that is wrong with a plan; with `claims`, false reasons of its waiting room too."""
        return self.judged(plan, claims=claims)[1]

    def judged(self, plan: Plan, *, claims: bool = True) -> tuple[Plan, tuple[Violation, ...]]:
        """Return a plan with its judgement, where there is a document to judge it by, and everything that is wrong."""
        if self._judge is None:
            return plan, ()
        faults, rules = self._judge.judge(plan_to_document(plan), claims=claims)
        return plan.judged(Judgement(violations=len(faults), rules=rules)), faults

    def of_jobs(self, first: Plan) -> Callable[[Sequence[PlannedJob]], Sequence[str]]:
        """Return the judge of a board: of plans that have other jobs than a first one, or other places for its jobs.

        Whether the other jobs still belong into the waiting room is asked of the last plan only.
        """

        def faults(jobs: Sequence[PlannedJob]) -> Sequence[str]:
            return [*map(str, self.faults(with_jobs(self.instance, first, jobs), claims=False))]

        return faults


@at_the_door
def verify_plan(instance: Instance, plan: Plan) -> tuple[Violation, ...]:
    """Hold a plan to every rule of ``docs/formats.md``, as the independent judge reads both documents.

    Returns
    -------
    tuple of Violation
        Everything that is wrong; empty if the plan is valid.

    Raises
    ------
    DocumentError
        If the instance was built in Python and is not in order.
    """
    return Judge(instance_to_document(checked(instance))).violations(plan_to_document(plan))
