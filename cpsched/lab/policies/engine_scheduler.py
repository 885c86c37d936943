"""Engines as on-line schedulers: `solve` and `replan` for one window after the other; and the portfolio on-line."""

from collections.abc import Collection
from dataclasses import replace
from itertools import count

from cpsched.arguments import Seconds, Seed, Workers, at_the_door
from cpsched.domain import Cluster, FrozenMap, Instance, Job, NodeState, Plan, PlannedJob, WaitingReason
from cpsched.engine import Budget, Outcome
from cpsched.errors import EngineError
from cpsched.lab.policies.queue_rules import DUE_AFTER, smith
from cpsched.lab.sim import BackfillRule, Change, Decision, News, NextStep, Order, QueueRule, RuleChoice, Site, Start
from cpsched.portfolio import LivePlan, WindowPlanner, team_of


class Cycles:
    """An engine that plans one window after the other, and remembers what it has planned; mutable."""

    def __init__(self, engine: WindowPlanner) -> None:
        self.name, self._engine = engine.name, engine
        #: Whether each cycle is more than to bring the last plan up to date.
        self._plans_anew = bool(team_of(engine.name, workers=engine.workers).lanes) or engine.is_rule
        #: The plan of the last cycle, and that which follows the windows since then.
        self._plan: Plan | None = None
        self._live: LivePlan | None = None

    def prepare(self) -> None:
        """Compile or load what the engine needs, so that no decision pays for it."""
        self._engine.prepare()

    def begin(self) -> None:
        """Forget all plans, and who has waited."""
        self._plan = self._live = None
        self._engine.forget()

    def plan(self, window: Instance) -> Plan | Outcome:
        """Plan the first jobs of a window, beginning from what is planned, if anything; this takes its time."""
        if self._plan is not None and not self._plans_anew:
            return self.follow(window)
        self._plan = self._engine.plan(window, self._plan if self._live is None else self._live.plan())
        self._live = None
        return self._plan

    def follow(self, window: Instance) -> Plan | Outcome:
        """Keep the start and nodes of all jobs, or move them up, as far as possible, in no time to speak of."""
        head = self._engine.head(window)
        if self._live is None:
            if self._plan is None:
                raise ValueError("there is no plan yet")
            self._live = LivePlan(head, self._plan)
        self._live.follow(head)
        return self._live.outcome()


