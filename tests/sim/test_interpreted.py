"""Simulations of few jobs by rules: Python interprets the kernels, without a compiler, and the same jobs start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cpsched.formats import write_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Interrupted, Moment, QueueRule, interprets_simulations, kernels, simulate
from cpsched.lab.workloads import Failures, eurora_stream, with_failures
from cpsched.planner import own_interpretation
from tests.sim.test_textbook import crowd_of_equals

ROOT = Path(__file__).parents[2]
RULES: list[tuple[str, dict[str, object]]] = [
    ("easy", {}),
    ("sjf", {"backfill": "easy"}),
    ("wfp3", {}),
    ("pbs_fifo_starve", {}),
    ("smith", {"due_after": "none"}),
]


def rule_of(name: str, parameters: dict[str, object]) -> QueueRule:
    """Return a queue rule."""
    rule = make_scheduler(name, parameters)
    assert isinstance(rule, QueueRule)
    return rule


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process have compiled nothing."""
    monkeypatch.setattr("cpsched.rusv.jit._Kernel.has_compiled", False)
    with own_interpretation():
        yield


@pytest.mark.parametrize("compiles_midway", [False, True])
@pytest.mark.parametrize(("name", "parameters"), RULES, ids=[name for name, _ in RULES])
@pytest.mark.usefixtures("uncompiled")
def test_the_same_jobs_start(
    name: str, parameters: dict[str, object], compiles_midway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interpreted to the end or only for five passes, a simulation is the one of compiled kernels."""
    failures = Failures(mtbf=90_000, mttr=2000, group=8)
    for workload in (crowd_of_equals(3, "parts"), with_failures(eurora_stream(40, 2), 1, failures)):
        rule = rule_of(name, parameters)
        compiled = simulate(workload, rule)
        with own_interpretation():
            monkeypatch.setattr("cpsched.lab.sim.simulation._LOADING", -1 if compiles_midway else 9999)
            monkeypatch.setattr("cpsched.lab.sim.simulation._COMPILING", -1)
            monkeypatch.setattr("cpsched.rusv.jit._Kernel.has_compiled", False)
            assert interprets_simulations(workload, [rule])
            found = simulate(workload, rule)
        for column in ("start", "end", "ending", "attempts", "first_start", "lost"):
            assert np.array_equal(getattr(found.runs, column), getattr(compiled.runs, column))
        assert bool(len(found.decision_seconds)) is compiles_midway
        assert len(compiled.decision_seconds)


@pytest.mark.usefixtures("uncompiled")
def test_what_is_not_interpreted() -> None:
    """Many jobs, many policies, schedulers that are no rules, and rules whose keys have logarithms."""
    few, easy = eurora_stream(100, 1), rule_of("easy", {})
    assert interprets_simulations(few, [easy])
    assert not interprets_simulations(eurora_stream(1600, 1), [easy])
    assert not interprets_simulations(few, [easy] * 16)
    for name in ("conservative", "slurm", "f1", "unicef", "smith", "portfolio"):
        assert not interprets_simulations(few, [easy, make_scheduler(name, {})])


@pytest.mark.usefixtures("uncompiled")
def test_an_interrupt_between_passes_has_a_history() -> None:
    """One in the middle of a pass has none, since jobs may be started by half."""
    workload, rule = crowd_of_equals(3, "cores"), rule_of("easy", {})
    assert interprets_simulations(workload, [rule])

    def interrupt(moment: Moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        simulate(workload, rule, progress=interrupt)
    assert 0 < len(caught.value.history.runs) < len(workload.jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            kernels.advance._interpreted.__globals__,  # type: ignore[attr-defined]  # of a kernel
            "next_event",
            lambda s: interrupt(Moment(now=0, done=0, jobs=0, queued=0)),
        )
        with pytest.raises(KeyboardInterrupt) as raised:
            simulate(workload, rule)
    assert type(raised.value) is KeyboardInterrupt


def test_a_small_log_needs_no_compiler(tmp_path: Path) -> None:
    """The command loads and compiles nothing."""
    write_instance(eurora_stream(20, 1), tmp_path / "few.json")
    code = "import sys; from cpsched.cli import main\ntry: main()\nfinally: print('numba' in sys.modules)"
    done = subprocess.run(  # noqa: S603  # the interpreter that runs the tests
        [sys.executable, "-c", code, "simulate", str(tmp_path / "few.json"), "--quiet"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False"]
    assert not (tmp_path / "cache").exists()
