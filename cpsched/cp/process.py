"""A worker in a process of its own, which can be ended at any moment.

CP-SAT does not keep a limit in seconds on large models (or-tools #4882, #5163), and can use all the memory there is:
nothing less than a process can be ended in time. It is started by `subprocess`: multiprocessing would run the caller's
script a second time, unless that is guarded.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from types import TracebackType

from cpsched.cp.messages import Failed, Reply, Request
from cpsched.engine import Board
from cpsched.errors import EngineError

#: The command that starts a worker; -P: no file in the current directory may replace one of our modules.
COMMAND = (sys.executable, "-P", "-m", "cpsched.cp.worker")
#: How many bytes of what a worker says besides are looked at.
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

    `memory`: bytes of memory that it may use. `command`: how it is started; its last arguments are the memory and the
    number of the file on which it hears requests and sends replies. Raises `EngineError` if it cannot be started.
    """

    def __init__(self, memory: int, command: Sequence[str] = COMMAND) -> None:
        self._pipe, theirs = Pipe()
        self._words = os.memfd_create("words")
        self._sending: threading.Thread | None = None
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                    [*command, str(memory), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=self._words,
                    stderr=self._words,
                    env=_environment(),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                self._pipe.close()
                os.close(self._words)
                raise EngineError(f"its process cannot be started: {error}") from error

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, request: Request) -> None:
        """Ask for something; it leaves while replies are received."""
        self._sending = threading.Thread(target=self._send_after, args=(self._sending, request), daemon=True)
        self._sending.start()

    def _send_after(self, before: threading.Thread | None, request: Request) -> None:
        if before is not None:
            before.join()
        with contextlib.suppress(OSError):  # that it has ended is seen where it is read from
            self._pipe.send(request)

    def receive(self, seconds: float) -> Reply | None:
        """Return the next reply as soon as there is one, or None after the given seconds.

        Raises `EngineError` if the process has ended, or what it says cannot be understood.
        """
        try:
            if not self._pipe.poll(max(0.0, seconds)):
                return None
            message = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise EngineError(self._exit_description()) from error
        except Exception as error:  # a pickle that is none can raise anything
            raise EngineError(f"its process says something that is no message: {error!r}") from error
        if not isinstance(message, Reply):
            raise EngineError(f"its process says something that is no reply: {type(message).__name__}")
        return message

    def _exit_description(self) -> str:
        """Return how the process ended."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_KILL_TIMEOUT)
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with code {code}"
        size = os.fstat(self._words).st_size
        last = os.pread(self._words, _LAST_WORDS, max(0, size - _LAST_WORDS))
        words = last.decode(errors="replace").strip().splitlines()
        return f"its process {how}" + (f": {words[-1]}" if words else "")

    def close(self) -> None:
        """End the process, and all that it has started, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        try:
            self._process.wait(_KILL_TIMEOUT)
        except subprocess.TimeoutExpired:  # the system takes its time over gigabytes
            threading.Thread(target=self._process.wait, daemon=True).start()
        if self._sending is not None:
            self._sending.join(_KILL_TIMEOUT)
        self._pipe.close()
        os.close(self._words)


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
        reply = worker.receive(min(_LOOK, board.budget.remaining))
        if isinstance(reply, Failed):
            raise EngineError(reply.what)
        if reply is not None and hear(reply):
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
