"""The examples of the commands' help, run as they stand there, and the examples that come with the package."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.cli.exits import ExitCode
from cpsched.cli.group import COMMANDS
from cpsched.formats import read_instance
from tests.cli.conftest import Run
from tests.cli.test_cli_snapshot import fake_slurm

ROOT = Path(__file__).parents[2]

#: Three jobs of a log, on nodes that are in no other file.
LOG = """; MaxNodes: 2
; MaxProcs: 8
1 0 5 60 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1
2 30 5 60 1 -1 -1 1 600 -1 1 8 1 -1 1 -1 -1 -1
"""
WINDOW = {
    "format": "cpsched-instance/1",
    "name": "window",
    "cluster": {"nodes": [{"names": "n[1-3],node[1-4]", "resources": {"cores": 4}}]},
    "jobs": [{"id": "1201", "submit": 0, "walltime": 600, "request": "7:ncpus=4"}],
}
CAMPAIGN = """name = "quick"
[[workload]]
name = "eurora"
generator = "eurora"
parameters = { jobs = 20 }
[[policy]]
scheduler = "easy"
"""
SITE = """dry_run = true
allow_root = true
[manager]
kind = "memory"
instance = "window.json"
[store]
url = "sqlite:///{folder}/store.db"
"""


def commands() -> list[str]:
    """Return the examples of all commands, those of groups of commands too."""
    found: list[str] = []
    context = click.Context(main)
    pending = [main.get_command(context, name) for name in COMMANDS]
    while pending:
        command = pending.pop(0)
        assert command is not None
        epilog = re.match(r"Example: (cpsched [^;]+)", command.epilog or "")
        assert epilog is not None, command.name
        found.append(epilog[1])
        pending += command.commands.values() if isinstance(command, click.Group) else ()
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has the files that the examples read."""
    fake = fake_slurm(tmp_path)
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "quick.toml").write_text(CAMPAIGN)
    (tmp_path / "log.swf.gz").write_text(LOG)
    (tmp_path / "window.json").write_text(json.dumps(WINDOW))
    (tmp_path / "machine.json").write_text(json.dumps({**WINDOW, "jobs": []}))
    (tmp_path / "slurm.toml").write_text(fake.read_text())
    fake.write_text(SITE.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path)
    planned = CliRunner().invoke(main, ["solve", "window.json", "--engine", "planner", "-o", "plan.json", "--quiet"])
    assert planned.exit_code == 0, planned.output
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("example", commands())
def test_the_example_of_a_command_works(example: str, folder: Path) -> None:
    """It ends well, and leaves the files that it names."""
    line, _, redirected = example.partition(" > ")
    arguments = shlex.split(line)[1:]
    if arguments[0] == "snapshot":
        (folder / "site.toml").write_text((folder / "slurm.toml").read_text())
    if arguments[0] in ("convert", "example"):
        (folder / "window.json").unlink()
    if arguments[0] == "solve":
        arguments += ["--budget", "0.5"]
    if arguments[0] == "generate" and "--jobs" in arguments:
        arguments[arguments.index("--jobs") + 1] = "50"
    if arguments[0] == "serve":
        CliRunner().invoke(main, ["daemon", "--config", "site.toml", "--once"], catch_exceptions=False)
    shown = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    assert bool(redirected) <= bool(shown.stdout)
    for option, value in pairwise(arguments):
        assert option not in ("-o", "--gantt", "--instance-output") or (folder / value).exists(), value


def test_examples_are_listed_and_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list says what each is; one is written under its own name or another one, and never over another file."""
    monkeypatch.chdir(tmp_path)
    listed = run("example").stdout
    assert re.search(r"instances/eurora-like-0200.json.gz +30 running and 200 waiting jobs on 64 nodes\n", listed)
    assert re.search(r"campaigns/quick.toml +a campaign", listed)
    assert run("example", "tiny-bridi").stdout == "tiny-bridi.json\n"
    assert read_instance("tiny-bridi.json") == read_instance(ROOT / "instances" / "tiny-bridi.json")
    assert run("example", "instances/site/demo.toml", "-o", "site.toml").exit_code == ExitCode.FINE
    refused = run("example", "tiny-order", "-o", "site.toml")
    assert (refused.exit_code, "site.toml exists" in refused.stderr) == (ExitCode.BAD_INPUT, True)
    assert "Expected an example of the list" in run("example", "tiny-brid").stderr
    assert "NAME of an example beside -o" in run("example", "-o", "x.json").stderr
    assert "under its own name" in run("example", "--all", "tiny-bridi").stderr


def test_all_examples_are_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are those of the repository, without campaigns that need logs; a second time nothing changes."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run("example", "--all").exit_code == ExitCode.FINE
    written = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    expected = [path.relative_to(ROOT) for path in (ROOT / "instances").rglob("*") if path.is_file()]
    assert written == sorted([Path("campaigns/quick.toml"), *expected])
    assert all((tmp_path / path).read_bytes() == (ROOT / path).read_bytes() for path in written)
