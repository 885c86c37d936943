"""Running jobs that are stopped for urgent ones: a window in which they wait again, and the plan of it.

For each waiting job that may stop others and cannot start soon enough, the cheapest running jobs that make room for it
are found. They are stopped if the planner's whole plan is better so; where priorities are strict, in any case. All
engines plan the window with the stopped jobs among those that wait: none need know of stops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import Amounts, Event, FrozenMap, Instance, Job, Plan, PlannedJob, Running, Segment, StopKind
from cpsched.engine import LONGEST_EVENT, Budget
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import later_scores, objective_value, suffered
from cpsched.planner import PlannerEngine, problem_of, stated_outcome
from cpsched.portfolio.scoring import Check, plan_of
from cpsched.verify import verify

#: The most waiting jobs for which others are stopped in one window, and the share of a budget for finding out.
_MOST, _SHARE = 16, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """Which running jobs are stopped, and for which jobs."""

    instance: Instance
    #: The running jobs that are stopped, by the id of the job for which they are.
    stopped: FrozenMap[str, tuple[Job, ...]] = FrozenMap()
    #: The starts of the urgent jobs for which none need be stopped.
    in_time: FrozenMap[str, int] = FrozenMap()
    #: The planner's plan with these stops, in which the verifier finds no fault; None without stops.
    first: Plan | None = None
    #: Seconds of a budget for judging the last plan as one of the instance.
    reserve: float = 0

    @property
    def at(self) -> int:
        """The second of the stops."""
        return self.instance.now + (0 if self.instance.preemption is None else self.instance.preemption.notice)

    @property
    def window(self) -> Instance:
        """The window in which stopped jobs wait, and what they are stopped for starts in their place."""
        if not self.stopped:
            return self.instance
        again = {job.id for jobs in self.stopped.values() for job in jobs}
        # until then any of the urgent jobs may be in the place of a suspended one
        starts = {**self.in_time, **dict.fromkeys(self.stopped, self.at)}
        until = max(starts[job.id] + job.walltime for job in self.instance.jobs if job.id in starts)
        jobs: list[Job] = []
        for job in self.instance.jobs:
            if job.id in starts:
                jobs.append(replace(job, start_at=starts[job.id], preemptible=None))
            elif job.id in again:
                jobs += self._parts_of(job, until)
            else:
                jobs.append(job)
        return replace(self.instance, jobs=tuple(jobs), preemption=None)

    def _parts_of(self, job: Job, until: int) -> list[Job]:
        """Return a stopped job as one that waits, and, where it has notice, as one that runs until it stops; one that
        is suspended as one that runs on, for a while without cores.
        """
        if job.running is None or job.preemptible is None:
            return [job]
        at, notice = self.at, self.at - self.instance.now
        if job.preemptible.by is StopKind.SUSPEND:
            return [replace(job, running=_suspended(job, job.running, at, until), preemptible=None)]
        kept = job.preemptible.kept(at - job.running.start, notice)
        steps = (replace(job.steps[0], walltime=job.walltime - kept),)
        expected = None if job.expected is None else max(1, job.expected - kept)
        waiting = replace(job, steps=steps, expected=expected, running=None, preemptible=None, not_before=at)
        if not notice:
            return [waiting]
        segments = tuple(replace(one, end=min(one.end, at)) for one in job.running.segments if one.start < at)
        running = Running(start=job.running.start, segments=segments)
        return [replace(job, id=self._before(job), running=running, preemptible=None), waiting]

    def _before(self, job: Job) -> str:
        """Return the id of a stopped job until it stops, which no other job has."""
        name, names = f"{self.instance.jobs.index(job)} until {self.at}", {one.id for one in self.instance.jobs}
        while name in names:
            name += "'"
        return name

    def stated(self, plan: Plan) -> Plan:
        """Return a plan of the window as one of the instance: with the stops, and what they cost."""
        if not self.stopped:
            return plan
        instance, attempts, events = self.instance, list[PlannedJob](), list[Event]()
        for name, jobs in self.stopped.items():
            for job in jobs:
                segments = () if job.running is None else job.running.segments
                cut = tuple(replace(one, end=min(one.end, self.at)) for one in segments if one.start < self.at)
                attempts.append(PlannedJob(id=job.id, start=cut[0].start, end=self.at, segments=cut))
            stopped = ", ".join(job.id for job in jobs)
            what = f"job {name} starts at {self.at}: stopped for it: {stopped}"[:LONGEST_EVENT]
            events.append(Event(at=0.0, by="planner", what=what))
        until = {self._before(job) for jobs in self.stopped.values() for job in jobs}
        cut_short = {one.id for one in attempts}
        jobs_left = tuple(
            replace(job, start=job.segments[-1].start, segments=job.segments[-1:])
            if job.id in cut_short and job.start < self.at
            else job
            for job in plan.jobs
            if job.id not in until
        )
        value, old = objective_value(instance, jobs_left), plan.objective
        score = replace(old, value=value, planner=old.planner + value - old.value, bound=None, gap=None, proof=None)
        score = replace(score, suffered=suffered(instance, jobs_left), then=later_scores(instance, jobs_left))
        report = replace(plan.engine, stopped="done" if plan.engine.stopped == "optimal" else plan.engine.stopped)
        return replace(
            plan,
            objective=score,
            engine=report,
            jobs=jobs_left,
            attempts=tuple(attempts),
            incumbents=tuple(replace(one, value=one.value + value - old.value) for one in plan.incumbents),
            events=(*events, *plan.events),
        )

    def judged(self, check: Check, plan: Plan, *, at: float) -> Plan:
        """Return a plan of the window as one of the instance; the first one, if the verifier finds a fault in it."""
        found = self.stated(plan)
        faults = check.faults(found) if self.first is not None else ()
        if not faults or self.first is None:
            return found
        what = f"refused a plan with stops: {faults[0]}"[:LONGEST_EVENT]
        said = Event(at=round(at, 3), by="verify", what=what)
        report = replace(found.engine, stopped="fallback")
        return replace(self.first, engine=report, events=(*self.first.events, said))


def _suspended(job: Job, running: Running, at: int, until: int) -> Running:
    """Return a running job that has no cores from one second until another, and then all that it had."""
    before = [replace(one, end=min(one.end, at)) for one in running.segments if one.start < at]
    last, left = before[-1].allocation, job.walltime - (at - running.start)
    kept = [(one, {name: amount for name, amount in one.resources.items() if name != "cores"}) for one in last]
    rest = tuple(replace(one, resources=Amounts(amounts)) for one, amounts in kept if amounts)
    after = (Segment(start=at, end=until, allocation=rest), Segment(start=until, end=until + left, allocation=last))
    return replace(running, segments=(*before, *after))


def _first_plan(stops: Stops) -> Plan:
    """Return the planner's plan of a window with stops, as one of the instance."""
    problem = problem_of(stops.window)
    outcome = stated_outcome(problem, PlannerEngine().plan(problem.instance, None))
    return stops.stated(plan_of(stops.window, "planner", outcome, slices=problem.slices, budget=0, elapsed=0))


