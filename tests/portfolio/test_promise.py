"""The budget is a promise, and the fallback stands: whatever solvers do, the answer is a verified plan, no worse than
the planner's.

What a fault costs is not measured in seconds here, but by what must not happen: that `solve` waits for a solver that
never comes back.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.engine import Board, Budget
from cpsched.errors import SolverWarning
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.metrics import suffered
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, solve
from cpsched.portfolio.lanes import Lanes
from cpsched.portfolio.scoring import scored
from cpsched.verify import verify
from tests.portfolio.fake_solver import Solver

INSTANCE = read_instance(Path(__file__).parents[2] / "instances" / "eurora-like-0050.json.gz")


def solved_by(monkeypatch: pytest.MonkeyPatch, *lanes: tuple[Solver, ...], seconds: float = 60.0) -> Plan:
    """Let these solvers improve a window; the plan is verified and no worse than the planner's."""
    team = Team(first=PlannerEngine(), lanes=lanes)
    monkeypatch.setattr("cpsched.portfolio.recipe.team_of", lambda *_, **__: team)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", SolverWarning)
        plan = solve(INSTANCE, budget=seconds)
    died = {event.what for event in plan.events if event.what.startswith("gave up")}
    assert {str(one.message) for one in said} == {f"the solver cp died: {what}" for what in died}
    assert verify(instance_to_document(INSTANCE), plan_to_document(plan)) == ()
    assert plan.objective.value <= plan.objective.planner
    return plan


def hang(board: Board) -> None:
    """Never come back."""
    Event().wait()


def crash(board: Board) -> None:
    """Fail in an unexpected way."""
    raise RuntimeError("wires crossed")


def run_out_of_memory(board: Board) -> None:
    """Fail as Python does when the memory is used up."""
    raise MemoryError


def offer_a_wrong_plan(board: Board) -> None:
    """Let every job start at once."""
    now = INSTANCE.now
    board.offer(
        [
            replace(
                job,
                start=now,
                end=now + job.end - job.start,
                segments=tuple(replace(part, start=now, end=now + job.end - job.start) for part in job.segments),
            )
            for job in board.best.jobs
        ],
        by="cp",
    )


def leave_out_a_job(board: Board) -> None:
    """Offer a plan that is cheaper since it forgets half of the jobs: it is worse, and nobody judges it."""
    board.offer(board.best.jobs[: len(board.best.jobs) // 2], by="cp")


def find_nothing(board: Board) -> None:
    """Give up at once."""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (hang, None),
        (crash, "gave up: RuntimeError: wires crossed"),
        (run_out_of_memory, "gave up: MemoryError"),
        (offer_a_wrong_plan, "offered a plan that breaks rules"),
        (leave_out_a_job, None),
        (find_nothing, None),
    ],
)
def test_a_fault_costs_nothing_but_itself(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[Board], None], told: str | None
) -> None:
    """The answer comes, the planner's plan at the least, and the plan's events say what happened."""
    # who gives up ends the answer by itself, on a busy machine too; who hangs is left behind when the budget ends
    plan = solved_by(monkeypatch, (Solver(fault),), seconds=1.0 if fault is hang else 60.0)
    assert plan.objective.value == plan.objective.planner
    events = [event.what for event in plan.events if event.by == "cp"]
    assert len(events) == (told is not None)
    assert all(what.startswith(told or "") for what in events)
    assert plan.engine.stopped == ("fallback" if told else "budget" if fault is hang else "done")


def test_an_engine_whose_solvers_all_died_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says so, a solver that was left out is no help, and so it is with strict priorities."""
    left_out = Solver(lambda board: board.leave_out("too large", by="other"), name="other")
    assert solved_by(monkeypatch, (Solver(crash), left_out), (Solver(crash),)).engine.stopped == "fallback"
    strict = replace(INSTANCE, has_strict_priorities=True)
    with pytest.warns(SolverWarning, match="wires crossed"):
        plan = solve(strict, budget=60.0, team=Team(first=PlannerEngine(), lanes=((Solver(crash),),)))
    assert plan.engine.stopped == "fallback"


def test_the_next_solver_of_a_lane_goes_on_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash ends the work of one solver, not that of its lane."""
    worked: list[str] = []
    solved_by(monkeypatch, (Solver(crash), Solver(lambda board: worked.append("next"), name="next")))
    assert worked == ["next"]


