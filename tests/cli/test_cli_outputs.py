"""What commands print with ``--json``: one object, of a format that is described and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest

from cpsched.cli import main
from cpsched.cli.exits import ExitCode
from cpsched.cli.group import COMMANDS
from cpsched.cli.outputs import OUTPUTS, output_schema
from cpsched.verify import Violation
from tests.cli.conftest import Run, Window
from tests.cli.test_cli_examples import CAMPAIGN, LOG, SITE
from tests.cli.test_cli_snapshot import fake_slurm

#: Commands that give each output, in the folder of `made`; the order is that in which they are run.
CALLS: dict[str, list[str]] = {
    "solve": ["solve", "window.json", "--engine", "planner", "-o", "new.json"],
    "replan": ["replan", "window.json", "plan.json", "--at", "10", "--instance-output", "next.json"],
    "verify": ["verify", "window.json", "plan.json"],
    "show": ["show", "window.json", "plan.json"],
    "report": ["report", "plan.json", "--instance", "window.json", "-o", "report.html"],
    "explain": ["explain", "window.json", "plan.json", "a"],
    "whatif": ["whatif", "window.json", "plan.json", "--drop", "r"],
    "whatif-submit": ["whatif", "window.json", "plan.json", "--submit", "1:ncpus=2,walltime=50"],
    "forecast": ["forecast", "window.json", "log.swf"],
    "snapshot": ["snapshot", "--rm", "slurm", "--config", "slurm.toml", "-o", "now.json"],
    "convert": ["convert", "log.swf", "machine.json", "-o", "converted.json"],
    "generate": ["generate", "eurora", "--jobs", "5", "--malleable", "0.5", "-o", "generated.json"],
    "simulate": ["simulate", "log.swf", "--policy", "easy", "--policy", "sjf backfill=easy", "--verify", "-o", "out"],
    "replay": ["replay", "log.swf", "--change", "engine=fcfs", "--replicas", "2", "-o", "replay.html"],
    "replay-choose": ["replay", "choose.toml", "--choose"],
    "bench": ["bench", "quick.toml", "--workers", "1", "-o", "results"],
    "daemon-check": ["daemon", "--config", "site.toml", "--check"],
    "daemon-once": ["daemon", "--config", "site.toml", "--once"],
    "daemon-hand-back": ["daemon", "--config", "site.toml", "--hand-back"],
    "serve-check": ["serve", "site.toml", "--check"],
    "warmup": ["warmup"],
    "schema": ["schema", "plan"],
    "completion": ["completion", "zsh"],
    "example": ["example"],
}


@pytest.fixture
def made(window: Window, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with all files that the calls read."""
    folder = window.folder
    fake_slurm(folder).rename(folder / "slurm.toml")
    assert window.instance_file.exists()
    assert window.plan_file.exists()
    window.write("machine.json", {**window.instance, "jobs": []})
    (folder / "log.swf").write_text(LOG)
    (folder / "quick.toml").write_text(CAMPAIGN)
    (folder / "site.toml").write_text(SITE.format(folder=folder))
    (folder / "choose.toml").write_text(SITE.format(folder=folder) + '[planning]\nchoose = ["easy"]\n')
    monkeypatch.chdir(folder)
    return folder


def checked(name: str, text: str) -> dict[str, Any]:
    """Return an output that is as its schema says."""
    document = json.loads(text)
    jsonschema_rs.validator_for(output_schema(name)).validate(document)
    assert next(iter(document)) == "format"
    return dict(document)


def test_every_output_is_called() -> None:
    """The calls above give each output, and each command has one."""
    assert set(CALLS) == set(OUTPUTS)
    assert {call[0] for call in CALLS.values()} == set(COMMANDS)
    for name in COMMANDS:
        pending = [main.get_command(click.Context(main), name)]
        for command in pending:
            assert command is not None
            if isinstance(command, click.Group):
                pending += command.commands.values()
            else:
                assert "as_json" in {parameter.name for parameter in command.params}, command.name


@pytest.mark.slow
@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_as_its_schema_says(name: str, run: Run) -> None:
    """Stdout is one object of the format, and nothing else."""
    if name in ("serve-check", "replay-choose"):
        assert run(*CALLS["daemon-once"]).exit_code == ExitCode.FINE
    shown = run(*CALLS[name], "--json")
    assert shown.exit_code == ExitCode.FINE, shown.stderr
    assert checked(name, shown.stdout)["format"] == f"cpsched-{name}/1"


def test_schemas_refuse_other_keys() -> None:
    """A key more, a key less, and another format are no output."""
    document = {"format": "cpsched-warmup/1", "seconds": 1.5}
    valid = jsonschema_rs.validator_for(output_schema("warmup")).is_valid
    assert valid(document)
    assert not valid({**document, "minutes": 1})
    assert not valid({"format": "cpsched-warmup/1"})
    assert not valid({**document, "format": "cpsched-warmup/2"})


@pytest.mark.parametrize("name", OUTPUTS)
def test_schemas_are_printed(name: str, run: Run) -> None:
    """``cpsched schema NAME`` is the schema of an output."""
    assert json.loads(run("schema", name).stdout) == output_schema(name)


@pytest.mark.usefixtures("made")
def test_what_breaks_rules_is_in_the_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The violations of a record are listed, and the exit code is that of violations."""
    violation = Violation("capacity", "n1", "too much")
    monkeypatch.setattr("cpsched.verify.verify", lambda *_: (violation,))
    shown = run("simulate", "log.swf", "--verify", "--json")
    assert shown.exit_code == ExitCode.VIOLATIONS
    listed = checked("simulate", shown.stdout)["policies"][0]["violations"]
    assert listed == [{"rule": "capacity", "subject": "n1", "message": "too much"}]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "arguments",
    [["daemon", "--config", "site.toml"], ["serve", "site.toml"], ["daemon", "--config", "site.toml", "--watchdog"]],
)
def test_services_print_no_json(run: Callable[..., Any], arguments: list[str]) -> None:
    """What runs until it is ended refuses --json."""
    shown = run(*arguments, "--json")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "--json needs --check" in shown.stderr
