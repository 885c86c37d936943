"""Commands are run with a time limit and without a shell, and their failures are told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cpsched.errors import BridgeError
from cpsched.site.bridge.commands import run
from cpsched.site.bridge.slurm import SlurmClient


def test_a_command_gets_its_arguments_as_they_are() -> None:
    """Quotes, blanks, newlines and signs of a shell reach the program unchanged; so does its input."""
    evil = "a b\n$(touch /tmp/x) `id` 'q' \"r\" ; | & > \\ \x1b[0m"
    assert run(("/usr/bin/printf", "%s", evil), seconds=10).out == evil
    assert run(("/bin/cat",), seconds=10, given=evil).out == evil


def test_variables_of_slurm_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that changes what Slurm's commands print does not reach them, unless it is given."""
    monkeypatch.setenv("SQUEUE_FORMAT", "%j")
    monkeypatch.setenv("SLURM_CONF", "/elsewhere")
    said = run(("/usr/bin/env",), seconds=10, environment={"SLURM_CONF": "/here"}).out
    assert "SQUEUE_FORMAT" not in said
    assert "SLURM_CONF=/here" in said


def test_slurm_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Slurm's own commands do, ours look into SLURM_CONF, unless a site's file names another configuration."""
    (tmp_path / "squeue").write_text('#!/bin/sh\necho "$SLURM_CONF"\n')
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("SLURM_CONF", "/elsewhere")
    assert SlurmClient(directory=str(tmp_path)).command("squeue").out == "/elsewhere\n"
    assert SlurmClient(directory=str(tmp_path), conf="/here").command("squeue").out == "/here\n"


def is_alive(pid: str) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """After its time nothing of it runs, not even what it started."""
    script, children = tmp_path / "hang", tmp_path / "children"
    script.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {children}\nsleep 1000 &\necho $! >> {children}\nwait\n")
    script.chmod(0o755)
    with pytest.raises(BridgeError, match="within 1 s"):
        run((str(script),), seconds=1.0)
    pids = children.read_text().split()
    assert len(pids) == 2
    end = time.monotonic() + 60  # a killed process takes a moment to go; by itself it would stay for longer
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(is_alive, pids))


def test_a_failure_is_told_with_its_words_on_one_line() -> None:
    """The exit code and what the command said are in the error, without control characters."""
    with pytest.raises(BridgeError) as caught:
        run(("/bin/sh", "-c", "printf 'no\\033[31m luck\\n' >&2; exit 3"), seconds=10)
    assert "exit code 3: no\\x1b[31m luck" in str(caught.value)
    assert run(("/bin/sh", "-c", "exit 3"), seconds=10, codes=(0, 3)).code == 3


def test_a_program_that_is_not_there_is_told() -> None:
    """A missing program is an error of the bridge; one without an absolute path a mistake of the programmer."""
    with pytest.raises(BridgeError, match="No such file"):
        run(("/nowhere/squeue",), seconds=10)
    with pytest.raises(ValueError, match="absolute path"):
        run(("squeue",), seconds=10)


def test_bytes_that_are_no_text_do_no_harm() -> None:
    """Bytes that are no UTF-8 are replaced."""
    assert run(("/usr/bin/printf", "a\\377b"), seconds=10).out == "a\ufffdb"


def test_much_goes_in_and_out_at_once() -> None:
    """Megabytes of input and output, which do not fit into a pipe, arrive whole."""
    text = "x" * 3_000_000
    assert run(("/bin/cat",), seconds=20, given=text).out == text
    assert run(("/bin/true",), seconds=20, given=text).out == ""


def test_an_answer_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that never stops printing is killed before it has filled the memory."""
    monkeypatch.setattr("cpsched.site.bridge.commands._MOST_BYTES", 100_000)
    with pytest.raises(BridgeError, match="at most 100,000 bytes"):
        run(("/usr/bin/yes",), seconds=20)
