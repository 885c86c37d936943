"""The engine that is chosen once a day by a process beside the daemon."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.formats import instance_to_document
from cpsched.site.bridge import JobState
from cpsched.site.daemon import Daemon, Store, read_site
from cpsched.site.daemon.choosing import Choices
from cpsched.site.daemon.state import JobOver, Save
from cpsched.site.daemon.store import json_text
from tests.bridge.small_world import job, site, world
from tests.daemon.making import LIVE, Lines, daemon_on, planner

DAY = 86_400
TRIAL = {"engine": "easy", "replicas": 4, "wins": True, "ratio": 0.5, "slowdown": 0.6, "longest": 1.0}
ANSWER = {
    "format": "cpsched-replay-choose/1", "usual": "fcfs", "engine": "easy", "jobs": 200, "begin": 0, "end": 9 * DAY,
    "trials": [TRIAL],
}  # fmt: skip


def begun(folder: Path, program: str, engines: tuple[str, ...] = ("fcfs", "easy")) -> tuple[Daemon, Lines]:
    """Return a daemon that asks a program of Python for its engine, after its first cycle."""
    choices = Choices(engines=engines, command=(sys.executable, "-c", program))
    there = world(job("a", walltime=50, runtime=50))
    daemon, lines = daemon_on(there, folder, replace(LIVE, choices=choices), planner=planner(engine=engines[0]))
    daemon.cycle()
    return daemon, lines


def settled(daemon: Daemon) -> None:
    """Begin a choice, and wait until it is over."""
    daemon.choose()
    end = time.monotonic() + 60
    while daemon._chooser._process is not None and time.monotonic() < end:
        daemon.choose()
        time.sleep(0.02)
    assert daemon._chooser._process is None


def printing(**other: Any) -> str:
    """Return a program that prints an answer."""
    return f"print({json.dumps({**ANSWER, **other})!r})"


def choices_in(daemon: Daemon) -> list[dict[str, Any]]:
    """Return the choices that the store has."""
    return [dict(one.content) for one in daemon.store.history() if one.kind == "EngineChosen"]


def advance(daemon: Daemon, seconds: int) -> None:
    """Move the clock on, and look."""
    daemon.manager.world.advance(daemon.state.now + seconds)  # type: ignore[attr-defined]  # in memory
    daemon.cycle()


def test_an_engine_that_wins_is_used_and_survives_a_restart(tmp_path: Path) -> None:
    """Its evidence is in the store and in the log, its name in the metrics and in what readers see."""
    daemon, lines = begun(tmp_path, printing())
    assert daemon.planner.engine.name == "fcfs"
    settled(daemon)
    assert daemon.planner.engine.name == "easy"
    (kept,) = choices_in(daemon)
    assert (kept["engine"], kept["usual"], kept["since"], kept["jobs"]) == ("easy", "fcfs", 0, 200)
    assert kept["trials"]["easy"]["ratio"] == 0.5
    assert any(line["event"] == "EngineChosen" and line["trials"]["easy"]["wins"] for line in lines.read())
    assert daemon.metrics.registry.get_sample_value("cpsched_engine", {"engine": "easy"}) == 1
    assert daemon.metrics.registry.get_sample_value("cpsched_engine", {"engine": "fcfs"}) is None
    assert daemon.cycle()
    present = daemon.store.present()
    assert present is not None
    assert present.document["choice"]["engine"] == "easy"
    daemon.close()
    again, _ = begun(tmp_path, "raise SystemExit(1)")
    assert again.planner.engine.name == "easy"
    again.choose()
    assert again._chooser._process is None, "the day is not over"


def test_it_chooses_once_a_day_and_goes_back(tmp_path: Path) -> None:
    """Before a day is over nothing is asked; then the usual one stays the better one again."""
    daemon, _ = begun(tmp_path, printing())
    settled(daemon)
    lost = {**TRIAL, "replicas": 1, "wins": False, "ratio": 1.2}
    other = Choices(
        engines=("fcfs", "easy"), command=(sys.executable, "-c", printing(engine="fcfs", trials=[lost]))
    )  # fmt: skip
    daemon.settings = replace(daemon.settings, choices=other)
    advance(daemon, DAY - 1)
    settled(daemon)
    assert daemon.planner.engine.name == "easy"
    advance(daemon, 1)
    settled(daemon)
    assert daemon.planner.engine.name == "fcfs"
    assert [one["since"] for one in choices_in(daemon)] == [0, DAY]


def test_a_choice_of_other_engines_does_not_hold(tmp_path: Path) -> None:
    """Where the site's file has another engine, or does not have that one any more, the file holds."""
    daemon, _ = begun(tmp_path, printing())
    settled(daemon)
    daemon.close()
    for engines in (("wspt_list", "easy"), ("fcfs", "wspt_list"), ("fcfs",)):
        again, _ = begun(tmp_path, printing(), engines)
        assert again.planner.engine.name == engines[0]
        again.close()


