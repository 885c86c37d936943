"""What the daemon says of its cycles, in its log and its metrics, and keeps of them and of the cluster in its store."""

import gzip
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from cpsched.domain import Instance, Job, Plan, PlannedJob, WaitingJob, WaitingReason, repeated
from cpsched.errors import CpschedError, Fault, StoreError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.site.bridge import Snapshot
from cpsched.site.daemon.forecasting import Forecaster
from cpsched.site.daemon.judging import cut_at
from cpsched.site.daemon.logs import Log
from cpsched.site.daemon.metrics import Metrics
from cpsched.site.daemon.planning import Made, plan_of_state
from cpsched.site.daemon.state import EngineChosen, PlannedStart, PromiseMoved, Record, State
from cpsched.site.daemon.store import Cycle, Store, json_text


class Doings(NamedTuple):
    """What was done in a cycle."""

    state: State
    last_plan: Plan | None
    #: The last plan of this cycle.
    made: Made | None
    num_orders: int
    #: Until now.
    seconds: float
    #: Whether starts are forecast.
    is_forecasting: bool = False
    #: How the engine was chosen; None: it was not.
    choice: EngineChosen | None = None


class Journal:
    """The journal of a daemon. Mutable."""

    def __init__(self, store: Store, log: Log, metrics: Metrics, forecaster: Forecaster) -> None:
        self._store, self._log, self._metrics, self._forecaster = store, log, metrics, forecaster
        #: Whether anything failed in this cycle.
        self.has_failed = False
        self._presenter = Presenter()
        #: Of the last snapshot: each is logged once.
        self._notes: frozenset[Fault] = frozenset()
        #: The jobs of the last snapshot, and when one was kept, and the store pruned.
        self._kept: set[str] = set()
        self._last_kept: int | None = None
        self._last_pruned: int | None = None

    def failed(self, what: str, error: Exception) -> None:
        """Note that something failed; the next cycle tries again."""
        self.has_failed = True
        self._metrics.failures.labels(what).inc()
        self._log.error(f"{what} failed", error=str(error))

    def tell(self, snapshot: Snapshot) -> None:
        """Say what of a snapshot is not as the manager says it, if that is new."""
        for note in dict.fromkeys(snapshot.notes):
            if note not in self._notes:
                self._log.warning("not as the manager says it", what=note.path, why=note.message)
        self._notes = frozenset(snapshot.notes)

    def tell_record(self, record: Record) -> None:
        """Say what happened to a job."""
        is_moved = isinstance(record, PromiseMoved)
        is_later = False
        if isinstance(record, PromiseMoved) and record.before is not None:  # taken back, or later
            is_later = record.after is None or record.after > record.before
        if is_later:
            self._metrics.promises_moved.inc()
        # a cluster may have thousands of promises
        say = self._log.debug if is_moved and not is_later else self._log.info
        say(type(record).__name__, **{name: getattr(record, name) for name in record.__slots__})

    def keep(self, snapshot: Snapshot, *, keep_days: int, every: int) -> None:
        """Keep new jobs and, now and then, a snapshot; forget what is old once an hour.

        `every`: seconds between two snapshots; 0: none is kept.
        """
        ids, now = {job.id for job in snapshot.instance.jobs}, snapshot.taken_at
        try:
            if new := ids - self._kept:
                self._forecaster.came(job for job in snapshot.instance.jobs if job.id in new)
                self._store.add_jobs(self._presenter.entries(snapshot.instance, new), now)
            self._kept = ids
            if every and (self._last_kept is None or now - self._last_kept >= every):
                self._store.add_snapshot(snapshot.instance)
                self._last_kept = now
            if self._last_pruned is None or now - self._last_pruned >= 3600:
                self._store.prune(now - keep_days * 86_400)
                self._last_pruned = now
        except StoreError as error:
            self.failed("store", error)

    def note(self, done: Doings, *, budget: float, file: Path | None) -> bool:
        """Note the figures of a cycle, and tell whether it was good. `file`: for the metrics."""
        metrics, made, state = self._metrics, done.made, done.state
        states: dict[str, int] = dict.fromkeys(("waiting", "running", "left"), 0)
        if state.snapshot is not None:
            states["running"] = sum(job.running is not None for job in state.snapshot.instance.jobs)
            states["waiting"] = len(state.snapshot.instance.jobs) - states["running"]
            states["left"] = len(state.snapshot.left)
        for name, count in (*states.items(), ("planned", len(state.plan))):
            metrics.jobs.labels(name).set(count)
        if made is not None:
            metrics.value.set(made.plan.objective.value)
        began = time.monotonic()
        try:
            self._store_figures(done, states, budget=budget)
        except StoreError as error:
            self._presenter = Presenter()  # what it takes for written may not be
            self.failed("store", error)
        seconds = done.seconds + time.monotonic() - began
        metrics.cycles.inc()
        metrics.cycle_seconds.observe(seconds)
        if made is not None and seconds > budget > 0:
            metrics.overruns.inc()
            self._log.warning("cycle took longer than its budget", seconds=round(seconds, 3), budget=budget)
        self._log.info("cycle", seconds=round(seconds, 3), orders=done.num_orders, planned=len(state.plan), **states)
        if not self.has_failed:
            metrics.last_cycle.set_to_current_time()
        try:
            if file is not None:
                metrics.write(file)
        except (CpschedError, OSError) as error:
            self.failed("metrics", error)
        return not self.has_failed

    def _store_figures(self, done: Doings, states: dict[str, int], *, budget: float) -> None:
        """Write the figures, and what holds now: a reader who sees that has the figures before."""
        state, made = done.state, done.made
        is_known = state.snapshot is not None and not self.has_failed
        forecaster = self._forecaster if done.is_forecasting else None
        document = None
        if is_known:
            document = self._presenter.document(
                state, done.last_plan, budget=budget, forecaster=forecaster, choice=done.choice
            )
        self._store.add_cycle(
            Cycle(
                at=state.now,
                seconds=round(done.seconds, 3),
                waiting=states["waiting"],
                running=states["running"],
                planned=len(state.plan),
                value=None if made is None else made.plan.objective.value,
                is_fallback=made is not None and bool(made.failures),
                orders=done.num_orders,
                why="" if made is None else made.why,
            )
        )
        if is_known:
            self._store.set_present(state.now, time.time(), document)


