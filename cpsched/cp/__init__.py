"""The CP-SAT optimizer, and proofs: lower bounds on what any plan can reach.

Begin with `model.py`, the table of contents of the model, and `improver.py`, which solves it in a process of its own
(`process.py`, `worker.py`); `neighbourhoods/improver.py` improves parts of plans of any size; `bounds/bound.py` is the
recipe of the bounds; `bounding.py` has what proves them, and solves windows of a few jobs at once.

Nothing is imported before it is asked for: the worker is on its way the sooner the less it loads.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.cp.bounding import LagrangianBound, Orders, QuickBound
    from cpsched.cp.bounds import Bound, lower_bound
    from cpsched.cp.improver import Cp
    from cpsched.cp.neighbourhoods.improver import Neighbourhoods
    from cpsched.cp.solution import ModelParams

__getattr__ = opener(__name__)