def test_nobody_improves_an_optimal_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a bound meets the plan, the rest of the budget is not spent."""
    worked: list[str] = []
    lanes = (
        Solver(lambda board: board.prove(board.best.value, over=board.best.ids, how="magic", by="test")),
        Solver(lambda board: worked.append("too late")),
    )
    plan = solved_by(monkeypatch, lanes, seconds=3600.0)
    assert (plan.engine.stopped, plan.objective.gap, plan.objective.proof) == ("optimal", 0.0, "magic")
    assert worked == []


@pytest.mark.parametrize(("open_share", "is_shown"), [(0.995, False), (0.98, True)])
def test_a_bound_that_says_hardly_anything_is_no_gap(
    monkeypatch: pytest.MonkeyPatch, open_share: float, is_shown: bool
) -> None:
    """A bound that leaves nearly all of the avoidable cost open says that nothing is proven yet: it is not shown."""
    paid = suffered(INSTANCE, PlannerEngine().plan(INSTANCE, None).jobs)

    def prove(board: Board) -> None:
        value = board.best.value
        board.prove(value - open_share * (value - paid), over=board.best.ids, how="guessed", by="test")

    plan = solved_by(monkeypatch, (Solver(prove),))
    score = plan.objective
    assert (score.bound is not None, score.gap is not None, score.proof is not None) == (is_shown,) * 3


def test_a_solver_that_is_left_behind_has_no_part_in_the_time_for_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told that its time is over; the plan that it offers then counts as a whole: jobs and value."""
    better = solve(INSTANCE, engine="wspt_list", budget=0)
    boards, is_over = list[Board](), list[bool]()

    def leave_behind(lanes: Lanes, instance: Instance, board: Board, **_: object) -> bool:
        boards.append(board)
        if len(boards) == 1:
            board.budget = Budget(0.0)
        else:
            is_over.extend([boards[0].is_over, board.is_over])
            boards[0].offer(better.jobs, by="cp")
        return False

    monkeypatch.setattr("cpsched.portfolio.recipe.run_lanes", leave_behind)
    plan = solve(INSTANCE, budget=60.0, bound=60.0)
    assert is_over == [True, False]
    assert plan.objective.value == better.objective.value < (plan.objective.planner or 0.0)
    assert verify(instance_to_document(INSTANCE), plan_to_document(plan)) == ()


def test_solvers_are_loaded_in_seconds_that_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preparation loads them, with the clock at rest; only then does the recipe ask for them."""
    steps: list[str] = []

    def team_of(*_: object, **__: object) -> Team:
        steps.append("asked for")
        return Team(first=PlannerEngine(), lanes=((Solver(lambda _: steps.append("work")),),))

    monkeypatch.setattr("cpsched.portfolio.task.prepare", lambda *_, **__: steps.append("loaded"))
    monkeypatch.setattr("cpsched.portfolio.recipe.team_of", team_of)
    solve(INSTANCE, budget=60.0)
    assert steps == ["loaded", "asked for", "work"]


def test_those_who_cannot_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that cannot honour the instance does not work, and is no reason to refuse it while another one can."""
    worked: list[str] = []
    able = Solver(lambda board: worked.append("able"), name="able")
    unable = Solver(lambda board: worked.append("unable"), name="unable", cannot=("jobs[0]: magic",))
    solved_by(monkeypatch, (unable, able))
    assert worked == ["able"]


def test_an_interruption_gives_the_best_plan_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the plan is improved ends the work at once; what was found until then is the answer."""

    def interrupt(board: Board) -> None:
        # as the system does it: this also ends the wait of a main thread that waits already
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        Event().wait()

    plan = solved_by(monkeypatch, (Solver(interrupt),), seconds=3600.0)
    assert plan.engine.stopped == "interrupted"


@pytest.mark.parametrize("times", [1, 2])
def test_an_interruption_while_the_plan_is_judged_keeps_it(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """What is so near its end is finished; a second interruption ends it."""
    asked = list[int]()

    def interrupted(*arguments: Any, **options: Any) -> Plan:
        asked.append(1)
        if len(asked) <= times:
            raise KeyboardInterrupt
        return scored(*arguments, **options)

    monkeypatch.setattr("cpsched.portfolio.recipe.scored", interrupted)
    with pytest.raises(KeyboardInterrupt) if times == 2 else nullcontext():
        plan = solve(INSTANCE, budget=0)
        assert verify(instance_to_document(INSTANCE), plan_to_document(plan)) == ()


def test_a_budget_of_nothing_is_the_planner_alone() -> None:
    """With 0 s the plan is the planner's, whoever else might have worked."""
    plan = solve(INSTANCE, budget=0)
    assert [found.by for found in plan.incumbents] == ["planner"]
    assert plan.objective.value == plan.objective.planner


HANGING = """
import sys
from threading import Event
from typing import Any
from cpsched.portfolio import Team, recipe, solve
from cpsched.planner import PlannerEngine
from cpsched.formats import read_instance
from cpsched.search import Search

class Hang(Search):
    def improve(self, instance, board, *, seed):
        Event().wait()

recipe.team_of = lambda *_, **__: Team(first=PlannerEngine(), lanes=((Hang(),), (Search(),)))
print(solve(read_instance(sys.argv[1]), budget=0.5).engine.stopped)
"""


@pytest.mark.slow
def test_the_process_ends_though_a_thread_hangs() -> None:
    """A solver that never comes back keeps neither the answer nor the process."""
    path = Path(__file__).parents[2] / "instances" / "eurora-like-0050.json.gz"
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", HANGING, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "budget\n"
