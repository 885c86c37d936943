"""``cpsched forecast``."""

from __future__ import annotations

import json

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window

#: Ada's jobs take a tenth of what she asks for.
LOG = "; MaxNodes: 2\n; MaxProcs: 8\n" + "".join(
    f"{number} {number * 10} 0 10 1 -1 -1 1 100 -1 1 7 1 -1 1 -1 -1 -1\n" for number in range(1, 40)
)


def test_each_waiting_job_has_a_start_and_an_interval(run: Run, window: Window) -> None:
    """Without a log all jobs take their walltimes: b starts now, a when it has ended, and c, too wide, has no line."""
    shown = run("forecast", window.instance_file)
    assert shown.exit_code == ExitCode.FINE
    lines = {line.partition(":")[0]: line for line in shown.stdout.splitlines()}
    assert "most likely now + 0 s" in lines["b"]
    assert "c" not in lines
    told = json.loads(run("forecast", window.instance_file, "--json").stdout)
    rows = {one["job"]: one for one in told["jobs"]}
    assert rows.keys() == lines.keys()
    for one in rows.values():
        assert one["earliest"] <= one["likely"] <= one["by"] <= one["latest"]


def test_a_log_teaches_how_long_jobs_run(run: Run, window: Window) -> None:
    """What ended in the log before now is learnt from; and the same seed tells the same."""
    instance = json.loads(window.instance_file.read_text())
    late = window.write("late.json", {**instance, "now": 1000, "jobs": [
        {"id": name, "submit": 1000, "walltime": 100, "request": "2:ncpus=4"} for name in ("first", "second")
    ]})  # fmt: skip
    log = window.folder / "log.swf"
    log.write_text(LOG)
    told = [json.loads(run("forecast", late, log, "--json", "--seed", "3").stdout) for _ in range(2)]
    assert told[0] == told[1]
    assert told[0]["learnt"] == 39
    rows = {one["job"]: one for one in told[0]["jobs"]}
    assert rows["first"]["latest"] == 1000
    assert 1000 < rows["second"]["likely"] < 1100


@pytest.mark.parametrize("arguments", [["--futures", "3"], ["--futures", "x"], ["--seed", "-1"], ["no.swf"]])
def test_bad_arguments_are_refused(run: Run, window: Window, arguments: list[str]) -> None:
    """Too few futures for a share of 90 %, no number, no file."""
    shown = run("forecast", window.instance_file, *arguments)
    assert shown.exit_code == 2


def test_a_log_that_is_none_is_refused(run: Run, window: Window) -> None:
    """A file that is no log is a fault of the input."""
    log = window.folder / "log.swf"
    log.write_text("what\n")
    assert run("forecast", window.instance_file, log).exit_code == ExitCode.BAD_INPUT


def test_an_explanation_says_when_it_will_start(run: Run, window: Window) -> None:
    """With a log the forecast is the first line, and a key of the JSON; without one it is not made."""
    log = window.folder / "log.swf"
    log.write_text(LOG)
    asked = "explain", window.instance_file, window.plan_file, "a"
    assert run(*asked, "--log", log).stdout.splitlines()[0].startswith("most likely now + ")
    assert json.loads(run(*asked, "--log", log, "--json").stdout)["forecast"]["job"] == "a"
    late = run(*asked, "--log", log)  # the log comes after now
    assert "jobs like it" not in late.stdout
    assert "log.swf" in late.stderr
    assert json.loads(run(*asked, "--json").stdout)["forecast"] is None


def test_a_user_is_advised_to_ask_for_less(run: Run, window: Window) -> None:
    """Jobs of an hour end within a minute: with that `second` fits before `held`, and would start at once."""
    lines = (f"{number} {number} 0 10 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1\n" for number in range(1, 200))
    log = window.folder / "log.swf"
    log.write_text("; MaxNodes: 2\n; MaxProcs: 8\n" + "".join(lines))
    queues = {"short": {"expected_wait": 100}}
    instance = {**json.loads(window.instance_file.read_text()), "now": 1000, "queues": queues, "jobs": [
        {"id": "held", "submit": 1000, "walltime": 100, "request": "2:ncpus=4", "start_at": 1200},
        {"id": "second", "submit": 1000, "walltime": 3600, "request": "1:ncpus=4", "queue": "short", "user": "u1"},
    ]}  # fmt: skip
    late, plan = window.write("late.json", instance), window.folder / "late.plan.json"
    assert run("solve", late, "--engine", "planner", "-o", plan).exit_code == ExitCode.FINE
    rows = json.loads(run("forecast", late, log, "--json").stdout)["jobs"]
    assert {row["job"]: row["enough"] for row in rows}["second"] == 60
    assert "end within 1 min" in run("forecast", late, log).stdout
    explained = run("explain", late, plan, "second", "--log", log)
    assert "with that walltime it would start at once" in explained.stdout
    assert "log.swf" not in explained.stderr
