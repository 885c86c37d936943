"""The daemon's store: the living plan, promises, orders, and the history, in SQLite or PostgreSQL."""

import fcntl
import gzip
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, Table, case, create_engine, delete, event, func, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from cpsched.domain import Amounts, Instance, Placement, PlannedJob, Segment
from cpsched.errors import StoreError
from cpsched.forecast import Kind
from cpsched.formats import instance_to_document
from cpsched.site.bridge import Order, Receipt, Requeue, Result
from cpsched.site.daemon.forecasting import StoredForecast
from cpsched.site.daemon.state import (
    LEARNT_FROM,
    JobOver,
    JobStarted,
    JobStopped,
    PlannedStart,
    Promise,
    PromiseMoved,
    Record,
    Save,
)
from cpsched.site.daemon.store.tables import (
    CYCLES,
    FORECASTS,
    HISTORY,
    ORDERS,
    PLAN,
    PRESENT,
    PROMISES,
    SNAPSHOTS,
    TIMED,
)

#: Seconds for which a locked database is waited for.
_LOCKED = 5
#: The kinds of records that change the start that a user was told.
MOVES = (PromiseMoved.__name__, JobStopped.__name__)
#: The kind of the rows with the entries of jobs.
SEEN = "JobSeen"
#: Of the lock that one daemon has of a PostgreSQL database.
_LOCK = 0x63707363
#: Rows of one statement.
_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a daemon that begins needs of the one before."""

    plan: Mapping[str, PlannedStart]
    promises: Mapping[str, Promise]
    #: How many orders were written down and have no answer: what became of them the manager knows.
    unanswered: int
    #: The jobs whose end was not seen yet; of each, whether its start was.
    unfinished: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The figures of one cycle."""

    at: int
    seconds: float
    waiting: int
    running: int
    planned: int
    value: float | None
    is_fallback: bool
    orders: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The window and the plan that are true now."""

    #: Counts up with every cycle.
    version: int
    #: The second on the manager's clock, and when it was written in seconds of Unix time.
    at: int
    clock: float
    #: As `cpsched.site.daemon.journal` makes it.
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record of what happened."""

    #: Counts up.
    number: int
    at: int
    kind: str
    job: str
    content: Mapping[str, Any]


