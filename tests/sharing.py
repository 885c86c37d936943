"""How the workers of pytest-xdist share the work: each begins with other kernels, and no kernel is compiled twice."""

from __future__ import annotations

import fcntl
import importlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

__all__ = ["Progress", "compile_each_kernel_once", "dealt", "import_share", "waited_for"]

#: The files that compile most kernels, in groups that need different ones: each worker begins with a group of its own.
COMPILING = (
    ("tests/sim/",),
    ("tests/rusv/test_compression.py", "tests/booking/test_changing.py", "tests/search/"),
    ("tests/policies/", "tests/forecast/"),
)

#: A report is due when no test has ended for so many seconds.
_QUIET = 30.0


def dealt(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Sort tests so that the long ones begin early when each worker gets one part of the list, the parts equally long.

    Each part begins with files that compile kernels, then come files with tests marked ``slow``, then all others. The
    tests of a file stay together, as they may share what is expensive to prepare. Those against a real Slurm, which
    wait most of the time, begin the last part, or the last two if there are at least four: a cluster is started for
    each, and the other workers have the cores.
    """
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    slow: list[list[pytest.Item]] = []
    waiting: list[list[pytest.Item]] = []
    others: list[pytest.Item] = []
    for name, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        tests = list(group)
        compiled = [k for k, prefixes in enumerate(COMPILING) if name.startswith(prefixes)]
        if any(test.get_closest_marker("slurm") for test in tests):
            waiting.append(tests)
        elif compiled:
            parts[compiled[0] % workers] += tests
        elif any(test.get_closest_marker("slow") for test in tests):
            slow.append(tests)
        else:
            others += tests
    clusters = 0 if not waiting else 1 if workers < 4 else 2
    for k, tests in enumerate(slow):
        parts[k % max(1, workers - clusters)] += tests
    for k, tests in reversed(list(enumerate(waiting))):
        parts[-1 - k % clusters][:0] = tests
    order: list[pytest.Item] = []
    for k, part in enumerate(parts):
        size = (len(items) - len(order)) // (workers - k)  # as `--dist worksteal` cuts the list
        fill = max(size - len(part), 0) if k + 1 < workers else len(others)
        order += part + others[:fill]
        del others[:fill]
    return order


def import_share(root: Path, arguments: Sequence[str], number: int, workers: int) -> None:
    """Import one worker's part of the files with tests that pytest is called with, itself or by a folder, so that the
    others find them rewritten and compiled.

    What goes wrong is left to pytest, which imports them again when it collects the tests.
    """
    named = [root / argument.partition("::")[0] for argument in arguments]
    paths = {path for one in named for path in (one.rglob("test_*.py") if one.is_dir() else (one,))}
    for path in sorted(paths)[number::workers]:
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


def compile_each_kernel_once(folder: Path) -> None:
    """Let the workers wait for each other's compilers: a kernel that one of them compiles is loaded by all others.

    A kernel is locked while it and all that it calls are compiled. Kernels do not call each other in a circle, so no
    two workers wait for each other.
    """
    from numba.core import sigutils
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    dispatcher: Any = Dispatcher
    compile_at_once = dispatcher.compile

    def compile_alone(self: Any, sig: Any) -> Any:
        arguments, _ = sigutils.normalize_signature(sig)
        if tuple(arguments) in self.overloads:
            return compile_at_once(self, sig)
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}".replace("/", "_")
        with global_compiler_lock, _locked(folder / name):
            return compile_at_once(self, sig)

    dispatcher.compile = compile_alone


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; the system takes it back if the process ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Progress:
    """A plugin that says which tests are being waited for when none has ended for a while."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._begun: dict[str, float] = {}
        self._last = time.monotonic()
        self._is_over = Event()
        Thread(target=self._watch, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a worker begins a test."""
        self._begun[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has ended."""
        self._begun.pop(nodeid, None)
        self._last = time.monotonic()

    def pytest_unconfigure(self) -> None:
        """Say nothing more."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(1.0):
            now = time.monotonic()
            if now - self._last >= _QUIET:
                self._last = now
                reporter = self._config.pluginmanager.get_plugin("terminalreporter")
                if reporter is not None:
                    reporter.write_line(f"\n{waited_for(self._begun.copy(), now)}")


def waited_for(begun: dict[str, float], now: float) -> str:
    """Describe the tests that run, the longest one first."""
    if not begun:
        return "... waiting for the workers to collect the tests"
    running = sorted(begun.items(), key=lambda entry: (entry[1], entry[0]))
    tests = ", ".join(f"{nodeid} ({now - since:.0f} s)" for nodeid, since in running)
    return f"... waiting for {tests}; where kernels are compiled, that takes minutes the first time"
