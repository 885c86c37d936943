"""Solvers side by side: each lane is a thread, and none of them can hold up the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread

from cpsched.domain import Instance
from cpsched.engine import Board, Budget, Improver

__all__ = ["run_lanes"]

#: Seconds between two looks at the lanes.
_LOOK = 0.1


def run_lanes(
    lanes: Sequence[Sequence[Improver]],
    instance: Instance,
    board: Board,
    *,
    seed: int,
    deadline: Budget,
    watch: Callable[[Board], None] | None,
) -> bool:
    """Let all lanes work until their work or the board's budget is over; tell whether the user interrupted them.

    Parameters
    ----------
    lanes
        The solvers of each, in the order in which they work.
    seed
        Each solver gets one of its own that follows from it.
    deadline
        Who is not back by then, some time after the board's budget, is left behind.
    watch
        Called now and then.

    Notes
    -----
    Threads that do not come back are daemons, which no process waits for; what they offer counts until the board is
    closed.
    """
    threads = [
        Thread(target=_run_lane, args=(lane, instance, board, seed * len(lanes) + place), daemon=True)
        for place, lane in enumerate(lanes)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and (left := deadline.remaining) > 0:
                thread.join(min(_LOOK, left))
                if watch is not None:
                    watch(board)
    except KeyboardInterrupt:
        return True
    return False


def _run_lane(lane: Sequence[Improver], instance: Instance, board: Board, seed: int) -> None:
    """Let the solvers of one lane work one after the other; what goes wrong is told, and the next one goes on."""
    for improver in lane:
        if board.is_over:
            return
        try:
            improver.improve(instance, board, seed=seed)
        except Exception as error:
            board.report(f"gave up: {type(error).__name__}: {error}", by=improver.name)
