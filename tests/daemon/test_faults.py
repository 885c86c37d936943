"""Faults of the world around the daemon: full disks, storms of jobs, hostile names, clocks that jump."""

from __future__ import annotations

import io
import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import Chunk, Request, Step
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Store, check_site, make_log, read_site
from cpsched.site.daemon.orders import steered_jobs
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site, world
from tests.daemon.making import daemon_on, finish
from tests.daemon.stored_orders import orders_in

#: For a shell, SQL, JSON, HTML, a terminal, a reader of text in another direction, a log and a path.
HOSTILE = (
    "$(touch /tmp/owned); rm -rf ~",
    "x'); DROP TABLE plan; --",
    '"}],"jobs":[]}',
    "<script>alert(1)</script>",
    "\x1b]0;owned\x07\x1b[2J",
    "\u202egnp.exe",
    "two\nlines level=error",
    "../../etc/passwd",
    "%s%n{0}{job}",
)
#: No document has control characters in a name.
ALLOWED = [name for name in HOSTILE if all(ord(char) >= 32 for char in name)]


def test_a_full_disk_costs_orders_and_nothing_else(tmp_path: Path) -> None:
    """While the database cannot grow no order is given; when it can again, all jobs run."""
    there = world(*(job(f"j{number}", "ncpus=2", walltime=20) for number in range(80)))
    daemon, lines = daemon_on(there, tmp_path)
    with daemon.store._engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    # what fits into the pages that are there is written first
    results = [daemon.cycle() for _ in range(3)]
    assert not results[-1]
    assert any("full" in str(line.get("error")) for line in lines.read())
    given = len([one for one in orders_in(daemon.store) if one.kind == "Start"])
    started = sum(entry.start is not None for entry in there.jobs.values())
    assert started <= given
    with daemon.store._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    finish(daemon)
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}
    assert {record.job for record in daemon.store.history() if record.kind == "JobOver"} == set(there.jobs)


def test_a_store_that_is_gone_is_not_written_and_its_jobs_are_handed_back(tmp_path: Path) -> None:
    """While its file is another one, or none, nothing is ordered; a daemon that ends then hands back nevertheless."""
    there = world(*(job(f"j{number}", walltime=20) for number in range(9)))
    daemon, lines = daemon_on(there, tmp_path)
    assert daemon.cycle()
    path, away = tmp_path / "cpsched.db", tmp_path / "away.db"
    path.rename(away)
    there.advance(30)
    before = daemon.manager.snapshot().jobs
    assert not daemon.cycle()
    assert daemon.manager.snapshot().jobs == before
    assert any("is gone" in str(line.get("error")) for line in lines.read())
    away.rename(path)
    assert daemon.cycle()
    path.rename(away)
    Store(f"sqlite:///{path}").close()
    assert not daemon.cycle()
    assert daemon.stop()
    assert not list(steered_jobs(daemon.manager.snapshot()))


