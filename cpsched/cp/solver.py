"""CP-SAT, called: only the worker process imports this."""

import time
from collections.abc import Callable
from math import floor

from ortools.sat.python import cp_model

from cpsched.cp.encoding import Encoding
from cpsched.cp.messages import BetterPlan, Bounded, Counted, Done, Reply, Solve, Verdict
from cpsched.cp.model import build
from cpsched.cp.redundant import canonical
from cpsched.cp.solution import Placed
from cpsched.cp.variables import Variables

#: Seconds between two bounds that are sent.
_PAUSE = 0.05

#: Such a part of the time goes to plans with the segments of the hint.
_KEPT = 0.5

#: The part of the time for plans if only the makespan counts; the rest is for the bound.
_TOP_DOWN = 0.65

#: The part of the time in which as many jobs as possible are placed, whatever that costs, where some may be left out.
_COUNTED = 0.5

#: With several workers, the strategies that search for proofs; all others search neighbourhoods.
_PROVERS = ("no_lp", "objective_lb_search_no_lp", "quick_restart_no_lp", "default_lp", "max_lp")

_VERDICTS = {
    cp_model.OPTIMAL: Verdict.OPTIMAL,
    cp_model.FEASIBLE: Verdict.FEASIBLE,
    cp_model.INFEASIBLE: Verdict.INFEASIBLE,
    cp_model.UNKNOWN: Verdict.UNKNOWN,
    cp_model.MODEL_INVALID: Verdict.INVALID,
}


def verdict_of(status: cp_model.CpSolverStatus) -> Verdict:
    """Return the verdict for a status of CP-SAT. Raises `ValueError` if CP-SAT has a new one."""
    if status not in _VERDICTS:
        raise ValueError(f"Expected a status out of {[str(known) for known in _VERDICTS]}, got {status}")
    return _VERDICTS[status]


def solve(request: Solve, tell: Callable[[Reply], None]) -> None:
    """Build the model and solve it; send solutions and bounds as they are found.

    Where jobs can be held or shrunk, a part of the time goes first to plans in which each is run as in the hint: with
    starts and nodes alone the solver gets further, and what it finds there it can begin from.

    Where the end of the last job alone counts, a single worker looks for better plans first, and then, if it is asked
    to, for proofs that there are none that end sooner, from the bound upwards.
    """
    if request.encoding.has_other_jobs:
        tell(Done(verdict_of(_solved_by_number(request, tell))))
        return
    hint = request.hint
    chooses = any(task.job.alternatives for task in request.encoding.tasks)
    if hint is not None and request.encoding.has_choices and not (chooses and request.encoding.milestones):
        hint = _with_segments_kept(request, hint, tell)
    model, variables = build(request.encoding, request.params, hint)
    is_alone = request.encoding.costs.is_makespan_alone and not request.encoding.has_changes
    is_raised = request.raises and request.workers == 1 and is_alone
    end = variables.makespan if is_raised else None
    solver = configured(request, share=1.0 if end is None else _TOP_DOWN)
    status = _solved(model, variables, solver, request, tell)
    if end is not None and status == cp_model.FEASIBLE:
        model.add(end <= solver.value(end))
        solver = configured(request)
        solver.parameters.optimize_with_core = True
        solver.parameters.use_overload_checker_in_cumulative = True
        is_optimal = _solved(model, variables, solver, request, tell) == cp_model.OPTIMAL
        status = cp_model.OPTIMAL if is_optimal else cp_model.FEASIBLE
    tell(Done(verdict_of(status)))


