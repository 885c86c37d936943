"""How commands end that are terminated, or that find no room to write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cpsched.cli import main, schema
from cpsched.cli.exits import ExitCode
from cpsched.formats import read_plan
from cpsched.verify import verify_files
from tests.cli.conftest import Window
from tests.limited import with_small_files

ROOT = Path(__file__).parents[2]

#: Runs a command that gets a SIGTERM as soon as a solver has begun to improve the plan.
_TERMINATED = """
import os, signal, time
from cpsched.portfolio import lanes
from cpsched.cli import run

def begin(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)

lanes._run_lane = begin
run()
"""

#: A module with an order of the queue that raises.
_BROKEN = """
from cpsched.rules import Policy, PolicyEngine, insert

def order(instance, jobs):
    raise LookupError("a typo of mine")

engine = PolicyEngine(Policy(name="broken", order=order, serve=insert))
"""


@pytest.mark.slow
def test_a_terminated_command_keeps_its_best_plan(repository: Path, window: Window) -> None:
    """SIGTERM ends the improvement as Ctrl-C does: the planner's plan is written, and is verified."""
    out = window.folder / "out.json"
    arguments = ["solve", str(window.instance_file), "--engine", "search", "--budget", "600", "--quiet", "-o", str(out)]
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _TERMINATED, *arguments], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (ExitCode.FINE, "")
    assert read_plan(out).engine.stopped == "interrupted"
    assert not verify_files(window.instance_file, out)


@pytest.mark.parametrize("name", ["plan.html", "window.json.gz"])
def test_a_full_disk_has_an_exit_code_and_a_name(window: Window, tmp_path: Path, name: str) -> None:
    """What does not fit on the disk ends the command with its own exit code and the file's name; nothing is left."""
    out = tmp_path / "out" / name
    out.parent.mkdir()
    if name.endswith("html"):
        arguments = ["show", str(window.instance_file), str(window.plan_file), "--html", str(out)]
    else:
        arguments = ["generate", "lublin", "--jobs", "50", "-o", str(out)]
    ended = with_small_files("from cpsched.cli import run; run()", *arguments, size=200)
    assert ended.returncode == ExitCode.DISK_FULL
    assert ended.stderr == f"cpsched: {out}: Expected room to write it, got: File too large\n"
    assert list(out.parent.iterdir()) == []


def test_a_full_standard_output_has_the_same_exit_code(repository: Path) -> None:
    """What a command prints may not fit either."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "cpsched", "schema", "plan"],
            cwd=repository, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (
        ExitCode.DISK_FULL,
        "cpsched: [Errno 28] No space left on device: '<stdout>'\n",
    )


#: Runs a command in which an object that goes swallows an interruption, as in the middle of a compilation.
_SWALLOWED = """
import time
from cpsched.cli import group, schema

class Going:
    def __del__(self):
        raise KeyboardInterrupt

def invoke(context):
    Going()
    time.sleep(600)

schema.command.invoke = invoke
group.run()
"""


def test_an_interruption_is_never_lost(repository: Path) -> None:
    """An interruption that Python only reports, as it arose in a destructor, ends the command all the same."""
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _SWALLOWED, "schema", "plan"],
        cwd=repository, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (ExitCode.INTERRUPTED, "", "cpsched: interrupted\n")


def test_an_interruption_that_became_an_error_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 raises another error where a class is being made; it has no traceback either."""

    def invoke(context: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(schema.command, "invoke", invoke)
    ended = CliRunner().invoke(main, ["schema", "plan"])
    assert (ended.exit_code, ended.stderr) == (ExitCode.INTERRUPTED, "cpsched: interrupted\n")


@pytest.mark.slow
def test_an_error_in_a_module_of_the_users_has_a_code_of_its_own(window: Window) -> None:
    """Its traceback is printed, and the code is not 1, Python's own for errors, which is that of violations."""
    (window.folder / "mine.py").write_text(_BROKEN)
    done = subprocess.run(
        [sys.executable, "-m", "cpsched", "solve", "window.json", "--engine", "mine:engine"],
        cwd=window.instance_file.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == ExitCode.CRASHED
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("LookupError: a typo of mine\n")
