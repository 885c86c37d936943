"""`solve`: from an instance to a plan. The recipe; its parts are public, so that an expert can put them together
otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from cpsched.domain import EngineReport, Incumbent, Instance, Plan, Score
from cpsched.engine import Budget, Engine, Outcome, Progress
from cpsched.errors import EngineError, UnsupportedError
from cpsched.metrics import objective_value, suffered
from cpsched.planner import PlannerEngine
from cpsched.policies import POLICIES
from cpsched.search import SearchEngine

__all__ = ["ENGINES", "plan_of", "prepare", "solve"]

#: The engines by name; they keep no state.
ENGINES: dict[str, Engine] = {PlannerEngine.name: PlannerEngine(), SearchEngine.name: SearchEngine(), **POLICIES}


def prepare(engine: str = "planner") -> None:
    """Compile or load an engine's kernels now; else its first plan does, at the expense of the budget.

    Raises
    ------
    EngineError
        If there is no such engine.
    """
    _engine(engine).prepare()


def _engine(name: str) -> Engine:
    """Return the engine of this name."""
    if name not in ENGINES:
        raise EngineError(f"Expected an engine out of {', '.join(ENGINES)}, got {name!r}")
    return ENGINES[name]


def solve(
    instance: Instance,
    *,
    engine: str = "planner",
    budget: float = 10.0,
    seed: int = 0,
    bound: float = 0.0,
    progress: Progress | None = None,
) -> Plan:
    """Plan every job of an instance.

    Parameters
    ----------
    instance
        The window.
    engine
        One of `ENGINES`.
    budget
        Seconds that may be spent on improving the plan; the planner, which makes the first one, takes the time it
        needs.
    seed
        Same instance, same engine, same seed: same plan.
    bound
        Seconds that may be spent, after the budget, on proving how far the plan can be from the optimum; 0: nothing is
        proven.
    progress
        Called with (jobs done, jobs in all) now and then.

    Raises
    ------
    EngineError
        If there is no such engine.
    UnsupportedError
        If the engine cannot honour what the instance asks for.
    """
    clock = Budget(budget)
    worker = _engine(engine)
    features = worker.unsupported(instance)
    if features:
        raise UnsupportedError(engine, features)
    outcome = worker.plan(instance, clock, seed=seed, hint=None, progress=progress)
    elapsed = clock.elapsed
    if bound > 0:
        from cpsched.cp import lower_bound

        waiting = {job.id for job in instance.elements() if job.running is None}
        planned = [job.id for job in outcome.jobs if job.id in waiting]
        proven = lower_bound(instance, planned, seconds=bound, seed=seed)
        outcome = replace(outcome, bound=None if proven is None else proven.value)
    return plan_of(instance, engine, outcome, budget=budget, elapsed=elapsed)


def plan_of(instance: Instance, engine: str, outcome: Outcome, *, budget: float, elapsed: float) -> Plan:
    """Return the plan document of what an engine found in `elapsed` of `budget` seconds."""
    value = objective_value(instance, outcome.jobs)
    incumbents = outcome.incumbents or (Incumbent(at=round(elapsed, 3), value=value, by=engine),)
    gap = None
    if outcome.bound is not None:
        gap = (value - outcome.bound) / value if value else 0.0
    score = Score(
        name=instance.objective.name,
        value=value,
        bound=outcome.bound,
        gap=gap,
        planner=incumbents[0].value,
        suffered=suffered(instance, outcome.jobs),
    )
    report = EngineReport(
        name=engine,
        version=version("cpsched"),
        budget=budget,
        elapsed=round(elapsed, 3),
        stopped=outcome.stopped,
    )
    return Plan(
        instance=instance.name,
        now=instance.now,
        objective=score,
        engine=report,
        jobs=outcome.jobs,
        waiting_room=outcome.waiting_room,
        incumbents=incumbents,
    )
