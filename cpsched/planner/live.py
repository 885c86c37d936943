"""A plan that lives: a ledger that follows its window, and on it the plan that is brought up to date (OCCS-36).

One rule says what becomes of the plan (`LivePlanner`). The ledger follows a window by what differs from the window
before; where it cannot (`LiveLedger.can_follow`), it is made anew, and gets the places that the jobs had. Both come to
the same plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from cpsched import problem
from cpsched.booking import LiveLedger
from cpsched.domain import RULES, FrozenMap, Instance, Job, Plan, PlannedJob
from cpsched.engine import Outcome
from cpsched.errors import UnsupportedError
from cpsched.planner.admission_result import AdmissionResult, unsupported, without_start
from cpsched.planner.hurrying import plan_hurried
from cpsched.planner.planner import NAME
from cpsched.planner.rescue import hopeless, rescue
from cpsched.planner.shrink import Values, begin_shrunk, go_on_shrunk
from cpsched.planner.warm import displace, ordered, planned_by, shrink_more, shrunk
from cpsched.problem import Refusal

#: So many jobs, those that start first, move up to any earlier start; all others only if they can start now.
_DEPTH = 1000
#: So many jobs, those that start first, choose again between their alternatives.
_MOST_CHOOSING = 100
#: The digits after the point of values that are compared.
_DIGITS = 6


#: A waiting job, why it can never start, and whether that depends on the second it is.
_Verdict = tuple[Job, Refusal | None, bool]


def replanned(instance: Instance, plan: Plan) -> Outcome:
    """Bring an earlier plan up to date, after jobs came and went, nodes broke down, or time passed (OCCS-36).

    Raises `UnsupportedError` if the instance asks for something that the planner cannot honour yet.

    `plan`: a plan of any instance: a job that this instance does not have, or that runs by now, is ignored.
    """
    return LivePlanner(instance, plan.jobs, plan.now).outcome()


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """What an event means for waiting jobs, by id."""

    #: They displace others of lower priority, if that lets them start as planned.
    urgent: Collection[str] = ()
    #: They ask for something else now: they keep their places behind all others.
    altered: Collection[str] = ()
    #: The places that jobs want to keep which ask for something else.
    places: Mapping[str, PlannedJob] = FrozenMap()


class LivePlanner:
    """The plan of a window, brought up to date whenever the window changes; mutable.

    Each job keeps its start and its nodes if they are still free and allowed. All others are planned beside them, in
    the order of their old starts, and one pass of backfilling moves jobs up into freed resources: those that start
    first to any earlier start, all others if they can start now. Jobs with limited starts come first, so that a new one
    of them finds its place before jobs that can wait take it; one that finds no place is rescued, if another order of
    such jobs has places for more of them (`cpsched.planner.rescue`). Running jobs continue as in the plan, but are
    shrunk only while that still improves the plan. For new jobs, further running jobs are shrunk if that improves the
    plan and no job that had a start starts later.

    After an event no job starts later without a cause: where there is not enough for all places of the plan before,
    jobs with a fixed start keep theirs first, then those of higher priority, then those that start earlier. Of the
    others, the urgent ones may displace jobs of lower priority. Then all that have no place are planned, in
    `planning_order`, and jobs move up until no job can.

    Raises `UnsupportedError` if an instance asks for something that the planner cannot honour yet.

    `instance`: the first window. `jobs`, `now`: an earlier plan of any instance, and the second at which it was made.
    `concern`: what the event means after which the window is planned; None: just time has passed, or jobs have come and
    gone.
    """

    def __init__(
        self,
        instance: Instance,
        jobs: Sequence[PlannedJob] = (),
        now: int | None = None,
        concern: Concern | None = None,
    ) -> None:
        self._begin(instance, jobs, instance.now if now is None else now, concern)

    @property
    def instance(self) -> Instance:
        """The window of which it has the plan."""
        return self._stated

    def follow(self, instance: Instance, concern: Concern | None = None) -> None:
        """Bring the plan up to date for another window: some time later, or with other jobs, nodes or rules.

        `instance`: jobs and rules that are the same objects as in the window before are known to be unchanged.
        `concern`: what an event means that has led to this window.
        """
        before = self._stated
        can_follow = not self._problem.is_overcommitted and self._ledger.can_follow and _is_same_site(before, instance)
        can_follow = can_follow and not any(
            job.alternatives or job.is_hurried for job in (*before.jobs, *instance.jobs)
        )
        if not (can_follow and self._followed(instance, concern)):
            self._begin(instance, self.outcome().jobs, before.now, concern)

    def outcome(self) -> Outcome:
        """Return the plan of all jobs, in document order."""
        ledger, planned, left = self._ledger, list[PlannedJob](), list[Job]()
        for job in self._elements:
            if job.running is not None:
                known = self._repeated.get(job.id)
                if known is None or known[0] is not job or job.id in ledger.running.changed:
                    known = self._repeated[job.id] = job, ledger.running.planned(job.id)
                planned.append(known[1])
            elif job.id in self._waiting and (place := ledger.planned(job.id)) is not None:
                planned.append(place)
            else:
                left.append(job)
        waiting_room = tuple(without_start(ledger, left, self._refused))
        return Outcome(jobs=self._problem.to_stated(planned), waiting_room=waiting_room)

    # --- anew ---------------------------------------------------------------------------------------------------

    def _begin(self, instance: Instance, jobs: Sequence[PlannedJob], now: int, concern: Concern | None) -> None:
        """Make the ledger of a window anew, and the plan from an earlier one."""
        if features := unsupported(instance):
            raise UnsupportedError(NAME, features)
        self._stated, self._problem = instance, problem.compiled(instance)
        instance, jobs = self._problem.instance, self._problem.to_held(jobs)
        admission = AdmissionResult.of(instance, engine=NAME)
        self._turns: dict[str, problem.Turn] = {}
        self._verdicts: dict[str, _Verdict] = {}
        self._arrays: dict[str, tuple[Job, tuple[Job, ...]]] = {}
        self._repeated: dict[str, tuple[Job, PlannedJob]] = {}
        self._take(instance, admission.jobs, dict(admission.refused), {job.id: job for job in admission.admitted})
        ledger = self._ledger = LiveLedger(instance, admission.admitted)
        ledger.running.restore(ledger.running.resumed(jobs))
        before = {name: job for name, job in planned_by(jobs, now).items() if name in self._waiting}
        if concern is not None:
            self._settle_after(before, concern)
            if names := shrunk(ledger):
                order = [job.id for job in problem.planning_order(instance, admission.admitted)]
                go_on_shrunk(ledger, order, Values(instance, ledger), names=names)
            return
        order = [job.id for job in ordered(instance, admission.admitted, before)]
        bound = {job.id for job in problem.bound_jobs(instance, admission.admitted)}
        self._plan_rest(order, bound, before)
        plan_hurried(ledger, order, before)
        self._move_up(order)
        choosing = [name for name in order if self._waiting[name].alternatives and ledger.is_booked(name)]
        if choosing:
            self._choose_again(choosing[:_MOST_CHOOSING])
        names = shrunk(ledger)
        is_new = bool(ledger.running.changeable) and any(job_id not in before for job_id in order)
        if names or is_new:
            values = Values(instance, ledger)
            go_on_shrunk(ledger, order, values, names=names)
            if is_new:
                shrink_more(ledger, order, values, before)

    def _settle_after(self, before: dict[str, PlannedJob], concern: Concern) -> None:
        """Give jobs without a place their earlier one, after an event, or plan them; and move up all that can."""
        ledger, instance, waiting = self._ledger, self._instance, self._waiting
        before |= {name: place for name, place in concern.places.items() if name in waiting}
        altered, urgent = frozenset(concern.altered), frozenset(concern.urgent)

        def rank(job: Job) -> tuple[bool, bool, int, int]:
            return job.id in altered, job.start_at is None, -instance.priority(job), before[job.id].start

        left = [job for name, job in waiting.items() if name in before and not ledger.is_booked(name)]
        for job in problem.awaited_first(instance, sorted(left, key=rank)):
            ledger.restore(before[job.id])
        order = [job.id for job in problem.planning_order(instance, list(waiting.values()))]
        pressing = [name for name in order if name in urgent and name in before and not ledger.is_booked(name)]
        if pressing:
            places = {name: place for name in waiting if (place := before.get(name) or ledger.planned(name))}
            for name in pressing:
                displace(ledger, waiting, name, places)
        for name in order:
            if not ledger.is_booked(name) and not (name in before and ledger.restore(before[name])):
                ledger.plan([name])
        plan_hurried(ledger, order, before)
        while ledger.compress(order, len(order)) if ledger.is_rigid else ledger.backfill(order):
            pass

    def _take(
        self, instance: Instance, elements: tuple[Job, ...], refused: dict[str, Refusal], waiting: dict[str, Job]
    ) -> None:
        """Take a window for the one of which there is a plan."""
        self._instance, self._elements, self._refused, self._waiting = instance, elements, refused, waiting
        self._running = {job.id: job for job in elements if job.running is not None}

    def _plan_rest(self, order: Sequence[str], bound: Collection[str], before: dict[str, PlannedJob]) -> None:
        """Give jobs without a place the one that they had before, or plan them; jobs with limited starts first."""
        ledger = self._ledger
        for turn in (True, False):
            left = [name for name in order if (name in bound) is turn and not ledger.is_booked(name)]
            if new := [name for name in left if name not in before or not ledger.restore(before[name])]:
                if any(self._waiting[name].alternatives for name in new):
                    self._choose(new, Values(self._instance, ledger))
                else:
                    ledger.plan(new)
            if turn and bound:
                self._rescue([name for name in order if name in bound], before)

    def _choose(self, names: Sequence[str], values: Values) -> None:
        """Plan jobs by their cheapest choices. Those to come will lose by what they take: as many as wait now."""
        others = [name for name, start in self._ledger.starts().items() if start > self._instance.now]
        begin_shrunk(self._ledger, names, values, others=others)

    def _choose_again(self, names: Sequence[str]) -> None:
        """Give jobs that have places the choices that are the cheapest by now, unless they would start later then."""
        ledger = self._ledger
        values = Values(self._instance, ledger)
        for name in names:
            place = ledger.place_of(name)
            ledger.release(name)
            self._choose([name], values)
            if ledger.place_of(name).start > place.start:
                ledger.release(name)
                ledger.put_back(name, place)

    def _rescue(self, bound: Sequence[str], before: dict[str, PlannedJob]) -> None:
        """Plan the jobs with limited starts anew, in other orders, if one is lost that need not be; others make way."""
        ledger, instance = self._ledger, self._instance
        lost = [name for name in bound if not ledger.is_booked(name)]
        lost = [name for name in lost if instance.latest_start(self._waiting[name]) is not None]
        if not lost or instance.has_strict_priorities or hopeless(instance, lost).issuperset(lost):
            return
        for name in self._waiting.keys() - set(bound):
            if ledger.is_booked(name):
                self._withdraw(name, before)
        values = Values(instance, ledger)
        # the order of the ledger's rows must not decide between plans of the same value
        rescue(ledger, bound, lambda: round(values.of_plan(), _DIGITS))

    def _move_up(self, order: Sequence[str]) -> None:
        """Move jobs up into what is free."""
        if self._ledger.is_rigid:
            self._ledger.compress(order, _DEPTH)
        else:
            self._ledger.backfill(order)

    # --- by what is different -----------------------------------------------------------------------------------

    def _followed(self, instance: Instance, concern: Concern | None) -> bool:
        """Book what is different in another window, and plan what lost its place; False if the ledger cannot follow."""
        elements = self._expanded(instance)
        running = {job.id: job for job in elements if job.running is not None}
        refused, waiting = self._admitted(instance, elements)
        if not (_can_be_followed(self._running, running) and _can_be_followed(self._waiting, waiting)):
            return False
        change = _Change.between(self._running, running, self._waiting, waiting)
        ledger, pending = self._ledger, dict[str, PlannedJob]()
        for name in change.ended:  # one that waits again may have been planned for this second
            if name in waiting and (ran := ledger.running.planned(name)).start >= self._instance.now:
                pending[name] = ran
        held = [*change.held]
        for job in change.started:
            if not ledger.is_booked(job.id):
                held.append(job)
            elif not ledger.starts_as_planned(job):
                ledger.release(job.id)
                held.append(job)
        for name in ledger.booked_between(self._instance.now, instance.now):
            self._withdraw(name, pending)
        for name in change.ended:
            ledger.end(name, now=instance.now)
        ledger.pass_time(instance)
        for name in change.leaving:
            if ledger.is_booked(name):
                self._withdraw(name, pending, is_kept=name in waiting)
        ledger.exchange([*(job.id for job in change.started), *change.leaving], change.arriving)
        is_whole = all(self._held(job, pending) for job in held)
        if not is_whole:
            jobs = [planned for name in waiting if (planned := ledger.planned(name)) is not None]
            self._begin(instance, [*jobs, *pending.values()], self._instance.now, concern)
            return True
        for job in change.same:
            ledger.running.keep(job)
        for name in change.ended:
            self._repeated.pop(name, None)
        self._stated = instance
        self._problem = problem.Problem(instance=instance)
        for name in (*(job.id for job in change.started), *change.leaving):
            self._turns.pop(name, None)
        self._take(instance, elements, refused, waiting)
        self._withdraw_forbidden(pending)
        if concern is None:
            self._settle(pending, [job.id for job in change.arriving])
        else:
            self._settle_after(pending, concern)
        return True

    def _expanded(self, instance: Instance) -> tuple[Job, ...]:
        """Return all jobs with each array replaced by its elements, which are the same objects as before."""
        if all(job.array is None for job in instance.jobs):
            return instance.jobs
        arrays: dict[str, tuple[Job, tuple[Job, ...]]] = {}
        for job in instance.jobs:
            if job.array is not None:
                known = self._arrays.get(job.id)
                arrays[job.id] = (
                    known
                    if known is not None and known[0] is job
                    else (job, tuple(replace(job, id=name, array=None) for name in job.element_ids))
                )
        self._arrays = arrays
        return tuple(one for job in instance.jobs for one in ((job,) if job.array is None else arrays[job.id][1]))

    def _admitted(self, instance: Instance, elements: Sequence[Job]) -> tuple[dict[str, Refusal], dict[str, Job]]:
        """Return the waiting jobs that can never start, and the others; what cannot have changed is not asked again."""
        refused: dict[str, Refusal] = {}
        waiting: dict[str, Job] = {}
        verdicts: dict[str, _Verdict] = {}
        for job in elements:
            if job.running is not None:
                continue
            name, known = job.id, self._verdicts.get(job.id)
            if known is None or known[2] or (known[0] is not job and known[0] != job):
                known = job, problem.refusal(instance, job), _is_bounded(instance, job)
            verdicts[name] = known
            if known[1] is None:
                waiting[name] = job
            else:
                refused[name] = known[1]
        self._verdicts = verdicts
        return refused, waiting

    def _withdraw(self, name: str, pending: dict[str, PlannedJob], *, is_kept: bool = True) -> None:
        """Take the place of a waiting job back, and note it: it may get the place again."""
        planned = self._ledger.planned(name)
        self._ledger.release(name)
        if is_kept and planned is not None:
            pending[name] = planned

    def _held(self, job: Job, pending: dict[str, PlannedJob]) -> bool:
        """Book a running job; return False if another running job has something of it. Waiting jobs make way."""
        ledger = self._ledger
        if ledger.hold(job):
            return True
        for name in ledger.in_the_way(job):
            self._withdraw(name, pending)
        return ledger.hold(job)

    def _withdraw_forbidden(self, pending: dict[str, PlannedJob]) -> None:
        """Take back the places that jobs may not have any more, by their own times or by those of others."""
        ledger, instance, jobs = self._ledger, self._instance, list(self._waiting.values())
        ledger.renew(ledger.bounded())
        has_links = any(job.after for job in jobs)
        for name in [job.id for job in problem.awaited_first(instance, jobs)] if has_links else ledger.bounded():
            if ledger.is_booked(name) and not ledger.is_allowed(name):
                self._withdraw(name, pending)

    def _settle(self, pending: dict[str, PlannedJob], altered: Collection[str]) -> None:
        """Plan the jobs that are new or have lost their places, and move up all that can."""
        ledger, jobs = self._ledger, list(self._waiting.values())
        has_links = any(job.after for job in jobs)
        starts = ledger.starts() | {name: planned.start for name, planned in pending.items()}
        order, bound = self._order(jobs, starts, has_links=has_links)
        for name in altered:
            if name in pending:
                rank = {other: (other not in bound, place) for place, other in enumerate(order)}
                for other in ledger.booked_between(pending[name].start, pending[name].end):
                    if rank[other] > rank[name]:
                        self._withdraw(other, pending)
        if bound:
            for name in order:
                if name in bound and name in pending and not ledger.is_booked(name):
                    ledger.restore(pending[name])
            for name in [name for name in order if name in bound and not ledger.is_booked(name)]:
                for other in ledger.booked_between(*ledger.times_of(name)):
                    if other not in bound:
                        self._withdraw(other, pending)
        self._plan_rest(order, bound, pending)
        self._move_up(order)

    def _order(self, jobs: Sequence[Job], starts: Mapping[str, int], *, has_links: bool) -> tuple[list[str], set[str]]:
        """Return the waiting jobs by their earlier starts, and those that are lost if they start too late."""
        instance = self._instance
        if has_links or instance.has_strict_priorities:
            bound = {job.id for job in problem.bound_jobs(instance, jobs)}
            in_turn = [job.id for job in problem.planning_order(instance, jobs)]
            names = sorted(in_turn, key=lambda name: (name not in starts, starts.get(name, 0)))
            of_name = {job.id: job for job in jobs}
            return [job.id for job in problem.awaited_first(instance, [of_name[name] for name in names])], bound
        turns = self._turns
        for job in jobs:
            if job.id not in turns or _may_be_overdue(instance, job):
                turns[job.id] = problem.turn_of(instance, job)
        names = [job.id for job in jobs]
        names.sort(key=lambda name: (name not in starts, starts.get(name, 0), turns[name]))
        return names, {name for name, turn in turns.items() if problem.is_bound(turn)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What is different between two windows."""

    #: The running jobs that run no more, or hold something else now; and those of these that hold something now.
    ended: tuple[str, ...]
    held: tuple[Job, ...]
    #: The waiting jobs that run now, and the other jobs that run now.
    started: tuple[Job, ...]
    #: The running jobs that hold what they held.
    same: tuple[Job, ...]
    #: The waiting jobs that are gone or ask for something else, and those that are new or ask for something else.
    leaving: tuple[str, ...]
    arriving: tuple[Job, ...]

    @classmethod
    def between(
        cls, ran: Mapping[str, Job], running: Mapping[str, Job], waited: Mapping[str, Job], waiting: Mapping[str, Job]
    ) -> Self:
        """Compare the running jobs, and the waiting ones, of two windows."""
        same = {name for name, job in running.items() if name in ran and _holds_the_same(ran[name], job)}
        return cls(
            ended=tuple(name for name in ran if name not in same),
            held=tuple(job for name, job in running.items() if name not in same and name not in waited),
            started=tuple(job for name, job in running.items() if name in waited),
            same=tuple(running[name] for name in same),
            leaving=tuple(
                name
                for name, job in waited.items()
                if name not in running and waiting.get(name) is not job and waiting.get(name) != job
            ),
            arriving=tuple(
                job for name, job in waiting.items() if waited.get(name) is not job and waited.get(name) != job
            ),
        )


