"""`solve`: the recipe. Its parts are public, so that an expert can combine them in another way."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

from cpsched import cp
from cpsched.arguments import Seconds, Seed, Steps, Workers, at_the_door
from cpsched.domain import Event, Instance, Plan, PlannedJob, SolveParams
from cpsched.engine import Board, Budget, Progress, Turn
from cpsched.errors import SolverWarning
from cpsched.formats import checked
from cpsched.metrics import least_value
from cpsched.planner import compile_from_now_on, interprets, own_interpretation, placeable_beside
from cpsched.portfolio.aims import InOrder, in_order
from cpsched.portfolio.classes import ByClass, rank
from cpsched.portfolio.lanes import Lanes, OnPlan, is_ended, live_line, run_lanes
from cpsched.portfolio.leftovers import beyond_soft_limits, filled
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import Check, scored
from cpsched.portfolio.stopping import stops_of
from cpsched.portfolio.strict import by_class, compared
from cpsched.portfolio.task import Task
from cpsched.portfolio.teams import Team, first_of, prepare_first, team_of
from cpsched.portfolio.warm_start import begun, better
from cpsched.problem import placeable


@runtime_checkable
class ModelLike(Protocol):
    """What makes an instance, as `cpsched.Model` does."""

    def instance(self) -> Instance:
        """Return the instance. Raises `DocumentError` with all that is wrong with it."""
        ...


@at_the_door
@own_interpretation()
def solve(
    instance: Instance | ModelLike,
    *,
    engine: str = "portfolio",
    budget: Seconds = 10.0,
    seed: Seed = 0,
    workers: Workers = 2,
    bound: Seconds = 0.0,
    warm: Plan | None = None,
    solver: str = "gecode",
    steps: Steps | None = None,
    team: Team | None = None,
    document: object | None = None,
    progress: Progress | None = None,
    on_plan: OnPlan | None = None,
    live: bool = False,
) -> Plan:
    """Plan every job of an instance, and verify the plan.

    An earlier plan is the first incumbent, and the answer is never worse. Then comes the planner's plan. The rest of
    the budget goes to solvers that improve the better of the two in parallel; each of their plans is accepted only if
    it passes the verifier. When the budget ends, or the user interrupts, the best plan so far is the answer. A solver
    that dies is an event, and a `SolverWarning`. Where priorities are strict, this is done for one class of jobs after
    the other (`Strict`), and plans are compared so.

    Parameters
    ----------
    instance
        The window: an instance, or a `cpsched.Model` of one.
    engine
        One of `ENGINES`.
    budget
        Seconds, not counting those in which the instance is checked and kernels are compiled: first those of the
        planner, and when there is its plan those of the solvers. The planner takes the time that it needs; with 0 its
        plan is the answer.
    seed
        With `steps` that are done before the budget ends, the same instance, seed and steps give the same plan on each
        machine, and so does a budget of 0. Else a clock decides when solvers stop.
    workers
        The number of CPU cores to use.
    bound
        Seconds, after the budget, for proving how far the plan can be from the optimum.
    warm
        An earlier plan to begin from, whatever the engine and the budget; jobs may have arrived or ended since. An
        event says what is wrong with it.
    solver
        The MiniZinc solver (engine ``minizinc`` only).
    steps
        Steps after which the search ends, on one core (engine ``search`` only).
    team
        The first engine and the solvers to use instead of the usual ones of this engine; already prepared.
    document
        The document that the instance was read from, for the verifier; None: it is written anew, and an instance that
        was built in Python is checked first.
    progress
        Called with (jobs done, jobs in all) while the first plan is made.
    on_plan
        Called with the first plan, and some ten times a second while it is improved: with its value, the bound (None:
        there is none yet) and the seconds since the budget began; where it returns False, the best plan so far is the
        answer. Where priorities are strict, or aims are in order, value and bound are those of one class, or aim.
    live
        Whether stderr, a terminal or a notebook, has a line with value, bound and seconds meanwhile.

    Raises
    ------
    DocumentError
        If the instance was built in Python and is not in order; with all its faults.
    EngineError
        If there is no such engine, or if the instance asks for something that it cannot honour.
    UnverifiedError
        If the first plan breaks a rule that no single job is to blame for: a bug of cpsched.
    ValueError
        If an argument is not what its type says, or out of its limits.
    """
    params = SolveParams(
        engine=engine, budget=budget, seed=seed, workers=workers, bound=bound, solver=solver, steps=steps
    )
    if not isinstance(instance, Instance):
        instance = instance.instance()
    instance = checked(instance) if document is None else instance
    is_ready, team = team is not None, _first_team(instance, params) if team is None else team
    clock = Budget(params.budget)
    stops = stops_of(instance, clock)
    document, instance = (None if stops.stopped else document), stops.window
    task = Task(
        instance=instance,
        params=params,
        team=team,
        is_ready=is_ready,
        clock=clock.more(-stops.reserve),
        document=document,
        warm=warm,
        progress=progress,
        on_plan=on_plan,
    )
    with live_line(on_plan, budget + bound) if live and budget + bound > 0 else nullcontext(on_plan) as told:
        plan, failures = _solved(replace(task, on_plan=told))
    if stops.stopped:
        check = Check.of(stops.instance)
        plan = verified(check, stops.judged(check, plan, at=task.elapsed), engine=engine, at=task.elapsed)
    for words in dict.fromkeys(f"the solver {one.by} died: {one.what}" for one in failures):
        warnings.warn(words, SolverWarning, stacklevel=4)
    return plan


def _solved(task: Task) -> tuple[Plan, Sequence[Event]]:
    """Solve a window: the recipe. Return the plan, the judgement of which comes last, and which solvers died."""
    replace(task.team, first=ByClass(task.team.first)).check(task.window.instance, task.params.engine)
    first = _first(task)
    plan, failures = first.plan, list[Event]()
    if task.is_by_class:
        try:
            plan, failures = by_class(task, plan, reserve=first.reserve + 2 * first.took)
        except KeyboardInterrupt:
            plan = replace(plan, engine=replace(plan.engine, stopped="interrupted"))
    board = _board(task, plan)
    stopped = plan.engine.stopped if task.is_by_class else _improved(task, board, first.reserve)
    is_over = task.is_by_class or stopped == "interrupted" or task.params.budget == 0
    later = in_order(task, plan, board, partial(_crews, task), reserve=math.inf if is_over else first.reserve)
    elapsed = task.clock.elapsed
    if stopped != "interrupted" and not board.is_optimal:
        _prove(task, board)
    board.close()
    try:
        plan = _ended(task, plan, board, later, first, stopped=stopped, elapsed=elapsed)
    except KeyboardInterrupt:  # so near the end the plan is not lost, unless the user insists
        plan = _ended(task, plan, board, later, first, stopped="interrupted", elapsed=elapsed)
    return plan, (*failures, *board.failures, *later.failures)


def _ended(
    task: Task, plan: Plan, board: Board, later: InOrder, first: "_First", *, stopped: str, elapsed: float
) -> Plan:
    """Return the best plan with all that became known, after the judgement.

    `plan`: the one that the solvers began from. `board`: closed. `stopped`, `elapsed`: why and when they stopped.
    """
    # a lane that was left behind may have offered a better plan meanwhile
    jobs = task.window.to_stated(later.jobs if later.bounds else board.best.jobs)
    began, begun_from = task.elapsed, plan

    def completed(jobs: tuple[PlannedJob, ...]) -> Plan:
        plan = scored(task.instance, begun_from, board, jobs, stopped=stopped, elapsed=elapsed)
        plan = beyond_soft_limits(task.check, later.stated(plan), at=task.elapsed)
        return plan if plan.jobs == first.in_vain else filled(task.check, plan, at=task.elapsed, window=task.window)

    plan = completed(jobs)
    # jobs that were left out may cost more beside a plan that is better without them
    is_other = jobs != first.plan.jobs
    if is_other and len(plan.jobs) > len(jobs) and task.clock.remaining > task.elapsed - began:
        plan = min(completed(first.plan.jobs), plan, key=lambda one: rank(task.instance, one.jobs))
    if task.is_by_class or (task.warm is not None and task.instance.has_strict_priorities):
        said = task.event("classes", compared(task.instance, first.jobs, plan, by=task.team.first.name))
        plan = replace(plan, events=(*plan.events, said))
    return verified(task.check, plan, engine=task.params.engine, at=task.elapsed)


def _first_team(instance: Instance, params: SolveParams) -> Team:
    """Return the team of an engine; what its first plan needs is compiled or loaded.

    For few jobs no solver need be loaded: those of the portfolio are when it is their turn.
    """
    is_lazy = params.engine == "portfolio" and not instance.has_strict_priorities
    team = Team(first=first_of(params.engine)) if is_lazy else _team_of(params)
    # Python interprets the kernels of a small window
    if not ((is_lazy or params.engine == "planner") and interprets(instance)):
        prepare_first(params.engine, changing=any(job.changes for job in instance.jobs))
    return team


def _team_of(params: SolveParams) -> Team:
    return team_of(params.engine, workers=params.workers, solver=params.solver, steps=params.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _First:
    """The plan that all else begins from."""

    plan: Plan
    #: The jobs of the first engine's plan.
    jobs: tuple[PlannedJob, ...]
    #: Those of a plan beside which no other job finds a start; None: that is not known of one.
    in_vain: tuple[PlannedJob, ...] | None
    #: The seconds that it took, and those in which the last offers of solvers are judged and soft limits exceeded.
    took: float
    reserve: float


def _first(task: Task) -> _First:
    """Return the first plan: an earlier one, or else that of the first engine.

    It is judged if something follows that builds on it.
    """
    earlier, said = (None, ()) if task.warm is None else begun(task, task.warm)
    since, by = task.clock.elapsed, task.team.first.name
    in_vain: tuple[PlannedJob, ...] | None = None
    outcome = ByClass(task.team.first).plan(task.window.instance, task.progress)
    began = task.clock.elapsed
    plan = task.plan_of(outcome, by=by)
    if task.params.budget > 0 or task.params.bound > 0 or task.warm is not None:
        # a job of the waiting room may get a start that the engines' window does not have: then last of all
        if task.has_all_plans:
            more = filled(task.check, plan, at=task.elapsed, window=task.window)
            plan, in_vain = more, plan.jobs if more is plan else None
        plan = verified(task.check, plan, engine=by, at=task.elapsed, claims=False)
    best = plan if earlier is None else better(task.instance, earlier, plan)
    took, reserve = began - since, 0.05 + 3 * (task.clock.elapsed - began)
    if task.instance.has_soft_limits:
        reserve += took
    best = replace(best, events=(*said, *best.events))
    return _First(plan=best, jobs=plan.jobs, in_vain=in_vain, took=took, reserve=reserve)


def _board(task: Task, plan: Plan) -> Board:
    """Return the board for plans of the window for engines, with a first one on it."""
    window = task.window
    # what a window with only some plans refuses can be planned in another way
    is_whole = task.has_all_plans and window.is_whole_for(plan.jobs)
    beside = placeable_beside(window.instance, {job.id for job in plan.jobs}) if is_whole else None
    return task.board(
        window.instance,
        window.to_held(plan.jobs),
        task.check.of_jobs(plan),
        by=plan.incumbents[-1].by,
        budget=task.clock,
        placeable=placeable(task.instance) if beside is None else beside,
        least_of=lambda jobs: least_value(task.instance, window.to_stated(jobs)),
    )


def _improved(task: Task, board: Board, reserve: float) -> str:
    """Let solvers improve the plan until its part of the budget ends, `reserve` seconds early; return why they stopped.

    Each aim has an equal part.
    """
    params, clock = task.params, task.clock
    others = 1 - 1 / len(task.instance.objective.aims)
    try:
        if is_ended(task.on_plan, board):
            return "interrupted"
        for lanes in _crews(task, task.window.instance, board):
            board.budget = clock.more(-min(reserve, 0.25 * params.budget) - others * params.budget)
            if run_lanes(lanes, task.window.instance, board, seed=params.seed, deadline=clock, on_plan=task.on_plan):
                return "interrupted"
    except KeyboardInterrupt:
        return "interrupted"
    if board.is_optimal:
        return "optimal"
    if board.is_given_up or (board.events and board.best.version == 0):
        return "fallback"
    return "budget" if board.budget.remaining <= 0 else "done"


def _crews(task: Task, window: Instance, board: Board) -> Iterator[Lanes]:
    """Yield the solvers that work one after the other: what solves a few jobs at once, and all others, which are
    loaded when it is their turn, in seconds that do not count.
    """
    params, team = task.params, task.team
    if params.budget == 0:
        return
    if task.is_ready:
        yield team.able(window)
        return
    if params.engine == "portfolio" and not team.lanes:
        with task.clock.paused():
            orders = cp.Orders()
        if orders.is_for(board.best.jobs, window):
            yield ((orders,),)
        if board.is_over:
            return
        task.load()
        team = _team_of(params)
    elif team.lanes:
        task.load()
    yield team.able(window)


def _prove(task: Task, board: Board) -> None:
    """Prove a bound, for the seconds that are given to that."""
    if task.params.bound > 0:
        compile_from_now_on()
        # lanes that were left behind have no part in this time
        turn = Turn(board, task.clock.remaining + task.params.bound)
        lanes = ((cp.LagrangianBound(share=1.0),),)
        run_lanes(lanes, task.window.instance, turn, seed=task.params.seed, deadline=turn.budget, on_plan=task.on_plan)
