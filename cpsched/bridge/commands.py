"""Running the commands of a resource manager: argument lists, absolute paths, a time limit, and no shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cpsched.errors import BridgeError
from cpsched.text import printable

__all__ = ["Answer", "run"]

#: Variables that change what Slurm's commands print, ask for, or read.
_DROPPED = ("SLURM_", "SQUEUE_", "SINFO_", "SCONTROL_", "SBATCH_", "PBS_")
_LONGEST_SAID = 500
_LONGEST_ARGUMENT = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command that has ended printed, and its exit code."""

    code: int
    out: str
    err: str


def run(
    command: Sequence[str],
    *,
    seconds: float,
    given: str = "",
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Answer:
    """Run a command to its end.

    Parameters
    ----------
    command
        The program by its absolute path, and its arguments.
    seconds
        How long it may take; then it is killed with all that it started.
    given
        Its standard input.
    environment
        Variables besides those of this process; variables of Slurm and PBS are not passed on.
    codes
        The exit codes that are no errors.

    Raises
    ------
    BridgeError
        If it cannot be run, takes too long, or ends with another code.
    """
    if not command[0].startswith("/"):
        raise ValueError(f"expected a program by its absolute path, got {command[0]!r}")
    told = tuple(printable(part)[:_LONGEST_ARGUMENT] for part in command)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    try:
        process = subprocess.Popen(  # noqa: S603
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**kept, "LC_ALL": "C.UTF-8", **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise BridgeError(told, f"Expected a program that can be run, got: {error.strerror}") from error
    try:
        out, err = process.communicate(given.encode("utf-8", "surrogateescape"), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise BridgeError(told, f"Expected an answer within {seconds:g} s, got none") from None
    finally:
        _end(process)
    answer = Answer(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
    if answer.code not in codes:
        raise BridgeError(told, f"Expected success, got exit code {answer.code}: {_said(answer)}")
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has not ended, and what it started, and free its pipes."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            stream.close()


def _said(answer: Answer) -> str:
    text = printable((answer.err or answer.out).strip())
    return text[:_LONGEST_SAID] or "without a word"
