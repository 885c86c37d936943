"""The CP-SAT optimizer, and proofs: lower bounds on what any plan can reach.

May import: `planner`, `booking`, `problem`, `metrics`, `engine`, `domain`, `errors`; ortools (when a model is built),
numpy, scipy. Begin with `model.py`, the table of contents of the model, and `improver.py`, which solves it in a process
of its own (`process.py`, `worker.py`); `neighbourhoods/improver.py` improves parts of plans of any size;
`bounds/bound.py` is the recipe of the bounds.

Nothing is imported before it is asked for: the worker is on its way the sooner the less it loads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpsched.cp.bounding import LagrangianBound
    from cpsched.cp.bounds import Bound, lower_bound
    from cpsched.cp.improver import Cp
    from cpsched.cp.neighbourhoods.improver import Neighbourhoods
    from cpsched.cp.params import BoundParams, CpParams, ModelParams, NeighbourhoodParams

__all__ = [
    "Bound",
    "BoundParams",
    "Cp",
    "CpParams",
    "LagrangianBound",
    "ModelParams",
    "NeighbourhoodParams",
    "Neighbourhoods",
    "lower_bound",
]

_MODULES = {
    "Bound": "bounds",
    "BoundParams": "params",
    "Cp": "improver",
    "CpParams": "params",
    "LagrangianBound": "bounding",
    "ModelParams": "params",
    "NeighbourhoodParams": "params",
    "Neighbourhoods": "neighbourhoods.improver",
    "lower_bound": "bounds",
}


def __getattr__(name: str) -> Any:
    """Fetch a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module 'cpsched.cp' has no attribute {name!r}")
    return getattr(import_module(f"cpsched.cp.{_MODULES[name]}"), name)
