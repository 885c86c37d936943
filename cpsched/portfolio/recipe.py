"""`solve`: the recipe. Its parts are public, so that an expert can combine them in another way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from cpsched import cp, search
from cpsched.arguments import Seconds, Seed, Workers, at_the_door
from cpsched.domain import Event, Instance, Plan
from cpsched.engine import LONGEST_EVENT, Board, Budget, Progress
from cpsched.errors import SolverWarning
from cpsched.formats import checked
from cpsched.metrics import least_value, objective_value
from cpsched.planner import (
    compile_from_now_on,
    interprets,
    own_interpretation,
    placeable_beside,
    problem_of,
    stated_outcome,
    warmup_evolving,
)
from cpsched.portfolio.lanes import run_lanes
from cpsched.portfolio.merit import run_solver
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import faults_of, judge_of, plan_of, scored, with_openings
from cpsched.portfolio.soft_limits import beyond_soft_limits
from cpsched.portfolio.strict import Strict, compared
from cpsched.portfolio.teams import Team, first_of, team_of
from cpsched.portfolio.warm_start import Earlier, better
from cpsched.problem import placeable

__all__ = ["prepare", "solve"]


@at_the_door
def prepare(engine: str = "portfolio", *, workers: Workers = 2, solver: str = "gecode", changing: bool = True) -> None:
    """Compile or load the kernels and programs of an engine now, so that its first plan need not do it.

    Parameters
    ----------
    engine, workers, solver
        As `solve` has them.
    changing
        Whether there will be evolving or malleable jobs, whose kernels take as long again.

    Raises
    ------
    EngineError
        If there is no such engine, or if something that it needs is not installed.
    ValueError
        If an argument is not what its type says.
    """
    _prepare(engine, workers, solver)
    if changing:
        _prepare_changing()


@cache
def _prepare_first(engine: str, *, changing: bool) -> None:
    """Compile or load what the first plan of an engine needs, once in a process."""
    first_of(engine).prepare()
    if changing:
        warmup_evolving()


@cache
def _prepare(engine: str, workers: int, solver: str) -> None:
    """Compile or load what an engine needs, once in a process."""
    team_of(engine, workers=workers, solver=solver).prepare()


@cache
def _prepare_changing() -> None:
    """Compile or load what evolving and malleable jobs need besides, once in a process."""
    warmup_evolving()
    search.warm_up_changing_search()


@at_the_door
@own_interpretation()
def solve(
    instance: Instance,
    *,
    engine: str = "portfolio",
    budget: Seconds = 10.0,
    seed: Seed = 0,
    workers: Workers = 2,
    bound: Seconds = 0.0,
    warm: Plan | None = None,
    solver: str = "gecode",
    team: Team | None = None,
    document: object | None = None,
    progress: Progress | None = None,
    watch: Callable[[Board], None] | None = None,
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
        The window.
    engine
        One of `ENGINES`.
    budget
        Seconds, not counting those in which the instance is checked and kernels are compiled: first those of the
        planner, and when there is its plan those of the solvers. The planner takes the time that it needs; with 0 its
        plan is the answer.
    seed
        The same instance, engine and seed give the same plan, as far as no clock decides.
    workers
        The number of CPU cores to use.
    bound
        Seconds, after the budget, for proving how far the plan can be from the optimum.
    warm
        An earlier plan to begin from, whatever the engine and the budget; jobs may have arrived or ended since. An
        event says what is wrong with it.
    solver
        The MiniZinc solver (engine ``minizinc`` only).
    team
        The first engine and the solvers to use instead of the usual ones of this engine; already prepared.
    document
        The document that the instance was read from, for the verifier; None: it is written anew, and an instance that
        was built in Python is checked first.
    progress
        Called with (jobs done, jobs in all) while the first plan is made.
    watch
        Called repeatedly with the board while the plan is improved.

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
    if document is None:
        instance = checked(instance)
    changing, is_given = any(job.changes for job in instance.jobs), team is not None
    # for few jobs no solver need be loaded
    opens = engine == "portfolio" and not is_given and not instance.has_strict_priorities
    if team is None:
        team = Team(first=first_of(engine)) if opens else team_of(engine, workers=workers, solver=solver)
        # no compiled kernels need be loaded either
        if not ((opens or engine == "planner") and interprets(instance)):
            _prepare_first(engine, changing=changing)
    clock = Budget(budget)
    window = problem_of(instance)
    strict = None
    if instance.has_strict_priorities:
        strict = Strict(instance=instance, window=window, document=document, engine=engine, team=team, clock=clock)
        team = replace(team, first=strict.first)
    team.check(window.instance, engine)
    judge = judge_of(instance, document) if strict is None else strict.judge
    earlier, said = None, tuple[Event, ...]()
    if warm is not None:
        beginning = Earlier(instance=instance, window=window, judge=judge, engine=engine, clock=clock, warm=warm)
        earlier, said = beginning.begun()
    since, by = clock.elapsed, team.first.name
    outcome = stated_outcome(window, team.first.plan(window.instance, progress))
    began = clock.elapsed
    plan = plan_of(instance, engine, outcome, slices=window.slices, budget=budget, elapsed=began, by=by)
    # a job of the waiting room may get a start that the engines' window does not have: then last of all
    are_all = window.has_all_plans
    plan = verified(judge, instance, plan, engine=by, elapsed=clock.elapsed, claims=are_all)
    first = plan.jobs
    plan = replace(plan if earlier is None else better(instance, earlier, plan), events=(*said, *plan.events))
    is_interrupted = False
    if budget > 0 and not is_given and team.lanes:
        is_interrupted = _prepared(clock, engine, workers, solver, changing=changing)
    has_soft_limits = any(limit.soft for limit in instance.limits)
    # the time in which the last offers are judged, and jobs are moved up beyond soft limits
    reserve, took = 0.05 + 3 * (clock.elapsed - began), began - since
    reserve += took if has_soft_limits else 0
    by_class, failures = "", list[Event]()
    if strict is not None and not is_interrupted:
        plan, by_class, failures = strict.improved(plan, reserve=reserve + 2 * took, seed=seed, warm=warm, watch=watch)
    violations = faults_of(judge, instance, plan)
    board = Board(
        window.to_held(plan.jobs),
        by=plan.incumbents[-1].by,
        budget=clock.more(-min(reserve, 0.25 * budget)),
        value_of=lambda jobs: objective_value(window.instance, jobs),
        judge=lambda jobs: violations(window.to_stated(jobs)),
        # what a window with only some plans refuses can be planned in another way
        placeable=placeable_beside(window.instance, {job.id for job in plan.jobs}) if are_all else placeable(instance),
        least_of=lambda jobs: least_value(instance, window.to_stated(jobs)),
    )
    board.takes_proofs = are_all
    if budget > 0 and opens:
        is_interrupted = _opened(clock, window.instance, board, seed=seed)
        if not is_interrupted and not board.is_over:
            is_interrupted = _prepared(clock, engine, workers, solver, changing=changing)
            # after the preparation, which loads the solvers in seconds that do not count
            team = team if is_interrupted else team_of(engine, workers=workers, solver=solver)
            board.budget = clock.more(-min(reserve, 0.25 * budget))
    lanes = team.able(window.instance) if strict is None else ()
    if not is_interrupted:
        is_interrupted = run_lanes(lanes, window.instance, board, seed=seed, deadline=clock, watch=watch)
    elapsed, stopped = clock.elapsed, by_class or _why(board, is_interrupted=is_interrupted)
    if bound > 0 and stopped != "interrupted" and not board.is_optimal:
        compile_from_now_on()
        board.budget = clock.more(bound)
        prover = cp.LagrangianBound(cp.BoundParams(share=1.0))
        run_lanes(((prover,),), window.instance, board, seed=seed, deadline=board.budget, watch=watch)
    board.close()
    best = scored(instance, plan, board, window.to_stated(board.best.jobs), stopped=stopped, elapsed=elapsed)
    if has_soft_limits:
        best = beyond_soft_limits(judge, instance, best, elapsed=clock.elapsed)
    if not are_all:
        best = verified(judge, instance, best, engine=engine, elapsed=clock.elapsed)
    elif board.best.version > 0:
        best = with_openings(judge, instance, best, elapsed=clock.elapsed)
    if by_class or (strict is not None and earlier is not None):
        event = Event(
            at=round(clock.elapsed, 3), by="classes", what=compared(instance, first, best, by=by)[:LONGEST_EVENT]
        )
        best = replace(best, events=(*best.events, event))
    _warn([*failures, *board.failures])
    return best


def _opened(clock: Budget, instance: Instance, board: Board, *, seed: int) -> bool:
    """Try what solves a few jobs at once, and is loaded in seconds that do not count; return whether the user
    interrupted it.
    """
    try:
        with clock.paused():
            first = cp.Orders()
        if first.is_for(board.best.jobs, instance) and not board.is_over:
            run_solver(first, instance, board, seed=seed)
    except KeyboardInterrupt:
        return True
    return False


def _prepared(clock: Budget, engine: str, workers: int, solver: str, *, changing: bool) -> bool:
    """Compile or load what an engine needs, in seconds that do not count; return whether the user interrupted it."""
    try:
        compile_from_now_on()
        with clock.paused():
            prepare(engine, workers=workers, solver=solver, changing=changing)
    except KeyboardInterrupt:
        return True
    return False


def _warn(failures: Sequence[Event]) -> None:
    """Warn of solvers that died, of the same words once."""
    for words in dict.fromkeys(f"the solver {one.by} died: {one.what}" for one in failures):
        warnings.warn(words, SolverWarning, stacklevel=4)


def _why(board: Board, *, is_interrupted: bool) -> str:
    """Return the reason for which the solvers stopped."""
    if is_interrupted:
        return "interrupted"
    if board.is_optimal:
        return "optimal"
    if board.is_given_up or (board.events and board.best.version == 0):
        return "fallback"
    return "budget" if board.budget.remaining <= 0 else "done"