T = TypeVar("T")


class _Texts(Generic[T]):
    """The entries of a list as JSON; those of objects that are still the same are not written anew. Mutable."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[T, str]] = {}

    def of(self, things: Mapping[str, T], write: Callable[[Sequence[T]], Sequence[Any]]) -> list[str]:
        """Return the entries of some things, by id, in their order."""
        known, nothing = self._known, (None, "")
        new = {name: one for name, one in things.items() if known.get(name, nothing)[0] is not one}
        if new:
            written = map(json_text, write(tuple(new.values())))
            known.update(zip(new, zip(new.values(), written, strict=True), strict=True))
        return [known[name][1] for name in things]

    def all_of(self, things: Mapping[str, T], write: Callable[[Sequence[T]], Sequence[Any]]) -> list[str]:
        """Return the entries of all things that there are: others are forgotten."""
        texts = self.of(things, write)
        if len(self._known) > len(things):
            self._known = {name: self._known[name] for name in things}
        return texts


class Presenter:
    """Writes the present as JSON. Mutable."""

    def __init__(self) -> None:
        self._jobs, self._planned = _Texts[Job](), _Texts[PlannedStart]()
        self._last = ""

    def entries(self, instance: Instance, jobs: Collection[str]) -> dict[str, str]:
        """Return the entries of some of an instance's jobs as JSON, by id."""
        some = {job.id: job for job in instance.jobs if job.id in jobs}
        return dict(zip(some, self._jobs.of(some, _writer(instance)), strict=True))

    def document(
        self,
        state: State,
        made: Plan | None,
        *,
        budget: float,
        forecaster: Forecaster | None = None,
        choice: EngineChosen | None = None,
    ) -> bytes | None:
        """Return the present, gzipped; None: but for the time it is as it was last.

        Its keys: ``instance``; ``plan``, a plan document without the running jobs, or null; ``left``, the jobs that are
        not planned; ``budget`` (s) and ``dry_run``; ``forecasts`` of starts, by job, and in ``calibration`` what became
        of those before, or null; ``choice`` of an engine, or null. Raises `ValueError` if the state has no snapshot.
        `state`: with a snapshot. `made`: the last plan that was made, which gives the figures and the waiting room;
        None: none has been made yet.
        """
        if state.snapshot is None:
            raise ValueError("expected a state with a snapshot")
        instance, told = state.snapshot.instance, () if forecaster is None else forecaster.told.values()
        head = replace(instance, now=0, jobs=())
        jobs = self._jobs.all_of({job.id: job for job in instance.jobs}, _writer(instance))
        parts = [
            f'"instance": {_with(instance_to_document(head), jobs)}',
            f'"plan": {self._plan(state, made or plan_of_state(state, head))}',
            f'"left": {json_text([{"id": one.id, "reason": one.reason} for one in state.snapshot.left])}',
            f'"budget": {json_text(budget)}',
            f'"dry_run": {json_text(state.policy.is_dry_run)}',
            f'"forecasts": {json_text({one.job: one.as_document() for one in told})}',
            f'"calibration": {json_text(None if forecaster is None else forecaster.held)}',
            f'"choice": {json_text(choice)}',
        ]
        text = f"{{{', '.join(parts)}}}"
        if text == self._last:
            return None
        self._last = text
        return gzip.compress(text.encode(), compresslevel=1, mtime=0)

    def _plan(self, state: State, made: Plan | None) -> str:
        """Return the living plan, with the head of a plan document, and with the runs that it stops."""
        if made is None:
            return "null"
        cut, stopped = _stopped(state)
        gone = state.plan.keys() | cut.keys()
        waiting = (*(job for job in made.waiting_room if job.id not in gone), *stopped)
        attempts = tuple(cut.values())
        head = replace(made, jobs=(), incumbents=(), work=(), events=(), attempts=attempts, waiting_room=waiting)

        def write(new: Sequence[PlannedStart]) -> Sequence[Any]:
            document = plan_to_document(replace(head, jobs=tuple(one.planned for one in new)))
            entries: Sequence[Any] = document["jobs"]
            return entries

        return _with(plan_to_document(head), self._planned.all_of(state.plan, write))


