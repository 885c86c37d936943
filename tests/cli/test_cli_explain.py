"""``cpsched explain``, and the line that ``cpsched show --job`` has of it."""

from __future__ import annotations

import json

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window


def test_the_cause_is_told_with_the_job_behind_it(run: Run, window: Window) -> None:
    """Job a needs both nodes until r and b end, and could start at once with one of its chunks if b were not there."""
    shown = run("explain", window.instance_file, window.plan_file, "a")
    assert shown.exit_code == ExitCode.FINE
    lines = shown.stdout.splitlines()
    assert lines[0] == "job a: planned from now + 50 s to now + 2 min 30 s (1 min 40 s)"
    assert "    job r runs until now + 50 s on n1" in lines
    assert "    job b of bob is planned from now + 0 s to now + 50 s on n2" in lines


def test_dates_are_those_of_the_calendar(run: Run, window: Window) -> None:
    """With an epoch, times are dates."""
    window.instance["epoch"] = "2014-03-31T18:00:00+02:00"
    shown = run("explain", window.instance_file, window.plan_file, "a")
    assert "2014-03-31 18:00:50" in shown.stdout


def test_json_has_the_same(run: Run, window: Window) -> None:
    """With --json the answer is one object, at the second asked about."""
    shown = run("explain", window.instance_file, window.plan_file, "a", "--at", 20, "--json")
    told = json.loads(shown.stdout)
    (blocked,) = told["blocked"]
    assert (told["start"], blocked["start"], blocked["end"]) == (50, 20, 50)
    assert [holder["job"] for holder in blocked["cause"]["holders"]] == ["b", "r"]


def test_the_waiting_room_is_explained(run: Run, window: Window) -> None:
    """Job c asks for more cores than a node has: with 4 of them it could start."""
    shown = run("explain", window.instance_file, window.plan_file, "c")
    assert shown.exit_code == ExitCode.FINE
    assert "unsatisfiable" in shown.stdout
    assert "with 4 of its 8 cores in each chunk" in shown.stdout


def test_names_cannot_write_to_the_terminal(run: Run, window: Window) -> None:
    """Names of jobs and users are shown with escapes."""
    window.instance["jobs"][0]["id"] = window.plan["jobs"][0]["id"] = "r\u202e"
    window.instance["jobs"][2]["user"] = "b\u202e"
    shown = run("explain", window.instance_file, window.plan_file, "a")
    assert "\u202e" not in shown.stdout
    assert "r\\u202e" in shown.stdout


def test_an_unknown_job_is_a_fault_of_usage(run: Run, window: Window) -> None:
    """A job that the instance does not have ends with exit code 2."""
    shown = run("explain", window.instance_file, window.plan_file, "x")
    assert shown.exit_code == ExitCode.BAD_INPUT


def test_an_array_is_asked_about_by_its_elements(run: Run, window: Window) -> None:
    """The id of an array is answered with that of one of its elements."""
    del window.plan["jobs"][1], window.instance["jobs"][1]["id"]
    window.instance["jobs"][1] |= {"id": "many", "array": {"indices": "3-5"}}
    shown = run("explain", window.instance_file, window.plan_file, "many")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "'many' is an array of 3 jobs: name one, such as 'many[3]'." in shown.stderr


def test_seconds_beyond_all_documents_are_refused(run: Run, window: Window) -> None:
    """No second of an instance is later than 10^12."""
    shown = run("explain", window.instance_file, window.plan_file, "a", "--at", 10**15)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "--at" in shown.stderr


def test_a_plan_whose_jobs_collide_is_refused(run: Run, window: Window) -> None:
    """A plan that books a node twice has no answers: exit code 2, with the job."""
    window.plan["jobs"][1]["start"] = window.plan["jobs"][1]["segments"][0]["start"] = 40
    shown = run("explain", window.instance_file, window.plan_file, "b")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "job" in shown.stderr


def test_show_says_the_first_line(run: Run, window: Window) -> None:
    """`show --job` says why the job does not start now, and of a plan that breaks rules that this is not known."""
    shown = run("show", window.instance_file, window.plan_file, "--job", "a")
    assert "not at now + 0 s: too little is free of cores: 0 of 2 chunks find place" in shown.stdout
    window.plan["jobs"][1]["start"] = window.plan["jobs"][1]["segments"][0]["start"] = 40
    shown = run("show", window.instance_file, window.plan_file, "--job", "a")
    assert shown.exit_code == ExitCode.FINE
    assert "the plan breaks rules" in shown.stdout
