"""``cpsched verify``."""

from __future__ import annotations

import gzip
import json

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window


def test_a_good_plan_has_no_violations(run: Run, window: Window) -> None:
    """The plan made by hand keeps every rule: exit code 0."""
    shown = run("verify", window.instance_file, window.plan_file)
    assert (shown.exit_code, shown.stdout) == (ExitCode.FINE, "No violations: the plan keeps every rule.\n")


def test_gzipped_documents_are_read(run: Run, window: Window) -> None:
    """Both documents may be packed."""
    packed = window.folder / "window.json.gz"
    packed.write_bytes(gzip.compress(window.instance_file.read_bytes()))
    assert run("verify", packed, window.plan_file).exit_code == ExitCode.FINE


def test_violations_are_listed(run: Run, window: Window) -> None:
    """A job that begins while a node is still taken is a violation: exit code 1, and the job is named."""
    late = window.plan["jobs"][1]
    late["start"], late["end"] = 40, 140
    late["segments"][0].update(start=40, end=140)
    shown = run("verify", window.instance_file, window.plan_file)
    assert shown.exit_code == ExitCode.VIOLATIONS
    assert "violation" in shown.stdout.splitlines()[0]
    assert "n1" in shown.stdout


def test_violations_as_json(run: Run, window: Window) -> None:
    """With --json stdout is one object whose violations have rule, subject and message."""
    window.plan["jobs"].pop()
    shown = run("verify", window.instance_file, window.plan_file, "--json")
    assert shown.exit_code == ExitCode.VIOLATIONS
    document = json.loads(shown.stdout)
    assert document["instance"].endswith("window.json")
    assert document["violations"]
    assert all(set(violation) == {"rule", "subject", "message"} for violation in document["violations"])
    assert "b" in {violation["subject"] for violation in document["violations"]}


def test_names_cannot_command_the_terminal(run: Run, window: Window) -> None:
    """A job id with an escape sequence, which only a forged plan can have, is shown without its power."""
    window.plan["waiting_room"][0]["id"] = "c\x1b[2J\u202e"
    shown = run("verify", window.instance_file, window.plan_file)
    assert shown.exit_code in {ExitCode.VIOLATIONS, ExitCode.BAD_INPUT}
    assert "\x1b" not in shown.output
    assert "\u202e" not in shown.output


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"\x1f\x8b\x08\x00", b'{"format": "cpsched-plan/1"}']
)
def test_a_bad_document_is_refused(run: Run, window: Window, content: bytes) -> None:
    """A plan that is no plan ends with exit code 2, names the file and shows no traceback."""
    broken = window.folder / "broken.json"
    broken.write_bytes(content)
    shown = run("verify", window.instance_file, broken)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "broken.json" in shown.stderr
    assert shown.stdout == ""


@pytest.mark.parametrize(("name", "hint"), [("a.csv", "from_frame"), ("a.swf", "cpsched convert")])
def test_what_is_no_json_is_called_so(run: Run, window: Window, name: str, hint: str) -> None:
    """Of a table and a log it is said what to do with it."""
    (window.folder / name).write_text("1,2\n")
    shown = run("verify", window.instance_file, window.folder / name)
    assert (shown.exit_code, hint in shown.stderr) == (ExitCode.BAD_INPUT, True)


def test_a_missing_file_is_a_fault_of_usage(run: Run, window: Window) -> None:
    """A path that does not exist ends with exit code 2."""
    assert run("verify", window.instance_file, window.folder / "none.json").exit_code == ExitCode.BAD_INPUT


@pytest.mark.parametrize("command", ["verify", "show"])
def test_swapped_files_are_called_so(run: Run, window: Window, command: str) -> None:
    """The instance comes first; if the plan does, one fault says that it is a plan. Two instances are told likewise."""
    swapped = run(command, window.plan_file, window.instance_file)
    assert swapped.exit_code == ExitCode.BAD_INPUT
    assert swapped.stderr.count("\n") == 2
    assert "this is a plan; are the two files swapped?" in swapped.stderr
    twice = run(command, window.instance_file, window.instance_file)
    assert "this is an instance; are the two files swapped?" in twice.stderr
