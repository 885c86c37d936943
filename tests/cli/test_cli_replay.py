"""``cpsched replay``: the days of a history, as it was and with changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.cli.outputs import output_schema
from cpsched.lab.bench import EngineChoice
from cpsched.lab.sim import Trial
from tests.bridge.small_world import job, world
from tests.cli.conftest import Run
from tests.daemon.making import LIVE, daemon_on, finish

#: Two nodes of four cores, 2020-01-01 on. On the first day job 1 has both for an hour, and 2 waits until it ends. On
#: the second day 4 comes while 3 still runs, which came on the first; 5 waits for 4. That is what EASY does.
DAY = 86_400
LOG = f"""; UnixStartTime: 1577836800
; TimeZoneString: UTC
; MaxNodes: 2
; MaxProcs: 8
1 0 0 3600 8 -1 -1 8 3600 -1 1 7 1 -1 1 -1 -1 -1
2 600 3000 1800 8 -1 -1 8 1800 -1 1 8 1 -1 1 -1 -1 -1
3 {DAY - 600} 0 1200 8 -1 -1 8 1200 -1 1 7 1 -1 1 -1 -1 -1
4 {DAY + 100} 500 1000 4 -1 -1 4 1000 -1 1 8 1 -1 1 -1 -1 -1
5 {DAY + 200} 1400 1000 8 -1 -1 8 1000 -1 1 8 1 -1 1 -1 -1 -1
"""
ONE_EACH = '{"consumer": {"each": "user"}, "resource": "jobs", "items": "1"}'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log, on two nodes of four cores."""
    machine = {
        "format": "cpsched-instance/1",
        "name": "machine",
        "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
    }
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def replayed(run: Run, log: Path, *arguments: object) -> dict[str, Any]:
    """Run the command on the log and its machine, and return what it prints as JSON."""
    shown = run("replay", log, "--cluster", log.parent / "machine.json", *arguments, "--json", "--quiet")
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    document: dict[str, Any] = json.loads(shown.stdout)
    return document


def waits(document: dict[str, Any]) -> dict[str, float]:
    """Return the mean wait of what happened and of each replay."""
    return {one["label"]: one["summary"]["total"]["wait"]["mean"] for one in document["replays"]}


def test_a_replay_of_what_happened_is_what_happened(run: Run, log: Path) -> None:
    """EASY decided these starts, so that each job starts where it did."""
    found = replayed(run, log)
    assert found["fidelity"] == {
        "jobs": 5, "wait": 980.0, "simulated_wait": 980.0, "within_minute": 1.0, "within_hour": 1.0, "correlation": 1.0,
    }  # fmt: skip
    assert waits(found) == {"as it was": 980.0, "unchanged": 980.0}
    assert found["differences"] == []


def test_a_log_comes_from_stdin(run: Run, log: Path) -> None:
    """The answer is that for the file."""
    command = ("--replicas", 1, "--json")
    by_file = json.loads(run("replay", log, *command).stdout)
    piped = json.loads(run("replay", "-", *command, stdin=log.read_bytes()).stdout)
    assert piped["fidelity"] == by_file["fidelity"]


def test_days_begin_with_what_ran(run: Run, log: Path) -> None:
    """On the second day 4 and 5 count; 3 came before, and still holds the machine."""
    for day in ("2020-01-02", "1"):
        found = replayed(run, log, "--from", day)
        assert (found["jobs"], found["begin"]) == (2, DAY)
        assert waits(found) == {"as it was": 950.0, "unchanged": 950.0}


