"""Documents through pipes: ``-`` for a document that is read, and for one that is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window

PLAN = ("solve", "--engine", "planner", "--budget", "0")


def without_seconds(result: Result) -> str:
    """Return the output of a command, without the seconds that it took."""
    return re.sub(r"[\d.]+ s\b", "T s", result.stdout)


@pytest.fixture
def planned(run: Run, window: Window) -> Path:
    """Return a plan of the window."""
    plan = window.folder / "plan.json"
    assert run(*PLAN, window.instance_file, "--quiet", "-o", plan).exit_code == ExitCode.FINE
    return plan


def test_each_command_that_reads_a_document_reads_it_from_stdin(run: Run, window: Window, planned: Path) -> None:
    """The answers are those for files; messages and outputs name the stream."""
    instance, plan = window.instance_file, planned
    for command in (
        ("verify", instance, plan),
        ("show", instance, plan),
        ("explain", instance, plan, json.loads(plan.read_text())["jobs"][0]["id"]),
        ("replan", instance, plan),
        ("whatif", instance, plan, "--drain", "n1"),
        ("simulate", instance, "--policy", "fcfs", "--quiet"),
    ):
        by_file = run(*command)
        assert by_file.exit_code == ExitCode.FINE, by_file.output
        for place, given in enumerate(command):
            if given in (instance, plan):
                piped = run(*command[:place], "-", *command[place + 1 :], stdin=Path(str(given)).read_bytes())
                assert piped.exit_code == ExitCode.FINE, piped.output
                assert without_seconds(piped) == without_seconds(by_file), command
    judged = run("verify", instance, "-", "--json", stdin=plan.read_bytes())
    assert json.loads(judged.stdout)["plan"] == "<stdin>"


def test_stdin_is_one_document(run: Run, window: Window) -> None:
    """It cannot be two, and of one that is refused the stream is named."""
    twice = run("verify", "-", "-", stdin=b"{}")
    assert twice.exit_code == ExitCode.BAD_INPUT
    assert "read once" in twice.stderr
    refused = run("verify", window.instance_file, "-", stdin=b"[")
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "<stdin>" in refused.stderr


def test_a_plan_goes_to_stdout_alone(run: Run, window: Window, planned: Path) -> None:
    """``-o -`` prints the document and no more, so that the next command can read it."""
    shown = run(*PLAN, window.instance_file, "-o", "-")
    assert shown.exit_code == ExitCode.FINE
    assert json.loads(shown.stdout)["jobs"] == json.loads(planned.read_text())["jobs"]
    assert run("verify", window.instance_file, "-", stdin=shown.stdout.encode()).exit_code == ExitCode.FINE
    assert json.loads(run("replan", window.instance_file, planned, "-o", "-").stdout)["format"] == "cpsched-plan/1"
    assert json.loads(run("whatif", window.instance_file, planned, "--drain", "n1", "-o", "-").stdout)["jobs"]


def test_stdout_takes_one_document(run: Run, window: Window, planned: Path) -> None:
    """Two would be none, and that is said before the work begins."""
    for more in (("--json",), ("--instance-output", "-")):
        shown = run(*PLAN, window.instance_file, "-o", "-", *more)
        assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
    assert (
        run("whatif", window.instance_file, planned, "--drain", "n1", "-o", "-", "--json").exit_code
        == ExitCode.BAD_INPUT
    )


def test_a_workload_through_a_pipe(run: Run) -> None:
    """What is generated is simulated without a file, and a log is known by its lines."""
    made = run("generate", "lublin", "--jobs", "20", "--nodes", "32", "-o", "-")
    assert "20 jobs" in made.stderr
    assert json.loads(made.stdout)["format"] == "cpsched-instance/1"
    simulated = run("simulate", "-", "--policy", "fcfs", "--json", stdin=made.stdout.encode())
    assert json.loads(simulated.stdout)["policies"][0]["summary"]["total"]["completed"] == 20
    log = b"; MaxProcs: 4\n1 0 5 60 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1\n"
    assert json.loads(run("simulate", "-", "--json", stdin=log).stdout)["policies"][0]["summary"]["total"]["jobs"] == 1


def test_no_document_is_overwritten_by_another_kind(run: Run, window: Window, planned: Path) -> None:
    """An output is refused where a file of the same command would be lost; a next plan or window replaces the last."""
    instance = window.instance_file
    before = Path(instance).read_bytes(), planned.read_bytes()
    for command in (
        (*PLAN, instance, "-o", instance),
        (*PLAN, "--instance-output", planned, "-o", planned, instance),
        ("whatif", instance, planned, "--drain", "n1", "-o", instance),
        ("report", planned, "--instance", instance, "-o", instance),
        ("replan", instance, planned, "-o", planned, "--instance-output", planned),
    ):
        refused = run(*command)
        assert refused.exit_code == ExitCode.BAD_INPUT, command
        assert "Expected a file of its own" in refused.stderr
    assert before == (Path(instance).read_bytes(), planned.read_bytes())
    assert run("replan", instance, planned, "-o", planned, "--instance-output", instance).exit_code == ExitCode.FINE
