"""Event simulation: a workload comes as it came, and a scheduler works it off.

May import: `domain`, `rusv`, `booking`, `metrics`, `errors`. Knows no scheduler: these plug in from above. Begin with
`simulate.py`, the front door, and `scheduler.py`, the joint. Queue rules (`rules.py`) are played by a compiled event
loop (`kernels.py`); all others are asked whenever something has happened (`scheduler_loop.py`), see machine and queue
through a `Site`, and may keep an `Outlook` of what will be free; `rolling.py` makes one of whoever plans windows.
`load.py` has a workload as arrays, `world.py` what changes, and `checkpoint.py` keeps that in a file.
"""

from cpsched.sim.checkpoint import Checkpoint
from cpsched.sim.load import unsupported
from cpsched.sim.rolling import Planning, Rolling
from cpsched.sim.rules import BackfillRule, Order, Prediction, QueueRule
from cpsched.sim.scheduler import Change, Counting, Decision, News, Scheduler, Start
from cpsched.sim.simulate import History, Interrupted, Moment, simulate
from cpsched.sim.site import Changes, Outlook, Site
from cpsched.sim.warmup import warm_up_simulation

__all__ = [
    "BackfillRule",
    "Change",
    "Changes",
    "Checkpoint",
    "Counting",
    "Decision",
    "History",
    "Interrupted",
    "Moment",
    "News",
    "Order",
    "Outlook",
    "Planning",
    "Prediction",
    "QueueRule",
    "Rolling",
    "Scheduler",
    "Site",
    "Start",
    "simulate",
    "unsupported",
    "warm_up_simulation",
]
