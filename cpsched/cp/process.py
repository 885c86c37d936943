"""A worker in a process of its own, which can be ended at any moment.

CP-SAT does not keep a limit in seconds on large models (or-tools #4882, #5163), and can use all the memory there is:
nothing less than a process can be ended in time. It is started by `subprocess`: multiprocessing would run the caller's
script a second time, unless that is guarded.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from cpsched.cp.messages import Failed, Reply, Request, pack, unpack
from cpsched.engine import Board
from cpsched.errors import EngineError

#: The command that starts a worker; -P: no file in the current directory may replace one of our modules.
COMMAND = (sys.executable, "-P", "-m", "cpsched.cp.worker")
#: Bytes that are read at a time, and how many of what a worker says on stderr are kept.
_PORTION = 1 << 16
_LAST_WORDS = 2000
#: Seconds in which a killed process is gone.
_KILL_TIMEOUT = 1.0
#: Seconds between two looks at the board.
_LOOK = 0.05
#: Seconds of the budget that a worker does not get, so that it ends by itself and sends its results.
_MARGIN = 0.1
#: Seconds that a worker may need for starting, beyond those that a request may take.
_PATIENCE = 10.0


class Worker:
    """A process that answers requests; mutable. Nothing that is called here waits for it longer than asked.

    It ends when it is closed, and by itself when this process ends, however that happens.

    `memory`: bytes of memory that it may use. `command`: how it is started; the memory is added as its last argument.
    Raises `EngineError` if it cannot be started.
    """

    def __init__(self, memory: int, command: Sequence[str] = COMMAND) -> None:
        self._unsent, self._unread, self._last_words = bytearray(), bytearray(), bytearray()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [*command, str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"its process cannot be started: {error}") from error
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None  # noqa: PT018, S101 - they are pipes
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(stdout, selectors.EVENT_READ)
        self._selector.register(stderr, selectors.EVENT_READ)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, request: Request) -> None:
        """Ask for something; it leaves while replies are received."""
        if not self._unsent:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._unsent += pack(request)

    def receive(self, seconds: float) -> list[Reply]:
        """Return the replies as soon as there are any, or after the given seconds.

        Raises `EngineError` if the process has ended, or what it says cannot be understood.
        """
        deadline = time.monotonic() + seconds
        while True:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            has_ended = any(not self._transfer(key.fileobj) for key, _ in ready)
            try:
                messages = unpack(self._unread)
            except ValueError as error:
                raise EngineError(f"its process says something that is no message: {error}") from error
            replies: list[Reply] = []
            for message in messages:
                if not isinstance(message, Reply):
                    raise EngineError(f"its process says something that is no reply: {type(message).__name__}")
                replies.append(message)
            if replies:
                return replies
            if has_ended:
                raise EngineError(self._exit_description())
            if time.monotonic() >= deadline:
                return []

    def _transfer(self, pipe: object) -> bool:
        """Write or read what is possible now; return False if the process no longer speaks."""
        if pipe is self._stdin:
            self._write()
            return True
        if pipe is self._stderr:
            heard = os.read(self._stderr.fileno(), _PORTION)
            self._last_words = (self._last_words + heard)[-_LAST_WORDS:]
            if not heard:
                self._selector.unregister(self._stderr)
            return True
        heard = os.read(self._stdout.fileno(), _PORTION)
        self._unread += heard
        return bool(heard)

    def _write(self) -> None:
        """Write what the pipe takes now."""
        try:
            sent = os.write(self._stdin.fileno(), self._unsent[:_PORTION])
        except BrokenPipeError:  # that it has ended is seen where it is read from
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._selector.unregister(self._stdin)

    def _exit_description(self) -> str:
        """Return how the process ended."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_KILL_TIMEOUT)
        with contextlib.suppress(BlockingIOError):  # its last words may have come after the end of what it wrote
            while heard := os.read(self._stderr.fileno(), _PORTION):
                self._last_words = (self._last_words + heard)[-_LAST_WORDS:]
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with code {code}"
        words = self._last_words.decode(errors="replace").strip().splitlines()
        return f"its process {how}" + (f": {words[-1]}" if words else "")

    def close(self) -> None:
        """End the process, and all that it has started, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        try:
            self._process.wait(_KILL_TIMEOUT)
        except subprocess.TimeoutExpired:  # the system takes its time over gigabytes
            threading.Thread(target=self._process.wait, daemon=True).start()


@contextlib.contextmanager
def failures_told(board: Board, *, by: str) -> Iterator[None]:
    """Report errors of a worker on the board, with the name of its solver, which has died of them."""
    try:
        yield
    except EngineError as error:
        board.fail(str(error), by=by)


def seconds_for(board: Board, share: float) -> float:
    """Return the seconds that a worker gets: a share of the budget, if so much is left."""
    return min(share * board.budget.seconds, board.budget.remaining - _MARGIN)


def converse(worker: Worker, request: Request, board: Board, hear: Callable[[Reply], bool]) -> None:
    """Ask a worker for something, and hear its replies until `hear` says that it was the last, or the board is over.

    Raises `EngineError` if the worker fails, or does not end in time.
    """
    worker.send(request)
    limit = board.budget.elapsed + request.seconds + _PATIENCE
    while not board.is_over:
        for reply in worker.receive(min(_LOOK, board.budget.remaining)):
            if isinstance(reply, Failed):
                raise EngineError(reply.what)
            if hear(reply):
                return
        if board.budget.elapsed > limit:
            raise EngineError(f"its process did not end within {request.seconds:.1f} s, as it was asked to")


def _environment() -> dict[str, str]:
    """Return the environment in which this very package is found."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def available_memory() -> int:
    """Return the bytes of memory that new processes can use, or all there is where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
