"""The board: the best plan and the best bound, whoever offers them, in whatever order."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import PlannedJob
from cpsched.engine import Board, Budget

#: The jobs of most plans here.
ONE = frozenset({"a"})


def job(start: int, name: str = "a") -> PlannedJob:
    """Return a job that starts then, and is worth as much."""
    return PlannedJob(id=name, start=start, end=start + 1, segments=())


def board_of(
    first: int = 100, *, seconds: float = 60.0, wrong: Sequence[int] = (), now: list[float] | None = None
) -> Board:
    """Return a board on which the start is the value; the judge refuses the starts that are `wrong`."""
    clock = [0.0] if now is None else now
    return Board(
        [job(first)],
        by="planner",
        budget=Budget(seconds, clock=lambda: clock[0]),
        value_of=lambda jobs: float(jobs[0].start),
        judge=lambda jobs: ["it is wrong"] if jobs[0].start in wrong else [],
    )


def test_the_best_offer_stands() -> None:
    """A better plan takes the place, an equal or worse one does not; the log has who found what when."""
    now = [0.0]
    board = board_of(now=now)
    now[0] = 1.5
    assert board.offer([job(80)], by="search")
    assert not board.offer([job(80)], by="cp")
    assert not board.offer([job(90)], by="cp")
    now[0] = 2.0
    assert board.offer([job(70)], by="cp")
    assert (board.best.value, board.best.by, board.best.version) == (70, "cp", 2)
    assert [(found.at, found.value, found.by) for found in board.incumbents] == [
        (0.0, 100, "planner"),
        (1.5, 80, "search"),
        (2.0, 70, "cp"),
    ]


def test_a_wrong_plan_is_refused_and_told() -> None:
    """What the judge refuses never stands on the board, however good it looks; an event says whose it was."""
    board = board_of(wrong=[10])
    assert not board.offer([job(10)], by="cp")
    assert board.best.value == 100
    (event,) = board.events
    assert event.by == "cp"
    assert "breaks rules: it is wrong (1 in all)" in event.what


def test_a_closed_board_stays_as_it_is() -> None:
    """After closing, no offer, no bound and no event counts."""
    board = board_of()
    board.close()
    assert not board.offer([job(1)], by="search")
    board.prove(5.0, over=ONE, how="late", by="bound")
    board.report("late", by="search")
    assert (board.best.value, board.proof, board.events, board.is_over) == (100, None, (), True)


def test_an_offer_that_is_judged_while_the_board_closes_comes_too_late() -> None:
    """The judge takes its time; when the board has been closed meanwhile, the plan does not count."""
    board = board_of()
    board._judge = lambda jobs: board.close() or []  # type: ignore[func-returns-value]  # it returns None, and no faults follow
    assert not board.offer([job(1)], by="search")
    assert board.best.value == 100


def test_events_are_lines_of_printable_characters() -> None:
    """What an exception says may have lines and escapes, and no end: a plan's reader gets one line of 500."""
    board = board_of()
    board.report("one\ntwo\x1b[2J" + 1000 * "x", by="cp")
    (event,) = board.events
    assert event.what.startswith("one two [2Jxx")
    assert len(event.what) == 500


def test_a_bound_that_meets_the_plan_ends_the_work() -> None:
    """The largest bound stands; when it reaches the best value the plan is optimal, and all is over."""
    board = board_of()
    board.prove(40.0, over=ONE, how="one way", by="cp")
    board.prove(30.0, over=ONE, how="another way", by="bound")
    assert board.proof is not None
    assert (board.proof.value, board.proof.how) == (40.0, "one way")
    assert not board.is_over
    board.offer([job(40)], by="search")
    assert board.is_optimal
    assert board.is_over


@pytest.mark.false_bound
def test_a_bound_above_the_plan_is_refused_and_told() -> None:
    """What is proven and not true never stands on the board; an event says who said it, and which plan it denies."""
    board = board_of()
    board.prove(30.0, over=ONE, how="one way", by="cp")
    board.prove(101.0, over=ONE, how="another way", by="bound")
    assert board.proof is not None
    assert board.proof.value == 30
    assert not board.is_over
    (event,) = board.events
    assert event.by == "bound"
    assert event.what.startswith("proved a false bound: 101 (another way), but a plan of planner is worth 100;")


@pytest.mark.false_bound
def test_a_better_plan_refutes_bounds() -> None:
    """A plan below some bounds takes them from the board, each with an event; those that hold stay."""
    board = board_of()
    for value, by in ((30.0, "a"), (60.0, "b"), (90.0, "c")):
        board.prove(value, over=ONE, how="some way", by=by)
    assert board.offer([job(50)], by="search")
    assert board.proof is not None
    assert board.proof.by == "a"
    assert [event.by for event in board.events] == ["b", "c"]


