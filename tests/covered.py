"""Branch coverage of some rooms by their own tests, measured while all tests run (``pytest --coverage``).

Python 3.11 traces at half of its speed. So only tests of these rooms that are not marked ``slow`` are traced, and all
others cost nothing. Modules are imported first, so that it does not matter which test is the first to need one. The
figure is that of a whole run: where folders are named, their ``conftest.py`` imports modules before anything is traced.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from coverage import Coverage

__all__ = ["ROOMS", "Covered", "modules_of"]

#: Rooms and their folders, Python all through: what they call is not compiled. The same as in pyproject.toml,
#: ``tool.coverage.run``.
ROOMS = {
    room: f"cpsched/{room}" for room in ("answers", "domain", "formats", "portfolio", "problem", "report", "verify")
} | {"daemon": "cpsched/site/daemon"}


class Covered:
    """A plugin that traces some tests of this process, and writes what it saw beside that of other workers. Mutable.

    Parameters
    ----------
    root
        The checkout.
    worker
        The name of this process.
    """

    def __init__(self, root: Path, worker: str) -> None:
        self._folders = tuple(root / "tests" / room for room in ROOMS)
        self._coverage = Coverage(
            config_file=str(root / "pyproject.toml"), data_file=str(root / ".coverage"), data_suffix=worker
        )
        with self._traced():
            for name in modules_of(root):
                import_module(name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace a test of one of the rooms that is not slow."""
        if item.get_closest_marker("slow") or not any(item.path.is_relative_to(folder) for folder in self._folders):
            return (yield)
        with self._traced():
            return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write what was seen."""
        self._coverage.save()

    @contextmanager
    def _traced(self) -> Generator[None]:
        self._coverage.start()
        try:
            yield
        finally:
            self._coverage.stop()


def modules_of(root: Path) -> list[str]:
    """List the modules of the rooms; migrations are no modules, but run by a tool."""
    paths = (path for folder in ROOMS.values() for path in sorted((root / folder).rglob("*.py")))
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if "migrations" not in path.parts
    ]
