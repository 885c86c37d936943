"""Running the commands of a resource manager: argument lists, absolute paths, a time limit, and no shell."""

import fcntl
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cpsched.errors import BridgeError
from cpsched.text import printable

#: Variables that change what Slurm's commands print, ask for, or read.
_DROPPED = ("SLURM_", "SQUEUE_", "SINFO_", "SCONTROL_", "SBATCH_", "PBS_")
#: The most bytes of an answer (`squeue --json` takes some 4 kB for a job), and those that are read at a time: as many
#: as a pipe can be made to hold.
_MOST_BYTES = 512 * 2**20
_READ = 2**20
_LONGEST_SAID = 500
#: Seconds in which a killed process is gone.
_KILL_TIMEOUT = 1.0
_LONGEST_ARGUMENT = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """The output and the exit code of a command that has ended."""

    code: int
    #: What it printed, as it is.
    data: bytes | bytearray
    err: str

    @property
    def out(self) -> str:
        """What it printed, as text."""
        return self.data.decode("utf-8", "replace")


def run(
    command: Sequence[str],
    *,
    seconds: float,
    given: str = "",
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Answer:
    """Run a command to its end.

    Raises `BridgeError` if it cannot be run, takes too long, or ends with another code.

    `command`: the program by its absolute path, and its arguments.
    `seconds`: how long it may take; then it is killed with all that it started.
    `given`: its standard input.
    `environment`: variables besides those of this process; variables of Slurm and PBS are not passed on.
    `codes`: the exit codes that are no errors.
    """
    if not command[0].startswith("/"):
        raise ValueError(f"expected a program by its absolute path, got {command[0]!r}")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    process = start_process(command, {**kept, "LC_ALL": "C.UTF-8", **(environment or {})}, stdin=subprocess.PIPE)
    told = words_of(command)
    try:
        out, err = _converse(process, given.encode("utf-8", "surrogateescape"), time.monotonic() + seconds)
    except TimeoutError:
        raise BridgeError(told, f"Expected an answer within {seconds:g} s, got none") from None
    except OverflowError:
        raise BridgeError(told, f"Expected an answer of at most {_MOST_BYTES:,} bytes, got more") from None
    finally:
        end_process(process)
    answer = Answer(process.returncode, out, err.decode("utf-8", "replace"))
    if answer.code not in codes:
        said = printable((answer.err or answer.out).strip())[:_LONGEST_SAID] or "without a word"
        raise BridgeError(told, f"Expected success, got exit code {answer.code}: {said}")
    return answer


def _converse(process: subprocess.Popen[bytes], given: bytes, end: float) -> tuple[bytearray, bytearray]:
    """Give a process its input, and return what it prints and says of errors when it has ended.

    Raises `TimeoutError` if it has not ended at a second of the monotonic clock; `OverflowError` if it prints too much:
    no manager has so many jobs, and memory is not for a command that has gone mad.
    """
    assert process.stdin is not None  # noqa: S101 - all three are pipes
    assert process.stdout is not None  # noqa: S101
    with suppress(OSError):  # it may not be allowed
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _READ)
    # an answer is long: it grows in place
    said = {stream: bytearray() for stream in (process.stdout, process.stderr) if stream is not None}
    left, length, read = memoryview(given), 0, memoryview(bytearray(_READ))
    with selectors.PollSelector() as selector:
        for stream in said:
            selector.register(stream, selectors.EVENT_READ)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            for key, _ in selector.select(max(0.0, end - time.monotonic())):
                if key.fileobj is process.stdin:
                    try:
                        left = left[os.write(key.fd, left[: select.PIPE_BUF]) :]
                    except BrokenPipeError:  # it has ended, or does not read
                        left = left[:0]
                    is_over = not left
                else:
                    count = os.readv(key.fd, [read])
                    said[key.fileobj] += read[:count]  # type: ignore[index]  # the streams that were registered
                    is_over = not count
                    length += count
                    if length > _MOST_BYTES:
                        raise OverflowError
                if is_over:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # they are no numbers
            if time.monotonic() >= end and selector.get_map():
                raise TimeoutError
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    out, err = said.values()
    return out, err


def words_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command as errors tell it."""
    return tuple(printable(part)[:_LONGEST_ARGUMENT] for part in command)


def start_process(command: Sequence[str], environment: Mapping[str, str], *, stdin: int) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, with pipes for what it prints.

    `command`: the program by its absolute path, and its arguments. Raises `BridgeError` if it cannot be run.
    """
    try:
        return subprocess.Popen(  # noqa: S603 - no shell, and the command is our own
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise BridgeError(words_of(command), f"Expected a program that can be run, got: {error.strerror}") from error


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has not ended, and what it started, and free its pipes."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_TIMEOUT)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
