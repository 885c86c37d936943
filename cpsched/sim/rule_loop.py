"""Playing a workload by a queue rule, compiled."""

from __future__ import annotations

import time
from collections.abc import Callable

from cpsched.sim import kernels
from cpsched.sim.rules import Prediction, QueueRule
from cpsched.sim.world import World

__all__ = ["play_rule"]

#: Passes between two looks at the clock.
_PORTION = 2_000


def play_rule(
    world: World, rule: QueueRule, seconds: list[float], *, predicts: Prediction | None, look: Callable[[], None]
) -> None:
    """Let everything happen, as the rule has it.

    Parameters
    ----------
    world
        The workload, from wherever it stands on.
    seconds
        Where the mean seconds of a pass are put, of each portion of passes.
    predicts
        What predicted runtimes are used for; None: nothing, the walltimes are believed.
    look
        Called now and then.
    """
    numbers = rule.in_numbers(predicts=predicts)
    while True:
        before, began = int(world.state.clock[kernels.C_PASSES]), time.perf_counter()
        told = kernels.advance(numbers, _PORTION, world.state, world.machine, world.tables, world.scratch)
        passes = int(world.state.clock[kernels.C_PASSES]) - before
        if passes:
            seconds.append((time.perf_counter() - began) / passes)
        if told == kernels.FINISHED:
            return
        if told == kernels.LACKS_ROOM:
            world.make_room()
        look()
