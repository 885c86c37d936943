"""What all commands share: help, exit codes, errors without tracebacks."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from cpsched.cli import main
from cpsched.cli.exits import ExitCode
from cpsched.cli.group import COMMANDS
from cpsched.errors import DiskFullError, EngineError, SyntaxFault, UnsupportedError
from tests.cli.conftest import Run, Window


def module_run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m cpsched`` in a process of its own."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "cpsched", *arguments], cwd=repository, capture_output=True, text=True, check=False
    )


def get_command(name: str) -> click.Command:
    """Return a command of the group."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example_and_stands_in_the_tour(name: str, repository: Path) -> None:
    """A command says what it does, shows how it is called, and is shown in docs/commands.md."""
    command = get_command(name)
    assert command.help
    assert (command.epilog or "").startswith(f"Example: cpsched {name}")
    assert f"$ cpsched {name}" in (repository / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is_for(name: str) -> None:
    """No option is without a help text."""
    options = [parameter for parameter in get_command(name).params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_the_help_of_the_group_lists_commands_and_exit_codes(run: Run) -> None:
    """``cpsched --help`` names every command, with its whole first sentence, and every exit code."""
    shown = run("--help")
    assert shown.exit_code == ExitCode.FINE
    for name in COMMANDS:
        assert re.search(
            rf"^ +{name} +{re.escape(get_command(name).get_short_help_str(limit=200))}$", shown.output, re.M
        )
    for code in ExitCode:
        assert re.search(rf"^ +{code:d} +{re.escape(code.meaning[:40])}", shown.output, re.M)


def test_the_exit_codes_are_those_of_the_one_table(repository: Path) -> None:
    """Each exit code has a meaning, which the help and the page show; the README leads to the page."""
    assert all(code.meaning for code in ExitCode)
    page = (repository / "docs" / "reference" / "exit-codes.md").read_text()
    assert "<!-- generated: exit codes -->" in page
    assert "docs/reference/exit-codes.md" in (repository / "README.md").read_text()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("sovle x.json", "there is no command 'sovle', did you mean solve?"),
        ("solve x.json --engine planer", "there is no engine 'planer', did you mean planner?"),
        ("simulate x.json --polciy easy", "'--policy'"),
        ("simulate instances/tiny-bridi.json --policy eays", "did you mean easy?"),
        ("solve a.swf", "cpsched convert makes an instance of it"),
        ("show a.csv a.csv", "cpsched.Model.from_frame"),
    ],
)
def test_who_mistypes_is_told_what_was_meant(
    run: Run, line: str, hint: str, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands, options, engines and policies have suggestions; a file of another kind is named with its command."""
    for name in ("x.json", "a.swf", "a.csv"):
        (tmp_path / name).write_text("id,walltime\n")
    (tmp_path / "instances").symlink_to(repository / "instances")
    monkeypatch.chdir(tmp_path)
    done = run(*line.split())
    assert done.exit_code == ExitCode.BAD_INPUT
    assert hint in " ".join(done.stderr.split())


def test_python_m_cpsched_is_the_same_command(repository: Path) -> None:
    """``python -m cpsched --version`` prints the version of pyproject.toml."""
    version = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["version"]
    process = module_run(repository, "--version")
    assert (process.returncode, process.stdout, process.stderr) == (0, f"cpsched {version}\n", "")


def test_an_unknown_command_is_a_fault_of_usage(run: Run) -> None:
    """A command that does not exist ends with exit code 2."""
    shown = run("slove")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "slove" in shown.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SyntaxFault("2:ncpus=x\x1b[2J", (8, 9), "Expected a number"), ExitCode.BAD_INPUT, "        ^\n"),
        (UnsupportedError("planner", ["limits: \x1b]0;pwned\x07"]), ExitCode.REFUSED, "cannot honour"),
        (EngineError("no \x1b[31mluck"), ExitCode.REFUSED, "no \\x1b[31mluck"),
        (OSError(28, "No space left on device", "plan.json"), ExitCode.DISK_FULL, "No space left on device"),
        (OSError(13, "Permission denied", "plan.json"), ExitCode.BAD_INPUT, "Permission denied"),
        (DiskFullError("plan.json", "Disk quota exceeded"), ExitCode.DISK_FULL, "plan.json: Expected room to write it"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
    ],
)
def test_errors_become_exit_codes(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: ExitCode, said: str
) -> None:
    """Each kind of error has its exit code, is said without a traceback, and cannot command the terminal."""

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(get_command("schema"), "invoke", fail)
    shown = run("schema")
    assert shown.exit_code == code
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr
    assert "\x1b" not in shown.stderr
    assert shown.stdout == ""


def test_a_library_of_an_extra_that_is_missing_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which extra of the package has it; another missing module is a bug."""

    def fail(name: str) -> None:
        monkeypatch.setattr(get_command("schema"), "invoke", lambda _: importlib.import_module(name))

    for name, extra in (("structlog", "daemon"), ("uvicorn", "web"), ("pyarrow", "bench")):
        monkeypatch.setitem(sys.modules, name.partition(".")[0], None)
        fail(name)
        shown = run("schema")
        assert shown.exit_code == ExitCode.BAD_INPUT
        assert f"pip install '.[{extra}]'" in shown.stderr
    fail("no_such_module")
    with pytest.raises(ModuleNotFoundError):
        run("schema")


def test_a_bug_is_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that nobody meant to raise comes through, for a report with its traceback."""

    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(get_command("schema"), "invoke", fail)
    with pytest.raises(ZeroDivisionError):
        run("schema")


def test_an_input_that_ends_early_is_no_interruption(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An EOFError is a bug as any other; click on its own says ``Aborted!``, as for Ctrl-C."""

    def fail(_: object) -> None:
        raise EOFError("no more input")

    monkeypatch.setattr(get_command("schema"), "invoke", fail)
    shown = run("schema")
    assert shown.exit_code == ExitCode.CRASHED
    assert shown.stderr.startswith("Traceback")
    assert shown.stderr.endswith("EOFError: no more input\n")


def test_a_reader_that_goes_away_is_no_traceback(repository: Path) -> None:
    """With its output closed, a command ends quietly, as one that SIGPIPE has killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "cpsched", "schema"], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (ExitCode.BROKEN_PIPE, b"")


def test_a_terminal_without_the_characters_gets_escapes(repository: Path, window: Window) -> None:
    """Where stdout is ASCII, a name of other characters is escaped, and no UnicodeEncodeError ends the report."""
    window.plan["instance"] = window.instance["name"] = "fenêtre-窗"
    process = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "cpsched", "show", window.instance_file, window.plan_file],
        cwd=repository,
        env={"PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