def _solved_by_number(request: Solve, tell: Callable[[Reply], None]) -> cp_model.CpSolverStatus:
    """Place as many jobs as possible first, then look for the cheapest plan with so many: the two numbers of which the
    first counts more.
    """
    model, variables = build(request.encoding, request.params, request.hint)
    narrator, optional = _Narrator(request.encoding, variables, tell), list(variables.places.values())
    always = sum(not task.is_running for task in request.encoding.tasks) - len(optional)
    number, status, hint = 0, cp_model.OPTIMAL, request.hint
    if optional:
        model.maximize(sum(optional))
        solver = configured(request, share=_COUNTED)
        bounds = [float(len(optional))]
        solver.best_bound_callback = bounds.append
        status = solver.solve(model, narrator)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            bounds.append(solver.best_objective_bound)
        # of a model that it did not begin with, CP-SAT says 0
        tell(Counted(always + floor(min(bounds) + 1e-6)))
        if narrator.last is None or status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return status
        number, hint = round(solver.objective_value), narrator.last
    else:
        tell(Counted(always))
    model, variables = build(request.encoding, request.params, hint)
    if optional:
        model.add(sum(variables.places.values()) == number)
    cheapest = _solved(model, variables, configured(request), request, tell, always + number)
    return cheapest if status == cp_model.OPTIMAL or cheapest != cp_model.OPTIMAL else cp_model.FEASIBLE


def _solved(
    model: cp_model.CpModel,
    variables: Variables,
    solver: cp_model.CpSolver,
    request: Solve,
    tell: Callable[[Reply], None],
    planned: int | None = None,
) -> cp_model.CpSolverStatus:
    """Solve a model; send solutions and bounds, these for plans of so many waiting jobs."""
    narrator = _Narrator(request.encoding, variables, tell, planned)
    solver.best_bound_callback = narrator.tell_bound
    status = solver.solve(model, narrator)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        tell(Bounded(solver.best_objective_bound, planned))
    return status


def _with_segments_kept(request: Solve, hint: tuple[Placed, ...], tell: Callable[[Reply], None]) -> tuple[Placed, ...]:
    """Solve the model with each job in the mode of the hint, its segments as long as there; return the best plan."""
    breaks_jobs, breaks_nodes = request.params.breaks_jobs, request.params.breaks_nodes
    hint = canonical(request.encoding, hint, sorts_jobs=breaks_jobs, sorts_nodes=breaks_nodes)
    model, variables = build(request.encoding, request.params, hint)
    for (number, mode), chosen in variables.modes.items():
        model.add(chosen == int(hint[number].mode == mode))
    for (number, mode, first, last), size in variables.sizes.items():
        if hint[number].mode == mode:
            model.add(size == sum(hint[number].lengths[first : last + 1]))
    narrator = _Narrator(request.encoding, variables, tell)
    configured(request, share=_KEPT).solve(model, narrator)
    return narrator.last or hint


def configured(request: Solve, *, share: float = 1.0) -> cp_model.CpSolver:
    """Return a solver with the parameters of a request, and a share of the time that is left.

    Symmetries and probing are off: presolve would lose a complete hint over them. So is the linear relaxation, which
    says little about cumulative resources and costs most of the time: without it the same proofs and plans are found
    several times faster. But where jobs can be held or shrunk, and work is a sum, it is of use: there one worker
    searches in turns in several ways, with it and without it, among them neighbourhoods of the best plan.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = request.workers
    solver.parameters.random_seed = request.seed
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_probing_level = 0
    if request.encoding.has_changes:
        solver.parameters.interleave_search = request.workers == 1
    elif request.workers == 1:
        solver.parameters.linearization_level = 0
    else:
        solver.parameters.subsolvers.extend(_PROVERS)
    if request.deterministic_time is None:
        solver.parameters.max_time_in_seconds = max(0.01, share * request.remaining)
    else:
        solver.parameters.max_deterministic_time = share * request.deterministic_time
    return solver


class _Narrator(cp_model.CpSolverSolutionCallback):
    """Sends the solver's solutions and bounds."""

    def __init__(
        self, encoding: Encoding, variables: Variables, tell: Callable[[Reply], None], planned: int | None = None
    ) -> None:
        super().__init__()
        self._encoding, self._variables, self._tell, self._planned = encoding, variables, tell, planned
        self._told_at = 0.0
        #: The last solution that was told, which is the best.
        self.last: tuple[Placed, ...] | None = None

    def on_solution_callback(self) -> None:
        """Send a solution."""
        self.last = self._variables.placed(self._encoding, self.value)
        self._tell(BetterPlan(self.last))

    def tell_bound(self, bound: float) -> None:
        """Send a bound, at intervals."""
        now = time.monotonic()
        if now >= self._told_at + _PAUSE:
            self._told_at = now
            self._tell(Bounded(bound, self._planned))
