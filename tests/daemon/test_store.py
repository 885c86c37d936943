"""The store, in SQLite and in PostgreSQL: what is written is read again, whole or not at all, and old rows go."""

from __future__ import annotations

import gzip
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from cpsched.domain import PlannedJob, Segment
from cpsched.errors import StoreError
from cpsched.formats import instance_to_document
from cpsched.site.bridge import Gate, Hold, JobState, Receipt, Refusal, Result, Start
from cpsched.site.daemon import Store
from cpsched.site.daemon.forecasting import StoredForecast
from cpsched.site.daemon.state import JobOver, JobStarted, PlannedStart, Promise, PromiseMoved, Save
from cpsched.site.daemon.store import Cycle, tables
from cpsched.site.daemon.store.tables import METADATA
from tests.bridge.small_world import job, on, site
from tests.daemon.stored_orders import orders_in


def planned(name: str, start: int) -> PlannedStart:
    """Make an entry of the living plan."""
    segment = Segment(start=start, end=start + 100, allocation=on("n1", "n2"))
    return PlannedStart(planned=PlannedJob(id=name, start=start, end=start + 100, segments=(segment,)), revision="0.1")


@pytest.mark.slow
def test_the_living_plan_is_read_as_it_was_written(store: Store) -> None:
    """Entries that were written, replaced and removed are read as they are, also with hostile names."""
    hostile = "x'; DROP TABLE plan; --\x1b[31m<b>\u202e"
    first = Save(
        plan={"a": planned("a", 5), hostile: planned(hostile, 7), "b": planned("b", 9)},
        promises={"a": Promise(start=5, since=1), "b": Promise(start=9, since=1)},
    )
    store.save(first, 1)
    store.save(Save(plan={"a": planned("a", 6), "b": None}, promises={"b": None}), 2)
    kept = store.load()
    assert kept.plan == {"a": planned("a", 6), hostile: planned(hostile, 7)}
    assert kept.promises == {"a": Promise(start=5, since=1)}
    assert kept.unanswered == 0


def test_orders_are_marked_with_their_answers(store: Store) -> None:
    """An order stands in the store before it is given, without an answer, and has the manager's answer after it."""
    orders = (Gate(until=300), Hold(job="a", until=300), Start(job="b", at=5, allocation=on("n1"), revision="0.0"))
    numbers = store.begin(orders, 3)
    assert [one.result for one in orders_in(store)] == [None, None, None]
    assert store.load().unanswered == 3
    store.mark(
        numbers,
        (
            Receipt(order=orders[0], result=Result.DONE),
            Receipt(order=orders[1], result=Result.REFUSED, refusal=Refusal.GONE, detail="it's gone"),
            Receipt(order=orders[2], result=Result.UNKNOWN),
        ),
    )
    assert [(one.kind, one.job, one.result, one.refusal) for one in orders_in(store)] == [
        ("Gate", None, "done", None),
        ("Hold", "a", "refused", "gone"),
        ("Start", "b", "unknown", None),
    ]
    assert orders_in(store)[2].content["allocation"] == [
        {"node": "n1", "resources": {"cores": 4}, "chunk": 0, "count": 1}
    ]
    assert store.begin(orders[:1], 4) == (numbers[-1] + 1,)


def test_orders_of_a_daemon_that_died_are_unknown(store: Store) -> None:
    """What a killed daemon had written and not marked is marked as unknown by the next one."""
    store.begin((Hold(job="a", until=300),), 3)
    store.forget_unanswered()
    assert [one.result for one in orders_in(store)] == ["unknown"]
    assert store.load().unanswered == 0


def test_history_and_cycles_are_kept_and_pruned(store: Store) -> None:
    """Records, cycles and snapshots are read in order; those before a second are removed, and the plan stays."""
    for at in (10, 20):
        over = JobOver(job=f"j{at}", state=JobState.COMPLETED, start=1, end=at, nodes=("n1",))
        moved = PromiseMoved(job="k", before=1, after=at, reason="because")
        store.save(Save(plan={f"p{at}": planned(f"p{at}", at)}, records=(over, moved)), at)
        store.add_cycle(
            Cycle(at=at, seconds=0.5, waiting=1, running=2, planned=1, value=None, is_fallback=False, orders=0, why="x")
        )
        store.add_snapshot(site(job("a"), now=at))
    assert [one.content["after"] for one in store.history(job="k")] == [10, 20]
    assert store.prune(15) == 4
    assert [(one.kind, one.job) for one in store.history()] == [("JobOver", "j20"), ("PromiseMoved", "k")]
    assert [cycle.at for cycle in store.cycles()] == [20]
    assert store.first_snapshot() == instance_to_document(site(job("a"), now=20))
    assert set(store.load().plan) == {"p10", "p20"}


