"""Lanes: solvers side by side, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from cpsched.domain import Instance
from cpsched.engine import Board, Budget
from cpsched.portfolio.lanes import run_lanes
from tests.booking.small_windows import chunk, nodes, waiting, window


class Listening:
    """Solves nothing, and notes its seed."""

    name = "listening"

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def prepare(self) -> None:
        """Need nothing."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Honour everything."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Note the seed."""
        self.seeds.append(seed)


def seeds_of(solvers: list[Listening], seed: int) -> Iterator[int]:
    """Yield the seed of each lane of one solver."""
    instance = window([nodes("n", cores=1)], waiting("a", 1, chunk(cores=1)))
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    run_lanes([(solver,) for solver in solvers], instance, board, seed=seed, deadline=Budget(60), on_plan=None)
    for solver in solvers:
        yield solver.seeds.pop()


def test_each_lane_has_a_seed_of_its_own() -> None:
    """Lanes that search in the same way with the same seed would find the same plans: no seed is used twice, neither
    by two lanes nor by the lanes of another seed; the same seed gives the same ones.
    """
    solvers = [Listening() for _ in range(3)]
    found = [list(seeds_of(solvers, seed)) for seed in range(4)]
    assert len({seed for seeds in found for seed in seeds}) == 12
    assert list(seeds_of(solvers, 2)) == found[2]


def test_solvers_of_one_lane_share_its_seed() -> None:
    """They work one after the other, each with the seed of the lane."""
    first, second = Listening(), Listening()
    instance = window([nodes("n", cores=1)], waiting("a", 1, chunk(cores=1)))
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    run_lanes([(first, second)], instance, board, seed=5, deadline=Budget(60), on_plan=None)
    assert first.seeds == second.seeds == [5]


def test_a_lane_for_which_the_system_has_no_thread_costs_nothing_but_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event says so, and the others work."""
    solvers, start, asked = [Listening(), Listening()], Thread.start, list[Thread]()

    def refuse_first(thread: Thread) -> None:
        asked.append(thread)
        if len(asked) == 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(Thread, "start", refuse_first)
    instance = window([nodes("n", cores=1)], waiting("a", 1, chunk(cores=1)))
    board = Board([], by="test", budget=Budget(60), value_of=lambda _: 1.0, judge=lambda _: [])
    run_lanes([(solver,) for solver in solvers], instance, board, seed=0, deadline=Budget(60), on_plan=None)
    assert [len(solver.seeds) for solver in solvers] == [0, 1]
    assert [event.by for event in board.failures] == ["listening"]
