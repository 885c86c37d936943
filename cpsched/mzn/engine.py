"""MiniZinc as an improver."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from cpsched import planner
from cpsched.domain import Instance, Job, ObjectiveTerm, modes, resumable
from cpsched.engine import Board
from cpsched.errors import EngineError
from cpsched.mzn.data import MOST_INTEGER, Times
from cpsched.mzn.solver import Answer, Verdict, find_solver, solutions
from cpsched.mzn.window import Window, can_be_held, has_evolving
from cpsched.problem import Precedences, awaited_ends, given

#: Events for a solver that has finished with a model that does not have all plans of a window: nothing is proven then.
_ENDS = {
    Verdict.OPTIMAL: "its best plan is optimal in {model}.mzn, which does not have all plans: there may be better ones",
    Verdict.IMPOSSIBLE: "no plan of {model}.mzn is as good as the best known plan",
}


class MiniZinc:
    """The models ``window`` and ``evolving``, given to a solver, as ``minizinc --solver`` names it."""

    name = "minizinc"

    def __init__(self, solver: str = "gecode") -> None:
        self._solver = solver

    def prepare(self) -> None:
        """Find MiniZinc and the solver.

        Raises `EngineError` if one of them is missing; the message says how to get it.
        """
        find_solver(self._solver)

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of an instance that the models do not have, each with its path.

        They have all features of the planner but these. Sizes are checked last, since they need the others.
        """
        others = (
            *planner.unsupported(instance),
            *planner.within_groups(instance),
            *planner.hurried(instance),
            *_changed(instance),
            *_malleable(instance),
            *_slowed(instance),
        )
        return others or tuple(_too_large(instance))

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Offer each plan of the solver, and its proof, until it has finished or the board is over.

        Raises `EngineError` if MiniZinc or the solver is missing or fails, or answers that there is no plan.
        """
        best = board.best
        most = {name: len(job.alternatives) for job in instance.jobs for name in job.element_ids}
        chosen = {planned.id: min(planned.alternative, most[planned.id]) for planned in best.jobs}
        has_choices = any(job.alternatives for job in instance.jobs)
        if has_choices:
            apart = planner.elements_apart(instance)  # each job by the alternative that the plan chose for it
            instance = replace(apart, jobs=tuple(given(job, chosen.get(job.id, 0)) for job in apart.jobs))
        window = Window.of(instance, [replace(planned, alternative=0) for planned in best.jobs])
        if not window.jobs or board.is_over:
            return
        by = f"{self.name}:{self._solver}"

        def offer(solution: Any) -> None:
            found = {one.id: replace(one, alternative=chosen[one.id]) for one in window.planned(solution)}
            board.offer([found.get(planned.id, planned) for planned in best.jobs], by=by)

        answer = solutions(
            self._solver,
            window.model,
            window.data,
            seconds=board.budget.remaining,
            seed=seed,
            is_over=lambda: board.is_over,
            on_solution=offer,
        )
        if not (window.is_evolving or has_choices):
            _conclude(window, answer, board, best.ids, self._solver, by)
        elif answer.verdict in _ENDS:
            board.report(_ENDS[answer.verdict].format(model=window.model), by=by)


def _conclude(window: Window, answer: Answer, board: Board, jobs: Collection[str], solver: str, by: str) -> None:
    """Offer the bound that is proven when the solver has finished with a model that has all plans of a window."""
    if answer.verdict is Verdict.IMPOSSIBLE:
        raise EngineError(f"{by}: expected a plan as good as the best known one, got the answer that there is none")
    if answer.verdict is Verdict.OPTIMAL and answer.cost is not None:
        rounding = "" if window.prices.is_exact else ", of prices rounded down"
        board.prove(window.bound_of(answer.cost), over=jobs, how=f"MiniZinc, {solver}: optimal{rounding}", by=by)


#: A model has a number for each kind of chunks and each node, and a distance for each two jobs of which one waits for
#: the other; with more of them MiniZinc takes minutes to read it.
_MOST_PLACEMENTS = 100_000


def _malleable(instance: Instance) -> list[str]:
    """Return the jobs that a plan may run or continue on a share of their cores: the models have all cores only."""
    return [
        f"job {job.id}: can run on fewer cores"
        for job in instance.jobs
        if (not job.is_evolving and len(modes(job)) > 1 if job.running is None else resumable(job, instance.now))
    ]


def _changed(instance: Instance) -> list[str]:
    """Return the running jobs whose allocation changes between now and their end."""
    return [
        f"job {job.id}: its running allocation changes over time"
        for job in instance.jobs
        if job.running is not None and sum(segment.end > instance.now for segment in job.running.segments) > 1
    ]


def _slowed(instance: Instance) -> list[str]:
    """Return the jobs whose steps can be held where that changes their slowdown, which is then not linear."""
    if ObjectiveTerm.SLOWDOWN not in instance.objective.weights:
        return []
    awaited = awaited_ends(instance)
    return [
        f"job {job.id}: slowdown of a job whose steps can be held"
        for job in instance.elements()
        if job.running is None and can_be_held(job, is_awaited=job.id in awaited)
    ]


def _too_large(instance: Instance) -> list[str]:
    """Return the figures that exceed the size or the integers of a model."""
    elements = (job for job in instance.elements() if job.running is None)
    jobs = [max(job.choices, key=lambda one: one.walltime) for job in elements]
    requests = [step.request for job in jobs for step in job.steps]
    placements = sum(len(request.chunks) for request in requests) * len(instance.cluster.node_names)
    amounts = [*instance.cluster.totals.values(), *instance.cluster.licenses.values()]
    if placements > _MOST_PLACEMENTS:
        return [f"jobs: {placements} pairs of a kind of chunks and a node; the model takes {_MOST_PLACEMENTS}"]
    pairs = sum(len(one.before) * len(one.after) for one in Precedences(instance, jobs).milestones())
    if pairs > _MOST_PLACEMENTS:
        return [f"jobs: {pairs} pairs of jobs of which one waits for the other; the model takes {_MOST_PLACEMENTS}"]
    features = []
    if max(amounts, default=0) > MOST_INTEGER:
        features.append(f"cluster: {max(amounts)} of one resource; the model takes {MOST_INTEGER}")
    horizon = _horizon(instance, jobs)
    if horizon > MOST_INTEGER:
        features.append(f"jobs: together they may take {horizon} s; the model takes {MOST_INTEGER} s")
    return features


def _horizon(instance: Instance, jobs: Sequence[Job]) -> int:
    """Return the seconds of the longest plan of a model."""
    held = sum(seconds or 0 for job in jobs for seconds in job.longest_steps) if has_evolving(instance) else 0
    return Times.of(instance, jobs, longer=held).horizon
