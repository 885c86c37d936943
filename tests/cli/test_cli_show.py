"""``cpsched show``."""

from __future__ import annotations

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window


def test_the_table_has_every_job(run: Run, window: Window) -> None:
    """Without options, the plan is a table with all jobs, cut off nowhere."""
    window.instance["jobs"][1]["id"] = window.plan["jobs"][1]["id"] = "a" * 100
    shown = run("show", window.instance_file, window.plan_file)
    assert shown.exit_code == ExitCode.FINE
    assert "a" * 100 in shown.stdout
    assert "unsatisfiable" in shown.stdout


def test_the_figures_and_the_history_follow(run: Run, window: Window) -> None:
    """Behind the table of jobs stand the plan's figures with the proof of its bound, who found it, what happened."""
    value = window.plan["objective"]["value"]
    window.plan["objective"] |= {"bound": value, "gap": 0.0, "proof": "each job at its own earliest start"}
    window.plan["incumbents"] = [{"at": 0.25, "value": value, "by": "planner"}]
    window.plan["events"] = [{"at": 1.5, "by": "cp", "what": "ended by itself"}]
    shown = run("show", window.instance_file, window.plan_file)
    assert shown.exit_code == ExitCode.FINE
    for text in ("each job at its own earliest start", "0.25 s", "planner", "1.50 s", "ended by itself"):
        assert text in shown.stdout
    assert shown.stdout.index("unsatisfiable") < shown.stdout.index("proof") < shown.stdout.index("0.25 s")


def test_the_chart_fits_the_terminal(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --gantt the nodes are drawn, within the terminal's width."""
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("show", window.instance_file, window.plan_file, "--gantt")
    assert shown.exit_code == ExitCode.FINE
    assert "n1" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 60


def test_a_narrow_terminal_gets_the_narrowest_chart(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal of 20 columns the chart has 40."""
    monkeypatch.setenv("COLUMNS", "20")
    shown = run("show", window.instance_file, window.plan_file, "--gantt")
    assert shown.exit_code == ExitCode.FINE
    assert max(map(len, shown.stdout.splitlines())) <= 40


def test_a_planned_job_is_told_with_its_nodes(run: Run, window: Window) -> None:
    """With --job, a planned job has its times and nodes: a waits 50 s and runs 100 s on both."""
    shown = run("show", window.instance_file, window.plan_file, "--job", "a")
    assert shown.exit_code == ExitCode.FINE
    assert shown.stdout.splitlines() == [
        "job a, user ada, queue debug",
        "planned [50, 150), 100 s",
        "starts 50 s after its submission at 0",
        "not at now + 0 s: too little is free of cores: 0 of 2 chunks find place; job r runs until now + 50 s on n1 "
        "and 1 more",
        "[50, 150) on",
        "  n[1-2]  1 of chunk 0: cores=4 each",
    ]


def test_a_running_job_is_told(run: Run, window: Window) -> None:
    """With --job, a running job is said to run; its chunks are not known."""
    shown = run("show", window.instance_file, window.plan_file, "--job", "r")
    assert shown.stdout.splitlines() == [
        "job r, user (none), queue debug",
        "runs [-10, 50), 60 s",
        "starts 10 s after its submission at -20",
        "[-10, 50) on",
        "  n1  cores=4 each",
    ]


def test_a_waiting_job_is_told_with_its_reason(run: Run, window: Window) -> None:
    """With --job, a job of the waiting room has its reason in words, without power over the terminal."""
    window.plan["waiting_room"][0]["detail"] = "too \u202ebig"
    shown = run("show", window.instance_file, window.plan_file, "--job", "c")
    assert shown.stdout.splitlines()[1:] == ["in the waiting room, unsatisfiable: too \\u202ebig"]


def test_an_unknown_job_is_a_fault_of_usage(run: Run, window: Window) -> None:
    """A job that the instance does not have ends with exit code 2."""
    shown = run("show", window.instance_file, window.plan_file, "--job", "x\x1b")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "\x1b" not in shown.output


def test_the_html_chart_is_written(run: Run, window: Window) -> None:
    """With --html the chart is a file, and its path is printed."""
    chart = window.folder / "plan.html"
    shown = run("show", window.instance_file, window.plan_file, "--html", chart)
    assert shown.exit_code == ExitCode.FINE
    assert str(chart) in shown.stdout
    assert chart.read_text().lower().startswith("<!doctype html>")


def test_a_plan_of_another_instance_is_refused(run: Run, window: Window) -> None:
    """Jobs, nodes and a name that the instance does not have are all listed: exit code 2."""
    window.plan["instance"] = "another"
    window.plan["jobs"][1]["id"] = "x"
    window.plan["jobs"][2]["segments"][0]["allocation"][0]["node"] = "n9"
    window.plan["waiting_room"][0]["id"] = "y"
    shown = run("show", window.instance_file, window.plan_file)
    assert shown.exit_code == ExitCode.BAD_INPUT
    for said in ("'another'", "jobs[1].id", "'n9'", "waiting_room[0].id"):
        assert said in shown.stderr


def test_two_ways_to_show_exclude_each_other(run: Run, window: Window) -> None:
    """A plan is shown in one way at a time."""
    shown = run("show", window.instance_file, window.plan_file, "--gantt", "--job", "a")
    assert shown.exit_code == ExitCode.BAD_INPUT


def test_reservations_are_told_with_their_nodes_or_why_they_are_not_had(run: Run, window: Window) -> None:
    """There is one row for each time of a reservation; one of other nodes than the cluster's is refused."""
    held = [{"node": "n1", "resources": {"cores": 4}}, {"node": "n2", "resources": {"cores": 4}}]
    window.plan["reservations"] = [
        {"id": "lesson", "start": 50, "end": 60, "allocation": held},
        {"id": "lesson", "start": 150, "end": 160, "reason": "two nodes are too few"},
    ]
    shown = run("show", window.instance_file, window.plan_file)
    assert shown.exit_code == ExitCode.FINE
    assert "n[1-2]" in shown.stdout
    assert "not had: two nodes are too few" in shown.stdout
    held[0]["node"] = "n9"
    refused = run("show", window.instance_file, window.plan_file)
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "reservations[0].allocation" in refused.stderr
