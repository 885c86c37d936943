"""`replan`: the next plan of a window after time has passed, or after a change."""

from __future__ import annotations

from cpsched.domain import Instance, Plan, fitted
from cpsched.engine import Budget
from cpsched.errors import DocumentError, Fault
from cpsched.formats import checked, instance_to_document, parse_instance
from cpsched.planner import ProfileChange, advanced, with_profile
from cpsched.portfolio.classes import ByClass
from cpsched.portfolio.engine_window import EngineWindow
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import judge_of, plan_of
from cpsched.portfolio.warm_start import WarmStart

__all__ = ["replan"]

#: The engine's name in plans of `replan`.
NAME = "replan"


def replan(
    instance: Instance, plan: Plan, *, at: int | None = None, change: ProfileChange | None = None
) -> tuple[Instance, Plan]:
    """Advance a window to a later second, apply a change, and update its plan.

    Each job keeps its start and nodes if they are still free and allowed, and moves up if resources have become free
    (`cpsched.planner.replanned`). To improve the new plan further, pass it to `solve` as `warm`.

    Parameters
    ----------
    instance
        The window.
    plan
        A plan of it, as which all jobs have started and ended up to `at`.
    at
        The new `now`; None: the window's.
    change
        The new steps of a running job from then on; None: no change.

    Returns
    -------
    instance, plan
        The window at `at`, with the change, and its plan, which the verifier has passed.

    Raises
    ------
    DocumentError
        If the plan is not one of the window, or the job cannot have the change.
    EngineError
        If a change conflicts with promises, or the window asks for something that cannot be honoured.
    UnverifiedError
        If the new plan breaks a rule that no single job is to blame for: a bug of cpsched.
    """
    instance = checked(instance)
    clock = Budget(0)
    moved = _moved(instance, plan, instance.now if at is None else at)
    if change is not None:
        moved = with_profile(moved, change)
    judge = judge_of(moved)
    window = EngineWindow.of(moved)
    outcome = window.outcome(ByClass(WarmStart(window.held(plan))).plan(window.instance, None))
    new = plan_of(moved, NAME, outcome, slices=window.slices, budget=0, elapsed=clock.elapsed)
    return moved, verified(judge, moved, new, engine=NAME, elapsed=clock.elapsed)


def _moved(instance: Instance, plan: Plan, at: int) -> Instance:
    """Return the window at `at`, checked: a plan that is not of this window can lead to an impossible one."""
    faults = []
    if plan.instance != instance.name:
        faults.append(Fault("instance", f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}"))
    if at < max(instance.now, plan.now):
        first = max(instance.now, plan.now)
        faults.append(Fault("now", f"Expected a second from {first} on (now of instance and plan), got {at}"))
    if faults:
        raise DocumentError("plan", faults)
    moved = advanced(instance, plan, at)
    source, warnings = f"the window at {at}", list[Fault]()
    read = parse_instance(instance_to_document(moved), source=source, on_warning=warnings.append)
    if fitted(read).stated and not fitted(instance).stated:
        raise DocumentError(source, warnings)  # such is no fact, but a plan of something else
    return read
