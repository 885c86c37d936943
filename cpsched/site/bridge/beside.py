"""A process beside this one that nobody waits for: at the lowest priority, with bounds on its time and its output."""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cpsched.errors import BridgeError
from cpsched.site.bridge.commands import end_process, start_process, words_of
from cpsched.text import printable

#: The most bytes of its answer; the characters of what it says of errors that are told.
_MOST_BYTES, _LONGEST_SAID = 2**20, 500
_READ = 2**16


class Beside:
    """A process that runs by itself. Mutable.

    It has no more than its time of the processor either: one that nobody ends, as this process was killed, ends too.

    `command`: the program by its absolute path, and its arguments. `seconds`: how long it may take. `environment`:
    variables besides those of this process. Raises `BridgeError` if it cannot be started.
    """

    def __init__(self, command: Sequence[str], *, seconds: int, environment: Mapping[str, str]) -> None:
        self._told = words_of(command)
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._out, self._err = bytearray(), bytearray()
        self._process = start_process(command, {**os.environ, **environment}, stdin=subprocess.DEVNULL)
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 19)
            resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)

    def poll(self) -> bytes | None:
        """Return its output, if it has ended; None: it runs. This takes no time.

        Raises `BridgeError`, and ends it, if it has taken too long, prints too much, or ended with another code than 0.
        """
        code = self._process.poll()  # before the last bytes are read
        process = self._process
        for stream, said in ((process.stdout, self._out), (process.stderr, self._err)):
            while stream is not None and len(said) <= _MOST_BYTES and (read := _read(stream.fileno())):
                said += read
        del self._err[:-_LONGEST_SAID]
        if code is None and len(self._out) <= _MOST_BYTES and time.monotonic() < self._end:
            return None
        self.end()
        if len(self._out) > _MOST_BYTES:
            raise BridgeError(self._told, f"Expected an answer of at most {_MOST_BYTES:,} bytes, got more")
        if code is None:
            raise BridgeError(self._told, f"Expected an answer within {self._seconds} s, got none")
        if code != 0:
            words = printable(self._err.decode("utf-8", "replace").strip()) or "without a word"
            raise BridgeError(self._told, f"Expected success, got exit code {code}: {words}")
        return bytes(self._out)

    def end(self) -> None:
        """End it now, with all that it has started."""
        end_process(self._process)


def _read(number: int) -> bytes:
    """Return the bytes that can be read now."""
    try:
        return os.read(number, _READ)
    except BlockingIOError:
        return b""