def test_a_file_that_is_read_again_keeps_the_choice(tmp_path: Path) -> None:
    """As long as it has the same engines; a process at work is ended, as it may have read the other file."""
    daemon, _ = begun(tmp_path, printing())
    settled(daemon)
    daemon._chooser._begun = None
    daemon.settings = replace(
        daemon.settings, choices=Choices(engines=("fcfs", "easy"), command=(sys.executable, "-c", "input()"))
    )
    daemon.choose()
    for engines, used in ((("fcfs", "easy", "wspt_list"), "easy"), (("fcfs",), "fcfs")):
        new = replace(daemon.settings, choices=Choices(engines=engines, command=()))
        daemon.reread = lambda new=new: (new, planner(engine="fcfs"))
        daemon.read_again()
        daemon.reload()
        assert daemon.planner.engine.name == used
        assert daemon._chooser._process is None


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(3)",
        "print('nonsense')",
        "print('x' * 3_000_000)",
        "import os; os.kill(os.getpid(), 9)",
        printing(engine="portfolio"),
        printing(usual="wspt_list"),
        printing(format="cpsched-replay/1"),
        printing(trials=[]),
        printing(trials=[{**TRIAL, "wins": False}]),
        printing(trials=[{**TRIAL, "ratio": 1.1}]),
        printing(trials=[{**TRIAL, "ratio": -1}]),
        printing(trials=[TRIAL, {**TRIAL, "engine": "<b>"}]),
    ],
)  # fmt: skip
def test_what_fails_leaves_the_engine_and_says_so(tmp_path: Path, program: str) -> None:
    """A process that dies or talks nonsense, and answers that cannot be: the cycles go on as before."""
    daemon, lines = begun(tmp_path, program)
    settled(daemon)
    assert daemon.planner.engine.name == "fcfs"
    assert choices_in(daemon) == []
    (said,) = (line for line in lines.read() if line["level"] == "error")
    assert "no choice of an engine" in said["event"]
    assert daemon.metrics.registry.get_sample_value("cpsched_failures_total", {"what": "choice"}) == 1
    assert daemon.cycle()
    daemon.choose()
    assert daemon._chooser._process is None, "the next one is due tomorrow"


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is one that is at work when the daemon is closed."""
    monkeypatch.setattr("cpsched.site.daemon.choosing._LONGEST", 1)
    daemon, lines = begun(tmp_path, "import time; time.sleep(600)")
    settled(daemon)
    assert any("within 1 s" in line.get("error", "") for line in lines.read())
    daemon.close()
    monkeypatch.undo()
    (other := tmp_path / "other").mkdir()
    daemon, _ = begun(other, "import time; time.sleep(600)")
    daemon.choose()
    process = daemon._chooser._process
    assert process is not None
    daemon.close()
    assert process._process.returncode is not None


def test_too_short_a_past_is_no_failure(tmp_path: Path) -> None:
    """The engine stays, and nothing is written down."""
    daemon, lines = begun(tmp_path, printing(engine="fcfs", jobs=3, trials=[]))
    settled(daemon)
    assert daemon.planner.engine.name == "fcfs"
    assert choices_in(daemon) == []
    assert not [line for line in lines.read() if line["level"] == "error"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('engine = "wspt_list"\nchoose = ["search"]', "Expected rules, as the engine too, got search"),
        ('engine = "portfolio"\nchoose = ["easy"]', "got portfolio"),
        ('choose = ["easy", "easy"]', "Expected each engine once"),
        ('choose = ["eazy"]', "Expected one of"),
        ('choose = ["easy"]\n[store]\nkeep_days = 7', "keep_days of 8 or more"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """Engines that search are no rules, and a week of history is needed."""
    path = tmp_path / "site.toml"
    url = 'url = "sqlite:////tmp/x.db"\n'
    head, _, store = text.partition("[store]")
    path.write_text(f'[manager]\nkind = "memory"\ninstance = "i.json"\n[planning]\n{head}\n[store]\n{url}{store}\n')
    with pytest.raises(Exception, match=r"planning\.choose") as caught:
        read_site(path)
    assert said in str(caught.value)


@pytest.mark.slow
def test_a_real_replay_of_the_store_chooses(tmp_path: Path) -> None:
    """Of days on which a wide job waits for a long one, and short jobs fit behind it, EASY wins over a strict list."""
    entries = dict[str, dict[str, Any]]()
    for day in range(9):
        for name, request, after, runtime in (
            ("long", "3:ncpus=1", 0, 40_000),
            ("wide", "2:ncpus=4", 700, 1_000),
            *((f"s{n}", "1:ncpus=1", 1_500 + 900 * n, 300) for n in range(10)),
        ):
            entry = job(f"d{day}{name}", request, submit=day * DAY + after, walltime=runtime)
            entries[entry["id"]] = {**entry, "runtime": runtime}
    store = Store(f"sqlite:///{tmp_path}/cpsched.db")
    store.add_snapshot(site())
    for name, entry in entries.items():
        lasts = entry.pop("runtime")
        store.add_jobs({name: json_text(entry)}, entry["submit"])
        start = entry["submit"] + 10
        over = JobOver(job=name, state=JobState.COMPLETED, start=start, end=start + lasts)
        store.save(Save(records=(over,)), over.end or 0)
    store.close()
    document = {**instance_to_document(site(job("a", walltime=50, runtime=50))), "now": 9 * DAY}
    (tmp_path / "i.json").write_text(json.dumps(document))
    path = tmp_path / "site.toml"
    path.write_text(
        f'[manager]\nkind = "memory"\ninstance = "i.json"\n[planning]\nengine = "fcfs"\nchoose = ["easy"]\n'
        f'[store]\nurl = "sqlite:///{tmp_path}/cpsched.db"\n'
    )
    there = world(job("a", walltime=50, runtime=50), now=9 * DAY)
    settings = replace(LIVE, choices=Choices.of(("fcfs", "easy"), path))
    daemon, _ = daemon_on(there, tmp_path, settings, planner=planner(engine="fcfs"))
    daemon.cycle()
    daemon.choose()
    process = daemon._chooser._process
    assert process is not None
    end = time.monotonic() + 500
    while daemon._chooser._process is not None and time.monotonic() < end:
        assert daemon.cycle()
        daemon.choose()
        time.sleep(0.2)
    assert daemon.planner.engine.name == "easy"
    (kept,) = choices_in(daemon)
    assert kept["jobs"] == len(entries)
    assert kept["trials"]["easy"]["ratio"] < 0.9
    daemon.close()
