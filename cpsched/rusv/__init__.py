"""Resource usage vectors: the algebra (values) and the timeline (fast bookkeeping of many). Knows no job.

May import: `errors`; numba lives here. Begin with `vector.py`, the algebra of OpenCCS, then `timeline.py`, what the
planner books on; its kernels are in `kernels.py`, and `jit.py` compiles and caches them.
"""

from cpsched.rusv.jit import is_cached
from cpsched.rusv.kernels import FOREVER
from cpsched.rusv.timeline import NOWHERE, Booking, Demands, Fit, JobTable, KindDemand, Layout, Run, Timeline

__all__ = [
    "FOREVER",
    "NOWHERE",
    "Booking",
    "Demands",
    "Fit",
    "JobTable",
    "KindDemand",
    "Layout",
    "Run",
    "Timeline",
    "is_cached",
]
