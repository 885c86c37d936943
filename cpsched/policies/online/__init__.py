"""On-line schedulers: rules that work a workload off while it comes, in the simulator.

May import what `policies` may, above all `sim`. Begin with `catalogue.py`, which makes each scheduler by its name. Most
are queue rules, which the simulator has compiled: rows of `policies/queue_rules.py`. `conservative.py` and `slurm.py`
keep reservations and are asked at every event.
"""

from cpsched.policies.online.catalogue import SCHEDULERS, make_scheduler, scheduler_from

__all__ = ["SCHEDULERS", "make_scheduler", "scheduler_from"]
