"""`replan`: the next plan of a window after time has passed, or after events."""

from collections.abc import Sequence
from dataclasses import replace

from cpsched.arguments import at_the_door
from cpsched.domain import Event, Instance, Plan, WindowEvent
from cpsched.engine import LONGEST_EVENT, Budget
from cpsched.errors import DocumentError, Fault
from cpsched.formats import checked
from cpsched.portfolio.delay_causes import Delay
from cpsched.portfolio.leftovers import filled
from cpsched.portfolio.live import LivePlan
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import Check, plan_of

#: The engine's name in plans of `replan`.
NAME = "replan"


@at_the_door
def replan(
    instance: Instance, plan: Plan, *, at: int | None = None, events: Sequence[WindowEvent] = ()
) -> tuple[Instance, Plan]:
    """Advance a window to a later second, apply events, and update its plan (OCCS-46).

    Each job keeps its start and nodes if they are still free and allowed, and moves up if resources have become free
    (`LivePlan`). A job that fails to get its allocation, or loses a node, may displace waiting
    jobs of lower priority to start as it was planned. The plan's `events` name the cause of each later start. A second
    call without events moves nothing. To improve the new plan further, pass it to `solve` as `warm`.

    Parameters
    ----------
    instance
        The window.
    plan
        A plan of it, as which all jobs have started and ended up to `at`.
    at
        The new `now`; None: the window's.
    events
        What happened at that second, one after the other.

    Returns
    -------
    instance, plan
        The window at `at`, after the events, and its plan, which the verifier has passed.

    Raises
    ------
    DocumentError
        If the plan is not one of the window, or an event names what is not there, or not in a state for it.
    EngineError
        If an event asks for what cannot be granted, or the window asks for something that cannot be honoured.
    UnverifiedError
        If the new plan breaks a rule that no single job is to blame for: a bug of cpsched.
    ValueError
        If an argument is not what its type says.
    """
    instance = checked(instance)
    if plan.attempts:
        message = "Expected a plan that stops no job: where jobs have been stopped, solve a window in which they wait"
        raise DocumentError("plan", [Fault("attempts", message)])
    clock = Budget(0)
    at = instance.now if at is None else at
    live = LivePlan(instance, plan)
    said, late = list[str](), dict[str, Delay]()
    for number, event in enumerate(events):
        now = live.happened(event, at=at if number == 0 else None)
        late |= now.late
        said += [now.words, *(f"job {name}: {what}" for name, what in now.touched.items() if name not in late)]
    if not events:
        late |= live.elapsed(at).late
    moved = live.window
    current = plan_of(moved, NAME, live.outcome(), slices=live.slices, budget=0, elapsed=clock.elapsed)
    check = Check.of(moved)
    first = {job.id: job.start for job in plan.jobs}

    def told(new: Plan) -> Plan:
        """Return a plan with the events, and with the causes of later starts."""
        starts = {job.id: job.start for job in new.jobs}
        refused = {
            job.id: Delay(job=job.id, before=job.start, after=None, cause="the verifier refused the place found for it")
            for job in current.jobs
            if starts.get(job.id) != job.start and job.id not in late
        }
        causes = [
            str(replace(one, before=first.get(name, one.before), after=starts.get(name)))
            for name, one in (late | refused).items()
            if name not in starts or starts[name] > first.get(name, one.before)
        ]
        now = round(clock.elapsed, 3)
        events = (Event(at=now, by=NAME, what=what[:LONGEST_EVENT]) for what in (*said, *causes))
        return replace(new, events=(*new.events, *events))

    current = filled(check, current, at=clock.elapsed)
    return moved, verified(check, current, engine=NAME, at=clock.elapsed, finished=told)