def test_what_waited_when_the_days_begin_still_waits(run: Run, log: Path) -> None:
    """A job that came before the first day and waits when it begins has the machine before those that come."""
    more = f"6 {2 * DAY - 50} 100 3600 8 -1 -1 8 3600 -1 1 7 1 -1 1 -1 -1 -1\n"
    more += f"7 {2 * DAY + 60} 3590 10 8 -1 -1 8 10 -1 1 7 1 -1 1 -1 -1 -1\n"
    log.write_text(LOG + more)
    found = replayed(run, log, "--from", 2, "--replicas", 1)
    assert found["jobs"] == 1
    assert waits(found) == {"as it was": 3590.0, "unchanged": 3540.0}  # nothing says why 6 waited for 100 s


def test_each_change_is_a_replay_of_its_own(run: Run, log: Path) -> None:
    """Without one node 5 is refused; with two more it waits for 3 alone; with four, and a job per user, for 4."""
    changes = ("remove n2", "add 2 nodes with cores=4", f"add 4 nodes; limit={ONE_EACH}")
    asked = [word for change in changes for word in ("--change", change)]
    found = replayed(run, log, "--from", 1, *asked, "--replicas", 2)
    assert waits(found)["add 2 nodes with cores=4"] == 200.0
    refused = {one["label"]: one["summary"]["total"]["refused"] for one in found["replays"]}
    assert refused == dict.fromkeys(("as it was", "unchanged", *changes[1:]), 0) | {"remove n2": 1}
    assert waits(found)[changes[2]] == 450.0
    (wait,) = (one for one in found["differences"] if (one["label"], one["figure"]) == (changes[1], "wait.mean"))
    assert wait["difference"]["mean"] == pytest.approx(wait["changed"]["mean"] - wait["unchanged"]["mean"])
    assert wait["difference"]["half_width"] is not None
    assert output_schema("replay")["properties"].keys() == found.keys()


def test_the_report_begins_with_how_near_the_replay_is(run: Run, log: Path) -> None:
    """In the terminal and on the page."""
    page = log.parent / "replay.html"
    shown = run("replay", log, "--cluster", log.parent / "machine.json", "--change", "engine=fcfs", "-o", page)
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    said = "Played again without a change, the mean wait is 16 min 20 s; it really was 16 min 20 s. 100% of the jobs"
    assert shown.stdout.startswith(said)
    assert "That is near" in shown.stdout
    assert said in page.read_text()


