"""``cpsched whatif``."""

from __future__ import annotations

import json

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window


def test_who_gains_and_who_pays_is_told(run: Run, window: Window) -> None:
    """Without the running job r, job a starts when b ends; without b too, at once."""
    shown = run("whatif", window.instance_file, window.plan_file, "--drop", "r", "--drop", "b")
    assert shown.exit_code == ExitCode.FINE
    lines = shown.stdout.splitlines()
    assert lines[:2] == ["earlier:", "  job a of ada: now + 50 s -> now + 0 s, 50 s earlier"]
    assert "  job b of bob: was planned for now + 0 s" in lines


def test_json_has_all_jobs(run: Run, window: Window) -> None:
    """With --json there are the starts of each job, and with -o the new plan is written."""
    out = window.folder / "new.json"
    shown = run(
        "whatif", window.instance_file, window.plan_file, "--walltime", "b=10", "--drop", "r", "--json", "-o", out
    )
    told = json.loads(shown.stdout)
    starts = {job["job"]: (job["before"], job["after"]) for job in told["jobs"]}
    assert starts == {"a": (50, 10), "b": (0, 0), "c": (None, None)}
    assert told["earlier"] == {"jobs": 1, "seconds": 40}
    assert out.exists()


def test_without_a_plan_the_planner_makes_one(run: Run, window: Window) -> None:
    """PLAN may be left out."""
    shown = run("whatif", window.instance_file, "--drain", "n2")
    assert shown.exit_code == ExitCode.FINE
    assert "no start any more" in shown.stdout


def test_a_submission_is_told_with_its_nodes(run: Run, window: Window) -> None:
    """A job of one node finds it behind a, or beside b on what is left of n2."""
    shown = run("whatif", window.instance_file, window.plan_file, "--submit", "1:ncpus=4,walltime=1m")
    assert shown.stdout.splitlines()[0] == "would start in 2 min 30 s, at now + 2 min 30 s, and end by now + 3 min 30 s"
    shown = run("whatif", window.instance_file, window.plan_file, "--submit", "1:ncpus=2,walltime=50", "--json")
    told = json.loads(shown.stdout)
    assert (told["start"], told["nodes"]) == (0, ["n2"])


def test_a_file_may_have_the_request(run: Run, window: Window) -> None:
    """The name of a file stands for its content."""
    path = window.write("job.json", {"id": "new", "walltime": 5, "request": "ncpus=2"})
    shown = run("whatif", window.instance_file, window.plan_file, "--add", path)
    assert "  job new: would start at now + 0 s" in shown.stdout.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--submit", "ncpus=1,walltime=1", "--drop", "a"),
        ("--walltime", "a"),
        ("--walltime", "a=soon"),
        ("--submit", "ncpus=1"),
        ("--drop", "x"),
        ("--add", "{}"),
        ("--drain", "n["),
    ],
)
def test_bad_calls_are_refused(run: Run, window: Window, arguments: tuple[str, ...]) -> None:
    """A call without changes, with changes and --submit, or with what is none ends with exit code 2."""
    shown = run("whatif", window.instance_file, window.plan_file, *arguments)
    assert shown.exit_code == ExitCode.BAD_INPUT


def test_a_submission_under_an_id_that_is_taken_gets_another_one(run: Run, window: Window) -> None:
    """The entry of job a, asked about once more, is one of job a-2."""
    entry = window.write("job.json", {"id": "a", "walltime": 5, "request": "ncpus=2"})
    shown = run("whatif", window.instance_file, window.plan_file, "--submit", entry, "--json")
    assert shown.exit_code == ExitCode.FINE
    assert json.loads(shown.stdout)["job"] == "a-2"


def test_jobs_without_a_start_say_why(run: Run, window: Window) -> None:
    """A job that is added and asks for more cores than a node has is told why it has no start."""
    shown = run("whatif", window.instance_file, window.plan_file, "--add", "ncpus=99,walltime=5")
    (line,) = (line for line in shown.stdout.splitlines() if "job submitted" in line)
    assert line.startswith("  job submitted: has no start (unsatisfiable: ")


def test_a_bad_host_list_names_its_option(run: Run, window: Window) -> None:
    """What is wrong with the nodes of --drain is said with the option, and where in the list."""
    shown = run("whatif", window.instance_file, window.plan_file, "--drain", "n[1-")
    assert "--drain" in shown.stderr
    assert "^" in shown.stderr
