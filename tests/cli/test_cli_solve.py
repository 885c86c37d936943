"""``cpsched solve``."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from cpsched.cli.answer import verdict
from cpsched.cli.exits import ExitCode
from cpsched.cli.solve import command
from cpsched.domain import Judgement
from cpsched.errors import SolverWarning, UnsupportedError, UnverifiedError
from cpsched.formats import parse_plan, read_plan
from cpsched.portfolio import ENGINES
from cpsched.verify import verify_files
from tests.cli.conftest import Run, Window

#: The planner's plan is enough for what the command itself does with one.
PLAN = ("solve", "--engine", "planner")


def made_files(folder: Path) -> set[str]:
    """Return the names of all files in a folder but the instance."""
    return {path.name for path in folder.iterdir()} - {"window.json"}


def test_a_solver_that_died_is_a_warning_on_the_screen(
    run: Run, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a command that is to be quiet says it, in one line, and the plan does not say that its engine is done."""

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("wires crossed")

    monkeypatch.setattr("cpsched.search.Search.improve", crash)
    with warnings.catch_warnings():
        warnings.simplefilter("always", SolverWarning)
        shown = run(
            "solve",
            "--engine",
            "search",
            window.instance_file,
            "--budget",
            1,
            "--quiet",
            "-o",
            window.folder / "p.json",
        )
    assert shown.exit_code == ExitCode.FINE
    assert shown.stderr == "warning: the solver search died: gave up: RuntimeError: wires crossed\n"
    assert read_plan(window.folder / "p.json").engine.stopped == "fallback"


def test_a_window_is_planned_verified_and_written(run: Run, window: Window) -> None:
    """The plan and the chart are written, the plan has no violations, and the summary says so."""
    assert run(*PLAN, window.instance_file, "--quiet").output == ""  # compiles what is not compiled yet
    plan, chart = window.folder / "plan.json", window.folder / "plan.html"
    shown = run(*PLAN, window.instance_file, "-o", plan, "--gantt", chart)
    assert shown.exit_code == ExitCode.FINE
    assert verify_files(window.instance_file, plan) == ()
    assert [waiting.id for waiting in read_plan(plan).waiting_room] == ["c"]
    assert chart.read_text().lower().startswith("<!doctype html>")
    assert made_files(window.folder) == {"plan.json", "plan.html"}
    for said in (
        r"jobs planned +2",
        r"running +1",
        r"weighted_wait +1",
        r"debug +2",
        r"waiting room: c: unsat",
        "verified",
    ):
        assert re.search(said, shown.stdout), said
    assert shown.stderr == ""


def test_the_plan_may_be_packed(run: Run, window: Window) -> None:
    """A plan named .json.gz is gzipped."""
    plan = window.folder / "plan.json.gz"
    assert run(*PLAN, window.instance_file, "-o", plan).exit_code == ExitCode.FINE
    assert json.loads(gzip.decompress(plan.read_bytes()))["instance"] == "hand-made"


def test_the_summary_as_json(run: Run, window: Window) -> None:
    """With --json stdout is one object with the figures: two jobs wait 50 s each, 0.5 is suffered."""
    shown = run(*PLAN, window.instance_file, "--json")
    assert shown.exit_code == ExitCode.FINE
    document = json.loads(shown.stdout)
    assert document["instance"] == "hand-made"
    assert document["objective"]["value"] == 1.0
    assert document["objective"]["suffered"] == 0.5
    assert document["summary"]["waits"] == [{"queue": "debug", "count": 2, "mean": 50.0, "median": 50.0, "max": 50}]
    assert document["summary"]["makespan"] == 150
    assert [waiting["id"] for waiting in document["waiting_room"]] == ["c"]
    assert document["plan"] is None
    assert document["judgement"]["violations"] == 0
    assert "capacity" in document["judgement"]["rules"]


def test_the_verdict_is_the_judgement() -> None:
    """What is printed is what was found of this plan."""
    assert verdict(Judgement(violations=0, rules=("a", "b"))) == "verified: no violations of 2 rules"
    assert verdict(Judgement(violations=3, rules=("a",))) == "verified: 3 violations of 1 rules"
    assert verdict(None) == "not verified"


def test_quiet_is_quiet(run: Run, window: Window) -> None:
    """With --quiet a good window prints nothing, and the plan is there."""
    shown = run(*PLAN, window.instance_file, "--quiet", "-o", window.folder / "plan.json")
    assert (shown.exit_code, shown.output) == (ExitCode.FINE, "")
    assert made_files(window.folder) == {"plan.json"}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_instance_may_come_from_stdin(run: Run, window: Window, pack: Any) -> None:
    """``-`` reads standard input, plain or packed."""
    shown = run(*PLAN, "-", "--json", stdin=pack(json.dumps(window.instance).encode()))
    assert shown.exit_code == ExitCode.FINE
    assert json.loads(shown.stdout)["instance"] == "hand-made"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"\x1f\x8b\x08", b"[" * 100_000, b"NaN"])
