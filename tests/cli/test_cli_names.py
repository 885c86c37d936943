"""Hostile names in every command: none controls a terminal, adds a line, turns text around or becomes a formula."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from cpsched.text import printable
from tests.cli.conftest import Run

#: Separators of lines and paragraphs, marks that turn the direction of writing, and the beginning of a formula.
BAD = "=a\u2028b\u2029c\u202ed\u2066e"
MARKS = "\u2028\u2029\u202e\u2066"
CASES = Path(__file__).parents[1] / "cases"


def hostile() -> dict[str, Any]:
    """Return an instance whose names are all hostile."""
    return {
        "format": "cpsched-instance/1",
        "name": BAD,
        "now": 0,
        "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 2, BAD: 1}}], "licenses": {f"{BAD}l": 1}},
        "queues": {BAD: {"expected_wait": 60}},
        "jobs": [
            {"id": f"{BAD}{number}", "user": BAD, "group": BAD, "project": BAD, "queue": BAD, "submit": 0,
             "walltime": 10, "request": [{"count": 1, "resources": {"cores": cores, BAD: 1}}]}
            for number, cores in ((1, 1), (2, 2), (3, 3))
        ],
    }  # fmt: skip


def test_every_command_with_hostile_names(run: Run, window: Any, tmp_path: Path) -> None:
    """Whatever is printed or drawn has none of the marks, and a table has as many rows as there are jobs."""
    instance = window.write("hostile.json", hostile())
    plan, chart = tmp_path / "plan.json", tmp_path / "chart.html"
    commands: list[list[object]] = [
        ["solve", instance, "--engine", "planner", "-o", plan, "--gantt", chart],
        ["solve", instance, "--engine", "planner", "-o", plan, "--json"],
        ["verify", instance, plan],
        ["verify", instance, window.plan_file],
        ["show", instance, plan],
        ["show", instance, plan, "--gantt"],
        ["show", instance, plan, "--job", f"{BAD}1"],
        ["show", instance, plan, "--job", f"{BAD}nobody"],
        ["replan", instance, plan, "--at", "5", "-o", tmp_path / "next.json"],
        ["simulate", instance, "--policy", BAD],
        ["convert", instance, instance, "-o", tmp_path / "converted.json"],
        ["solve", tmp_path / BAD, "-o", plan],
        ["schema", BAD],
        [BAD],
    ]
    for command in commands:
        said = run(*command)
        assert said.exception is None or isinstance(said.exception, SystemExit), command
        assert not set(MARKS) & set(said.stdout + said.stderr), command
    assert not set(MARKS) & set(chart.read_text(encoding="utf-8"))
    lines = run("show", instance, plan).stdout.splitlines()
    for number in (1, 2, 3):
        assert sum(printable(f"{BAD}{number}") in line for line in lines) == 1


def test_results_are_no_formulas(run: Run, window: Any, tmp_path: Path) -> None:
    """The cells of a simulation's tables are texts for spreadsheets, one row for each job."""
    workload = hostile()
    for job in workload["jobs"]:
        job["runtime"] = 5
    assert run("simulate", window.write("w.json", workload), "--policy", "fcfs", "-o", tmp_path / "out").exit_code == 0
    (table,) = (tmp_path / "out").rglob("jobs.csv")
    text = table.read_text(encoding="utf-8")
    assert not set(MARKS) & set(text)
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 3
    assert all(row["job_id"].startswith("'=") and row["workload_name"].startswith("'=") for row in rows)


def test_ids_of_logs_are_checked(run: Run, tmp_path: Path) -> None:
    """An id that no document may have is left out, with its line, and what is written can be read."""
    machine = tmp_path / "machine.json"
    machine.write_text(
        '{"format": "cpsched-instance/1", "name": "m", '
        '"cluster": {"nodes": [{"names": "n1", "resources": {"cores": 1}}]}}'
    )
    done = run("convert", CASES / "tab.acct", machine, "-o", tmp_path / "window.json")
    assert "line 3" in done.stderr
    assert r"5208\t99" in done.stderr
    if (tmp_path / "window.json").exists():
        assert run("solve", tmp_path / "window.json", "--engine", "planner", "-o", tmp_path / "p.json").exit_code == 0


@pytest.mark.parametrize("text", ["plain", "ümläut 日本", "a b"])
def test_good_names_stay(run: Run, window: Any, text: str) -> None:
    """Letters of any language are shown as they are."""
    document = hostile()
    document["jobs"][0]["id"] = text
    instance = window.write("good.json", document)
    plan = instance.with_name("good.plan.json")
    assert run("solve", instance, "--engine", "planner", "-o", plan).exit_code == 0
    assert text in run("show", instance, plan).stdout
