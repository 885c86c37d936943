"""The rules that plan windows, in one table: an order of the queue, and the way in which it is worked off; and
the engines of all rules.

Those that are queue rules have an on-line form of the same name in `policies`, which the simulator plays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Engine, Progress
from cpsched.problem import by_turn, dominant_share, planning_order
from cpsched.rules.counting import insert_by_counts
from cpsched.rules.event_loop import start_in_turn
from cpsched.rules.evolving import VARIANTS, EvolvingEngine
from cpsched.rules.policy import Policy, PolicyEngine, insert
from cpsched.rules.sd import SD_RULES, SdEngine


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


_ENGINES: tuple[Engine, ...] = (
    *map(PolicyEngine, WINDOW_RULES),
    *map(EvolvingEngine, VARIANTS),
    *map(SdEngine, SD_RULES),
)

#: The engines of all rules by their names, ``easy``, ``ep_nox`` and so on.
POLICIES: dict[str, Engine] = {engine.name: engine for engine in _ENGINES}