class Store:
    """A database, brought to the newest tables when it is opened.

    Each method is one transaction: after it has returned, what it has written survives a kill of the daemon.

    `url`: as SQLAlchemy writes it: ``sqlite:////var/lib/cpsched/cpsched.db``, ``postgresql+psycopg://user@host/name``.
    `is_reader`: whether the tables are left as they are: another process has the daemon. Raises `StoreError` if it
    cannot be opened, as all methods raise it where it cannot be read or written. No message has a password.
    """

    def __init__(self, url: str, *, is_reader: bool = False) -> None:
        try:
            self._shown = make_url(url).render_as_string(hide_password=True)
            self._engine = _engine_of(url)
        except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
            raise StoreError(f"Expected the URL of a database, got one that is none: {type(error).__name__}") from None
        #: The file that has to be there; None: it is made, or is none.
        self._file: Path | None = None
        #: What keeps other daemons away: a file beside that of SQLite, open while it is locked; a connection otherwise.
        self._path = path = file_of(url)
        self._lock = None if path is None else path.with_name(path.name + ".lock")
        self._locked: int | None = None
        self._held: Connection | None = None
        #: Which file it was when it was locked: what is written into one that is gone, with its disk, is lost.
        self._identity: tuple[int, int] | None = None
        if is_reader:
            self._file = path
        else:
            with self._begun() as connection:
                _migrate(connection)

    def lock(self) -> None:
        """Keep other daemons from this database until it is closed, or the process ends.

        Raises `StoreError` if another one has it; the message says who.
        """
        if self._engine.dialect.name == "postgresql":
            try:
                self._held = self._engine.connect()
                is_ours = self._held.execute(select(func.pg_try_advisory_lock(_LOCK))).scalar()
                self._held.commit()
            except SQLAlchemyError as error:
                raise StoreError(f"{self._shown}: {type(error).__name__}: {error}") from error
            if not is_ours:
                raise StoreError(f"{self._shown}: another daemon has it (pg_locks says which session)")
            return
        if self._lock is None:
            return
        try:
            with self._lock.open("a+") as file:
                number = os.dup(file.fileno())
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(number, 0)
            os.write(number, f"{socket.gethostname()}, process {os.getpid()}\n".encode())
            self._locked, self._identity = number, self._found()
        except BlockingIOError:
            os.close(number)
            who = self._lock.read_text(errors="replace").strip()
            raise StoreError(f"{self._shown}: another daemon has it ({who})") from None
        except OSError as error:
            raise StoreError(f"{self._shown}: {self._lock}: {error}") from error

    def close(self) -> None:
        """Give the connections back."""
        if self._held is not None:
            self._held.invalidate()
            self._held = None
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None
        self._engine.dispose()

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        """Give a connection in a transaction that is committed when the block ends without an error."""
        if self._file is not None and not self._file.exists():
            raise StoreError(f"{self._shown}: there is no such file yet")  # SQLite would make one
        if self._identity not in (None, self._found()):
            raise StoreError(f"{self._shown}: the file is gone, or is another one: bring it back, or begin anew")
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            cause = getattr(error, "orig", None) or error
            raise StoreError(f"{self._shown}: {self._why_closed() or f'{type(cause).__name__}: {cause}'}") from error

    def _found(self) -> tuple[int, int] | None:
        """Return which file is there; None: there is none."""
        try:
            found = None if self._path is None else self._path.stat()
        except OSError:
            found = None
        return None if found is None else (found.st_dev, found.st_ino)

    def _why_closed(self) -> str:
        """Return why there can be no file of SQLite where it is to be; empty: there can."""
        folder = None if self._lock is None else self._lock.parent
        if folder is None or self._file is not None:
            return ""
        if os.access(folder, os.W_OK):
            return "" if shutil.disk_usage(folder).free else f"the disk of {folder} is full"
        return f"the folder {folder} {'cannot be written to' if folder.is_dir() else 'does not exist'}"

    def load(self) -> Kept:
        """Read the living plan and the promises."""
        with self._begun() as connection:
            plan = {row.job: _planned_start(row) for row in connection.execute(select(PLAN))}
            rows = connection.execute(select(PROMISES))
            promises = {row.job: Promise(start=row.start, since=row.since) for row in rows}
            count = select(func.count()).select_from(ORDERS).where(ORDERS.c.result.is_(None))
            unanswered = connection.execute(count).scalar_one()
            return Kept(plan=plan, promises=promises, unanswered=unanswered, unfinished=_unfinished(connection))

    def save(self, save: Save, at: int) -> None:
        """Write what a step of the core changes."""
        with self._begun() as connection:
            self._replace(connection, PLAN, {job: _plan_row(job, one) for job, one in save.plan.items()})
            promises = {
                job: None if one is None else {"job": job, "start": one.start, "since": one.since}
                for job, one in save.promises.items()
            }
            self._replace(connection, PROMISES, promises)
            rows = [
                {"at": at, "kind": type(record).__name__, "job": record.job, "content": _content(record)}
                for record in save.records
            ]
            _insert(connection, HISTORY, rows)

    def _replace(self, connection: Connection, table: Table, rows: Mapping[str, dict[str, Any] | None]) -> None:
        """Write one row for each job in place of the one before; None: none."""
        jobs = list(rows)
        for first in range(0, len(jobs), _ROWS):
            connection.execute(delete(table).where(table.c.job.in_(jobs[first : first + _ROWS])))
        new = [row for row in rows.values() if row is not None]
        _insert(connection, table, new)

    def begin(self, orders: Sequence[Order], at: int) -> tuple[int, ...]:
        """Write down orders before they are given, and return their numbers."""
        with self._begun() as connection:
            first = 1 + (connection.execute(select(func.max(ORDERS.c.id))).scalar() or 0)
            rows = [
                {
                    "id": first + place,
                    "at": at,
                    "kind": type(order).__name__,
                    "job": getattr(order, "job", None),
                    "content": _content(order),
                }
                for place, order in enumerate(orders)
            ]
            _insert(connection, ORDERS, rows)
            return tuple(range(first, first + len(rows)))

    def mark(self, numbers: Sequence[int], receipts: Sequence[Receipt]) -> None:
        """Write the manager's answers to orders."""
        by_answer: dict[tuple[str, str | None, str], list[int]] = {}
        for number, receipt in zip(numbers, receipts, strict=True):
            refusal = None if receipt.refusal is None else str(receipt.refusal)
            by_answer.setdefault((str(receipt.result), refusal, receipt.detail), []).append(number)
        with self._begun() as connection:
            for (result, refusal, detail), of_answer in by_answer.items():
                for first in range(0, len(of_answer), _ROWS):
                    where = ORDERS.c.id.in_(of_answer[first : first + _ROWS])
                    values = {"result": result, "refusal": refusal, "detail": detail}
                    connection.execute(update(ORDERS).where(where).values(**values))

    def forget_unanswered(self) -> None:
        """Mark the orders of a daemon that was killed before the answer as unknown."""
        with self._begun() as connection:
            connection.execute(update(ORDERS).where(ORDERS.c.result.is_(None)).values(result=str(Result.UNKNOWN)))

    def add_cycle(self, cycle: Cycle) -> None:
        """Add the figures of a cycle."""
        with self._begun() as connection:
            connection.execute(insert(CYCLES), [asdict(cycle)])

    def add_snapshot(self, instance: Instance) -> None:
        """Add an instance document."""
        document = gzip.compress(json_text(instance_to_document(instance)).encode(), mtime=0)
        with self._begun() as connection:
            connection.execute(insert(SNAPSHOTS), [{"at": instance.now, "document": document}])

    def add_jobs(self, entries: Mapping[str, str], at: int) -> None:
        """Add the entries of jobs that were seen for the first time: by id, as an instance document has them."""
        rows = [{"at": at, "kind": SEEN, "job": job, "content": entry} for job, entry in entries.items()]
        with self._begun() as connection:
            _insert(connection, HISTORY, rows)

    def add_forecasts(self, forecasts: Sequence[StoredForecast]) -> None:
        """Add forecasts that were told."""
        with self._begun() as connection:
            _insert(connection, FORECASTS, [asdict(one) for one in forecasts])

    def settle_forecasts(self, starts: Mapping[str, int | None]) -> None:
        """Note when jobs started; forecasts of those with None, which never will, are removed."""
        with self._begun() as connection:
            for job, start in starts.items():
                is_open = (FORECASTS.c.job == job) & FORECASTS.c.start.is_(None)
                change = delete(FORECASTS) if start is None else update(FORECASTS).values(start=start)
                connection.execute(change.where(is_open))

    def forecasts(self, most: int) -> tuple[StoredForecast, ...]:
        """Return the forecasts that were told last, in the order in which they were."""
        asked = select(FORECASTS).order_by(FORECASTS.c.at.desc(), FORECASTS.c.job).limit(most)
        with self._begun() as connection:
            return tuple(StoredForecast(**row._mapping) for row in connection.execute(asked))[::-1]

    def set_present(self, at: int, clock: float, document: bytes | None) -> None:
        """Write what is true now, in place of what was; without a document that of before holds."""
        with self._begun() as connection:
            version = connection.execute(select(PRESENT.c.version)).scalar()
            values: dict[str, Any] = {"version": (version or 0) + 1, "at": at, "clock": clock}
            if version is None:
                connection.execute(insert(PRESENT), [{**values, "document": document or b""}])
            else:
                new = values if document is None else {**values, "document": document}
                connection.execute(update(PRESENT).values(**new))

    def prune(self, before: int) -> int:
        """Remove the history up to a second, and return the number of rows."""
        with self._begun() as connection:
            return sum(connection.execute(delete(table).where(table.c.at < before)).rowcount for table in TIMED)

    # --- what is read by people and by reports ---

    def version(self) -> int | None:
        """Return the version of the present; None: there is none yet."""
        with self._begun() as connection:
            return connection.execute(select(PRESENT.c.version)).scalar()

    def present(self) -> Present | None:
        """Return the window and the plan that are true now; None: none is known yet."""
        with self._begun() as connection:
            row = connection.execute(select(PRESENT)).one_or_none()
        if row is None:
            return None
        document = json.loads(gzip.decompress(row.document))
        return Present(version=row.version, at=row.at, clock=row.clock, document=document)

    def history(self, *, job: str | None = None) -> tuple[StoredRecord, ...]:
        """Return the history, of one job or of all, in the order in which it was written."""
        asked = select(HISTORY).order_by(HISTORY.c.id)
        if job is not None:
            asked = asked.where(HISTORY.c.job == job)
        with self._begun() as connection:
            return tuple(map(_stored_record, connection.execute(asked)))

    def last(self, kind: type[Record]) -> StoredRecord | None:
        """Return the last record of a kind; None: there is none."""
        asked = select(HISTORY).where(HISTORY.c.kind == kind.__name__).order_by(HISTORY.c.id.desc()).limit(1)
        with self._begun() as connection:
            row = connection.execute(asked).one_or_none()
        return None if row is None else _stored_record(row)

    def ended(self, most: int) -> list[tuple[Kind, int]]:
        """Return the kinds of the jobs that ended last, in the order in which they did, with their runtimes (s)."""
        asked = select(HISTORY).where(HISTORY.c.kind.in_((SEEN, JobOver.__name__)))
        with self._begun() as connection:
            rows = connection.execute(asked.order_by(HISTORY.c.id.desc()).limit(2 * most)).all()
        seen: dict[str, Kind] = {}
        found = []
        for row in reversed(rows):
            content = json.loads(row.content)
            if row.kind == JobOver.__name__:
                is_one = row.job in seen and content["state"] in LEARNT_FROM
                if is_one and content["start"] is not None and content["end"] is not None:
                    found.append((seen[row.job], content["end"] - content["start"]))
            elif "walltime" in content and "malleable" not in content:
                seen[row.job] = Kind(content.get("queue"), content.get("user"), content["walltime"])
        return found

    def moves(self, *, after: int = 0) -> tuple[StoredRecord, ...]:
        """Return how the promises that hold moved, and the stops of their jobs, by records of numbers above `after`."""
        promised = select(PROMISES.c.job)
        asked = select(HISTORY).where(HISTORY.c.id > after, HISTORY.c.kind.in_(MOVES), HISTORY.c.job.in_(promised))
        with self._begun() as connection:
            return tuple(map(_stored_record, connection.execute(asked.order_by(HISTORY.c.id))))

    def cycles(self, *, last: int | None = None) -> tuple[Cycle, ...]:
        """Return the figures of all cycles, or of the last ones."""
        names = [column for column in CYCLES.c if column.name != "id"]
        asked = select(*names).order_by(CYCLES.c.id.desc()).limit(last)
        with self._begun() as connection:
            return tuple(Cycle(**row._mapping) for row in connection.execute(asked))[::-1]

    def first_snapshot(self) -> dict[str, Any] | None:
        """Return the oldest instance document; None if there is none."""
        with self._begun() as connection:
            found = connection.execute(select(SNAPSHOTS.c.document).order_by(SNAPSHOTS.c.id).limit(1)).scalar()
        return None if found is None else json.loads(gzip.decompress(found))


