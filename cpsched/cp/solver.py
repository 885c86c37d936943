"""CP-SAT, called: only the worker process imports this."""

from __future__ import annotations

import time
from collections.abc import Callable

from ortools.sat.python import cp_model

from cpsched.cp.encoding import Encoding
from cpsched.cp.messages import Bounded, Done, Found, Reply, Solve, Verdict
from cpsched.cp.model import build
from cpsched.cp.solution import Placed
from cpsched.cp.variables import Variables

__all__ = ["solve", "verdict_of"]

#: Seconds between two bounds that are told.
_PAUSE = 0.05

_VERDICTS = {
    cp_model.OPTIMAL: Verdict.OPTIMAL,
    cp_model.FEASIBLE: Verdict.FEASIBLE,
    cp_model.INFEASIBLE: Verdict.INFEASIBLE,
    cp_model.UNKNOWN: Verdict.UNKNOWN,
    cp_model.MODEL_INVALID: Verdict.INVALID,
}


def verdict_of(status: cp_model.CpSolverStatus) -> Verdict:
    """Return what a status of CP-SAT means.

    Raises
    ------
    ValueError
        If CP-SAT has a new one.
    """
    if status not in _VERDICTS:
        raise ValueError(f"Expected a status out of {[str(known) for known in _VERDICTS]}, got {status}")
    return _VERDICTS[status]


def solve(request: Solve, tell: Callable[[Reply], None]) -> None:
    """Build the model and solve it; tell solutions and bounds as they are found."""
    model, variables = build(request.encoding, request.params, request.hint)
    solver = configured(request)
    narrator = _Narrator(request.encoding, variables, tell)
    solver.best_bound_callback = narrator.tell_bound
    status = solver.solve(model, narrator)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        tell(Bounded(solver.best_objective_bound))
    tell(Done(verdict_of(status)))


def configured(request: Solve) -> cp_model.CpSolver:
    """Return a solver with the parameters of a request.

    Symmetries and probing are off: presolve would lose a complete hint over them.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = request.workers
    solver.parameters.random_seed = request.seed
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_probing_level = 0
    if request.deterministic_time is None:
        solver.parameters.max_time_in_seconds = max(0.01, request.remaining)
    else:
        solver.parameters.max_deterministic_time = request.deterministic_time
    return solver


class _Narrator(cp_model.CpSolverSolutionCallback):
    """Tells what the solver finds."""

    def __init__(self, encoding: Encoding, variables: Variables, tell: Callable[[Reply], None]) -> None:
        super().__init__()
        self._encoding, self._variables, self._tell = encoding, variables, tell
        self._told_at = 0.0

    def on_solution_callback(self) -> None:
        """Tell a solution."""
        counts: list[list[tuple[int, int, int]]] = [[] for _ in self._encoding.tasks]
        for (number, part, site), variable in self._variables.counts.items():
            if count := self.value(variable):
                counts[number].append((part, site, count))
        found = []
        for number, (task, of_task) in enumerate(zip(self._encoding.tasks, counts, strict=True)):
            (way,) = (way for way in range(len(task.ways)) if self.value(self._variables.is_run_so(number, way)))
            times = tuple(self.value(time) for time in self._variables.times[number, way])
            found.append(Placed(times, tuple(of_task), way))
        self._tell(Found(tuple(found)))

    def tell_bound(self, bound: float) -> None:
        """Tell a bound, now and then."""
        now = time.monotonic()
        if now >= self._told_at + _PAUSE:
            self._told_at = now
            self._tell(Bounded(bound))
