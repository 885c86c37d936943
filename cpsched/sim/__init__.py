"""Event simulation: a workload comes as it came, and a scheduler works it off.

May import: `domain`, `rusv`, `booking`, `metrics`, `errors`. Knows no scheduler: these plug in from above. Begin with
`simulate.py`, the front door, and `scheduler.py`, the joint. Queue rules (`rules.py`) are played by a compiled event
loop (`kernels.py`); all others are asked whenever something has happened (`scheduler_loop.py`), see machine and queue
through a `Site`, and may keep an `Outlook` of what will be free. `load.py` has a workload as arrays, `world.py` what
changes.
"""

from cpsched.sim.load import unsupported
from cpsched.sim.rules import Order, QueueRule, Way
from cpsched.sim.scheduler import Decision, News, Scheduler, Start
from cpsched.sim.simulate import History, Moment, simulate
from cpsched.sim.site import Outlook, Site

__all__ = [
    "Decision",
    "History",
    "Moment",
    "News",
    "Order",
    "Outlook",
    "QueueRule",
    "Scheduler",
    "Site",
    "Start",
    "Way",
    "simulate",
    "unsupported",
]
