"""Workers that go wrong: the improver comes back, the best plan stays, and an event says what happened."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cpsched.cp import Cp, LagrangianBound
from cpsched.cp.messages import Prove, Proven, Solve
from cpsched.cp.process import Worker
from cpsched.domain import Instance
from cpsched.engine import Board, Budget
from cpsched.errors import EngineError
from cpsched.metrics import objective_value
from tests.cp.fixed_plans import Stand, broken_rules, instance_of, planned_jobs

#: Seconds that no test needs.
LONG = 120.0
#: Seconds after which a board is over that waits for nothing.
SHORT = 0.5

WINDOW = instance_of(
    [{"names": "n[1-2]", "resources": {"cores": 4}}],
    [{"id": name, "request": "ncpus=3", "walltime": walltime} for name, walltime in (("a", 30), ("b", 20), ("c", 10))],
)
#: One after another on one node: far from the optimum.
POOR = planned_jobs(WINDOW, {"a": (0, [Stand("n1")]), "b": (30, [Stand("n1")]), "c": (50, [Stand("n1")])})

TELL = (
    "import sys; from multiprocessing.connection import Connection; from cpsched.cp.messages import *; "
    "from cpsched.cp.messages import Placed; pipe = Connection(int(sys.argv[2])); "
)


def telling(*messages: str) -> str:
    """Return a worker that sends some messages, and then waits for its end."""
    return TELL + "".join(f"pipe.send({message}); " for message in messages) + "pipe.recv(), pipe.recv()"


FAULTS = {
    "hangs": ("import time; time.sleep(1000)", SHORT, None),
    "hangs and hears": (TELL + "import time; pipe.recv(); time.sleep(1000)", SHORT, None),
    "crashes": ("import os; os.abort()", LONG, "was ended by SIGABRT"),
    "ends with a word": ("import sys; sys.exit('bad luck')", LONG, "ended with code 1: bad luck"),
    "ends without a word": ("pass", LONG, "ended with code 0"),
    "says UNKNOWN": (telling("Done(Verdict.UNKNOWN)"), LONG, "ended without a plan"),
    "says INFEASIBLE": (telling("Done(Verdict.INFEASIBLE)"), LONG, "says that there is no plan"),
    "sends a wrong plan": (
        telling("BetterPlan((Placed((0, 10), ((0, 0, 1),)),) * 3)", "Done(Verdict.OPTIMAL)"),
        LONG,
        "breaks rules",
    ),
    "sends a plan of other jobs": (
        telling("BetterPlan((Placed((0, 10), ((7, 7, 1),)),) * 9)"),
        LONG,
        "no plan of this window",
    ),
    "prints what is no message": (
        "print('garbage ' * 99, flush=True); " + telling("Done(Verdict.UNKNOWN)"),
        LONG,
        "ended without a plan",
    ),
    "writes a broken pickle": (TELL + "pipe.send_bytes(b'12345'); pipe.recv(), pipe.recv()", LONG, "no message"),
    "writes something else": (telling("'hello'"), LONG, "no reply: str"),
    "eats memory": (
        "import cpsched.cp.worker as w; w._answer = lambda *_: [bytearray(1 << 24) for _ in range(1 << 30)]; w.main()",
        LONG,
        "ran out of memory",
    ),
    "meets a bug": (
        "import cpsched.cp.worker as w; w._answer = lambda *_: 1 / 0; w.main()",
        LONG,
        "ZeroDivisionError: division by zero",
    ),
}


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a worker little of the memory."""
    monkeypatch.setattr("cpsched.cp.improver._MEMORY", 0.05)


def board_for(instance: Instance, seconds: float) -> Board:
    """Return a board with the poor plan."""
    return Board(
        POOR,
        by="poor",
        budget=Budget(seconds),
        value_of=lambda jobs: objective_value(instance, jobs),
        judge=lambda jobs: sorted(broken_rules(instance, list(jobs))),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("script", "seconds", "words"), FAULTS.values(), ids=FAULTS)