def _stopped(state: State) -> tuple[dict[str, PlannedJob], list[WaitingJob]]:
    """Return the runs that the living plan stops, by job and up to their ends, and why these jobs wait again then."""
    cut: dict[str, PlannedJob] = {}
    stopped: list[WaitingJob] = []
    entries = [entry for entry in state.plan.values() if entry.stops]
    if state.snapshot is None or not entries:
        return cut, stopped
    running = {job.id: job for job in state.snapshot.instance.jobs if job.running is not None}
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.planned.id)):
        for stop in entry.in_the_way(state.snapshot.jobs):
            if stop.job in running and stop.job not in cut:
                cut[stop.job] = cut_at(repeated(running[stop.job]), max(entry.start, state.now))
                detail = f"to be stopped for job {entry.planned.id}"
                stopped.append(WaitingJob(id=stop.job, reason=WaitingReason.NOT_MAPPED, detail=detail))
    return cut, stopped


def _writer(instance: Instance) -> Callable[[Sequence[Job]], Sequence[Any]]:
    """Return a writer of the entries of jobs, as the document of their instance has them."""
    head = replace(instance, jobs=())
    return lambda jobs: instance_to_document(replace(head, jobs=tuple(jobs))).get("jobs", ())


def _with(document: dict[str, Any], jobs: Sequence[str]) -> str:
    """Return a document as JSON with entries of jobs that are JSON already."""
    document.pop("jobs", None)
    return f'{json_text(document)[:-1]},"jobs":[{",".join(jobs)}]}}'
