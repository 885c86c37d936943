"""The border and the improver: what is missing is said, statuses are known, and nothing outlives its time."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import (
    Amounts,
    FrozenMap,
    Instance,
    Malleability,
    NodeClass,
    Objective,
    ObjectiveTerm,
    Reservation,
    ReservationKind,
    Step,
)
from cpsched.engine import Improver
from cpsched.errors import EngineError
from cpsched.mzn import MiniZinc, model_path, solver
from cpsched.mzn.solver import Verdict, _Loop, verdict_of
from tests.mzn.modelled import needs_minizinc, postponed
from tests.search.searched import board_of, planned
from tests.workloads.tiny import tiny_cases

ORDER = next(case.instance for case in tiny_cases() if case.instance.name == "tiny-order")


@pytest.fixture
def fake_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the script that the solver ``fake`` is: MiniZinc runs it with the flattened model."""
    script = tmp_path / "fake"
    config = {
        "id": "cpsched.test.fake",
        "name": "Fake",
        "version": "1",
        "executable": str(script),
        "supportsFzn": True,
        "needsSolns2Out": True,
        "stdFlags": ["-a"],
    }
    (tmp_path / "fake.msc").write_text(json.dumps(config))
    monkeypatch.setenv("MZN_SOLVER_PATH", str(tmp_path))
    return script


def write_script(script: Path, *lines: str) -> None:
    """Make the solver do what these lines of shell say."""
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)


@needs_minizinc
def test_it_is_an_improver() -> None:
    """It has the shape that lanes expect, is ready after `prepare`, and improves a plan with any seed."""
    improver: Improver = MiniZinc()
    improver.prepare()
    board = board_of(ORDER, postponed(ORDER, 1000))
    improver.improve(ORDER, board, seed=7)
    assert board.is_optimal
    assert len(board.incumbents) > 2


@needs_minizinc
def test_every_status_is_known() -> None:
    """Each status of the package has a meaning here, or is an error that no bounded minimisation can meet."""
    import minizinc

    verdicts: dict[str, Verdict | str] = {}
    for status in minizinc.Status:
        try:
            verdicts[status.name] = verdict_of(status.name)
        except EngineError as error:
            verdicts[status.name] = str(error)
    refused = {name for name, verdict in verdicts.items() if not isinstance(verdict, Verdict)}
    assert refused == {"ERROR", "UNBOUNDED"}
    assert {verdicts[name] for name in verdicts.keys() - refused} == set(Verdict)
    with pytest.raises(EngineError, match=r"expected a status out of .* got TIRED"):
        verdict_of("TIRED")


def test_without_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no program minizinc, the error says how to get it."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match=r"no program minizinc is on the PATH.*apt-get install minizinc"):
        MiniZinc().prepare()


