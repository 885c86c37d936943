"""The RUSV planner: conservative planning of a whole queue, backfilling, and the waiting room.

May import: `booking`, `engine`, `rusv`, `domain`, `errors`. Begin with `planner.py`; `queue.py` has the order in
which jobs are planned, `roster.py` who is planned at all and what an outcome says of each, `support.py` what is
refused, `warmup.py` compiles the kernels ahead of time.
"""

from cpsched.planner.planner import Planner
from cpsched.planner.planner_engine import PlannerEngine
from cpsched.planner.queue import planning_order
from cpsched.planner.roster import Roster
from cpsched.planner.support import unsupported
from cpsched.planner.warmup import warmup
from cpsched.rusv import announced as compiling_announced

__all__ = ["Planner", "PlannerEngine", "Roster", "compiling_announced", "planning_order", "unsupported", "warmup"]
