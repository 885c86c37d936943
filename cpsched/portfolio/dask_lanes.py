"""Lanes on the workers of a Dask cluster: each searches for a while from the best plan, and what it found is offered.

The board is the only joint. A worker gets the window, the best plan and a seed, works for a slice of the budget on a
board of its own, and sends back its best plan and its best bound; the board at home judges them as it judges all
others. A lost worker is an event, and its lane ends.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget, Improver, Offer, Proof
from cpsched.errors import EngineError
from cpsched.metrics import objective_value
from cpsched.portfolio.lanes import run_lanes
from cpsched.portfolio.teams import Team, prepare, team_of
from cpsched.text import how_to_install

if TYPE_CHECKING:
    from distributed import Client


#: A slice of work: a part of the whole budget, and the least seconds that are worth sending a window for.
_SLICE, _LEAST = 1 / 3, 1.0
#: Seconds kept for the way back; between two looks at a slice, and at the list of workers.
_WAY_BACK, _LOOK, _ROLL_CALL = 0.2, 0.05, 0.5
#: Solvers outside take seeds below this.
_MOST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """The findings of a slice of work: None where there is nothing new."""

    best: Offer | None
    proof: Proof | None
    #: The most jobs that a plan has, as far as is proven.
    most: int
    #: What went wrong, in words, each with the solver.
    events: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The work of one lane for some seconds."""

    #: One of `ENGINES`.
    engine: str
    #: Lanes are numbered through the engine's team again and again.
    lane: int
    #: Of the random numbers.
    seed: int
    seconds: float


def work(instance: Instance, jobs: Sequence[PlannedJob], placeable: Collection[str], asked: Slice) -> SliceResult:
    """Improve a plan for some seconds, as one of the lanes of an engine's team does; runs on a worker.

    `instance`, `jobs`: the window, and the plan to begin from. `placeable`: the ids of all jobs that any plan can have.
    `asked`: what to do.
    """
    board = Board(
        jobs,
        by="first",
        budget=Budget(asked.seconds),
        value_of=lambda plan: objective_value(instance, plan),
        judge=lambda plan: [],  # the board at home judges
        placeable=placeable,
    )
    lanes = [lane for lane in team_of(asked.engine).able(instance) if lane]
    lane = lanes[asked.lane % len(lanes)]
    run_lanes((lane,), instance, board, seed=asked.seed, deadline=board.budget, on_plan=None)
    board.close()
    return SliceResult(
        best=board.best if board.best.version > 0 else None,
        proof=board.proof,
        most=board.most,
        events=tuple((event.by, event.what) for event in board.events),
    )


class DaskLane(Improver):
    """One worker of a Dask cluster as a solver.

    `client`: the client of its scheduler. `worker`: the address of the worker. `engine`: the engine whose team works.
    `lane`: the number of the lane, from 0 on.
    """

    name = "dask"

    def __init__(self, client: Client, worker: str, engine: str, lane: int) -> None:
        self._client, self._worker, self._engine, self._lane = client, worker, engine, lane

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that no lane of the team can honour."""
        team = team_of(self._engine)
        return () if any(team.able(instance)) else team.lanes[0][0].unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Send slices of work to the worker until the budget ends or the worker is lost."""
        whole, turn = board.budget.remaining, 0
        while not board.is_over and (left := board.budget.remaining - _WAY_BACK) >= _LEAST / 2:
            seconds = max(_SLICE * whole, _LEAST)
            seconds = left if left < seconds + _LEAST else seconds
            # no number of another slice, nor of a solver at home
            number = ((seed + 1) * 1_000_003 + 1_009 * self._lane + turn) % _MOST_SEED
            asked = Slice(engine=self._engine, lane=self._lane, seed=number, seconds=seconds)
            found = self._slice(instance, board, asked)
            if found is None:
                return
            self._tell(found, board)
            turn += 1

    def _slice(self, instance: Instance, board: Board, asked: Slice) -> SliceResult | None:
        """Return the findings of the worker in one slice; None if it is lost, or if there is nothing left to do."""
        future = self._client.submit(
            work, instance, board.best.jobs, board.placeable, asked, workers=[self._worker], pure=False
        )
        next_look = board.budget.elapsed + _ROLL_CALL
        try:
            while not future.done():
                if board.is_over:
                    return None
                if board.budget.elapsed >= next_look:
                    if self._worker not in self._client.nthreads():
                        board.report(f"the worker {self._worker} is lost; its lane ends", by=self.name)
                        return None
                    next_look = board.budget.elapsed + _ROLL_CALL
                time.sleep(_LOOK)
            found: SliceResult = future.result()
        finally:
            future.cancel()
        return found

    def _tell(self, found: SliceResult, board: Board) -> None:
        """Offer the plan, the bound and the events of a slice."""
        board.prove_most(found.most, by=self.name)
        if found.proof is not None:
            board.prove(found.proof.value, over=found.proof.over, how=found.proof.how, by=found.proof.by)
        if found.best is not None:
            board.offer(found.best.jobs, by=found.best.by)
        for by, what in found.events:
            board.report(f"{what} (on {self._worker})", by=by)


@contextmanager
def with_dask_lanes(team: Team, engine: str, address: str) -> Iterator[Team]:
    """Yield a team with one more lane for each thread of the workers of a Dask scheduler; the workers are prepared.

    Raises `EngineError` if `distributed` is not installed, if no scheduler with workers is at the address, or if these
    have another version of cpsched or cannot be prepared.

    `team`: the team at home. `engine`: the engine whose team works on each worker; it has lanes. `address`: of the
    scheduler, ``tcp://HOST:8786``. Its workers need the same version of cpsched.
    """
    if find_spec("distributed") is None:
        raise EngineError(
            f"Lanes on a Dask cluster need distributed, which is not installed; {how_to_install('bench')}"
        )
    from distributed import Client

    if not team.lanes:
        raise EngineError(f"Expected an engine that improves plans for the workers at {address}, got {engine!r}")
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise EngineError(f"Expected a Dask scheduler at {address}, got: {error}") from error
    with client:
        try:
            versions: dict[str, str] = client.run(_prepared, engine)
        except Exception as error:  # whatever a worker's Python says
            raise EngineError(f"A worker at {address} cannot plan: {type(error).__name__}: {error}") from error
        if not versions:
            raise EngineError(f"Expected workers at {address}, got a Dask scheduler without any")
        for worker, theirs in versions.items():
            if theirs != version("cpsched"):
                raise EngineError(f"Expected cpsched {version('cpsched')} on {worker}, got {theirs}")
        addresses = [worker for worker, threads in sorted(client.nthreads().items()) for _ in range(threads)]
        lanes: list[tuple[Improver, ...]] = [
            (DaskLane(client, worker, engine, place),) for place, worker in enumerate(addresses)
        ]
        yield replace(team, lanes=(*team.lanes, *lanes))


def _prepared(engine: str) -> str:
    """Compile or load what the engine's team needs, on a worker; return the version of cpsched there."""
    prepare(engine)
    return version("cpsched")
