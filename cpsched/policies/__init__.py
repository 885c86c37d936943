"""Rule-based schedulers: the yardsticks. Each plans one window, with all jobs known and walltimes taken as runtimes, or
works a workload off on-line.

May import: `planner`, `sim`, `problem`, `booking`, `engine`, `rusv`, `domain`, `errors`. Begin with `policy.py`, what a
rule is, and `policy_engine.py`, which makes an engine of it; a queue is served by `insertion.py`, job by job (by
`counting.py` where nodes are interchangeable), or by `event_loop.py`, event by event. Each rule has a file of its own;
`evolving` and `malleable` have the rules for jobs that change while they run; `online` has the rules of the simulator.
"""

from cpsched.engine import Engine
from cpsched.policies.conservative import Conservative
from cpsched.policies.conservative_on_nodes import ConservativeOnNodes
from cpsched.policies.easy import Easy
from cpsched.policies.evolving import VARIANTS, EvolvingEngine
from cpsched.policies.fcfs import Fcfs
from cpsched.policies.malleable import SD_RULES, SdEngine
from cpsched.policies.online import SCHEDULERS, make_scheduler, scheduler_from
from cpsched.policies.pbs_fifo_bf10 import PbsFifoBf10
from cpsched.policies.pbs_walltime_bf400 import PbsWalltimeBf400
from cpsched.policies.policy import Policy
from cpsched.policies.policy_engine import PolicyEngine
from cpsched.policies.sjf import Sjf
from cpsched.policies.wspt import Wspt

__all__ = [
    "POLICIES",
    "SCHEDULERS",
    "EvolvingEngine",
    "Policy",
    "PolicyEngine",
    "SdEngine",
    "Wspt",
    "make_scheduler",
    "scheduler_from",
]

_RULES: tuple[Policy, ...] = (
    Fcfs(),
    Sjf(),
    Wspt(),
    Conservative(),
    ConservativeOnNodes(),
    Easy(),
    PbsFifoBf10(),
    PbsWalltimeBf400(),
)

_ENGINES: tuple[Engine, ...] = (*map(PolicyEngine, _RULES), *map(EvolvingEngine, VARIANTS), *map(SdEngine, SD_RULES))

#: The engines of all rules by their names, ``easy``, ``ep_nox`` and so on.
POLICIES: dict[str, Engine] = {engine.name: engine for engine in _ENGINES}
