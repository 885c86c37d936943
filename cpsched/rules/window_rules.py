"""The rules that plan windows, in one table: an order of the queue, and the way in which it is worked off; and
the engines of all rules.

Those that are queue rules have an on-line form of the same name in `policies`, which the simulator plays.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Engine, Progress
from cpsched.problem import by_turn, dominant_share, planning_order
from cpsched.rules.event_loop import start_in_turn
from cpsched.rules.evolving import VARIANTS, EvolvingEngine
from cpsched.rules.policy import Policy, PolicyEngine, insert
from cpsched.rusv import FOREVER, NOWHERE, EqualNodes, count_kernels


def by_submission(_: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by submission."""
    return sorted(jobs, key=lambda job: job.submit)


def by_walltime(_: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by walltime, then by submission."""
    return sorted(jobs, key=lambda job: (job.walltime, job.submit))


def by_smith(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by expected wait x expected runtime x dominant share / weight, then by submission: Smith's rule (1956) for
    the sum of weight x wait / expected wait.

    On one machine the best order is by ascending processing time / weight. The weight is the job's over its expected
    wait; the processing time is the expected runtime times width, the largest share of all nodes' (or licences') total
    that the job takes of anything.
    """

    def key(job: Job) -> tuple[Fraction, int]:
        share = dominant_share(instance.cluster, job)
        return instance.expected_wait(job) * job.expected_runtime * share / instance.weight(job), job.submit

    return sorted(jobs, key=key)


def _reserve(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Reserve for one job after the other: where nodes are interchangeable, counts of them, and else nodes."""
    if not insert_by_counts(ledger, queue, progress):
        insert(ledger, queue, progress)


def _in_turn(name: str, depth: int | None, order: Callable[[Instance, Sequence[Job]], list[Job]]) -> Policy:
    """Return a rule that starts jobs in their turn, and backfills among this many jobs behind a blocked head."""
    return Policy(name=name, order=order, serve=partial(start_in_turn, depth=depth))


#: First come, first served, to the letter. Lists are inserted job by job. Conservative backfilling (OCCS-52) gives each
#: job a reservation in its turn, in the order of the planner's queue; ``easy`` serves by priority first. PBSFifo and
#: PBSWalltime are those that were compared with constraint programming on Eurora (BRIDI-20, BRIDI-21).
WINDOW_RULES: tuple[Policy, ...] = (
    _in_turn("fcfs", 0, by_submission),
    Policy(name="sjf_list", order=by_walltime, serve=insert),
    Policy(name="wspt_list", order=by_smith, serve=insert),
    Policy(name="conservative", order=planning_order, serve=_reserve),
    Policy(name="conservative_on_nodes", order=planning_order, serve=insert),
    _in_turn("easy", None, by_turn),
    _in_turn("pbs_fifo_bf10", 10, by_submission),
    _in_turn("pbs_walltime_bf400", 400, by_walltime),
)


_ENGINES: tuple[Engine, ...] = (*map(PolicyEngine, WINDOW_RULES), *map(EvolvingEngine, VARIANTS))

#: The engines of all rules by their names, ``easy``, ``ep_nox`` and so on.
POLICIES: dict[str, Engine] = {engine.name: engine for engine in _ENGINES}


def insert_by_counts(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> bool:
    """Give each job the earliest start beside those before it, if enough is free at each second, on whichever nodes.

    Tells whether that can be done: all that jobs ask for is counted in one kind of units, no job waits for another one,
    has alternatives or a latest start, nothing is booked but running jobs, and what they have is only given back. Else
    nothing is booked.
    """
    if ledger.has_choices:
        return False
    rows = {job.id: row for row, job in enumerate(ledger.jobs)}
    chosen = np.array([rows[job.id] for job in queue], dtype=np.int64)
    units = _units(ledger, chosen)
    profile = None if units is None else _profile(ledger, units, len(queue))
    if units is None or profile is None:
        return False
    jobs, columns = ledger.table.jobs, units.num_columns
    reserved = count_kernels.Reservations(
        demand=jobs[:, 0].copy(),
        released=np.maximum(jobs[:, 1], 0),
        seconds=jobs[:, 3].copy(),
        starts=np.full(len(jobs), count_kernels.NOWHERE, dtype=np.int64),
        takes=np.zeros((len(jobs), columns), dtype=np.int64),
    )
    scratch = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    count_kernels.plan(chosen, profile, units.asks, reserved, *scratch)
    starts = reserved.starts[chosen].tolist()
    in_turn = sorted((start, place) for place, start in enumerate(starts) if start != count_kernels.NOWHERE)
    for done, (start, place) in enumerate(in_turn):
        second = start + ledger.instance.now
        ledger.place([queue[place].id], earliest=second, latest=second)
        if progress is not None:
            progress(done + 1, len(queue))
    if progress is not None:
        progress(len(queue), len(queue))
    return True


def _units(ledger: Ledger, chosen: NDArray[np.int64]) -> EqualNodes | None:
    """Return the one kind of units in which all jobs of the ledger are counted, None if there is more to it."""
    table = ledger.table
    is_bound = table.is_linked or (table.starts != NOWHERE).any() or (table.jobs[chosen, 2] < FOREVER).any()
    if is_bound or any(len(of_job) > 1 for of_job in ledger.modes):
        return None
    units = EqualNodes.of(ledger.timeline.demands)
    return units if units is not None and units.num_pools == 1 else None


def _profile(ledger: Ledger, units: EqualNodes, count: int) -> count_kernels.Profile | None:
    """Return the free units beside the running jobs, None if those of a node decrease; with room for `count` jobs."""
    times = ledger.timeline.breakpoints()
    amounts = [ledger.timeline.free_at(time) for time in times.tolist()]
    if any((after[0] < before[0]).any() for before, after in pairwise(amounts)):
        return None
    profile = count_kernels.Profile(
        size=np.array([len(times)], dtype=np.int64),
        times=np.zeros(len(times) + 2 * count + 2, dtype=np.int64),
        free=np.zeros((len(times) + 2 * count + 2, units.num_columns), dtype=np.int64),
    )
    profile.times[: len(times)] = times
    profile.free[: len(times)] = [units.free(*free) for free in amounts]
    return profile
