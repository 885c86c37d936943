"""Processes that plan: a few at a time, each for one task, ended when nobody needs the outcome any more."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from cpsched.errors import EngineError
from cpsched.site.daemon import where_we_are
from cpsched.site.serve.child import LENGTH_BYTES

#: -P: no file in the current directory may replace one of our modules.
_COMMAND = (sys.executable, "-P", "-m", "cpsched.site.serve.child")
#: Seconds that a task may take beyond its budget: for starting, compiling, the planner, and proving.
_PATIENCE = 300.0
#: Characters of what a process says on its standard error that are told.
_LAST_WORDS = 500


class Children:
    """Runs tasks in processes of their own. Mutable. `most`: how many at the same time."""

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._running: set[asyncio.subprocess.Process] = set()
        self.num_waiting = 0

    async def run(
        self, task: Mapping[str, Any], *, budget: float, begun: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Return the outcome of a task; a caller that is cancelled ends its process.

        Raises `EngineError` if the process takes far longer, or ends without an outcome.

        `task`: as `cpsched.site.serve.child` has it.
        `budget`: seconds that the task says it takes.
        `begun`: called when its turn has come.
        """
        self.num_waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.num_waiting -= 1
        try:
            begun()
            return await self._converse(await asyncio.to_thread(_packed, task), budget + _PATIENCE)
        finally:
            self._places.release()

    async def _converse(self, message: bytes, seconds: float) -> dict[str, Any]:
        """Start a process, give it its task, and return its outcome."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | where_we_are(), start_new_session=True
        )
        self._running.add(process)
        try:
            async with asyncio.timeout(seconds):
                output, words = await _heard(process, message)
                code = await process.wait()
        except TimeoutError:
            raise EngineError(f"its process took more than {seconds:g} s") from None
        finally:
            await _end(process)
            self._running.discard(process)
        if code != 0:
            last = words.decode(errors="replace").strip()[-_LAST_WORDS:]
            raise EngineError(f"its process ended with code {code}: {last}")
        outcome: dict[str, Any] = await asyncio.to_thread(json.loads, output)
        return outcome

    async def close(self) -> None:
        """End all processes."""
        for process in tuple(self._running):
            await _end(process)


def _packed(task: Mapping[str, Any]) -> bytes:
    text = json.dumps(task).encode()
    return len(text).to_bytes(LENGTH_BYTES) + text


async def _heard(process: asyncio.subprocess.Process, message: bytes) -> tuple[bytes, bytes]:
    """Send a message, leave the pipe open, and return all that the process writes."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise ValueError("expected a process with three pipes")

    async def send() -> None:
        with contextlib.suppress(ConnectionError):  # that it has ended is seen by its code
            stdin.write(message)
            await stdin.drain()

    _, output, words = await asyncio.gather(send(), stdout.read(), stderr.read())
    return output, words


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it has started, if it has not ended; its own workers end with it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
