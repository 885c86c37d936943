"""Where the state comes from: the daemon's store, which is looked at again and again, or an instance and a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cpsched.domain import Instance, Plan, PlannedJob, WaitingJob, repeated
from cpsched.engine import Outcome
from cpsched.errors import DocumentError, Fault
from cpsched.formats import check_belongs, parse_instance, parse_plan, read_instance, read_plan
from cpsched.portfolio import plan_of, solve
from cpsched.site.daemon import MOVES, JobStopped, Present, Store, StoredRecord, read_site, store_url
from cpsched.site.serve.access import Visibility
from cpsched.site.serve.models import CycleModel, ForecastModel, MoveModel
from cpsched.site.serve.view import Left, View

#: Cycles that the figures of health are about.
_LAST_CYCLES = 100


class Source(Protocol):
    """Something that knows the state. Its methods may take long and are called in threads, `read` in one at a time."""

    #: ``store`` or ``instance``.
    kind: str

    def read(self) -> View | None:
        """Return the state if it is another one than last time; None: it is not, or nothing is known yet.

        Raises `StoreError` if the store cannot be read.
        """

    def history(self, job: str) -> tuple[MoveModel, ...]:
        """Return how the planned start of a job was told and moved, also of one that runs by now."""

    def close(self) -> None:
        """Give back what it holds of the system."""


class DocumentSource:
    """An instance and a plan, which do not change.

    `instance`: the window. `plan`: of it; None: the planner makes one. Raises `DocumentError` if the plan is of another
    instance. Raises `EngineError` if the planner cannot plan the instance.
    """

    kind = "instance"

    def __init__(self, instance: Instance, plan: Plan | None = None) -> None:
        if plan is not None:
            check_belongs(plan, instance, "plan")
        self._instance = instance
        self._plan = solve(instance, engine="planner", budget=0) if plan is None else plan
        self._is_read = False

    def read(self) -> View | None:
        """Return the state, once."""
        if self._is_read:
            return None
        self._is_read = True
        return View(version="1", instance=self._instance, plan=self._plan, made=self._plan, kind=self.kind)

    def history(self, job: str) -> tuple[MoveModel, ...]:
        """Return nothing: documents do not tell."""
        return ()

    def close(self) -> None:
        """Do nothing."""


class StoreSource:
    """The store of a daemon, which another process writes.

    `url`: as `cpsched.site.daemon.Store` has it. Raises `StoreError` if it cannot be opened.
    """

    kind = "store"

    def __init__(self, url: str) -> None:
        self._store = Store(url, is_reader=True)
        self._version: int | None = None
        self._moves: dict[str, list[MoveModel]] = {}
        self._last_move = 0

    def read(self) -> View | None:
        """Return the state of the last cycle, if it is new."""
        version = self._store.version()
        if version is None or version == self._version:
            return None
        present = self._store.present()
        if present is None:
            return None
        view = self._view(present)
        self._version = present.version
        return view

    def _view(self, present: Present) -> View:
        document = present.document
        source = "what the daemon has seen"
        instance = parse_instance({**document["instance"], "now": present.at}, source=source)
        head = None if document["plan"] is None else parse_plan(document["plan"], source=source)
        return View(
            version=str(present.version),
            instance=instance,
            plan=(plan := _whole_plan(instance, head)),
            made=plan if head is None else head,
            kind=self.kind,
            left=tuple(Left(one["id"], one["reason"]) for one in document["left"]),
            moves=self._all_moves(instance),
            forecasts={job: _told(one, present.at) for job, one in document.get("forecasts", {}).items()},
            cycle=self._figures(present),
            clock=present.clock,
        )

    def _all_moves(self, instance: Instance) -> Mapping[str, tuple[MoveModel, ...]]:
        """Return how the planned starts of the waiting jobs have moved; of others it forgets it."""
        for record in self._store.moves(after=self._last_move):
            self._moves.setdefault(record.job, []).append(_move(record))
            self._last_move = record.number
        waiting = {name for job in instance.jobs if job.running is None for name in job.element_ids}
        self._moves = {job: moves for job, moves in self._moves.items() if job in waiting}
        return {job: tuple(moves) for job, moves in self._moves.items()}

    def _figures(self, present: Present) -> CycleModel | None:
        cycles = self._store.cycles(last=_LAST_CYCLES)
        if not cycles:
            return None
        last = cycles[-1]
        return CycleModel(
            at=last.at,
            seconds=last.seconds,
            budget=present.document["budget"],
            orders=last.orders,
            why=last.why,
            cycles=len(cycles),
            fallbacks=sum(one.is_fallback for one in cycles),
            dry_run=present.document["dry_run"],
            forecasts=present.document.get("calibration"),
            choice=present.document.get("choice"),
        )

    def history(self, job: str) -> tuple[MoveModel, ...]:
        """Return how the planned start of a job was told and moved, and its stops."""
        return tuple(_move(one) for one in self._store.history(job=job) if one.kind in MOVES)

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()


def _move(record: StoredRecord) -> MoveModel:
    if record.kind == JobStopped.__name__:
        return MoveModel(at=record.at, start=None, reason=f"stopped for job {record.content['urgent']}")
    return MoveModel(at=record.at, start=record.content["after"], reason=record.content["reason"])


def _told(times: Mapping[str, int | None], now: int) -> ForecastModel:
    """Return a forecast that was made some minutes ago: what is over since is now."""
    late = {name: max(time, now) for name, time in times.items() if time is not None and name != "enough"}
    return ForecastModel.model_validate({**times, **late})


def _whole_plan(instance: Instance, head: Plan | None) -> Plan:
    """Return the living plan as a document has it: with the running jobs, and with the reasons of its last making."""
    jobs: list[PlannedJob] = []
    waiting: list[WaitingJob] = []
    planned = {} if head is None else {one.id: one for one in head.jobs}
    known = {} if head is None else {one.id: one for one in head.waiting_room}
    attempts = () if head is None else head.attempts
    cut = {one.id for one in attempts}
    for job in instance.elements():
        if job.running is not None and job.id not in cut:
            jobs.append(repeated(job))
        elif job.id in planned:
            jobs.append(planned[job.id])
        elif job.id in known:
            waiting.append(known[job.id])
    outcome = Outcome(jobs=tuple(jobs), waiting_room=tuple(waiting))
    slices = () if head is None else head.reservations
    return replace(plan_of(instance, "daemon", outcome, slices=slices, budget=0, elapsed=0), attempts=attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A source, its name, and what its site wants readers to see."""

    source: Source
    #: As people call it; never with a password.
    name: str
    visibility: Visibility = Visibility.ALL


def open_source(source: str, plan: Path | None = None) -> Opened:
    """Open a site's file (``.toml``), the store of a daemon (a URL, or a SQLite file), or an instance document.

    `source`: what is to be opened. `plan`: a plan of the instance; None: the planner makes one. Raises `DocumentError`
    if it is not in order, or there is a plan where none can be. Raises `EngineError` if the planner cannot plan the
    instance. Raises `StoreError` if it is a store that cannot be opened.
    """
    url, path = store_url(source), Path(source)
    if url is None:
        instance = read_instance(path)
        return Opened(
            source=DocumentSource(instance, None if plan is None else read_plan(plan)), name=instance.name or path.name
        )
    if plan is not None:
        raise DocumentError(source, [Fault("plan", "Expected no plan, as the store has one")])
    visibility = (
        Visibility(read_site(path).visibility) if "://" not in source and path.suffix == ".toml" else Visibility.ALL
    )
    return Opened(source=StoreSource(url), name="the daemon's store", visibility=visibility)