def test_a_bad_document_is_refused(run: Run, window: Window, content: bytes) -> None:
    """What is no instance ends with exit code 2, by file and by stdin, and nothing is written."""
    broken = window.folder / "window.json"
    broken.write_bytes(content)
    by_file = run(*PLAN, broken, "-o", window.folder / "plan.json")
    by_stdin = run(*PLAN, "-", "-o", window.folder / "plan.json", stdin=content)
    assert by_file.exit_code == by_stdin.exit_code == ExitCode.BAD_INPUT
    assert "window.json" in by_file.stderr
    assert "<stdin>" in by_stdin.stderr
    assert "cpsched-stdin" not in by_stdin.stderr
    assert made_files(window.folder) == set()


def test_all_faults_are_listed(run: Run, window: Window) -> None:
    """Every fault of a document is said, each with its path, and control characters lose their power."""
    window.instance["jobs"][1]["walltime"] = -5
    window.instance["jobs"][2]["queue"] = "no\x1b[2Jqueue"
    window.instance["jobs"][3]["wallime"] = 10
    shown = run(*PLAN, window.instance_file)
    assert shown.exit_code == ExitCode.BAD_INPUT
    for path in ("jobs[1].walltime", "jobs[2].queue", "jobs[3].wallime"):
        assert path in shown.stderr
    assert "\x1b" not in shown.output


@pytest.mark.parametrize(("options", "said"), [((), True), (("--quiet",), False)])
def test_a_first_start_says_what_takes_so_long(
    run: Run, window: Window, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: bool
) -> None:
    """Where the engine has to compile its kernels, stderr says so, once."""
    plan = parse_plan(window.plan, source="plan")

    @contextmanager
    def announced(notify: Callable[[], None]) -> Iterator[None]:
        notify()
        yield

    monkeypatch.setattr("cpsched.planner.compiling_announced", announced)
    use_engine(monkeypatch, plan)
    shown = run(*PLAN, window.instance_file, *options)
    assert shown.exit_code == ExitCode.FINE
    assert shown.stderr.count("compiling") == said


def test_every_engine_can_be_asked_for() -> None:
    """The option --engine offers the engines that `cpsched.portfolio` has."""
    (option,) = [parameter for parameter in command.params if parameter.name == "engine"]
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == ENGINES


def test_warnings_are_shown(run: Run, window: Window) -> None:
    """A running job whose walltime has passed is planned until one second from now, with a warning."""
    window.instance["jobs"][0]["walltime"] = 5
    shown = run(*PLAN, window.instance_file, "--json")
    assert shown.exit_code == ExitCode.FINE
    assert shown.stderr.startswith("warning: ")
    assert "jobs[0]" in shown.stderr


def test_long_lists_are_counted(run: Run, window: Window) -> None:
    """Of 7 warnings 5 are shown, of 13 jobs in the waiting room 10; the others are counted."""
    overdue, _, _, impossible = window.instance["jobs"]
    node = {"names": "m[0-6]", "resources": {"cores": 4}}
    window.instance["cluster"]["nodes"] = [node]
    window.instance["jobs"] = [
        {**overdue, "id": f"r{index}", "walltime": 5,
         "running": {"start": -10, "allocation": [{"node": f"m{index}", "resources": {"cores": 4}}]}}
        for index in range(7)
    ] + [{**impossible, "id": f"c{index}"} for index in range(13)]  # fmt: skip
    shown = run(*PLAN, window.instance_file)
    assert shown.exit_code == ExitCode.FINE
    assert shown.stderr.count("warning: ") == 6
    assert shown.stderr.endswith("warning: ... and 2 more\n")
    assert shown.stdout.count("waiting room: ") == 11
    assert "waiting room: ... and 3 more\n" in shown.stdout


