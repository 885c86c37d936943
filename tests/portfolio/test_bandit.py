"""Solvers that share a lane: each gets a turn, then the one that gains most; counted turns are repeated exactly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cpsched.cp import Neighbourhoods
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget, Turn
from cpsched.metrics import objective_value
from cpsched.portfolio.bandit import ByMerit, Member, is_tight, run_solver
from cpsched.search import Search
from tests.cp.fixed_plans import broken_rules, instance_of
from tests.cp.test_improvers import mixed_window
from tests.cp.test_model import plan_of
from tests.portfolio.fake_solver import Solver


def board_of(instance: Instance, seconds: float) -> Board:
    """Return a board with the planner's plan."""
    return Board(
        plan_of(instance),
        by="planner",
        budget=Budget(seconds),
        value_of=lambda jobs: objective_value(instance, jobs),
        judge=lambda jobs: sorted(broken_rules(instance, list(jobs))),
    )


def test_the_solver_that_gains_gets_the_turns() -> None:
    """After one turn each, the solver that found something gets all other turns, until it finds nothing."""
    values, turns = iter([9.0, 8.0, 7.0]), []

    def find(board: Board) -> None:
        turns.append("finder")
        worth[0] = next(values, worth[0])
        board.offer([], by="finder")

    def idle(board: Board) -> None:
        turns.append("idler")

    worth = [10.0]
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: worth[0], judge=lambda _: [])
    lane = ByMerit([Member(Solver(idle), plain=0.1, tight=0.1), Member(Solver(find), plain=0.1, tight=0.1)], turns=4)
    lane.improve(instance_of([{"names": "n1", "resources": {"cores": 1}}], []), board, seed=0)
    assert turns == ["idler", "finder", "finder", "finder"]
    assert board.best.value == 7.0


def test_where_nobody_gains_the_larger_share_gets_the_turns() -> None:
    """After one turn each without a gain, the turns go to the solver that such windows are for."""
    turns: list[str] = []
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    small = Member(Solver(lambda _: turns.append("small")), plain=0.1, tight=0.5)
    large = Member(Solver(lambda _: turns.append("large")), plain=0.4, tight=0.3)
    plain = instance_of([{"names": "n1", "resources": {"cores": 1}}], [])
    ByMerit([small, large], turns=4).improve(plain, board, seed=0)
    assert turns == ["small", "large", "large", "large"]


def test_a_solver_without_a_share_waits_until_nothing_is_gained() -> None:
    """Its first turn follows the first turn of the others in which they gain nothing."""
    values, turns = iter([9.0, 8.0]), []

    def find(board: Board) -> None:
        turns.append("finder")
        worth[0] = next(values, worth[0])
        board.offer([], by="finder")

    worth = [10.0]
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: worth[0], judge=lambda _: [])
    waiter = Member(Solver(lambda _: turns.append("waiter")), plain=0.0, tight=0.0)
    finder = Member(Solver(find), plain=1.0, tight=1.0)
    plain = instance_of([{"names": "n1", "resources": {"cores": 1}}], [])
    ByMerit([finder, waiter], turns=5).improve(plain, board, seed=0)
    assert turns == ["finder", "finder", "finder", "waiter", "finder"]


@pytest.mark.slow
def test_counted_turns_are_repeated_exactly() -> None:
    """Where steps, neighbourhoods and turns are counted, two runs give the same plan."""
    instance, plans = mixed_window(5, 24, 8), list[Sequence[PlannedJob]]()
    for _ in range(2):
        board = board_of(instance, 600.0)
        search, cp = Search(max_steps=40), Neighbourhoods(most=15)
        members = [Member(search, plain=0.5, tight=0.5), Member(cp, plain=0.5, tight=0.5)]
        ByMerit(members, turns=4).improve(instance, board, seed=1)
        assert {work.by for work in board.work} == {"search", "cp"}
        plans.append(board.best.jobs)
    assert plans[0] == plans[1]


def test_a_turn_ends_before_its_board() -> None:
    """Solvers see the turn's budget; offers, proofs, events and work are those of the whole board."""
    instance = mixed_window(5, 4, 4)
    board = board_of(instance, 600.0)
    turn = Turn(board, 0.0)
    assert turn.is_over
    assert not board.is_over
    turn = Turn(board, 60.0)
    assert 59.0 < turn.budget.remaining <= 60.0
    turn.report("happened", by="cp")
    turn.account(by="cp", seconds=1.5, what="much")
    assert [event.what for event in board.events] == ["happened"]
    assert [(work.by, work.seconds, work.what) for work in board.work] == [("cp", 1.5, "much")]


def test_an_error_of_a_member_is_told() -> None:
    """The lane continues with the other solvers."""

    def fail(board: Board) -> None:
        raise RuntimeError("wires crossed")

    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    lane = ByMerit([Member(Solver(fail), plain=0.1, tight=0.1)], turns=2)
    lane.improve(instance_of([{"names": "n1", "resources": {"cores": 1}}], []), board, seed=0)
    assert [event.what for event in board.events] == ["gave up: RuntimeError: wires crossed"] * 2


def test_a_solver_at_work_is_known_to_the_board() -> None:
    """All others died, but not all: when it is left behind, its plans are no fallback."""
    seen = list[tuple[list[str], bool]]()

    def work(board: Board) -> None:
        board.fail("died", by="other")
        seen.append(([one.by for one in board.work], board.is_given_up))

    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    instance = instance_of([{"names": "n1", "resources": {"cores": 1}}], [])
    run_solver(Solver(work, name="mine"), instance, board, seed=0)
    assert seen == [(["mine"], False)]


def test_windows_that_are_tight() -> None:
    """Deadlines, dependencies and jobs that change make a window tight; licences and classes do not."""
    nodes = [{"names": "n1", "resources": {"cores": 2}}]
    assert not is_tight(instance_of(nodes, [{"id": "a", "request": "ncpus=1"}]))
    assert is_tight(instance_of(nodes, [{"id": "a", "request": "ncpus=1", "deadline": 99}]))
    one = {"id": "a", "request": "ncpus=1"}
    assert is_tight(instance_of(nodes, [one, {**one, "id": "b", "after": [{"job": "a", "type": "afterany"}]}]))
    steps = [{"request": "ncpus=1", "walltime": 5}, {"request": "ncpus=2", "walltime": 5}]
    assert is_tight(instance_of(nodes, [{"id": "a", "steps": steps}]))