@needs_minizinc
def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Python package is missing, the error says how to get it."""
    monkeypatch.setitem(sys.modules, "minizinc", None)
    solver._package.cache_clear()
    with pytest.raises(EngineError, match=r"pip install '\.\[minizinc\]'"):
        MiniZinc().prepare()


@needs_minizinc
def test_an_unknown_solver() -> None:
    """A solver that MiniZinc does not know is refused, and the error names some that it knows."""
    with pytest.raises(EngineError, match=r"Expected a solver that MiniZinc knows .*Gecode.* got 'guesswork'"):
        MiniZinc("guesswork").prepare()


@needs_minizinc
def test_a_solver_that_fails(fake_solver: Path) -> None:
    """What a solver says when it fails becomes our error."""
    write_script(fake_solver, "echo 'out of ideas' >&2", "exit 3")
    with pytest.raises(EngineError, match=r"MiniZinc \(fake\): "):
        MiniZinc("fake").improve(ORDER, board_of(ORDER, planned(ORDER)), seed=0)


@needs_minizinc
def test_a_solver_that_denies_a_known_plan(fake_solver: Path) -> None:
    """That there is no plan as good as the known one is no answer but an error; nothing is proven."""
    write_script(fake_solver, "echo =====UNSATISFIABLE=====")
    board = board_of(ORDER, planned(ORDER))
    with pytest.raises(EngineError, match="expected a plan as good as the best known one"):
        MiniZinc("fake").improve(ORDER, board, seed=0)
    assert board.proof is None


@needs_minizinc
def test_a_solver_that_finds_nothing(fake_solver: Path) -> None:
    """A solver that gives up leaves the board as it was."""
    write_script(fake_solver, "echo =====UNKNOWN=====")
    board = board_of(ORDER, planned(ORDER))
    MiniZinc("fake").improve(ORDER, board, seed=0)
    assert board.proof is None
    assert len(board.incumbents) == 1


@needs_minizinc
def test_a_solver_that_does_not_end(fake_solver: Path, tmp_path: Path) -> None:
    """When the board is closed the improver returns, and nothing is left of a solver that ignores signals."""
    write_script(
        fake_solver,
        "trap '' TERM INT HUP",
        f"echo $$ > {tmp_path}/new",
        f"mv {tmp_path}/new {tmp_path}/pid",
        "while true; do sleep 1; done",
    )
    board = board_of(ORDER, planned(ORDER), seconds=1000)
    improver = MiniZinc("fake")
    thread = threading.Thread(target=improver.improve, args=(ORDER, board), kwargs={"seed": 0}, daemon=True)
    thread.start()
    while not (tmp_path / "pid").exists() and thread.is_alive():
        time.sleep(0.01)
    process = Path("/proc") / (tmp_path / "pid").read_text().strip()
    assert process.exists()
    board.close()
    thread.join(timeout=60)
    assert not thread.is_alive()
    deadline = time.monotonic() + 60  # it is killed, which takes a moment on a busy machine
    while _is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(process)


def test_a_program_for_which_nobody_waits_any_more_is_ended() -> None:
    """Cancelled before it has begun, it leaves neither a process nor an open pipe, and its session is known."""
    loop = _Loop()

    async def begin_and_cancel() -> bool:
        task = asyncio.create_task(asyncio.create_subprocess_exec("sleep", "100", stdout=asyncio.subprocess.PIPE))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(begin_and_cancel())
    (session,) = loop._sessions
    assert not _is_alive(Path("/proc") / str(session))


@needs_minizinc
def test_without_time_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a board that is over already, nothing is asked of MiniZinc."""
    monkeypatch.setenv("PATH", "")
    board = board_of(ORDER, planned(ORDER), seconds=0)
    MiniZinc().improve(ORDER, board, seed=0)
    assert len(board.incumbents) == 1


def changed(instance: Instance, **changes: Any) -> Instance:
    """Return an instance whose first job is another."""
    return replace(instance, jobs=(replace(instance.jobs[0], **changes), *instance.jobs[1:]))


def test_what_the_models_do_not_know_is_named() -> None:
    """What is asked for and not in the models is refused with its place; the tiny windows are not."""
    first = ORDER.jobs[0]
    (step,) = first.steps
    half = Malleability(shares=(0.5,))
    slowdown = Objective(weights=FrozenMap({ObjectiveTerm.SLOWDOWN: 1.0}))
    downtime = Reservation(id="d", start=0, end=5, request=step.request, kind=ReservationKind.DOWNTIME)
    large = NodeClass(names=("big",), resources=Amounts({"mem": 1 << 31}))
    refused = {
        "reservations: reservations and downtimes, which engines know only as `cpsched.problem.compiled` has them": (
            replace(ORDER, reservations=(downtime,))
        ),
        "job a: can run on fewer cores": changed(ORDER, malleability=half),
        "job a: slowdown of a job whose steps can be held": replace(
            changed(ORDER, steps=(step, step), expand_limit=None), objective=slowdown
        ),
        "jobs: 100002 pairs of a kind of chunks and a node; the model takes 100000": changed(
            ORDER, array=tuple(range(100_000))
        ),
        "cluster: 2147483648 of one resource; the model takes 1073741824": replace(
            ORDER, cluster=replace(ORDER.cluster, classes=(*ORDER.cluster.classes, large))
        ),
        "jobs: together they may take 10000000025 s; the model takes 1073741824 s": changed(
            ORDER, steps=(Step(walltime=10**10, request=step.request),)
        ),
    }
    for feature, instance in refused.items():
        assert MiniZinc().unsupported(instance) == (feature,)
    for case in tiny_cases():
        assert MiniZinc().unsupported(case.instance) == ()


def test_models_are_found() -> None:
    """The models lie where they are looked for; another name is an error."""
    for name in ("window", "window_data", "one_node_per_unit", "evolving"):
        assert model_path(name).suffix == ".mzn"
    with pytest.raises(EngineError, match=r"Expected a model nothing\.mzn"):
        model_path("nothing")


def _is_alive(process: Path) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        return " Z " not in (process / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