def test_tables_are_drawn_on_a_terminal(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the tables have lines, in a pipe they have none."""
    assert "│" not in run(*PLAN, window.instance_file).stdout
    monkeypatch.setattr("cpsched.cli.screen.is_terminal_at", lambda _: True)
    assert "│" in run(*PLAN, window.instance_file).stdout


@pytest.mark.parametrize(
    ("variables", "is_coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colours_of_a_pipe(
    run: Run, window: Window, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_coloured: bool
) -> None:
    """A pipe gets colours only where FORCE_COLOR asks for them, and even then neither lines of tables nor bars."""
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = run("show", window.instance_file, window.plan_file, "--gantt", color=True)
    assert ("\x1b[" in shown.stdout) is is_coloured
    planned = run(*PLAN, window.instance_file, color=True)
    assert "│" not in planned.stdout
    assert planned.stderr == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--budget", "nan"), ("--budget", "inf"), ("--budget", -1), ("--seed", -1), ("--engine", "x"),
        ("-o", "plan.txt"), ("-o", "none/plan.json"), ("--gantt", "plan.json"), ("--gantt", "none/plan.html"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_before_any_work(run: Run, window: Window, options: tuple[object, ...]) -> None:
    """An option that makes no sense ends with exit code 2 at once."""
    assert run(*PLAN, window.instance_file, *options).exit_code == ExitCode.BAD_INPUT


def test_a_folder_is_no_output(run: Run, window: Window) -> None:
    """The plan cannot be written over a folder."""
    folder = window.folder / "plan.json"
    folder.mkdir()
    assert run(*PLAN, window.instance_file, "-o", folder).exit_code == ExitCode.BAD_INPUT


def use_engine(monkeypatch: pytest.MonkeyPatch, answer: object) -> list[dict[str, Any]]:
    """Let an engine that gives `answer` (or raises it) plan, and return the options of its calls."""
    calls: list[dict[str, Any]] = []

    def solve(_: object, **options: Any) -> object:
        calls.append(options)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr("cpsched.portfolio.solve", solve)
    return calls


def test_the_options_reach_the_engine(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """All options are passed on, with the document and the earlier plan; without a terminal nobody watches."""
    plan = parse_plan(window.plan, source="plan")
    calls = use_engine(monkeypatch, plan)
    options = ("--budget", 2.5, "--bound", 1.5, "--seed", 7, "--workers", 3, "--solver", "chuffed")
    assert run(*PLAN, window.instance_file, *options, "--warm", window.plan_file).exit_code == ExitCode.FINE
    assert calls == [
        {
            "engine": "planner", "budget": 2.5, "bound": 1.5, "seed": 7, "workers": 3, "solver": "chuffed",
            "warm": plan, "team": None, "document": window.instance, "progress": None, "on_plan": None, "steps": None,
        }
    ]  # fmt: skip


def test_the_portfolio_is_the_default(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options the portfolio has 10 s and two cores."""
    monkeypatch.setattr("cpsched.portfolio.prepare", lambda *_, **__: None)
    calls = use_engine(monkeypatch, parse_plan(window.plan, source="plan"))
    assert run("solve", window.instance_file).exit_code == ExitCode.FINE
    (call,) = calls
    assert (call["engine"], call["budget"], call["workers"], call["warm"]) == ("portfolio", 10.0, 2, None)


def test_a_plan_that_breaks_rules_is_not_written(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine errs, the violations are shown, exit code 3, and older files stay as they were."""
    use_engine(monkeypatch, UnverifiedError("planner", ["capacity: n1 holds 6 of 4 cores"]))
    older = window.folder / "plan.json"
    older.write_text("older")
    chart = window.folder / "plan.html"
    shown = run(*PLAN, window.instance_file, "-o", older, "--gantt", chart, "--json")
    assert shown.exit_code == ExitCode.UNVERIFIED
    assert "n1 holds 6 of 4 cores" in shown.stderr
    assert shown.stdout == ""
    assert older.read_text() == "older"
    assert made_files(window.folder) == {"plan.json"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnsupportedError("planner", ["jobs[0].after"]), ExitCode.REFUSED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_nothing_is_written_where_the_engine_does_not_end(
    run: Run, window: Window, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: ExitCode
) -> None:
    """A refusal and an interruption have exit codes of their own, and leave no file."""
    use_engine(monkeypatch, error)
    shown = run(*PLAN, window.instance_file, "-o", window.folder / "plan.json")
    assert shown.exit_code == code
    assert made_files(window.folder) == set()


def test_a_chart_that_fails_leaves_nothing_behind(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chart that cannot be written is no half-written file: the temporary one is gone."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    shown = run(*PLAN, window.instance_file, "--gantt", window.folder / "plan.html")
    assert shown.exit_code == ExitCode.DISK_FULL
    assert made_files(window.folder) == set()


def test_progress_is_drawn_on_a_terminal(run: Run, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the engine gets callbacks, whose bars go to stderr only."""
    monkeypatch.setattr("cpsched.cli.screen.is_terminal_at", lambda _: True)
    plan = parse_plan(window.plan, source="plan")

    def solve(_: object, **options: Any) -> object:
        for done in range(3):
            options["progress"](done, 2)
        options["on_plan"](1.0, 0.5, 3.0)
        return plan

    monkeypatch.setattr("cpsched.portfolio.solve", solve)
    shown = run(*PLAN, window.instance_file, "--json")
    assert shown.exit_code == ExitCode.FINE
    assert "planning" in shown.stderr
    assert "best 1.00, bound 0.50" in shown.stderr
    assert json.loads(shown.stdout)["instance"] == "hand-made"


def test_a_reservation_that_is_not_had_is_told(run: Run, window: Window) -> None:
    """Its time and the reason are printed, and it is in the JSON."""
    window.instance["reservations"] = [{"id": "lesson", "start": 50, "end": 60, "request": "9:ncpus=4"}]
    told = run("solve", window.instance_file, "--engine", "planner")
    assert told.exit_code == ExitCode.FINE
    assert "reservation lesson from now + 50 s to now + 1 min is not had: " in told.stdout
    document = json.loads(run("solve", window.instance_file, "--engine", "planner", "--json").stdout)
    assert [entry["id"] for entry in document["reservations"]] == ["lesson"]
    assert document["reservations"][0]["reason"]
