"""``cpsched report``: what it is given, what it says of anything else, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.lab.bench import RESULTS
from tests.bench.fakes import fake_campaign
from tests.cli.conftest import Run, Window


@pytest.fixture
def simulated(window: Window, run: Run, tmp_path: Path) -> Path:
    """Return the folder of a simulation under two policies."""
    instance = json.loads(json.dumps(window.instance))
    for job in instance["jobs"]:
        job.pop("running", None)
        job["runtime"] = 20
    out = tmp_path / "out"
    workload = window.write("workload.json", instance)
    done = run("simulate", workload, "--policy", "sjf", "--policy", "fcfs", "-o", out, "--quiet")
    assert done.exit_code == ExitCode.FINE, done.output
    return out


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Return the folder of a campaign with two policies and seeds."""
    folder = tmp_path / "campaign"
    folder.mkdir()
    fake_campaign(folder)
    return folder


def test_a_plan_is_a_page(window: Window, run: Run, tmp_path: Path) -> None:
    """With its instance, and beside an earlier plan."""
    plan, page = window.plan_file, tmp_path / "report.html"
    done = run("report", plan, "--instance", window.instance_file, "--against", plan, "-o", page)
    assert (done.exit_code, done.stdout) == (ExitCode.FINE, f"report: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "<h1>hand-made</h1>" in text
    assert "What changed against the previous plan" in text


@pytest.mark.parametrize("place", ["", "fcfs", "fcfs/run.npz"])
def test_simulations_are_a_page(simulated: Path, run: Run, tmp_path: Path, place: str) -> None:
    """The folder of several policies compares them in the order given, with the first one; that of one, or the file in
    it, is one simulation.
    """
    page = tmp_path / "report.html"
    assert run("report", simulated / place, "-o", page).exit_code == ExitCode.FINE
    text = page.read_text(encoding="utf-8")
    assert ("Policies side by side" in text) == (place == "")
    assert ("Beside sjf" in text) == (text.find("ran under sjf") in range(text.find("ran under fcfs"))) == (place == "")
    assert "Waits by queue" in text


@pytest.mark.parametrize("place", ["", RESULTS])
def test_a_campaign_is_a_page(campaign: Path, run: Run, tmp_path: Path, place: str) -> None:
    """The folder or the file in it, with the workload's label and the folder's name."""
    page = tmp_path / "report.html"
    assert run("report", campaign / place, "-o", page).exit_code == ExitCode.FINE
    text = page.read_text(encoding="utf-8")
    assert "<h1>campaign</h1>" in text
    assert "made-up, load 0.5" in text
    assert "2 policies on 1 workload, 4 simulations of 2 replicas." in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "head"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_pictures(campaign: Path, run: Run, tmp_path: Path, name: str, head: bytes) -> None:
    """By the name of the file."""
    done = run("report", campaign, "-o", tmp_path / name)
    assert done.exit_code == ExitCode.FINE
    assert (tmp_path / name).read_bytes().startswith(head)


def test_anything_else_is_refused_by_name(
    window: Window, simulated: Path, campaign: Path, run: Run, tmp_path: Path
) -> None:
    """What was expected and what was found; nothing is written."""
    page, empty, odd = tmp_path / "report.html", tmp_path / "empty", tmp_path / "odd.npz"
    empty.mkdir()
    odd.write_bytes(b"x")
    old = tmp_path / "old"
    old.mkdir()
    (old / "summary.json").write_text("{}")
    both = tmp_path / "both"
    both.mkdir()
    (both / RESULTS).write_bytes(b"x")
    (both / "run.npz").write_bytes(b"x")
    for given, said in (
        ((window.plan_file,), "needs the instance 'hand-made': --instance FILE"),
        ((window.instance_file,), "got an instance"),
        ((window.write("other.json", {"format": "x"}),), "got a document of format 'x'"),
        ((empty,), "nothing in it"),
        ((old,), "simulate again"),
        ((both,), "has a campaign and simulations"),
        ((odd,), "Expected a simulation of the format cpsched-run/1"),
        ((simulated, "--instance", window.instance_file), "--instance is for plans, got simulations"),
        ((campaign, "--against", window.plan_file), "--against is for plans, got a campaign"),
        ((both / RESULTS,), "Expected the results of a campaign as Parquet"),
    ):
        done = run("report", *given, "-o", page)
        assert done.exit_code == ExitCode.BAD_INPUT, said
        assert said in " ".join(done.stderr.replace("│", " ").split()), done.stderr
    assert not page.exists()
    assert "Expected a name that ends in" in run("report", campaign, "-o", tmp_path / "report.doc").stderr
    assert "does not exist" in run("report", campaign, "-o", tmp_path / "nowhere" / "report.html").stderr


def test_a_plan_of_another_instance_is_refused(window: Window, run: Run, tmp_path: Path) -> None:
    """Its jobs and nodes are not there."""
    other = window.write("renamed.json", window.instance | {"name": "another"})
    done = run("report", window.plan_file, "--instance", other, "-o", tmp_path / "report.html")
    assert done.exit_code == ExitCode.BAD_INPUT
    assert "Expected a plan of 'another', got one of 'hand-made'" in done.stderr
