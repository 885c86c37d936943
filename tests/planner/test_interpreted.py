"""Small windows are planned before any kernel is compiled: Python interprets the kernels, and plans the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import Instance
from cpsched.formats import plan_to_document
from cpsched.planner import interprets, own_interpretation
from cpsched.portfolio import solve
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_instances import instances
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples

plain: Any = resolve_name("cpsched.rusv.jit._plain")
ROOT = Path(__file__).parents[2]
#: Solves a window, and prints which compiler it has loaded.
_SOLVE = """
import sys
from cpsched.formats import read_instance
from cpsched.portfolio import solve
print(solve(read_instance(sys.argv[1]), engine=sys.argv[2]).engine.stopped, "numba" in sys.modules)
"""


@pytest.mark.parametrize(("engine", "stopped"), [("portfolio", "optimal"), ("planner", "done")])
def test_few_jobs_need_no_compiler(engine: str, stopped: str, tmp_path: Path) -> None:
    """The first plan of three jobs loads and compiles nothing, and neither does the proof that it is optimal."""
    done = subprocess.run(  # noqa: S603  # the interpreter that runs the tests
        [sys.executable, "-c", _SOLVE, str(ROOT / "instances" / "tiny-order.json"), engine],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [stopped, "False"]
    assert not list(tmp_path.iterdir())


def test_large_windows_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many jobs, many elements of one, or few jobs on many nodes are not interpreted."""
    monkeypatch.setattr("cpsched.rusv.jit._Kernel.has_compiled", False)
    few = window([nodes("a b c", cores=4)], *(waiting(str(n), 5, chunk(cores=1)) for n in range(3)))
    (first, *_), cluster = few.jobs, few.cluster
    many = replace(cluster.classes[0], names=tuple(map(str, range(5000))))
    with own_interpretation():
        for large in (
            replace(few, jobs=tuple(replace(first, id=str(n)) for n in range(100))),
            replace(few, jobs=(replace(first, array=tuple(range(1000))),)),
            replace(few, cluster=replace(cluster, classes=(many,))),
        ):
            assert interprets(few)
            assert not interprets(large)


def assert_same(instance: Instance) -> None:
    """Plan a window with compiled kernels, then with interpreted ones: the documents differ in their times alone."""

    def planned() -> dict[str, Any]:
        document: dict[str, Any] = json.loads(json.dumps(plan_to_document(solve(instance, engine="planner"))))
        del document["engine"]["elapsed"], document["incumbents"]
        return document

    interpreted: list[object] = []

    def seen(result: object) -> Any:
        interpreted.append(result)
        return plain(result)

    compiled = planned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpsched.rusv.jit._Kernel.has_compiled", False)
        patch.setattr("cpsched.rusv.jit._plain", seen)
        assert planned() == compiled
    assert interpreted


@pytest.mark.slow
@given(instance=instances())
@examples(400)
def test_rigid_jobs_get_the_same_plan(instance: Instance) -> None:
    """Starts, nodes, value and waiting room of windows with all kinds of rules."""
    assert_same(instance)


@pytest.mark.slow
@given(instance=evolving_instances())
@examples(200)
def test_evolving_jobs_get_the_same_plan(instance: Instance) -> None:
    """The same of jobs with several steps."""
    assert_same(instance)


@pytest.mark.slow
@given(instance=malleable_windows())
@examples(200)
def test_malleable_jobs_get_the_same_plan(instance: Instance) -> None:
    """The same of jobs whose modes the planner chooses."""
    assert_same(instance)