def _starts(stops: Stops, job: Job, others: Sequence[Job]) -> bool:
    """Tell whether a job can start in time, beside the jobs before it, once some running jobs are stopped too."""
    stopped = FrozenMap({**stops.stopped, job.id: tuple(others)})
    window, first = replace(stops, stopped=stopped).window, stopped.keys() | stops.in_time.keys()
    kept = tuple(one for one in window.jobs if one.running is not None or one.id in first)
    problem = problem_of(replace(window, jobs=tuple(replace(one, after=()) for one in kept)))
    return first <= {one.id for one in PlannerEngine().plan(problem.instance, None).jobs}


def _is_late(clock: Budget) -> bool:
    return clock.seconds > 0 and clock.elapsed > _SHARE * clock.seconds


def _prices(stops: Stops, job: Job) -> dict[str, tuple[float, float, Job]]:
    """Return what it costs to stop each running job that may be stopped for a waiting one, for each of its cores and
    whole, by id.
    """
    instance, at, preemption = stops.instance, stops.at, stops.instance.preemption
    gone = {one.id for jobs in stops.stopped.values() for one in jobs}
    found: dict[str, tuple[float, float, Job]] = {}
    for one in instance.jobs:
        if one.running is None or one.preemptible is None or preemption is None or one.id in gone:
            continue
        held = one.running.segments[-1].allocation
        if one.preemptible.by is StopKind.SUSPEND and any(place.resources.keys() <= {"cores"} for place in held):
            continue  # nothing says what it keeps
        ran, end = at - one.running.start, one.running.segments[-1].end
        if instance.may_stop(job, one) and max(1, preemption.exempt) <= ran < one.walltime and end > at:
            of_core = (1 + ran - one.preemptible.kept(ran, preemption.notice)) * float(instance.weight(one))
            found[one.id] = of_core, of_core * one.request.totals.get("cores", 1), one
    return found


