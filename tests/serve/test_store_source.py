"""The daemon's store as the source: what it has seen, cycle by cycle, and how promised starts have moved."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.errors import DocumentError, StoreError
from cpsched.formats import write_instance
from cpsched.site.daemon import Daemon, Settings
from cpsched.site.serve import Opened, StoreSource, Visibility, open_source
from cpsched.verify import verify
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site
from tests.daemon.making import LIVE, chooses, daemon_on
from tests.daemon.test_stops import RULES, low, submit, top
from tests.serve.serving import ALICE, Client, asking, bearer, users_site


def live(folder: Path, *jobs: dict[str, object], settings: Settings = LIVE) -> tuple[Daemon, PlayedWorld]:
    """Make a daemon with a machine of its own, whose store is in a folder."""
    there = PlayedWorld(site(*jobs), gate_is_closed=True)
    daemon, _ = daemon_on(there, folder, settings)
    return daemon, there


def of_store(folder: Path, visibility: Visibility = Visibility.ALL) -> Opened:
    """Open the store of a folder."""
    return Opened(source=StoreSource(f"sqlite:///{folder}/cpsched.db"), name="store", visibility=visibility)


def seen(client: Client, now: int) -> Any:
    """Return the state when that of a second is served."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        answer = client.get("/v1/state")
        if answer.status_code == 200 and answer.json()["now"] == now:
            return answer.json()
        time.sleep(0.02)
    raise AssertionError(f"the state of {now} does not come")


def test_the_state_follows_the_daemon(tmp_path: Path) -> None:
    """What a cycle has seen and planned is served after it: first all wait, then two run, then these are over."""
    daemon, there = live(tmp_path, *(job(f"j{number}", walltime=100, user="alice") for number in range(4)))
    daemon.cycle()
    with asking(of_store(tmp_path)) as client:
        first = client.get("/v1/state").json()
        assert first["source"]["kind"] == "store"
        assert first["counts"] == {"running": 0, "waiting": 4, "planned": 4, "not_planned": 0}
        there.advance(20)
        daemon.cycle()
        state = seen(client, 20)
        assert (state["counts"]["running"], state["counts"]["planned"]) == (2, 2)
        assert state["version"] != first["version"]
        assert state["cycle"]["at"] == 20
        assert state["cycle"]["dry_run"] is False
        assert {row["id"]: row["start"] for row in client.get("/v1/jobs").json()["jobs"]} == {
            "j0": 0, "j1": 0, "j2": 100, "j3": 100,
        }  # fmt: skip
        assert client.get("/v1/jobs/j2/explanation").json()["start"] == 100
        there.advance(150)
        daemon.cycle()
        there.advance(151)
        daemon.cycle()
        assert seen(client, 151)["counts"] == {"running": 2, "waiting": 0, "planned": 0, "not_planned": 0}


def test_a_reader_between_two_writes_sees_one_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it looks, the figures that a reader shows are those of the cycle whose state it shows."""
    daemon, there = live(tmp_path, *(job(f"j{number}", walltime=100) for number in range(4)))
    reader = StoreSource(f"sqlite:///{tmp_path}/cpsched.db")
    shown: list[tuple[int, int | None]] = []

    def look() -> None:
        if (view := reader.read()) is not None:
            shown.append((view.instance.now, None if view.cycle is None else view.cycle.at))

    for name in ("add_cycle", "set_present"):
        write = getattr(daemon.store, name)

        def writing(*values: Any, write: Any = write) -> None:
            look()
            write(*values)
            look()

        monkeypatch.setattr(daemon.store, name, writing)
    for _ in range(3):
        daemon.cycle()
        there.advance(there.now + 20)
    assert shown == [(0, 0), (20, 20), (40, 40)]
    reader.close()


def test_a_present_that_could_not_be_written_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fault of the store a reader sees what is true, although nothing has changed since."""
    daemon, there = live(tmp_path, job("a", walltime=100))
    daemon.cycle()
    there.advance(20)
    with monkeypatch.context() as patch:
        patch.setattr(daemon.store, "set_present", fail)
        assert not daemon.cycle()
    daemon.cycle()
    reader = StoreSource(f"sqlite:///{tmp_path}/cpsched.db")
    view = reader.read()
    assert view is not None
    assert [one.id for one in view.instance.jobs if one.running is not None] == ["a"]
    reader.close()