def json_text(value: Any) -> str:
    """Return a value of JSON as its text."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a pair of UTF-16, which is no text of UTF-8 but by its escape
        return json.dumps(value)


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows that have the same columns: all at once, and each by the driver alone, in half of the time."""
    if not rows:
        return
    compiled = insert(table).compile(dialect=connection.dialect, column_keys=list(rows[0]))
    if compiled.positional:
        names = compiled.positiontup or ()
        connection.exec_driver_sql(str(compiled), list(map(itemgetter(*names), rows)))
    else:
        connection.exec_driver_sql(str(compiled), list(rows))


def _engine_of(url: str) -> Engine:
    """Return the engine of a database; SQLite waits for locks, and writes ahead."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": _LOCKED})
    engine = create_engine(url, connect_args={"timeout": _LOCKED})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    return engine


def file_of(url: str) -> Path | None:
    """Return the file of a SQLite database; None: it is in memory, or on a server."""
    parsed = make_url(url)
    name = parsed.database if parsed.get_backend_name() == "sqlite" else None
    return None if name in (None, "", ":memory:") else Path(str(name))


def _migrate(connection: Connection) -> None:
    """Bring the tables up to the newest migration."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _unfinished(connection: Connection) -> dict[str, bool]:
    """Return the jobs of the history that have no end there, and whether they have a start."""
    started, over = JobStarted.__name__, JobOver.__name__
    asked = (
        select(HISTORY.c.job, func.max(case((HISTORY.c.kind == started, 1), else_=0)).label("has_started"))
        .where(HISTORY.c.kind.in_((SEEN, started, over)))
        .group_by(HISTORY.c.job)
        .having(func.max(case((HISTORY.c.kind == over, 1), else_=0)) == 0)
    )
    return {row.job: bool(row.has_started) for row in connection.execute(asked)}


