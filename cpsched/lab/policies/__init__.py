"""On-line schedulers: rules, the yardsticks among them, and engines that plan one window after the other.

May import: `arguments`, `portfolio`, `rules`, `sim`, `problem`, `engine`, `rusv`, `domain`, `errors`. Begin
with `queue_rules.py`, the table of the queue rules, and `catalogue.py`, which makes each scheduler by its name.
`engine_scheduler.py` makes a scheduler of an engine, and the one that is recommended. `conservative.py` keeps
reservations for all jobs, `slurm.py` is Slurm; `sd` and `maui` have folders; `batsim.py` asks a process of Batsim. What
these rules plan for one window is in `rules`.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.lab.policies.catalogue import (
        SCHEDULERS,
        checked_parameters,
        factory_of,
        label_of,
        make_scheduler,
        parameter_text,
        scheduler_names,
    )
    from cpsched.lab.policies.engine_scheduler import Rolling, make_engine_scheduler

__getattr__ = opener(__name__)
