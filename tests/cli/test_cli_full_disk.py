"""Commands on a full disk: their results are whole or absent, and the message names the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window

#: Runs a command twice in a process: with room, and then with room for small files alone, so that nothing is imported
#: under that limit.
_TWICE = """
import json, resource, sys
from click.testing import CliRunner
from cpsched.cli import main
whole = CliRunner().invoke(main, [*sys.argv[2:], "-o", sys.argv[1] + "/whole"])
assert whole.exit_code == 0, whole.output
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
full = CliRunner().invoke(main, [*sys.argv[2:], "-o", sys.argv[1] + "/deep/full"])
print(json.dumps([full.exit_code, full.stderr]))
"""


def test_a_simulation_without_room_leaves_nothing(window: Window, tmp_path: Path) -> None:
    """No folder with some of the files, no checkpoint of another run: the message names the file, and the reason."""
    arguments = ["simulate", str(window.instance_file), "--policy", "easy", "--record", "--quiet"]
    command = [sys.executable, "-B", "-c", _TWICE, str(tmp_path), *arguments]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    code, said = json.loads(shown.stdout)
    assert code == ExitCode.DISK_FULL
    assert f"{tmp_path}/deep/full/" in said
    assert "Expected room to write it, got: File too large" in said
    assert not (tmp_path / "deep").exists()
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {
        "jobs.csv",
        "jobs.swf.gz",
        "record.json.gz",
        "run.npz",
        "series.csv",
        "summary.json",
    }


def test_what_can_be_no_folder_is_no_other_simulation(run: Run, window: Window) -> None:
    """A device in the place of a folder is told as such, before anything is simulated."""
    shown = run("simulate", window.instance_file, "--policy", "easy", "-o", "/dev/full/results")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "Expected a folder for results, got: Not a directory (/dev/full/results)" in shown.stderr
    assert "another simulation" not in shown.stderr


def test_results_that_are_not_whole_are_told(run: Run, window: Window, tmp_path: Path) -> None:
    """A folder with a summary alone, of an older version: the report says what is missing."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "summary.json").write_text("{}")
    shown = run("report", tmp_path / "old", "-o", tmp_path / "report.html")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "not whole, they lack run.npz" in shown.stderr


@pytest.mark.parametrize(
    "command", [("solve", "-o", "plan.json"), ("simulate", "-o", "new/out"), ("report", "-o", "r.html")]
)
def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    run: Run, window: Window, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Neither a plan nor a simulation is made whose result would be lost."""
    name, option, path = command
    monkeypatch.setattr("os.access", lambda folder, mode: mode != os.W_OK)  # who runs the tests may write everywhere
    shown = run(name, window.instance_file, option, window.folder / path)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert f"The folder '{window.folder}' cannot be written to." in shown.stderr