def test_forecasts_are_kept_with_what_became_of_them(store: Store) -> None:
    """A start settles all open forecasts of its job, a job that never starts loses its own; old ones are pruned."""
    first = StoredForecast(job="a", at=10, likely=50, earliest=40, latest=None, low=41, median=50, high=90, waited=5)
    others = [replace(first, at=20), replace(first, job="b"), replace(first, job="c", at=30)]
    store.add_forecasts([first, *others])
    store.settle_forecasts({"a": 55, "b": None})
    store.settle_forecasts({"a": 77})
    assert store.forecasts(9) == (replace(first, start=55), replace(others[0], start=55), others[2])
    assert store.forecasts(1) == (others[2],)
    store.prune(20)
    assert [one.at for one in store.forecasts(9)] == [20, 30]


def test_migrations_make_the_tables_that_the_code_has(store: Store, url: str) -> None:
    """The migrated database has the tables and columns of `tables.py`, no more and no fewer."""
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, METADATA) == []
        assert context.get_current_revision() == "0003"
    engine.dispose()


def migrated(url: str, revision: str) -> None:
    """Make an empty database one of an earlier version."""
    config = Config()
    config.set_main_option("script_location", str(Path(tables.__file__).parent / "migrations"))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


#: Rows as the first version wrote them, and what later ones added to them: the second one has none of its own.
_FIRST = (
    "INSERT INTO plan VALUES ('a', 5, 105, '0.1', '[[5, 105, [[\"n1\", {\"cores\": 4}, 0, 1]]]]')",
    "INSERT INTO promises VALUES ('a', 5, 1)",
    "INSERT INTO orders VALUES (1, 1, 'Hold', 'a', '{}', 'done', NULL, '')",
    "INSERT INTO orders VALUES (2, 1, 'Hold', 'b', '{}', NULL, NULL, NULL)",
    """INSERT INTO history VALUES (1, 9, 'PromiseMoved', 'a', '{"before": null, "after": 5, "reason": "first"}')""",
    "INSERT INTO cycles VALUES (1, 1, 0.5, 1, 2, 1, NULL, FALSE, 2, 'new')",
)
EARLIER = {"0001": _FIRST, "0002": _FIRST}


@pytest.mark.parametrize("revision", EARLIER)
def test_an_older_store_is_brought_up_to_date(url: str, revision: str) -> None:
    """A store as an earlier version made and filled it gets what is new, keeps what it has, and is written further."""
    migrated(url, revision)
    engine = create_engine(url)
    with engine.begin() as connection:
        for row in EARLIER[revision]:
            connection.exec_driver_sql(row)
    engine.dispose()
    reader = Store(url, is_reader=True)
    with pytest.raises(StoreError):
        reader.forecasts(1)
    store = Store(url)
    kept = store.load()
    segment = Segment(start=5, end=105, allocation=on("n1"))
    first = PlannedStart(planned=PlannedJob(id="a", start=5, end=105, segments=(segment,)), revision="0.1")
    assert (kept.plan, kept.promises) == ({"a": first}, {"a": Promise(start=5, since=1)})
    assert kept.unanswered == 1
    assert [(one.job, one.result) for one in orders_in(store)] == [("a", "done"), ("b", None)]
    assert [one.content["after"] for one in store.moves()] == [5]
    assert [(one.seconds, one.planned, one.why) for one in store.cycles()] == [(0.5, 1, "new")]
    assert reader.forecasts(1) == ()
    store.set_present(1, 2.0, gzip.compress(b"{}"))
    assert reader.version() == 1
    assert store.begin((Hold(job="c", until=300),), 2) == (3,)
    store.close()
    reader.close()


def test_every_earlier_version_is_migrated_with_its_rows() -> None:
    """Each revision but the newest has rows above."""
    config = Config()
    config.set_main_option("script_location", str(Path(tables.__file__).parent / "migrations"))
    script = ScriptDirectory.from_config(config)
    newest = script.get_current_head()
    assert {one.revision for one in script.walk_revisions()} - {newest} == EARLIER.keys()


def test_a_store_is_opened_again(store: Store, url: str) -> None:
    """A second start finds the tables, migrates nothing, and reads what the first one wrote."""
    store.save(Save(plan={"a": planned("a", 5)}), 1)
    again = Store(url)
    assert set(again.load().plan) == {"a"}
    again.close()


