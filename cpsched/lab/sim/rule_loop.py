"""Playing a workload by a queue rule, compiled."""

from __future__ import annotations

import time
from collections.abc import Callable

from cpsched.lab.sim import arrays, kernels
from cpsched.lab.sim.arrays import C
from cpsched.lab.sim.hold_kernels import has_asides
from cpsched.lab.sim.rules import BackfillRule, Prediction, QueueRule
from cpsched.lab.sim.world import SimWorld
from cpsched.rusv import EqualNodes

#: Passes between two looks at the clock.
_PORTION = 2_000
#: So often, at least, usage changes the weights of jobs in a simulation, by the number of jobs.
_WEIGHED = 200


def play_rule(
    world: SimWorld,
    rule: QueueRule,
    seconds: list[float],
    *,
    predicts: Prediction | None,
    look: Callable[[], None],
    portion: int | None = None,
) -> bool:
    """Run the simulation under a rule; tell whether it has come to its end.

    `world`: the state of the simulation, from which it continues.
    `seconds`: a list to which the mean seconds of a pass are added, for each portion of passes.
    `predicts`: the use of predicted runtimes; None: none, jobs are expected to take their walltimes.
    `look`: called repeatedly.
    `portion`: the number of passes after which it pauses; None: it is played to its end.
    """
    numbers = rule.in_numbers(predicts=predicts, is_counted=is_counted(world, rule))
    most = portion or _PORTION
    if world.load.instance.fair_share is not None:
        most = max(1, min(most, len(world.load.jobs) // _WEIGHED))
    while True:
        if rule.key is None:
            world.weigh()
        before, began = int(world.state.clock[C.PASSES]), time.perf_counter()
        told = kernels.advance(numbers, most, world.state, world.machine, world.tables, world.scratch)
        passes = int(world.state.clock[C.PASSES]) - before
        if passes:
            seconds.append((time.perf_counter() - began) / passes)
        if told == arrays.FINISHED:
            return True
        if told == arrays.LACKS_ROOM:
            world.make_room()
        look()
        if portion is not None and told == arrays.PAUSED:
            return False


def is_counted(world: SimWorld, rule: QueueRule) -> bool:
    """Tell whether it makes no difference which nodes are reserved: all jobs are counted on equal nodes, of which none
    are set aside.

    For the head of the queue alone the reservation has nodes all the same. Several reservations are of sums, which have
    to say how many jobs there is room for.
    """
    is_of_head = rule.backfill is BackfillRule.NOT_DELAYING
    if not (is_of_head or rule.backfill is BackfillRule.RESERVING) or has_asides(world.state):
        return False
    nodes = EqualNodes.of(world.load.columns.demands)
    if nodes is None:
        return False
    return nodes.is_apart if is_of_head else nodes.is_summed and not world.state.fixed[:, 1].any()
