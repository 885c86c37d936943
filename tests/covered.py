"""Branch coverage of some rooms by their own tests, measured while all tests run (``pytest --coverage``).

Python 3.11 traces at half of its speed. So only tests of these rooms that are not marked ``slow`` are traced, and all
others cost nothing. Modules are imported first, so that it does not matter which test is the first to need one. The
figure is that of a whole run: where folders are named, their ``conftest.py`` imports modules before anything is traced.
``python -m tests.covered`` prints it, and fails where it is below the floor.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from coverage import Coverage

__all__ = ["Covered", "modules_of", "rooms"]

ROOT = Path(__file__).parents[1]
#: Rooms in plain Python: what they call is not compiled. The tests of the first ones are cheap to trace, and CI does.
FEW = ("answers", "domain", "formats", "report", "verify")
ALL = (*FEW, "portfolio", "problem", "site/daemon")
#: The least part of lines and branches (%) that their tests reach. It is a per cent less than what was measured: time
#: decides a little of it.
FLOORS = {FEW: 93.5, ALL: 91.5}


def rooms(*, large: bool) -> tuple[str, ...]:
    """Return the rooms that are traced, by their folders below ``cpsched``."""
    return ALL if large else FEW


def _coverage(folders: Iterable[str], worker: str | None = None) -> Coverage:
    """Return what measures some rooms; what `worker` sees is written beside that of others."""
    source = [str(ROOT / "cpsched" / folder) for folder in folders]
    return Coverage(
        config_file=str(ROOT / "pyproject.toml"), data_file=str(ROOT / ".coverage"), data_suffix=worker, source=source
    )


class Covered:
    """A plugin that traces some tests of this process, and writes what it saw beside that of other workers. Mutable.

    Parameters
    ----------
    worker
        The name of this process.
    large
        Whether more rooms are traced than in CI.
    """

    def __init__(self, worker: str, *, large: bool) -> None:
        folders = rooms(large=large)
        self._folders = tuple(ROOT / "tests" / folder.rpartition("/")[2] for folder in folders)
        self._coverage = _coverage(folders, worker)
        with self._traced():
            for name in modules_of(folders):
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


def modules_of(folders: Iterable[str]) -> list[str]:
    """List the modules of rooms; migrations are no modules, but run by a tool."""
    paths = (path for folder in folders for path in sorted((ROOT / "cpsched" / folder).rglob("*.py")))
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if "migrations" not in path.parts
    ]


def main() -> int:
    """Print what the workers saw, all of it only if it is less than the floor; return the exit code."""
    folders = rooms(large="--large" in sys.argv)
    measured = _coverage(folders)
    measured.combine()
    total = measured.report(file=StringIO())
    floor = FLOORS[folders]
    print(
        f"Tests of {', '.join(folders)} reach {total:.1f} % of lines and branches there, of which {floor} % is asked."
    )
    if total >= floor:
        return 0
    measured.report(skip_covered=True, sort="cover")
    return 1


if __name__ == "__main__":
    sys.exit(main())
