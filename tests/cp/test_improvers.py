"""The improvers with their real worker: they prove small windows, leave large ones alone, and repeat themselves."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from ortools.sat.python import cp_model

from cpsched.cp import Cp, LagrangianBound, QuickBound
from cpsched.cp.messages import Done, Reply, Verdict
from cpsched.cp.solver import solve, verdict_of
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget
from cpsched.metrics import objective_value, suffered
from tests.cp.fixed_plans import broken_rules, encoding_of, instance_of
from tests.cp.test_model import plan_of, request_for
from tests.workloads.tiny import tiny_cases

#: Seconds that no test needs.
LONG = 120.0


def board_of(instance: Instance, seconds: float = LONG) -> Board:
    """Return a board with the planner's plan; the verifier looks at each that is offered."""
    return Board(
        plan_of(instance),
        by="planner",
        budget=Budget(seconds),
        value_of=lambda jobs: objective_value(instance, jobs),
        judge=lambda jobs: sorted(broken_rules(instance, list(jobs))),
    )


def mixed_window(seed: int, num_jobs: int, num_nodes: int) -> Instance:
    """Return a window on half GPU nodes, half plain ones, with jobs as on Eurora and some that run."""
    rng = random.Random(seed)
    half = num_nodes // 2
    nodes = [
        {"names": f"a[1-{half}]", "resources": {"cores": 16, "gpus": 2}},
        {"names": f"b[1-{half}]", "resources": {"cores": 16}},
    ]
    jobs = []
    for number in range(num_jobs):
        gpus = ":ngpus=1" if rng.random() < 0.25 else ""
        request = f"{rng.randint(1, half)}:ncpus={rng.choice([1, 2, 4, 5, 6, 8, 9, 12, 16])}{gpus}"
        queue, submit = rng.choice(["debug", "parallel", "long"]), -rng.randrange(20_000)
        walltime = rng.choice([600, 1800, 3600, 7200, rng.randrange(300, 14_400)])
        jobs.append({"id": f"j{number}", "request": request, "queue": queue, "submit": submit, "walltime": walltime})
    for number in range(1, half + 1):
        running = {"start": -600, "allocation": [{"node": f"a{number}", "resources": {"cores": 10}}]}
        walltime = 600 + rng.randrange(600, 9000)
        jobs.append(
            {"id": f"r{number}", "request": "ncpus=10", "submit": -700, "walltime": walltime, "running": running}
        )
    waits = {"debug": 1800, "parallel": 21_600, "long": 86_400}
    return instance_of(nodes, jobs, queues={name: {"expected_wait": wait} for name, wait in waits.items()})


