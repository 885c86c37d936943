"""Rule-based schedulers: the yardsticks. Each plans one window, with all jobs known and walltimes taken as runtimes, or
works a workload off on-line.

May import: `arguments`, `planner`, `sim`, `problem`, `booking`, `engine`, `rusv`, `domain`, `errors`. Begin with
`queue_rules.py`, the table of the queue rules in both of their forms, and `catalogue.py`, which makes each on-line
scheduler by its name. `policy.py` says what a rule for windows is, and `policy_engine.py` makes an engine of it; a
queue is served by `insertion.py`, job by job, or by `event_loop.py`, event by event. Rules that take more have folders:
`conservative`, `evolving`, `sd`, `maui`, `slurm`. On-line, `ranking.py` orders the queue by priority, and
`future_map.py` keeps reservations on nodes.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.policies.catalogue import SCHEDULERS, make_scheduler, scheduler_from, unknown_scheduler
    from cpsched.policies.engines import POLICIES
    from cpsched.policies.evolving import VARIANTS, EvolvingEngine, EvolvingOnline
    from cpsched.policies.insertion import insert
    from cpsched.policies.policy import Policy
    from cpsched.policies.policy_engine import PolicyEngine
    from cpsched.policies.queue_rules import by_smith
    from cpsched.policies.sd import SdEngine

__all__ = [
    "POLICIES",
    "SCHEDULERS",
    "VARIANTS",
    "EvolvingEngine",
    "EvolvingOnline",
    "Policy",
    "PolicyEngine",
    "SdEngine",
    "by_smith",
    "insert",
    "make_scheduler",
    "scheduler_from",
    "unknown_scheduler",
]

__getattr__ = opener(__name__)