def _cheapest(stops: Stops, job: Job, clock: Budget) -> tuple[Job, ...]:
    """Return running jobs that make room for a waiting one when they are stopped, cheapest first and none too many, as
    far as the clock lets it be found out; empty if there are none. Of the sets by price for each core, and by price of
    whole jobs, it is the cheaper one.
    """
    prices, sets = _prices(stops, job), list[tuple[Job, ...]]()
    orders = [sorted(prices, key=lambda name: (prices[name][by], name)) for by in (1, 0)]
    for order in orders if orders[0] != orders[1] else orders[:1]:
        if sets and (not sets[0] or _is_late(clock)):
            break
        sets.append(_none_too_many(stops, job, [prices[name][2] for name in order], clock))
    return min(sets, key=lambda one: sum(prices[other.id][1] for other in one))


def _none_too_many(stops: Stops, job: Job, found: Sequence[Job], clock: Budget) -> tuple[Job, ...]:
    """Return the first of some running jobs that make room for a waiting one, without those that are not needed, the
    last of them first; empty if all together make none.
    """
    low, high = 0, 1
    while not _starts(stops, job, found[:high]):
        if high >= len(found):
            return ()
        low, high = high, min(2 * high, len(found))
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _starts(stops, job, found[:middle]) else (middle, high)
    chosen = found[:high]
    for one in reversed(chosen[:-1]):
        if _is_late(clock):
            break
        fewer = [other for other in chosen if other is not one]
        chosen = fewer if _starts(stops, job, fewer) else chosen
    return tuple(chosen)


def _urgent(instance: Instance) -> list[Job]:
    """Return the waiting jobs for which others may be stopped, the first of them first."""
    if instance.preemption is None:
        return []
    stoppable = [one for one in instance.jobs if one.running is not None and one.preemptible is not None]
    kinds = {(one.queue, instance.priority(one)): one for one in stoppable}.values()
    urgent = [
        job
        for job in instance.jobs
        if job.running is None and job.array is None and not job.after and not job.changes and not job.alternatives
        if job.start_at is None and job.reservation is None and instance.earliest_start(job) <= instance.now
        if job.deadline is None and any(instance.may_stop(job, other) for other in kinds)
    ]
    return sorted(urgent, key=lambda job: (-instance.stop_level(job), job.submit, job.id))[:_MOST]


def _better(stops: Stops, more: Mapping[str, tuple[Job, ...]]) -> Stops | None:
    """Return some stops with more of them if the planner's plan is better so, or priorities are strict; else None."""
    stops, old = replace(stops, stopped=FrozenMap({**stops.stopped, **more})), stops.first
    if old is None or not stops.stopped:
        return None
    new = _first_plan(stops)
    is_better = (-len(new.jobs), new.objective.value) < (-len(old.jobs), old.objective.value)
    return replace(stops, first=new) if is_better or stops.instance.has_strict_priorities else None


def stops_of(instance: Instance, clock: Budget) -> Stops:
    """Return the stops that make the planner's plan of a window better, or those that strict priorities ask for.

    Of a budget it takes a quarter and what has been begun then; without one, the time that it needs.
    """
    none = Stops(instance=instance)
    urgent = _urgent(instance)
    if not urgent:
        return none
    plan, found = _first_plan(none), none
    in_time = {job.id: job.start for job in plan.jobs if job.start <= none.at}
    for job in urgent:
        if _is_late(clock):
            break
        fits = (job.id in in_time and not found.stopped) or _starts(found, job, ())
        chosen = () if fits else _cheapest(found, job, clock)
        if chosen:
            found = replace(found, stopped=FrozenMap({**found.stopped, job.id: chosen}))
        elif fits and job.id in in_time:
            found = replace(found, in_time=FrozenMap({**found.in_time, job.id: in_time[job.id]}))
    without = replace(found, stopped=FrozenMap(), first=plan)
    best = _better(without, found.stopped)
    for name, jobs in found.stopped.items() if best is None and len(found.stopped) > 1 else ():
        best = _better(without if best is None else best, {name: jobs}) or best
    if best is None or best.first is None:
        return none
    since = clock.elapsed
    is_in_order = not verify(instance_to_document(instance), plan_to_document(best.first))
    return replace(best, reserve=3 * (clock.elapsed - since)) if is_in_order else none
