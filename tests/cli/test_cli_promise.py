"""``cpsched solve --promise``: the starts of an earlier plan are promises, which the next plan pays for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.formats import read_instance, read_plan
from cpsched.verify import verify_files
from tests.cli.conftest import Run, Window

#: Each call as a timetable would have it; the planner's plan and the earlier one are all that is compared.
CRON = ("solve", "--engine", "planner", "--budget", 1)


def one_node(*jobs: dict[str, Any], folder: Path, now: int = 0, name: str = "cron") -> Path:
    """Write a window of one node and jobs that each take all of it; return its file."""
    document = {
        "format": "cpsched-instance/1", "name": name, "now": now,
        "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 4}}]},
        "queues": {"q": {"expected_wait": 100}},
        "jobs": [{"queue": "q", "submit": 0, "request": "ncpus=4", **job} for job in jobs],
    }  # fmt: skip
    return Window(instance=document, plan={}, folder=folder).instance_file


@pytest.mark.parametrize(("price", "start"), [("", 60), ("=9", 0)])
def test_a_promised_start_has_its_price(run: Run, tmp_path: Path, price: str, start: int) -> None:
    """A job that is promised 0 would start at 60, behind a new, urgent job: only a high price forbids it.

    It pays 60 of 100 s once for waiting and PRICE times for its promise, 1.2 or 6; the urgent job would pay 5.
    """
    plan, promised = tmp_path / "plan.json", tmp_path / "promised.json"
    long, urgent = {"id": "long", "walltime": 100}, {"id": "urgent", "walltime": 60, "weight": 5, "priority": 1}
    cron = (*CRON, "--warm", plan, f"--promise{price}", "-o", plan, "--instance-output", promised)
    assert run(*CRON, one_node(long, folder=tmp_path), "-o", plan, "--quiet").exit_code == ExitCode.FINE
    shown = run(*cron, one_node(long, urgent, folder=tmp_path))
    assert shown.exit_code == ExitCode.FINE, shown.output
    assert {job.id: job.start for job in read_plan(plan).jobs}["long"] == start
    assert verify_files(promised, plan) == ()
    told = {job.id: job.told for job in read_instance(promised).jobs}
    assert told["urgent"] is None
    assert told["long"] is not None
    assert (told["long"].start, told["long"].price) == (0, 9 if price else 1)
    said = "1 of 1, 1 min in all, at most 1 min, price 0.60" if start else "0 of 1"
    assert re.search(rf"promised starts missed +{said}", shown.stdout)


def test_the_first_run_has_no_earlier_plan(run: Run, tmp_path: Path) -> None:
    """With --promise a missing --warm file is said and no fault; without, it is one."""
    window, missing = one_node({"id": "a", "walltime": 5}, folder=tmp_path), tmp_path / "none.json"
    shown = run(*CRON, window, "--warm", missing, "--promise", "--json")
    assert shown.exit_code == ExitCode.FINE
    assert "none.json does not exist: this is the first run" in shown.stderr
    assert len(json.loads(shown.stdout)["warnings"]) == 1
    shown = run(*CRON, window, "--warm", missing)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "does not exist" in shown.stderr


def test_a_plan_of_another_window_is_noticed(run: Run, tmp_path: Path) -> None:
    """The plan may help even so: a warning names both windows."""
    plan = tmp_path / "plan.json"
    run(*CRON, one_node({"id": "a", "walltime": 5}, folder=tmp_path, name="monday"), "-o", plan)
    shown = run(*CRON, one_node({"id": "a", "walltime": 5}, folder=tmp_path, name="tuesday"), "--warm", plan)
    assert shown.exit_code == ExitCode.FINE
    assert "Expected a plan of 'tuesday', got one of 'monday'" in shown.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--promise",), "--promise needs --warm PLAN"),
        (("--promise", "--warm", "p.json", "-o", "p.json"), "--promise with -o needs --instance-output"),
        (("--promise=2e100", "--warm", "p.json"), "Expected a price from 0 to 1e+100, got 2e+100"),
        (("--promise=nan", "--warm", "p.json"), "Expected a price from 0 to 1e+100, got nan"),
        (("--promise=much", "--warm", "p.json"), "'much' is not a valid float"),
    ],
)
def test_refusals(run: Run, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    """A promise needs a plan and a document that says it; nothing is written."""
    shown = run(*CRON, one_node({"id": "a", "walltime": 5}, folder=tmp_path), *options)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert said in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["window.json"]
