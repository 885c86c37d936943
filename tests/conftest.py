"""What all tests share: where things are, how large the properties are, and which tests are left out."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine

from tests.sharing import Progress, compile_each_kernel_once, dealt, import_share

#: Seconds for making a case that fails smaller; hypothesis takes up to five minutes, and has no setting for it.
engine.MAX_SHRINKING_SECONDS = 20

_left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all``, ``--large`` and ``--coverage``."""
    parser.addoption("--all", action="store_true", help="run tests marked `slow` too, as CI does")
    parser.addoption("--large", action="store_true", help="run properties at full size, and all tests")
    parser.addoption("--coverage", action="store_true", help="measure what the tests of some rooms cover")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the tests, and the workers that run them, how large they are, and who compiles."""
    is_large = config.getoption("--large")
    _choose_properties(config, is_large=is_large)
    os.environ["CPSCHED_LARGE_TESTS"] = "1" if is_large else "0"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells leave it to what they run in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_left_out] = 0
    if config.getoption("--coverage") and (is_worker() or not config.getoption("numprocesses", default=None)):
        from tests.covered import Covered

        config.pluginmanager.register(Covered(os.environ.get("PYTEST_XDIST_WORKER", "main"), large=is_large))
    if is_worker():
        if os.environ.get("NUMBA_DISABLE_JIT") != "1":
            compile_each_kernel_once(Path(os.environ["CPSCHED_TEST_LOCKS"]))
        return
    # files and tests that are named are run, slow or not
    is_everything = config.args_source is not pytest.Config.ArgsSource.ARGS
    os.environ["CPSCHED_SLOW_TESTS"] = "0" if is_everything and not is_large and not config.getoption("--all") else "1"
    if config.getoption("numprocesses", default=None):
        os.environ["CPSCHED_TEST_LOCKS"] = tempfile.mkdtemp(prefix="cpsched-tests-")
        config.pluginmanager.register(Progress(config))


def _choose_properties(config: pytest.Config, *, is_large: bool) -> None:
    """Let properties draw the same cases in each run, or others if a seed is given, which says then what is drawn.

    How fast the machine is decides nothing: no example has a deadline, and slow drawing is no fault. Interpreted
    kernels, fifty times as slow, get the first of the cases that the compiled ones got.
    """
    is_interpreted = os.environ.get("NUMBA_DISABLE_JIT") == "1"
    settings.register_profile(
        "cpsched",
        max_examples=100 if is_large else 5 if is_interpreted else 12,
        deadline=None,
        derandomize=config.getoption("--hypothesis-seed") is None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("cpsched")


def pytest_unconfigure() -> None:
    """Remove the locks of the workers."""
    if "CPSCHED_TEST_LOCKS" in os.environ and not is_worker():
        shutil.rmtree(os.environ.pop("CPSCHED_TEST_LOCKS"), ignore_errors=True)


def is_worker() -> bool:
    """Tell whether this process runs tests for another one."""
    return "PYTEST_XDIST_WORKER" in os.environ


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with other files: pytest rewrites each file that it imports first, which takes a while."""
    if is_worker():
        config = session.config
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        import_share(config.rootpath, config.args, number, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))


def pytest_collection_finish() -> None:
    """Keep thousands of tests out of the garbage collector's way, which compiling kernels keeps busy."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `large` and `slow` unless they are asked for, and deal the others to the workers."""
    if not config.getoption("--large"):
        _leave_out(config, items, "large")
    if os.environ["CPSCHED_SLOW_TESTS"] == "0":
        config.stash[_left_out] = _leave_out(config, items, "slow")
    if shutil.which("minizinc") is None:
        _skip_minizinc(items)
    if is_worker():
        items[:] = dealt(items, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Put signals back to what they did before a test: commands that tests call in this process leave handlers."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    result = yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return result


def _leave_out(config: pytest.Config, items: list[pytest.Item], marker: str) -> int:
    marked = [item for item in items if item.get_closest_marker(marker)]
    config.hook.pytest_deselected(items=marked)
    items[:] = [item for item in items if not item.get_closest_marker(marker)]
    return len(marked)


def _skip_minizinc(items: list[pytest.Item]) -> None:
    """Skip those cases of tests over all engines that are of one which is not installed."""
    for item in items:
        if "minizinc" in (callspec.params.values() if (callspec := getattr(item, "callspec", None)) else ()):
            item.add_marker(pytest.mark.skip(reason="MiniZinc is not installed (apt-get install minizinc)"))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the number of tests that a worker has left out; all leave out the same ones."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell how many tests this worker has left out."""
    if is_worker():
        session.config.workeroutput["left_out"] = session.config.stash[_left_out]  # type: ignore[attr-defined]  # xdist's own


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests have been left out, and how they are run."""
    if config.stash[_left_out]:
        count = config.stash[_left_out]
        terminalreporter.write_line(
            f"{count} slow tests were left out; ./scripts/test --all runs them too, as CI does."
        )


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared_data(repository: Path) -> Path:
    """Return the folder of real workloads beside the checkout; skip where it is absent."""
    folder = repository.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real workloads are not here ({folder})")
    return folder
