"""The front door of the simulator: `simulate` plays a workload by a scheduler."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpsched.arguments import at_the_door
from cpsched.domain import EngineReport, Instance, Plan, PlannedJob, WaitingJob, WaitingReason, priority_classes
from cpsched.errors import UnsupportedError
from cpsched.formats import checked
from cpsched.lab.sim import arrays, kernels
from cpsched.lab.sim.arrays import C, R
from cpsched.lab.sim.checkpoint import Checkpoint, Keeper
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.rule_choice import RuleChoice, RuleUse, is_plain, play_choice, play_rule
from cpsched.lab.sim.rules import BackfillRule, Order, Prediction, QueueRule
from cpsched.lab.sim.scheduler import Preparing, Scheduler
from cpsched.lab.sim.scheduler_loop import play_scheduler
from cpsched.lab.sim.world import SimWorld
from cpsched.metrics import Runs, RunsSummary, SimulatedRun, score_of
from cpsched.problem import stated_node
from cpsched.rusv import interpret

#: How long it takes to load compiled kernels, and to compile them (s of processor time): Python interprets as long.
_LOADING, _COMPILING = 1.5, 20.0


def unkept(instance: Instance, scheduler: QueueRule | Scheduler) -> tuple[str, ...]:
    """Return the parts of a workload that a scheduler does not keep, each in words; empty: it keeps all.

    Planners of rolling windows (`Rolling`) keep a hard ``max_wait`` as long as a plan can, serve strict priorities
    class by class, and weigh promised starts. All others know none of these, but for the rules in Smith's order: there
    jobs with a hard ``max_wait`` come first, though they may be late. Shares count where weights do, and in Slurm's
    priorities where these have a weight for it.
    """
    if isinstance(scheduler, RuleChoice):
        scheduler = scheduler.rules[0] if is_plain(instance) else scheduler.otherwise
    resizable = sum(len(job.element_ids) for job in instance.jobs if job.resizable is not None)
    is_resizing, found = getattr(scheduler, "resizes", False), list[str]()
    if resizable and not is_resizing:
        found.append(f"resizable jobs ({_jobs(resizable)}), which have one size from start to end")
    others = _prepared(instance, scheduler).jobs
    if stopped := sum(job.preemptible != other.preemptible for job, other in zip(instance.jobs, others, strict=True)):
        found.append(f"preemptible ({_jobs(stopped)}): its preempt_mode says what may be stopped how")
    if getattr(scheduler, "plans_windows", False):
        return tuple(found)
    bound = {name for name, queue in instance.queues.items() if queue.max_wait is not None and queue.max_wait.is_hard}
    hard = Counter(job.queue for job in instance.jobs if job.queue in bound and job.running is None)
    for queue, count in hard.items():
        is_first = isinstance(scheduler, QueueRule) and scheduler.order is Order.SMITH
        how = "whose jobs come first, but may start later" if is_first else "which is ignored"
        found.append(f"the hard max_wait of the queue {queue} ({_jobs(count)}), {how}")
    if instance.has_strict_priorities and len(set(priority_classes(instance).values())) > 1:
        found.append("strict priorities: jobs of lower classes may delay those of higher ones")
    is_smith = isinstance(scheduler, QueueRule) and scheduler.order in (Order.SMITH, Order.WSPT)
    if instance.fair_share is not None and not (is_smith or getattr(scheduler, "reads_shares", False)):
        found.append("fair_share, which it does not weigh")
    choosing = sum(len(job.element_ids) for job in instance.jobs if job.alternatives)
    if choosing and not isinstance(scheduler, QueueRule) and not is_resizing:
        found.append(f"alternatives ({_jobs(choosing)}): what it does not start by a draft runs by its own request")
    promised = sum(job.told is not None for job in instance.jobs)
    if promised:
        found.append(f"promised starts ({_jobs(promised)}), which it does not weigh")
    return tuple(found)


def _prepared(instance: Instance, scheduler: QueueRule | Scheduler) -> Instance:
    """Return a workload with the stops of a scheduler that has its own; the same object of any other one."""
    return scheduler.prepared(instance) if isinstance(scheduler, Preparing) else instance


def _jobs(count: int) -> str:
    return f"{count:,} job{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How far a simulation is."""

    #: The simulated second, and how many jobs have ended, of how many.
    now: int
    done: int
    jobs: int
    #: The number of waiting jobs.
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AsEasy:
    """Jobs started as under EASY for so many seconds in all, the first time from one second on, the last time until
    another one.
    """

    since: int
    until: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class History:
    """The history of a simulation."""

    scheduler: str
    runs: Runs
    #: Seconds of each decision; for a compiled rule, the means of some thousand passes.
    decision_seconds: NDArray[np.float64]
    #: Seconds that the simulation took, and whether it was not interrupted.
    elapsed: float
    is_whole: bool
    #: The scheduler's counters, see `Scheduler`.
    counters: Mapping[str, int]
    #: Of a choice of rules: which one was used from when on.
    rules: Sequence[RuleUse]
    _world: SimWorld

    @property
    def as_easy(self) -> AsEasy | None:
        """When a rule that had lost against EASY started jobs as under it; None: never."""
        clock, ends = self._world.state.clock, self._world.state.runs[:, R.END]
        since, noted, seconds = clock[[C.EASY_FROM, C.EASY_UNTIL, C.EASY_SECONDS]].tolist()
        if since < 0:
            return None
        # the last events may be deadlines of jobs that have ended
        until = max(noted, min(self._world.now, int(ends.max()))) if clock[C.AS_EASY] else noted
        return AsEasy(since=since, until=until, seconds=seconds + until - noted)

    def remarks(self) -> Iterator[str]:
        """Yield for each rule that a choice has used when, and why, and when jobs started as under EASY."""
        uses, easy, begin = self.rules, self.as_easy, self._world.load.stated.now
        for number, use in enumerate(uses):
            why = "no rule wins on the jobs so far" if number else "the usual rule"
            if use.jobs:
                share = f"{use.ratio:.2f} of the weighted queue time of {uses[0].rule}"
                why = f"won on the last {use.jobs:,} jobs, with {share}"
            yield f"{use.rule} from day {(use.since - begin) / 86_400:.1f} on: {why}"
        if easy is not None:
            days, since, until = easy.seconds / 86_400, (easy.since - begin) / 86_400, (easy.until - begin) / 86_400
            yield f"as easy on {days:.1f} days, between day {since:.1f} and day {until:.1f}: it had lost against it"

    @property
    def workload(self) -> Instance:
        """The workload that was played: with feedback, jobs that followed others have the times of their submission."""
        load, runs = self._world.load, self.runs
        followed = {load.jobs[index].id for index in np.flatnonzero(load.follows).tolist()}
        times = {name: submit for name, submit in zip(runs.ids, runs.submit.tolist(), strict=True) if name in followed}
        jobs = (replace(job, submit=times.get(job.element_ids[0], job.submit)) for job in load.stated.jobs)
        return replace(load.stated, jobs=tuple(jobs)) if times else load.stated

    def record(self) -> Plan:
        """Return the history as a plan document that `cpsched verify` can check against the workload."""
        from importlib.metadata import version

        world, load, instance = self._world, self._world.load, self.workload
        ended = {run[0]: self._run(*run) for run in world.placements()}
        jobs, waiting = [], []
        for job in np.argsort(load.places, kind="stable").tolist():
            if job in ended:
                jobs.append(ended[job])
            elif job in load.refused:
                reason, detail = load.refused[job]
                is_shrinkable = load.jobs[job].malleability is not None
                if reason is WaitingReason.NOT_MAPPED or is_shrinkable or not load.problem.has_all_plans:
                    # another mapping, a share of its cores, or what the rules allow beyond it might fit
                    reason = WaitingReason.NOT_STARTED
                waiting.append(WaitingJob(id=load.jobs[job].id, reason=reason, detail=detail))
            else:
                waiting.append(self._left_over(job))
        jobs = list(load.problem.to_stated(jobs))
        return Plan(
            instance=instance.name,
            now=instance.now,
            objective=score_of(instance, jobs, is_record=True),
            engine=EngineReport(
                name=self.scheduler,
                version=version("cpsched"),
                budget=0,
                elapsed=round(self.elapsed, 3),
                stopped="done",
            ),
            jobs=tuple(jobs),
            waiting_room=load.problem.reasons(waiting),
            record=True,
            attempts=load.problem.to_stated([self._run(*attempt) for attempt in world.attempts()]),
            reservations=load.slices,
        )

    def summary(self, *, warm_up: float = 0.0, cool_down: float = 0.0) -> RunsSummary:
        """Return the figures: waits, slowdowns, fairness, use; a machine without cores has no utilisation.

        `warm_up`, `cool_down`: shares of the jobs, first and last in the order of submission, that do not count.
        """
        return self.as_run(self.scheduler).summary(warm_up=warm_up, cool_down=cool_down)

    def as_run(self, policy: str) -> SimulatedRun:
        """Return the history as reports read it; `policy`: the scheduler with its parameters."""
        stated = self._world.load.stated
        return SimulatedRun(
            workload=stated.name,
            policy=policy,
            capacity=stated.cluster.capacity,
            runs=self.runs,
            decision_seconds=self.decision_seconds,
            elapsed=self.elapsed,
            is_whole=self.is_whole,
            epoch=stated.epoch,
            time_zone=stated.time_zone,
            remarks=tuple(self.remarks()),
        )

    def __repr__(self) -> str:
        return f"<History under {self.scheduler!r}: {len(self.runs)} jobs, {int(self.runs.over.sum())} of them over>"

    def _left_over(self, index: int) -> WaitingJob:
        """Return a job that could start, and has not been started, as a plan has it."""
        load, runs = self._world.load, self._world.state.runs
        job, latest = load.jobs[index], int(load.latest[index])
        if runs[index, R.ENDING] != arrays.REFUSED:
            detail = "it had not been started when the simulation ended"
            return WaitingJob(id=job.id, reason=WaitingReason.NOT_STARTED, detail=detail)
        # after the last end nothing is in its way but the order of the queue, which is no reason that can be checked
        is_late = latest < runs[runs[:, R.ENDING] >= arrays.COMPLETED, R.END].max(initial=load.now)
        detail = f"it could not be started by {latest}, when it had to start"
        stated = load.stated_jobs[index]
        is_bound = stated.deadline is not None or stated.start_at is not None or stated.reservation is not None
        reason = WaitingReason.TOO_LATE if is_late and is_bound else WaitingReason.NOT_STARTED
        return WaitingJob(id=job.id, reason=reason, detail=detail)

    def _run(self, index: int, start: int, end: int, entries: NDArray[np.int32], choice: int) -> PlannedJob:
        job = self._world.load.jobs[index]
        segments = self._world.segments(index, start, end, entries, choice)
        first = self._world.choice_of(index, start, choice)
        return PlannedJob(id=job.id, start=start, end=end, segments=segments, alternative=first)

    def allocations(self) -> list[str]:
        """Return the nodes of each job of `runs`, as ranges of their numbers in the cluster: ``0-3 7``."""
        world, load = self._world, self._world.load
        number = {name: index for index, name in enumerate(load.stated.cluster.node_names)}
        stated = map(stated_node, load.columns.node_names)
        by_filling = np.array([number[name] for name in stated], dtype=np.int64)
        found = [""] * len(load.jobs)
        for job, _, _, entries, _ in world.placements():
            nodes = by_filling[entries[:, 0]].tolist()
            running = load.jobs[job].running
            if running is not None and not nodes:
                nodes = [number[stated_node(held.node)] for held in running.segments[-1].allocation]
            found[int(load.places[job])] = _ranges(sorted(set(nodes)))
        if len(self.runs) == len(found):
            return found
        there = set(self.runs.ids)
        order = np.argsort(load.places, kind="stable").tolist()
        return [nodes for nodes, index in zip(found, order, strict=True) if load.jobs[index].id in there]


