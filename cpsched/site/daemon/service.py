"""The daemon: a thin shell around the core, which asks the manager, the planner, the verifier and the store."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cpsched.domain import Job, Plan
from cpsched.errors import BridgeError, CpschedError, StoreError
from cpsched.forecast import Kind, RuntimeLearner, warm_up_forecasts
from cpsched.gc_pauses import collected, uncollected
from cpsched.site.bridge import (
    Gate,
    Hold,
    Note,
    Order,
    Receipt,
    Refusal,
    Requeue,
    ResourceManager,
    Result,
    Snapshot,
    Start,
)
from cpsched.site.daemon.choosing import Choices, Chooser
from cpsched.site.daemon.core import step
from cpsched.site.daemon.forecasting import Forecaster
from cpsched.site.daemon.heartbeat import beat, hand_back
from cpsched.site.daemon.journal import Doings, Journal
from cpsched.site.daemon.judging import vetoes
from cpsched.site.daemon.logs import Log
from cpsched.site.daemon.metrics import Metrics
from cpsched.site.daemon.orders import start_order
from cpsched.site.daemon.planning import Made, Planner, plan_of_state
from cpsched.site.daemon.state import (
    LEARNT_FROM,
    Answered,
    CycleOver,
    EngineChosen,
    Event,
    Foretold,
    JobOver,
    JobStarted,
    Planned,
    Policy,
    Reloaded,
    Save,
    Seen,
    State,
    Stopping,
    Unplanned,
    Vetoed,
)
from cpsched.site.daemon.store import Store
from cpsched.site.daemon.window import Told, planning_window

#: Seconds of a cycle's budget that are kept for what comes after planning, at least; how much of what it is expected
#: to take; and how much of that is still expected when it took less.
_RESERVE, _MARGIN, _FADING = 0.05, 1.5, 0.8
#: The part of the budget that planning has at least, after the look at the manager.
_LEAST_SHARE = 0.25
#: Jobs that ended lately from which a daemon that begins learns how long jobs run.
_LEARNT = 20_000
#: Forecasts that were told last, by which a daemon that begins calibrates the next ones.
_FORECASTS = 2_000
#: Tries to hand back at the end, and jobs that are named of those that could not be.
_LAST_TRIES = 3
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the shell."""

    policy: Policy
    #: Seconds of a cycle in which a plan is made, everything included; 0: plans are only kept up to date.
    budget: float = 10.0
    #: The most and the fewest seconds between the beginnings of two cycles.
    period: float = 30.0
    least: float = 1.0
    #: The price of told starts in the objective.
    price: float = 1.0
    keep_days: int = 30
    #: Seconds between two snapshots that are kept; 0: none is kept.
    snapshot_every: int = 3600
    #: Seconds between two forecasts of starts, at least; 0: none is made.
    forecast_every: int = 0
    heartbeat: Path | None = None
    metrics_file: Path | None = None
    #: The manager's seconds per second; 0: its time stands still except when it is watched.
    rate: float = 1.0
    #: The engines of which one is chosen once a day; None: the planner's stays.
    choices: Choices | None = None