def fail(*_: object) -> None:
    """Do as a full disk does."""
    raise StoreError("no room")


def test_what_is_served_is_a_plan(tmp_path: Path) -> None:
    """The documents made of the store pass the verifier, in every cycle of a small history; the only thing that may be
    missing is a job that the next cycle plans.
    """
    daemon, there = live(
        tmp_path,
        *(
            job(f"j{number}", f"ncpus={1 + number % 4}", walltime=30 + 10 * number, submit=5 * number)
            for number in range(9)
        ),
        job("never", "ncpus=9"),
    )
    with asking(of_store(tmp_path)) as client:
        for _ in range(8):
            daemon.cycle()
            seen(client, there.now)
            violations = verify(client.get("/v1/instance").json(), client.get("/v1/plan").json())
            missing = {one.subject for one in violations if one.rule == "presence"}
            assert [one for one in violations if one.rule != "presence"] == []
            rows = client.get("/v1/jobs").json()["jobs"]
            assert {row["id"] for row in rows if row["reason"] == "not_planned"} == missing
            there.advance(there.now + 25)


def test_how_a_start_moved(tmp_path: Path) -> None:
    """A job that others overtake has all that its user was told, with the reasons, in lists and by itself."""
    daemon, there = live(tmp_path, job("first", walltime=100, runtime=40), job("second", "2:ncpus=4", walltime=100))
    daemon.cycle()
    there.advance(10)
    there.submit(replace(site(job("long", walltime=1000)).jobs[0], submit=10))
    daemon.cycle()
    there.advance(60)
    daemon.cycle()
    with asking(of_store(tmp_path)) as client:
        listed = {row["id"]: row for row in client.get("/v1/jobs").json()["jobs"]}
        row = client.get("/v1/jobs/second").json()
    told = [move["start"] for move in row["moved"]]
    assert told[0] == 100
    assert len(told) == row["num_moves"] + 1 >= 2
    assert row["moved"] == listed["second"]["moved"]
    assert all(move["reason"] for move in row["moved"])


def test_reasons_name_no_jobs_that_may_not_be_seen(tmp_path: Path) -> None:
    """Why a start moved, and why a cycle planned, is told with the jobs that ended only to those who see them."""
    daemon, there = live(
        tmp_path,
        job("secret", walltime=100, runtime=40, user="bob"),
        job("mine", "2:ncpus=4", walltime=100, user="alice"),
    )
    daemon.cycle()
    there.advance(5)
    daemon.cycle()
    there.advance(60)
    daemon.cycle()
    for visibility, is_told in ((Visibility.ALL, True), (Visibility.ANONYMOUS, False), (Visibility.OWN, False)):
        with asking(of_store(tmp_path, visibility)) as client:
            said = [
                client.get(path, headers=bearer(ALICE)).text
                for path in ("/v1/jobs", "/v1/jobs/mine", "/v1/health", "/v1/state")
            ]
            assert ["secret" in text for text in said] == [is_told] * 4, said
            assert client.get("/v1/jobs/mine", headers=bearer(ALICE)).json()["num_moves"] == 1


def test_the_health_of_the_daemon(tmp_path: Path) -> None:
    """Before the first cycle it is starting, after one it is well, and stale when nothing comes any more."""
    daemon, _ = live(tmp_path, job("a"))
    with asking(of_store(tmp_path)) as client:
        health = client.get("/v1/health")
        assert (health.status_code, health.json()["status"]) == (503, "starting")
        refused = client.get("/v1/jobs")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        daemon.cycle()
        end = time.monotonic() + 120
        while client.get("/v1/health").status_code == 503 and time.monotonic() < end:
            time.sleep(0.02)
        health = client.get("/v1/health")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        cycle = health.json()["cycle"]
        assert (cycle["cycles"], cycle["fallbacks"], cycle["budget"]) == (1, 0, LIVE.budget)
        assert 0 <= cycle["lag"] < 60
        daemon.store.set_present(1000, time.time() - 3600, None)
        end = time.monotonic() + 120
        while client.get("/v1/health").status_code == 200 and time.monotonic() < end:
            time.sleep(0.02)
        assert client.get("/v1/health").json()["status"] == "stale"


