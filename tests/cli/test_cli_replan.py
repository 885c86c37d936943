"""``cpsched replan``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cpsched.cli.exits import ExitCode
from cpsched.formats import read_instance, read_plan
from cpsched.verify import verify_files
from tests.cli.conftest import Run, Window

Replan = Callable[..., Result]


@pytest.fixture(scope="module")
def section() -> str:
    """Return the part of docs/evolving.md that has the worked example."""
    page = (Path(__file__).parents[2] / "docs" / "evolving.md").read_text(encoding="utf-8")
    found = re.search(r"^## When a job submits another profile$.*?(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


@pytest.fixture
def example(section: str, run: Run, tmp_path: Path) -> Path:
    """Return a folder with the window of the worked example and a plan of it."""
    (document,) = re.findall(r"^```json\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "window.json").write_text(document)
    planned = run("solve", tmp_path / "window.json", "--engine", "planner", "-o", tmp_path / "plan.json", "--quiet")
    assert planned.exit_code == ExitCode.FINE
    return tmp_path


@pytest.fixture
def replan(run: Run, example: Path) -> Replan:
    """Return a function that plans the example anew at 4, and writes the new documents."""

    def replan_example(*options: object) -> Result:
        files = (example / "window.json", example / "plan.json")
        new = ("-o", example / "new-plan.json", "--instance-output", example / "new-window.json")
        return run("replan", *files, "--at", 4, *new, *options)

    return replan_example


def asked(*steps: tuple[int, int]) -> list[dict[str, Any]]:
    """Return steps of (walltime, nodes)."""
    return [{"walltime": walltime, "request": f"{nodes}:ncpus=16"} for walltime, nodes in steps]


def happened(**event: object) -> tuple[str, str]:
    """Return the options of an event."""
    return ("--event", json.dumps(event))


def profile(steps: object, job: str = "A") -> tuple[str, str]:
    """Return the options of a profile event."""
    return happened(event="profile", job=job, steps=steps)


def test_the_example_of_the_docs(section: str, replan: Replan, example: Path) -> None:
    """Each row of the table is what the command does, and what the verifier passes."""
    rows = re.findall(r"^\| (\d.*?) \| (.*?) \| (\d+) \|$", section, flags=re.MULTILINE)
    assert len(rows) == 3
    rows += [("1 x 2, 10 x 3", "2 nodes until 5, 3 nodes until 15", "15"), ("6 x 2", "2 nodes until 10", "4")]
    rows += [("6 x 2, 10 x 4", "2 nodes until 10, 4 nodes until 20", "20")]
    for steps, promised, start in rows:
        shown = replan(*profile(asked(*((int(a), int(b)) for a, b in re.findall(r"(\d+) x (\d+)", steps)))))
        if promised.startswith("refused"):
            assert shown.exit_code == ExitCode.BAD_INPUT
            continue
        assert shown.exit_code == ExitCode.FINE, shown.output
        new = (example / "new-window.json", example / "new-plan.json")
        assert verify_files(*new) == ()
        (running,) = (job.running for job in read_instance(new[0]).jobs if job.id == "A")
        assert running is not None
        said = ", ".join(f"{len(segment.allocation)} nodes until {segment.end}" for segment in running.segments)
        assert (said, {job.id: job.start for job in read_plan(new[1]).jobs}["B"]) == (promised, int(start))


def test_time_goes_by(replan: Replan, example: Path) -> None:
    """Without an event the window moves on: C has ended, A runs, B keeps its start; the summary and a chart say it."""
    shown = replan("--gantt", example / "chart.html")
    assert shown.exit_code == ExitCode.FINE
    assert verify_files(example / "new-window.json", example / "new-plan.json") == ()
    moved = read_instance(example / "new-window.json")
    assert (moved.now, [job.id for job in moved.jobs]) == (4, ["A", "B"])
    assert [(job.id, job.start) for job in read_plan(example / "new-plan.json").jobs] == [("A", 0), ("B", 20)]
    assert (example / "chart.html").read_text().lower().startswith("<!doctype html>")
    for said in (
        r"running +1",
        "verified: no violations of 28 rules",
        "plan: .*new-plan.json",
        "instance_output: .*new-window.json",
    ):
        assert re.search(said, shown.stdout), said


def test_once_more(run: Run, replan: Replan, example: Path) -> None:
    """The new documents are an instance and a plan: what comes next begins from them; `at` is now if left out
    (OCCS-46).
    """
    replan(*profile(asked((8, 2), (10, 3))))
    new = (example / "new-window.json", example / "new-plan.json")
    shown = run("replan", *new, *profile(asked((6, 2))), "--json")
    assert shown.exit_code == ExitCode.FINE
    said = json.loads(shown.stdout)
    assert (said["instance"], said["instance_output"], said["plan"]) == ("changing-mind", None, None)
    assert said["engine"]["name"] == "replan"


def test_events_may_be_in_a_file(replan: Replan, example: Path) -> None:
    """A file has one event, or a list of them, which happen one after the other."""
    events = example / "events.json"
    change = {"event": "profile", "job": "A", "steps": asked((8, 2), (10, 3))}
    events.write_text(json.dumps([change, {"event": "cancelled", "job": "B"}]))
    assert replan("--event", events, "--quiet").output == ""
    assert [job.id for job in read_plan(example / "new-plan.json").jobs] == ["A"]


def test_the_cause_of_a_later_start_is_printed(run: Run, window: Window) -> None:
    """Job a loses n2 and waits for it in vain; the event and the cause are printed, and are in the plan."""
    shown = run("replan", window.instance_file, window.plan_file, *happened(event="node_down", nodes="n2"), "--json")
    assert shown.exit_code == ExitCode.FINE, shown.output
    said = [event["what"] for event in json.loads(shown.stdout)["events"]]
    assert said[0] == "node n2 is down"
    assert "job a has no start any more, planned was 50: its node n2 is down" in said
    assert "job b starts at 50, planned was 0: its node n2 is down" in said


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (profile(asked((6, 2), (5, 5))), ExitCode.BAD_INPUT, "step 1: asks for 5 chunks"),
        (profile(asked((6, 3), (5, 3))), ExitCode.BAD_INPUT, "steps[0].request: Expected what the job holds at 4: 32"),
        (profile(asked((6, 2)), job="B"), ExitCode.BAD_INPUT, "Expected a job that runs at 4, got one that waits"),
        (profile(asked((6, 2)), job="C"), ExitCode.BAD_INPUT, "Expected a job that runs at 4, got one that is not"),
        (
            profile(asked((6, 2)), job="X\x1b[2J"),
            ExitCode.BAD_INPUT,
            "job: Expected a text without control characters, got",
        ),
        (profile(asked((0, 2))), ExitCode.BAD_INPUT, "steps[0].walltime: Expected"),
        (profile([{"walltime": 5, "request": "2:ncpux=16"}]), ExitCode.BAD_INPUT, "steps[0].request"),
        (profile([{"walltime": 5, "request": "2:ncpus=16,place=pack"}]), ExitCode.BAD_INPUT, "the place and the"),
        (profile([]), ExitCode.BAD_INPUT, "steps: Expected"),
        (("--event", "[5"), ExitCode.BAD_INPUT, "Expected JSON, got"),
        (("--event", "[5]"), ExitCode.BAD_INPUT, "[0]: Expected an event, an object, got 5"),
        (("--event", "no.json"), ExitCode.BAD_INPUT, "no.json: 1 fault"),
        (happened(event="profil", job="A"), ExitCode.BAD_INPUT, "did you mean profile?"),
        (happened(event="profile", job="A"), ExitCode.BAD_INPUT, "steps: Expected this key, got nothing"),
        (happened(event="extended", job="C", seconds=1), ExitCode.BAD_INPUT, "Expected a job that is running at 4"),
        (("--at", -1), ExitCode.BAD_INPUT, "Expected a second from 0 on (now of instance and plan), got -1"),
    ],
)
def test_refusals(replan: Replan, example: Path, options: tuple[object, ...], code: ExitCode, said: str) -> None:
    """What cannot be is refused in words, and nothing is written."""
    shown = replan(*options)
    assert shown.exit_code == code
    assert said in shown.stderr
    assert "\x1b" not in shown.output
    assert {path.name for path in example.iterdir()} == {"window.json", "plan.json"}


def test_a_promise_to_others_is_in_the_way(run: Run, tmp_path: Path) -> None:
    """B, whose nodes A was promised, is refused with the code of what cannot be honoured; nothing is written."""

    def going(name: str, *nodes: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
        def held(*on: str) -> list[dict[str, Any]]:
            return [{"node": node, "resources": {"cores": 1}} for node in on]

        return {
            "id": name, "submit": 0,
            "steps": [{"walltime": 5, "request": "2:ncpus=1"}, {"walltime": 5, "request": f"{2 + len(more)}:ncpus=1"}],
            "running": {"start": 0, "segments": [
                {"start": 0, "end": 5, "allocation": held(*nodes)},
                {"start": 5, "end": 10, "allocation": held(*nodes, *more)},
            ]},
        }  # fmt: skip

    window = Window(
        instance={
            "format": "cpsched-instance/1", "name": "blocked", "now": 0,
            "cluster": {"nodes": [{"names": "n[1-4]", "resources": {"cores": 1}}]},
            "jobs": [going("A", "n1", "n2", more=("n3",)), going("B", "n3", "n4")],
        },
        plan={},
        folder=tmp_path,
    )  # fmt: skip
    window.instance["jobs"][1]["running"]["segments"].pop()
    plan = tmp_path / "plan.json"
    assert run("solve", window.instance_file, "--engine", "planner", "-o", plan, "--quiet").exit_code == ExitCode.FINE
    steps = [{"walltime": 6, "request": "2:ncpus=1"}]
    shown = run("replan", window.instance_file, plan, *profile(steps, job="B"), "-o", tmp_path / "new.json")
    assert shown.exit_code == ExitCode.REFUSED
    assert "others were promised for later; the promise to the job itself remains" in shown.stderr
    assert not (tmp_path / "new.json").exists()


def test_a_plan_of_another_window(run: Run, example: Path, window: Window) -> None:
    """Plan and instance must belong to each other; what would run then must fit."""
    shown = run("replan", window.instance_file, example / "plan.json")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "Expected a plan of 'hand-made', got one of 'changing-mind'" in shown.stderr
    window.plan["jobs"][1].update(start=20)
    window.plan["jobs"][1]["segments"][0].update(start=20)
    shown = run("replan", window.instance_file, window.write("plan.json", window.plan), "--at", 30)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "the window at 30" in shown.stderr
    assert "running jobs take more than there is" in shown.stderr
