"""A stage of `solve` where the objective has several aims in order (BRIDI-12): each is improved among the plans that
keep those before it within their tolerances.

Solvers know sums of terms only. So they get the present aim, and each earlier one at a price; a plan beyond a limit is
none for the board. A high price hides the present aim from a search, and a low one lets it leave the limits: the price
rises in rounds.

A proof of the priced sum C is one of the present aim: of each plan within the limits it is C - sum of price * limit or
more. (What jobs pay for overdue and postponed starts is in each aim, and once in C, which makes the bound lower.)
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cpsched.cp import QuickBound
from cpsched.domain import Event, FrozenMap, Instance, Objective, ObjectiveTerm, Plan, PlannedJob, SolverWork
from cpsched.engine import Board, Budget
from cpsched.metrics import least_value, objective_value, of_aim
from cpsched.portfolio.lanes import Lanes, run_lanes
from cpsched.portfolio.scoring import bounded
from cpsched.portfolio.task import Task

#: What all that an earlier aim can lose costs, as a multiple of all that the present one can gain; in rounds. Only a
#: price below 1 makes it worth using a tolerance up.
_PRICES = (0.5, 4.0, 30.0, 1e3)
#: The part of an aim's time in which it is bounded without those before it.
_PROOF = 0.15
#: The relative rounding of a value, and the least distance that counts.
_ROUNDING, _SMALL = 1e-9, 1e-3
#: The finder of plans of later aims.
_NAME = "aims"

#: Yields the solvers that work one after the other on a window.
Crews = Callable[[Instance, Board], Iterator[Lanes]]
#: Aims, and the largest value that each may have.
_Limits = Sequence[tuple[Objective, float]]


@dataclass(kw_only=True)
class InOrder:
    """What became of the later aims; mutable."""

    #: The verifier.
    violations: Callable[[Sequence[PlannedJob]], Sequence[str]]
    #: As engines have them.
    jobs: tuple[PlannedJob, ...]
    #: Of each later aim; None: there is none.
    bounds: list[float | None] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    #: Those of solvers that died.
    failures: list[Event] = field(default_factory=list)
    work: list[SolverWork] = field(default_factory=list)
    is_interrupted: bool = False

    def stated(self, plan: Plan) -> Plan:
        """Return the plan of the first aim, which has these jobs, with what became of the later ones."""
        if not self.bounds:
            return plan
        then = tuple(map(bounded, plan.objective.then, self.bounds))
        is_optimal = all(score.gap is not None and score.gap <= _ROUNDING for score in then)
        stopped = "budget" if plan.engine.stopped == "optimal" and not is_optimal else plan.engine.stopped
        stopped = "interrupted" if self.is_interrupted else stopped
        return replace(
            plan,
            objective=replace(plan.objective, then=then),
            engine=replace(plan.engine, stopped=stopped),
            work=_added([*plan.work, *self.work]),
            events=(*plan.events, *self.events),
        )


def _added(work: Sequence[SolverWork]) -> tuple[SolverWork, ...]:
    """Return the work of each solver on all aims, in the words that tell of the first one."""
    found: dict[str, SolverWork] = {}
    for one in work:
        known = found.setdefault(one.by, replace(one, seconds=0.0))
        found[one.by] = replace(known, seconds=round(known.seconds + one.seconds, 3))
    return tuple(found.values())


def in_order(task: Task, plan: Plan, first: Board, crews: Crews, *, reserve: float) -> InOrder:
    """Improve the later aims, beginning from the best plan of the first one.

    Each gets an equal part of the time that is left, but for `reserve` seconds. `plan`: the one that all began from.
    """
    best = first.best  # once: a lane that was left behind may offer a better one meanwhile
    result = InOrder(violations=task.check.of_jobs(plan), jobs=best.jobs)
    aims, limits, value = task.instance.objective.aims, list[tuple[Objective, float]](), best.value
    for before, aim in pairwise(aims):
        limits.append((before, value + before.tolerance * abs(value)))
        seconds = max(0.0, task.clock.remaining - reserve) / (len(aims) - len(limits))
        try:
            value, bound = _improved(task, result, aim, limits, crews, seconds)
        except KeyboardInterrupt:
            value, bound = objective_value(of_aim(task.window.instance, aim), result.jobs), None
            result.is_interrupted = True
        result.bounds.append(bound)
    return result


def _improved(
    task: Task, result: InOrder, aim: Objective, limits: _Limits, crews: Crews, seconds: float
) -> tuple[float, float | None]:
    """Improve one aim; return its value and its bound."""
    window, began = of_aim(task.window.instance, aim), result.jobs
    before, bound = objective_value(window, began), _proven(task, result, aim, _PROOF * seconds)
    seconds *= 1 - _PROOF
    for height in _PRICES:
        gain = objective_value(window, result.jobs) - bound
        if seconds <= 0 or result.is_interrupted or gain <= _ROUNDING * max(1.0, abs(before)):
            break
        prices = [height * gain / max(limit - _least(task, one, began), _SMALL) for one, limit in limits]
        priced = _priced([(aim, 1.0), *((one, price) for (one, _), price in zip(limits, prices, strict=True))])
        board = _run(task, result, priced, limits, crews, seconds / len(_PRICES))
        jobs = board.best.jobs
        if len(jobs) > len(began) or objective_value(window, jobs) <= objective_value(window, result.jobs):
            result.jobs = jobs  # else the plan of a lower price is better
        if len(jobs) > len(began):
            bound = _least(task, aim, result.jobs)
            break  # more jobs: other sums, and no limits
        if board.proof is not None:
            paid = sum(price * limit for price, (_, limit) in zip(prices, limits, strict=True))
            rounding = _ROUNDING * (abs(board.proof.value) + abs(paid))
            bound = max(bound, board.proof.value - paid - rounding)
    value = objective_value(window, result.jobs)
    bound = min(bound, value)
    result.events.append(task.event(_NAME, f"{aim.name}: value {value:.6g}, from {before:.6g}, at least {bound:.6g}"))
    return value, bound if task.has_all_plans else None


def _run(task: Task, result: InOrder, priced: Objective, limits: _Limits, crews: Crews, seconds: float) -> Board:
    """Run the solvers on a sum for some seconds, and return their board."""
    share, window = Budget(seconds), of_aim(task.window.instance, priced)
    within = [(of_aim(window, one), limit + _ROUNDING * abs(limit)) for one, limit in limits]

    def value_of(jobs: Sequence[PlannedJob]) -> float:
        is_within = all(objective_value(earlier, jobs) <= limit for earlier, limit in within)
        return objective_value(window, jobs) if is_within else math.inf

    board = task.board(
        window,
        result.jobs,
        result.violations,
        by=_NAME,
        budget=share.more(-0.25 * seconds),
        value_of=value_of,
        least_of=lambda jobs: _least(task, priced, jobs),
    )
    for lanes in crews(window, board):
        if run_lanes(lanes, window, board, seed=task.params.seed, deadline=share, on_plan=task.on_plan):
            result.is_interrupted = True
            break
    board.close()
    result.failures += board.failures
    result.events += board.events
    result.work += board.work
    return board


def _proven(task: Task, result: InOrder, aim: Objective, seconds: float) -> float:
    """Return a bound of an aim over all plans of the same jobs, whatever the aims before it."""
    window, budget = of_aim(task.window.instance, aim), Budget(seconds)
    board = task.board(
        window, result.jobs, lambda _: (), by=_NAME, budget=budget, least_of=lambda jobs: _least(task, aim, jobs)
    )
    if seconds > 0 and task.has_all_plans and not result.is_interrupted:
        # the seconds of a core that it gets may take longer on a busy machine
        lanes = ((QuickBound(share=1.0),),)
        result.is_interrupted = run_lanes(
            lanes, window, board, seed=task.params.seed, deadline=budget, on_plan=task.on_plan
        )
    board.close()
    return -math.inf if board.proof is None else board.proof.value


def _least(task: Task, aim: Objective, jobs: Sequence[PlannedJob]) -> float:
    """Return a bound of an aim over all plans of the same jobs, as engines have them, that needs no solver."""
    return least_value(of_aim(task.instance, aim), task.window.to_stated(jobs))


def _priced(aims: Sequence[tuple[Objective, float]]) -> Objective:
    """Return the sum of some aims, each times its price."""
    weights = defaultdict[ObjectiveTerm, float](float)
    for aim, price in aims:
        for term, weight in aim.weights.items():
            weights[term] += price * weight
    return Objective(weights=FrozenMap(weights))
