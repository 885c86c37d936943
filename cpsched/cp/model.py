"""The model: a table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cpsched.cp.constraints import CONSTRAINTS
from cpsched.cp.encoding import Encoding
from cpsched.cp.hints import add_hints
from cpsched.cp.objective import add_objective
from cpsched.cp.params import ModelParams
from cpsched.cp.redundant import (
    chain,
    class_energy,
    class_totals,
    dual_feasible,
    energy,
    order_equal_sites,
    order_equal_tasks,
    start_tight,
)
from cpsched.cp.solution import Placed
from cpsched.cp.symmetry import canonical
from cpsched.cp.variables import Variables

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


def build(encoding: Encoding, params: ModelParams, hint: Sequence[Placed] | None = None) -> tuple[CpModel, Variables]:
    """Return the model of a window, with a plan to begin from (one entry for each task)."""
    from ortools.sat.python.cp_model import CpModel

    class Model(CpModel):
        """A model without the old names of its methods: to make those takes longer than to solve a small model."""

        def _add_pre_pep8_methods(self) -> None:
            """Add none."""

    model = Model()
    variables = Variables.of(model, encoding)
    for constraint in CONSTRAINTS:
        constraint(model, encoding, variables)
    for redundant, is_wanted in (
        (chain, True),
        (class_totals, True),
        (energy, params.has_energy),
        (class_energy, params.has_class_energy),
        (dual_feasible, params.has_dual_feasible),
        (order_equal_sites, params.breaks_nodes),
        (order_equal_tasks, params.breaks_jobs),
        (start_tight, params.has_tight_starts),
    ):
        if is_wanted:
            redundant(model, encoding, variables)
    add_objective(model, encoding, variables)
    if hint is not None:
        kept = canonical(encoding, hint, sorts_jobs=params.breaks_jobs, sorts_nodes=params.breaks_nodes)
        add_hints(model, encoding, variables, kept)
    return model, variables
