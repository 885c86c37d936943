"""Event simulation: the jobs of a workload arrive, and a scheduler starts them.

May import: `arguments`, `domain`, `problem`, `rusv`, `booking`, `formats`, `metrics`, `planner`, `writing`, `errors`.
Knows no scheduler: these plug in from above. Begin with `simulation.py`, the entry, and `scheduler.py`, the interface.
Queue rules (`rules.py`) run in a compiled event loop (`kernels.py` on the arrays of `arrays.py`; `queue_kernels.py`:
their order; `easy_kernels.py`: how long EASY would have made jobs wait; `run_kernels.py`: running jobs;
`reserving_kernels.py`: rules with several reservations; `hold_kernels.py`: what is set aside for a time);
`rule_choice.py` plays one of them, or another one where that wins (`contests.py`). All other schedulers are called
after each event (`scheduler_loop.py`), see machine and queue through a `Site`, make their decision with a `Draft`, and
may keep an `Outlook` of future free resources (`site.py`); `picks.py` is asked job by job, for agents that learn.
`load.py` has a workload as arrays, `world.py` the changing state, and `checkpoint.py` writes that to a file.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.lab.sim.checkpoint import Checkpoint
    from cpsched.lab.sim.contests import (
        LEAST_JOBS,
        LEAST_SECONDS,
        REPLICAS,
        Figures,
        Trial,
        contest,
        figures_of,
        winner,
    )
    from cpsched.lab.sim.load import unsupported
    from cpsched.lab.sim.picks import Picks
    from cpsched.lab.sim.rule_choice import RuleChoice, RuleUse, interprets_simulations
    from cpsched.lab.sim.rules import BackfillRule, Expectation, Order, Prediction, QueueRule
    from cpsched.lab.sim.scheduler import Change, Course, Decision, News, NextStep, Scheduler, Start
    from cpsched.lab.sim.simulation import History, Interrupted, Moment, simulate, unkept, warm_up_simulation
    from cpsched.lab.sim.site import Changes, Draft, Outlook, Site

__getattr__ = opener(__name__)