class Daemon:
    """Plans a cluster, cycle by cycle. Mutable.

    `manager`: the resource manager. `store`: where the plan and the history are kept. `planner`: what makes plans.
    `settings`: as the site wants them. `log`, `metrics`: where it says what it does. `clock`: returns seconds; replaced
    in tests.
    """

    def __init__(
        self,
        manager: ResourceManager,
        store: Store,
        planner: Planner,
        settings: Settings,
        *,
        log: Log,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.manager, self.store, self.planner, self.settings = manager, store, planner, settings
        self.log, self.metrics, self._clock = log, metrics or Metrics(), clock
        self._learner = RuntimeLearner()
        self._forecaster = Forecaster(self._learner, clock=clock)
        self.journal = Journal(store, log, self.metrics, self._forecaster)
        self._chooser = Chooser(log, self.metrics)
        self.state = State(policy=settings.policy)
        #: Set by signals.
        self.must_stop = False
        self.reread: Callable[[], tuple[Settings, Planner] | None] | None = None
        #: Called when it is closed.
        self.at_the_end: list[Callable[[], None]] = []
        self._must_reread = False
        self._unsaved = Save()
        self._told: Told = {}
        #: The jobs of the snapshot before, by id; made where it is needed.
        self._jobs_before: dict[str, Job] | None = None
        self._before: Snapshot | None = None
        #: When the last snapshot was taken.
        self._looked = -math.inf
        self._again = ""
        #: Of the last cycle.
        self.num_orders = 0
        self._last_made: Made | None = None
        self._last_plan: Plan | None = None
        #: Seconds that a cycle took beyond those that planning was given.
        self._after_planning = 0.0
        #: When planning was to be over.
        self._to_be_planned: float | None = None
        self._next_improvement = 0.0
        #: Whether this cycle has no plan, or orders that cpsched may not give.
        self._is_bad = False
        #: Whether the cycle before was good: then the heart beats in this one too, however long it takes. In the first
        #: one, for which that is None, it beats when orders are given.
        self._was_good: bool | None = None
        #: Whether another daemon has the cluster.
        self._is_superseded = False

    # --- the life of a daemon ---

    def begin(self) -> None:
        """Take up the plan of the daemon before, if there was one.

        Raises `StoreError` if the store cannot be read, or another daemon has it.
        """
        self.store.lock()
        kept = self.store.load()
        self.state = replace(self.state, plan=kept.plan, promises=kept.promises, unfinished=kept.unfinished)
        self._forecaster.learn(self.store.ended(_LEARNT))
        self._forecaster.begin(self.store.forecasts(_FORECASTS))
        if (chosen := self.store.last(EngineChosen)) is not None:
            self._chooser.begin(chosen.content, chosen.at)
        if kept.unanswered:
            self.store.forget_unanswered()
            self.log.warning("orders of the daemon before have no answer: the manager is asked", orders=kept.unanswered)
        self.metrics.is_dry_run.set(self.settings.policy.is_dry_run)
        self.log.info(
            "begun", dry_run=self.settings.policy.is_dry_run, planned=len(kept.plan), manager=self.manager.name
        )
        self._use_engine()

    def run(self) -> bool:
        """Work until told to stop; then hand everything back, and tell whether that went well."""
        self.log.info("preparing: a first start compiles, which takes half a minute or so")
        self.planner.engine.prepare()
        if self.settings.forecast_every:
            warm_up_forecasts()
        while not self.must_stop:
            self.reload()
            began = self._clock()
            self.cycle()
            self.choose()
            self._wait(began)
        return self.stop()

    def stop(self) -> bool:
        """Hand everything back, so that the manager goes on by itself; tell whether nothing is left."""
        is_done = False
        if not self._is_superseded:  # another daemon has the cluster
            self._take(Stopping())
            is_done = any(self._hands_back() for _ in range(_LAST_TRIES))
        if not (is_done or self._is_superseded):
            self.log.error("could not hand everything back: use cpsched daemon --hand-back")
        self.log.info("ended")
        return is_done

    def _hands_back(self) -> bool:
        """Hand everything back, also what could not be written down, and tell whether nothing is left."""
        if self.settings.policy.is_dry_run:  # it has steered nothing
            return True
        try:
            left = hand_back(self.manager).left
        except BridgeError as error:
            self.journal.failed("manager", error)
            return False
        if left:
            self.log.error("still steered", jobs=left[:_MOST_NAMED], count=len(left))
        return not left

    def close(self) -> None:
        """Give back what it holds of the system."""
        self._chooser.end()
        self.store.close()
        for each in self.at_the_end:
            each()

    def read_again(self) -> None:
        """Read the configuration before the next cycle."""
        self._must_reread = True

    def reload(self) -> None:
        """Read the configuration if that is asked for, and use what can change while the daemon runs."""
        if not self._must_reread:
            return
        self._must_reread = False
        found = self.reread() if self.reread is not None else None
        if found is None:
            return
        self.settings, self.planner = found
        self._chooser.end()
        self._use_engine()
        self.planner.engine.prepare()
        self.metrics.is_dry_run.set(self.settings.policy.is_dry_run)
        self._take(Reloaded(policy=self.settings.policy))
        self.log.info("configuration read again", dry_run=self.settings.policy.is_dry_run)

    def choose(self) -> None:
        """Choose an engine by the store's past, once a day; this takes no time, as another process finds it out."""
        if self.settings.choices is None or self.state.snapshot is None:
            return
        chosen = self._chooser.renew(self.settings.choices, self.state.now)
        if chosen is not None:
            self._save(Save(records=(chosen,)))
            self._use_engine()

    def _use_engine(self) -> None:
        """Plan with the engine that was chosen last."""
        engine = self.planner.engine
        if self.settings.choices is not None and (name := self._chooser.engine(self.settings.choices)) != engine.name:
            self.planner.engine = engine = replace(engine, name=name)
            self.log.warning("another engine plans", engine=name, usual=self.settings.choices.engines[0])
        self.metrics.engine.clear()
        self.metrics.engine.labels(engine.name).set(1)

    def _wait(self, began: float) -> None:
        """Wait for the next cycle: for a change, the next start to be ordered, or the end of the period."""
        settings = self.settings
        end = began + (settings.least if self._again else settings.period)
        if settings.rate > 0:
            horizon, snapshot = settings.policy.horizon, self.state.snapshot
            orders = [one.start - horizon for one in self.state.plan.values()]
            if snapshot is not None:
                orders += [one.stop_at(snapshot) for one in self.state.plan.values() if one.stops]
            due = min((at for at in orders if at > self.state.now), default=None)
            if due is not None:
                end = min(end, began + (due - self.state.now) / settings.rate)
        else:
            self.manager.watch(settings.least if self._again else settings.period)
            return
        least = began + settings.least
        has_changed = False
        while not (self.must_stop or self._must_reread):
            left = (least if has_changed else max(least, end)) - self._clock()
            if left <= 0:
                return
            try:
                if has_changed:
                    time.sleep(min(left, 1.0))
                else:
                    has_changed = self.manager.watch(min(left, 1.0))
            except BridgeError as error:
                self.journal.failed("manager", error)
                time.sleep(min(left, 1.0))

    # --- one cycle ---

    @uncollected()
    def cycle(self) -> bool:
        """Ask the manager what is true, plan where that is needed, give orders; tell whether all of it went well."""
        began, self.journal.has_failed, self.num_orders, self._last_made = self._clock(), False, 0, None
        self._again, self._to_be_planned, self._is_bad = "", None, False
        if self._look():
            # before the first plan nothing is known but what a look takes
            self._after_planning = self._after_planning or 2.0 * (self._clock() - began)
            why = self._again
            is_due = self._clock() >= self._next_improvement and any(
                job.running is None for job in self._snapshot.instance.jobs
            )
            if why:
                self._plan(why, began, is_quick=True)
            self.journal.keep(self._snapshot, keep_days=self.settings.keep_days, every=self.settings.snapshot_every)
            if self.settings.forecast_every:
                self._forecast()
            if why or is_due:
                self._plan(why or "the period is over", began, is_quick=False)
            self._count_bad()
        is_good = self._was_good = self._note(began)
        late = 0.0 if self._to_be_planned is None else max(0.0, self._clock() - self._to_be_planned)
        self._after_planning = max(late, _FADING * self._after_planning)
        return is_good

    def _look(self) -> bool:
        """Take a snapshot and do what follows from it; tell whether the manager answered."""
        try:
            snapshot = self.manager.snapshot()
        except BridgeError as error:
            self.journal.failed("manager", error)
            return False
        self._beat()
        if snapshot.rival and not self.settings.policy.is_dry_run:
            self.must_stop = self._is_superseded = True
            self.journal.failed("rival", CpschedError(f"another cpsched steers these jobs: {snapshot.rival}"))
            return False
        self._before, self._snapshot, self._jobs_before = self.state.snapshot, snapshot, None
        self._looked = self._clock()
        self.journal.tell(snapshot)
        self._take(Seen(snapshot=snapshot))
        return True

    def _plan(self, why: str, began: float, *, is_quick: bool) -> None:
        """Make a plan and do what follows from it.

        A quick one is the plan brought up to date, for what can start at once. The other one is for the second at which
        it will be there, and takes the rest of the cycle's budget.
        """
        settings = self.settings
        end = began + settings.budget - max(_RESERVE, _MARGIN * self._after_planning)
        # a manager that answers slowly makes cycles longer, and not plans worse
        end = max(end, self._looked + _LEAST_SHARE * settings.budget)
        can_improve = end > self._clock() and self.planner.engine.budget > 0
        if not (is_quick or can_improve):
            return
        lead = 0 if is_quick else math.ceil(settings.rate * max(0.0, settings.budget - (self._looked - began)))
        try:
            window = planning_window(
                self.state, lead=lead, price=settings.price, told=self._told, learner=self._learner
            )
        except CpschedError as error:
            self._unplanned(error)
            return
        previous = plan_of_state(self.state, window.instance)
        if is_quick:
            made = self.planner.follow(window.instance, previous, why)
        else:
            with collected():
                made = self.planner.improve(window.instance, previous, why, seconds=end - self._clock())
            self._next_improvement = self._clock() + settings.period
            # what is done with time to spare, and is over early, leaves more for what follows
            self._to_be_planned = min(end, self._clock())
        self._beat()
        if made is None:
            self._unplanned(CpschedError("no plan could be made"))
            return
        self._last_made, self._last_plan = made, made.plan
        self.metrics.fallbacks.inc(len(made.failures))
        is_told = not (is_quick and can_improve)
        self._take(Planned(plan=made.plan, revisions=window.revisions, why=made.why, is_told=is_told))
        self._again = ""
        self._look()

    def _forecast(self) -> None:
        """Forecast when waiting jobs will start, if it is time to."""
        try:
            kept = self._forecaster.renew(self._snapshot.instance, self.state.plan, every=self.settings.forecast_every)
            if kept:
                self.store.add_forecasts(kept)
            if kept is not None and self.settings.policy.is_noting:
                told = self._forecaster.told.values()
                self._take(
                    Foretold(forecasts={one.job: (one.likely, one.by) for one in told if one.likely is not None})
                )
        except StoreError as error:
            self.journal.failed("store", error)
        except Exception as error:  # whatever is wrong with a forecast, the cluster is planned
            self.log.error("no forecast", error=str(error) or type(error).__name__)

    def _unplanned(self, error: Exception) -> None:
        self._is_bad = True
        self.journal.failed("planning", error)
        self._take(Unplanned())

    def _count_bad(self) -> None:
        """Count this cycle if it was bad; after too many everything is handed back, and is said loudly."""
        before = self.state.gave_up_at
        self._take(CycleOver(is_bad=self._is_bad))
        since = self.state.gave_up_at
        if since is not None and before is None:
            self.log.error("gave up: everything is handed back", bad_cycles=self.state.num_bad)
        elif since is None and before is not None:
            self.log.warning("begins to steer again")
        self.journal.has_failed |= since is not None
        self.metrics.gave_up.set(since is not None)

    def _beat(self) -> None:
        """Touch the file of the heartbeat where the last cycle was good; amid a cycle too, which may be long."""
        if self._was_good and self.settings.heartbeat is not None:
            try:
                beat(self.settings.heartbeat)
            except OSError as error:
                self.journal.failed("metrics", error)

    # --- what the core wants done ---

    def _take(self, event: Event) -> None:
        """Give an event to the core, and do what it says."""
        self.state, save, orders = step(self.state, event)
        self._again = self.state.stale
        if not save.is_empty:
            self._save(save)
        if orders:
            self._act(orders)

    def _save(self, save: Save) -> None:
        """Write down what has changed, with what could not be written before."""
        started = {one.job: one.at for one in save.records if isinstance(one, JobStarted)}
        over = [one for one in save.records if isinstance(one, JobOver)]
        self._settle({one.job: one.start for one in over} | started)
        for record in save.records:
            if isinstance(record, JobOver):
                self._learn(record)
            self.journal.tell_record(record)
        self._unsaved = Save(
            plan={**self._unsaved.plan, **save.plan},
            promises={**self._unsaved.promises, **save.promises},
            records=(*self._unsaved.records, *save.records),
        )
        self._write()

    def _settle(self, starts: Mapping[str, int | None]) -> None:
        """Note what became of forecasts; None: the job never starts."""
        if not (starts and self.settings.forecast_every):
            return
        for job, start in starts.items():
            self._forecaster.started(job, start)
        try:
            self.store.settle_forecasts(starts)
        except StoreError as error:
            self.journal.failed("store", error)

    def _learn(self, over: JobOver) -> None:
        """Learn from a job that has ended how long such jobs run."""
        if self._jobs_before is None:
            self._jobs_before = {} if self._before is None else {job.id: job for job in self._before.instance.jobs}
        job = self._jobs_before.get(over.job)
        kind = None if job is None else Kind.of(job)
        if kind is not None and over.start is not None and over.end is not None and over.state in LEARNT_FROM:
            self._forecaster.learn([(kind, over.end - over.start)])
            self._forecaster.ended(over.job, over.end - over.start)

    def _write(self) -> bool:
        """Write what is not written yet, and tell whether nothing is left."""
        if not self._unsaved.is_empty:
            try:
                self.store.save(self._unsaved, self.state.now)
            except StoreError as error:
                self.journal.failed("store", error)
                return False
            self._unsaved = Save()
        return True

    def _act(self, orders: Sequence[Order]) -> None:
        """Give orders that the verifier has passed: written down before, marked after."""
        if not self._write():
            return
        orders = self._judged(orders)
        if not orders:
            return
        try:
            kept = [order for order in orders if not self._is_renewal(order)]
            numbers = self.store.begin(kept, self.state.now)
        except StoreError as error:
            self.journal.failed("store", error)
            return
        if self._was_good is None and not all(isinstance(one, Gate) for one in orders):
            self._was_good = not (self._is_bad or self.journal.has_failed)
        self._beat()
        try:
            receipts = self.manager.apply(orders)
        except BridgeError as error:
            self.journal.failed("manager", error)
            receipts = tuple(Receipt(order=one, result=Result.UNKNOWN, detail=str(error)) for one in orders)
        self._beat()
        try:
            self.store.mark(numbers, [one for one in receipts if not self._is_renewal(one.order)])
        except StoreError as error:
            self.journal.failed("store", error)
        self.num_orders += len(orders)
        for receipt in receipts:
            self.metrics.orders.labels(type(receipt.order).__name__, str(receipt.result)).inc()
            if receipt.result in (Result.REFUSED, Result.UNKNOWN):
                job = getattr(receipt.order, "job", None)
                kind, refusal = type(receipt.order).__name__, receipt.refusal and str(receipt.refusal)
                self.log.warning("order not carried out", kind=kind, job=job, refusal=refusal, detail=receipt.detail)
        if refused := [one for one in receipts if _is_forbidden(one)] or _nothing_done(receipts):
            self._is_bad = True
            said = refused[0].detail or str(refused[0].refusal)
            self.journal.failed(
                "refused", CpschedError(f"{len(refused)} orders may not be given, or do nothing: {said}")
            )
        self._take(Answered(receipts=receipts))

    def _is_renewal(self, order: Order) -> bool:
        """Tell whether an order only holds a job for longer, or notes a forecast: the history has no need of it."""
        if isinstance(order, Note):
            return True
        facts = self._snapshot.jobs.get(order.job) if isinstance(order, Hold) else None
        return facts is not None and facts.is_steered and facts.due is None

    def _judged(self, orders: Sequence[Order]) -> tuple[Order, ...]:
        """Return the orders without the starts that the verifier refuses, and without the stops for them."""
        snapshot, plan = self._snapshot, self.state.plan
        stops = {order.job: order for order in orders if isinstance(order, Requeue)}
        starts = [order for order in orders if isinstance(order, Start)]
        starts += [start_order(plan[job]) for job in dict.fromkeys(stop.urgent for stop in stops.values())]
        if not starts:
            return tuple(orders)
        asked, jobs = {start.job for start in starts}, snapshot.jobs
        leaving = {one.job for entry in plan.values() if entry.stops for one in entry.in_the_way(jobs)} - stops.keys()
        if leaving:
            others = tuple(job for job in snapshot.instance.jobs if job.running is None or job.id not in leaving)
            snapshot = replace(snapshot, instance=replace(snapshot.instance, jobs=others))
        ordered = [
            entry.planned
            for job, entry in plan.items()
            if job not in asked and job in jobs and jobs[job].due == entry.start
        ]
        try:
            refused = vetoes(snapshot, starts, ordered, tuple(stops.values()))
        except CpschedError as error:
            self.journal.failed("verifier", error)
            refused = dict.fromkeys(asked, f"it could not be judged: {error}")
        if refused:
            self.metrics.vetoes.inc(len(refused))
            for job, violation in refused.items():
                self.log.warning("start refused by the verifier", job=job, violation=violation)
            self._take(Vetoed(jobs=refused))
        kept = (one for one in orders if not (isinstance(one, Start) and one.job in refused))
        return tuple(one for one in kept if not (isinstance(one, Requeue) and one.urgent in refused))

    def _note(self, began: float) -> bool:
        """Note the figures of a cycle, and let the heart beat if it was good; tell whether it was."""
        settings = self.settings
        cycle = Doings(
            self.state,
            self._last_plan,
            self._last_made,
            self.num_orders,
            self._clock() - began,
            is_forecasting=settings.forecast_every > 0,
            choice=None if settings.choices is None else self._chooser.held(settings.choices),
        )
        self._was_good = self.journal.note(cycle, budget=settings.budget, file=settings.metrics_file)
        self._beat()
        return not self.journal.has_failed


def _is_forbidden(receipt: Receipt) -> bool:
    """Tell whether cpsched may not give an order, whatever job it is about."""
    if isinstance(receipt.order, Note):  # the plan can do without
        return False
    is_gate = isinstance(receipt.order, Gate) and receipt.refusal is not Refusal.UNSUPPORTED
    return receipt.result is Result.REFUSED and (receipt.refusal is Refusal.FORBIDDEN or is_gate)


def _nothing_done(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Return all receipts where no order did anything, for reasons that are not those of its job."""
    receipts = [one for one in receipts if not isinstance(one.order, Note)]
    is_so = all(one.result is Result.UNKNOWN or one.refusal in (Refusal.OTHER, Refusal.UNSUPPORTED) for one in receipts)
    return receipts if is_so else []
