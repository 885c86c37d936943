"""What CI runs is all that there is to check."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.covered import modules_of, rooms
from tests.sharing import COMPILING, dealt, waited_for


def test_every_script_in_python_is_linted(repository: Path) -> None:
    """The linter goes by suffix; the scripts that have none are named in ``pyproject.toml``."""
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    shown = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout  # noqa: S603
    linted = {Path(line) for line in shown.splitlines()}
    scripts = [path for path in (repository / "scripts").iterdir() if path.is_file()]
    in_python = {path for path in scripts if "python" in path.read_text(encoding="utf-8").partition("\n")[0]}
    assert in_python
    assert in_python <= linted


@dataclass(frozen=True)
class Item:
    """What `dealt` looks at of a test."""

    nodeid: str
    is_slow: bool = False
    needs_slurm: bool = False

    def get_closest_marker(self, name: str) -> bool:
        """Tell whether the test has a marker."""
        return self.is_slow if name == "slow" else self.needs_slurm and name == "slurm"


def names_of(items: list[Item], workers: int) -> list[str]:
    """Deal tests, and list their names."""
    return [item.nodeid for item in dealt(cast("list[pytest.Item]", items), workers)]


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_every_test_is_dealt_once(workers: int) -> None:
    """Whatever the number of workers, no test is lost, and none runs twice."""
    items = [Item(f"tests/{room}/test_{k}.py::test_{n}", k == n) for room in "abc" for k in range(3) for n in range(4)]
    items += [Item(f"{prefixes[0]}test_x.py::test_{n}") for prefixes in COMPILING for n in range(3)]
    items += [Item(f"tests/slurm/test_{k}.py::test_{n}", True, n == 1) for k in range(2) for n in range(3)]
    for some in (items, items[:2], items[-2:], []):
        assert sorted(names_of(some, workers)) == sorted(item.nodeid for item in some)


def test_long_tests_begin_early() -> None:
    """Each half begins with kernels of its own to compile, then come whole files with slow tests, then all others."""
    compiling = ["tests/rusv/test_compression.py::test_a", "tests/sim/test_b.py::test_b"]
    slow = [Item("tests/x.py::test_1"), Item("tests/x.py::test_2", True), Item("tests/y.py::test_1", True)]
    quick = [f"tests/z.py::test_{n}" for n in range(5)]
    items = [*map(Item, quick), *map(Item, compiling), *slow]
    order = names_of(items, 2)
    assert order[:5] == [compiling[1], "tests/x.py::test_1", "tests/x.py::test_2", *quick[:2]]
    assert order[5:] == [compiling[0], "tests/y.py::test_1", *quick[2:]]


def test_those_who_wait_for_a_real_slurm_are_of_one_or_two_workers() -> None:
    """They begin the last part, or the last two of four, in whole files; slow ones for cores go to the others."""
    waiting = [Item(f"tests/w{n}.py::test_{k}", True, k == 1) for n in range(2) for k in range(2)]
    slow = [Item(f"tests/x{n}.py::test_1", True) for n in range(4)]
    quick = [Item(f"tests/z.py::test_{n}") for n in range(4)]
    order = names_of([*slow, *waiting, *quick], 3)
    assert order[8:] == [item.nodeid for item in waiting]
    assert [name for name in order[:8] if "x" in name] == [slow[k].nodeid for k in (0, 2, 1, 3)]
    order = names_of([*slow, *waiting, *quick], 4)
    assert [order[6:8], order[9:11]] == [[item.nodeid for item in some] for some in (waiting[2:], waiting[:2])]
    assert [name for name in order[:6] if "x" in name] == [slow[k].nodeid for k in (0, 2, 1, 3)]


def test_the_groups_that_begin_are_there(repository: Path) -> None:
    """The files that compile most kernels exist under the names by which they are dealt."""
    for prefix in (prefix for prefixes in COMPILING for prefix in prefixes):
        assert (repository / prefix).exists(), prefix


def test_what_is_waited_for_is_said() -> None:
    """The report names the tests that run, the longest one first, with their seconds."""
    assert "collect" in waited_for({}, 5.0)
    said = waited_for({"tests/a.py::test_new": 30.0, "tests/b.py::test_old": 10.0}, 50.0)
    assert "tests/b.py::test_old (40 s), tests/a.py::test_new (20 s)" in said


#: Compiles a kernel and prints how often that took place; the argument is the folder of the locks.
COMPILES = """
import sys
from pathlib import Path
from numba.core import event
from tests.sharing import compile_each_kernel_once
compile_each_kernel_once(Path(sys.argv[1]))
compiled = []
class Listener(event.Listener):
    def on_start(self, found): compiled.append(found.data["dispatcher"].py_func.__name__)
    def on_end(self, found): pass
event.register("numba:compile", Listener())
import numpy as np
from cpsched.rusv import kernels
kernels.lower_by_two(np.zeros(3, np.int32), np.ones(3, np.int32), np.ones(3, np.int32))
print(compiled.count("lower_by_two"))
"""


@pytest.mark.slow
def test_workers_compile_a_kernel_once(repository: Path, tmp_path: Path) -> None:
    """Of two processes that need a kernel at the same time one compiles it, and the other one loads it."""
    (tmp_path / "locks").mkdir()
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(repository), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILES, str(tmp_path / "locks")]
    processes = [
        subprocess.Popen(command, cwd=repository, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    assert sorted(int(process.communicate(timeout=300)[0]) for process in processes) == [0, 1]


def test_coverage_is_measured_of_the_rooms_that_have_a_floor(repository: Path) -> None:
    """Each room has a folder of tests, and each module of it is imported before they are traced; there are branches."""
    settings = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["coverage"]
    assert settings["run"]["branch"]
    few, all_rooms = rooms(large=False), rooms(large=True)
    assert set(few) < set(all_rooms)
    assert all((repository / "tests" / room.rpartition("/")[2]).is_dir() for room in all_rooms)
    assert {"cpsched.verify", "cpsched.domain.job"} <= {*modules_of(few)}
    assert "cpsched.site.daemon.store.tables" in modules_of(all_rooms)
