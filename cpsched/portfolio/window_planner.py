"""An engine that plans one window after the other, each from the plan of the window before."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cpsched.domain import Instance, Job, Plan, WaitingReason, priority_classes
from cpsched.engine import Budget, Engine, Outcome, Progress
from cpsched.formats import instance_to_document
from cpsched.planner import PlannerEngine, problem_of, warmup_following
from cpsched.portfolio.classes import rank
from cpsched.portfolio.live import LivePlan
from cpsched.portfolio.recipe import solve
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import prepare, team_of
from cpsched.portfolio.warm_start import WarmStart
from cpsched.problem import dominant_share
from cpsched.rules import POLICIES, EasyReplay, by_smith

#: A job is due when it has waited for so many times the longest wait under EASY backfilling so far; for half of that if
#: it takes the whole machine.
_DUE_AFTER = 2.5


def _share(window: Instance, job: Job) -> float:
    """Return the share of the machine that a job takes at most."""
    return 1.0 if job.is_evolving else float(dominant_share(window.cluster, job))


def _work(window: Instance, job: Job) -> float:
    """Return for how many seconds the whole machine is needed for a waiting job, by its walltime."""
    return job.walltime * len(job.element_ids) * _share(window, job)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlanner:
    """An engine that plans any window, beginning from the plan of another one."""

    #: One of `ENGINES`.
    name: str
    #: Seconds; 0 for engines without solvers.
    budget: float
    #: The most waiting jobs that are planned; None: all.
    most: int | None = None
    workers: int = 1
    seed: int = 0
    #: By id, of the waiting jobs of the window before: since when the job could have started. Mutable.
    waited: dict[str, int] = field(default_factory=dict, compare=False)
    #: How long jobs would have waited under EASY backfilling. Mutable.
    easy: EasyReplay = field(default_factory=EasyReplay, compare=False)

    @property
    def is_rule(self) -> bool:
        """Whether it plans each window anew by a rule, which takes no budget."""
        team = team_of(self.name, workers=self.workers)
        return not team.lanes and team.first.name != "planner"

    def prepare(self) -> None:
        """Compile or load what the engine needs, and what follows its plans."""
        prepare(self.name, workers=self.workers, changing=False, linked=False)
        warmup_following()

    def forget(self) -> None:
        """Forget who has waited."""
        self.waited.clear()
        self.easy.begin()

    def promised(self, window: Instance) -> Instance:
        """Return a window in which the jobs that are due have deadlines: the ends that they have if they are planned
        first, in their turn. Strict priorities come before that.

        A job is due when it has waited for a multiple of the longest wait under EASY backfilling so far, or, if longer,
        of what the machine needs for all others that wait.
        """
        longest, now, planner = self.easy.follow(window), window.now, PlannerEngine()
        known = dict(self.waited)
        self.waited.clear()
        work = {job.id: _work(window, job) for job in window.jobs if job.running is None}
        queued, due = sum(work.values()), set[str]()
        for job in window.jobs:
            if job.running is None and not job.after and window.earliest_start(job) == now:
                self.waited[job.id] = since = known.get(job.id, now)
                times = _DUE_AFTER * (1.0 - 0.5 * _share(window, job))
                is_late = now - since > times * max(longest, queued - work[job.id])
                if is_late and window.latest_start(job) is None:
                    due.add(job.id)
        if not due or window.has_strict_priorities or planner.unsupported(window):
            return window

        def is_first(job: Job) -> bool:
            return job.running is not None or job.id in due or window.latest_start(job) is not None

        first = planner.plan(replace(window, jobs=tuple(filter(is_first, window.jobs))), None)
        ends = {job.id: job.end for job in first.jobs}

        def bounded(job: Job) -> Job:
            if job.id not in due or not ends.keys() >= set(job.element_ids):
                return job
            end = max(ends[one] for one in job.element_ids)
            # a plan stops and resizes running jobs only, and a job with a deadline is neither
            return replace(job, deadline=end, preemptible=None, resizable=None)

        return replace(window, jobs=tuple(map(bounded, window.jobs)))

    def plan(self, window: Instance, before: Plan | None) -> Plan:
        """Plan the first jobs of a window; those that are due (see `promised`) come in time, if the engine finds a
        place for each.

        Raises `KeyboardInterrupt` if the user interrupts, where `solve` would return the best plan so far.
        """
        promised = self.promised(window)
        plan = self._planned(promised, before)
        if promised is window or all(one.reason is not WaitingReason.TOO_LATE for one in plan.waiting_room):
            return plan
        other = self._planned(window, before)
        return other if len(other.jobs) > len(plan.jobs) else plan

    def _planned(self, window: Instance, before: Plan | None) -> Plan:
        """Plan the first jobs of a window as it is."""
        changing, linked = any(job.changes for job in window.jobs), any(job.after for job in window.jobs)
        if changing or linked:
            prepare(self.name, workers=self.workers, changing=changing, linked=linked)
        team = team_of(self.name, workers=self.workers)
        head = self.head(window)
        if before is not None and team.first.name == "planner":
            team = replace(team, first=WarmStart(problem_of(head).held(before)))
        if self.budget > 0:
            team = replace(team, first=_Better(team.first, POLICIES["wspt_list"]))
        document = instance_to_document(head)
        plan = solve(head, engine=self.name, budget=self.budget, seed=self.seed, team=team, document=document)
        if plan.engine.stopped == "interrupted":
            raise KeyboardInterrupt  # that was meant for all windows, not for this one
        return plan

    def head(self, window: Instance) -> Instance:
        """Return a window with those of its waiting jobs that are planned."""
        waiting = [job for job in window.jobs if job.running is None]
        if self.most is None or len(waiting) <= self.most:
            return window
        chosen = {job.id for job in _most_urgent(window, waiting)[: self.most]}
        return replace(window, jobs=tuple(job for job in window.jobs if job.running is not None or job.id in chosen))

    def follow(self, window: Instance, before: Plan | LivePlan) -> Plan:
        """Keep the start and nodes of all jobs, or move them up, as far as possible; a plan that lives follows."""
        clock, head = Budget(0), self.head(window)
        live = before if isinstance(before, LivePlan) else LivePlan(head, before)
        live.follow(head)
        return plan_of(head, self.name, live.outcome(), slices=live.slices, budget=0, elapsed=clock.elapsed)


class _Better:
    """Two engines, of which the better plan counts: so a solver begins from a good plan even with little time.

    `usual`: an engine that can plan every instance of `solve`. `other`: asked where it can honour the instance.
    """

    def __init__(self, usual: Engine, other: Engine) -> None:
        self._usual, self._other = usual, other
        self.name = f"{usual.name}, {other.name}"

    def prepare(self) -> None:
        """Compile or load the needs of both engines."""
        self._usual.prepare()
        self._other.prepare()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features that the usual engine cannot honour."""
        return self._usual.unsupported(instance)

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Return the better plan."""
        usual = self._usual.plan(instance, progress)
        if self._other.unsupported(instance):
            return usual
        other = self._other.plan(instance, None)
        return min(usual, other, key=lambda outcome: rank(instance, outcome.jobs))


def _most_urgent(window: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order jobs: by strict classes; those with a deadline and overdue ones first; then by Smith's rule."""
    classes = priority_classes(window) if window.has_strict_priorities else {}

    def urgency(job: Job) -> tuple[int, bool]:
        due = window.due(job)
        return -classes.get(job.id, 0), job.deadline is None and (due is None or due >= window.now)

    return sorted(by_smith(window, jobs), key=urgency)