def test_a_plan_that_time_has_overtaken_can_be_asked_about(tmp_path: Path) -> None:
    """Where jobs run on beyond their planned ends, so that the stored plan cannot be, answers come all the same."""
    daemon, there = live(tmp_path, job("a"), job("b"), job("c", "2:ncpus=4"))
    daemon.cycle()
    there.advance(5)
    daemon.cycle()
    # time passes, and the daemon has not planned anew
    daemon.store.set_present(150, time.time(), None)
    with asking(of_store(tmp_path)) as client:
        told = client.get("/v1/jobs/c/explanation")
        assert told.status_code == 200, told.text
        assert told.json()["start"] >= 150


def test_jobs_that_are_left_to_the_manager_are_listed(tmp_path: Path) -> None:
    """A job that is held waits without a start, with the manager's reason; others see only that it is there."""
    daemon, there = live(tmp_path, job("a", user="alice"), job("held", user="alice"))
    there.hold("held")
    daemon.cycle()
    with asking(of_store(tmp_path)) as client:
        row = client.get("/v1/jobs/held").json()
        assert (row["status"], row["reason"], row["request"]) == ("waiting_room", "left", "")
        assert row["detail"]
        assert client.get("/v1/jobs/held/explanation").status_code == 404
    with asking(of_store(tmp_path, Visibility.ANONYMOUS)) as client:
        rows = client.get("/v1/jobs", headers=bearer(ALICE)).json()["jobs"]
        assert [row["id"] for row in rows if row["user"] == "alice"] == ["a"]
        assert not any(row["id"] == "held" or row["detail"] for row in rows)


def test_sources_are_told_apart(tmp_path: Path) -> None:
    """A site's file, a database and an instance are opened as what they are; others are refused."""
    daemon, _ = live(tmp_path, job("a"))
    daemon.cycle()
    window = tmp_path / "window.json"
    write_instance(users_site(), window)
    config = tmp_path / "site.toml"
    config.write_text(
        f'visibility = "own"\n[manager]\nkind = "memory"\ninstance = "window.json"\n'
        f'[store]\nurl = "sqlite:///{tmp_path}/cpsched.db"\n'
    )
    found = {source: open_source(str(source)) for source in (config, tmp_path / "cpsched.db", window)}
    assert [one.source.kind for one in found.values()] == ["store", "store", "instance"]
    assert [one.visibility for one in found.values()] == [Visibility.OWN, Visibility.ALL, Visibility.ALL]
    for one in found.values():
        assert one.source.read() is not None
        assert one.source.read() is None
        one.source.close()
    with pytest.raises(DocumentError, match="Expected a readable file"):
        open_source(str(tmp_path / "nothing"))
    with pytest.raises(DocumentError, match="Expected no plan"):
        open_source(str(config), window)
    with pytest.raises(StoreError):
        open_source("nosuchdatabase://host/name")


def test_a_reader_before_its_daemon_makes_nothing(tmp_path: Path) -> None:
    """A server that is started before its daemon makes no file, and finds the store when it is there."""
    path = tmp_path / "cpsched.db"
    reader = StoreSource(f"sqlite:///{path}")
    with pytest.raises(StoreError, match="no such file yet"):
        reader.read()
    assert not path.exists()
    daemon, _ = live(tmp_path, job("a"))
    assert reader.read() is None
    daemon.cycle()
    assert reader.read() is not None
    reader.close()


def test_a_store_that_cannot_be_read_costs_news_only(tmp_path: Path) -> None:
    """What was known is served on, and when the store can be read again so is what is new."""
    from sqlalchemy import create_engine, text

    daemon, there = live(tmp_path, job("a"), job("b"))
    daemon.cycle()
    engine = create_engine(f"sqlite:///{tmp_path}/cpsched.db")
    with asking(of_store(tmp_path)) as client:
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE present RENAME TO away"))
        time.sleep(0.2)
        assert client.get("/v1/state").json()["counts"]["planned"] == 2
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE away RENAME TO present"))
        daemon.store.set_present(5, time.time(), b"no gzip, and no JSON")
        time.sleep(0.2)
        assert client.get("/v1/state").json()["now"] == 0
        there.advance(20)
        there.submit(replace(site(job("c")).jobs[0], submit=20))
        daemon.cycle()
        assert seen(client, 20)["counts"]["running"] == 2
    engine.dispose()