def test_rounding_refutes_nothing() -> None:
    """A bound that is above the plan by what two roundings of one sum can differ is true."""
    board = board_of()
    board.prove(100 * (1 + 1e-12), over=ONE, how="one way", by="cp")
    assert board.is_optimal
    assert board.events == ()


def test_the_budget_ends_the_work() -> None:
    """When no time is left, all is over, but last offers still count until the board is closed."""
    now = [0.0]
    board = board_of(seconds=10, now=now)
    assert not board.is_over
    now[0] = 10.0
    assert board.is_over
    assert board.offer([job(99)], by="search")


@pytest.mark.parametrize("change", [2.0, -3.0, -100.0])
def test_a_longer_or_shorter_budget_began_at_the_same_time(change: float) -> None:
    """5 s of 10 s have passed: with 2 s more 7 s are left, with 3 s less 2 s, and never less than none."""
    now = [0.0]
    budget = Budget(10, clock=lambda: now[0])
    now[0] = 5.0
    other = budget.more(change)
    assert (other.elapsed, other.remaining) == (5.0, max(0.0, 5.0 + change))


@given(st.lists(st.integers(1, 99), min_size=1, max_size=40), st.integers(1, 4))
def test_many_threads_one_best(values: list[int], threads: int) -> None:
    """Whatever several threads offer at once: the best of all stands, and the log falls strictly."""
    board = board_of()
    workers = [
        Thread(target=lambda part=values[place::threads]: [board.offer([job(value)], by="x") for value in part])
        for place in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    logged = [found.value for found in board.incumbents]
    assert board.best.value == min(values) == logged[-1]
    assert logged == sorted(set(logged), reverse=True)


def board_of_jobs(*names: str, placeable: Sequence[str] = ()) -> Board:
    """Return a board with a plan of some jobs, each at second 10; a plan is worth the sum of its starts."""
    return Board(
        [job(10, name) for name in names],
        by="planner",
        budget=Budget(60.0),
        value_of=lambda jobs: float(sum(job.start for job in jobs)),
        judge=lambda jobs: [],
        placeable=placeable,
    )


def test_more_jobs_beat_a_smaller_value() -> None:
    """A plan of more jobs is better at any value, one of fewer at none; of as many jobs, the value counts."""
    board = board_of_jobs("a", placeable="abc")
    assert board.offer([job(500, "b"), job(0, "c")], by="rescue")
    assert not board.offer([job(0, "a")], by="search")
    assert board.offer([job(300, "a"), job(0, "c")], by="search")
    assert not board.offer([job(300, "a"), job(0, "b")], by="search")
    assert board.best.ids == {"a", "c"}
    assert [(found.value, found.planned) for found in board.incumbents] == [(10, 1), (500, 2), (300, 2)]


def test_a_plan_that_lacks_a_job_is_not_optimal() -> None:
    """A bound over its jobs does not prove a plan while another job could have a place too."""
    board = board_of_jobs("a", placeable="ab")
    board.prove(10.0, over=board.best.ids, how="some way", by="cp")
    assert board.proof is not None
    assert not board.is_optimal
    assert board.offer([job(9, "a"), job(5, "b")], by="rescue")
    assert board.proof is None
    assert not board.is_optimal
    board.prove(14.0, over=board.best.ids, how="some way", by="cp")
    assert board.is_optimal
    assert board.events == ()


def test_a_number_and_a_value_are_proven() -> None:
    """Where no plan has all jobs, one is optimal if no plan has more, and none of as many is worth less: a bound over
    its own jobs is not enough.
    """
    board = board_of_jobs("a", placeable="ab")
    board.prove(10.0, over=board.best.ids, how="some way", by="cp")
    board.prove_most(1, by="cp")
    assert not board.is_optimal
    board.prove(10.0, over=1, how="another way", by="cp")
    assert board.is_optimal


@pytest.mark.false_bound
def test_a_false_number_is_refused_and_told() -> None:
    """A number of jobs that a plan exceeds is not taken, or no more; an event says who proved it."""
    board = board_of_jobs("a", "b", placeable="abc")
    board.prove_most(1, by="cp")
    assert board.most == 3
    board.prove_most(2, by="mzn")
    assert board.most == 2
    assert board.offer([job(10, name) for name in "abc"], by="search")
    assert board.most == 3
    assert [event.by for event in board.events] == ["cp", "mzn"]
    assert all("false bound" in event.what for event in board.events)


def test_the_bound_of_earliest_starts_follows_the_jobs() -> None:
    """Each best plan of other jobs has the bound that needs no solver."""
    board = Board(
        [job(10, "a")],
        by="planner",
        budget=Budget(60.0),
        value_of=lambda jobs: float(sum(job.start for job in jobs)),
        judge=lambda jobs: [],
        placeable="ab",
        least_of=len,
    )
    assert board.proof is not None
    assert (board.proof.value, board.proof.over) == (1, ONE)
    assert board.offer([job(1, "a"), job(1, "b")], by="rescue")
    assert board.proof.value == 2
    assert board.is_optimal
