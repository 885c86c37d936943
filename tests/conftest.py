"""What all tests share: where things are, and how large the properties are."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

#: No deadline per example: the first one of a kernel's test compiles it.
settings.register_profile("large", deadline=None)
settings.register_profile("small", deadline=None, max_examples=20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--large``."""
    parser.addoption("--large", action="store_true", help="run properties at full size, and tests marked `large`")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the tests, and the workers that run them, how large they are."""
    is_large = config.getoption("--large")
    os.environ["CPSCHED_LARGE_TESTS"] = "1" if is_large else "0"
    settings.load_profile("large" if is_large else "small")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells leave it to what they run in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `large` unless it is asked for."""
    if not config.getoption("--large"):
        large = [item for item in items if item.get_closest_marker("large")]
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if not item.get_closest_marker("large")]


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