def _holds_the_same(before: Job, job: Job) -> bool:
    """Return whether a running job holds one segment, the same as before."""
    if job.running is None or len(job.running.segments) != 1:
        return False
    return before is job or (
        (before.running, before.licenses) == (job.running, job.licenses)
        and before.steps[0].request.place == job.steps[0].request.place
    )


def _can_be_followed(before: Mapping[str, Job], jobs: Mapping[str, Job]) -> bool:
    """Return whether none of the jobs that are new changes while it runs."""
    return all(
        before.get(name) is job or (job.malleability is None and (job.running is not None or not job.is_evolving))
        for name, job in jobs.items()
    )


def _is_same_site(before: Instance, instance: Instance) -> bool:
    """Return whether a later window has the same machine and the same rules, and nothing is set aside."""
    names = ("cluster", "queues", *RULES, "usage", "objective", "has_strict_priorities", "epoch", "time_zone")
    return (
        instance.now >= before.now
        and not instance.set_aside
        and all((one := getattr(before, name)) is (other := getattr(instance, name)) or one == other for name in names)
    )


def _is_bounded(instance: Instance, job: Job) -> bool:
    """Return whether it depends on the time whether a waiting job can start at all."""
    return job.start_at is not None or job.deadline is not None or _may_be_overdue(instance, job)


def _may_be_overdue(instance: Instance, job: Job) -> bool:
    """Return whether the urgency of a waiting job depends on the time."""
    return job.queue is not None and instance.queues[job.queue].max_wait is not None