def test_a_worker_that_goes_wrong_does_no_harm(script: str, seconds: float, words: str | None) -> None:
    """The improver returns, nothing but the poor plan is on the board, and an event has the words (BRIDI-16)."""
    board = board_for(WINDOW, seconds)
    Cp(command=(sys.executable, "-c", script)).improve(WINDOW, board, seed=0)
    assert board.best.jobs == tuple(POOR)
    assert board.proof is None
    if words is None:
        assert board.is_over
        assert board.events == ()
    else:
        (event,) = board.events
        assert event.by == "cp"
        assert words in event.what


def test_a_solver_that_runs_out_of_time_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has found nothing, not even the plan that it was given, and no event says so."""
    monkeypatch.setattr(Solve, "remaining", 0.0)
    board = board_for(WINDOW, LONG)
    Cp(command=(sys.executable, "-c", FAULTS["says UNKNOWN"][0])).improve(WINDOW, board, seed=0)
    assert board.events == ()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hangs", "crashes", "writes a broken pickle", "eats memory", "meets a bug"])
def test_a_bound_that_goes_wrong_does_no_harm(fault: str) -> None:
    """So does the improver that only proves."""
    script, seconds, words = FAULTS[fault]
    board = board_for(WINDOW, seconds)
    LagrangianBound(command=(sys.executable, "-c", script)).improve(WINDOW, board, seed=0)
    assert board.proof is None
    assert [words is not None and words in event.what for event in board.events] == [True] * (words is not None)


def test_a_worker_that_does_not_end_in_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that takes much longer than its share of the budget is given up before the board is over."""
    monkeypatch.setattr("cpsched.cp.process._PATIENCE", 0.1)
    board = board_for(WINDOW, 60.0)
    command = (sys.executable, "-c", FAULTS["hangs"][0])
    LagrangianBound(share=0.01, command=command).improve(WINDOW, board, seed=0)
    assert not board.is_over
    assert "did not end within" in board.events[0].what


def test_a_worker_that_cannot_be_started() -> None:
    """A missing interpreter is an event as well."""
    board = board_for(WINDOW, LONG)
    Cp(command=("/nowhere/python",)).improve(WINDOW, board, seed=0)
    assert "cannot be started" in board.events[0].what


def test_too_little_memory_to_load_the_solver() -> None:
    """A worker with less memory than an interpreter needs fails in words."""
    with Worker(1 << 24) as worker:
        worker.send(Prove(instance=WINDOW, jobs=("a",), seconds=1, seed=0))
        with pytest.raises(EngineError, match=r"its process (ended with code|was ended by)"):
            worker.receive(LONG)


def test_nobody_is_left_behind(tmp_path: Path) -> None:
    """After the improver has returned its hanging worker is dead and buried."""
    pid_file = tmp_path / "pid"
    board = board_for(WINDOW, 1.0)
    Cp(command=("/bin/sh", "-c", f"echo $$ > {pid_file}; exec sleep 1000")).improve(WINDOW, board, seed=0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_worker_ends_with_its_engine() -> None:
    """A worker whose pipe ends, since the process that started it is gone, ends by itself, whatever it does."""
    with Worker(1 << 33) as worker:
        worker.send(Prove(instance=WINDOW, jobs=("a",), seconds=LONG, seed=0))
        worker.receive(LONG)
        worker._pipe.close()
        assert worker._process.wait(LONG) == 0


def test_more_than_a_pipe_holds_goes_both_ways() -> None:
    """Requests and replies of many megabytes arrive, and nobody blocks."""
    many = tuple(str(number) for number in range(500_000))
    script = TELL + "pipe.send(Proven(1.0, ' '.join(pipe.recv().jobs))); pipe.recv()"
    with Worker(1 << 33, (sys.executable, "-c", script)) as worker:
        worker.send(Prove(instance=WINDOW, jobs=many, seconds=1, seed=0))
        reply = worker.receive(LONG)
    assert reply == Proven(1.0, " ".join(many))