@pytest.mark.parametrize("seed", range(4))
def test_eight_jobs_on_eight_nodes_are_proven_optimal(seed: int) -> None:
    """Windows of the smallest size that people have are solved to the end."""
    instance = mixed_window(seed, 8, 8)
    plan = plan_of(instance)
    replies: list[Reply] = []
    solve(request_for(encoding_of(instance, plan), plan), replies.append)
    assert replies[-1] == Done(Verdict.OPTIMAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny-order", "tiny-hold-back", "tiny-license"])
def test_a_small_window_is_improved_and_proven(name: str) -> None:
    """On the board stand the optimum, found by cp, and a proof that says how; nothing is left to find."""
    (case,) = (case for case in tiny_cases() if case.instance.name == name)
    board = board_of(case.instance)
    Cp().improve(case.instance, board, seed=0)
    assert board.best.value == pytest.approx(case.optimum, abs=1e-12)
    assert board.is_optimal
    assert board.proof is not None
    assert board.proof.how.startswith("CP-SAT")
    assert board.events == ()
    assert {incumbent.by for incumbent in board.incumbents} <= {"planner", "cp"}


def test_cp_improves_on_the_planner() -> None:
    """Where the planner's order is not the best one, the better plan is cp's."""
    (case,) = (case for case in tiny_cases() if case.instance.name == "tiny-order")
    board = board_of(case.instance)
    first = board.best.value
    Cp().improve(case.instance, board, seed=0)
    assert board.best.value < first
    assert board.best.by == "cp"


def test_a_large_window_is_not_solved_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window with too many pairs of jobs and nodes starts no worker, not even one that does not exist (BRIDI-15)."""
    monkeypatch.setattr("cpsched.cp.improver._MOST_PAIRS", 63)
    instance = mixed_window(0, 8, 8)
    board = board_of(instance)
    Cp(command=("/nowhere/python",)).improve(instance, board, seed=0)
    assert board.events == ()
    assert len(board.incumbents) == 1


def starts(jobs: Sequence[PlannedJob]) -> list[tuple[str, int, object]]:
    """Return the start and the nodes of each job."""
    return [(job.id, job.start, job.segments) for job in jobs]


@pytest.mark.slow
def test_same_seed_same_plan() -> None:
    """With deterministic time and one worker, a solve that is cut short ends with the same plan each time."""
    instance = mixed_window(5, 40, 8)
    found = []
    for _ in range(2):
        board = board_of(instance)
        Cp(deterministic_time=0.05).improve(instance, board, seed=3)
        assert not board.is_optimal
        found.append(starts(board.best.jobs))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_bound_is_proven_beside_the_search() -> None:
    """A bound reaches the board, below the plan and above what was waited already, and says how it is proven."""
    instance = mixed_window(1, 20, 8)
    board = board_of(instance, seconds=40.0)
    LagrangianBound(share=0.1).improve(instance, board, seed=0)
    assert board.events == ()
    assert board.proof is not None
    assert suffered(instance, board.best.jobs) < board.proof.value <= board.best.value
    assert board.proof.how


@pytest.mark.parametrize(
    "bound",
    [
        LagrangianBound(most_jobs=10, command=("no such program",)),
        LagrangianBound(share=0.01, least_seconds=0.8, command=("no such program",)),
    ],
)
def test_no_bound_is_begun_that_would_cost_the_search_too_much(bound: LagrangianBound) -> None:
    """A window of more jobs than it takes, and a share too short to load a solver in, start no worker."""
    board = board_of(mixed_window(1, 20, 8), seconds=40.0)
    bound.improve(mixed_window(1, 20, 8), board, seed=0)
    assert (board.events, board.proof) == ((), None)


@pytest.mark.parametrize("is_known", [True, False])
def test_no_worker_is_started_that_would_say_no_more(is_known: bool) -> None:
    """Where a first bound is proven, a share too short to get beyond it goes to the search; else it is used."""
    instance = mixed_window(1, 20, 8)
    board = board_of(instance, seconds=40.0)
    if is_known:
        board.prove(suffered(instance, board.best.jobs), over=board.best.ids, how="a first one", by=QuickBound.name)
    first = board.proof
    assert (first is not None) == is_known
    LagrangianBound(share=0.1, least_anew=4.1, command=("no such program",)).improve(instance, board, seed=0)
    assert len(board.events) == (not is_known)
    assert board.proof == first


@pytest.mark.slow
def test_what_a_first_bound_needs_is_loaded_before_its_clock_starts() -> None:
    """After planner and bound are prepared, a bound loads no module: OR-Tools alone would outlast a short share."""
    script = """
import sys
from cpsched.cp import QuickBound, bounding
from cpsched.engine import Board, Budget
from cpsched.formats import read_instance
from cpsched.planner import PlannerEngine
bounding._CROWDED = 1000.0  # the seconds of a core alone count
instance, solver = read_instance(sys.argv[1]), QuickBound(1.0)
jobs = PlannerEngine().plan(instance, None).jobs
board = Board(jobs, by="test", budget=Budget(1.0, lambda: 0.0), value_of=lambda _: 1e9, judge=lambda _: ())
solver.prepare()
prepared = set(sys.modules)
solver.improve(instance, board, seed=0)
assert "Lagrangian" in board.proof.how, board.proof
print(*sorted(set(sys.modules) - prepared))
"""
    window = Path(__file__).parents[2] / "instances" / "eurora-like-0050.json.gz"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", script, str(window)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_every_status_has_a_meaning() -> None:
    """Each status that CP-SAT knows is one of ours, no two the same; another one is an error."""
    known = cp_model.CpSolverStatus.__members__.values()
    assert len(known) == len(Verdict)
    assert {verdict_of(status) for status in known} == set(Verdict)
    with pytest.raises(ValueError, match="Expected a status"):
        verdict_of(99)  # type: ignore[arg-type]  # wrong on purpose