def _content(value: Record | Order) -> str:
    """Return the fields of a record or an order but its job, as JSON."""
    fields: dict[str, Any] = msgspec.to_builtins(value, enc_hook=dict)  # its maps
    fields.pop("job", None)
    return json_text(fields)


def _plan_row(job: str, entry: PlannedStart | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    segments = [
        [one.start, one.end, [[held.node, dict(held.resources), held.chunk, held.count] for held in one.allocation]]
        for one in entry.planned.segments
    ]
    if entry.planned.alternative or entry.stops:
        segments[0].append(entry.planned.alternative)
    if entry.stops:
        segments[0].append([[stop.job, stop.revision, stop.nodes] for stop in entry.stops])
    return {
        "job": job,
        "start": entry.planned.start,
        "end": entry.planned.end,
        "revision": entry.revision,
        "segments": json_text(segments),
    }


def _stored_record(row: Any) -> StoredRecord:
    return StoredRecord(number=row.id, at=row.at, kind=row.kind, job=row.job, content=json.loads(row.content))


def _planned_start(row: Any) -> PlannedStart:
    rows = json.loads(row.segments)
    segments = tuple(
        Segment(
            start=start,
            end=end,
            allocation=tuple(
                Placement(node=node, resources=Amounts(resources), chunk=chunk, count=count)
                for node, resources, chunk, count in allocation
            ),
        )
        for start, end, allocation, *_ in rows
    )
    more: list[Any] = rows[0][3:]
    alternative, stopped = more + [0, []][len(more) :]
    planned = PlannedJob(id=row.job, start=row.start, end=row.end, segments=segments, alternative=alternative)
    stops = tuple(
        Requeue(job=job, urgent=row.job, revision=revision, nodes=tuple(nodes)) for job, revision, nodes in stopped
    )
    return PlannedStart(planned=planned, revision=row.revision, stops=stops)