def test_forecasts_of_starts_are_served(tmp_path: Path) -> None:
    """A waiting job has its forecast, a running one has none; the state says how many starts were within."""
    jobs = [job(f"j{number}", "2:ncpus=4", walltime=100, runtime=100) for number in range(2)]
    daemon, there = live(tmp_path, *jobs, settings=replace(LIVE, forecast_every=1))
    daemon.cycle()
    with asking(of_store(tmp_path)) as client:
        told = client.get("/v1/jobs/j1").json()["forecast"]
        assert told["likely"] == 100
        assert told["earliest"] <= told["likely"] <= told["by"] <= told["latest"]
        assert told["enough"] is None  # nothing has ended yet
        assert client.get("/v1/state").json()["cycle"]["forecasts"]["starts"] == 0
        for command in (["forecast", "--json"], ["whatif", "--drop", "j1", "--json"]):
            shown = CliRunner().invoke(main, [command[0], str(tmp_path / "cpsched.db"), *command[1:]])
            assert (shown.exit_code, '"j1"' in shown.stdout) == (0, True), shown.output
        there.advance(20)
        daemon.cycle()
        assert seen(client, 20)["cycle"]["forecasts"]["starts"] == 1
        assert client.get("/v1/jobs/j0").json()["forecast"] is None


def test_the_choice_of_an_engine_is_served(tmp_path: Path) -> None:
    """With what the others made of the past; a daemon that chooses nothing has none."""
    daemon, there = live(tmp_path, job("a"))
    daemon.cycle()
    with asking(of_store(tmp_path)) as client:
        assert client.get("/v1/state").json()["cycle"]["choice"] is None
        chosen = chooses(daemon)
        there.advance(20)
        daemon.cycle()
        assert seen(client, 20)["cycle"]["choice"] == chosen


def test_who_asks_finds_why_a_job_is_and_was_stopped(tmp_path: Path) -> None:
    """The living plan has the run up to its stop, and what is served of it passes the verifier; afterwards the job's
    history says for whom it was stopped, to those that may know of the other job.
    """
    there = PlayedWorld(site(low("a", user="alice"), low("b", user="alice"), **RULES), gate_is_closed=True)
    daemon, _ = daemon_on(there, tmp_path)
    daemon.cycle()
    there.advance(10)
    submit(there, top("secret", user="bob"))
    daemon.cycle()
    (stopped,) = [name for name in "ab" if there.jobs[name].restarts]
    pages = (f"/v1/jobs/{stopped}", f"/v1/jobs/{stopped}/explanation")
    for is_over in (False, True):
        with asking(of_store(tmp_path)) as client:
            seen(client, there.now)
            assert verify(client.get("/v1/instance").json(), client.get("/v1/plan").json()) == ()
            row, why = (client.get(page).json() for page in pages)
        assert (row["status"], row["end"]) == (("planned", 11 + 20 + 120) if is_over else ("running", 11))
        assert [one["at"] for one in row["moved"] if one["start"] is None and "secret" in one["reason"]] == [10]
        assert is_over or "secret" in row["detail"]
        assert is_over or "secret" in why["form"]
        for visibility in (Visibility.ANONYMOUS, Visibility.OWN):
            with asking(of_store(tmp_path, visibility)) as client:
                seen(client, there.now)
                said = [client.get(page, headers=bearer(ALICE)) for page in ("/v1/jobs", *pages)]
            assert [one.status_code for one in said] == [200] * 3
            assert not any("secret" in one.text for one in said)
        shown = CliRunner().invoke(main, ["explain", str(tmp_path / "cpsched.db"), stopped])
        assert "stopped for job secret" in shown.stdout
        there.advance(11)
        daemon.cycle()
