"""The RUSV planner: conservative planning of a whole queue, backfilling, and the waiting room.

May import: `booking`, `engine`, `rusv`, `domain`, `errors`. Begin with `planner.py`; `queue.py` has the order in
which jobs are planned, `support.py` what is refused, `warmup.py` compiles the kernels ahead of time.
"""

from cpsched.planner.planner import Planner, PlannerEngine
from cpsched.planner.queue import planning_order
from cpsched.planner.support import unsupported
from cpsched.planner.warmup import kernels_are_ready, warmup

__all__ = ["Planner", "PlannerEngine", "kernels_are_ready", "planning_order", "unsupported", "warmup"]