def test_a_broken_connection_is_a_store_error(postgres: str) -> None:
    """A server that ends the connection costs one error; the next call connects anew."""
    store = Store(postgres)
    killer = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with killer.connect() as connection:
        others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        for (pid,) in connection.execute(text(others)).all():
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    killer.dispose()
    assert store.load().unanswered == 0
    store.close()


def test_a_locked_database_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the lock nothing is written and the error says so; after that all works."""
    monkeypatch.setattr("cpsched.site.daemon.store.store._LOCKED", 0.1)
    path = tmp_path / "cpsched.db"
    store = Store(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.save(Save(plan={"a": planned("a", 5)}), 1)
    other.execute("ROLLBACK")
    other.close()
    store.save(Save(plan={"a": planned("a", 5)}), 1)
    assert set(store.load().plan) == {"a"}
    store.close()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "nosuch://x", "sqlite:////nowhere/at/all.db", "postgresql+psycopg://u:hush@127.0.0.1:1/x"]
)
def test_a_store_that_cannot_be_opened_says_so_without_its_password(url: str) -> None:
    """A wrong URL, a folder that is not there, a silent server: an error of ours that tells no password."""
    with pytest.raises(StoreError) as caught:
        Store(url)
    assert "hush" not in str(caught.value)


def test_the_present_is_read_as_it_was_written(store: Store, url: str) -> None:
    """A reader beside the daemon sees each present under a new version; without a document the one before holds."""
    reader = Store(url, is_reader=True)
    assert (reader.version(), reader.present()) == (None, None)
    store.set_present(5, 1000.25, gzip.compress(b'{"a": 1}'))
    first = reader.present()
    assert first is not None
    assert (first.version, first.at, first.clock, first.document) == (1, 5, 1000.25, {"a": 1})
    store.set_present(6, 1001.5, None)
    store.set_present(7, 1_790_000_000.125, None)
    again = reader.present()
    assert again is not None
    assert (again.version, again.at, again.clock, again.document) == (3, 7, 1_790_000_000.125, {"a": 1})
    assert reader.version() == 3
    store.set_present(8, 1003.0, gzip.compress(b"{}"))
    assert reader.present() is not None
    assert reader.present().document == {}  # type: ignore[union-attr]  # it has one
    reader.close()


def test_moves_are_those_of_promises_that_hold(store: Store) -> None:
    """Of jobs that have a promise all moves are read, or those after a number; of others none."""

    def moved(job: str, before: int | None, after: int | None) -> PromiseMoved:
        return PromiseMoved(job=job, before=before, after=after, reason="why")

    over = JobOver(job="a", state=JobState.COMPLETED, start=1, end=2)
    promises = {"a": Promise(start=9, since=1), "gone": Promise(start=9, since=1)}
    store.save(Save(promises=promises, records=(moved("a", None, 5), moved("gone", None, 5), over)), 1)
    store.save(Save(promises={"gone": None}, records=(moved("a", 5, 9),)), 2)
    found = store.moves()
    assert [(one.job, one.at, one.content["after"]) for one in found] == [("a", 1, 5), ("a", 2, 9)]
    assert [one.content["after"] for one in store.moves(after=found[0].number)] == [9]
    assert store.moves(after=found[1].number) == ()


def test_the_last_cycles_are_read_in_their_order(store: Store) -> None:
    """Of many cycles the last ones are read, the newest last."""
    for at in range(5):
        store.add_cycle(
            Cycle(at=at, seconds=1, waiting=0, running=0, planned=0, value=None, is_fallback=False, orders=0, why="")
        )
    assert [one.at for one in store.cycles(last=2)] == [3, 4]
    assert [one.at for one in store.cycles()] == [0, 1, 2, 3, 4]


def test_a_job_without_an_end_is_unfinished(store: Store) -> None:
    """A job whose entry or start was written and whose end was not is read by the next daemon, and no other."""
    store.add_jobs({name: f'{{"id": "{name}"}}' for name in "abc"}, 0)
    started = [
        JobStarted(job=one, at=5, nodes=("n1",), planned=5, promised=None, is_as_planned=True) for one in ("b", "c")
    ]
    over = JobOver(job="c", state=JobState.COMPLETED, start=5, end=9)
    store.save(Save(records=(*started, over)), 9)
    assert store.load().unfinished == {"a": False, "b": True}


def test_a_store_without_a_folder_says_so(tmp_path: Path) -> None:
    """The folder is named: SQLite says only that it cannot open a file."""
    with pytest.raises(StoreError, match=f"{tmp_path}/none does not exist"):
        Store(f"sqlite:///{tmp_path}/none/cpsched.db")