def test_a_workload_without_starts_says_so(run: Run, tmp_path: Path) -> None:
    """Of an instance nobody knows what happened: replays are compared with each other only."""
    nodes = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]}
    jobs = [{"id": f"{n}", "submit": n, "walltime": 60, "runtime": 50, "request": "2:ncpus=4"} for n in range(3)]
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"format": "cpsched-instance/1", "name": "w", "cluster": nodes, "jobs": jobs}))
    shown = run("replay", path, "--change", "add 2 nodes")
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    assert shown.stdout.startswith("The history does not say when jobs started")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "2021-05-01"], "Expected a day of the history, which goes from 2020-01-01 to 2020-01-02"),
        (["--from", "9"], "Expected a day of the history"),
        (["--from", "someday"], "Expected a date as 2026-11-03, or a number of days"),
        (["--from", "1", "--to", "1"], "Expected days on which jobs came, got none"),
        (["--change", "remove n9"], "Expected nodes of the cluster, got n9"),
        (["--change", "remove 3 nodes with cores=4"], "at most 2 nodes with cores=4"),
        (["--change", "remove n[1-2]"], "Expected a cluster that keeps a node"),
        (["--change", "drain=n9"], "Expected a node of the cluster, got 'n9'"),
        (["--change", "add many nodes"], "Expected 'add 20 nodes with gpus=4'"),
        (["--change", "faster"], "Expected engine=NAME, policy=NAME, limit=JSON"),
        (["--change", "engine=eazy"], "Expected a scheduler, got 'eazy'"),
        (["--change", "engine=easy; policy=fcfs"], "Expected one engine or policy"),
        (["--change", ONE_EACH.replace('"each": "user"', '"user": "u77"').join(("limit=", ""))], "the user 'u77'"),
        (["--change", ONE_EACH.replace('"jobs"', '"mem"').join(("limit=", ""))], "mem"),
        (["--change", "engine=fcfs", "--change", "engine=fcfs"], "Expected each change once"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused(run: Run, log: Path, arguments: list[str], said: str) -> None:
    """Days outside of the history, and changes that change nothing, are named, and nothing is simulated."""
    shown = run("replay", log, "--cluster", log.parent / "machine.json", *arguments)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert said in shown.stderr
    assert shown.stdout == ""


def test_a_file_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    """It is neither a log nor a store."""
    assert "does not exist" in run("replay", tmp_path / "none.swf").stderr


@pytest.mark.slow
def test_a_store_is_a_history(run: Run, tmp_path: Path) -> None:
    """What a dry run has seen is played again: each job starts as it did, and sooner with another node."""
    jobs = [
        job("r", "2:ncpus=4", walltime=50, runtime=50),
        *(job(f"wide{number}", "2:ncpus=4", walltime=200, submit=5 + number, runtime=100) for number in range(3)),
    ]
    seen = world(*jobs, gate_is_closed=False)
    daemon, _ = daemon_on(seen, tmp_path, LIVE)
    store = tmp_path / "cpsched.db"
    shown = run("replay", store)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "Expected a store with a history of jobs that started" in shown.stderr
    finish(daemon)
    real = [(entry.start or 0) - entry.job.submit for entry in seen.jobs.values() if entry.job.id != "r"]
    daemon.close()
    shown = run("replay", store, "--change", "add 4 nodes", "--json", "--replicas", 1)
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    found = json.loads(shown.stdout)
    assert found["fidelity"]["jobs"] == 3
    assert found["fidelity"]["wait"] == sum(real) / 3
    assert waits(found)["add 4 nodes"] < waits(found)["unchanged"]
    assert "Expected a log for options of logs" in run("replay", store, "--jobs", 2).stderr


def choosing(folder: Path, more: str = 'choose = ["easy"]') -> Path:
    """Write a site's file."""
    path = folder / "site.toml"
    path.write_text(
        f'[manager]\nkind = "memory"\ninstance = "i.json"\n[planning]\n{more}\n'
        f'[store]\nurl = "sqlite:///{folder}/cpsched.db"\n'
    )
    return path


def test_the_choice_of_an_engine_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the evidence; where the past says too little, the engine of the site's file stays."""
    daemon, _ = daemon_on(world(job("a", walltime=50, runtime=50)), tmp_path, LIVE)
    finish(daemon)
    daemon.close()
    shown = run("replay", choosing(tmp_path), "--choose")
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    assert "wspt_list stays" in shown.stdout
    trial = Trial(replicas=4, wins=True, ratio=0.5, slowdown=0.75, longest=1.0)
    found = EngineChoice(engine="easy", jobs=200, begin=0, end=9, trials={"easy": trial})
    monkeypatch.setattr("cpsched.lab.bench.choose_engine", lambda *_, **__: found)
    shown = run("replay", choosing(tmp_path), "--choose")
    assert [word for word in ("easy", "0.50", "0.75", "4, won") if word not in shown.stdout] == []
    document = json.loads(run("replay", choosing(tmp_path), "--choose", "--json").stdout)
    assert (document["usual"], document["engine"], document["trials"][0]["ratio"]) == ("wspt_list", "easy", 0.5)


def test_what_cannot_be_chosen_is_refused(run: Run, log: Path) -> None:
    """A log has no engines, nor has a site's file that names none; other options would not be heeded."""
    path = choosing(log.parent, "")
    assert "Expected the site's file" in run("replay", log, "--choose").stderr
    assert "Expected engines in planning.choose" in run("replay", path, "--choose").stderr
    assert "Expected --choose with --json" in run("replay", path, "--choose", "--replicas", 5).stderr
    assert "Expected --choose with --json" in run("replay", log, "--choose", "--jobs", 5).stderr
