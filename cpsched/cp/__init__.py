"""The CP-SAT optimizer, and proofs: lower bounds on what any plan can reach.

May import: `planner`, `booking`, `engine`, `domain`, `errors`; ortools (when a model is built), numpy, scipy. Begin
with `model.py`, the table of contents of the model, and `improver.py`, which solves it in a process of its own
(`process.py`, `worker.py`); `bounds/bound.py` is the recipe of the bounds.
"""

from cpsched.cp.bounding import LagrangianBound
from cpsched.cp.bounds import Bound, lower_bound
from cpsched.cp.improver import Cp
from cpsched.cp.params import BoundParams, CpParams, ModelParams

__all__ = ["Bound", "BoundParams", "Cp", "CpParams", "LagrangianBound", "ModelParams", "lower_bound"]