def _check_evolving(world: SimWorld, scheduler: QueueRule | Scheduler, *, is_charged: bool, is_kept: bool) -> None:
    """Refuse to simulate evolving jobs where their steps cannot begin as they were promised."""
    beside = {
        f"under {scheduler.name}, which starts rigid jobs": not getattr(scheduler, "starts_evolving", False),
        "with nodes that fail (outages)": world.load.instance.outages and not getattr(scheduler, "moves_steps", False),
        "with decisions that take time": is_charged,
        "with a checkpoint": is_kept,
    }
    features = [
        f"job {job.id}: evolves over several steps, {what}"
        for job in world.load.evolving.values()
        for what, is_so in beside.items()
        if is_so
    ]
    if features:
        raise UnsupportedError("simulation", features)


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as ranges with blanks between them."""
    firsts = [number for before, number in zip([-2, *numbers], numbers, strict=False) if number != before + 1]
    lasts = [number for number, after in zip(numbers, [*numbers[1:], -2], strict=False) if after != number + 1]
    return " ".join(str(one) if one == other else f"{one}-{other}" for one, other in zip(firsts, lasts, strict=True))


class Interrupted(KeyboardInterrupt):
    """A user has interrupted a simulation."""

    def __init__(self, history: History) -> None:
        super().__init__()
        #: What was simulated: the jobs submitted by then. Running ones hold their cores up to then, and are not over.
        self.history = history


@at_the_door
def simulate(
    instance: Instance,
    scheduler: QueueRule | Scheduler,
    *,
    predict: Prediction | None = None,
    charge_overhead: bool = False,
    feedback: bool = False,
    progress: Callable[[Moment], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> History:
    """Simulate a workload under a scheduler, from the instance's `now` until the last event.

    Each job comes at its submission and really runs for the lesser of its runtime and its walltime.

    Parameters
    ----------
    instance
        The workload: a machine, jobs that wait or run, and outages.
    scheduler
        A queue rule, which is compiled, or a scheduler that is called after each event.
    predict
        The use of predicted runtimes: the mean of the last two jobs of the same user. If reservations follow
        predictions, a prediction is raised when the job runs longer. None: no predictions, jobs are expected to take
        their walltimes.
    charge_overhead
        Decisions take effect only after the (whole) seconds that they take. The passes of queue rules take
        microseconds, and count as 0.
    feedback
        Jobs with dependencies are submitted when these release them. False: they have waited since their `submit`.
    progress
        Called repeatedly.
    checkpoint
        The file for the state, which is written at intervals and when the user interrupts, and whether the simulation
        is resumed from it. A queue rule then continues exactly as without the interruption; other schedulers begin
        anew, with the jobs that run and wait by then.

    Raises
    ------
    UnsupportedError
        If the workload asks for something that no simulation can honour yet.
    EngineError
        If the scheduler starts a job where there is no room.
    ValueError
        If a queue rule has a key that returns no number.
    DocumentError
        If the instance was built in Python and is not in order.
        If the checkpoint cannot be written, or read, or is one of something else.
    Interrupted
        If the user interrupts.
    """
    instance = replace(checked(instance), set_aside=instance.set_aside)
    prepared = _prepared(instance, scheduler)
    if stops_small := prepared is not instance:
        instance = checked(prepared)
    began, loaded = time.perf_counter(), time.process_time() + _LOADING
    world = SimWorld(Load(instance, feedback=feedback, stops_small=stops_small))
    if isinstance(scheduler, QueueRule) and scheduler.key is not None:
        world.order_by(scheduler.key)
    if world.load.evolving:
        _check_evolving(world, scheduler, is_charged=charge_overhead, is_kept=checkpoint is not None)
    beside = {
        "fair_share: usage that decays, with a checkpoint": instance.fair_share is not None,
        "feedback, with a checkpoint": feedback,
        "preemptible jobs, with a checkpoint of the simulation": len(world.load.stops) > 0,
        "resizable jobs, with a checkpoint of the simulation": world.load.resizable.any(),
    }
    if checkpoint is not None and any(beside.values()):
        raise UnsupportedError("simulation", [what for what, is_so in beside.items() if is_so])
    count, seconds, uses = len(world.load.jobs), list[float](), list[RuleUse]()
    keeper = None if checkpoint is None else Keeper(checkpoint, world, seconds)

    is_at_rest = False

    def look() -> None:
        nonlocal is_at_rest
        is_at_rest = True
        late = time.process_time() - loaded
        if interpret() and late > 0 and (late > _COMPILING or kernels.advance.is_kept):  # type: ignore[attr-defined]  # of a kernel
            interpret(wanted=False)
            warm_up_simulation()
        if progress is not None:
            progress(Moment(now=world.now, done=world.num_done, jobs=count, queued=world.num_waiting))
        if keeper is not None:
            keeper.look()
        is_at_rest = False

    def history(*, is_whole: bool) -> History:
        return History(
            scheduler=scheduler.name,
            runs=world.runs() if is_whole else world.runs().until(world.now),
            decision_seconds=np.array(seconds, dtype=np.float64),
            elapsed=time.perf_counter() - began if keeper is None else keeper.elapsed,
            is_whole=is_whole,
            counters=getattr(scheduler, "counters", {}),
            rules=tuple(uses),
            _world=world,
        )

    if predict is Prediction.ALL and (len(world.load.asides["aside_times"]) or world.load.choices):
        predict = Prediction.ORDER  # no job may run into what is set aside: ends are those of the walltimes
    try:
        if isinstance(scheduler, QueueRule):
            play_rule(world, scheduler, seconds, predicts=predict, look=look)
        elif isinstance(scheduler, RuleChoice) and is_plain(instance):
            play_choice(world, scheduler, seconds, uses, look=look)
        else:
            play_scheduler(world, scheduler, seconds, predicts=predict, charges=charge_overhead, look=look)
    except KeyboardInterrupt:
        if interpret() and not is_at_rest:
            raise  # in the middle of a pass: jobs may be started by half
        if keeper is not None:
            keeper.write()
        raise Interrupted(history(is_whole=False)) from None
    return history(is_whole=True)


def warm_up_simulation() -> None:
    """Compile the kernels of queue rules, or load them: what is timed afterwards is the simulation alone."""
    from cpsched.planner import warmup_window

    simulate(warmup_window(), QueueRule(name="warm-up", backfill=BackfillRule.NOT_DELAYING, order=Order.WFP3))
