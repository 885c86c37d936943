"""Processes that nobody waits for: what they print, and how they are ended."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from cpsched.errors import BridgeError
from cpsched.site.bridge import Beside


def beside(program: str, seconds: int = 60) -> Beside:
    """Start a program of Python."""
    return Beside((sys.executable, "-c", program), seconds=seconds, environment={"TOLD": "yes"})


def said(process: Beside) -> bytes:
    """Look until it has ended, and return what it has printed."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (found := process.poll()) is not None:
            return found
        time.sleep(0.01)
    raise AssertionError("it does not end")


def test_what_it_prints_is_returned_at_its_end() -> None:
    """All of it, though it is more than a pipe holds; with its environment, and at the lowest priority."""
    assert said(beside("print('x' * 300_000)")) == b"x" * 300_000 + b"\n"
    found = said(beside("import os, time; time.sleep(1); print(os.environ['TOLD'], os.nice(0))"))
    assert found == b"yes 19\n"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; print('a\\x1b', file=sys.stderr); sys.exit(3)", "got exit code 3: a"),
        ("while True: print('x' * 10_000)", "at most 1,048,576 bytes"),
        ("import sys\nwhile True: print('x' * 10_000, file=sys.stderr)", "within 2 s"),
    ],
)
def test_what_fails_is_ended_and_told(program: str, why: str) -> None:
    """Another exit code, with its last words and no control characters; too much; too long."""
    process = beside(program, 2 if "within" in why else 60)
    with pytest.raises(BridgeError) as caught:
        said(process)
    assert why in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert process._process.returncode is not None


def test_one_that_nobody_ends_has_its_time_of_the_processor() -> None:
    """It ends by itself, though nobody looks."""
    process = beside("while True: pass", 1)
    assert process._process.wait(60) < 0
    process.end()


def test_it_is_ended_with_all_that_it_has_started() -> None:
    """Its own child is gone too."""
    program = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    process = beside(program)
    stream = process._process.stdout
    assert stream is not None
    os.set_blocking(stream.fileno(), True)
    child = Path(f"/proc/{int(stream.readline())}/stat")
    assert runs(child)
    process.end()
    end = time.monotonic() + 30
    while time.monotonic() < end and runs(child):
        time.sleep(0.05)
    assert not runs(child)


def runs(stat: Path) -> bool:
    """Tell whether a process is there, and no zombie."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_cannot_be_run_is_an_error() -> None:
    """A program that does not exist."""
    with pytest.raises(BridgeError, match="can be run"):
        Beside(("/nonexistent/program",), seconds=1, environment={})