def test_the_preflight_says_that_a_disk_has_no_room(tmp_path: Path) -> None:
    """Whether there is a database already or not; nothing is left behind."""
    file = tmp_path / "site.toml"
    shape = '[manager]\nkind = "memory"\ninstance = "x.json"\n[store]\nurl = "sqlite:///{}/cpsched.db"\n'
    file.write_text(shape.format(tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for _ in range(2):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
            (full,) = check_site(read_site(file))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        (fine,) = check_site(read_site(file))
        assert (full.is_fine, fine.is_fine) == (False, True)
        Store(f"sqlite:///{tmp_path}/cpsched.db").close()
    assert {one.name for one in tmp_path.iterdir()} == {"site.toml", "cpsched.db"}


def test_hostile_names_go_through_everything(tmp_path: Path) -> None:
    """Jobs with hostile names, as far as documents may have them, are planned, run and stored as any others."""
    named = [replace(one, id=name, user=name) for name, one in zip(ALLOWED, site(*_plain()).jobs, strict=False)]
    there = PlayedWorld(replace(site(nodes="n[1-2]"), jobs=tuple(named)), gate_is_closed=True)
    daemon, lines = daemon_on(there, tmp_path)
    finish(daemon)
    assert {name: entry.state for name, entry in there.jobs.items()} == dict.fromkeys(ALLOWED, JobState.COMPLETED)
    assert {record.job for record in daemon.store.history() if record.kind == "JobOver"} == set(ALLOWED)
    assert len(lines.read()) > len(ALLOWED)


def _plain() -> list[dict[str, object]]:
    return [job(f"j{number}", walltime=20) for number in range(len(HOSTILE))]


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_log_has_one_line_for_each_event(form: str, name: str) -> None:
    """No name makes a second line, an escape that a terminal obeys, or a key of its own in JSON."""
    stream = io.StringIO()
    make_log(form=form, stream=stream).info("JobStarted", job=name, at=5)
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    if form == "json":
        assert json.loads(line)["at"] == 5
        assert set(json.loads(line)) == {"job", "at", "event", "level", "timestamp"}


def test_a_log_without_room_loses_lines_and_nothing_else() -> None:
    """A line that cannot be written is lost; the one after it begins anew."""
    stream = io.StringIO()
    write, failing = stream.write, [False, True, True, False, False]

    def may_fail(text: str) -> int:
        if failing.pop(0):
            write(text[:5])
            raise OSError(28, "No space left on device")
        return write(text)

    stream.write = may_fail  # type: ignore[method-assign]  # a disk that fills up
    log = make_log(stream=stream)
    for number in range(5):
        log.info("one", number=number)
    whole = [line for line in stream.getvalue().splitlines() if line.endswith("}")]
    assert [json.loads(line)["number"] for line in whole] == [0, 3, 4]


def test_secrets_are_not_logged() -> None:
    """A value whose name says that it is a secret is hidden, and long ones are cut."""
    stream = io.StringIO()
    make_log(stream=stream).warning("begun", url="postgresql://u:hush@h/d", password="hush", job="x" * 10_000)  # noqa: S106
    assert "hush" not in stream.getvalue()
    assert len(stream.getvalue()) < 2000


@pytest.mark.parametrize("jump", [-3600, 86_400])
def test_a_clock_that_jumps_loses_no_job(tmp_path: Path, jump: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the manager's clock has jumped, in either direction, all jobs run, each once."""
    there = world(*(job(f"j{number}", walltime=30, runtime=20) for number in range(6)), now=0)
    daemon, lines = daemon_on(there, tmp_path)
    daemon.cycle()
    if jump > 0:
        there.advance(jump)
    else:
        snapshot = daemon.manager.snapshot

        def earlier() -> object:
            real = snapshot()
            at = real.taken_at + jump
            return replace(real, taken_at=at, instance=replace(real.instance, now=at))

        monkeypatch.setattr(daemon.manager, "snapshot", earlier)
        daemon.cycle()
        monkeypatch.undo()
    finish(daemon)
    assert {entry.state for entry in there.jobs.values()} == {JobState.COMPLETED}
    started = [line["job"] for line in lines.read() if line["event"] == "JobStarted"]
    assert sorted(started) == sorted(there.jobs)


@pytest.mark.slow
def test_a_storm_of_five_thousand_jobs(tmp_path: Path) -> None:
    """5,000 jobs that arrive at once are seen in one cycle, and the most urgent ones are planned."""
    there = PlayedWorld(site(nodes="n[1-64]"), gate_is_closed=True)
    daemon, _ = daemon_on(there, tmp_path)
    daemon.planner.engine = replace(daemon.planner.engine, most=200)
    daemon.cycle()
    template = site(job("t", "ncpus=4", walltime=600)).jobs[0]
    request: Request = template.request
    wide = replace(request, chunks=(Chunk(count=3, resources=request.chunks[0].resources),))
    for number in range(5000):
        steps = (Step(walltime=60 + number % 500, request=wide if number % 3 else request),)
        there.submit(replace(template, id=f"s{number}", steps=steps))
    assert daemon.cycle()
    assert daemon.state.snapshot is not None
    assert len(daemon.state.considered) == 5000
    running = sum(entry.start is not None for entry in there.jobs.values())
    assert running >= 20
    assert 200 >= len(daemon.state.plan) >= 100
    there.advance(there.now + 30)
    assert daemon.cycle()
    assert daemon.state.stale == ""
