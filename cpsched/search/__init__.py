"""Decoder search over the planner's insertion: list schedules in several orders, then ruin and recreate with simulated
annealing.

May import: `planner`, `problem`, `booking`, `rusv`, `metrics`, `engine`, `domain`; its kernels are compiled by numba.
Begin with `engine.py`; `chain.py` is one chain of plans, `kernels.py` its steps, `costs.py` the objective in the
kernels' form. `evolving.py` and `evolving_kernels.py` are the same for jobs that evolve over whole nodes of one kind,
`changing.py` and `changing_kernels.py` for all other jobs that change while they run.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.search.changing import ChangingChain
    from cpsched.search.engine import Search, SearchParams
    from cpsched.search.warmup import warm_up_changing_search

__all__ = ["ChangingChain", "Search", "SearchParams", "warm_up_changing_search"]

__getattr__ = opener(__name__)
