"""Plans of a window: by the site's engine within its time; where that fails, by what is always there."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

from cpsched.domain import EngineReport, Instance, Plan, PlannedJob, Score
from cpsched.portfolio import LivePlan, WindowPlanner
from cpsched.site.daemon.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A plan, and how it came to be."""

    plan: Plan
    #: Why promises move by it, in words.
    why: str
    #: What failed before, in words, in order; empty where nothing did.
    failures: tuple[str, ...] = ()


def plan_of_state(state: State, instance: Instance) -> Plan | None:
    """Return the living plan as a plan to begin from, of which only the jobs count; None where it has none."""
    jobs = tuple(entry.planned for entry in state.plan.values())
    if not jobs:
        return None
    return Plan(
        instance=instance.name,
        now=instance.now,
        objective=Score(name=instance.objective.name, value=0, planner=0, suffered=0),
        engine=EngineReport(name="daemon", version=version("cpsched"), budget=0, elapsed=0, stopped="done"),
        jobs=jobs,
    )


class Planner:
    """Makes one plan after the other; mutable: the plan that it brought up to date last lives on.

    `engine`: the engine that plans, and how. `gain`: the share of the plan's value that a plan must gain to move a
    promise to a later start. `report`: called with each exception, and with what raised it.
    """

    def __init__(self, engine: WindowPlanner, *, gain: float, report: Callable[[str, Exception], None]) -> None:
        self.engine, self.gain, self._report = engine, gain, report
        #: The plan that lives, and its jobs by id.
        self._live: LivePlan | None = None
        self._places: dict[str, PlannedJob] = {}

    def follow(self, window: Instance, previous: Plan | None, why: str) -> Made | None:
        """Make a plan in no time to speak of; None if that is not possible.

        It is that of the engine if it is a rule, or jobs may be stopped, and else the plan before brought up to date,
        or a first one.
        """
        self.engine.easy.follow(window)
        made = self._followed(window, previous, why)
        is_anew = self.engine.is_rule or window.preemption is not None
        return self._bettered(made, window, why) if made is not None and is_anew else made

    def _followed(self, window: Instance, previous: Plan | None, why: str) -> Made | None:
        """Bring a plan up to date, or make a first one; None if neither is possible."""
        planner = WindowPlanner(name="planner", budget=0.0, most=self.engine.most)
        ways = {"the planner": lambda: planner.plan(window, None)}
        if previous is not None:
            ways = {"the update of the plan before": lambda: self._updated(window, previous), **ways}
        return self._first_of(ways, why)

    def _updated(self, window: Instance, previous: Plan) -> Plan:
        """Bring a plan up to date: that which lives if it is the same, and else one made anew from it."""
        live, self._live = self._live, None  # one that fails does not live on
        if live is None or not self._is_plan_of(live, window, previous):
            # all of its jobs wait, also those that were to start before now
            first = min((job.start for job in previous.jobs), default=window.now)
            live = LivePlan(self.engine.head(window), replace(previous, now=min(first, window.now)))
        plan = self.engine.follow(window, live)
        self._live, self._places = live, {job.id: job for job in plan.jobs}
        return plan

    def _is_plan_of(self, live: LivePlan, window: Instance, previous: Plan) -> bool:
        """Tell whether a plan that lives has all jobs that wait in a window where a plan has them.

        It has not where another engine's plan was taken, or a job lost its place for a reason that is not in the
        window: its start was refused, or did not come.
        """
        if window.now < live.window.now:
            return False
        wanted = {job.id: job for job in previous.jobs}
        names = (name for job in window.jobs if job.running is None for name in job.element_ids)
        return all((one := self._places.get(name)) is (other := wanted.get(name)) or one == other for name in names)

    def improve(self, window: Instance, previous: Plan | None, why: str, *, seconds: float) -> Made | None:
        """Make a better plan within some seconds, in all; one that moves promises later for too small a gain is none.

        The previous plan brought up to date comes first, and is the answer where nothing better is found in time.
        """
        began = time.monotonic()
        followed = self._followed(window, previous, why)
        left = min(seconds, self.engine.budget) - (time.monotonic() - began)
        if followed is None or left <= 0:
            return followed
        return self._bettered(followed, window, why, budget=left)

    def _bettered(self, followed: Made, window: Instance, why: str, *, budget: float = 0.0) -> Made:
        """Return the plan of the engine where that is worth it, and the one that it begins from otherwise."""
        engine, plan = replace(self.engine, budget=budget), followed.plan
        window = engine.promised(window)
        made = self._first_of({engine.name: lambda: engine.plan(window, plan), "nothing": lambda: plan}, why)
        if made is None:
            return followed
        chosen, why = self._chosen(window, plan, made.plan, why)
        failures = followed.failures + made.failures
        return Made(plan=chosen, why=why, failures=failures)

    def _first_of(self, ways: dict[str, Callable[[], Plan]], why: str) -> Made | None:
        """Return the plan of the first way that does not fail."""
        failures = list[str]()
        for name, way in ways.items():
            try:
                plan = way()
            except Exception as error:  # whatever it is: the cluster has to go on
                self._report(name, error)
                failures.append(f"{name}: {type(error).__name__}: {error}")
            else:
                return Made(plan=plan, why=why, failures=tuple(failures))
        return None

    def _chosen(self, window: Instance, followed: Plan, better: Plan, why: str) -> tuple[Plan, str]:
        """Return the plan that is worth it, and the reason for which promises move by it."""
        before, after = followed.objective.value, better.objective.value
        if len(better.jobs) != len(followed.jobs):
            return (better, why) if len(better.jobs) > len(followed.jobs) else (followed, why)
        told = {job.id: job.told.start for job in window.jobs if job.told is not None}
        starts = {job.id: job.start for job in followed.jobs}
        due = {one: job.deadline for job in window.jobs if job.deadline is not None for one in job.element_ids}
        if any(job.end > due.get(job.id, job.end) for job in followed.jobs):
            return better, f"a job has waited too long ({why})"
        is_later = any(job.start > max(told[job.id], starts.get(job.id, 0)) for job in better.jobs if job.id in told)
        if better.attempts or not is_later:  # stops are worth it by themselves
            return better, why
        if before - after < self.gain * abs(before):
            return followed, why
        return better, f"a better plan for all: {before:.4g} to {after:.4g} ({why})"