class Rolling:
    """A scheduler that plans a rolling window, and starts jobs at their planned starts (BRIDI-4).

    A planning cycle comes when jobs have come or gone since the last one, or nodes have failed or returned, but not
    before `min_interval` seconds are over. Until then, and where a planned start is all that has come (BRIDI-13), the
    last plan is brought up to date. Malleable jobs start on the shares of their cores that the plan gives them, and
    running ones shrink and expand as it says.

    A hard ``max_wait`` is kept as long as a plan can keep it. Then the jobs are planned again at once, with the
    ``max_wait`` no longer hard for the jobs that are too late, until these have started.

    `planning`: the planner. `min_interval`: the fewest seconds between two cycles. Raises `ValueError` if the interval
    is negative.
    """

    #: Plans have all steps of a job.
    starts_evolving = True
    #: And keep what is said of a window (`cpsched.lab.sim.unkept`).
    plans_windows = True

    def __init__(self, planning: Cycles, *, min_interval: int = 0) -> None:
        if min_interval < 0:
            raise ValueError(f"Expected min_interval of 0 or more seconds, got {min_interval}")
        self.name = planning.name
        self._planning, self._min_interval = planning, min_interval

    def begin(self, site: Site) -> None:
        """Forget all former plans."""
        self._planning.prepare()
        self._planning.begin()
        self._index = {job.id: index for index, job in enumerate(site.jobs)}
        self._malleable = {index for index, job in enumerate(site.jobs) if job.malleability is not None}
        #: The waiting jobs as planners see them, by what they are believed to take; and the machine without some nodes.
        self._believed: dict[int, tuple[int, Job]] = {}
        self._left: dict[frozenset[str], Cluster] = {}
        self._has_plan = False
        #: The earliest begin of the next cycle, whether a new plan is needed, and the nodes that are down.
        self._next_cycle, self._is_stale = site.now, False
        self._out: frozenset[str] = frozenset()
        #: How often other amounts have been set aside.
        self._num_asides = site.num_asides
        #: The jobs that can no longer keep the hard ``max_wait`` of their queue.
        self._late: set[str] = set()

    def decide(self, site: Site, news: News) -> Decision:
        """Plan anew or update the plan; start the jobs whose planned start is now."""
        before, self._out = self._out, frozenset(site.columns.node_names[node] for node in site.nodes_out.tolist())
        self._is_stale = self._is_stale or bool(news.arrived or news.gone or news.expired) or self._out != before
        num_asides, self._num_asides = self._num_asides, site.num_asides
        self._is_stale = self._is_stale or self._num_asides != num_asides
        window = self._window(site)
        if not self._has_plan or (self._is_stale and site.now >= self._next_cycle):
            planned, self._has_plan = self._planned(window), True
            self._next_cycle, self._is_stale = site.now + self._min_interval, False
        else:
            planned = self._planning.follow(_lenient(window, self._late))
        return self._decision(site, planned)

    def _window(self, site: Site) -> Instance:
        """Return the window of this second as planners see it: the nodes that are out are down, and waiting jobs take
        as long as they are believed to run. What has not changed since the last call is the same object.
        """
        window, queue, known = site.window(), site.queue, self._believed
        first = len(window.jobs) - len(queue)
        jobs = list(window.jobs[:first])
        for index, job, seconds in zip(queue.tolist(), window.jobs[first:], site.estimates(queue), strict=True):
            if index not in known or known[index][0] != seconds:
                known[index] = seconds, _believed(job, seconds)
            jobs.append(known[index][1])
        cluster = window.cluster
        if self._out:
            if self._out not in self._left:
                self._left = {self._out: _without(cluster, self._out)}
            cluster = self._left[self._out]
        return replace(window, jobs=tuple(jobs), cluster=cluster)

    def _planned(self, window: Instance) -> Plan | Outcome:
        """Plan a window in which no job is left without a start because it is too late for its ``max_wait``."""
        while True:
            plan = self._planning.plan(_lenient(window, self._late))
            too_late = {waiting.id for waiting in plan.waiting_room if waiting.reason is WaitingReason.TOO_LATE}
            if too_late <= self._late:
                return plan
            self._late |= too_late

    def _decision(self, site: Site, plan: Plan | Outcome) -> Decision:
        """Return the decision of a plan at this second: which jobs release cores, which take cores, and which start."""
        waiting = set(site.queue.tolist())
        due: list[Start] = []
        changes: list[tuple[int, Change]] = []
        steps: list[NextStep] = []
        later = [self._next_cycle] if self._is_stale else []
        for planned in plan.jobs:
            job = self._index[planned.id]
            if planned.start > site.now:
                later.append(planned.start)
                continue
            later.extend(segment.end for segment in planned.segments[:-1] if segment.end > site.now)
            if job in waiting:
                due.append(self._start(site, job, planned))
            elif site.jobs[job].is_evolving:
                steps += [
                    NextStep(job, segment.allocation) for segment in planned.segments[1:] if segment.start == site.now
                ]
            elif job in self._malleable and (change := self._change(site, job, planned)) is not None:
                more = int(change.modes.sum()) - int(site.modes_of(job).sum())
                changes.append((-more, change))
        changes.sort(key=lambda pair: (pair[0], pair[1].job))  # later modes have less cores: these come first
        in_order = [change for _, change in changes]
        return Decision(starts=due, changes=in_order, steps=steps, wake=min(later, default=None))

    def _start(self, site: Site, job: int, planned: PlannedJob) -> Start:
        """Return the start of a waiting job that is planned for now."""
        if site.jobs[job].is_evolving:
            return site.start_in_steps(job, planned.segments)
        start = site.start_on(job, planned.segments[0].allocation, planned.alternative)
        if start is None:
            raise EngineError(f"{self.name} plans job {planned.id} at {site.now} on nodes where it may not run")
        return start

    def _change(self, site: Site, job: int, planned: PlannedJob) -> Change | None:
        """Return how a running job changes its shares now, if it does."""
        present = next(segment for segment in planned.segments if segment.end > site.now)
        try:
            return site.change_to(job, present.allocation)
        except ValueError as error:
            raise EngineError(f"{self.name} plans at {site.now} what cannot be: {error}") from error


def _believed(job: Job, seconds: int) -> Job:
    """Return a job that takes so many seconds at full share; what it takes by its choices is believed."""
    if job.walltime == seconds or job.is_evolving or job.alternatives:
        return job
    (step,) = job.steps
    return replace(job, steps=(replace(step, walltime=seconds),))


