"""Decoder search over the planner's insertion: list schedules in several orders, then ruin and recreate with simulated
annealing.

May import: `planner`, `problem`, `booking`, `rusv`, `metrics`, `engine`, `domain`; its kernels are compiled by numba.
Begin with `engine.py`; `chain.py` is one chain of plans, `kernels.py` its steps, `costs.py` the objective in the
kernels' form. `evolving.py` and `evolving_kernels.py` are the same for jobs that evolve over whole nodes of one kind,
`ledger_chain.py` for jobs that evolve over any nodes.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.search.engine import Search, SearchParams
    from cpsched.search.warmup import warm_up_evolving_search

__all__ = ["Search", "SearchParams", "warm_up_evolving_search"]

__getattr__ = opener(__name__, {"engine": "Search SearchParams", "warmup": "warm_up_evolving_search"})
