"""Solvers in parallel: each lane is a thread, and none of them can delay the answer; a line says how far they are."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from threading import Thread

from cpsched.domain import Instance
from cpsched.engine import Board, Budget, Improver
from cpsched.portfolio.bandit import ByMerit, run_solver

#: The solvers of each lane, in the order in which they work.
Lanes = Sequence[Sequence[Improver]]

#: Called some ten times a second while a plan is improved, with its value, its bound (None: there is none yet), and the
#: seconds since the budget began; returning False ends the improvement.
OnPlan = Callable[[float, float | None, float], object]

#: Seconds between two checks of the lanes.
_LOOK = 0.1


def run_lanes(
    lanes: Lanes, instance: Instance, board: Board, *, seed: int, deadline: Budget, on_plan: OnPlan | None
) -> bool:
    """Run all lanes until their work or the board's budget is over; return whether the user ended them.

    `lanes`: the solvers of each, in the order in which they work. `seed`: each solver gets a seed of its own, derived
    from this one. `deadline`: when lanes that have not ended are abandoned, some time after the board's budget.
    `on_plan`: called repeatedly.

    Notes
    -----
    Abandoned threads are daemons, for which no process waits; their offers count until the board is closed.
    """
    # a thread has the context of its maker: whether kernels are interpreted
    threads = [
        Thread(
            target=copy_context().run, args=(_run_lane, lane, instance, board, seed * len(lanes) + place), daemon=True
        )
        for place, lane in enumerate(lanes)
    ]
    try:
        for thread, lane in zip(threads, lanes, strict=True):
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads
                board.fail(f"gave up: {error}", by="+".join(solver.name for solver in lane))
        for thread in threads:
            while thread.is_alive() and (left := deadline.remaining) > 0:
                thread.join(min(_LOOK, left))
                if is_ended(on_plan, board):
                    return True
    except KeyboardInterrupt:
        return True
    return False


def is_ended(on_plan: OnPlan | None, board: Board) -> bool:
    """Tell `on_plan` the value and the bound of the best plan; return whether the user ends the improvement."""
    if on_plan is None:
        return False
    bound = None if board.proof is None else board.proof.value
    return on_plan(board.best.value, bound, board.budget.elapsed) is False


def _run_lane(lane: Sequence[Improver], instance: Instance, board: Board, seed: int) -> None:
    """Run the solvers of one lane one after the other; an error is reported, and the next solver continues."""
    for improver in lane:
        if board.is_over:
            return
        if isinstance(improver, ByMerit):
            improver.improve(instance, board, seed=seed)
        else:
            run_solver(improver, instance, board, seed=seed)


@contextmanager
def live_line(on_plan: OnPlan | None, budget: float) -> Iterator[OnPlan]:
    """Yield a callback that writes value, bound and seconds over one line of stderr, and calls another one.

    Notebooks know the carriage return as terminals do. The line is gone at the end. `budget`: of the solve, in seconds.
    """
    written = 0

    def show(value: float, bound: float | None, elapsed: float) -> object:
        nonlocal written
        proven = "no bound yet" if bound is None else f"bound {bound:,.6g}"
        line = f"best {value:,.6g}, {proven}, {elapsed:.0f} of {budget:.0f} s"
        sys.stderr.write(f"\r{line.ljust(written)}")
        sys.stderr.flush()
        written = max(written, len(line))
        return None if on_plan is None else on_plan(value, bound, elapsed)

    try:
        yield show
    finally:
        if written:
            sys.stderr.write(f"\r{' ' * written}\r")
            sys.stderr.flush()