def _lenient(window: Instance, late: Collection[str]) -> Instance:
    """Return a window in which some jobs are in queues like theirs, but with a ``max_wait`` that is not hard."""
    if not late:
        return window
    moved: dict[str, str] = {}
    queues, jobs = dict(window.queues), list(window.jobs)
    for place, job in enumerate(jobs):
        if job.id not in late or job.queue is None or window.must_start_by(job) is None:
            continue
        queue = window.queues[job.queue]
        if job.queue not in moved and queue.max_wait is not None:
            moved[job.queue] = next(name for number in count() if (name := f"late {number}") not in queues)
            queues[moved[job.queue]] = replace(queue, max_wait=replace(queue.max_wait, is_hard=False))
        jobs[place] = replace(job, queue=moved[job.queue])
    return replace(window, queues=FrozenMap(queues), jobs=tuple(jobs)) if moved else window


def _without(cluster: Cluster, out: Collection[str]) -> Cluster:
    """Return a cluster in which some nodes are down."""
    classes = []
    for each in cluster.classes:
        left = tuple(name for name in each.names if name not in out)
        lost = tuple(name for name in each.names if name in out)
        classes += [replace(each, names=left)] if left else []
        classes += [replace(each, names=lost, state=NodeState.DOWN)] if lost else []
    return replace(cluster, classes=tuple(classes))


@at_the_door
def make_engine_scheduler(
    name: str,
    *,
    budget: Seconds = 1.0,
    min_interval: int = 0,
    window: int | None = None,
    workers: Workers = 1,
    seed: Seed = 0,
) -> Rolling:
    """Make a scheduler that plans the running and the waiting jobs by an engine, whenever jobs have arrived or ended.

    The planner never plans anew: it keeps its promised starts, adds new jobs, and moves jobs up when others end early
    (OCCS-34, OCCS-36). All other engines call `solve` in each cycle, beginning from the plan of the last cycle, or
    from a list schedule by Smith's rule if that is better. Only solvers need a budget.

    Raises `EngineError` if there is no such engine. Raises `ValueError` if a figure is out of its range.

    Parameters
    ----------
    name
        One of `ENGINES`.
    budget
        Seconds of a cycle.
    min_interval
        The fewest seconds between two cycles; in between the last plan is updated.
    window
        The most waiting jobs that are planned in a cycle: overdue jobs first, then those with the least work per cost
        of waiting (Smith's rule), of the highest classes where priorities are strict; None: all.
    workers
        The number of CPU cores to use.
    seed
        The same workload, engine and seed give the same history, as far as no clock decides.
    """
    if window is not None and window < 1:
        raise ValueError(f"Expected a window of 1 job or more, got {window}")
    solves = bool(team_of(name, workers=workers).lanes)
    budget = Budget(budget).seconds if solves else 0.0
    engine = WindowPlanner(name=name, budget=budget, most=window, workers=workers, seed=seed)
    return Rolling(Cycles(engine), min_interval=min_interval)


def _promising(name: str, order: Order) -> QueueRule:
    """Return a list with the promise of `smith`."""
    return QueueRule(name=name, backfill=BackfillRule.RESERVING, order=order, due_after=DUE_AFTER)


#: The rules that may win, each with reservations for all blocked jobs.
_OTHERS = (
    replace(smith(expect="walltime"), name="smith_by_walltime"),
    replace(smith(gate=2.0), name="smith_gated"),
    _promising("saf_promising", Order.AREA),
    _promising("sjf_promising", Order.WALLTIME),
)


def make_online_portfolio(
    *, budget: Seconds = 1.0, min_interval: int = 0, window: int | None = None, workers: Workers = 1, seed: Seed = 0
) -> RuleChoice:
    """Make the scheduler that is `smith`, or another rule where that wins on replicas of what has happened so far.

    Workloads with jobs that change as they run, and with strict priorities, are planned in rolling windows, as
    `make_engine_scheduler` says; so all figures but the seed are for these.

    `budget`: seconds of a cycle. `min_interval`: the fewest seconds between two cycles. `window`: the most waiting jobs
    that are planned in a cycle; None: all. `workers`: the number of CPU cores to use. `seed`: the same workload and
    seed give the same history, as far as no clock decides. Raises `ValueError` if a figure is out of its range.
    """
    return RuleChoice(
        name="portfolio",
        rules=(smith(), *_OTHERS),
        otherwise=make_engine_scheduler(
            "portfolio", budget=budget, min_interval=min_interval, window=window, workers=workers, seed=seed
        ),
        seed=seed,
    )
